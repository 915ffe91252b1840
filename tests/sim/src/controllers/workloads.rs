//! Replica sets, deployments, stateful sets and daemon sets: they keep the number of their pods.

use std::sync::Arc;

use serde_json::{Value, json};

use super::quota;
use super::scheduler::selected;
use crate::cluster::Cluster;
use crate::json::{Json, controlled_by};
use crate::kinds::{Key, Kind};

fn pods_of(cluster: &Cluster, owner: &Value) -> Vec<Arc<Value>> {
    cluster
        .store
        .owned_by(owner.uid())
        .into_iter()
        .filter(|k| k.kind == Kind::Pod)
        .filter_map(|k| cluster.store.get(&k))
        .collect()
}

fn is_active(pod: &Value) -> bool {
    !pod.deleting() && !matches!(pod.text("/status/phase"), "Succeeded" | "Failed")
}

/// A pod from the owner's template, with a generated name unless one is given.
fn make(owner: &Value, name: Option<String>) -> Value {
    let mut pod = json!({"metadata": owner.pointer("/spec/template/metadata").cloned().unwrap_or(json!({})),
        "spec": owner.pointer("/spec/template/spec").cloned().unwrap_or(json!({}))});
    match name {
        Some(name) => pod.put("/metadata/name", name),
        None => pod.put("/metadata/generateName", format!("{}-", owner.name())),
    }
    pod.put("/metadata/namespace", owner.namespace());
    pod.put("/metadata/ownerReferences", json!([controlled_by(owner)]));
    pod
}

fn set_status(cluster: &mut Cluster, key: &Key, pods: &[Arc<Value>]) {
    let ready = pods.iter().filter(|p| p.is_true("Ready") && !p.deleting()).count();
    let active = pods.iter().filter(|p| is_active(p)).count();
    cluster.update(key, |o| {
        let generation = o.int("/metadata/generation").unwrap_or(1);
        o.put("/status/observedGeneration", generation);
        o.put("/status/replicas", active);
        o.put("/status/readyReplicas", ready);
        o.put("/status/availableReplicas", ready);
    });
}

fn alive(cluster: &Cluster, key: &Key) -> Option<Arc<Value>> {
    let going =
        |o: &Value| o.deleting() || cluster.get(Kind::Namespace, "", o.namespace()).is_some_and(|n| n.deleting());
    cluster.store.get(key).filter(|o| !going(o))
}

/// Keeps a replica set's count.
pub(super) fn replica_set(cluster: &mut Cluster, key: &Key) {
    let Some(set) = alive(cluster, key) else { return };
    let pods = pods_of(cluster, &set);
    let mut active: Vec<&Arc<Value>> = pods.iter().filter(|p| is_active(p)).collect();
    let wanted = usize::try_from(set.int("/spec/replicas").unwrap_or(1)).unwrap_or(0);
    for _ in active.len()..wanted {
        let pod = make(&set, None);
        if let Some(text) = quota::refusal(cluster, &pod) {
            let text = format!("Error creating: {text}");
            cluster.event(&set, "replicaset-controller", "Warning", "FailedCreate", &text);
            quota::retry(cluster, key);
            break;
        }
        cluster.create(Kind::Pod, pod);
    }
    // Surplus pods go, those that are not ready first.
    active.sort_by_key(|p| p.is_true("Ready"));
    for pod in active.iter().take(active.len().saturating_sub(wanted)) {
        cluster.delete(&Key::new(Kind::Pod, &key.ns, pod.name()), None);
    }
    set_status(cluster, key, &pods);
}

/// Keeps a deployment's one replica set (there are no rollouts here: a changed template is not followed).
pub(super) fn deployment(cluster: &mut Cluster, key: &Key) {
    let Some(deployment) = alive(cluster, key) else { return };
    let sets: Vec<Key> =
        cluster.store.owned_by(deployment.uid()).into_iter().filter(|k| k.kind == Kind::ReplicaSet).collect();
    let replicas = deployment.int("/spec/replicas").unwrap_or(1);
    if let Some(set) = sets.first() {
        cluster.update(set, |s| s.put("/spec/replicas", replicas));
        let status = cluster.store.get(set).and_then(|s| s.get("status").cloned());
        if let Some(status) = status {
            cluster.update(key, |d| {
                let generation = d.int("/metadata/generation").unwrap_or(1);
                d.put("/status", status);
                d.put("/status/observedGeneration", generation);
            });
        }
        return;
    }
    let hash = format!("{}{}", cluster.suffix(), cluster.suffix());
    let mut template = deployment.pointer("/spec/template").cloned().unwrap_or(json!({}));
    template.set_label("pod-template-hash", &hash);
    let mut selector = deployment.pointer("/spec/selector").cloned().unwrap_or(json!({}));
    selector.put("/matchLabels/pod-template-hash", hash.as_str());
    cluster.create(
        Kind::ReplicaSet,
        json!({"metadata": {"name": format!("{}-{hash}", deployment.name()), "namespace": key.ns, "labels": template.pointer("/metadata/labels"),
            "ownerReferences": [controlled_by(&deployment)]}, "spec": {"replicas": replicas, "selector": selector, "template": template}}),
    );
}

/// Keeps a stateful set's pods, in order, each only after its namesake is gone.
pub(super) fn stateful_set(cluster: &mut Cluster, key: &Key) {
    let Some(set) = alive(cluster, key) else { return };
    let parallel = set.text("/spec/podManagementPolicy") == "Parallel";
    for i in 0..set.int("/spec/replicas").unwrap_or(1) {
        let name = format!("{}-{i}", set.name());
        match cluster.get(Kind::Pod, &key.ns, &name) {
            None => {
                let mut pod = make(&set, Some(name.clone()));
                pod.set_label("statefulset.kubernetes.io/pod-name", &name);
                pod.set_label("apps.kubernetes.io/pod-index", &i.to_string());
                cluster.create(Kind::Pod, pod);
                if !parallel {
                    break;
                }
            }
            Some(p) if matches!(p.text("/status/phase"), "Succeeded" | "Failed") && !p.deleting() => {
                cluster.delete(&Key::new(Kind::Pod, &key.ns, &name), None);
            }
            Some(p) if !parallel && (p.deleting() || !p.is_true("Ready")) => break,
            Some(_) => {}
        }
    }
    let pods = pods_of(cluster, &set);
    set_status(cluster, key, &pods);
}

/// Keeps one pod per node. Daemon pods tolerate a cordon.
pub(super) fn daemon_set(cluster: &mut Cluster, key: &Key) {
    let Some(set) = alive(cluster, key) else { return };
    let pods = pods_of(cluster, &set);
    for node in cluster.store.list(Kind::Node, "") {
        let mut pod = make(&set, None);
        if pods.iter().any(|p| {
            !matches!(p.text("/status/phase"), "Succeeded" | "Failed") && p.text("/spec/nodeName") == node.name()
        }) || !selected(&pod, &node)
        {
            continue;
        }
        pod.put("/spec/nodeName", node.name());
        let mut tolerations = pod.list("/spec/tolerations").to_vec();
        for (taint, effect) in [
            ("not-ready", "NoExecute"),
            ("unreachable", "NoExecute"),
            ("disk-pressure", "NoSchedule"),
            ("memory-pressure", "NoSchedule"),
            ("pid-pressure", "NoSchedule"),
            ("unschedulable", "NoSchedule"),
        ] {
            tolerations
                .push(json!({"key": format!("node.kubernetes.io/{taint}"), "operator": "Exists", "effect": effect}));
        }
        pod.put("/spec/tolerations", tolerations);
        pod.put(
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
            json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node.name()]}]}]),
        );
        cluster.create(Kind::Pod, pod);
    }
    let pods = pods_of(cluster, &set);
    let ready = pods.iter().filter(|p| p.is_true("Ready") && !p.deleting()).count();
    let active = pods.iter().filter(|p| is_active(p)).count();
    cluster.update(key, |d| {
        let generation = d.int("/metadata/generation").unwrap_or(1);
        d.put(
            "/status",
            json!({"observedGeneration": generation, "currentNumberScheduled": active, "desiredNumberScheduled": active, "numberReady": ready, "numberMisscheduled": 0}),
        );
    });
}
