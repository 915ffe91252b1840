//! What happens to a cluster beside a drain, on the simulated one and on a real one.

use std::future::Future;
use std::process::{Command, Output};
use std::time::Duration;

use http::Method;
use safe_drain_sim::{Fault, Json, Sim, Then, VirtApi};
use serde_json::{Value, json};

use super::stage::Stage;
use crate::harness::{Real, Venue, lab, path, secs};

/// Something that somebody does, or that breaks.
#[derive(Clone, Debug)]
pub enum Act {
    /// Deletes an object, with the grace that it has; of a pod the name may be cut off.
    Delete { kind: &'static str, ns: String, name: String },
    /// Removes a pod at once, and creates this one of the same name.
    Replace(Value),
    /// Creates an object.
    Create(Value),
    /// Merges that into an object.
    Patch { kind: &'static str, ns: String, name: String, patch: Value },
    /// A guest cannot migrate any more.
    Unmigratable { ns: String, vmi: String },
    /// Nobody answers at the API server's address for that long.
    ApiAway(Duration),
    /// virt-api answers, refuses connections, or accepts them and never answers.
    VirtApi(VirtApi),
    /// API priority and fairness serves one eviction of this user at a time, and turns the others away.
    Throttle(String),
    /// Whether the controllers of Kubernetes work.
    Controllers(bool),
}

impl Stage {
    /// Does it, and waits until it is over.
    pub async fn act(&self, act: Act) {
        self.doing(act).await;
    }

    /// The same, for [`Flow::later`](crate::harness::Flow::later).
    pub fn doing(&self, act: Act) -> impl Future<Output = ()> + 'static + use<> {
        let venue = self.venue.clone();
        async move {
            match venue {
                Venue::Sim(sim) => simulate(&sim, act),
                Venue::Real(real) => perform(&real, act).await,
            }
        }
    }

    /// The same with everything else standing still, for [`Flow::right_after`](crate::harness::Flow::right_after).
    pub fn at_once(&self, act: Act) -> impl FnOnce() + Send + 'static + use<> {
        let venue = self.venue.clone();
        move || match venue {
            Venue::Sim(sim) => simulate(&sim, act),
            Venue::Real(_) => {
                // A client belongs to its runtime, and the one of this thread stands still.
                let beside = std::thread::spawn(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                    runtime.expect("a runtime").block_on(async { perform(&Real::of_environment().await, act).await });
                });
                beside.join().expect("it does not fail");
            }
        }
    }
}

fn object(kind: &str, ns: &str, name: &str, names: impl IntoIterator<Item = String>) -> String {
    let mut names = names.into_iter().filter(|n| if kind == "Pod" { n.starts_with(name) } else { n == name });
    names.next().unwrap_or_else(|| panic!("no {kind} {ns}/{name}"))
}

fn simulate(sim: &Sim, act: Act) {
    let find = |kind: &str, ns: &str, name: &str| {
        object(kind, ns, name, sim.list(kind).iter().filter(|o| o.namespace() == ns).map(|o| o.name().to_owned()))
    };
    let now = sim.elapsed();
    match act {
        Act::Delete { kind, ns, name } => {
            sim.delete(kind, &ns, &find(kind, &ns, &name));
        }
        Act::Replace(pod) => {
            sim.vanish("Pod", pod.namespace(), pod.name());
            sim.create(pod);
        }
        Act::Create(object) => drop(sim.create(object)),
        Act::Patch { kind, ns, name, patch } => {
            sim.update(kind, &ns, &find(kind, &ns, &name), |o| merge(o, &patch));
        }
        Act::Unmigratable { ns, vmi } => {
            sim.update("VirtualMachineInstance", &ns, &vmi, |v| v.set_condition(unmigratable()));
        }
        Act::ApiAway(time) => sim.fault(Fault::at(now, Then::Gone).between(now, now + time)),
        Act::VirtApi(state) => sim.virt_api(state),
        Act::Throttle(_) => {
            let text = Then::plain(429, 1, "Too many requests, please try again later.\n");
            sim.fault(Fault::on("POST", "/eviction", text).first(9));
        }
        Act::Controllers(work) => sim.options(|o| o.disruption_controller = work),
    }
}

fn unmigratable() -> Value {
    json!({"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable",
        "message": "cannot migrate VMI: PVC root is not shared, live migration requires that all PVCs must be shared (using ReadWriteMany access mode)"})
}

fn merge(object: &mut Value, patch: &Value) {
    match (object, patch) {
        (Value::Object(object), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    object.remove(key);
                } else {
                    merge(object.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (object, patch) if patch.is_object() => {
            *object = json!({});
            merge(object, patch);
        }
        (object, patch) => object.clone_from(patch),
    }
}

async fn perform(real: &Real, act: Act) {
    let find = async |kind: &str, ns: &str, name: &str| {
        if kind != "Pod" {
            return name.to_owned();
        }
        object(kind, ns, name, real.list(kind, ns).await.iter().map(|o| o.name().to_owned()))
    };
    match act {
        Act::Delete { kind, ns, name } => {
            let path = path(kind, &ns, &find(kind, &ns, &name).await);
            real.send(Method::DELETE, &path, None).await;
        }
        Act::Replace(pod) => {
            let at_once = json!({"gracePeriodSeconds": 0});
            real.send(Method::DELETE, &path("Pod", pod.namespace(), pod.name()), Some(&at_once)).await;
            real.create(pod).await;
        }
        Act::Create(object) => drop(real.create(object).await),
        Act::Patch { kind, ns, name, patch } => {
            let name = find(kind, &ns, &name).await;
            real.patch(kind, &ns, &name, &patch).await;
        }
        Act::Unmigratable { ns, vmi } => {
            let mut object = real.get("VirtualMachineInstance", &ns, &vmi).await.expect("it runs");
            object.set_condition(unmigratable());
            let patch = json!({"status": {"conditions": object.list("/status/conditions")}});
            real.patch_vmi(&ns, &vmi, &patch).await;
        }
        Act::ApiAway(time) => {
            script(["stop", "apiserver"]).await;
            tokio::time::sleep(time).await;
            script(["start", "apiserver"]).await;
        }
        Act::VirtApi(VirtApi::Hang) => script(["pause", "virt-api"]).await,
        Act::VirtApi(VirtApi::Up) => come_back("virt-api").await,
        Act::VirtApi(VirtApi::Refused | VirtApi::NoEndpoints) => script(["stop", "virt-api"]).await,
        Act::Controllers(work) => script([if work { "start" } else { "stop" }, "controllers"]).await,
        Act::Throttle(user) => throttle(real, &user).await,
    }
}

/// A priority level without a share, which still serves one request at a time and has no queue, and the user's evictions sent to it.
async fn throttle(real: &Real, user: &str) {
    let api = "flowcontrol.apiserver.k8s.io/v1";
    let level = json!({"apiVersion": api, "kind": "PriorityLevelConfiguration", "metadata": {"name": user},
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"}}}});
    let schema = json!({"apiVersion": api, "kind": "FlowSchema", "metadata": {"name": user},
        "spec": {"priorityLevelConfiguration": {"name": user}, "matchingPrecedence": 100,
            "rules": [{"subjects": [{"kind": "User", "user": {"name": user}}],
                "resourceRules": [{"verbs": ["create"], "apiGroups": [""], "resources": ["pods/eviction"], "namespaces": ["*"]}]}]}});
    let level = real.send(Method::POST, &format!("/apis/{api}/prioritylevelconfigurations"), Some(&level)).await;
    real.send(Method::POST, &format!("/apis/{api}/flowschemas"), Some(&schema)).await;
    // The API server learns of it by a watch. Asked for a pod that is not there, it shows whether it has.
    let level = level.expect("created");
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "nobody", "namespace": "default"}});
    let path = "/api/v1/namespaces/default/pods/nobody/eviction";
    let known = async || real.priority_level(user, path, &eviction).await == level.uid();
    real.until("the throttle", secs(30), known).await;
}

/// Everything that a scenario may have taken away is there again.
pub async fn mend() {
    for part in ["apiserver", "controllers", "virt-api"] {
        come_back(part).await;
    }
    let usual = json!({"spec": {"configuration": {"evictionStrategy": "LiveMigrateIfPossible"}}});
    Real::of_environment().await.patch("KubeVirt", "kubevirt", "kubevirt", &usual).await;
}

async fn come_back(part: &'static str) {
    // Refused where it was stopped: then it is started.
    let _ = try_script(["resume", part]).await;
    script(["start", part]).await;
}

async fn script(words: [&'static str; 2]) {
    let output = try_script(words).await;
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A command of the cluster's own script, which ends when it has taken effect.
async fn try_script(words: [&'static str; 2]) -> Output {
    assert!(lab().is_some(), "no cluster for tests");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lab/lab");
    let run = move || Command::new(path).args(words).output();
    tokio::task::spawn_blocking(run).await.expect("no panic").expect("tests/lab/lab starts")
}
