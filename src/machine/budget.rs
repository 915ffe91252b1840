//! The gate in front of disruption budgets: never more evictions in flight than a budget's last status allows.
//!
//! A charge is an eviction that was sent and is not yet part of the status that we last saw. It is released when the
//! request was refused, or when a status showed it: the pod was named in `disruptedPods`, or the pod is gone and the status
//! changed after that. Pods and budgets are watched apart, so a pod that is stopping or gone proves nothing alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{BudgetFacts, Index, Key, PodFacts, UnhealthyPolicy};
use crate::forecast::budget::{BudgetForecast, ignores_budgets, one_budget};
use crate::outcome::Cause;

/// May an eviction go out now?
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Gate {
    /// Yes.
    Open,
    /// No: this budget has none left; its next event wakes whoever waits.
    Shut(Key),
}

#[derive(Debug)]
struct Charge {
    name: String,
    accepted: bool,
    /// True once the budget's status changed after the request was sent.
    newer: bool,
    /// True once its status named the pod after that.
    named: bool,
}

/// Charges by budget and pod UID.
#[derive(Debug, Default)]
pub(super) struct BudgetGate {
    charges: BTreeMap<Key, BTreeMap<String, Charge>>,
    /// Budgets on which a charge ended without an event of theirs that would wake who waits.
    pub(super) freed: BTreeSet<Key>,
    /// Budgets that were asked in vain for as long as their kind of refusal may last: nobody asks them again before they
    /// change.
    given_up: BTreeMap<Key, (Cause, String)>,
}

impl BudgetGate {
    /// Whether an eviction of this pod may go out.
    pub(super) fn check(&self, index: &Index, pod: &PodFacts) -> Gate {
        for budget in counting(index, pod) {
            let charged = self.charges.get(&budget.key).map_or(0, BTreeMap::len);
            // A status that was never written or is behind its spec: one request at a time finds out.
            let allowed = if budget.observed { budget.allowed.unwrap_or(1) } else { 1 };
            if i64::try_from(charged).unwrap_or(i64::MAX) >= allowed {
                return Gate::Shut(budget.key.clone());
            }
        }
        Gate::Open
    }

    /// Whether an eviction may go out although the gate is shut, because no event came for long: one at a time asks the
    /// server itself.
    pub(super) fn may_probe(&self, index: &Index, pod: &PodFacts) -> bool {
        counting(index, pod)
            .all(|budget| self.charges.get(&budget.key).is_none_or(|charges| charges.values().all(|c| c.accepted)))
    }

    /// An eviction of this pod was sent.
    pub(super) fn charge(&mut self, index: &Index, pod: &PodFacts) {
        for budget in counting(index, pod) {
            let charge = Charge { name: pod.key.name.clone(), accepted: false, newer: false, named: false };
            self.charges.entry(budget.key.clone()).or_default().insert(pod.key.uid.clone(), charge);
        }
    }

    /// The eviction of that pod was answered; `by_budget` if a budget refused it. True if a budget that it was charged
    /// to has changed since it was sent: then the answer is older than what is known.
    pub(super) fn answered(&mut self, index: &Index, uid: &str, accepted: bool, by_budget: bool) -> bool {
        let mut outdated = false;
        for (key, charges) in &mut self.charges {
            let Some(charge) = charges.get_mut(uid) else { continue };
            outdated |= charge.newer;
            charge.accepted |= accepted;
            if !accepted || charge.named || index.budget(key).is_none() {
                charges.remove(uid);
                // After a refusal by the budget itself only its next status can open it.
                if !by_budget {
                    self.freed.insert(key.clone());
                }
            }
        }
        outdated
    }

    /// The hope on that budget has ended: who waits on it need not hope for as long again.
    pub(super) fn give_up(&mut self, key: Key, cause: Cause, because: String) {
        self.freed.insert(key.clone());
        self.given_up.insert(key, (cause, because));
    }

    /// Why nobody asks that budget any more.
    pub(super) fn given_up(&self, key: &Key) -> Option<(Cause, String)> {
        self.given_up.get(key).cloned()
    }

    /// The status of that budget changed: accepted charges that it shows end.
    pub(super) fn budget_changed(&mut self, index: &Index, key: &Key) {
        let budget = index.budget(key);
        self.given_up.remove(key);
        if let Some(charges) = self.charges.get_mut(key) {
            charges.retain(|uid, charge| {
                charge.newer = true;
                charge.named |= budget.is_none_or(|b| b.disrupted.contains(&charge.name));
                !(charge.accepted && (charge.named || index.pod(uid).is_none()))
            });
        }
    }
}

/// The budgets that an eviction of this pod takes a disruption from.
fn counting<'a>(index: &'a Index, pod: &'a PodFacts) -> impl Iterator<Item = &'a BudgetFacts> {
    let asked = !ignores_budgets(pod);
    index.budgets_of(pod).filter(move |budget| {
        let unready_goes = !pod.ready
            && (budget.unhealthy == UnhealthyPolicy::AlwaysAllow
                || budget.desired.zip(budget.healthy).is_some_and(|(d, h)| d > 0 && h >= d));
        asked && !unready_goes
    })
}

/// A budget that counts the pod.
pub(super) fn first_budget(index: &Index, uid: &str) -> Option<Key> {
    index.budgets_of(index.pod(uid)?).next().map(|b| b.key.clone())
}

/// Why that budget need not be waited for, and what helps: as it stands it can never allow it. An unready pod is left to
/// the server: it may become ready.
pub(super) fn can_never(index: &Index, pod: &PodFacts, budget: &Key) -> Option<(Cause, String, String)> {
    let facts = index.budget(budget).filter(|_| pod.ready)?;
    match one_budget(pod, facts) {
        BudgetForecast::Never { cause, why, remedy } => Some((cause, why, remedy)),
        BudgetForecast::AllowedNow | BudgetForecast::AfterRecovery { .. } | BudgetForecast::Unknown => None,
    }
}
