//! How a pod's time in the machine ends: gone, no longer waited for, cut off, found again.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Closed, PodRun, State};
use crate::event::{EventKind, PodExit};
use crate::facts::PodFacts;
use crate::machine::core::Core;
use crate::machine::node::Place;
use crate::machine::types::RequestId;
use crate::outcome::{Cause, PodOutcome};
use crate::plan::PodAction;

impl PodRun {
    pub(super) fn skip(&mut self, core: &mut Core, place: &Place, cause: Cause, because: String, now: Duration) {
        self.item.row.outcome = PodOutcome::Skipped;
        self.item.row.cause = Some(cause);
        self.item.row.because = because;
        self.state = State::Closed(Closed::Left);
        let (node, pod) = (place.node.clone(), self.item.pod.clone());
        core.emit(now, EventKind::PodGone { node, pod, launcher: false, how: PodExit::Skipped });
    }

    pub(super) fn left(&mut self, core: &mut Core, place: &Place, now: Duration) {
        if self.item.row.outcome == PodOutcome::Stays || self.item.row.outcome == PodOutcome::NotSelected {
            self.state = State::Closed(Closed::Left);
            self.item.row.outcome = PodOutcome::Gone;
            return;
        }
        // An eviction whose answer does not come counts as ours: the pod left while we asked.
        let ours = self.ours || self.maybe_ours || matches!(self.state, State::Posting(_));
        self.ours = ours;
        core.gate.answered(&core.index, &self.item.pod.uid, true, false);
        self.state = State::Closed(Closed::Left);
        let how = match (ours, self.item.action) {
            (false, _) => PodExit::AlreadyGone,
            (true, PodAction::Delete) => PodExit::Deleted,
            (true, _) => PodExit::Evicted,
        };
        self.item.row.outcome = if ours { PodOutcome::Evicts } else { PodOutcome::Gone };
        self.item.row.waiting_helps = None;
        self.item.row.remedy = None;
        // What holds for its successor is told at the end.
        self.item.row.cause = self.item.bound.as_ref().filter(|_| ours).map(|_| Cause::BoundToNode);
        self.item.row.because = match &self.item.bound {
            Some(why) if ours => why.clone(),
            Some(_) | None if ours => String::new(),
            Some(_) | None => "gone without us".to_owned(),
        };
        let (node, pod) = (place.node.clone(), self.item.pod.clone());
        core.emit(now, EventKind::PodGone { node, pod, launcher: false, how });
        if ours && let Some(successor) = self.successor.take() {
            self.returned(&successor);
        }
    }

    /// True while only an answer can tell whether it went because of us.
    pub(in crate::machine) fn is_undecided(&self) -> bool {
        self.vanished_at.is_some() && matches!(self.state, State::Posting(_))
    }

    /// No answer will come: what has gone has gone.
    pub(in crate::machine) fn settle(
        &mut self,
        unsent: &BTreeSet<RequestId>,
        core: &mut Core,
        place: &Place,
        now: Duration,
    ) {
        if self.is_undecided() {
            if matches!(&self.state, State::Posting(id) if unsent.contains(id)) {
                self.state = State::Ready { after: now };
            }
            self.left(core, place, now);
        }
    }

    /// The deadline or a signal came first: the row says what it was doing.
    pub(in crate::machine) fn cut(&mut self, cause: Cause, unsent: &BTreeSet<RequestId>) {
        if self.closed().is_some() {
            return;
        }
        if matches!(&self.state, State::Posting(id) if unsent.contains(id)) {
            self.asked = self.patience.was_refused();
            self.state = State::Ready { after: Duration::ZERO };
        }
        if self.item.row.outcome == PodOutcome::Blocks {
            self.state = State::Closed(Closed::Blocked);
            return; // It was being tried once more.
        }
        let row = &mut self.item.row;
        row.outcome = PodOutcome::Pending;
        match self.state {
            State::Stopping => {
                row.cause = Some(Cause::Stopping);
                row.waiting_helps = Some(true);
                row.because = format!("accepted, still stopping (grace {}s)", self.item.grace.as_secs());
            }
            State::Posting(_) => {
                row.cause = Some(cause);
                row.waiting_helps = Some(true);
                row.because = "its eviction was sent and not answered yet: it may have been accepted".to_owned();
            }
            State::Ready { .. } | State::Budget { .. } | State::Reading(_) | State::Closed(_) if !self.asked => {
                row.cause = Some(cause);
                row.because = "its turn did not come".to_owned();
            }
            State::Ready { .. } | State::Budget { .. } | State::Reading(_) | State::Closed(_) => {
                row.cause = row.cause.or(Some(cause));
            }
        }
        self.state = State::Closed(Closed::Pending);
    }

    /// The last list shows it. If it was taken for gone and nobody has asked it to stop, that was wrong.
    pub(in crate::machine) fn listed(&mut self, pod: &PodFacts, now: Duration) {
        let evictable = matches!(self.item.action, PodAction::Evict | PodAction::Delete);
        let left = matches!(self.item.row.outcome, PodOutcome::Evicts | PodOutcome::Gone);
        if self.closed() == Some(Closed::Left) && evictable && left && pod.deletion.is_none() {
            (self.ours, self.maybe_ours) = (false, false);
            self.item.row.outcome = PodOutcome::Evicts;
            self.item.row.because = String::new();
            self.state = State::Ready { after: now };
        }
    }

    /// A pod of the same controller is on the node again.
    pub(in crate::machine) fn returned(&mut self, successor: &str) {
        if self.closed().is_none() {
            self.successor = Some(successor.to_owned());
            return;
        }
        self.item.row.outcome = PodOutcome::Returned;
        self.item.row.cause = Some(Cause::Returned);
        self.item.row.because = format!("it tolerates the cordon: {successor} took its place here");
    }
}
