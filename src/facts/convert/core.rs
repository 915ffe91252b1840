//! Nodes, volumes and disruption budgets.

use super::{annotation, controller, key, non_empty, terms, uid};
use crate::facts::wire::{self, Requirement, SelectorWire};
use crate::facts::{
    BudgetFacts, ClaimFacts, LabelSelector, NodeExpression, NodeFacts, NodeReady, Taint, UnhealthyPolicy,
};

impl From<Requirement> for NodeExpression {
    fn from(wire: Requirement) -> Self {
        Self { key: wire.key, operator: wire.operator, values: wire.values }
    }
}

impl From<SelectorWire> for LabelSelector {
    fn from(wire: SelectorWire) -> Self {
        Self {
            match_labels: wire.match_labels,
            expressions: wire.match_expressions.into_iter().map(|e| (e.key, e.operator, e.values)).collect(),
        }
    }
}

impl From<wire::Node> for NodeFacts {
    fn from(node: wire::Node) -> Self {
        let wire::Node { metadata: mut meta, spec, status } = node;
        let manager = meta.managed_fields.take().and_then(|entries| entries.into_iter().next()?.manager);
        Self {
            resource_version: meta.resource_version.take().unwrap_or_default(),
            labels: meta.labels.take().unwrap_or_default(),
            taints: spec.taints.into_iter().map(|t| Taint { key: t.key, value: t.value, effect: t.effect }).collect(),
            unschedulable: spec.unschedulable,
            // The field is owned on after an uncordon that set it to false.
            cordoned_by: manager.filter(|_| spec.unschedulable),
            ready: match wire::condition(&status.conditions, "Ready") {
                Some(c) if c.is_true() => NodeReady::Yes,
                Some(c) => NodeReady::No { since: c.last_transition_time, reason: c.reason.clone() },
                None => NodeReady::Missing,
            },
            heartbeat: annotation(&meta, wire::HEARTBEAT).and_then(|text| text.parse().ok()),
            devices: status.allocatable.0,
            uid: uid(&mut meta),
            name: key(&mut meta).name,
        }
    }
}

impl ClaimFacts {
    /// Facts of a claim and of the volume that it is bound to. Without a volume nothing ties it to a node.
    pub fn new(claim: wire::PersistentVolumeClaim, volume: Option<wire::PersistentVolume>) -> Self {
        let mut meta = claim.metadata;
        Self {
            key: key(&mut meta),
            volume_terms: volume.map(|v| terms(v.spec.node_affinity.required)).unwrap_or_default(),
        }
    }
}

impl From<wire::PodDisruptionBudget> for BudgetFacts {
    /// `observed` is the API server's own rule (Kubernetes `registry/core/pod/storage/eviction.go`: a budget whose
    /// `observedGeneration` is behind is "still being processed"). The API fills the counts of a status that nobody wrote
    /// with 0: without `observedGeneration` and conditions they are unknown.
    fn from(budget: wire::PodDisruptionBudget) -> Self {
        let wire::PodDisruptionBudget { metadata: mut meta, spec, status } = budget;
        let observed_generation = status.observed_generation.unwrap_or(0);
        let written = observed_generation > 0 || !status.conditions.is_empty();
        let count = |value: Option<i64>| written.then(|| value.unwrap_or(0));
        Self {
            owner: controller(&mut meta),
            selector: spec.selector.map(LabelSelector::from),
            min_available: spec.min_available,
            max_unavailable: spec.max_unavailable,
            unhealthy: match spec.unhealthy_pod_eviction_policy.as_deref() {
                Some("AlwaysAllow") => UnhealthyPolicy::AlwaysAllow,
                _ => UnhealthyPolicy::IfHealthyBudget,
            },
            observed: written && observed_generation >= meta.generation.unwrap_or(0),
            allowed: count(status.disruptions_allowed),
            healthy: count(status.current_healthy),
            desired: count(status.desired_healthy),
            expected: count(status.expected_pods),
            disrupted: status.disrupted_pods.into_keys().collect(),
            sync_failed: wire::condition(&status.conditions, "DisruptionAllowed")
                .filter(|c| c.is_false_because("SyncFailed"))
                .map(|c| non_empty(Some(c.message.clone())).unwrap_or_else(|| c.reason.clone())),
            uid: uid(&mut meta),
            key: key(&mut meta),
        }
    }
}
