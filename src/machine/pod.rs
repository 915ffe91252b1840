//! One pod that is no VM: from its first eviction until it is gone.

mod ends;

use std::time::Duration;

use super::budget::{Gate, can_never, first_budget};
use super::core::{Asker, Core};
use super::node::Place;
use super::react::{Patience, Reaction, because, blocked_retry, react};
use super::types::{EffectKind, Failure, RequestId};
use crate::answer::EvictionAnswer;
use crate::event::EventKind;
use crate::facts::{Key, PodFacts, PodRole};
use crate::outcome::{Cause, PodOutcome};
use crate::plan::{PodAction, PodItem, Wave};

/// How long a pod waits for its budget's next event before it asks the server all the same.
const BUDGET_FALLBACK: Duration = Duration::from_secs(30);
/// How long an answer is waited for after the pod has gone. Of a pod that changes under it, the API server tries an
/// eviction again after 0.5 s before it answers (seen on 1.36).
const LATE_ANSWER: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Wants to be evicted; not before `after`.
    Ready { after: Duration },
    /// Waits for an event of that budget, at most until then.
    Budget { budget: Key, until: Duration },
    /// A request is on its way.
    Posting(RequestId),
    /// Its eviction was refused since another pod has its name: it is read.
    Reading(RequestId),
    /// It is stopping.
    Stopping,
    /// Over.
    Closed(Closed),
}

/// How it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// Gone, or not waited for any more.
    Left,
    /// Not ours to move.
    Kept,
    /// Only a human can help.
    Blocked,
    /// Time runs out before it could go.
    Pending,
}

/// A pod in execution.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct PodRun {
    pub(super) item: PodItem,
    state: State,
    asked: bool,
    ours: bool,
    /// True once a request's fate is unknown: the pod may have been stopped by it.
    maybe_ours: bool,
    /// When it was seen gone while an answer was outstanding.
    vanished_at: Option<Duration>,
    patience: Patience,
    /// What was said last, and whether it named the pod that its budget waits for.
    said: Option<(Cause, bool)>,
    /// When it is tried again although it blocks.
    retry_at: Option<Duration>,
    /// When a stopping pod is looked at without an event.
    look_at: Option<Duration>,
    /// True for a pod that came after the cordon.
    pub(super) late: bool,
    /// True while its budget waits for a pod that no node takes, and its remedy says so.
    behind: bool,
    /// The pod that took its place here.
    successor: Option<Successor>,
}

/// The pod that took the place of one that left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Successor {
    pub(super) name: String,
    pub(super) tolerates_cordon: bool,
}

impl PodRun {
    pub(super) fn new(item: PodItem) -> Self {
        let state = match item.action {
            PodAction::Evict | PodAction::Delete => State::Ready { after: Duration::ZERO },
            PodAction::AwaitGone => State::Stopping,
            PodAction::Leave if item.row.outcome == PodOutcome::Blocks => State::Closed(Closed::Blocked),
            PodAction::Refuse => State::Closed(Closed::Blocked),
            PodAction::Leave => State::Closed(Closed::Kept),
        };
        let mut run = Self {
            item,
            state,
            asked: false,
            ours: false,
            maybe_ours: false,
            vanished_at: None,
            patience: Patience::default(),
            said: None,
            retry_at: None,
            look_at: None,
            late: false,
            behind: false,
            successor: None,
        };
        if run.item.action == PodAction::Refuse {
            // It turned up after the cordon: nobody agreed to its end, so it stays and blocks.
            run.item.row.outcome = PodOutcome::Blocks;
            run.item.row.waiting_helps = Some(false);
        }
        run
    }

    pub(super) fn closed(&self) -> Option<Closed> {
        match self.state {
            State::Closed(closed) => Some(closed),
            State::Ready { .. } | State::Budget { .. } | State::Posting(_) | State::Reading(_) | State::Stopping => {
                None
            }
        }
    }

    /// True while an answer is outstanding or an eviction was accepted: it goes on by itself.
    pub(super) fn in_motion(&self) -> bool {
        matches!(self.state, State::Posting(_) | State::Reading(_) | State::Stopping)
    }

    /// True while the answer to that request is what it waits for.
    pub(super) fn awaits(&self, id: RequestId) -> bool {
        matches!(self.state, State::Posting(own) | State::Reading(own) if own == id)
    }

    pub(super) fn waits_on(&self, budget: &Key) -> bool {
        matches!(&self.state, State::Budget { budget: b, .. } if b == budget)
    }

    /// True if a budget holds it for good, as far as is known: any change of budgets in its namespace may change that.
    pub(super) fn blocked_by_budgets(&self, budget: &Key) -> bool {
        self.closed() == Some(Closed::Blocked)
            && budget.namespace == self.item.pod.namespace
            && self.item.row.cause.is_some_and(Cause::is_about_budgets)
    }

    /// True once it leaves because of us: whoever takes its place is its successor.
    pub(super) fn evicted_by_us(&self) -> bool {
        self.ours && matches!(self.state, State::Stopping | State::Closed(Closed::Left))
    }

    pub(super) fn has_successor(&self) -> bool {
        self.successor.is_some() || self.item.row.outcome == PodOutcome::Returned
    }

    pub(super) fn wake(&self) -> Option<Duration> {
        match self.state {
            State::Ready { after } => Some(after),
            State::Budget { until, .. } => Some(until),
            State::Stopping => self.look_at,
            State::Closed(Closed::Blocked) => self.retry_at,
            State::Posting(_) => self.vanished_at.map(|t| t + LATE_ANSWER),
            State::Reading(_) | State::Closed(_) => None,
        }
    }

    /// Looks at the facts and goes on. `turn` is the wave that may send.
    pub(super) fn step(&mut self, core: &mut Core, place: &Place, turn: Wave, now: Duration) {
        let pod = core.index.pod(&self.item.pod.uid).filter(|p| p.node.as_deref() == Some(&place.node));
        let Some(pod) = pod else {
            // The answer on its way tells who did it. It comes first, unless somebody else was quicker, or it is lost.
            let answer = matches!(self.state, State::Posting(_))
                .then(|| *self.vanished_at.get_or_insert(now) + LATE_ANSWER)
                .filter(|until| *until > now);
            if answer.is_none() && !matches!(self.state, State::Closed(Closed::Left)) {
                self.left(core, place, now);
            }
            return;
        };
        self.vanished_at = None;
        let idle = matches!(self.state, State::Ready { .. } | State::Budget { .. } | State::Closed(Closed::Blocked));
        if idle && pod.deletion.is_some() {
            // Somebody else stops it: nothing is left to ask for.
            self.state = State::Stopping;
        }
        if self.closed() == Some(Closed::Blocked) && self.retry_at.is_some_and(|t| t <= now) {
            self.state = State::Ready { after: now };
        }
        match &self.state {
            State::Ready { after } if *after <= now && self.item.wave <= turn && core.has_slot(now) => {
                self.post(&pod.clone(), core, place, now);
            }
            State::Budget { until, .. } if *until <= now && core.has_slot(now) => {
                let pod = pod.clone();
                core.look_for_pending(place.number, &self.item.pod.namespace, now);
                self.post_despite_budget(&pod, core, place, now);
            }
            State::Stopping => self.stopping(&pod.clone(), core, place, now),
            State::Ready { .. } | State::Budget { .. } | State::Posting(_) | State::Reading(_) | State::Closed(_) => {}
        }
    }

    /// Its budget changed: whoever waits on it looks again.
    pub(super) fn budget_changed(&mut self, core: &Core, now: Duration) {
        if self.closed() == Some(Closed::Blocked) {
            // A human changed the budget: what could never go may go now.
            if let Some(item) = core.decider.pod(&core.index, &self.item, core.wall(now))
                && !matches!(item.action, PodAction::Leave | PodAction::Refuse)
            {
                self.item = item;
                self.state = State::Ready { after: now };
            }
        } else {
            self.state = State::Ready { after: now };
        }
    }

    fn post(&mut self, pod: &PodFacts, core: &mut Core, place: &Place, now: Duration) {
        // A deletion asks no budget; an eviction never exceeds what the last status allows.
        let given_up = core.index.budgets_of(pod).find_map(|b| core.gate.given_up(&b.key).map(|why| (b, why)));
        if self.item.action == PodAction::Evict
            && let Some((budget, (cause, because))) = given_up
        {
            self.item.row.budgets = vec![budget.key.to_string()];
            return self.block(core, place, cause, because, now);
        }
        if self.item.action == PodAction::Evict
            && let Gate::Shut(budget) = core.gate.check(&core.index, pod)
        {
            if let Some((cause, because, remedy)) = can_never(&core.index, pod, &budget) {
                self.item.row.budgets = vec![budget.to_string()];
                self.item.row.remedy = Some(remedy);
                return self.block(core, place, cause, because, now);
            }
            let because = format!("budget {budget} has no disruption left; its next change wakes it");
            self.say(core, place, Cause::BudgetExhausted, because, now);
            self.state = State::Budget { budget, until: now + BUDGET_FALLBACK };
            return;
        }
        self.send(pod, core, place);
    }

    fn post_despite_budget(&mut self, pod: &PodFacts, core: &mut Core, place: &Place, now: Duration) {
        if core.gate.may_probe(&core.index, pod) {
            self.send(pod, core, place);
        } else if let State::Budget { until, .. } = &mut self.state {
            *until = now + BUDGET_FALLBACK;
        }
    }

    fn send(&mut self, pod: &PodFacts, core: &mut Core, place: &Place) {
        let grace = core.options.grace_period.filter(|_| pod.role == PodRole::Plain);
        let kind = if self.item.action == PodAction::Delete {
            EffectKind::Delete { pod: self.item.pod.clone(), grace }
        } else {
            core.gate.charge(&core.index, pod);
            EffectKind::Evict { pod: self.item.pod.clone(), grace }
        };
        let id = core.send(place.number, Asker::Pod(self.item.pod.uid.clone()), kind);
        if !std::mem::replace(&mut self.asked, true) {
            let (node, pod) = (place.node.clone(), self.item.pod.clone());
            core.announce(id, EventKind::PodEvicting { node, pod, launcher: false });
        }
        self.state = State::Posting(id);
    }

    pub(super) fn answer(
        &mut self,
        id: RequestId,
        answer: &EvictionAnswer,
        core: &mut Core,
        place: &Place,
        now: Duration,
    ) -> Option<Failure> {
        let reaction = react(answer);
        let by_budget = answer.cause().is_some_and(Cause::is_about_budgets);
        let accepted = reaction == Reaction::Accepted;
        let outdated = core.gate.answered(&core.index, &self.item.pod.uid, accepted, by_budget);
        if !self.awaits(id) {
            return None;
        }
        if self.vanished_at.is_some() {
            self.ours = accepted;
            self.maybe_ours |= answer.cause() == Some(Cause::ServerTrouble);
            self.state = State::Stopping;
            self.left(core, place, now);
            return None;
        }
        match reaction {
            Reaction::Accepted => {
                self.ours = true;
                self.state = State::Stopping;
                let grace_seconds = i64::try_from(self.item.grace.as_secs()).unwrap_or(i64::MAX);
                let (node, pod) = (place.node.clone(), self.item.pod.clone());
                core.emit(now, EventKind::PodStopping { node, pod, launcher: false, grace_seconds });
                // The watch may have shown all there is to see before the answer came.
                if let Some(pod) = core.index.pod(&self.item.pod.uid).cloned() {
                    self.stopping(&pod, core, place, now);
                }
            }
            Reaction::Gone => {
                self.state = State::Stopping;
                self.left(core, place, now);
            }
            Reaction::LookAgain => {
                let kind = EffectKind::ReadPod { pod: self.item.pod.clone() };
                self.state = State::Reading(core.send(place.number, Asker::Pod(self.item.pod.uid.clone()), kind));
            }
            Reaction::Evacuating | Reaction::NotMigratable | Reaction::MigrationTarget => {
                self.block(core, place, Cause::WebhookRefused, answer.describe(), now);
            }
            Reaction::Wait(refusal) => {
                if self.patience.refused(&refusal, now) {
                    if refusal.cause.is_about_budgets()
                        && let Some(budget) = first_budget(&core.index, &self.item.pod.uid)
                    {
                        core.gate.give_up(budget, refusal.cause, refusal.because.clone());
                    }
                    self.block(core, place, refusal.cause, refusal.because, now);
                    return None;
                }
                let next = core.next_try(&self.patience, &refusal, &self.item.pod.uid, now);
                self.say(core, place, refusal.cause, refusal.because, now);
                self.maybe_ours |= refusal.cause == Cause::ServerTrouble;
                let waits_for_event =
                    matches!(refusal.cause, Cause::BudgetExhausted | Cause::BudgetUnsynced | Cause::BudgetBroken);
                let budget = first_budget(&core.index, &self.item.pod.uid);
                self.state = match budget {
                    // An event that came while the request was under way will not come again.
                    Some(budget) if waits_for_event && !outdated => {
                        State::Budget { budget, until: self.patience.fallback(refusal.bound, now, BUDGET_FALLBACK) }
                    }
                    _ => State::Ready { after: next },
                };
            }
            Reaction::Block(cause, text) => {
                let because = because(cause, text, core.index.pod(&self.item.pod.uid), &core.index);
                self.block(core, place, cause, because, now);
            }
            Reaction::Unauthorized => return Some(Failure::Unauthorized),
        }
        None
    }

    /// The pod was read after an answer that put its identity in doubt.
    pub(super) fn read(&mut self, reply: &Result<PodFacts, Failure>, core: &mut Core, place: &Place, now: Duration) {
        let replaced = match reply {
            Ok(pod) => pod.key.uid != self.item.pod.uid || pod.node.as_deref() != Some(&place.node),
            Err(failure) => *failure == Failure::NotFound,
        };
        if replaced {
            self.state = State::Stopping;
            self.left(core, place, now);
        } else {
            self.state = State::Ready { after: now + super::retry::delay(1, &self.item.pod.uid) };
        }
    }

    fn stopping(&mut self, pod: &PodFacts, core: &mut Core, place: &Place, now: Duration) {
        self.look_at = None;
        let Some(deletion) = pod.deletion else {
            return; // Accepted, and the watch has not shown it yet.
        };
        let overdue = core.wall(now).duration_since(deletion.at);
        let plain = pod.role == PodRole::Plain;
        let limit = core.options.skip_wait_for_delete.filter(|limit| plain && !limit.is_zero());
        let limit = limit.map(|limit| jiff::SignedDuration::try_from(limit).unwrap_or(jiff::SignedDuration::MAX));
        let old = limit.is_some_and(|limit| overdue > limit);
        if !pod.finalizers.is_empty() && !pod.containers_running && !overdue.is_negative() {
            let because = format!("no container runs; its object is kept by finalizer {}", pod.finalizers.join(", "));
            self.skip(core, place, Cause::Finalizer, because, now);
        } else if old {
            let because = "its deletion is older than --skip-wait-for-delete-timeout".to_owned();
            self.skip(core, place, Cause::Stopping, because, now);
        } else {
            // Time alone may end the wait: no event tells when.
            let idle = !pod.finalizers.is_empty() && !pod.containers_running;
            let grace_ends = idle.then_some(-overdue);
            let grows_old = limit.map(|limit| limit.saturating_sub(overdue));
            let wait = grace_ends.into_iter().chain(grows_old).min();
            let wait = wait.map(|w| Duration::try_from(w).unwrap_or_default() + Duration::from_millis(1));
            self.look_at = wait.map(|wait| now.saturating_add(wait));
        }
    }

    fn block(&mut self, core: &mut Core, place: &Place, cause: Cause, because: String, now: Duration) {
        let before = self.item.row.clone();
        self.item.row.outcome = PodOutcome::Blocks;
        self.item.row.cause = Some(cause);
        self.item.row.waiting_helps = Some(false);
        self.item.row.because = because;
        self.state = State::Closed(Closed::Blocked);
        self.retry_at = blocked_retry(cause, core, now).filter(|_| !self.ours && !self.maybe_ours);
        if before == self.item.row {
            return; // Tried again, and nothing has changed.
        }
        core.emit(now, EventKind::PodBlocked { node: place.node.clone(), row: self.item.row.clone() });
    }

    /// The pods of its namespace that have not started were read: one of them may be what its budget waits for.
    pub(super) fn pending_seen(&mut self, core: &mut Core, place: &Place, now: Duration) {
        if !matches!(self.state, State::Budget { .. }) || self.item.row.cause != Some(Cause::BudgetExhausted) {
            return;
        }
        let Some((because, _)) = self.held_by(core, now) else { return };
        if self.item.row.because != because {
            self.say(core, place, Cause::BudgetExhausted, because, now);
        }
    }

    /// The pod that its budget waits for, if the scheduler finds no node for that one; and what to do about it.
    fn held_by(&self, core: &Core, now: Duration) -> Option<(String, String)> {
        let budget = first_budget(&core.index, &self.item.pod.uid)?;
        let (pod, words) = core.stuck_behind(&budget, now)?;
        let because = format!("budget {} waits for pod {pod}, which no node accepts: {words}", budget.name);
        let remedy =
            format!("make room for it: `kubectl describe pod {pod} -n {}`; the budget is right", budget.namespace);
        Some((because, remedy))
    }

    fn say(&mut self, core: &mut Core, place: &Place, cause: Cause, because: String, now: Duration) {
        if self.item.row.outcome == PodOutcome::Blocks {
            self.item.row.outcome = PodOutcome::Evicts;
        }
        let held = Some(cause).filter(|c| *c == Cause::BudgetExhausted).and_then(|_| self.held_by(core, now));
        if std::mem::replace(&mut self.behind, held.is_some()) {
            self.item.row.remedy = None;
        }
        let because = match held {
            Some((because, remedy)) => {
                self.item.row.remedy = Some(remedy);
                because
            }
            None => because,
        };
        self.item.row.cause = Some(cause);
        self.item.row.waiting_helps = Some(true);
        self.item.row.because.clone_from(&because);
        if self.said != Some((cause, self.behind)) {
            self.said = Some((cause, self.behind));
            let (node, pod) = (place.node.clone(), self.item.pod.clone());
            core.emit(now, EventKind::PodWaiting { node, pod, cause, because });
        }
    }
}
