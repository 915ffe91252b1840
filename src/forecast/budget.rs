//! What a disruption budget will answer, from its own status.

use crate::facts::{BudgetFacts, IntOrPercent, Key, PodFacts, PodPhase, UnhealthyPolicy};
use crate::outcome::Cause;

/// What a budget allows for one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BudgetForecast {
    /// An eviction passes now.
    AllowedNow,
    /// Not now; as soon as other pods are healthy again.
    AfterRecovery {
        /// The arithmetic, in words.
        why: String,
    },
    /// Never, as things stand.
    Never {
        /// [`Cause::BudgetNever`], or [`Cause::BudgetBroken`] for a failed sync.
        cause: Cause,
        /// The arithmetic, in words.
        why: String,
        /// What a human can do.
        remedy: String,
    },
    /// The budget's controller has not looked at it yet.
    Unknown,
}

/// What all budgets together mean for one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodBudgets {
    /// No budget counts it, or none is asked.
    Free,
    /// One budget decides.
    One(Key, BudgetForecast),
    /// More than one budget counts it: the API server refuses every eviction (500).
    Multiple(Vec<Key>),
}

/// True for a budget that KubeVirt itself keeps for a VMI (up to 1.5): it says nothing of its own, the VM's strategy does.
pub fn is_kubevirts(budget: &BudgetFacts) -> bool {
    budget
        .owner
        .as_ref()
        .is_some_and(|owner| owner.kind == "VirtualMachineInstance" && owner.api_version.starts_with("kubevirt.io/"))
}

/// True if the API server asks no budget for it: finished, pending and deleted pods (`canIgnorePDB` of the eviction
/// handler).
pub fn ignores_budgets(pod: &PodFacts) -> bool {
    pod.deletion.is_some() || pod.phase.is_finished() || pod.phase == PodPhase::Pending
}

/// Forecasts an eviction of this pod under the budgets that count it.
pub fn forecast<'a>(pod: &PodFacts, budgets: impl Iterator<Item = &'a BudgetFacts>) -> PodBudgets {
    if ignores_budgets(pod) {
        return PodBudgets::Free;
    }
    let counting: Vec<&BudgetFacts> = budgets.filter(|b| !is_kubevirts(b)).collect();
    match counting.as_slice() {
        [] => PodBudgets::Free,
        [one] => PodBudgets::One(one.key.clone(), one_budget(pod, one)),
        several => PodBudgets::Multiple(several.iter().map(|b| b.key.clone()).collect()),
    }
}

/// Forecasts one budget, in the order in which the eviction handler looks.
pub fn one_budget(pod: &PodFacts, budget: &BudgetFacts) -> BudgetForecast {
    let name = &budget.key.name;
    if !pod.ready && budget.unhealthy == UnhealthyPolicy::AlwaysAllow {
        return BudgetForecast::AllowedNow;
    }
    let edit = format!("`kubectl edit pdb {name} -n {}`", budget.key.namespace);
    let never = |cause: Cause, why: String, remedy: String| BudgetForecast::Never { cause, why, remedy };
    if let Some(text) = &budget.sync_failed {
        return never(Cause::BudgetBroken, format!("budget {name} is broken: {text}"), edit);
    }
    let (true, Some(allowed), Some(healthy), Some(desired)) =
        (budget.observed, budget.allowed, budget.healthy, budget.desired)
    else {
        return BudgetForecast::Unknown;
    };
    // The handler lets an unready pod go while enough healthy ones are there, whatever `disruptionsAllowed` says.
    if allowed > 0 || (!pod.ready && desired > 0 && healthy >= desired) {
        return BudgetForecast::AllowedNow;
    }
    let never = |why: String, remedy: String| never(Cause::BudgetNever, why, remedy);
    if matches!(budget.max_unavailable, Some(IntOrPercent::Int(0) | IntOrPercent::Percent(0))) {
        let why = format!("budget {name} allows no disruption at all (maxUnavailable 0)");
        return never(why, format!("{edit}, for example to maxUnavailable 1"));
    }
    if let Some(expected) = budget.expected.filter(|e| *e > 0 && desired >= *e) {
        let why = format!("budget {name} wants {desired} of {expected} pods healthy, so none may ever go");
        // A share of all pods grows with them.
        let share = matches!(budget.min_available, Some(IntOrPercent::Percent(_)));
        return never(why, if share { edit } else { format!("{edit}, or add a replica") });
    }
    if matches!(budget.min_available, Some(IntOrPercent::Percent(100..))) {
        return never(format!("budget {name} wants all of its pods healthy (minAvailable 100%)"), edit);
    }
    if !pod.ready && healthy < desired {
        let why = format!("the pod is not ready, and budget {name} wants {desired} healthy pods but has {healthy}");
        return never(why, format!("make its pods ready, or {edit}: unhealthyPodEvictionPolicy AlwaysAllow"));
    }
    BudgetForecast::AfterRecovery { why: format!("budget {name} wants {desired} healthy pods and has {healthy}") }
}
