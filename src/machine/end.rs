//! How a node ends: in its own time, or cut short.

use std::time::Duration;

use super::core::Core;
use super::node::{NodeRun, Phase};
use super::pod::Closed;
use super::vm::State as VmState;
use crate::event::EventKind;
use crate::exit::ExitCode;
use crate::outcome::{Cause, Counts, NodeReport, PodOutcome, Verdict, VmOutcome};

/// Why a node ends before everything is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Its time is up.
    Deadline,
    /// A signal.
    Signal(ExitCode),
    /// The run ended before its turn came.
    NotStarted(ExitCode),
    /// Its Node object is gone.
    Vanished,
    /// No contact, or no credentials any more.
    Blind,
}

impl Cut {
    /// What it is called in the rows of what was not finished.
    pub(super) const fn cause(self) -> Cause {
        match self {
            Self::Deadline => Cause::Deadline,
            Self::Signal(_) | Self::NotStarted(_) => Cause::Interrupted,
            Self::Vanished => Cause::NodeNotReady,
            Self::Blind => Cause::ServerTrouble,
        }
    }

    /// True where somebody still can, and should, take back what was begun.
    const fn is_abort(self) -> bool {
        matches!(self, Self::Deadline | Self::Signal(_))
    }
}

impl NodeRun {
    /// The node ends before everything is closed. Where aborted drains are undone, it ends after that.
    pub(super) fn cut(&mut self, cut: Cut, core: &mut Core, now: Duration) {
        if self.phase == Phase::Emptied && matches!(cut, Cut::Deadline | Cut::Blind) {
            // The node is empty: only the list of volumes did not come in time.
            self.tell_volumes(core, now);
            return self.finish(None, core, now);
        }
        let mut cut = cut;
        if let (Cut::Deadline | Cut::Blind, Some(why), false) = (cut, &self.unlisted, self.is_held(core)) {
            // All is closed, but nobody can say that the node is empty.
            let text = format!("the last list of pods on {} failed: {why}", self.place.node);
            core.emit(now, EventKind::Noted { warning: true, text });
            cut = Cut::Blind;
        }
        let cause = cut.cause();
        let unsent = core.drop_unsent(self.place.number);
        if cut == Cut::Deadline {
            core.emit(now, EventKind::DeadlineReached { node: self.place.node.clone() });
        }
        for vm in &mut self.vms {
            if cut == Cut::Vanished && vm.closed().is_none() {
                vm.item.row.outcome = VmOutcome::Lost;
                vm.item.row.because = "the node vanished under it".to_owned();
                (vm.item.row.cause, vm.item.row.waiting_helps) = (Some(cause), Some(false));
                vm.state = VmState::Closed(Closed::Pending);
            }
            vm.cut(cause, &unsent, core, &self.place, now);
        }
        for pod in &mut self.pods {
            pod.settle(&unsent, core, &self.place, now);
            pod.cut(cut, &unsent, core, &self.place, now);
        }
        if core.options.undo_on_abort && cut.is_abort() {
            return self.begin_undo(cut, core, now);
        }
        self.finish(Some(cut), core, now);
    }

    pub(super) fn finish(&mut self, cut: Option<Cut>, core: &mut Core, now: Duration) {
        let mut vms: Vec<_> = self.vms.iter().map(|v| v.item.row.clone()).collect();
        let mut pods: Vec<_> = self.pods.iter().map(|p| p.item.row.clone()).collect();
        vms.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        pods.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        let blocked =
            vms.iter().any(|v| v.outcome == VmOutcome::Blocks) || pods.iter().any(|p| p.outcome == PodOutcome::Blocks);
        let pending = vms.iter().any(|v| v.outcome == VmOutcome::Pending)
            || pods.iter().any(|p| p.outcome == PodOutcome::Pending);
        // A request that the server could not even read is our mistake, and no human's blocker.
        let malformed = vms.iter().filter(|v| v.outcome == VmOutcome::Blocks).filter_map(|v| v.cause);
        let malformed =
            malformed.chain(pods.iter().filter(|p| p.outcome == PodOutcome::Blocks).filter_map(|p| p.cause));
        let malformed = malformed.into_iter().any(|cause| cause == Cause::EvictionMalformed);
        let down = vms.iter().any(|v| v.outcome == VmOutcome::Down);
        // Who restarts a VM for its strategy has not got what he wanted.
        let in_place = core.options.in_place;
        let blocked = blocked || (in_place && vms.iter().any(|v| v.cause == Some(Cause::StrategyMismatch)));
        let done = if in_place { Verdict::Restarted } else { Verdict::Drained };
        let (verdict, exit) = match cut {
            Some(Cut::Signal(exit)) if self.started.is_some() => (Verdict::Interrupted, exit),
            Some(Cut::Signal(exit) | Cut::NotStarted(exit)) => (Verdict::NotStarted, exit),
            Some(Cut::Blind) if self.started.is_none() => (Verdict::NotStarted, ExitCode::Api),
            Some(Cut::Blind) => (Verdict::Failed, ExitCode::Api),
            Some(Cut::Vanished) => (Verdict::Failed, ExitCode::Failed),
            _ if malformed => (Verdict::Failed, ExitCode::Failed),
            _ if blocked => (Verdict::Blocked, ExitCode::Blocked),
            Some(Cut::Deadline) => (Verdict::Timeout, ExitCode::Timeout),
            None if pending => (Verdict::Timeout, ExitCode::Timeout),
            None if down => (done, ExitCode::VmDown),
            None => (done, ExitCode::Done),
        };
        self.exit = exit;
        let elapsed = self.started.map_or(Duration::ZERO, |s| now.saturating_sub(s));
        let report = NodeReport {
            name: self.place.node.clone(),
            uid: self.uid.clone(),
            verdict,
            exit_code: exit.code(),
            cordoned_before: self.cordoned_before,
            cordoned_now: self.cordoned_now,
            elapsed_seconds: (elapsed.as_secs_f64() * 10.0).round() / 10.0,
            counts: Counts::of(&vms, &pods),
            vms,
            pods,
            undo: self.undo_report.take(),
            warnings: self.warnings.clone(),
            attached_volumes: self.attached(),
            vanished: cut == Some(Cut::Vanished),
        };
        self.phase = Phase::Ended;
        self.report = Some(report.clone());
        core.emit(now, EventKind::NodeEnded { report });
    }
}
