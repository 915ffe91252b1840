//! What an eviction's answer means for the item that asked. One place for pods and VMs.

use std::time::Duration;

use super::core::Core;
use crate::answer::EvictionAnswer;
use crate::facts::{Index, PodFacts};
use crate::outcome::Cause;

/// How often what blocks is tried again with `--wait-blocked` where no event tells that it might go.
const BLOCKED_RETRY: Duration = Duration::from_secs(60);

/// A refusal that may pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Class.
    pub(super) cause: Cause,
    /// In words.
    pub(super) because: String,
    /// What the server asks for, where it does.
    pub(super) after: Option<Duration>,
    /// How long to hope; `None` until the deadline.
    pub(super) bound: Option<Duration>,
}

/// What to do about an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reaction {
    /// Wait until the pod is gone.
    Accepted,
    /// The pod is gone.
    Gone,
    /// Another pod has the name, or so it seems: look again.
    LookAgain,
    /// KubeVirt moves the VM: follow it.
    Evacuating,
    /// The VM cannot migrate: decide again.
    NotMigratable,
    /// A migration to this node must end first.
    MigrationTarget,
    /// Try again later.
    Wait(Refusal),
    /// Only a human can help.
    Block(Cause, String),
    /// The whole run ends: credentials were refused.
    Unauthorized,
}

/// Sorts an answer.
pub(super) fn react(answer: &EvictionAnswer) -> Reaction {
    match answer {
        EvictionAnswer::Accepted => Reaction::Accepted,
        EvictionAnswer::Gone => Reaction::Gone,
        EvictionAnswer::PodReplaced => Reaction::LookAgain,
        EvictionAnswer::VmEvacuating { .. } => Reaction::Evacuating,
        EvictionAnswer::VmNotMigratable => Reaction::NotMigratable,
        EvictionAnswer::VmMigrationTarget => Reaction::MigrationTarget,
        EvictionAnswer::Unauthorized => Reaction::Unauthorized,
        EvictionAnswer::Throttled { after } => wait(answer, *after),
        EvictionAnswer::HotplugCompanion
        | EvictionAnswer::VmLookupFailed { .. }
        | EvictionAnswer::EvictionMalformed { .. }
        | EvictionAnswer::BudgetExhausted { .. }
        | EvictionAnswer::BudgetUnsynced { .. }
        | EvictionAnswer::BudgetBroken { .. }
        | EvictionAnswer::BudgetBusy { .. }
        | EvictionAnswer::MultipleBudgets
        | EvictionAnswer::WebhookUnreachable { .. }
        | EvictionAnswer::WebhookRefused { .. }
        | EvictionAnswer::NamespaceTerminating
        | EvictionAnswer::ProbeImpossible { .. }
        | EvictionAnswer::Forbidden { .. }
        | EvictionAnswer::Invalid { .. }
        | EvictionAnswer::ServerTrouble { .. } => {
            if answer.waiting_helps() == Some(false) {
                Reaction::Block(answer.cause().unwrap_or(Cause::ServerTrouble), answer.describe())
            } else {
                wait(answer, None)
            }
        }
    }
}

fn wait(answer: &EvictionAnswer, after: Option<Duration>) -> Reaction {
    Reaction::Wait(Refusal {
        cause: answer.cause().unwrap_or(Cause::ServerTrouble),
        because: answer.describe(),
        after,
        bound: answer.bound(),
    })
}

/// When something that blocks is tried again although no event can tell that a human has acted; `None`: never.
pub(super) fn blocked_retry(cause: Cause, core: &Core, now: Duration) -> Option<Duration> {
    let silent = matches!(
        cause,
        Cause::Forbidden
            | Cause::WebhookRefused
            | Cause::WebhookUnreachable
            | Cause::VmLookupFailed
            | Cause::BudgetBroken
            | Cause::ServerTrouble
    );
    (core.options.wait_blocked && silent).then_some(now + BLOCKED_RETRY)
}

/// What blocks, with the budgets by name where there are too many of them.
pub(super) fn because(cause: Cause, text: String, pod: Option<&PodFacts>, index: &Index) -> String {
    let names: Vec<String> = match pod {
        Some(pod) if cause == Cause::MultipleBudgets => index.budgets_of(pod).map(|b| b.key.to_string()).collect(),
        Some(_) | None => Vec::new(),
    };
    if names.is_empty() { text } else { format!("{text}: {}", names.join(", ")) }
}

/// How often and since when one cause has been refusing: it ends the hope when its bound is over.
#[derive(Debug, Clone, Default)]
pub(super) struct Patience {
    current: Option<(Cause, Duration)>,
    tries: u32,
}

impl Patience {
    /// True once anything was refused.
    pub(super) fn was_refused(&self) -> bool {
        self.current.is_some()
    }

    /// Another refusal at `now`; returns true when the bound of its cause is over.
    pub(super) fn refused(&mut self, refusal: &Refusal, now: Duration) -> bool {
        match self.current {
            Some((cause, since)) if cause == refusal.cause => {
                self.tries += 1;
                refusal.bound.is_some_and(|bound| now.saturating_sub(since) >= bound)
            }
            _ => {
                self.current = Some((refusal.cause, now));
                self.tries = 0;
                false
            }
        }
    }

    /// When to try again although the event that should come has not.
    pub(super) fn fallback(&self, bound: Option<Duration>, now: Duration, usual: Duration) -> Duration {
        let bound = self.current.zip(bound).map(|((_, since), bound)| since + bound);
        bound.map_or(now + usual, |end| end.min(now + usual)).max(now + Duration::from_millis(100))
    }

    /// When to try again after that refusal.
    pub(super) fn next_try(&self, refusal: &Refusal, seed: &str, now: Duration) -> Duration {
        // The server may ask for more patience than ours, never for less: "0" would be a hot loop.
        let own = super::retry::delay(self.tries, seed);
        let mut at = now + refusal.after.map_or(own, |after| after.max(own));
        if let (Some((_, since)), Some(bound)) = (self.current, refusal.bound) {
            // The last try comes when the bound ends, not after it.
            at = at.min(since + bound).max(now + Duration::from_millis(100));
        }
        at
    }
}
