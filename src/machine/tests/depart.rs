//! VMs that leave in another way than the plan said.

use super::*;
use crate::facts::testing::{launcher, vm, vmi, world};
use crate::facts::{Strategy, VmiOwner, VmiPhase};
use crate::outcome::{Cause, VmOutcome};

fn web() -> Rig {
    Rig::one(world().runs(vm("web"), vmi("web"))).cordoned()
}

fn off(name: &str) -> VmiFacts {
    vmi(name).with(|v| v.strategy = Some(Strategy::None))
}

#[test]
fn a_grace_period_that_grew_meanwhile_is_held_against_the_time_left() {
    let mut rig = Rig::one(world().runs(vm("db"), off("db"))).cordoned();
    rig.vmi_is("db", |v| v.grace_seconds = 3600);
    assert_eq!(rig.evictions(), [""; 0]);
    rig.relist();
    assert_eq!(rig.vm_row("db").cause, Some(Cause::GraceTooLong));
}

#[test]
fn a_grace_period_that_grew_meanwhile_holds_a_restart_too() {
    let stale = vmi("a").live_migrate().not_migratable("DisksNotLiveMigratable");
    let mut rig = Rig::one(world().runs(vm("a"), stale)).cordoned();
    rig.cr_read();
    rig.vmi_is("a", |v| v.grace_seconds = 3600);
    assert!(!rig.effects().iter().any(|k| matches!(k, EffectKind::Restart { .. })));
    rig.relist();
    assert_eq!(rig.vm_row("a").cause, Some(Cause::GraceTooLong));
}

#[test]
fn a_shutdown_in_place_of_a_migration_is_said_and_not_reported_as_one() {
    let mut rig = web();
    rig.vmi_read("web");
    rig.evict("web", EvictionAnswer::Accepted);
    assert_eq!(rig.warnings(), ["tenant-a/web is shut down by its eviction although a migration was expected"]);
    rig.vmi("web", |v| v.phase = VmiPhase::Succeeded);
    rig.pod(launcher("web").finished());
    rig.change(Change::Vmi(Delta::Apply(vms::reborn("web").with(|v| {
        v.node = Some("node-1".into());
        v.phase = VmiPhase::Running;
    }))));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.vm_row("web").outcome, VmOutcome::Returns);
}

#[test]
fn a_shutdown_in_place_of_a_migration_of_a_vmi_without_an_owner_leaves_it_off() {
    let cluster = world().vmi(vmi("web").owned_by(VmiOwner::Standalone)).pod(launcher("web"));
    let mut rig = Rig::one(cluster).cordoned();
    rig.vmi_read("web");
    rig.evict("web", EvictionAnswer::Accepted);
    rig.pod(launcher("web").finished());
    rig.relist();
    assert_eq!(rig.vm_row("web").outcome, VmOutcome::StaysOff);
}

#[test]
fn a_vm_that_has_just_stopped_is_awaited_while_its_launcher_runs() {
    let mut rig = web();
    rig.vmi_is("web", |v| v.phase = VmiPhase::Succeeded);
    assert_eq!((rig.ended(), rig.effects()), (None, vec![]));
    rig.pod(launcher("web").finished());
    rig.change(Change::Vmi(Delta::Apply(vms::reborn("web").with(|v| {
        v.node = Some("node-1".into());
        v.phase = VmiPhase::Running;
    }))));
    rig.relist();
    assert_eq!(rig.vm_row("web").outcome, VmOutcome::Returns);
}

#[test]
fn a_vm_that_is_deleted_while_it_is_to_return_is_not_awaited() {
    let mut rig = Rig::one(world().runs(vm("db"), off("db"))).cordoned();
    rig.vmi_read("db");
    rig.evict("db", EvictionAnswer::Accepted);
    rig.change(Change::Vmi(Delta::Delete(key("db"))));
    rig.gone(&launcher("db"));
    rig.advance(secs(1));
    assert_eq!(rig.effects(), []);
    rig.change(Change::Vm(Delta::Delete(key("db"))));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.vm_row("db").outcome, VmOutcome::Gone);
}

#[test]
fn a_launcher_whose_vmi_nobody_knows_any_more_is_an_orphan_at_once() {
    let mut rig = web();
    rig.effects();
    rig.change(Change::Vmi(Delta::Delete(key("web"))));
    rig.answer_to(|k| matches!(k, EffectKind::ReadVmi { .. }), Reply::Vmi(Err(Failure::NotFound)));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
    assert_eq!(rig.vm_row("web").cause, Some(Cause::OrphanLauncher));
    assert!(rig.now.is_zero());
}

#[test]
fn a_launcher_that_is_being_deleted_is_no_orphan_at_once() {
    let mut rig = web();
    rig.effects();
    rig.change(Change::Vmi(Delta::Delete(key("web"))));
    rig.stopping(&launcher("web"));
    rig.answer_to(|k| matches!(k, EffectKind::ReadVmi { .. }), Reply::Vmi(Err(Failure::NotFound)));
    assert_eq!((rig.ended(), rig.effects()), (None, vec![]));
    rig.gone(&launcher("web"));
    rig.advance(secs(1));
    rig.relist();
    assert_eq!(rig.vm_row("web").outcome, VmOutcome::Gone);
}

#[test]
fn a_migration_to_this_node_that_fails_is_no_migration_away_from_it() {
    let incoming = vmi("web").with(|v| v.node = Some("node-1".into()));
    let mut rig = Rig::one(world().runs(vm("web"), incoming)).cordoned();
    rig.gone(&launcher("web"));
    rig.relist();
    let row = rig.vm_row("web");
    assert_eq!(row.outcome, VmOutcome::Gone);
    assert_eq!(row.because, "its migration to this node did not come about");
}

#[test]
fn options_for_pods_do_not_apply_to_what_is_left_of_a_vm() {
    let left = launcher("old");
    let ended = vmi("old").with(|v| v.phase = VmiPhase::Failed);
    let mut rig =
        Rig::new(world().vmi(ended).pod(left.clone()).pod(crate::facts::testing::pod("web-0")), &["node-0"], |s| {
            s.machine.grace_period = Some(1);
            s.machine.skip_wait_for_delete = Some(secs(5));
        })
        .cordoned();
    let grace = |k: EffectKind| if let EffectKind::Evict { pod, grace } = k { Some((pod.name, grace)) } else { None };
    let mut graces: Vec<_> = rig.effects().into_iter().filter_map(grace).collect();
    graces.sort();
    assert_eq!(graces, [(left.key.name.clone(), None), ("web-0".to_owned(), Some(1))]);
    rig.evict("launcher", EvictionAnswer::Accepted);
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.stopping(&left);
    rig.stopping(&crate::facts::testing::pod("web-0"));
    rig.advance(secs(600));
    let skipped = |e| matches!(e, EventKind::PodGone { how: crate::event::PodExit::Overdue, .. });
    assert_eq!(rig.events().into_iter().filter(|e| skipped(e.clone())).count(), 1);
    rig.gone(&left);
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
}
