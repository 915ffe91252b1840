//! `--events-file`: every event as one JSON object on a line of its own (NDJSON), flushed at once.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::Reporter;
use super::document::{API_VERSION, at};
use crate::event::{DrainEvent, EventKind};

/// Writes events as they come. The last line is always the event `ended`, which has the exit code.
pub struct EventsFile {
    out: Box<dyn Write>,
    started_at: Timestamp,
    /// The first error of writing. After it nothing more is written: a file with a gap would look complete.
    error: Option<io::Error>,
}

impl EventsFile {
    /// A writer to `out`. `started_at` holds until the first event says otherwise.
    pub fn new(out: Box<dyn Write>, started_at: Timestamp) -> Self {
        Self { out, started_at, error: None }
    }
}

impl fmt::Debug for EventsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventsFile").field("error", &self.error).finish_non_exhaustive()
    }
}

/// An event with what makes its line readable alone.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stamped<'a> {
    api_version: &'static str,
    time: Timestamp,
    #[serde(flatten)]
    event: &'a DrainEvent,
}

/// The line of an event, without its newline.
pub fn event_line(event: &DrainEvent, started_at: Timestamp) -> serde_json::Result<String> {
    let time = at(started_at, Duration::from_millis(event.elapsed_ms));
    serde_json::to_string(&Stamped { api_version: API_VERSION, time, event })
}

impl Reporter for EventsFile {
    fn event(&mut self, event: &DrainEvent) {
        if let EventKind::Connected { started_at, .. } = &event.kind {
            self.started_at = *started_at;
        }
        if self.error.is_some() {
            return;
        }
        let line = event_line(event, self.started_at).map_err(io::Error::other);
        let written =
            line.and_then(|line| self.out.write_all((line + "\n").as_bytes())).and_then(|()| self.out.flush());
        self.error = written.err();
    }

    fn tick(&mut self, _elapsed: Duration) {}

    fn finish(&mut self) {
        let _ = self.out.flush();
    }

    fn trouble(&self) -> Vec<String> {
        let lost = self.error.iter().filter(|e| e.kind() != io::ErrorKind::BrokenPipe);
        lost.map(|e| format!("the events file is incomplete: {e}")).collect()
    }
}
