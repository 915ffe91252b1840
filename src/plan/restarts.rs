//! The plan of `restart-stale`: the stale VMs of a scope, each on its node, and nothing else of that node.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::build::{slots, warnings};
use super::time::too_short;
use super::{NodePlan, Plan, PlanOptions, VmItem, forecast_vm};
use crate::facts::{Index, Scope};
use crate::forecast::restart::is_candidate;

/// Plans the restarts of the stale VMs of a scope, outside a drain: nothing is cordoned, and a VM may come back to its
/// node. VMs that a restart does not help are left out. Nothing is settled yet: see [`super::consent::settle`].
///
/// The options must say [`PlanOptions::in_place`], so that each VM is decided on in the same way later.
pub fn restarts(index: &Index, scope: &Scope, options: &PlanOptions, now: Timestamp) -> Plan {
    let mut nodes: BTreeMap<&str, Vec<VmItem>> = BTreeMap::new();
    for vmi in scope.vmis(index).filter(|vmi| is_candidate(index, vmi)) {
        let Some(node) = vmi.node.as_deref() else { continue };
        nodes.entry(node).or_default().extend(forecast_vm(index, node, &vmi.key, options, now));
    }
    let plans: Vec<NodePlan> = nodes.into_iter().map(|(node, vms)| node_plan(index, node, vms, options)).collect();
    let mut all = warnings(index, &plans);
    all.extend(too_short(plans.iter().flat_map(|plan| &plan.vms), &[], slots(index), options.timeout));
    Plan { nodes: plans, warnings: all, nowhere_to_go: false, closed_nodes: String::new() }
}

fn node_plan(index: &Index, node: &str, vms: Vec<VmItem>, options: &PlanOptions) -> NodePlan {
    let facts = index.node(node);
    let notes = vms.iter().flat_map(|vm| vm.notes.iter().map(|note| format!("{}: {note}", vm.vmi)));
    NodePlan {
        node: node.to_owned(),
        uid: facts.map(|f| f.uid.clone()).unwrap_or_default(),
        cordoned: facts.is_some_and(|f| f.unschedulable),
        warnings: notes.collect(),
        vms,
        pods: Vec::new(),
        timeout: options.timeout,
        slots: slots(index),
        // They are looked at together.
        too_short: Vec::new(),
    }
}
