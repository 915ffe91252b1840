//! VMIs: launcher pod, phases, what stays when the pod goes; the budgets that releases up to 1.5 keep for them; VMI replica sets.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{launcher, quota};
use crate::cluster::Cluster;
use crate::json::{Json, controlled_by};
use crate::kinds::{Key, Kind};
use crate::options::Profile;

/// Whether a VMI has ended.
pub(crate) fn is_final(vmi: &Value) -> bool {
    matches!(vmi.text("/status/phase"), "Succeeded" | "Failed")
}

/// The cluster-wide evictionStrategy; `None` the word when the KubeVirt object leaves it out.
pub(crate) fn cluster_strategy(cluster: &Cluster) -> String {
    let cr = cluster.store.list(Kind::KubeVirt, "").into_iter().find(|k| k.has("/status/phase") && !k.deleting());
    match cr.as_ref().map_or("", |k| k.text("/spec/configuration/evictionStrategy")) {
        "" => "None".to_owned(),
        s => s.to_owned(),
    }
}

/// The strategy that the webhook goes by.
pub(crate) fn effective_strategy(cluster: &Cluster, vmi: &Value) -> String {
    match vmi.text("/spec/evictionStrategy") {
        "" => cluster_strategy(cluster),
        s => s.to_owned(),
    }
}

/// The VMI's pods, hotplug pods not among them.
pub(crate) fn launchers(cluster: &Cluster, vmi: &Value) -> Vec<Arc<Value>> {
    cluster
        .store
        .owned_by(vmi.uid())
        .into_iter()
        .filter(|k| k.kind == Kind::Pod)
        .filter_map(|k| cluster.store.get(&k))
        .collect()
}

/// Whether a pod is over.
pub(crate) fn pod_is_final(pod: &Value) -> bool {
    matches!(pod.text("/status/phase"), "Succeeded" | "Failed")
}

/// Sets a phase and dates it.
pub(crate) fn set_phase(object: &mut Value, phase: &str, now: &str) {
    if object.text("/status/phase") == phase {
        return;
    }
    object.put("/status/phase", phase);
    let mut dates = object.list("/status/phaseTransitionTimestamps").to_vec();
    dates.push(json!({"phase": phase, "phaseTransitionTimestamp": now}));
    object.put("/status/phaseTransitionTimestamps", dates);
}

/// Moves a VMI on.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(vmi) = cluster.store.get(key) else { return };
    let pods = launchers(cluster, &vmi);
    let now = cluster.now();
    unready(cluster, key, &now);
    if vmi.deleting() {
        return end(cluster, key, &vmi, &pods);
    }
    if is_final(&vmi) {
        return;
    }
    let current = pods.iter().find(|p| !pod_is_final(p));
    match (vmi.text("/status/phase"), current) {
        ("", _) => {
            let strategy = cluster.opts.profile().version();
            cluster.update(key, |v| {
                set_phase(v, "Pending", &now);
                v.put("/status/guestOSInfo", json!({}));
                v.put("/status/qosClass", "Burstable");
                v.put("/status/runtimeUser", 107);
                v.put("/status/launcherContainerImageVersion", format!("quay.io/kubevirt/virt-launcher:{strategy}"));
                v.set_condition(json!({"type": "Ready", "status": "False", "reason": "GuestNotRunning",
                    "message": "Guest VM is not reported as running", "lastProbeTime": now, "lastTransitionTime": now}));
                launcher::observe(v);
            });
        }
        ("Pending", None) => {
            let pod = launcher::pod(cluster, &vmi, None);
            if let Some(text) = quota::refusal(cluster, &pod) {
                return refused(cluster, key, &vmi, &text, &now);
            }
            let pod = cluster.create(Kind::Pod, pod);
            if vmi.condition("Synchronized").is_some() {
                cluster.update(key, |v| v.cut_condition("Synchronized"));
            }
            let text = format!("Created virtual machine pod {}", pod.name());
            cluster.event(&vmi, "virtualmachine-controller", "Normal", "SuccessfulCreate", &text);
        }
        ("Pending", Some(_)) => {
            cluster.update(key, |v| set_phase(v, "Scheduling", &now));
        }
        ("Scheduling", None) => {
            cluster.update(key, |v| set_phase(v, "Failed", &now));
        }
        ("Scheduling", Some(pod)) => scheduling(cluster, key, pod, &now),
        _ => lose(cluster, key, &vmi, &pods, &now),
    }
    follow_pods(cluster, key, &now);
}

/// A quota does not admit the launcher.
fn refused(cluster: &mut Cluster, key: &Key, vmi: &Value, text: &str, now: &str) {
    cluster.event(vmi, "virtualmachine-controller", "Warning", "FailedCreate", &format!("Error creating pod: {text}"));
    cluster.update(key, |v| {
        v.set_condition(json!({"type": "Synchronized", "status": "False", "reason": "FailedCreate",
            "message": format!("failed to create virtual machine pod: {text}"), "lastProbeTime": null, "lastTransitionTime": now}));
    });
    quota::retry(cluster, key);
}

/// A guest whose launcher object has gone before virt-handler said how it ended has failed.
fn lose(cluster: &mut Cluster, key: &Key, vmi: &Value, pods: &[Arc<Value>], now: &str) {
    let found = matches!(vmi.text("/status/phase"), "Scheduled" | "Running");
    if is_final(vmi) || !found && !vmi.deleting() || own(vmi, pods).is_some() {
        return;
    }
    cluster.update(key, |v| set_phase(v, "Failed", now));
}

/// The launcher on the VMI's node, as long as there is an object of it; of several the one that runs.
fn own<'a>(vmi: &Value, pods: &'a [Arc<Value>]) -> Option<&'a Arc<Value>> {
    let here = |p: &&Arc<Value>| p.text("/spec/nodeName") == vmi.text("/status/nodeName");
    pods.iter().filter(here).find(|p| !pod_is_final(p)).or_else(|| pods.iter().find(here))
}

/// What the Ready condition says of a launcher that goes or is gone.
fn unready(cluster: &mut Cluster, key: &Key, now: &str) {
    let Some(vmi) = cluster.store.get(key).filter(|v| !v.text("/status/nodeName").is_empty()) else { return };
    let pods = launchers(cluster, &vmi);
    let (reason, message) = match own(&vmi, &pods) {
        None => ("PodNotExists", "virt-launcher pod has not yet been scheduled"),
        Some(p) if p.deleting() || pod_is_final(p) => ("PodTerminating", "virt-launcher pod is terminating"),
        Some(_) => return,
    };
    if vmi.condition("Ready").is_none_or(|c| c.text("/reason") != reason) {
        cluster.update(key, |v| {
            v.set_condition(json!({"type": "Ready", "status": "False", "reason": reason, "message": message,
                "lastProbeTime": now, "lastTransitionTime": now}));
        });
    }
}

fn scheduling(cluster: &mut Cluster, key: &Key, pod: &Value, now: &str) {
    let scheduled = pod.condition("PodScheduled").cloned();
    cluster.update(key, |v| match scheduled {
        Some(c) if c.text("/status") == "False" => v.set_condition(c),
        _ => {
            let rest: Vec<Value> =
                v.list("/status/conditions").iter().filter(|c| c.text("/type") != "PodScheduled").cloned().collect();
            v.put("/status/conditions", rest);
        }
    });
    if pod.text("/status/phase") == "Running" {
        let node = pod.text("/spec/nodeName").to_owned();
        cluster.update(key, |v| {
            set_phase(v, "Scheduled", now);
            v.put("/status/nodeName", node.as_str());
            v.set_label("kubevirt.io/nodeName", &node);
        });
    }
}

/// activePods in the VMI, and what KubeVirt writes on the pods.
fn follow_pods(cluster: &mut Cluster, key: &Key, now: &str) {
    let Some(vmi) = cluster.store.get(key) else { return };
    let pods = launchers(cluster, &vmi);
    let counts =
        |p: &&Arc<Value>| p.label("kubevirt.io/migrationJobUID").is_empty() || !p.text("/spec/nodeName").is_empty();
    let active: Map<String, Value> =
        pods.iter().filter(counts).map(|p| (p.uid().to_owned(), json!(p.text("/spec/nodeName")))).collect();
    cluster.update(key, |v| {
        if active.is_empty() && v.text("/status/phase") != "Running" {
            v.cut("/status/activePods");
        } else if !active.is_empty() {
            v.put("/status/activePods", Value::Object(active));
        }
    });
    let mark = vmi.text("/status/evacuationNodeName").to_owned();
    let newer = cluster.opts.profile() >= Profile::V1_4;
    for pod in pods.iter().filter(|p| !pod_is_final(p)) {
        let marked = newer && !mark.is_empty() && pod.text("/spec/nodeName") == mark;
        let target = !pod.label("kubevirt.io/migrationJobUID").is_empty()
            && vmi.text("/status/nodeName") != pod.text("/spec/nodeName");
        cluster.update(&Key::new(Kind::Pod, &key.ns, pod.name()), |p| {
            if !target {
                p.set_condition(
                    json!({"type": "kubevirt.io/virtual-machine-unpaused", "status": "True", "lastProbeTime": now,
                    "lastTransitionTime": now, "reason": "NotPaused", "message": "the virtual machine is not paused"}),
                );
            }
            let word = "descheduler.alpha.kubernetes.io/eviction-in-progress";
            p.set_annotation(word, marked.then_some("true"));
            if p.text("/status/phase") == "Running" {
                let node = p.text("/spec/nodeName").to_owned();
                if !target {
                    p.set_label("kubevirt.io/nodeName", &node);
                }
            }
        });
    }
}

/// A VMI that is being deleted: its pods first, then the object.
fn end(cluster: &mut Cluster, key: &Key, vmi: &Value, pods: &[Arc<Value>]) {
    for pod in pods.iter().filter(|p| !p.deleting()) {
        let text = format!("Deleted virtual machine pod {}", pod.name());
        cluster.event(vmi, "virtualmachine-controller", "Normal", "SuccessfulDelete", &text);
        cluster.delete(&Key::new(Kind::Pod, &key.ns, pod.name()), None);
    }
    let now = cluster.now();
    unready(cluster, key, &now);
    lose(cluster, key, vmi, &launchers(cluster, vmi), &now);
    if launchers(cluster, vmi).is_empty() {
        // Neither the VM nor a migration is looked at before the VMI is gone.
        if let Some(vmi) = cluster.store.get(key)
            && vmi.controller().is_some_and(|o| o.text("/kind") == "VirtualMachine")
        {
            super::vm::count_failures(cluster, &Key::new(Kind::Vm, &key.ns, &key.name), &vmi);
        }
        super::migration::end_all(cluster, key);
        cluster.update(key, |v| {
            let own = ["kubevirt.io/virtualMachineControllerFinalize", "kubevirt.io/foregroundDeleteVirtualMachine"];
            let rest: Vec<Value> = v
                .list("/metadata/finalizers")
                .iter()
                .filter(|f| !own.contains(&f.as_str().unwrap_or("")))
                .cloned()
                .collect();
            v.put("/metadata/finalizers", rest);
        });
    }
}

/// The budget that releases up to 1.5 keep for a protected VMI.
pub(crate) fn budget(cluster: &mut Cluster, key: &Key) {
    let Some(vmi) = cluster.store.get(key) else { return };
    if !cluster.opts.profile().keeps_budgets() {
        return;
    }
    let protected = match effective_strategy(cluster, &vmi).as_str() {
        "LiveMigrate" | "External" => true,
        "LiveMigrateIfPossible" => vmi.is_true("LiveMigratable"),
        _ => false,
    };
    let mine: Vec<Key> = cluster.store.owned_by(vmi.uid()).into_iter().filter(|k| k.kind == Kind::Pdb).collect();
    if !protected || is_final(&vmi) || vmi.deleting() {
        for k in &mine {
            cluster.delete(k, None);
        }
        return;
    }
    let migrating = vmi.has("/status/migrationState") && !vmi.flag("/status/migrationState/completed");
    let wanted = 1 + i64::from(migrating);
    if let Some(k) = mine.first() {
        cluster.update(k, |b| b.put("/spec/minAvailable", wanted));
        return;
    }
    cluster.create(
        Kind::Pdb,
        json!({"metadata": {"generateName": "kubevirt-disruption-budget-", "namespace": key.ns, "ownerReferences": [controlled_by(&vmi)]},
            "spec": {"minAvailable": wanted, "selector": {"matchLabels": {"kubevirt.io/created-by": vmi.uid()}}}}),
    );
}

/// Keeps the number of a replica set's VMIs; finished ones are deleted and replaced under new names.
pub(crate) fn replica_set(cluster: &mut Cluster, key: &Key) {
    let Some(set) = cluster.store.get(key).filter(|s| !s.deleting()) else { return };
    let all: Vec<Arc<Value>> = cluster
        .store
        .owned_by(set.uid())
        .into_iter()
        .filter(|k| k.kind == Kind::Vmi)
        .filter_map(|k| cluster.store.get(&k))
        .collect();
    // One whose launcher goes is not waited for.
    let over = |v: &Value| is_final(v) || v.condition("Ready").is_some_and(|c| c.text("/reason") == "PodTerminating");
    let active = all.iter().filter(|v| !over(v) && !v.deleting()).count();
    if !set.flag("/spec/paused") {
        for v in all.iter().filter(|v| over(v) && !v.deleting()) {
            cluster.delete(&Key::new(Kind::Vmi, &key.ns, v.name()), None);
            let text = format!("Deleted finished virtual machine: {}", v.uid());
            cluster.event(&set, "virtualmachinereplicaset-controller", "Normal", "SuccessfulDelete", &text);
        }
        for _ in active..usize::try_from(set.int("/spec/replicas").unwrap_or(1)).unwrap_or(0) {
            let mut vmi = json!({"metadata": set.pointer("/spec/template/metadata").cloned().unwrap_or(json!({})),
                "spec": set.pointer("/spec/template/spec").cloned().unwrap_or(json!({}))});
            vmi.put("/metadata/generateName", set.name());
            vmi.put("/metadata/namespace", key.ns.as_str());
            vmi.put("/metadata/ownerReferences", json!([controlled_by(&set)]));
            let vmi = cluster.create(Kind::Vmi, vmi);
            let text =
                format!("Started the virtual machine by creating the new virtual machine instance {}", vmi.name());
            cluster.event(&set, "virtualmachinereplicaset-controller", "Normal", "SuccessfulCreate", &text);
        }
    }
    let ready = all.iter().filter(|v| v.is_true("Ready")).count();
    cluster.update(key, |s| {
        s.put("/status/replicas", active);
        s.put("/status/readyReplicas", ready);
    });
}
