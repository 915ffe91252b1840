//! What people and programs see of a run: kubectl's lines, progress, preview, summary, document and event file.
//!
//! ```text
//! DrainEvent ─► Fanout ─┬─► Human (lines, progress, state, summary: pure) ─► Plain | Screen (write)
//!                       ├─► UndoHuman (the same of `cancel`: pure) ─► UndoPlain
//!                       ├─► AuditHuman (the table of `audit`: pure) ─► AuditPlain
//!                       ├─► DocumentWriter (-o json|yaml)
//!                       └─► EventsFile (NDJSON)
//! ```
//!
//! Rendering is pure: events and ticks go in, [`style::Line`]s come out. Only `Plain`, `Screen`, `DocumentWriter` and
//! `EventsFile` write, and only to what they were given. Nothing here reads a clock: time comes with events and ticks.

pub mod audit;
pub mod document;
pub mod events_file;
pub mod groups;
pub mod human;
pub mod lines;
pub mod plain;
pub mod preview;
pub mod progress;
pub mod question;
pub mod remedies;
pub mod restarts;
pub mod screen;
pub mod state;
pub mod style;
pub mod summary;
pub mod table;
pub mod text;
pub mod undo;
pub mod words;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use crate::event::DrainEvent;

/// What a run does, as people read of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Task {
    /// It drains nodes.
    #[default]
    Drain,
    /// It restarts stale VMs where they are.
    Restart {
        /// Whose: `namespace tenant-a`, `all namespaces with labels app=db`.
        scope: String,
    },
}

/// Somebody who is told what happens in a run.
pub trait Reporter {
    /// One event, in order.
    fn event(&mut self, event: &DrainEvent);

    /// Time goes on: called now and then (a screen wants ten a second, others are content with one).
    fn tick(&mut self, elapsed: Duration);

    /// The run is over, however it ended: write what is left, leave the terminal clean. Called once.
    fn finish(&mut self);

    /// What could not be written, asked for after [`Reporter::finish`]. A reader of a pipe that went away is no trouble.
    fn trouble(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Several reporters as one; each gets every event, in the order in which they were added.
#[derive(Default)]
pub struct Fanout {
    reporters: Vec<Box<dyn Reporter>>,
}

impl Fanout {
    /// Nobody listens yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    pub fn add(&mut self, reporter: Box<dyn Reporter>) {
        self.reporters.push(reporter);
    }
}

impl fmt::Debug for Fanout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fanout").field("reporters", &self.reporters.len()).finish()
    }
}

impl Reporter for Fanout {
    fn event(&mut self, event: &DrainEvent) {
        self.reporters.iter_mut().for_each(|r| r.event(event));
    }

    fn tick(&mut self, elapsed: Duration) {
        self.reporters.iter_mut().for_each(|r| r.tick(elapsed));
    }

    fn finish(&mut self) {
        self.reporters.iter_mut().for_each(|r| r.finish());
    }

    fn trouble(&self) -> Vec<String> {
        self.reporters.iter().flat_map(|r| r.trouble()).collect()
    }
}

/// What people read of a command that is over soon: lines for each event, and none in between.
pub trait Fold: fmt::Debug {
    /// The lines of an event.
    fn event(&mut self, event: &DrainEvent) -> human::Output;
}

/// Reporter that writes what such a fold gives.
pub struct Written<F> {
    fold: F,
    streams: Streams,
}

impl<F: Fold> Written<F> {
    /// A reporter on these streams.
    pub fn new(fold: F, streams: Streams) -> Self {
        Self { fold, streams }
    }
}

impl<F: Fold> fmt::Debug for Written<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written").field("fold", &self.fold).finish_non_exhaustive()
    }
}

impl<F: Fold> Reporter for Written<F> {
    fn event(&mut self, event: &DrainEvent) {
        let output = self.fold.event(event);
        if !output.is_empty() {
            self.streams.write(&output);
        }
    }

    fn tick(&mut self, _elapsed: Duration) {}

    fn finish(&mut self) {}

    fn trouble(&self) -> Vec<String> {
        self.streams.trouble()
    }
}

/// Where output goes, and how it may look there.
pub struct Streams {
    /// Data.
    pub stdout: Box<dyn Write>,
    /// Everything else.
    pub stderr: Box<dyn Write>,
    /// True if stdout gets colour.
    pub stdout_color: bool,
    /// True if stderr gets colour.
    pub stderr_color: bool,
    /// True if stderr is a terminal.
    pub stderr_is_terminal: bool,
    /// The first error of writing data; [`None`] at the start.
    pub lost: Option<io::Error>,
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams")
            .field("stdout_color", &self.stdout_color)
            .field("stderr_color", &self.stderr_color)
            .field("stderr_is_terminal", &self.stderr_is_terminal)
            .finish_non_exhaustive()
    }
}

impl Streams {
    /// Writes what a fold gave. Nothing that fails here may end a drain: lost data are told at the end.
    fn write(&mut self, output: &human::Output) {
        let data = style::page(&output.stdout, self.stdout_color);
        let written = self.stdout.write_all(data.as_bytes()).and_then(|()| self.stdout.flush());
        self.lost = self.lost.take().or(written.err());
        let _ = self.stderr.write_all(style::page(&output.stderr, self.stderr_color).as_bytes());
        let _ = self.stderr.flush();
    }

    /// What is told of lost data; a reader that went away (`| head`) has lost nothing.
    fn trouble(&self) -> Vec<String> {
        let lost = self.lost.iter().filter(|e| e.kind() != io::ErrorKind::BrokenPipe);
        lost.map(|e| format!("the output on stdout is incomplete: {e}")).collect()
    }
}
