//! Lists (selectors, pages), gets, and what opens a watch.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::answer::{Answer, Content, bad_request, expired, invalid, not_found};
use super::route::Request;
use super::watch::WatchSpec;
use crate::cluster::Cluster;
use crate::json::Json;
use crate::kinds::Kind;
use crate::selector::{Fields, Labels};

/// Answers a GET of one object.
pub(super) fn get(cluster: &Cluster, request: &Request, kind: Kind) -> Answer {
    match cluster.get(kind, &request.ns, &request.name) {
        Some(object) => Answer::json(200, Value::clone(&object)),
        None => not_found(kind, &request.name),
    }
}

fn unable(kind: Kind, what: &str) -> Answer {
    // The real server's text, with its own kind of quoting.
    let message = if what.starts_with("field label") {
        what.to_owned()
    } else {
        format!("Unable to find \"{}\" that match label selector \"\", field selector \"\": {what}", kind.api_version())
    };
    bad_request(&message)
}

/// Answers a list or opens a watch.
pub(super) fn list(cluster: &Cluster, request: &Request, kind: Kind) -> Answer {
    let labels = match Labels::parse(request.param("labelSelector")) {
        Ok(l) => l,
        Err(e) => return bad_request(&e),
    };
    let fields = match Fields::parse(kind, request.param("fieldSelector")) {
        Ok(f) => f,
        Err(e) => return unable(kind, &e),
    };
    if request.is_watch() {
        return watch(cluster, request, kind, labels, fields);
    }
    let rv = request.param("resourceVersion");
    let limit: usize = if rv == "0" { 0 } else { request.param("limit").parse().unwrap_or(0) };
    let token = request.param("continue");
    let (list_rv, after) = if token.is_empty() {
        (cluster.store.rv(), None)
    } else {
        let mut parts = token.splitn(3, '|');
        let (Some(rv), Some(ns), Some(name)) =
            (parts.next().and_then(|p| p.parse::<u64>().ok()), parts.next(), parts.next())
        else {
            return bad_request("continue key is not valid: unexpected token");
        };
        if cluster.store.since(kind, rv).is_none() {
            let text = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.";
            return Answer::json(410, expired(text));
        }
        (rv, Some((ns.to_owned(), name.to_owned())))
    };
    let mut fitting = cluster.store.iter(kind, &request.ns).filter(|o| {
        after.as_ref().is_none_or(|(ns, name)| (o.namespace(), o.name()) > (ns.as_str(), name.as_str()))
            && labels.matches(o)
            && fields.matches(o)
    });
    let mut items: Vec<Arc<Value>> = Vec::new();
    let mut more = 0_usize;
    if limit == 0 {
        items.extend(fitting.cloned());
    } else {
        items.extend(fitting.by_ref().take(limit).cloned());
        more = fitting.count();
    }
    let mut metadata = json!({"resourceVersion": list_rv.to_string()});
    if kind.is_custom() {
        metadata.put("/continue", "");
    }
    if let (true, Some(last)) = (more > 0, items.last()) {
        metadata.put("/continue", format!("{list_rv}|{}|{}", last.namespace(), last.name()));
        if labels == Labels::default() && fields.is_empty() {
            metadata.put("/remainingItemCount", more);
        }
    }
    let items: Vec<Value> = items.iter().map(|o| item(kind, o)).collect();
    Answer::json(
        200,
        json!({"kind": format!("{}List", kind.info().kind), "apiVersion": kind.api_version(), "metadata": metadata, "items": items}),
    )
}

/// Built-in resources leave kind and version out of list items.
fn item(kind: Kind, object: &Value) -> Value {
    let mut object = object.clone();
    if !kind.is_custom()
        && let Some(map) = object.as_object_mut()
    {
        map.remove("kind");
        map.remove("apiVersion");
    }
    object
}

fn watch(cluster: &Cluster, request: &Request, kind: Kind, labels: Labels, fields: Fields) -> Answer {
    let rv = request.param("resourceVersion");
    let wants_initial = matches!(request.param("sendInitialEvents"), "true" | "1");
    if !request.param("sendInitialEvents").is_empty() && !cluster.opts.streaming_lists {
        return invalid(
            kind,
            "",
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
        );
    }
    let from_start = wants_initial || rv.is_empty() || rv == "0";
    let timeout = request.param("timeoutSeconds").parse().unwrap_or(2400);
    let mut spec = WatchSpec {
        kind,
        ns: request.ns.clone(),
        name: String::new(),
        labels,
        fields,
        rv: if from_start { cluster.store.rv() } else { rv.parse().unwrap_or(0) },
        initial: Vec::new(),
        initial_end: wants_initial,
        bookmarks: matches!(request.param("allowWatchBookmarks"), "true" | "1"),
        timeout: Duration::from_secs(timeout),
    };
    if from_start {
        spec.initial = cluster
            .store
            .iter(kind, &spec.ns)
            .filter(|o| spec.labels.matches(o) && spec.fields.matches(o))
            .cloned()
            .collect();
    }
    Answer { status: 200, headers: Vec::new(), content: Content::Watch(Box::new(spec)), after: Duration::ZERO }
}
