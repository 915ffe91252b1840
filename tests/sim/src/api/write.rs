//! Create, replace, patch and delete.

use serde_json::{Value, json};

use super::answer::{Answer, bad_request, conflict, failure, forbidden, invalid, modified, not_found};
use super::patch;
use super::route::Request;
use super::webhook::{self, Verdict};
use crate::cluster::Cluster;
use crate::controllers::hotplug;
use crate::json::Json;
use crate::kinds::{Key, Kind};

fn wants_dry_run(request: &Request) -> bool {
    request.dry_query() || request.body.as_ref().is_some_and(|b| b.list("/dryRun").iter().any(|v| v == "All"))
}

/// Answers a POST to a collection.
pub(super) fn create(cluster: &mut Cluster, request: &Request, kind: Kind) -> Answer {
    let Some(mut body) = request.body.clone() else { return bad_request("the body is not JSON") };
    if kind.info().namespaced {
        let Some(ns) = cluster.get(Kind::Namespace, "", &request.ns) else {
            return not_found(Kind::Namespace, &request.ns);
        };
        if ns.deleting() {
            return terminating(kind, body.name(), &request.ns);
        }
        body.put("/metadata/namespace", request.ns.as_str());
    }
    if !body.name().is_empty() && cluster.get(kind, &request.ns, body.name()).is_some() {
        let message = format!("{} \"{}\" already exists", kind.qualified(), body.name());
        return failure(409, "AlreadyExists", &message, json!({"name": body.name(), "kind": kind.info().plural}));
    }
    if kind == Kind::Vmim
        && let Verdict::Refuse(answer) = webhook::migration(cluster, &request.ns, body.text("/spec/vmiName"))
    {
        return answer;
    }
    if wants_dry_run(request) {
        return Answer::json(201, body);
    }
    Answer::json(201, Value::clone(&cluster.create(kind, body)))
}

/// 403 of a namespace that is going.
pub(super) fn terminating(kind: Kind, name: &str, ns: &str) -> Answer {
    let mut answer = forbidden(
        kind,
        name,
        &format!("unable to create new content in namespace {ns} because it is being terminated"),
    );
    if let super::answer::Content::Json(body) = &mut answer.content {
        let cause = json!({"reason": "NamespaceTerminating", "message": format!("namespace {ns} is being terminated"), "field": "metadata.namespace"});
        body.put("/details/causes", json!([cause]));
    }
    answer
}

/// Answers a PUT.
pub(super) fn replace(cluster: &mut Cluster, request: &Request, kind: Kind) -> Answer {
    let Some(old) = cluster.get(kind, &request.ns, &request.name) else { return not_found(kind, &request.name) };
    let Some(new) = request.body.clone() else { return bad_request("the body is not JSON") };
    store(cluster, request, kind, &old, new)
}

/// Answers a PATCH.
pub(super) fn patch(cluster: &mut Cluster, request: &Request, kind: Kind) -> Answer {
    let Some(old) = cluster.get(kind, &request.ns, &request.name) else { return not_found(kind, &request.name) };
    let Some(body) = request.body.as_ref() else { return bad_request("the body is not JSON") };
    let mut new = Value::clone(&old);
    let media = request.content_type.split(';').next().unwrap_or("");
    match media {
        "application/merge-patch+json" => patch::merge(&mut new, body),
        "application/strategic-merge-patch+json" if kind.is_custom() => return unsupported(),
        "application/strategic-merge-patch+json" => patch::strategic(&mut new, body),
        "application/json-patch+json" => {
            if patch::json_patch(&mut new, body).is_err() {
                return failure(
                    422,
                    "Invalid",
                    "the server rejected our request due to an error in our request",
                    json!({}),
                );
            }
        }
        _ => return unsupported(),
    }
    store(cluster, request, kind, &old, new)
}

fn unsupported() -> Answer {
    let text = "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json";
    failure(415, "UnsupportedMediaType", text, Value::Null)
}

fn store(cluster: &mut Cluster, request: &Request, kind: Kind, old: &Value, mut new: Value) -> Answer {
    let rv = new.text("/metadata/resourceVersion");
    if !rv.is_empty() && rv != old.text("/metadata/resourceVersion") {
        return modified(kind, &request.name);
    }
    if !new.uid().is_empty() && new.uid() != old.uid() {
        let why = format!("Precondition failed: UID in precondition: {}, UID in object meta: {}", new.uid(), old.uid());
        return conflict(kind, &request.name, &why);
    }
    for field in [
        "uid",
        "creationTimestamp",
        "name",
        "namespace",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ] {
        let path = format!("/metadata/{field}");
        match old.pointer(&path) {
            Some(v) => new.put(&path, v.clone()),
            None => new.cut(&path),
        }
    }
    if kind == Kind::Vmi {
        if new.get("spec") != old.get("spec") {
            return invalid(kind, &request.name, "update of VMI object is restricted");
        }
        new.put("/status", old.get("status").cloned().unwrap_or(Value::Null));
    }
    if kind == Kind::Node {
        manage(cluster, request, old, &mut new);
    }
    if request.dry_query() {
        return Answer::json(200, new);
    }
    let key = Key::new(kind, &request.ns, &request.name);
    match cluster.update(&key, |o| *o = new) {
        Some(object) => Answer::json(200, Value::clone(&object)),
        None => not_found(kind, &request.name),
    }
}

/// Field ownership of a node's spec.unschedulable: who changed it last owns it.
fn manage(cluster: &Cluster, request: &Request, old: &Value, new: &mut Value) {
    let path = "/spec/unschedulable";
    if new.pointer(path).is_none_or(|v| v == false) {
        new.cut(path);
    }
    if old.flag(path) == new.flag(path) {
        return;
    }
    let manager = match request.param("fieldManager") {
        "" => request.user_agent.split('/').next().unwrap_or("unknown").to_owned(),
        m => m.to_owned(),
    };
    let mut entries: Vec<Value> = new.list("/metadata/managedFields").to_vec();
    for e in &mut entries {
        e.cut("/fieldsV1/f:spec/f:unschedulable");
        if e.pointer("/fieldsV1/f:spec").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
            e.cut("/fieldsV1/f:spec");
        }
    }
    entries.retain(|e| e.pointer("/fieldsV1").and_then(Value::as_object).is_some_and(|m| !m.is_empty()));
    if new.flag(path) {
        entries.push(json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": cluster.now(),
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}));
    }
    new.put("/metadata/managedFields", entries);
}

/// Answers a DELETE.
pub(super) fn delete(cluster: &mut Cluster, request: &Request, kind: Kind) -> Answer {
    let Some(old) = cluster.get(kind, &request.ns, &request.name) else { return not_found(kind, &request.name) };
    let body = request.body.clone().unwrap_or(Value::Null);
    if let Some(refusal) = preconditions(kind.info().kind, &request.name, &old, &body) {
        return refusal;
    }
    if wants_dry_run(request) {
        return Answer::json(200, Value::clone(&old));
    }
    let grace = body.int("/gracePeriodSeconds").or_else(|| request.param("gracePeriodSeconds").parse().ok());
    let key = Key::new(kind, &request.ns, &request.name);
    let deleted = cluster.delete(&key, grace);
    if kind == Kind::Pod {
        hotplug::pulled(cluster, &old);
    }
    match deleted {
        Some(object) if kind == Kind::Pod || kind.is_custom() && old.deleting() => {
            Answer::json(200, Value::clone(&object))
        }
        Some(object) if cluster.store.get(&key).is_some() => Answer::json(200, Value::clone(&object)),
        _ => Answer::json(
            200,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": {"name": request.name, "group": kind.info().group, "kind": kind.info().plural, "uid": old.uid()}}),
        ),
    }
}

/// 409 when the options' preconditions do not hold.
pub(super) fn preconditions(kind: &str, name: &str, object: &Value, options: &Value) -> Option<Answer> {
    let check = |field: &str, label: &str, actual: &str, tail: &str| {
        let wanted = options.text(&format!("/preconditions/{field}"));
        (!wanted.is_empty() && wanted != actual).then(|| {
            let message = format!(
                "Operation cannot be fulfilled on {kind} \"{name}\": the {label} in the precondition ({wanted}) does not match the {label} in record ({actual}). The object might have been {tail}"
            );
            failure(409, "Conflict", &message, json!({"name": name, "kind": kind}))
        })
    };
    check("uid", "UID", object.uid(), "deleted and then recreated")
        .or_else(|| check("resourceVersion", "ResourceVersion", object.text("/metadata/resourceVersion"), "modified"))
}
