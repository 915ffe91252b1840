//! VMs that are shut down, left alone, or turn out to be something else than planned.

use super::*;
use crate::event::Activity;
use crate::facts::testing::{ago, launcher, vm, vmi, world};
use crate::facts::{Migratable, PodPhase, RunStrategy, Strategy, VmiOwner, VmiPhase};
use crate::outcome::{Cause, VmOutcome};

fn off(name: &str) -> VmiFacts {
    vmi(name).strategy(Some(Strategy::None))
}

/// The new VMI of that VM.
pub(super) fn reborn(name: &str) -> VmiFacts {
    vmi(name).if_possible().with(|v| {
        v.uid = format!("new-{name}");
        v.node = None;
        v.phase = VmiPhase::Scheduling;
    })
}

/// The eviction was accepted, the guest ends, and its VMI goes.
fn shut_down(rig: &mut Rig, name: &str) {
    rig.vmi_read(name);
    rig.evict(name, EvictionAnswer::Accepted);
    rig.vmi(name, |v| v.phase = VmiPhase::Succeeded);
    rig.pod(launcher(name).finished());
    rig.change(Change::Vmi(Delta::Delete(key(name))));
}

#[test]
fn a_vm_that_is_shut_down_returns_elsewhere() {
    let mut rig = Rig::one(world().runs(vm("db"), off("db"))).cordoned();
    shut_down(&mut rig, "db");
    assert_eq!(rig.effects(), []);
    rig.change(Change::Vmi(Delta::Apply(reborn("db"))));
    rig.vmi("db", |v| {
        v.node = Some("node-1".into());
        v.phase = VmiPhase::Running;
    });
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    let row = rig.vm_row("db");
    assert_eq!(row.outcome, VmOutcome::Returns);
    assert_eq!(row.node_after.as_deref(), Some("node-1"));
    assert_eq!(row.new_vmi_uid.as_deref(), Some("new-db"));
}

#[test]
fn a_vm_that_should_run_again_and_does_not_ends_with_5() {
    let mut rig = Rig::one(world().runs(vm("db"), off("db"))).cordoned();
    shut_down(&mut rig, "db");
    rig.vm(vm("db").run(RunStrategy::Always));
    rig.advance(secs(359));
    assert_eq!(rig.effects(), []);
    rig.advance(secs(2));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::VmDown));
    assert_eq!(rig.vm_row("db").outcome, VmOutcome::Down);
}

#[test]
fn a_vmi_whose_end_kubevirt_does_not_note_is_no_vmi_that_waits_for_a_node() {
    let mut rig = Rig::one(world().runs(vm("db"), off("db"))).cordoned();
    rig.vmi_read("db");
    rig.evict("db", EvictionAnswer::Accepted);
    rig.pod(launcher("db").finished());
    let activities: Vec<Activity> = rig
        .events()
        .iter()
        .filter_map(|e| if let EventKind::VmProgressed { progress, .. } = e { Some(progress.activity) } else { None })
        .collect();
    assert!(activities.iter().all(|a| *a == Activity::ShuttingDown), "{activities:?}");
    rig.advance(secs(361));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::VmDown));
    assert!(rig.vm_row("db").because.contains("still calls its VMI running"), "{}", rig.vm_row("db").because);
}

#[test]
fn a_vm_that_was_stopped_meanwhile_is_down_after_a_moment() {
    let mut rig = Rig::one(world().runs(vm("db"), off("db"))).cordoned();
    shut_down(&mut rig, "db");
    let mut stopped = vm("db");
    stopped.printable_status = Some("Stopped".into());
    rig.vm(stopped);
    assert_eq!(rig.effects(), []);
    rig.advance(secs(6));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::VmDown));
}

#[test]
fn a_vm_that_nothing_starts_again_stays_off_with_consent() {
    let lonely = off("db").owned_by(VmiOwner::Standalone);
    let cluster = world().vmi(lonely).pod(launcher("db"));
    let mut rig = Rig::one(cluster).cordoned();
    shut_down(&mut rig, "db");
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.vm_row("db").outcome, VmOutcome::StaysOff);
}

#[test]
fn without_consent_it_is_left_alone() {
    let lonely = off("db").owned_by(VmiOwner::Standalone);
    let cluster = world().vmi(lonely).pod(launcher("db"));
    let mut rig = Rig::new(cluster, &["node-0"], |s| s.consent.allow_vm_down = false).cordoned();
    assert_eq!(rig.effects(), [EffectKind::RelistPods { node: "node-0".into() }]);
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
}

#[test]
fn a_late_vm_without_consent_is_neither_evicted_nor_restarted() {
    let mut rig = Rig::new(world().runs(vm("web"), vmi("web")), &["node-0"], |s| {
        s.consent.allow_vm_down = false;
        s.consent.restart_stale = RestartStale::Never;
    })
    .cordoned();
    rig.effects();
    rig.change(Change::Vmi(Delta::Apply(off("late").owned_by(VmiOwner::Standalone))));
    rig.pod(launcher("late"));
    assert_eq!(rig.effects(), []);
    rig.input(Input::Stop(crate::event::StopReason::Interrupt));
    assert_eq!(rig.vm_row("late").outcome, VmOutcome::Blocks);
}

#[test]
fn a_late_vm_that_migrates_is_evicted() {
    let mut rig = Rig::one(world().runs(vm("web"), vmi("web"))).cordoned();
    rig.effects();
    rig.change(Change::Vmi(Delta::Apply(vmi("late"))));
    rig.pod(launcher("late"));
    assert_eq!(rig.effects(), [EffectKind::ReadVmi { vmi: key("late") }]);
}

#[test]
fn a_grace_period_longer_than_the_time_left_sends_nothing() {
    let slow = off("db").with(|v| v.grace_seconds = 3600);
    let mut rig = Rig::one(world().runs(vm("db"), slow)).cordoned();
    assert_eq!(rig.effects(), [EffectKind::RelistPods { node: "node-0".into() }]);
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Timeout));
    let row = rig.vm_row("db");
    assert_eq!((row.outcome, row.cause), (VmOutcome::Pending, Some(Cause::GraceTooLong)));
}

#[test]
fn no_vm_is_evicted_twice_when_the_watch_lags_behind_the_answer() {
    let mut rig = Rig::one(world().runs(vm("db"), off("db"))).cordoned();
    rig.vmi_read("db");
    rig.evict("db", EvictionAnswer::Accepted);
    // For long, the watch says the same as before.
    for _ in 0..50 {
        rig.vmi("db", |v| v.agent_connected = !v.agent_connected);
        rig.pod(launcher("db"));
        rig.advance(secs(10));
    }
    assert_eq!(rig.sent.iter().filter(|(_, k)| evicted(k).is_some()).count(), 1);
}

#[test]
fn a_missing_condition_is_awaited_for_two_minutes_and_then_blocks() {
    let fresh = vmi("web").condition_missing().with(|v| v.scheduled_at = Some(ago(20)));
    let mut rig = Rig::one(world().runs(vm("web"), fresh)).cordoned();
    rig.advance(secs(99));
    assert_eq!(rig.effects(), []);
    rig.advance(secs(2));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
    assert_eq!(rig.vm_row("web").cause, Some(Cause::ConditionMissing));
}

#[test]
fn a_condition_that_comes_decides() {
    let fresh = vmi("web").condition_missing().with(|v| v.scheduled_at = Some(ago(20)));
    let mut rig = Rig::one(world().runs(vm("web"), fresh)).cordoned();
    rig.advance(secs(50));
    rig.vmi("web", |v| v.migratable = Migratable::Yes);
    rig.vmi_read("web");
    assert_eq!(rig.evictions(), [launcher("web").key.name]);
}

#[test]
fn a_vmi_without_a_launcher_is_awaited_and_then_blocks() {
    let mut rig = Rig::one(world().vm(vm("web")).vmi(vmi("web"))).cordoned();
    rig.advance(secs(119));
    assert_eq!(rig.effects(), []);
    rig.advance(secs(2));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
    let row = rig.vm_row("web");
    assert!(row.because.contains("no launcher"), "{}", row.because);
}

#[test]
fn a_vmi_without_a_launcher_that_ends_has_left() {
    let mut rig = Rig::one(world().vm(vm("web")).vmi(vmi("web"))).cordoned();
    rig.effects();
    rig.change(Change::Vmi(Delta::Delete(key("web"))));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.vm_row("web").outcome, VmOutcome::Gone);
}

#[test]
fn a_migration_to_this_node_is_awaited_and_its_vm_then_moved_on() {
    let incoming = vmi("web").with(|v| v.node = Some("node-1".into()));
    let mut rig = Rig::one(world().runs(vm("web"), incoming)).cordoned();
    rig.advance(secs(60));
    assert_eq!(rig.effects(), []);
    rig.vmi("web", |v| v.node = Some("node-0".into()));
    rig.vmi_read("web");
    assert_eq!(rig.evictions(), [launcher("web").key.name]);
}

#[test]
fn an_eviction_of_a_migration_target_waits_and_asks_again() {
    let mut rig = Rig::one(world().runs(vm("web"), vmi("web"))).cordoned();
    rig.vmi_read("web");
    rig.evict("web", EvictionAnswer::VmMigrationTarget);
    assert_eq!(rig.effects(), []);
    rig.advance(secs(3));
    rig.vmi_read("web");
    assert_eq!(rig.evictions(), [launcher("web").key.name]);
}

#[test]
fn a_vm_that_is_being_shut_down_is_awaited_without_a_request() {
    let mut rig =
        Rig::one(world().vm(vm("db")).vmi(vmi("db").with(|v| v.deleting = true)).pod(launcher("db"))).cordoned();
    rig.advance(secs(30));
    assert_eq!(rig.effects(), []);
    rig.gone(&launcher("db"));
    rig.change(Change::Vmi(Delta::Apply(reborn("db").with(|v| {
        v.node = Some("node-2".into());
        v.phase = VmiPhase::Running;
    }))));
    rig.relist();
    assert_eq!(rig.vm_row("db").outcome, VmOutcome::Returns);
}

#[test]
fn a_vm_that_somebody_restarted_on_this_node_before_the_cordon_is_planned_anew() {
    let mut rig = Rig::one(world().runs(vm("web"), vmi("web")));
    rig.start();
    rig.effects();
    let again = vmi("web").with(|v| v.uid = "uid-2".into());
    let pod = launcher("web").with(|p| {
        p.key.uid = "pod-2".into();
        p.key.name = "virt-launcher-web-2".into();
        p.role = crate::facts::PodRole::Launcher { vmi: "web".into(), vmi_uid: Some("uid-2".into()) };
    });
    rig.change(Change::Vmi(Delta::Apply(again)));
    rig.gone(&launcher("web"));
    rig.pod(pod.clone());
    rig.answer_to(|k| matches!(k, EffectKind::Cordon { .. }), cordoned(crate::facts::testing::node("node-0")));
    rig.vmi_read("web");
    assert_eq!(rig.effects(), [EffectKind::Evict { pod: pod.key, grace: None }]);
}

#[test]
fn a_vm_that_somebody_restarts_on_this_node_during_the_read_is_planned_anew() {
    let mut rig = Rig::one(world().runs(vm("web"), vmi("web"))).cordoned();
    rig.vmi_is("web", |v| v.uid = "uid-2".into());
    rig.gone(&launcher("web"));
    rig.pod(launcher("web").with(|p| {
        p.key.uid = "pod-2".into();
        p.role = crate::facts::PodRole::Launcher { vmi: "web".into(), vmi_uid: Some("uid-2".into()) };
    }));
    rig.vmi_read("web");
    let Some(EffectKind::Evict { pod, .. }) = rig.effects().pop() else { panic!("not evicted") };
    assert_eq!(pod.uid, "pod-2");
}

#[test]
fn a_shut_down_vm_that_comes_up_here_again_blocks_and_stays_blocked() {
    let mut rig =
        Rig::new(world().runs(vm("db"), off("db")), &["node-0"], |s| s.machine.wait_blocked = true).cordoned();
    shut_down(&mut rig, "db");
    rig.change(Change::Vmi(Delta::Apply(reborn("db").with(|v| v.node = Some("node-0".into())))));
    for _ in 0..3 {
        rig.vmi("db", |v| v.agent_connected = !v.agent_connected);
        rig.advance(secs(10));
    }
    assert_eq!(rig.effects(), []);
    rig.input(Input::Stop(crate::event::StopReason::Interrupt));
    let row = rig.vm_row("db");
    assert_eq!((row.outcome, row.cause), (VmOutcome::Blocks, Some(Cause::SameNode)));
}

#[test]
fn a_gone_answer_for_a_vm_that_has_migrated_is_no_shutdown() {
    let mut rig = Rig::one(world().runs(vm("web"), vmi("web"))).cordoned();
    rig.vmi_read("web");
    rig.evict("web", EvictionAnswer::Gone);
    rig.gone(&launcher("web"));
    rig.vmi("web", |v| v.node = Some("node-1".into()));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.vm_row("web").outcome, VmOutcome::Migrates);
}

#[test]
fn a_crashed_launcher_whose_vmi_is_read_as_gone_is_an_orphan_for_a_minute() {
    let mut rig = Rig::one(world().runs(vm("web"), vmi("web"))).cordoned();
    while rig.now < secs(70) && rig.ended().is_none() {
        rig.effects();
        if rig.open.iter().any(|e| matches!(e.kind, EffectKind::ReadVmi { .. })) {
            rig.answer_to(|k| matches!(k, EffectKind::ReadVmi { .. }), Reply::Vmi(Err(Failure::NotFound)));
        }
        rig.advance(secs(1));
    }
    assert!(rig.now >= secs(60));
    rig.relist();
    assert_eq!(rig.vm_row("web").cause, Some(Cause::OrphanLauncher));
    let _ = PodPhase::Running;
}

#[test]
fn a_vmi_that_may_not_be_read_blocks() {
    let mut rig = Rig::one(world().runs(vm("web"), vmi("web"))).cordoned();
    let forbidden = Reply::Vmi(Err(Failure::Forbidden("no".into())));
    rig.answer_to(|k| matches!(k, EffectKind::ReadVmi { .. }), forbidden);
    rig.relist();
    assert_eq!(rig.vm_row("web").cause, Some(Cause::Forbidden));
}

#[test]
fn no_more_vms_than_the_limit_are_in_flight() {
    let mut cluster = world();
    for n in 0..50 {
        let name = format!("web-{n:02}");
        cluster = cluster.runs(vm(&name), vmi(&name));
    }
    let mut rig = Rig::one(cluster).cordoned();
    let mut most = 0;
    for _ in 0..200 {
        rig.effects();
        most = most.max(rig.open.iter().filter(|e| e.kind.is_post()).count());
        // All reads are answered before any eviction is.
        let read = rig
            .open
            .iter()
            .find_map(|e| if let EffectKind::ReadVmi { vmi } = &e.kind { Some(vmi.name.clone()) } else { None });
        match read {
            Some(name) => rig.vmi_read(&name),
            None if rig.open.is_empty() => break,
            None => rig.evict("", marked()),
        }
    }
    assert_eq!(most, 32);
}
