//! Reporter for logs, pipes and `-v`: lines as they come, nothing is drawn.

use std::time::Duration;

use super::human::{Human, Output};
use super::{Reporter, Streams};
use crate::event::DrainEvent;

/// Writes lines to both streams.
#[derive(Debug)]
pub struct Plain {
    human: Human,
    streams: Streams,
}

impl Plain {
    /// A reporter that writes what `human` says.
    pub fn new(human: Human, streams: Streams) -> Self {
        Self { human, streams }
    }

    fn write(&mut self, output: &Output) {
        if !output.is_empty() {
            self.streams.write(output);
        }
    }
}

impl Reporter for Plain {
    fn event(&mut self, event: &DrainEvent) {
        let output = self.human.event(event);
        self.write(&output);
    }

    fn tick(&mut self, elapsed: Duration) {
        let output = self.human.tick(elapsed);
        self.write(&output);
    }

    fn finish(&mut self) {}

    fn trouble(&self) -> Vec<String> {
        self.streams.trouble()
    }
}
