//! The gate in front of disruption budgets: never more evictions in flight than a budget's last status allows.
//!
//! A charge is an eviction that was sent and is not yet part of the status that we last saw. It is released when the
//! request was refused, or when a status shows it (the pod is named in `disruptedPods`, or is stopping already).

use std::collections::BTreeMap;

use crate::facts::{Index, Key, PodFacts, UnhealthyPolicy};

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
}

/// Charges by budget and pod UID.
#[derive(Debug, Default)]
pub(super) struct BudgetGate {
    charges: BTreeMap<Key, BTreeMap<String, Charge>>,
}

impl BudgetGate {
    /// Whether an eviction of this pod may go out.
    pub(super) fn check(&self, index: &Index, pod: &PodFacts) -> Gate {
        // The API server does not ask budgets about pods that run nothing yet or any more.
        if pod.phase != crate::facts::PodPhase::Running || pod.deletion.is_some() {
            return Gate::Open;
        }
        for budget in index.budgets_of(pod) {
            let unready_goes = !pod.ready
                && (budget.unhealthy == UnhealthyPolicy::AlwaysAllow
                    || budget.desired.zip(budget.healthy).is_some_and(|(d, h)| d > 0 && h >= d));
            if unready_goes {
                continue;
            }
            let charged = self.charges.get(&budget.key).map_or(0, BTreeMap::len);
            // A status that was never written or is behind its spec: one request at a time finds out.
            let allowed = if budget.observed { budget.allowed.unwrap_or(1) } else { 1 };
            if i64::try_from(charged).unwrap_or(i64::MAX) >= allowed {
                return Gate::Shut(budget.key.clone());
            }
        }
        Gate::Open
    }

    /// An eviction of this pod was sent.
    pub(super) fn charge(&mut self, index: &Index, pod: &PodFacts) {
        for budget in index.budgets_of(pod) {
            let charge = Charge { name: pod.key.name.clone(), accepted: false };
            self.charges.entry(budget.key.clone()).or_default().insert(pod.key.uid.clone(), charge);
        }
    }

    /// The eviction of that pod was answered. Returns the budgets on which a charge ended.
    pub(super) fn answered(&mut self, index: &Index, uid: &str, accepted: bool) -> Vec<Key> {
        let mut released = Vec::new();
        for (key, charges) in &mut self.charges {
            let Some(charge) = charges.get_mut(uid) else { continue };
            charge.accepted = accepted;
            if !accepted || shown(index, key, uid, &charge.name) {
                charges.remove(uid);
                released.push(key.clone());
            }
        }
        released
    }

    /// The status of that budget changed: accepted charges that it shows end.
    pub(super) fn budget_changed(&mut self, index: &Index, key: &Key) {
        if let Some(charges) = self.charges.get_mut(key) {
            charges.retain(|uid, charge| !(charge.accepted && shown(index, key, uid, &charge.name)));
        }
    }
}

/// True if the last status of the budget already counts the eviction of that pod.
fn shown(index: &Index, key: &Key, uid: &str, name: &str) -> bool {
    index.budget(key).is_none_or(|b| b.disrupted.iter().any(|d| d == name))
        || index.pod(uid).is_none_or(|p| p.deletion.is_some())
}
