//! The disruption controller: a budget's status, in the arithmetic of the real one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::cluster::Cluster;
use crate::json::Json;
use crate::kinds::{Key, Kind};
use crate::selector::Labels;

/// A disruption that no deletion followed is forgotten after this time.
const FORGET: i64 = 120;

/// The budgets that select a pod.
pub(crate) fn budgets_of(cluster: &Cluster, pod: &Value) -> Vec<Arc<Value>> {
    if pod.pointer("/metadata/labels").and_then(Value::as_object).is_none_or(Map::is_empty) {
        return Vec::new();
    }
    cluster.store.iter(Kind::Pdb, pod.namespace()).filter(|b| selects(b, pod)).cloned().collect()
}

fn selects(budget: &Value, pod: &Value) -> bool {
    budget.pointer("/spec/selector").filter(|s| s.is_object()).is_some_and(|s| Labels::from_object(s).matches(pod))
}

/// A budget or one of its pods changed.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    schedule(cluster, key);
}

/// Has a budget's status computed in a moment.
pub(crate) fn schedule(cluster: &mut Cluster, key: &Key) {
    if !cluster.opts.disruption_controller {
        return;
    }
    let (key, delay) = (key.clone(), cluster.opts.disruption);
    cluster.after(&format!("pdb/{}/{}", key.ns, key.name), delay, move |c| {
        if c.opts.disruption_controller {
            compute(c, &key);
        }
    });
}

fn compute(cluster: &mut Cluster, key: &Key) {
    let Some(budget) = cluster.store.get(key) else { return };
    let pods: Vec<Arc<Value>> =
        cluster.store.iter(Kind::Pod, &key.ns).filter(|p| selects(&budget, p)).cloned().collect();
    let now = cluster.now();
    let (expected, desired) = match targets(cluster, &budget, &pods) {
        Ok(both) => both,
        Err(message) => {
            cluster.update(key, |b| {
                b.put("/status/disruptionsAllowed", 0);
                let observed = b.int("/status/observedGeneration").unwrap_or(0);
                b.set_condition(json!({"type": "DisruptionAllowed", "status": "False", "observedGeneration": observed,
                    "lastTransitionTime": now, "reason": "SyncFailed", "message": message}));
            });
            return;
        }
    };
    let disrupted = still_disrupted(cluster, &budget, &pods);
    let healthy =
        pods.iter().filter(|p| !p.deleting() && p.is_true("Ready") && !disrupted.contains_key(p.name())).count();
    let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
    let allowed = if expected <= 0 { 0 } else { (healthy - desired).max(0) };
    let waits = !disrupted.is_empty();
    cluster.update(key, |b| {
        let generation = b.int("/metadata/generation").unwrap_or(1);
        b.put("/status/observedGeneration", generation);
        b.put("/status/currentHealthy", healthy);
        b.put("/status/desiredHealthy", desired);
        b.put("/status/expectedPods", expected);
        b.put("/status/disruptionsAllowed", allowed);
        if disrupted.is_empty() {
            b.cut("/status/disruptedPods");
        } else {
            b.put("/status/disruptedPods", Value::Object(disrupted));
        }
        set_condition(b, &now);
    });
    if waits {
        let key = key.clone();
        let wait = Duration::from_secs(1).mul_f64(cluster.opts.speed);
        cluster.after(&format!("pdb-forget/{}/{}", key.ns, key.name), wait, move |c| schedule(c, &key));
    }
}

/// The condition that follows from disruptionsAllowed.
pub(crate) fn set_condition(budget: &mut Value, now: &str) {
    let yes = budget.int("/status/disruptionsAllowed").unwrap_or(0) > 0;
    let generation = budget.int("/status/observedGeneration").unwrap_or(0);
    let (status, reason) = if yes { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    budget.set_condition(json!({"type": "DisruptionAllowed", "status": status, "observedGeneration": generation,
        "lastTransitionTime": now, "reason": reason, "message": ""}));
}

fn still_disrupted(cluster: &Cluster, budget: &Value, pods: &[Arc<Value>]) -> Map<String, Value> {
    let old = budget.pointer("/status/disruptedPods").and_then(Value::as_object).cloned().unwrap_or_default();
    let lives = |name: &str| pods.iter().any(|p| p.name() == name && !p.deleting());
    let young = |at: &Value| at.as_str().and_then(|t| cluster.age(t)).is_some_and(|age| age < FORGET);
    old.into_iter().filter(|(name, at)| lives(name) && young(at)).collect()
}

/// Expected pods and desired healthy ones, or why they cannot be known.
fn targets(cluster: &Cluster, budget: &Value, pods: &[Arc<Value>]) -> Result<(i64, i64), String> {
    if let Some(max) = budget.pointer("/spec/maxUnavailable") {
        let expected = scale(cluster, pods)?;
        return Ok((expected, (expected - portion(max, expected)).max(0)));
    }
    match budget.pointer("/spec/minAvailable") {
        Some(min) if min.is_string() => {
            let expected = scale(cluster, pods)?;
            Ok((expected, portion(min, expected)))
        }
        min => Ok((i64::try_from(pods.len()).unwrap_or(i64::MAX), min.and_then(Value::as_i64).unwrap_or(0))),
    }
}

/// A number, or a percentage of the whole, rounded up.
fn portion(value: &Value, whole: i64) -> i64 {
    match value.as_str().and_then(|s| s.trim_end_matches('%').parse::<i64>().ok()) {
        Some(percent) => (whole * percent + 99) / 100,
        None => value.as_i64().unwrap_or(0),
    }
}

/// The sum of the scales of the pods' controllers. Pods without one do not count.
fn scale(cluster: &Cluster, pods: &[Arc<Value>]) -> Result<i64, String> {
    let mut scales: BTreeMap<String, i64> = BTreeMap::new();
    for pod in pods {
        let Some(owner) = pod.controller() else { continue };
        let kind = owner.text("/kind");
        let Some(known) = Kind::of_object(kind) else {
            return Err(format!("found no controllers for pod \"{}\"", pod.name()));
        };
        let Some(object) = cluster.get(known, pod.namespace(), owner.text("/name")) else {
            return Err(format!("found no controllers for pod \"{}\"", pod.name()));
        };
        let top = match (known, object.controller()) {
            (Kind::ReplicaSet, Some(o)) if o.text("/kind") == "Deployment" => {
                cluster.get(Kind::Deployment, pod.namespace(), o.text("/name")).unwrap_or_else(|| Arc::clone(&object))
            }
            (Kind::ReplicaSet | Kind::StatefulSet, _) => Arc::clone(&object),
            _ => return Err(format!("{} does not implement the scale subresource", known.qualified())),
        };
        scales.insert(top.uid().to_owned(), top.int("/spec/replicas").unwrap_or(1));
    }
    Ok(scales.values().sum())
}
