//! What a server's answer to a dry run does to a forecast. Pure.
//!
//! A dry run decrements no budget and sets no mark, so an `Accepted` proves only that this pod alone could go now; the
//! forecast's own arithmetic stands. A refusal that waiting clears leaves the outcome alone, too. Only a refusal that
//! contradicts the forecast changes a row.

use super::{PodAction, PodItem, VmAction, VmItem};
use crate::answer::{EvictionAnswer, RestartAnswer};
use crate::outcome::{PodOutcome, VmOutcome};

/// An eviction of a pod that is no VM was probed.
pub fn pod(item: &mut PodItem, answer: &EvictionAnswer) {
    match answer {
        EvictionAnswer::Accepted | EvictionAnswer::ProbeImpossible { .. } => {}
        EvictionAnswer::Gone | EvictionAnswer::PodReplaced => {
            item.row.because = "gone already".to_owned();
        }
        _ => {
            let blocks = answer.waiting_helps() == Some(false);
            if item.row.outcome == PodOutcome::Blocks {
                return;
            }
            item.row.outcome = if blocks { PodOutcome::Blocks } else { PodOutcome::Waits };
            item.row.cause = answer.cause();
            item.row.waiting_helps = Some(!blocks);
            item.row.because = format!("the server says: {}", answer.describe());
            if blocks {
                item.action = PodAction::Leave;
            }
        }
    }
}

/// An eviction of a launcher was probed.
pub fn vm(item: &mut VmItem, answer: &EvictionAnswer) {
    let foreseen = match (item.action, answer) {
        (
            VmAction::Migrate | VmAction::AwaitOwner,
            EvictionAnswer::VmEvacuating { .. } | EvictionAnswer::VmMigrationTarget,
        )
        | (VmAction::ShutDown, EvictionAnswer::Accepted)
        | (_, EvictionAnswer::ProbeImpossible { .. } | EvictionAnswer::Gone | EvictionAnswer::PodReplaced) => true,
        _ => false,
    };
    if foreseen {
        return;
    }
    let blocks = answer.waiting_helps() == Some(false);
    item.row.outcome = if blocks { VmOutcome::Blocks } else { VmOutcome::Waits };
    item.row.cause = answer.cause();
    item.row.waiting_helps = Some(!blocks);
    item.row.because = match answer {
        EvictionAnswer::Accepted => "the server would shut it down now, although a migration was expected".to_owned(),
        _ => format!("the server says: {}", answer.describe()),
    };
    if blocks {
        item.action = VmAction::Leave;
    }
}

/// A restart was probed.
pub fn restart(item: &mut VmItem, answer: &RestartAnswer) {
    match answer {
        RestartAnswer::Accepted | RestartAnswer::Underway | RestartAnswer::Unavailable { .. } => {}
        RestartAnswer::NotPossible { .. }
        | RestartAnswer::NoSuchVm
        | RestartAnswer::Forbidden { .. }
        | RestartAnswer::Unauthorized
        | RestartAnswer::Invalid { .. } => {
            item.row.outcome = VmOutcome::Blocks;
            item.row.cause = Some(crate::outcome::Cause::RestartRefused);
            item.row.waiting_helps = Some(false);
            item.row.because = format!("the server refuses the restart: {}", answer.describe());
            item.action = VmAction::Leave;
        }
    }
}
