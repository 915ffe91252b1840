//! How a preview ends: the verdict and exit code that the drain would have.

use super::build::owner_warning;
use super::{NodePlan, Plan, VmAction, VmItem};
use crate::exit::ExitCode;
use crate::outcome::{Cause, Counts, NodeReport, PodOutcome, PodRow, Verdict, VmRow};

impl NodePlan {
    /// The forecast as a report.
    ///
    /// What waits for something that passes by itself (a budget that recovers, a condition, a migration to this node) is
    /// expected to pass. An External owner is not: nothing here tells whether it acts, so the promise is the worst that
    /// the drain can come to, its timeout. The same for a shutdown that may take longer than the timeout: it is never sent.
    pub fn report(&self) -> NodeReport {
        let vms: Vec<VmRow> = self.vms.iter().map(|v| v.row.clone()).collect();
        let pods: Vec<PodRow> = self.pods.iter().map(|p| p.row.clone()).collect();
        let (verdict, exit_code) = if self.is_refused() {
            (Verdict::Refused, ExitCode::Refused)
        } else if self.is_blocked() {
            (Verdict::Blocked, ExitCode::Blocked)
        } else if self.vms.iter().any(|v| v.action == VmAction::AwaitOwner || self.is_too_slow(v)) {
            (Verdict::Clear, ExitCode::Timeout)
        } else {
            (Verdict::Clear, ExitCode::Done)
        };
        let mut counts = Counts::of(&vms, &pods);
        let refused = vms.iter().filter(|row| refuses(row)).count();
        counts.refused += refused;
        counts.blocked -= refused;
        NodeReport {
            name: self.node.clone(),
            uid: self.uid.clone(),
            verdict,
            exit_code: exit_code.code(),
            cordoned_before: self.cordoned,
            cordoned_now: self.cordoned,
            elapsed_seconds: 0.0,
            counts,
            vms,
            pods,
            undo: None,
            warnings: self.warnings.clone(),
            attached_volumes: Vec::new(),
            vanished: false,
        }
    }

    /// A shutdown that may outlast the timeout is not begun.
    fn is_too_slow(&self, vm: &VmItem) -> bool {
        matches!(vm.action, VmAction::ShutDown | VmAction::Restart) && vm.grace > self.timeout
    }

    /// Drops the warnings about what the settled plan does not do: notes on VMs that are left alone, the time that they
    /// would need, and a timeout that is not how the drain is expected to end.
    pub(super) fn drop_idle_warnings(&mut self) {
        let mut idle: Vec<String> = Vec::new();
        for vm in self.vms.iter().filter(|v| v.action == VmAction::Leave) {
            idle.extend(vm.notes.iter().map(|note| format!("{}: {note}", vm.vmi)));
        }
        if self.report().exit_code != ExitCode::Timeout.code() {
            idle.extend(self.vms.iter().map(owner_warning));
        }
        // Only less can be done than was planned: where the time was enough, it still is.
        if !self.too_short.is_empty() {
            let too_short = super::time::too_short(&self.vms, &self.pods, self.slots, self.timeout);
            let at = self.warnings.iter().position(|w| self.too_short.contains(w)).unwrap_or(self.warnings.len());
            self.warnings.retain(|w| !self.too_short.contains(w));
            self.warnings.splice(at..at, too_short.clone());
            self.too_short = too_short;
        }
        self.warnings.retain(|warning| !idle.contains(warning));
    }

    fn is_refused(&self) -> bool {
        self.pods.iter().any(|p| p.row.outcome == PodOutcome::Refused) || self.vms.iter().any(|v| refuses(&v.row))
    }

    fn is_blocked(&self) -> bool {
        self.pods.iter().any(|p| p.row.outcome == PodOutcome::Blocks) || self.vms.iter().any(|v| v.row.is_blocked())
    }
}

/// True for a VM that stops the whole command: a flag or consent is missing.
fn refuses(row: &VmRow) -> bool {
    row.is_blocked() && matches!(row.cause, Some(Cause::ConsentMissing | Cause::LocalData))
}

impl Plan {
    /// The forecast as reports, with the verdict and exit code that the drain would have.
    pub fn reports(&self) -> Vec<NodeReport> {
        self.nodes.iter().map(NodePlan::report).collect()
    }

    /// True if nothing blocks and nothing is refused on any node (`--only-if-clear`).
    pub fn is_clear(&self) -> bool {
        !self.nowhere_to_go && !self.nodes.iter().any(|n| n.is_refused() || n.is_blocked())
    }
}

/// Exit code that a drain by this settled plan would have: 4 if anything is refused, else the first of 3, 124, 0.
pub fn would_exit(plan: &Plan) -> u8 {
    let nowhere = plan.nowhere_to_go.then_some(ExitCode::Refused);
    let nodes = plan.nodes.iter().map(|n| ExitCode::from_code(n.report().exit_code));
    ExitCode::of_all(nowhere.into_iter().chain(nodes)).code()
}
