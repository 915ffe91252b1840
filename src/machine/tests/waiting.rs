//! `--wait-blocked`: what no event clears is tried again.

use super::*;
use crate::facts::testing::{pod, vm, vmi, world};
use crate::outcome::{Cause, PodOutcome, VmOutcome};

fn rig(world: World) -> Rig {
    Rig::new(world, &["node-0"], |s| s.machine.wait_blocked = true).cordoned()
}

fn forbidden() -> EvictionAnswer {
    EvictionAnswer::Forbidden { text: "no".into() }
}

#[test]
fn a_forbidden_pod_is_tried_every_minute_and_said_once() {
    let mut rig = rig(world().pod(pod("web-0")));
    for n in 0..10 {
        assert_eq!(rig.now, secs(60 * n));
        rig.evict("web-0", forbidden());
        rig.advance(secs(59));
        assert_eq!(rig.evictions(), [""; 0]);
        rig.advance(secs(1));
    }
    let said = rig.events().into_iter().filter(|e| matches!(e, EventKind::PodBlocked { .. })).count();
    assert_eq!(said, 1);
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.gone(&pod("web-0"));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    let row = rig.pod_row("web-0");
    assert_eq!((row.outcome, row.cause), (PodOutcome::Evicts, None));
}

#[test]
fn the_deadline_in_the_middle_of_a_try_leaves_it_blocked() {
    let mut rig = rig(world().pod(pod("web-0")).runs(vm("web"), vmi("web")));
    rig.evict("web-0", forbidden());
    rig.vmi_read("web");
    rig.evict("launcher-web", forbidden());
    rig.advance(secs(60));
    rig.vmi_read("web");
    assert_eq!(rig.open.len(), 1, "{:?}", rig.open);
    rig.advance(secs(1800));
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
    assert_eq!(rig.pod_row("web-0").outcome, PodOutcome::Blocks);
    let row = rig.vm_row("web");
    assert_eq!((row.outcome, row.cause), (VmOutcome::Blocks, Some(Cause::Forbidden)));
}

#[test]
fn a_forbidden_vm_is_tried_every_minute_and_said_once() {
    let mut rig = rig(world().runs(vm("web"), vmi("web")));
    for _ in 0..3 {
        rig.vmi_read("web");
        rig.evict("launcher-web", forbidden());
        rig.advance(secs(59));
        assert_eq!(rig.effects(), []);
        rig.advance(secs(1));
    }
    let said = rig.events().into_iter().filter(|e| matches!(e, EventKind::VmEnded { .. })).count();
    assert_eq!(said, 1);
    rig.vmi_read("web");
    rig.evict("launcher-web", marked());
    rig.advance(secs(5));
    assert!(rig.sent.len() < 20);
}

#[test]
fn a_forbidden_restart_is_tried_again() {
    let stale = vmi("a").live_migrate().not_migratable("DisksNotLiveMigratable");
    let mut rig = rig(world().runs(vm("a"), stale));
    rig.cr_read();
    for _ in 0..3 {
        rig.vmi_read("a");
        rig.restart("a", RestartAnswer::Forbidden { text: "no".into() });
        assert_eq!(rig.effects(), []);
        rig.advance(secs(60));
    }
    assert_eq!(rig.ended(), None);
}

#[test]
fn without_the_flag_nothing_is_tried_again() {
    let mut rig = Rig::one(world().pod(pod("web-0"))).cordoned();
    rig.evict("web-0", forbidden());
    assert_eq!(rig.effects(), [EffectKind::RelistPods { node: "node-0".into() }]);
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
}

#[test]
fn a_try_that_meets_a_passing_refusal_is_open_again_at_the_deadline() {
    let mut rig = rig(world().pod(pod("web-0")).runs(vm("web"), vmi("web")));
    rig.evict("web-0", forbidden());
    rig.vmi_read("web");
    rig.evict("launcher-web", forbidden());
    rig.advance(secs(60));
    rig.vmi_read("web");
    rig.evict("launcher-web", EvictionAnswer::BudgetBusy { budget: None });
    rig.evict("web-0", EvictionAnswer::BudgetBusy { budget: None });
    rig.advance(secs(1800));
    assert_eq!(rig.pod_row("web-0").outcome, PodOutcome::Pending);
    assert_eq!(rig.vm_row("web").outcome, VmOutcome::Pending);
    assert_eq!(rig.ended(), Some(ExitCode::Timeout));
}
