//! VMIs and VMs, and their strategies.

use std::fmt;

use jiff::Timestamp;
use serde::Serialize;

use super::{Key, MigrationState};

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
    /// Why its launcher could not be made (`Synchronized=False`, reason `FailedCreate`), for example by a quota.
    pub not_created: Option<String>,
    /// Name of a backup that runs.
    pub running_backup: Option<String>,
    /// Cluster API's cluster name (label `cluster.x-k8s.io/cluster-name`), for VMs that are nodes of another cluster.
    pub tenant_cluster: Option<String>,
    /// True with the label `kubevirt.io/outdatedLauncherImage`.
    pub outdated: bool,
    /// Labels, where no VM owns it; else none, since the VM's own are what counts.
    pub labels: Vec<(String, String)>,
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
    /// Its own labels (not those of its template), by key.
    pub labels: Vec<(String, String)>,
    /// True once its deletion was accepted.
    pub deleting: bool,
    /// Run strategy in force.
    pub run_strategy: RunStrategy,
    /// `spec.template.spec.evictionStrategy`.
    pub template_strategy: Option<Strategy>,
    /// True if it names an instancetype.
    pub instancetype: bool,
    /// Name of the VirtualMachinePool that made it and writes its template.
    pub pool: Option<String>,
    /// Condition `RestartRequired`: a restart also applies staged changes.
    pub restart_required: bool,
    /// True while `status.stateChangeRequests` has a start: a restart is under way, and its second half will follow.
    pub start_requested: bool,
    /// True while `status.stateChangeRequests` is not empty.
    pub change_pending: bool,
    /// `status.printableStatus`.
    pub printable_status: Option<String>,
}
