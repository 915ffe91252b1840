//! Restarts outside a drain, as people read of them: plan, preview and summary. The VMs of all nodes are told together. Pure.

use std::fmt::Write as _;
use std::time::Duration;

use super::groups;
use super::preview::{Preview, server_words, warnings, with_flags};
use super::state::with_noun;
use super::style::{Label, Line, Mark};
use super::summary::{Step, Summary, ends_by_itself, listed, place, starts, steps_lines};
use super::table::vm_table;
use super::text::{agree, duration, names, plural, reason_row, span};
use super::words::vm_on_restart;
use crate::exit::ExitCode;
use crate::outcome::{Cause, NodeReport, Verdict, VmOutcome, VmRow};

/// Names that a warning shows before it counts the rest.
const NAMES: usize = 3;

/// The plan in a line: `plan: 3 VMs are restarted, 1 is not`; nothing where there is nothing to do.
pub fn plan_words(nodes: &[NodeReport]) -> Option<String> {
    let kinds = [
        (VmOutcome::Restarts, "is restarted", "are restarted"),
        (VmOutcome::Returns, "is being restarted already", "are being restarted already"),
        (VmOutcome::DownUntilNode, "is restarted and stays down", "are restarted and stay down"),
        (VmOutcome::StaysOff, "is being stopped", "are being stopped"),
        (VmOutcome::Waits, "waits", "wait"),
        (VmOutcome::Blocks, "is not restarted", "are not restarted"),
    ];
    let counts = kinds.map(|(outcome, one, many)| {
        let n = rows(nodes, outcome).count();
        (n, agree(n, one, many))
    });
    let words = with_noun(counts, "VM", "VMs").join(", ");
    (!words.is_empty()).then(|| format!("plan: {words}"))
}

/// Warnings that say the same of several VMs, each text once: `a, b and 4 more: no guest agent`.
pub fn folded<'a>(warnings: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let mut texts: Vec<(&str, Vec<&str>)> = Vec::new();
    for warning in warnings {
        let (name, text) = warning.split_once(": ").unwrap_or(("", warning));
        match texts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(name),
            None => texts.push((text, vec![name])),
        }
    }
    let line = |(text, vms): (&str, Vec<&str>)| match vms.as_slice() {
        [""] => text.to_owned(),
        vms => format!("{}: {text}", names(vms, NAMES)),
    };
    texts.into_iter().map(line).collect()
}

fn rows(nodes: &[NodeReport], outcome: VmOutcome) -> impl Iterator<Item = &VmRow> {
    nodes.iter().flat_map(|n| &n.vms).filter(move |v| v.outcome == outcome)
}

/// The preview as lines. `scope` says whose VMs they are.
pub fn preview(scope: &str, p: &Preview<'_>) -> Vec<Line> {
    let head = format!("Preview of restarting the stale VMs in {scope}");
    let mut lines = vec![Line::new().with(Label::Heading, head).with(Label::Plain, " (nothing was changed)")];
    lines.extend(reason_row(Line::new(), &server_words(p.server), None, p.width));
    lines.extend(p.notes.iter().flat_map(|note| reason_row(Line::new(), note, None, p.width)));
    let vms: Vec<VmRow> = p.nodes.iter().flat_map(|n| n.vms.iter().cloned()).collect();
    if !vms.is_empty() {
        lines.push(Line::new());
        lines.extend(vm_table(&vms, ("ON RESTART", vm_on_restart), p.width));
    }
    lines.extend(warnings(&folded(p.nodes.iter().flat_map(|n| &n.warnings).chain(p.warnings)), p.width));
    lines.push(Line::new());
    let blocked: Vec<&[&str]> = vms.iter().filter(|v| v.is_blocked()).map(|v| v.needs.as_slice()).collect();
    if !blocked.is_empty() {
        let mut text = format!("{}.", plural(blocked.len(), "VM", "VMs"));
        for (flags, left) in with_flags(&blocked) {
            let left = if left == 0 { "none".to_owned() } else { left.to_string() };
            let _ = write!(text, " With {}: {left}.", flags.join(" "));
        }
        lines.extend(reason_row(Line::new().with(Label::Bad, "Not restarted: "), &text, None, p.width));
    }
    let (label, meaning) = match p.exit_code {
        0 => (Label::Good, String::new()),
        code => (Label::Bad, format!("({})", ExitCode::from_code(code).meaning())),
    };
    let code = Line::plain("Exit code of the command: ").with(label, format!("{} ", p.exit_code));
    lines.extend(reason_row(code, &meaning, None, p.width));
    lines
}

/// The summary as lines; none without results.
pub fn summary(s: &Summary<'_>) -> Vec<Line> {
    if s.nodes.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![Line::new(), verdict_line(s)];
    let began: Vec<NodeReport> =
        s.nodes.iter().filter(|n| !matches!(n.verdict, Verdict::Refused | Verdict::NotStarted)).cloned().collect();
    lines.extend(ended(&began, s.width));
    for (heading, rows) in remaining(s.nodes) {
        if !rows.is_empty() {
            lines.push(Line::plain("  ").with(Label::Heading, heading));
            lines.extend(groups::vms(rows).iter().flat_map(|g| g.entry(4, s.width)));
        }
    }
    lines.extend(next(s, &began));
    lines
}

/// `4 of 5 VMs restarted, after 3m 04s; waiting will not clear the rest`.
fn verdict_line(s: &Summary<'_>) -> Line {
    let all: usize = s.nodes.iter().map(|n| n.vms.len()).sum();
    let again = rows(s.nodes, VmOutcome::Restarts).count();
    let took = s.nodes.iter().map(|n| n.elapsed_seconds).fold(0.0, f64::max);
    let took = duration(Duration::try_from_secs_f64(took).unwrap_or_default());
    let exit = ExitCode::of_all(s.nodes.iter().map(|n| ExitCode::from_code(n.exit_code)));
    let count =
        if again == all { plural(all, "VM", "VMs") } else { format!("{again} of {}", plural(all, "VM", "VMs")) };
    let (label, words) = match exit {
        ExitCode::Done => (Label::Good, format!("restarted in {took}")),
        ExitCode::VmDown => (Label::Caution, format!("restarted in {took}; not every VM runs again")),
        ExitCode::Blocked if rows(s.nodes, VmOutcome::Blocks).next().is_none() => {
            (Label::Bad, format!("restarted in {took}; not every one has the strategy that was expected"))
        }
        ExitCode::Blocked => (Label::Bad, format!("restarted, after {took}; waiting will not clear the rest")),
        ExitCode::Timeout => (Label::Bad, format!("restarted; timeout after {took}")),
        ExitCode::Refused => (Label::Bad, "restarted: refused before anything changed".to_owned()),
        ExitCode::Hangup | ExitCode::Interrupted | ExitCode::Terminated => {
            (Label::Bad, format!("restarted; interrupted after {took}"))
        }
        ExitCode::Api => {
            let lost = "lost contact with the API server, this is the last known state";
            (Label::Bad, format!("restarted, after {took}; {lost}"))
        }
        ExitCode::Failed | ExitCode::Usage => (Label::Bad, format!("restarted; failed after {took}")),
    };
    Line::new().with(Label::Heading, format!("{count} ")).with(label, words)
}

/// What reached an end, and where it runs now.
fn ended(nodes: &[NodeReport], width: Option<usize>) -> Vec<Line> {
    let mut lines = Vec::new();
    let down: Vec<&VmRow> = rows(nodes, VmOutcome::Down).collect();
    if !down.is_empty() {
        let words = agree(down.len(), "should run again and does not:", "should run again and do not:");
        let head = format!("{} {words}", plural(down.len(), "VM", "VMs"));
        lines.push(Line::plain("  ").with(Label::Bad, head));
        lines.extend(groups::vms(down).iter().flat_map(|g| g.entry(4, width)));
    }
    let again: Vec<String> = rows(nodes, VmOutcome::Restarts).map(place).collect();
    if !again.is_empty() {
        // The line above has counted them.
        let head = Line::plain("  ").and(Line::marked(Mark::Goes));
        lines.extend(listed(head, agree(again.len(), "runs again: ", "run again: "), &again, width));
    }
    let kinds = [
        (VmOutcome::Returns, Mark::Goes, "restarted by somebody else"),
        (VmOutcome::Migrates, Mark::Goes, "migrated by somebody else, and not restarted"),
        (VmOutcome::DownUntilNode, Mark::Down, "restarted, and down until a node takes it"),
        (VmOutcome::StaysOff, Mark::Down, "stopped by somebody else, and off"),
        (VmOutcome::Gone, Mark::Goes, "deleted or stopped by somebody else"),
    ];
    for (outcome, mark, words) in kinds {
        let places: Vec<String> = rows(nodes, outcome).map(place).collect();
        if !places.is_empty() {
            let head = Line::plain("  ").and(Line::marked(mark));
            let count = plural(places.len(), "VM", "VMs");
            lines.extend(listed(head, &format!("{count} {words}: "), &places, width));
        }
    }
    let other: Vec<&VmRow> =
        rows(nodes, VmOutcome::Restarts).filter(|v| v.cause == Some(Cause::StrategyMismatch)).collect();
    if !other.is_empty() {
        let head = "Not with the strategy that was expected (waiting will not change it):";
        lines.push(Line::plain("  ").with(Label::Heading, head));
        lines.extend(groups::vms(other).iter().flat_map(|g| g.entry(4, width)));
    }
    lines
}

/// What did not reach its end, by what can be done about it.
fn remaining(nodes: &[NodeReport]) -> [(&'static str, Vec<&VmRow>); 4] {
    let refused = |v: &&VmRow| matches!(v.cause, Some(Cause::ConsentMissing | Cause::LocalData));
    let moves = |v: &&VmRow| v.cause.is_some_and(ends_by_itself);
    let open = || rows(nodes, VmOutcome::Pending).chain(rows(nodes, VmOutcome::Waits));
    let blocked = || rows(nodes, VmOutcome::Blocks);
    [
        ("Still stopping or starting (goes on by itself):", open().filter(moves).collect()),
        ("Not restarted (a second run may do it):", open().filter(|v| !moves(v)).collect()),
        ("Not restarted (waiting will not clear it):", blocked().filter(|v| !refused(v)).collect()),
        ("Not restarted (a flag or consent is missing):", blocked().filter(refused).collect()),
    ]
}

/// What to type next.
fn next(s: &Summary<'_>, began: &[NodeReport]) -> Vec<Line> {
    let (mut steps, notes): (Vec<Step>, Vec<String>) = starts(&began.iter().collect::<Vec<_>>());
    let open = rows(s.nodes, VmOutcome::Pending).next().is_some();
    let blocked = rows(s.nodes, VmOutcome::Blocks).next().is_some();
    if open || blocked {
        let timeout = s.nodes.iter().any(|n| n.exit_code == ExitCode::Timeout.code());
        let longer = if timeout { format!(", with a --timeout above {}", span(s.timeout)) } else { String::new() };
        let after = if blocked { ", once the above is done" } else { "" };
        steps.push(("the same command again".to_owned(), format!("to restart the rest{longer}{after}")));
    }
    steps_lines(steps, &notes, s.width)
}
