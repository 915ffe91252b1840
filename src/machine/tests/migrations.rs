//! VMs that migrate.

use super::*;
use crate::event::Activity;
use crate::facts::testing::{ago, kubevirt, launcher, migration, vm, vmi, world};
use crate::facts::{MigrationFacts, Strategy};
use crate::outcome::{Cause, VmOutcome};

fn web() -> Rig {
    Rig::one(world().runs(vm("web"), vmi("web"))).cordoned()
}

/// The eviction has marked it, and the watch shows the mark.
fn asked() -> Rig {
    let mut rig = web();
    rig.vmi_read("web");
    rig.evict("web", marked());
    mark(&mut rig);
    rig
}

fn mark(rig: &mut Rig) {
    rig.vmi("web", |v| v.marked = Some("node-0".into()));
}

fn unmark(rig: &mut Rig) {
    rig.vmi("web", |v| v.marked = None);
}

fn evictions(rig: &Rig) -> usize {
    rig.sent.iter().filter(|(_, k)| evicted(k).is_some()).count()
}

fn version(rig: &mut Rig, version: &str) {
    let mut cr = kubevirt(Some(Strategy::LiveMigrateIfPossible));
    cr.version = Some(version.to_owned());
    rig.change(Change::KubeVirt(Delta::Apply(cr)));
}

fn attempt(n: u32, phase: &str) -> MigrationFacts {
    let mut facts = migration("web", phase);
    facts.key.name = format!("attempt-{n}");
    facts.uid = format!("uid-attempt-{n}");
    facts.created = Some(ago(100 - i64::from(n)));
    facts.failure_reason = (phase == "Failed").then(|| format!("reason {n}"));
    facts
}

fn show(rig: &mut Rig, facts: MigrationFacts) {
    rig.change(Change::Migration(Delta::Apply(facts)));
}

fn activities(rig: &mut Rig) -> Vec<Activity> {
    let progress = |e: EventKind| match e {
        EventKind::VmProgressed { progress, .. } => Some(progress.activity),
        _ => None,
    };
    rig.events().into_iter().filter_map(progress).collect()
}

#[test]
fn a_vm_is_read_asked_once_and_followed_until_it_runs_elsewhere() {
    let mut rig = web();
    assert_eq!(rig.effects(), [EffectKind::ReadVmi { vmi: key("web") }]);
    rig.vmi_read("web");
    assert_eq!(rig.effects(), [EffectKind::Evict { pod: launcher("web").key, grace: None }]);
    rig.evict("web", marked());
    mark(&mut rig);
    for phase in ["Pending", "Scheduling", "Running", "Succeeded"] {
        show(&mut rig, attempt(1, phase));
    }
    rig.vmi("web", |v| v.node = Some("node-1".into()));
    assert_eq!(rig.ended(), None, "its launcher still runs");
    rig.pod(launcher("web").finished());
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    let row = rig.vm_row("web");
    assert_eq!(row.outcome, VmOutcome::Migrates);
    assert_eq!((row.vmi_uid.as_str(), row.new_vmi_uid), ("uid-web", None));
    assert_eq!((row.node_after.as_deref(), row.attempts), (Some("node-1"), 1));
    assert_eq!(evictions(&rig), 1);
    let seen = activities(&mut rig);
    let want = [Activity::Queued, Activity::PreparingTarget, Activity::Migrating];
    assert!(want.iter().all(|a| seen.contains(a)), "{seen:?}");
}

#[test]
fn launchers_never_get_the_grace_period_of_the_user() {
    let mut rig =
        Rig::new(world().runs(vm("web"), vmi("web")), &["node-0"], |s| s.machine.grace_period = Some(1)).cordoned();
    rig.vmi_read("web");
    assert_eq!(rig.effects(), [EffectKind::Evict { pod: launcher("web").key, grace: None }]);
}

#[test]
fn a_mark_of_an_earlier_run_is_followed_without_a_request() {
    let marked = vmi("web").with(|v| v.marked = Some("node-0".into()));
    let mut rig = Rig::one(world().runs(vm("web"), marked)).cordoned();
    rig.advance(secs(300));
    assert_eq!(rig.sent.len(), 1, "{:?}", rig.sent);
    rig.vmi("web", |v| v.node = Some("node-1".into()));
    rig.gone(&launcher("web"));
    rig.relist();
    assert_eq!(rig.vm_row("web").outcome, VmOutcome::Migrates);
}

#[test]
fn a_mark_that_vanishes_is_asked_for_again_once() {
    let mut rig = asked();
    unmark(&mut rig);
    rig.advance(secs(3));
    rig.vmi_read("web");
    assert_eq!(rig.evictions(), [launcher("web").key.name]);
    rig.evict("web", marked());
    mark(&mut rig);
    unmark(&mut rig);
    rig.advance(secs(60));
    assert_eq!(evictions(&rig), 2);
    rig.relist();
    assert_eq!(rig.vm_row("web").cause, Some(Cause::MigrationMissing));
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
}

#[test]
fn a_mark_that_only_the_read_shows_is_not_asked_for_again() {
    let mut rig = web();
    rig.vmi_read("web");
    rig.evict("web", marked());
    // The watch shows no mark for so long that the VM is looked at again.
    rig.advance(secs(15));
    rig.vmi_is("web", |v| v.marked = Some("node-0".into()));
    rig.advance(secs(60));
    assert_eq!(evictions(&rig), 1);
}

#[test]
fn a_mark_without_a_migration_blocks_after_a_minute_on_new_versions() {
    let mut rig = asked();
    version(&mut rig, "v1.9.0");
    rig.vmi("web", |_| {});
    rig.advance(secs(59));
    assert_eq!(rig.effects(), []);
    rig.advance(secs(2));
    rig.relist();
    assert_eq!(rig.vm_row("web").cause, Some(Cause::MigrationMissing));
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
    assert!(rig.vm_row("web").marked);
}

#[test]
fn a_mark_without_a_migration_is_queued_on_older_versions() {
    let mut rig = asked();
    rig.advance(secs(1799));
    assert_eq!(rig.effects(), []);
    assert_eq!(activities(&mut rig), [Activity::Queued]);
    rig.advance(secs(1));
    assert_eq!(rig.ended(), Some(ExitCode::Timeout));
    let row = rig.vm_row("web");
    assert_eq!(row.outcome, VmOutcome::Pending);
    assert!(row.because.contains("queued"), "{}", row.because);
}

#[test]
fn the_minute_without_a_migration_starts_anew_after_each_attempt() {
    let mut rig = asked();
    version(&mut rig, "v1.9.0");
    show(&mut rig, attempt(1, "Running"));
    rig.advance(secs(200));
    show(&mut rig, attempt(1, "Failed"));
    rig.advance(secs(30));
    assert_eq!(rig.effects(), []);
    show(&mut rig, attempt(2, "Running"));
    rig.vmi("web", |v| v.node = Some("node-1".into()));
    rig.gone(&launcher("web"));
    rig.relist();
    assert_eq!(rig.vm_row("web").outcome, VmOutcome::Migrates);
    assert_eq!(rig.vm_row("web").attempts, 2);
}

#[test]
fn three_failures_in_a_row_block() {
    let mut rig = asked();
    for n in 1..=3 {
        assert_eq!(rig.effects(), []);
        show(&mut rig, attempt(n, "Running"));
        show(&mut rig, attempt(n, "Failed"));
    }
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
    let row = rig.vm_row("web");
    assert_eq!(row.cause, Some(Cause::MigrationFailed));
    assert!(row.because.contains("reason 3"), "{}", row.because);
    assert_eq!(evictions(&rig), 1);
}

#[test]
fn failures_of_an_earlier_run_do_not_count() {
    let cluster = world()
        .runs(vm("web"), vmi("web").with(|v| v.marked = Some("node-0".into())))
        .migration(attempt(1, "Failed"))
        .migration(attempt(2, "Failed"));
    let mut rig = Rig::one(cluster).cordoned();
    show(&mut rig, attempt(3, "Failed"));
    show(&mut rig, attempt(4, "Failed"));
    assert_eq!(rig.effects(), []);
    show(&mut rig, attempt(5, "Failed"));
    rig.relist();
    assert_eq!(rig.vm_row("web").cause, Some(Cause::MigrationFailed));
}

#[test]
fn a_vm_that_became_non_migratable_is_not_asked() {
    for strategy in [Strategy::LiveMigrate, Strategy::LiveMigrateIfPossible] {
        let planned = vmi("web").strategy(Some(strategy.clone()));
        let mut rig =
            Rig::new(world().runs(vm("web"), planned), &["node-0"], |s| s.machine.wait_blocked = true).cordoned();
        rig.vmi_is("web", |v| *v = v.clone().not_migratable("HostDeviceNotLiveMigratable"));
        // Later events change nothing about that.
        for _ in 0..3 {
            rig.vmi("web", |v| v.agent_connected = !v.agent_connected);
            rig.advance(secs(10));
        }
        assert_eq!(evictions(&rig), 0, "{strategy}");
        assert!(!rig.sent.iter().any(|(_, k)| matches!(k, EffectKind::Restart { .. })), "{strategy}");
        // It can again.
        rig.vmi("web", |v| v.migratable = crate::facts::Migratable::Yes);
        rig.input(Input::Stop(crate::event::StopReason::Interrupt));
        let row = rig.vm_row("web");
        let blocked = (VmOutcome::Blocks, Some(Cause::BecameNonMigratable));
        assert!((row.outcome, row.cause) == blocked || row.outcome == VmOutcome::Pending, "{row:?}");
    }
}

#[test]
fn a_vm_that_became_non_migratable_blocks_with_its_reason() {
    let mut rig = web();
    rig.vmi_is("web", |v| *v = v.clone().not_migratable("HostDeviceNotLiveMigratable"));
    rig.relist();
    let row = rig.vm_row("web");
    assert_eq!((row.outcome, row.cause), (VmOutcome::Blocks, Some(Cause::BecameNonMigratable)));
    assert!(row.because.contains("GPU"), "{}", row.because);
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
}

#[test]
fn a_vm_that_became_non_migratable_after_the_mark_blocks() {
    let mut rig = asked();
    rig.vmi("web", |v| *v = v.clone().not_migratable("DisksNotLiveMigratable"));
    rig.relist();
    assert_eq!(rig.vm_row("web").cause, Some(Cause::BecameNonMigratable));
}

#[test]
fn a_webhook_that_says_that_it_cannot_migrate_is_believed_after_a_moment() {
    let mut rig = web();
    while rig.ended().is_none() && rig.now < secs(20) {
        rig.effects();
        if rig.open.iter().any(|e| matches!(e.kind, EffectKind::ReadVmi { .. })) {
            rig.vmi_read("web");
        } else if rig.open.iter().any(|e| evicted(&e.kind).is_some()) {
            rig.evict("web", EvictionAnswer::VmNotMigratable);
        } else if rig.open.iter().any(|e| matches!(e.kind, EffectKind::RelistPods { .. })) {
            rig.relist();
        }
        rig.advance(Duration::from_millis(100));
    }
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
    assert!(rig.now <= secs(7) && rig.now >= secs(5), "{:?}", rig.now);
    assert_eq!(rig.vm_row("web").cause, Some(Cause::VmNotMigratable));
}

#[test]
fn the_queue_place_counts_the_migrations_ahead() {
    let mut rig = asked();
    let mut other = migration("other", "Pending");
    other.created = Some(ago(500));
    show(&mut rig, other);
    show(&mut rig, attempt(1, "Pending"));
    let queued = |e: &EventKind| matches!(e, EventKind::VmProgressed { progress, .. } if progress.queue == Some(1));
    assert!(rig.events().iter().any(queued));
}

#[test]
fn an_unchanged_state_makes_no_event() {
    let mut rig = asked();
    let before = rig.events().len();
    for _ in 0..10 {
        mark(&mut rig);
        rig.advance(secs(1));
    }
    assert_eq!(rig.events().len(), before);
}

#[test]
fn a_vm_that_ends_during_its_migration_is_awaited_elsewhere() {
    let mut rig = asked();
    rig.vmi("web", |v| v.phase = crate::facts::VmiPhase::Failed);
    rig.gone(&launcher("web"));
    rig.change(Change::Vmi(Delta::Delete(key("web"))));
    assert_eq!(rig.effects(), []);
    rig.change(Change::Vmi(Delta::Apply(vms::reborn("web").with(|v| {
        v.node = Some("node-2".into());
        v.phase = crate::facts::VmiPhase::Running;
    }))));
    rig.relist();
    assert_eq!(rig.vm_row("web").outcome, VmOutcome::Returns);
}

#[test]
fn a_hotplug_pod_keeps_its_vm_here_until_it_is_gone() {
    let hotplug = crate::facts::testing::hotplug("web");
    let mut rig = Rig::one(world().runs(vm("web"), vmi("web")).pod(hotplug.clone())).cordoned();
    rig.vmi_read("web");
    assert_eq!(rig.evictions(), [launcher("web").key.name]);
    rig.evict("web", marked());
    rig.vmi("web", |v| v.node = Some("node-1".into()));
    rig.gone(&launcher("web"));
    assert_eq!(rig.effects(), []);
    rig.gone(&hotplug);
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
}

#[test]
fn a_vm_deleted_by_somebody_else_is_gone() {
    let mut rig = asked();
    rig.change(Change::Vmi(Delta::Delete(key("web"))));
    assert_eq!(rig.effects(), []);
    rig.gone(&launcher("web"));
    rig.relist();
    assert_eq!(rig.vm_row("web").outcome, VmOutcome::Gone);
    assert_eq!(rig.ended(), Some(ExitCode::Done));
}

#[test]
fn the_target_of_a_running_migration_comes_from_its_vmi() {
    let mut rig = asked();
    let mut running = attempt(1, "Running");
    running.target_node = None;
    let state = |uid: &str| crate::facts::MigrationState {
        migration_uid: Some(uid.to_owned()),
        source_node: Some("node-0".into()),
        target_node: Some("node-2".into()),
        started: None,
        ended: None,
        completed: false,
        failed: false,
        failure_reason: None,
    };
    let target = |rig: &mut Rig| {
        let progress = |e| if let EventKind::VmProgressed { progress, .. } = e { Some(progress.target) } else { None };
        rig.events().into_iter().filter_map(progress).next_back().unwrap()
    };
    rig.vmi("web", |v| v.migration = Some(state("of another")));
    show(&mut rig, running);
    assert_eq!(target(&mut rig), None);
    rig.vmi("web", |v| v.migration = Some(state("uid-attempt-1")));
    assert_eq!(target(&mut rig).as_deref(), Some("node-2"));
}
