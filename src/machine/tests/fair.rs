//! A tiny world that answers requests in random order, acts on them, and shows that late: fair, but not kind.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::*;
use crate::facts::testing::{ago, budget, kubevirt, launcher, migration, pod, vm, vmi, world};
use crate::facts::{Deletion, Migratable, MigrationFacts, NodeFacts, RunStrategy, Strategy, VmiOwner, VmiPhase};

/// What a VM is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Migrates,
    Stops,
    Stale,
    Rerun,
    External,
    Held,
    StaysOff,
    Starting,
}

/// What may come due.
#[derive(Debug)]
enum Due {
    Process(Effect),
    Answer(Effect, Reply),
    /// A change, with the version of its budget, if it is one of a budget.
    Show(Change, Option<u64>),
    PodEnds(String),
    Recovers(Key),
    Migration(String, usize),
    Stopped(String),
    Runs(String),
    Condition(String),
    Owner(String),
}

/// A charge as the world sees it: which version of the budget holds it, and whether its answer is there.
#[derive(Debug, Default)]
struct Charge {
    version: Option<u64>,
    accepted: bool,
}

pub(super) struct Fair {
    pub(super) rig: Rig,
    seed: u64,
    unkind: u32,
    queue: BTreeMap<(Duration, u64), Due>,
    number: u64,
    last_shown: BTreeMap<u8, Duration>,
    pods: BTreeMap<String, PodFacts>,
    vmis: BTreeMap<String, VmiFacts>,
    budgets: BTreeMap<Key, (BudgetFacts, u64)>,
    shown: BTreeMap<Key, (i64, u64)>,
    charges: BTreeMap<Key, BTreeMap<String, Charge>>,
    pub(super) acted: BTreeMap<String, u32>,
    restarting: BTreeSet<String>,
    attempts: BTreeMap<String, u32>,
    known: BTreeSet<String>,
    log: VecDeque<String>,
}

impl Fair {
    pub(super) fn new(seed: u64, apps: &[(u8, u8)], vms: &[Kind], tell: impl FnOnce(&mut Setup)) -> Self {
        let mut cluster = world();
        for name in ["node-0", "node-1", "node-2"] {
            let facts = NodeFacts { heartbeat: None, ..crate::facts::testing::node(name) };
            cluster = cluster.node(facts);
        }
        let (mut pods, mut guests, mut budgets) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (app, (count, allowed)) in apps.iter().enumerate() {
            let name = format!("app-{app}");
            let mut facts = budget(&name).status(i64::from(*allowed), 20, 20 - i64::from(*allowed), 20);
            facts.selector.as_mut().unwrap().match_labels.insert("app".into(), name.clone());
            cluster = cluster.budget(facts.clone());
            budgets.insert(facts.key.clone(), (facts, 0));
            for n in 0..*count {
                let node = if n % 3 == 2 { "node-1" } else { "node-0" };
                let facts =
                    pod(&format!("{name}-{n}")).on(node).label("app", &name).owned("apps/v1", "ReplicaSet", &name);
                cluster = cluster.pod(facts.clone());
                pods.insert(facts.key.uid.clone(), facts);
            }
        }
        for (n, kind) in vms.iter().enumerate() {
            let name = format!("vm-{n}");
            let node = if n % 3 == 2 { "node-1" } else { "node-0" };
            let mut facts = vmi(&name).with(|v| v.node = Some(node.into()));
            let mut owner = Some(vm(&name));
            facts = match kind {
                Kind::Migrates => facts,
                Kind::Stops => facts.if_possible().not_migratable("DisksNotLiveMigratable"),
                Kind::Stale => facts.not_migratable("DisksNotLiveMigratable"),
                Kind::Rerun => {
                    owner = owner.map(|o| o.run(RunStrategy::RerunOnFailure));
                    facts.strategy(Some(Strategy::None))
                }
                Kind::External => facts.strategy(Some(Strategy::External)),
                Kind::Held => {
                    owner = owner.map(|o| o.template(Strategy::LiveMigrate));
                    facts.not_migratable("DisksNotLiveMigratable")
                }
                Kind::StaysOff => {
                    owner = None;
                    facts.strategy(Some(Strategy::None)).owned_by(VmiOwner::Standalone)
                }
                Kind::Starting => facts.condition_missing().with(|v| v.scheduled_at = Some(ago(1))),
            };
            let runs_in = launcher(&name).on(node);
            cluster = cluster.vmi(facts.clone()).pod(runs_in.clone());
            if let Some(owner) = owner {
                cluster = cluster.vm(owner);
            }
            pods.insert(runs_in.key.uid.clone(), runs_in);
            guests.insert(name, facts);
        }
        let shown = budgets.iter().map(|(k, (b, v))| (k.clone(), (b.allowed.unwrap(), *v))).collect();
        let known = pods.keys().cloned().collect();
        let mut fair = Self {
            rig: Rig::new(cluster, &["node-0", "node-1"], tell),
            seed: seed | 1,
            unkind: 30,
            queue: BTreeMap::new(),
            number: 0,
            last_shown: BTreeMap::new(),
            pods,
            vmis: guests,
            budgets,
            shown,
            charges: BTreeMap::new(),
            acted: BTreeMap::new(),
            restarting: BTreeSet::new(),
            attempts: BTreeMap::new(),
            known,
            log: VecDeque::new(),
        };
        for (n, kind) in vms.iter().enumerate() {
            let name = format!("vm-{n}");
            match kind {
                Kind::Starting => fair.later(1_000, 60_000, Due::Condition(name)),
                Kind::External => fair.later(20_000, 200_000, Due::Owner(name)),
                _ => {}
            }
        }
        fair
    }

    /// Runs to the end, or for so many steps.
    pub(super) fn run(&mut self, steps: usize) {
        self.rig.start();
        for _ in 0..steps {
            self.take();
            if self.rig.machine.ended().is_some() {
                return;
            }
            let timer = self.rig.machine.poll_timeout();
            let due = self.queue.keys().next().copied();
            match (due, timer) {
                (Some(key), timer) if timer.is_none_or(|t| key.0 < t) => {
                    self.rig.now = self.rig.now.max(key.0);
                    let due = self.queue.remove(&key).unwrap();
                    self.log.push_back(format!("{:?} {due:?}", self.rig.now));
                    self.happen(due);
                }
                (_, Some(timer)) => {
                    self.rig.now = timer;
                    self.rig.input(Input::Tick);
                }
                (_, None) => panic!("nothing will ever happen again\n{}", self.story()),
            }
        }
    }

    pub(super) fn story(&self) -> String {
        let skip = self.log.len().saturating_sub(60);
        self.log.range(skip..).map(|l| l.chars().take(300).collect()).collect::<Vec<String>>().join("\n")
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed % below
    }

    fn later(&mut self, from: u64, to: u64, due: Due) {
        let at = self.rig.now + Duration::from_millis(from + self.random(to - from));
        self.at(at, due);
    }

    fn at(&mut self, at: Duration, due: Due) {
        self.number += 1;
        self.queue.insert((at, self.number), due);
    }

    /// Shows a change late, in order among its kind, and sometimes twice.
    fn show(&mut self, change: Change, version: Option<u64>) {
        let kind = match &change {
            Change::Pods { .. } | Change::VmPods(_) => 0,
            Change::Vmi(_) => 1,
            Change::Vm(_) => 2,
            Change::Migration(_) => 3,
            Change::Budget(_) => 4,
            Change::Node(_) => 5,
            Change::KubeVirt(_) => 6,
        };
        let late = Duration::from_millis(self.random(2_000));
        let last = self.last_shown.get(&kind).copied().unwrap_or_default();
        let at = last.max(self.rig.now + late);
        self.last_shown.insert(kind, at);
        if self.random(5) == 0 {
            self.at(at, Due::Show(change.clone(), version));
        }
        self.at(at, Due::Show(change, version));
    }

    fn show_vmi(&mut self, name: &str) {
        let facts = self.vmis[name].clone();
        self.show(Change::Vmi(Delta::Apply(facts)), None);
    }

    fn show_pod(&mut self, uid: &str) {
        let facts = self.pods[uid].clone();
        let node = facts.node.clone().unwrap();
        self.show(Change::Pods { node, delta: Delta::Apply(facts) }, None);
    }

    fn pod_gone(&mut self, uid: &str) {
        if let Some(facts) = self.pods.remove(uid) {
            let node = facts.node.clone().unwrap();
            self.show(Change::Pods { node, delta: Delta::Delete(facts.key) }, None);
        }
    }

    fn show_budget(&mut self, key: &Key, change: impl FnOnce(&mut BudgetFacts)) -> u64 {
        let (facts, version) = self.budgets.get_mut(key).unwrap();
        change(facts);
        *version += 1;
        let (facts, version) = (facts.clone(), *version);
        self.show(Change::Budget(Delta::Apply(facts)), Some(version));
        version
    }

    fn budget_of(&self, pod: &PodFacts) -> Option<Key> {
        self.budgets.values().find(|(b, _)| b.covers(pod)).map(|(b, _)| b.key.clone())
    }

    /// Takes requests, and checks each before it goes out.
    fn take(&mut self) {
        for effect in self.rig.take() {
            self.log.push_back(format!("{:?} sends {:?}", self.rig.now, effect.kind));
            self.check(&effect);
            let slow = if matches!(effect.kind, EffectKind::Evict { .. }) { 3_000 } else { 1_000 };
            self.later(0, slow, Due::Process(effect));
        }
    }

    fn check(&mut self, effect: &Effect) {
        let subject = |kind: &EffectKind| match kind {
            EffectKind::Evict { pod, .. } | EffectKind::Delete { pod, .. } | EffectKind::ReadPod { pod } => Some(
                pod.uid.strip_prefix("uid-virt-launcher-").map_or(pod.uid.clone(), |n| n.trim_end_matches("-x").into()),
            ),
            EffectKind::Restart { vm } => Some(vm.name.clone()),
            EffectKind::ReadVmi { vmi } => Some(vmi.name.clone()),
            _ => None,
        };
        let own = subject(&effect.kind);
        let same = self.rig.open.iter().filter(|e| own.is_some() && subject(&e.kind) == own).count();
        assert!(same <= 1, "two requests for {own:?}\n{}", self.story());
        let posts = self.rig.open.iter().filter(|e| e.kind.is_post()).count();
        assert!(posts <= 32);
        match &effect.kind {
            EffectKind::Evict { pod, .. } => {
                assert!(self.known.contains(&pod.uid), "a pod that nobody knows: {pod:?}\n{}", self.story());
                let facts = self.pods.get(&pod.uid).cloned();
                if let Some(key) = facts.as_ref().and_then(|p| self.budget_of(p)) {
                    let (allowed, _) = self.shown[&key];
                    let charged = self.charges.entry(key).or_default();
                    charged.insert(pod.uid.clone(), Charge::default());
                    let taken = i64::try_from(charged.len()).unwrap();
                    assert!(taken <= allowed.max(1), "{taken} of {allowed} taken\n{}", self.story());
                }
            }
            EffectKind::Restart { vm } => {
                let acted = self.acted.get(&vm.name).copied().unwrap_or_default();
                assert_eq!(acted, 0, "{vm} is restarted a second time\n{}", self.story());
                assert!(self.restarting.len() < 5, "too many restarts\n{}", self.story());
            }
            _ => {}
        }
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Process(effect) => {
                let reply = self.process(&effect);
                self.later(0, 2_000, Due::Answer(effect, reply));
            }
            Due::Answer(effect, reply) => self.answer(&effect, reply),
            Due::Show(change, version) => {
                if let (Change::Budget(Delta::Apply(b)), Some(version)) = (&change, version) {
                    self.shown.insert(b.key.clone(), (b.allowed.unwrap(), version));
                    self.settle(&b.key.clone());
                }
                self.rig.change(change);
            }
            Due::PodEnds(uid) => {
                let key = self.pods.get(&uid).and_then(|p| self.budget_of(p));
                let name = self.pods.get(&uid).map(|p| p.key.name.clone());
                self.pod_gone(&uid);
                if let (Some(key), Some(name)) = (key, name) {
                    self.show_budget(&key, |b| b.disrupted.retain(|d| *d != name));
                    self.later(500, 20_000, Due::Recovers(key));
                }
            }
            Due::Recovers(key) => {
                self.show_budget(&key, |b| b.allowed = b.allowed.map(|n| n + 1));
            }
            Due::Migration(name, phase) => self.migrate(&name, phase),
            Due::Stopped(name) => {
                self.pod_gone(&format!("uid-virt-launcher-{name}-x"));
                let facts = self.vmis.get_mut(&name).unwrap();
                if facts.owner == VmiOwner::Standalone {
                    facts.phase = VmiPhase::Succeeded;
                    return self.show_vmi(&name);
                }
                facts.uid = format!("new-{name}");
                facts.strategy = Some(Strategy::LiveMigrateIfPossible);
                (facts.node, facts.phase, facts.marked, facts.deleting) = (None, VmiPhase::Scheduling, None, false);
                self.show_vmi(&name);
                self.later(1_000, 50_000, Due::Runs(name));
            }
            Due::Runs(name) => {
                self.restarting.remove(&name);
                let facts = self.vmis.get_mut(&name).unwrap();
                (facts.node, facts.phase) = (Some("node-2".into()), VmiPhase::Running);
                self.show_vmi(&name);
            }
            Due::Condition(name) => {
                self.vmis.get_mut(&name).unwrap().migratable = Migratable::Yes;
                self.show_vmi(&name);
            }
            Due::Owner(name) => self.happen(Due::Stopped(name)),
        }
    }

    fn settle(&mut self, key: &Key) {
        let seen = self.shown[key].1;
        if let Some(charges) = self.charges.get_mut(key) {
            charges.retain(|_, c| !(c.accepted && c.version.is_some_and(|v| v <= seen)));
        }
    }

    fn answer(&mut self, effect: &Effect, reply: Reply) {
        self.rig.open.retain(|e| e.id != effect.id);
        if let (EffectKind::Evict { pod, .. }, Reply::Eviction(answer)) = (&effect.kind, &reply) {
            let keys: Vec<Key> = self.charges.keys().cloned().collect();
            for key in keys {
                let charges = self.charges.get_mut(&key).unwrap();
                if *answer == EvictionAnswer::Accepted {
                    charges.entry(pod.uid.clone()).and_modify(|c| c.accepted = true);
                } else {
                    charges.remove(&pod.uid);
                }
                self.settle(&key);
            }
        }
        self.rig.input(Input::Answer { id: effect.id, reply });
    }

    fn is_unkind(&mut self) -> bool {
        let unkind = self.unkind > 0 && self.random(6) == 0;
        self.unkind -= u32::from(unkind);
        unkind
    }

    fn process(&mut self, effect: &Effect) -> Reply {
        match &effect.kind {
            EffectKind::Cordon { node, .. } | EffectKind::CordonFresh { node } => {
                if self.unkind > 27 && self.is_unkind() {
                    let conflict = self.random(2) != 0;
                    return Reply::Cordon(Err(if conflict { Failure::Conflict } else { Failure::Passing("t".into()) }));
                }
                let facts = self.rig.machine.core.index.node(node).unwrap().clone();
                Reply::Cordon(Ok(Cordoned { wrote: !facts.unschedulable, facts: facts.cordoned() }))
            }
            EffectKind::Undo { .. } => Reply::Undo(UndoAnswer::Done),
            EffectKind::Uncordon { node } => unreachable!("nothing is refused for good, but {node} is uncordoned"),
            EffectKind::ReadKubeVirt { .. } if self.is_unkind() => Reply::KubeVirt(Err(Failure::Passing("t".into()))),
            EffectKind::ReadKubeVirt { .. } => Reply::KubeVirt(Ok(kubevirt(Some(Strategy::LiveMigrateIfPossible)))),
            EffectKind::ReadVmi { .. } if self.is_unkind() => Reply::Vmi(Err(Failure::Passing("t".into()))),
            EffectKind::ReadVmi { vmi } => Reply::Vmi(self.vmis.get(&vmi.name).cloned().ok_or(Failure::NotFound)),
            EffectKind::ReadPod { pod } => Reply::Pod(self.pods.get(&pod.uid).cloned().ok_or(Failure::NotFound)),
            EffectKind::ReadPending { .. } => Reply::Pods(Ok(Vec::new())),
            EffectKind::RelistPods { node } => {
                Reply::Pods(Ok(self.pods.values().filter(|p| p.node.as_deref() == Some(node)).cloned().collect()))
            }
            EffectKind::ListVolumes { .. } => Reply::Volumes(Ok(Vec::new())),
            EffectKind::Restart { vm } => {
                if self.is_unkind() {
                    return Reply::Restart(RestartAnswer::Unavailable { text: "503".into(), after: None });
                }
                *self.acted.entry(vm.name.clone()).or_default() += 1;
                self.restarting.insert(vm.name.clone());
                self.vmis.get_mut(&vm.name).unwrap().deleting = true;
                self.show_vmi(&vm.name);
                self.later(4_000, 30_000, Due::Stopped(vm.name.clone()));
                Reply::Restart(RestartAnswer::Accepted)
            }
            EffectKind::Evict { pod, .. } | EffectKind::Delete { pod, .. } => Reply::Eviction(self.evict(&pod.uid)),
        }
    }

    fn evict(&mut self, uid: &str) -> EvictionAnswer {
        if self.is_unkind() {
            return match self.random(5) {
                0 => EvictionAnswer::Throttled { after: Some(secs(2)) },
                1 => EvictionAnswer::Throttled { after: None },
                2 => EvictionAnswer::WebhookUnreachable { text: "x".into() },
                3 => EvictionAnswer::BudgetBusy { budget: None },
                _ => EvictionAnswer::ServerTrouble { text: "500".into() },
            };
        }
        let Some(facts) = self.pods.get(uid).cloned() else { return EvictionAnswer::Gone };
        if let Some(name) = uid.strip_prefix("uid-virt-launcher-") {
            return self.evict_vm(name.trim_end_matches("-x"), uid);
        }
        if let Some(key) = self.budget_of(&facts) {
            if self.budgets[&key].0.allowed.unwrap() <= 0 {
                return exhausted(&key.name);
            }
            let name = facts.key.name.clone();
            let version = self.show_budget(&key, |b| {
                b.allowed = b.allowed.map(|n| n - 1);
                b.disrupted.push(name);
            });
            self.charges.entry(key).or_default().entry(uid.to_owned()).and_modify(|c| c.version = Some(version));
        }
        self.terminate(uid);
        self.later(4_500, 30_000, Due::PodEnds(uid.to_owned()));
        EvictionAnswer::Accepted
    }

    fn terminate(&mut self, uid: &str) {
        let at = self.rig.machine.core.wall(self.rig.now + secs(30));
        self.pods.get_mut(uid).unwrap().deletion = Some(Deletion { at, grace_seconds: 30 });
        self.show_pod(uid);
    }

    fn evict_vm(&mut self, name: &str, uid: &str) -> EvictionAnswer {
        let facts = self.vmis[name].clone();
        let migrates = facts.strategy != Some(Strategy::None) && facts.migratable != Migratable::Missing;
        let external = facts.strategy == Some(Strategy::External);
        if matches!(facts.migratable, Migratable::No { .. }) || !migrates {
            assert_ne!(facts.strategy, Some(Strategy::LiveMigrate), "{name} would be refused\n{}", self.story());
            self.act(name);
            self.terminate(uid);
            self.later(4_500, 30_000, Due::Stopped(name.to_owned()));
            return EvictionAnswer::Accepted;
        }
        self.act(name);
        self.vmis.get_mut(name).unwrap().marked = facts.node.clone();
        self.show_vmi(name);
        if !external {
            self.later(500, 9_000, Due::Migration(name.to_owned(), 0));
        }
        EvictionAnswer::VmEvacuating { marked_now: true }
    }

    fn act(&mut self, name: &str) {
        let acted = self.acted.entry(name.to_owned()).or_default();
        *acted += 1;
        let times = *acted;
        assert_eq!(times, 1, "{name} is moved a second time\n{}", self.story());
    }

    fn migrate(&mut self, name: &str, phase: usize) {
        let attempt = *self.attempts.entry(name.to_owned()).or_insert(1);
        let facts = |phase: &str| -> MigrationFacts {
            let mut facts = migration(name, phase);
            facts.key.name = format!("{name}-{attempt}");
            facts.uid = format!("uid-{name}-{attempt}");
            facts
        };
        let fails = phase == 2 && attempt < 3 && self.random(4) == 0;
        let word = if fails { "Failed" } else { ["Pending", "Scheduling", "Running", "Succeeded"][phase] };
        self.show(Change::Migration(Delta::Apply(facts(word))), None);
        if fails {
            self.attempts.insert(name.to_owned(), attempt + 1);
            self.later(1_000, 40_000, Due::Migration(name.to_owned(), 0));
        } else if phase < 3 {
            self.later(500, 30_000, Due::Migration(name.to_owned(), phase + 1));
        } else {
            self.vmis.get_mut(name).unwrap().node = Some("node-2".into());
            self.show_vmi(name);
            self.pod_gone(&format!("uid-virt-launcher-{name}-x"));
        }
    }
}
