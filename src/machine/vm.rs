//! One VM: decide on fresh facts, evict or restart, follow it until it has left the node.
//!
//! A VM is never evicted or restarted twice in a run, and never evicted while its evacuation mark stands: KubeVirt
//! retries a failed migration by itself, and a second request would only start a second one.

use std::collections::BTreeSet;
use std::time::Duration;

use super::core::Core;
use super::node::Place;
use super::pod::Closed;
use super::react::{Patience, blocked_retry};
use super::successor::Siblings;
use super::types::RequestId;
use crate::event::{Activity, EventKind, PodExit, VmProgress};
use crate::facts::{Key, PodFacts, PodRole, VmiFacts};
use crate::outcome::{Cause, VmOutcome, VmRow};
use crate::plan::{VmAction, VmItem};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Decides what to do; not before `after`.
    Deciding { after: Duration },
    /// Reads the VMI right before it acts on it.
    Reading(RequestId),
    /// Waits for a free place among the restarts.
    Queued,
    /// Waits for an event of that budget, at most until then.
    Budget { budget: Key, until: Duration },
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
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct VmRun {
    pub(super) item: VmItem,
    pub(super) state: State,
    pub(super) asked: bool,
    /// True once it was marked or shut down by us.
    pub(super) acted: bool,
    /// True if the plan was to migrate it: then it is never shut down instead.
    pub(super) meant_to_migrate: bool,
    /// True once a restart was sent whose fate is unknown.
    pub(super) maybe_restarted: bool,
    /// True if the server itself is asked about a budget whose event does not come.
    pub(super) despite_budget: bool,
    /// True once it was asked for again after its mark had gone.
    pub(super) asked_again: bool,
    /// True while a migration of it is under way.
    pub(super) moving: bool,
    /// Until when another VMI of its name is awaited.
    pub(super) replaced_by: Option<Duration>,
    /// Since when KubeVirt has it here without a launcher.
    pub(super) bare_since: Option<Duration>,
    pub(super) patience: Patience,
    pub(super) progress: Option<VmProgress>,
    pub(super) progress_since: Duration,
    /// When it is asked for again, for the progress that is about to be reported.
    next_try: Option<Duration>,
    pub(super) unschedulable: Option<(String, Duration)>,
    pub(super) restart_refusals: u32,
    /// When it is tried again although it blocks, and what was said of it.
    pub(super) retry_at: Option<Duration>,
    pub(super) blocked_as: Option<Box<VmRow>>,
    /// True if its new VMI carries another strategy than was promised.
    pub(super) broken_promise: bool,
    /// Since when its node looks as if it took VMs again.
    pub(super) uncordoned_since: Option<Duration>,
    pub(super) wake_at: Option<Duration>,
    /// Migrations that had failed before this run looked: they do not count against it.
    pub(super) failed_before: Option<BTreeSet<String>>,
    /// The migration whose target pod is being made, and since when.
    pub(super) scheduling: Option<(String, Duration)>,
    /// Why the last target pod did not start.
    pub(super) target_trouble: Option<String>,
    /// For a VMI of a replica set: what the set had when it was evicted.
    pub(super) siblings: Siblings,
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
            | VmAction::AwaitMigration
            | VmAction::AwaitGone => State::Deciding { after: Duration::ZERO },
        };
        Self {
            meant_to_migrate: item.action == VmAction::Migrate,
            item,
            state,
            asked: false,
            acted: false,
            maybe_restarted: false,
            despite_budget: false,
            asked_again: false,
            moving: false,
            replaced_by: None,
            bare_since: None,
            patience: Patience::default(),
            progress: None,
            progress_since: Duration::ZERO,
            next_try: None,
            unschedulable: None,
            restart_refusals: 0,
            retry_at: None,
            blocked_as: None,
            broken_promise: false,
            uncordoned_since: None,
            wake_at: None,
            failed_before: None,
            scheduling: None,
            target_trouble: None,
            siblings: None,
        }
    }

    pub(super) fn closed(&self) -> Option<Closed> {
        if let State::Closed(closed) = self.state { Some(closed) } else { None }
    }

    /// True once something was done to it in this run.
    pub(super) fn has_acted(&self) -> bool {
        self.acted || self.maybe_restarted || self.item.row.attempts > 0
    }

    /// True while the answer to that request is what it waits for.
    pub(super) fn awaits(&self, id: RequestId) -> bool {
        matches!(self.state, State::Reading(own) | State::Evicting(own) | State::RestartPosting(own) if own == id)
    }

    pub(super) fn waits_on(&self, key: &Key) -> bool {
        matches!(&self.state, State::Budget { budget, .. } if budget == key)
    }

    pub(super) fn blocked_by_budgets(&self) -> bool {
        self.closed() == Some(Closed::Blocked) && self.item.row.cause.is_some_and(Cause::is_about_budgets)
    }

    pub(super) fn blocked_by_nodes(&self) -> bool {
        let cause = self.item.row.cause;
        self.closed() == Some(Closed::Blocked)
            && (self.uncordoned_since.is_some()
                || matches!(cause, Some(Cause::NoMigrationTarget | Cause::NodeNotReady | Cause::Unschedulable)))
    }

    /// Its budget changed: it looks again.
    pub(super) fn budget_changed(&mut self, core: &mut Core, place: &Place, now: Duration) {
        self.state = State::Deciding { after: now };
        self.step(core, place, now);
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
        let own = match self.state {
            State::Deciding { after } | State::Waiting { until: Some(after) } => Some(after),
            State::Closed(Closed::Blocked) => self.retry_at,
            State::Budget { until, .. } => Some(until),
            State::Reading(_)
            | State::Queued
            | State::Evicting(_)
            | State::Following { .. }
            | State::ShuttingDown { .. }
            | State::RestartPosting(_)
            | State::Restarting { .. }
            | State::Returning { .. }
            | State::Waiting { until: None }
            | State::Closed(_) => None,
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
            State::Budget { until, .. } => self.budget_step(until, core, place, now),
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

    /// True when nothing of the VMI runs on the node: its launchers are gone or finished, and so are their companions.
    /// A VMI that has no launcher is here as long as KubeVirt says so.
    pub(super) fn has_left(&self, core: &Core, place: &Place) -> bool {
        if core.options.in_place {
            return self.has_ended(core, place);
        }
        let on_node = |p: &PodFacts| p.node.as_deref() == Some(&place.node) && !p.phase.is_finished();
        let here = |uid: &str| core.index.pod(uid).is_some_and(on_node);
        let launcher = &self.item.launcher;
        if launcher.uid.is_empty() && self.vmi(core).is_some_and(|v| v.node.as_deref() == Some(&place.node)) {
            return false;
        }
        let another = core.index.launchers_of(&self.item.vmi).any(|p| {
            on_node(p) && matches!(&p.role, PodRole::Launcher { vmi_uid: Some(uid), .. } if *uid == self.item.vmi_uid)
        });
        !another && !here(&launcher.uid) && !core.index.companions_of(launcher).any(|c| here(&c.key.uid))
    }

    /// True if a VMI of that name, whichever, or its known successor is on the node by what KubeVirt says.
    pub(super) fn is_still_here(&self, core: &Core, place: &Place) -> bool {
        if core.options.in_place {
            return false;
        }
        let here = |v: &VmiFacts| v.node.as_deref() == Some(&place.node) && !v.phase.is_final();
        core.index.vmi(&self.item.vmi).is_some_and(here) || self.known_successor(core).is_some_and(here)
    }

    pub(super) fn block(&mut self, core: &mut Core, place: &Place, cause: Cause, because: String, now: Duration) {
        let row = &mut self.item.row;
        row.outcome = VmOutcome::Blocks;
        row.cause = Some(cause);
        row.waiting_helps = Some(false);
        row.because = because;
        self.uncordoned_since = None;
        self.retry_at = blocked_retry(cause, core, now).filter(|_| !self.has_acted());
        self.close(Closed::Blocked, core, place, now);
    }

    pub(super) fn close(&mut self, how: Closed, core: &mut Core, place: &Place, now: Duration) {
        core.brake.release(&self.item.vmi);
        // What has left is marked no more, whatever its VMI still shows for a moment.
        self.item.row.marked =
            how != Closed::Left && self.vmi(core).is_some_and(|v| v.marked.as_deref() == Some(&place.node));
        if how == Closed::Left && self.asked {
            let (node, pod) = (place.node.clone(), self.item.launcher.clone());
            core.emit(now, EventKind::PodGone { node, pod, launcher: true, how: PodExit::Evicted });
        }
        self.state = State::Closed(how);
        self.progress = None;
        let row = Box::new(self.item.row.clone());
        if how == Closed::Blocked && self.blocked_as.as_ref() == Some(&row) {
            return; // Tried again, and nothing has changed.
        }
        self.blocked_as = (how == Closed::Blocked).then(|| row.clone());
        core.emit(now, EventKind::VmEnded { node: place.node.clone(), row });
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
        let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        let (since_ms, next_try_ms) = (millis(self.progress_since), self.next_try.take().map(millis));
        let progress = VmProgress { activity, since_ms, attempt, target, queue, detail, next_try_ms };
        if self.progress.as_ref() != Some(&progress) {
            self.progress = Some(progress.clone());
            let (node, vm) = (place.node.clone(), self.item.vmi.clone());
            core.emit(now, EventKind::VmProgressed { node, vm, progress });
        }
    }

    /// Reports that it is refused for a passing reason, and when it is asked for again.
    pub(super) fn show_refused(
        &mut self,
        core: &mut Core,
        place: &Place,
        because: String,
        next_try: Duration,
        now: Duration,
    ) {
        self.next_try = Some(next_try);
        self.show(core, place, Activity::Retrying, None, Some(because), now);
    }

    /// The deadline or a signal came first: the row says what it was doing.
    pub(super) fn cut(
        &mut self,
        cause: Cause,
        unsent: &BTreeSet<RequestId>,
        core: &Core,
        place: &Place,
        now: Duration,
    ) {
        if self.closed().is_some() {
            return;
        }
        if matches!(&self.state, State::RestartPosting(id) if unsent.contains(id)) {
            self.item.row.attempts -= 1;
            self.state = State::Queued;
        }
        let marked = self.vmi(core).is_some_and(|v| v.marked.as_deref() == Some(&place.node));
        let asking =
            matches!(self.state, State::Deciding { .. } | State::Reading(_) | State::Queued | State::Evicting(_));
        if let (Some(row), true) = (self.blocked_as.take(), asking && !self.acted && !self.maybe_restarted) {
            // It was being tried once more.
            self.item.row = *row;
            self.item.row.marked = marked;
            self.state = State::Closed(Closed::Blocked);
            return;
        }
        let in_motion = self.in_motion();
        let doing = self.progress.as_ref().map(|progress| self.in_words(progress, &place.node, now));
        // A restart whose answer was lost may have been accepted; where the VMI is being stopped, it was.
        let restarts = self.item.action == VmAction::Restart;
        let unanswered = matches!(self.state, State::RestartPosting(_)) || (restarts && self.maybe_restarted);
        let row = &mut self.item.row;
        row.marked = marked;
        row.outcome = VmOutcome::Pending;
        row.cause = match self.state {
            State::Following { .. } => row.cause.or(Some(Cause::VmEvacuating)),
            State::RestartPosting(_)
            | State::ShuttingDown { .. }
            | State::Restarting { .. }
            | State::Returning { .. } => Some(Cause::Stopping),
            State::Deciding { .. }
            | State::Reading(_)
            | State::Queued
            | State::Budget { .. }
            | State::Evicting(_)
            | State::Waiting { .. }
            | State::Closed(_)
                if unanswered =>
            {
                Some(Cause::Stopping)
            }
            State::Deciding { .. }
            | State::Reading(_)
            | State::Queued
            | State::Budget { .. }
            | State::Evicting(_)
            | State::Waiting { .. }
            | State::Closed(_) => Some(cause),
        };
        if unanswered {
            row.because = "its restart was sent and not answered yet: it may have been accepted".to_owned();
        } else if let Some(doing) = doing {
            row.because = doing;
        } else if row.attempts == 0 && !self.asked {
            row.because = "its turn did not come; nothing was sent".to_owned();
        } else if matches!(self.state, State::Evicting(_)) {
            row.because = "its eviction was sent and not answered yet".to_owned();
        }
        row.waiting_helps = Some(in_motion);
        self.state = State::Closed(Closed::Pending);
    }
}
