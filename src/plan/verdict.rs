//! How a preview ends: the verdict and exit code that the drain would have.

use super::{NodePlan, Plan, VmAction};
use crate::outcome::{Cause, Counts, NodeReport, PodOutcome, PodRow, Verdict, VmRow};

/// Exit code of a drain that leaves nothing behind.
const DRAINED: u8 = 0;
/// Exit code of a drain that something blocks.
const BLOCKED: u8 = 3;
/// Exit code of a drain that was refused before anything changed.
const REFUSED: u8 = 4;
/// Exit code of a drain whose time ran out.
const TIMEOUT: u8 = 124;

impl NodePlan {
    /// The forecast as a report.
    ///
    /// What waits for something that passes by itself (a budget that recovers, a condition, a migration to this node) is
    /// expected to pass. An External owner is not: nothing here tells whether it acts, so the promise is the worst that
    /// the drain can come to, its timeout.
    pub fn report(&self) -> NodeReport {
        let vms: Vec<VmRow> = self.vms.iter().map(|v| v.row.clone()).collect();
        let pods: Vec<PodRow> = self.pods.iter().map(|p| p.row.clone()).collect();
        let (verdict, exit_code) = if self.is_refused() {
            (Verdict::Refused, REFUSED)
        } else if self.is_blocked() {
            (Verdict::Blocked, BLOCKED)
        } else if self.vms.iter().any(|v| v.action == VmAction::AwaitOwner) {
            (Verdict::Clear, TIMEOUT)
        } else {
            (Verdict::Clear, DRAINED)
        };
        let mut counts = Counts::of(&vms, &pods);
        let refused = vms.iter().filter(|row| refuses(row)).count();
        counts.refused += refused;
        counts.blocked -= refused;
        NodeReport {
            name: self.node.clone(),
            uid: self.uid.clone(),
            verdict,
            exit_code,
            cordoned_before: self.cordoned,
            cordoned_now: self.cordoned,
            elapsed_seconds: 0.0,
            counts,
            vms,
            pods,
            warnings: self.warnings.clone(),
        }
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
    let codes: Vec<u8> = plan.nodes.iter().map(|n| n.report().exit_code).collect();
    if plan.nowhere_to_go || codes.contains(&REFUSED) {
        return REFUSED;
    }
    [BLOCKED, TIMEOUT].into_iter().find(|code| codes.contains(code)).unwrap_or(DRAINED)
}
