//! The scheduler: node selector, required node affinity, taints, cordon, pod count and extended resources (not CPU and memory),
//! node affinity of bound volumes, required pod anti-affinity by host name. Fewest pods first, then by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::json::Json;
use crate::kinds::{Key, Kind};
use crate::selector::{Labels, node_terms};

/// Looks again at the pods that found no node.
pub(super) fn retry(cluster: &mut Cluster) {
    for key in cluster.unscheduled.clone() {
        cluster.store.touch(&key);
    }
}

/// Binds a pod that has no node, after a moment.
pub(super) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(pod) = cluster.store.get(key) else { return };
    if !pod.text("/spec/nodeName").is_empty() || pod.deleting() || pod.text("/status/phase") != "Pending" {
        cluster.unscheduled.remove(key);
        return;
    }
    let (key, delay) = (key.clone(), cluster.opts.schedule);
    cluster.after(&format!("schedule/{}", pod.uid()), delay, move |c| bind(c, &key));
}

fn bind(cluster: &mut Cluster, key: &Key) {
    let Some(pod) = cluster.store.get(key).filter(|p| p.text("/spec/nodeName").is_empty() && !p.deleting()) else {
        return;
    };
    let nodes = cluster.store.list(Kind::Node, "");
    let mut usage: BTreeMap<String, Vec<Arc<Value>>> = BTreeMap::new();
    for p in cluster.store.iter(Kind::Pod, "").filter(|p| !matches!(p.text("/status/phase"), "Succeeded" | "Failed")) {
        usage.entry(p.text("/spec/nodeName").to_owned()).or_default().push(Arc::clone(p));
    }
    let empty = Vec::new();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut fits = Vec::new();
    for node in &nodes {
        let here = usage.get(node.name()).unwrap_or(&empty);
        match refusal(cluster, &pod, node, here) {
            Some(reason) => *reasons.entry(reason).or_default() += 1,
            None => fits.push((cluster.prefer.as_deref() != Some(node.name()), here.len(), node.name().to_owned())),
        }
    }
    let now = cluster.now();
    if let Some((_, _, node)) = fits.into_iter().min() {
        cluster.unscheduled.remove(key);
        cluster.update(key, |p| {
            p.put("/spec/nodeName", node);
            p.set_condition(
                json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}),
            );
        });
        return;
    }
    let mut parts: Vec<String> = reasons.iter().map(|(r, n)| format!("{n} {r}")).collect();
    parts.sort();
    let all = nodes.len();
    let message = format!(
        "0/{all} nodes are available: {}. no new claims to deallocate, preemption: 0/{all} nodes are available: {all} Preemption is not helpful for scheduling.",
        parts.join(", ")
    );
    let fresh = cluster.unscheduled.insert(key.clone());
    let changed = cluster.update(key, |p| {
        let old = p.condition("PodScheduled").map(|c| c.text("/message").to_owned());
        if old.as_deref() != Some(message.as_str()) {
            p.set_condition(json!({"type": "PodScheduled", "status": "Unknown"}));
            p.set_condition(json!({"type": "PodScheduled", "status": "False", "lastProbeTime": null, "lastTransitionTime": now,
                "observedGeneration": p.int("/metadata/generation").unwrap_or(1), "reason": "Unschedulable", "message": message}));
        }
    });
    if let (true, Some(pod)) = (fresh, changed) {
        cluster.event(&pod, "default-scheduler", "Warning", "FailedScheduling", &message);
    }
}

/// Why the pod may not go to the node, in the order of the real filters.
fn refusal(cluster: &Cluster, pod: &Value, node: &Value, here: &[Arc<Value>]) -> Option<String> {
    let tolerates = |taint: &Value| pod.list("/spec/tolerations").iter().any(|t| tolerated(t, taint));
    if node.flag("/spec/unschedulable")
        && !tolerates(&json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}))
    {
        return Some("node(s) were unschedulable".to_owned());
    }
    let hard = |t: &&Value| matches!(t.text("/effect"), "NoSchedule" | "NoExecute");
    if let Some(t) = node.list("/spec/taints").iter().filter(hard).find(|t| !tolerates(t)) {
        return Some(format!("node(s) had untolerated taint {{{}: {}}}", t.text("/key"), t.text("/value")));
    }
    if !selected(pod, node) {
        return Some("node(s) didn't match Pod's node affinity/selector".to_owned());
    }
    if let Some(short) = resources(pod, node, here) {
        return Some(short);
    }
    if !volumes(cluster, pod, node) {
        return Some("node(s) didn't match PersistentVolume's node affinity".to_owned());
    }
    if repelled(pod, here) {
        return Some("node(s) didn't match pod anti-affinity rules".to_owned());
    }
    None
}

fn tolerated(toleration: &Value, taint: &Value) -> bool {
    let (key, effect) = (toleration.text("/key"), toleration.text("/effect"));
    (effect.is_empty() || effect == taint.text("/effect"))
        && if toleration.text("/operator") == "Exists" {
            key.is_empty() || key == taint.text("/key")
        } else {
            key == taint.text("/key") && toleration.text("/value") == taint.text("/value")
        }
}

/// Node selector and required node affinity.
pub(super) fn selected(pod: &Value, node: &Value) -> bool {
    let wanted = pod.pointer("/spec/nodeSelector").and_then(Value::as_object);
    if wanted.into_iter().flatten().any(|(k, v)| Some(node.label(k)) != v.as_str()) {
        return false;
    }
    let path = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    !pod.has(path) || node_terms(pod.list(path), node)
}

fn quantity(value: &Value) -> i64 {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: i64 = text[..split].parse().unwrap_or(0);
    match &text[split..] {
        "k" => number * 1000,
        "Ki" => number * 1024,
        _ => number,
    }
}

fn extended(pod: &Value) -> BTreeMap<String, i64> {
    let mut all = BTreeMap::new();
    for c in pod.list("/spec/containers") {
        let of = |field: &str| {
            c.pointer(&format!("/resources/{field}")).and_then(Value::as_object).cloned().unwrap_or_default()
        };
        let mut wanted = of("limits");
        wanted.extend(of("requests"));
        for (name, value) in wanted.into_iter().filter(|(n, _)| n.contains('/')) {
            *all.entry(name).or_default() += quantity(&value);
        }
    }
    all
}

fn resources(pod: &Value, node: &Value, here: &[Arc<Value>]) -> Option<String> {
    let have = node.pointer("/status/allocatable").and_then(Value::as_object)?;
    if have.get("pods").is_some_and(|p| i64::try_from(here.len()).unwrap_or(i64::MAX) >= quantity(p)) {
        return Some("Too many pods".to_owned());
    }
    let wanted = extended(pod);
    if wanted.is_empty() {
        return None;
    }
    let mut used: BTreeMap<String, i64> = BTreeMap::new();
    for p in here {
        for (name, n) in extended(p) {
            *used.entry(name).or_default() += n;
        }
    }
    let lacks =
        |(name, n): &(&String, &i64)| have.get(*name).map_or(0, quantity) - used.get(*name).copied().unwrap_or(0) < **n;
    wanted.iter().find(lacks).map(|(name, _)| format!("Insufficient {name}"))
}

fn volumes(cluster: &Cluster, pod: &Value, node: &Value) -> bool {
    pod.list("/spec/volumes").iter().all(|v| {
        let claim = v.text("/persistentVolumeClaim/claimName");
        if claim.is_empty() {
            return true;
        }
        let Some(pvc) = cluster.get(Kind::PersistentVolumeClaim, pod.namespace(), claim) else { return true };
        let Some(pv) = cluster.get(Kind::PersistentVolume, "", pvc.text("/spec/volumeName")) else { return true };
        let path = "/spec/nodeAffinity/required/nodeSelectorTerms";
        !pv.has(path) || node_terms(pv.list(path), node)
    })
}

fn repelled(pod: &Value, here: &[Arc<Value>]) -> bool {
    let terms = pod.list("/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution");
    terms.iter().filter(|t| t.text("/topologyKey") == "kubernetes.io/hostname").any(|t| {
        let labels = Labels::from_object(t.get("labelSelector").unwrap_or(&Value::Null));
        here.iter().any(|p| p.namespace() == pod.namespace() && p.uid() != pod.uid() && labels.matches(p))
    })
}
