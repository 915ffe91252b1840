//! What goes into the machine and what comes out of it.

use std::time::Duration;

use crate::answer::{EvictionAnswer, RestartAnswer, UndoAnswer};
use crate::event::StopReason;
use crate::facts::{Change, Key, KubeVirtFacts, NodeFacts, PodFacts, PodKey, VmiFacts};
use crate::undo::Step;

/// Number of a request, unique in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Something that happened in the world.
#[derive(Debug, Clone)]
pub enum Input {
    /// A watch saw a change.
    Change(Change),
    /// A request was answered.
    Answer {
        /// Which one.
        id: RequestId,
        /// With what.
        reply: Reply,
    },
    /// The time asked for by `poll_timeout` has come (harmless if it has not).
    Tick,
    /// A signal asks to stop: nothing more is sent.
    Stop(StopReason),
    /// No watch and no request gets through any more.
    ContactLost,
    /// They do again.
    ContactRestored,
    /// The shell has something to say that belongs into the order of events.
    Warn(String),
    /// Credentials were refused, and fresh ones too: nothing more can be done or seen.
    CredentialsRefused,
}

/// Why a read or a cordon did not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The object is not there.
    NotFound,
    /// It changed under the request (409).
    Conflict,
    /// Not permitted; the server's words.
    Forbidden(String),
    /// Credentials were refused, and new ones too.
    Unauthorized,
    /// Anything that may pass: timeout, connection, 429, 5xx.
    Passing(String),
    /// Anything else.
    Other(String),
}

/// What an answer tells of the server's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    /// It did its work, whatever came of it.
    Given,
    /// It did nothing and asks for patience.
    TurnedAway {
        /// How long, where it says so.
        after: Option<Duration>,
    },
    /// Nothing.
    Unknown,
}

impl Reply {
    /// What it tells of the server's load. Only what changes something counts: reads may have places of their own there.
    pub(super) fn service(&self) -> Service {
        match self {
            Self::Eviction(EvictionAnswer::Throttled { after }) | Self::Restart(RestartAnswer::Throttled { after }) => {
                Service::TurnedAway { after: *after }
            }
            Self::Eviction(EvictionAnswer::ServerTrouble { .. })
            | Self::Restart(RestartAnswer::Unavailable { .. })
            | Self::Cordon(_)
            | Self::Node(_)
            | Self::Vmi(_)
            | Self::KubeVirt(_)
            | Self::Pod(_)
            | Self::Pods(_)
            | Self::Undo(_)
            | Self::Volumes(_) => Service::Unknown,
            Self::Eviction(_) | Self::Restart(_) => Service::Given,
        }
    }

    /// True if it says that the credentials are refused, new ones too.
    pub(super) fn is_unauthorized(&self) -> bool {
        match self {
            Self::Eviction(answer) => *answer == EvictionAnswer::Unauthorized,
            Self::Restart(answer) => *answer == RestartAnswer::Unauthorized,
            Self::Cordon(result) => matches!(result, Err(Failure::Unauthorized)),
            Self::Node(result) => matches!(result, Err(Failure::Unauthorized)),
            Self::Vmi(result) => matches!(result, Err(Failure::Unauthorized)),
            Self::KubeVirt(result) => matches!(result, Err(Failure::Unauthorized)),
            Self::Pod(result) => matches!(result, Err(Failure::Unauthorized)),
            Self::Pods(result) => matches!(result, Err(Failure::Unauthorized)),
            // What is not undone is said, and volumes only add to what is told at the end.
            Self::Undo(_) | Self::Volumes(_) => false,
        }
    }
}

impl Failure {
    /// It in words.
    pub fn text(&self) -> &str {
        match self {
            Self::NotFound => "it does not exist",
            Self::Conflict => "it changed at the same time",
            Self::Unauthorized => "the credentials were refused",
            Self::Forbidden(text) | Self::Passing(text) | Self::Other(text) => text,
        }
    }
}

/// A node that is unschedulable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cordoned {
    /// How it looks.
    pub facts: NodeFacts,
    /// True if this request set it; false if it was so already.
    pub wrote: bool,
}

/// The answer to an [`Effect`].
#[derive(Debug, Clone)]
pub enum Reply {
    /// To `Cordon` and `CordonFresh`.
    Cordon(Result<Cordoned, Failure>),
    /// To `Uncordon`.
    Node(Result<NodeFacts, Failure>),
    /// To `Evict` and `Delete`.
    Eviction(EvictionAnswer),
    /// To `Restart`.
    Restart(RestartAnswer),
    /// To `ReadVmi`; `NotFound` means it is gone.
    Vmi(Result<VmiFacts, Failure>),
    /// To `ReadKubeVirt`.
    KubeVirt(Result<KubeVirtFacts, Failure>),
    /// To `ReadPod`.
    Pod(Result<PodFacts, Failure>),
    /// To `RelistPods` and `ReadPending`.
    Pods(Result<Vec<PodFacts>, Failure>),
    /// To `Undo`.
    Undo(UndoAnswer),
    /// To `ListVolumes`: names of those that are attached.
    Volumes(Result<Vec<String>, Failure>),
}

/// A request that the shell must send, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// Its number, for the answer.
    pub id: RequestId,
    /// What to send.
    pub kind: EffectKind,
}

/// Requests that the machine asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EffectKind {
    /// Set `spec.unschedulable`.
    Cordon {
        /// Node.
        node: String,
        /// resourceVersion on which the decision rests.
        resource_version: String,
    },
    /// Read the node, then cordon it on what was read.
    CordonFresh {
        /// Node.
        node: String,
    },
    /// Take the cordon back.
    Uncordon {
        /// Node.
        node: String,
    },
    /// Evict a pod, by UID.
    Evict {
        /// Pod.
        pod: PodKey,
        /// Grace period in seconds, where the user gave one (never for launchers).
        grace: Option<u32>,
    },
    /// Delete a pod, by UID (`--disable-eviction`).
    Delete {
        /// Pod.
        pod: PodKey,
        /// Grace period in seconds, where the user gave one.
        grace: Option<u32>,
    },
    /// Restart a VM.
    Restart {
        /// VM.
        vm: Key,
    },
    /// Read a VMI right before something is decided on it.
    ReadVmi {
        /// VMI.
        vmi: Key,
    },
    /// Read the KubeVirt CR before the first restart.
    ReadKubeVirt {
        /// CR.
        key: Key,
    },
    /// Read a pod whose identity is in doubt.
    ReadPod {
        /// Pod.
        pod: PodKey,
    },
    /// List the pods of a namespace that have not started: something waits for one.
    ReadPending {
        /// Namespace.
        namespace: String,
    },
    /// List the pods of a node once more at its end.
    RelistPods {
        /// Node.
        node: String,
    },
    /// A step that takes back what an aborted drain has begun.
    Undo {
        /// Which.
        step: Step,
    },
    /// List the volumes that are still attached to a node whose pods are gone.
    ListVolumes {
        /// Node.
        node: String,
    },
}

impl EffectKind {
    /// True for the requests that are bounded in number at a time: evictions, deletions, restarts.
    pub(super) fn is_post(&self) -> bool {
        matches!(self, Self::Evict { .. } | Self::Delete { .. } | Self::Restart { .. })
    }

    /// True for what may change something in the cluster.
    pub(super) fn writes(&self) -> bool {
        let cordons = matches!(self, Self::Cordon { .. } | Self::CordonFresh { .. } | Self::Uncordon { .. });
        cordons || self.is_post() || matches!(self, Self::Undo { .. })
    }

    /// True for what takes one of the places in flight: a VMI is read only where its request could follow.
    pub(super) fn takes_slot(&self) -> bool {
        self.is_post() || matches!(self, Self::ReadVmi { .. })
    }
}

/// How the machine works.
#[derive(Debug, Clone)]
pub struct MachineOptions {
    /// Time that each node has from its first write.
    pub timeout: Duration,
    /// Keep waiting for what only a human can clear.
    pub wait_blocked: bool,
    /// Do not wait for pods whose deletion is older than this.
    pub skip_wait_for_delete: Option<Duration>,
    /// Grace period for pods that are no launcher.
    pub grace_period: Option<u32>,
    /// True outside a drain: no node is cordoned or emptied, VMs are restarted where they are, and all nodes have their
    /// turn at once.
    pub in_place: bool,
    /// Nodes at a time.
    pub parallel: usize,
    /// Evictions and restarts in flight at a time.
    pub max_in_flight: usize,
    /// Take back what was begun on a node whose time is up, or when a signal comes.
    pub undo_on_abort: bool,
}
