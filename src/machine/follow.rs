//! Following a VM that was set in motion: its migrations by the VMI, a shutdown by its launcher, a new VMI by its UID.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use super::core::Core;
use super::node::Place;
use super::pod::Closed;
use super::vm::{State, VmRun};
use crate::event::Activity;
use crate::facts::{KubeVirtState, Migratable, MigrationFacts, RunStrategy, VmFacts, VmiFacts, VmiPhase};
use crate::forecast::vm::whose_turn;
use crate::forecast::words::{self, spoken};
use crate::outcome::{Cause, VmOutcome};
use crate::plan::VmAction;

/// How long the watch may take to show a mark that the webhook says it set.
const MARK_BOUND: Duration = Duration::from_secs(10);
/// How long a VM may take to make another VMI in place of one that was deleted.
const REPLACEMENT_BOUND: Duration = Duration::from_secs(5);
/// How long a mark may stand without a migration on KubeVirt 1.9 and newer, which creates it at once (design §5).
const MIGRATION_BOUND: Duration = Duration::from_secs(60);
/// Failed migrations in a row after which more will not help (design §4).
const FAILURES: usize = 3;
/// How long the scheduler may say the same "no node fits" before the VM counts as down (design §5).
const UNSCHEDULABLE_BOUND: Duration = Duration::from_secs(60);
/// How long KubeVirt may take to note that a launcher has gone before that is said.
const NOTICE: Duration = Duration::from_secs(5);
/// How long a new VMI may take beyond the guest's grace period (design §4).
pub(super) const RESTART_BOUND: Duration = Duration::from_secs(300);

impl VmRun {
    pub(super) fn follow(&mut self, since: Duration, mark_seen: bool, core: &mut Core, place: &Place, now: Duration) {
        let Some(vmi) = core.index.vmi(&self.item.vmi).cloned() else {
            if self.has_left(core, place) && !self.is_about_to_be_replaced(core, now) {
                self.ended_elsewhere(None, core, place, now);
            }
            return;
        };
        if vmi.uid != self.item.vmi_uid {
            if self.has_left(core, place) {
                self.ended_elsewhere(Some(&vmi), core, place, now);
            }
            return;
        }
        if vmi.phase.is_final() && self.item.action == VmAction::AwaitOwner {
            // What follows is its owner's business: nothing is awaited once it has left.
            if self.has_left(core, place) && !self.is_about_to_be_replaced(core, now) {
                self.ended_elsewhere(None, core, place, now);
            }
            return;
        }
        if vmi.phase.is_final() {
            self.state = State::ShuttingDown { since: now };
            return self.shutting_down(now, core, place, now);
        }
        if let Some(node) = vmi.node.clone().filter(|n| *n != place.node) {
            if self.has_left(core, place) {
                let row = &mut self.item.row;
                row.outcome = VmOutcome::Migrates;
                row.cause = None;
                row.waiting_helps = None;
                row.remedy = None;
                row.because = format!("migrated to {node}");
                row.node_after = Some(node);
                self.close(Closed::Left, core, place, now);
            }
            return;
        }
        self.still_here(&vmi, since, mark_seen, core, place, now);
    }

    /// True for a moment after its owner has deleted its VMI, where its VM makes another one at once.
    fn is_about_to_be_replaced(&mut self, core: &Core, now: Duration) -> bool {
        let restarts = |vm: &VmFacts| !vm.deleting && vm.run_strategy == RunStrategy::Always;
        if self.item.action != VmAction::AwaitOwner || !core.index.vm(&self.item.vmi).is_some_and(restarts) {
            return false;
        }
        let until = *self.replaced_by.get_or_insert(now + REPLACEMENT_BOUND);
        self.wake_at = Some(until).filter(|until| now < *until);
        self.wake_at.is_some()
    }

    fn still_here(
        &mut self,
        vmi: &VmiFacts,
        since: Duration,
        mark_seen: bool,
        core: &mut Core,
        place: &Place,
        now: Duration,
    ) {
        let marked = vmi.marked.as_deref() == Some(&place.node);
        let mark_seen = mark_seen || marked;
        self.state = State::Following { since, mark_seen };
        if self.item.action == VmAction::AwaitOwner {
            self.item.row.cause = Some(Cause::ExternalOwner);
            let detail = format!("strategy External: {}", whose_turn(vmi));
            return self.show(core, place, Activity::WaitingForOwner, None, Some(detail), now);
        }
        let migrations: Vec<MigrationFacts> = core.index.migrations_of(&self.item.vmi).into_iter().cloned().collect();
        let known = self
            .failed_before
            .get_or_insert_with(|| failed(&migrations).map(|m| m.uid.clone()).collect::<BTreeSet<_>>());
        let fresh_failures: Vec<&MigrationFacts> = failed(&migrations).filter(|m| !known.contains(&m.uid)).collect();
        let running = migrations.iter().rev().find(|m| !m.is_final());
        let attempts = fresh_failures.len() + usize::from(running.is_some());
        self.item.row.attempts = self.item.row.attempts.max(u32::try_from(attempts).unwrap_or(u32::MAX));
        // The VMIM gets its reason a moment after its phase: the VMI's own copy, or an earlier reason, does meanwhile.
        let last_failure = fresh_failures.iter().rev().find_map(|m| m.failure_reason.clone()).or_else(|| {
            let state = vmi.migration.as_ref().filter(|_| !fresh_failures.is_empty())?;
            state.failure_reason.clone()
        });
        let last_failure = last_failure.or_else(|| self.target_trouble.clone().filter(|_| !fresh_failures.is_empty()));
        if fresh_failures.len() >= FAILURES {
            // One that fails before its hand-over to the nodes has no reason in its status.
            let why = last_failure.unwrap_or_else(|| "its target pod ended before it was ready".to_owned());
            let because = format!("{} migrations failed in a row, last: {why}", fresh_failures.len());
            self.item.row.remedy = Some(words::after_failed_migrations(&why, &self.item.vmi, self.item.has_vm));
            return self.block(core, place, Cause::MigrationFailed, because, now);
        }
        if let Some(migration) = running {
            self.moving = true;
            return self.show_migration(migration, vmi, last_failure, core, place, now);
        }
        // The time without any migration starts anew after each.
        let since = if std::mem::take(&mut self.moving) { now } else { since };
        self.state = State::Following { since, mark_seen };
        if let Migratable::No { reason, message } = &vmi.migratable {
            // KubeVirt drops such a VMI without a word: nothing will move it while the condition stands.
            let why = if message.is_empty() { reason } else { message };
            let because = format!("became non-migratable: {why}");
            return self.block(core, place, Cause::BecameNonMigratable, because, now);
        }
        if !marked {
            if mark_seen || now >= since + MARK_BOUND {
                // A migration that others began asked for nothing in our name.
                if self.asked && std::mem::replace(&mut self.asked_again, true) {
                    let because = "its evacuation mark was taken away again, and it still runs here".to_owned();
                    return self.block(core, place, Cause::MigrationMissing, because, now);
                }
                // The mark is gone and the VM still runs here: it may be asked for once more.
                self.state = State::Deciding { after: now + super::retry::delay(2, &self.item.vmi_uid) };
            } else {
                self.wake_at = Some(since + MARK_BOUND);
            }
            return;
        }
        let at_once = match core.index.kubevirt() {
            KubeVirtState::One(cr) => cr.at_least(1, 9),
            KubeVirtState::Absent | KubeVirtState::Unclear => false,
        };
        if at_once {
            if now >= since + MIGRATION_BOUND {
                let because = "marked for evacuation, but no migration appears".to_owned();
                return self.block(core, place, Cause::MigrationMissing, because, now);
            }
            self.wake_at = Some(since + MIGRATION_BOUND);
        }
        // Releases before 1.9 make a migration only when there is room for it.
        self.has_target(Cause::MigrationQueued);
        let detail = last_failure.map(|reason| format!("last attempt failed: {reason}"));
        self.show(core, place, Activity::Queued, None, detail, now);
    }

    fn show_migration(
        &mut self,
        migration: &MigrationFacts,
        vmi: &VmiFacts,
        last_failure: Option<String>,
        core: &mut Core,
        place: &Place,
        now: Duration,
    ) {
        // The VMIM names its nodes only when it is over; until then the VMI does.
        let state = vmi.migration.as_ref().filter(|s| s.migration_uid.as_ref() == Some(&migration.uid));
        let target = migration.target_node.as_ref().or_else(|| state?.target_node.as_ref());
        let target = target.cloned().unwrap_or_default();
        let failed = last_failure.map(|reason| format!("last attempt failed: {reason}"));
        if migration.quota_rejected {
            let ns = &migration.key.namespace;
            let because = format!("a quota of namespace {ns} does not admit its target pod");
            let remedy = format!("`kubectl describe resourcequota -n {ns}`: raise it, or stop something there");
            self.no_target(&because, remedy);
            return self.show(core, place, Activity::PreparingTarget, None, Some(because), now);
        }
        if !migration.takes_slot() {
            let ahead = core
                .index
                .migrations()
                .filter(|m| {
                    !m.is_final() && !m.takes_slot() && (m.created, &m.key) < (migration.created, &migration.key)
                })
                .filter(|m| m.vmi != migration.vmi || m.key.namespace != migration.key.namespace)
                .count();
            let queue = u32::try_from(ahead).ok().filter(|n| *n > 0);
            self.has_target(Cause::MigrationQueued);
            return self.show(core, place, Activity::Queued, Some((target, queue)), failed, now);
        }
        if let Some(stuck) = self.stuck_target(migration, core, place, now) {
            return self.show(core, place, Activity::PreparingTarget, Some((target, None)), Some(stuck), now);
        }
        self.has_target(Cause::VmEvacuating);
        let activity = if migration.phase == "Running" { Activity::Migrating } else { Activity::PreparingTarget };
        self.show(core, place, activity, Some((target, None)), failed, now);
    }

    /// Its VMI is gone or another one has the name, and nothing of it runs here any more.
    fn ended_elsewhere(&mut self, other: Option<&VmiFacts>, core: &mut Core, place: &Place, now: Duration) {
        let external = self.item.action == VmAction::AwaitOwner;
        if other.is_some() && !external {
            // Somebody else restarted it: it is over when the new one runs elsewhere.
            self.item.row.outcome = VmOutcome::Returns;
            self.state = State::Returning { since: now };
            return self.returning(now, core, place, now);
        }
        let row = &mut self.item.row;
        row.cause = None;
        row.waiting_helps = None;
        row.remedy = None;
        row.new_vmi_uid = other.map(|v| v.uid.clone());
        row.node_after = other.and_then(|v| v.node.clone()).filter(|n| *n != place.node);
        (row.outcome, row.because) = match other {
            Some(_) => (VmOutcome::Replaced, "its owner replaced it by another VMI of that name".to_owned()),
            None if external => (VmOutcome::Gone, "its owner deleted or stopped it".to_owned()),
            None => (VmOutcome::Gone, "its VMI was deleted by somebody else".to_owned()),
        };
        self.close(Closed::Left, core, place, now);
    }

    pub(super) fn shutting_down(&mut self, since: Duration, core: &mut Core, place: &Place, now: Duration) {
        self.state = State::ShuttingDown { since };
        if self.awaits_replica() {
            // Its replica set need not wait for its end: what comes is its successor from the start.
            self.successor(core);
        }
        if !self.has_left(core, place) {
            let detail = Some(format!("grace {}", spoken(self.item.grace)));
            return self.show(core, place, Activity::ShuttingDown, None, detail, now);
        }
        // What stays off is done; so is what somebody else ended whom no VM starts again.
        let ends = !self.item.has_vm && self.siblings.is_none();
        let off = matches!(self.item.row.outcome, VmOutcome::StaysOff | VmOutcome::DownUntilNode | VmOutcome::Gone);
        let done = off || ends;
        if done {
            return self.close(Closed::Left, core, place, now);
        }
        self.state = State::Returning { since: now };
        self.returning(now, core, place, now);
    }

    pub(super) fn returning(&mut self, since: Duration, core: &mut Core, place: &Place, now: Duration) {
        self.state = State::Returning { since };
        let restarts = self.item.row.outcome == VmOutcome::Restarts;
        let outcome = if restarts { VmOutcome::Restarts } else { VmOutcome::Returns };
        let moved = |v: &VmiFacts| !v.phase.is_final() && v.node.as_deref().is_some_and(|n| n != place.node);
        if self.vmi(core).is_some_and(moved) && self.has_left(core, place) {
            return self.left_without_us(core, place, now);
        }
        if core.options.in_place {
            self.check_promise(core, now);
        }
        self.await_new(since, outcome, core, place, now);
    }

    /// Waits until the VMI that takes its place runs on another node.
    pub(super) fn await_new(
        &mut self,
        since: Duration,
        good: VmOutcome,
        core: &mut Core,
        place: &Place,
        now: Duration,
    ) {
        let deadline = since + self.item.grace + RESTART_BOUND;
        let Some(new) = self.successor(core) else {
            if self.item.has_vm && core.index.vm(&self.item.vmi).is_none() && self.has_left(core, place) {
                return self.is_deleted(core, place, now);
            }
            let stopped = core
                .index
                .vm(&self.item.vmi)
                .is_some_and(|vm| vm.printable_status.as_deref() == Some("Stopped") && !vm.change_pending);
            if stopped
                && good == VmOutcome::Returns
                && core.index.vmi(&self.item.vmi).is_none()
                && now >= since + Duration::from_secs(5)
            {
                return self.is_down("it shut down and its VM reports Stopped".to_owned(), core, place, now);
            }
            // KubeVirt starts another only once it has taken note of the end of this one.
            let unnoticed = self.vmi(core).is_some_and(|v| !v.phase.is_final());
            if now >= deadline {
                let because = if unnoticed {
                    "its launcher is gone, and KubeVirt still calls its VMI running"
                } else {
                    "no new VMI appeared in time"
                };
                return self.is_down(because.to_owned(), core, place, now);
            }
            self.wake_at = Some(deadline.min((now + Duration::from_secs(5)).max(since + Duration::from_secs(5))));
            if unnoticed {
                // For a moment that is always so.
                if now >= since + NOTICE {
                    let detail = Some("its launcher is gone, KubeVirt has not ended its VMI yet".to_owned());
                    self.show(core, place, Activity::ShuttingDown, None, detail, now);
                }
                return;
            }
            return self.show(core, place, Activity::Scheduling, None, None, now);
        };
        self.item.row.new_vmi_uid = Some(new.uid.clone());
        if new.node.as_deref() == Some(&place.node) && !core.options.in_place {
            let because = "it came up on this node again: it tolerates the cordon".to_owned();
            return self.block(core, place, Cause::SameNode, because, now);
        }
        match (&new.node, new.phase) {
            (Some(node), VmiPhase::Running) => {
                if !self.has_left(core, place) {
                    return;
                }
                let row = &mut self.item.row;
                row.outcome = if good == VmOutcome::DownUntilNode { VmOutcome::Restarts } else { good };
                row.cause = self.broken_promise.then_some(Cause::StrategyMismatch);
                row.waiting_helps = None;
                row.remedy = None;
                row.needs.clear();
                row.because = match &new.key {
                    key if *key == self.item.vmi => format!("runs on {node}"),
                    key => format!("{} took its place on {node}", key.name),
                };
                if let Some(strategy) = &new.strategy {
                    let _ = write!(row.because, " with {strategy}");
                }
                row.node_after = Some(node.clone());
                self.close(Closed::Left, core, place, now);
            }
            (_, VmiPhase::Succeeded | VmiPhase::Failed) => {
                self.is_down("its new VMI ended at once".to_owned(), core, place, now);
            }
            _ => self.not_running_yet(&new, good, deadline, core, place, now),
        }
    }

    fn not_running_yet(
        &mut self,
        new: &VmiFacts,
        good: VmOutcome,
        deadline: Duration,
        core: &mut Core,
        place: &Place,
        now: Duration,
    ) {
        let target = new.node.clone().map(|n| (n, None));
        let no_node = new.unschedulable.as_ref().map(|text| format!("no node takes it: {}", words::scheduler(text)));
        let not_made = || new.not_created.as_ref().map(|text| format!("its launcher cannot be made: {text}"));
        if let Some(text) = &no_node.or_else(not_made) {
            if let (VmOutcome::DownUntilNode, Some(words)) = (good, &new.unschedulable) {
                // As foreseen and agreed to.
                let why = if core.options.in_place { "no node takes it now" } else { "only this node can run it" };
                self.item.row.because = format!("{why}: {}", words::scheduler(words));
                return self.close(Closed::Left, core, place, now);
            }
            let since = match &self.unschedulable {
                Some((before, since)) if before == text => *since,
                _ => now,
            };
            self.unschedulable = Some((text.clone(), since));
            // The scheduler's words may change for ever: the bound of the restart ends it then.
            let bound = deadline.min(since + UNSCHEDULABLE_BOUND);
            if now >= bound {
                if good == VmOutcome::Restarts {
                    let how = if new.unschedulable.is_some() { "found no node" } else { "could not be started" };
                    core.brake.stopped = Some(format!("{} {how} after its restart", self.item.vmi));
                }
                self.item.row.cause = Some(Cause::Unschedulable);
                return self.is_down(text.clone(), core, place, now);
            }
            self.wake_at = Some(bound);
            return self.show(core, place, Activity::Scheduling, target, Some(text.clone()), now);
        }
        self.unschedulable = None;
        if now >= deadline {
            return self.is_down("its new VMI did not start in time".to_owned(), core, place, now);
        }
        self.wake_at = Some(deadline);
        let activity = if new.node.is_some() { Activity::Starting } else { Activity::Scheduling };
        self.show(core, place, activity, target, None, now);
    }

    fn is_down(&mut self, because: String, core: &mut Core, place: &Place, now: Duration) {
        let row = &mut self.item.row;
        row.outcome = VmOutcome::Down;
        row.waiting_helps = Some(false);
        row.because = because;
        let (name, namespace) = (&self.item.vmi.name, &self.item.vmi.namespace);
        row.remedy = Some(match row.owner.as_ref().filter(|_| self.siblings.is_some() && row.new_vmi_uid.is_none()) {
            Some(set) => format!("kubectl describe vmirs {} -n {namespace}", set.name),
            None => format!("kubectl describe vmi {name} -n {namespace}"),
        });
        self.close(Closed::Left, core, place, now);
    }
}

fn failed(migrations: &[MigrationFacts]) -> impl Iterator<Item = &MigrationFacts> {
    migrations.iter().filter(|m| m.failed())
}
