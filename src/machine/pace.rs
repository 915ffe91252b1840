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
    /// Raised with each halving: those sent before it were too many together, and are one refusal.
    generation: u64,
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
        Self { most, width: most, under_way: 0, generation: 0, closed_until: None, served: 0, refusals: 0 }
    }

    /// True if another one may go out.
    pub(super) fn has_room(&self, now: Duration) -> bool {
        self.under_way < self.width && self.closed_until.is_none_or(|t| t <= now)
    }

    /// One goes out; its generation belongs to its answer.
    pub(super) fn sent(&mut self) -> u64 {
        self.under_way += 1;
        self.generation
    }

    /// An answer came, or none will.
    pub(super) fn ended(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// The server did its work on one of that generation.
    pub(super) fn served(&mut self, generation: u64) {
        self.refusals = 0;
        self.served += usize::from(generation == self.generation);
        if self.served >= self.width * ROUNDS {
            self.served = 0;
            self.width = (self.width + 1).min(self.most);
        }
    }

    /// The server turned one of that generation away and asks for that much patience.
    pub(super) fn turned_away(&mut self, generation: u64, after: Option<Duration>, now: Duration) {
        let mut pause = after.unwrap_or(PAUSE).max(PAUSE);
        if generation == self.generation {
            self.generation += 1;
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

    /// A server with that many seats; each of a wave is answered that much after the one before. How long until all are
    /// served, and how often it refused.
    fn time_for(items: usize, seats: usize, apart: Duration) -> (Duration, usize) {
        let (mut pace, mut now, mut left, mut refused) = (Pace::new(32), Duration::ZERO, items, 0);
        while left > 0 {
            now = now.max(pace.opens_at().unwrap_or_default());
            pace.passed(now);
            let mut wave = Vec::new();
            while wave.len() < left && pace.has_room(now) {
                wave.push(pace.sent());
            }
            for (n, generation) in wave.into_iter().enumerate() {
                now += apart;
                pace.ended();
                if n < seats {
                    pace.served(generation);
                    left -= 1;
                } else {
                    pace.turned_away(generation, None, now);
                    refused += 1;
                }
            }
        }
        (now, refused)
    }

    #[test]
    fn a_full_server_is_not_flooded_and_gets_all_it_can_serve() {
        let (time, refused) = time_for(100, 1, Duration::ZERO);
        assert!(time < secs(30), "one seat still serves some each second: {time:?}");
        assert!(refused < 85, "{refused} refusals");
        let (time, refused) = time_for(100, 8, Duration::ZERO);
        assert!(time < secs(14), "{time:?}");
        assert!(refused < 80, "{refused} refusals");
        assert_eq!(time_for(100, 32, Duration::ZERO), (Duration::ZERO, 0));
    }

    #[test]
    fn one_wave_is_one_refusal_however_long_its_answers_take() {
        let mut pace = Pace::new(32);
        let wave: Vec<u64> = (0..32).map(|_| pace.sent()).collect();
        for (n, generation) in (0..).zip(wave) {
            pace.ended();
            pace.turned_away(generation, Some(secs(1)), secs(2 * n));
        }
        assert_eq!(pace.width, 16);
        let next = pace.sent();
        pace.turned_away(next, Some(secs(5)), secs(100));
        assert_eq!((pace.width, pace.opens_at()), (8, Some(secs(105))));
        let (_, refused) = time_for(100, 8, Duration::from_millis(500));
        assert!(refused < 80, "{refused} refusals");
    }

    #[test]
    fn a_server_that_serves_nobody_is_asked_ever_more_rarely() {
        let (mut pace, mut now) = (Pace::new(1), Duration::ZERO);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let generation = pace.sent();
            pace.ended();
            pace.turned_away(generation, Some(Duration::ZERO), now);
            let next = pace.opens_at().unwrap();
            pauses.push(next.saturating_sub(now));
            now = next;
            pace.passed(now);
        }
        assert!(pauses[0] == secs(1) && pauses[3] > secs(2) && pauses[7] >= secs(12), "{pauses:?}");
    }
}
