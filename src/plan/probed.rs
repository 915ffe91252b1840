//! What a server's answer to a dry run does to a forecast. Pure.
//!
//! A dry run decrements no budget and sets no mark, so an `Accepted` proves only that this pod alone could go now; the
//! forecast's own arithmetic stands. A refusal that waiting clears leaves the outcome alone, too. Only a refusal that
//! contradicts the forecast changes a row. Where the server could not say anything, the forecast stands, too, and that is
//! said.

use super::{NodePlan, PodAction, PodItem, VmAction, VmItem};
use std::collections::BTreeMap;

use crate::answer::{EvictionAnswer, RestartAnswer};
use crate::facts::{BudgetFacts, Index, Key, KubeVirtState};
use crate::forecast::vm::in_motion;
use crate::forecast::words;
use crate::outcome::{Cause, PodOutcome, VmOutcome};

/// An eviction of a pod that is no VM was probed.
pub fn pod(item: &mut PodItem, answer: &EvictionAnswer) {
    if matches!(answer, EvictionAnswer::Gone | EvictionAnswer::PodReplaced) {
        item.row.because = "gone already".to_owned();
        return;
    }
    let foreseen = matches!(answer, EvictionAnswer::Accepted | EvictionAnswer::ProbeImpossible { .. });
    if foreseen || silence(answer).is_some() || item.row.outcome == PodOutcome::Blocks {
        return;
    }
    let blocks = answer.waiting_helps() == Some(false);
    item.row.outcome = if blocks { PodOutcome::Blocks } else { PodOutcome::Waits };
    item.row.cause = answer.cause();
    item.row.waiting_helps = Some(!blocks);
    item.row.because = format!("the server says: {}", answer.describe());
    if blocks {
        item.action = PodAction::Leave;
    }
}

/// An eviction of a launcher was probed.
///
/// KubeVirt 1.5 and older guard a migratable VM with a budget of its own, which refuses every eviction: there it is that
/// refusal that stands for the migration.
pub fn vm(item: &mut VmItem, answer: &EvictionAnswer, index: &Index) {
    if silence(answer).is_some() || is_foreseen(item, answer, index) {
        return;
    }
    if item.action == VmAction::Leave {
        // It stays left alone; who reads the preview learns that the server sees it otherwise.
        item.row.because = format!("{}; asked now, the server says: {}", item.row.because, answer.describe());
        return;
    }
    let blocks = answer.waiting_helps() == Some(false);
    item.row.outcome = if blocks { VmOutcome::Blocks } else { VmOutcome::Waits };
    item.row.cause = answer.cause();
    item.row.waiting_helps = Some(!blocks);
    item.row.because = if *answer == EvictionAnswer::Accepted {
        "the server would shut it down now, although a migration was expected".to_owned()
    } else {
        format!("the server says: {}", answer.describe())
    };
    if blocks {
        item.action = VmAction::Leave;
    }
}

/// True if the answer is what the forecast's action leads to, or tells nothing about it.
fn is_foreseen(item: &VmItem, answer: &EvictionAnswer, index: &Index) -> bool {
    let nothing_new =
        matches!(answer, EvictionAnswer::ProbeImpossible { .. } | EvictionAnswer::Gone | EvictionAnswer::PodReplaced);
    let as_planned = match item.action {
        VmAction::Migrate | VmAction::AwaitOwner => {
            matches!(answer, EvictionAnswer::VmEvacuating { .. } | EvictionAnswer::VmMigrationTarget)
                || is_own_budget(item, answer, index)
        }
        VmAction::ShutDown => *answer == EvictionAnswer::Accepted,
        VmAction::Leave => item.row.cause != Some(Cause::VmNotMigratable) || *answer == EvictionAnswer::VmNotMigratable,
        VmAction::Restart | VmAction::AwaitCondition | VmAction::AwaitMigration | VmAction::AwaitGone => false,
    };
    nothing_new || as_planned
}

/// True if the budget that refuses is the one that KubeVirt (1.5 and older) keeps for this VMI, alone or beside a user's:
/// its refusal says nothing about a user's budget, but stands for the migration.
pub(crate) fn is_own_budget(item: &VmItem, answer: &EvictionAnswer, index: &Index) -> bool {
    if let EvictionAnswer::BudgetExhausted { budget: Some(budget), .. }
    | EvictionAnswer::BudgetUnsynced { budget: Some(budget) }
    | EvictionAnswer::BudgetBusy { budget: Some(budget) } = answer
    {
        return index.budget(&Key::new(&item.vmi.namespace, budget)).is_some_and(|b| is_of(b, item));
    }
    *answer == EvictionAnswer::MultipleBudgets && own_budget(item, index).is_some()
}

/// The budget that KubeVirt (1.5 and older) keeps for this VMI.
pub(crate) fn own_budget<'a>(item: &VmItem, index: &'a Index) -> Option<&'a BudgetFacts> {
    let launcher = index.pod(&item.launcher.uid)?;
    index.budgets_of(launcher).find(|b| is_of(b, item))
}

fn is_of(budget: &BudgetFacts, item: &VmItem) -> bool {
    budget.owner.as_ref().is_some_and(|o| o.kind == "VirtualMachineInstance" && o.uid == item.vmi_uid)
}

/// An answer with what is known of the VMI (design §4, the step after the classifier): a refusal by KubeVirt's own budget
/// means that the VMI is being evacuated if it is marked or migrating, else that it is not.
pub(crate) fn judged(answer: &EvictionAnswer, item: &VmItem, index: &Index) -> EvictionAnswer {
    if !is_own_budget(item, answer, index) {
        return answer.clone();
    }
    let vmi = index.vmi(&item.vmi).filter(|v| v.uid == item.vmi_uid);
    if vmi.is_some_and(|v| v.marked.is_some() || in_motion(index, v)) {
        EvictionAnswer::VmEvacuating { marked_now: false }
    } else {
        EvictionAnswer::VmNotMigratable
    }
}

/// Why an answer tells nothing about what was asked: who should have judged it did not.
pub fn silence(answer: &EvictionAnswer) -> Option<String> {
    let silent = matches!(
        answer,
        EvictionAnswer::WebhookUnreachable { .. }
            | EvictionAnswer::ServerTrouble { .. }
            | EvictionAnswer::Throttled { .. }
            | EvictionAnswer::Unauthorized
    );
    let then = answer.bound().map_or_else(
        || "a drain asks again".to_owned(),
        |bound| format!("a drain asks again for {}m, then they block", bound.as_secs() / 60),
    );
    silent.then(|| format!("{}; {then}", answer.describe()))
}

/// The same for a launcher whose eviction passed by a webhook that does not answer: from KubeVirt 1.3 on the webhook itself
/// refuses a VMI that is not marked, so that KubeVirt's budget (up to 1.5) has nothing to say of it.
pub fn passed_by(item: &VmItem, answer: &EvictionAnswer, index: &Index) -> Option<String> {
    let KubeVirtState::One(cr) = index.kubevirt() else { return None };
    let vmi = index.vmi(&item.vmi).filter(|v| v.marked.is_none() && !in_motion(index, v));
    (vmi.is_some() && cr.at_least(1, 3) && is_own_budget(item, answer, index))
        .then(|| "evictions pass by KubeVirt's webhook (is virt-api up?); a drain would block".to_owned())
}

/// The same for a restart.
pub fn restart_silence(answer: &RestartAnswer) -> Option<String> {
    matches!(answer, RestartAnswer::Throttled { .. } | RestartAnswer::Unavailable { .. })
        .then(|| format!("{}; a drain asks again", answer.describe()))
}

/// Says on a node what the server could not confirm; `silent` has the reason of each.
pub fn unconfirmed(node: &mut NodePlan, silent: &[String]) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for why in silent {
        *counts.entry(why).or_default() += 1;
    }
    for (why, n) in counts {
        let forecasts = words::count(n, "forecast");
        node.warnings.push(format!("{}: the server could not confirm {forecasts}: {why}", node.node));
    }
}

/// A restart was probed.
pub fn restart(item: &mut VmItem, answer: &RestartAnswer) {
    match answer {
        RestartAnswer::Accepted
        | RestartAnswer::Underway
        | RestartAnswer::Throttled { .. }
        | RestartAnswer::Unavailable { .. } => {}
        RestartAnswer::NotPossible { .. }
        | RestartAnswer::NoSuchVm
        | RestartAnswer::Forbidden { .. }
        | RestartAnswer::Unauthorized
        | RestartAnswer::Invalid { .. } => {
            item.row.outcome = VmOutcome::Blocks;
            item.row.cause = Some(Cause::RestartRefused);
            item.row.waiting_helps = Some(false);
            item.row.because = format!("the server refuses the restart: {}", answer.describe());
            item.action = VmAction::Leave;
        }
    }
}
