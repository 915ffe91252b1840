//! Several nodes: whose turn it is, and what one means for the next.

use super::*;
use crate::facts::testing::{budget, node, pod, world};
use crate::facts::{NodeFacts, NodeReady};
use crate::outcome::{PodOutcome, Verdict};

const BOTH: [&str; 2] = ["node-0", "node-1"];

fn far(name: &str) -> PodFacts {
    pod(name).on("node-1")
}

fn drain_web_0(rig: &mut Rig) {
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.gone(&pod("web-0"));
    rig.relist();
}

#[test]
fn one_node_at_a_time_in_the_order_given() {
    let mut rig = Rig::new(world().pod(pod("web-0")).pod(far("far-0")), &BOTH, |_| {}).cordoned();
    assert_eq!(rig.evictions(), ["web-0"]);
    drain_web_0(&mut rig);
    assert_eq!(rig.evictions(), ["far-0"]);
    assert_eq!(rig.report("node-0").verdict, Verdict::Drained);
    assert_eq!(rig.ended(), None);
}

#[test]
fn two_nodes_at_a_time() {
    let world = world().pod(pod("web-0")).pod(far("far-0")).pod(pod("third-0").on("node-2"));
    let mut rig = Rig::new(world, &["node-0", "node-1", "node-2"], |s| s.machine.parallel = 2).cordoned();
    assert_eq!(rig.evictions(), ["web-0", "far-0"]);
    drain_web_0(&mut rig);
    assert_eq!(rig.evictions(), ["third-0"]);
}

#[test]
fn a_node_is_planned_again_when_its_turn_comes() {
    let mut rig = Rig::new(world().pod(pod("web-0")).pod(far("far-0")), &BOTH, |_| {}).cordoned();
    rig.gone(&far("far-0"));
    rig.pod(far("far-1"));
    drain_web_0(&mut rig);
    assert_eq!(rig.evictions(), ["far-1"]);
}

#[test]
fn an_empty_second_node_ends_at_once() {
    let mut rig = Rig::new(world().pod(pod("web-0")), &BOTH, |_| {}).cordoned();
    drain_web_0(&mut rig);
    assert_eq!(rig.effects(), last_look("node-1"));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
}

#[test]
fn a_node_that_fails_does_not_stop_the_next() {
    let mut rig = Rig::new(world().pod(pod("web-0")).pod(far("far-0")), &BOTH, |_| {}).cordoned();
    rig.evict("web-0", EvictionAnswer::Forbidden { text: "no".into() });
    rig.relist();
    assert_eq!(rig.report("node-0").verdict, Verdict::Blocked);
    rig.evict("far-0", EvictionAnswer::Accepted);
    rig.gone(&far("far-0"));
    rig.relist();
    assert_eq!(rig.report("node-1").verdict, Verdict::Drained);
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
}

#[test]
fn a_signal_stops_the_next_node_too() {
    let mut rig = Rig::new(world().pod(pod("web-0")).pod(far("far-0")), &BOTH, |_| {}).cordoned();
    rig.effects();
    rig.input(Input::Stop(crate::event::StopReason::Terminate));
    assert_eq!(rig.ended(), Some(ExitCode::Terminated));
    assert_eq!(rig.report("node-0").verdict, Verdict::Interrupted);
    assert_eq!(rig.report("node-1").verdict, Verdict::NotStarted);
    assert_eq!(rig.report("node-1").pods[0].outcome, PodOutcome::Pending);
}

#[test]
fn each_node_has_the_whole_timeout_from_its_turn() {
    let world = world().pod(pod("web-0")).pod(far("far-0"));
    let mut rig = Rig::new(world, &BOTH, |s| s.machine.timeout = secs(100)).cordoned();
    rig.advance(secs(100));
    assert_eq!(rig.report("node-0").verdict, Verdict::Timeout);
    assert_eq!(rig.machine.poll_timeout(), Some(secs(200)));
    rig.advance(secs(100));
    assert_eq!(rig.ended(), Some(ExitCode::Timeout));
}

#[test]
fn a_node_that_was_deleted_before_its_turn_fails_and_loses_nothing_to_others() {
    let mut rig = Rig::new(world().pod(pod("web-0")).pod(far("far-0")), &BOTH, |_| {}).cordoned();
    rig.change(Change::Node(Delta::Delete("node-1".into())));
    drain_web_0(&mut rig);
    assert_eq!(rig.evictions(), [""; 0]);
    assert_eq!(rig.report("node-1").verdict, Verdict::Failed);
    assert_eq!(rig.ended(), Some(ExitCode::Failed));
}

#[test]
fn what_a_node_had_not_sent_at_its_deadline_is_never_sent() {
    let world = world().pod(pod("web-0")).pod(far("far-0"));
    let mut rig = Rig::new(world, &BOTH, |s| {
        s.machine.timeout = secs(100);
        s.machine.max_in_flight = 1;
    })
    .cordoned();
    // Nothing is taken from the machine until the first node's time is over.
    rig.now = secs(100);
    rig.input(Input::Tick);
    assert_eq!(rig.evictions(), ["far-0"]);
}

#[test]
fn an_answer_after_the_deadline_of_its_node_frees_the_budget_for_the_next() {
    let world = world().pod(pod("web-0")).pod(far("far-0")).budget(budget("web"));
    let mut rig = Rig::new(world, &BOTH, |s| s.machine.timeout = secs(10)).cordoned();
    assert_eq!(rig.evictions(), ["web-0"]);
    rig.advance(secs(10));
    assert_eq!(rig.evictions(), [""; 0]);
    rig.evict("web-0", EvictionAnswer::ServerTrouble { text: "timeout".into() });
    assert_eq!(rig.evictions(), ["far-0"]);
    let _ = node("node-0");
}

#[test]
fn a_small_pace_serves_the_nodes_in_turn() {
    let pods = |node: &'static str| (0..3).map(move |n| pod(&format!("{node}-pod-{n}")).on(node));
    let world = BOTH.iter().flat_map(|node| pods(node)).fold(world(), World::pod);
    let tell = |s: &mut Setup| (s.machine.parallel, s.machine.max_in_flight) = (2, 1);
    let mut rig = Rig::new(world, &BOTH, tell).cordoned();
    let mut order = Vec::new();
    while let [name] = rig.evictions().as_slice() {
        order.push(name[..6].to_owned());
        rig.evict(name, EvictionAnswer::Accepted);
    }
    assert_eq!(order, ["node-0", "node-1", "node-0", "node-1", "node-0", "node-1"]);
}

#[test]
fn a_node_that_falls_silent_is_told_of_once_and_again_when_it_is_back() {
    let mut rig = Rig::one(world().pod(pod("web-0"))).cordoned();
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.stopping(&pod("web-0"));
    let silent = |reason: &str| NodeReady::No { reason: reason.into(), since: None };
    for ready in [silent("NodeStatusUnknown"), silent("KubeletNotReady"), NodeReady::Yes, NodeReady::Yes] {
        let facts = rig.machine.core.index.node("node-0").unwrap().clone();
        rig.change(Change::Node(Delta::Apply(NodeFacts { ready, ..facts })));
    }
    let text = "node node-0 is not ready any more (NodeStatusUnknown): pods on it may never confirm that they stopped";
    assert_eq!(rig.warnings(), [text]);
    let back =
        |e: &EventKind| matches!(e, EventKind::Noted { warning: false, text } if text == "node node-0 is ready again");
    assert_eq!(rig.events().iter().filter(|e| back(e)).count(), 1);
}

#[test]
fn what_stops_on_a_silent_node_does_not_end_by_itself() {
    let mut rig = Rig::one(world().pod(pod("web-0").with(|p| p.grace_seconds = 3600))).cordoned();
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.stopping(&pod("web-0").with(|p| p.grace_seconds = 3600));
    rig.advance(secs(1700));
    rig.input(Input::Stop(crate::event::StopReason::Interrupt));
    let row = rig.pod_row("web-0");
    assert_eq!(
        (row.because.as_str(), row.waiting_helps),
        ("accepted, still stopping, up to 32m left (grace 1h)", Some(true))
    );

    let mut rig = Rig::one(world().pod(pod("web-0"))).cordoned();
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.stopping(&pod("web-0"));
    let facts = rig.machine.core.index.node("node-0").unwrap().clone();
    let ready = NodeReady::No { reason: "NodeStatusUnknown".into(), since: None };
    rig.change(Change::Node(Delta::Apply(NodeFacts { ready, ..facts })));
    rig.advance(secs(1800));
    let row = rig.pod_row("web-0");
    let text = "accepted, but the node is not ready: nothing confirms that it stopped";
    assert_eq!((row.because.as_str(), row.waiting_helps), (text, Some(false)));
    assert!(row.remedy.is_some());
}
