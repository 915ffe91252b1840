//! Nodes.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// Name under which our writes are recorded.
pub const FIELD_MANAGER: &str = "kubectl-safe-drain";

/// A taint of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value; empty where unset.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// Condition `Ready` of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeReady {
    /// `True`.
    Yes,
    /// `False` or `Unknown`, since when, in the kubelet's or the controller's words.
    No {
        /// Start of it.
        since: Option<Timestamp>,
        /// Reason.
        reason: String,
    },
    /// No such condition.
    Missing,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFacts {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// resourceVersion, for an optimistic cordon.
    pub resource_version: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Field manager that set `spec.unschedulable`, where the API tells.
    pub cordoned_by: Option<String>,
    /// Condition `Ready`.
    pub ready: NodeReady,
    /// virt-handler's last heartbeat (annotation `kubevirt.io/heartbeat`).
    pub heartbeat: Option<Timestamp>,
    /// Extended resources that it offers, in units.
    pub devices: BTreeMap<String, u64>,
}
