//! Restarts outside a drain: what differs where no node is cordoned or emptied.
//!
//! KubeVirt makes the new VMI only after all pods of the old one are gone (seen in virt-controller's order of deletion), so
//! the VMI alone tells when the old guest has ended; nothing waits for its pods.

use std::time::Duration;

use super::core::Core;
use super::node::Place;
use super::pod::Closed;
use super::vm::{State, VmRun};
use crate::outcome::VmOutcome;

impl VmRun {
    /// True when the VMI that the plan means does not run on its node any more.
    pub(super) fn has_ended(&self, core: &Core, place: &Place) -> bool {
        self.vmi(core)
            .is_none_or(|vmi| vmi.phase.is_final() || vmi.node.as_ref().is_some_and(|node| *node != place.node))
    }

    /// Its VMI has ended, and not by our doing. True if that is followed to the VMI that comes in its place; false if it
    /// runs on, on another node.
    pub(super) fn ended_without_us(&mut self, core: &mut Core, place: &Place, now: Duration) -> bool {
        if self.vmi(core).is_some_and(|vmi| !vmi.phase.is_final()) {
            return false;
        }
        core.brake.release(&self.item.vmi);
        if core.index.vmi(&self.item.vmi).is_some_and(|vmi| vmi.uid != self.item.vmi_uid) {
            let ours = self.has_acted();
            self.item.row.outcome = if ours { VmOutcome::Restarts } else { VmOutcome::Returns };
            self.state = State::Returning { since: now };
            self.returning(now, core, place, now);
        } else {
            self.expect_what_follows(core);
            let row = &mut self.item.row;
            if row.outcome == VmOutcome::StaysOff {
                row.because = format!("stopped by somebody else: {}", row.because);
                (row.outcome, row.cause, row.remedy) = (VmOutcome::Gone, None, None);
                self.close(Closed::Left, core, place, now);
                return true;
            }
            self.state = State::ShuttingDown { since: now };
            self.shutting_down(now, core, place, now);
        }
        true
    }
}
