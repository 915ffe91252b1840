//! `--on-abort=cancel`: when a node's time is up, or a signal comes, what its drain has begun is taken back. What is sent
//! comes from [`crate::undo`]; here it is paced and bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::core::{Asker, Core};
use super::end::Cut;
use super::node::{NodeRun, Phase};
use super::types::{EffectKind, RequestId};
use crate::answer::UndoAnswer;
use crate::event::EventKind;
use crate::facts::Key;
use crate::outcome::{Cause, UndoOutcome, UndoReport, VmOutcome};
use crate::undo::{End, Step, UNANSWERED, Undo};

/// How long it may take, from the deadline or the first signal (design §5).
const BOUND: Duration = Duration::from_secs(10);
/// Between two tries, and how far what a watch shows may lag behind an answer.
const PAUSE: Duration = Duration::from_secs(1);

/// The undoing of a node's drain.
pub(super) struct Undoing {
    undo: Undo,
    cut: Cut,
    begun: Duration,
    sent: BTreeMap<RequestId, Step>,
    /// Nothing is sent before.
    not_before: Duration,
    /// Nothing is concluded before: an eviction that was under way may mark a VM, and the watch shows it later.
    quiet_from: Duration,
    /// Marks that were taken off, until the facts show it.
    unmarked: BTreeSet<Key>,
}

impl NodeRun {
    /// True while its drain is being undone.
    pub(super) fn is_undoing(&self) -> bool {
        self.undoing.is_some()
    }

    /// Its drain is undone, then it ends as that cut says.
    pub(super) fn begin_undo(&mut self, cut: Cut, core: &mut Core, now: Duration) {
        let undo = Undo::new(&self.place.node, &core.index);
        let (sent, unmarked) = (BTreeMap::new(), BTreeSet::new());
        self.undoing = Some(Undoing { undo, cut, begun: now, sent, not_before: now, quiet_from: now, unmarked });
        self.phase = Phase::Undoing;
        core.emit(now, EventKind::UndoStarted { node: self.place.node.clone() });
    }

    /// A signal comes while it is undone: that is how it ends.
    pub(super) fn undone_by(&mut self, cut: Cut) {
        if let Some(undoing) = &mut self.undoing {
            undoing.cut = cut;
        }
    }

    /// Nobody tells what came of it: neither of its undoing nor, after a deadline, of the drain.
    pub(super) fn undo_is_blind(&mut self) {
        if let Some(undoing) = self.undoing.as_mut().filter(|u| u.cut == Cut::Deadline) {
            undoing.cut = Cut::Blind;
        }
    }

    /// Sends what is due. With an end, there is nothing more to do or to wait for.
    pub(super) fn undo_turn(&mut self, core: &mut Core, now: Duration) -> Option<End> {
        let (number, node) = (self.place.number, self.place.node.as_str());
        let undoing = self.undoing.as_mut()?;
        if now >= undoing.begun + BOUND {
            return Some(End::Ran);
        }
        if !undoing.sent.is_empty() || now < undoing.not_before {
            return None;
        }
        // The facts must have caught up with what was done, however late a watch is: a mark that is still seen would look
        // like a new one.
        let index = &core.index;
        undoing.unmarked.retain(|key| index.vmi(key).is_some_and(|v| v.marked.as_deref() == Some(node)));
        if !undoing.unmarked.is_empty() {
            return None;
        }
        let under_way = core.writes_for(number);
        if under_way {
            undoing.quiet_from = now + PAUSE;
        }
        let quiet = !under_way && now >= undoing.quiet_from;
        let mut steps = undoing.undo.steps(&core.index);
        // The cordon goes last, when nothing can mark a VM any more.
        steps.retain(|step| quiet || !matches!(step, Step::Uncordon { .. }));
        if steps.is_empty() {
            return (quiet && !undoing.undo.is_open(&core.index)).then_some(End::Ran);
        }
        for step in steps.into_iter().take(core.options.max_in_flight) {
            let id = core.send(number, Asker::Undo, EffectKind::Undo { step: step.clone() });
            undoing.sent.insert(id, step);
        }
        None
    }

    /// The answer to a step.
    pub(super) fn undo_answered(&mut self, id: RequestId, answer: &UndoAnswer, core: &mut Core, now: Duration) {
        let Some(undoing) = self.undoing.as_mut() else { return };
        let Some(step) = undoing.sent.remove(&id) else { return };
        undoing.undo.answered(&step, answer);
        if *answer != UndoAnswer::Done {
            undoing.not_before = now + PAUSE;
            return;
        }
        if let Step::Unmark { vmi, .. } = &step {
            undoing.unmarked.insert(vmi.clone());
        }
        core.emit(now, step.done());
    }

    /// Closes the undoing: the rows say what came of it. Gives the cut with which the node ends.
    pub(super) fn undone(&mut self, end: End, core: &Core, now: Duration) -> Option<Cut> {
        let mut undoing = self.undoing.take()?;
        let unanswered = UndoAnswer::Unavailable { text: UNANSWERED.to_owned() };
        for step in undoing.sent.values() {
            undoing.undo.answered(step, &unanswered);
        }
        let elapsed = now.saturating_sub(undoing.begun).as_secs_f64();
        let report = undoing.undo.report(&core.index, end, (elapsed * 10.0).round() / 10.0);
        self.cordoned_now = report.cordoned_now;
        self.tell_undone(&report, undoing.cut.cause());
        self.undo_report = Some(report);
        Some(undoing.cut)
    }

    fn tell_undone(&mut self, report: &UndoReport, cause: Cause) {
        for undone in &report.vms {
            let key = Key::new(&undone.namespace, &undone.name);
            let Some((vm, _)) = self.vm_mut(&key) else { continue };
            let row = &mut vm.item.row;
            if Some(&row.vmi_uid) != undone.vmi_uid.as_ref() {
                continue;
            }
            row.marked = undone.marked;
            let stays = matches!(row.outcome, VmOutcome::Pending | VmOutcome::Blocks);
            let pending = row.outcome == VmOutcome::Pending;
            let moved = matches!(row.cause, None | Some(Cause::VmEvacuating | Cause::MigrationQueued));
            match undone.outcome {
                // What kept it from leaving is still worth knowing; that it was on its way is not.
                UndoOutcome::Cancels if stays && !(pending && moved) => {
                    row.because.push_str("; evacuation cancelled, it runs on here");
                }
                UndoOutcome::Cancels if stays => {
                    row.cause = Some(cause);
                    row.waiting_helps = Some(true);
                    row.because = "evacuation cancelled; runs on here".to_owned();
                    row.remedy = None;
                }
                UndoOutcome::Migrates if stays => {
                    row.outcome = VmOutcome::Migrates;
                    row.node_after.clone_from(&undone.node);
                    row.because.clone_from(&undone.because);
                    (row.cause, row.waiting_helps, row.remedy) = (None, None, None);
                }
                UndoOutcome::Blocks | UndoOutcome::Pending if pending => {
                    row.because.clone_from(&undone.because);
                    row.remedy.clone_from(&undone.remedy);
                }
                UndoOutcome::Cancels
                | UndoOutcome::Migrates
                | UndoOutcome::Gone
                | UndoOutcome::Blocks
                | UndoOutcome::Pending => {}
            }
        }
    }

    /// When its undoing must be looked at again.
    pub(super) fn undo_wakes(&self) -> impl Iterator<Item = Duration> {
        self.undoing.iter().flat_map(|u| [u.begun + BOUND, u.not_before, u.quiet_from])
    }
}
