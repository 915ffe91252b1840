//! A run of `cancel`, with what must hold for every one.

use std::time::Duration;

use safe_drain::event::{EventKind, StopReason};
use safe_drain::run::cancel_in;
use safe_drain::settings::{CancelOptions, DryRun};
use safe_drain_sim::Json;

use super::command::Rig;
use super::outcome::Outcome;
use super::reporters::Told;
use super::secs;
use super::venue::Venue;

/// One run, before it starts.
pub struct Cancel {
    rig: Rig,
    options: CancelOptions,
}

/// `cancel` of these nodes.
pub fn cancel<'a>(venue: impl Into<Venue>, nodes: impl IntoIterator<Item = &'a str>) -> Cancel {
    let nodes = nodes.into_iter().map(str::to_owned).collect();
    Cancel { rig: Rig::new(venue), options: CancelOptions { nodes, dry_run: DryRun::None } }
}

impl Cancel {
    /// `--dry-run`
    pub fn preview(mut self, how: DryRun) -> Self {
        self.options.dry_run = how;
        self
    }

    /// Somebody else than the admin runs it (on a real cluster).
    pub fn user(mut self, name: &str) -> Self {
        self.rig.user(name);
        self
    }

    /// A signal right after the first event that fits.
    pub fn signal_when(mut self, reason: StopReason, fits: impl Fn(&EventKind) -> bool + 'static) -> Self {
        self.rig.signal_when(reason, fits);
        self
    }

    /// Does something right before the first request of that method with that in its path.
    pub fn right_before(
        mut self,
        method: &'static str,
        part: &'static str,
        work: impl FnOnce() + Send + 'static,
    ) -> Self {
        self.rig.right_before(method, part, work);
        self
    }

    /// Runs it, and checks what must hold for every run.
    pub async fn run(self) -> Outcome {
        let Self { rig, options } = self;
        let told = options.clone();
        let outcome = rig
            .run(
                move |clock, hooks, tx| Told::of_cancel(&told, clock, hooks, tx),
                async |world, session| cancel_in(world, &options, session).await,
            )
            .await;
        always(&outcome, options.dry_run.is_preview());
        outcome
    }
}

fn always(run: &Outcome, preview: bool) {
    for r in run.requests.iter().filter(|r| r.method != "GET" && !r.path.contains("/selfsubject")) {
        let known = match r.method.as_str() {
            "PUT" => r.path.ends_with("/evacuate/cancel"),
            "DELETE" => r.path.contains("/virtualmachineinstancemigrations/"),
            "PATCH" => r.path.contains("/api/v1/nodes/"),
            _ => false,
        };
        if !known {
            run.fail(&format!("must never be sent: {} {}", r.method, r.path));
        }
        if r.method == "PUT" && r.query.contains("dryRun") {
            run.fail("a dry run that the server ignores");
        }
        if r.method == "DELETE" && r.body.as_ref().is_none_or(|b| b.text("/preconditions/uid").is_empty()) {
            run.fail("a deletion without a UID");
        }
    }
    let d = &run.document;
    if d.text("/kind") != "CancelResult" || d.int("/exitCode") != Some(i64::from(run.exit)) {
        run.fail("not the document of this run");
    }
    let wrote = run.writes().iter().any(|r| (200..300).contains(&r.status));
    if wrote != d.flag("/changed") && run.exit < 129 {
        run.fail("the document says the contrary about changes");
    }
    if preview || matches!(run.exit, 2 | 4) {
        run.changed_nothing();
    }
    let mut lines: Vec<&str> = run.stdout.lines().collect();
    lines.sort_unstable();
    if lines.windows(2).any(|pair| pair[0] == pair[1]) {
        run.fail("a fact is told twice");
    }
    for node in d.list("/nodes") {
        let name = node.text("/name");
        if run.after.get("Node", "", name).is_some()
            && node.flag("/cordonedNow") != run.cordoned(name)
            && run.exit < 129
        {
            run.fail(&format!("{name} is cordoned: {}, the document says the contrary", run.cordoned(name)));
        }
    }
    if run.elapsed > secs(32) + Duration::from_millis(500) {
        run.fail(&format!("it took {:?}", run.elapsed));
    }
}
