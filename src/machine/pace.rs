//! How many POSTs the API server takes at a time, learned from its answers.
//!
//! An API server whose priority level is full turns requests away with 429 and serves the others. If all were sent at once
//! again, most would meet the same: so the number under way is halved when one is turned away, and grows by one after some
//! rounds in which all were served.

use std::time::Duration;

/// Pause after a refusal where the server names none. It never gets less: 0 would be a hot loop.
const PAUSE: Duration = Duration::from_secs(1);

/// Rounds of served requests before one more is tried: each refusal costs a pause.
const ROUNDS: usize = 4;

/// The pace of one run.
#[derive(Debug)]
pub(super) struct Pace {
    most: usize,
    width: usize,
    under_way: usize,
    /// Nothing is sent before.
    closed_until: Option<Duration>,
    /// Served since the width changed.
    served: usize,
    /// Refusals in a row at the smallest width.
    refusals: u32,
}

impl Pace {
    pub(super) fn new(most: usize) -> Self {
        let most = most.max(1);
        Self { most, width: most, under_way: 0, closed_until: None, served: 0, refusals: 0 }
    }

    /// True if another one may go out.
    pub(super) fn has_room(&self, now: Duration) -> bool {
        self.under_way < self.width && self.closed_until.is_none_or(|t| t <= now)
    }

    pub(super) fn sent(&mut self) {
        self.under_way += 1;
    }

    /// An answer came, or none will.
    pub(super) fn ended(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// The server did its work on one.
    pub(super) fn served(&mut self) {
        self.refusals = 0;
        self.served += 1;
        if self.served >= self.width * ROUNDS {
            self.served = 0;
            self.width = (self.width + 1).min(self.most);
        }
    }

    /// The server turned one away and asks for that much patience.
    pub(super) fn turned_away(&mut self, after: Option<Duration>, now: Duration) {
        let mut pause = after.unwrap_or(PAUSE).max(PAUSE);
        // Those that were under way together are one refusal.
        if self.closed_until.is_none_or(|t| t <= now) {
            if self.width == 1 {
                pause = pause.max(super::retry::delay(self.refusals, "pace"));
                self.refusals += 1;
            }
            self.width = (self.width / 2).max(1);
            self.served = 0;
        }
        self.closed_until = self.closed_until.max(Some(now + pause));
    }

    /// When the next one may go out, if not now.
    pub(super) fn opens_at(&self) -> Option<Duration> {
        self.closed_until
    }

    /// Time has passed.
    pub(super) fn passed(&mut self, now: Duration) {
        self.closed_until = self.closed_until.filter(|t| *t > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// A server with that many seats, which answers a whole wave at once: how long until all are served.
    fn time_for(items: usize, seats: usize) -> (Duration, usize) {
        let (mut pace, mut now, mut left, mut refused) = (Pace::new(32), Duration::ZERO, items, 0);
        while left > 0 {
            now = now.max(pace.opens_at().unwrap_or_default());
            pace.passed(now);
            let mut wave = 0;
            while wave < left && pace.has_room(now) {
                pace.sent();
                wave += 1;
            }
            for n in 0..wave {
                pace.ended();
                if n < seats {
                    pace.served();
                    left -= 1;
                } else {
                    pace.turned_away(None, now);
                    refused += 1;
                }
            }
        }
        (now, refused)
    }

    #[test]
    fn a_full_server_is_not_flooded_and_gets_all_it_can_serve() {
        let (time, refused) = time_for(100, 1);
        assert!(time < secs(30), "one seat still serves some each second: {time:?}");
        assert!(refused < 85, "{refused} refusals");
        let (time, refused) = time_for(100, 8);
        assert!(time < secs(14), "{time:?}");
        assert!(refused < 80, "{refused} refusals");
        assert_eq!(time_for(100, 32), (Duration::ZERO, 0));
    }

    #[test]
    fn one_wave_is_one_refusal() {
        let mut pace = Pace::new(32);
        for _ in 0..32 {
            pace.turned_away(Some(secs(1)), Duration::ZERO);
        }
        assert_eq!(pace.width, 16);
        pace.turned_away(Some(secs(5)), Duration::ZERO);
        assert_eq!(pace.opens_at(), Some(secs(5)), "the longest wish counts");
    }

    #[test]
    fn a_server_that_serves_nobody_is_asked_ever_more_rarely() {
        let (mut pace, mut now) = (Pace::new(1), Duration::ZERO);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            pace.turned_away(Some(Duration::ZERO), now);
            let next = pace.opens_at().unwrap();
            pauses.push(next.saturating_sub(now));
            now = next;
            pace.passed(now);
        }
        assert!(pauses[0] == secs(1) && pauses[3] > secs(2) && pauses[7] >= secs(12), "{pauses:?}");
    }
}
