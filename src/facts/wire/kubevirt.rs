//! KubeVirt's kinds (`kubevirt.io/v1`).

use jiff::Timestamp;
use kube::core::ObjectMeta;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::lenient::{Condition, or_default};
use super::meta::metadata;
use super::pod::ClaimName;

/// A VirtualMachineInstance.
#[derive(Debug, Clone, Deserialize)]
pub struct VirtualMachineInstance {
    #[serde(deserialize_with = "metadata")]
    pub(in crate::facts) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::facts) spec: VmiSpec,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::facts) status: VmiStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct VmiSpec {
    pub(in crate::facts) eviction_strategy: Option<String>,
    pub(in crate::facts) termination_grace_period_seconds: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) domain: Domain,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) volumes: Vec<VmiDisk>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::facts) struct Domain {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) cpu: Cpu,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) devices: DomainDevices,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::facts) struct Cpu {
    pub(in crate::facts) model: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct DomainDevices {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) gpus: Vec<IgnoredAny>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) host_devices: Vec<IgnoredAny>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct VmiDisk {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) name: String,
    pub(in crate::facts) persistent_volume_claim: Option<ClaimName>,
    pub(in crate::facts) data_volume: Option<DataVolumeName>,
    pub(in crate::facts) memory_dump: Option<ClaimName>,
    pub(in crate::facts) empty_disk: Option<IgnoredAny>,
    pub(in crate::facts) ephemeral: Option<EphemeralVolume>,
    pub(in crate::facts) host_disk: Option<IgnoredAny>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::facts) struct DataVolumeName {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct EphemeralVolume {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) persistent_volume_claim: ClaimName,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct VmiStatus {
    pub(in crate::facts) phase: Option<String>,
    pub(in crate::facts) node_name: Option<String>,
    pub(in crate::facts) evacuation_node_name: Option<String>,
    pub(in crate::facts) migration_state: Option<MigrationStateWire>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) conditions: Vec<Condition>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) phase_transition_timestamps: Vec<PhaseTransition>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) changed_block_tracking: ChangedBlockTracking,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct PhaseTransition {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) phase: String,
    pub(in crate::facts) phase_transition_timestamp: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct ChangedBlockTracking {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) backup_status: BackupStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct BackupStatus {
    pub(in crate::facts) backup_name: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) completed: bool,
}

/// `status.migrationState` of a VMI, or a migration's copy of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct MigrationStateWire {
    pub(in crate::facts) migration_uid: Option<String>,
    pub(in crate::facts) source_node: Option<String>,
    pub(in crate::facts) target_node: Option<String>,
    pub(in crate::facts) start_timestamp: Option<Timestamp>,
    pub(in crate::facts) end_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) completed: bool,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) failed: bool,
    pub(in crate::facts) failure_reason: Option<String>,
}

/// A VirtualMachine.
#[derive(Debug, Clone, Deserialize)]
pub struct VirtualMachine {
    #[serde(deserialize_with = "metadata")]
    pub(in crate::facts) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::facts) spec: VmSpec,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::facts) status: VmStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct VmSpec {
    pub(in crate::facts) run_strategy: Option<String>,
    pub(in crate::facts) running: Option<bool>,
    pub(in crate::facts) instancetype: Option<IgnoredAny>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) template: VmTemplate,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::facts) struct VmTemplate {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) spec: VmTemplateSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct VmTemplateSpec {
    pub(in crate::facts) eviction_strategy: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct StateChange {
    /// `Start` or `Stop`.
    pub(in crate::facts) action: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct VmStatus {
    pub(in crate::facts) run_strategy: Option<String>,
    pub(in crate::facts) printable_status: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) state_change_requests: Vec<StateChange>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) conditions: Vec<Condition>,
}

/// A VirtualMachineInstanceReplicaSet.
#[derive(Debug, Clone, Deserialize)]
pub struct VirtualMachineInstanceReplicaSet {
    #[serde(deserialize_with = "metadata")]
    pub(in crate::facts) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::facts) spec: ReplicaSetSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::facts) struct ReplicaSetSpec {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) template: VmTemplate,
}

/// A VirtualMachineInstanceMigration.
#[derive(Debug, Clone, Deserialize)]
pub struct VirtualMachineInstanceMigration {
    #[serde(deserialize_with = "metadata")]
    pub(in crate::facts) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::facts) spec: MigrationSpec,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::facts) status: MigrationStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct MigrationSpec {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) vmi_name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct MigrationStatus {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) phase: String,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) migration_state: MigrationStateWire,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) conditions: Vec<Condition>,
}

/// The KubeVirt CR.
#[derive(Debug, Clone, Deserialize)]
pub struct KubeVirt {
    #[serde(deserialize_with = "metadata")]
    pub(in crate::facts) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::facts) spec: KubeVirtSpec,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::facts) status: KubeVirtStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct KubeVirtSpec {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) configuration: Configuration,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) workload_update_strategy: WorkloadUpdateWire,
}

/// `spec.workloadUpdateStrategy`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct WorkloadUpdateWire {
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) workload_update_methods: Vec<String>,
    pub(in crate::facts) batch_eviction_size: Option<u32>,
    pub(in crate::facts) batch_eviction_interval: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct Configuration {
    pub(in crate::facts) eviction_strategy: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) migrations: MigrationConfiguration,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) instancetype: InstancetypeConfiguration,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct InstancetypeConfiguration {
    pub(in crate::facts) reference_policy: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct MigrationConfiguration {
    pub(in crate::facts) parallel_migrations_per_cluster: Option<u32>,
    pub(in crate::facts) parallel_outbound_migrations_per_node: Option<u32>,
    pub(in crate::facts) node_drain_taint_key: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::facts) struct KubeVirtStatus {
    pub(in crate::facts) phase: Option<String>,
    #[serde(rename = "observedKubeVirtVersion")]
    pub(in crate::facts) observed_version: Option<String>,
    #[serde(rename = "targetKubeVirtVersion")]
    pub(in crate::facts) target_version: Option<String>,
}
