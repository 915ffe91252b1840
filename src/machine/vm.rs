//! One VM: decide on fresh facts, evict or restart, follow it until it has left the node.
//!
//! A VM is never evicted or restarted twice in a run, and never evicted while its evacuation mark stands: KubeVirt
//! retries a failed migration by itself, and a second request would only start a second one.

use std::collections::BTreeSet;
use std::time::Duration;

use super::core::{Asker, Core};
use super::node::Place;
use super::pod::Closed;
use super::react::{Patience, Reaction, Refusal, react};
use super::types::{EffectKind, Failure, RequestId};
use crate::answer::EvictionAnswer;
use crate::event::{Activity, EventKind, PodExit, VmProgress};
use crate::facts::{Migratable, VmiFacts};
use crate::outcome::{Cause, VmOutcome};
use crate::plan::{VmAction, VmItem};

/// How long LiveMigratable may be missing after the VMI was handed to virt-handler (design §4).
const CONDITION_BOUND: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Decides what to do; not before `after`.
    Deciding { after: Duration },
    /// Reads the VMI right before it acts on it.
    Reading(RequestId),
    /// Waits for a free place among the restarts.
    Queued,
    /// The eviction is on its way.
    Evicting(RequestId),
    /// Marked: KubeVirt migrates it, or its owner acts.
    Following { since: Duration, mark_seen: bool },
    /// The eviction was accepted: the guest shuts down.
    ShuttingDown { since: Duration },
    /// The restart is on its way.
    RestartPosting(RequestId),
    /// The restart was accepted.
    Restarting { since: Duration },
    /// Shut down; waits until it runs again elsewhere.
    Returning { since: Duration },
    /// Waits for the condition or for a migration to this node.
    Waiting { until: Option<Duration> },
    /// Over.
    Closed(Closed),
}

/// A VM in execution.
#[derive(Debug)]
pub(super) struct VmRun {
    pub(super) item: VmItem,
    pub(super) state: State,
    pub(super) asked: bool,
    pub(super) patience: Patience,
    pub(super) progress: Option<VmProgress>,
    pub(super) progress_since: Duration,
    pub(super) unschedulable: Option<(String, Duration)>,
    pub(super) restart_refusals: u32,
    pub(super) wake_at: Option<Duration>,
    /// Migrations that had failed before this run looked: they do not count against it.
    pub(super) failed_before: Option<BTreeSet<String>>,
}

impl VmRun {
    pub(super) fn new(item: VmItem) -> Self {
        let state = match item.action {
            VmAction::Leave => State::Closed(Closed::Blocked),
            VmAction::Migrate
            | VmAction::ShutDown
            | VmAction::Restart
            | VmAction::AwaitOwner
            | VmAction::AwaitCondition
            | VmAction::AwaitMigration => State::Deciding { after: Duration::ZERO },
        };
        Self {
            item,
            state,
            asked: false,
            patience: Patience::default(),
            progress: None,
            progress_since: Duration::ZERO,
            unschedulable: None,
            restart_refusals: 0,
            wake_at: None,
            failed_before: None,
        }
    }

    pub(super) fn closed(&self) -> Option<Closed> {
        if let State::Closed(closed) = self.state { Some(closed) } else { None }
    }

    pub(super) fn in_motion(&self) -> bool {
        matches!(
            self.state,
            State::Evicting(_)
                | State::Following { .. }
                | State::ShuttingDown { .. }
                | State::RestartPosting(_)
                | State::Restarting { .. }
                | State::Returning { .. }
        )
    }

    pub(super) fn wake(&self) -> Option<Duration> {
        let own = if let State::Deciding { after } | State::Waiting { until: Some(after) } = self.state {
            Some(after)
        } else {
            None
        };
        own.into_iter().chain(self.wake_at).min()
    }

    /// Looks at the facts and goes on.
    pub(super) fn step(&mut self, core: &mut Core, place: &Place, now: Duration) {
        self.wake_at = None;
        match self.state.clone() {
            State::Closed(Closed::Blocked) => self.blocked_step(core, place, now),
            State::Closed(_) | State::Reading(_) | State::Evicting(_) | State::RestartPosting(_) => {}
            State::Deciding { after } if after > now => {}
            State::Deciding { .. } | State::Queued => self.decide(core, place, now),
            State::Waiting { until } => self.wait_step(until, core, place, now),
            State::Following { since, mark_seen } => self.follow(since, mark_seen, core, place, now),
            State::ShuttingDown { since } => self.shutting_down(since, core, place, now),
            State::Restarting { since } => self.restarting(since, core, place, now),
            State::Returning { since } => self.returning(since, core, place, now),
        }
    }

    /// The VMI that the plan means, if it is still the one.
    pub(super) fn vmi<'a>(&self, core: &'a Core) -> Option<&'a VmiFacts> {
        core.index.vmi(&self.item.vmi).filter(|v| v.uid == self.item.vmi_uid)
    }

    /// True when nothing of the VM runs on the node: the launcher is gone or finished, and so are its companions.
    pub(super) fn has_left(&self, core: &Core, place: &Place) -> bool {
        let here = |uid: &str| {
            core.index.pod(uid).is_some_and(|p| p.node.as_deref() == Some(&place.node) && !p.phase.is_finished())
        };
        !here(&self.item.launcher.uid) && !core.index.companions_of(&self.item.launcher).any(|c| here(&c.key.uid))
    }

    fn decide(&mut self, core: &mut Core, place: &Place, now: Duration) {
        if self.has_left(core, place) {
            return self.left_without_us(core, place, now);
        }
        match self.item.action {
            VmAction::Leave => {
                let row = &self.item.row;
                let (cause, because) = (row.cause.unwrap_or(Cause::VmNotMigratable), row.because.clone());
                self.block(core, place, cause, because, now);
            }
            VmAction::AwaitCondition | VmAction::AwaitMigration => {
                self.state = State::Waiting { until: None };
                self.wait_step(None, core, place, now);
            }
            VmAction::Migrate | VmAction::AwaitOwner => {
                // A mark of an earlier run counts: it is followed, not asked for again.
                if self.vmi(core).is_some_and(|v| v.marked.as_deref() == Some(&place.node)) {
                    self.state = State::Following { since: now, mark_seen: true };
                    self.follow(now, true, core, place, now);
                } else {
                    self.read(core, place, now);
                }
            }
            VmAction::ShutDown | VmAction::Restart => {
                if place.deadline.saturating_sub(now) < self.item.grace {
                    return self.too_late(core, place, now);
                }
                if self.item.action == VmAction::Restart && !self.may_restart(core, place, now) {
                    return;
                }
                self.read(core, place, now);
            }
        }
    }

    fn read(&mut self, core: &mut Core, place: &Place, now: Duration) {
        if !core.has_slot(now) {
            return;
        }
        let kind = EffectKind::ReadVmi { vmi: self.item.vmi.clone() };
        self.state = State::Reading(core.send(place.number, Asker::Vm(self.item.vmi.clone()), kind));
    }

    /// The VMI was read right before the action on it.
    pub(super) fn vmi_read(&mut self, reply: Result<VmiFacts, Failure>, core: &mut Core, place: &Place, now: Duration) {
        if !matches!(self.state, State::Reading(_)) {
            return;
        }
        let vmi = match reply {
            Ok(vmi) => vmi,
            Err(Failure::NotFound) => {
                core.brake.release(&self.item.vmi);
                if self.has_left(core, place) {
                    return self.left_without_us(core, place, now);
                }
                let because = "its VMI does not exist any more, but its launcher pod still runs".to_owned();
                return self.retry_or_block(
                    &Refusal {
                        cause: Cause::OrphanLauncher,
                        because,
                        after: None,
                        bound: Some(Duration::from_secs(60)),
                    },
                    core,
                    place,
                    now,
                );
            }
            Err(failure) => {
                core.brake.release(&self.item.vmi);
                let because = format!("its VMI could not be read: {}", failure.text());
                let refusal = Refusal { cause: Cause::ServerTrouble, because, after: None, bound: None };
                return self.retry_or_block(&refusal, core, place, now);
            }
        };
        if vmi.uid != self.item.vmi_uid || vmi.node.as_deref() != Some(&place.node) {
            // Somebody else restarted or moved it meanwhile: the watch will show the rest.
            core.brake.release(&self.item.vmi);
            core.index.apply(crate::facts::Change::Vmi(crate::facts::Delta::Apply(vmi)));
            self.state = State::Following { since: now, mark_seen: true };
            return self.follow(now, true, core, place, now);
        }
        core.index.apply(crate::facts::Change::Vmi(crate::facts::Delta::Apply(vmi)));
        let Some(fresh) = core.decider.vm(&core.index, &place.node, &self.item.vmi, core.wall(now)) else {
            core.brake.release(&self.item.vmi);
            return self.left_without_us(core, place, now);
        };
        if fresh.action != self.item.action {
            core.brake.release(&self.item.vmi);
            return self.changed_its_mind(fresh, core, place, now);
        }
        self.item.row = merged(fresh.row, &self.item.row);
        match self.item.action {
            VmAction::Restart => self.post_restart(core, place, now),
            VmAction::Migrate | VmAction::AwaitOwner | VmAction::ShutDown => self.post_eviction(core, place, now),
            VmAction::AwaitCondition | VmAction::AwaitMigration | VmAction::Leave => {
                self.state = State::Deciding { after: now };
            }
        }
    }

    /// The facts say something else than the plan did.
    fn changed_its_mind(&mut self, fresh: VmItem, core: &mut Core, place: &Place, now: Duration) {
        let was_to_migrate = self.item.action == VmAction::Migrate;
        let fell = matches!(self.vmi(core).map(|v| &v.migratable), Some(Migratable::No { .. }));
        if was_to_migrate && fell {
            let why = match self.vmi(core).map(|v| v.migratable.clone()) {
                Some(Migratable::No { reason, message }) => {
                    if message.is_empty() {
                        reason
                    } else {
                        message
                    }
                }
                _ => String::new(),
            };
            return self.block(core, place, Cause::BecameNonMigratable, format!("became non-migratable: {why}"), now);
        }
        let row = merged(fresh.row.clone(), &self.item.row);
        self.item = VmItem { row, ..fresh };
        self.state = State::Deciding { after: now };
        self.decide(core, place, now);
    }

    fn post_eviction(&mut self, core: &mut Core, place: &Place, now: Duration) {
        // Budgets count only for launchers that the eviction shuts down.
        if self.item.action == VmAction::ShutDown
            && let Some(pod) = core.index.pod(&self.item.launcher.uid).cloned()
        {
            if let super::budget::Gate::Shut(budget) = core.gate.check(&core.index, &pod) {
                let because = format!("budget {budget} has no disruption left; its next change wakes it");
                self.item.row.cause = Some(Cause::BudgetExhausted);
                self.item.row.because.clone_from(&because);
                self.show(core, place, Activity::Retrying, None, Some(because), now);
                self.state = State::Deciding { after: now + super::retry::delay(3, &self.item.vmi_uid) };
                return;
            }
            core.gate.charge(&core.index, &pod);
        }
        if !self.asked {
            self.asked = true;
            let (node, pod) = (place.node.clone(), self.item.launcher.clone());
            core.emit(now, EventKind::PodEvicting { node, pod, launcher: true });
        }
        let kind = EffectKind::Evict { pod: self.item.launcher.clone(), grace: None };
        self.state = State::Evicting(core.send(place.number, Asker::Vm(self.item.vmi.clone()), kind));
    }

    pub(super) fn answer(
        &mut self,
        answer: &EvictionAnswer,
        core: &mut Core,
        place: &Place,
        now: Duration,
    ) -> Option<Failure> {
        if !matches!(self.state, State::Evicting(_)) {
            return None;
        }
        let reaction = react(answer);
        core.gate.answered(&core.index, &self.item.launcher.uid, reaction == Reaction::Accepted);
        match reaction {
            Reaction::Accepted => {
                let (node, pod) = (place.node.clone(), self.item.launcher.clone());
                let grace_seconds = i64::try_from(self.item.grace.as_secs()).unwrap_or(i64::MAX);
                core.emit(now, EventKind::PodStopping { node, pod, launcher: true, grace_seconds });
                self.item.row.attempts += 1;
                self.state = State::ShuttingDown { since: now };
                self.shutting_down(now, core, place, now);
            }
            Reaction::Gone => {
                self.state = State::ShuttingDown { since: now };
                self.shutting_down(now, core, place, now);
            }
            Reaction::Evacuating => {
                self.state = State::Following { since: now, mark_seen: false };
                self.follow(now, false, core, place, now);
            }
            Reaction::NotMigratable => {
                // Its condition changed, or is missing: what the watch or the next read says decides.
                let refusal = Refusal {
                    cause: Cause::VmNotMigratable,
                    because: answer.describe(),
                    after: None,
                    bound: Some(Duration::from_secs(5)),
                };
                self.retry_or_block(&refusal, core, place, now);
            }
            Reaction::MigrationTarget | Reaction::LookAgain => {
                self.state = State::Waiting { until: Some(now + super::retry::delay(2, &self.item.vmi_uid)) };
                self.show(core, place, Activity::WaitingForMigration, None, None, now);
            }
            Reaction::Wait(refusal) => self.retry_or_block(&refusal, core, place, now),
            Reaction::Block(cause, because) => self.block(core, place, cause, because, now),
            Reaction::Unauthorized => return Some(Failure::Unauthorized),
        }
        None
    }

    pub(super) fn retry_or_block(&mut self, refusal: &Refusal, core: &mut Core, place: &Place, now: Duration) {
        if self.patience.refused(refusal, now) {
            return self.block(core, place, refusal.cause, refusal.because.clone(), now);
        }
        let next = self.patience.next_try(refusal, &self.item.vmi_uid, now);
        if refusal.cause == Cause::Throttled {
            core.hold_posts_until = Some(core.hold_posts_until.map_or(next, |t| t.max(next)));
        }
        self.item.row.cause = Some(refusal.cause);
        self.item.row.because.clone_from(&refusal.because);
        self.show(core, place, Activity::Retrying, None, Some(refusal.because.clone()), now);
        self.state = State::Deciding { after: next };
    }

    /// Waits for the condition, or for the end of a migration to this node; then the forecast decides.
    fn wait_step(&mut self, until: Option<Duration>, core: &mut Core, place: &Place, now: Duration) {
        if self.has_left(core, place) {
            return self.left_without_us(core, place, now);
        }
        if until.is_some_and(|t| t > now) {
            return;
        }
        let Some(fresh) = core.decider.vm(&core.index, &place.node, &self.item.vmi, core.wall(now)) else {
            self.state = State::Waiting { until: Some(now + Duration::from_secs(2)) };
            return;
        };
        if fresh.action != self.item.action
            || !matches!(fresh.action, VmAction::AwaitCondition | VmAction::AwaitMigration)
        {
            return self.changed_its_mind(fresh, core, place, now);
        }
        let activity = if self.item.action == VmAction::AwaitCondition {
            let scheduled = self.vmi(core).and_then(|v| v.scheduled_at);
            let waited = scheduled
                .map_or(Duration::ZERO, |at| Duration::try_from(core.wall(now).duration_since(at)).unwrap_or_default());
            if waited >= CONDITION_BOUND {
                let because = "virt-handler has not said for 2 minutes whether it can migrate".to_owned();
                return self.block(core, place, Cause::ConditionMissing, because, now);
            }
            if scheduled.is_some() {
                self.wake_at = Some(now + CONDITION_BOUND.saturating_sub(waited));
            }
            Activity::WaitingForCondition
        } else {
            Activity::WaitingForMigration
        };
        self.state = State::Waiting { until: None };
        self.show(core, place, activity, None, None, now);
    }

    /// Blocked, and the facts changed: a human may have acted.
    fn blocked_step(&mut self, core: &mut Core, place: &Place, now: Duration) {
        if self.has_left(core, place) {
            return self.left_without_us(core, place, now);
        }
        if self.asked || self.item.row.attempts > 0 {
            return; // Acted on already: it is not tried a second time.
        }
        if let Some(fresh) = core.decider.vm(&core.index, &place.node, &self.item.vmi, core.wall(now))
            && !matches!(fresh.action, VmAction::Leave)
            && fresh.action != self.item.action
        {
            let row = merged(fresh.row.clone(), &self.item.row);
            self.item = VmItem { row, ..fresh };
            self.state = State::Deciding { after: now };
        }
    }

    fn too_late(&mut self, core: &mut Core, place: &Place, now: Duration) {
        let row = &mut self.item.row;
        row.outcome = VmOutcome::Pending;
        row.cause = Some(Cause::GraceTooLong);
        row.waiting_helps = Some(false);
        row.because = format!(
            "its guest may take {}s to stop, longer than the time left; nothing was sent",
            self.item.grace.as_secs()
        );
        row.remedy = Some(format!("run again with --timeout above {}s", self.item.grace.as_secs()));
        self.close(Closed::Pending, core, place, now);
    }

    /// It left the node without our doing, or somebody deleted it.
    fn left_without_us(&mut self, core: &mut Core, place: &Place, now: Duration) {
        let (other, elsewhere) = match core.index.vmi(&self.item.vmi) {
            Some(v) if v.uid == self.item.vmi_uid => (None, v.node.clone().filter(|n| *n != place.node)),
            Some(v) => (Some(v.uid.clone()), v.node.clone().filter(|n| *n != place.node)),
            None => (None, None),
        };
        let row = &mut self.item.row;
        row.cause = None;
        row.waiting_helps = None;
        row.remedy = None;
        row.needs.clear();
        row.node_after.clone_from(&elsewhere);
        (row.outcome, row.because) = match (&other, &elsewhere) {
            (None, Some(node)) => (VmOutcome::Migrates, format!("migrated to {node}")),
            (Some(_), Some(node)) => (VmOutcome::Returns, format!("restarted by somebody else; runs on {node}")),
            _ => (VmOutcome::Gone, "gone from the node without us".to_owned()),
        };
        row.new_vmi_uid = other;
        self.close(Closed::Left, core, place, now);
    }

    pub(super) fn block(&mut self, core: &mut Core, place: &Place, cause: Cause, because: String, now: Duration) {
        let row = &mut self.item.row;
        row.outcome = VmOutcome::Blocks;
        row.cause = Some(cause);
        row.waiting_helps = Some(false);
        row.because = because;
        self.close(Closed::Blocked, core, place, now);
    }

    pub(super) fn close(&mut self, how: Closed, core: &mut Core, place: &Place, now: Duration) {
        core.brake.release(&self.item.vmi);
        self.item.row.marked = self.vmi(core).is_some_and(|v| v.marked.as_deref() == Some(&place.node));
        if how == Closed::Left && self.asked {
            let (node, pod) = (place.node.clone(), self.item.launcher.clone());
            core.emit(now, EventKind::PodGone { node, pod, launcher: true, how: PodExit::Evicted });
        }
        self.state = State::Closed(how);
        self.progress = None;
        core.emit(now, EventKind::VmEnded { node: place.node.clone(), row: Box::new(self.item.row.clone()) });
    }

    /// Reports what the VM does, if that has changed.
    pub(super) fn show(
        &mut self,
        core: &mut Core,
        place: &Place,
        activity: Activity,
        target: Option<(String, Option<u32>)>,
        detail: Option<String>,
        now: Duration,
    ) {
        let (target, queue) = target.map_or((None, None), |(t, q)| (Some(t).filter(|t| !t.is_empty()), q));
        let attempt = self.item.row.attempts;
        let same_activity = self.progress.as_ref().is_some_and(|p| p.activity == activity && p.attempt == attempt);
        if !same_activity {
            self.progress_since = now;
        }
        let since_ms = u64::try_from(self.progress_since.as_millis()).unwrap_or(u64::MAX);
        let progress = VmProgress { activity, since_ms, attempt, target, queue, detail };
        if self.progress.as_ref() != Some(&progress) {
            self.progress = Some(progress.clone());
            let (node, vm) = (place.node.clone(), self.item.vmi.clone());
            core.emit(now, EventKind::VmProgressed { node, vm, progress });
        }
    }

    /// The deadline or a signal came first: the row says what it was doing.
    pub(super) fn cut(&mut self, cause: Cause, core: &Core, place: &Place) {
        if self.closed().is_some() {
            return;
        }
        let marked = self.vmi(core).is_some_and(|v| v.marked.as_deref() == Some(&place.node));
        let in_motion = self.in_motion();
        let row = &mut self.item.row;
        row.marked = marked;
        row.outcome = VmOutcome::Pending;
        row.cause = match self.state {
            State::Following { .. } => row.cause.or(Some(Cause::VmEvacuating)),
            State::ShuttingDown { .. } | State::Restarting { .. } | State::Returning { .. } => Some(Cause::Stopping),
            State::Deciding { .. }
            | State::Reading(_)
            | State::Queued
            | State::Evicting(_)
            | State::RestartPosting(_)
            | State::Waiting { .. }
            | State::Closed(_) => Some(cause),
        };
        if let Some(progress) = &self.progress {
            row.because = super::follow::in_words(progress);
        } else if row.attempts == 0 && !self.asked {
            row.because = "its turn did not come; nothing was sent".to_owned();
        }
        row.waiting_helps = Some(in_motion);
        self.state = State::Closed(Closed::Pending);
    }
}

/// A fresh forecast's row with what the run has learned.
fn merged(fresh: crate::outcome::VmRow, old: &crate::outcome::VmRow) -> crate::outcome::VmRow {
    crate::outcome::VmRow {
        attempts: old.attempts,
        new_vmi_uid: old.new_vmi_uid.clone(),
        node_before: old.node_before.clone(),
        node_after: old.node_after.clone(),
        ..fresh
    }
}
