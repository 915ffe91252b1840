//! Migrations, and the KubeVirt installation that runs them.

use jiff::Timestamp;

use super::{Key, Strategy};

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
    /// True if `instancetype.referencePolicy` has KubeVirt write expanded specs, the cluster's strategy among them, into VMs.
    pub expands_instancetypes: bool,
    /// Outbound migrations per node (default 2).
    pub migrations_per_node: u32,
    /// Migrations per cluster (default 5).
    pub migrations_per_cluster: u32,
    /// Taint key with which KubeVirt evacuates a node by itself (default `kubevirt.io/drain`).
    pub drain_taint: String,
    /// How it renews launchers that are older than itself.
    pub workload_update: WorkloadUpdate,
}

/// `spec.workloadUpdateStrategy`: what KubeVirt does after an update of itself about VMs in outdated launchers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadUpdate {
    /// Method `LiveMigrate`: those that can migrate are migrated, whatever their eviction strategy is. It comes before
    /// `evict`.
    pub live_migrate: bool,
    /// Method `Evict`: the launchers of the others are evicted.
    pub evict: bool,
    /// Evictions per batch (default 10).
    pub batch_size: u32,
    /// Time between batches as the API writes durations (default `1m`).
    pub batch_interval: String,
}

impl KubeVirtFacts {
    /// True if the running version is that one or newer; false where it is unknown.
    pub fn at_least(&self, major: u32, minor: u32) -> bool {
        let known = self.version.as_deref().and_then(release);
        known.is_some_and(|known| known >= (major, minor))
    }
}

/// Major and minor number of a version such as `v1.7.0`.
pub fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.trim_start_matches('v').split(['.', '-', '+']).map(|part| part.parse::<u32>().ok());
    Some((numbers.next()??, numbers.next()??))
}
