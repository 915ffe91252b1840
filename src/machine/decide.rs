//! Deciding what happens to one VM: on fresh facts, right before each request, and again after each refusal.

use std::time::Duration;

use super::budget::Gate;
use super::core::{Asker, Core};
use super::node::Place;
use super::react::{Reaction, Refusal, because, react};
use super::types::{EffectKind, Failure, RequestId};
use super::vm::{State, VmRun};
use crate::answer::EvictionAnswer;
use crate::event::{Activity, EventKind};
use crate::facts::{Migratable, VmiFacts};
use crate::forecast::vm::in_motion;
use crate::outcome::{Cause, VmOutcome};
use crate::plan::probed::{judged, own_budget};
use crate::plan::{VmAction, VmItem};

/// How long LiveMigratable may be missing after the VMI was handed to virt-handler (design §4).
const CONDITION_BOUND: Duration = Duration::from_secs(120);
/// How long a VM waits for its budget's next event before it asks the server all the same.
const BUDGET_FALLBACK: Duration = Duration::from_secs(30);

impl VmRun {
    pub(super) fn decide(&mut self, core: &mut Core, place: &Place, now: Duration) {
        if self.has_left(core, place) {
            if !core.options.in_place && self.is_another(core, place, now) {
                return self.decide(core, place, now);
            }
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
            VmAction::AwaitGone => {
                self.state = State::ShuttingDown { since: now };
                self.shutting_down(now, core, place, now);
            }
            VmAction::Migrate | VmAction::AwaitOwner => {
                // A mark of an earlier run counts, and so does a migration: it is followed, not asked for again.
                if self.is_under_way(core, place) {
                    self.state = State::Following { since: now, mark_seen: true };
                    self.follow(now, true, core, place, now);
                } else {
                    self.read(core, place, now);
                }
            }
            VmAction::ShutDown | VmAction::Restart => {
                if self.is_too_late(place, now) {
                    return self.too_late(core, place, now);
                }
                if self.item.action == VmAction::Restart && !self.may_restart(core, place, now) {
                    return;
                }
                if self.item.action == VmAction::ShutDown && self.is_held_by_budget(core, place, now) {
                    return;
                }
                self.read(core, place, now);
            }
        }
    }

    /// True if it is marked for this node, or a migration of it has not ended. During a migration no eviction is sent: up to
    /// KubeVirt 1.5 a target of an earlier one that lingers can satisfy the budget, and the guest would be shut down.
    fn is_under_way(&self, core: &Core, place: &Place) -> bool {
        let migrates = self.item.action == VmAction::Migrate;
        self.vmi(core)
            .is_some_and(|v| v.marked.as_deref() == Some(&place.node) || (migrates && in_motion(&core.index, v)))
    }

    /// Another VMI got the name before anything was done: it is planned as what it is.
    fn is_another(&mut self, core: &Core, place: &Place, now: Duration) -> bool {
        if self.has_acted() {
            return false;
        }
        let fresh = core.decider.vm(&core.index, &place.node, &self.item.vmi, core.wall(now));
        let Some(fresh) = fresh.filter(|f| f.vmi_uid != self.item.vmi_uid) else { return false };
        self.meant_to_migrate = fresh.action == VmAction::Migrate;
        self.item = fresh;
        true
    }

    /// Budgets count only for launchers that the eviction shuts down. True if one has nothing left for it.
    fn is_held_by_budget(&mut self, core: &mut Core, place: &Place, now: Duration) -> bool {
        let Some(pod) = core.index.pod(&self.item.launcher.uid) else { return false };
        let Gate::Shut(budget) = core.gate.check(&core.index, pod) else { return false };
        if self.despite_budget {
            return false;
        }
        let because = format!("budget {budget} has no disruption left; its next change wakes it");
        self.item.row.cause = Some(Cause::BudgetExhausted);
        self.item.row.because.clone_from(&because);
        self.show_refused(core, place, because, now + BUDGET_FALLBACK, now);
        self.state = State::Budget { budget, until: now + BUDGET_FALLBACK };
        true
    }

    /// The event of its budget has not come for long: the server itself is asked, by one at a time.
    pub(super) fn budget_step(&mut self, until: Duration, core: &mut Core, place: &Place, now: Duration) {
        if self.has_left(core, place) {
            return self.decide(core, place, now);
        }
        if until > now {
            return;
        }
        let free = core.index.pod(&self.item.launcher.uid).is_none_or(|pod| core.gate.may_probe(&core.index, pod));
        if free {
            self.despite_budget = true;
            self.decide(core, place, now);
        } else if let State::Budget { until, .. } = &mut self.state {
            *until = now + BUDGET_FALLBACK;
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
                if core.options.in_place {
                    // Its pods are not waited for: the server has said all that there is to know.
                    let gone = crate::facts::Delta::Delete(self.item.vmi.clone());
                    core.index.apply(crate::facts::Change::Vmi(gone));
                }
                if self.has_left(core, place) {
                    return self.left_without_us(core, place, now);
                }
                let because = "its VMI does not exist any more, but its launcher pod still runs".to_owned();
                let ends = core.index.pod(&self.item.launcher.uid).is_none_or(|pod| pod.deletion.is_some());
                if !ends && core.index.vmi(&self.item.vmi).is_none() {
                    // The watch says so too, and nobody has asked the launcher to stop: waiting changes nothing.
                    return self.block(core, place, Cause::OrphanLauncher, because, now);
                }
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
            Err(Failure::Forbidden(text)) => {
                let because = format!("its VMI could not be read: {text}");
                return self.block(core, place, Cause::Forbidden, because, now);
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
            if self.has_left(core, place) {
                return self.left_without_us(core, place, now);
            }
            // Its guest has stopped by itself, and its launcher is about to end.
            self.expect_what_follows(core);
            self.state = State::ShuttingDown { since: now };
            return self.shutting_down(now, core, place, now);
        };
        if fresh.action == VmAction::AwaitGone && self.maybe_restarted {
            // The restart whose answer got lost did arrive.
            self.item.row.attempts += 1;
            core.emit(now, EventKind::VmRestarting { node: place.node.clone(), vm: self.item.vmi.clone() });
            return self.restarting(now, core, place, now);
        }
        if fresh.action != self.item.action {
            core.brake.release(&self.item.vmi);
            return self.changed_its_mind(fresh, core, place, now);
        }
        self.item.row = merged(fresh.row, &self.item.row);
        self.item.launcher = fresh.launcher;
        self.item.grace = fresh.grace;
        self.item.companions = fresh.companions;
        if self.is_under_way(core, place) && matches!(self.item.action, VmAction::Migrate | VmAction::AwaitOwner) {
            // The watch is behind: there is nothing to ask for.
            self.state = State::Following { since: now, mark_seen: true };
            return self.follow(now, true, core, place, now);
        }
        match self.item.action {
            VmAction::Restart => self.post_restart(core, place, now),
            VmAction::Migrate | VmAction::AwaitOwner | VmAction::ShutDown => self.post_eviction(core, place, now),
            VmAction::AwaitCondition | VmAction::AwaitMigration | VmAction::AwaitGone | VmAction::Leave => {
                self.state = State::Deciding { after: now };
            }
        }
    }

    /// The facts say something else than the plan did.
    fn changed_its_mind(&mut self, fresh: VmItem, core: &mut Core, place: &Place, now: Duration) {
        if self.has_fallen(core) {
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
        let ours = self.asked || self.has_acted() || self.item.action == VmAction::AwaitGone;
        let row = merged(fresh.row.clone(), &self.item.row);
        self.item = VmItem { row, ..fresh };
        if !ours && self.item.action == VmAction::AwaitGone && self.item.row.outcome == VmOutcome::StaysOff {
            // Nobody here has asked for that, and nobody need start it again.
            let row = &mut self.item.row;
            row.because = "stopped or deleted by somebody else".to_owned();
            (row.outcome, row.cause, row.waiting_helps, row.remedy) = (VmOutcome::Gone, None, None, None);
        }
        self.state = State::Deciding { after: now };
        self.decide(core, place, now);
    }

    /// It was to migrate and cannot any more: it is not shut down instead.
    fn has_fallen(&self, core: &Core) -> bool {
        self.meant_to_migrate && matches!(self.vmi(core).map(|v| &v.migratable), Some(Migratable::No { .. }))
    }

    fn post_eviction(&mut self, core: &mut Core, place: &Place, now: Duration) {
        if !core.has_slot(now) {
            self.state = State::Deciding { after: now };
            return;
        }
        if self.item.action == VmAction::ShutDown {
            if self.is_too_late(place, now) {
                return self.too_late(core, place, now);
            }
            if self.is_held_by_budget(core, place, now) {
                return;
            }
            self.despite_budget = false;
            if let Some(pod) = core.index.pod(&self.item.launcher.uid).cloned() {
                core.gate.charge(&core.index, &pod);
            }
        }
        self.note_siblings(core);
        let kind = EffectKind::Evict { pod: self.item.launcher.clone(), grace: None };
        let id = core.send(place.number, Asker::Vm(self.item.vmi.clone()), kind);
        if !std::mem::replace(&mut self.asked, true) {
            let (node, pod) = (place.node.clone(), self.item.launcher.clone());
            core.announce(id, EventKind::PodEvicting { node, pod, launcher: true });
        }
        self.state = State::Evicting(id);
    }

    pub(super) fn answer(
        &mut self,
        id: RequestId,
        answer: &EvictionAnswer,
        core: &mut Core,
        place: &Place,
        now: Duration,
    ) -> Option<Failure> {
        let answer = &judged(answer, &self.item, &core.index);
        let reaction = react(answer);
        let by_budget = answer.cause().is_some_and(Cause::is_about_budgets);
        let accepted = reaction == Reaction::Accepted;
        let outdated = core.gate.answered(&core.index, &self.item.launcher.uid, accepted, by_budget);
        if !self.awaits(id) {
            return None;
        }
        match reaction {
            Reaction::Accepted => {
                let (node, pod) = (place.node.clone(), self.item.launcher.clone());
                let grace_seconds = i64::try_from(self.item.grace.as_secs()).unwrap_or(i64::MAX);
                core.emit(now, EventKind::PodStopping { node, pod, launcher: true, grace_seconds });
                self.acted = true;
                self.item.row.attempts += 1;
                self.is_shut_down_instead(core, now);
                self.state = State::ShuttingDown { since: now };
                self.shutting_down(now, core, place, now);
            }
            Reaction::Gone => {
                // Not by our doing: what its replica set made instead may have come before.
                self.siblings = self.siblings.take().filter(|_| self.acted);
                self.state = State::ShuttingDown { since: now };
                self.shutting_down(now, core, place, now);
            }
            Reaction::Evacuating => {
                self.acted = true;
                self.state = State::Following { since: now, mark_seen: false };
                self.follow(now, false, core, place, now);
            }
            Reaction::NotMigratable => {
                // Its condition changed, or is missing: what the watch or the next read says decides.
                let (cause, because) = self.why_not_moved(answer, core);
                let refusal = Refusal { cause, because, after: None, bound: Some(Duration::from_secs(5)) };
                if cause == Cause::WebhookUnreachable && !self.patience.was_refused() {
                    // Up to KubeVirt 1.2 this is how a mark is answered: the watch may only be behind. The VMI is read.
                    self.patience.refused(&refusal, now);
                    self.state = State::Deciding { after: now + super::retry::delay(0, &self.item.vmi_uid) };
                    return None;
                }
                self.retry_or_block(&refusal, core, place, now);
            }
            Reaction::MigrationTarget | Reaction::LookAgain => {
                self.state = State::Waiting { until: Some(now + super::retry::delay(2, &self.item.vmi_uid)) };
                self.show(core, place, Activity::WaitingForMigration, None, None, now);
            }
            Reaction::Wait(refusal) => {
                self.retry_or_block(&refusal, core, place, now);
                let pod = core.index.pod(&self.item.launcher.uid);
                let budget = pod.and_then(|pod| core.index.budgets_of(pod).next()).map(|b| b.key.clone());
                if let (State::Deciding { .. }, Some(budget), true, false) = (&self.state, budget, by_budget, outdated)
                {
                    let until = self.patience.fallback(refusal.bound, now, BUDGET_FALLBACK);
                    self.show_refused(core, place, refusal.because, until, now);
                    self.state = State::Budget { budget, until };
                }
            }
            Reaction::Block(cause, text) => {
                let because = because(cause, text, core.index.pod(&self.item.launcher.uid), &core.index);
                self.block(core, place, cause, because, now);
            }
            Reaction::Unauthorized => return Some(Failure::Unauthorized),
        }
        None
    }

    /// Either it cannot migrate, or KubeVirt's own budget refuses and nobody began to migrate it: up to 1.4, evictions pass
    /// by a webhook that does not answer.
    fn why_not_moved(&self, answer: &EvictionAnswer, core: &Core) -> (Cause, String) {
        let can = self.vmi(core).is_some_and(|v| v.migratable == Migratable::Yes);
        match own_budget(&self.item, &core.index).filter(|_| can) {
            Some(budget) => (
                Cause::WebhookUnreachable,
                format!(
                    "KubeVirt's own budget {} refuses its eviction, but nothing began to migrate it: is virt-api up?",
                    budget.key.name
                ),
            ),
            None => (Cause::VmNotMigratable, answer.describe()),
        }
    }

    pub(super) fn retry_or_block(&mut self, refusal: &Refusal, core: &mut Core, place: &Place, now: Duration) {
        if self.patience.refused(refusal, now) {
            return self.block(core, place, refusal.cause, refusal.because.clone(), now);
        }
        self.blocked_as = None;
        let next = core.next_try(&self.patience, refusal, &self.item.vmi_uid, now);
        self.item.row.cause = Some(refusal.cause);
        self.item.row.because.clone_from(&refusal.because);
        self.show_refused(core, place, refusal.because.clone(), next, now);
        self.state = State::Deciding { after: next };
    }

    /// Waits for the condition, or for the end of a migration to this node; then the forecast decides.
    pub(super) fn wait_step(&mut self, until: Option<Duration>, core: &mut Core, place: &Place, now: Duration) {
        if self.has_left(core, place) {
            return self.decide(core, place, now);
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
        let activity = if self.item.launcher.uid.is_empty() {
            let since = *self.bare_since.get_or_insert(now);
            if now >= since + CONDITION_BOUND {
                let because = self.item.row.because.clone();
                return self.block(core, place, Cause::ConditionMissing, because, now);
            }
            self.wake_at = Some(since + CONDITION_BOUND);
            Activity::WaitingForCondition
        } else if self.item.action == VmAction::AwaitCondition {
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
    pub(super) fn blocked_step(&mut self, core: &mut Core, place: &Place, now: Duration) {
        if self.has_left(core, place) && !self.is_still_here(core, place) {
            return self.left_without_us(core, place, now);
        }
        if self.has_acted() || self.has_fallen(core) {
            return; // Acted on already, or not to be shut down: it is not tried in another way.
        }
        if self.retry_at.is_some_and(|t| t <= now) {
            self.retry_at = None;
            self.state = State::Deciding { after: now };
            return self.decide(core, place, now);
        }
        let by_budget = self.item.row.cause.is_some_and(Cause::is_about_budgets);
        let cordoned_again =
            self.uncordoned_since.is_some() && core.index.node(&place.node).is_some_and(|node| node.unschedulable);
        if let Some(fresh) = core.decider.vm(&core.index, &place.node, &self.item.vmi, core.wall(now))
            && !matches!(fresh.action, VmAction::Leave)
            && (fresh.action != self.item.action || fresh.vmi_uid != self.item.vmi_uid || by_budget || cordoned_again)
        {
            let row = merged(fresh.row.clone(), &self.item.row);
            self.item = VmItem { row, ..fresh };
            self.blocked_as = None;
            self.state = State::Deciding { after: now };
        }
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
