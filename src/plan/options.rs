//! What the plan depends on besides the facts.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::facts::{Key, LabelSelector};

/// What the command was told, as far as a plan needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the command line")]
pub struct PlanOptions {
    /// `--force`: pods that nothing brings back may go.
    pub force: bool,
    /// `--ignore-daemonsets`; ours defaults to true.
    pub ignore_daemonsets: bool,
    /// `--delete-emptydir-data`: data that ends with its pod may go.
    pub delete_emptydir_data: bool,
    /// `--disable-eviction`: plain pods are deleted, not evicted.
    pub disable_eviction: bool,
    /// `--pod-selector`.
    pub pod_selector: Option<LabelSelector>,
    /// `--skip-wait-for-delete-timeout`.
    pub skip_wait_for_delete: Option<Duration>,
    /// `--grace-period` for plain pods; `None` is their own.
    pub grace_period: Option<u32>,
    /// `--timeout` of each node.
    pub timeout: Duration,
    /// UID of the pod in which this command runs.
    pub own_pod_uid: Option<String>,
    /// True outside a drain: VMs are restarted where they are, no node is cordoned, and one may come back to its node.
    pub in_place: bool,
    /// All nodes that this command drains: none of them counts as a place to go. [`super::build`] adds its own nodes.
    pub drained_nodes: BTreeSet<String>,
    /// Namespaces in which VMs may not be restarted (no permission).
    pub restart_denied: BTreeSet<String>,
    /// VMs whose restart the server refused in this run.
    pub restart_refused: BTreeSet<Key>,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            force: false,
            ignore_daemonsets: true,
            delete_emptydir_data: false,
            disable_eviction: false,
            pod_selector: None,
            skip_wait_for_delete: None,
            grace_period: None,
            timeout: Duration::from_secs(30 * 60),
            own_pod_uid: None,
            in_place: false,
            drained_nodes: BTreeSet::new(),
            restart_denied: BTreeSet::new(),
            restart_refused: BTreeSet::new(),
        }
    }
}
