//! Denials: what an access review answers and what requests are refused with.

use serde_json::Value;

use super::answer::{Answer, failure};
use super::route::Request;
use crate::cluster::Cluster;
use crate::json::Json;

/// Where a rule holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// Everywhere.
    Anywhere,
    /// For requests over all namespaces only: per namespace it is allowed.
    ClusterWide,
    /// In one namespace, hence also over all of them.
    Namespace(String),
}

/// Something that the user may not do. "*" fits all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Verb: get, list, watch, create, update, patch, delete.
    pub verb: String,
    /// API group.
    pub group: String,
    /// Resource (plural).
    pub resource: String,
    /// Subresource, "" for the resource itself.
    pub subresource: String,
    /// Where.
    pub place: Place,
}

impl Rule {
    /// Denies a verb on `resource` or `resource/subresource`, everywhere.
    pub fn new(verb: &str, group: &str, resource: &str) -> Self {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        Self {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            place: Place::Anywhere,
        }
    }

    /// Restricts it to one namespace.
    #[must_use]
    pub fn in_namespace(self, ns: &str) -> Self {
        Self { place: Place::Namespace(ns.to_owned()), ..self }
    }

    /// Restricts it to requests over all namespaces.
    #[must_use]
    pub fn cluster_wide(self) -> Self {
        Self { place: Place::ClusterWide, ..self }
    }

    fn covers(&self, verb: &str, group: &str, resource: &str, subresource: &str, ns: &str) -> bool {
        let fits = |mine: &str, theirs: &str| mine == "*" || mine == theirs;
        fits(&self.verb, verb)
            && fits(&self.group, group)
            && fits(&self.resource, resource)
            && fits(&self.subresource, subresource)
            && match &self.place {
                Place::Anywhere => true,
                Place::ClusterWide => ns.is_empty(),
                Place::Namespace(n) => ns.is_empty() || n == ns,
            }
    }
}

/// The refusal of a request, if a rule covers it.
pub fn check(cluster: &Cluster, request: &Request) -> Option<Answer> {
    let verb = request.verb();
    let (group, resource) = (&request.group, &request.resource);
    // Of a longer path the API server (and virt-api) takes the first part: `evacuate/cancel` is allowed as `evacuate`.
    let sub = request.subresource.split('/').next().unwrap_or_default();
    if resource.is_empty() || !cluster.rules.iter().any(|r| r.covers(verb, group, resource, sub, &request.ns)) {
        return None;
    }
    let full = if sub.is_empty() { resource.clone() } else { format!("{resource}/{sub}") };
    let place = if request.ns.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace \"{}\"", request.ns)
    };
    let why =
        format!("User \"{}\" cannot {verb} resource \"{full}\" in API group \"{group}\" {place}", cluster.opts.user);
    let qualified = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
    let mut details = serde_json::json!({"kind": resource});
    let subject = if request.name.is_empty() { qualified } else { format!("{qualified} \"{}\"", request.name) };
    if !request.name.is_empty() {
        details.put("/name", request.name.as_str());
    }
    if !group.is_empty() {
        details.put("/group", group.as_str());
    }
    Some(failure(403, "Forbidden", &format!("{subject} is forbidden: {why}"), details))
}

/// Answers a SelfSubjectAccessReview.
pub fn review(cluster: &Cluster, body: &Value) -> Answer {
    let a = |field: &str| body.text(&format!("/spec/resourceAttributes/{field}"));
    let denied =
        cluster.rules.iter().any(|r| r.covers(a("verb"), a("group"), a("resource"), a("subresource"), a("namespace")));
    let mut answer = body.clone();
    answer.put("/kind", "SelfSubjectAccessReview");
    answer.put("/apiVersion", "authorization.k8s.io/v1");
    if !answer.has("/metadata") {
        answer.put("/metadata", serde_json::json!({}));
    }
    answer.put("/status", serde_json::json!({"allowed": !denied}));
    Answer::json(201, answer)
}
