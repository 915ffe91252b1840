//! Restarts outside a drain: no cordon, no last list, no newcomers, all nodes at once.

use super::restarts::{cluster, restarts, runs_on, stale};
use super::vms::reborn;
use super::*;
use crate::event::StopReason;
use crate::facts::testing::{kubevirt, launcher, migration, node, pod, vm, vmi, world};
use crate::facts::{Migratable, RunStrategy, Strategy, VmiPhase};
use crate::outcome::{Cause, Verdict, VmOutcome};

/// Started, and KubeVirt's CR was read.
fn ready(names: &[&str]) -> Rig {
    let mut rig = Rig::in_place(cluster(names));
    rig.start();
    rig.cr_read();
    rig
}

fn asked(names: &[&str]) -> Rig {
    let mut rig = ready(names);
    for name in names {
        rig.vmi_read(name);
        rig.restart(name, RestartAnswer::Accepted);
    }
    rig
}

/// The old VMI goes; the new one is there and not scheduled yet.
fn stops(rig: &mut Rig, name: &str) {
    rig.change(Change::Vmi(Delta::Delete(key(name))));
    rig.change(Change::Vmi(Delta::Apply(reborn(name))));
}

#[test]
fn a_vm_comes_back_to_its_own_node_and_nothing_else_is_sent() {
    let mut rig = asked(&["a"]);
    stops(&mut rig, "a");
    assert_eq!(rig.ended(), None);
    runs_on(&mut rig, "a", "node-0");
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    let row = rig.vm_row("a");
    assert_eq!((row.outcome, row.cause, row.node_after.as_deref()), (VmOutcome::Restarts, None, Some("node-0")));
    assert_eq!(row.new_vmi_uid.as_deref(), Some("new-a"));
    let report = rig.report("node-0");
    assert_eq!((report.verdict, report.cordoned_before, report.cordoned_now), (Verdict::Restarted, false, false));
    let kinds: Vec<EffectKind> = rig.sent.iter().map(|(_, k)| k.clone()).collect();
    assert_eq!(
        kinds,
        [
            EffectKind::ReadKubeVirt { key: Key::new("kubevirt", "kubevirt") },
            EffectKind::ReadVmi { vmi: key("a") },
            EffectKind::Restart { vm: key("a") }
        ]
    );
    assert_eq!(rig.warnings(), [] as [&str; 0], "a node without a cordon is as it should be");
}

#[test]
fn vms_of_all_nodes_are_restarted_together_and_share_the_places() {
    let far = |name: &str| stale(name).with(|v| v.node = Some("node-1".into()));
    let names = ["e", "f", "g"];
    let world = names.iter().fold(cluster(&["a", "b", "c", "d"]), |world, name| {
        world.vm(vm(name)).vmi(far(name)).pod(launcher(name).on("node-1"))
    });
    let mut rig = Rig::in_place(world);
    rig.start();
    rig.cr_read();
    let read = |name: &str| EffectKind::ReadVmi { vmi: key(name) };
    assert_eq!(rig.effects(), ["a", "b", "c", "d", "e"].map(read));
    for name in ["a", "b", "c", "d", "e"] {
        rig.vmi_read(name);
        rig.restart(name, RestartAnswer::Accepted);
    }
    rig.advance(secs(60));
    assert_eq!(restarts(&rig), 5);
    stops(&mut rig, "c");
    runs_on(&mut rig, "c", "node-2");
    assert_eq!(rig.effects(), [read("f")]);
}

#[test]
fn other_pods_and_newcomers_are_nobodys_business() {
    let mut rig = Rig::in_place(cluster(&["a"]).pod(pod("web")));
    rig.start();
    rig.cr_read();
    rig.pod(pod("late"));
    rig.change(Change::Vmi(Delta::Apply(stale("late-vm"))));
    rig.pod(launcher("late-vm"));
    rig.vmi_read("a");
    rig.restart("a", RestartAnswer::Accepted);
    stops(&mut rig, "a");
    rig.pod(launcher("a").on("node-0"));
    runs_on(&mut rig, "a", "node-0");
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    let report = rig.report("node-0");
    assert_eq!((report.vms.len(), report.pods.len()), (1, 0));
}

#[test]
fn the_first_that_finds_no_node_stops_the_rest() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut rig = ready(&names);
    for name in &names[..5] {
        rig.vmi_read(name);
        rig.restart(name, RestartAnswer::Accepted);
        stops(&mut rig, name);
    }
    rig.vmi("a", |v| v.unschedulable = Some("0/3 nodes are available".into()));
    rig.advance(secs(59));
    assert_eq!(restarts(&rig), 5);
    rig.advance(secs(2));
    for name in &names[1..5] {
        runs_on(&mut rig, name, "node-0");
    }
    assert_eq!((rig.ended(), restarts(&rig)), (Some(ExitCode::Blocked), 5));
    assert_eq!((rig.vm_row("a").outcome, rig.vm_row("a").cause), (VmOutcome::Down, Some(Cause::Unschedulable)));
    assert_eq!(rig.vm_row("f").cause, Some(Cause::RestartStalled));
}

#[test]
fn one_that_does_not_run_again_ends_with_five() {
    let mut rig = asked(&["a"]);
    stops(&mut rig, "a");
    rig.advance(secs(60 + 300));
    assert_eq!(rig.ended(), Some(ExitCode::VmDown));
    assert_eq!(rig.vm_row("a").remedy.as_deref(), Some("kubectl describe vmi a -n tenant-a"));
}

#[test]
fn another_strategy_than_promised_is_not_done() {
    let mut rig = asked(&["a"]);
    rig.change(Change::Vmi(Delta::Delete(key("a"))));
    rig.change(Change::Vmi(Delta::Apply(reborn("a").live_migrate())));
    runs_on(&mut rig, "a", "node-1");
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
    assert_eq!((rig.vm_row("a").outcome, rig.vm_row("a").cause), (VmOutcome::Restarts, Some(Cause::StrategyMismatch)));
    assert_eq!(rig.report("node-0").verdict, Verdict::Blocked);
}

#[test]
fn one_that_somebody_else_restarts_first_is_followed_and_not_restarted() {
    // Before its turn, at the read, and at the answer.
    let mut rig = Rig::in_place(cluster(&["a"]));
    rig.start();
    stops(&mut rig, "a");
    rig.cr_read();
    runs_on(&mut rig, "a", "node-0");
    assert_eq!((rig.ended(), restarts(&rig)), (Some(ExitCode::Done), 0));
    assert_eq!((rig.vm_row("a").outcome, rig.vm_row("a").node_after.as_deref()), (VmOutcome::Returns, Some("node-0")));

    let mut rig = ready(&["a"]);
    rig.answer_to(|k| matches!(k, EffectKind::ReadVmi { .. }), Reply::Vmi(Ok(reborn("a"))));
    assert_eq!(rig.ended(), None, "it is not running yet");
    runs_on(&mut rig, "a", "node-2");
    assert_eq!((rig.ended(), restarts(&rig)), (Some(ExitCode::Done), 0));
    assert_eq!(rig.vm_row("a").outcome, VmOutcome::Returns);

    let mut rig = ready(&["a"]);
    rig.vmi_read("a");
    stops(&mut rig, "a");
    rig.restart("a", RestartAnswer::NotPossible { text: "not running".into() });
    runs_on(&mut rig, "a", "node-0");
    assert_eq!((rig.ended(), restarts(&rig)), (Some(ExitCode::Done), 1));
}

#[test]
fn one_whose_vmi_is_gone_at_the_read_is_waited_for() {
    let mut rig = ready(&["a"]);
    rig.answer_to(|k| matches!(k, EffectKind::ReadVmi { .. }), Reply::Vmi(Err(Failure::NotFound)));
    assert_eq!(rig.ended(), None);
    rig.change(Change::Vmi(Delta::Apply(reborn("a"))));
    runs_on(&mut rig, "a", "node-0");
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!((rig.vm_row("a").outcome, restarts(&rig)), (VmOutcome::Returns, 0));
}

#[test]
fn one_that_ends_for_good_is_gone() {
    let world = world().runs(vm("a").run(RunStrategy::RerunOnFailure), stale("a"));
    let mut rig = Rig::in_place(world);
    rig.start();
    rig.vmi("a", |v| v.phase = VmiPhase::Succeeded);
    assert_eq!((rig.ended(), restarts(&rig)), (Some(ExitCode::Done), 0));
    let row = rig.vm_row("a");
    assert_eq!(row.outcome, VmOutcome::Gone);
    assert!(row.because.contains("stopped by somebody else: runStrategy RerunOnFailure"), "{}", row.because);

    // The VM itself is deleted.
    let mut rig = asked(&["a"]);
    rig.change(Change::Vm(Delta::Delete(key("a"))));
    rig.change(Change::Vmi(Delta::Delete(key("a"))));
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.vm_row("a").outcome, VmOutcome::Gone);
}

#[test]
fn what_a_restart_does_not_help_any_more_is_left_alone() {
    let mut rig = Rig::in_place(cluster(&["a"]));
    rig.start();
    rig.answer_to(
        |k| matches!(k, EffectKind::ReadKubeVirt { .. }),
        Reply::KubeVirt(Ok(kubevirt(Some(Strategy::LiveMigrate)))),
    );
    rig.vmi_read("a");
    assert_eq!((rig.ended(), restarts(&rig)), (Some(ExitCode::Blocked), 0));
    assert_eq!(rig.vm_row("a").cause, Some(Cause::VmNotMigratable));

    let mut rig = ready(&["a"]);
    rig.vmi_is("a", |v| v.migratable = Migratable::Yes);
    assert_eq!((rig.ended(), restarts(&rig)), (Some(ExitCode::Blocked), 0));
    assert_eq!(rig.vm_row("a").because, "it can migrate now, so it needs no restart");

    // It has moved meanwhile, and needs none.
    let mut rig = ready(&["a"]);
    rig.vmi_is("a", |v| v.node = Some("node-1".into()));
    assert_eq!((rig.ended(), restarts(&rig)), (Some(ExitCode::Done), 0));
    assert_eq!((rig.vm_row("a").outcome, rig.vm_row("a").node_after.as_deref()), (VmOutcome::Migrates, Some("node-1")));
}

#[test]
fn a_migration_and_a_backup_are_waited_for() {
    let mut rig = ready(&["a"]);
    rig.vmi_is("a", |v| v.running_backup = Some("nightly".into()));
    assert_eq!(restarts(&rig), 0);
    rig.advance(secs(3));
    rig.vmi_is("a", |v| v.running_backup = None);
    assert_eq!(rig.effects(), [EffectKind::Restart { vm: key("a") }]);

    let mut rig = Rig::in_place(cluster(&["a"]).migration(migration("a", "Running")));
    rig.start();
    assert_eq!((rig.effects(), rig.ended()), (Vec::new(), None));
    rig.change(Change::Migration(Delta::Apply(migration("a", "Failed"))));
    rig.cr_read();
    assert_eq!(rig.effects(), [EffectKind::ReadVmi { vmi: key("a") }]);
}

#[test]
fn a_node_that_vanishes_does_not_end_its_restarts() {
    let mut rig = asked(&["a"]);
    stops(&mut rig, "a");
    rig.change(Change::Node(Delta::Delete("node-0".into())));
    runs_on(&mut rig, "a", "node-1");
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.warnings(), [] as [&str; 0]);

    // One that was not restarted yet stays as it is: nothing can confirm its end.
    let mut rig = ready(&["a"]);
    rig.change(Change::Node(Delta::Delete("node-0".into())));
    rig.vmi_read("a");
    assert_eq!((rig.ended(), restarts(&rig)), (Some(ExitCode::Blocked), 0));
    assert_eq!(rig.vm_row("a").cause, Some(Cause::NodeNotReady));
}

#[test]
fn a_cordoned_node_is_no_hindrance_where_others_are_open() {
    let mut rig = Rig::in_place(cluster(&["a"]).node(node("node-0").cordoned()));
    rig.start();
    rig.cr_read();
    rig.vmi_read("a");
    assert_eq!(rig.effects(), [EffectKind::Restart { vm: key("a") }]);
}

#[test]
fn a_signal_and_the_deadline_tell_sent_from_unsent() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut rig = ready(&names);
    rig.effects();
    rig.vmi_read("a");
    rig.restart("a", RestartAnswer::Accepted);
    rig.vmi_read("b");
    rig.effects();
    rig.vmi_read("c");
    // The restart of c was decided on and has not gone out.
    rig.input(Input::Stop(StopReason::Interrupt));
    assert_eq!(rig.ended(), Some(ExitCode::Interrupted));
    let because = |name: &str| rig.vm_row(name).because;
    assert!(because("a").contains("it is shutting down"), "{}", because("a"));
    assert!(because("b").contains("sent and not answered yet"), "{}", because("b"));
    assert_eq!(because("c"), "its turn did not come; nothing was sent");
    assert_eq!(because("f"), "its turn did not come; nothing was sent");
    assert_eq!([rig.vm_row("b").cause, rig.vm_row("c").cause], [Some(Cause::Stopping), Some(Cause::Interrupted)]);
    assert_eq!((rig.vm_row("b").attempts, rig.vm_row("c").attempts), (1, 0));
    assert_eq!(restarts(&rig), 2);

    let mut rig = asked(&["a"]);
    rig.advance(secs(1800));
    assert_ne!(rig.ended(), None);
}

#[test]
fn no_stale_vm_ends_at_once() {
    let mut rig = Rig::in_place(world().runs(vm("a"), vmi("a")));
    rig.start();
    assert_eq!((rig.effects(), rig.ended()), (Vec::new(), Some(ExitCode::Done)));
}
