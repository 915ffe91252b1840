//! Builders for tests: objects described by what is special about them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{
    BudgetFacts, Change, ClaimFacts, Deletion, Delta, Demands, Index, IntOrPercent, Key, KubeVirtFacts, LabelSelector,
    Migratable, MigrationFacts, NodeExpression, NodeFacts, NodeReady, NodeTerm, Owner, PodFacts, PodKey, PodPhase,
    PodRole, RunStrategy, Strategy, Taint, Toleration, UnhealthyPolicy, VmFacts, VmVolume, VmVolumeSource, VmiFacts,
    VmiOwner, VmiPhase, WorkloadUpdate,
};

/// The namespace of everything here that is not told another one.
pub(crate) const NS: &str = "tenant-a";

/// The time of every test.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// Some seconds before [`now`].
pub(crate) fn ago(seconds: i64) -> Timestamp {
    now().checked_sub(SignedDuration::from_secs(seconds)).unwrap()
}

/// A label map.
pub(crate) fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

/// A migratable VMI of a VM, running on node-0 with strategy LiveMigrate.
pub(crate) fn vmi(name: &str) -> VmiFacts {
    VmiFacts {
        key: Key::new(NS, name),
        uid: format!("uid-{name}"),
        created: Some(ago(3600)),
        deleting: false,
        owner: VmiOwner::VirtualMachine { name: name.into() },
        strategy: Some(Strategy::LiveMigrate),
        migratable: Migratable::Yes,
        phase: VmiPhase::Running,
        scheduled_at: Some(ago(3590)),
        node: Some("node-0".into()),
        marked: None,
        migration: None,
        volumes: Vec::new(),
        grace_seconds: 60,
        agent_connected: true,
        has_devices: false,
        cpu_model: Some("Skylake".into()),
        unschedulable: None,
        not_created: None,
        running_backup: None,
        tenant_cluster: None,
        outdated: false,
        labels: Vec::new(),
    }
}

impl VmiFacts {
    pub(crate) fn strategy(mut self, strategy: Option<Strategy>) -> Self {
        self.strategy = strategy;
        self
    }

    pub(crate) fn live_migrate(self) -> Self {
        self.strategy(Some(Strategy::LiveMigrate))
    }

    pub(crate) fn if_possible(self) -> Self {
        self.strategy(Some(Strategy::LiveMigrateIfPossible))
    }

    pub(crate) fn not_migratable(mut self, reason: &str) -> Self {
        let message = match reason {
            "DisksNotLiveMigratable" => {
                "cannot migrate VMI: PVC root is not shared, live migration requires that all PVCs must be shared (using ReadWriteMany access mode)"
            }
            "HostDeviceNotLiveMigratable" => "VMI specifies a GPU but feature gate VGPULiveMigration is not enabled",
            _ => "",
        };
        self.migratable = Migratable::No { reason: reason.into(), message: message.into() };
        self
    }

    pub(crate) fn condition_missing(mut self) -> Self {
        self.migratable = Migratable::Missing;
        self
    }

    pub(crate) fn owned_by(mut self, owner: VmiOwner) -> Self {
        self.owner = owner;
        self
    }

    pub(crate) fn volume(mut self, name: &str, source: VmVolumeSource) -> Self {
        self.volumes.push(VmVolume { name: name.into(), source });
        self
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// A VM under `Always` without a strategy of its own.
pub(crate) fn vm(name: &str) -> VmFacts {
    VmFacts {
        key: Key::new(NS, name),
        uid: format!("vm-uid-{name}"),
        labels: Vec::new(),
        deleting: false,
        run_strategy: RunStrategy::Always,
        template_strategy: None,
        instancetype: false,
        pool: None,
        restart_required: false,
        start_requested: false,
        change_pending: false,
        printable_status: None,
    }
}

impl VmFacts {
    pub(crate) fn run(mut self, strategy: RunStrategy) -> Self {
        self.run_strategy = strategy;
        self
    }

    pub(crate) fn template(mut self, strategy: Strategy) -> Self {
        self.template_strategy = Some(strategy);
        self
    }
}

/// A ready pod of a ReplicaSet on node-0.
pub(crate) fn pod(name: &str) -> PodFacts {
    PodFacts {
        key: PodKey::new(NS, name, format!("uid-{name}")),
        node: Some("node-0".into()),
        phase: PodPhase::Running,
        owner: Some(owner("apps/v1", "ReplicaSet", "web")),
        labels: labels(&[("app", "web")]),
        mirror: false,
        empty_dirs: Vec::new(),
        deletion: None,
        finalizers: Vec::new(),
        containers_running: true,
        ready: true,
        priority: 0,
        grace_seconds: 30,
        tolerates_cordon: false,
        claims: Vec::new(),
        demands: Demands::default(),
        role: PodRole::Plain,
        unschedulable: None,
    }
}

/// An owner reference.
pub(crate) fn owner(api_version: &str, kind: &str, name: &str) -> Owner {
    Owner { api_version: api_version.into(), kind: kind.into(), name: name.into(), uid: format!("uid-{kind}-{name}") }
}

/// The launcher of a VMI on node-0.
pub(crate) fn launcher(vmi: &str) -> PodFacts {
    let mut pod = pod(&format!("virt-launcher-{vmi}-x"));
    pod.owner = Some(owner("kubevirt.io/v1", "VirtualMachineInstance", vmi));
    pod.labels = labels(&[("kubevirt.io", "virt-launcher")]);
    pod.empty_dirs = vec!["private".into(), "libvirt-runtime".into()];
    pod.role = PodRole::Launcher { vmi: vmi.into(), vmi_uid: Some(format!("uid-{vmi}")) };
    pod.demands.node_selector = labels(&[("kubevirt.io/schedulable", "true")]);
    pod
}

/// A hot-plug pod of the launcher of a VMI.
pub(crate) fn hotplug(vmi: &str) -> PodFacts {
    let launcher = launcher(vmi).key;
    let mut pod = pod(&format!("hp-volume-{vmi}"));
    pod.owner = Some(owner("v1", "Pod", &launcher.name));
    pod.labels = labels(&[("kubevirt.io", "hotplug-disk")]);
    pod.empty_dirs = vec!["hotplug-disks".into()];
    pod.role = PodRole::Hotplug { launcher: launcher.name, launcher_uid: launcher.uid };
    pod
}

impl PodFacts {
    pub(crate) fn on(mut self, node: &str) -> Self {
        self.node = Some(node.into());
        self
    }

    pub(crate) fn bare(mut self) -> Self {
        self.owner = None;
        self
    }

    pub(crate) fn owned(mut self, api_version: &str, kind: &str, name: &str) -> Self {
        self.owner = Some(owner(api_version, kind, name));
        self
    }

    pub(crate) fn empty_dir(mut self, name: &str) -> Self {
        self.empty_dirs.push(name.into());
        self
    }

    pub(crate) fn finished(mut self) -> Self {
        self.phase = PodPhase::Succeeded;
        self.containers_running = false;
        self.ready = false;
        self
    }

    pub(crate) fn deleted(mut self, seconds_ago: i64) -> Self {
        self.deletion = Some(Deletion { at: ago(seconds_ago), grace_seconds: 30 });
        self
    }

    pub(crate) fn unready(mut self) -> Self {
        self.ready = false;
        self
    }

    pub(crate) fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// A node that takes VMs.
pub(crate) fn node(name: &str) -> NodeFacts {
    NodeFacts {
        name: name.into(),
        uid: format!("uid-{name}"),
        resource_version: "1".into(),
        labels: labels(&[("kubevirt.io/schedulable", "true"), ("kubernetes.io/hostname", name)]),
        taints: Vec::new(),
        unschedulable: false,
        cordoned_by: None,
        ready: NodeReady::Yes,
        heartbeat: Some(ago(30)),
        devices: BTreeMap::new(),
    }
}

impl NodeFacts {
    pub(crate) fn cordoned(mut self) -> Self {
        self.unschedulable = true;
        self.taint("node.kubernetes.io/unschedulable", "NoSchedule")
    }

    pub(crate) fn taint(mut self, key: &str, effect: &str) -> Self {
        self.taints.push(Taint { key: key.into(), value: String::new(), effect: effect.into() });
        self
    }

    pub(crate) fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    pub(crate) fn device(mut self, name: &str, units: u64) -> Self {
        self.devices.insert(name.into(), units);
        self
    }

    pub(crate) fn not_ready(mut self) -> Self {
        self.ready = NodeReady::No { since: Some(ago(600)), reason: "NodeStatusUnknown".into() };
        self
    }

    pub(crate) fn heartbeat(mut self, seconds_ago: i64) -> Self {
        self.heartbeat = Some(ago(seconds_ago));
        self
    }
}

/// A toleration with operator Exists.
pub(crate) fn tolerates(key: Option<&str>) -> Toleration {
    Toleration { key: key.map(str::to_owned), exists: true, value: None, effect: None }
}

/// A term with one expression on a label.
pub(crate) fn term(key: &str, operator: &str, values: &[&str]) -> NodeTerm {
    let values = values.iter().map(|v| (*v).to_owned()).collect();
    NodeTerm { labels: vec![NodeExpression { key: key.into(), operator: operator.into(), values }], fields: Vec::new() }
}

/// A claim whose volume only one node can reach.
pub(crate) fn claim_on(name: &str, node: &str) -> ClaimFacts {
    ClaimFacts { key: Key::new(NS, name), volume_terms: vec![term("kubernetes.io/hostname", "In", &[node])] }
}

/// A budget over `app=web` that allows one disruption of three healthy pods.
pub(crate) fn budget(name: &str) -> BudgetFacts {
    BudgetFacts {
        key: Key::new(NS, name),
        uid: format!("uid-{name}"),
        owner: None,
        selector: Some(LabelSelector { match_labels: labels(&[("app", "web")]), expressions: Vec::new() }),
        min_available: Some(IntOrPercent::Int(2)),
        max_unavailable: None,
        unhealthy: UnhealthyPolicy::IfHealthyBudget,
        observed: true,
        allowed: Some(1),
        healthy: Some(3),
        desired: Some(2),
        expected: Some(3),
        disrupted: Vec::new(),
        sync_failed: None,
    }
}

impl BudgetFacts {
    pub(crate) fn status(mut self, allowed: i64, healthy: i64, desired: i64, expected: i64) -> Self {
        (self.allowed, self.healthy) = (Some(allowed), Some(healthy));
        (self.desired, self.expected) = (Some(desired), Some(expected));
        self
    }

    pub(crate) fn over_launchers(mut self) -> Self {
        self.selector =
            Some(LabelSelector { match_labels: labels(&[("kubevirt.io", "virt-launcher")]), expressions: Vec::new() });
        self
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// An unfinished evacuation migration.
pub(crate) fn migration(vmi: &str, phase: &str) -> MigrationFacts {
    MigrationFacts {
        key: Key::new(NS, format!("kubevirt-evacuation-{vmi}")),
        uid: format!("uid-vmim-{vmi}"),
        vmi: vmi.into(),
        created: Some(ago(10)),
        deleting: false,
        phase: phase.into(),
        evacuates: Some("node-0".into()),
        source_node: Some("node-0".into()),
        target_node: Some("node-1".into()),
        failure_reason: None,
        quota_rejected: false,
    }
}

/// The KubeVirt object with a cluster-wide strategy.
pub(crate) fn kubevirt(strategy: Option<Strategy>) -> KubeVirtFacts {
    KubeVirtFacts {
        key: Key::new("kubevirt", "kubevirt"),
        valid: true,
        strategy,
        version: Some("v1.7.0".into()),
        target_version: Some("v1.7.0".into()),
        expands_instancetypes: false,
        migrations_per_node: 2,
        migrations_per_cluster: 5,
        workload_update: WorkloadUpdate {
            live_migrate: true,
            evict: false,
            batch_size: 10,
            batch_interval: "1m".to_owned(),
        },
        drain_taint: "kubevirt.io/drain".into(),
    }
}

/// A cluster under construction.
#[derive(Default)]
pub(crate) struct World {
    /// What it amounts to.
    pub(crate) index: Index,
}

/// A cluster with node-0, node-1 and node-2, KubeVirt, and LiveMigrateIfPossible as its strategy.
pub(crate) fn world() -> World {
    let mut world = World::default();
    world.index.budgets_known = true;
    world.index.claims = Some(BTreeMap::new());
    world.index.infrastructure_namespaces = BTreeSet::from(["cdi".to_owned()]);
    world
        .cluster_strategy(Some(Strategy::LiveMigrateIfPossible))
        .node(node("node-0"))
        .node(node("node-1"))
        .node(node("node-2"))
}

impl World {
    fn apply(mut self, change: Change) -> Self {
        self.index.apply(change);
        self
    }

    pub(crate) fn cluster_strategy(mut self, strategy: Option<Strategy>) -> Self {
        self.index.kubevirt_installed = true;
        self.apply(Change::KubeVirt(Delta::Reset(vec![kubevirt(strategy)])))
    }

    pub(crate) fn cluster_unclear(mut self) -> Self {
        self.index.kubevirt_installed = true;
        self.apply(Change::KubeVirt(Delta::Reset(Vec::new())))
    }

    pub(crate) fn without_kubevirt(mut self) -> Self {
        self.index.kubevirt_installed = false;
        self.apply(Change::KubeVirt(Delta::Reset(Vec::new())))
    }

    pub(crate) fn node(self, node: NodeFacts) -> Self {
        self.apply(Change::Node(Delta::Apply(node)))
    }

    pub(crate) fn pod(self, pod: PodFacts) -> Self {
        let node = pod.node.clone().unwrap_or_default();
        self.apply(Change::Pods { node, delta: Delta::Apply(pod) })
    }

    pub(crate) fn vmi(self, vmi: VmiFacts) -> Self {
        self.apply(Change::Vmi(Delta::Apply(vmi)))
    }

    pub(crate) fn vm(self, vm: VmFacts) -> Self {
        self.apply(Change::Vm(Delta::Apply(vm)))
    }

    /// A VM with its VMI and launcher.
    pub(crate) fn runs(self, vm: VmFacts, vmi: VmiFacts) -> Self {
        let pod = launcher(&vmi.key.name);
        self.vm(vm).vmi(vmi).pod(pod)
    }

    pub(crate) fn migration(self, migration: MigrationFacts) -> Self {
        self.apply(Change::Migration(Delta::Apply(migration)))
    }

    pub(crate) fn budget(self, budget: BudgetFacts) -> Self {
        self.apply(Change::Budget(Delta::Apply(budget)))
    }

    pub(crate) fn claim(mut self, claim: ClaimFacts) -> Self {
        self.index.claims.get_or_insert_default().insert(claim.key.clone(), claim);
        self
    }

    pub(crate) fn daemon_set(mut self, name: &str, exists: bool) -> Self {
        self.index.daemon_sets.insert(Key::new(NS, name), exists);
        self
    }
}
