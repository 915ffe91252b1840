//! The machine that carries a plan out: pure, without clock and without I/O.
//!
//! Its doors: [`Machine::handle`] takes what happened and the time, [`Machine::poll_effect`] says what to send,
//! [`Machine::poll_event`] what to report, [`Machine::poll_timeout`] when to come back, [`Machine::ended`] whether it is
//! over. Spurious calls are harmless. Time is the duration since the run started.
//!
//! It works level-triggered: an input changes the facts, and every item that it touches looks at the facts again. So a
//! missed or repeated event changes nothing, and a second run picks up where an earlier one stopped.

mod budget;
mod cordons;
mod core;
mod decide;
mod decider;
mod depart;
mod end;
mod follow;
mod in_place;
mod moving;
mod newcomers;
mod node;
mod pace;
mod pending;
mod pod;
mod react;
mod restart;
mod retry;
mod successor;
#[cfg(test)]
mod tests;
mod types;
mod undoing;
mod vm;
mod volumes;

use self::types::Service;
pub use decider::{Decide, Decider, Planner};
pub use types::{Cordoned, Effect, EffectKind, Failure, Input, MachineOptions, Reply, RequestId};

use std::time::Duration;

use jiff::Timestamp;

use self::cordons::Cordon;
use self::core::{Asker, Core};
use self::end::Cut;
use self::node::{NodeRun, Phase};
use crate::event::{DrainEvent, EventKind, StopReason};
use crate::exit::ExitCode;
use crate::facts::{Change, Delta, Index, Touched};
use crate::outcome::NodeReport;
use crate::plan::Plan;
use crate::undo::End;

/// Where the run as a whole is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    /// Cordons are on their way.
    Cordoning,
    /// One was refused, or got no answer: those that this run set are taken back, until then at most.
    TakingBack { error: String, exit: ExitCode, until: Duration },
    /// Nodes are drained.
    Draining,
    /// A signal came: what was begun is taken back.
    Undoing,
    /// Over.
    Ended { exit: ExitCode },
}

/// The machine.
pub struct Machine {
    core: Core,
    nodes: Vec<NodeRun>,
    cordons: Vec<Cordon>,
    stage: Stage,
    /// Until when all cordons must have their answers.
    cordon_bound: Duration,
    lost_since: Option<Duration>,
    /// True after a signal.
    stopped: bool,
    now: Duration,
}

impl Machine {
    /// A machine for that plan. `first_seq` is the number of its first event. It starts with the first input.
    pub fn new(
        index: Index,
        plan: Plan,
        decider: Decider,
        options: MachineOptions,
        started_at: Timestamp,
        first_seq: u64,
    ) -> Self {
        let core = Core::new(index, options, decider, started_at, first_seq);
        let nodes: Vec<NodeRun> = plan.nodes.into_iter().enumerate().map(|(i, p)| NodeRun::new(i, p, &core)).collect();
        let cordons = vec![Cordon::default(); nodes.len()];
        Self {
            core,
            nodes,
            cordons,
            stage: Stage::Cordoning,
            cordon_bound: Duration::MAX,
            lost_since: None,
            stopped: false,
            now: Duration::ZERO,
        }
    }

    /// Takes an input at that time.
    pub fn handle(&mut self, input: Input, now: Duration) {
        if matches!(self.stage, Stage::Ended { .. }) {
            return;
        }
        self.now = now.max(self.now);
        let now = self.now;
        // First of all: what comes after a node's time makes it send nothing more.
        self.cut_cordons(now);
        self.cut_overdue(now);
        if matches!(self.stage, Stage::Ended { .. }) {
            return;
        }
        match input {
            Input::Change(change) => {
                let touched = self.core.index.apply(change);
                self.touched(&touched, now);
            }
            Input::Answer { id, reply } => self.answer(id, reply, now),
            Input::Tick => {}
            Input::Stop(reason) => self.stop(reason, now),
            Input::ContactLost => {
                if self.lost_since.is_none() {
                    self.lost_since = Some(now);
                    self.core.emit(now, EventKind::ContactLost);
                }
            }
            Input::Warn(text) => self.core.emit(now, EventKind::Noted { warning: true, text }),
            Input::CredentialsRefused => return self.end_for_credentials(now),
            Input::ContactRestored => {
                if let Some(since) = self.lost_since.take() {
                    let lost_ms = u64::try_from(now.saturating_sub(since).as_millis()).unwrap_or(u64::MAX);
                    self.core.emit(now, EventKind::ContactRestored { lost_ms });
                }
            }
        }
        self.settle(now);
    }

    fn touched(&mut self, touched: &Touched, now: Duration) {
        for key in &touched.budgets {
            self.core.gate.budget_changed(&self.core.index, key);
        }
        for node in &mut self.nodes {
            node.touched(touched, &mut self.core, now);
        }
    }

    fn answer(&mut self, id: RequestId, reply: Reply, now: Duration) {
        let Some((number, asker, generation)) = self.core.answered(id) else { return };
        if let Some(generation) = generation {
            match reply.service() {
                Service::Given => self.core.pace.served(generation),
                Service::TurnedAway { after } => self.core.pace.turned_away(generation, after, now),
                Service::Unknown => {}
            }
        }
        let mut fatal = None;
        if reply.is_unauthorized() && self.stage == Stage::Draining {
            return self.end_for_credentials(now);
        }
        match (asker, reply) {
            (Asker::Node, Reply::Cordon(result)) => self.cordon_answered(number, result, now),
            (Asker::Node, Reply::Node(result)) => self.uncordon_answered(number, result, now),
            (Asker::Node, Reply::Pods(result)) => {
                let node = &mut self.nodes[number];
                if node.phase == Phase::Relisting(id) {
                    node.relisted(result, &mut self.core, now);
                }
            }
            (Asker::Node, Reply::Volumes(result)) => self.nodes[number].volumes_listed(id, result, &mut self.core, now),
            (Asker::Pod(uid), Reply::Eviction(answer)) => {
                if let Some((pod, place)) = self.nodes[number].pod_mut(&uid) {
                    fatal = pod.answer(id, &answer, &mut self.core, place, now);
                }
            }
            (Asker::Pod(uid), Reply::Pod(result)) => {
                if let Some((pod, place)) = self.nodes[number].pod_mut(&uid)
                    && pod.awaits(id)
                {
                    pod.read(&result, &mut self.core, place, now);
                }
            }
            (Asker::Vm(key), Reply::Eviction(answer)) => {
                if let Some((vm, place)) = self.nodes[number].vm_mut(&key) {
                    fatal = vm.answer(id, &answer, &mut self.core, place, now);
                }
            }
            (Asker::Vm(key), Reply::Restart(answer)) => {
                if let Some((vm, place)) = self.nodes[number].vm_mut(&key)
                    && vm.awaits(id)
                {
                    fatal = vm.restart_answered(&answer, &mut self.core, place, now);
                }
            }
            (Asker::Vm(key), Reply::Vmi(result)) => {
                if let Some((vm, place)) = self.nodes[number].vm_mut(&key)
                    && vm.awaits(id)
                {
                    vm.vmi_read(result, &mut self.core, place, now);
                }
            }
            (Asker::Brake, Reply::KubeVirt(result)) => self.strategy_read(result, now),
            (Asker::Undo, Reply::Undo(answer)) => self.nodes[number].undo_answered(id, &answer, &mut self.core, now),
            (Asker::Pending(namespace), Reply::Pods(result)) => {
                self.core.pending_read(&namespace, result);
                for node in &mut self.nodes {
                    node.pending_seen(&namespace, &mut self.core, now);
                }
            }
            // An answer of another kind than the question: the shell is broken; nothing is concluded from it.
            (Asker::Node | Asker::Pod(_) | Asker::Vm(_) | Asker::Brake | Asker::Undo | Asker::Pending(_), _) => {}
        }
        if fatal == Some(Failure::Unauthorized) {
            self.end_for_credentials(now);
        }
    }

    /// The CR was read again before the first restart: what a restart gives is known for certain now.
    fn strategy_read(&mut self, result: Result<crate::facts::KubeVirtFacts, Failure>, now: Duration) {
        self.core.brake.reading = None;
        match result {
            Ok(cr) => {
                let touched = self.core.index.apply(Change::KubeVirt(Delta::Apply(cr)));
                self.core.brake.strategy_confirmed = true;
                self.touched(&touched, now);
            }
            // Until the deadline, as for everything that may pass.
            Err(Failure::Passing(_)) => {
                self.core.brake.failed_reads += 1;
                self.core.brake.read_again = Some(now + retry::delay(self.core.brake.failed_reads, "kubevirt"));
            }
            Err(failure) => {
                self.core.brake.stopped = Some(format!("the KubeVirt CR could not be read again: {}", failure.text()));
                self.core.brake.strategy_confirmed = true;
            }
        }
    }

    /// Starts the nodes whose turn has come; true if there were any.
    fn begin_turns(&mut self, now: Duration) -> bool {
        let mut begun = false;
        loop {
            let running = self.nodes.iter().filter(|n| n.is_running() || n.is_undoing()).count();
            let next = self.nodes.iter().position(|n| n.phase == Phase::Waiting);
            let in_place = self.core.options.in_place;
            let free = in_place || running < self.core.options.parallel.max(1);
            let (Some(next), true) = (next, free) else { return begun };
            // Later nodes are planned again on the facts of now.
            self.nodes[next].begin(&mut self.core, next > 0 && !in_place, now);
            begun = true;
        }
    }

    fn cut_overdue(&mut self, now: Duration) {
        for node in &mut self.nodes {
            if node.is_running() && now >= node.place.deadline {
                let cut = if self.lost_since.is_some() { Cut::Blind } else { Cut::Deadline };
                node.cut(cut, &mut self.core, now);
            }
        }
    }

    /// After every input: deadlines, free places, ends.
    fn settle(&mut self, now: Duration) {
        if matches!(self.stage, Stage::Ended { .. }) {
            return;
        }
        self.retry_cordons(now);
        if !matches!(self.stage, Stage::Draining | Stage::Undoing) {
            return;
        }
        self.core.pace.passed(now);
        if self.core.brake.read_again.is_some_and(|t| t <= now) {
            self.core.brake.read_again = None;
        }
        // What one item lets go of, another may wait for: round by round until nothing moves.
        loop {
            self.cut_overdue(now);
            self.undo(now);
            for number in self.core.turns(self.nodes.len()) {
                self.nodes[number].pump(&mut self.core, now);
            }
            let freed = std::mem::take(&mut self.core.gate.freed);
            for node in &mut self.nodes {
                for key in &freed {
                    node.budget_moved(key, false, &mut self.core, now);
                }
            }
            let room = std::mem::take(&mut self.core.brake.freed);
            let begun = self.stage == Stage::Draining && self.begin_turns(now);
            if !begun && freed.is_empty() && !room {
                break;
            }
        }
        if self.nodes.iter().all(|n| n.phase == Phase::Ended) {
            let codes = self.nodes.iter().map(|n| n.exit);
            let exit = ExitCode::of_all(codes);
            let lost = self.lost_since.filter(|_| exit == ExitCode::Api);
            let error = lost.map(|since| {
                let ago = now.saturating_sub(since).as_secs();
                format!("no contact with the API server for {ago}s: what is told is the last that was seen")
            });
            self.end(exit, error, now);
        }
    }

    fn stop(&mut self, reason: StopReason, now: Duration) {
        if matches!(self.stage, Stage::Ended { .. }) {
            return;
        }
        if std::mem::replace(&mut self.stopped, true) {
            return self.undo_no_further(End::Stopped(reason.exit_code()), now);
        }
        self.core.emit(now, EventKind::Stopped { reason });
        self.end_all(Cut::Signal(reason.exit_code()), None, now);
    }

    /// Looks after the nodes whose drain is being undone.
    fn undo(&mut self, now: Duration) {
        for number in 0..self.nodes.len() {
            if let Some(end) = self.nodes[number].undo_turn(&mut self.core, now) {
                let lost = self.lost_since.is_some();
                if lost {
                    self.nodes[number].undo_is_blind();
                }
                self.end_undo(number, if lost { End::Lost } else { end }, now);
            }
        }
    }

    /// What is not undone yet stays.
    fn undo_no_further(&mut self, end: End, now: Duration) {
        for number in 0..self.nodes.len() {
            self.end_undo(number, end, now);
        }
    }

    fn end_undo(&mut self, number: usize, end: End, now: Duration) {
        let Some(cut) = self.nodes[number].undone(end, &self.core, now) else { return };
        if self.stage == Stage::Undoing {
            self.note_cordons_under_way(now);
        }
        self.core.drop_unsent(number);
        self.nodes[number].finish(Some(cut), &mut self.core, now);
    }

    fn end_for_credentials(&mut self, now: Duration) {
        let error = "the API server does not accept the credentials any more, nor fresh ones; what was begun goes on";
        self.end_all(Cut::Blind, Some(error.to_owned()), now);
    }

    fn end_all(&mut self, cut: Cut, error: Option<String>, now: Duration) {
        if cut == Cut::Blind {
            self.undo_no_further(End::Lost, now);
        }
        if self.core.options.undo_on_abort && cut != Cut::Blind {
            self.stop_cordoning();
        } else {
            self.note_cordons_under_way(now);
        }
        self.core.silent = true;
        for node in &mut self.nodes {
            if node.is_undoing() {
                node.undone_by(cut);
            } else if node.phase != Phase::Ended {
                node.cut(cut, &mut self.core, now);
            }
        }
        if self.nodes.iter().any(NodeRun::is_undoing) {
            self.core.drop_all_but_undoing();
            self.stage = Stage::Undoing;
            return;
        }
        let codes = self.nodes.iter().map(|n| n.exit);
        let exit = ExitCode::of_all(codes);
        self.end(exit, error, now);
    }

    fn end(&mut self, exit: ExitCode, error: Option<String>, now: Duration) {
        self.note_cordons_under_way(now);
        self.core.silent = true;
        self.core.effects.clear();
        self.core.waiting.clear();
        for node in &mut self.nodes {
            if node.phase != Phase::Ended {
                node.cut(Cut::NotStarted(exit), &mut self.core, now);
            }
        }
        self.stage = Stage::Ended { exit };
        self.core.emit(now, EventKind::Ended { exit_code: exit.code(), error, hints: Vec::new() });
    }

    /// The next request to send, if any.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.core.next_effect(self.now)
    }

    /// The next event to report, if any.
    pub fn poll_event(&mut self) -> Option<DrainEvent> {
        self.core.events.pop_front()
    }

    /// When to call `handle(Input::Tick, ..)` next, as a duration since the run started.
    pub fn poll_timeout(&self) -> Option<Duration> {
        if matches!(self.stage, Stage::Ended { .. }) {
            return None;
        }
        let now = self.now;
        let nodes = self.nodes.iter().flat_map(NodeRun::wakes);
        nodes
            .chain(self.cordon_wakes())
            .chain(self.core.pace.opens_at())
            .chain(self.core.brake.read_again)
            .filter(|t| *t > now)
            .min()
    }

    /// The exit code, once the run is over.
    pub fn ended(&self) -> Option<ExitCode> {
        match self.stage {
            Stage::Ended { exit } => Some(exit),
            Stage::Cordoning | Stage::TakingBack { .. } | Stage::Draining | Stage::Undoing => None,
        }
    }

    /// The results of the nodes that have ended.
    pub fn reports(&self) -> Vec<NodeReport> {
        self.nodes.iter().filter_map(|n| n.report.clone()).collect()
    }
}
