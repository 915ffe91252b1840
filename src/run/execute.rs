//! The loop of a drain: one select over watches, answers, the clock and signals; everything goes through the machine.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::stream::{FuturesUnordered, Stream};
use futures::{FutureExt, StreamExt};
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use super::clock::Clock;
use super::perform::{Performer, perform, renew};
use crate::cluster::{ApiProblem, ProblemKind, WatchItem, Watched};
use crate::event::StopReason;
use crate::exit::ExitCode;
use crate::machine::{Input, Machine};
use crate::report::Reporter;

/// How often a screen is drawn again.
const TICK: Duration = Duration::from_millis(200);
/// Watch events that are taken in one round, before effects, signals and the clock are looked at again.
const AT_ONCE: usize = 256;
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
    let mut renewals = FuturesUnordered::new();
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
        // A signal that is there already comes before anything is sent; what is sent after that is really sent, so that
        // what is told of it is true.
        if let Some(Some(reason)) = signals.next().now_or_never() {
            machine.handle(Input::Stop(reason), clock.elapsed());
            continue;
        }
        while let Some(effect) = machine.poll_effect() {
            in_flight.push(perform(performer.clone(), effect));
        }
        if let Some(Some((id, reply))) = in_flight.next().now_or_never() {
            machine.handle(Input::Answer { id, reply }, clock.elapsed());
            continue;
        }
        if contact.wants_renewal(clock.elapsed()) {
            renewals.push(renew(performer.clone()));
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
            Some(()) = renewals.next() => continue,
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
        for _ in 0..AT_ONCE {
            let Some(Some(item)) = watches.next().now_or_never() else { break };
            if let Some(input) = contact.seen(item, clock.elapsed()) {
                machine.handle(input, clock.elapsed());
            }
        }
    }
}

/// Whether the watches get through.
#[derive(Debug, Default)]
struct Contact {
    /// Sets that are not seen, since when, and whether for want of contact.
    trouble: BTreeMap<Watched, Trouble>,
    lost: bool,
    renewal: Renewal,
}

#[derive(Debug)]
struct Trouble {
    since: Duration,
    problem: ApiProblem,
    told: bool,
}

/// Credentials that the watches were refused with.
#[derive(Debug, Default, PartialEq, Eq)]
enum Renewal {
    #[default]
    NotNeeded,
    /// To be renewed.
    Wanted,
    /// Renewed at that time; a refusal after it is final.
    Done(Duration),
}

impl Contact {
    fn seen(&mut self, item: WatchItem, now: Duration) -> Option<Input> {
        match item {
            WatchItem::Change(change) => Some(Input::Change(*change)),
            WatchItem::Synced(_) => None,
            WatchItem::Unreadable { what, object, why } => {
                Some(Input::Warn(format!("{object} ({what}) cannot be read, what was known of it stands: {why}")))
            }
            WatchItem::Trouble { what, problem, .. } => {
                if problem.kind == ProblemKind::Unauthorized {
                    match self.renewal {
                        Renewal::NotNeeded => self.renewal = Renewal::Wanted,
                        Renewal::Done(at) if now >= at + LOST_AFTER => return Some(Input::CredentialsRefused),
                        Renewal::Wanted | Renewal::Done(_) => {}
                    }
                }
                let entry =
                    self.trouble.entry(what).or_insert(Trouble { since: now, problem: problem.clone(), told: false });
                entry.problem = problem;
                self.check(now)
            }
            WatchItem::Recovered { what } => {
                self.trouble.remove(&what);
                if self.trouble.values().all(|t| t.problem.kind != ProblemKind::Unauthorized) {
                    self.renewal = Renewal::NotNeeded;
                }
                let back = !self.blind() && std::mem::take(&mut self.lost);
                back.then_some(Input::ContactRestored)
            }
        }
    }

    /// True when nothing tells any more what happens to the pods: no server answers for them.
    fn blind(&self) -> bool {
        let unheard = |p: &ApiProblem| p.kind != ProblemKind::Forbidden && p.kind != ProblemKind::NotFound;
        self.trouble.iter().any(|(what, t)| matches!(what, Watched::Pods(_) | Watched::VmPods) && unheard(&t.problem))
    }

    /// When something must be said that no event will bring.
    fn lost_at(&self) -> Option<Duration> {
        let due = self.trouble.values().filter(|t| !t.told).map(|t| t.since + LOST_AFTER);
        due.min()
    }

    fn check(&mut self, now: Duration) -> Option<Input> {
        let blind = self.blind();
        let due = self.trouble.iter_mut().find(|(_, t)| !t.told && now >= t.since + LOST_AFTER);
        let (what, trouble) = due?;
        trouble.told = true;
        if blind {
            // One line for all of them.
            self.trouble.values_mut().for_each(|t| t.told = true);
            return (!std::mem::replace(&mut self.lost, true)).then_some(Input::ContactLost);
        }
        Some(Input::Warn(format!("{what} cannot be watched, their changes are not seen: {}", trouble.problem)))
    }

    fn wants_renewal(&mut self, now: Duration) -> bool {
        let wanted = self.renewal == Renewal::Wanted;
        if wanted {
            self.renewal = Renewal::Done(now);
        }
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn trouble(what: Watched, kind: ProblemKind) -> WatchItem {
        let problem = ApiProblem { code: 0, kind, message: "no".to_owned(), hint: None };
        WatchItem::Trouble { what, problem, since: tokio::time::Instant::now() }
    }

    fn pods() -> Watched {
        Watched::Pods("n1".to_owned())
    }

    #[test]
    fn one_set_that_is_not_seen_is_no_lost_contact() {
        let mut contact = Contact::default();
        assert!(contact.seen(trouble(Watched::Vmis, ProblemKind::Forbidden), Duration::ZERO).is_none());
        assert_eq!(contact.lost_at(), Some(LOST_AFTER));
        let told = contact.check(LOST_AFTER);
        assert!(matches!(&told, Some(Input::Warn(text)) if text.contains("virtual machine instances")), "{told:?}");
        assert_eq!((contact.lost_at(), contact.check(LOST_AFTER * 2).is_none()), (None, true), "told once");
        assert!(contact.seen(WatchItem::Recovered { what: Watched::Vmis }, SECOND).is_none());
    }

    #[test]
    fn without_the_pods_there_is_no_contact_and_one_word_about_it() {
        let mut contact = Contact::default();
        for what in [Watched::Nodes, pods(), Watched::Vmis] {
            assert!(contact.seen(trouble(what, ProblemKind::Unreachable), Duration::ZERO).is_none());
        }
        assert!(matches!(contact.check(LOST_AFTER), Some(Input::ContactLost)));
        assert!(contact.check(LOST_AFTER * 2).is_none());
        assert!(contact.seen(WatchItem::Recovered { what: Watched::Nodes }, SECOND).is_none());
        let back = contact.seen(WatchItem::Recovered { what: pods() }, SECOND);
        assert!(matches!(back, Some(Input::ContactRestored)), "{back:?}");
    }

    #[test]
    fn refused_credentials_are_renewed_once_a_time_and_then_end_the_run() {
        let mut contact = Contact::default();
        contact.seen(trouble(pods(), ProblemKind::Unauthorized), Duration::ZERO);
        assert!(contact.wants_renewal(Duration::ZERO) && !contact.wants_renewal(SECOND));
        assert!(contact.seen(trouble(pods(), ProblemKind::Unauthorized), SECOND).is_none(), "sent with the old ones");
        let late = contact.seen(trouble(pods(), ProblemKind::Unauthorized), LOST_AFTER * 2);
        assert!(matches!(late, Some(Input::CredentialsRefused)), "{late:?}");
        contact.seen(WatchItem::Recovered { what: pods() }, LOST_AFTER * 3);
        contact.seen(trouble(pods(), ProblemKind::Unauthorized), LOST_AFTER * 4);
        assert!(contact.wants_renewal(LOST_AFTER * 4), "the next hour's expiry is renewed again");
    }
}
