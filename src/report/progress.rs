//! Lines on stderr while a run goes on: what has no line on stdout, warnings, and a heartbeat. Pure.
//!
//! A plain line carries the seconds since the start of the run, `[  12.3s]`: relative, since that is what one compares
//! with the timeout, and the same in every time zone. The wall time is in the event file and in the document.
//! Warnings begin with `Warning:` and nothing before it, as kubectl's do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::preview::server_words;
use super::state::{NodeState, State, with_noun};
use super::style::{Label, Line};
use super::summary::verdict_line;
use super::text::{agree, duration, names, plural, span, stamp};
use super::words::{activity, plain, pod_because, pod_verb, stop_reason, vm_because, vm_on_drain};
use super::{Task, groups, remedies, restarts};
use crate::event::{Activity, DrainEvent, EventKind, PodExit, VmProgress};
use crate::facts::{Key, PodKey};
use crate::outcome::{Cause, NodeReport, PodOutcome, PodRow, Verdict, VmOutcome, VmRow};

/// Time between two heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// A pod that may take longer than this to stop gets a line that says so.
const LONG_GRACE: i64 = 120;

/// How much is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Detail {
    /// Every change: no screen shows it.
    #[default]
    Full,
    /// What must outlive the screen that shows the rest.
    BesideScreen,
    /// Warnings and errors only (`--quiet`).
    Quiet,
}

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// A change that a screen shows anyway.
    Change,
    /// Worth keeping beside a screen.
    Notice,
    /// Always said.
    Warning,
}

/// Fold of events into stderr lines.
#[derive(Debug, Default)]
pub struct Progress {
    task: Task,
    detail: Detail,
    previews: bool,
    timeout: Duration,
    several_nodes: bool,
    planned: bool,
    /// Last progress per VM.
    vms: BTreeMap<Key, VmProgress>,
    /// Last text per object: the same text is never said twice in a row.
    last: BTreeMap<String, String>,
    /// Reasons for which pods wait, that were said once.
    waits: BTreeSet<(String, Cause, String)>,
    last_line: Duration,
}

impl Progress {
    /// A fold that has seen nothing. `previews` is `--dry-run`.
    pub fn new(task: Task, detail: Detail, previews: bool) -> Self {
        Self { task, detail, previews, ..Self::default() }
    }

    /// The lines of an event. `stdout` is its line there, where stdout has no lines and stderr says it instead.
    pub fn event(&mut self, event: &DrainEvent, stdout: Option<Line>) -> Vec<Line> {
        let now = Duration::from_millis(event.elapsed_ms);
        let mut said: Vec<(Weight, Line)> = stdout.map(|line| (Weight::Change, line)).into_iter().collect();
        said.extend(self.lines(&event.kind));
        let least = match self.detail {
            Detail::Full => Weight::Change,
            Detail::BesideScreen => Weight::Notice,
            Detail::Quiet => Weight::Warning,
        };
        let kept: Vec<Line> = said
            .into_iter()
            .filter(|(weight, _)| *weight >= least)
            .map(|(weight, line)| self.dress(weight, now, line))
            .collect();
        if !kept.is_empty() {
            self.last_line = now;
        }
        kept
    }

    /// A heartbeat a minute after the last line, for each node whose turn it is.
    pub fn tick(&mut self, state: &State, elapsed: Duration) -> Vec<Line> {
        if self.detail != Detail::Full || elapsed.saturating_sub(self.last_line) < HEARTBEAT {
            return Vec::new();
        }
        self.last_line = elapsed;
        let beat = |node: &NodeState| {
            let prefix = if self.several_nodes { format!("{}: ", node.name) } else { String::new() };
            self.dress(Weight::Change, elapsed, Line::plain(prefix + &state.heartbeat(node, elapsed)))
        };
        state.active().map(beat).collect()
    }

    /// The line with what stands before it.
    fn dress(&self, weight: Weight, now: Duration, line: Line) -> Line {
        match weight {
            Weight::Warning => Line::new().with(Label::Caution, "Warning: ").and(line),
            Weight::Change | Weight::Notice if self.detail == Detail::Full => {
                Line::new().with(Label::Faint, stamp(now)).with(Label::Plain, " ").and(line)
            }
            Weight::Change | Weight::Notice => line,
        }
    }

    fn lines(&mut self, kind: &EventKind) -> Vec<(Weight, Line)> {
        match kind {
            EventKind::Connected { server, nodes, timeout_seconds, .. } => {
                self.timeout = Duration::from_secs(*timeout_seconds);
                self.several_nodes = nodes.len() > 1;
                let per = if self.several_nodes { " per node" } else { "" };
                let timeout = span(self.timeout);
                let doing = match (&self.task, self.previews) {
                    (Task::Drain, false) => format!("draining {}", names(nodes, 5)),
                    (Task::Drain, true) => format!("previewing {}", names(nodes, 5)),
                    (Task::Restart { scope }, false) => format!("restarting the stale VMs in {scope}"),
                    (Task::Restart { scope }, true) => format!("previewing restarts of the stale VMs in {scope}"),
                };
                notice(format!("{doing} · {} · timeout {timeout}{per}", server_words(server)))
            }
            // A plan comes again where the answer to the question changed it: what that means is said at the end.
            EventKind::Planned { .. } if std::mem::replace(&mut self.planned, true) => Vec::new(),
            EventKind::Planned { nodes } => {
                let plans: Vec<String> = match self.task {
                    Task::Drain => nodes.iter().map(plan_words).collect(),
                    Task::Restart { .. } => restarts::plan_words(nodes).into_iter().collect(),
                };
                let plans = plans.into_iter().map(|text| (Weight::Notice, Line::plain(text)));
                let warnings = nodes.iter().flat_map(|n| &n.warnings);
                let warnings = restarts::folded(warnings);
                let warnings = warnings.into_iter().map(|text| (Weight::Warning, Line::plain(text)));
                plans.chain(warnings).collect()
            }
            EventKind::Noted { warning: true, text } => warning(text),
            EventKind::Noted { warning: false, text } => notice(text),
            EventKind::PodWaiting { node, pod, cause, because } => self.pod_waits(node, pod, *cause, because),
            EventKind::PodStopping { pod, grace_seconds, launcher: false, .. } if *grace_seconds > LONG_GRACE => {
                let grace = span(Duration::from_secs(grace_seconds.unsigned_abs()));
                self.change(&pod.uid, format!("pod {pod} is stopping and may take {grace}"))
            }
            EventKind::PodGone { pod, how: PodExit::AlreadyGone, launcher: false, .. } => {
                self.change(&pod.uid, format!("pod {pod} is gone, without an eviction of ours"))
            }
            EventKind::PodGone { pod, how: PodExit::Skipped, launcher: false, .. } => {
                self.change(&pod.uid, format!("pod {pod} is no longer waited for"))
            }
            EventKind::PodBlocked { node, row } => self.pod_blocked(node, row),
            EventKind::VmProgressed { vm, progress, .. } => self.vm_progressed(vm, progress),
            EventKind::VmRestarting { vm, .. } => {
                self.change(&format!("vm {vm}"), format!("VM {vm}: restart accepted"))
            }
            EventKind::VmEnded { row, .. } => self.vm_ended(row),
            EventKind::InfrastructureStarted { node, pods } => {
                let pods_next = plural(*pods, "infrastructure pod", "infrastructure pods");
                notice(format!("{node}: {pods_next} {} next", agree(*pods, "is", "are")))
            }
            EventKind::ContactLost => warning("no contact with the API server; trying again"),
            EventKind::ContactRestored { lost_ms } => {
                let lost = duration(Duration::from_millis(*lost_ms));
                notice(format!("contact with the API server again after {lost}"))
            }
            EventKind::Stopped { reason } => {
                let reason = stop_reason(*reason);
                warning(format!("{reason}: {}", self.nothing_new()))
            }
            EventKind::DeadlineReached { node } => {
                let (timeout, nothing) = (span(self.timeout), self.nothing_new());
                match self.task {
                    Task::Drain => warning(format!("{node}: its timeout of {timeout} is over; {nothing}")),
                    Task::Restart { .. } => {
                        let text = format!("the timeout of {timeout} is over; {nothing}");
                        // It is one for all nodes.
                        if self.changed("timeout", &text) { warning(text) } else { Vec::new() }
                    }
                }
            }
            EventKind::UndoStarted { node } => {
                notice(format!("{node}: taking back what the drain has begun, as --on-abort=cancel asks"))
            }
            EventKind::NodeStarted { node } if self.several_nodes => notice(format!("{node}: its turn")),
            // The summary is far away where other nodes follow.
            EventKind::NodeEnded { report } if self.several_nodes && report.verdict != Verdict::Drained => {
                vec![(Weight::Notice, verdict_line(report, self.timeout))]
            }
            EventKind::Consented { .. }
            | EventKind::NodeCordoned { .. }
            | EventKind::NodeUncordoned { .. }
            | EventKind::NodeStarted { .. }
            | EventKind::PodEvicting { .. }
            | EventKind::PodStopping { .. }
            | EventKind::PodGone { .. }
            | EventKind::NodeEnded { .. }
            | EventKind::Audited { .. }
            | EventKind::UndoPlanned { .. }
            | EventKind::EvacuationCancelled { .. }
            | EventKind::MigrationDeleted { .. }
            | EventKind::UndoEnded { .. }
            | EventKind::Ended { .. } => Vec::new(),
        }
    }

    fn nothing_new(&self) -> &'static str {
        match self.task {
            Task::Drain => "nothing new is evicted or restarted",
            Task::Restart { .. } => "no further VM is restarted",
        }
    }

    /// Pods that wait for one reason share a line: the first of them says it, the heartbeat counts the rest.
    fn pod_waits(&mut self, node: &str, pod: &PodKey, cause: Cause, because: &str) -> Vec<(Weight, Line)> {
        let known = cause != Cause::Stopping && !self.waits.insert((node.to_owned(), cause, because.to_owned()));
        if known { Vec::new() } else { self.change(&pod.uid, format!("pod {pod} waits: {}", plain(because))) }
    }

    /// Pods that block for one reason share a line too: the summary names them all.
    fn pod_blocked(&mut self, node: &str, row: &PodRow) -> Vec<(Weight, Line)> {
        let cause = row.cause.unwrap_or(Cause::ServerTrouble);
        if !self.waits.insert((node.to_owned(), cause, format!("blocks: {}", row.because))) {
            return Vec::new();
        }
        let text = reasoned(&format!("pod {} blocks", row.display_name()), &pod_because(row), None);
        self.changed(&row.uid, &text).then_some((Weight::Notice, text)).into_iter().map(line).collect()
    }

    /// A place in a queue that moves is for the screen; a line comes with another activity, attempt, target or reason.
    fn vm_progressed(&mut self, vm: &Key, progress: &VmProgress) -> Vec<(Weight, Line)> {
        let before = self.vms.insert(vm.clone(), progress.clone());
        let again = |p: &VmProgress| p.activity == Activity::Retrying && p.detail == progress.detail;
        if progress.activity == Activity::Retrying && before.as_ref().is_some_and(again) {
            // Only the time of its next try has changed: that is for the screen and the heartbeat.
            return Vec::new();
        }
        let moved = before.as_ref().is_some_and(|p| is_moving(p.activity));
        let queued = progress.activity == Activity::Queued;
        if queued && moved && progress.detail.is_none() {
            // Its migration is over, and not as a failure: its end comes next.
            return Vec::new();
        }
        // A failure is told once, when it happens.
        let fresh = before.is_none_or(|p| p.detail != progress.detail) || (queued && moved);
        let detail = progress.detail.as_ref().filter(|_| fresh);
        let steady = VmProgress { queue: None, ..progress.clone() };
        let attempt = if progress.attempt > 1 { format!(", attempt {}", progress.attempt) } else { String::new() };
        let detail = detail.map_or_else(String::new, |d| format!(" ({})", plain(d)));
        let key = format!("vm {vm}");
        if !self.changed(&key, &format!("{}{attempt}{detail}", activity(&steady))) {
            return Vec::new();
        }
        vec![(Weight::Change, Line::plain(format!("VM {vm}: {}{attempt}{detail}", activity(progress))))]
    }

    /// A VM that left has its line on stdout; one that did not leave, or does not run again, is told here.
    fn vm_ended(&mut self, row: &VmRow) -> Vec<(Weight, Line)> {
        let name = row.display_name();
        let subject = match row.outcome {
            VmOutcome::Returns if self.task != Task::Drain => format!("VM {name} was restarted by somebody else"),
            VmOutcome::Migrates
            | VmOutcome::Restarts
            | VmOutcome::Returns
            | VmOutcome::StaysOff
            | VmOutcome::DownUntilNode
            | VmOutcome::Replaced => return Vec::new(),
            VmOutcome::Gone if self.task != Task::Drain => format!("VM {name} does not run any more"),
            VmOutcome::Gone => format!("VM {name} was deleted by somebody else"),
            VmOutcome::Lost => format!("VM {name} is lost with its node"),
            VmOutcome::Down => format!("VM {name} should run again and does not"),
            VmOutcome::Waits | VmOutcome::Blocks | VmOutcome::Pending if self.task != Task::Drain => {
                format!("VM {name} is not restarted")
            }
            VmOutcome::Waits | VmOutcome::Blocks | VmOutcome::Pending => {
                format!("VM {name} {}", vm_on_drain(row.outcome))
            }
        };
        let fix = if row.is_blocked() { None } else { remedies::of_vm(row) };
        let text = reasoned(&subject, &vm_because(row), fix.as_deref());
        let bad_end = matches!(row.outcome, VmOutcome::Down | VmOutcome::Lost);
        let weight = if bad_end { Weight::Warning } else { Weight::Notice };
        self.changed(&format!("vm {name}"), &text).then_some((weight, text)).into_iter().map(line).collect()
    }

    fn change(&mut self, object: &str, text: String) -> Vec<(Weight, Line)> {
        self.changed(object, &text).then_some((Weight::Change, text)).into_iter().map(line).collect()
    }

    /// Notes the text of an object; false if it was its last one already.
    fn changed(&mut self, object: &str, text: &str) -> bool {
        self.last.insert(object.to_owned(), text.to_owned()).as_deref() != Some(text)
    }
}

/// True while a migration is under way.
fn is_moving(activity: Activity) -> bool {
    matches!(activity, Activity::PreparingTarget | Activity::Migrating)
}

fn line((weight, text): (Weight, String)) -> (Weight, Line) {
    (weight, Line::plain(text))
}

fn notice(text: impl AsRef<str>) -> Vec<(Weight, Line)> {
    vec![(Weight::Notice, Line::plain(text))]
}

fn warning(text: impl AsRef<str>) -> Vec<(Weight, Line)> {
    vec![(Weight::Warning, Line::plain(text))]
}

/// `subject: because → remedy`, without what is missing.
fn reasoned(subject: &str, because: &str, remedy: Option<&str>) -> String {
    let because = if because.is_empty() { String::new() } else { format!(": {because}") };
    let remedy = remedy.map_or_else(String::new, |r| format!(" → {r}"));
    format!("{subject}{because}{remedy}")
}

/// The plan of a node in a line: `plan for n1: 2 VMs migrate, 1 blocks; 12 pods are evicted, 3 stay`.
fn plan_words(node: &NodeReport) -> String {
    let kinds = [
        (VmOutcome::Migrates, "migrates", "migrate"),
        (VmOutcome::Restarts, "is restarted", "are restarted"),
        (VmOutcome::Returns, "is shut down and returns", "are shut down and return"),
        (VmOutcome::StaysOff, "stays off", "stay off"),
        (VmOutcome::DownUntilNode, "is down until the node is back", "are down until the node is back"),
        (VmOutcome::Waits, "waits", "wait"),
        (VmOutcome::Blocks, "blocks", "block"),
    ];
    let pod_kinds = [PodOutcome::Evicts, PodOutcome::Waits, PodOutcome::Blocks, PodOutcome::Refused];
    let vms = kinds.map(|(outcome, one, many)| {
        let n = node.vms.iter().filter(|v| v.outcome == outcome).count();
        (n, agree(n, one, many))
    });
    let pods = pod_kinds.map(|outcome| {
        let n = node.pods.iter().filter(|p| p.outcome == outcome).count();
        let (one, many) = pod_verb(outcome);
        (n, agree(n, one, many))
    });
    let mut parts = vec![with_noun(vms, "VM", "VMs").join(", ")];
    parts.push({
        let mut words = with_noun(pods, "pod", "pods");
        words.extend(groups::staying(&node.pods, words.is_empty()));
        words.join(", ")
    });
    parts.retain(|part| !part.is_empty());
    let words = if parts.is_empty() { "nothing to do".to_owned() } else { parts.join("; ") };
    format!("plan for {}: {words}", node.name)
}
