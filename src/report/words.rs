//! The words and marks for outcomes, causes, activities and exit codes.

use std::time::Duration;

use super::style::{Label, Mark};
use super::text::duration;
use crate::event::{Activity, StopReason, VmProgress};
use crate::facts::Strategy;
use crate::outcome::{Cause, PodOutcome, PodRow, VmOutcome, VmRow};

/// What stands in column ON DRAIN for a VM.
pub fn vm_on_drain(outcome: VmOutcome) -> &'static str {
    match outcome {
        VmOutcome::Migrates => "migrates",
        VmOutcome::Restarts => "restarts",
        VmOutcome::Returns => "shut down, returns",
        VmOutcome::StaysOff => "shut down, stays off",
        VmOutcome::DownUntilNode => "down until node is back",
        VmOutcome::Waits => "waits",
        VmOutcome::Blocks => "blocks",
        VmOutcome::Replaced => "replaced",
        VmOutcome::Gone => "gone",
        VmOutcome::Lost => "lost",
        VmOutcome::Down => "down",
        VmOutcome::Pending => "pending",
    }
}

/// The same where VMs are restarted outside a drain.
pub fn vm_on_restart(outcome: VmOutcome) -> &'static str {
    match outcome {
        VmOutcome::Restarts => "restarts",
        VmOutcome::Returns => "restarts already",
        VmOutcome::StaysOff => "stays off",
        VmOutcome::DownUntilNode => "stays down",
        VmOutcome::Blocks => "not restarted",
        VmOutcome::Migrates
        | VmOutcome::Waits
        | VmOutcome::Replaced
        | VmOutcome::Gone
        | VmOutcome::Lost
        | VmOutcome::Down
        | VmOutcome::Pending => vm_on_drain(outcome),
    }
}

/// The mark of a VM's row: `!` wherever the guest goes down.
pub fn vm_mark(outcome: VmOutcome) -> Mark {
    match outcome {
        VmOutcome::Migrates | VmOutcome::Replaced | VmOutcome::Gone => Mark::Goes,
        VmOutcome::Restarts | VmOutcome::Returns | VmOutcome::StaysOff | VmOutcome::DownUntilNode => Mark::Down,
        VmOutcome::Waits | VmOutcome::Pending => Mark::Waits,
        VmOutcome::Blocks | VmOutcome::Lost | VmOutcome::Down => Mark::Blocks,
    }
}

/// Place of a VM's row in a table: what needs a human comes first.
pub fn vm_severity(row: &VmRow) -> u8 {
    match row.outcome {
        VmOutcome::Blocks => 0,
        VmOutcome::Lost | VmOutcome::Down => 1,
        VmOutcome::StaysOff | VmOutcome::DownUntilNode if !row.needs.is_empty() => 2,
        VmOutcome::StaysOff => 3,
        VmOutcome::DownUntilNode => 4,
        VmOutcome::Pending => 5,
        VmOutcome::Waits => 6,
        VmOutcome::Restarts => 7,
        VmOutcome::Returns => 8,
        VmOutcome::Replaced | VmOutcome::Gone => 9,
        VmOutcome::Migrates => 10,
    }
}

/// What stands in column STRATEGY: the strategy in force; `stale` only where a restart helps, and where the strategy
/// comes from where that is what holds a VM that blocks.
pub fn vm_strategy(row: &VmRow) -> String {
    let now = row.strategy_now.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string);
    if row.restart_helps == Some(true) {
        return format!("{now}, stale");
    }
    let held = row.outcome == VmOutcome::Blocks
        && row.cause == Some(Cause::VmNotMigratable)
        && row.strategy_now == Some(Strategy::LiveMigrate);
    match row.strategy_source {
        Some(source) if held && source != "none" => format!("{now} ({source})"),
        _ => now,
    }
}

/// The reason of a VM with what it would lose.
pub fn vm_because(row: &VmRow) -> String {
    let unnamed: Vec<&str> = row.data_loss.iter().map(String::as_str).filter(|v| !row.because.contains(*v)).collect();
    let lost = if unnamed.is_empty() { String::new() } else { format!("loses the data of {}", unnamed.join(", ")) };
    join_clauses(&plain(&row.because), &lost)
}

/// The reason of a pod with the budget that it speaks of.
pub fn pod_because(row: &PodRow) -> String {
    let unnamed: Vec<&str> =
        row.budgets.iter().map(String::as_str).filter(|b| !names_budget(&row.because, b)).collect();
    let about = row.cause.is_some_and(|cause| cause.is_about_budgets() || cause == Cause::BudgetBusy);
    if !unnamed.is_empty() && row.because == NO_TURN {
        return format!("budget {} did not let it go in time", unnamed.join(", "));
    }
    let because = plain(&row.because);
    if unnamed.is_empty() || !about {
        return because;
    }
    format!("{because} (budget {})", unnamed.join(", ")).trim_start().to_owned()
}

/// What the run says of a pod for which nothing was sent before the end.
const NO_TURN: &str = "its turn did not come";

/// How the run says that a budget gives no disruption now.
const NONE_LEFT: &str = "has no disruption left; its next change wakes it";

/// A reason of the run in plain words.
pub fn plain(because: &str) -> String {
    because.replace(NONE_LEFT, "lets no more pods go for now")
}

/// True if a text names a budget, with or without the namespace, which is that of its pod.
fn names_budget(text: &str, budget: &str) -> bool {
    let name = budget.split_once('/').map_or(budget, |(_, name)| name);
    let words = text.split(|c: char| c.is_whitespace() || ",:;()".contains(c));
    words.into_iter().any(|word| word == budget || word == name)
}

/// A reason that several share: what it says of one is said of all.
pub fn for_several(because: &str) -> String {
    let starts = [
        ("it is ", "they are "),
        ("it has ", "they have "),
        ("it tolerates ", "they tolerate "),
        ("no controller owns it, so nothing brings it back", "no controller owns them, so nothing brings them back"),
        ("its turn ", "their turn "),
        ("its restart was ", "their restart was "),
        ("its migration is ", "their migrations are "),
        ("its migration prepares the target", "their migrations prepare the targets"),
        ("its owner has ", "their owners have "),
        ("its guest may ", "each guest may "),
    ];
    let plural = starts.iter().find_map(|(one, many)| because.strip_prefix(one).map(|rest| format!("{many}{rest}")));
    let ends = [
        (" did not let it go", " did not let them go"),
        (" can take it: ", " can take them: "),
        ("what replaces it stays ", "what replaces them stays "),
        (" ends with it", " ends with them"),
    ];
    plural.unwrap_or_else(|| ends.iter().fold(because.to_owned(), |text, (one, many)| text.replace(one, many)))
}

/// The mark of a pod's row.
pub fn pod_mark(outcome: PodOutcome) -> Mark {
    match outcome {
        PodOutcome::Evicts | PodOutcome::Stays | PodOutcome::NotSelected | PodOutcome::Gone => Mark::Goes,
        PodOutcome::Waits | PodOutcome::Pending => Mark::Waits,
        PodOutcome::Blocks | PodOutcome::Refused => Mark::Blocks,
        PodOutcome::Returned | PodOutcome::Skipped => Mark::Down,
    }
}

/// A pod's outcome as a verb in singular and plural.
pub fn pod_verb(outcome: PodOutcome) -> (&'static str, &'static str) {
    match outcome {
        PodOutcome::Evicts => ("is evicted", "are evicted"),
        PodOutcome::Waits => ("waits", "wait"),
        PodOutcome::Blocks => ("blocks", "block"),
        PodOutcome::Stays => ("stays", "stay"),
        PodOutcome::Refused => ("is refused", "are refused"),
        PodOutcome::NotSelected => ("is not selected", "are not selected"),
        PodOutcome::Returned => ("came back", "came back"),
        PodOutcome::Skipped => ("is no longer waited for", "are no longer waited for"),
        PodOutcome::Gone => ("is gone", "are gone"),
        PodOutcome::Pending => ("is not gone", "are not gone"),
    }
}

/// Why a pod stays by its nature, as a word for a count: `2 DaemonSet, 1 static`.
pub fn stays_word(cause: Option<Cause>) -> &'static str {
    match cause {
        Some(Cause::DaemonSet | Cause::OrphanedDaemonSetPod) => "DaemonSet",
        Some(Cause::MirrorPod) => "static",
        Some(Cause::OwnPod) => "this command's own",
        Some(Cause::LeftOver) => "finished launcher",
        _ => "other",
    }
}

/// What a VM is doing: `migrating → node-2`, `queued behind 2`.
pub fn activity(progress: &VmProgress) -> String {
    let to = |arrow: &str| progress.target.as_ref().map_or_else(String::new, |t| format!("{arrow}{t}"));
    match progress.activity {
        Activity::Queued => progress.queue.map_or_else(|| "queued".to_owned(), |n| format!("queued behind {n}")),
        Activity::PreparingTarget => format!("preparing its target{}", to(" on ")),
        Activity::Migrating => format!("migrating{}", to(" → ")),
        Activity::ShuttingDown => "shutting down".to_owned(),
        Activity::Scheduling => "waiting for a node".to_owned(),
        Activity::Starting => format!("starting{}", to(" on ")),
        Activity::WaitingForOwner => "waiting for the controller that owns it".to_owned(),
        Activity::WaitingForCondition => "waiting for LiveMigratable".to_owned(),
        Activity::WaitingForMigration => "waiting for a migration of it to end".to_owned(),
        Activity::Retrying => "refused for now".to_owned(),
    }
}

/// What a VM is doing and for how long, for the screen: `migrating → node-2, running 12s, attempt 1`.
pub fn activity_now(progress: &VmProgress, elapsed: Duration) -> String {
    let since = duration(elapsed.saturating_sub(Duration::from_millis(progress.since_ms)));
    let queued = progress.activity == Activity::Queued;
    let running = matches!(progress.activity, Activity::PreparingTarget | Activity::Migrating);
    let mut parts = vec![activity(progress)];
    if !queued {
        parts.push(if running { format!("running {since}") } else { since });
    }
    if progress.attempt > 1 || (progress.attempt == 1 && !queued) {
        parts.push(format!("attempt {}", progress.attempt));
    }
    parts.extend(next_try(progress, elapsed));
    let text = parts.join(", ");
    match &progress.detail {
        Some(detail) => format!("{text} ({detail})"),
        None => text,
    }
}

/// `next try in 9s`, where it is refused for a passing reason.
pub fn next_try(progress: &VmProgress, elapsed: Duration) -> Option<String> {
    let left = Duration::from_millis(progress.next_try_ms?).saturating_sub(elapsed);
    Some(if left < Duration::from_secs(1) {
        "asked again now".to_owned()
    } else {
        format!("next try in {}", duration(left))
    })
}

/// An activity as a word for a count: `3 VMs migrating, 2 queued`.
pub fn activity_word(activity: Activity) -> &'static str {
    match activity {
        Activity::Migrating => "migrating",
        Activity::PreparingTarget => "preparing a target",
        Activity::ShuttingDown => "shutting down",
        Activity::Scheduling => "waiting for a node",
        Activity::Starting => "starting",
        Activity::Queued => "queued",
        Activity::WaitingForOwner => "waiting for an owner",
        Activity::WaitingForCondition => "waiting for LiveMigratable",
        Activity::WaitingForMigration => "waiting for a migration",
        Activity::Retrying => "refused for now",
    }
}

/// Place of an activity on the screen: what moves comes first.
pub fn activity_order(activity: Activity) -> u8 {
    match activity {
        Activity::Migrating => 0,
        Activity::PreparingTarget => 1,
        Activity::ShuttingDown => 2,
        Activity::Scheduling => 3,
        Activity::Starting => 4,
        Activity::Retrying => 5,
        Activity::WaitingForOwner => 6,
        Activity::WaitingForCondition => 7,
        Activity::WaitingForMigration => 8,
        Activity::Queued => 9,
    }
}

/// The label of an activity.
pub fn activity_label(activity: Activity) -> Label {
    match activity {
        Activity::Migrating | Activity::PreparingTarget | Activity::Starting => Label::Good,
        Activity::ShuttingDown | Activity::Scheduling => Label::Caution,
        Activity::Queued
        | Activity::WaitingForOwner
        | Activity::WaitingForCondition
        | Activity::WaitingForMigration
        | Activity::Retrying => Label::Waiting,
    }
}

/// What stopped a run.
pub fn stop_reason(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Interrupt => "interrupted (Ctrl-C)",
        StopReason::Terminate => "told to end (SIGTERM)",
        StopReason::HangUp => "terminal closed (SIGHUP)",
    }
}

/// Two clauses with `; ` between them where both say something.
fn join_clauses(a: &str, b: &str) -> String {
    if a.is_empty() || b.is_empty() { format!("{a}{b}") } else { format!("{a}; {b}") }
}
