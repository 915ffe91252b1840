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
    rig.answer_to(named, Reply::Node(result));
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
    let mut rig = Rig::new(world().node(node("node-0").cordoned()).pod(pod("web-0")), &["node-0"], |_| {});
    rig.start();
    let effects = rig.effects();
    assert_eq!(cordons(&effects), 0, "{effects:?}");
    assert!(matches!(&effects[..], [EffectKind::Evict { .. }]));
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
        assert_eq!(rig.effects(), [EffectKind::CordonFresh { node: "node-0".into() }]);
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
}

#[test]
fn the_clock_of_the_first_node_runs_from_its_cordon() {
    let mut rig = Rig::new(world().pod(pod("web-0")), &["node-0"], |s| s.machine.timeout = secs(10));
    rig.start();
    rig.effects();
    rig.now = secs(11);
    cordon(&mut rig, "node-0", Ok(node("node-0").cordoned()));
    assert_eq!(rig.evictions(), [""; 0]);
    assert_eq!(rig.ended(), Some(ExitCode::Timeout));
}
