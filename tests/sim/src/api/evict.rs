//! The eviction subresource. Order as in the real server: name, dry run, namespace, webhooks, budgets, preconditions, deletion.
//! A stale precondition is found out last, after it has spent a disruption.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answer::{Answer, bad_request, failure, forbidden, not_found, success};
use super::route::Request;
use super::webhook::{self, Verdict};
use super::write::{preconditions, terminating};
use crate::cluster::Cluster;
use crate::controllers::{disruption, hotplug};
use crate::json::Json;
use crate::kinds::{Key, Kind};

const VIOLATES: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Answers POST pods/NAME/eviction.
pub(super) fn answer(cluster: &mut Cluster, request: &Request) -> Answer {
    let Some(body) = request.body.clone() else { return bad_request("the body is not JSON") };
    let unknown = unknown_fields(&body);
    let mut answer = evict(cluster, request, &body);
    if !unknown.is_empty() {
        let text: Vec<String> = unknown.iter().map(|f| format!("unknown field \\\"{f}\\\"")).collect();
        answer = answer.header("Warning", &format!("299 - \"{}\"", text.join(", ")));
    }
    answer
}

fn unknown_fields(body: &Value) -> Vec<String> {
    let mut all = Vec::new();
    let mut look = |value: Option<&Value>, prefix: &str, known: &[&str]| {
        for key in value
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(serde_json::Map::keys)
            .filter(|k| !known.contains(&k.as_str()))
        {
            all.push(format!("{prefix}{key}"));
        }
    };
    look(Some(body), "", &["apiVersion", "kind", "metadata", "deleteOptions"]);
    let options = [
        "apiVersion",
        "kind",
        "gracePeriodSeconds",
        "preconditions",
        "orphanDependents",
        "propagationPolicy",
        "dryRun",
        "ignoreStoreReadErrorWithClusterBreakingPotential",
    ];
    look(body.get("deleteOptions"), "deleteOptions.", &options);
    look(body.pointer("/deleteOptions/preconditions"), "deleteOptions.preconditions.", &["uid", "resourceVersion"]);
    all
}

fn evict(cluster: &mut Cluster, request: &Request, body: &Value) -> Answer {
    if body.name() != request.name {
        return bad_request("name in URL does not match name in Eviction object");
    }
    let options = body.get("deleteOptions").cloned().unwrap_or(Value::Null);
    let in_body = options.list("/dryRun").iter().any(|v| v == "All");
    let in_query = request.dry_query();
    let asked: Vec<&str> = options.list("/dryRun").iter().filter_map(Value::as_str).collect();
    if in_query && !asked.is_empty() && asked != ["All"] {
        let message = format!("Non-matching dry-run options in request and content: [All] and [{}]", asked.join(" "));
        return failure(500, "", &message, Value::Null);
    }
    let dry_run = in_body || in_query;
    if cluster.get(Kind::Namespace, "", &request.ns).is_some_and(|n| n.deleting()) {
        return terminating(Kind::Pod, &request.name, &request.ns);
    }
    match webhook::review(cluster, &request.ns, &request.name, in_query, in_body) {
        Verdict::Allow => {}
        Verdict::Refuse(answer) => return answer,
    }
    let key = Key::new(Kind::Pod, &request.ns, &request.name);
    let Some(pod) = cluster.store.get(&key) else { return not_found(Kind::Pod, &request.name) };
    let free = matches!(pod.text("/status/phase"), "Succeeded" | "Failed" | "Pending") || pod.deleting();
    if !free && let Some(refusal) = budgets(cluster, &pod, dry_run) {
        return refusal;
    }
    if let Some(refusal) = preconditions("Pod", &request.name, &pod, &options) {
        return refusal;
    }
    if dry_run {
        return success(201);
    }
    let now = cluster.now();
    cluster.update(&key, |p| {
        p.set_condition(
            json!({"type": "DisruptionTarget", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
            "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}),
        );
    });
    cluster.delete(&key, options.int("/gracePeriodSeconds"));
    hotplug::pulled(cluster, &pod);
    success(201)
}

/// Checks and spends a disruption.
fn budgets(cluster: &mut Cluster, pod: &Value, dry_run: bool) -> Option<Answer> {
    let matching: Vec<Arc<Value>> = disruption::budgets_of(cluster, pod);
    if matching.len() > 1 {
        let text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Some(failure(500, "", text, Value::Null));
    }
    let budget = matching.first()?;
    let status = |field: &str| budget.int(&format!("/status/{field}")).unwrap_or(0);
    if !pod.is_true("Ready") {
        let (current, desired) = (status("currentHealthy"), status("desiredHealthy"));
        if budget.text("/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow" || current >= desired && desired > 0 {
            return None;
        }
    }
    let name = budget.name();
    if status("observedGeneration") < budget.int("/metadata/generation").unwrap_or(1) {
        return Some(refuse(&format!("The disruption budget {name} is still being processed by the server."), 10));
    }
    let allowed = status("disruptionsAllowed");
    if allowed < 0 {
        return Some(negative(name, "pdb disruptions allowed is negative"));
    }
    if budget.pointer("/status/disruptedPods").and_then(Value::as_object).is_some_and(|m| m.len() > 2000) {
        return Some(negative(name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller"));
    }
    if allowed == 0 {
        return Some(refuse(&why(budget), 0));
    }
    if !dry_run {
        let now = cluster.now();
        let pod_name = pod.name().to_owned();
        cluster.update(&Key::new(Kind::Pdb, budget.namespace(), name), |b| {
            b.put("/status/disruptionsAllowed", allowed - 1);
            b.put(&format!("/status/disruptedPods/{pod_name}"), now.as_str());
            if allowed == 1 {
                disruption::set_condition(b, &now);
            }
        });
    }
    None
}

fn why(budget: &Value) -> String {
    let name = budget.name();
    let status = |field: &str| budget.int(&format!("/status/{field}")).unwrap_or(0);
    let (current, desired) = (status("currentHealthy"), status("desiredHealthy"));
    let condition = budget.condition("DisruptionAllowed").filter(|c| c.text("/status") == "False");
    if current <= desired {
        return format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently");
    }
    let base = format!("The disruption budget {name} does not allow evicting pods currently");
    match condition {
        Some(c) if c.text("/reason") == "SyncFailed" => {
            format!("{base} because it failed sync: {}", c.text("/message"))
        }
        Some(c) if !c.text("/message").is_empty() => format!("{base} ({}): {}", c.text("/reason"), c.text("/message")),
        _ => base,
    }
}

fn refuse(cause: &str, retry_after: u64) -> Answer {
    let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": cause}]});
    if retry_after > 0 {
        details.put("/retryAfterSeconds", retry_after);
    }
    let answer = failure(429, "TooManyRequests", VIOLATES, details);
    if retry_after > 0 { answer.header("Retry-After", &retry_after.to_string()) } else { answer }
}

fn negative(name: &str, why: &str) -> Answer {
    let mut answer = forbidden(Kind::Pdb, name, why);
    if let super::answer::Content::Json(body) = &mut answer.content {
        let message = format!("poddisruptionbudget.policy \"{name}\" is forbidden: {why}");
        body.put("/message", message);
        body.put("/details/kind", "poddisruptionbudget");
    }
    answer
}
