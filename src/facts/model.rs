//! The plugin's own model of a cluster: what it needs to know, in types that cannot be misread.
//!
//! Every object carries its UID. A name alone never identifies anything here: a StatefulSet pod that came back under
//! its old name is another pod. Unknown values are `None` or a variant of their own, never a default that looks known.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Namespace and name of a namespaced object; displays as `namespace/name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl Key {
    /// A key from its two parts.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Identity of one pod: its UID decides, namespace and name only address it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodKey {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// UID of the pod.
    pub uid: String,
}

impl PodKey {
    /// A pod's identity from its parts.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, uid: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into(), uid: uid.into() }
    }

    /// Namespace and name without the UID.
    pub fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }
}

impl fmt::Display for PodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The controller of an object: the owner reference with `controller: true`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// API version of the owner, for example `apps/v1`.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner, in the namespace of the owned object.
    pub name: String,
    /// UID of the owner.
    pub uid: String,
}

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

/// An eviction strategy, by its effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Strategy {
    /// The eviction shuts the VM down.
    None,
    /// Migrate; refuse the eviction of a VM that cannot.
    LiveMigrate,
    /// Migrate; shut down a VM that cannot.
    LiveMigrateIfPossible,
    /// An outside controller must act.
    External,
    /// A word that KubeVirt does not know; it acts as `None`.
    #[serde(untagged)]
    Unknown(String),
}

impl Strategy {
    /// Reads the API's word.
    pub fn parse(text: &str) -> Self {
        match text {
            "None" => Self::None,
            "LiveMigrate" => Self::LiveMigrate,
            "LiveMigrateIfPossible" => Self::LiveMigrateIfPossible,
            "External" => Self::External,
            other => Self::Unknown(other.to_owned()),
        }
    }

    /// True if the two have the same effect: an unknown word acts as `None`.
    pub fn same_effect(&self, other: &Self) -> bool {
        fn effect(s: &Strategy) -> u8 {
            match s {
                Strategy::None | Strategy::Unknown(_) => 0,
                Strategy::LiveMigrate => 1,
                Strategy::LiveMigrateIfPossible => 2,
                Strategy::External => 3,
            }
        }
        effect(self) == effect(other)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::LiveMigrate => "LiveMigrate",
            Self::LiveMigrateIfPossible => "LiveMigrateIfPossible",
            Self::External => "External",
            Self::Unknown(text) => text,
        })
    }
}

/// The condition `LiveMigratable` of a VMI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Migratable {
    /// `True`.
    Yes,
    /// `False`, with virt-handler's reason and message.
    No {
        /// For example `DisksNotLiveMigratable`.
        reason: String,
        /// virt-handler's sentence.
        message: String,
    },
    /// virt-handler has not spoken yet: the VMI is still starting. Neither yes nor no.
    Missing,
}

/// Phase of a VMI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VmiPhase {
    /// Not handed to a node yet (also: no phase set).
    Pending,
    /// Its launcher waits for a node.
    Scheduling,
    /// Its launcher runs; virt-handler has it.
    Scheduled,
    /// The guest runs.
    Running,
    /// The guest shut down cleanly.
    Succeeded,
    /// The guest ended in another way.
    Failed,
    /// Waits for a migration to it, or a word that this version does not know.
    Other,
}

impl VmiPhase {
    /// True when the guest has ended for good.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// Who made a VMI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VmiOwner {
    /// A VirtualMachine of the same namespace.
    VirtualMachine {
        /// Its name.
        name: String,
    },
    /// A VirtualMachineInstanceReplicaSet.
    ReplicaSet {
        /// Its name.
        name: String,
    },
    /// A controller of another kind.
    Other {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// Nobody: the VMI was created by itself.
    Standalone,
}

/// `status.migrationState` of a VMI: the latest migration, running or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationState {
    /// UID of the VMIM that it belongs to.
    pub migration_uid: Option<String>,
    /// Node that it leaves.
    pub source_node: Option<String>,
    /// Node that it goes to.
    pub target_node: Option<String>,
    /// When the transfer started.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// True when it is over.
    pub completed: bool,
    /// True when it failed.
    pub failed: bool,
    /// libvirt's or KubeVirt's reason for a failure.
    pub failure_reason: Option<String>,
}

/// A volume of a VMI, as far as a shutdown matters for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmVolume {
    /// Name of the volume.
    pub name: String,
    /// What holds it.
    pub source: VmVolumeSource,
}

/// What holds a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VmVolumeSource {
    /// A PersistentVolumeClaim or DataVolume (the claim's name).
    Claim(String),
    /// `emptyDisk`: lost when the launcher ends.
    EmptyDisk,
    /// `ephemeral`: writes over the claim are lost when the launcher ends.
    Ephemeral(String),
    /// `hostDisk`: stays on its node.
    HostDisk,
    /// Anything that needs no care (containerDisk, cloudInit, configMap …).
    Other,
}

/// One VirtualMachineInstance.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct VmiFacts {
    /// Namespace and name.
    pub key: Key,
    /// UID.
    pub uid: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// True once its deletion was accepted.
    pub deleting: bool,
    /// Who made it.
    pub owner: VmiOwner,
    /// `spec.evictionStrategy`.
    pub strategy: Option<Strategy>,
    /// Condition `LiveMigratable`.
    pub migratable: Migratable,
    /// Phase.
    pub phase: VmiPhase,
    /// When it became Scheduled, if it did.
    pub scheduled_at: Option<Timestamp>,
    /// Node on which it runs (`status.nodeName`).
    pub node: Option<String>,
    /// The evacuation mark (`status.evacuationNodeName`), if it is set.
    pub marked: Option<String>,
    /// The latest migration.
    pub migration: Option<MigrationState>,
    /// Volumes.
    pub volumes: Vec<VmVolume>,
    /// Grace period of the guest in seconds (30 where unset, as KubeVirt does).
    pub grace_seconds: i64,
    /// True if the guest agent is connected.
    pub agent_connected: bool,
    /// True for GPUs and host devices.
    pub has_devices: bool,
    /// Host CPU model demand, `spec.domain.cpu.model`.
    pub cpu_model: Option<String>,
    /// The scheduler's words, while no node fits (`PodScheduled=False`, reason `Unschedulable`).
    pub unschedulable: Option<String>,
    /// Name of a backup that runs.
    pub running_backup: Option<String>,
    /// Cluster API's cluster name (label `cluster.x-k8s.io/cluster-name`), for VMs that are nodes of another cluster.
    pub tenant_cluster: Option<String>,
    /// True with the label `kubevirt.io/outdatedLauncherImage`.
    pub outdated: bool,
}

impl VmiFacts {
    /// True while a migration of it is under way, as KubeVirt itself counts it.
    pub fn is_migrating(&self) -> bool {
        self.migration.as_ref().is_some_and(|m| m.started.is_some() && m.ended.is_none() && !m.completed)
    }
}

/// How a VirtualMachine is kept running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunStrategy {
    /// Runs again whatever happened (also `running: true`).
    Always,
    /// Runs again after a failure, stays off after a clean shutdown.
    RerunOnFailure,
    /// Stays off.
    Manual,
    /// Should be off.
    Halted,
    /// Runs once.
    Once,
    /// Waits for a migration from another cluster.
    WaitAsReceiver,
    /// A word that this version does not know.
    Unknown(String),
}

impl RunStrategy {
    /// Reads the API's word.
    pub fn parse(text: &str) -> Self {
        match text {
            "Always" => Self::Always,
            "RerunOnFailure" => Self::RerunOnFailure,
            "Manual" => Self::Manual,
            "Halted" => Self::Halted,
            "Once" => Self::Once,
            "WaitAsReceiver" => Self::WaitAsReceiver,
            other => Self::Unknown(other.to_owned()),
        }
    }

    /// True if KubeVirt accepts a restart under it (it refuses `Once` and `Halted` with 409).
    pub fn allows_restart(&self) -> bool {
        matches!(self, Self::Always | Self::RerunOnFailure | Self::Manual)
    }
}

impl fmt::Display for RunStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Always => "Always",
            Self::RerunOnFailure => "RerunOnFailure",
            Self::Manual => "Manual",
            Self::Halted => "Halted",
            Self::Once => "Once",
            Self::WaitAsReceiver => "WaitAsReceiver",
            Self::Unknown(text) => text,
        })
    }
}

/// One VirtualMachine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct VmFacts {
    /// Namespace and name.
    pub key: Key,
    /// UID.
    pub uid: String,
    /// True once its deletion was accepted.
    pub deleting: bool,
    /// Run strategy in force.
    pub run_strategy: RunStrategy,
    /// `spec.template.spec.evictionStrategy`.
    pub template_strategy: Option<Strategy>,
    /// True if it names an instancetype.
    pub instancetype: bool,
    /// Condition `RestartRequired`: a restart also applies staged changes.
    pub restart_required: bool,
    /// True while `status.stateChangeRequests` is not empty.
    pub change_pending: bool,
    /// `status.printableStatus`.
    pub printable_status: Option<String>,
}

/// One VirtualMachineInstanceMigration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationFacts {
    /// Namespace and name.
    pub key: Key,
    /// UID.
    pub uid: String,
    /// Name of the VMI that it moves.
    pub vmi: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// True once its deletion was accepted.
    pub deleting: bool,
    /// Phase as KubeVirt writes it; empty for a new one.
    pub phase: String,
    /// Node whose evacuation made it (annotation `kubevirt.io/evacuationMigration`).
    pub evacuates: Option<String>,
    /// Node that it leaves, once known.
    pub source_node: Option<String>,
    /// Node that it goes to, once known.
    pub target_node: Option<String>,
    /// Reason of a failure, once it failed.
    pub failure_reason: Option<String>,
    /// True with condition `migrationRejectedByResourceQuota`.
    pub quota_rejected: bool,
}

impl MigrationFacts {
    /// True when it has ended.
    pub fn is_final(&self) -> bool {
        self.failed() || self.phase == "Succeeded"
    }

    /// True when it has ended badly.
    pub fn failed(&self) -> bool {
        self.phase == "Failed"
    }

    /// True while it takes one of the cluster's migration slots; otherwise an unfinished one waits in the queue.
    pub fn takes_slot(&self) -> bool {
        !self.is_final() && !matches!(self.phase.as_str(), "" | "Pending" | "WaitingForSync" | "Synchronizing")
    }
}

/// The KubeVirt installation: its CR, where exactly one valid one could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeVirtFacts {
    /// Namespace and name of the CR.
    pub key: Key,
    /// True if it has a `status.phase` and no deletionTimestamp: the rule by which KubeVirt itself picks its CR.
    pub valid: bool,
    /// Cluster-wide eviction strategy; `None` where the CR says nothing (KubeVirt then uses its `None`).
    pub strategy: Option<Strategy>,
    /// `status.observedKubeVirtVersion`, for example `v1.7.0`.
    pub version: Option<String>,
    /// `status.targetKubeVirtVersion`: differs during an upgrade.
    pub target_version: Option<String>,
    /// Outbound migrations per node (default 2).
    pub migrations_per_node: u32,
    /// Migrations per cluster (default 5).
    pub migrations_per_cluster: u32,
    /// Taint key with which KubeVirt evacuates a node by itself (default `kubevirt.io/drain`).
    pub drain_taint: String,
}

impl KubeVirtFacts {
    /// True if the running version is that one or newer; false where it is unknown.
    pub fn at_least(&self, major: u32, minor: u32) -> bool {
        let Some(version) = &self.version else { return false };
        let mut numbers = version.trim_start_matches('v').split(['.', '-', '+']).map(|part| part.parse::<u32>().ok());
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(a), Some(b)) => (a, b) >= (major, minor),
            _ => false,
        }
    }
}

/// `spec.unhealthyPodEvictionPolicy` of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnhealthyPolicy {
    /// Unready pods may go only while enough healthy ones are there (the API's default).
    IfHealthyBudget,
    /// Unready pods may always go.
    AlwaysAllow,
}

/// A count or a percentage, as budgets use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntOrPercent {
    /// A count of pods.
    Int(i64),
    /// A percentage of the expected pods.
    Percent(u32),
}

/// A label selector. `None` in place of one selects nothing; an empty one selects everything in its namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// Labels that must be equal.
    pub match_labels: BTreeMap<String, String>,
    /// Expressions that must hold: key, operator (`In`, `NotIn`, `Exists`, `DoesNotExist`), values.
    pub expressions: Vec<(String, String, Vec<String>)>,
}

impl LabelSelector {
    /// True if the labels satisfy every requirement.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(k, v)| labels.get(k) == Some(v))
            && self
                .expressions
                .iter()
                .all(|(key, operator, values)| holds(operator, labels.get(key).map(String::as_str), values))
    }
}

/// Whether a value (`None`: the key is absent) satisfies an operator of a label or node selector. `NotIn` also holds for
/// an absent key, as in Kubernetes; an unknown operator never holds.
pub fn holds(operator: &str, value: Option<&str>, values: &[String]) -> bool {
    let listed = |v: &str| values.iter().any(|x| x == v);
    let numbers = || value?.parse::<i64>().ok().zip(values.first()?.parse::<i64>().ok());
    match operator {
        "In" => value.is_some_and(listed),
        "NotIn" => !value.is_some_and(listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers().is_some_and(|(a, b)| a > b),
        "Lt" => numbers().is_some_and(|(a, b)| a < b),
        _ => false,
    }
}

/// One PodDisruptionBudget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetFacts {
    /// Namespace and name.
    pub key: Key,
    /// UID.
    pub uid: String,
    /// Controller of the budget (a VMI on KubeVirt 1.5 and older).
    pub owner: Option<Owner>,
    /// `spec.selector`; `None` selects nothing.
    pub selector: Option<LabelSelector>,
    /// `spec.minAvailable`.
    pub min_available: Option<IntOrPercent>,
    /// `spec.maxUnavailable`.
    pub max_unavailable: Option<IntOrPercent>,
    /// What holds for unready pods.
    pub unhealthy: UnhealthyPolicy,
    /// True if the disruption controller has seen the present spec (`observedGeneration >= generation`).
    pub observed: bool,
    /// Evictions that it allows now; `None` while the controller has not spoken.
    pub allowed: Option<i64>,
    /// Healthy pods now.
    pub healthy: Option<i64>,
    /// Healthy pods that it wants.
    pub desired: Option<i64>,
    /// Pods that it counts on.
    pub expected: Option<i64>,
    /// Names of pods whose eviction was accepted and not yet seen by the controller.
    pub disrupted: Vec<String>,
    /// Message of condition `DisruptionAllowed=False` with reason `SyncFailed`.
    pub sync_failed: Option<String>,
}

impl BudgetFacts {
    /// True if the budget counts this pod.
    pub fn covers(&self, pod: &PodFacts) -> bool {
        self.key.namespace == pod.key.namespace && self.selector.as_ref().is_some_and(|s| s.matches(&pod.labels))
    }
}

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

/// A PersistentVolumeClaim with the nodes that its volume is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimFacts {
    /// Namespace and name of the claim.
    pub key: Key,
    /// Required node affinity of its PersistentVolume: any of the terms must match; empty means any node.
    pub volume_terms: Vec<NodeTerm>,
}
