//! Pods that have not started: what something stuck waits for. No watch shows them, since they are on no node of the drain,
//! so their namespace is read, and only while something is stuck.

use std::collections::BTreeMap;
use std::time::Duration;

use super::core::{Asker, Core};
use super::types::{EffectKind, Failure};
use crate::facts::{Key, PodFacts};
use crate::forecast::words;

/// How long something may take before its namespace is looked at.
pub(super) const STUCK: Duration = Duration::from_secs(5);
/// Between two looks at a namespace.
const AGAIN: Duration = Duration::from_secs(30);
/// What was read longer ago says nothing of now.
const OLD: Duration = Duration::from_secs(60);
/// Label of a migration's target pod with the UID of the migration (KubeVirt `MigrationJobLabel`).
const MIGRATION_JOB: &str = "kubevirt.io/migrationJobUID";

/// What was read of the namespaces that were looked at.
#[derive(Debug, Default)]
pub(super) struct PendingPods(BTreeMap<String, Look>);

#[derive(Debug)]
struct Look {
    asked: Duration,
    pods: Vec<PodFacts>,
    /// True where it may not be read: it is not asked for again.
    forbidden: bool,
}

impl PendingPods {
    fn pods(&self, namespace: &str, now: Duration) -> &[PodFacts] {
        self.0.get(namespace).filter(|look| now < look.asked + OLD).map_or(&[], |look| &look.pods)
    }
}

/// A pod that does not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stuck {
    /// The scheduler finds no node for it; its words.
    NoNode(String),
    /// It is on a node and its containers do not run yet.
    Starting(String),
}

impl Core {
    /// Has a namespace looked at, unless that was done a moment ago. Returns when to ask for it again.
    pub(super) fn look_for_pending(&mut self, node: usize, namespace: &str, now: Duration) -> Duration {
        if self.pending.0.get(namespace).is_some_and(|look| look.forbidden) {
            return Duration::MAX;
        }
        let last = self.pending.0.get(namespace).map(|look| look.asked);
        if let Some(again) = last.map(|asked| asked + AGAIN).filter(|again| *again > now) {
            return again;
        }
        if !self.silent {
            let look = self.pending.0.entry(namespace.to_owned()).or_insert(Look {
                asked: now,
                pods: Vec::new(),
                forbidden: false,
            });
            look.asked = now;
            let kind = EffectKind::ReadPending { namespace: namespace.to_owned() };
            self.send(node, Asker::Pending(namespace.to_owned()), kind);
        }
        now + AGAIN
    }

    /// A namespace was read; what cannot be read stays unknown.
    pub(super) fn pending_read(&mut self, namespace: &str, reply: Result<Vec<PodFacts>, Failure>) {
        let Some(look) = self.pending.0.get_mut(namespace) else { return };
        match reply {
            Ok(pods) => look.pods = pods,
            Err(failure) => look.forbidden |= matches!(failure, Failure::Forbidden(_)),
        }
    }

    /// The target pod of that migration, while it has not started.
    pub(super) fn stuck_target(&self, namespace: &str, migration: &str, now: Duration) -> Option<Stuck> {
        let is_target = |p: &&PodFacts| p.labels.get(MIGRATION_JOB).is_some_and(|uid| uid == migration);
        self.pending.pods(namespace, now).iter().find(is_target).and_then(stuck)
    }

    /// A pod that a budget waits for, since the scheduler finds no node for it: its name and the scheduler's words.
    pub(super) fn stuck_behind(&self, budget: &Key, now: Duration) -> Option<(String, String)> {
        let budget = self.index.budget(budget)?;
        let pods = self.pending.pods(&budget.key.namespace, now);
        pods.iter().filter(|p| budget.covers(p)).find_map(|p| match stuck(p)? {
            Stuck::NoNode(words) => Some((p.key.name.clone(), words)),
            Stuck::Starting(_) => None,
        })
    }
}

fn stuck(pod: &PodFacts) -> Option<Stuck> {
    match (&pod.unschedulable, &pod.node) {
        (Some(text), _) => Some(Stuck::NoNode(words::scheduler(text))),
        (None, Some(node)) => Some(Stuck::Starting(node.clone())),
        (None, None) => None,
    }
}
