//! The one place that reads a clock. Everything behind it gets the time as an argument.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Time since the run started, on tokio's clock, with the wall time of its start.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
    started_at: Timestamp,
}

impl Clock {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "this is the shell's clock")]
    pub fn start() -> Self {
        Self { start: Instant::now(), started_at: Timestamp::now() }
    }

    /// Starts now, at a wall time that is given: the simulated cluster has its own.
    pub fn start_at(started_at: Timestamp) -> Self {
        Self { start: Instant::now(), started_at }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Wall time of the start.
    pub fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// Wall time now.
    pub fn wall(&self) -> Timestamp {
        self.started_at + jiff::SignedDuration::try_from(self.elapsed()).unwrap_or_default()
    }

    /// The moment that lies `since_start` after the start.
    pub fn moment(&self, since_start: Duration) -> Instant {
        self.start + since_start
    }
}
