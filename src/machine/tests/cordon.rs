//! The cordons: all of them first, and taken back when one is refused.

use super::*;
use crate::facts::NodeFacts;
use crate::facts::testing::{node, pod, world};
use crate::outcome::Verdict;

fn two_nodes() -> Rig {
    let far = pod("far-0").on("node-1");
    Rig::new(world().pod(pod("web-0")).pod(far), &["node-0", "node-1"], |_| {})
}

fn cordon(rig: &mut Rig, name: &str, result: Result<NodeFacts, Failure>) {
    let named = |kind: &EffectKind| match kind {
        EffectKind::Cordon { node, .. } | EffectKind::CordonFresh { node } | EffectKind::Uncordon { node } => {
            node == name
        }
        _ => false,
    };
    rig.effects();
    let lifts = rig.open.iter().any(|e| e.kind == EffectKind::Uncordon { node: name.into() });
    let reply =
        if lifts { Reply::Node(result) } else { Reply::Cordon(result.map(|facts| Cordoned { facts, wrote: true })) };
    rig.answer_to(named, reply);
}

fn cordons(effects: &[EffectKind]) -> usize {
    effects.iter().filter(|k| matches!(k, EffectKind::Cordon { .. } | EffectKind::CordonFresh { .. })).count()
}

#[test]
fn nothing_is_evicted_before_every_node_is_cordoned() {
    let mut rig = two_nodes();
    rig.start();
    assert_eq!(cordons(&rig.effects()), 2);
    cordon(&mut rig, "node-0", Ok(node("node-0").cordoned()));
    assert_eq!(rig.effects(), []);
    cordon(&mut rig, "node-1", Ok(node("node-1").cordoned()));
    assert_eq!(rig.evictions(), ["web-0"]);
}

#[test]
fn a_node_that_is_cordoned_already_is_not_patched() {
    let mut rig = Rig::one(world().node(node("node-0").cordoned()).pod(pod("web-0"))).cordoned();
    assert_eq!(rig.evictions(), ["web-0"]);
    assert_eq!(rig.sent[0].1, EffectKind::CordonFresh { node: "node-0".into() });
    let said = EventKind::NodeCordoned { node: "node-0".into(), already: true };
    assert!(rig.events().contains(&said));
}

#[test]
fn a_refused_cordon_takes_the_others_back_and_ends_with_1() {
    let mut rig = two_nodes();
    rig.start();
    rig.effects();
    cordon(&mut rig, "node-0", Ok(node("node-0").cordoned()));
    cordon(&mut rig, "node-1", Err(Failure::Forbidden("no".into())));
    assert_eq!(rig.effects(), [EffectKind::Uncordon { node: "node-0".into() }]);
    assert_eq!(rig.ended(), None);
    cordon(&mut rig, "node-0", Ok(node("node-0")));
    assert_eq!(rig.ended(), Some(ExitCode::Failed));
    assert!(rig.events().contains(&EventKind::NodeUncordoned { node: "node-0".into() }));
    for name in ["node-0", "node-1"] {
        let report = rig.report(name);
        assert_eq!(report.verdict, Verdict::NotStarted, "{name}");
        assert!(!report.cordoned_now, "{name}");
    }
    let Some(EventKind::Ended { error: Some(error), .. }) = rig.events().pop() else { panic!("no error") };
    assert_eq!(error, "cannot cordon node node-1: no");
    assert!(!rig.sent.iter().any(|(_, k)| evicted(k).is_some()));
}

#[test]
fn a_refused_cordon_that_leaves_nothing_changed_ends_with_6() {
    for failure in [Failure::Forbidden("no".into()), Failure::Unauthorized] {
        let mut rig = Rig::one(world().pod(pod("web-0")));
        rig.start();
        rig.effects();
        cordon(&mut rig, "node-0", Err(failure));
        assert_eq!(rig.ended(), Some(ExitCode::Api));
        assert_eq!(rig.evictions(), [""; 0]);
    }
}

#[test]
fn a_conflict_is_followed_by_a_fresh_read_and_not_for_ever() {
    let mut rig = Rig::one(world().pod(pod("web-0")));
    rig.start();
    assert!(matches!(&rig.effects()[..], [EffectKind::Cordon { .. }]));
    for _ in 0..4 {
        cordon(&mut rig, "node-0", Err(Failure::Conflict));
        assert_eq!(rig.effects(), [], "the next try comes after a while");
        let before = rig.sent.len();
        rig.advance(secs(15));
        assert_eq!(rig.sent[before..].len(), 1);
    }
    cordon(&mut rig, "node-0", Err(Failure::Conflict));
    assert_eq!(rig.effects(), []);
    assert_eq!(rig.ended(), Some(ExitCode::Failed));
}

#[test]
fn a_cordon_of_unknown_fate_is_read_again_after_a_while_and_not_doubled() {
    let mut rig = Rig::one(world().pod(pod("web-0")));
    rig.start();
    rig.effects();
    cordon(&mut rig, "node-0", Err(Failure::Passing("timeout".into())));
    assert_eq!(rig.effects(), []);
    rig.advance(secs(2));
    let again = EffectKind::CordonFresh { node: "node-0".into() };
    assert_eq!(rig.sent.iter().filter(|(_, k)| *k == again).count(), 1);
    rig.advance(secs(5));
    assert_eq!(rig.sent.len(), 2);
    cordon(&mut rig, "node-0", Ok(node("node-0").cordoned()));
    assert_eq!(rig.evictions(), ["web-0"]);
}

#[test]
fn a_cordon_that_never_gets_through_gives_up() {
    let mut rig = Rig::one(world().pod(pod("web-0")));
    rig.start();
    for _ in 0..5 {
        cordon(&mut rig, "node-0", Err(Failure::Passing("timeout".into())));
        rig.advance(secs(30));
    }
    assert_eq!(rig.ended(), Some(ExitCode::Api));
    assert_eq!(rig.sent.len(), 5);
    assert_eq!(rig.warnings(), ["the cordon of node-0 may have arrived: kubectl get node node-0 tells"]);
}

#[test]
fn the_clock_of_the_first_node_runs_from_its_cordon() {
    let mut rig = Rig::new(world().pod(pod("web-0")), &["node-0"], |s| s.machine.timeout = secs(10));
    rig.start();
    rig.effects();
    rig.advance(secs(9));
    cordon(&mut rig, "node-0", Ok(node("node-0").cordoned()));
    assert_eq!(rig.evictions(), ["web-0"]);
    rig.advance(secs(1));
    assert_eq!(rig.ended(), Some(ExitCode::Timeout));
}

/// Found unschedulable by a read; nothing was written.
fn found(rig: &mut Rig, name: &str, by: &str) {
    let facts = NodeFacts { cordoned_by: Some(by.to_owned()), ..node(name).cordoned() };
    let reply = Reply::Cordon(Ok(Cordoned { facts, wrote: false }));
    rig.answer_to(|k| matches!(k, EffectKind::CordonFresh { node } if node == name), reply);
}

#[test]
fn a_cordon_without_an_answer_ends_at_the_deadline_and_the_others_are_taken_back() {
    let mut rig = two_nodes();
    rig.start();
    cordon(&mut rig, "node-0", Ok(node("node-0").cordoned()));
    assert_eq!(rig.machine.poll_timeout(), Some(secs(1800)));
    rig.advance(secs(1800));
    assert_eq!(rig.sent.last().unwrap().1, EffectKind::Uncordon { node: "node-0".into() });
    assert_eq!(rig.machine.poll_timeout(), Some(secs(1810)));
    rig.advance(secs(10));
    assert_eq!(rig.ended(), Some(ExitCode::Timeout));
    let Some(EventKind::Ended { error: Some(error), .. }) = rig.events().pop() else { panic!("no error") };
    assert!(error.contains("node-1") && error.contains("unknown"), "{error}");
    let warnings = rig.warnings().join("; ");
    assert!(warnings.contains("kubectl uncordon node-0"), "{warnings}");
    assert!(warnings.contains("the cordon of node-1 was on its way"), "{warnings}");
    assert!(rig.report("node-0").cordoned_now);
}

#[test]
fn a_cordon_that_comes_while_the_others_are_taken_back_is_taken_back_too() {
    let mut rig = two_nodes();
    rig.start();
    cordon(&mut rig, "node-0", Ok(node("node-0").cordoned()));
    rig.advance(secs(1801));
    cordon(&mut rig, "node-1", Ok(node("node-1").cordoned()));
    cordon(&mut rig, "node-0", Ok(node("node-0")));
    cordon(&mut rig, "node-1", Ok(node("node-1")));
    assert_eq!(rig.ended(), Some(ExitCode::Timeout));
    assert!(!rig.report("node-0").cordoned_now && !rig.report("node-1").cordoned_now);
}

#[test]
fn somebody_elses_cordon_is_never_taken_back() {
    let mut rig = two_nodes();
    rig.start();
    cordon(&mut rig, "node-0", Err(Failure::Conflict));
    rig.advance(secs(2));
    found(&mut rig, "node-0", "kubectl");
    assert!(rig.events().contains(&EventKind::NodeCordoned { node: "node-0".into(), already: true }));
    cordon(&mut rig, "node-1", Err(Failure::Forbidden("no".into())));
    assert_eq!(rig.effects(), []);
    assert_eq!(rig.ended(), Some(ExitCode::Api));
    let report = rig.report("node-0");
    assert!(report.cordoned_before && report.cordoned_now);
}

#[test]
fn an_own_cordon_whose_answer_got_lost_is_taken_back() {
    let mut rig = two_nodes();
    rig.start();
    cordon(&mut rig, "node-0", Err(Failure::Passing("timeout".into())));
    rig.advance(secs(2));
    found(&mut rig, "node-0", crate::facts::FIELD_MANAGER);
    cordon(&mut rig, "node-1", Err(Failure::Forbidden("no".into())));
    assert_eq!(rig.effects(), [EffectKind::Uncordon { node: "node-0".into() }]);
}

#[test]
fn a_cordon_that_an_earlier_run_left_is_not_taken_back() {
    let world = world().node(node("node-0").cordoned());
    let mut rig = Rig::new(world, &["node-0", "node-1"], |_| {});
    rig.start();
    cordon(&mut rig, "node-0", Err(Failure::Passing("timeout".into())));
    rig.advance(secs(2));
    found(&mut rig, "node-0", crate::facts::FIELD_MANAGER);
    cordon(&mut rig, "node-1", Err(Failure::Forbidden("no".into())));
    assert_eq!(rig.effects(), []);
}

#[test]
fn taking_back_is_tried_again_and_its_failure_is_said() {
    let mut rig = two_nodes();
    rig.start();
    cordon(&mut rig, "node-0", Ok(node("node-0").cordoned()));
    cordon(&mut rig, "node-1", Err(Failure::Forbidden("no".into())));
    cordon(&mut rig, "node-0", Err(Failure::Passing("timeout".into())));
    assert_eq!((rig.ended(), rig.effects()), (None, vec![]));
    rig.advance(secs(5));
    assert_eq!(rig.sent.last().unwrap().1, EffectKind::Uncordon { node: "node-0".into() });
    cordon(&mut rig, "node-0", Err(Failure::Other("denied by policy".into())));
    assert_eq!(rig.ended(), Some(ExitCode::Failed));
    assert_eq!(rig.warnings(), ["node node-0 stays cordoned: denied by policy; kubectl uncordon node-0 lifts it"]);
    assert!(rig.report("node-0").cordoned_now);
}

#[test]
fn a_cordon_that_the_plan_saw_and_that_is_gone_is_set_again() {
    let mut rig = Rig::one(world().node(node("node-0").cordoned()).pod(pod("web-0")));
    rig.start();
    assert_eq!(rig.effects(), [EffectKind::CordonFresh { node: "node-0".into() }]);
    cordon(&mut rig, "node-0", Ok(node("node-0").cordoned()));
    assert_eq!(rig.evictions(), ["web-0"]);
    assert!(rig.events().contains(&EventKind::NodeCordoned { node: "node-0".into(), already: false }));
}

#[test]
fn a_signal_while_a_cordon_is_on_its_way_says_so() {
    let mut rig = Rig::one(world().pod(pod("web-0")));
    rig.start();
    rig.effects();
    rig.input(Input::Stop(crate::event::StopReason::Interrupt));
    assert_eq!(rig.ended(), Some(ExitCode::Interrupted));
    assert_eq!(rig.warnings(), ["the cordon of node-0 was on its way: kubectl get node node-0 tells"]);
}
