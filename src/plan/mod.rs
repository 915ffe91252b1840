//! The plan: what the drain will do to each VM and pod of each node, and what it needs to be allowed to.
//!
//! Flow: [`build()`] makes it from facts and options ([`restarts()`] does outside a drain), [`consent::settle`] applies flags and an answer to it. After that
//! it is executed (machine) or shown (report) as it stands. Pure.

mod build;
pub mod consent;
mod items;
mod options;
mod order;
pub mod probed;
mod restarts;
#[cfg(test)]
mod tests;
mod time;
mod verdict;

pub use build::build;
pub use items::{forecast_pod, forecast_vm};
pub use options::PlanOptions;
pub use restarts::restarts;
pub use verdict::would_exit;

use std::time::Duration;

use crate::facts::{Key, PodKey};
use crate::outcome::{PodRow, VmRow};

/// Restarts that may be under way at a time (design §5).
pub const RESTARTS_AT_A_TIME: usize = 5;

/// What the drain does to a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VmAction {
    /// Evict the launcher, which marks the VMI, and follow its migrations (also: it is marked or migrating already).
    Migrate,
    /// Evict the launcher, which shuts the guest down.
    ShutDown,
    /// Restart the VM through its subresource, after the cordon.
    Restart,
    /// Evict the launcher, which marks the VMI, and wait for the controller that owns it (External).
    AwaitOwner,
    /// Wait until LiveMigratable is there, then decide again.
    AwaitCondition,
    /// Wait until the migration to this node, or one that an eviction would break, has ended; then decide again.
    AwaitMigration,
    /// It is being shut down already: wait until it is gone from here.
    AwaitGone,
    /// Leave it alone.
    Leave,
}

impl VmAction {
    /// True where an eviction by it may mark the VMI for evacuation.
    pub const fn may_mark(self) -> bool {
        matches!(self, Self::Migrate | Self::AwaitOwner | Self::AwaitCondition | Self::AwaitMigration)
    }
}

/// What consent a VM needs (design §2): S, SD and E of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConsentKind {
    /// S: blocks; a restart helps and it runs elsewhere afterwards.
    Restart,
    /// SD: blocks; a restart helps, but it would stay down.
    RestartDown,
    /// E: the eviction passes and the VM does not run afterwards by itself.
    EvictDown,
}

/// When an item has its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wave {
    /// At once.
    Workload,
    /// When no VM of the node is open any more.
    Infrastructure,
}

/// One VM of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct VmItem {
    /// Key of the VMI (and of its VM, where it has one).
    pub vmi: Key,
    /// UID of the VMI.
    pub vmi_uid: String,
    /// Its launcher on this node; name and UID are empty where KubeVirt has the VMI here, but no launcher of it runs.
    pub launcher: PodKey,
    /// Hot-plug pods that follow it.
    pub companions: Vec<PodKey>,
    /// True if a VirtualMachine owns it: only then can it be restarted.
    pub has_vm: bool,
    /// What to do. After [`consent::settle`] this is permitted.
    pub action: VmAction,
    /// Class of consent that its first action needs, given or not; `None` needs none.
    pub consent: Option<ConsentKind>,
    /// Budgets that count its launcher; only where the eviction shuts the guest down.
    pub budgets: Vec<Key>,
    /// More that is worth knowing, one clause each.
    pub notes: Vec<String>,
    /// Time that the guest may take to stop.
    pub grace: Duration,
    /// The forecast, as people and programs see it.
    pub row: VmRow,
}

/// What the drain does to a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodAction {
    /// Evict it.
    Evict,
    /// Delete it (`--disable-eviction`, plain pods only).
    Delete,
    /// It is going already: wait for it.
    AwaitGone,
    /// Leave it alone: it stays by its nature, is not selected, or blocks.
    Leave,
    /// A flag is missing: with one such pod the whole command is refused before anything changes.
    Refuse,
}

/// One pod of a node that is no VM.
#[derive(Debug, Clone, PartialEq)]
pub struct PodItem {
    /// Identity.
    pub pod: PodKey,
    /// What to do.
    pub action: PodAction,
    /// Its turn.
    pub wave: Wave,
    /// One pod at a time among those with the same tag (virt-api).
    pub one_at_a_time: Option<&'static str>,
    /// Budgets that count it.
    pub budgets: Vec<Key>,
    /// Time that it may take to stop.
    pub grace: Duration,
    /// Why what replaces it finds no node, where that is so.
    pub bound: Option<String>,
    /// The forecast, as people and programs see it.
    pub row: PodRow,
}

/// The plan of one node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodePlan {
    /// Name.
    pub node: String,
    /// UID.
    pub uid: String,
    /// True if it is cordoned already.
    pub cordoned: bool,
    /// VMs, sorted by key.
    pub vms: Vec<VmItem>,
    /// Other pods, sorted by key.
    pub pods: Vec<PodItem>,
    /// Things worth knowing that belong to no single row.
    pub warnings: Vec<String>,
    /// Time that the node may take.
    pub timeout: Duration,
    /// Migrations of its VMs that may run at a time.
    pub slots: u32,
    /// Those of the warnings that say that the time is too short.
    pub too_short: Vec<String>,
}

/// The plan of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// One plan a node, in the order in which they are drained.
    pub nodes: Vec<NodePlan>,
    /// Things worth knowing that belong to no single node.
    pub warnings: Vec<String>,
    /// True if no open node is left outside this command's nodes, while VMs must move.
    pub nowhere_to_go: bool,
    /// Where there is none: which nodes are closed, and why.
    pub closed_nodes: String,
}
