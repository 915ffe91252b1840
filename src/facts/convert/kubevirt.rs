//! KubeVirt's kinds.

use super::{annotation, controller, key, non_empty, timestamp, uid};
use crate::facts::wire::{self, MigrationStateWire, VmiDisk, WorkloadUpdateWire};
use crate::facts::{
    KubeVirtFacts, Migratable, MigrationFacts, MigrationState, Owner, RunStrategy, Strategy, VmFacts, VmVolume,
    VmVolumeSource, VmiFacts, VmiOwner, VmiPhase, WorkloadUpdate,
};

/// Grace period of a guest in seconds where its VMI states none (KubeVirt `DefaultGracePeriodSeconds`).
const DEFAULT_GRACE_SECONDS: i64 = 30;
/// `parallelOutboundMigrationsPerNode` where the CR states none (KubeVirt `pkg/virt-config`).
const DEFAULT_MIGRATIONS_PER_NODE: u32 = 2;
/// `parallelMigrationsPerCluster` where the CR states none (KubeVirt `pkg/virt-config`).
const DEFAULT_MIGRATIONS_PER_CLUSTER: u32 = 5;
/// `nodeDrainTaintKey` where the CR states none (KubeVirt `pkg/virt-config`).
const DEFAULT_DRAIN_TAINT: &str = "kubevirt.io/drain";
/// `batchEvictionSize` where the CR states none (KubeVirt `workload-updater`).
const DEFAULT_BATCH_SIZE: u32 = 10;
/// `batchEvictionInterval` where the CR states none (KubeVirt `workload-updater`).
const DEFAULT_BATCH_INTERVAL: &str = "1m";
/// Label of a VM that is a node of another cluster (Cluster API `ClusterNameLabel`).
const TENANT_CLUSTER: &str = "cluster.x-k8s.io/cluster-name";
/// Label of a VMI whose launcher is older than KubeVirt (KubeVirt `OutdatedLauncherImageLabel`).
const OUTDATED: &str = "kubevirt.io/outdatedLauncherImage";

fn strategy(text: Option<String>) -> Option<Strategy> {
    non_empty(text).as_deref().map(Strategy::parse)
}

impl From<wire::VirtualMachineInstance> for VmiFacts {
    fn from(vmi: wire::VirtualMachineInstance) -> Self {
        let wire::VirtualMachineInstance { metadata: mut meta, spec, status } = vmi;
        let condition = |kind| wire::condition(&status.conditions, kind);
        let labels = meta.labels.take().unwrap_or_default();
        let transition = |phase: &str| {
            let mut entries = status.phase_transition_timestamps.iter().rev();
            entries.find(|t| t.phase == phase).and_then(|t| t.phase_transition_timestamp)
        };
        let backup = status.changed_block_tracking.backup_status;
        let owner = vmi_owner(controller(&mut meta));
        let owned_by_vm = matches!(owner, VmiOwner::VirtualMachine { .. });
        Self {
            created: timestamp(meta.creation_timestamp.as_ref()),
            deleting: meta.deletion_timestamp.is_some(),
            owner,
            strategy: strategy(spec.eviction_strategy),
            migratable: match condition("LiveMigratable") {
                Some(c) if c.is_true() => Migratable::Yes,
                Some(c) if c.status == "False" => {
                    Migratable::No { reason: c.reason.clone(), message: c.message.clone() }
                }
                _ => Migratable::Missing,
            },
            phase: phase(status.phase.as_deref()),
            scheduled_at: transition("Scheduled").or_else(|| transition("Running")),
            node: non_empty(status.node_name),
            marked: non_empty(status.evacuation_node_name),
            migration: status.migration_state.map(MigrationState::from),
            volumes: spec.volumes.into_iter().map(VmVolume::from).collect(),
            grace_seconds: spec.termination_grace_period_seconds.unwrap_or(DEFAULT_GRACE_SECONDS),
            agent_connected: condition("AgentConnected").is_some_and(wire::Condition::is_true),
            has_devices: !spec.domain.devices.gpus.is_empty() || !spec.domain.devices.host_devices.is_empty(),
            cpu_model: non_empty(spec.domain.cpu.model),
            unschedulable: condition("PodScheduled")
                .filter(|c| c.is_false_because("Unschedulable"))
                .map(|c| c.message.clone()),
            not_created: condition("Synchronized").filter(|c| c.is_false_because("FailedCreate")).map(not_created),
            running_backup: non_empty(backup.backup_name).filter(|_| !backup.completed),
            tenant_cluster: non_empty(labels.get(TENANT_CLUSTER).cloned()),
            outdated: labels.contains_key(OUTDATED),
            labels: if owned_by_vm { Vec::new() } else { labels.into_iter().collect() },
            uid: uid(&mut meta),
            key: key(&mut meta),
        }
    }
}

/// Of a quota's refusal what stays the same with each try: the pod's name is another one each time.
fn not_created(condition: &wire::Condition) -> String {
    let text = condition.message.as_str();
    text.find("exceeded quota").map_or(text, |at| &text[at..]).to_owned()
}

fn vmi_owner(owner: Option<Owner>) -> VmiOwner {
    let Some(Owner { api_version, kind, name, .. }) = owner else { return VmiOwner::Standalone };
    match (api_version.split('/').next(), kind.as_str()) {
        (Some("kubevirt.io"), "VirtualMachine") => VmiOwner::VirtualMachine { name },
        (Some("kubevirt.io"), "VirtualMachineInstanceReplicaSet") => VmiOwner::ReplicaSet { name },
        _ => VmiOwner::Other { kind, name },
    }
}

fn phase(text: Option<&str>) -> VmiPhase {
    match text {
        None | Some("" | "Pending") => VmiPhase::Pending,
        Some("Scheduling") => VmiPhase::Scheduling,
        Some("Scheduled") => VmiPhase::Scheduled,
        Some("Running") => VmiPhase::Running,
        Some("Succeeded") => VmiPhase::Succeeded,
        Some("Failed") => VmiPhase::Failed,
        Some(_) => VmiPhase::Other,
    }
}

impl From<MigrationStateWire> for MigrationState {
    fn from(state: MigrationStateWire) -> Self {
        Self {
            migration_uid: non_empty(state.migration_uid),
            source_node: non_empty(state.source_node),
            target_node: non_empty(state.target_node),
            started: state.start_timestamp,
            ended: state.end_timestamp,
            completed: state.completed,
            failed: state.failed,
            failure_reason: non_empty(state.failure_reason),
        }
    }
}

impl From<VmiDisk> for VmVolume {
    /// A DataVolume and its claim share their name.
    fn from(volume: VmiDisk) -> Self {
        let claim = volume.persistent_volume_claim.or(volume.memory_dump).and_then(|c| c.claim_name);
        let source = if let Some(name) = non_empty(claim.or(volume.data_volume.map(|d| d.name))) {
            VmVolumeSource::Claim(name)
        } else if volume.empty_disk.is_some() {
            VmVolumeSource::EmptyDisk
        } else if let Some(ephemeral) = volume.ephemeral {
            VmVolumeSource::Ephemeral(ephemeral.persistent_volume_claim.claim_name.unwrap_or_default())
        } else if volume.host_disk.is_some() {
            VmVolumeSource::HostDisk
        } else {
            VmVolumeSource::Other
        };
        Self { name: volume.name, source }
    }
}

impl From<wire::VirtualMachine> for VmFacts {
    /// The run strategy by KubeVirt's rule (`VirtualMachine.RunStrategy()`): the stated one, else what `running` stands for,
    /// else Halted; before the last, the one that the controller recorded.
    fn from(vm: wire::VirtualMachine) -> Self {
        let wire::VirtualMachine { metadata: mut meta, spec, status } = vm;
        let run_strategy = match (non_empty(spec.run_strategy), spec.running) {
            (Some(text), _) => RunStrategy::parse(&text),
            (None, Some(true)) => RunStrategy::Always,
            (None, Some(false)) => RunStrategy::Halted,
            (None, None) => {
                non_empty(status.run_strategy).map_or(RunStrategy::Halted, |text| RunStrategy::parse(&text))
            }
        };
        Self {
            labels: meta.labels.take().unwrap_or_default().into_iter().collect(),
            deleting: meta.deletion_timestamp.is_some(),
            run_strategy,
            template_strategy: strategy(spec.template.spec.eviction_strategy),
            instancetype: spec.instancetype.is_some(),
            pool: controller(&mut meta)
                .filter(|o| o.kind == "VirtualMachinePool" && o.api_version.starts_with("pool.kubevirt.io/"))
                .map(|o| o.name),
            restart_required: wire::condition(&status.conditions, "RestartRequired")
                .is_some_and(wire::Condition::is_true),
            start_requested: status.state_change_requests.iter().any(|r| r.action.as_deref() == Some("Start")),
            change_pending: !status.state_change_requests.is_empty(),
            printable_status: non_empty(status.printable_status),
            uid: uid(&mut meta),
            key: key(&mut meta),
        }
    }
}

impl wire::VirtualMachineInstanceReplicaSet {
    /// The strategy in its template.
    pub fn template_strategy(self) -> Option<Strategy> {
        strategy(self.spec.template.spec.eviction_strategy)
    }
}

impl From<wire::VirtualMachineInstanceMigration> for MigrationFacts {
    fn from(migration: wire::VirtualMachineInstanceMigration) -> Self {
        let wire::VirtualMachineInstanceMigration { metadata: mut meta, spec, status } = migration;
        let state = MigrationState::from(status.migration_state);
        Self {
            vmi: spec.vmi_name,
            created: timestamp(meta.creation_timestamp.as_ref()),
            deleting: meta.deletion_timestamp.is_some(),
            evacuates: annotation(&meta, wire::EVACUATION),
            source_node: state.source_node,
            target_node: state.target_node,
            failure_reason: state.failure_reason,
            quota_rejected: wire::condition(&status.conditions, "migrationRejectedByResourceQuota")
                .is_some_and(wire::Condition::is_true),
            phase: status.phase,
            uid: uid(&mut meta),
            key: key(&mut meta),
        }
    }
}

impl From<wire::KubeVirt> for KubeVirtFacts {
    fn from(cr: wire::KubeVirt) -> Self {
        let wire::KubeVirt { metadata: mut meta, spec, status } = cr;
        let migrations = spec.configuration.migrations;
        Self {
            valid: non_empty(status.phase).is_some() && meta.deletion_timestamp.is_none(),
            strategy: strategy(spec.configuration.eviction_strategy),
            version: non_empty(status.observed_version),
            target_version: non_empty(status.target_version),
            expands_instancetypes: matches!(
                spec.configuration.instancetype.reference_policy.as_deref(),
                Some("expand" | "expandAll")
            ),
            migrations_per_node: migrations
                .parallel_outbound_migrations_per_node
                .unwrap_or(DEFAULT_MIGRATIONS_PER_NODE),
            migrations_per_cluster: migrations
                .parallel_migrations_per_cluster
                .unwrap_or(DEFAULT_MIGRATIONS_PER_CLUSTER),
            drain_taint: non_empty(migrations.node_drain_taint_key).unwrap_or_else(|| DEFAULT_DRAIN_TAINT.to_owned()),
            workload_update: WorkloadUpdate::from(spec.workload_update_strategy),
            key: key(&mut meta),
        }
    }
}

impl From<WorkloadUpdateWire> for WorkloadUpdate {
    /// Without methods nothing is renewed: the API has no default for them.
    fn from(wire: WorkloadUpdateWire) -> Self {
        let has = |method: &str| wire.workload_update_methods.iter().any(|m| m == method);
        Self {
            live_migrate: has("LiveMigrate"),
            evict: has("Evict"),
            batch_size: wire.batch_eviction_size.unwrap_or(DEFAULT_BATCH_SIZE),
            batch_interval: short_interval(
                non_empty(wire.batch_eviction_interval).unwrap_or_else(|| DEFAULT_BATCH_INTERVAL.to_owned()),
            ),
        }
    }
}

/// `1m0s` as people write it: `1m`.
fn short_interval(text: String) -> String {
    let minutes = text.strip_suffix("m0s").map(|rest| format!("{rest}m"));
    let hours = |text: &String| text.strip_suffix("h0m").map(|rest| format!("{rest}h"));
    minutes.map_or(text, |minutes| hours(&minutes).unwrap_or(minutes))
}
