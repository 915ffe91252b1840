//! What is said of a migration under way, and why its target pod does not come.

use std::fmt::Write as _;
use std::time::Duration;

use super::core::Core;
use super::node::Place;
use super::pending::{STUCK, Stuck};
use super::vm::{State, VmRun};
use crate::event::{Activity, VmProgress};
use crate::facts::MigrationFacts;
use crate::forecast::words;
use crate::outcome::Cause;

impl VmRun {
    /// No target pod comes: as far as is known a human must act, but what is full may get free.
    pub(super) fn no_target(&mut self, because: &str, remedy: String) {
        self.target_trouble = Some(because.to_owned());
        self.item.row.cause = Some(Cause::NoMigrationTarget);
        self.item.row.remedy = Some(remedy);
    }

    /// Its migration goes on, or will.
    pub(super) fn has_target(&mut self, cause: Cause) {
        if self.item.row.cause == Some(Cause::NoMigrationTarget) {
            self.item.row.remedy = None;
        }
        self.item.row.cause = Some(cause);
    }

    /// Why the target pod of that migration does not start, once it takes its time.
    pub(super) fn stuck_target(
        &mut self,
        migration: &MigrationFacts,
        core: &mut Core,
        place: &Place,
        now: Duration,
    ) -> Option<String> {
        if migration.phase != "Scheduling" {
            self.scheduling = None;
            return None;
        }
        let since = match &self.scheduling {
            Some((uid, since)) if *uid == migration.uid => *since,
            _ => now,
        };
        self.scheduling = Some((migration.uid.clone(), since));
        if now < since + STUCK {
            self.wake_at = Some(since + STUCK);
            return None;
        }
        let namespace = &migration.key.namespace;
        self.wake_at = Some(core.look_for_pending(place.number, namespace, now));
        match core.stuck_target(namespace, &migration.uid, now)? {
            Stuck::NoNode(words) => {
                let because = format!("no node accepts its target pod: {words}");
                let remedy = "make room for it on another node".to_owned();
                self.no_target(&because, remedy);
                Some(because)
            }
            Stuck::Starting(node) => {
                self.has_target(Cause::VmEvacuating);
                let vm = &self.item.vmi.name;
                Some(format!(
                    "its target pod on {node} has not started yet: `kubectl describe pod -n {namespace} -l vm.kubevirt.io/name={vm}`"
                ))
            }
        }
    }

    /// The pods of its namespace that have not started were read.
    pub(super) fn pending_seen(&mut self, core: &mut Core, place: &Place, now: Duration) {
        if matches!(self.state, State::Following { .. }) && self.scheduling.is_some() {
            self.step(core, place, now);
        }
    }

    /// What it was doing when the time was up, in one clause.
    pub(super) fn in_words(&self, progress: &VmProgress, node: &str, now: Duration) -> String {
        let moves = matches!(progress.activity, Activity::Migrating | Activity::PreparingTarget);
        let since = now.saturating_sub(Duration::from_millis(progress.since_ms)).as_secs();
        let since = words::duration(i64::try_from(since).unwrap_or(i64::MAX));
        if let (Some(Cause::NoMigrationTarget), Some(detail)) = (self.item.row.cause, &progress.detail) {
            let since = if since == "0s" { String::new() } else { format!(", for {since}") };
            return format!("{detail} (attempt {}{since}); it still runs on {node}", progress.attempt);
        }
        let mut text = doing(progress);
        if moves && since != "0s" {
            let _ = write!(text, " for {since}");
        }
        if progress.attempt > 1 {
            let _ = write!(text, ", attempt {}", progress.attempt);
        }
        if let Some(detail) = &progress.detail {
            let _ = write!(text, " ({detail})");
        }
        if moves {
            let _ = write!(text, "; it still runs on {node}");
        }
        text
    }
}

fn doing(progress: &VmProgress) -> String {
    let mut text = match progress.activity {
        Activity::Queued => match progress.queue {
            Some(n) => format!("its migration is queued behind {n}"),
            None => "its migration is queued".to_owned(),
        },
        Activity::PreparingTarget => "its migration prepares the target".to_owned(),
        Activity::Migrating => "it is migrating".to_owned(),
        Activity::ShuttingDown => "it is shutting down".to_owned(),
        Activity::Scheduling => "its new VMI waits for a node".to_owned(),
        Activity::Starting => "its new VMI is starting".to_owned(),
        Activity::WaitingForOwner => "its owner has not acted".to_owned(),
        Activity::WaitingForCondition => "virt-handler has not said whether it can migrate".to_owned(),
        Activity::WaitingForMigration => "a migration of it has not ended".to_owned(),
        Activity::Retrying => "its eviction is refused".to_owned(),
    };
    let goes = matches!(progress.activity, Activity::PreparingTarget | Activity::Migrating);
    let to = if goes { "to" } else { "on" };
    if let Some(target) = &progress.target {
        let _ = write!(text, " {to} {target}");
    }
    text
}
