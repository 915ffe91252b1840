//! The end of a run on stderr: how each node ended, what runs where now, what remains and why, what to type next. Pure.

use std::fmt::Write as _;
use std::time::Duration;

use super::groups;
use super::lines::has_vm;
use super::style::{Label, Line, Mark};
use super::text::{agree, duration, names, pack, plural, reason_row, span};
use super::undo::taken_back;
use crate::exit::ExitCode;
use crate::outcome::{
    Cause, NodeReport, PodOutcome, PodRow, UndoOutcome, UndoReport, UndoVerdict, Verdict, VmOutcome, VmRow,
    still_attached,
};

/// Names that a line shows before it counts the rest.
const NAMES: usize = 8;

/// What the summary is made of.
#[derive(Debug, Clone, Copy)]
pub struct Summary<'a> {
    /// Results, in the order in which the nodes ended.
    pub nodes: &'a [NodeReport],
    /// Time that each node might take.
    pub timeout: Duration,
    /// False where KubeVirt is known to have no call that takes an evacuation mark off.
    pub unmarks: bool,
    /// Columns of the terminal; without it nothing is wrapped.
    pub width: Option<usize>,
}

/// The summary as lines; none without results.
pub fn summary(s: &Summary<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for node in s.nodes {
        lines.push(Line::new());
        lines.push(verdict_line(node, s.timeout));
        // Rows of a node that had no turn say what was to happen, not what happened.
        let began = !matches!(node.verdict, Verdict::Refused | Verdict::NotStarted);
        if began {
            lines.extend(left(node, s.width));
        }
        lines.extend(node.undo.iter().flat_map(taken_back));
        for rest in [Rest::GoesOn, Rest::Left, Rest::MayClear, Rest::CameBack, Rest::Stuck, Rest::Refused] {
            if began || (node.verdict == Verdict::Refused && rest.refuses(node)) {
                lines.extend(remaining(node, rest, s.width));
            }
        }
    }
    lines.extend(next(s));
    lines
}

/// What can be said of a row that did not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// It was set in motion and ends by itself.
    GoesOn,
    /// Its evacuation was cancelled, and it stays where it is.
    Left,
    /// Waiting, or a second run, may clear it.
    MayClear,
    /// A successor of it is on the node.
    CameBack,
    /// A human must act.
    Stuck,
    /// A flag or consent is missing.
    Refused,
}

impl Rest {
    fn of_vm(node: &NodeReport, row: &VmRow) -> Option<Self> {
        let outside = matches!(
            row.cause,
            Some(Cause::ExternalOwner | Cause::MigrationMissing | Cause::MigrationFailed | Cause::NoMigrationTarget)
        );
        let moving = (row.marked && !outside) || row.cause.is_some_and(ends_by_itself);
        let left = |undo: &UndoReport| {
            undo.vms.iter().any(|u| u.outcome == UndoOutcome::Cancels && Some(&row.vmi_uid) == u.vmi_uid.as_ref())
        };
        match row.outcome {
            VmOutcome::Pending if node.undo.as_ref().is_some_and(left) => Some(Self::Left),
            VmOutcome::Blocks if row.waiting_helps != Some(true) => Some(Self::Stuck),
            VmOutcome::Waits | VmOutcome::Pending if moving => Some(Self::GoesOn),
            VmOutcome::Blocks | VmOutcome::Waits | VmOutcome::Pending => Some(Self::MayClear),
            // In a result these words mean that it happened, whatever had been needed for it.
            VmOutcome::Restarts | VmOutcome::Returns | VmOutcome::StaysOff | VmOutcome::DownUntilNode
                if node.verdict == Verdict::Refused && !row.needs.is_empty() =>
            {
                Some(Self::Refused)
            }
            VmOutcome::Migrates
            | VmOutcome::Restarts
            | VmOutcome::Returns
            | VmOutcome::StaysOff
            | VmOutcome::DownUntilNode
            | VmOutcome::Replaced
            | VmOutcome::Gone
            | VmOutcome::Lost
            | VmOutcome::Down => None,
        }
    }

    fn of_pod(row: &PodRow) -> Option<Self> {
        match row.outcome {
            PodOutcome::Refused => Some(Self::Refused),
            PodOutcome::Returned => Some(Self::CameBack),
            PodOutcome::Blocks if row.waiting_helps != Some(true) => Some(Self::Stuck),
            PodOutcome::Waits | PodOutcome::Pending
                if row.cause.is_some_and(ends_by_itself) && row.waiting_helps != Some(false) =>
            {
                Some(Self::GoesOn)
            }
            PodOutcome::Blocks | PodOutcome::Waits | PodOutcome::Pending => Some(Self::MayClear),
            PodOutcome::Evicts
            | PodOutcome::Stays
            | PodOutcome::NotSelected
            | PodOutcome::Skipped
            | PodOutcome::Gone => None,
        }
    }

    /// True for what can keep a run from being begun.
    fn refuses(self, node: &NodeReport) -> bool {
        match self {
            Self::Stuck | Self::Refused => true,
            Self::MayClear => node.exit_code == ExitCode::Timeout.code(),
            Self::GoesOn | Self::Left | Self::CameBack => false,
        }
    }

    /// `vms` is whether there are any among them.
    fn heading(self, vms: bool) -> &'static str {
        match self {
            Self::GoesOn if vms => "Still stopping or migrating (goes on by itself):",
            Self::GoesOn => "Still stopping (goes on by itself):",
            Self::Left => "Left on the node (their evacuation was cancelled):",
            Self::MayClear => "Still on the node (waiting or a second run may clear it):",
            Self::CameBack => "Came back to the node:",
            Self::Stuck => "Blocked (waiting will not clear it):",
            Self::Refused => "Refused (a flag or consent is missing):",
        }
    }
}

/// True for what was accepted and only takes its time.
pub(super) fn ends_by_itself(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::VmEvacuating
            | Cause::MigrationQueued
            | Cause::VmMigrationTarget
            | Cause::HotplugCompanion
            | Cause::NamespaceTerminating
            | Cause::Stopping
    )
}

/// `n1 not drained: blocked, after 3m 04s; it stays cordoned`.
pub fn verdict_line(node: &NodeReport, timeout: Duration) -> Line {
    let took = duration(Duration::try_from_secs_f64(node.elapsed_seconds).unwrap_or_default());
    let (label, words) = match node.verdict {
        Verdict::Drained | Verdict::Clear if node.exit_code == ExitCode::VmDown.code() => {
            (Label::Caution, format!("drained in {took}, but not every VM runs again"))
        }
        Verdict::Drained | Verdict::Clear => (Label::Good, format!("drained in {took}")),
        Verdict::Blocked => (Label::Bad, format!("not drained: blocked, after {took}")),
        Verdict::Refused => (Label::Bad, "not drained: refused before anything changed".to_owned()),
        Verdict::Timeout if too_slow(node) > 0 => {
            let vms = plural(too_slow(node), "VM", "VMs");
            (
                Label::Bad,
                format!(
                    "not drained: --timeout={} is too short for {vms} to shut down",
                    span(timeout).replace(' ', "")
                ),
            )
        }
        Verdict::Timeout => (Label::Bad, format!("not drained: timeout after {took}")),
        Verdict::Interrupted => (Label::Bad, format!("not drained: interrupted after {took}")),
        Verdict::Failed if node.exit_code == ExitCode::Api.code() => {
            let words =
                format!("not drained: lost contact with the API server after {took}, this is the last known state");
            (Label::Bad, words)
        }
        Verdict::Failed => (Label::Bad, format!("not drained: failed after {took}")),
        Verdict::NotStarted => (Label::Caution, "not started".to_owned()),
        Verdict::Restarted => (Label::Good, format!("VMs restarted in {took}")),
    };
    let left_out = node.pods.iter().filter(|p| p.outcome == PodOutcome::NotSelected).count();
    let mut rest = String::new();
    if left_out > 0 {
        let pods = plural(left_out, "other pod", "other pods");
        let _ = write!(rest, "; {pods} {}; the node is not empty", agree(left_out, "remains", "remain"));
    }
    if node.vanished {
        rest.push_str("; its Node object is gone");
    } else if !is_drained(node) {
        rest.push_str(match (node.cordoned_now, node.cordoned_before) {
            (true, true) => "; it is cordoned, as it was before",
            (true, false) => "; it stays cordoned",
            (false, _) => "; it is not cordoned",
        });
    }
    Line::new().with(Label::Heading, format!("{} ", node.name)).with(label, words).with(Label::Plain, rest)
}

/// VMs for which nothing was sent since they may take longer than the time left, where nothing else remains.
fn too_slow(node: &NodeReport) -> usize {
    let left = |v: &&VmRow| matches!(v.outcome, VmOutcome::Pending | VmOutcome::Waits);
    let slow = |v: &VmRow| v.cause == Some(Cause::GraceTooLong);
    let pods = node.pods.iter().any(|p| matches!(p.outcome, PodOutcome::Pending | PodOutcome::Waits));
    let others = pods || node.vms.iter().filter(left).any(|v| !slow(v));
    if others { 0 } else { node.vms.iter().filter(left).count() }
}

fn is_drained(node: &NodeReport) -> bool {
    matches!(node.verdict, Verdict::Drained | Verdict::Clear)
}

/// What left the node, and where it runs now.
fn left(node: &NodeReport, width: Option<usize>) -> Vec<Line> {
    let mut lines = Vec::new();
    let bad_ends = [
        (VmOutcome::Down, "should run again and does not:", "should run again and do not:"),
        (VmOutcome::Lost, "is lost with its node:", "are lost with their node:"),
    ];
    for (outcome, one, many) in bad_ends {
        let rows: Vec<&VmRow> = node.vms.iter().filter(|v| v.outcome == outcome).collect();
        if !rows.is_empty() {
            let head = format!("{} {}", plural(rows.len(), "VM", "VMs"), agree(rows.len(), one, many));
            lines.push(Line::plain("  ").with(Label::Bad, head));
            lines.extend(groups::vms(rows).iter().flat_map(|g| g.entry(4, width)));
        }
    }
    let kinds = [
        (VmOutcome::Migrates, Mark::Goes, "migrated"),
        (VmOutcome::Restarts, Mark::Goes, "restarted"),
        (VmOutcome::Returns, Mark::Goes, "shut down and running again"),
        (VmOutcome::Replaced, Mark::Goes, "replaced by the controller that owns it"),
        (VmOutcome::StaysOff, Mark::Down, "shut down and off"),
        (VmOutcome::DownUntilNode, Mark::Down, "down until the node is back"),
        (VmOutcome::Gone, Mark::Goes, "deleted by somebody else"),
    ];
    for (outcome, mark, words) in kinds {
        let places: Vec<String> = node.vms.iter().filter(|v| v.outcome == outcome).map(place).collect();
        if !places.is_empty() {
            let head = Line::plain("  ").and(Line::marked(mark));
            let count = plural(places.len(), "VM", "VMs");
            lines.extend(listed(head, &format!("{count} {words}: "), &places, width));
        }
    }
    lines.extend(pods_left(node));
    let bound = |p: &&PodRow| p.outcome == PodOutcome::Evicts && p.cause == Some(Cause::BoundToNode);
    let bound: Vec<String> = node.pods.iter().filter(bound).map(PodRow::display_name).collect();
    if !bound.is_empty() {
        let head = Line::plain("  ").and(Line::marked(Mark::Down));
        let what = format!("what replaces {}", plural(bound.len(), "pod", "pods"));
        lines.extend(listed(head, &format!("{what} stays Pending, no other node can take it: "), &bound, width));
    }
    let skipped = node.pods.iter().filter(|p| p.outcome == PodOutcome::Skipped);
    lines.extend(groups::pods(skipped).iter().flat_map(|g| g.sentence(2, width)));
    if !node.attached_volumes.is_empty() {
        let text = still_attached(&node.attached_volumes);
        lines.extend(reason_row(Line::plain("  ").and(Line::marked(Mark::Down)), &text, None, width));
    }
    lines
}

/// `12 pods evicted; 3 stay (2 DaemonSet, 1 static)`.
fn pods_left(node: &NodeReport) -> Option<Line> {
    let count = |outcome: PodOutcome| node.pods.iter().filter(|p| p.outcome == outcome).count();
    let (evicted, gone) = (count(PodOutcome::Evicts), count(PodOutcome::Gone));
    let mut parts = Vec::new();
    if evicted > 0 {
        parts.push(format!("{} gone", plural(evicted, "pod", "pods")));
    }
    if gone > 0 {
        parts.push(format!(
            "{} removed by others",
            if evicted > 0 { gone.to_string() } else { plural(gone, "pod", "pods") }
        ));
    }
    let left = !parts.is_empty();
    parts.extend(groups::staying(&node.pods, !left));
    let mark = if left { Line::marked(Mark::Goes) } else { Line::plain("  ") };
    (!parts.is_empty()).then(|| Line::plain("  ").and(mark).with(Label::Plain, parts.join("; ")))
}

/// A VM and the node on which it runs now.
pub(super) fn place(row: &VmRow) -> String {
    match &row.node_after {
        Some(node) => {
            // Who restarted it for a new strategy wants to see that it has it.
            let kept = row.stale == Some(true) && row.cause != Some(Cause::StrategyMismatch);
            let promised = row.strategy_fresh.as_ref().filter(|_| kept && row.outcome == VmOutcome::Restarts);
            let with = promised.map_or_else(String::new, |strategy| format!(" ({strategy})"));
            format!("{} → {node}{with}", row.display_name())
        }
        None => row.display_name(),
    }
}

/// A head and a list, in lines that break between its members only.
pub(super) fn listed(mark: Line, head: &str, places: &[String], width: Option<usize>) -> Vec<Line> {
    let list = names(places, NAMES);
    let flat = mark.clone().with(Label::Plain, head).with(Label::Plain, &list);
    let Some(width) = width.filter(|w| flat.width() > *w) else { return vec![flat] };
    let under = pack(list.split_inclusive(", ").map(str::trim_end), width.saturating_sub(6));
    let under = under.into_iter().map(|text| Line::plain("      ").with(Label::Plain, text));
    std::iter::once(mark.with(Label::Plain, head)).chain(under).collect()
}

/// The rows that remain in one way, grouped by their reason.
fn remaining(node: &NodeReport, rest: Rest, width: Option<usize>) -> Vec<Line> {
    let vms = groups::vms(node.vms.iter().filter(|v| Rest::of_vm(node, v) == Some(rest)));
    let pods = node.pods.iter().filter(|p| Rest::of_pod(p) == Some(rest));
    let heading = rest.heading(!vms.is_empty());
    let groups: Vec<groups::Group> = vms.into_iter().chain(groups::pods(pods)).collect();
    if groups.is_empty() {
        return Vec::new();
    }
    let head = Line::plain("  ").with(Label::Heading, heading);
    std::iter::once(head).chain(groups.iter().flat_map(|g| g.entry(4, width))).collect()
}

/// A command and when to type it.
pub(super) type Step = (String, String);

/// What to type next.
fn next(s: &Summary<'_>) -> Vec<Line> {
    let began: Vec<&NodeReport> = s.nodes.iter().filter(|n| n.verdict != Verdict::Refused).collect();
    let (mut steps, notes) = starts(&began);
    for node in began.iter().filter(|n| n.cordoned_now && is_drained(n)) {
        let down = node.vms.iter().filter(|v| v.outcome == VmOutcome::DownUntilNode);
        let down: Vec<String> = down.map(VmRow::display_name).collect();
        let back = if down.is_empty() { String::new() } else { format!(", then {} can run again", names(&down, 3)) };
        steps.push((format!("kubectl uncordon {}", node.name), format!("when the maintenance is done{back}")));
    }
    // Of a node that does not exist any more nothing is left to drain or to undo.
    let undone: Vec<&NodeReport> = began.into_iter().filter(|n| !is_drained(n) && !n.vanished).collect();
    if !undone.is_empty() {
        let stuck = stuck_needs(&undone);
        let after = if stuck.iter().any(|needs| needs.is_empty()) { ", once the above is done" } else { "" };
        // Its flags are not known here, and without them it would be another command.
        let cut =
            |n: &NodeReport| n.verdict == Verdict::Blocked && n.vms.iter().any(|v| v.outcome == VmOutcome::Pending);
        let timeout = undone.iter().any(|n| n.verdict == Verdict::Timeout || cut(n));
        let longer = if timeout { format!(", with a --timeout above {}", span(s.timeout)) } else { String::new() };
        let mut flags: Vec<&str> = stuck.into_iter().flatten().copied().collect();
        flags.sort_unstable();
        flags.dedup();
        let again = match flags.as_slice() {
            [] => "the same command again".to_owned(),
            flags => format!("the same command with {}", flags.join(" ")),
        };
        let nothing_left = undone.iter().all(|n| n.undo.as_ref().is_some_and(|u| u.verdict == UndoVerdict::Undone));
        let had_turn = undone.iter().any(|n| n.verdict != Verdict::NotStarted);
        let resumes = if nothing_left || !had_turn { "" } else { "; it resumes what has begun" };
        steps.push((again, format!("to go on{longer}{after}{resumes}")));
        steps.extend(give_up(&undone, s.unmarks));
    }
    steps_lines(steps, &notes, s.width)
}

/// What to type next, in aligned columns, under its heading; nothing where there is nothing to do.
pub(super) fn steps_lines(steps: Vec<Step>, notes: &[String], width: Option<usize>) -> Vec<Line> {
    let mut lines = Vec::new();
    if !steps.is_empty() || !notes.is_empty() {
        lines.extend([Line::new(), Line::new().with(Label::Heading, "Next:")]);
    }
    let widest = steps.iter().map(|(command, _)| Line::plain(command).width()).max().unwrap_or(0);
    for (command, when) in steps {
        let command = Line::new().with(Label::Remedy, command).padded(widest + 2);
        lines.extend(reason_row(Line::plain("  ").and(command), &when, None, width));
    }
    lines.extend(notes.iter().flat_map(|note| reason_row(Line::plain("  "), note, None, width)));
    lines
}

/// A command for each VM that stays off, and a note for each that no command can start.
pub(super) fn starts(nodes: &[&NodeReport]) -> (Vec<Step>, Vec<String>) {
    let began = nodes.iter().filter(|n| n.verdict != Verdict::NotStarted);
    let off = began.flat_map(|n| &n.vms).filter(|v| v.outcome == VmOutcome::StaysOff);
    let (startable, alone): (Vec<&VmRow>, Vec<&VmRow>) = off.partition(|v| has_vm(v));
    // Not every run strategy takes a start request: the row knows what does bring it back.
    let start = |v: &&VmRow| {
        let own = v.remedy.clone().filter(|remedy| !remedy.contains('`'));
        let start = own.unwrap_or_else(|| format!("virtctl start {} -n {}", v.name, v.namespace));
        (start, "it stays off until then".to_owned())
    };
    let note = |v: &&VmRow| format!("{} has no VirtualMachine that could start it: create it again.", v.display_name());
    (startable.iter().map(start).collect(), alone.iter().map(note).collect())
}

/// How to give up on nodes that are not drained. The command finds out by itself whose a cordon is.
fn give_up(undone: &[&NodeReport], unmarks: bool) -> Option<Step> {
    let is_marked = |n: &NodeReport| n.vms.iter().any(|v| v.marked);
    // What an undo in this run could not do, another cannot either.
    let in_vain = |n: &NodeReport| n.undo.as_ref().is_some_and(|u| u.verdict == UndoVerdict::Blocked);
    let nodes = node_names_of(undone, |n| (n.cordoned_now || is_marked(n)) && !in_vain(n))?;
    if !unmarks && undone.iter().any(|n| is_marked(n)) {
        let why = "to give up, once the VMs that are marked have moved or were restarted: nothing stops their evacuation \
                   before KubeVirt 1.7";
        return Some((format!("kubectl uncordon {nodes}"), why.to_owned()));
    }
    let why = match (undone.iter().any(|n| is_marked(n)), undone.iter().any(|n| n.cordoned_before && n.cordoned_now)) {
        (true, false) => "to give up: cancels evacuations (an uncordon would not), lifts the cordon",
        (true, true) => {
            "to give up: cancels evacuations (an uncordon would not), lifts the cordon if safe-drain set it"
        }
        (false, false) => "to give up: lifts the cordon",
        (false, true) => "to give up: lifts the cordon if safe-drain set it",
    };
    Some((format!("kubectl safe-drain cancel {nodes}"), why.to_owned()))
}

/// The flags that each row needs that only a human can clear; none where no flag does it.
fn stuck_needs<'a>(nodes: &[&'a NodeReport]) -> Vec<&'a [&'static str]> {
    let vms = |n: &&'a NodeReport| {
        let node: &'a NodeReport = n;
        node.vms.iter().filter(move |v| Rest::of_vm(node, v) == Some(Rest::Stuck)).map(|v| v.needs.as_slice())
    };
    let pods = |n: &&'a NodeReport| {
        let node: &'a NodeReport = n;
        node.pods.iter().filter(|p| Rest::of_pod(p) == Some(Rest::Stuck)).map(|p| p.needs.as_slice())
    };
    nodes.iter().flat_map(vms).chain(nodes.iter().flat_map(pods)).collect()
}

fn node_names_of(nodes: &[&NodeReport], wanted: impl Fn(&NodeReport) -> bool) -> Option<String> {
    let names: Vec<&str> = nodes.iter().filter(|n| wanted(n)).map(|n| n.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(" "))
}
