//! API objects into facts: `PodFacts::from(pod)` and so on. Total: every object that could be parsed has facts.

mod core;
mod kubevirt;
mod pod;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::core::ObjectMeta;

use super::wire::NodeSelector;
use super::{Key, NodeExpression, NodeTerm, Owner};

/// Namespace and name, moved out of the metadata.
fn key(meta: &mut ObjectMeta) -> Key {
    Key { namespace: meta.namespace.take().unwrap_or_default(), name: meta.name.take().unwrap_or_default() }
}

/// The UID; the wire types accept no object without one.
fn uid(meta: &mut ObjectMeta) -> String {
    meta.uid.take().unwrap_or_default()
}

/// The owner reference with `controller: true`; the API allows one at most.
fn controller(meta: &mut ObjectMeta) -> Option<Owner> {
    let reference = meta.owner_references.take()?.into_iter().find(|o| o.controller == Some(true))?;
    let OwnerReference { api_version, kind, name, uid, .. } = reference;
    Some(Owner { api_version, kind, name, uid })
}

fn annotation(meta: &ObjectMeta, name: &str) -> Option<String> {
    non_empty(meta.annotations.as_ref()?.get(name).cloned())
}

fn timestamp(time: Option<&Time>) -> Option<jiff::Timestamp> {
    time.map(|t| t.0)
}

/// Go leaves a field empty where it means "not set".
fn non_empty(text: Option<String>) -> Option<String> {
    text.filter(|t| !t.is_empty())
}

fn terms(selector: NodeSelector) -> Vec<NodeTerm> {
    let expressions = |list: Vec<_>| list.into_iter().map(NodeExpression::from).collect();
    selector
        .node_selector_terms
        .into_iter()
        .map(|t| NodeTerm { labels: expressions(t.match_expressions), fields: expressions(t.match_fields) })
        .collect()
}

#[cfg(test)]
pub(super) mod tests;
