//! A run of `restart-stale`, with what must hold for every one.

use std::collections::BTreeMap;
use std::time::Duration;

use safe_drain::event::{EventKind, StopReason};
use safe_drain::run::restart_in;
use safe_drain::settings::{DEFAULT_TIMEOUT, DryRun, LabelSelector, RestartOptions, RestartStale};
use safe_drain_sim::{Json, Sim};

use super::command::Rig;
use super::flow::Person;
use super::outcome::Outcome;
use super::reporters::Told;
use super::venue::Venue;
use super::{secs, truth};

/// One run, before it starts.
pub struct Restart {
    rig: Rig,
    options: RestartOptions,
    namespace: Option<String>,
    changes: bool,
}

/// `restart-stale`, with consent by flag.
pub fn restart_stale(venue: impl Into<Venue>) -> Restart {
    Restart {
        rig: Rig::new(venue),
        options: RestartOptions {
            selector: None,
            all_namespaces: false,
            dry_run: DryRun::None,
            restart_stale: RestartStale::Always,
            allow_vm_down: false,
            delete_emptydir_data: false,
            timeout: DEFAULT_TIMEOUT,
        },
        namespace: None,
        changes: false,
    }
}

impl Restart {
    /// Changes options.
    pub fn with(mut self, change: impl FnOnce(&mut RestartOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// `--restart-stale` is not given.
    pub fn without_consent(self) -> Self {
        self.with(|o| o.restart_stale = RestartStale::Unset)
    }

    /// `--timeout`
    pub fn timeout(self, seconds: u64) -> Self {
        self.with(|o| o.timeout = secs(seconds))
    }

    /// `--dry-run`
    pub fn preview(self, how: DryRun) -> Self {
        self.with(|o| o.dry_run = how)
    }

    /// `-n`
    pub fn namespace(self, name: &str) -> Self {
        Self { namespace: Some(name.to_owned()), ..self }
    }

    /// `-l`
    pub fn selector(self, text: &str) -> Self {
        let selector = LabelSelector::parse(text).expect("a selector");
        self.with(|o| o.selector = Some(selector))
    }

    /// Somebody is at the terminal and types that.
    pub fn answers(mut self, line: &'static str) -> Self {
        self.rig.person = Person::Types(line);
        self
    }

    /// Somebody is at the terminal and presses Ctrl-C at the question.
    pub fn answers_ctrl_c(mut self) -> Self {
        self.rig.person = Person::PressesCtrlC;
        self
    }

    /// A signal right after the first event that fits.
    pub fn signal_when(mut self, reason: StopReason, fits: impl Fn(&EventKind) -> bool + 'static) -> Self {
        self.rig.signal_when(reason, fits);
        self
    }

    /// Does something to the cluster right after the first event that fits: results that the documentation calls
    /// *changed* are no failure.
    pub fn when(mut self, fits: impl Fn(&EventKind) -> bool + 'static, work: impl FnOnce(&Sim) + 'static) -> Self {
        let Venue::Sim(sim) = self.rig.venue.clone() else { panic!("a real cluster is changed by acts of its stage") };
        self.rig.when(fits, move || work(&sim));
        self.changes()
    }

    /// The server answers what a preview cannot know.
    pub fn changes(self) -> Self {
        Self { changes: true, ..self }
    }

    /// Runs it, and checks what must hold for every run.
    pub async fn run(self) -> Outcome {
        let real = !self.options.dry_run.is_preview();
        let promise = if real && matches!(self.rig.person, Person::Nobody) {
            let mut preview = restart_stale(self.rig.venue.clone());
            preview.options = RestartOptions { dry_run: DryRun::Client, ..self.options.clone() };
            preview.namespace.clone_from(&self.namespace);
            let outcome = preview.once().await;
            always(&outcome, true, secs(0));
            Some(Box::new(outcome))
        } else {
            None
        };
        let (changes, timeout) = (self.changes, self.options.timeout);
        let mut outcome = self.once().await;
        outcome.preview = promise;
        always(&outcome, !real, timeout);
        if real {
            truth::check(&outcome, changes);
        }
        outcome
    }

    /// Runs it, without what is compared or held.
    pub async fn once(self) -> Outcome {
        let Self { mut rig, options, namespace, .. } = self;
        rig.brief = options.dry_run.is_preview();
        rig.run(
            |clock, hooks, tx| Told::of_restarts(&options, clock, hooks, tx),
            async |world, session| restart_in(world, &options, namespace.as_deref(), session).await,
        )
        .await
    }
}

fn always(run: &Outcome, preview: bool, timeout: Duration) {
    let mut accepted: BTreeMap<&str, usize> = BTreeMap::new();
    for r in run.requests.iter().filter(|r| r.method != "GET" && !r.path.contains("/selfsubject")) {
        if r.method != "PUT" || !r.path.ends_with("/restart") {
            run.fail(&format!("must never be sent: {} {}", r.method, r.path));
        }
        if r.query.contains("dryRun") {
            run.fail("a dry run that the server ignores");
        }
        if !r.is_dry_run() && r.status == 202 {
            *accepted.entry(&r.path).or_default() += 1;
        }
    }
    if accepted.values().any(|n| *n > 1) {
        run.fail("a VM was restarted twice");
    }
    let d = &run.document;
    if d.text("/kind") != "RestartResult" || d.int("/exitCode") != Some(i64::from(run.exit)) {
        run.fail("not the document of this run");
    }
    // What got no answer may have been carried out.
    let unknown = run.requests.iter().any(|r| r.method == "PUT" && r.status == 0);
    if accepted.is_empty() == d.flag("/changed") && !unknown {
        run.fail("the document says the contrary about changes");
    }
    if preview || matches!(run.exit, 2 | 4) {
        run.changed_nothing();
    }
    for word in ["drained", "evicted", "evicting", "draining", "Draining", "\nnode/"] {
        if run.stdout.contains(word) || run.stderr.contains(word) {
            run.fail(&format!("it speaks of a drain: {word}"));
        }
    }
    for row in run.rows("vms") {
        if row.text("/because").is_empty() {
            run.fail(&format!("a row without a reason: {row:#}"));
        }
        if !preview && row.text("/outcome") == "waits" {
            run.fail(&format!("a result that waits: {row:#}"));
        }
    }
    let mut lines: Vec<&str> = run.stdout.lines().filter(|l| l.ends_with(" restarted")).collect();
    lines.sort_unstable();
    if lines.windows(2).any(|pair| pair[0] == pair[1]) {
        run.fail("a fact is told twice");
    }
    if let Some(first) = run.first_write().filter(|_| run.ended > Duration::ZERO)
        && run.ended > first + timeout + secs(2)
    {
        run.fail(&format!("it ended at {:?}", run.ended));
    }
}
