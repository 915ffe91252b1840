//! What undoing a drain does to each VM and to the cordon: the words of `cancel`.

use serde::Serialize;

use super::OwnerRef;

/// What happens, or happened, to a VM whose evacuation is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UndoOutcome {
    /// Its evacuation is cancelled: no mark of the node, no unfinished evacuation migration.
    Cancels,
    /// Result only: it had left the node before its migration could be stopped.
    Migrates,
    /// Result only: it was deleted, or stopped, meanwhile.
    Gone,
    /// Its evacuation goes on until a human acts.
    Blocks,
    /// Result only: the time limit, a signal or a failure came first.
    Pending,
}

/// What happens, or happened, to the cordon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CordonOutcome {
    /// There is none.
    None,
    /// Lifted: safe-drain had set it.
    Lifts,
    /// It stays.
    Stays,
}

/// How the undoing of a node ends, or would end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UndoVerdict {
    /// Preview: nothing stands in the way.
    Clear,
    /// Nothing of the drain is left.
    Undone,
    /// Something remains that waiting will not clear.
    Blocked,
    /// The time limit came first.
    Timeout,
    /// A signal came first.
    Interrupted,
    /// Something else failed.
    Failed,
}

/// An evacuation migration that was not finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UndoMigration {
    /// Name, in the namespace of its VM.
    pub name: String,
    /// UID.
    pub uid: String,
    /// True if it is deleted, by this command or by somebody before.
    pub deletes: bool,
    /// True once it has ended.
    pub finished: bool,
}

/// One VM whose evacuation from the node is, or was, under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UndoRow {
    /// Namespace.
    pub namespace: String,
    /// Name of the VMI.
    pub name: String,
    /// UID of the VMI; null where only a migration of it is left.
    pub vmi_uid: Option<String>,
    /// Owner of the VMI; null for a standalone one.
    pub owner: Option<OwnerRef>,
    /// Node on which it runs now.
    pub node: Option<String>,
    /// True while the evacuation mark names the node of the report.
    pub marked: bool,
    /// What happens or happened.
    pub outcome: UndoOutcome,
    /// Its evacuation migrations that were unfinished.
    pub migrations: Vec<UndoMigration>,
    /// The reason in one clause, for people; empty where nothing needs saying.
    pub because: String,
    /// What to do about it, where a human must act.
    pub remedy: Option<String>,
}

impl UndoRow {
    /// `namespace/name`.
    pub fn display_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// One node of `cancel`, in preview or result.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UndoReport {
    /// Name.
    pub name: String,
    /// UID; null for a node that does not exist any more.
    pub uid: Option<String>,
    /// How it ended.
    pub verdict: UndoVerdict,
    /// Exit code of this node alone.
    pub exit_code: u8,
    /// True if it was cordoned before the command.
    pub cordoned_before: bool,
    /// Field manager that had set the cordon, where there was one and the API tells.
    pub cordoned_by: Option<String>,
    /// True if it is cordoned now.
    pub cordoned_now: bool,
    /// What happens, or happened, to the cordon.
    pub cordon: CordonOutcome,
    /// Why the cordon stays, where it does; for people.
    pub cordon_because: Option<String>,
    /// Seconds that it took.
    pub elapsed_seconds: f64,
    /// VMs, sorted by name.
    pub vms: Vec<UndoRow>,
}

impl UndoReport {
    /// True where nothing was left of a drain.
    pub fn is_nothing(&self) -> bool {
        self.vms.is_empty() && self.cordon != CordonOutcome::Lifts
    }
}
