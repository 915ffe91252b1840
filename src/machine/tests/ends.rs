//! How a node and a run end.

use super::*;
use crate::event::StopReason;
use crate::facts::Strategy;
use crate::facts::testing::{launcher, node, pod, vm, vmi, world};
use crate::outcome::{PodOutcome, Verdict, VmOutcome};

fn stuck() -> World {
    let held = vmi("stuck").live_migrate().not_migratable("DisksNotLiveMigratable");
    world().runs(vm("stuck").template(Strategy::LiveMigrate), held)
}

#[test]
fn nothing_on_the_node_ends_at_once() {
    let mut rig = Rig::one(world()).cordoned();
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.report("node-0").verdict, Verdict::Drained);
}

#[test]
fn nothing_open_ends_at_once_with_3() {
    let mut rig = Rig::one(stuck().pod(pod("web-0"))).cordoned();
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.gone(&pod("web-0"));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
    assert!(rig.now.is_zero());
    assert!(rig.report("node-0").cordoned_now);
}

#[test]
fn the_deadline_comes_first_without_blockers() {
    let mut rig = Rig::one(world().pod(pod("web-0"))).cordoned();
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.advance(secs(1800));
    assert_eq!(rig.ended(), Some(ExitCode::Timeout));
    assert_eq!(rig.pod_row("web-0").outcome, PodOutcome::Pending);
    assert!(rig.events().contains(&EventKind::DeadlineReached { node: "node-0".into() }));
}

#[test]
fn blockers_among_the_rest_outrank_the_deadline() {
    let mut rig = Rig::one(stuck().pod(pod("web-0"))).cordoned();
    rig.advance(secs(1800));
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
    assert_eq!(rig.report("node-0").verdict, Verdict::Blocked);
}

#[test]
fn a_deadline_without_contact_leaves_the_state_unknown() {
    let mut rig = Rig::one(world().pod(pod("web-0"))).cordoned();
    rig.input(Input::ContactLost);
    rig.advance(secs(1800));
    assert_eq!(rig.ended(), Some(ExitCode::Api));
    assert_eq!(rig.report("node-0").verdict, Verdict::Failed);
}

#[test]
fn contact_that_came_back_changes_nothing() {
    let mut rig = Rig::one(world().pod(pod("web-0"))).cordoned();
    rig.input(Input::ContactLost);
    rig.advance(secs(7));
    rig.input(Input::ContactLost);
    rig.input(Input::ContactRestored);
    assert!(rig.events().contains(&EventKind::ContactRestored { lost_ms: 7000 }));
    rig.advance(secs(1800));
    assert_eq!(rig.ended(), Some(ExitCode::Timeout));
}

#[test]
fn the_deadline_is_never_overrun() {
    let mut rig = Rig::new(stuck().pod(pod("web-0")), &["node-0"], |s| s.machine.wait_blocked = true).cordoned();
    while rig.ended().is_none() {
        let next = rig.machine.poll_timeout().unwrap();
        assert!(next <= secs(1800), "{next:?}");
        let by = next.saturating_sub(rig.now);
        rig.advance(by);
    }
    assert_eq!(rig.now, secs(1800));
}

#[test]
fn waiting_for_blockers_goes_on_until_the_human_acts() {
    let mut rig = Rig::new(stuck(), &["node-0"], |s| s.machine.wait_blocked = true).cordoned();
    rig.advance(secs(1000));
    assert_eq!((rig.ended(), rig.effects()), (None, vec![]));
    rig.change(Change::Vmi(Delta::Delete(key("stuck"))));
    rig.gone(&launcher("stuck"));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.vm_row("stuck").outcome, VmOutcome::Gone);
}

#[test]
fn waiting_for_blockers_uses_a_node_that_a_human_opens() {
    let cluster = world().node(node("node-1").cordoned()).node(node("node-2").cordoned()).runs(vm("web"), vmi("web"));
    let mut rig = Rig::new(cluster, &["node-0"], |s| s.machine.wait_blocked = true).cordoned();
    rig.advance(secs(100));
    assert_eq!(rig.effects(), []);
    rig.change(Change::Node(Delta::Apply(node("node-1"))));
    rig.advance(secs(1));
    assert_eq!(rig.sent.last().unwrap().1, EffectKind::ReadVmi { vmi: key("web") });
}

#[test]
fn waiting_for_blockers_ends_with_3_at_the_deadline() {
    let mut rig = Rig::new(stuck(), &["node-0"], |s| s.machine.wait_blocked = true).cordoned();
    rig.advance(secs(1800));
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
}

#[test]
fn a_blocker_that_only_the_last_list_shows_is_waited_for_too() {
    let mut rig = Rig::new(world(), &["node-0"], |s| s.machine.wait_blocked = true).cordoned();
    let bare = pod("bare-0").bare();
    rig.answer_to(|k| matches!(k, EffectKind::RelistPods { .. }), Reply::Pods(Ok(vec![bare.clone()])));
    assert_eq!(rig.ended(), None);
    rig.gone(&bare);
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
}

#[test]
fn a_last_list_that_fails_is_tried_again_until_the_deadline_and_then_the_state_is_unknown() {
    let mut rig = Rig::one(world()).cordoned();
    while rig.ended().is_none() {
        rig.relist_fails();
        assert_eq!(rig.effects(), []);
        rig.advance(secs(15));
    }
    assert_eq!(rig.ended(), Some(ExitCode::Api));
    assert_eq!(rig.now, secs(1800));
    assert_eq!(rig.warnings(), ["the last list of pods on node-0 failed: timeout"]);
}

#[test]
fn an_api_server_that_restarts_does_not_spoil_a_drain_that_is_done() {
    let mut rig = Rig::one(world()).cordoned();
    for _ in 0..6 {
        rig.relist_fails();
        rig.advance(secs(15));
    }
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
}

#[test]
fn a_last_list_that_is_forbidden_leaves_the_state_unknown() {
    let mut rig = Rig::one(world()).cordoned();
    for _ in 0..3 {
        let failed = Reply::Pods(Err(Failure::Forbidden("no".into())));
        rig.answer_to(|k| matches!(k, EffectKind::RelistPods { .. }), failed);
        rig.advance(secs(5));
    }
    assert_eq!(rig.ended(), Some(ExitCode::Api));
}

#[test]
fn a_pod_that_was_falsely_taken_for_gone_is_evicted_again() {
    let mut rig = Rig::one(world().pod(pod("web-0"))).cordoned();
    rig.evict("web-0", EvictionAnswer::Gone);
    let listed = |pods| Reply::Pods(Ok(pods));
    rig.answer_to(|k| matches!(k, EffectKind::RelistPods { .. }), listed(vec![pod("web-0")]));
    assert_eq!(rig.ended(), None);
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.gone(&pod("web-0"));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.pod_row("web-0").outcome, PodOutcome::Evicts);
}

#[test]
fn a_node_that_is_deleted_loses_its_vms() {
    let cluster = world().runs(vm("web"), vmi("web")).pod(pod("web-0"));
    let mut rig = Rig::one(cluster).cordoned();
    rig.effects();
    rig.change(Change::Node(Delta::Delete("node-0".into())));
    assert_eq!(rig.ended(), Some(ExitCode::Failed));
    let report = rig.report("node-0");
    assert_eq!(report.verdict, Verdict::Failed);
    assert!(!report.cordoned_now && !report.cordoned_before, "nothing is left to uncordon");
    assert_eq!(rig.vm_row("web").outcome, VmOutcome::Lost);
    assert_eq!(rig.pod_row("web-0").outcome, PodOutcome::Pending);
}

#[test]
fn after_the_end_nothing_is_reported_or_sent() {
    let mut rig = Rig::one(world().pod(pod("web-0"))).cordoned();
    rig.input(Input::Stop(StopReason::HangUp));
    let before = rig.events().len();
    rig.input(Input::Stop(StopReason::Interrupt));
    rig.input(Input::ContactLost);
    rig.input(Input::Tick);
    rig.pod(pod("late-0"));
    assert_eq!(rig.events().len(), before);
    assert_eq!(rig.effects(), []);
    assert_eq!(rig.machine.poll_timeout(), None);
    assert_eq!(rig.ended(), Some(ExitCode::Hangup));
}

#[test]
fn events_are_numbered_without_a_gap_and_in_time() {
    let mut rig = Rig::one(world().pod(pod("web-0"))).cordoned();
    rig.advance(secs(5));
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.gone(&pod("web-0"));
    rig.relist();
    rig.effects();
    let numbers: Vec<u64> = rig.log.iter().map(|e| e.seq).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(rig.log.windows(2).all(|w| w[0].elapsed_ms <= w[1].elapsed_ms));
    assert_eq!(rig.log.last().unwrap().elapsed_ms, 5000);
}
