//! What all parts of the machine share: facts, clock base, the outbox, and who waits for which answer.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::budget::BudgetGate;
use super::decider::Decider;
use super::pace::Pace;
use super::pending::PendingPods;
use super::react::{Patience, Refusal};
use super::types::{Effect, EffectKind, MachineOptions, RequestId};
use crate::event::{DrainEvent, EventKind};
use crate::facts::{Index, Key};
use crate::outcome::Cause;
use crate::plan::RESTARTS_AT_A_TIME;

/// Who asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asker {
    /// The node itself (cordon, uncordon, re-list).
    Node,
    /// A pod, by UID.
    Pod(String),
    /// A VM.
    Vm(Key),
    /// The restart brake (KubeVirt's CR).
    Brake,
    /// The undoing of the node's drain.
    Undo,
    /// Whatever is stuck in that namespace.
    Pending(String),
}

/// The brake on restarts: few at a time, and none after a sign that they do harm.
#[derive(Debug, Default)]
pub(super) struct Brake {
    under_way: BTreeSet<Key>,
    /// Why no restart may start any more.
    pub(super) stopped: Option<String>,
    /// True once the CR was read again.
    pub(super) strategy_confirmed: bool,
    /// The read that confirms it.
    pub(super) reading: Option<RequestId>,
    /// Reads that failed in a passing way.
    pub(super) failed_reads: u32,
    /// When it is read again after one of those.
    pub(super) read_again: Option<Duration>,
    /// True after a place became free, until somebody looked.
    pub(super) freed: bool,
}

impl Brake {
    /// True if a restart of that VM may start; one that has its place keeps it.
    pub(super) fn has_room(&self, vm: &Key) -> bool {
        self.under_way.contains(vm) || self.under_way.len() < RESTARTS_AT_A_TIME
    }

    /// A restart starts.
    pub(super) fn take(&mut self, vm: &Key) {
        self.under_way.insert(vm.clone());
    }

    /// A restart has ended, well or not.
    pub(super) fn release(&mut self, vm: &Key) {
        self.freed |= self.under_way.remove(vm);
    }
}

/// Shared state.
pub(super) struct Core {
    pub(super) index: Index,
    pub(super) options: MachineOptions,
    pub(super) decider: Decider,
    pub(super) gate: BudgetGate,
    pub(super) brake: Brake,
    /// VMIs of replica sets by UID, and the UID of the one that each makes up for.
    pub(super) successors: BTreeMap<String, String>,
    /// Pods that something waits for.
    pub(super) pending: PendingPods,
    pub(super) started_at: Timestamp,
    /// True once nothing may be sent any more.
    pub(super) silent: bool,
    /// Requests under way that may change something.
    writing: BTreeSet<RequestId>,
    pub(super) effects: VecDeque<Effect>,
    /// What is told when a request really goes out: one that a signal or a deadline kept back is not told.
    announcements: BTreeMap<RequestId, EventKind>,
    pub(super) events: VecDeque<DrainEvent>,
    /// Which node asked, for whom, and the pace's generation where it takes a place.
    pub(super) waiting: BTreeMap<RequestId, (usize, Asker, Option<u64>)>,
    next_request: u64,
    next_seq: u64,
    pub(super) pace: Pace,
    /// Number of the node that took the last place in flight.
    served: Option<usize>,
}

impl Core {
    pub(super) fn new(
        index: Index,
        options: MachineOptions,
        decider: Decider,
        started_at: Timestamp,
        first_seq: u64,
    ) -> Self {
        let pace = Pace::new(options.max_in_flight);
        Self {
            index,
            options,
            decider,
            gate: BudgetGate::default(),
            brake: Brake::default(),
            successors: BTreeMap::new(),
            pending: PendingPods::default(),
            started_at,
            silent: false,
            writing: BTreeSet::new(),
            effects: VecDeque::new(),
            announcements: BTreeMap::new(),
            events: VecDeque::new(),
            waiting: BTreeMap::new(),
            next_request: 1,
            next_seq: first_seq,
            pace,
            served: None,
        }
    }

    /// The wall clock at `now`.
    pub(super) fn wall(&self, now: Duration) -> Timestamp {
        self.started_at + SignedDuration::try_from(now).unwrap_or(SignedDuration::MAX)
    }

    /// True if a POST may go out.
    pub(super) fn has_slot(&self, now: Duration) -> bool {
        !self.silent && self.pace.has_room(now)
    }

    /// When an item tries again after that refusal. Where the server as a whole is busy, its pace says when.
    pub(super) fn next_try(&self, patience: &Patience, refusal: &Refusal, seed: &str, now: Duration) -> Duration {
        match (refusal.cause, self.pace.opens_at()) {
            (Cause::Throttled, Some(at)) => at,
            _ => patience.next_try(refusal, seed, now),
        }
    }

    /// Sends a request; the answer comes back to `asker` of node number `node`.
    pub(super) fn send(&mut self, node: usize, asker: Asker, kind: EffectKind) -> RequestId {
        let id = RequestId(self.next_request);
        self.next_request += 1;
        let generation = kind.takes_slot().then(|| self.pace.sent());
        if generation.is_some() {
            self.served = Some(node);
        }
        if kind.writes() {
            self.writing.insert(id);
        }
        self.waiting.insert(id, (node, asker, generation));
        self.effects.push_back(Effect { id, kind });
        id
    }

    /// The order in which that many nodes take the places in flight: whoever took the last one comes last, so that a small
    /// pace serves them in turn.
    pub(super) fn turns(&self, nodes: usize) -> impl Iterator<Item = usize> + use<> {
        let first = self.served.map_or(0, |number| number + 1);
        (0..nodes).map(move |n| (first + n) % nodes)
    }

    /// Tells this event when that request goes out.
    pub(super) fn announce(&mut self, id: RequestId, event: EventKind) {
        self.announcements.insert(id, event);
    }

    /// The next request to send.
    pub(super) fn next_effect(&mut self, now: Duration) -> Option<Effect> {
        let effect = self.effects.pop_front()?;
        if let Some(event) = self.announcements.remove(&effect.id) {
            self.emit(now, event);
        }
        Some(effect)
    }

    /// True while a request of that node is under way that may change something.
    pub(super) fn writes_for(&self, node: usize) -> bool {
        self.writing.iter().any(|id| self.waiting.get(id).is_some_and(|(n, ..)| *n == node))
    }

    /// Who waits for that answer, if anybody still does, and the generation in which it was asked.
    pub(super) fn answered(&mut self, id: RequestId) -> Option<(usize, Asker, Option<u64>)> {
        self.writing.remove(&id);
        let answered = self.waiting.remove(&id)?;
        if answered.2.is_some() {
            self.pace.ended();
        }
        Some(answered)
    }

    /// What that node has not sent yet is never sent. Requests of the brake serve all nodes and stay.
    pub(super) fn drop_unsent(&mut self, node: usize) -> BTreeSet<RequestId> {
        let queued: Vec<RequestId> = self.effects.iter().map(|e| e.id).collect();
        let mut dropped = BTreeSet::new();
        for id in queued {
            if self.waiting.get(&id).is_some_and(|(n, asker, _)| *n == node && *asker != Asker::Brake) {
                self.answered(id);
                self.effects.retain(|e| e.id != id);
                dropped.insert(id);
            }
        }
        dropped
    }

    /// Of what was not sent yet only steps of an undo still are.
    pub(super) fn drop_all_but_undoing(&mut self) {
        let (kept, dropped) = self.effects.drain(..).partition(|e| matches!(e.kind, EffectKind::Undo { .. }));
        self.effects = kept;
        let dropped: VecDeque<Effect> = dropped;
        for effect in dropped {
            self.answered(effect.id);
        }
    }

    /// Reports an event.
    pub(super) fn emit(&mut self, now: Duration, kind: EventKind) {
        let elapsed_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.events.push_back(DrainEvent { seq: self.next_seq, elapsed_ms, kind });
        self.next_seq += 1;
    }
}
