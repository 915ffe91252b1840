//! Pods, what they ask of a node, and the volumes that bind them to one.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Key, Owner, PodKey};

/// Label that says what a pod is for KubeVirt (KubeVirt `AppLabel`).
pub const APP_LABEL: &str = "kubevirt.io";
/// Its value on a virt-launcher.
pub const LAUNCHER: &str = "virt-launcher";
/// Its value on a pod that attaches a hot-plugged volume.
pub const HOTPLUG: &str = "hotplug-disk";
/// Label key of CDI's pods (CDI `CDILabelKey`).
pub const CDI_LABEL: &str = "cdi.kubevirt.io";

/// Phase of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodPhase {
    /// Accepted, but not all containers run.
    Pending,
    /// At least one container runs.
    Running,
    /// All containers ended well.
    Succeeded,
    /// All containers ended, one with an error.
    Failed,
    /// The API server does not know (`Unknown`, or a word that this version does not know).
    Unknown,
}

impl PodPhase {
    /// True for pods whose containers all ended: they need no node any more.
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// What a pod is for KubeVirt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodRole {
    /// No KubeVirt pod.
    Plain,
    /// A virt-launcher: the pod in which the guest of a VMI runs.
    Launcher {
        /// Name of the VMI (annotation `kubevirt.io/domain`, else the owner's name), in the pod's namespace.
        vmi: String,
        /// UID of the VMI (label `kubevirt.io/created-by`), where it is set.
        vmi_uid: Option<String>,
    },
    /// A pod that attaches a hot-plugged volume to a launcher (label `kubevirt.io=hotplug-disk`).
    Hotplug {
        /// Name of the launcher that owns it.
        launcher: String,
        /// UID of the launcher that owns it.
        launcher_uid: String,
    },
}

/// A deletion that has been accepted and is not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    /// When the grace period ends (`deletionTimestamp`).
    pub at: Timestamp,
    /// Length of the grace period in seconds.
    pub grace_seconds: i64,
}

/// One pod.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct PodFacts {
    /// Identity.
    pub key: PodKey,
    /// Node that it is bound to.
    pub node: Option<String>,
    /// Phase.
    pub phase: PodPhase,
    /// Its controller, if it has one.
    pub owner: Option<Owner>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// True for the API's picture of a static pod (annotation `kubernetes.io/config.mirror`).
    pub mirror: bool,
    /// Names of its `emptyDir` volumes.
    pub empty_dirs: Vec<String>,
    /// Set once its deletion was accepted.
    pub deletion: Option<Deletion>,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// True while a container of it runs or may run (unknown counts as running).
    pub containers_running: bool,
    /// Condition `Ready`.
    pub ready: bool,
    /// Resolved priority; 0 where none is set.
    pub priority: i32,
    /// Its own grace period in seconds.
    pub grace_seconds: i64,
    /// True if it tolerates `node.kubernetes.io/unschedulable:NoSchedule`, so that it may come back to a cordoned node.
    pub tolerates_cordon: bool,
    /// PersistentVolumeClaims that it mounts (names in its namespace).
    pub claims: Vec<String>,
    /// What it asks of a node.
    pub demands: Demands,
    /// What it is for KubeVirt.
    pub role: PodRole,
    /// The scheduler's words, if it says that no node fits (`PodScheduled=False`, reason `Unschedulable`).
    pub unschedulable: Option<String>,
}

impl PodFacts {
    /// True with the label of a launcher or of a hot-plug pod.
    pub fn is_of_vm(&self) -> bool {
        self.labels.get(APP_LABEL).is_some_and(|value| value == LAUNCHER || value == HOTPLUG)
    }

    /// The claim that it fills: CDI's importers, upload servers and clone sources belong to theirs.
    pub fn fills(&self) -> Option<Key> {
        let owner = self.owner.as_ref().filter(|o| o.kind == "PersistentVolumeClaim")?;
        self.labels.contains_key(CDI_LABEL).then(|| Key::new(&self.key.namespace, &owner.name))
    }
}

/// What a pod asks of a node, as far as a forecast uses it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Demands {
    /// `spec.nodeSelector`.
    pub node_selector: BTreeMap<String, String>,
    /// Required node affinity: any of the terms must match; empty means none is set.
    pub affinity: Vec<NodeTerm>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// Extended resources (devices) by name, in units; CPU and memory are not here.
    pub devices: BTreeMap<String, u64>,
}

/// One term of a required node affinity: all of its expressions must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeTerm {
    /// Expressions on labels.
    pub labels: Vec<NodeExpression>,
    /// Expressions on fields (`metadata.name` is the only one that the API knows).
    pub fields: Vec<NodeExpression>,
}

/// One expression of a node selector term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeExpression {
    /// Label or field.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    pub operator: String,
    /// Values, as the operator needs them.
    pub values: Vec<String>,
}

/// A toleration of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toleration {
    /// Taint key; `None` with `exists` tolerates every taint.
    pub key: Option<String>,
    /// True for operator `Exists`, false for `Equal`.
    pub exists: bool,
    /// Value for `Equal`.
    pub value: Option<String>,
    /// Effect; `None` means all effects.
    pub effect: Option<String>,
}

/// A PersistentVolumeClaim with the nodes that its volume is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimFacts {
    /// Namespace and name of the claim.
    pub key: Key,
    /// Required node affinity of its PersistentVolume: any of the terms must match; empty means any node.
    pub volume_terms: Vec<NodeTerm>,
}
