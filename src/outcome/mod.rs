//! What a drain does to each VM and pod: the public words of preview, result and summary.
//!
//! Preview and result use the same rows, so that a promise and what came of it can be compared field by field.
//! The names that serde writes here are the `safe-drain/v1` interface; new ones may be added, none may change.

mod audit;
mod cause;
mod undo;

pub use audit::{AuditCounts, AuditNode, AuditReport, AuditRow, AuditSummary, Hold, UpdateEffect, UpdatePolicy};
pub use cause::Cause;
pub use undo::{CordonOutcome, UndoMigration, UndoOutcome, UndoReport, UndoRow, UndoVerdict};

use serde::Serialize;

use crate::facts::Strategy;

/// What happens, or happened, to a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VmOutcome {
    /// Live-migrated to another node; keeps its UID.
    Migrates,
    /// Restarted by us, runs elsewhere afterwards.
    Restarts,
    /// Shut down by the eviction, runs again elsewhere by itself.
    Returns,
    /// Shut down; somebody must start it.
    StaysOff,
    /// Shut down; only this node has its disk or device, so it runs again when the node is back.
    DownUntilNode,
    /// Waits for something that is not ours (External owner, missing condition, queue).
    Waits,
    /// Stays on the node until a human acts.
    Blocks,
    /// Result only: another VMI of that name runs (External).
    Replaced,
    /// Result only: deleted by somebody else.
    Gone,
    /// Result only: the node vanished under it.
    Lost,
    /// Result only: should run again and does not.
    Down,
    /// Result only: the deadline or a signal came first.
    Pending,
}

/// What happens, or happened, to a pod that is no VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PodOutcome {
    /// Evicted; in a result: gone from the node.
    Evicts,
    /// Waits for a budget that will recover, or another thing that passes.
    Waits,
    /// Stays until a human acts.
    Blocks,
    /// Stays by its nature: DaemonSet, static pod, our own pod.
    Stays,
    /// Needs a flag before anything is done.
    Refused,
    /// Left out by `--pod-selector`.
    NotSelected,
    /// Result only: its successor is on this node again.
    Returned,
    /// Result only: no longer waited for (`--skip-wait-for-delete-timeout`, finalizer without containers).
    Skipped,
    /// Result only: somebody else removed it.
    Gone,
    /// Result only: the deadline or a signal came first.
    Pending,
}

/// Kind and name of an owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OwnerRef {
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// Name and UID of an object in the row's namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NameUid {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
}

/// One VM in preview or result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VmRow {
    /// Namespace.
    pub namespace: String,
    /// Name of the VMI (a VM's VMI has the VM's name).
    pub name: String,
    /// Owner of the VMI; null for a standalone one.
    pub owner: Option<OwnerRef>,
    /// UID of the VMI at the start.
    pub vmi_uid: String,
    /// UID of the VMI that took its place.
    pub new_vmi_uid: Option<String>,
    /// Its launcher on this node.
    pub launcher: Option<NameUid>,
    /// Run strategy of the VM.
    pub run_strategy: Option<String>,
    /// Strategy in force for the running VMI.
    pub strategy_now: Option<Strategy>,
    /// Strategy that a new VMI would get; null where unknown.
    pub strategy_fresh: Option<Strategy>,
    /// Where the fresh strategy comes from: `template`, `instancetype`, `cluster`, `none`; null where unknown.
    pub strategy_source: Option<&'static str>,
    /// True if now and fresh differ in effect; null where unknown.
    pub stale: Option<bool>,
    /// True if a restart would let it leave the node and not block again.
    pub restart_helps: Option<bool>,
    /// Condition LiveMigratable; null while missing.
    pub migratable: Option<bool>,
    /// Its reason, when false.
    pub migratable_reason: Option<String>,
    /// What happens or happened.
    pub outcome: VmOutcome,
    /// Class of the reason, where there is one.
    pub cause: Option<Cause>,
    /// Whether waiting helps; null where unknown or no question.
    pub waiting_helps: Option<bool>,
    /// Flags that would change the outcome.
    pub needs: Vec<&'static str>,
    /// Volumes whose data ends with the launcher.
    pub data_loss: Vec<String>,
    /// Node before.
    pub node_before: Option<String>,
    /// Node after, in a result.
    pub node_after: Option<String>,
    /// True while the evacuation mark names this node.
    pub marked: bool,
    /// Migrations or restarts tried in this run.
    pub attempts: u32,
    /// The reason in one clause, for people.
    pub because: String,
    /// What to do about it, where a human must act.
    pub remedy: Option<String>,
}

impl VmRow {
    /// `namespace/name`.
    pub fn display_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// True where the row names a VM that waiting will not clear.
    pub fn is_blocked(&self) -> bool {
        self.outcome == VmOutcome::Blocks
    }
}

/// One pod that is no VM in preview or result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodRow {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// What happens or happened.
    pub outcome: PodOutcome,
    /// Class of the reason, where there is one.
    pub cause: Option<Cause>,
    /// Whether waiting helps; null where unknown or no question.
    pub waiting_helps: Option<bool>,
    /// Flags that would change the outcome.
    pub needs: Vec<&'static str>,
    /// Budgets that count it, as `namespace/name`.
    pub budgets: Vec<String>,
    /// The reason in one clause, for people; empty where nothing needs saying.
    pub because: String,
    /// What to do about it, where a human must act.
    pub remedy: Option<String>,
}

impl PodRow {
    /// `namespace/name`.
    pub fn display_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// How a node ends, or would end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Preview: nothing stands in the way.
    Clear,
    /// Something remains that waiting will not clear.
    Blocked,
    /// A flag or consent is missing.
    Refused,
    /// Nothing is left.
    Drained,
    /// Outside a drain: the VMs of the node that were to be restarted have been.
    Restarted,
    /// The deadline came first.
    Timeout,
    /// A signal came first.
    Interrupted,
    /// Something else failed.
    Failed,
    /// Its turn never came.
    NotStarted,
}

/// One node in preview or result.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// How it ended.
    pub verdict: Verdict,
    /// Exit code of this node alone.
    pub exit_code: u8,
    /// True if it was cordoned before the command.
    pub cordoned_before: bool,
    /// True if it is cordoned now.
    pub cordoned_now: bool,
    /// Seconds from the node's first write to its end.
    pub elapsed_seconds: f64,
    /// Counts of outcomes.
    pub counts: Counts,
    /// VMs, sorted by name.
    pub vms: Vec<VmRow>,
    /// Other pods, sorted by name.
    pub pods: Vec<PodRow>,
    /// What was taken back of it, where an aborted drain was undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<UndoReport>,
    /// Things worth knowing that belong to no single row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Result: volumes that were still attached when the last pod had gone, where there were any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attached_volumes: Vec<String>,
    /// Result: true where its Node object was deleted during the drain.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub vanished: bool,
}

/// What volumes that are still attached mean for whoever powers the node off: while they are, their pods cannot start
/// elsewhere ("Multi-Attach error"), and with the node off they are detached by force only, after 6 minutes.
pub fn still_attached(volumes: &[String]) -> String {
    let n = volumes.len();
    let more = if n > NAMED_VOLUMES { format!(" and {} more", n - NAMED_VOLUMES) } else { String::new() };
    let names = volumes[..n.min(NAMED_VOLUMES)].join(", ");
    let are = if n == 1 { "volume is" } else { "volumes are" };
    format!("{n} {are} still attached: {names}{more}; wait before you power the node off")
}

/// Volumes that are named before they are only counted.
const NAMED_VOLUMES: usize = 8;

/// Counts of a node's rows by what matters to a reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// VMs on the node.
    pub vms: usize,
    /// Pods on the node that are no VM.
    pub pods: usize,
    /// Pods that stay by their nature.
    pub staying: usize,
    /// Pods that `--pod-selector` leaves out.
    pub not_selected: usize,
    /// VMs and pods that block.
    pub blocked: usize,
    /// VMs and pods that wait.
    pub waiting: usize,
    /// VMs and pods for which a flag is missing.
    pub refused: usize,
}

impl Counts {
    /// Counts the rows.
    pub fn of(vms: &[VmRow], pods: &[PodRow]) -> Self {
        let pods_with = |outcome: PodOutcome| pods.iter().filter(|p| p.outcome == outcome).count();
        let vms_with = |outcome: VmOutcome| vms.iter().filter(|v| v.outcome == outcome).count();
        Self {
            vms: vms.len(),
            pods: pods.len(),
            staying: pods_with(PodOutcome::Stays),
            not_selected: pods_with(PodOutcome::NotSelected),
            blocked: pods_with(PodOutcome::Blocks) + vms_with(VmOutcome::Blocks),
            waiting: pods_with(PodOutcome::Waits) + vms_with(VmOutcome::Waits),
            refused: pods_with(PodOutcome::Refused),
        }
    }
}
