//! All that people read of a run, as one fold: events and ticks go in, lines for stdout and stderr come out. Pure.

use std::time::Duration;

use super::Task;
use super::lines::{LineOptions, StdoutLines};
use super::preview::{Preview, preview};
use super::progress::{Detail, Progress};
use super::restarts;
use super::state::State;
use super::style::{Label, Line};
use super::summary::{Summary, summary};
use crate::event::{Consent, DrainEvent, EventKind, ServerInfo};
use crate::exit::ExitCode;
use crate::facts::release;
use crate::outcome::{NodeReport, Verdict};

/// What stdout is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stdout {
    /// kubectl's lines.
    #[default]
    Lines,
    /// The preview table (`--dry-run`).
    Preview,
    /// Somebody else's: a document or the event stream. What would be a line there is said on stderr.
    Taken,
}

/// How a run is told.
#[derive(Debug, Clone, Default)]
pub struct HumanOptions {
    /// What it does.
    pub task: Task,
    /// What stdout is for.
    pub stdout: Stdout,
    /// How much stderr says.
    pub detail: Detail,
    /// True for `--dry-run`: a preview ends without a summary.
    pub dry_run: bool,
    /// What decides kubectl's lines.
    pub lines: LineOptions,
    /// Columns of stdout, where it is a terminal.
    pub stdout_width: Option<usize>,
    /// Columns of stderr, where it is a terminal.
    pub stderr_width: Option<usize>,
}

/// Lines for both streams.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// For stdout.
    pub stdout: Vec<Line>,
    /// For stderr.
    pub stderr: Vec<Line>,
}

impl Output {
    /// True where there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.stdout.is_empty() && self.stderr.is_empty()
    }
}

/// The fold.
#[derive(Debug)]
pub struct Human {
    options: HumanOptions,
    lines: StdoutLines,
    progress: Progress,
    state: State,
    server: ServerInfo,
    planned: Option<Vec<NodeReport>>,
    results: Vec<NodeReport>,
    warnings: Vec<String>,
    notes: Vec<String>,
    declined: bool,
}

impl Human {
    /// A fold that has seen nothing.
    pub fn new(options: HumanOptions) -> Self {
        Self {
            lines: StdoutLines::new(options.lines, options.task != Task::Drain),
            progress: Progress::new(options.task.clone(), options.detail, options.dry_run),
            state: State::new(options.task != Task::Drain),
            server: ServerInfo::default(),
            planned: None,
            results: Vec::new(),
            warnings: Vec::new(),
            notes: Vec::new(),
            declined: false,
            options,
        }
    }

    /// The state that a screen shows.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Takes an event in and says what is to be written.
    pub fn event(&mut self, event: &DrainEvent) -> Output {
        self.state.event(event);
        self.remember(&event.kind);
        let mut output = Output::default();
        let mut lines = self.lines.event(&event.kind);
        let instead = match self.options.stdout {
            Stdout::Lines => {
                output.stdout.extend(lines);
                None
            }
            Stdout::Preview => None,
            Stdout::Taken => lines.pop().map(|line| line_instead(&event.kind, line)),
        };
        if !self.is_in_table(&event.kind) {
            output.stderr = self.progress.event(event, instead);
        }
        if let EventKind::Ended { exit_code, error, hints } = &event.kind {
            self.end(*exit_code, error.as_deref(), hints, &mut output);
        }
        output
    }

    /// Time goes on.
    pub fn tick(&mut self, elapsed: Duration) -> Output {
        Output { stdout: Vec::new(), stderr: self.progress.tick(&self.state, elapsed) }
    }

    /// True for what the preview table says, so that stderr does not.
    fn is_in_table(&self, kind: &EventKind) -> bool {
        let told = matches!(kind, EventKind::Connected { .. } | EventKind::Planned { .. } | EventKind::Noted { .. });
        self.options.stdout == Stdout::Preview && told
    }

    fn remember(&mut self, kind: &EventKind) {
        if let EventKind::Connected { server, .. } = kind {
            self.server.clone_from(server);
        } else if let EventKind::Planned { nodes } = kind {
            self.planned = Some(nodes.clone());
        } else if let EventKind::Noted { warning: true, text } = kind {
            self.warnings.push(text.clone());
        } else if let EventKind::Noted { warning: false, text } = kind {
            self.notes.push(text.clone());
        } else if let EventKind::NodeEnded { report } = kind {
            self.results.push(report.clone());
        } else if let EventKind::Consented { restart_stale, vm_down } = kind {
            self.declined = *restart_stale == Consent::Declined || *vm_down == Consent::Declined;
        }
    }

    /// What the summary is about: the results; where the run was refused (`--only-if-clear`, no node left), the forecasts
    /// that stand in the way. Missing flags and consent have their hints, and whoever has just answered no knows it all.
    fn ends(&self, exit_code: u8, hints: &[String]) -> Vec<NodeReport> {
        let planned = || self.planned.iter().flatten();
        let told = exit_code != ExitCode::Refused.code()
            || self.declined
            || (!hints.is_empty() && planned().any(|node| node.verdict == Verdict::Refused));
        let unended = |node: &&NodeReport| self.results.iter().all(|r| r.name != node.name);
        let unclear = planned().filter(|node| !told && node.exit_code != ExitCode::Done.code()).filter(unended);
        let refused = unclear.map(|node| NodeReport { verdict: Verdict::Refused, ..node.clone() });
        self.results.iter().cloned().chain(refused).collect()
    }

    /// The table or the summary, and the error.
    fn end(&self, exit_code: u8, error: Option<&str>, hints: &[String], output: &mut Output) {
        let planned = self.planned.as_deref();
        match (self.options.stdout, planned) {
            (Stdout::Preview, Some(nodes)) => {
                let width = self.options.stdout_width;
                let server = &self.server;
                let told = Preview { server, nodes, notes: &self.notes, warnings: &self.warnings, exit_code, width };
                output.stdout.extend(match &self.options.task {
                    Task::Drain => preview(&told),
                    Task::Restart { scope } => restarts::preview(scope, &told),
                });
            }
            // Without a plan there is no table; what was held back for it still has to be said.
            (Stdout::Preview, None) => {
                let warnings =
                    self.warnings.iter().map(|w| Line::new().with(Label::Caution, "Warning: ").with(Label::Plain, w));
                output.stderr.extend(warnings);
            }
            (Stdout::Lines | Stdout::Taken, _) => {}
        }
        let quiet = self.options.detail == Detail::Quiet && exit_code == 0;
        if !self.options.dry_run && !quiet {
            let summary = match self.options.task {
                Task::Drain => summary,
                Task::Restart { .. } => restarts::summary,
            };
            output.stderr.extend(summary(&Summary {
                nodes: &self.ends(exit_code, hints),
                timeout: self.state.timeout,
                unmarks: self.server.kubevirt.as_deref().and_then(release).is_none_or(|known| known >= (1, 7)),
                width: self.options.stderr_width,
            }));
        }
        if let Some(error) = error {
            output.stderr.push(Line::new().with(Label::Bad, "error: ").with(Label::Plain, error));
        }
        let hint = |hint: &String| Line::new().with(Label::Heading, "hint: ").with(Label::Plain, hint);
        output.stderr.extend(hints.iter().map(hint));
    }
}

/// What stderr says in place of a line on stdout: a VM under the name that its other lines there have.
fn line_instead(kind: &EventKind, line: Line) -> Line {
    let EventKind::VmEnded { row, .. } = kind else { return line };
    let words = line.render(false);
    let did = words.rsplit(' ').next().unwrap_or_default();
    let to = row.node_after.as_ref().map_or_else(String::new, |node| format!(" to {node}"));
    Line::plain(format!("VM {}: ", row.display_name())).with(Label::Good, format!("{did}{to}"))
}
