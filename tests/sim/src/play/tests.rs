//! Decisions on objects as they come.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::decide::{Due, Step, Write, due, writes};
use super::view::{Id, Kind, View};
use crate::json::Json;
use crate::options::Options;

const NOW: &str = "2026-01-01T00:00:30Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn node(name: &str) -> Value {
    let mut node = super::node(name, true, "2026-01-01T00:00:00Z".parse().unwrap());
    node.put("/metadata/uid", name);
    node
}

fn pod(phase: &str) -> Value {
    json!({"metadata": {"name": "a", "namespace": "x", "uid": "pod", "resourceVersion": "7"},
        "spec": {"nodeName": "node-0", "containers": [{"name": "c", "image": "i"}]}, "status": {"phase": phase}})
}

fn launcher(uid: &str, node: &str) -> Value {
    let mut pod = pod("Running");
    pod.put("/metadata/uid", uid);
    pod.put("/metadata/name", uid);
    pod.put("/spec/nodeName", node);
    pod.set_label("kubevirt.io", "virt-launcher");
    pod.set_label("kubevirt.io/created-by", "vmi");
    pod
}

fn deleted(mut object: Value, grace: i64) -> Value {
    object.put("/metadata/deletionTimestamp", NOW);
    object.put("/metadata/deletionGracePeriodSeconds", grace);
    object
}

fn vmi(phase: &str) -> Value {
    json!({"metadata": {"name": "v", "namespace": "x", "uid": "vmi", "resourceVersion": "9"},
        "spec": {"terminationGracePeriodSeconds": 30}, "status": {"phase": phase, "nodeName": "node-0", "evacuationNodeName": "node-0"}})
}

fn migrating(state: &Value) -> Value {
    let mut vmi = vmi("Running");
    vmi.put(
        "/status/migrationState",
        json!({"migrationUid": "m", "targetNode": "node-1", "targetPod": "target", "sourcePod": "source"}),
    );
    for (key, value) in state.as_object().unwrap() {
        vmi.put(&format!("/status/migrationState/{key}"), value.clone());
    }
    vmi
}

struct Case(View);

impl Case {
    fn of(objects: impl IntoIterator<Item = (Kind, Value)>) -> Self {
        let mut view = View::default();
        view.put(Kind::Node, node("node-0"));
        view.put(Kind::Node, node("node-1"));
        for (kind, object) in objects {
            view.put(kind, object);
        }
        Self(view)
    }

    /// A VMI with its launcher.
    fn guest(vmi: Value, launcher: Value) -> Self {
        Self::of([(Kind::Vmi, vmi), (Kind::Pod, launcher)])
    }

    /// A VMI that migrates, with both launchers.
    fn migration(state: &Value) -> Self {
        Self::guest(migrating(state), launcher("source", "node-0")).and(Kind::Pod, launcher("target", "node-1"))
    }

    fn and(mut self, kind: Kind, object: Value) -> Self {
        self.0.put(kind, object);
        self
    }

    fn due(&self, kind: Kind, uid: &str) -> Option<(Step, u128)> {
        let found = due(&self.0, &Id::new(kind, uid), &Options::default(), now());
        found.map(|Due { step, wait, .. }| (step, wait.as_millis()))
    }

    fn writes(&self, kind: Kind, uid: &str, step: Step) -> Vec<Write> {
        writes(&self.0, &Id::new(kind, uid), step, &Options::default(), now())
    }

    /// The object after a step's first request, with only what that changes.
    fn body(&self, kind: Kind, uid: &str, step: Step) -> Value {
        let Write::Patch { body, .. } = self.writes(kind, uid, step).remove(0) else { panic!("a deletion") };
        let mut changed = json!({});
        for op in body.as_array().unwrap() {
            changed.put(op.text("/path"), op["value"].clone());
        }
        changed
    }
}

#[test]
fn a_pod_runs_after_its_start_delay() {
    let case = Case::of([(Kind::Pod, pod("Pending"))]);
    assert_eq!(case.due(Kind::Pod, "pod"), Some((Step::Start, 300)));
    let body = case.body(Kind::Pod, "pod", Step::Start);
    assert_eq!(body.text("/metadata/resourceVersion"), "7");
    assert_eq!(body.text("/status/phase"), "Running");
    assert!(body.is_true("Ready"));
    assert!(body.pointer("/spec").is_none());
    assert_eq!(Case::of([(Kind::Pod, pod("Running"))]).due(Kind::Pod, "pod"), None);
}

#[test]
fn only_living_nodes_that_are_played_run_pods() {
    let with = |change: fn(&mut Value)| {
        let mut n = node("node-0");
        change(&mut n);
        Case::of([(Kind::Pod, pod("Pending"))]).and(Kind::Node, n).due(Kind::Pod, "pod")
    };
    assert!(with(|_| {}).is_some());
    assert_eq!(with(|n| n.set_annotation("lab/kubelet", Some("down"))), None);
    assert_eq!(with(|n| n.set_annotation("kwok.x-k8s.io/node", Some("fake"))), None);
    assert_eq!(with(|n| n.set_label("lab/played", "false")), None);
}

#[test]
fn a_deleted_pod_goes_after_its_stop_time_within_its_grace() {
    let stop = |p: Value| Case::of([(Kind::Pod, p)]).due(Kind::Pod, "pod");
    let slow = |grace| {
        let mut p = deleted(pod("Running"), grace);
        p.set_annotation("lab/stop", Some("20s"));
        p
    };
    assert_eq!(stop(deleted(pod("Running"), 30)), Some((Step::End, 1000)));
    assert_eq!(stop(slow(30)), Some((Step::End, 20_000)));
    assert_eq!(stop(slow(2)), Some((Step::End, 2000)));
    assert_eq!(stop(deleted(pod("Running"), 0)), None);
    let case = Case::of([(Kind::Pod, deleted(pod("Running"), 30))]);
    assert_eq!(case.writes(Kind::Pod, "pod", Step::End), [Write::Delete]);
}

#[test]
fn a_pod_with_finalizers_is_shown_as_ended_and_stays() {
    let mut p = deleted(pod("Running"), 0);
    p.put("/metadata/finalizers", json!(["x/y"]));
    let case = Case::of([(Kind::Pod, p.clone())]);
    assert_eq!(case.due(Kind::Pod, "pod"), Some((Step::End, 0)));
    assert_eq!(case.body(Kind::Pod, "pod", Step::End).text("/status/phase"), "Succeeded");
    p.put("/status/phase", "Succeeded");
    assert_eq!(Case::of([(Kind::Pod, p)]).due(Kind::Pod, "pod"), None);
}

#[test]
fn a_scheduled_guest_boots() {
    let mut v = vmi("Scheduled");
    v.set_annotation("lab/nonmigratable", Some("DisksNotLiveMigratable"));
    let case = Case::guest(v, launcher("source", "node-0"));
    assert_eq!(case.due(Kind::Vmi, "vmi"), Some((Step::Boot, 300)));
    let body = case.body(Kind::Vmi, "vmi", Step::Boot);
    assert_eq!(body.condition("LiveMigratable").map(|c| c.text("/reason")), Some("DisksNotLiveMigratable"));
    assert_eq!(body.text("/status/phase"), "Running");
}

#[test]
fn the_guest_ends_before_its_launcher() {
    let pod = deleted(launcher("source", "node-0"), 60);
    let case = Case::guest(vmi("Running"), pod.clone());
    assert_eq!(case.due(Kind::Vmi, "vmi"), Some((Step::Shutdown, 1000)));
    assert_eq!(case.due(Kind::Pod, "source"), None);
    assert_eq!(case.body(Kind::Vmi, "vmi", Step::Shutdown).text("/status/phase"), "Succeeded");
    let case = Case::guest(vmi("Succeeded"), pod);
    assert_eq!(case.due(Kind::Vmi, "vmi"), None);
    assert_eq!(case.due(Kind::Pod, "source"), Some((Step::End, 0)));
    assert_eq!(case.writes(Kind::Pod, "source", Step::End).len(), 2);
}

#[test]
fn a_guest_that_is_cut_short_or_ignores_its_shutdown_fails() {
    let with = |shutdown: &str, stop: &str, grace| {
        let (mut v, mut p) = (vmi("Running"), deleted(launcher("source", "node-0"), grace));
        v.set_annotation("lab/shutdown", Some(shutdown));
        p.set_annotation("lab/stop", Some(stop));
        let case = Case::guest(v, p);
        let end = case.due(Kind::Vmi, "vmi");
        (end, case.body(Kind::Vmi, "vmi", Step::Shutdown).text("/status/phase").to_owned())
    };
    assert_eq!(with("", "5s", 60), (Some((Step::Shutdown, 5000)), "Succeeded".to_owned()));
    assert_eq!(with("", "5s", 3), (Some((Step::Shutdown, 3000)), "Failed".to_owned()));
    assert_eq!(with("killed", "5s", 60), (Some((Step::Shutdown, 30_000)), "Failed".to_owned()));
}

#[test]
fn a_lost_guest_keeps_its_phase_and_its_launcher_goes() {
    let mut v = vmi("Running");
    v.set_annotation("lab/shutdown", Some("lost"));
    let case = Case::guest(v, deleted(launcher("source", "node-0"), 60));
    assert_eq!(case.due(Kind::Vmi, "vmi"), None);
    assert_eq!(case.due(Kind::Pod, "source"), Some((Step::End, 1000)));
}

#[test]
fn a_migration_is_handed_over_copied_and_leaves_its_source() {
    assert_eq!(Case::migration(&json!({})).due(Kind::Vmi, "vmi"), Some((Step::Handover, 300)));
    let case = Case::migration(&json!({"startTimestamp": NOW}));
    assert_eq!(case.due(Kind::Vmi, "vmi"), Some((Step::Copied, 5000)));
    let body = case.body(Kind::Vmi, "vmi", Step::Copied);
    assert_eq!((body.text("/status/nodeName"), body.label("kubevirt.io/nodeName")), ("node-1", "node-1"));
    assert!(!body.has("/status/evacuationNodeName"));
    let mut v = migrating(&json!({"startTimestamp": NOW, "completed": true}));
    v.put("/status/nodeName", "node-1");
    let case = case.and(Kind::Vmi, v);
    assert_eq!(case.due(Kind::Vmi, "vmi"), None);
    assert_eq!(case.due(Kind::Pod, "source"), Some((Step::End, 0)));
    assert_eq!(case.due(Kind::Pod, "target"), None);
}

#[test]
fn a_migration_hangs_fails_is_aborted_or_loses_its_target() {
    let with = |how: &str, state: &Value| {
        let mut v = migrating(state);
        v.set_annotation("lab/migration", Some(how));
        Case::migration(&json!({})).and(Kind::Vmi, v)
    };
    let started = json!({"startTimestamp": NOW});
    assert_eq!(with("hang", &started).due(Kind::Vmi, "vmi"), None);
    let aborted = json!({"startTimestamp": NOW, "abortRequested": true});
    let case = with("hang", &aborted);
    assert_eq!(case.due(Kind::Vmi, "vmi"), Some((Step::Abort, 500)));
    let body = case.body(Kind::Vmi, "vmi", Step::Abort);
    assert_eq!(body.text("/status/migrationState/abortStatus"), "Succeeded");
    let body = with("fail", &started).body(Kind::Vmi, "vmi", Step::Copied);
    assert!(body.flag("/status/migrationState/failed") && body.text("/status/nodeName") == "node-0");
    let case = Case::migration(&json!({"completed": true, "failed": true}));
    assert_eq!(case.due(Kind::Pod, "target"), Some((Step::End, 0)));
    assert_eq!(case.due(Kind::Pod, "source"), None);
    let case = Case::migration(&started).and(Kind::Pod, deleted(launcher("target", "node-1"), 60));
    assert_eq!(case.due(Kind::Vmi, "vmi"), Some((Step::Break, 300)));
}

#[test]
fn a_node_beats_each_minute_and_at_once_when_it_is_not_ready() {
    let beat = |n: Value| Case::of([]).and(Kind::Node, n).due(Kind::Node, "node-0");
    assert_eq!(beat(node("node-0")), Some((Step::Beat, 30_000)));
    let mut n = node("node-0");
    n.put("/status/conditions", json!([{"type": "Ready", "status": "Unknown"}]));
    assert_eq!(beat(n.clone()), Some((Step::Beat, 0)));
    n.set_annotation("lab/kubelet", Some("down"));
    assert_eq!(beat(n), None);
    // kwok is the kubelet there; the virt-handler is ours.
    let mut n = node("node-0");
    n.set_annotation("kwok.x-k8s.io/node", Some("fake"));
    let case = Case::of([]).and(Kind::Node, n);
    assert_eq!(case.due(Kind::Node, "node-0"), Some((Step::Beat, 30_000)));
    assert_eq!(case.writes(Kind::Node, "node-0", Step::Beat).len(), 1);
}

#[test]
fn a_handler_that_was_away_makes_its_node_schedulable_again() {
    let label = |last: &str| {
        let mut n = node("node-0");
        n.set_label("kubevirt.io/schedulable", "false");
        n.set_annotation("kubevirt.io/heartbeat", Some(last));
        match Case::of([]).and(Kind::Node, n).writes(Kind::Node, "node-0", Step::Beat).pop() {
            Some(Write::Patch { body, .. }) => body.label("kubevirt.io/schedulable").to_owned(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(label("2025-12-31T23:50:00Z"), "true");
    assert_eq!(label("2026-01-01T00:00:00Z"), "");
}

#[test]
fn an_older_state_does_not_replace_a_newer_one() {
    let mut old = pod("Pending");
    old.put("/metadata/resourceVersion", "6");
    let case = Case::of([(Kind::Pod, pod("Running")), (Kind::Pod, old)]);
    assert_eq!(case.due(Kind::Pod, "pod"), None);
    assert_eq!(Options::default().heartbeat, Duration::from_secs(60));
}
