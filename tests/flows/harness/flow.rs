//! A run: preview, drain, and what an admin and the API server saw of it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{LocalBoxFuture, join, join_all};
use futures::stream::unfold;
use futures::{FutureExt, StreamExt};
use safe_drain::event::{EventKind, StopReason};
use safe_drain::report::Fanout;
use safe_drain::run::{Asker, Clock, Session, World, drain_in};
use safe_drain::settings::{DrainOptions, DryRun};
use safe_drain_sim::Sim;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::outcome::Outcome;
use super::recording::{Before, Log};
use super::reporters::{Hook, Told};
use super::venue::Venue;
use super::{checks, secs, truth};

/// Who sits at the terminal.
#[derive(Clone, Copy)]
pub(super) enum Person {
    Nobody,
    Types(&'static str),
    PressesCtrlC,
}

/// One run, before it starts.
pub struct Flow {
    venue: Venue,
    /// Who runs it, if not the admin.
    user: Option<String>,
    options: DrainOptions,
    person: Person,
    signals: Vec<(Duration, StopReason)>,
    hooks: Vec<Hook>,
    /// Things that happen before a request.
    before: Vec<Before>,
    /// Things that happen at a time; the run is over when they are.
    works: Vec<(Duration, LocalBoxFuture<'static, ()>)>,
    own_pod_uid: Option<String>,
    changes: bool,
    truth: bool,
    /// `-v`
    verbosity: u8,
}

/// A run of that node with the default options.
pub fn drain(sim: &Sim, node: &str) -> Flow {
    Flow::new(sim, DrainOptions::for_nodes([node]))
}

impl Flow {
    pub fn new(venue: impl Into<Venue>, options: DrainOptions) -> Self {
        Self {
            venue: venue.into(),
            user: None,
            options,
            person: Person::Nobody,
            signals: Vec::new(),
            hooks: Vec::new(),
            before: Vec::new(),
            works: Vec::new(),
            own_pod_uid: None,
            changes: false,
            truth: true,
            verbosity: 0,
        }
    }

    /// Changes options.
    pub fn with(mut self, change: impl FnOnce(&mut DrainOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// The time of each node.
    pub fn timeout(self, seconds: u64) -> Self {
        self.with(|o| o.timeout = secs(seconds))
    }

    /// `--dry-run`
    pub fn preview(self, how: DryRun) -> Self {
        self.with(|o| o.dry_run = how)
    }

    /// Somebody is at the terminal and types that; an empty text is the end of the input.
    pub fn answers(self, line: &'static str) -> Self {
        Self { person: Person::Types(line), ..self }
    }

    /// Somebody is at the terminal and presses Ctrl-C at the question.
    pub fn answers_ctrl_c(self) -> Self {
        Self { person: Person::PressesCtrlC, ..self }
    }

    /// A signal at that time of the run.
    pub fn signal(mut self, after: Duration, reason: StopReason) -> Self {
        self.signals.push((after, reason));
        self
    }

    /// A signal right after the first event that fits.
    pub fn signal_when(mut self, reason: StopReason, fits: impl Fn(&EventKind) -> bool + 'static) -> Self {
        self.hooks.push(Hook::signal(reason, fits));
        self
    }

    /// Does something to the simulated cluster right after the first event that fits.
    pub fn when(self, fits: impl Fn(&EventKind) -> bool + 'static, work: impl FnOnce(&Sim) + 'static) -> Self {
        let sim = self.sim();
        self.right_after(fits, move || work(&sim))
    }

    /// Does something to the simulated cluster at that time of the run.
    pub fn at(self, after: Duration, work: impl FnOnce(&Sim) + 'static) -> Self {
        let sim = self.sim();
        self.later(after, async move { work(&sim) })
    }

    fn sim(&self) -> Sim {
        match &self.venue {
            Venue::Sim(sim) => sim.clone(),
            Venue::Real(_) => panic!("a real cluster is changed by acts of its stage"),
        }
    }

    /// Does something right after the first event that fits; the run stands still meanwhile.
    pub fn right_after(mut self, fits: impl Fn(&EventKind) -> bool + 'static, work: impl FnOnce() + 'static) -> Self {
        self.hooks.push(Hook::work(fits, work));
        self
    }

    /// Does something right before the first request of that method with that in its path; the run stands still meanwhile.
    pub fn right_before(
        mut self,
        method: &'static str,
        part: &'static str,
        work: impl FnOnce() + Send + 'static,
    ) -> Self {
        self.before.push(Before { method, part, work: Box::new(work) });
        self
    }

    /// Does something beside the run from that time of it on; the run is over when that is done.
    pub fn later(mut self, after: Duration, work: impl Future<Output = ()> + 'static) -> Self {
        self.works.push((after, work.boxed_local()));
        self
    }

    /// Does something beside the run that long after the first event that fits; the run is over when that is done.
    pub fn later_than(
        self,
        fits: impl Fn(&EventKind) -> bool + 'static,
        after: Duration,
        work: impl Future<Output = ()> + 'static,
    ) -> Self {
        let (tx, rx) = oneshot::channel();
        let this = self.right_after(fits, move || {
            let _ = tx.send(());
        });
        this.later(Duration::ZERO, async move {
            // The event may never come.
            if rx.await.is_ok() {
                tokio::time::sleep(after).await;
                work.await;
            }
        })
    }

    /// Somebody else than the admin runs it (on a real cluster).
    pub fn user(self, name: &str) -> Self {
        Self { user: Some(name.to_owned()), ..self }
    }

    /// The command runs in that pod.
    pub fn own_pod(mut self, uid: &str) -> Self {
        self.own_pod_uid = Some(uid.to_owned());
        self
    }

    /// The cluster changes under the drain, or answers what a preview cannot know: results that the documentation calls
    /// *changed* are no failure.
    pub fn changes(self) -> Self {
        Self { changes: true, ..self }
    }

    /// `-v`
    pub fn verbosity(self, verbosity: u8) -> Self {
        Self { verbosity, ..self }
    }

    /// No comparison with a preview, since there can be none.
    pub fn without_preview(self) -> Self {
        Self { truth: false, ..self }
    }

    /// Runs it, and checks what must hold for every run.
    pub async fn run(self) -> Outcome {
        let real = !self.options.dry_run.is_preview();
        let preview = if self.truth && real && matches!(self.person, Person::Nobody) {
            Some(Box::new(self.previewed().await))
        } else {
            None
        };
        let (truth, changes, options) = (self.truth && real, self.changes, self.options.clone());
        let mut outcome = self.once().await;
        outcome.preview = preview;
        checks::always(&outcome, &options);
        if truth {
            truth::check(&outcome, changes);
        }
        outcome
    }

    async fn previewed(&self) -> Outcome {
        let options = DrainOptions { dry_run: DryRun::Client, ..self.options.clone() };
        let mut flow = Self::new(self.venue.clone(), options);
        flow.user.clone_from(&self.user);
        flow.own_pod_uid.clone_from(&self.own_pod_uid);
        let outcome = flow.once().await;
        checks::always(&outcome, &DrainOptions { dry_run: DryRun::Client, ..self.options.clone() });
        outcome
    }

    async fn once(self) -> Outcome {
        let Self { venue, user, options, person, signals, hooks, before, works, own_pod_uid, verbosity, .. } = self;
        let log = Log::default();
        let (tx, rx) = unbounded_channel();
        for (after, reason) in signals {
            let tx = tx.clone();
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                let _ = tx.send(reason);
            });
        }
        let works = join_all(works.into_iter().map(async |(after, work)| {
            tokio::time::sleep(after).await;
            work.await;
        }));
        let question = Arc::new(std::sync::Mutex::new(String::new()));
        let world = World {
            connection: Arc::new(venue.connection(user.as_deref(), &log, before).await),
            signals: stream(rx).boxed(),
            asker: asker(person, &tx, &question),
            own_pod_uid,
            width: None,
            did_you_mean: Box::new(|_| None),
        };
        let clock = Clock::start_at(venue.now());
        let mut told = Told::new(&options, verbosity, &clock, hooks, tx.clone());
        let mut session = Session::new(clock, told.reporter());
        let drained = async {
            let exit = drain_in(world, &options, &mut session).await;
            session.reporter.finish();
            // No event comes any more: whoever waits for one need not.
            session.reporter = Box::new(Fanout::new());
            (exit, session.clock.elapsed(), log.all(), venue.elapsed(), venue.state().await)
        };
        let ((exit, elapsed, requests, ended, after), _) = join(drained, works).await;
        drop(session);
        tokio::time::sleep(if options.dry_run.is_preview() { Duration::ZERO } else { venue.silence() }).await;
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
            after,
            ended,
        }
    }
}

pub(super) fn stream(rx: UnboundedReceiver<StopReason>) -> impl futures::Stream<Item = StopReason> {
    unfold(rx, async |mut rx| rx.recv().await.map(|reason| (reason, rx)))
}

pub(super) fn asker(
    person: Person,
    tx: &UnboundedSender<StopReason>,
    question: &Arc<std::sync::Mutex<String>>,
) -> Option<Asker> {
    let (tx, question) = (tx.clone(), question.clone());
    match person {
        Person::Nobody => None,
        Person::Types(line) => Some(Box::new(move |text| {
            *question.lock().expect("one thread") = text;
            Box::pin(async move { line.to_owned() })
        })),
        Person::PressesCtrlC => Some(Box::new(move |text| {
            *question.lock().expect("one thread") = text;
            let _ = tx.send(StopReason::Interrupt);
            Box::pin(std::future::pending())
        })),
    }
}
