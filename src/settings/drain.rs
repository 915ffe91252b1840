//! What a drain shall do.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::selector::LabelSelector;

/// How long one node may take, from its first write, unless `--timeout` says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Objects per page of a list unless `--chunk-size` says otherwise; smaller than kubectl's 500 to keep memory small.
pub const DEFAULT_CHUNK_SIZE: u32 = 100;

/// Nodes that are drained at the same time unless `--parallel` says otherwise.
pub const DEFAULT_PARALLEL: NonZeroUsize = NonZeroUsize::MIN;

/// The nodes to drain: named, or selected by label, never both and never neither.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Targets {
    /// Node names without `node/` prefix, in the order given, without duplicates, at least one.
    Nodes(Vec<String>),
    /// Every node with these labels. Never empty, so it never means "all nodes" by accident.
    Selector(LabelSelector),
}

/// Whether anything may be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DryRun {
    /// The real thing.
    #[default]
    None,
    /// Preview from what was read; nothing is sent that could change something.
    Client,
    /// As [`DryRun::Client`], and each eviction and restart is also put to the server as a dry run, once.
    Server,
}

impl DryRun {
    /// True for both kinds of preview.
    pub const fn is_preview(self) -> bool {
        matches!(self, Self::Client | Self::Server)
    }

    /// The value as it stands on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// Consent to restart stale VMs that block the drain and that a restart helps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestartStale {
    /// The flag was not given: ask where a question is possible, else never.
    #[default]
    Unset,
    /// Ask; where no question is possible the drain is refused.
    Ask,
    /// Restart them without a question.
    Always,
    /// Leave them alone; they block.
    Never,
}

impl RestartStale {
    /// The value as it stands on the command line; `None` when the flag was not given.
    pub const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Unset => None,
            Self::Ask => Some("ask"),
            Self::Always => Some("always"),
            Self::Never => Some("never"),
        }
    }
}

/// What to do with the evacuations under way when a drain ends early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnAbort {
    /// Leave cordon, marks and migrations as they are; a second run resumes.
    #[default]
    Leave,
    /// Cancel the evacuations, delete their unfinished migrations, lift the cordon that this run set.
    Cancel,
}

impl OnAbort {
    /// The value as it stands on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Leave => "leave",
            Self::Cancel => "cancel",
        }
    }
}

/// Everything that decides what a drain does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line, independent of the others")]
pub struct DrainOptions {
    /// The nodes to drain.
    pub targets: Targets,
    /// Whether this is a preview.
    pub dry_run: DryRun,
    /// Go on although pods declare no controller, or their DaemonSet is gone. Never applies to launchers.
    pub force: bool,
    /// Leave DaemonSet pods in place (`true`) or refuse because of them (`false`).
    pub ignore_daemonsets: bool,
    /// Agree to lose what is in `emptyDir` volumes, and in a VM's `emptyDisk` and `ephemeral` volumes.
    pub delete_emptydir_data: bool,
    /// Seconds each pod gets to stop; `None` is the pod's own. Never applies to launchers.
    pub grace_period: Option<u32>,
    /// How long one node may take from its first write. Never zero.
    pub timeout: Duration,
    /// Only pods with these labels are touched; everything else is left out and counted.
    pub pod_selector: Option<LabelSelector>,
    /// Delete plain pods in place of evicting them, which goes past budgets. VMs are still evicted.
    pub disable_eviction: bool,
    /// Don't wait for pods that have been terminating for longer than this. Never applies to launchers.
    pub skip_wait_for_delete: Option<Duration>,
    /// Objects per page of a list; 0 reads all in one page.
    pub chunk_size: u32,
    /// Consent to restart stale VMs.
    pub restart_stale: RestartStale,
    /// Consent to VMs that will not run afterwards by themselves.
    pub allow_vm_down: bool,
    /// Drain only if nothing would block, else change nothing.
    pub only_if_clear: bool,
    /// Keep waiting, until the timeout, for what only a human can clear.
    pub wait_blocked: bool,
    /// What to do with evacuations under way when the drain ends early.
    pub on_abort: OnAbort,
    /// How many nodes are drained at the same time.
    pub parallel: NonZeroUsize,
}

impl DrainOptions {
    /// The options of a bare `kubectl safe-drain` with these targets.
    pub const fn new(targets: Targets) -> Self {
        Self {
            targets,
            dry_run: DryRun::None,
            force: false,
            ignore_daemonsets: true,
            delete_emptydir_data: false,
            grace_period: None,
            timeout: DEFAULT_TIMEOUT,
            pod_selector: None,
            disable_eviction: false,
            skip_wait_for_delete: None,
            chunk_size: DEFAULT_CHUNK_SIZE,
            restart_stale: RestartStale::Unset,
            allow_vm_down: false,
            only_if_clear: false,
            wait_blocked: false,
            on_abort: OnAbort::Leave,
            parallel: DEFAULT_PARALLEL,
        }
    }

    /// The options of a bare `kubectl safe-drain NODE...`.
    pub fn for_nodes<I>(nodes: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        Self::new(Targets::Nodes(nodes.into_iter().map(Into::into).collect()))
    }
}
