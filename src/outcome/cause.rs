//! Classes of reasons: those of an eviction's answer, and those that only a forecast or the time can give.

use serde::Serialize;

/// Why something waits, blocks, is refused or did not end well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Cause {
    /// The launcher webhook refuses: the strategy demands a migration that is impossible.
    VmNotMigratable,
    /// KubeVirt marked the VMI and migrates it.
    VmEvacuating,
    /// The pod is the target of a migration to this node.
    VmMigrationTarget,
    /// A hot-plug pod that follows its VM.
    HotplugCompanion,
    /// virt-api could not look the VMI up.
    VmLookupFailed,
    /// A launcher that has ended: nothing runs in it, and nothing waits for it.
    LeftOver,
    /// A launcher whose VMI does not exist.
    OrphanLauncher,
    /// An outside controller must act (strategy External).
    ExternalOwner,
    /// virt-handler has not reported LiveMigratable yet.
    ConditionMissing,
    /// The VM was migratable when it was planned and is not any more.
    BecameNonMigratable,
    /// No other node can take the VM, or a quota does not admit the pod that would.
    NoMigrationTarget,
    /// Marked, but no migration appears.
    MigrationMissing,
    /// The migration waits for a free slot.
    MigrationQueued,
    /// The migration failed again and again.
    MigrationFailed,
    /// A restart was not accepted.
    RestartRefused,
    /// The restart was accepted, but nothing came of it in time.
    RestartStalled,
    /// The new VMI finds no node.
    Unschedulable,
    /// The new VMI came up on the same node.
    SameNode,
    /// The new VMI does not carry the strategy that was promised.
    StrategyMismatch,
    /// It stays off by its run strategy or its owner.
    StaysOff,
    /// Only this node has its disk or device; of a pod also: the labels that it asks for.
    BoundToNode,
    /// The node cannot confirm that anything stopped.
    NodeNotReady,
    /// Its grace period is longer than the time left.
    GraceTooLong,
    /// A backup of the VM runs.
    BackupRunning,
    /// Data in an `emptyDisk` or `ephemeral` volume, or an `emptyDir`, would be lost.
    LocalData,
    /// A pod that no controller brings back.
    Unmanaged,
    /// A DaemonSet pod, refused by `--ignore-daemonsets=false` or left in place.
    DaemonSet,
    /// A DaemonSet pod whose DaemonSet does not exist.
    OrphanedDaemonSetPod,
    /// The API's picture of a static pod.
    MirrorPod,
    /// The pod in which this command runs.
    OwnPod,
    /// A pod that fills a claim: what it has transferred is lost, and another one begins anew.
    TransferRestarts,
    /// Consent is missing.
    ConsentMissing,
    /// The budget has no disruption left now.
    BudgetExhausted,
    /// The budget can never allow it as things stand.
    BudgetNever,
    /// The budget's controller has not seen its present spec.
    BudgetUnsynced,
    /// The budget's status is broken.
    BudgetBroken,
    /// Others write the budget at the same time.
    BudgetBusy,
    /// More than one budget counts the pod.
    MultipleBudgets,
    /// The admission webhook could not be reached.
    WebhookUnreachable,
    /// Another admission webhook refuses.
    WebhookRefused,
    /// The API server is busy.
    Throttled,
    /// The namespace is being deleted.
    NamespaceTerminating,
    /// Not permitted.
    Forbidden,
    /// The API server does not accept the request.
    Invalid,
    /// The webhook could not read our eviction.
    EvictionMalformed,
    /// Credentials were refused.
    Unauthorized,
    /// Another error of the API server or the connection.
    ServerTrouble,
    /// Accepted, and still stopping.
    Stopping,
    /// Kept by a finalizer, no container runs.
    Finalizer,
    /// The pod tolerates the cordon and came back.
    Returned,
    /// The deadline came first.
    Deadline,
    /// A signal came first.
    Interrupted,
}

impl Cause {
    /// True for reasons that the next status of a budget may end.
    pub const fn is_about_budgets(self) -> bool {
        matches!(
            self,
            Self::BudgetExhausted
                | Self::BudgetNever
                | Self::BudgetUnsynced
                | Self::BudgetBroken
                | Self::MultipleBudgets
        )
    }
}
