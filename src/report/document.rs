//! The document of `-o json|yaml`: one shape before and after, so that a promise and what came of it can be compared.
//!
//! `docs/schema/safe-drain-v1.schema.json` describes it. Fields and values may be added, none may change.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{Reporter, remedies};
use crate::event::{Consent, DrainEvent, EventKind, ServerInfo};
use crate::outcome::{
    AuditNode, AuditReport, AuditSummary, Cause, Counts, NodeReport, PodOutcome, UndoReport, Verdict, VmOutcome, VmRow,
};

/// Version of everything that programs read.
pub const API_VERSION: &str = "safe-drain/v1";

/// What a document is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum DocumentKind {
    /// `--dry-run`.
    DrainPreview,
    /// A drain.
    DrainResult,
    /// `audit`.
    Audit,
    /// `restart-stale`.
    RestartResult,
    /// `cancel`.
    CancelResult,
}

/// `-o`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON, indented.
    Json,
    /// YAML.
    Yaml,
}

/// What was agreed to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsentDocument {
    /// Restarts of stale VMs.
    pub restart_stale: Consent,
    /// VMs that do not run afterwards.
    pub vm_down: Consent,
}

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// What it is about.
    pub kind: DocumentKind,
    /// Start of the run.
    pub started_at: Timestamp,
    /// End of the run.
    pub ended_at: Timestamp,
    /// The servers.
    pub server: ServerInfo,
    /// Options of the command, those with their defaults too.
    pub options: serde_json::Value,
    /// Exit code of the command.
    pub exit_code: u8,
    /// True if the run changed anything in the cluster.
    pub changed: bool,
    /// The error that ended it.
    pub error: Option<String>,
    /// What was agreed to.
    pub consent: ConsentDocument,
    /// Warnings that belong to no single node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What an audit says of all its VMs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditSummary>,
    /// One entry a node, in the order of the command.
    pub nodes: Vec<NodeEntry>,
}

/// A node in a document.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum NodeEntry {
    /// Of a drain.
    Drain(Box<NodeReport>),
    /// Of `cancel`.
    Undo(Box<UndoReport>),
    /// Of `audit`.
    Audit(Box<AuditNode>),
}

impl Document {
    /// The text in a format, with a newline at its end.
    pub fn render(&self, format: Format) -> String {
        let text = match format {
            Format::Json => serde_json::to_string_pretty(self).map_err(|e| e.to_string()),
            Format::Yaml => serde_saphyr::to_string(self).map_err(|e| e.to_string()),
        };
        // Nothing in it can fail to serialise; a parser that meets this line fails as loudly as it should.
        let text = text.unwrap_or_else(|error| format!("error: the document cannot be written: {error}"));
        text.trim_end().to_owned() + "\n"
    }
}

/// Fold of events into the document.
#[derive(Debug)]
pub struct DocumentFold {
    kind: DocumentKind,
    previews: bool,
    started_at: Timestamp,
    options: serde_json::Value,
    server: ServerInfo,
    last: Duration,
    end: Option<(u8, Option<String>)>,
    cordons: Vec<String>,
    touched: bool,
    consent: ConsentDocument,
    warnings: Vec<String>,
    planned: Vec<NodeReport>,
    ended: Vec<NodeReport>,
    undone: Vec<UndoReport>,
    audited: Option<AuditReport>,
}

impl DocumentFold {
    /// A fold that has seen nothing. `options` is an object of the command's options.
    pub fn new(kind: DocumentKind, started_at: Timestamp, options: serde_json::Value) -> Self {
        Self {
            kind,
            previews: kind != DocumentKind::DrainResult,
            started_at,
            options,
            server: ServerInfo::default(),
            last: Duration::ZERO,
            end: None,
            cordons: Vec::new(),
            touched: false,
            consent: ConsentDocument::default(),
            warnings: Vec::new(),
            planned: Vec::new(),
            ended: Vec::new(),
            undone: Vec::new(),
            audited: None,
        }
    }

    /// The fold of a run that is no preview, where the kind does not say so.
    #[must_use]
    pub fn of_run(self, is_run: bool) -> Self {
        Self { previews: !is_run, ..self }
    }

    /// Takes an event in.
    pub fn event(&mut self, event: &DrainEvent) {
        self.last = Duration::from_millis(event.elapsed_ms);
        match &event.kind {
            EventKind::Connected { server, started_at, .. } => {
                self.server.clone_from(server);
                self.started_at = *started_at;
            }
            EventKind::Planned { nodes } => self.planned.clone_from(nodes),
            EventKind::Consented { restart_stale, vm_down } => {
                self.consent = ConsentDocument { restart_stale: *restart_stale, vm_down: *vm_down };
            }
            EventKind::Noted { warning: true, text } => self.warnings.push(text.clone()),
            EventKind::NodeCordoned { node, already: false } => self.cordons.push(node.clone()),
            EventKind::NodeUncordoned { node } => {
                // What this run did not set itself is a change, and nothing that is taken back.
                self.touched |= !self.cordons.contains(node);
                self.cordons.retain(|n| n != node);
            }
            EventKind::Audited { report } => self.audited = Some(report.clone()),
            EventKind::UndoPlanned { nodes } => self.undone.clone_from(nodes),
            EventKind::UndoEnded { report } => match self.undone.iter_mut().find(|n| n.name == report.name) {
                Some(planned) => planned.clone_from(report),
                None => self.undone.push(report.clone()),
            },
            EventKind::PodEvicting { .. }
            | EventKind::VmRestarting { .. }
            | EventKind::EvacuationCancelled { .. }
            | EventKind::MigrationDeleted { .. } => self.touched = true,
            EventKind::NodeEnded { report } => {
                // A request without an answer may have been carried out: a restart, or a cordon.
                let moving =
                    |v: &VmRow| v.outcome == VmOutcome::Pending && v.cause == Some(Cause::Stopping) && v.attempts > 0;
                self.touched |= report.vms.iter().any(moving) || (report.cordoned_now && !report.cordoned_before);
                self.ended.retain(|n| n.name != report.name);
                self.ended.push(with_remedies(report.clone()));
            }
            EventKind::Ended { exit_code, error, .. } => self.end = Some((*exit_code, error.clone())),
            EventKind::Noted { .. }
            | EventKind::NodeCordoned { .. }
            | EventKind::UndoStarted { .. }
            | EventKind::NodeStarted { .. }
            | EventKind::PodWaiting { .. }
            | EventKind::PodStopping { .. }
            | EventKind::PodGone { .. }
            | EventKind::PodBlocked { .. }
            | EventKind::VmProgressed { .. }
            | EventKind::VmEnded { .. }
            | EventKind::InfrastructureStarted { .. }
            | EventKind::ContactLost
            | EventKind::ContactRestored { .. }
            | EventKind::Stopped { .. }
            | EventKind::DeadlineReached { .. } => {}
        }
    }

    /// The document as things stand. Before the run has ended it is that of a failure.
    pub fn document(&self) -> Document {
        let (exit_code, error) = self.end.clone().unwrap_or((1, Some("the run ended without a result".to_owned())));
        Document {
            api_version: API_VERSION,
            kind: self.kind,
            started_at: at(self.started_at, Duration::ZERO),
            ended_at: at(self.started_at, self.last),
            server: self.server.clone(),
            options: self.options.clone(),
            exit_code,
            changed: self.touched || !self.cordons.is_empty(),
            error,
            consent: self.consent,
            warnings: self.warnings.clone(),
            audit: self.audited.as_ref().map(|report| report.summary.clone()),
            nodes: self.entries(),
        }
    }

    fn entries(&self) -> Vec<NodeEntry> {
        let undone = self.undone.iter().cloned().map(|report| NodeEntry::Undo(Box::new(report)));
        let audited = self.audited.iter().flat_map(|report| &report.nodes).cloned();
        let audited = audited.map(|node| NodeEntry::Audit(Box::new(node)));
        let drained = self.nodes().into_iter().map(|report| NodeEntry::Drain(Box::new(report)));
        drained.chain(undone).chain(audited).collect()
    }

    /// Results in the order of the plan; where a node has none, its forecast, and in a result what that means.
    fn nodes(&self) -> Vec<NodeReport> {
        let result = |node: &NodeReport| self.ended.iter().find(|n| n.name == node.name).cloned();
        let unplanned = self.ended.iter().filter(|n| self.planned.iter().all(|p| p.name != n.name));
        let fallback = |node: &NodeReport| {
            if self.previews { node.clone() } else { never_started(node, self.cordons.contains(&node.name)) }
        };
        let planned = self.planned.iter().map(|node| result(node).unwrap_or_else(|| fallback(node)));
        planned.chain(unplanned.cloned()).collect()
    }
}

/// A result whose rows say what to do, also where the run found only the cause.
fn with_remedies(mut node: NodeReport) -> NodeReport {
    for vm in &mut node.vms {
        vm.remedy = remedies::of_vm(vm);
    }
    for pod in &mut node.pods {
        pod.remedy = remedies::of_pod(pod);
    }
    node
}

/// A forecast as the result of a node that had no turn: what was to happen has not happened.
fn never_started(forecast: &NodeReport, cordoned: bool) -> NodeReport {
    let mut node = forecast.clone();
    if node.verdict != Verdict::Refused {
        node.verdict = Verdict::NotStarted;
    }
    node.cordoned_now = node.cordoned_before || cordoned;
    node.elapsed_seconds = 0.0;
    for vm in &mut node.vms {
        if vm.outcome != VmOutcome::Blocks {
            vm.outcome = VmOutcome::Pending;
        }
    }
    for pod in &mut node.pods {
        if matches!(pod.outcome, PodOutcome::Evicts | PodOutcome::Waits) {
            pod.outcome = PodOutcome::Pending;
        }
    }
    node.counts = Counts::of(&node.vms, &node.pods);
    node
}

/// A moment of the run, to the millisecond.
pub fn at(started_at: Timestamp, elapsed: Duration) -> Timestamp {
    let moment = SignedDuration::try_from(elapsed).ok().and_then(|d| started_at.checked_add(d).ok());
    let moment = moment.unwrap_or(started_at);
    Timestamp::from_millisecond(moment.as_millisecond()).unwrap_or(moment)
}

/// Writes the document when the run is over.
pub struct DocumentWriter {
    fold: DocumentFold,
    format: Format,
    out: Box<dyn Write>,
    error: Option<io::Error>,
}

impl DocumentWriter {
    /// A writer to `out`, which gets exactly one document.
    pub fn new(fold: DocumentFold, format: Format, out: Box<dyn Write>) -> Self {
        Self { fold, format, out, error: None }
    }
}

impl fmt::Debug for DocumentWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DocumentWriter").field("fold", &self.fold).field("format", &self.format).finish_non_exhaustive()
    }
}

impl Reporter for DocumentWriter {
    fn event(&mut self, event: &DrainEvent) {
        self.fold.event(event);
    }

    fn tick(&mut self, _elapsed: Duration) {}

    fn finish(&mut self) {
        let text = self.fold.document().render(self.format);
        self.error = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).err();
    }

    fn trouble(&self) -> Vec<String> {
        let lost = self.error.iter().filter(|e| e.kind() != io::ErrorKind::BrokenPipe);
        lost.map(|e| format!("the document could not be written: {e}")).collect()
    }
}
