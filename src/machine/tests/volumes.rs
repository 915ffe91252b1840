//! What is still attached when the last pod has gone: told, never waited for for long.

use super::*;
use crate::facts::testing::{labels, pod, world};
use crate::outcome::Verdict;

const SHORT: Duration = Duration::from_millis(500);

/// A node whose only pod is gone, and the last list shows none.
fn emptied() -> Rig {
    let mut rig = Rig::one(world().pod(pod("web-0"))).cordoned();
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.gone(&pod("web-0"));
    assert_eq!(rig.effects(), last_look("node-0"), "asked for together");
    rig.answer_to(|k| matches!(k, EffectKind::RelistPods { .. }), Reply::Pods(Ok(Vec::new())));
    rig
}

fn volumes_are(rig: &mut Rig, reply: Result<Vec<String>, Failure>) {
    rig.answer_to(|k| matches!(k, EffectKind::ListVolumes { .. }), Reply::Volumes(reply));
}

fn notes(rig: &mut Rig) -> Vec<String> {
    let noted = |e| if let EventKind::Noted { warning: false, text } = e { Some(text) } else { None };
    rig.events().into_iter().filter_map(noted).collect()
}

#[test]
fn they_are_named_and_change_nothing_else() {
    let mut rig = emptied();
    assert_eq!(rig.ended(), None);
    volumes_are(&mut rig, Ok(vec!["pv-a".into(), "pv-b".into()]));
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    let report = rig.report("node-0");
    assert_eq!(report.attached_volumes, ["pv-a", "pv-b"]);
    assert_eq!(report.warnings, ["2 volumes are still attached: pv-a, pv-b; wait before you power the node off"]);
    let mut rig = emptied();
    volumes_are(&mut rig, Ok(Vec::new()));
    assert_eq!((rig.ended(), rig.report("node-0").warnings), (Some(ExitCode::Done), Vec::new()));
}

#[test]
fn a_list_that_does_not_come_holds_nothing_up() {
    let mut rig = emptied();
    rig.advance(SHORT);
    assert_eq!((rig.ended(), rig.now), (Some(ExitCode::Done), SHORT));
    assert_eq!(
        notes(&mut rig),
        ["which volumes are still attached to node-0 is not known: the list did not come in time"]
    );
    let mut rig = emptied();
    volumes_are(&mut rig, Err(Failure::Forbidden("no".into())));
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    let text = "which volumes are still attached to node-0 is not known: listing volumeattachments is not permitted";
    assert_eq!((notes(&mut rig), rig.warnings()), (vec![text.to_owned()], Vec::new()));
}

#[test]
fn a_deadline_before_it_comes_is_no_timeout() {
    let one = |s: &mut Setup| s.machine.timeout = Duration::from_millis(200);
    let mut rig = Rig::new(world(), &["node-0"], one).cordoned();
    rig.answer_to(|k| matches!(k, EffectKind::RelistPods { .. }), Reply::Pods(Ok(Vec::new())));
    rig.advance(secs(1));
    assert_eq!((rig.ended(), rig.report("node-0").verdict), (Some(ExitCode::Done), Verdict::Drained));
}

#[test]
fn a_pod_that_comes_meanwhile_is_drained_first() {
    let mut rig = emptied();
    let late = pod("late-0").owned("apps/v1", "StatefulSet", "late");
    rig.pod(late.clone());
    assert_eq!(rig.evictions(), ["late-0"]);
    volumes_are(&mut rig, Ok(vec!["pv-a".into()]));
    assert_eq!(rig.ended(), None);
    rig.evict("late-0", EvictionAnswer::Accepted);
    rig.gone(&late);
    assert_eq!(rig.effects(), last_look("node-0"), "what was known before is old");
    rig.relist();
    assert_eq!((rig.ended(), rig.report("node-0").attached_volumes), (Some(ExitCode::Done), Vec::new()));
}

#[test]
fn nobody_asks_where_something_blocks_or_is_left_out() {
    let selector = crate::facts::LabelSelector { match_labels: labels(&[("app", "db")]), expressions: Vec::new() };
    let left_out = |s: &mut Setup| s.plan.pod_selector = Some(selector);
    let mut rig = Rig::new(world().pod(pod("web-0")), &["node-0"], left_out).cordoned();
    assert_eq!(rig.effects(), [EffectKind::RelistPods { node: "node-0".into() }]);
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));

    let mut rig = Rig::one(world().pod(pod("web-0"))).cordoned();
    rig.evict("web-0", EvictionAnswer::Forbidden { text: "no".into() });
    assert_eq!(rig.effects(), [EffectKind::RelistPods { node: "node-0".into() }]);
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
}
