//! Restarting a stale VM: after the cordon, few at a time, checked right before, and followed to its new VMI.

use std::time::Duration;

use super::core::{Asker, Core};
use super::follow::RESTART_BOUND;
use super::node::Place;
use super::react::Refusal;
use super::types::{EffectKind, Failure};
use super::vm::{State, VmRun};
use crate::answer::RestartAnswer;
use crate::event::{Activity, EventKind};
use crate::facts::KubeVirtState;
use crate::forecast::restart::restart_must_wait;
use crate::forecast::strategy::strategies;
use crate::forecast::words::spoken;
use crate::outcome::{Cause, VmOutcome};

/// How often a 409 right after somebody's restart is asked again before it counts as a refusal.
const CONFLICTS: u32 = 3;
/// How long a node may look as if its cordon were gone before its restarts block.
const CORDON_BOUND: Duration = Duration::from_secs(10);

impl VmRun {
    /// Takes a place among the restarts, once the CR was confirmed. False: not now.
    pub(super) fn may_restart(&mut self, core: &mut Core, place: &Place, now: Duration) -> bool {
        if let Some(why) = core.brake.stopped.clone() {
            self.no_further_restart(&why, core, place, now);
            return false;
        }
        self.state = State::Queued;
        if !core.brake.strategy_confirmed {
            let KubeVirtState::One(cr) = core.index.kubevirt() else {
                let because = "the KubeVirt CR cannot be read, so what a restart would give it is unknown".to_owned();
                self.block(core, place, Cause::RestartRefused, because, now);
                return false;
            };
            let key = cr.key.clone();
            if core.brake.reading.is_none() && core.brake.read_again.is_none() && !core.silent {
                core.brake.reading = Some(core.send(place.number, Asker::Brake, EffectKind::ReadKubeVirt { key }));
            }
            return false;
        }
        if !core.brake.has_room(&self.item.vmi) {
            return false;
        }
        if !self.is_under_cordon(core, place, now) {
            return false;
        }
        core.brake.take(&self.item.vmi);
        true
    }

    fn no_further_restart(&mut self, why: &str, core: &mut Core, place: &Place, now: Duration) {
        self.item.row.remedy = Some("clear that first, then the same command again".to_owned());
        self.block(core, place, Cause::RestartStalled, format!("no further VM is restarted: {why}"), now);
    }

    /// Without the cordon a restart may bring it back here. False: it looks again soon, and blocks in the end.
    fn is_under_cordon(&mut self, core: &mut Core, place: &Place, now: Duration) -> bool {
        if core.options.in_place || core.index.node(&place.node).is_some_and(|node| node.unschedulable) {
            self.uncordoned_since = None;
            return true;
        }
        core.brake.release(&self.item.vmi);
        let bound = *self.uncordoned_since.get_or_insert(now) + CORDON_BOUND;
        if now >= bound {
            let because = "the node is not cordoned any more: a restart could bring it back here".to_owned();
            let since = self.uncordoned_since;
            self.block(core, place, Cause::RestartRefused, because, now);
            // The cordon's return is what it waits for now.
            self.uncordoned_since = since;
        } else {
            self.state = State::Queued;
            self.wake_at = Some(bound.min(now + Duration::from_secs(1)));
        }
        false
    }

    pub(super) fn post_restart(&mut self, core: &mut Core, place: &Place, now: Duration) {
        if let Some(why) = core.brake.stopped.clone() {
            return self.no_further_restart(&why, core, place, now);
        }
        if !self.is_under_cordon(core, place, now) {
            return;
        }
        if self.is_too_late(place, now) {
            return self.too_late(core, place, now);
        }
        let held = self.vmi(core).and_then(|vmi| restart_must_wait(&core.index, vmi));
        if let Some((cause, because)) = held {
            core.brake.release(&self.item.vmi);
            let refusal = Refusal { cause, because, after: Some(Duration::from_secs(2)), bound: None };
            return self.retry_or_block(&refusal, core, place, now);
        }
        if !core.has_slot(now) {
            core.brake.release(&self.item.vmi);
            self.state = State::Deciding { after: now };
            return;
        }
        self.item.row.attempts += 1;
        let kind = EffectKind::Restart { vm: self.item.vmi.clone() };
        self.state = State::RestartPosting(core.send(place.number, Asker::Vm(self.item.vmi.clone()), kind));
    }

    pub(super) fn restart_answered(
        &mut self,
        answer: &RestartAnswer,
        core: &mut Core,
        place: &Place,
        now: Duration,
    ) -> Option<Failure> {
        if !matches!(self.state, State::RestartPosting(_)) {
            return None;
        }
        match answer {
            RestartAnswer::Accepted | RestartAnswer::Underway => {
                core.emit(now, EventKind::VmRestarting { node: place.node.clone(), vm: self.item.vmi.clone() });
                self.restarting(now, core, place, now);
            }
            RestartAnswer::NoSuchVm => {
                let because = "its VirtualMachine does not exist any more".to_owned();
                self.block(core, place, Cause::RestartRefused, because, now);
            }
            RestartAnswer::NotPossible { .. } => {
                core.brake.release(&self.item.vmi);
                self.restart_refusals += 1;
                let replaced = core.index.vmi(&self.item.vmi).is_none_or(|v| v.uid != self.item.vmi_uid);
                if replaced {
                    // Somebody else restarted it: its new VMI is what we wanted.
                    self.restarting(now, core, place, now);
                } else if self.restart_refusals >= CONFLICTS
                    || core.index.vm(&self.item.vmi).is_none_or(|vm| !vm.run_strategy.allows_restart())
                {
                    self.block(core, place, Cause::RestartRefused, answer.describe(), now);
                } else {
                    self.item.row.attempts -= 1;
                    self.state = State::Deciding { after: now + super::retry::delay(2, &self.item.vmi_uid) };
                }
            }
            RestartAnswer::Forbidden { text } => {
                self.item.row.attempts -= 1;
                self.block(core, place, Cause::Forbidden, format!("the restart is not permitted: {text}"), now);
            }
            RestartAnswer::Invalid { text } => {
                self.block(core, place, Cause::Invalid, format!("the restart was not accepted: {text}"), now);
            }
            RestartAnswer::Throttled { after } => {
                core.brake.release(&self.item.vmi);
                self.item.row.attempts -= 1;
                let because = answer.describe();
                let refusal = Refusal { cause: Cause::Throttled, because, after: *after, bound: None };
                self.retry_or_block(&refusal, core, place, now);
            }
            RestartAnswer::Unavailable { text, after } => {
                core.brake.release(&self.item.vmi);
                self.item.row.attempts -= 1;
                self.maybe_restarted = true;
                let refusal = Refusal {
                    cause: Cause::WebhookUnreachable,
                    because: format!("the restart did not get through: {text}"),
                    after: *after,
                    bound: Some(RESTART_BOUND),
                };
                self.retry_or_block(&refusal, core, place, now);
            }
            RestartAnswer::Unauthorized => return Some(Failure::Unauthorized),
        }
        None
    }

    /// The restart was accepted: the old VMI goes, then a new one comes.
    pub(super) fn restarting(&mut self, since: Duration, core: &mut Core, place: &Place, now: Duration) {
        self.state = State::Restarting { since };
        let bound = since + self.item.grace + RESTART_BOUND;
        if self.vmi(core).is_some() {
            if now >= bound {
                let because =
                    "the restart was accepted, but its VMI has not been stopped in time (is virt-controller up?)";
                core.brake.stopped = Some(format!("{} was not stopped after its restart was accepted", self.item.vmi));
                return self.block(core, place, Cause::RestartStalled, because.to_owned(), now);
            }
            self.wake_at = Some(bound);
            let detail = Some(format!("grace {}", spoken(self.item.grace)));
            return self.show(core, place, Activity::ShuttingDown, None, detail, now);
        }
        let bound_here = self.item.row.outcome == VmOutcome::DownUntilNode;
        let good = if bound_here { VmOutcome::DownUntilNode } else { VmOutcome::Restarts };
        self.check_promise(core, now);
        self.await_new(since, good, core, place, now);
    }

    /// The new VMI must carry the strategy that was promised; otherwise no further VM is restarted.
    pub(super) fn check_promise(&mut self, core: &mut Core, now: Duration) {
        let Some(promised) = self.item.row.strategy_fresh.clone().filter(|_| !self.broken_promise) else { return };
        let Some(new) = core.index.vmi(&self.item.vmi).filter(|v| v.uid != self.item.vmi_uid) else { return };
        let now_known = strategies(new, core.index.vm(&self.item.vmi), &core.index).now;
        let Some(got) = now_known else { return };
        if !got.same_effect(&promised) {
            let text = format!(
                "{} came back with {got}, but {promised} was expected; no further VM is restarted",
                self.item.vmi
            );
            self.broken_promise = true;
            self.item.row.cause = Some(Cause::StrategyMismatch);
            core.brake.stopped = Some(format!("{} came back with {got}", self.item.vmi));
            core.emit(now, EventKind::Noted { warning: true, text });
        }
    }
}
