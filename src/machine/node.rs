//! One node: its turn, its two waves, its newcomers, and its end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::core::{Asker, Core};
use super::pod::{Closed, PodRun};
use super::types::{EffectKind, Failure, RequestId};
use super::vm::{State as VmState, VmRun};
use crate::event::EventKind;
use crate::exit::ExitCode;
use crate::facts::{Key, PodFacts, Touched};
use crate::outcome::{Cause, Counts, NodeReport, PodOutcome, Verdict, VmOutcome};
use crate::plan::{NodePlan, Wave};

/// How often the last list of pods is tried before the state counts as unknown.
const RELISTS: u32 = 3;

/// Where an item lives.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Number of the node in the run.
    pub(super) number: usize,
    /// Its name.
    pub(super) node: String,
    /// When its time is up.
    pub(super) deadline: Duration,
}

/// How far a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its turn has not come.
    Waiting,
    /// Items are worked on, up to that wave.
    Running(Wave),
    /// Everything is closed: one last list tells whether that is true.
    Relisting(RequestId),
    /// Ended.
    Ended,
}

/// Why a node ends before everything is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Its time is up.
    Deadline,
    /// A signal.
    Signal(ExitCode),
    /// The run ended before its turn came.
    NotStarted(ExitCode),
    /// Its Node object is gone.
    Vanished,
    /// No contact, or no credentials any more.
    Blind,
}

/// A node in execution.
pub(super) struct NodeRun {
    pub(super) place: Place,
    pub(super) uid: String,
    pub(super) cordoned_before: bool,
    pub(super) cordoned_now: bool,
    pub(super) started: Option<Duration>,
    pub(super) phase: Phase,
    pub(super) report: Option<NodeReport>,
    pub(super) exit: ExitCode,
    vms: Vec<VmRun>,
    pods: Vec<PodRun>,
    by_pod: BTreeMap<String, usize>,
    by_launcher: BTreeMap<String, usize>,
    by_vm: BTreeMap<Key, usize>,
    /// Controllers (by UID) of pods that were evicted, with the number of the pod.
    owners: BTreeMap<String, usize>,
    ignored: BTreeSet<String>,
    warnings: Vec<String>,
    relists: u32,
}

impl NodeRun {
    pub(super) fn new(number: usize, plan: NodePlan, core: &Core) -> Self {
        let mut run = Self {
            place: Place { number, node: plan.node.clone(), deadline: Duration::MAX },
            uid: plan.uid.clone(),
            cordoned_before: plan.cordoned,
            cordoned_now: plan.cordoned,
            started: None,
            phase: Phase::Waiting,
            report: None,
            exit: ExitCode::Done,
            vms: Vec::new(),
            pods: Vec::new(),
            by_pod: BTreeMap::new(),
            by_launcher: BTreeMap::new(),
            by_vm: BTreeMap::new(),
            owners: BTreeMap::new(),
            ignored: BTreeSet::new(),
            warnings: Vec::new(),
            relists: 0,
        };
        run.adopt_plan(plan, core);
        run
    }

    fn adopt_plan(&mut self, plan: NodePlan, core: &Core) {
        self.warnings = plan.warnings;
        for item in plan.vms {
            self.adopt_vm(VmRun::new(item));
        }
        for item in plan.pods {
            self.adopt_pod(PodRun::new(item), core);
        }
    }

    fn adopt_vm(&mut self, vm: VmRun) {
        let number = self.vms.len();
        self.by_vm.insert(vm.item.vmi.clone(), number);
        self.by_launcher.insert(vm.item.launcher.uid.clone(), number);
        self.by_launcher.extend(vm.item.companions.iter().map(|c| (c.uid.clone(), number)));
        self.vms.push(vm);
    }

    fn adopt_pod(&mut self, pod: PodRun, core: &Core) {
        let number = self.pods.len();
        let uid = pod.item.pod.uid.clone();
        if let Some(owner) = core.index.pod(&uid).and_then(|p| p.owner.as_ref()) {
            self.owners.insert(owner.uid.clone(), number);
        }
        self.by_pod.insert(uid, number);
        self.pods.push(pod);
    }

    /// The node's turn comes: its clock starts. Later nodes are planned again on the facts of now.
    pub(super) fn begin(&mut self, core: &mut Core, replan: bool, now: Duration) {
        self.started = self.started.or(Some(now));
        self.place.deadline = self.started.unwrap_or(now) + core.options.timeout;
        if replan && let Some(plan) = core.decider.plan(&core.index, &self.place.node, core.wall(now)) {
            self.vms.clear();
            self.pods.clear();
            self.by_pod.clear();
            self.by_launcher.clear();
            self.by_vm.clear();
            self.owners.clear();
            self.adopt_plan(plan, core);
        }
        self.phase = Phase::Running(Wave::Workload);
        core.emit(now, EventKind::NodeStarted { node: self.place.node.clone() });
        self.newcomers(core, now);
        for number in 0..self.vms.len() {
            self.vms[number].step(core, &self.place, now);
        }
        for number in 0..self.pods.len() {
            self.step_pod(number, core, now);
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running(_) | Phase::Relisting(_))
    }

    fn turn(&self) -> Wave {
        match self.phase {
            Phase::Running(wave) => wave,
            Phase::Waiting | Phase::Relisting(_) | Phase::Ended => Wave::Infrastructure,
        }
    }

    fn step_pod(&mut self, number: usize, core: &mut Core, now: Duration) {
        let turn = self.turn();
        if let Some(tag) = self.pods[number].item.one_at_a_time
            && self
                .pods
                .iter()
                .enumerate()
                .any(|(i, p)| i != number && p.item.one_at_a_time == Some(tag) && p.in_motion())
            && !self.pods[number].in_motion()
        {
            return;
        }
        self.pods[number].step(core, &self.place, turn, now);
    }

    /// Facts changed.
    pub(super) fn touched(&mut self, touched: &Touched, core: &mut Core, now: Duration) {
        if !self.is_running() {
            return;
        }
        if touched.nodes.contains(&self.place.node) && core.index.node(&self.place.node).is_none() {
            let text = format!("node {} was deleted during the drain", self.place.node);
            core.emit(now, EventKind::Noted { warning: true, text });
            return self.cut(Cut::Vanished, core, now);
        }
        let mut vms: BTreeSet<usize> = touched.vms.iter().filter_map(|k| self.by_vm.get(k).copied()).collect();
        let mut unknown = false;
        for uid in &touched.pods {
            if let Some(number) = self.by_pod.get(uid).copied() {
                self.step_pod(number, core, now);
            } else if let Some(number) = self.by_launcher.get(uid) {
                vms.insert(*number);
            } else {
                unknown |= !self.ignored.contains(uid) && core.index.pod(uid).is_some();
            }
        }
        for key in &touched.budgets {
            for number in 0..self.pods.len() {
                if self.pods[number].waits_on(key) {
                    self.pods[number].budget_changed(core, now);
                    self.step_pod(number, core, now);
                }
            }
        }
        for number in vms {
            self.vms[number].step(core, &self.place, now);
        }
        if unknown {
            self.newcomers(core, now);
        }
    }

    /// Time has passed, or a place became free.
    pub(super) fn pump(&mut self, core: &mut Core, now: Duration) {
        if !matches!(self.phase, Phase::Running(_)) {
            return;
        }
        for number in 0..self.vms.len() {
            let vm = &self.vms[number];
            if vm.state == VmState::Queued || vm.wake().is_some_and(|t| t <= now) {
                self.vms[number].step(core, &self.place, now);
            }
        }
        for number in 0..self.pods.len() {
            if self.pods[number].wake().is_some_and(|t| t <= now) {
                self.step_pod(number, core, now);
            }
        }
        self.next_wave(core, now);
        self.end_if_closed(core, now);
    }

    fn next_wave(&mut self, core: &mut Core, now: Duration) {
        if self.phase != Phase::Running(Wave::Workload) || self.vms.iter().any(|v| v.closed().is_none()) {
            return;
        }
        self.phase = Phase::Running(Wave::Infrastructure);
        let held = self.pods.iter().filter(|p| p.item.wave == Wave::Infrastructure && p.closed().is_none()).count();
        if held > 0 {
            core.emit(now, EventKind::InfrastructureStarted { node: self.place.node.clone(), pods: held });
            for number in 0..self.pods.len() {
                self.step_pod(number, core, now);
            }
        }
    }

    fn closings(&self) -> impl Iterator<Item = Option<Closed>> {
        self.vms.iter().map(VmRun::closed).chain(self.pods.iter().map(PodRun::closed))
    }

    fn end_if_closed(&mut self, core: &mut Core, now: Duration) {
        if self.phase != Phase::Running(Wave::Infrastructure) || core.silent {
            return;
        }
        let holds = |closed: Option<Closed>| match closed {
            None => true,
            Some(Closed::Blocked) => core.options.wait_blocked,
            Some(Closed::Left | Closed::Kept | Closed::Pending) => false,
        };
        if self.closings().any(holds) {
            return;
        }
        let _ = now;
        let kind = EffectKind::RelistPods { node: self.place.node.clone() };
        self.phase = Phase::Relisting(core.send(self.place.number, Asker::Node, kind));
    }

    /// The last list of the node's pods.
    pub(super) fn relisted(&mut self, reply: Result<Vec<PodFacts>, Failure>, core: &mut Core, now: Duration) {
        match reply {
            Ok(pods) => {
                self.phase = Phase::Running(Wave::Infrastructure);
                let delta = crate::facts::Delta::Reset(pods);
                let touched = core.index.apply(crate::facts::Change::Pods { node: self.place.node.clone(), delta });
                self.touched(&touched, core, now);
                if self.closings().all(|c| c.is_some()) && self.is_running() {
                    self.finish(None, core, now);
                }
            }
            Err(failure) => {
                self.relists += 1;
                if self.relists < RELISTS {
                    let kind = EffectKind::RelistPods { node: self.place.node.clone() };
                    self.phase = Phase::Relisting(core.send(self.place.number, Asker::Node, kind));
                } else {
                    let text = format!("the last list of pods on {} failed: {}", self.place.node, failure.text());
                    core.emit(now, EventKind::Noted { warning: true, text });
                    self.cut(Cut::Blind, core, now);
                }
            }
        }
    }

    /// Pods on the node that the plan does not know: successors that came back, or late arrivals.
    fn newcomers(&mut self, core: &mut Core, now: Duration) {
        let unknown: Vec<PodFacts> = core
            .index
            .pods_on(&self.place.node)
            .filter(|p| {
                let uid = &p.key.uid;
                !p.phase.is_finished()
                    && !self.by_pod.contains_key(uid)
                    && !self.by_launcher.contains_key(uid)
                    && !self.ignored.contains(uid)
            })
            .cloned()
            .collect();
        if unknown.is_empty() {
            return;
        }
        let plan = core.decider.plan(&core.index, &self.place.node, core.wall(now));
        for pod in unknown {
            let uid = pod.key.uid.clone();
            let successor_of = pod.owner.as_ref().and_then(|o| self.owners.get(&o.uid).copied());
            if let Some(number) = successor_of
                && self.pods[number].closed() == Some(Closed::Left)
                && self.pods[number].item.row.outcome != PodOutcome::Gone
            {
                self.ignored.insert(uid);
                self.pods[number].returned(&pod);
                continue;
            }
            let Some(plan) = &plan else { continue };
            if let Some(item) = plan.pods.iter().find(|i| i.pod.uid == uid) {
                self.adopt_pod(PodRun::new(item.clone()), core);
                self.step_pod(self.pods.len() - 1, core, now);
            } else if let Some(item) = plan.vms.iter().find(|i| i.launcher.uid == uid) {
                if let Some(number) = self.by_vm.get(&item.vmi).copied() {
                    // Another launcher of a VM that is followed already.
                    self.by_launcher.insert(uid, number);
                    self.vms[number].step(core, &self.place, now);
                } else {
                    self.adopt_vm(VmRun::new(item.clone()));
                    let number = self.vms.len() - 1;
                    self.vms[number].step(core, &self.place, now);
                }
            } else {
                self.ignored.insert(uid);
            }
        }
    }

    pub(super) fn pod_mut(&mut self, uid: &str) -> Option<(&mut PodRun, &Place)> {
        let number = *self.by_pod.get(uid)?;
        Some((&mut self.pods[number], &self.place))
    }

    pub(super) fn vm_mut(&mut self, key: &Key) -> Option<(&mut VmRun, &Place)> {
        let number = *self.by_vm.get(key)?;
        Some((&mut self.vms[number], &self.place))
    }

    pub(super) fn wakes(&self) -> impl Iterator<Item = Duration> {
        let running = matches!(self.phase, Phase::Running(_));
        let turn = self.turn();
        let vms = self.vms.iter().filter_map(VmRun::wake);
        let pods = self.pods.iter().filter(move |p| p.item.wave <= turn).filter_map(PodRun::wake);
        let deadline = self.is_running().then_some(self.place.deadline);
        vms.chain(pods).filter(move |_| running).chain(deadline)
    }

    /// The node ends before everything is closed.
    pub(super) fn cut(&mut self, cut: Cut, core: &mut Core, now: Duration) {
        let cause = match cut {
            Cut::Deadline => Cause::Deadline,
            Cut::Signal(_) | Cut::NotStarted(_) => Cause::Interrupted,
            Cut::Vanished => Cause::NodeNotReady,
            Cut::Blind => Cause::ServerTrouble,
        };
        if cut == Cut::Deadline {
            core.emit(now, EventKind::DeadlineReached { node: self.place.node.clone() });
        }
        for vm in &mut self.vms {
            if cut == Cut::Vanished && vm.closed().is_none() {
                vm.item.row.outcome = VmOutcome::Lost;
                vm.item.row.because = "the node vanished under it".to_owned();
                vm.state = VmState::Closed(Closed::Pending);
            }
            vm.cut(cause, core, &self.place);
        }
        for pod in &mut self.pods {
            pod.cut(cause);
        }
        self.finish(Some(cut), core, now);
    }

    fn finish(&mut self, cut: Option<Cut>, core: &mut Core, now: Duration) {
        let mut vms: Vec<_> = self.vms.iter().map(|v| v.item.row.clone()).collect();
        let mut pods: Vec<_> = self.pods.iter().map(|p| p.item.row.clone()).collect();
        vms.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        pods.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        let blocked =
            vms.iter().any(|v| v.outcome == VmOutcome::Blocks) || pods.iter().any(|p| p.outcome == PodOutcome::Blocks);
        let pending = vms.iter().any(|v| v.outcome == VmOutcome::Pending)
            || pods.iter().any(|p| p.outcome == PodOutcome::Pending);
        let down = vms.iter().any(|v| v.outcome == VmOutcome::Down);
        let (verdict, exit) = match cut {
            Some(Cut::Signal(exit)) if self.started.is_some() => (Verdict::Interrupted, exit),
            Some(Cut::Signal(exit) | Cut::NotStarted(exit)) => (Verdict::NotStarted, exit),
            Some(Cut::Blind) => (Verdict::Failed, ExitCode::Api),
            Some(Cut::Vanished) => (Verdict::Failed, ExitCode::Failed),
            _ if blocked => (Verdict::Blocked, ExitCode::Blocked),
            Some(Cut::Deadline) => (Verdict::Timeout, ExitCode::Timeout),
            None if pending => (Verdict::Timeout, ExitCode::Timeout),
            None if down => (Verdict::Drained, ExitCode::VmDown),
            None => (Verdict::Drained, ExitCode::Done),
        };
        self.exit = exit;
        let elapsed = self.started.map_or(Duration::ZERO, |s| now.saturating_sub(s));
        let report = NodeReport {
            name: self.place.node.clone(),
            uid: self.uid.clone(),
            verdict,
            exit_code: exit.code(),
            cordoned_before: self.cordoned_before,
            cordoned_now: self.cordoned_now,
            elapsed_seconds: (elapsed.as_secs_f64() * 10.0).round() / 10.0,
            counts: Counts::of(&vms, &pods),
            vms,
            pods,
            warnings: self.warnings.clone(),
        };
        self.phase = Phase::Ended;
        self.report = Some(report.clone());
        core.emit(now, EventKind::NodeEnded { report });
    }
}
