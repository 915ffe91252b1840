//! How a VM leaves in a way that nobody planned, and what is expected of it then.

use std::time::Duration;

use super::core::Core;
use super::node::Place;
use super::pod::Closed;
use super::vm::{State, VmRun};
use crate::event::EventKind;
use crate::facts::VmiOwner;
use crate::forecast::after::{After, after};
use crate::forecast::words::spoken;
use crate::outcome::{Cause, VmOutcome};
use crate::plan::VmAction;

/// How long KubeVirt may take to say where a VM runs after its old launcher has ended.
const HANDOVER: Duration = Duration::from_secs(10);

impl VmRun {
    pub(super) fn too_late(&mut self, core: &mut Core, place: &Place, now: Duration) {
        let refused = self.patience.was_refused();
        let row = &mut self.item.row;
        row.outcome = VmOutcome::Pending;
        row.cause = Some(Cause::GraceTooLong);
        row.waiting_helps = Some(false);
        let grace = spoken(self.item.grace);
        let why = format!("its guest may take {grace} to stop, longer than the time left");
        // What was refused for most of the time is the reason why the rest of it is too short.
        row.because =
            if refused { format!("{}; by now {why}", row.because) } else { format!("{why}; nothing was sent") };
        row.remedy = (!refused).then(|| format!("run again with --timeout above {grace}"));
        self.close(Closed::Pending, core, place, now);
    }

    /// True if the time left is shorter than what its guest may take to stop: then nothing is sent.
    pub(super) fn is_too_late(&self, place: &Place, now: Duration) -> bool {
        place.deadline.saturating_sub(now) < self.item.grace
    }

    /// Its eviction was accepted although it was to migrate: the guest is being shut down.
    pub(super) fn is_shut_down_instead(&mut self, core: &mut Core, now: Duration) {
        let expected = match self.item.action {
            VmAction::Migrate => "a migration was expected",
            VmAction::AwaitOwner => "its owner was expected to act",
            VmAction::ShutDown
            | VmAction::Restart
            | VmAction::AwaitCondition
            | VmAction::AwaitMigration
            | VmAction::AwaitGone
            | VmAction::Leave => return,
        };
        let text = format!("{} is shut down by its eviction although {expected}", self.item.vmi);
        core.emit(now, EventKind::Noted { warning: true, text });
        self.item.action = VmAction::ShutDown;
        self.expect_what_follows(core);
    }

    /// Its guest stops although no plan said so: its row tells what its owner makes of that.
    pub(super) fn expect_what_follows(&mut self, core: &Core) {
        let unknown = || match (&self.item.has_vm, &self.item.vmi.name) {
            (true, name) => VmiOwner::VirtualMachine { name: name.clone() },
            (false, _) => VmiOwner::Standalone,
        };
        let owner = self.vmi(core).map_or_else(unknown, |v| v.owner.clone());
        let vm = core.index.vm(&self.item.vmi).filter(|_| matches!(owner, VmiOwner::VirtualMachine { .. }));
        let row = &mut self.item.row;
        row.needs.clear();
        row.waiting_helps = None;
        (row.outcome, row.cause, row.because, row.remedy) = match after(&self.item.vmi, &owner, vm, true) {
            After::Returns { by } => (VmOutcome::Returns, None, format!("{by} starts it again elsewhere"), None),
            After::Ends { why } => (VmOutcome::StaysOff, Some(Cause::StaysOff), why.to_owned(), None),
            After::RestartInstead { why } => (VmOutcome::StaysOff, Some(Cause::StaysOff), why, None),
            After::StaysOff { why, remedy } => (VmOutcome::StaysOff, Some(Cause::StaysOff), why, remedy),
        };
    }

    /// Nothing will start it again: its VM is gone as well.
    pub(super) fn is_deleted(&mut self, core: &mut Core, place: &Place, now: Duration) {
        let row = &mut self.item.row;
        row.outcome = VmOutcome::Gone;
        (row.cause, row.waiting_helps, row.remedy) = (None, None, None);
        row.needs.clear();
        row.because = "its VM was deleted by somebody else".to_owned();
        self.close(Closed::Left, core, place, now);
    }

    /// It left the node without our doing, or somebody deleted it.
    pub(super) fn left_without_us(&mut self, core: &mut Core, place: &Place, now: Duration) {
        if core.options.in_place && self.ended_without_us(core, place, now) {
            return;
        }
        if self.is_still_here(core, place) && self.vmi(core).is_none() {
            let because = "another VMI of its name runs on this node".to_owned();
            return self.block(core, place, Cause::SameNode, because, now);
        }
        let moves = self.item.action == VmAction::AwaitMigration && !core.options.in_place;
        if moves && self.vmi(core).is_some_and(|v| v.node.as_deref() == Some(&place.node) && !v.phase.is_final()) {
            let until = *self.bare_since.get_or_insert(now) + HANDOVER;
            if now < until {
                self.state = State::Waiting { until: Some(until) };
                self.wake_at = Some(until);
                return;
            }
        }
        let (other, elsewhere) = match core.index.vmi(&self.item.vmi) {
            Some(v) if v.uid == self.item.vmi_uid => (None, v.node.clone().filter(|n| *n != place.node)),
            Some(v) => (Some(v.uid.clone()), v.node.clone().filter(|n| *n != place.node)),
            None => (None, None),
        };
        let row = &mut self.item.row;
        let was_coming = self.item.action == VmAction::AwaitMigration && row.cause == Some(Cause::VmMigrationTarget);
        row.cause = None;
        row.waiting_helps = None;
        row.remedy = None;
        row.needs.clear();
        row.node_after.clone_from(&elsewhere);
        (row.outcome, row.because) = match (&other, &elsewhere) {
            (None, Some(_)) if was_coming => {
                (VmOutcome::Gone, "its migration to this node did not come about".to_owned())
            }
            (None, Some(node)) => (VmOutcome::Migrates, format!("migrated to {node}")),
            (Some(_), Some(node)) => (VmOutcome::Returns, format!("restarted by somebody else; runs on {node}")),
            _ => (VmOutcome::Gone, "gone from the node without us".to_owned()),
        };
        row.new_vmi_uid = other;
        self.close(Closed::Left, core, place, now);
    }
}
