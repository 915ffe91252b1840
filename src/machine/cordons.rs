//! The cordons: all of them first, on facts of now, and taken back when one is refused or gets no answer in time.

use std::time::Duration;

use super::core::Asker;
use super::types::{Cordoned, EffectKind, Failure, RequestId};
use super::{Machine, Stage, retry};
use crate::event::EventKind;
use crate::exit::ExitCode;
use crate::facts::{Change, Delta, FIELD_MANAGER, NodeFacts};

/// How often a cordon that may or may not have arrived is tried.
const TRIES: u32 = 5;
/// How long cordons may be taken back after a refusal, within the node's time.
const TAKING_BACK: Duration = Duration::from_secs(60);
/// How long they may be taken back when the time is over.
const TAKING_BACK_LATE: Duration = Duration::from_secs(10);

/// The cordon of one node.
#[derive(Debug, Clone, Default)]
pub(super) struct Cordon {
    outstanding: Option<RequestId>,
    set_by_us: bool,
    /// True once a write of ours got no answer: the node may be cordoned by it.
    unknown: bool,
    tries: u32,
    retry_at: Option<Duration>,
    refused: Option<Failure>,
}

impl Machine {
    /// Sends the cordons. Everything else follows from their answers. Outside a drain there are none.
    pub fn start(&mut self, now: Duration) {
        self.now = now;
        if self.core.options.in_place {
            self.stage = Stage::Draining;
            self.begin_turns(now);
            return self.settle(now);
        }
        self.cordon_bound = now + self.core.options.timeout;
        for number in 0..self.nodes.len() {
            let node = self.nodes[number].place.node.clone();
            // What the plan saw may be old: a cordon that stood then may be gone.
            let seen = self.core.index.node(&node).filter(|n| !n.unschedulable && !n.resource_version.is_empty());
            let kind = match seen {
                Some(facts) => EffectKind::Cordon { node, resource_version: facts.resource_version.clone() },
                None => EffectKind::CordonFresh { node },
            };
            self.cordon(number, kind);
        }
        if let Some(first) = self.nodes.first_mut() {
            first.started = Some(now);
        }
        self.after_cordons(now);
        self.settle(now);
    }

    fn cordon(&mut self, number: usize, kind: EffectKind) {
        let id = self.core.send(number, Asker::Node, kind);
        self.cordons[number].outstanding = Some(id);
        self.cordons[number].tries += 1;
    }

    pub(super) fn cordon_answered(&mut self, number: usize, result: Result<Cordoned, Failure>, now: Duration) {
        let node = self.nodes[number].place.node.clone();
        let cordon = &mut self.cordons[number];
        cordon.outstanding = None;
        match result {
            Ok(Cordoned { facts, wrote }) => {
                let by_us = facts.cordoned_by.as_deref() == Some(FIELD_MANAGER);
                cordon.set_by_us = wrote || (cordon.unknown && by_us);
                cordon.unknown = false;
                let ours = cordon.set_by_us;
                self.nodes[number].cordoned_before = !ours;
                self.nodes[number].cordoned_now = true;
                self.core.index.apply(Change::Node(Delta::Apply(facts)));
                self.core.emit(now, EventKind::NodeCordoned { node, already: !ours });
            }
            Err(failure @ (Failure::Conflict | Failure::Passing(_))) => {
                if matches!(failure, Failure::Passing(_)) {
                    // A cordon that stood before is nobody's doing in this run, whatever is read later.
                    cordon.unknown |= !self.nodes[number].cordoned_before;
                }
                if cordon.tries < TRIES && self.stage == Stage::Cordoning {
                    cordon.retry_at = Some(now + retry::delay(cordon.tries - 1, &node));
                } else {
                    cordon.refused = Some(failure);
                }
            }
            Err(failure) => cordon.refused = Some(failure),
        }
        match self.stage {
            // It came too late: what it set is taken back as well.
            Stage::TakingBack { .. } => {
                if self.cordons[number].set_by_us {
                    self.take_back(number);
                }
                self.taken_back(now);
            }
            Stage::Cordoning => self.after_cordons(now),
            Stage::Draining | Stage::Undoing | Stage::Ended { .. } => {}
        }
    }

    /// Goes on when every cordon has its answer.
    fn after_cordons(&mut self, now: Duration) {
        if self.stage != Stage::Cordoning
            || self.cordons.iter().any(|c| c.outstanding.is_some() || c.retry_at.is_some())
        {
            return;
        }
        let refused = self.cordons.iter().enumerate().find_map(|(n, c)| Some((n, c.refused.clone()?)));
        let Some((refused, failure)) = refused else {
            self.stage = Stage::Draining;
            self.begin_turns(now);
            return;
        };
        let error = format!("cannot cordon node {}: {}", self.nodes[refused].place.node, failure.text());
        let nothing_changed = self.cordons.iter().all(|c| !c.set_by_us);
        let barred = matches!(failure, Failure::Forbidden(_) | Failure::Unauthorized | Failure::Passing(_));
        let exit = if barred && nothing_changed { ExitCode::Api } else { ExitCode::Failed };
        let until = (now + TAKING_BACK).min(self.cordon_bound).max(now + TAKING_BACK_LATE);
        self.take_all_back(error, exit, until, now);
    }

    fn take_all_back(&mut self, error: String, exit: ExitCode, until: Duration, now: Duration) {
        self.stage = Stage::TakingBack { error, exit, until };
        for number in 0..self.nodes.len() {
            self.cordons[number].retry_at = None;
            if self.cordons[number].set_by_us {
                self.take_back(number);
            }
        }
        self.taken_back(now);
    }

    fn take_back(&mut self, number: usize) {
        let node = self.nodes[number].place.node.clone();
        let id = self.core.send(number, Asker::Node, EffectKind::Uncordon { node });
        self.cordons[number].outstanding = Some(id);
    }

    pub(super) fn uncordon_answered(&mut self, number: usize, result: Result<NodeFacts, Failure>, now: Duration) {
        let node = self.nodes[number].place.node.clone();
        let cordon = &mut self.cordons[number];
        cordon.outstanding = None;
        // Where a signal came meanwhile, the drain is undone, and the cordon with it.
        let until = if let Stage::TakingBack { until, .. } = self.stage { until } else { now };
        match result {
            Ok(facts) => {
                cordon.set_by_us = false;
                self.nodes[number].cordoned_now = facts.unschedulable;
                self.core.index.apply(Change::Node(Delta::Apply(facts)));
                self.core.emit(now, EventKind::NodeUncordoned { node });
            }
            Err(Failure::NotFound) => {
                cordon.set_by_us = false;
                self.nodes[number].cordoned_now = false;
            }
            Err(failure) => {
                cordon.tries += 1;
                let at = now + retry::delay(cordon.tries.saturating_sub(2), &node);
                let passing = matches!(failure, Failure::Passing(_) | Failure::Conflict);
                if passing && at < until {
                    cordon.retry_at = Some(at);
                } else {
                    self.stays_cordoned(number, failure.text(), now);
                }
            }
        }
        self.taken_back(now);
    }

    fn stays_cordoned(&mut self, number: usize, why: &str, now: Duration) {
        let node = &self.nodes[number].place.node;
        let text = format!("node {node} stays cordoned: {why}; kubectl uncordon {node} lifts it");
        self.core.emit(now, EventKind::Noted { warning: true, text });
        let cordon = &mut self.cordons[number];
        (cordon.outstanding, cordon.retry_at) = (None, None);
    }

    /// Ends when nothing is left to take back. A cordon without an answer is not waited for.
    fn taken_back(&mut self, now: Duration) {
        if let Stage::TakingBack { error, exit, .. } = self.stage.clone()
            && !self.cordons.iter().any(|c| c.set_by_us && (c.outstanding.is_some() || c.retry_at.is_some()))
        {
            self.end(exit, Some(error), now);
        }
    }

    /// The time of the first node runs from its cordon, whether that is answered or not.
    pub(super) fn cut_cordons(&mut self, now: Duration) {
        if self.stage == Stage::Cordoning && now >= self.cordon_bound {
            let open = |c: &Cordon| c.outstanding.is_some() || c.retry_at.is_some();
            let late: Vec<&str> = (0..self.nodes.len())
                .filter(|n| open(&self.cordons[*n]))
                .map(|n| self.nodes[n].place.node.as_str())
                .collect();
            let late = late.join(", ");
            let error = format!("no answer to the cordon of {late} in time: whether it is cordoned is unknown");
            self.take_all_back(error, ExitCode::Timeout, now + TAKING_BACK_LATE, now);
        }
        if let Stage::TakingBack { error, exit, until } = self.stage.clone()
            && now >= until
        {
            for number in 0..self.nodes.len() {
                if self.cordons[number].set_by_us {
                    self.stays_cordoned(number, "no answer when the cordon was taken back", now);
                }
            }
            self.end(exit, Some(error), now);
        }
    }

    /// Sends again what is due.
    pub(super) fn retry_cordons(&mut self, now: Duration) {
        for number in 0..self.cordons.len() {
            if self.cordons[number].retry_at.is_some_and(|t| t <= now) {
                self.cordons[number].retry_at = None;
                if self.stage == Stage::Cordoning {
                    let node = self.nodes[number].place.node.clone();
                    self.cordon(number, EffectKind::CordonFresh { node });
                } else {
                    self.take_back(number);
                }
            }
        }
    }

    /// No cordon is sent again. Those that are on their way are taken back when they have arrived.
    pub(super) fn stop_cordoning(&mut self) {
        for cordon in &mut self.cordons {
            cordon.retry_at = None;
            let unsent = |id: &RequestId| self.core.effects.iter().any(|e| e.id == *id);
            cordon.outstanding = cordon.outstanding.filter(|id| !unsent(id));
        }
    }

    /// The run ends: what was on its way to a node may have reached it.
    pub(super) fn note_cordons_under_way(&mut self, now: Duration) {
        for number in 0..self.cordons.len() {
            let node = &mut self.nodes[number];
            if self.cordons[number].unknown || self.cordons[number].outstanding.is_some() {
                node.cordoned_now |= self.core.index.node(&node.place.node).is_some_and(|n| n.unschedulable);
            }
            let Some(id) = self.cordons[number].outstanding.take() else {
                if std::mem::take(&mut self.cordons[number].unknown) {
                    let node = &self.nodes[number].place.node;
                    let text = format!("the cordon of {node} may have arrived: kubectl get node {node} tells");
                    self.core.emit(now, EventKind::Noted { warning: true, text });
                }
                continue;
            };
            self.cordons[number].unknown = false;
            if self.core.effects.iter().any(|e| e.id == id) {
                continue; // It was never sent.
            }
            let what = if self.cordons[number].set_by_us { "uncordon" } else { "cordon" };
            // Until somebody looks, it counts as cordoned: that is what has to be undone.
            self.nodes[number].cordoned_now = true;
            let node = &self.nodes[number].place.node;
            let text = format!("the {what} of {node} was on its way: kubectl get node {node} tells");
            self.core.emit(now, EventKind::Noted { warning: true, text });
        }
    }

    pub(super) fn cordon_wakes(&self) -> impl Iterator<Item = Duration> {
        let bound = match self.stage {
            Stage::Cordoning => Some(self.cordon_bound),
            Stage::TakingBack { until, .. } => Some(until),
            Stage::Draining | Stage::Undoing | Stage::Ended { .. } => None,
        };
        self.cordons.iter().filter_map(|c| c.retry_at).chain(bound)
    }
}
