//! The one stream of events that a run produces. Screen, lines, documents, summary and exit code are folds over it.
//!
//! Events are facts in the past tense, owned and serialisable: `--events-file` writes them one JSON object a line.
//! Their order is the order in which the machine saw things happen. A state that has not changed makes no event.

use jiff::Timestamp;
use serde::Serialize;

use crate::exit::ExitCode;
use crate::facts::{Key, PodKey};
use crate::outcome::{AuditReport, Cause, NodeReport, PodRow, UndoReport, VmRow};

/// One event of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainEvent {
    /// Number of the event in its run, from 1.
    pub seq: u64,
    /// Milliseconds since the run started.
    pub elapsed_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What servers the run talks to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ServerInfo {
    /// Name of the kubeconfig context; null for in-cluster credentials.
    pub context: Option<String>,
    /// Version of the API server.
    pub kubernetes: Option<String>,
    /// Version of KubeVirt; null where it is not installed.
    pub kubevirt: Option<String>,
    /// Cluster-wide eviction strategy; null where KubeVirt or its one CR is missing.
    #[serde(rename = "evictionStrategy")]
    pub eviction_strategy: Option<String>,
}

/// How a pod left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PodExit {
    /// Evicted by us.
    Evicted,
    /// Deleted by us (`--disable-eviction`).
    Deleted,
    /// It was gone before we asked, or somebody else removed it.
    AlreadyGone,
    /// It is there, but nothing waits for it any more.
    Skipped,
    /// It is there, and nothing waits for it any more since `--skip-wait-for-delete-timeout` is over.
    Overdue,
}

/// What a VM in motion is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// Marked; its migration waits for a free slot or for its turn after a failure.
    Queued,
    /// Its migration prepares the target.
    PreparingTarget,
    /// Its memory is being copied.
    Migrating,
    /// A restart or an eviction is shutting the guest down.
    ShuttingDown,
    /// The new VMI waits for a node.
    Scheduling,
    /// The new VMI starts.
    Starting,
    /// An outside controller must act.
    WaitingForOwner,
    /// virt-handler has not said yet whether it can migrate.
    WaitingForCondition,
    /// A migration to this node must end first.
    WaitingForMigration,
    /// The eviction is refused for a passing reason (budget, webhook, busy API server).
    Retrying,
}

/// Progress of one VM, as a screen shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VmProgress {
    /// What it is doing.
    pub activity: Activity,
    /// Since when, in milliseconds of the run.
    pub since_ms: u64,
    /// Migration or restart attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// Node that it goes to, once known.
    pub target: Option<String>,
    /// Migrations ahead of it in the queue, where it is queued.
    pub queue: Option<u32>,
    /// A reason worth showing: the scheduler's words, the last failure.
    pub detail: Option<String>,
    /// When it is asked for again, in milliseconds of the run, where it is refused for a passing reason.
    pub next_try_ms: Option<u64>,
}

/// Why a run was stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP.
    HangUp,
}

/// How consent to a class of interruptions came about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consent {
    /// It was neither given nor asked for.
    #[default]
    None,
    /// By a flag.
    Flag,
    /// By a `y` to the question.
    Answer,
    /// The question was answered with no.
    Declined,
}

impl StopReason {
    /// The code of an end by that signal.
    pub const fn exit_code(self) -> ExitCode {
        match self {
            Self::Interrupt => ExitCode::Interrupted,
            Self::Terminate => ExitCode::Terminated,
            Self::HangUp => ExitCode::Hangup,
        }
    }
}

/// Kinds of events.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum EventKind {
    /// Connected; the cluster's facts are known.
    Connected {
        /// The servers.
        server: ServerInfo,
        /// Nodes that the command names, in order; none for a command that names none.
        nodes: Vec<String>,
        /// Seconds that each node may take; 0 where nothing is waited for.
        timeout_seconds: u64,
        /// When the run started.
        started_at: Timestamp,
    },
    /// The plan stands; nothing has been changed.
    Planned {
        /// One report a node: the forecast.
        nodes: Vec<NodeReport>,
    },
    /// It is settled which interruptions of VMs are agreed to.
    Consented {
        /// Restarts of stale VMs.
        restart_stale: Consent,
        /// VMs that do not run afterwards.
        vm_down: Consent,
    },
    /// A note for people that belongs to no single object.
    Noted {
        /// True for a warning.
        warning: bool,
        /// The text.
        text: String,
    },
    /// A node is cordoned.
    NodeCordoned {
        /// Its name.
        node: String,
        /// True if it had been before.
        already: bool,
    },
    /// A cordon was lifted: one that this run set, or with `cancel` that of an earlier run.
    NodeUncordoned {
        /// Its name.
        node: String,
    },
    /// A node has its turn: its time runs from here.
    NodeStarted {
        /// Its name.
        node: String,
    },
    /// An eviction (or deletion) was sent for the first time.
    PodEvicting {
        /// Node.
        node: String,
        /// Pod.
        pod: PodKey,
        /// True for a launcher: its VM has lines of its own.
        launcher: bool,
    },
    /// An eviction is refused for a passing reason, or the pod takes its time to stop.
    PodWaiting {
        /// Node.
        node: String,
        /// Pod.
        pod: PodKey,
        /// Why.
        cause: Cause,
        /// In words.
        because: String,
    },
    /// The eviction was accepted; the pod is stopping.
    PodStopping {
        /// Node.
        node: String,
        /// Pod.
        pod: PodKey,
        /// True for a launcher.
        launcher: bool,
        /// Seconds that it may take.
        grace_seconds: i64,
    },
    /// The pod is gone from the node.
    PodGone {
        /// Node.
        node: String,
        /// Pod.
        pod: PodKey,
        /// True for a launcher.
        launcher: bool,
        /// How.
        how: PodExit,
    },
    /// The pod stays until a human acts.
    PodBlocked {
        /// Node.
        node: String,
        /// Its row.
        row: PodRow,
    },
    /// A VM does something else than before.
    VmProgressed {
        /// Node.
        node: String,
        /// VM.
        vm: Key,
        /// What it does.
        progress: VmProgress,
    },
    /// A restart was accepted.
    VmRestarting {
        /// Node.
        node: String,
        /// VM.
        vm: Key,
    },
    /// A VM has reached its end: it left the node, or will not.
    VmEnded {
        /// Node.
        node: String,
        /// Its row.
        row: Box<VmRow>,
    },
    /// Infrastructure pods have their turn.
    InfrastructureStarted {
        /// Node.
        node: String,
        /// How many.
        pods: usize,
    },
    /// No contact with the API server.
    ContactLost,
    /// Contact again.
    ContactRestored {
        /// For how long there was none, in milliseconds.
        lost_ms: u64,
    },
    /// The run was stopped from outside.
    Stopped {
        /// By what.
        reason: StopReason,
    },
    /// A node's time is up.
    DeadlineReached {
        /// Node.
        node: String,
    },
    /// A node has ended.
    NodeEnded {
        /// The result.
        report: NodeReport,
    },
    /// `audit`: every VM has been looked at.
    Audited {
        /// What was found.
        report: AuditReport,
    },
    /// `cancel`: what there is to undo is known; nothing has been changed.
    UndoPlanned {
        /// One report a node: the forecast.
        nodes: Vec<UndoReport>,
    },
    /// A drain with `--on-abort=cancel` was cut short: what it has begun on that node is taken back.
    UndoStarted {
        /// Node.
        node: String,
    },
    /// A VM's evacuation mark was taken off.
    EvacuationCancelled {
        /// Node that it was marked for.
        node: String,
        /// VM.
        vm: Key,
    },
    /// The deletion of an evacuation migration was accepted: it is being stopped.
    MigrationDeleted {
        /// Node that it evacuates.
        node: String,
        /// Migration.
        migration: Key,
    },
    /// The undoing of a node has ended.
    UndoEnded {
        /// The result; in a preview the forecast.
        report: UndoReport,
    },
    /// The run has ended.
    Ended {
        /// Exit code.
        exit_code: u8,
        /// The error that ended it, where one did.
        error: Option<String>,
        /// What to do about it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        hints: Vec<String>,
    },
}
