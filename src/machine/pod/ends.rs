//! How a pod's time in the machine ends: gone, no longer waited for, cut off, found again.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Closed, PodRun, State, Successor};
use crate::event::{EventKind, PodExit};
use crate::facts::{NodeReady, PodFacts};
use crate::forecast::words::spoken;
use crate::machine::core::Core;
use crate::machine::end::Cut;
use crate::machine::node::Place;
use crate::machine::types::RequestId;
use crate::outcome::{Cause, PodOutcome};
use crate::plan::{PodAction, PodItem};

/// Of a shorter rest of a grace period nothing is said.
const WORTH_SAYING: Duration = Duration::from_secs(60);

impl PodItem {
    /// How far an accepted eviction is; `Err` where nothing will tell that the pod has stopped.
    fn stopping_words(&self, cut: Cut, core: &Core, place: &Place, now: Duration) -> Result<String, String> {
        if cut == Cut::Vanished {
            return Err("accepted, but its node is gone: nothing confirms that it stopped".to_owned());
        }
        if core.index.node(&place.node).is_some_and(|node| matches!(node.ready, NodeReady::No { .. })) {
            return Err("accepted, but the node is not ready: nothing confirms that it stopped".to_owned());
        }
        let grace = spoken(self.grace);
        let deletion = core.index.pod(&self.pod.uid).and_then(|pod| pod.deletion);
        // Where no watch has shown it yet, it was accepted just now.
        let left = deletion.map_or(Ok(self.grace), |d| Duration::try_from(d.at.duration_since(core.wall(now))));
        Ok(match left.ok().filter(|left| *left >= WORTH_SAYING) {
            Some(left) => {
                let minutes = left.as_secs().div_ceil(60);
                format!(
                    "accepted, still stopping, up to {} left (grace {grace})",
                    spoken(Duration::from_secs(minutes * 60))
                )
            }
            None => format!("accepted, still stopping (grace {grace})"),
        })
    }
}

impl PodRun {
    /// Nothing waits for it any more, for that cause.
    pub(super) fn skip(&mut self, core: &mut Core, place: &Place, cause: Cause, because: String, now: Duration) {
        let how = if cause == Cause::Stopping { PodExit::Overdue } else { PodExit::Skipped };
        self.item.row.outcome = PodOutcome::Skipped;
        self.item.row.cause = Some(cause);
        self.item.row.because = because;
        self.state = State::Closed(Closed::Left);
        let (node, pod) = (place.node.clone(), self.item.pod.clone());
        core.emit(now, EventKind::PodGone { node, pod, launcher: false, how });
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
            self.returned(successor);
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
    pub(in crate::machine) fn cut(
        &mut self,
        cut: Cut,
        unsent: &BTreeSet<RequestId>,
        core: &Core,
        place: &Place,
        now: Duration,
    ) {
        let cause = cut.cause();
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
                let stopping = self.item.stopping_words(cut, core, place, now);
                let row = &mut self.item.row;
                row.waiting_helps = Some(stopping.is_ok());
                row.remedy = stopping.is_err().then(|| "bring the node back, or fence it and remove it".to_owned());
                row.because = stopping.unwrap_or_else(|unconfirmed| unconfirmed);
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
    pub(in crate::machine) fn returned(&mut self, successor: Successor) {
        if self.closed().is_none() {
            self.successor = Some(successor);
            return;
        }
        let Successor { name, tolerates_cordon } = successor;
        let row = &mut self.item.row;
        row.outcome = PodOutcome::Returned;
        row.cause = Some(Cause::Returned);
        if tolerates_cordon {
            row.because = format!("it tolerates the cordon: {name} took its place here");
        } else {
            // Whatever put it here, no scheduler did: those keep to the cordon.
            row.because = format!("{name} took its place here past the scheduler, as with a nodeName in its template");
            row.remedy = Some("scale its owner down for the time, or take the nodeName from its template".to_owned());
        }
    }
}
