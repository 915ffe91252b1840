//! Tests of the machine: scripted worlds, in virtual time only.
#![expect(clippy::wildcard_enum_match_arm, reason = "a test names the cases that it is about")]

mod brakes;
mod budgets;
mod cordon;
mod depart;
mod ends;
mod external;
mod fair;
mod in_place;
mod migrations;
mod nodes;
mod own_budgets;
mod pods;
mod random;
mod reactions;
mod replicas;
mod restarts;
mod stops;
mod uncordoned;
mod vms;
mod volumes;
mod waiting;

use std::time::Duration;

use super::{Cordoned, Effect, EffectKind, Failure, Input, Machine, MachineOptions, Planner, Reply};
use crate::answer::{EvictionAnswer, RestartAnswer, UndoAnswer};
use crate::event::{DrainEvent, EventKind};
use crate::exit::ExitCode;
use crate::facts::testing::{World, now};
use crate::facts::{BudgetFacts, Change, Delta, Key, PodFacts, Scope, VmFacts, VmiFacts};
use crate::outcome::{NodeReport, PodRow, VmRow};
use crate::plan::consent::{Consent, ConsentOptions, RestartStale};
use crate::plan::{PlanOptions, build, restarts};

/// Some seconds.
pub(super) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// What a run is told.
pub(super) struct Setup {
    pub(super) nodes: Vec<String>,
    pub(super) plan: PlanOptions,
    pub(super) consent: ConsentOptions,
    pub(super) machine: MachineOptions,
}

impl Setup {
    fn new(nodes: &[&str]) -> Self {
        Self {
            nodes: nodes.iter().map(|n| (*n).to_owned()).collect(),
            plan: PlanOptions::default(),
            consent: ConsentOptions {
                question_possible: false,
                restart_stale: RestartStale::Always,
                allow_vm_down: true,
            },
            machine: MachineOptions {
                timeout: secs(1800),
                wait_blocked: false,
                skip_wait_for_delete: None,
                grace_period: None,
                in_place: false,
                parallel: 1,
                max_in_flight: 32,
                undo_on_abort: false,
            },
        }
    }
}

/// A machine with a script for a world around it.
pub(super) struct Rig {
    pub(super) machine: Machine,
    pub(super) now: Duration,
    /// Everything that was reported.
    pub(super) log: Vec<DrainEvent>,
    /// Requests that were sent and not answered.
    pub(super) open: Vec<Effect>,
    /// Everything that was sent, with its time.
    pub(super) sent: Vec<(Duration, EffectKind)>,
}

impl Rig {
    /// A drain of node-0.
    pub(super) fn one(world: World) -> Self {
        Self::new(world, &["node-0"], |_| {})
    }

    /// Restarts of all stale VMs outside a drain.
    pub(super) fn in_place(world: World) -> Self {
        Self::new(world, &[], |setup| {
            setup.plan.in_place = true;
            setup.machine.in_place = true;
        })
    }

    pub(super) fn new(world: World, nodes: &[&str], tell: impl FnOnce(&mut Setup)) -> Self {
        let mut setup = Setup::new(nodes);
        tell(&mut setup);
        let index = world.index;
        let mut plan = if setup.plan.in_place {
            restarts(&index, &Scope::default(), &setup.plan, now())
        } else {
            build(&index, &setup.nodes, &setup.plan, now())
        };
        setup.plan.drained_nodes.extend(setup.nodes.iter().cloned());
        let consent = Consent::by_flags(setup.consent);
        for item in plan.nodes.iter_mut().flat_map(|n| &mut n.vms) {
            consent.apply(item);
        }
        let decider = Box::new(Planner { options: setup.plan, consent });
        let machine = Machine::new(index, plan, decider, setup.machine, now(), 1);
        Self { machine, now: Duration::ZERO, log: Vec::new(), open: Vec::new(), sent: Vec::new() }
    }

    /// Takes what the machine wants to be sent and reported, and checks what always holds.
    fn take(&mut self) -> Vec<Effect> {
        while let Some(event) = self.machine.poll_event() {
            let ended = self.log.last().is_some_and(|e| matches!(e.kind, EventKind::Ended { .. }));
            assert!(!ended, "an event after the end: {event:?}");
            self.log.push(event);
        }
        let mut effects = Vec::new();
        while let Some(effect) = self.machine.poll_effect() {
            assert_eq!(self.machine.ended(), None, "sent after the end: {effect:?}");
            self.sent.push((self.now, effect.kind.clone()));
            self.open.push(effect.clone());
            effects.push(effect);
        }
        if let Some(next) = self.machine.poll_timeout() {
            assert!(next > self.now, "a timer in the past");
        }
        effects
    }

    pub(super) fn input(&mut self, input: Input) {
        self.machine.handle(input, self.now);
    }

    /// What is to be sent since the last call.
    pub(super) fn effects(&mut self) -> Vec<EffectKind> {
        self.take().into_iter().map(|e| e.kind).collect()
    }

    /// Names of the pods that are to be evicted or deleted since the last call.
    pub(super) fn evictions(&mut self) -> Vec<String> {
        self.effects().iter().filter_map(evicted).collect()
    }

    /// Starts it, once.
    pub(super) fn start(&mut self) {
        if self.sent.is_empty() {
            self.machine.start(self.now);
        }
    }

    /// Starts, and all cordons are set.
    pub(super) fn cordoned(mut self) -> Self {
        self.start();
        self.take();
        for effect in std::mem::take(&mut self.open) {
            let (EffectKind::Cordon { node, .. } | EffectKind::CordonFresh { node }) = &effect.kind else {
                panic!("{effect:?} before the cordons")
            };
            let facts = self.machine.core.index.node(node).unwrap().clone();
            let wrote = !facts.unschedulable;
            let reply = Reply::Cordon(Ok(Cordoned { facts: facts.cordoned(), wrote }));
            self.input(Input::Answer { id: effect.id, reply });
        }
        self
    }

    /// Nothing is attached to the nodes that ask.
    pub(super) fn no_volumes(&mut self) {
        self.take();
        while let Some(position) = self.open.iter().position(|e| matches!(e.kind, EffectKind::ListVolumes { .. })) {
            let effect = self.open.remove(position);
            self.input(Input::Answer { id: effect.id, reply: Reply::Volumes(Ok(Vec::new())) });
        }
    }

    /// Answers the one open request that fits.
    pub(super) fn answer_to(&mut self, which: impl Fn(&EffectKind) -> bool, reply: Reply) {
        self.take();
        let position = self.open.iter().position(|e| which(&e.kind));
        let position = position.unwrap_or_else(|| panic!("no such request among {:?}", self.open));
        let effect = self.open.remove(position);
        self.input(Input::Answer { id: effect.id, reply });
    }

    /// Answers the eviction of the pod whose name holds that.
    pub(super) fn evict(&mut self, name: &str, answer: EvictionAnswer) {
        self.answer_to(|kind| evicted(kind).is_some_and(|n| n.contains(name)), Reply::Eviction(answer));
    }

    /// Answers the read of a VMI with what the index has, changed by that.
    pub(super) fn vmi_is(&mut self, name: &str, change: impl FnOnce(&mut VmiFacts)) {
        let mut facts = self.machine.core.index.vmi(&key(name)).unwrap().clone();
        change(&mut facts);
        self.answer_to(|k| matches!(k, EffectKind::ReadVmi { vmi } if vmi.name == name), Reply::Vmi(Ok(facts)));
    }

    /// Answers the read of a VMI with what the index has.
    pub(super) fn vmi_read(&mut self, name: &str) {
        self.vmi_is(name, |_| {});
    }

    /// Answers the read of KubeVirt's CR.
    pub(super) fn cr_read(&mut self) {
        let facts = crate::facts::testing::kubevirt(Some(crate::facts::Strategy::LiveMigrateIfPossible));
        self.answer_to(|k| matches!(k, EffectKind::ReadKubeVirt { .. }), Reply::KubeVirt(Ok(facts)));
    }

    pub(super) fn restart(&mut self, name: &str, answer: RestartAnswer) {
        self.answer_to(|k| matches!(k, EffectKind::Restart { vm } if vm.name == name), Reply::Restart(answer));
    }

    /// The last list shows what the index has.
    pub(super) fn relist(&mut self) {
        self.no_volumes();
        let node = self.open.iter().find_map(|e| match &e.kind {
            EffectKind::RelistPods { node } => Some(node.clone()),
            _ => None,
        });
        let node = node.unwrap_or_else(|| panic!("no list among {:?}", self.open));
        let pods = self.machine.core.index.pods_on(&node).cloned().collect();
        self.answer_to(|k| matches!(k, EffectKind::RelistPods { .. }), Reply::Pods(Ok(pods)));
    }

    pub(super) fn relist_fails(&mut self) {
        let failed = Reply::Pods(Err(Failure::Passing("timeout".into())));
        self.answer_to(|k| matches!(k, EffectKind::RelistPods { .. }), failed);
    }

    pub(super) fn change(&mut self, change: Change) {
        self.input(Input::Change(change));
    }

    /// The watch shows that pod.
    pub(super) fn pod(&mut self, pod: PodFacts) {
        let node = pod.node.clone().unwrap_or_default();
        self.change(Change::Pods { node, delta: Delta::Apply(pod) });
    }

    /// The watch shows that pod terminating from now on.
    pub(super) fn stopping(&mut self, pod: &PodFacts) {
        let at = self.machine.core.wall(self.now + secs(u64::try_from(pod.grace_seconds).unwrap()));
        let deletion = Some(crate::facts::Deletion { at, grace_seconds: pod.grace_seconds });
        self.pod(PodFacts { deletion, ..pod.clone() });
    }

    /// The watch shows that pod gone.
    pub(super) fn gone(&mut self, pod: &PodFacts) {
        let node = pod.node.clone().unwrap_or_default();
        self.change(Change::Pods { node, delta: Delta::Delete(pod.key.clone()) });
    }

    pub(super) fn budget(&mut self, budget: BudgetFacts) {
        self.change(Change::Budget(Delta::Apply(budget)));
    }

    /// The watch shows the VMI changed by that.
    pub(super) fn vmi(&mut self, name: &str, change: impl FnOnce(&mut VmiFacts)) {
        let mut facts = self.machine.core.index.vmi(&key(name)).unwrap().clone();
        change(&mut facts);
        self.change(Change::Vmi(Delta::Apply(facts)));
    }

    pub(super) fn vm(&mut self, vm: VmFacts) {
        self.change(Change::Vm(Delta::Apply(vm)));
    }

    /// Lets time pass, from timer to timer.
    pub(super) fn advance(&mut self, by: Duration) {
        let target = self.now + by;
        for _ in 0..100_000 {
            self.take();
            match self.machine.poll_timeout() {
                Some(next) if next <= target => self.now = next,
                _ if self.now == target => return,
                _ => self.now = target,
            }
            self.input(Input::Tick);
        }
        panic!("time does not pass");
    }

    pub(super) fn events(&mut self) -> Vec<EventKind> {
        self.take();
        self.log.iter().map(|e| e.kind.clone()).collect()
    }

    /// The warnings so far.
    pub(super) fn warnings(&mut self) -> Vec<String> {
        let noted = |e| if let EventKind::Noted { warning: true, text } = e { Some(text) } else { None };
        self.events().into_iter().filter_map(noted).collect()
    }

    pub(super) fn ended(&mut self) -> Option<ExitCode> {
        self.take();
        self.machine.ended()
    }

    pub(super) fn report(&self, node: &str) -> NodeReport {
        let reports = self.machine.reports();
        reports.into_iter().find(|r| r.name == node).unwrap_or_else(|| panic!("{node} has not ended"))
    }

    /// The row of a pod in the report of node-0.
    pub(super) fn pod_row(&self, name: &str) -> PodRow {
        self.report("node-0").pods.into_iter().find(|p| p.name == name).unwrap()
    }

    /// The row of a VM in the report of node-0.
    pub(super) fn vm_row(&self, name: &str) -> VmRow {
        self.report("node-0").vms.into_iter().find(|v| v.name == name).unwrap()
    }
}

/// What a node asks for when everything on it is closed.
pub(super) fn last_look(node: &str) -> [EffectKind; 2] {
    [EffectKind::RelistPods { node: node.into() }, EffectKind::ListVolumes { node: node.into() }]
}

/// Name of the pod that an effect evicts or deletes.
pub(super) fn evicted(kind: &EffectKind) -> Option<String> {
    match kind {
        EffectKind::Evict { pod, .. } | EffectKind::Delete { pod, .. } => Some(pod.name.clone()),
        _ => None,
    }
}

/// The answer to a cordon that was set.
pub(super) fn cordoned(node: crate::facts::NodeFacts) -> Reply {
    Reply::Cordon(Ok(Cordoned { facts: node.cordoned(), wrote: true }))
}

pub(super) fn key(name: &str) -> Key {
    Key::new(crate::facts::testing::NS, name)
}

/// A refusal by that budget.
pub(super) fn exhausted(budget: &str) -> EvictionAnswer {
    let text = "Cannot evict pod as it would violate the pod's disruption budget.".to_owned();
    EvictionAnswer::BudgetExhausted { budget: Some(budget.into()), needs: Some(2), has: Some(2), text }
}

pub(super) fn marked() -> EvictionAnswer {
    EvictionAnswer::VmEvacuating { marked_now: true }
}
