//! Pods.

use std::collections::BTreeMap;

use kube::core::ObjectMeta;

use super::{annotation, controller, key, non_empty, terms, uid};
use crate::facts::wire::{self, Container, PodSpec, PodStatus, TolerationWire};
use crate::facts::{
    APP_LABEL, Deletion, Demands, HOTPLUG, LAUNCHER, Owner, PodFacts, PodKey, PodPhase, PodRole, Toleration,
};

/// Label of a launcher with the UID of its VMI (`CreatedByLabel`).
const CREATED_BY: &str = "kubevirt.io/created-by";
/// Taint that a cordon sets, effect `NoSchedule`, no value (Kubernetes `TaintNodeUnschedulable`).
const CORDON_TAINT: &str = "node.kubernetes.io/unschedulable";
/// Grace period in seconds that the API server fills in (Kubernetes `DefaultTerminationGracePeriodSeconds`).
const DEFAULT_GRACE_SECONDS: i64 = 30;

impl From<wire::Pod> for PodFacts {
    fn from(pod: wire::Pod) -> Self {
        let wire::Pod { metadata: mut meta, spec, status } = pod;
        let mirror = meta.annotations.as_ref().is_some_and(|a| a.contains_key(wire::MIRROR));
        let hotplug = single_owner(&meta);
        let owner = controller(&mut meta);
        let labels = meta.labels.take().unwrap_or_default();
        let role = role(&meta, &labels, owner.as_ref(), hotplug);
        let grace_seconds = spec.termination_grace_period_seconds.unwrap_or(DEFAULT_GRACE_SECONDS);
        let deletion = meta.deletion_timestamp.as_ref().map(|at| Deletion {
            at: at.0,
            grace_seconds: meta.deletion_grace_period_seconds.unwrap_or(grace_seconds),
        });
        let phase = phase(status.phase.as_deref());
        let condition = |kind| wire::condition(&status.conditions, kind);
        let unschedulable =
            condition("PodScheduled").filter(|c| c.is_false_because("Unschedulable")).map(|c| c.message.clone());
        let volumes = spec.volumes.iter();
        Self {
            phase,
            owner,
            labels,
            mirror,
            empty_dirs: volumes.clone().filter(|v| v.empty_dir.is_some()).map(|v| v.name.clone()).collect(),
            deletion,
            containers_running: containers_running(phase, &spec, &status),
            ready: condition("Ready").is_some_and(wire::Condition::is_true),
            priority: spec.priority.unwrap_or(0),
            grace_seconds,
            tolerates_cordon: spec.tolerations.iter().any(tolerates_cordon),
            claims: volumes.filter_map(|v| non_empty(v.persistent_volume_claim.claim_name.clone())).collect(),
            role,
            unschedulable,
            node: non_empty(spec.node_name),
            demands: Demands {
                devices: devices(&spec.containers, &spec.init_containers),
                node_selector: spec.node_selector,
                affinity: terms(spec.affinity.node_affinity.required),
                tolerations: spec.tolerations.into_iter().map(toleration).collect(),
            },
            finalizers: meta.finalizers.take().unwrap_or_default(),
            key: {
                let uid = uid(&mut meta);
                let key = key(&mut meta);
                PodKey { namespace: key.namespace, name: key.name, uid }
            },
        }
    }
}

fn phase(text: Option<&str>) -> PodPhase {
    match text {
        None | Some("" | "Pending") => PodPhase::Pending,
        Some("Running") => PodPhase::Running,
        Some("Succeeded") => PodPhase::Succeeded,
        Some("Failed") => PodPhase::Failed,
        Some(_) => PodPhase::Unknown,
    }
}

/// Name and UID of the owner of a pod that has exactly one.
fn single_owner(meta: &ObjectMeta) -> Option<(String, String)> {
    match meta.owner_references.as_deref() {
        Some([owner]) => Some((owner.name.clone(), owner.uid.clone())),
        _ => None,
    }
}

/// The rules of KubeVirt's eviction webhook: `isHotplugPod` and `isVirtLauncher` in `pod-eviction-admitter.go`. A pod with
/// the launcher's label that names no VMI passes the webhook as any other pod does.
fn role(
    meta: &ObjectMeta,
    labels: &BTreeMap<String, String>,
    owner: Option<&Owner>,
    single_owner: Option<(String, String)>,
) -> PodRole {
    match labels.get(APP_LABEL).map(String::as_str) {
        Some(HOTPLUG) => {
            single_owner.map_or(PodRole::Plain, |(launcher, launcher_uid)| PodRole::Hotplug { launcher, launcher_uid })
        }
        Some(LAUNCHER) => annotation(meta, wire::DOMAIN)
            .or_else(|| owner.filter(|o| o.kind == "VirtualMachineInstance").map(|o| o.name.clone()))
            .map_or(PodRole::Plain, |vmi| PodRole::Launcher {
                vmi,
                vmi_uid: non_empty(labels.get(CREATED_BY).cloned()),
            }),
        _ => PodRole::Plain,
    }
}

/// The kubelet reports a final phase only once all containers have ended, sidecars too; before that, a container that
/// waits may still start, and one without a status is unknown: both count as running.
fn containers_running(phase: PodPhase, spec: &PodSpec, status: &PodStatus) -> bool {
    if phase.is_finished() {
        return false;
    }
    let mut statuses = status
        .container_statuses
        .iter()
        .chain(&status.init_container_statuses)
        .chain(&status.ephemeral_container_statuses);
    let missing = status.container_statuses.is_empty() || status.container_statuses.len() < spec.containers.len();
    missing || statuses.any(|s| s.state.terminated.is_none())
}

/// The scheduler's rule for one toleration and the taint of a cordon (Kubernetes `Toleration.ToleratesTaint`).
fn tolerates_cordon(toleration: &TolerationWire) -> bool {
    let set = |text: &Option<String>| text.as_deref().filter(|t| !t.is_empty()).map(str::to_owned);
    set(&toleration.effect).is_none_or(|e| e == "NoSchedule")
        && set(&toleration.key).is_none_or(|k| k == CORDON_TAINT)
        && match set(&toleration.operator).as_deref() {
            Some("Exists") => true,
            None | Some("Equal") => set(&toleration.value).is_none(),
            Some(_) => false,
        }
}

/// Operators that compare numbers (`Lt`, `Gt`) are kept as `Exists`: what the taint's value is decides the scheduler.
fn toleration(wire: TolerationWire) -> Toleration {
    Toleration {
        key: non_empty(wire.key),
        exists: !matches!(wire.operator.as_deref(), None | Some("" | "Equal")),
        value: non_empty(wire.value),
        effect: non_empty(wire.effect),
    }
}

/// What the scheduler counts (Kubernetes `component-helpers/resource`, `PodRequests`): containers and sidecars together,
/// or a single init container with the sidecars before it, if that is more.
fn devices(containers: &[Container], init: &[Container]) -> BTreeMap<String, u64> {
    let mut sidecars = BTreeMap::new();
    let mut peak: BTreeMap<String, u64> = BTreeMap::new();
    for container in init {
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut sidecars, container);
        } else {
            let mut alone = sidecars.clone();
            add(&mut alone, container);
            raise(&mut peak, alone);
        }
    }
    for container in containers {
        add(&mut sidecars, container);
    }
    raise(&mut peak, sidecars);
    peak
}

/// Adds what a container asks for: its request, or its limit where it states no request.
fn add(sum: &mut BTreeMap<String, u64>, container: &Container) {
    let (requests, limits) = (&container.resources.requests.0, &container.resources.limits.0);
    for (name, units) in requests.iter().chain(limits.iter().filter(|(name, _)| !requests.contains_key(*name))) {
        let total = sum.entry(name.clone()).or_default();
        *total = total.saturating_add(*units);
    }
}

fn raise(peak: &mut BTreeMap<String, u64>, demand: BTreeMap<String, u64>) {
    for (name, units) in demand {
        let highest = peak.entry(name).or_default();
        *highest = (*highest).max(units);
    }
}
