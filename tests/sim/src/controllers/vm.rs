//! VMs: what each run strategy does when its VMI is missing, has ended, or is asked to stop and start.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::vmi::is_final;
use crate::cluster::Cluster;
use crate::json::{Json, controlled_by};
use crate::kinds::{Key, Kind};
use crate::machine;

/// The run strategy, from either of the two fields.
pub(crate) fn run_strategy(vm: &Value) -> &str {
    match (vm.text("/spec/runStrategy"), vm.flag("/spec/running")) {
        ("", true) => "Always",
        ("", false) => "Halted",
        (s, _) => s,
    }
}

/// Moves a VM on.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(vm) = cluster.store.get(key) else { return };
    let vmi = cluster
        .get(Kind::Vmi, &key.ns, &key.name)
        .filter(|v| v.controller().is_some_and(|o| o.text("/uid") == vm.uid()));
    if vm.deleting() {
        match vmi {
            Some(v) if !v.deleting() => stop(cluster, &vm, &v),
            Some(_) => {}
            None => {
                cluster.update(key, |v| v.put("/metadata/finalizers", json!([])));
                return;
            }
        }
    } else {
        if let Some(vmi) = vmi.as_deref() {
            count_failures(cluster, key, vmi);
        }
        drop_requests(cluster, key, vmi.as_deref());
        if let Some(vm) = cluster.store.get(key) {
            act(cluster, key, &vm, vmi);
        }
    }
    status(cluster, key);
}

const RETRY: &str = "/status/startFailure/retryAfterTimestamp";

/// Counts the starts in a row whose VMI ended before its guest ran: the next one waits.
pub(super) fn count_failures(cluster: &mut Cluster, key: &Key, vmi: &Value) {
    let ran = vmi.list("/status/phaseTransitionTimestamps").iter().any(|t| t.text("/phase") == "Running");
    if vmi.text("/status/phase") == "Running" {
        cluster.update(key, |v| v.cut("/status/startFailure"));
    } else if is_final(vmi) && !ran {
        let Some(vm) = cluster.store.get(key) else { return };
        if vm.text("/status/startFailure/lastFailedVMIUID") == vmi.uid() {
            return;
        }
        let count = vm.int("/status/startFailure/consecutiveFailCount").unwrap_or(0) + 1;
        let retry = cluster.now_plus((10 * count * count).min(300));
        let failure =
            json!({"consecutiveFailCount": count, "lastFailedVMIUID": vmi.uid(), "retryAfterTimestamp": retry});
        cluster.update(key, |v| v.put("/status/startFailure", failure));
    }
}

/// How long the next start still waits.
fn backoff(cluster: &Cluster, vm: &Value) -> Option<Duration> {
    let left = -cluster.age(vm.text(RETRY))?;
    (left > 0).then(|| machine::seconds(left))
}

/// Requests that are fulfilled go, one at a time.
fn drop_requests(cluster: &mut Cluster, key: &Key, vmi: Option<&Value>) {
    let Some(vm) = cluster.store.get(key) else { return };
    let requests = vm.list("/status/stateChangeRequests");
    let Some(first) = requests.first() else { return };
    let done = match first.text("/action") {
        "Stop" => vmi.is_none_or(|v| v.uid() != first.text("/uid")),
        _ => vmi.is_some_and(|v| !is_final(v) && !v.deleting()),
    };
    if done {
        let rest = requests[1..].to_vec();
        cluster.update(key, |v| {
            if rest.is_empty() {
                v.cut("/status/stateChangeRequests");
            } else {
                v.put("/status/stateChangeRequests", rest);
            }
        });
    }
}

fn act(cluster: &mut Cluster, key: &Key, vm: &Value, vmi: Option<Arc<Value>>) {
    let strategy = run_strategy(vm).to_owned();
    let wants =
        |action: &str| vm.list("/status/stateChangeRequests").first().is_some_and(|r| r.text("/action") == action);
    let Some(v) = vmi else {
        let go = match strategy.as_str() {
            "Always" | "Once" => true,
            "RerunOnFailure" => wants("Start") || vm.text("/status/runStrategy") != strategy,
            "Manual" => wants("Start"),
            _ => false,
        };
        match backoff(cluster, vm) {
            Some(wait) => {
                let key = key.clone();
                let name = format!("start/{}/{}", vm.uid(), vm.text(RETRY));
                cluster.after_exactly(&name, wait, move |c| c.store.touch(&key));
            }
            None if go => start(cluster, vm),
            None => {}
        }
        return;
    };
    if v.deleting() {
        return;
    }
    let ended = is_final(&v);
    match strategy.as_str() {
        "Once" => {}
        "Halted" => stop(cluster, vm, &v),
        _ if wants("Stop") => stop(cluster, vm, &v),
        "Always" if ended => stop(cluster, vm, &v),
        "RerunOnFailure" if ended => {
            if v.text("/status/phase") == "Failed" {
                cluster.update(key, |o| {
                    if o.list("/status/stateChangeRequests").is_empty() {
                        o.put("/status/stateChangeRequests", json!([{"action": "Start"}]));
                    }
                });
            }
            stop(cluster, vm, &v);
        }
        _ => {}
    }
}

fn stop(cluster: &mut Cluster, vm: &Value, vmi: &Value) {
    if vmi.deleting() {
        return;
    }
    let text = format!("Stopped the virtual machine by deleting the virtual machine instance {}", vmi.uid());
    cluster.event(vm, "virtualmachine-controller", "Normal", "SuccessfulDelete", &text);
    cluster.delete(&Key::new(Kind::Vmi, vmi.namespace(), vmi.name()), None);
}

/// A VMI from the stored template. The mutator stamps what the template leaves open.
fn start(cluster: &mut Cluster, vm: &Value) {
    let generation = vm.int("/metadata/generation").unwrap_or(1);
    let mut vmi = json!({"metadata": vm.pointer("/spec/template/metadata").cloned().unwrap_or(json!({})),
        "spec": vm.pointer("/spec/template/spec").cloned().unwrap_or(json!({}))});
    vmi.put("/metadata/name", vm.name());
    vmi.put("/metadata/namespace", vm.namespace());
    vmi.cut("/metadata/creationTimestamp");
    vmi.put("/metadata/ownerReferences", json!([controlled_by(vm)]));
    vmi.set_annotation("kubevirt.io/vm-generation", Some(&generation.to_string()));
    vmi.put("/status/virtualMachineRevisionName", format!("revision-start-vm-{}-{generation}", vm.uid()));
    let text = format!("Started the virtual machine by creating the new virtual machine instance {}", vm.name());
    cluster.event(vm, "virtualmachine-controller", "Normal", "SuccessfulCreate", &text);
    cluster.create(Kind::Vmi, vmi);
}

fn printable(cluster: &Cluster, vm: &Value, vmi: Option<&Value>) -> &'static str {
    if vm.deleting() {
        return "Terminating";
    }
    let Some(v) = vmi else {
        return if backoff(cluster, vm).is_some() { "CrashLoopBackOff" } else { "Stopped" };
    };
    if v.deleting() && !is_final(v) {
        return "Stopping";
    }
    let migrating = v.has("/status/migrationState/startTimestamp") && !v.has("/status/migrationState/endTimestamp");
    let unschedulable = v.condition("PodScheduled").is_some_and(|c| c.text("/reason") == "Unschedulable");
    match v.text("/status/phase") {
        "Succeeded" | "Failed" => "Stopped",
        "Running" if migrating => "Migrating",
        "Running" => "Running",
        _ if unschedulable => "ErrorUnschedulable",
        _ => "Starting",
    }
}

fn status(cluster: &mut Cluster, key: &Key) {
    let Some(vm) = cluster.store.get(key) else { return };
    let vmi = cluster.get(Kind::Vmi, &key.ns, &key.name);
    let strategy = run_strategy(&vm).to_owned();
    let now = cluster.now();
    let word = printable(cluster, &vm, vmi.as_deref());
    let own = ["RestartRequired", "ManualRecoveryRequired", "VolumesChange", "Failure"];
    let mut conditions: Vec<Value> = match &vmi {
        Some(v) => v.list("/status/conditions").to_vec(),
        None => vec![
            json!({"type": "Ready", "status": "False", "reason": "VMINotExists", "message": "VMI does not exist", "lastTransitionTime": now}),
        ],
    };
    for c in &mut conditions {
        for field in ["lastProbeTime", "lastTransitionTime"] {
            if c.get(field).is_none() {
                c[field] = Value::Null;
            }
        }
    }
    // RestartRequired goes with a start.
    let fresh = vmi.as_deref().is_some_and(|v| v.text("/status/phase").is_empty());
    conditions.extend(
        vm.list("/status/conditions")
            .iter()
            .filter(|c| own.contains(&c.text("/type")) && !(fresh && c.text("/type") == "RestartRequired"))
            .cloned(),
    );
    cluster.update(key, |o| {
        if vmi.is_none()
            && let Some(old) = o.condition("Ready").filter(|c| c.text("/reason") == "VMINotExists")
        {
            conditions[0] = old.clone();
        }
        o.put("/status/conditions", conditions);
        let generation = o.int("/metadata/generation").unwrap_or(1);
        o.put("/status/desiredGeneration", generation);
        o.put("/status/observedGeneration", generation);
        o.put("/status/printableStatus", word);
        o.put("/status/runStrategy", strategy);
        for (path, on) in
            [("/status/created", vmi.is_some()), ("/status/ready", vmi.as_deref().is_some_and(|v| v.is_true("Ready")))]
        {
            if on {
                o.put(path, true);
            } else {
                o.cut(path);
            }
        }
        let snapshots: Vec<Value> = o
            .list("/spec/template/spec/volumes")
            .iter()
            .map(|v| {
                json!({"enabled": false, "name": v.text("/name"),
                "reason": format!("Snapshot is not supported for this volumeSource type [{}]", v.text("/name"))})
            })
            .collect();
        o.put("/status/volumeSnapshotStatuses", snapshots);
    });
}
