//! Restarts of stale VMs.

use super::vms::reborn;
use super::*;
use crate::facts::testing::{kubevirt, launcher, migration, node, vm, vmi, world};
use crate::facts::{NodeFacts, RunStrategy, Strategy, VmiPhase};
use crate::outcome::{Cause, VmOutcome};

pub(super) fn stale(name: &str) -> VmiFacts {
    vmi(name).live_migrate().not_migratable("DisksNotLiveMigratable")
}

pub(super) fn cluster(names: &[&str]) -> World {
    names.iter().fold(world(), |world, name| world.runs(vm(name), stale(name)))
}

/// Cordoned, and KubeVirt's CR was read.
fn ready(names: &[&str]) -> Rig {
    let mut rig = Rig::one(cluster(names)).cordoned();
    rig.cr_read();
    rig
}

pub(super) fn restarts(rig: &Rig) -> usize {
    rig.sent.iter().filter(|(_, k)| matches!(k, EffectKind::Restart { .. })).count()
}

/// The old VMI goes, the new one is there and not scheduled yet.
fn stops(rig: &mut Rig, name: &str) {
    rig.pod(launcher(name).finished());
    rig.change(Change::Vmi(Delta::Apply(reborn(name))));
}

pub(super) fn runs_on(rig: &mut Rig, name: &str, node: &str) {
    rig.vmi(name, |v| {
        v.node = Some(node.to_owned());
        v.phase = VmiPhase::Running;
    });
}

fn asked(name: &str) -> Rig {
    let mut rig = ready(&[name]);
    rig.vmi_read(name);
    rig.restart(name, RestartAnswer::Accepted);
    rig
}

#[test]
fn the_cr_is_read_once_before_the_first_restart() {
    let mut rig = Rig::one(cluster(&["a", "b"])).cordoned();
    assert_eq!(rig.effects(), [EffectKind::ReadKubeVirt { key: Key::new("kubevirt", "kubevirt") }]);
    rig.cr_read();
    assert_eq!(rig.effects(), [EffectKind::ReadVmi { vmi: key("a") }, EffectKind::ReadVmi { vmi: key("b") }]);
    rig.vmi_read("a");
    assert_eq!(rig.effects(), [EffectKind::Restart { vm: key("a") }]);
}

#[test]
fn a_cr_that_cannot_be_read_for_a_moment_is_read_again() {
    let mut rig = Rig::one(cluster(&["a"])).cordoned();
    let failed = || Reply::KubeVirt(Err(Failure::Passing("timeout".into())));
    rig.answer_to(|k| matches!(k, EffectKind::ReadKubeVirt { .. }), failed());
    assert_eq!(rig.effects(), []);
    rig.advance(secs(3));
    rig.cr_read();
    assert_eq!(rig.effects(), [EffectKind::ReadVmi { vmi: key("a") }]);
}

#[test]
fn no_vm_is_restarted_when_the_cr_may_not_be_read() {
    let mut rig = Rig::one(cluster(&["a"])).cordoned();
    let failed = Reply::KubeVirt(Err(Failure::Forbidden("no".into())));
    rig.answer_to(|k| matches!(k, EffectKind::ReadKubeVirt { .. }), failed);
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
    assert_eq!(rig.vm_row("a").cause, Some(Cause::RestartStalled));
}

#[test]
fn a_cr_that_cannot_be_read_for_a_while_is_read_until_it_can() {
    let mut rig = Rig::one(cluster(&["a"])).cordoned();
    for _ in 0..20 {
        rig.effects();
        let failed = Reply::KubeVirt(Err(Failure::Passing("timeout".into())));
        rig.answer_to(|k| matches!(k, EffectKind::ReadKubeVirt { .. }), failed);
        rig.advance(secs(30));
    }
    assert_eq!((rig.ended(), restarts(&rig)), (None, 0));
}

#[test]
fn a_cr_that_changed_its_strategy_is_decided_on_anew() {
    let mut rig = Rig::one(cluster(&["a"])).cordoned();
    let changed = kubevirt(Some(Strategy::LiveMigrate));
    rig.answer_to(|k| matches!(k, EffectKind::ReadKubeVirt { .. }), Reply::KubeVirt(Ok(changed)));
    rig.vmi_read("a");
    rig.relist();
    assert_eq!(restarts(&rig), 0);
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
}

#[test]
fn a_restarted_vm_runs_elsewhere_under_a_new_uid() {
    let mut rig = asked("a");
    assert!(rig.events().iter().any(|e| matches!(e, EventKind::VmRestarting { .. })));
    stops(&mut rig, "a");
    assert_eq!(rig.effects(), []);
    runs_on(&mut rig, "a", "node-1");
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    let row = rig.vm_row("a");
    assert_eq!((row.outcome, row.cause, row.attempts), (VmOutcome::Restarts, None, 1));
    assert_eq!((row.new_vmi_uid.as_deref(), row.node_after.as_deref()), (Some("new-a"), Some("node-1")));
    assert_eq!(restarts(&rig), 1);
}

#[test]
fn no_more_than_five_are_under_way() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let mut rig = ready(&names);
    assert_eq!(rig.effects().len(), 5);
    for name in &names[..5] {
        rig.vmi_read(name);
        rig.restart(name, RestartAnswer::Accepted);
    }
    rig.advance(secs(60));
    assert_eq!(restarts(&rig), 5);
    stops(&mut rig, "c");
    runs_on(&mut rig, "c", "node-1");
    assert_eq!(rig.effects(), [EffectKind::ReadVmi { vmi: key("f") }]);
}

#[test]
fn a_place_that_becomes_free_by_time_alone_is_taken_at_once() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut rig = ready(&names);
    for name in &names[..5] {
        rig.vmi_read(name);
        rig.restart(name, RestartAnswer::Accepted);
        stops(&mut rig, name);
    }
    rig.advance(secs(359));
    assert_eq!(rig.effects(), []);
    // The new VMIs of the first five did not start for the guest's grace and five minutes.
    rig.advance(secs(1));
    assert_eq!(rig.sent.last().unwrap().1, EffectKind::ReadVmi { vmi: key("f") });
}

#[test]
fn five_that_wait_for_a_busy_server_do_not_wait_for_each_other() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let busy = crate::facts::testing::pod("web-0");
    let mut rig = Rig::one(cluster(&names).pod(busy)).cordoned();
    rig.effects();
    rig.evict("web-0", EvictionAnswer::Throttled { after: Some(secs(30)) });
    rig.cr_read();
    assert_eq!(rig.effects(), []);
    rig.advance(secs(31));
    assert_eq!(rig.sent.iter().filter(|(_, k)| matches!(k, EffectKind::ReadVmi { .. })).count(), 5);
}

#[test]
fn a_restart_that_a_busy_server_turned_away_was_not_begun() {
    let mut rig = ready(&["a"]);
    for _ in 0..10 {
        rig.vmi_read("a");
        rig.restart("a", RestartAnswer::Throttled { after: Some(secs(20)) });
        rig.advance(secs(20));
    }
    rig.vmi_read("a");
    rig.restart("a", RestartAnswer::Accepted);
    let row = &rig.machine.nodes[0].vms[0].item.row;
    assert_eq!(row.attempts, 1, "{row:?}");
    assert!(rig.events().iter().any(|e| matches!(e, EventKind::VmRestarting { .. })));
}

#[test]
fn a_restart_that_finds_no_node_is_down_after_a_minute_and_stops_further_ones() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut rig = ready(&names);
    for name in &names[..5] {
        rig.vmi_read(name);
        rig.restart(name, RestartAnswer::Accepted);
        stops(&mut rig, name);
    }
    rig.vmi("a", |v| v.unschedulable = Some("0/3 nodes fit".into()));
    rig.advance(secs(59));
    assert_eq!(rig.effects(), []);
    rig.advance(secs(1));
    for name in &names[1..5] {
        runs_on(&mut rig, name, "node-1");
    }
    rig.relist();
    assert_eq!(restarts(&rig), 5);
    let (a, f) = (rig.vm_row("a"), rig.vm_row("f"));
    assert_eq!((a.outcome, a.cause), (VmOutcome::Down, Some(Cause::Unschedulable)));
    assert_eq!((f.outcome, f.cause), (VmOutcome::Blocks, Some(Cause::RestartStalled)));
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
}

#[test]
fn another_text_of_the_scheduler_is_another_minute() {
    let mut rig = asked("a");
    stops(&mut rig, "a");
    rig.vmi("a", |v| v.unschedulable = Some("one".into()));
    rig.advance(secs(50));
    rig.vmi("a", |v| v.unschedulable = Some("two".into()));
    rig.advance(secs(50));
    assert_eq!(rig.effects(), []);
    rig.advance(secs(10));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::VmDown));
}

#[test]
fn another_strategy_than_promised_stops_further_restarts() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut rig = ready(&names);
    for name in &names[..5] {
        rig.vmi_read(name);
        rig.restart(name, RestartAnswer::Accepted);
        stops(&mut rig, name);
    }
    rig.vmi("a", |v| v.strategy = Some(Strategy::LiveMigrate));
    for name in &names[..5] {
        runs_on(&mut rig, name, "node-1");
    }
    rig.relist();
    assert_eq!(restarts(&rig), 5);
    assert_eq!(rig.vm_row("a").cause, Some(Cause::StrategyMismatch));
    assert_eq!(rig.vm_row("f").cause, Some(Cause::RestartStalled));
    assert!(rig.events().iter().any(|e| matches!(e, EventKind::Noted { warning: true, .. })));
}

#[test]
fn answers_that_end_the_restart_block_that_vm() {
    let text = || "words".to_owned();
    let lost = [
        (RestartAnswer::NoSuchVm, Cause::RestartRefused),
        (RestartAnswer::Forbidden { text: text() }, Cause::Forbidden),
        (RestartAnswer::Invalid { text: text() }, Cause::Invalid),
    ];
    for (answer, cause) in lost {
        let mut rig = ready(&["a"]);
        rig.vmi_read("a");
        rig.restart("a", answer);
        rig.relist();
        assert_eq!(rig.ended(), Some(ExitCode::Blocked));
        assert_eq!(rig.vm_row("a").cause, Some(cause));
        assert_eq!(restarts(&rig), 1);
    }
}

#[test]
fn a_restart_that_is_under_way_already_is_followed() {
    let mut rig = ready(&["a"]);
    rig.vmi_read("a");
    rig.restart("a", RestartAnswer::Underway);
    stops(&mut rig, "a");
    runs_on(&mut rig, "a", "node-1");
    rig.relist();
    assert_eq!(rig.vm_row("a").outcome, VmOutcome::Restarts);
}

#[test]
fn a_conflict_is_asked_again_and_then_a_refusal() {
    let mut rig = ready(&["a"]);
    for _ in 0..3 {
        rig.vmi_read("a");
        rig.restart("a", RestartAnswer::NotPossible { text: "words".into() });
        rig.advance(secs(5));
    }
    rig.relist();
    assert_eq!(rig.vm_row("a").cause, Some(Cause::RestartRefused));
    assert_eq!(restarts(&rig), 3);
}

#[test]
fn a_conflict_under_a_run_strategy_that_allows_none_is_a_refusal_at_once() {
    let mut rig = ready(&["a"]);
    rig.vmi_read("a");
    rig.effects();
    rig.vm(vm("a").run(RunStrategy::Halted));
    rig.restart("a", RestartAnswer::NotPossible { text: "words".into() });
    rig.relist();
    assert_eq!(rig.vm_row("a").cause, Some(Cause::RestartRefused));
}

#[test]
fn a_restart_that_does_not_get_through_is_tried_for_five_minutes() {
    // A heartbeat that is too old would end it earlier.
    let mut rig = Rig::one(cluster(&["a"]).node(NodeFacts { heartbeat: None, ..node("node-0") })).cordoned();
    rig.cr_read();
    let unavailable = RestartAnswer::Unavailable { text: "503".into(), after: None };
    while rig.now < secs(299) {
        rig.effects();
        if rig.open.iter().any(|e| matches!(e.kind, EffectKind::ReadVmi { .. })) {
            rig.vmi_read("a");
        } else if !rig.open.is_empty() {
            rig.restart("a", unavailable.clone());
        }
        rig.advance(Duration::from_millis(500));
    }
    assert_eq!(rig.ended(), None);
    assert!(restarts(&rig) > 15, "{}", restarts(&rig));
    for _ in 0..10 {
        rig.advance(secs(1));
        if rig.open.iter().any(|e| matches!(e.kind, EffectKind::ReadVmi { .. })) {
            rig.vmi_read("a");
            rig.restart("a", unavailable.clone());
        }
    }
    rig.relist();
    assert_eq!(rig.vm_row("a").cause, Some(Cause::WebhookUnreachable));
}

#[test]
fn a_restart_whose_answer_got_lost_is_followed_and_not_sent_again() {
    for run in [RunStrategy::Always, RunStrategy::RerunOnFailure] {
        let mut rig = Rig::one(world().runs(vm("a").run(run), stale("a"))).cordoned();
        rig.cr_read();
        rig.vmi_read("a");
        rig.restart("a", RestartAnswer::Unavailable { text: "timeout".into(), after: None });
        rig.advance(secs(1));
        rig.vmi_is("a", |v| v.deleting = true);
        stops(&mut rig, "a");
        assert_eq!(rig.ended(), None);
        runs_on(&mut rig, "a", "node-1");
        rig.relist();
        assert_eq!(rig.ended(), Some(ExitCode::Done));
        assert_eq!(rig.vm_row("a").outcome, VmOutcome::Restarts);
        assert_eq!(restarts(&rig), 1);
    }
}

#[test]
fn a_vm_that_comes_up_here_again_blocks_and_stays_blocked() {
    let mut rig = Rig::new(cluster(&["a"]), &["node-0"], |s| s.machine.wait_blocked = true).cordoned();
    rig.cr_read();
    rig.vmi_read("a");
    rig.restart("a", RestartAnswer::Accepted);
    stops(&mut rig, "a");
    runs_on(&mut rig, "a", "node-0");
    for _ in 0..5 {
        rig.vmi("a", |v| v.agent_connected = !v.agent_connected);
        rig.advance(secs(60));
    }
    assert_eq!(rig.effects(), []);
    assert_eq!(restarts(&rig), 1);
    rig.input(Input::Stop(crate::event::StopReason::Interrupt));
    assert_eq!(rig.vm_row("a").cause, Some(Cause::SameNode));
}

#[test]
fn a_restart_that_nothing_comes_of_blocks_after_grace_and_five_minutes() {
    let mut rig = asked("a");
    rig.advance(secs(359));
    assert_eq!(rig.effects(), []);
    rig.advance(secs(1));
    rig.relist();
    assert_eq!(rig.vm_row("a").cause, Some(Cause::RestartStalled));
    assert_eq!(restarts(&rig), 1);
}

#[test]
fn a_restarted_vm_that_never_appears_is_down() {
    let mut rig = asked("a");
    rig.gone(&launcher("a"));
    rig.change(Change::Vmi(Delta::Delete(key("a"))));
    rig.advance(secs(361));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::VmDown));
}

#[test]
fn a_vm_that_somebody_else_restarted_meanwhile_is_not_restarted() {
    let mut rig = ready(&["a"]);
    rig.vmi_is("a", |v| *v = reborn("a"));
    assert_eq!(rig.effects(), []);
    rig.pod(launcher("a").finished());
    assert_eq!(rig.effects(), []);
    runs_on(&mut rig, "a", "node-2");
    rig.relist();
    assert_eq!(restarts(&rig), 0);
    let row = rig.vm_row("a");
    assert_eq!((row.outcome, row.node_after.as_deref()), (VmOutcome::Returns, Some("node-2")));
}

#[test]
fn a_vm_is_not_restarted_while_a_migration_or_a_backup_of_it_runs() {
    let mut rig = ready(&["a"]);
    rig.change(Change::Migration(Delta::Apply(migration("a", "Running"))));
    rig.vmi_read("a");
    rig.advance(secs(5));
    assert_eq!(restarts(&rig), 0);

    let mut rig = ready(&["a"]);
    rig.vmi_is("a", |v| v.running_backup = Some("nightly".into()));
    rig.advance(secs(1));
    assert_eq!(restarts(&rig), 0);
    rig.advance(secs(2));
    rig.vmi_is("a", |v| v.running_backup = None);
    assert_eq!(rig.effects(), [EffectKind::Restart { vm: key("a") }]);
}

#[test]
fn a_grace_period_longer_than_the_time_left_restarts_nothing() {
    let slow = stale("a").with(|v| v.grace_seconds = 1801);
    let mut rig = Rig::one(world().runs(vm("a"), slow)).cordoned();
    rig.relist();
    assert_eq!(restarts(&rig), 0);
    assert_eq!(rig.vm_row("a").cause, Some(Cause::GraceTooLong));
    assert_eq!(rig.ended(), Some(ExitCode::Timeout));
}

#[test]
fn a_vm_that_would_stay_off_after_an_eviction_is_restarted_instead() {
    for run in [RunStrategy::RerunOnFailure, RunStrategy::Manual] {
        let off = vmi("a").strategy(Some(Strategy::None));
        let mut rig = Rig::one(world().runs(vm("a").run(run), off)).cordoned();
        rig.cr_read();
        rig.vmi_read("a");
        assert_eq!(rig.effects(), [EffectKind::Restart { vm: key("a") }]);
    }
}

#[test]
fn without_consent_nothing_is_restarted() {
    let mut rig = Rig::new(cluster(&["a"]), &["node-0"], |s| s.consent.restart_stale = RestartStale::Never).cordoned();
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
    assert_eq!(restarts(&rig), 0);
}

#[test]
fn the_watch_may_lag_behind_the_answer_and_nothing_is_restarted_twice() {
    let mut rig = asked("a");
    for _ in 0..20 {
        rig.vmi("a", |v| v.agent_connected = !v.agent_connected);
        rig.advance(secs(10));
    }
    assert_eq!(restarts(&rig), 1);
    stops(&mut rig, "a");
    runs_on(&mut rig, "a", "node-1");
    rig.relist();
    assert_eq!(rig.vm_row("a").outcome, VmOutcome::Restarts);
}
