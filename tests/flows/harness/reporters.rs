//! Who listens to a run: the reporters of the command on buffers, and a recorder that can pull strings.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

use safe_drain::event::{DrainEvent, EventKind, StopReason};
use safe_drain::facts::Scope;
use safe_drain::report::audit::{AuditHuman, AuditOptions, AuditPlain};
use safe_drain::report::document::{DocumentFold, DocumentKind, DocumentWriter, Format};
use safe_drain::report::human::{Human, HumanOptions, Stdout};
use safe_drain::report::lines::LineOptions;
use safe_drain::report::plain::Plain;
use safe_drain::report::undo::{UndoHuman, UndoOptions, UndoPlain};
use safe_drain::report::{Fanout, Reporter, Streams, Task};
use safe_drain::run::Clock;
use safe_drain::settings::{CancelOptions, DrainOptions, DryRun, RestartOptions};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

/// What is done at an event.
enum Deed {
    Signal(StopReason),
    Work(Box<dyn FnOnce()>),
}

/// Something that is done once, at the first event that fits.
pub(super) struct Hook {
    fits: Box<dyn Fn(&EventKind) -> bool>,
    deed: Option<Deed>,
}

impl Hook {
    pub(super) fn signal(reason: StopReason, fits: impl Fn(&EventKind) -> bool + 'static) -> Self {
        Self { fits: Box::new(fits), deed: Some(Deed::Signal(reason)) }
    }

    pub(super) fn work(fits: impl Fn(&EventKind) -> bool + 'static, work: impl FnOnce() + 'static) -> Self {
        Self { fits: Box::new(fits), deed: Some(Deed::Work(Box::new(work))) }
    }
}

#[derive(Clone, Default)]
struct Buffer(Rc<RefCell<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).expect("UTF-8")
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What was told.
pub(super) struct Told {
    events: Rc<RefCell<Vec<DrainEvent>>>,
    stdout: Buffer,
    stderr: Buffer,
    document: Buffer,
    reporter: Option<Box<dyn Reporter>>,
}

impl Told {
    /// Of a drain.
    pub(super) fn new(
        options: &DrainOptions,
        verbosity: u8,
        clock: &Clock,
        hooks: Vec<Hook>,
        tx: UnboundedSender<StopReason>,
    ) -> Self {
        let preview = options.dry_run.is_preview();
        let human = Human::new(HumanOptions {
            stdout: if preview { Stdout::Preview } else { Stdout::Lines },
            dry_run: preview,
            lines: LineOptions {
                deletes: options.disable_eviction,
                starts: verbosity >= 2,
                skips_after: options.skip_wait_for_delete,
            },
            ..HumanOptions::default()
        });
        let kind = if preview { DocumentKind::DrainPreview } else { DocumentKind::DrainResult };
        Self::with(|streams| Box::new(Plain::new(human, streams)), kind, clock, hooks, tx)
    }

    /// Of `restart-stale`.
    pub(super) fn of_restarts(
        options: &RestartOptions,
        clock: &Clock,
        hooks: Vec<Hook>,
        tx: UnboundedSender<StopReason>,
    ) -> Self {
        let preview = options.dry_run.is_preview();
        let human = Human::new(HumanOptions {
            task: Task::Restart { scope: "all namespaces".to_owned() },
            stdout: if preview { Stdout::Preview } else { Stdout::Lines },
            dry_run: preview,
            ..HumanOptions::default()
        });
        let told = |streams| -> Box<dyn Reporter> { Box::new(Plain::new(human, streams)) };
        let fold = DocumentFold::new(DocumentKind::RestartResult, clock.started_at(), json!({})).of_run(!preview);
        Self::over(told, fold, hooks, tx)
    }

    /// Of `cancel`.
    pub(super) fn of_cancel(
        options: &CancelOptions,
        clock: &Clock,
        hooks: Vec<Hook>,
        tx: UnboundedSender<StopReason>,
    ) -> Self {
        let dry_run = match options.dry_run {
            DryRun::None => None,
            DryRun::Client => Some(" (dry run)"),
            DryRun::Server => Some(" (server dry run)"),
        };
        let human = UndoHuman::new(UndoOptions { dry_run, ..UndoOptions::default() });
        Self::with(|streams| Box::new(UndoPlain::new(human, streams)), DocumentKind::CancelResult, clock, hooks, tx)
    }

    /// Of `audit`.
    pub(super) fn of_audit(
        scope: &Scope,
        selector: Option<String>,
        clock: &Clock,
        hooks: Vec<Hook>,
        tx: UnboundedSender<StopReason>,
    ) -> Self {
        let namespace = scope.namespace.clone();
        let human = AuditHuman::new(AuditOptions { namespace, selector, ..AuditOptions::default() });
        Self::with(|streams| Box::new(AuditPlain::new(human, streams)), DocumentKind::Audit, clock, hooks, tx)
    }

    fn with(
        human: impl FnOnce(Streams) -> Box<dyn Reporter>,
        kind: DocumentKind,
        clock: &Clock,
        hooks: Vec<Hook>,
        tx: UnboundedSender<StopReason>,
    ) -> Self {
        Self::over(human, DocumentFold::new(kind, clock.started_at(), json!({})), hooks, tx)
    }

    fn over(
        human: impl FnOnce(Streams) -> Box<dyn Reporter>,
        fold: DocumentFold,
        hooks: Vec<Hook>,
        tx: UnboundedSender<StopReason>,
    ) -> Self {
        let events: Rc<RefCell<Vec<DrainEvent>>> = Rc::default();
        let (stdout, stderr, document) = (Buffer::default(), Buffer::default(), Buffer::default());
        let streams = Streams {
            stdout: Box::new(stdout.clone()),
            stderr: Box::new(stderr.clone()),
            stdout_color: false,
            stderr_color: false,
            stderr_is_terminal: false,
            lost: None,
        };
        let mut fanout = Fanout::new();
        fanout.add(human(streams));
        fanout.add(Box::new(DocumentWriter::new(fold, Format::Json, Box::new(document.clone()))));
        fanout.add(Box::new(Recorder { events: events.clone(), hooks, tx }));
        Self { events, stdout, stderr, document, reporter: Some(Box::new(fanout)) }
    }

    pub(super) fn reporter(&mut self) -> Box<dyn Reporter> {
        self.reporter.take().expect("one session")
    }

    pub(super) fn events(&self) -> Vec<DrainEvent> {
        self.events.borrow().clone()
    }

    pub(super) fn stdout(&self) -> String {
        self.stdout.text()
    }

    pub(super) fn stderr(&self) -> String {
        self.stderr.text()
    }

    pub(super) fn document(&self) -> Value {
        serde_json::from_str(&self.document.text()).expect("exactly one document")
    }
}

struct Recorder {
    events: Rc<RefCell<Vec<DrainEvent>>>,
    hooks: Vec<Hook>,
    tx: UnboundedSender<StopReason>,
}

impl Reporter for Recorder {
    fn event(&mut self, event: &DrainEvent) {
        self.events.borrow_mut().push(event.clone());
        for hook in &mut self.hooks {
            if (hook.fits)(&event.kind) {
                match hook.deed.take() {
                    Some(Deed::Signal(reason)) => drop(self.tx.send(reason)),
                    Some(Deed::Work(work)) => work(),
                    None => {}
                }
            }
        }
    }

    fn tick(&mut self, _elapsed: Duration) {}

    fn finish(&mut self) {}
}
