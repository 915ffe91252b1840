//! The loop of a drain: one select over watches, answers, the clock and signals; everything goes through the machine.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::stream::{FuturesUnordered, Stream};
use futures::{FutureExt, StreamExt};
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use super::clock::Clock;
use super::perform::{Performer, perform};
use crate::cluster::{WatchItem, Watched};
use crate::event::StopReason;
use crate::exit::ExitCode;
use crate::machine::{Input, Machine};
use crate::report::Reporter;

/// How often a screen is drawn again.
const TICK: Duration = Duration::from_millis(200);
/// How long a watch may be in trouble before it counts as lost contact: an ended watch is routine.
const LOST_AFTER: Duration = Duration::from_secs(3);

/// Drives the machine to its end.
pub(super) async fn execute(
    machine: &mut Machine,
    performer: &Performer,
    watches: &mut (impl Stream<Item = WatchItem> + Unpin),
    signals: &mut (impl Stream<Item = StopReason> + Unpin),
    reporter: &mut dyn Reporter,
    clock: &Clock,
) -> ExitCode {
    let mut in_flight = FuturesUnordered::new();
    let mut contact = Contact::default();
    let mut watches_open = true;
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    machine.start(clock.elapsed());
    loop {
        while let Some(event) = machine.poll_event() {
            reporter.event(&event);
        }
        if let Some(exit) = machine.ended() {
            return exit;
        }
        while let Some(effect) = machine.poll_effect() {
            in_flight.push(perform(performer.clone(), effect));
        }
        let next = machine.poll_timeout().into_iter().chain(contact.lost_at()).min();
        let wake = clock.moment(next.unwrap_or(Duration::from_secs(3600) + clock.elapsed()));
        // In this order, so that a flood of watch events starves neither a signal nor the clock, and runs can be repeated.
        let input = tokio::select! {
            biased;
            Some(reason) = signals.next() => Input::Stop(reason),
            () = sleep_until(wake) => contact.check(clock.elapsed()).unwrap_or(Input::Tick),
            _ = tick.tick() => {
                reporter.tick(clock.elapsed());
                continue;
            }
            Some((id, reply)) = in_flight.next() => Input::Answer { id, reply },
            item = watches.next(), if watches_open => {
                let input = if let Some(item) = item {
                    contact.seen(item, clock.elapsed())
                } else {
                    watches_open = false;
                    Some(Input::ContactLost)
                };
                match input {
                    Some(input) => input,
                    None => continue,
                }
            }
        };
        machine.handle(input, clock.elapsed());
        // What is ready at once is taken in the same round: fewer draws, fewer wake-ups.
        while let Some(Some(item)) = watches.next().now_or_never() {
            if let Some(input) = contact.seen(item, clock.elapsed()) {
                machine.handle(input, clock.elapsed());
            }
        }
    }
}

/// Whether the watches get through.
#[derive(Debug, Default)]
struct Contact {
    /// Sets whose list fails, with the time since when.
    trouble: BTreeMap<Watched, Duration>,
    lost: bool,
}

impl Contact {
    fn seen(&mut self, item: WatchItem, now: Duration) -> Option<Input> {
        match item {
            WatchItem::Change(change) => Some(Input::Change(*change)),
            WatchItem::Synced(_) | WatchItem::Unreadable { .. } => None,
            WatchItem::Trouble { what, .. } => {
                self.trouble.entry(what).or_insert(now);
                self.check(now)
            }
            WatchItem::Recovered { what } => {
                self.trouble.remove(&what);
                let back = self.trouble.is_empty() && std::mem::take(&mut self.lost);
                back.then_some(Input::ContactRestored)
            }
        }
    }

    fn lost_at(&self) -> Option<Duration> {
        self.trouble.values().min().filter(|_| !self.lost).map(|since| *since + LOST_AFTER)
    }

    fn check(&mut self, now: Duration) -> Option<Input> {
        let lost = self.lost_at().is_some_and(|at| at <= now);
        self.lost |= lost;
        lost.then_some(Input::ContactLost)
    }
}
