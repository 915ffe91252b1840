//! What stops further restarts, and what ends one.

use super::vms::reborn;
use super::*;
use crate::facts::testing::{launcher, vm, vmi, world};
use crate::facts::{Strategy, VmiPhase};
use crate::outcome::{Cause, VmOutcome};

/// Five restarts were accepted, a sixth VM waits for its place.
fn six() -> Rig {
    let stale = |name: &str| vmi(name).live_migrate().not_migratable("DisksNotLiveMigratable");
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut rig = Rig::one(names.iter().fold(world(), |w, name| w.runs(vm(name), stale(name)))).cordoned();
    rig.cr_read();
    for name in &names[..5] {
        rig.vmi_read(name);
        rig.restart(name, RestartAnswer::Accepted);
    }
    rig
}

fn restarts(rig: &Rig) -> usize {
    rig.sent.iter().filter(|(_, k)| matches!(k, EffectKind::Restart { .. })).count()
}

fn stops(rig: &mut Rig, name: &str) {
    rig.pod(launcher(name).finished());
    rig.change(Change::Vmi(Delta::Apply(reborn(name))));
}

fn ended_row(rig: &mut Rig, name: &str) -> VmRow {
    let row = |e| if let EventKind::VmEnded { row, .. } = e { Some(*row).filter(|r| r.name == name) } else { None };
    rig.events().into_iter().find_map(row).unwrap()
}

#[test]
fn restarts_that_nobody_carries_out_stop_further_ones() {
    let mut rig = six();
    rig.advance(secs(400));
    rig.relist();
    assert_eq!(restarts(&rig), 5);
    for name in ["a", "f"] {
        assert_eq!(rig.vm_row(name).cause, Some(Cause::RestartStalled), "{name}");
    }
}

#[test]
fn a_broken_promise_stops_the_restart_that_is_about_to_be_sent() {
    let mut rig = six();
    stops(&mut rig, "b");
    rig.vmi("b", |v| (v.node, v.phase) = (Some("node-1".into()), VmiPhase::Running));
    rig.effects();
    rig.pod(launcher("a").finished());
    rig.change(Change::Vmi(Delta::Apply(reborn("a").with(|v| v.strategy = Some(Strategy::LiveMigrate)))));
    // It is not scheduled yet, and still the sixth is not restarted.
    rig.vmi_read("f");
    assert_eq!(restarts(&rig), 5);
    assert_eq!(ended_row(&mut rig, "f").cause, Some(Cause::RestartStalled));
    rig.vmi("a", |v| (v.node, v.phase) = (Some("node-1".into()), VmiPhase::Running));
    let row = ended_row(&mut rig, "a");
    assert_eq!((row.outcome, row.cause), (VmOutcome::Restarts, Some(Cause::StrategyMismatch)));
    assert_eq!(rig.warnings().len(), 1);
    assert_eq!(ended_row(&mut rig, "b").cause, None);
}

#[test]
fn a_scheduler_that_always_says_something_else_does_not_outlast_the_bound() {
    let mut rig = six();
    stops(&mut rig, "a");
    for n in 0..40 {
        rig.vmi("a", |v| v.unschedulable = Some(format!("0/{n} nodes fit")));
        rig.advance(secs(10));
    }
    let row = ended_row(&mut rig, "a");
    assert_eq!((row.outcome, row.cause), (VmOutcome::Down, Some(Cause::Unschedulable)));
}

#[test]
fn a_vm_that_is_deleted_after_its_restart_is_not_awaited() {
    let mut rig = six();
    rig.change(Change::Vm(Delta::Delete(key("a"))));
    rig.change(Change::Vmi(Delta::Delete(key("a"))));
    rig.gone(&launcher("a"));
    let row = ended_row(&mut rig, "a");
    assert_eq!((row.outcome, row.cause), (VmOutcome::Gone, None));
    assert_eq!(row.because, "its VM was deleted by somebody else");
}
