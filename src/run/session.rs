//! One run as it is told: the reporters, the clock and the numbers of its events.

use std::fs::File;
use std::io::{BufWriter, Write};

use serde_json::json;

use super::clock::Clock;
use super::terminal::{Terminal, draw_target};
use crate::error::{CliError, ErrorKind};
use crate::event::{DrainEvent, EventKind};
use crate::exit::ExitCode;
use crate::facts::Scope;
use crate::report::audit::{AuditHuman, AuditOptions, AuditPlain};
use crate::report::document::{DocumentFold, DocumentKind, DocumentWriter, Format};
use crate::report::events_file::EventsFile;
use crate::report::human::{Human, HumanOptions, Stdout};
use crate::report::lines::LineOptions;
use crate::report::plain::Plain;
use crate::report::progress::Detail;
use crate::report::screen::Screen;
use crate::report::undo::{UndoHuman, UndoOptions, UndoPlain};
use crate::report::{Fanout, Reporter, Task};
use crate::settings::{self, CancelOptions, DrainOptions, DryRun, OutputFormat, OutputOptions, RestartOptions};

/// A run as it is told.
pub struct Session {
    /// Its clock.
    pub clock: Clock,
    /// Who is told.
    pub reporter: Box<dyn Reporter>,
    next_seq: u64,
}

impl Session {
    /// A session with that clock and those listeners.
    pub fn new(clock: Clock, reporter: Box<dyn Reporter>) -> Self {
        Self { clock, reporter, next_seq: 1 }
    }

    /// Reports an event of now.
    pub fn emit(&mut self, kind: EventKind) {
        let elapsed_ms = u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX);
        let event = DrainEvent { seq: self.next_seq, elapsed_ms, kind };
        self.next_seq += 1;
        self.reporter.event(&event);
    }

    /// Number of the next event.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Ends the run with that code and error.
    pub fn end(&mut self, exit: ExitCode, error: Option<&CliError>) -> ExitCode {
        self.emit(ended(exit, error));
        exit
    }

    /// Ends the reporters, and says with which code to end.
    pub(super) fn finish(mut self, exit: ExitCode, terminal: &Terminal) -> ExitCode {
        self.reporter.finish();
        // Who reads the result must not take a part of it for the whole.
        let trouble = self.reporter.trouble();
        let told = trouble.into_iter().map(|text| terminal.fail(&CliError::new(ErrorKind::Failed, text)));
        ExitCode::of_all(std::iter::once(exit).chain(told))
    }
}

/// The `-v` from which on kubectl, and so we, print a line when an eviction was accepted.
const STARTS: u8 = 2;

/// The reporters that the command line of a drain asks for.
pub(super) fn reporters(
    drain: &DrainOptions,
    output: &OutputOptions,
    terminal: &Terminal,
    clock: &Clock,
) -> Result<Box<dyn Reporter>, CliError> {
    let preview = drain.dry_run.is_preview();
    let lines = LineOptions {
        deletes: drain.disable_eviction,
        starts: output.verbosity >= STARTS,
        skips_after: drain.skip_wait_for_delete,
    };
    let human = human(Task::Drain, preview, lines, output, terminal);
    let kind = if preview { DocumentKind::DrainPreview } else { DocumentKind::DrainResult };
    with_files(human, DocumentFold::new(kind, clock.started_at(), options_document(drain)), output, clock)
}

/// The reporters that the command line of `restart-stale` asks for.
pub(super) fn restart_reporters(
    options: &RestartOptions,
    namespace: Option<&str>,
    output: &OutputOptions,
    terminal: &Terminal,
    clock: &Clock,
) -> Result<Box<dyn Reporter>, CliError> {
    let preview = options.dry_run.is_preview();
    let human = human(super::restart::task(options, namespace), preview, LineOptions::default(), output, terminal);
    let document = json!({
        "dryRun": options.dry_run.as_str(),
        "namespace": namespace.filter(|_| !options.all_namespaces),
        "selector": options.selector.as_ref().map(settings::LabelSelector::as_str),
        "restartStale": options.restart_stale.as_str(),
        "allowVmDown": options.allow_vm_down,
        "deleteEmptydirData": options.delete_emptydir_data,
        "timeoutSeconds": options.timeout.as_secs_f64(),
    });
    let fold = DocumentFold::new(DocumentKind::RestartResult, clock.started_at(), document).of_run(!preview);
    with_files(human, fold, output, clock)
}

/// Who tells people of a plan that is carried out: a screen on a terminal, lines elsewhere.
fn human(
    task: Task,
    preview: bool,
    lines: LineOptions,
    output: &OutputOptions,
    terminal: &Terminal,
) -> Box<dyn Reporter> {
    let detail = match (output.quiet, output.verbosity) {
        (true, _) => Detail::Quiet,
        (false, _) => Detail::default(),
    };
    let screen = terminal.stderr && !output.quiet && output.verbosity == 0 && !preview;
    let human = Human::new(HumanOptions {
        task,
        stdout: stdout(output, preview),
        detail: if screen { Detail::BesideScreen } else { detail },
        dry_run: preview,
        lines,
        stdout_width: terminal.stdout_width(),
        stderr_width: terminal.stderr_width(),
    });
    let streams = terminal.streams(output.color);
    if screen {
        let size = Box::new(|| {
            let (rows, columns) = console::Term::stderr().size();
            (usize::from(rows), usize::from(columns))
        });
        Box::new(Screen::new(human, streams, draw_target(), size))
    } else {
        Box::new(Plain::new(human, streams))
    }
}

/// The reporters that the command line of `cancel` asks for.
pub(super) fn undo_reporters(
    options: &CancelOptions,
    output: &OutputOptions,
    terminal: &Terminal,
    clock: &Clock,
) -> Result<Box<dyn Reporter>, CliError> {
    let human = UndoHuman::new(UndoOptions {
        stdout: stdout(output, false),
        dry_run: match options.dry_run {
            DryRun::None => None,
            DryRun::Client => Some(" (dry run)"),
            DryRun::Server => Some(" (server dry run)"),
        },
        quiet: output.quiet,
        width: terminal.stderr_width(),
    });
    let human = Box::new(UndoPlain::new(human, terminal.streams(output.color)));
    let document = json!({"dryRun": options.dry_run.as_str()});
    with_files(human, DocumentFold::new(DocumentKind::CancelResult, clock.started_at(), document), output, clock)
}

/// The reporters that the command line of `audit` asks for.
pub(super) fn audit_reporters(
    scope: &Scope,
    selector: Option<String>,
    document: serde_json::Value,
    output: &OutputOptions,
    terminal: &Terminal,
    clock: &Clock,
) -> Result<Box<dyn Reporter>, CliError> {
    let human = AuditHuman::new(AuditOptions {
        stdout: stdout(output, true),
        namespace: scope.namespace.clone(),
        selector,
        stdout_width: terminal.stdout_width(),
        stderr_width: terminal.stderr_width(),
    });
    let human = Box::new(AuditPlain::new(human, terminal.streams(output.color)));
    with_files(human, DocumentFold::new(DocumentKind::Audit, clock.started_at(), document), output, clock)
}

/// What stdout is for.
fn stdout(output: &OutputOptions, preview: bool) -> Stdout {
    let events_on_stdout = output.events_file == Some(settings::EventsFile::Stdout);
    match (output.format.is_some() || events_on_stdout, preview) {
        (true, _) => Stdout::Taken,
        (false, true) => Stdout::Preview,
        (false, false) => Stdout::Lines,
    }
}

/// Those who tell people, and beside them the document and the events file.
fn with_files(
    human: Box<dyn Reporter>,
    fold: DocumentFold,
    output: &OutputOptions,
    clock: &Clock,
) -> Result<Box<dyn Reporter>, CliError> {
    let mut fanout = Fanout::new();
    fanout.add(human);
    let document = output.format.map(|format| {
        let format = match format {
            OutputFormat::Json => Format::Json,
            OutputFormat::Yaml => Format::Yaml,
        };
        DocumentWriter::new(fold, format, Box::new(std::io::stdout()))
    });
    let events = match output.events_file.as_ref().map(events_out).transpose() {
        Ok(events) => events,
        Err(error) => {
            // This is an end too, and every end has its document.
            if let Some(mut document) = document {
                document.event(&DrainEvent { seq: 1, elapsed_ms: 0, kind: ended(error.exit_code(), Some(&error)) });
                document.finish();
            }
            return Err(error);
        }
    };
    if let Some(document) = document {
        fanout.add(Box::new(document));
    }
    if let Some(out) = events {
        fanout.add(Box::new(EventsFile::new(out, clock.started_at())));
    }
    Ok(Box::new(fanout))
}

/// Where the events go.
fn events_out(file: &settings::EventsFile) -> Result<Box<dyn Write>, CliError> {
    match file {
        settings::EventsFile::Stdout => Ok(Box::new(std::io::stdout())),
        settings::EventsFile::Path(path) => {
            let file = File::create(path).map_err(|error| {
                CliError::new(ErrorKind::Usage, format!("cannot write the events file {}", path.display()))
                    .hint("give a path that can be written, or leave --events-file out")
                    .caused_by(error)
            })?;
            Ok(Box::new(BufWriter::new(file)))
        }
    }
}

/// The last event of a run.
fn ended(exit: ExitCode, error: Option<&CliError>) -> EventKind {
    let hints = error.map(|e| e.hints().to_vec()).unwrap_or_default();
    EventKind::Ended { exit_code: exit.code(), error: error.map(CliError::full_message), hints }
}

/// The options of a drain as the document shows them.
fn options_document(drain: &DrainOptions) -> serde_json::Value {
    json!({
        "dryRun": drain.dry_run.as_str(),
        "force": drain.force,
        "ignoreDaemonsets": drain.ignore_daemonsets,
        "deleteEmptydirData": drain.delete_emptydir_data,
        "gracePeriod": drain.grace_period,
        "timeoutSeconds": drain.timeout.as_secs_f64(),
        "podSelector": drain.pod_selector.as_ref().map(settings::LabelSelector::as_str),
        "disableEviction": drain.disable_eviction,
        "skipWaitForDeleteTimeoutSeconds": drain.skip_wait_for_delete.map(|d| d.as_secs_f64()),
        "restartStale": drain.restart_stale.as_str(),
        "allowVmDown": drain.allow_vm_down,
        "onlyIfClear": drain.only_if_clear,
        "waitBlocked": drain.wait_blocked,
        "onAbort": drain.on_abort.as_str(),
        "parallel": drain.parallel,
    })
}
