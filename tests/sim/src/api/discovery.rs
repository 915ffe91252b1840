//! Version and discovery. Aggregated discovery is not served: clients that ask for it get the plain lists, as from an old server.

use serde_json::{Value, json};

use super::answer::{Answer, no_such_path};
use super::route::Request;
use crate::cluster::Cluster;
use crate::json::Json;
use crate::kinds::{Kind, TABLE};
use crate::options::{Profile, VirtApi};

const CORE: &str = include_str!("../../../fixtures/recordings/http/discovery-core-v1.json");
const KUBEVIRT: &str = include_str!("../../../fixtures/recordings/http/discovery-kubevirt-v1.json");
const SUBRESOURCES: &str = include_str!("../../../fixtures/recordings/http/discovery-subresources-v1.json");

/// Whether the cluster has this resource.
pub(super) fn installed(cluster: &Cluster, kind: Kind) -> bool {
    match kind.info().group {
        "kubevirt.io" => cluster.opts.kubevirt.is_some(),
        "cdi.kubevirt.io" => cluster.opts.cdi,
        _ => true,
    }
}

fn groups(cluster: &Cluster) -> Vec<(&'static str, &'static str)> {
    let mut all: Vec<(&str, &str)> = Vec::new();
    for info in TABLE.iter().filter(|i| !i.group.is_empty() && installed(cluster, i.id)) {
        if !all.iter().any(|(g, _)| *g == info.group) {
            all.push((info.group, info.version));
        }
    }
    all.push(("authorization.k8s.io", "v1"));
    if cluster.opts.kubevirt.is_some() {
        all.push(("subresources.kubevirt.io", "v1"));
    }
    all
}

/// Answers what is not about a resource.
pub(super) fn answer(cluster: &Cluster, request: &Request) -> Answer {
    if request.method != "GET" {
        return no_such_path();
    }
    match request.path.trim_end_matches('/') {
        "/version" => Answer::json(200, version()),
        "/healthz" | "/readyz" | "/livez" => Answer::text(200, "ok"),
        "/api" => Answer::json(
            200,
            json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]}),
        ),
        "/apis" => {
            let list: Vec<Value> = groups(cluster).into_iter().map(|(g, v)| group(g, v)).collect();
            Answer::json(200, json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": list}))
        }
        "/api/v1" => Answer::json(200, recorded(CORE)),
        path => one(cluster, path),
    }
}

fn one(cluster: &Cluster, path: &str) -> Answer {
    let mut steps = path.trim_start_matches("/apis/").split('/');
    let (Some(name), version) = (steps.next(), steps.next()) else { return no_such_path() };
    let Some((_, served)) = groups(cluster).into_iter().find(|(g, _)| *g == name) else { return no_such_path() };
    match version {
        None => {
            let mut g = group(name, served);
            g.put("/kind", "APIGroup");
            g.put("/apiVersion", "v1");
            Answer::json(200, g)
        }
        Some(v) if v != served || steps.next().is_some() => no_such_path(),
        Some(_) if name == "kubevirt.io" => Answer::json(200, recorded(KUBEVIRT)),
        Some(_) if name == "subresources.kubevirt.io" => subresources(cluster),
        Some(_) => Answer::json(200, from_table(name, served)),
    }
}

fn version() -> Value {
    json!({"major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": "v1.36.2", "gitCommit": "0000000000000000000000000000000000000000", "gitTreeState": "clean",
        "buildDate": "2026-06-09T00:00:00Z", "goVersion": "go1.26.0", "compiler": "gc", "platform": "linux/amd64"})
}

fn group(name: &str, version: &str) -> Value {
    let v = json!({"groupVersion": format!("{name}/{version}"), "version": version});
    json!({"name": name, "versions": [v], "preferredVersion": v})
}

/// A recorded list, without the resources that the simulator does not hold.
fn recorded(text: &str) -> Value {
    let exchange: Value = serde_json::from_str(text).expect("a recorded exchange");
    let mut body = exchange["response"]["body"].clone();
    let group = body.text("/groupVersion").split_once('/').map_or("", |(g, _)| g).to_owned();
    if let Some(list) = body["resources"].as_array_mut() {
        list.retain(|r| {
            let name = r.text("/name");
            let (base, sub) = name.split_once('/').unwrap_or((name, ""));
            TABLE.iter().any(|i| i.group == group && i.plural == base) && matches!(sub, "" | "status" | "eviction")
        });
    }
    body
}

fn subresources(cluster: &Cluster) -> Answer {
    if cluster.virt_api() != VirtApi::Up {
        return super::subresource::down(cluster);
    }
    let exchange: Value = serde_json::from_str(SUBRESOURCES).expect("a recorded exchange");
    let mut body = exchange["response"]["body"].clone();
    if cluster.opts.profile() < Profile::V1_7
        && let Some(list) = body["resources"].as_array_mut()
    {
        list.retain(|r| !r.text("/name").ends_with("evacuate/cancel"));
    }
    Answer::json(200, body)
}

fn from_table(group: &str, version: &str) -> Value {
    let verbs = json!(["create", "delete", "get", "list", "patch", "update", "watch"]);
    let mut list = Vec::new();
    for i in TABLE.iter().filter(|i| i.group == group && i.version == version) {
        list.push(json!({"name": i.plural, "singularName": i.singular, "namespaced": i.namespaced, "kind": i.kind, "verbs": verbs, "shortNames": i.short}));
        list.push(json!({"name": format!("{}/status", i.plural), "singularName": "", "namespaced": i.namespaced, "kind": i.kind, "verbs": ["get", "patch", "update"]}));
    }
    if group == "authorization.k8s.io" {
        list.push(json!({"name": "selfsubjectaccessreviews", "singularName": "selfsubjectaccessreview", "namespaced": false, "kind": "SelfSubjectAccessReview", "verbs": ["create"]}));
    }
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{group}/{version}"), "resources": list})
}
