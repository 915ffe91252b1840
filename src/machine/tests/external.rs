//! VMs whose owner must act (External).

use super::*;
use crate::facts::testing::{launcher, pod, vm, vmi, world};
use crate::facts::{RunStrategy, Strategy, VmiPhase};
use crate::outcome::VmOutcome;

fn external() -> Rig {
    let theirs = vmi("ext").strategy(Some(Strategy::External));
    let dns = pod("dns").with(|p| p.priority = 2_000_000_000);
    let mut rig = Rig::one(world().runs(vm("ext"), theirs).pod(dns)).cordoned();
    rig.vmi_read("ext");
    rig.evict("ext", marked());
    rig.vmi("ext", |v| v.marked = Some("node-0".into()));
    rig
}

#[test]
fn it_stays_open_until_the_deadline_and_holds_the_infrastructure() {
    let mut rig = external();
    rig.advance(secs(1799));
    assert_eq!(rig.effects(), []);
    assert_eq!(rig.ended(), None);
    rig.advance(secs(1));
    assert_eq!(rig.ended(), Some(ExitCode::Timeout));
    let row = rig.vm_row("ext");
    assert_eq!((row.outcome, row.marked), (VmOutcome::Pending, true));
    assert!(!rig.sent.iter().any(|(_, k)| evicted(k).is_some_and(|n| n == "dns")));
}

#[test]
fn a_replaced_vmi_is_replaced_and_lets_the_infrastructure_go() {
    let mut rig = external();
    rig.change(Change::Vmi(Delta::Apply(vmi("ext").with(|v| {
        v.uid = "other".into();
        v.node = Some("node-2".into());
    }))));
    assert_eq!(rig.effects(), []);
    rig.gone(&launcher("ext"));
    assert_eq!(rig.evictions(), ["dns"]);
    rig.evict("dns", EvictionAnswer::Accepted);
    rig.gone(&pod("dns"));
    rig.relist();
    let row = rig.vm_row("ext");
    assert_eq!((row.outcome, row.new_vmi_uid.as_deref()), (VmOutcome::Replaced, Some("other")));
    assert_eq!(rig.ended(), Some(ExitCode::Done));
}

#[test]
fn a_deleted_one_is_gone() {
    let mut rig = external();
    rig.change(Change::Vm(Delta::Delete(key("ext"))));
    rig.change(Change::Vmi(Delta::Delete(key("ext"))));
    rig.gone(&launcher("ext"));
    assert_eq!(rig.evictions(), ["dns"]);
    rig.input(Input::Stop(crate::event::StopReason::Interrupt));
    assert_eq!(rig.vm_row("ext").outcome, VmOutcome::Gone);
}

#[test]
fn the_vm_of_a_deleted_one_has_a_moment_to_make_another() {
    let deleted = || {
        let mut rig = external();
        rig.change(Change::Vmi(Delta::Delete(key("ext"))));
        rig.gone(&launcher("ext"));
        assert_eq!(rig.evictions(), [""; 0]);
        rig
    };
    let mut rig = deleted();
    rig.change(Change::Vmi(Delta::Apply(vmi("ext").with(|v| (v.uid, v.node) = ("other".into(), None)))));
    assert_eq!(rig.evictions(), ["dns"]);
    rig.input(Input::Stop(crate::event::StopReason::Interrupt));
    assert_eq!(rig.vm_row("ext").outcome, VmOutcome::Replaced);
    let mut rig = deleted();
    rig.advance(secs(5));
    assert!(rig.sent.iter().any(|(_, k)| evicted(k).is_some_and(|n| n == "dns")));
    rig.input(Input::Stop(crate::event::StopReason::Interrupt));
    assert_eq!(rig.vm_row("ext").outcome, VmOutcome::Gone);
}

#[test]
fn one_that_its_owner_stopped_is_not_expected_back() {
    let mut rig = external();
    rig.change(Change::Vm(Delta::Apply(vm("ext").run(RunStrategy::Halted))));
    rig.vmi("ext", |v| v.phase = VmiPhase::Succeeded);
    assert_eq!(rig.effects(), []);
    rig.pod(launcher("ext").finished());
    assert_eq!(rig.evictions(), ["dns"]);
    rig.advance(secs(600));
    rig.input(Input::Stop(crate::event::StopReason::Interrupt));
    assert_eq!(rig.vm_row("ext").outcome, VmOutcome::Gone);
}

#[test]
fn a_mark_of_an_earlier_run_is_not_asked_for_again() {
    let theirs = vmi("ext").strategy(Some(Strategy::External)).with(|v| v.marked = Some("node-0".into()));
    let mut rig = Rig::one(world().runs(vm("ext"), theirs)).cordoned();
    rig.advance(secs(1000));
    assert_eq!(rig.sent.len(), 1);
}
