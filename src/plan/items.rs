//! Items: one VM or pod of a node, with its forecast. The machine calls these again to decide with fresh facts.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::{PlanOptions, PodAction, PodItem, VmItem, order};
use crate::classify::{Classified, Role, Severity, classify, is_selected};
use crate::facts::{Index, Key, Migratable, PodFacts, PodKey, PodRole, VmiFacts, VmiOwner};
use crate::forecast::budget::{self, BudgetForecast, PodBudgets};
use crate::forecast::strategy::strategies;
use crate::forecast::targets::{self, Hindrance, Search};
use crate::forecast::vm::{VmContext, forecast};
use crate::outcome::{Cause, NameUid, OwnerRef, PodOutcome, PodRow, VmRow};

/// Forecasts one VM of a node from the facts as they are.
///
/// `None` if it is none of this node's VMs (any more): it is gone or ended, nothing of it is here, or `--pod-selector`
/// leaves its launcher out. The item is not settled: [`super::consent::Consent::apply`] does that.
pub fn forecast_vm(index: &Index, node: &str, vmi: &Key, options: &PlanOptions, now: Timestamp) -> Option<VmItem> {
    let vmi = index.vmi(vmi).filter(|v| !v.phase.is_final())?;
    let launcher = launcher_on(index, node, vmi);
    // Without a launcher there is nothing that a selector could choose.
    if launcher.is_none() && (vmi.node.as_deref() != Some(node) || options.pod_selector.is_some()) {
        return None;
    }
    if launcher.is_some_and(|l| !is_selected(l, index, options)) {
        return None;
    }
    let vm = index.vm(&vmi.key).filter(|_| matches!(vmi.owner, VmiOwner::VirtualMachine { .. }));
    let context = VmContext { index, node, vmi, vm, launcher, options, now };
    let forecast = forecast(&context);
    let known = strategies(vmi, vm, index);
    let (migratable, migratable_reason) = match &vmi.migratable {
        Migratable::Yes => (Some(true), None),
        Migratable::No { reason, .. } => (Some(false), Some(reason.clone())),
        Migratable::Missing => (None, None),
    };
    let key = launcher.map_or_else(|| PodKey::new(&vmi.key.namespace, "", ""), |l| l.key.clone());
    let mut companions: Vec<PodKey> = index.companions_of(&key).map(|p| p.key.clone()).collect();
    companions.sort();
    if launcher.is_none() {
        companions.clear();
    }
    let plugged = match companions.len() {
        0 => String::new(),
        1 => " (+1 hot-plugged volume)".to_owned(),
        n => format!(" (+{n} hot-plugged volumes)"),
    };
    let row = VmRow {
        namespace: vmi.key.namespace.clone(),
        name: vmi.key.name.clone(),
        owner: owner_ref(&vmi.owner),
        vmi_uid: vmi.uid.clone(),
        new_vmi_uid: None,
        launcher: launcher.map(|l| NameUid { name: l.key.name.clone(), uid: l.key.uid.clone() }),
        run_strategy: vm.map(|vm| vm.run_strategy.to_string()),
        strategy_now: known.now,
        strategy_fresh: known.fresh,
        strategy_source: known.source.map(crate::forecast::strategy::Source::word),
        stale: known.stale,
        restart_helps: known.restart_helps,
        migratable,
        migratable_reason,
        outcome: forecast.outcome,
        cause: forecast.cause,
        waiting_helps: forecast.waiting_helps,
        needs: forecast.needs,
        data_loss: forecast.data_loss,
        node_before: Some(vmi.node.clone().unwrap_or_else(|| node.to_owned())),
        node_after: None,
        marked: vmi.marked.as_deref() == Some(node),
        attempts: 0,
        because: forecast.because + &plugged,
        remedy: forecast.remedy,
    };
    Some(VmItem {
        vmi: vmi.key.clone(),
        vmi_uid: vmi.uid.clone(),
        companions,
        launcher: key,
        has_vm: vm.is_some(),
        action: forecast.action,
        consent: forecast.consent,
        budgets: forecast.budgets,
        notes: forecast.notes,
        grace: seconds(vmi.grace_seconds),
        row,
    })
}

/// The live launcher of this very VMI on the node; one that is not being deleted comes first.
fn launcher_on<'a>(index: &'a Index, node: &str, vmi: &'a VmiFacts) -> Option<&'a PodFacts> {
    let this = |pod: &&PodFacts| {
        pod.node.as_deref() == Some(node)
            && matches!(&pod.role, PodRole::Launcher { vmi_uid, .. } if vmi_uid.as_ref().is_none_or(|u| *u == vmi.uid))
    };
    index.launchers_of(&vmi.key).filter(this).min_by_key(|p| (p.deletion.is_some(), p.key.clone()))
}

fn owner_ref(owner: &VmiOwner) -> Option<OwnerRef> {
    let named = |kind: &str, name: &String| Some(OwnerRef { kind: kind.to_owned(), name: name.clone() });
    match owner {
        VmiOwner::VirtualMachine { name } => named("VirtualMachine", name),
        VmiOwner::ReplicaSet { name } => named("VirtualMachineInstanceReplicaSet", name),
        VmiOwner::Other { kind, name } => named(kind, name),
        VmiOwner::Standalone => None,
    }
}

/// Forecasts one pod that is no VM from the facts as they are; `None` for launchers and hot-plug pods of VMs.
pub fn forecast_pod(pod: &PodFacts, index: &Index, options: &PlanOptions, now: Timestamp) -> Option<PodItem> {
    pod_item(pod, &classify(pod, index, options, now), index, options)
}

/// The item of a pod that is classified already.
pub(super) fn pod_item(
    pod: &PodFacts,
    classified: &Classified,
    index: &Index,
    options: &PlanOptions,
) -> Option<PodItem> {
    let (action, outcome) = match &classified.role {
        Role::Vm { .. } | Role::Companion { .. } => return None,
        Role::NotSelected => (PodAction::Leave, PodOutcome::NotSelected),
        Role::Stays => (PodAction::Leave, PodOutcome::Stays),
        Role::Skipped => (PodAction::Leave, PodOutcome::Skipped),
        Role::Leaving => (PodAction::AwaitGone, PodOutcome::Evicts),
        Role::Evictable => match classified.severity() {
            Some(Severity::Refuses) => (PodAction::Refuse, PodOutcome::Refused),
            Some(Severity::Blocks) => (PodAction::Leave, PodOutcome::Blocks),
            Some(Severity::Note | Severity::Warning) | None if deletes(pod, options) => {
                (PodAction::Delete, PodOutcome::Evicts)
            }
            Some(Severity::Note | Severity::Warning) | None => (PodAction::Evict, PodOutcome::Evicts),
        },
    };
    let mut item = PodItem {
        pod: pod.key.clone(),
        action,
        wave: order::wave(pod, index),
        one_at_a_time: order::one_at_a_time(pod),
        budgets: Vec::new(),
        grace: options.grace_period.map_or_else(|| seconds(pod.grace_seconds), |s| Duration::from_secs(u64::from(s))),
        bound: None,
        row: row(pod, classified, outcome),
    };
    if item.action == PodAction::Evict {
        ask_budgets(&mut item, pod, index);
    }
    if matches!(item.action, PodAction::Evict | PodAction::Delete)
        && let Some(why) = bound_to_node(pod, index, options)
    {
        item.row.cause = item.row.cause.or(Some(Cause::BoundToNode));
        let before = std::mem::take(&mut item.row.because);
        item.row.because = if before.is_empty() { why.clone() } else { format!("{before}; {why}") };
        item.bound = Some(why);
    }
    Some(item)
}

/// True for a pod that its controller replaces. A DaemonSet's leaves only where its DaemonSet is gone.
fn comes_back(pod: &PodFacts) -> bool {
    pod.owner.as_ref().is_some_and(|owner| owner.kind != "DaemonSet") && !pod.phase.is_finished()
}

/// What replaces a pod finds no node where no other one can reach its disk (a local volume), has its device, or has the
/// labels that it asks for. Closed nodes do not count: they may open again.
fn bound_to_node(pod: &PodFacts, index: &Index, options: &PlanOptions) -> Option<String> {
    let (demands, drained) = (&pod.demands, &options.drained_nodes);
    let source = pod.node.as_deref().filter(|_| comes_back(pod))?;
    let claims: BTreeSet<Key> = pod.claims.iter().map(|name| Key::new(&pod.key.namespace, name)).collect();
    let free = demands.node_selector.is_empty() && demands.affinity.is_empty() && demands.devices.is_empty();
    if free && claims.is_empty() {
        return None;
    }
    let search = Search { demands, claims, source: Some(source), drained, launcher: false, cpu_model: None };
    if targets::exists(index, &search) {
        return None;
    }
    let (hindrance, why) = targets::find(index, &search).none?;
    (hindrance != Hindrance::NoNodeOpen).then(|| format!("{why}; what replaces it stays Pending"))
}

/// `--disable-eviction` deletes plain pods only: KubeVirt's leave through virt-api.
fn deletes(pod: &PodFacts, options: &PlanOptions) -> bool {
    options.disable_eviction && pod.role == PodRole::Plain
}

fn row(pod: &PodFacts, classified: &Classified, outcome: PodOutcome) -> PodRow {
    let worst = classified.severity();
    let decisive = classified.findings.iter().find(|f| Some(f.severity) == worst);
    let needs = classified.needs();
    let texts: Vec<&str> = classified.findings.iter().map(|f| f.text.as_str()).collect();
    let remedy = match decisive {
        Some(_) if outcome == PodOutcome::Refused => Some(format!("add {}", needs.join(" "))),
        Some(finding) => finding.hint.clone(),
        None => None,
    };
    PodRow {
        namespace: pod.key.namespace.clone(),
        name: pod.key.name.clone(),
        uid: pod.key.uid.clone(),
        outcome,
        cause: decisive.map(|f| f.code),
        waiting_helps: (outcome == PodOutcome::Blocks).then_some(false),
        needs,
        budgets: Vec::new(),
        because: texts.join("; "),
        remedy,
    }
}

fn ask_budgets(item: &mut PodItem, pod: &PodFacts, index: &Index) {
    let (keys, outcome, cause, waiting, because, remedy) = match budget::forecast(pod, index.budgets_of(pod)) {
        PodBudgets::Free => return,
        PodBudgets::One(key, BudgetForecast::AllowedNow) => {
            item.row.budgets = vec![key.to_string()];
            item.budgets = vec![key];
            return;
        }
        PodBudgets::One(key, BudgetForecast::AfterRecovery { why }) => {
            (vec![key], PodOutcome::Waits, Cause::BudgetExhausted, Some(true), why, None)
        }
        PodBudgets::One(key, BudgetForecast::Unknown) => {
            let why = format!("the controller of budget {} has not looked at it yet", key.name);
            (vec![key], PodOutcome::Waits, Cause::BudgetUnsynced, Some(true), why, None)
        }
        PodBudgets::One(key, BudgetForecast::Never { cause, why, remedy }) => {
            (vec![key], PodOutcome::Blocks, cause, Some(false), why, Some(remedy))
        }
        PodBudgets::Multiple(keys) => {
            let names: Vec<&str> = keys.iter().map(|k| k.name.as_str()).collect();
            let why = format!("the budgets {} all count it, so no eviction can pass", names.join(" and "));
            let remedy = "change their selectors so that one is left".to_owned();
            (keys, PodOutcome::Blocks, Cause::MultipleBudgets, Some(false), why, Some(remedy))
        }
    };
    if outcome == PodOutcome::Blocks {
        item.action = PodAction::Leave;
    }
    item.row.outcome = outcome;
    item.row.cause = Some(cause);
    item.row.waiting_helps = waiting;
    item.row.because = if item.row.because.is_empty() { because } else { format!("{because}; {}", item.row.because) };
    item.row.remedy = remedy;
    item.row.budgets = keys.iter().map(Key::to_string).collect();
    item.budgets = keys;
}

fn seconds(n: i64) -> Duration {
    Duration::from_secs(u64::try_from(n).unwrap_or(0))
}
