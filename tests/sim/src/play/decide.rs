//! What a kubelet and a virt-handler have to do next, read off the objects. No clock, no cluster.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::view::{Id, Kind, View};
use super::{PLAYED, written};
use crate::controllers::vmi::{is_final, pod_is_final};
use crate::json::Json;
use crate::machine::{self, duration};
use crate::options::Options;

const HEARTBEAT: &str = "kubevirt.io/heartbeat";
const SCHEDULABLE: &str = "kubevirt.io/schedulable";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// A virt-handler that was silent for so long corrects the label that says so, a beat before virt-controller sets it at the latest.
/// A younger label "false" is somebody's wish.
const SILENCE: SignedDuration = SignedDuration::from_secs(machine::SILENCE - 60);
/// From the wish to abort a copy to its end.
const ABORT: Duration = Duration::from_millis(500);

/// What is next for an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// A node shows that it lives.
    Beat,
    /// A pod runs.
    Start,
    /// A pod has ended; if it is being deleted, it goes.
    End,
    /// A guest runs.
    Boot,
    /// A guest has ended.
    Shutdown,
    /// A copy begins.
    Handover,
    /// A copy has ended, well or badly.
    Copied,
    /// A copy is given up.
    Abort,
    /// A copy has lost its target.
    Break,
}

/// What is due, and in what time from when it got due.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Due {
    pub(super) step: Step,
    /// Tells apart steps of one kind that an object takes more than once.
    pub(super) of: String,
    pub(super) wait: Duration,
}

impl Due {
    fn new(step: Step, wait: Duration) -> Self {
        Self { step, of: String::new(), wait }
    }
}

/// One request.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Write {
    /// A patch of the object, or of its status.
    Patch { status: bool, form: Form, body: Value },
    /// A deletion without grace.
    Delete,
}

/// The kinds of patches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Json,
    Merge,
    Strategic,
}

/// What an object waits for, if anything.
pub(super) fn due(view: &View, id: &Id, options: &Options, now: Timestamp) -> Option<Due> {
    let object = view.get(id)?;
    match id.kind {
        Kind::Node => node(object, options, now),
        Kind::Pod => pod(view, object, options),
        Kind::Vmi => vmi(view, object, options),
    }
}

fn is_up(node: &Value) -> bool {
    node.annotation("lab/kubelet") != "down"
}

fn is_played(node: &Value) -> bool {
    node.label(PLAYED) == "true" && node.annotation("kwok.x-k8s.io/node").is_empty()
}

/// Whether what runs on that node is played now.
fn runs(view: &View, node: &str) -> bool {
    !node.is_empty() && view.node(node).is_some_and(|n| is_played(n) && is_up(n))
}

fn has_handler(node: &Value) -> bool {
    !node.label(SCHEDULABLE).is_empty()
}

fn is_new(node: &Value) -> bool {
    node.list("/spec/taints").iter().any(|t| t.text("/key") == NOT_READY)
}

fn node(node: &Value, options: &Options, now: Timestamp) -> Option<Due> {
    if !is_up(node) {
        return None;
    }
    let left = |text: &str| {
        let age = text.parse::<Timestamp>().ok().map(|t| now.duration_since(t));
        let age = age.map_or(options.heartbeat, |age| Duration::try_from(age).unwrap_or_default());
        options.heartbeat.saturating_sub(age)
    };
    let kubelet = is_played(node).then(|| {
        let beat = node.condition("Ready").map_or("", |c| c.text("/lastHeartbeatTime"));
        if node.is_true("Ready") && !is_new(node) { left(beat) } else { Duration::ZERO }
    });
    let handler = has_handler(node).then(|| left(node.annotation(HEARTBEAT)));
    Some(Due::new(Step::Beat, kubelet.into_iter().chain(handler).min()?))
}

fn pod(view: &View, pod: &Value, options: &Options) -> Option<Due> {
    let here = pod.text("/spec/nodeName");
    if !runs(view, here) {
        return None;
    }
    let owner = view.owner(pod);
    let over = pod_is_final(pod);
    if owner.is_some_and(is_final) && !over && pod.text("/status/phase") == "Running" {
        return Some(Due::new(Step::End, Duration::ZERO));
    }
    if pod.deleting() {
        let grace = pod.int("/metadata/deletionGracePeriodSeconds").unwrap_or(0);
        if grace == 0 && (over || pod.list("/metadata/finalizers").is_empty()) {
            return None;
        }
        if over {
            return Some(Due::new(Step::End, Duration::ZERO));
        }
        let guest = owner.filter(|v| v.text("/status/nodeName") == here);
        if guest.is_some_and(|v| v.annotation("lab/shutdown") != "lost") {
            // virt-handler ends the guest first.
            return None;
        }
        return Some(Due::new(Step::End, machine::stop_time(pod, guest, options.stop).min(machine::seconds(grace))));
    }
    if pod.text("/status/phase") == "Pending" {
        return Some(Due::new(Step::Start, options.start));
    }
    (!over && owner.is_some_and(|v| machine::is_left(v, pod))).then(|| Due::new(Step::End, Duration::ZERO))
}

fn vmi(view: &View, vmi: &Value, options: &Options) -> Option<Due> {
    if is_final(vmi) || !runs(view, vmi.text("/status/nodeName")) {
        return None;
    }
    let phase = vmi.text("/status/phase");
    let launcher = launcher(view, vmi);
    if vmi.deleting() || launcher.is_some_and(Value::deleting) {
        if vmi.annotation("lab/shutdown") == "lost" || !matches!(phase, "Scheduled" | "Running") {
            return None;
        }
        let (wish, limit) = shutdown(vmi, launcher, options);
        return Some(Due::new(Step::Shutdown, limit.map_or(wish, |l| wish.min(l))));
    }
    match phase {
        "Scheduled" => Some(Due::new(Step::Boot, options.start)),
        "Running" => migration(view, vmi, options),
        _ => None,
    }
}

/// The launcher that the guest runs in.
fn launcher<'a>(view: &'a View, vmi: &Value) -> Option<&'a Value> {
    view.launchers(vmi).find(|p| p.text("/spec/nodeName") == vmi.text("/status/nodeName") && !pod_is_final(p))
}

/// How long a guest takes to end, and how long it is given.
fn shutdown(vmi: &Value, launcher: Option<&Value>, options: &Options) -> (Duration, Option<Duration>) {
    let wish = machine::stop_time(launcher.unwrap_or(vmi), Some(vmi), options.stop);
    let limit = launcher
        .filter(|p| p.deleting())
        .map(|p| machine::seconds(p.int("/metadata/deletionGracePeriodSeconds").unwrap_or(0)));
    (wish, limit)
}

fn migration(view: &View, vmi: &Value, options: &Options) -> Option<Due> {
    let state = vmi.pointer("/status/migrationState")?;
    let uid = state.text("/migrationUid");
    if uid.is_empty()
        || state.text("/targetNode").is_empty()
        || state.text("/targetPod").is_empty()
        || state.flag("/completed")
    {
        return None;
    }
    let lost = !view.launchers(vmi).any(|p| p.name() == state.text("/targetPod") && !p.deleting() && !pod_is_final(p));
    let (step, wait) = if state.flag("/abortRequested") {
        (Step::Abort, ABORT)
    } else if lost {
        (Step::Break, options.handover)
    } else if !state.has("/startTimestamp") {
        (Step::Handover, options.handover)
    } else if vmi.annotation("lab/migration") == "hang" {
        return None;
    } else {
        (Step::Copied, duration(vmi.annotation("lab/migrate")).unwrap_or(options.migrate))
    };
    Some(Due { step, of: uid.to_owned(), wait })
}

/// The requests that take a step.
pub(super) fn writes(view: &View, id: &Id, step: Step, options: &Options, now: Timestamp) -> Vec<Write> {
    let Some(old) = view.get(id) else { return Vec::new() };
    if step == Step::Beat {
        return beat(old, now);
    }
    let now = written(now);
    let mut new = old.clone();
    match step {
        Step::Beat => {}
        Step::Start => machine::pod_runs(&mut new, &now, &address(old.uid())),
        Step::End => {
            let mut all = Vec::new();
            let shown = old.label("kubevirt.io") == "virt-launcher" || !old.list("/metadata/finalizers").is_empty();
            if shown && !pod_is_final(old) {
                machine::pod_completes(&mut new, &now);
                all.push(changed(old, &new, true));
            }
            if old.deleting() {
                all.push(Write::Delete);
            }
            return all;
        }
        Step::Boot => machine::guest_runs(&mut new, &now),
        Step::Shutdown => {
            let (wish, limit) = shutdown(old, launcher(view, old), options);
            let killed = old.annotation("lab/shutdown") == "killed" || limit.is_some_and(|l| l < wish);
            machine::guest_ends(&mut new, killed, &now);
        }
        Step::Handover => machine::copy_starts(&mut new, &now),
        Step::Copied if old.annotation("lab/migration") == "fail" => {
            machine::copy_ends(&mut new, machine::failure(old), &now);
        }
        Step::Copied => machine::guest_moves(&mut new, &now),
        Step::Abort => machine::copy_is_aborted(&mut new, &now),
        Step::Break => machine::copy_ends(&mut new, machine::TARGET_DOWN, &now),
    }
    vec![changed(old, &new, id.kind == Kind::Pod)]
}

fn beat(node: &Value, time: Timestamp) -> Vec<Write> {
    let now = written(time);
    let mut all = Vec::new();
    let whole = |body| Write::Patch { status: false, form: Form::Merge, body };
    if is_played(node) {
        if is_new(node) {
            // What the node lifecycle controller does, where there is one.
            let rest: Vec<&Value> = node.list("/spec/taints").iter().filter(|t| t.text("/key") != NOT_READY).collect();
            all.push(whole(json!({"metadata": {"resourceVersion": node.text("/metadata/resourceVersion")}, "spec": {"taints": rest}})));
        }
        let mut ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastHeartbeatTime": now});
        if !node.is_true("Ready") {
            ready.put("/lastTransitionTime", now.as_str());
        }
        all.push(Write::Patch {
            status: true,
            form: Form::Strategic,
            body: json!({"status": {"conditions": [ready]}}),
        });
    }
    if has_handler(node) {
        let mut body = json!({"metadata": {"annotations": {HEARTBEAT: now}}});
        let last = node.annotation(HEARTBEAT).parse::<Timestamp>().ok();
        if last.is_none_or(|t| time.duration_since(t) > SILENCE) {
            body.put("/metadata/labels", json!({SCHEDULABLE: "true"}));
        }
        all.push(whole(body));
    }
    all
}

/// An address that stays with the pod.
fn address(uid: &str) -> String {
    let hash = uid.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    let [_, b, c, d] = hash.to_be_bytes();
    format!("10.{}.{c}.{d}", b | 0x80)
}

/// The patch between two states; it holds only for the old one. Not a merge patch: API servers drop empty fields from lists in those, and
/// virt-controller's own patches, which test a status as its types write it, would never hold.
fn changed(old: &Value, new: &Value, status: bool) -> Write {
    let mut body = vec![
        json!({"op": "replace", "path": "/metadata/resourceVersion", "value": old.text("/metadata/resourceVersion")}),
    ];
    for path in ["/status", "/metadata/labels"] {
        if let Some(value) = new.pointer(path).filter(|v| old.pointer(path) != Some(*v)) {
            body.push(json!({"op": "add", "path": path, "value": value}));
        }
    }
    Write::Patch { status, form: Form::Json, body: Value::Array(body) }
}
