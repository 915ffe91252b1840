//! What a pod is for a drain, and everything that is to be said about it. Pure.
//!
//! kubectl's filters (`kubectl/pkg/drain/filters.go`) with their rules and their order, but no finding is lost: kubectl
//! keeps the last message only. KubeVirt's pods are recognised first: their `emptyDir`s hold no user data.

mod finding;
mod rules;
#[cfg(test)]
mod tests;

pub use finding::{Finding, Severity};

use jiff::Timestamp;

use crate::facts::{Index, Key, KubeVirtState, PodFacts, PodRole};
use crate::outcome::Cause;
use crate::plan::PlanOptions;

/// What a drain makes of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// The launcher of a VM: its VM has the row.
    Vm {
        /// Key of the VMI.
        vmi: Key,
    },
    /// A hot-plug pod: it follows its launcher, which is on the node as a VM's.
    Companion {
        /// UID of the launcher.
        launcher_uid: String,
    },
    /// Left out by `--pod-selector`: of everything.
    NotSelected,
    /// Stays by its nature.
    Stays,
    /// Deleted long ago; `--skip-wait-for-delete-timeout` says that nothing waits for it.
    Skipped,
    /// Is being deleted: only waited for.
    Leaving,
    /// To be evicted, if nothing in its findings stands against it.
    Evictable,
}

/// A pod's role with all findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classified {
    /// Its role.
    pub role: Role,
    /// What there is to say, in the order of the rules.
    pub findings: Vec<Finding>,
}

impl Classified {
    fn new(role: Role, findings: Vec<Finding>) -> Self {
        Self { role, findings }
    }

    /// The worst finding.
    pub fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(|f| f.severity).max()
    }

    /// Flags that would let it go.
    pub fn needs(&self) -> Vec<&'static str> {
        self.findings.iter().filter(|f| f.severity == Severity::Refuses).filter_map(|f| f.remedy).collect()
    }
}

/// Classifies one pod.
pub fn classify(pod: &PodFacts, index: &Index, options: &PlanOptions, now: Timestamp) -> Classified {
    if !is_selected(pod, index, options) {
        return Classified::new(Role::NotSelected, Vec::new());
    }
    if options.own_pod_uid.as_deref() == Some(pod.key.uid.as_str()) {
        let own = Finding::note(Cause::OwnPod, "this command runs in it");
        return Classified::new(Role::Stays, vec![own]);
    }
    if index.kubevirt() != KubeVirtState::Absent {
        match &pod.role {
            PodRole::Launcher { vmi, vmi_uid } if !pod.phase.is_finished() => {
                return launcher(pod, index, &Key::new(&pod.key.namespace, vmi), vmi_uid.as_deref());
            }
            PodRole::Hotplug { launcher_uid, .. } => return hotplug(index, launcher_uid),
            PodRole::Launcher { .. } => return left_over(pod),
            PodRole::Plain => {}
        }
    }
    plain(pod, index, options, now)
}

/// True unless `--pod-selector` leaves the pod out; a hot-plug pod is selected as its launcher is.
pub fn is_selected(pod: &PodFacts, index: &Index, options: &PlanOptions) -> bool {
    let Some(selector) = &options.pod_selector else { return true };
    let decides = match &pod.role {
        PodRole::Hotplug { launcher_uid, .. } => index.pod(launcher_uid).unwrap_or(pod),
        PodRole::Launcher { .. } | PodRole::Plain => pod,
    };
    selector.matches(&decides.labels)
}

/// A live launcher belongs to a VM, unless its VMI is gone: then virt-api refuses its eviction for ever, since it cannot
/// look the VMI up (KubeVirt's eviction admitter denies on every read error, "not found" included).
fn launcher(pod: &PodFacts, index: &Index, vmi: &Key, uid: Option<&str>) -> Classified {
    let known = index.vmi(vmi).filter(|v| uid.is_none_or(|uid| v.uid == uid));
    match known {
        Some(known) if known.phase.is_final() => {
            let note = Finding::note(Cause::Stopping, "its guest has ended");
            Classified::new(leaving_or(pod, Role::Evictable), vec![note])
        }
        Some(known) => Classified::new(Role::Vm { vmi: known.key.clone() }, Vec::new()),
        None if pod.deletion.is_some() => Classified::new(Role::Leaving, rules::leaving(pod)),
        None if index.unreadable_vmis.contains(&vmi.to_string()) => {
            let text = format!("its VMI {} could not be read, so nothing can be said of the guest in it", vmi.name);
            Classified::new(Role::Evictable, vec![Finding::blocks(Cause::VmLookupFailed, text)])
        }
        None => {
            let text =
                format!("the VMI {} of this launcher does not exist, so KubeVirt refuses its eviction", vmi.name);
            let remedy = format!(
                "check that no guest runs in it, then `kubectl delete pod {} -n {}`",
                pod.key.name, pod.key.namespace
            );
            Classified::new(Role::Evictable, vec![Finding::blocks(Cause::OrphanLauncher, text).hint(remedy)])
        }
    }
}

/// A launcher that has ended holds nothing on the node, and KubeVirt removes it with its VMI. It is not evicted: up to
/// KubeVirt 1.3.0 that marks a VMI that is on this node and starts a migration of it, and from 1.5 on it is refused while
/// virt-api is away.
fn left_over(pod: &PodFacts) -> Classified {
    if pod.deletion.is_some() {
        return Classified::new(Role::Leaving, rules::leaving(pod));
    }
    let text = "finished pod of a VM that ended or moved; KubeVirt removes it with its VMI";
    Classified::new(Role::Stays, vec![Finding::note(Cause::LeftOver, text)])
}

/// A hot-plug pod is never evicted: that would cut a disk from a live guest. It goes when its launcher goes.
fn hotplug(index: &Index, launcher_uid: &str) -> Classified {
    let Some(launcher) = index.pod(launcher_uid).filter(|l| !l.phase.is_finished()) else {
        let note = Finding::note(Cause::HotplugCompanion, "its launcher is gone; it follows by itself");
        return Classified::new(Role::Leaving, vec![note]);
    };
    let PodRole::Launcher { vmi, vmi_uid } = &launcher.role else {
        return Classified::new(Role::Leaving, vec![Finding::note(Cause::HotplugCompanion, "follows its launcher")]);
    };
    let owner = self::launcher(launcher, index, &Key::new(&launcher.key.namespace, vmi), vmi_uid.as_deref());
    if matches!(owner.role, Role::Vm { .. }) {
        return Classified::new(Role::Companion { launcher_uid: launcher_uid.to_owned() }, Vec::new());
    }
    if owner.severity() == Some(Severity::Blocks) {
        let text = format!("it follows its launcher {}, which blocks", launcher.key.name);
        return Classified::new(Role::Evictable, vec![Finding::blocks(Cause::HotplugCompanion, text)]);
    }
    Classified::new(Role::Leaving, vec![Finding::note(Cause::HotplugCompanion, "follows its launcher")])
}

fn leaving_or(pod: &PodFacts, other: Role) -> Role {
    if pod.deletion.is_some() { Role::Leaving } else { other }
}

fn plain(pod: &PodFacts, index: &Index, options: &PlanOptions, now: Timestamp) -> Classified {
    if let Some(skipped) = rules::deleted_long_ago(pod, options, now) {
        return Classified::new(Role::Skipped, vec![skipped]);
    }
    let daemon = rules::daemon_set(pod, index, options);
    if let Some(finding) = &daemon
        && finding.severity != Severity::Refuses
        && !finding.passes
    {
        return Classified::new(Role::Stays, vec![finding.clone()]);
    }
    if pod.mirror {
        let note = Finding::note(Cause::MirrorPod, "a static pod; only its node can stop it");
        return Classified::new(Role::Stays, vec![note]);
    }
    if pod.deletion.is_some() {
        return Classified::new(Role::Leaving, rules::leaving(pod));
    }
    if let Some(finding) = &daemon
        && finding.code == Cause::DaemonSet
    {
        // With the flag it would stay, so its other findings ask for nothing.
        return Classified::new(Role::Evictable, vec![finding.clone()]);
    }
    let launcher = !matches!(pod.role, PodRole::Plain);
    let orphaned = daemon.is_some();
    let findings = daemon
        .into_iter()
        .chain(rules::local_storage(pod, options).filter(|_| !launcher))
        .chain(rules::unmanaged(pod, options))
        .chain(rules::transfer(pod, index))
        .chain(rules::may_come_back(pod).filter(|_| !orphaned))
        .collect();
    Classified::new(Role::Evictable, findings)
}
