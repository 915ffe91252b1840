//! What a run looks like at a moment: the fold that the screen and the heartbeat show. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::text::{duration, left, plural};
use super::words::{activity_order, activity_word, next_try};
use crate::event::{Activity, DrainEvent, EventKind, VmProgress};
use crate::facts::{Key, PodKey};
use crate::outcome::{Cause, NodeReport, PodOutcome, VmRow};

/// What a pod in motion is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodMotion {
    /// The eviction was sent.
    Evicting,
    /// It is refused for a passing reason.
    Waiting,
    /// The pod is stopping.
    Stopping,
}

/// One node of the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeState {
    /// Name.
    pub name: String,
    /// Start of its time.
    pub started: Option<Duration>,
    /// True when it has its result.
    pub ended: bool,
    /// VMs in motion.
    pub vms: BTreeMap<Key, VmProgress>,
    /// Pods in motion that are no launchers.
    pub pods: BTreeMap<PodKey, PodMotion>,
    /// Pods that the plan moves.
    pub planned: usize,
    /// Pods that are gone.
    pub gone: usize,
    /// Pods and VMs that block.
    pub blocked: usize,
    /// VMs that a plan outside a drain restarts or follows.
    pub vms_planned: usize,
    /// Those of them that have reached their end.
    pub vms_done: usize,
}

/// The state of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// True for restarts outside a drain: all VMs are told together, whatever their nodes.
    pub restarts: bool,
    /// Nodes in the order of the command.
    pub nodes: Vec<NodeState>,
    /// Time that each node may take.
    pub timeout: Duration,
    /// Since when there is no contact with the API server, while there is none.
    pub contact_lost: Option<Duration>,
    /// True once the run was stopped from outside.
    pub stopped: bool,
    launchers: BTreeSet<PodKey>,
}

impl State {
    /// A state before anything has happened; `restarts` outside a drain.
    pub fn new(restarts: bool) -> Self {
        Self { restarts, ..Self::default() }
    }

    /// Takes an event in.
    pub fn event(&mut self, event: &DrainEvent) {
        let now = Duration::from_millis(event.elapsed_ms);
        match &event.kind {
            EventKind::Connected { nodes, timeout_seconds, .. } => {
                self.timeout = Duration::from_secs(*timeout_seconds);
                for name in nodes {
                    self.node(name);
                }
            }
            EventKind::Planned { nodes } if self.restarts => {
                let acts = |v: &&VmRow| !v.is_blocked();
                self.node("").vms_planned = nodes.iter().flat_map(|n| &n.vms).filter(acts).count();
            }
            EventKind::Planned { nodes } => nodes.iter().for_each(|report| self.planned(report)),
            EventKind::NodeStarted { node } if self.restarts => drop(self.begin(now, node)),
            EventKind::NodeStarted { node } => self.node(node).started = Some(now),
            EventKind::PodEvicting { pod, launcher: true, .. } => drop(self.launchers.insert(pod.clone())),
            EventKind::PodEvicting { node, pod, launcher: false } => self.pod(now, node, pod, PodMotion::Evicting),
            EventKind::PodWaiting { node, pod, cause, .. } if !self.launchers.contains(pod) => {
                let motion = if *cause == Cause::Stopping { PodMotion::Stopping } else { PodMotion::Waiting };
                self.pod(now, node, pod, motion);
            }
            EventKind::PodStopping { node, pod, launcher: false, .. } => self.pod(now, node, pod, PodMotion::Stopping),
            EventKind::PodGone { node, pod, launcher: false, .. } => {
                let node = self.begin(now, node);
                node.pods.remove(pod);
                node.gone += 1;
            }
            EventKind::PodBlocked { node, row } => {
                let node = self.begin(now, node);
                node.pods.remove(&PodKey::new(&row.namespace, &row.name, &row.uid));
                node.blocked += 1;
            }
            EventKind::VmProgressed { node, vm, progress } => {
                self.begin(now, node).vms.insert(vm.clone(), progress.clone());
            }
            EventKind::VmEnded { node, row } => {
                let node = self.begin(now, node);
                node.vms.remove(&Key::new(&row.namespace, &row.name));
                node.blocked += usize::from(row.is_blocked());
                node.vms_done += usize::from(!row.is_blocked());
            }
            EventKind::ContactLost => self.contact_lost = Some(now),
            EventKind::ContactRestored { .. } => self.contact_lost = None,
            EventKind::Stopped { .. } => self.stopped = true,
            EventKind::NodeEnded { .. } if self.restarts => {}
            EventKind::NodeEnded { report } => self.node(&report.name).ended = true,
            EventKind::Ended { .. } => self.nodes.iter_mut().for_each(|n| n.ended = true),
            EventKind::Consented { .. }
            | EventKind::Noted { .. }
            | EventKind::NodeCordoned { .. }
            | EventKind::NodeUncordoned { .. }
            | EventKind::PodWaiting { .. }
            | EventKind::PodStopping { .. }
            | EventKind::PodGone { .. }
            | EventKind::VmRestarting { .. }
            | EventKind::InfrastructureStarted { .. }
            | EventKind::Audited { .. }
            | EventKind::UndoPlanned { .. }
            | EventKind::UndoStarted { .. }
            | EventKind::EvacuationCancelled { .. }
            | EventKind::MigrationDeleted { .. }
            | EventKind::UndoEnded { .. }
            | EventKind::DeadlineReached { .. } => {}
        }
    }

    /// Nodes whose turn it is.
    pub fn active(&self) -> impl Iterator<Item = &NodeState> {
        self.nodes.iter().filter(|n| n.started.is_some() && !n.ended)
    }

    /// Time that a node has left, once its time runs.
    pub fn left(&self, node: &NodeState, elapsed: Duration) -> Option<Duration> {
        let started = node.started?;
        (!self.timeout.is_zero()).then(|| (started + self.timeout).saturating_sub(elapsed))
    }

    /// `3 VMs migrating, 2 queued, 14 pods stopping, 21m left`.
    pub fn heartbeat(&self, node: &NodeState, elapsed: Duration) -> String {
        let lost = self.contact_lost.map(|since| format!("no contact for {}", left(elapsed.saturating_sub(since))));
        let mut parts: Vec<String> = lost.into_iter().collect();
        parts.extend(activity_counts(node.vms.values()));
        parts.extend(refused_words(node, elapsed));
        parts.extend(node.pod_counts());
        if self.restarts {
            parts.push(node.vms_ended());
        }
        if node.blocked > 0 {
            parts.push(format!("{} blocked", node.blocked));
        }
        if parts.is_empty() {
            parts.push("nothing in motion".to_owned());
        }
        parts.extend(self.left(node, elapsed).map(|d| format!("{} left", left(d))));
        parts.join(", ")
    }

    fn planned(&mut self, report: &NodeReport) {
        let moving = |o: PodOutcome| matches!(o, PodOutcome::Evicts | PodOutcome::Waits);
        let blocked = report.vms.iter().filter(|v| v.is_blocked()).count()
            + report.pods.iter().filter(|p| p.outcome == PodOutcome::Blocks).count();
        let node = self.node(&report.name);
        node.planned = report.pods.iter().filter(|p| moving(p.outcome)).count();
        node.blocked = blocked;
    }

    fn pod(&mut self, now: Duration, node: &str, pod: &PodKey, motion: PodMotion) {
        self.begin(now, node).pods.insert(pod.clone(), motion);
    }

    /// A node that something happens on: its turn has come even where nobody said so.
    fn begin(&mut self, now: Duration, name: &str) -> &mut NodeState {
        let node = self.node(name);
        node.started.get_or_insert(now);
        node
    }

    fn node(&mut self, name: &str) -> &mut NodeState {
        let name = if self.restarts { "" } else { name };
        let at = self.nodes.iter().position(|n| n.name == name).unwrap_or_else(|| {
            self.nodes.push(NodeState { name: name.to_owned(), ..NodeState::default() });
            self.nodes.len() - 1
        });
        &mut self.nodes[at]
    }
}

/// `first 2m 05s ago, next try in 9s`: the longest of the VMs that are refused for a passing reason.
fn refused_words(node: &NodeState, elapsed: Duration) -> Vec<String> {
    let refused = node.vms.values().filter(|p| p.activity == Activity::Retrying);
    let Some(longest) = refused.min_by_key(|p| p.since_ms) else { return Vec::new() };
    let since = elapsed.saturating_sub(Duration::from_millis(longest.since_ms));
    std::iter::once(format!("first {} ago", duration(since))).chain(next_try(longest, elapsed)).collect()
}

impl NodeState {
    /// `3 of 12 VMs done`.
    pub fn vms_ended(&self) -> String {
        format!("{} of {} done", self.vms_done, plural(self.vms_planned.max(self.vms_done), "VM", "VMs"))
    }

    /// `14 pods stopping`, `3 waiting`.
    pub fn pod_counts(&self) -> Vec<String> {
        let count = |motion: PodMotion| self.pods.values().filter(|m| **m == motion).count();
        let kinds =
            [(PodMotion::Stopping, "stopping"), (PodMotion::Evicting, "evicting"), (PodMotion::Waiting, "waiting")];
        with_noun(kinds.map(|(motion, word)| (count(motion), word)), "pod", "pods")
    }
}

/// `3 VMs migrating`, `2 queued`: what moves first, the noun once.
pub fn activity_counts<'a>(vms: impl IntoIterator<Item = &'a VmProgress>) -> Vec<String> {
    let mut counts: BTreeMap<u8, (Activity, usize)> = BTreeMap::new();
    for vm in vms {
        counts.entry(activity_order(vm.activity)).or_insert((vm.activity, 0)).1 += 1;
    }
    with_noun(counts.into_values().map(|(activity, n)| (n, activity_word(activity))), "VM", "VMs")
}

/// Counts with a word each, without zeros; the first also carries the noun.
pub fn with_noun<'a>(counts: impl IntoIterator<Item = (usize, &'a str)>, one: &str, many: &str) -> Vec<String> {
    let counts = counts.into_iter().filter(|(n, _)| *n > 0).enumerate();
    counts
        .map(|(i, (n, word))| if i == 0 { format!("{} {word}", plural(n, one, many)) } else { format!("{n} {word}") })
        .collect()
}
