//! The rules for plain pods, one function each, in kubectl's order (`kubectl/pkg/drain/filters.go`).

use jiff::{SignedDuration, Timestamp};

use super::Finding;
use crate::facts::{Index, Key, PodFacts};
use crate::outcome::Cause;
use crate::plan::PlanOptions;

/// `--skip-wait-for-delete-timeout`: a pod whose deletion ended longer ago than that is not waited for.
pub(super) fn deleted_long_ago(pod: &PodFacts, options: &PlanOptions, now: Timestamp) -> Option<Finding> {
    let limit = options.skip_wait_for_delete.filter(|d| !d.is_zero())?;
    let age = now.duration_since(pod.deletion?.at);
    let over = age > SignedDuration::try_from(limit).unwrap_or(SignedDuration::MAX);
    over.then(|| {
        Finding::note(Cause::Stopping, "deleted longer ago than --skip-wait-for-delete-timeout; nothing waits for it")
    })
}

/// A DaemonSet's controller puts its pods back whatever a cordon says, so they stay; finished ones may go. If the
/// DaemonSet is gone nothing brings the pod back: that takes `--force`. Only controllers of `apps/v1` count.
pub(super) fn daemon_set(pod: &PodFacts, index: &Index, options: &PlanOptions) -> Option<Finding> {
    let owner = pod.owner.as_ref().filter(|o| o.kind == "DaemonSet" && o.api_version == "apps/v1")?;
    if pod.phase.is_finished() {
        return None;
    }
    let name = &owner.name;
    let refuses = |text: String| Some(Finding::refuses(Cause::DaemonSet, "--ignore-daemonsets", text));
    match index.daemon_sets.get(&Key::new(&pod.key.namespace, name)) {
        Some(false) if options.force => {
            let text = format!("its DaemonSet {name} is gone, so nothing brings it back");
            Some(Finding::warns(Cause::OrphanedDaemonSetPod, text).passes())
        }
        Some(false) => {
            let text = format!("its DaemonSet {name} is gone, so nothing brings it back");
            Some(Finding::refuses(Cause::OrphanedDaemonSetPod, "--force", text))
        }
        Some(true) if options.ignore_daemonsets => Some(Finding::note(Cause::DaemonSet, format!("DaemonSet {name}"))),
        None if options.ignore_daemonsets => Some(Finding::warns(
            Cause::DaemonSet,
            format!("DaemonSet {name} could not be read, so its pod is left in place"),
        )),
        Some(true) => refuses(format!("DaemonSet {name} would put it back at once")),
        None => refuses(format!("DaemonSet {name} could not be read")),
    }
}

/// Data in an `emptyDir` ends with its pod; finished pods pass.
pub(super) fn local_storage(pod: &PodFacts, options: &PlanOptions) -> Option<Finding> {
    if pod.phase.is_finished() || pod.empty_dirs.is_empty() {
        return None;
    }
    let text = format!("the data in emptyDir {} ends with it", pod.empty_dirs.join(", "));
    Some(if options.delete_emptydir_data {
        Finding::note(Cause::LocalData, text)
    } else {
        Finding::refuses(Cause::LocalData, "--delete-emptydir-data", text)
    })
}

/// Nothing brings a pod without a controller back; any controller counts, as in kubectl. Finished pods pass.
pub(super) fn unmanaged(pod: &PodFacts, options: &PlanOptions) -> Option<Finding> {
    if pod.phase.is_finished() || pod.owner.is_some() {
        return None;
    }
    let text = "no controller owns it, so nothing brings it back";
    Some(if options.force {
        Finding::warns(Cause::Unmanaged, text)
    } else {
        Finding::refuses(Cause::Unmanaged, "--force", text)
    })
}

/// A transfer does not go on where another pod begins it again.
pub(super) fn transfer(pod: &PodFacts, index: &Index) -> Option<Finding> {
    let claim = pod.fills().filter(|_| !pod.phase.is_finished())?;
    let at = index.transfers.get(&claim).map(|progress| format!(" (at {progress})")).unwrap_or_default();
    let text = format!("it fills claim {}{at}: the transfer starts anew on another node", claim.name);
    Some(Finding::warns(Cause::TransferRestarts, text))
}

/// The scheduler may place the successor of a pod that tolerates the cordon on the same node again.
pub(super) fn may_come_back(pod: &PodFacts) -> Option<Finding> {
    (pod.tolerates_cordon && pod.owner.is_some() && !pod.phase.is_finished())
        .then(|| Finding::note(Cause::Returned, "it tolerates the cordon and may come back"))
}

/// What to say about a pod that is being deleted.
pub(super) fn leaving(pod: &PodFacts) -> Vec<Finding> {
    let finding = if !pod.finalizers.is_empty() && !pod.containers_running {
        Finding::note(Cause::Finalizer, format!("stopped, but kept by finalizer {}", pod.finalizers.join(", ")))
    } else {
        Finding::note(Cause::Stopping, "it is being deleted already")
    };
    vec![finding]
}
