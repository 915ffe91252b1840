//! A whole run in virtual time: preview, drain, and what an admin and the API server saw of it.

mod checks;
mod reporters;
mod truth;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::unfold;
use jiff::{SignedDuration, Timestamp};
use safe_drain::cluster::Connection;
use safe_drain::event::{DrainEvent, EventKind, StopReason};
use safe_drain::run::{Asker, Clock, Session, World, drain_in};
use safe_drain::settings::{DrainOptions, DryRun};
use safe_drain_sim::{Json, Recorded, Sim};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use self::reporters::{Hook, Told};

/// How many lines of each sort a failure shows.
const MOST: usize = 40;

/// Who sits at the terminal.
#[derive(Clone, Copy)]
enum Person {
    Nobody,
    Types(&'static str),
    PressesCtrlC,
}

/// One run, before it starts.
pub struct Flow {
    sim: Sim,
    options: DrainOptions,
    person: Person,
    signals: Vec<(Duration, StopReason)>,
    hooks: Vec<Hook>,
    own_pod_uid: Option<String>,
    changes: bool,
    truth: bool,
}

/// A run of that node with the default options.
pub fn drain(sim: &Sim, node: &str) -> Flow {
    Flow::new(sim, DrainOptions::for_nodes([node]))
}

/// Whole seconds.
pub const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

impl Flow {
    pub fn new(sim: &Sim, options: DrainOptions) -> Self {
        Self {
            sim: sim.clone(),
            options,
            person: Person::Nobody,
            signals: Vec::new(),
            hooks: Vec::new(),
            own_pod_uid: None,
            changes: false,
            truth: true,
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

    /// Does something to the cluster right after the first event that fits.
    pub fn when(mut self, fits: impl Fn(&EventKind) -> bool + 'static, work: impl FnOnce(&Sim) + 'static) -> Self {
        let sim = self.sim.clone();
        self.hooks.push(Hook::work(fits, move || work(&sim)));
        self
    }

    /// Does something to the cluster at that time of the run.
    pub fn at(self, after: Duration, work: impl FnOnce(&Sim) + Send + 'static) -> Self {
        let sim = self.sim.clone();
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            work(&sim);
        });
        self
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
        let mut flow = Self::new(&self.sim, options);
        flow.own_pod_uid.clone_from(&self.own_pod_uid);
        let outcome = flow.once().await;
        checks::always(&outcome, &DrainOptions { dry_run: DryRun::Client, ..self.options.clone() });
        outcome
    }

    async fn once(self) -> Outcome {
        let Self { sim, options, person, signals, hooks, own_pod_uid, .. } = self;
        let asked_before = sim.requests().len();
        let (tx, rx) = unbounded_channel();
        for (after, reason) in signals {
            let tx = tx.clone();
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                let _ = tx.send(reason);
            });
        }
        let question = Arc::new(std::sync::Mutex::new(String::new()));
        let world = World {
            connection: Arc::new(Connection::over(
                kube::Client::new(sim.service(), "default"),
                "https://sim",
                Some(secs(30)),
            )),
            signals: stream(rx).boxed(),
            asker: asker(person, &tx, &question),
            own_pod_uid,
            width: None,
            did_you_mean: Box::new(|_| None),
        };
        let clock = Clock::start_at(wall(&sim));
        let mut told = Told::new(&options, &clock, hooks, tx.clone());
        let mut session = Session::new(clock, told.reporter());
        let exit = drain_in(world, &options, &mut session).await;
        session.reporter.finish();
        let elapsed = session.clock.elapsed();
        drop(session);
        let requests = sim.requests().split_off(asked_before);
        tokio::time::sleep(if options.dry_run.is_preview() { Duration::ZERO } else { secs(5) }).await;
        let afterwards = sim.requests().split_off(asked_before + requests.len());
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
            sim,
        }
    }
}

/// The simulated cluster's wall time.
fn wall(sim: &Sim) -> Timestamp {
    let namespace = sim.get("Namespace", "", "default").expect("every cluster has it");
    let base: Timestamp = namespace.text("/metadata/creationTimestamp").parse().expect("a time");
    base + SignedDuration::try_from(sim.elapsed()).expect("not that long")
}

fn stream(rx: UnboundedReceiver<StopReason>) -> impl futures::Stream<Item = StopReason> {
    unfold(rx, async |mut rx| rx.recv().await.map(|reason| (reason, rx)))
}

fn asker(person: Person, tx: &UnboundedSender<StopReason>, question: &Arc<std::sync::Mutex<String>>) -> Option<Asker> {
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

/// What came of a run.
pub struct Outcome {
    pub exit: u8,
    pub events: Vec<DrainEvent>,
    pub stdout: String,
    pub stderr: String,
    /// The document of `-o json`.
    pub document: Value,
    /// The question, if one was asked.
    pub question: String,
    pub requests: Vec<Recorded>,
    pub elapsed: Duration,
    /// The preview of the same command right before.
    pub preview: Option<Box<Outcome>>,
    pub sim: Sim,
}

impl Outcome {
    /// The row of a VM, by its name.
    pub fn vm(&self, name: &str) -> &Value {
        self.rows("vms").into_iter().find(|r| r.text("/name") == name).unwrap_or_else(|| self.fail(name))
    }

    /// The row of a pod whose name starts like that.
    pub fn pod(&self, name: &str) -> &Value {
        self.rows("pods").into_iter().find(|r| r.text("/name").starts_with(name)).unwrap_or_else(|| self.fail(name))
    }

    /// All rows of a kind ("vms", "pods"), over all nodes.
    pub fn rows(&self, kind: &str) -> Vec<&Value> {
        self.document.list("/nodes").iter().flat_map(|n| n.list(&format!("/{kind}"))).collect()
    }

    /// Requests by method and part of their path with query.
    pub fn asked(&self, method: &str, part: &str) -> Vec<&Recorded> {
        let fits = |r: &&Recorded| r.method == method && format!("{}?{}", r.path, r.query).contains(part);
        self.requests.iter().filter(fits).collect()
    }

    /// Evictions of a pod whose name starts like that.
    pub fn evictions(&self, pod: &str) -> Vec<&Recorded> {
        self.asked("POST", &format!("/pods/{pod}")).into_iter().filter(|r| r.path.ends_with("/eviction")).collect()
    }

    /// Evictions of a VM's launchers.
    pub fn launcher_evictions(&self, vm: &str) -> Vec<&Recorded> {
        self.evictions(&format!("virt-launcher-{vm}-"))
    }

    /// Restarts of a VM.
    pub fn restarts(&self, vm: &str) -> Vec<&Recorded> {
        self.asked("PUT", &format!("/virtualmachines/{vm}/restart"))
    }

    /// Requests that can have changed something.
    pub fn writes(&self) -> Vec<&Recorded> {
        self.requests.iter().filter(|r| r.is_write()).collect()
    }

    /// True if the node is cordoned now.
    pub fn cordoned(&self, node: &str) -> bool {
        self.sim.get("Node", "", node).is_some_and(|n| n.flag("/spec/unschedulable"))
    }

    /// The simulated time of a moment of the run, for comparing with [`Recorded::at`].
    pub fn first_write(&self) -> Option<Duration> {
        self.writes().first().map(|r| r.at)
    }

    /// The events' names with that object, in order.
    pub fn event(&self, fits: impl Fn(&EventKind) -> bool) -> Option<&DrainEvent> {
        self.events.iter().find(|e| fits(&e.kind))
    }

    /// Ends the test with all that was seen.
    #[track_caller]
    pub fn fail(&self, why: &str) -> ! {
        panic!("{why}\n{self}")
    }

    /// Checks the exit code.
    #[track_caller]
    pub fn exits(&self, code: u8) -> &Self {
        if self.exit != code {
            self.fail(&format!("exit {} in place of {code}", self.exit));
        }
        self
    }

    /// stderr says that.
    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        if !self.stderr.contains(text) {
            self.fail(&format!("stderr does not say {text:?}"));
        }
        self
    }

    /// stdout has that.
    #[track_caller]
    pub fn prints(&self, text: &str) -> &Self {
        if !self.stdout.contains(text) {
            self.fail(&format!("stdout does not have {text:?}"));
        }
        self
    }

    /// A VM's row ends like that; an empty cause is none.
    #[track_caller]
    pub fn vm_is(&self, name: &str, outcome: &str, cause: &str) -> &Value {
        self.row_is(self.vm(name), outcome, cause)
    }

    /// A pod's row ends like that; an empty cause is none.
    #[track_caller]
    pub fn pod_is(&self, name: &str, outcome: &str, cause: &str) -> &Value {
        self.row_is(self.pod(name), outcome, cause)
    }

    #[track_caller]
    fn row_is<'a>(&self, row: &'a Value, outcome: &str, cause: &str) -> &'a Value {
        if (row.text("/outcome"), row.text("/cause")) != (outcome, cause) {
            self.fail(&format!("not {outcome} {cause}: {row:#}"));
        }
        row
    }

    /// Nothing was changed: no write reached the API server.
    #[track_caller]
    pub fn changed_nothing(&self) -> &Self {
        if !self.writes().is_empty() {
            self.fail("something was changed");
        }
        self
    }

    /// The whole of it, as in a terminal.
    pub fn transcript(&self) -> String {
        format!("{}--- stderr\n{}--- exit {}\n", self.stdout, self.stderr, self.exit)
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut lines: Vec<String> = Vec::new();
        let mut part = |all: Vec<String>| {
            let more = all.len().saturating_sub(MOST);
            lines.extend(all.into_iter().take(MOST));
            if more > 0 {
                lines.push(format!("… {more} more"));
            }
        };
        part(self.stdout.lines().map(str::to_owned).collect());
        part(self.stderr.lines().map(str::to_owned).collect());
        part(vec![format!("exit {} after {:?}", self.exit, self.elapsed)]);
        let told = self.requests.iter().filter(|r| r.method != "GET" && !r.path.contains("/selfsubject"));
        part(told.map(|r| format!("{:>10.3?} {} {}?{} → {}", r.at, r.method, r.path, r.query, r.status)).collect());
        let row = |r: &&Value| ["/name", "/outcome", "/cause", "/because"].map(|f| r.text(f).to_owned()).join(" ");
        part(self.rows("vms").iter().map(row).collect());
        part(self.rows("pods").iter().map(row).collect());
        f.write_str(&lines.join("\n"))
    }
}
