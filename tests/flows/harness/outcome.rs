//! What came of a run, and what a test may ask of it.

use std::time::Duration;

use safe_drain::event::{DrainEvent, EventKind};
use safe_drain_sim::{Json, Recorded};
use serde_json::Value;

use super::venue::State;

/// How many lines of each sort a failure shows.
const MOST: usize = 40;

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
    /// The cluster right after the run.
    pub after: State,
    /// When the run ended, on the clock of [`Recorded::at`].
    pub ended: Duration,
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
        self.after.get("Node", "", node).is_some_and(|n| n.flag("/spec/unschedulable"))
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
