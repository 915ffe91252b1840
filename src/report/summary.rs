//! The end of a run on stderr: how each node ended, what runs where now, what remains and why, what to type next. Pure.

use std::fmt::Write as _;
use std::time::Duration;

use super::groups;
use super::lines::has_vm;
use super::style::{Label, Line, Mark};
use super::text::{agree, duration, names, plural, reason_row};
use crate::event::StopReason;
use crate::outcome::{Cause, NodeReport, PodOutcome, PodRow, Verdict, VmOutcome, VmRow};

/// Names that a line shows before it counts the rest.
const NAMES: usize = 8;

/// What the summary is made of.
#[derive(Debug, Clone, Copy)]
pub struct Summary<'a> {
    /// Results, in the order in which the nodes ended.
    pub nodes: &'a [NodeReport],
    /// Why the run was stopped, where it was.
    pub stopped: Option<StopReason>,
    /// True if `kubectl safe-drain cancel` exists.
    pub cancel_command: bool,
    /// Columns of the terminal; without it nothing is wrapped.
    pub width: Option<usize>,
}

/// The summary as lines; none without results.
pub fn summary(s: &Summary<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for node in s.nodes {
        lines.push(Line::new());
        lines.push(verdict_line(node));
        lines.extend(left(node, s.width));
        for rest in [Rest::GoesOn, Rest::MayClear, Rest::Stuck] {
            lines.extend(remaining(node, rest, s.width));
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
    /// Waiting, or a second run, may clear it.
    MayClear,
    /// A human must act.
    Stuck,
}

impl Rest {
    fn of_vm(row: &VmRow) -> Option<Self> {
        let moving = row.marked || row.cause.is_some_and(ends_by_itself);
        match row.outcome {
            VmOutcome::Blocks if row.waiting_helps != Some(true) => Some(Self::Stuck),
            VmOutcome::Waits | VmOutcome::Pending if moving => Some(Self::GoesOn),
            VmOutcome::Blocks | VmOutcome::Waits | VmOutcome::Pending => Some(Self::MayClear),
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
            PodOutcome::Blocks | PodOutcome::Refused | PodOutcome::Returned if row.waiting_helps != Some(true) => {
                Some(Self::Stuck)
            }
            PodOutcome::Waits | PodOutcome::Pending if row.cause.is_some_and(ends_by_itself) => Some(Self::GoesOn),
            PodOutcome::Blocks
            | PodOutcome::Refused
            | PodOutcome::Returned
            | PodOutcome::Waits
            | PodOutcome::Pending => Some(Self::MayClear),
            PodOutcome::Evicts
            | PodOutcome::Stays
            | PodOutcome::NotSelected
            | PodOutcome::Skipped
            | PodOutcome::Gone => None,
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::GoesOn => "Still stopping or migrating (goes on by itself):",
            Self::MayClear => "Refused for now or not reached (waiting or a second run may clear it):",
            Self::Stuck => "Blocked (waiting will not clear it):",
        }
    }
}

/// True for what was accepted and only takes its time.
fn ends_by_itself(cause: Cause) -> bool {
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

/// `node n1: blocked after 3m 04s; it stays cordoned`.
fn verdict_line(node: &NodeReport) -> Line {
    let took = duration(Duration::try_from_secs_f64(node.elapsed_seconds).unwrap_or_default());
    let (label, words) = match node.verdict {
        Verdict::Drained | Verdict::Clear if node.exit_code == 5 => {
            (Label::Caution, format!("drained in {took}, but not every VM runs again"))
        }
        Verdict::Drained | Verdict::Clear => (Label::Good, format!("drained in {took}")),
        Verdict::Blocked => (Label::Bad, format!("not drained: blocked, after {took}")),
        Verdict::Refused => (Label::Bad, "not drained: refused before anything changed".to_owned()),
        Verdict::Timeout => (Label::Bad, format!("not drained: timeout after {took}")),
        Verdict::Interrupted => (Label::Bad, format!("not drained: interrupted after {took}")),
        Verdict::Failed => (Label::Bad, format!("not drained: failed after {took}")),
        Verdict::NotStarted => (Label::Caution, "not started".to_owned()),
    };
    let left_out = node.pods.iter().filter(|p| p.outcome == PodOutcome::NotSelected).count();
    let mut rest = String::new();
    if left_out > 0 {
        let pods = plural(left_out, "other pod", "other pods");
        let _ = write!(rest, "; {pods} {}; the node is not empty", agree(left_out, "remains", "remain"));
    }
    if !is_drained(node) {
        rest.push_str(match (node.cordoned_now, node.cordoned_before) {
            (true, true) => "; it is cordoned, as it was before",
            (true, false) => "; it stays cordoned",
            (false, _) => "; it is not cordoned",
        });
    }
    Line::new().with(Label::Heading, format!("node {} ", node.name)).with(label, words).with(Label::Plain, rest)
}

fn is_drained(node: &NodeReport) -> bool {
    matches!(node.verdict, Verdict::Drained | Verdict::Clear)
}

/// What left the node, and where it runs now.
fn left(node: &NodeReport, width: Option<usize>) -> Vec<Line> {
    let mut lines = Vec::new();
    for outcome in [VmOutcome::Down, VmOutcome::Lost] {
        let words = if outcome == VmOutcome::Down { "should run again and do not" } else { "are lost with the node" };
        let rows: Vec<&VmRow> = node.vms.iter().filter(|v| v.outcome == outcome).collect();
        if !rows.is_empty() {
            let head = format!("{}, that {words}:", plural(rows.len(), "VM", "VMs"));
            lines.push(Line::plain("  ").with(Label::Bad, head));
            lines.extend(groups::vms(rows).iter().flat_map(|g| g.lines(4, width)));
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
            lines.extend(listed(head, &format!("{count} {words}: "), &names(&places, NAMES), width));
        }
    }
    lines.extend(pods_left(node));
    let skipped = node.pods.iter().filter(|p| p.outcome == PodOutcome::Skipped);
    lines.extend(groups::pods(skipped).iter().flat_map(|g| g.lines(2, width)));
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
    parts.extend(groups::staying(&node.pods));
    let mark = if left { Line::marked(Mark::Goes) } else { Line::plain("  ") };
    (!parts.is_empty()).then(|| Line::plain("  ").and(mark).with(Label::Plain, parts.join("; ")))
}

/// A VM and the node on which it runs now.
fn place(row: &VmRow) -> String {
    match &row.node_after {
        Some(node) => format!("{} → {node}", row.display_name()),
        None => row.display_name(),
    }
}

/// A head and a list that wraps under it.
fn listed(mark: Line, head: &str, list: &str, width: Option<usize>) -> Vec<Line> {
    let flat = mark.clone().with(Label::Plain, head).with(Label::Plain, list);
    match width {
        Some(w) if flat.width() > w => std::iter::once(mark.with(Label::Plain, head))
            .chain(reason_row(Line::plain("      "), list, None, Some(w)))
            .collect(),
        _ => vec![flat],
    }
}

/// The rows that remain in one way, grouped by their reason.
fn remaining(node: &NodeReport, rest: Rest, width: Option<usize>) -> Vec<Line> {
    let vms = node.vms.iter().filter(|v| Rest::of_vm(v) == Some(rest));
    let pods = node.pods.iter().filter(|p| Rest::of_pod(p) == Some(rest));
    let groups: Vec<groups::Group> = groups::vms(vms).into_iter().chain(groups::pods(pods)).collect();
    if groups.is_empty() {
        return Vec::new();
    }
    let head = Line::plain("  ").with(Label::Heading, rest.heading());
    std::iter::once(head).chain(groups.iter().flat_map(|g| g.lines(4, width))).collect()
}

/// What to type next, in aligned columns.
fn next(s: &Summary<'_>) -> Vec<Line> {
    let mut steps: Vec<(String, String)> = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    let all = || s.nodes.iter().flat_map(|n| &n.vms);
    for row in all().filter(|v| v.outcome == VmOutcome::StaysOff) {
        if has_vm(row) {
            steps.push((
                format!("virtctl start {} -n {}", row.name, row.namespace),
                "it stays off until then".to_owned(),
            ));
        } else {
            notes.push(format!("{} has no VirtualMachine that could start it: create it again.", row.display_name()));
        }
    }
    for node in s.nodes.iter().filter(|n| n.cordoned_now && is_drained(n)) {
        let back: Vec<String> =
            node.vms.iter().filter(|v| v.outcome == VmOutcome::DownUntilNode).map(VmRow::display_name).collect();
        let back = if back.is_empty() { String::new() } else { format!("; {} can run again then", names(&back, 3)) };
        steps.push((format!("kubectl uncordon {}", node.name), format!("when the maintenance is done{back}")));
    }
    for node in s.nodes.iter().filter(|n| !is_drained(n) && n.verdict != Verdict::Refused) {
        let stuck = node.vms.iter().any(|v| Rest::of_vm(v) == Some(Rest::Stuck))
            || node.pods.iter().any(|p| Rest::of_pod(p) == Some(Rest::Stuck));
        let again = if stuck { "to go on, after what is said above" } else { "to go on: it resumes what has begun" };
        steps.push((format!("kubectl safe-drain {}", node.name), again.to_owned()));
        if !node.cordoned_now {
            continue;
        }
        if s.cancel_command {
            steps.push((format!("kubectl safe-drain cancel {}", node.name), "to give up".to_owned()));
            continue;
        }
        steps.push((format!("kubectl uncordon {}", node.name), "to give up".to_owned()));
        let marked: Vec<String> = node.vms.iter().filter(|v| v.marked).map(VmRow::display_name).collect();
        if !marked.is_empty() {
            let (is, them) = (agree(marked.len(), "stays", "stay"), agree(marked.len(), "it", "them"));
            notes.push(format!(
                "An uncordon does not stop migrations: {} {is} marked for evacuation and KubeVirt goes on migrating {them}.",
                names(&marked, NAMES)
            ));
        }
    }
    let mut lines = Vec::new();
    if !steps.is_empty() || !notes.is_empty() {
        lines.push(Line::new());
        lines.push(Line::new().with(Label::Heading, "Next:"));
    }
    let widest = steps.iter().map(|(command, _)| Line::plain(command).width()).max().unwrap_or(0);
    for (command, when) in steps {
        let command = Line::new().with(Label::Remedy, command).padded(widest + 2);
        lines.extend(reason_row(Line::plain("  ").and(command), &when, None, s.width));
    }
    lines.extend(notes.iter().flat_map(|note| reason_row(Line::plain("  "), note, None, s.width)));
    lines
}
