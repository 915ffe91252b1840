//! What a drain would do to the VMs of a whole cluster, without one. Pure.
//!
//! Each VM is forecast by the same rules as in a drain of its node alone; here the forecasts are only gathered. What
//! depends on a flag is told as an eviction would have it: a VM that only a restart can move blocks, one that stays off
//! stays off.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::facts::{Index, KubeVirtState, Migratable, Scope, Strategy, VmFacts, VmiFacts, VmiOwner, WorkloadUpdate};
use crate::forecast::after::{After, after};
use crate::forecast::words::{THEN_RESTART, virtctl};
use crate::outcome::{AuditCounts, AuditNode, AuditReport, AuditRow, AuditSummary, UpdateEffect, UpdatePolicy, VmRow};
use crate::plan::consent::as_evicted;
use crate::plan::{ConsentKind, PlanOptions, forecast_vm};

/// Looks at every VM of a scope. A VM that is being migrated is looked at on the node that it still runs on.
pub fn audit(index: &Index, scope: &Scope, now: Timestamp) -> AuditReport {
    let mut by_node: BTreeMap<&str, Vec<&VmiFacts>> = BTreeMap::new();
    let mut starting = 0;
    for vmi in scope.vmis(index) {
        match &vmi.node {
            Some(node) => by_node.entry(node).or_default().push(vmi),
            None => starting += 1,
        }
    }
    let nodes: Vec<AuditNode> = by_node.into_iter().map(|(node, vmis)| of_node(index, node, &vmis, now)).collect();
    let summary = AuditSummary {
        counts: AuditCounts::of(nodes.iter().flat_map(|n| &n.vms)),
        stopped: index.vms().filter(|vm| scope.holds_vm(vm) && !runs(index, vm)).count(),
        starting,
        workload_update: update_of(index).map(policy),
    };
    AuditReport { summary, nodes }
}

/// True where the VM has a VMI whose guest has not ended, or one that cannot be read.
fn runs(index: &Index, vm: &VmFacts) -> bool {
    index.unreadable_vmis.contains(&vm.key.to_string()) || index.vmi(&vm.key).is_some_and(|vmi| !vmi.phase.is_final())
}

fn of_node(index: &Index, name: &str, instances: &[&VmiFacts], now: Timestamp) -> AuditNode {
    let drained_nodes = BTreeSet::from([name.to_owned()]);
    let options = PlanOptions { drained_nodes, ..PlanOptions::default() };
    let vms: Vec<AuditRow> = instances.iter().filter_map(|vmi| row(index, name, vmi, &options, now)).collect();
    let node = index.node(name);
    AuditNode {
        name: name.to_owned(),
        uid: node.map(|n| n.uid.clone()),
        cordoned_now: node.map(|n| n.unschedulable),
        counts: AuditCounts::of(&vms),
        vms,
    }
}

fn row(index: &Index, node: &str, vmi: &VmiFacts, options: &PlanOptions, now: Timestamp) -> Option<AuditRow> {
    let mut item = forecast_vm(index, node, &vmi.key, options, now)?;
    // A stale VM whose node is silent, or that is being restarted at this moment, needs no command.
    let by_restart = matches!(item.consent, Some(ConsentKind::Restart | ConsentKind::RestartDown));
    as_evicted(&mut item);
    let mut vm: VmRow = item.row;
    let restart = virtctl("restart", &vmi.key);
    let restart_command = by_restart.then(|| restart.clone());
    vm.remedy = match vm.remedy.take() {
        Some(_) if by_restart => Some(format!("`{restart}`")),
        // There is no drain whose flag could be added.
        Some(remedy) => Some(match remedy.strip_suffix(THEN_RESTART) {
            Some(first) => format!("{first}, then `{restart}`"),
            None => remedy,
        }),
        None => None,
    };
    let facts = index.vm(&vmi.key).filter(|_| matches!(vmi.owner, VmiOwner::VirtualMachine { .. }));
    let policy = update_of(index);
    let effect = |strategy: Option<&Strategy>| update_effect(vmi, facts, strategy?, policy?);
    Some(AuditRow {
        outdated_launcher: vmi.outdated,
        update: effect(vm.strategy_now.as_ref()),
        update_after_restart: effect(vm.strategy_fresh.as_ref()).filter(|_| by_restart),
        restart_command,
        notes: item.notes,
        vm,
    })
}

fn update_of(index: &Index) -> Option<&WorkloadUpdate> {
    match index.kubevirt() {
        KubeVirtState::One(cr) => Some(&cr.workload_update),
        KubeVirtState::Absent | KubeVirtState::Unclear => None,
    }
}

fn policy(update: &WorkloadUpdate) -> UpdatePolicy {
    let methods = [(update.live_migrate, "LiveMigrate"), (update.evict, "Evict")];
    UpdatePolicy {
        methods: methods.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word).collect(),
        batch_eviction_size: update.batch_size,
        batch_eviction_interval: update.batch_interval.clone(),
    }
}

/// What KubeVirt's workload updater does to a VM whose launcher has become outdated (virt-controller,
/// `workload-updater`): what can migrate is migrated if that method is set; else, with `Evict`, its launcher is evicted
/// through the same webhook as in a drain, which refuses or marks by the eviction strategy.
///
/// `None` while nobody can tell whether it can migrate.
fn update_effect(
    vmi: &VmiFacts,
    vm: Option<&VmFacts>,
    strategy: &Strategy,
    update: &WorkloadUpdate,
) -> Option<UpdateEffect> {
    let migratable = match vmi.migratable {
        Migratable::Yes => true,
        Migratable::No { .. } => false,
        Migratable::Missing => return None,
    };
    if update.live_migrate && migratable {
        return Some(UpdateEffect::Migrates);
    }
    if !update.evict {
        return Some(UpdateEffect::Stays);
    }
    Some(match strategy {
        Strategy::LiveMigrate | Strategy::LiveMigrateIfPossible if migratable => UpdateEffect::Migrates,
        Strategy::LiveMigrate | Strategy::External => UpdateEffect::Stays,
        Strategy::LiveMigrateIfPossible | Strategy::None | Strategy::Unknown(_) => {
            // The updater evicts; it restarts nothing.
            match after(&vmi.key, &vmi.owner, vm, true) {
                After::Returns { .. } => UpdateEffect::Returns,
                After::RestartInstead { .. } | After::Ends { .. } | After::StaysOff { .. } => UpdateEffect::StaysOff,
            }
        }
    })
}

#[cfg(test)]
mod tests;
