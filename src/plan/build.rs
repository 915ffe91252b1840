//! Builds the plan.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::items::pod_item;
use super::{NodePlan, Plan, PlanOptions, PodAction, PodItem, VmAction, VmItem, forecast_vm, time};
use crate::classify::{Classified, Finding, Role, Severity, classify};
use crate::facts::{Index, Key, KubeVirtState, NodeReady, PodFacts};
use crate::forecast::targets;
use crate::forecast::vm::cluster_is_unclear;
use crate::outcome::{Cause, PodOutcome};

/// Builds the plan for these nodes, in this order. Nothing is settled yet: see [`super::consent::settle`].
pub fn build(index: &Index, nodes: &[String], options: &PlanOptions, now: Timestamp) -> Plan {
    let mut options = options.clone();
    options.drained_nodes.extend(nodes.iter().cloned());
    let plans: Vec<NodePlan> = nodes.iter().map(|node| node_plan(index, node, &options, now)).collect();
    let must_move = |vm: &VmItem| vm.action == VmAction::Migrate || vm.row.cause == Some(Cause::NoMigrationTarget);
    let nowhere_to_go = plans.iter().flat_map(|p| &p.vms).any(must_move)
        && !index.nodes().any(|n| targets::is_open(n) && !options.drained_nodes.contains(&n.name));
    let closed_nodes = if nowhere_to_go { targets::closed_nodes(index, &options.drained_nodes) } else { String::new() };
    Plan { warnings: warnings(index, &plans), nodes: plans, nowhere_to_go, closed_nodes }
}

fn node_plan(index: &Index, node: &str, options: &PlanOptions, now: Timestamp) -> NodePlan {
    let facts = index.node(node);
    let classified: Vec<(&PodFacts, Classified)> =
        index.pods_on(node).map(|pod| (pod, classify(pod, index, options, now))).collect();
    let mut vms: Vec<VmItem> = keys_on(index, node, &classified)
        .iter()
        .filter_map(|key| forecast_vm(index, node, key, options, now))
        .collect();
    vms.sort_by(|a, b| a.vmi.cmp(&b.vmi));
    let mut pods: Vec<_> = classified.iter().filter_map(|(pod, found)| pod_item(pod, found, index, options)).collect();
    pods.sort_by(|a, b| a.pod.cmp(&b.pod));
    say_the_pace(&mut pods, index);

    let mut warnings = Vec::new();
    if let Some(NodeReady::No { reason, .. }) = facts.map(|f| &f.ready) {
        warnings.push(format!("{node} is not ready ({reason}): pods on it may never confirm that they stopped"));
    }
    let slots = slots(index);
    let too_short = time::too_short(&vms, &pods, slots, options.timeout);
    warnings.extend(too_short.clone());
    for vm in &vms {
        warnings.extend(vm.notes.iter().map(|note| format!("{}: {note}", vm.vmi)));
        if vm.action == VmAction::AwaitOwner {
            warnings.push(owner_warning(vm));
        }
    }
    for (pod, found) in &classified {
        let said = |f: &&Finding| {
            matches!(f.code, Cause::DaemonSet | Cause::TransferRestarts) && f.severity == Severity::Warning
        };
        warnings.extend(found.findings.iter().filter(said).map(|f| format!("{}: {}", pod.key, f.text)));
    }
    NodePlan {
        node: node.to_owned(),
        uid: facts.map(|f| f.uid.clone()).unwrap_or_default(),
        cordoned: facts.is_some_and(|f| f.unschedulable),
        vms,
        pods,
        warnings,
        timeout: options.timeout,
        slots,
        too_short,
    }
}

/// The warning about a VM that only its owner can move.
pub(super) fn owner_warning(vm: &VmItem) -> String {
    format!("{}: if its owner does not act, the drain ends at its timeout (124)", vm.vmi)
}

/// Says how many pods may go at a time where a budget lets fewer go than are here.
fn say_the_pace(pods: &mut [PodItem], index: &Index) {
    let mut behind: BTreeMap<Key, usize> = BTreeMap::new();
    let asks = |pod: &&mut PodItem| pod.action == PodAction::Evict && pod.row.outcome == PodOutcome::Evicts;
    for pod in pods.iter_mut().filter(asks) {
        for key in &pod.budgets {
            *behind.entry(key.clone()).or_default() += 1;
        }
    }
    for pod in pods.iter_mut().filter(asks).filter(|p| p.row.because.is_empty()) {
        let [key] = pod.budgets.as_slice() else { continue };
        let allowed = index.budget(key).and_then(|b| b.allowed).and_then(|n| usize::try_from(n).ok());
        if let Some(allowed) = allowed.filter(|n| *n > 0 && *n < behind[key]) {
            pod.row.because = format!("{allowed} at a time (budget {key})");
        }
    }
}

/// VMs of a node: those whose launcher is there, and those that KubeVirt has there without one.
fn keys_on(index: &Index, node: &str, classified: &[(&PodFacts, Classified)]) -> BTreeSet<Key> {
    let by_launcher = classified.iter().filter_map(|(_, found)| match &found.role {
        Role::Vm { vmi } => Some(vmi.clone()),
        Role::Companion { .. } | Role::NotSelected | Role::Stays | Role::Skipped | Role::Leaving | Role::Evictable => {
            None
        }
    });
    let by_name = index.vmis().filter(|v| v.node.as_deref() == Some(node)).map(|v| v.key.clone());
    by_launcher.chain(by_name).collect()
}

/// Migrations of one node's VMs that may run at a time.
pub(super) fn slots(index: &Index) -> u32 {
    match index.kubevirt() {
        KubeVirtState::One(cr) => cr.migrations_per_node.min(cr.migrations_per_cluster).max(1),
        KubeVirtState::Absent | KubeVirtState::Unclear => 2,
    }
}

pub(super) fn warnings(index: &Index, plans: &[NodePlan]) -> Vec<String> {
    let mut warnings = Vec::new();
    let vms = plans.iter().any(|p| !p.vms.is_empty());
    if vms && cluster_is_unclear(index) {
        warnings.push(
            "no single valid KubeVirt object could be read: what a restarted VM would get is unknown, so no restart is offered"
                .into(),
        );
    }
    warnings
}
