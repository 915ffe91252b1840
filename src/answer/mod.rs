//! What a server answers, sorted by what it means for a drain. Pure: fields first, text last.

mod eviction;
mod raw;
mod restart;
mod undo;

pub use eviction::classify_eviction;
pub use restart::classify_restart;
pub use undo::classify_undo;

use std::time::Duration;

/// An HTTP answer as the classifiers see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawAnswer {
    /// HTTP status code.
    pub code: u16,
    /// `Content-Type` without parameters; empty where there was none.
    pub content_type: String,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
    /// The `Status` object, where the body was one.
    pub status: Option<RawStatus>,
    /// The body as text, where it was no `Status`.
    pub text: String,
}

/// The parts of a `Status` that matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawStatus {
    /// `status: Failure`.
    pub failure: bool,
    /// `code`, 0 where absent.
    pub code: u16,
    /// `message`.
    pub message: String,
    /// `reason`.
    pub reason: String,
    /// `details.name`.
    pub details_name: String,
    /// `details.kind`.
    pub details_kind: String,
    /// `details.causes` as (reason, message).
    pub causes: Vec<(String, String)>,
    /// `details.retryAfterSeconds`.
    pub retry_after: Option<u64>,
}

/// What a POST of an eviction was answered (design §4, first match from the top).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvictionAnswer {
    /// The pod is being deleted.
    Accepted,
    /// The pod is not there.
    Gone,
    /// KubeVirt marked the VMI now (`marked_now`) or had marked it before.
    VmEvacuating {
        /// True for the first refusal, which set the mark.
        marked_now: bool,
    },
    /// The strategy demands a migration that is impossible.
    VmNotMigratable,
    /// The pod is the target of a migration, or a left-over source.
    VmMigrationTarget,
    /// A hot-plug pod of a running VM.
    HotplugCompanion,
    /// virt-api could not read or mark the VMI.
    VmLookupFailed {
        /// Its words.
        text: String,
    },
    /// The webhook could not read our eviction.
    EvictionMalformed {
        /// Its words.
        text: String,
    },
    /// A budget has no disruption left.
    BudgetExhausted {
        /// Name of the budget, where the answer tells.
        budget: Option<String>,
        /// Healthy pods that it wants, where the answer tells.
        needs: Option<u32>,
        /// Healthy pods that it has, where the answer tells.
        has: Option<u32>,
        /// The server's cause.
        text: String,
    },
    /// The budget's controller has not caught up.
    BudgetUnsynced {
        /// Name of the budget, where the answer tells.
        budget: Option<String>,
    },
    /// The budget's status is broken.
    BudgetBroken {
        /// Name of the budget, where the answer tells.
        budget: Option<String>,
        /// The server's words.
        text: String,
    },
    /// Conflicting writes on the budget.
    BudgetBusy {
        /// Name of the budget, where the answer tells.
        budget: Option<String>,
    },
    /// More than one budget counts the pod.
    MultipleBudgets,
    /// Another pod has the name now.
    PodReplaced,
    /// The webhook could not be called.
    WebhookUnreachable {
        /// The server's words.
        text: String,
    },
    /// A webhook refused.
    WebhookRefused {
        /// Name of the webhook.
        name: String,
        /// Its words.
        text: String,
    },
    /// The API server asks to come back later.
    Throttled {
        /// How long it asks to wait, where it does.
        after: Option<Duration>,
    },
    /// The namespace is being deleted.
    NamespaceTerminating,
    /// A webhook cannot be asked without effect; only a dry run can get this.
    ProbeImpossible {
        /// The server's words.
        text: String,
    },
    /// Not permitted.
    Forbidden {
        /// The server's words.
        text: String,
    },
    /// Not accepted as a request.
    Invalid {
        /// The server's words.
        text: String,
    },
    /// Credentials were refused.
    Unauthorized,
    /// Any other error of the server or the connection.
    ServerTrouble {
        /// What happened.
        text: String,
    },
}

/// What a PUT of a VM restart was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestartAnswer {
    /// Accepted (202): the old VMI will go, a new one will come.
    Accepted,
    /// 500 "already underway": a restart or start is pending.
    Underway,
    /// 409: the run strategy forbids it, or the VM runs no VMI; read the VM again.
    NotPossible {
        /// The server's words.
        text: String,
    },
    /// 404: there is no such VM.
    NoSuchVm,
    /// 403.
    Forbidden {
        /// The server's words.
        text: String,
    },
    /// 401.
    Unauthorized,
    /// 400 or another request error.
    Invalid {
        /// The server's words.
        text: String,
    },
    /// 429: the API server asks to come back later; nothing was done.
    Throttled {
        /// How long it asks to wait, where it does.
        after: Option<Duration>,
    },
    /// 503, 5xx or transport: try again later.
    Unavailable {
        /// What happened.
        text: String,
        /// How long the server asks to wait, where it does.
        after: Option<Duration>,
    },
}

/// What a step of an undo was answered: a PUT of evacuate/cancel, a DELETE of a migration, a patch of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoAnswer {
    /// Done, or there was nothing to do.
    Done,
    /// 404: the object is gone.
    Gone,
    /// 404 for the path: the release has no such call.
    Unsupported,
    /// 409 or 500: the object is not as it was thought to be, or the server failed. Read it again.
    Doubtful {
        /// The server's words.
        text: String,
    },
    /// 403, or 401.
    Forbidden {
        /// The server's words.
        text: String,
    },
    /// 400 or another request error.
    Refused {
        /// The server's words.
        text: String,
    },
    /// 502 to 504, 429 or transport: try again later.
    Unavailable {
        /// What happened.
        text: String,
    },
}
