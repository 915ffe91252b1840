//! A cordon that somebody lifts while VMs are restarted.

use super::*;
use crate::facts::testing::{node, vm, vmi, world};
use crate::outcome::Cause;

/// Its restart waits for the read of KubeVirt's CR.
fn stale() -> Rig {
    let stale = vmi("a").live_migrate().not_migratable("DisksNotLiveMigratable");
    Rig::one(world().runs(vm("a"), stale)).cordoned()
}

fn restarts(rig: &Rig) -> usize {
    rig.sent.iter().filter(|(_, k)| matches!(k, EffectKind::Restart { .. })).count()
}

fn lifted(rig: &mut Rig) {
    rig.change(Change::Node(Delta::Apply(node("node-0"))));
}

#[test]
fn without_the_cordon_no_vm_is_restarted() {
    let mut rig = stale();
    lifted(&mut rig);
    rig.cr_read();
    assert_eq!(rig.effects(), []);
    rig.advance(secs(9));
    assert_eq!((rig.ended(), rig.effects()), (None, vec![]));
    rig.advance(secs(1));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
    let row = rig.vm_row("a");
    assert_eq!(row.cause, Some(Cause::RestartRefused));
    assert!(row.because.contains("not cordoned any more"), "{}", row.because);
    assert!(!rig.report("node-0").cordoned_now);
}

#[test]
fn a_cordon_that_is_lifted_during_the_read_holds_the_restart() {
    let mut rig = stale();
    rig.cr_read();
    lifted(&mut rig);
    rig.vmi_read("a");
    assert_eq!(restarts(&rig), 0);
    rig.change(Change::Node(Delta::Apply(node("node-0").cordoned())));
    rig.vmi_read("a");
    rig.effects();
    assert_eq!(restarts(&rig), 1);
}

#[test]
fn a_lifted_cordon_is_said_once_and_an_echo_of_the_time_before_is_not() {
    let mut rig = stale();
    lifted(&mut rig);
    rig.advance(secs(1));
    rig.change(Change::Node(Delta::Apply(node("node-0").cordoned())));
    rig.advance(secs(5));
    assert_eq!(rig.warnings(), [""; 0]);
    for _ in 0..3 {
        lifted(&mut rig);
        rig.advance(secs(3));
    }
    assert_eq!(rig.warnings(), ["node node-0 is not cordoned any more: something new may start there"]);
}

#[test]
fn a_restart_that_blocked_for_want_of_the_cordon_goes_on_when_it_is_back() {
    let stale = vmi("a").live_migrate().not_migratable("DisksNotLiveMigratable");
    let mut rig = Rig::new(world().runs(vm("a"), stale), &["node-0"], |s| s.machine.wait_blocked = true).cordoned();
    rig.cr_read();
    lifted(&mut rig);
    rig.vmi_read("a");
    rig.advance(secs(60));
    assert_eq!((rig.ended(), rig.effects()), (None, vec![]));
    rig.change(Change::Node(Delta::Apply(node("node-0").cordoned())));
    rig.vmi_read("a");
    rig.effects();
    assert_eq!(restarts(&rig), 1);
}

#[test]
fn a_vm_that_blocks_for_another_reason_is_not_said_with_every_event_of_its_node() {
    let mut rig = stale();
    lifted(&mut rig);
    rig.cr_read();
    rig.advance(secs(10));
    for _ in 0..5 {
        lifted(&mut rig);
        rig.advance(secs(1));
    }
    let said = rig.events().into_iter().filter(|e| matches!(e, EventKind::VmEnded { .. })).count();
    assert_eq!(said, 1);
}
