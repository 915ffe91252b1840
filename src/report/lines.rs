//! kubectl's lines on stdout, once per fact. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use super::style::{Label, Line};
use crate::event::{EventKind, PodExit};
use crate::facts::PodKey;
use crate::outcome::{Verdict, VmOutcome, VmRow};

/// What the command line says about the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineOptions {
    /// True with `--disable-eviction`: pods are deleted, so no line says that they are being evicted.
    pub deletes: bool,
    /// True from `-v=2` on, as in kubectl: a line when an eviction or deletion was accepted.
    pub starts: bool,
    /// `--skip-wait-for-delete-timeout`
    pub skips_after: Option<Duration>,
}

/// Fold of events into stdout lines.
#[derive(Debug, Default)]
pub struct StdoutLines {
    said: BTreeSet<String>,
    options: LineOptions,
    /// True outside a drain: a VM that somebody else restarted is told on stderr.
    restarts: bool,
}

impl StdoutLines {
    /// A fold that has seen nothing. `restarts` where VMs are restarted outside a drain.
    pub fn new(options: LineOptions, restarts: bool) -> Self {
        Self { said: BTreeSet::new(), options, restarts }
    }

    /// The lines of an event that were not printed before: none for most, one, or two where a pod was gone before the
    /// answer to its eviction came.
    pub fn event(&mut self, kind: &EventKind) -> Vec<Line> {
        let start =
            if let EventKind::PodStopping { pod, launcher: false, .. }
            | EventKind::PodGone { pod, launcher: false, how: PodExit::Evicted | PodExit::Deleted, .. } = kind
            {
                self.options.starts.then(|| self.start(pod))
            } else {
                None
            };
        let lines = start.into_iter().chain(self.line(kind));
        lines.filter_map(|(id, line)| self.said.insert(id).then_some(line)).collect()
    }

    /// kubectl's line from `-v=2` on.
    fn start(&self, pod: &PodKey) -> (String, Line) {
        let words = if self.options.deletes { "deletion started" } else { "eviction started" };
        (format!("{words} {}", pod.uid), Line::plain(format!("pod/{} {words}", pod.name)))
    }

    /// Identity of the fact and its line.
    fn line(&self, kind: &EventKind) -> Option<(String, Line)> {
        let node_line = |node: &str, words: &str| (format!("{words} {node}"), said(format!("node/{node}"), words));
        let pod_line =
            |pod: &PodKey, words: &str| (format!("{words} {}", pod.uid), said(format!("pod/{}", pod.name), words));
        match kind {
            EventKind::NodeCordoned { node, already: false } => Some(node_line(node, "cordoned")),
            EventKind::NodeCordoned { node, already: true } => Some(node_line(node, "already cordoned")),
            EventKind::NodeUncordoned { node } => Some(node_line(node, "uncordoned")),
            EventKind::EvacuationCancelled { vm, .. } => {
                Some((format!("cancelled {vm}"), evacuation_cancelled(&vm.name)))
            }
            EventKind::MigrationDeleted { migration, .. } => {
                Some((format!("deleted {migration}"), migration_deleted(&migration.name)))
            }
            EventKind::PodEvicting { pod, launcher: false, .. } if !self.options.deletes => {
                Some((format!("evicting {}", pod.uid), Line::plain(format!("evicting pod {pod}"))))
            }
            EventKind::PodGone { pod, launcher: false, how, .. } => match how {
                PodExit::Evicted => Some(pod_line(pod, "evicted")),
                PodExit::Deleted => Some(pod_line(pod, "deleted")),
                PodExit::Overdue => {
                    let seconds = self.options.skips_after.unwrap_or_default().as_secs();
                    let text =
                        format!("pod {:?} has DeletionTimestamp older than {seconds} seconds, skipping", pod.name);
                    Some((format!("skipping {}", pod.uid), Line::plain(text)))
                }
                PodExit::AlreadyGone | PodExit::Skipped => None,
            },
            EventKind::VmEnded { row, .. } if self.restarts && row.outcome == VmOutcome::Returns => None,
            EventKind::VmEnded { row, .. } => vm_words(row.outcome).map(|words| {
                let id = format!("vm {words} {}", row.vmi_uid);
                (id, said(vm_resource(row), words))
            }),
            EventKind::NodeEnded { report } if report.verdict == Verdict::Drained => {
                Some(node_line(&report.name, "drained"))
            }
            EventKind::Connected { .. }
            | EventKind::Planned { .. }
            | EventKind::Consented { .. }
            | EventKind::Noted { .. }
            | EventKind::NodeStarted { .. }
            | EventKind::PodEvicting { .. }
            | EventKind::PodWaiting { .. }
            | EventKind::PodStopping { .. }
            | EventKind::PodGone { .. }
            | EventKind::PodBlocked { .. }
            | EventKind::VmProgressed { .. }
            | EventKind::VmRestarting { .. }
            | EventKind::InfrastructureStarted { .. }
            | EventKind::ContactLost
            | EventKind::ContactRestored { .. }
            | EventKind::Stopped { .. }
            | EventKind::DeadlineReached { .. }
            | EventKind::NodeEnded { .. }
            | EventKind::Audited { .. }
            | EventKind::UndoPlanned { .. }
            | EventKind::UndoStarted { .. }
            | EventKind::UndoEnded { .. }
            | EventKind::Ended { .. } => None,
        }
    }
}

fn said(object: String, words: &str) -> Line {
    Line::plain(object + " ").with(Label::Good, words)
}

/// The line of a VMI whose mark was taken off.
pub fn evacuation_cancelled(vmi: &str) -> Line {
    said(format!("virtualmachineinstance.kubevirt.io/{vmi}"), "evacuation cancelled")
}

/// The line of a migration that was deleted.
pub fn migration_deleted(name: &str) -> Line {
    said(format!("virtualmachineinstancemigration.kubevirt.io/{name}"), "deleted")
}

/// The line of a node whose cordon was lifted.
pub fn uncordoned(node: &str) -> Line {
    said(format!("node/{node}"), "uncordoned")
}

/// `virtualmachine.kubevirt.io/NAME`, or `virtualmachineinstance.…` where no VirtualMachine owns it.
pub fn vm_resource(row: &VmRow) -> String {
    let kind = if has_vm(row) { "virtualmachine" } else { "virtualmachineinstance" };
    format!("{kind}.kubevirt.io/{}", row.name)
}

/// True if a VirtualMachine owns the VMI, so that it can be started again by name.
pub fn has_vm(row: &VmRow) -> bool {
    row.owner.as_ref().is_some_and(|o| o.kind == "VirtualMachine")
}

/// What happened to a VM that left; nothing for one that did not, which is said on stderr.
fn vm_words(outcome: VmOutcome) -> Option<&'static str> {
    match outcome {
        VmOutcome::Migrates => Some("migrated"),
        VmOutcome::Restarts => Some("restarted"),
        VmOutcome::Returns => Some("returned"),
        VmOutcome::StaysOff | VmOutcome::DownUntilNode => Some("stopped"),
        VmOutcome::Replaced => Some("replaced"),
        VmOutcome::Waits
        | VmOutcome::Blocks
        | VmOutcome::Gone
        | VmOutcome::Lost
        | VmOutcome::Down
        | VmOutcome::Pending => None,
    }
}
