//! What people read of `cancel`: kubectl's lines on stdout, progress and a summary on stderr. The fold is pure.

use std::time::Duration;

use super::human::{Output, Stdout};
use super::lines;
use super::preview::server_words;
use super::style::{Label, Line, Mark};
use super::text::{agree, duration, names, plural, reason_row, stamp};
use super::words::stop_reason;
use super::{Fold, Written};
use crate::event::{DrainEvent, EventKind};
use crate::exit::ExitCode;
use crate::outcome::{CordonOutcome, UndoOutcome, UndoReport, UndoRow, UndoVerdict};

/// Names that a line shows before it counts the rest.
const NAMES: usize = 8;

/// How it is told.
#[derive(Debug, Clone, Copy, Default)]
pub struct UndoOptions {
    /// What stdout is for; a preview has lines there, too.
    pub stdout: Stdout,
    /// What stands behind each line of a preview, as kubectl does it: `(dry run)`, `(server dry run)`.
    pub dry_run: Option<&'static str>,
    /// True for `--quiet`.
    pub quiet: bool,
    /// Columns of stderr, where it is a terminal.
    pub width: Option<usize>,
}

/// The fold.
#[derive(Debug)]
pub struct UndoHuman {
    options: UndoOptions,
    results: Vec<UndoReport>,
}

/// Reporter that writes what the fold gives.
pub type UndoPlain = Written<UndoHuman>;

impl Fold for UndoHuman {
    fn event(&mut self, event: &DrainEvent) -> Output {
        let mut output = Output::default();
        let now = Duration::from_millis(event.elapsed_ms);
        let lines = self.facts(&event.kind);
        match self.options.stdout {
            Stdout::Lines | Stdout::Preview => output.stdout.extend(lines),
            Stdout::Taken => output.stderr.extend(self.notices(now, lines)),
        }
        if let EventKind::Connected { server, nodes, .. } = &event.kind {
            let doing = if self.options.dry_run.is_some() { "previewing the undoing of" } else { "undoing" };
            let text = format!("{doing} the drain of {} · {}", names(nodes, 5), server_words(server));
            output.stderr.extend(self.notices(now, [Line::plain(text)]));
        } else if let EventKind::Noted { warning: false, text } = &event.kind {
            output.stderr.extend(self.notices(now, [Line::plain(text)]));
        } else if let EventKind::Noted { warning: true, text } = &event.kind {
            output.stderr.push(warning(text));
        } else if let EventKind::Stopped { reason } = &event.kind {
            output.stderr.push(warning(&format!("{}: nothing more is undone", stop_reason(*reason))));
        } else if let EventKind::UndoEnded { report } = &event.kind {
            self.results.push(report.clone());
        } else if let EventKind::Ended { exit_code, error, hints } = &event.kind {
            self.end(*exit_code, error.as_deref(), hints, &mut output);
        }
        output
    }
}

impl UndoHuman {
    /// A fold that has seen nothing.
    pub fn new(options: UndoOptions) -> Self {
        Self { options, results: Vec::new() }
    }

    fn notices(&self, now: Duration, lines: impl IntoIterator<Item = Line>) -> Vec<Line> {
        let dressed = |line| Line::new().with(Label::Faint, stamp(now)).with(Label::Plain, " ").and(line);
        lines.into_iter().filter(|_| !self.options.quiet).map(dressed).collect()
    }

    /// kubectl's lines, once per fact; in a preview those of the steps.
    fn facts(&self, kind: &EventKind) -> Vec<Line> {
        let suffixed = |line: Line| self.options.dry_run.map_or(line.clone(), |suffix| line.with(Label::Plain, suffix));
        let cancelled = |name: &str| suffixed(lines::evacuation_cancelled(name));
        let deleted = |name: &str| suffixed(lines::migration_deleted(name));
        let uncordoned = |node: &str| suffixed(lines::uncordoned(node));
        if let EventKind::EvacuationCancelled { vm, .. } = kind {
            vec![cancelled(&vm.name)]
        } else if let EventKind::MigrationDeleted { migration, .. } = kind {
            vec![deleted(&migration.name)]
        } else if let EventKind::NodeUncordoned { node } = kind {
            vec![uncordoned(node)]
        } else if let (EventKind::UndoEnded { report }, Some(_)) = (kind, self.options.dry_run) {
            let cancels = || report.vms.iter().filter(|row| row.outcome == UndoOutcome::Cancels);
            let marks = cancels().filter(|row| row.marked).map(|row| cancelled(&row.name));
            let migrations = cancels().flat_map(|row| &row.migrations).filter(|m| m.deletes && !m.finished);
            let cordon = (report.cordon == CordonOutcome::Lifts).then(|| uncordoned(&report.name));
            marks.chain(migrations.map(|m| deleted(&m.name))).chain(cordon).collect()
        } else {
            Vec::new()
        }
    }

    fn end(&self, exit_code: u8, error: Option<&str>, hints: &[String], output: &mut Output) {
        if !(self.options.quiet && exit_code == ExitCode::Done.code()) {
            let blank = (!self.results.is_empty()).then(Line::new);
            output.stderr.extend(blank);
            output.stderr.extend(self.results.iter().flat_map(|report| self.summary(report)));
            output.stderr.extend(self.next());
        }
        output.stderr.extend(error.map(|e| Line::new().with(Label::Bad, "error: ").with(Label::Plain, e)));
        let hint = |hint: &String| Line::new().with(Label::Heading, "hint: ").with(Label::Plain, hint);
        output.stderr.extend(hints.iter().map(hint));
    }

    /// How one node ended, and its VMs.
    fn summary(&self, report: &UndoReport) -> Vec<Line> {
        let head = Line::new().with(Label::Heading, format!("{} ", report.name));
        let (label, words) = verdict_words(report);
        let mut lines = vec![head.with(label, words).with(Label::Plain, cordon_words(report))];
        let of = |outcome| -> Vec<&UndoRow> { report.vms.iter().filter(|row| row.outcome == outcome).collect() };
        let preview = self.options.dry_run.is_some();
        let stays = |n| if preview { agree(n, "would stay", "would stay") } else { agree(n, "stays", "stay") };
        let done: [(UndoOutcome, &dyn Fn(usize) -> &'static str); 3] = [
            (UndoOutcome::Cancels, &stays),
            (UndoOutcome::Migrates, &|n| {
                agree(n, "had left before it could be stopped", "had left before they could be stopped")
            }),
            (UndoOutcome::Gone, &|n| agree(n, "was stopped or deleted meanwhile", "were stopped or deleted meanwhile")),
        ];
        for (outcome, words) in done {
            let rows: Vec<String> = of(outcome).into_iter().map(|row| place(row, &report.name)).collect();
            if !rows.is_empty() {
                let count = plural(rows.len(), "VM", "VMs");
                let text = format!("{count} {}: {}", words(rows.len()), names(&rows, NAMES));
                lines.push(Line::plain("  ").and(Line::marked(Mark::Goes)).with(Label::Plain, text));
            }
        }
        let rows = |outcome| remaining(report, outcome, self.options.width);
        lines.extend(rows(UndoOutcome::Pending).into_iter().chain(rows(UndoOutcome::Blocks)));
        lines
    }

    /// What to type next.
    fn next(&self) -> Vec<Line> {
        let mut steps = Vec::new();
        let again = |r: &&UndoReport| matches!(r.verdict, UndoVerdict::Timeout | UndoVerdict::Interrupted);
        if self.options.dry_run.is_none() && self.results.iter().any(|r| again(&r)) {
            steps.push(("the same command again".to_owned(), "to undo the rest".to_owned()));
        }
        for report in &self.results {
            // A cordon that waits for its VMs is not to be lifted by hand.
            let foreign = report.cordon == CordonOutcome::Stays
                && report.cordoned_by.as_deref() != Some(crate::facts::FIELD_MANAGER);
            if foreign {
                steps.push((format!("kubectl uncordon {}", report.name), "if you want the cordon off, too".to_owned()));
            }
        }
        let widest = steps.iter().map(|(command, _)| Line::plain(command).width()).max().unwrap_or(0);
        let mut lines = Vec::new();
        if !steps.is_empty() {
            lines.extend([Line::new(), Line::new().with(Label::Heading, "Next:")]);
        }
        for (command, when) in steps {
            let command = Line::new().with(Label::Remedy, command).padded(widest + 2);
            lines.extend(reason_row(Line::plain("  ").and(command), &when, None, self.options.width));
        }
        lines
    }
}

/// The VMs of an outcome that leaves something to undo, under a heading.
fn remaining(report: &UndoReport, outcome: UndoOutcome, width: Option<usize>) -> Vec<Line> {
    let (mark, heading) = match outcome {
        UndoOutcome::Pending => (Mark::Waits, "Not undone yet (the same command again may do it):"),
        UndoOutcome::Blocks => (Mark::Blocks, "Still being evacuated (waiting will not stop it):"),
        UndoOutcome::Cancels | UndoOutcome::Migrates | UndoOutcome::Gone => return Vec::new(),
    };
    let rows: Vec<&UndoRow> = report.vms.iter().filter(|row| row.outcome == outcome).collect();
    let mut lines: Vec<Line> = Vec::new();
    lines.extend((!rows.is_empty()).then(|| Line::plain("  ").with(Label::Heading, heading)));
    for row in rows {
        let name = format!("VM {}: ", row.display_name());
        let head = Line::plain("    ").and(Line::marked(mark)).with(Label::Plain, name);
        lines.extend(reason_row(head, &row.because, row.remedy.as_deref(), width));
    }
    lines
}

/// What was taken back of a drain that was aborted, and what becomes of the cordon. VMs that could not be had back say so in
/// their rows.
pub fn taken_back(report: &UndoReport) -> Vec<Line> {
    let cancelled = report.vms.iter().filter(|row| row.outcome == UndoOutcome::Cancels).count();
    let mut parts = Vec::new();
    if cancelled > 0 {
        parts.push(format!("{} cancelled", plural(cancelled, "evacuation", "evacuations")));
    }
    if report.cordon == CordonOutcome::Lifts {
        parts.push("cordon lifted".to_owned());
    }
    let mut lines = Vec::new();
    if !parts.is_empty() {
        let text = format!("taken back: {}", parts.join(", "));
        lines.push(Line::plain("  ").and(Line::marked(Mark::Goes)).with(Label::Plain, text));
    }
    if let (CordonOutcome::Stays, Some(because)) = (report.cordon, &report.cordon_because) {
        let text = because.strip_prefix("the cordon stays, ").unwrap_or(because);
        let text = format!("the cordon stays: {text}");
        lines.push(Line::plain("  ").and(Line::marked(Mark::Waits)).with(Label::Plain, text));
    }
    lines
}

fn warning(text: &str) -> Line {
    Line::new().with(Label::Caution, "Warning: ").with(Label::Plain, text)
}

fn verdict_words(report: &UndoReport) -> (Label, String) {
    let took = duration(Duration::try_from_secs_f64(report.elapsed_seconds).unwrap_or_default());
    match report.verdict {
        UndoVerdict::Clear | UndoVerdict::Undone if report.is_nothing() => {
            (Label::Good, "has nothing to undo".to_owned())
        }
        UndoVerdict::Clear => (Label::Good, "can be undone".to_owned()),
        UndoVerdict::Undone => (Label::Good, format!("undone in {took}")),
        UndoVerdict::Blocked => (Label::Bad, "not undone: something goes on that waiting will not stop".to_owned()),
        UndoVerdict::Timeout => (Label::Bad, format!("not undone: gave up after {took}")),
        UndoVerdict::Interrupted => (Label::Bad, format!("not undone: interrupted after {took}")),
        UndoVerdict::Failed if report.exit_code == ExitCode::Api.code() => {
            let words = "not undone: lost contact with the API server, this is the last known state";
            (Label::Bad, words.to_owned())
        }
        UndoVerdict::Failed => (Label::Bad, format!("not undone: failed after {took}")),
    }
}

fn cordon_words(report: &UndoReport) -> String {
    match (report.cordon, &report.cordon_because) {
        (CordonOutcome::None, _) if report.uid.is_none() => "; the node does not exist any more".to_owned(),
        (CordonOutcome::None, _) => "; it is not cordoned".to_owned(),
        (CordonOutcome::Lifts, _) if report.verdict == UndoVerdict::Clear => "; the cordon would be lifted".to_owned(),
        (CordonOutcome::Lifts, _) => "; the cordon is lifted".to_owned(),
        (CordonOutcome::Stays, Some(because)) => format!("; it stays cordoned: {because}"),
        (CordonOutcome::Stays, None) => "; it stays cordoned".to_owned(),
    }
}

/// A VM, with the node on which it runs where that is another one.
fn place(row: &UndoRow, node: &str) -> String {
    match row.node.as_ref().filter(|now| *now != node) {
        Some(now) => format!("{} (on {now})", row.display_name()),
        None => row.display_name(),
    }
}
