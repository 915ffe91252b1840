//! One node: its turn, its two waves, its newcomers, and its end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::core::{Asker, Core};
use super::end::Cut;
use super::pod::{Closed, PodRun};
use super::types::{EffectKind, Failure, RequestId};
use super::undoing::Undoing;
use super::vm::{State as VmState, VmRun};
use super::volumes::Volumes;
use crate::event::EventKind;
use crate::exit::ExitCode;
use crate::facts::{Key, NodeReady, PodFacts, Touched};
use crate::outcome::{NodeReport, UndoReport};
use crate::plan::{NodePlan, Wave};

/// How often the last list of pods is tried where waiting will hardly help before the state counts as unknown.
const RELISTS: u32 = 3;

/// How long the watch may show a node as it was before its cordon.
const CORDON_ECHO: Duration = Duration::from_secs(2);

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
    /// It was cut short, and what was begun is taken back.
    Undoing,
    /// The node is empty: what is attached to it is being listed.
    Emptied,
    /// Ended.
    Ended,
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
    pub(super) vms: Vec<VmRun>,
    pub(super) pods: Vec<PodRun>,
    pub(super) by_pod: BTreeMap<String, usize>,
    pub(super) by_launcher: BTreeMap<String, usize>,
    pub(super) by_vm: BTreeMap<Key, usize>,
    /// Numbers of the pods by controller (UID).
    pub(super) owners: BTreeMap<String, Vec<usize>>,
    pub(super) ignored: BTreeSet<String>,
    /// Launchers (by UID) whose VMI is not known, since when.
    pub(super) unclear: BTreeMap<String, Duration>,
    /// True while newcomers wait for what an answer tells of those before them.
    pub(super) undecided: bool,
    pub(super) warnings: Vec<String>,
    /// What is still attached to it.
    pub(super) volumes: Volumes,
    /// Since when it looks as if its cordon were gone, and whether that was said.
    schedulable: Option<(Duration, bool)>,
    pub(super) undoing: Option<Undoing>,
    pub(super) undo_report: Option<UndoReport>,
    /// Why it is not ready, where that was said.
    unready: Option<String>,
    relists: u32,
    /// Why the last list did not come, if it did not.
    pub(super) unlisted: Option<String>,
    /// The last list is not asked for again before.
    relist_after: Duration,
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
            unclear: BTreeMap::new(),
            undecided: false,
            warnings: Vec::new(),
            volumes: Volumes::default(),
            schedulable: None,
            undoing: None,
            undo_report: None,
            unready: None,
            relists: 0,
            unlisted: None,
            relist_after: Duration::ZERO,
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

    pub(super) fn adopt_vm(&mut self, vm: VmRun) {
        let number = self.vms.len();
        self.by_vm.insert(vm.item.vmi.clone(), number);
        self.by_launcher.insert(vm.item.launcher.uid.clone(), number);
        self.by_launcher.extend(vm.item.companions.iter().map(|c| (c.uid.clone(), number)));
        self.vms.push(vm);
    }

    pub(super) fn adopt_pod(&mut self, pod: PodRun, core: &Core) {
        let number = self.pods.len();
        let uid = pod.item.pod.uid.clone();
        if let Some(owner) = core.index.pod(&uid).and_then(|p| p.owner.as_ref()) {
            self.owners.entry(owner.uid.clone()).or_default().push(number);
        }
        self.by_pod.insert(uid, number);
        self.pods.push(pod);
    }

    /// The node's turn comes: its clock starts.
    pub(super) fn begin(&mut self, core: &mut Core, replan: bool, now: Duration) {
        self.started = self.started.or(Some(now));
        self.place.deadline = self.started.unwrap_or(now) + core.options.timeout;
        if !core.options.in_place && core.index.node(&self.place.node).is_none() {
            return self.vanished(core, now);
        }
        if replan && let Some(plan) = core.decider.plan(&core.index, &self.place.node, core.wall(now)) {
            self.vms.clear();
            self.pods.clear();
            self.by_pod.clear();
            self.by_launcher.clear();
            self.by_vm.clear();
            self.owners.clear();
            self.adopt_plan(plan, core);
        }
        let ready = core.index.node(&self.place.node).map(|node| &node.ready);
        self.unready = if let Some(NodeReady::No { reason, .. }) = ready { Some(reason.clone()) } else { None };
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
        matches!(self.phase, Phase::Running(_) | Phase::Relisting(_) | Phase::Emptied)
    }

    fn turn(&self) -> Wave {
        match self.phase {
            Phase::Running(wave) => wave,
            Phase::Waiting | Phase::Relisting(_) | Phase::Emptied | Phase::Undoing | Phase::Ended => {
                Wave::Infrastructure
            }
        }
    }

    pub(super) fn step_pod(&mut self, number: usize, core: &mut Core, now: Duration) {
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
        if touched.nodes.contains(&self.place.node)
            && core.index.node(&self.place.node).is_none()
            && !core.options.in_place
        {
            return self.vanished(core, now);
        }
        self.watch_cordon(core, now);
        self.watch_readiness(core, now);
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
            self.budget_moved(key, true, core, now);
        }
        for (number, vm) in self.vms.iter().enumerate() {
            let concerned = (!touched.budgets.is_empty() && vm.blocked_by_budgets())
                || (!touched.nodes.is_empty() && vm.blocked_by_nodes())
                || (!touched.vms.is_empty() && vm.awaits_replica())
                || (touched.kubevirt && vm.closed() == Some(Closed::Blocked));
            if concerned {
                vms.insert(number);
            }
        }
        for number in vms {
            self.vms[number].step(core, &self.place, now);
        }
        if unknown || !(self.unclear.is_empty() || touched.vms.is_empty()) {
            self.newcomers(core, now);
        }
    }

    /// Its kubelet falls silent, or is heard again: said when it changes, since nothing confirms meanwhile that a pod stopped.
    fn watch_readiness(&mut self, core: &mut Core, now: Duration) {
        let Some(node) = core.index.node(&self.place.node) else { return };
        let reason = if let NodeReady::No { reason, .. } = &node.ready { Some(reason.clone()) } else { None };
        let name = &self.place.node;
        let text = match (&self.unready, &reason) {
            (None, Some(reason)) => {
                format!("node {name} is not ready any more ({reason}): pods on it may never confirm that they stopped")
            }
            (Some(_), None) => format!("node {name} is ready again"),
            (None, None) | (Some(_), Some(_)) => return,
        };
        core.emit(now, EventKind::Noted { warning: reason.is_some(), text });
        self.unready = reason;
    }

    /// Somebody lifts the cordon: said once, when it is no echo of the time before it.
    fn watch_cordon(&mut self, core: &mut Core, now: Duration) {
        if core.options.in_place {
            return;
        }
        if core.index.node(&self.place.node).is_none_or(|node| node.unschedulable) {
            self.cordoned_now |= self.schedulable.is_some_and(|(_, said)| said);
            self.schedulable = self.schedulable.filter(|(_, said)| *said);
            return;
        }
        let (since, said) = self.schedulable.unwrap_or((now, false));
        let due = !said && now >= since + CORDON_ECHO;
        if due {
            let node = &self.place.node;
            let text = format!("node {node} is not cordoned any more: something new may start there");
            core.emit(now, EventKind::Noted { warning: true, text });
        }
        if due || said {
            self.cordoned_now = false;
        }
        self.schedulable = Some((since, said || due));
    }

    fn vanished(&mut self, core: &mut Core, now: Duration) {
        let text = format!("node {} was deleted during the drain", self.place.node);
        core.emit(now, EventKind::Noted { warning: true, text });
        // Nothing is left to uncordon.
        (self.cordoned_before, self.cordoned_now) = (false, false);
        self.cut(Cut::Vanished, core, now);
    }

    /// A budget's status changed (`event`), or a charge on it ended without one: who waits on it looks again.
    pub(super) fn budget_moved(&mut self, key: &Key, event: bool, core: &mut Core, now: Duration) {
        if !self.is_running() {
            return;
        }
        for number in 0..self.pods.len() {
            let pod = &mut self.pods[number];
            if pod.waits_on(key) || (event && pod.blocked_by_budgets(key)) {
                pod.budget_changed(core, now);
                self.step_pod(number, core, now);
            }
        }
        for vm in &mut self.vms {
            if vm.waits_on(key) {
                vm.budget_changed(core, &self.place, now);
            }
        }
    }

    /// The pods of a namespace that have not started were read: who is stuck behind one looks again.
    pub(super) fn pending_seen(&mut self, namespace: &str, core: &mut Core, now: Duration) {
        if !self.is_running() {
            return;
        }
        for vm in self.vms.iter_mut().filter(|vm| vm.item.vmi.namespace == namespace) {
            vm.pending_seen(core, &self.place, now);
        }
        for pod in self.pods.iter_mut().filter(|pod| pod.item.pod.namespace == namespace) {
            pod.pending_seen(core, &self.place, now);
        }
    }

    /// Time has passed, or a place became free.
    pub(super) fn pump(&mut self, core: &mut Core, now: Duration) {
        if self.phase == Phase::Emptied {
            self.end_if_told(core, now);
        }
        if !matches!(self.phase, Phase::Running(_)) {
            return;
        }
        self.watch_cordon(core, now);
        if self.unclear_until().is_some_and(|t| t <= now) {
            self.newcomers(core, now);
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
        if self.undecided && !self.pods.iter().any(PodRun::is_undecided) {
            self.newcomers(core, now);
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

    pub(super) fn closings(&self) -> impl Iterator<Item = Option<Closed>> {
        self.vms.iter().map(VmRun::closed).chain(self.pods.iter().map(PodRun::closed))
    }

    /// True while something on the node is open.
    pub(super) fn is_held(&self, core: &Core) -> bool {
        let wait_blocked = core.options.wait_blocked;
        !self.unclear.is_empty()
            || self.closings().any(|closed| match closed {
                None => true,
                Some(Closed::Blocked) => wait_blocked,
                Some(Closed::Left | Closed::Kept | Closed::Pending) => false,
            })
    }

    fn end_if_closed(&mut self, core: &mut Core, now: Duration) {
        let due = self.phase == Phase::Running(Wave::Infrastructure) && now >= self.relist_after;
        if !due || core.silent || self.is_held(core) {
            return;
        }
        if core.options.in_place {
            // Nothing is said of the node's other pods, so nothing more need be known of them.
            return self.finish(None, core, now);
        }
        let kind = EffectKind::RelistPods { node: self.place.node.clone() };
        self.phase = Phase::Relisting(core.send(self.place.number, Asker::Node, kind));
        self.ask_for_volumes(core, now);
    }

    /// The last list of the node's pods.
    pub(super) fn relisted(&mut self, reply: Result<Vec<PodFacts>, Failure>, core: &mut Core, now: Duration) {
        match reply {
            Ok(pods) => {
                self.phase = Phase::Running(Wave::Infrastructure);
                (self.relists, self.unlisted) = (0, None);
                for pod in &pods {
                    if let Some(number) = self.by_pod.get(&pod.key.uid) {
                        self.pods[*number].listed(pod, now);
                    }
                }
                let delta = crate::facts::Delta::Reset(pods);
                let touched = core.index.apply(crate::facts::Change::Pods { node: self.place.node.clone(), delta });
                self.touched(&touched, core, now);
                if self.is_running() && !self.is_held(core) {
                    self.phase = Phase::Emptied;
                    self.end_if_told(core, now);
                }
            }
            Err(failure) => {
                self.relists += 1;
                self.unlisted = Some(failure.text().to_owned());
                // An API server that restarts must not spoil a drain that is done.
                if self.relists < RELISTS || matches!(failure, Failure::Passing(_) | Failure::Conflict) {
                    self.relist_after = now + super::retry::delay(self.relists, &self.place.node);
                    self.phase = Phase::Running(Wave::Infrastructure);
                } else {
                    self.cut(Cut::Blind, core, now);
                }
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
        let echo = self.schedulable.filter(|(_, said)| !said).map(|(since, _)| since + CORDON_ECHO);
        vms.chain(pods)
            .chain([self.relist_after])
            .chain(echo)
            .chain(self.unclear_until())
            .filter(move |_| running)
            .chain(self.volumes.until().filter(|_| self.phase == Phase::Emptied))
            .chain(deadline)
            .chain(self.undo_wakes())
    }
}
