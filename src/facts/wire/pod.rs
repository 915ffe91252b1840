//! Pods.

use std::collections::BTreeMap;

use kube::core::ObjectMeta;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::core::NodeSelector;
use super::lenient::{Condition, or_default};
use super::meta::metadata;
use super::quantity::Devices;

/// A pod (`v1`).
#[derive(Debug, Clone, Deserialize)]
pub struct Pod {
    #[serde(deserialize_with = "metadata")]
    pub(in crate::facts) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::facts) spec: PodSpec,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::facts) status: PodStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct PodSpec {
    pub(in crate::facts) node_name: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) node_selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) affinity: Affinity,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) tolerations: Vec<TolerationWire>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) volumes: Vec<PodVolume>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) containers: Vec<Container>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) init_containers: Vec<Container>,
    pub(in crate::facts) priority: Option<i32>,
    pub(in crate::facts) termination_grace_period_seconds: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct Affinity {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) node_affinity: NodeAffinity,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::facts) struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", deserialize_with = "or_default")]
    pub(in crate::facts) required: NodeSelector,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct TolerationWire {
    pub(in crate::facts) key: Option<String>,
    pub(in crate::facts) operator: Option<String>,
    pub(in crate::facts) value: Option<String>,
    pub(in crate::facts) effect: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct PodVolume {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) name: String,
    pub(in crate::facts) empty_dir: Option<IgnoredAny>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) persistent_volume_claim: ClaimName,
}

/// A reference to a PersistentVolumeClaim.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct ClaimName {
    pub(in crate::facts) claim_name: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct Container {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) resources: Resources,
    pub(in crate::facts) restart_policy: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::facts) struct Resources {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) requests: Devices,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) limits: Devices,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct PodStatus {
    pub(in crate::facts) phase: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) conditions: Vec<Condition>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) init_container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) ephemeral_container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(in crate::facts) struct ContainerStatus {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) state: ContainerState,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(in crate::facts) struct ContainerState {
    pub(in crate::facts) terminated: Option<IgnoredAny>,
}
