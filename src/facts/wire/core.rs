//! Nodes, volumes and disruption budgets.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::core::ObjectMeta;
use serde::Deserialize;

use super::lenient::{Condition, int_or_percent, or_default};
use super::meta::{metadata, node_metadata};
use super::quantity::Devices;
use crate::facts::IntOrPercent;

/// A node (`v1`). Its metadata keeps, as the only entry of `managedFields`, the manager that owns `spec.unschedulable`.
#[derive(Debug, Clone, Deserialize)]
pub struct Node {
    #[serde(deserialize_with = "node_metadata")]
    pub(in crate::facts) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::facts) spec: NodeSpec,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::facts) status: NodeStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::facts) struct NodeSpec {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) unschedulable: bool,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) taints: Vec<TaintWire>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::facts) struct TaintWire {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) key: String,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) value: String,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) effect: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::facts) struct NodeStatus {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) conditions: Vec<Condition>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) allocatable: Devices,
}

/// Terms of which any must match.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct NodeSelector {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) node_selector_terms: Vec<NodeSelectorTerm>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct NodeSelectorTerm {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) match_expressions: Vec<Requirement>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) match_fields: Vec<Requirement>,
}

/// One expression of a selector.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::facts) struct Requirement {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) key: String,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) operator: String,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) values: Vec<String>,
}

/// A PersistentVolumeClaim (`v1`).
#[derive(Debug, Clone, Deserialize)]
pub struct PersistentVolumeClaim {
    #[serde(deserialize_with = "metadata")]
    pub(in crate::facts) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    spec: ClaimSpec,
}

impl PersistentVolumeClaim {
    /// Name of the PersistentVolume that it is bound to.
    pub fn volume_name(&self) -> Option<&str> {
        self.spec.volume_name.as_deref().filter(|name| !name.is_empty())
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClaimSpec {
    volume_name: Option<String>,
}

/// A PersistentVolume (`v1`).
#[derive(Debug, Clone, Deserialize)]
pub struct PersistentVolume {
    #[serde(deserialize_with = "metadata")]
    pub(in crate::facts) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::facts) spec: VolumeSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct VolumeSpec {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) node_affinity: VolumeNodeAffinity,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::facts) struct VolumeNodeAffinity {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) required: NodeSelector,
}

/// A PodDisruptionBudget (`policy/v1`).
#[derive(Debug, Clone, Deserialize)]
pub struct PodDisruptionBudget {
    #[serde(deserialize_with = "metadata")]
    pub(in crate::facts) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::facts) spec: BudgetSpec,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::facts) status: BudgetStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct BudgetSpec {
    #[serde(deserialize_with = "int_or_percent")]
    pub(in crate::facts) min_available: Option<IntOrPercent>,
    #[serde(deserialize_with = "int_or_percent")]
    pub(in crate::facts) max_unavailable: Option<IntOrPercent>,
    pub(in crate::facts) selector: Option<SelectorWire>,
    pub(in crate::facts) unhealthy_pod_eviction_policy: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct SelectorWire {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) match_labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) match_expressions: Vec<Requirement>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct BudgetStatus {
    pub(in crate::facts) observed_generation: Option<i64>,
    pub(in crate::facts) disruptions_allowed: Option<i64>,
    pub(in crate::facts) current_healthy: Option<i64>,
    pub(in crate::facts) desired_healthy: Option<i64>,
    pub(in crate::facts) expected_pods: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) disrupted_pods: BTreeMap<String, Option<Timestamp>>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) conditions: Vec<Condition>,
}
