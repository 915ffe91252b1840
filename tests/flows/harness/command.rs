//! What a run of any command but a drain needs: who runs it, who answers, what happens meanwhile, and what is kept of it.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use safe_drain::event::{EventKind, StopReason};
use safe_drain::exit::ExitCode;
use safe_drain::run::{Clock, Session, World};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::flow::{Person, asker, stream};
use super::outcome::Outcome;
use super::recording::{Before, Log};
use super::reporters::{Hook, Told};
use super::venue::Venue;

/// A run before it starts.
pub(super) struct Rig {
    pub(super) venue: Venue,
    user: Option<String>,
    signals: Vec<(Duration, StopReason)>,
    hooks: Vec<Hook>,
    before: Vec<Before>,
    pub(super) person: Person,
    /// True for a look right before a run: the cluster must be the same afterwards, so no time may pass.
    pub(super) brief: bool,
}

impl Rig {
    pub(super) fn new(venue: impl Into<Venue>) -> Self {
        Self {
            venue: venue.into(),
            user: None,
            signals: Vec::new(),
            hooks: Vec::new(),
            before: Vec::new(),
            person: Person::Nobody,
            brief: false,
        }
    }

    /// Somebody else than the admin runs it (on a real cluster).
    pub(super) fn user(&mut self, name: &str) {
        self.user = Some(name.to_owned());
    }

    /// A signal at that time of the run.
    pub(super) fn signal(&mut self, after: Duration, reason: StopReason) {
        self.signals.push((after, reason));
    }

    /// A signal right after the first event that fits.
    pub(super) fn signal_when(&mut self, reason: StopReason, fits: impl Fn(&EventKind) -> bool + 'static) {
        self.hooks.push(Hook::signal(reason, fits));
    }

    /// Does something right after the first event that fits.
    pub(super) fn when(&mut self, fits: impl Fn(&EventKind) -> bool + 'static, work: impl FnOnce() + 'static) {
        self.hooks.push(Hook::work(fits, work));
    }

    /// Does something right before the first request of that method with that in its path.
    pub(super) fn right_before(
        &mut self,
        method: &'static str,
        part: &'static str,
        work: impl FnOnce() + Send + 'static,
    ) {
        self.before.push(Before { method, part, work: Box::new(work) });
    }

    /// Runs a command that is told in that way. After its end it must be silent.
    pub(super) async fn run(
        self,
        told: impl FnOnce(&Clock, Vec<Hook>, UnboundedSender<StopReason>) -> Told,
        command: impl AsyncFnOnce(World, &mut Session) -> ExitCode,
    ) -> Outcome {
        let Self { venue, user, signals, hooks, before, person, brief } = self;
        let log = Log::default();
        let (tx, rx) = unbounded_channel();
        for (after, reason) in signals {
            let tx = tx.clone();
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                // The run may be over.
                let _ = tx.send(reason);
            });
        }
        let question = Arc::new(std::sync::Mutex::new(String::new()));
        let world = World {
            connection: Arc::new(venue.connection(user.as_deref(), &log, before).await),
            signals: stream(rx).boxed(),
            asker: asker(person, &tx, &question),
            own_pod_uid: None,
            width: None,
            did_you_mean: Box::new(|_| None),
        };
        let clock = Clock::start_at(venue.now());
        let mut told = told(&clock, hooks, tx);
        let mut session = Session::new(clock, told.reporter());
        let exit = command(world, &mut session).await;
        session.reporter.finish();
        let (elapsed, requests, ended) = (session.clock.elapsed(), log.all(), venue.elapsed());
        drop(session);
        tokio::time::sleep(if brief { Duration::ZERO } else { venue.silence() }).await;
        let afterwards = log.all().split_off(requests.len());
        assert!(afterwards.is_empty(), "requests after the end: {afterwards:#?}");
        let question = question.lock().map(|q| q.clone()).unwrap_or_default();
        Outcome {
            exit: exit.code(),
            events: told.events(),
            stdout: told.stdout(),
            stderr: told.stderr(),
            document: told.document(),
            question,
            requests,
            elapsed,
            preview: None,
            after: venue.state().await,
            ended,
        }
    }
}
