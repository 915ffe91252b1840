//! A run of `audit`, with what must hold for every one.

use std::time::Duration;

use safe_drain::event::StopReason;
use safe_drain::facts::Scope;
use safe_drain::run::audit_in;
use safe_drain::settings::LabelSelector;
use safe_drain_sim::Json;
use serde_json::Value;

use super::command::Rig;
use super::outcome::Outcome;
use super::reporters::Told;
use super::venue::Venue;

/// One run, before it starts.
pub struct Audit {
    rig: Rig,
    scope: Scope,
    selector: Option<String>,
    detailed: bool,
}

/// `audit` of all VMs.
pub fn audit(venue: impl Into<Venue>) -> Audit {
    Audit { rig: Rig::new(venue), scope: Scope::default(), selector: None, detailed: false }
}

impl Audit {
    /// `-n`
    pub fn namespace(mut self, name: &str) -> Self {
        self.scope.namespace = Some(name.to_owned());
        self
    }

    /// `-l`
    pub fn selector(mut self, text: &str) -> Self {
        let parsed = LabelSelector::parse(text).expect("a selector");
        self.scope.selector = Some(parsed.selector().clone());
        self.selector = Some(text.to_owned());
        self
    }

    /// `--detailed-exitcode`
    pub fn detailed(mut self) -> Self {
        self.detailed = true;
        self
    }

    /// A signal at that time of the run.
    pub fn signal(mut self, after: Duration, reason: StopReason) -> Self {
        self.rig.signal(after, reason);
        self
    }

    /// Runs it, and checks what must hold for every run.
    pub async fn run(self) -> Outcome {
        let Self { rig, scope, selector, detailed } = self;
        let told = scope.clone();
        let outcome = rig
            .run(
                move |clock, hooks, tx| Told::of_audit(&told, selector, clock, hooks, tx),
                async |world, session| audit_in(world, &scope, detailed, session).await,
            )
            .await;
        always(&outcome, detailed);
        outcome
    }
}

/// The VMs of the document, by their names.
pub fn vms(run: &Outcome) -> impl Iterator<Item = &Value> {
    run.document.list("/nodes").iter().flat_map(|node| node.list("/vms"))
}

fn always(run: &Outcome, detailed: bool) {
    run.changed_nothing();
    if let Some(write) = run.requests.iter().find(|r| r.method != "GET") {
        run.fail(&format!("an audit only reads, and sent {} {}", write.method, write.path));
    }
    if run.requests.iter().any(|r| r.query.contains("watch=")) {
        run.fail("an audit opens no watch");
    }
    if let Some(list) = run.requests.iter().find(|r| r.query.is_empty() && r.path.ends_with('s') && lists(&r.path)) {
        run.fail(&format!("not paged: {}", list.path));
    }
    let d = &run.document;
    if d.text("/kind") != "Audit" || d.int("/exitCode") != Some(i64::from(run.exit)) || d.flag("/changed") {
        run.fail("not the document of this run");
    }
    if matches!(run.exit, 0 | 3) {
        let blocks = vms(run).filter(|vm| vm.text("/outcome") == "blocks").count();
        if d.int("/audit/counts/vms") != i64::try_from(vms(run).count()).ok()
            || d.int("/audit/counts/blocked") != i64::try_from(blocks).ok()
        {
            run.fail("the counts are not those of the rows");
        }
        if run.exit != if detailed && blocks > 0 { 3 } else { 0 } {
            run.fail("not the exit code of what was found");
        }
        for command in vms(run).map(|vm| vm.text("/restartCommand")).filter(|c| !c.is_empty()) {
            if run.stdout.matches(command).count() != 1 {
                run.fail(&format!("{command} must be printed once"));
            }
        }
    }
}

/// True for the path of a list of the kinds that may be many.
fn lists(path: &str) -> bool {
    ["/pods", "/nodes", "/virtualmachines", "/virtualmachineinstances", "/poddisruptionbudgets"]
        .iter()
        .any(|kind| path.ends_with(kind))
}
