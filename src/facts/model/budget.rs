//! Disruption budgets and label selectors.

use std::collections::BTreeMap;

use super::{Key, Owner, PodFacts};

/// `spec.unhealthyPodEvictionPolicy` of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnhealthyPolicy {
    /// Unready pods may go only while enough healthy ones are there (the API's default).
    IfHealthyBudget,
    /// Unready pods may always go.
    AlwaysAllow,
}

/// A count or a percentage, as budgets use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntOrPercent {
    /// A count of pods.
    Int(i64),
    /// A percentage of the expected pods.
    Percent(u32),
}

/// A label selector. `None` in place of one selects nothing; an empty one selects everything in its namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// Labels that must be equal.
    pub match_labels: BTreeMap<String, String>,
    /// Expressions that must hold: key, operator (`In`, `NotIn`, `Exists`, `DoesNotExist`), values.
    pub expressions: Vec<(String, String, Vec<String>)>,
}

impl LabelSelector {
    /// True if the labels satisfy every requirement.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_by(|key| labels.get(key).map(String::as_str))
    }

    /// The same for labels that are kept in another form: `label` gives the value of a key.
    pub fn matches_by<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.match_labels.iter().all(|(key, value)| label(key) == Some(value))
            && self.expressions.iter().all(|(key, operator, values)| holds(operator, label(key), values))
    }
}

/// Whether a value (`None`: the key is absent) satisfies an operator of a label or node selector. `NotIn` also holds for
/// an absent key, as in Kubernetes; an unknown operator never holds.
pub fn holds(operator: &str, value: Option<&str>, values: &[String]) -> bool {
    let listed = |v: &str| values.iter().any(|x| x == v);
    let numbers = || value?.parse::<i64>().ok().zip(values.first()?.parse::<i64>().ok());
    match operator {
        "In" => value.is_some_and(listed),
        "NotIn" => !value.is_some_and(listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers().is_some_and(|(a, b)| a > b),
        "Lt" => numbers().is_some_and(|(a, b)| a < b),
        _ => false,
    }
}

/// One PodDisruptionBudget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetFacts {
    /// Namespace and name.
    pub key: Key,
    /// UID.
    pub uid: String,
    /// Controller of the budget (a VMI on KubeVirt 1.5 and older).
    pub owner: Option<Owner>,
    /// `spec.selector`; `None` selects nothing.
    pub selector: Option<LabelSelector>,
    /// `spec.minAvailable`.
    pub min_available: Option<IntOrPercent>,
    /// `spec.maxUnavailable`.
    pub max_unavailable: Option<IntOrPercent>,
    /// What holds for unready pods.
    pub unhealthy: UnhealthyPolicy,
    /// True if the disruption controller has seen the present spec (`observedGeneration >= generation`).
    pub observed: bool,
    /// Evictions that it allows now; `None` while the controller has not spoken.
    pub allowed: Option<i64>,
    /// Healthy pods now.
    pub healthy: Option<i64>,
    /// Healthy pods that it wants.
    pub desired: Option<i64>,
    /// Pods that it counts on.
    pub expected: Option<i64>,
    /// Names of pods whose eviction was accepted and not yet seen by the controller.
    pub disrupted: Vec<String>,
    /// Message of condition `DisruptionAllowed=False` with reason `SyncFailed`.
    pub sync_failed: Option<String>,
}

impl BudgetFacts {
    /// True if the budget counts this pod.
    pub fn covers(&self, pod: &PodFacts) -> bool {
        self.key.namespace == pod.key.namespace && self.selector.as_ref().is_some_and(|s| s.matches(&pod.labels))
    }
}
