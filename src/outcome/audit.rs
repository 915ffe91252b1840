//! What a drain would do to the VMs of a whole cluster: the words of `audit`.

use serde::Serialize;

use super::{Cause, VmOutcome, VmRow};
use crate::facts::Strategy;

/// One VM of an audit: its row as in the preview of a drain of its node, and what only an audit says.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRow {
    /// The row.
    #[serde(flatten)]
    pub vm: VmRow,
    /// True while its launcher is older than KubeVirt: a migration or a restart renews it.
    pub outdated_launcher: bool,
    /// The command that restarts it, where it would block and a restart is what lets it leave its node.
    pub restart_command: Option<String>,
    /// What KubeVirt's next update of itself does to it as it is: null where its strategy is unknown.
    pub update: Option<UpdateEffect>,
    /// The same once it has been restarted; null where that is unknown or no restart helps.
    pub update_after_restart: Option<UpdateEffect>,
    /// More that is worth knowing, one clause each.
    pub notes: Vec<String>,
}

/// What KubeVirt does to a VM when it renews outdated launchers (`spec.workloadUpdateStrategy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpdateEffect {
    /// Its launcher stays as it is until somebody migrates or restarts the VM.
    Stays,
    /// It is migrated.
    Migrates,
    /// It is shut down, and runs again by itself.
    Returns,
    /// It is shut down, and somebody must start it.
    StaysOff,
}

impl UpdateEffect {
    /// True where the guest goes down.
    pub fn is_shutdown(self) -> bool {
        matches!(self, Self::Returns | Self::StaysOff)
    }
}

/// What holds a VM that would block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Only the strategy that its VMI was made with: a restart helps.
    Stale,
    /// Its VM template asks for `LiveMigrate`.
    Template,
    /// The cluster's `evictionStrategy` is `LiveMigrate`.
    Cluster,
    /// Something else.
    Other,
}

impl AuditRow {
    /// What holds it; `None` for one that does not block.
    pub fn hold(&self) -> Option<Hold> {
        let vm = &self.vm;
        if !vm.is_blocked() {
            return None;
        }
        let held = vm.cause == Some(Cause::VmNotMigratable) && vm.strategy_fresh == Some(Strategy::LiveMigrate);
        Some(match vm.strategy_source {
            _ if self.restart_command.is_some() => Hold::Stale,
            Some("template") if held => Hold::Template,
            Some("cluster") if held => Hold::Cluster,
            _ => Hold::Other,
        })
    }

    /// True where the strategy in force is unknown, or for a VM the one that it would get. A VMI that no VM owns gets
    /// none, which is no gap.
    pub fn is_unclear(&self) -> bool {
        let owned = self.vm.owner.as_ref().is_some_and(|owner| owner.kind == "VirtualMachine");
        self.vm.strategy_now.is_none() || (owned && self.vm.strategy_fresh.is_none())
    }
}

/// Counts of an audit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditCounts {
    /// VMs that run.
    pub vms: usize,
    /// Those that would block.
    pub blocked: usize,
    /// Of these: only for the strategy that they were made with, so a restart helps.
    pub blocked_stale: usize,
    /// Of these: their VM template asks for `LiveMigrate`.
    pub blocked_by_template: usize,
    /// Of these: the cluster's `evictionStrategy` asks for it.
    pub blocked_by_cluster: usize,
    /// Of these: for another reason.
    pub blocked_otherwise: usize,
    /// Those that would migrate.
    pub migrates: usize,
    /// Those that would be shut down and run again elsewhere.
    pub returns: usize,
    /// Those that would be shut down and that somebody must start.
    pub stays_off: usize,
    /// Those that would be down until their node is back.
    pub down_until_node: usize,
    /// Those that wait for the controller that owns them (External).
    pub waits_for_owner: usize,
    /// Those that wait for something that passes.
    pub waits: usize,
    /// Those that a restart lets leave their node, whether they would block at this moment or not.
    pub stale: usize,
    /// Those whose strategy, or the one that they would get, is unknown.
    pub unclear: usize,
    /// Those in an outdated launcher.
    pub outdated: usize,
    /// Those that KubeVirt's next update of itself would shut down.
    pub shut_down_by_update: usize,
}

impl AuditCounts {
    /// Counts rows.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a AuditRow>) -> Self {
        let mut counts = Self::default();
        for row in rows {
            counts.add(row);
        }
        counts
    }

    fn add(&mut self, row: &AuditRow) {
        self.vms += 1;
        let place = match row.vm.outcome {
            VmOutcome::Blocks => &mut self.blocked,
            VmOutcome::Migrates => &mut self.migrates,
            VmOutcome::Restarts | VmOutcome::Returns => &mut self.returns,
            VmOutcome::StaysOff => &mut self.stays_off,
            VmOutcome::DownUntilNode => &mut self.down_until_node,
            VmOutcome::Waits if row.vm.cause == Some(Cause::ExternalOwner) => &mut self.waits_for_owner,
            VmOutcome::Waits
            | VmOutcome::Replaced
            | VmOutcome::Gone
            | VmOutcome::Lost
            | VmOutcome::Down
            | VmOutcome::Pending => &mut self.waits,
        };
        *place += 1;
        match row.hold() {
            Some(Hold::Stale) => self.blocked_stale += 1,
            Some(Hold::Template) => self.blocked_by_template += 1,
            Some(Hold::Cluster) => self.blocked_by_cluster += 1,
            Some(Hold::Other) => self.blocked_otherwise += 1,
            None => {}
        }
        self.stale += usize::from(row.vm.restart_helps == Some(true));
        self.unclear += usize::from(row.is_unclear());
        self.outdated += usize::from(row.outdated_launcher);
        self.shut_down_by_update += usize::from(row.update.is_some_and(UpdateEffect::is_shutdown));
    }
}

/// The VMs of one node.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditNode {
    /// Name.
    pub name: String,
    /// UID; null where nodes could not be read.
    pub uid: Option<String>,
    /// True if it is cordoned; null where nodes could not be read.
    pub cordoned_now: Option<bool>,
    /// Counts of its VMs.
    pub counts: AuditCounts,
    /// VMs, sorted by name.
    pub vms: Vec<AuditRow>,
}

/// How KubeVirt renews outdated launchers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdatePolicy {
    /// `LiveMigrate`, `Evict`; empty: not at all.
    pub methods: Vec<&'static str>,
    /// Evictions per batch.
    pub batch_eviction_size: u32,
    /// Time between batches.
    pub batch_eviction_interval: String,
}

/// What an audit found, besides the nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditSummary {
    /// Counts of all rows.
    pub counts: AuditCounts,
    /// VMs that do not run: they get their strategy at the next start.
    pub stopped: usize,
    /// VMs that start and have no node yet.
    pub starting: usize,
    /// How launchers are renewed; null where KubeVirt's one configuration is unknown.
    pub workload_update: Option<UpdatePolicy>,
}

/// An audit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditReport {
    /// What is said of all.
    pub summary: AuditSummary,
    /// Nodes that run VMs of the scope, sorted by name.
    pub nodes: Vec<AuditNode>,
}
