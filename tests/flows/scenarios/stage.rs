//! What a scenario plays on: some nodes and a namespace of a cluster, simulated or real, that belong to it alone.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use http::Method;
use safe_drain::settings::DrainOptions;
use safe_drain_sim::{Json, Options, PodSpec, Sim, Vm, node, object};
use serde_json::{Value, json};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::digest::Digest;
use crate::harness::{Audit, Cancel, Flow, Outcome, Real, Restart, Venue, audit, cancel, path, restart_stale, secs};

/// Label of the nodes of a stage, and what selects them in all that plays on it.
const STAGE: &str = "lab/stage";
/// An answer takes longer than a watch's news of what happened before, as on a real server.
const LATENCY: Duration = Duration::from_millis(2);
/// Kinds whose objects are waited for.
const WORKLOADS: [&str; 4] = ["Deployment", "StatefulSet", "DaemonSet", "VirtualMachineInstanceReplicaSet"];

/// Who breaks or changes what all stages share must have the cluster for itself.
static CLUSTER: LazyLock<RwLock<()>> = LazyLock::new(RwLock::default);

/// Which part of the real cluster a stage has.
enum Place {
    /// None, or a cluster of its own.
    None,
    Beside(#[expect(dead_code, reason = "held")] RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

/// A scenario's own part of a cluster.
pub struct Stage {
    pub(super) venue: Venue,
    name: String,
    nodes: Cell<usize>,
    namespaces: RefCell<Vec<String>>,
    place: RefCell<Place>,
    digests: RefCell<Vec<Digest>>,
}

impl Stage {
    /// On a simulated cluster of its own. Limits are those of the cluster in `tests/lab`.
    pub fn simulated(name: &str) -> Self {
        let options =
            Options { migrations_per_node: 3, migrations_per_cluster: 20, latency: LATENCY, ..Options::default() };
        Self::new(name, Venue::Sim(Sim::new(options)))
    }

    /// On the real cluster, beside other stages.
    pub async fn real(name: &str) -> Self {
        let cluster = CLUSTER.read().await;
        let real = Real::of_environment().await;
        real.create(json!({"kind": "Namespace", "metadata": {"name": name}})).await;
        let stage = Self::new(name, Venue::Real(Arc::new(real)));
        stage.place.replace(Place::Beside(cluster));
        stage
    }

    /// Another one on the same cluster; this one holds the place for both.
    pub async fn another(&self, name: &str) -> Self {
        let Venue::Real(real) = &self.venue else { return Self::new(name, self.venue.clone()) };
        real.create(json!({"kind": "Namespace", "metadata": {"name": name}})).await;
        Self::new(name, self.venue.clone())
    }

    fn new(name: &str, venue: Venue) -> Self {
        Self {
            venue,
            name: name.to_owned(),
            nodes: Cell::new(0),
            namespaces: RefCell::new(vec![name.to_owned()]),
            place: RefCell::new(Place::None),
            digests: RefCell::default(),
        }
    }

    /// From here on no other stage is played on; for acts that reach all of the cluster.
    pub async fn alone(&self) {
        if matches!(self.venue, Venue::Real(_)) {
            // First given back: two that wait for each other would wait for ever.
            self.place.replace(Place::None);
            let cluster = CLUSTER.write().await;
            self.place.replace(Place::Alone(cluster));
        }
    }

    /// From here on others may play again.
    pub fn shared(&self) {
        if let Place::Alone(cluster) = self.place.replace(Place::None) {
            self.place.replace(Place::Beside(cluster.downgrade()));
        }
    }

    /// Whether it may have broken something.
    pub fn is_alone(&self) -> bool {
        matches!(*self.place.borrow(), Place::Alone(_))
    }

    /// The namespace of most of its objects.
    pub fn ns(&self) -> &str {
        &self.name
    }

    /// The name of its n-th node.
    pub fn node(&self, n: usize) -> String {
        format!("{}-{n}", self.name)
    }

    /// How many it has.
    pub fn node_count(&self) -> usize {
        self.nodes.get()
    }

    /// More nodes, whose kubelets and virt-handlers obey the annotations of `tests/sim/README.md`.
    pub async fn nodes(&self, n: usize) {
        self.more_nodes(n, true).await;
    }

    /// More nodes for pods that start and stop at once.
    pub async fn fast_nodes(&self, n: usize) {
        self.more_nodes(n, false).await;
    }

    async fn more_nodes(&self, n: usize, played: bool) {
        for _ in 0..n {
            let name = self.node(self.nodes.replace(self.nodes.get() + 1));
            let mut node = node(&name, true, self.venue.now());
            node.set_label(STAGE, &self.name);
            if !played {
                node.set_annotation("kwok.x-k8s.io/node", Some("fake"));
            }
            match &self.venue {
                Venue::Sim(sim) => drop(sim.world().node_with(&name, |n| {
                    n["metadata"]["labels"] = node["metadata"]["labels"].clone();
                })),
                Venue::Real(real) => drop(real.create(node).await),
            }
        }
    }

    /// Another namespace.
    pub async fn namespace(&self, name: &str) -> String {
        let name = format!("{}-{name}", self.name);
        self.namespaces.borrow_mut().push(name.clone());
        match &self.venue {
            Venue::Sim(sim) => drop(sim.world().namespace(&name)),
            Venue::Real(real) => {
                drop(real.create(json!({"kind": "Namespace", "metadata": {"name": name}})).await);
            }
        }
        name
    }

    /// An object; what it starts stays on the nodes of this stage.
    pub async fn add(&self, mut object: Value) {
        for spec in ["/spec/template/spec", "/spec"] {
            let pods = spec != "/spec" || matches!(object.text("/kind"), "Pod" | "VirtualMachineInstance");
            if pods && let Some(spec) = object.pointer_mut(spec) {
                spec["nodeSelector"][STAGE] = json!(self.name);
                break;
            }
        }
        match &self.venue {
            Venue::Sim(sim) => drop(sim.world().object(object)),
            Venue::Real(real) => drop(real.create(object).await),
        }
    }

    /// A deployment.
    pub async fn deployment(&self, name: &str, replicas: usize, pod: PodSpec) {
        self.add(object::workload("Deployment", self.ns(), name, replicas, pod)).await;
    }

    /// A stateful set.
    pub async fn stateful_set(&self, name: &str, replicas: usize, pod: PodSpec) {
        self.add(object::workload("StatefulSet", self.ns(), name, replicas, pod)).await;
    }

    /// A daemon set.
    pub async fn daemon_set(&self, name: &str) {
        self.add(object::workload("DaemonSet", self.ns(), name, 1, PodSpec::new())).await;
    }

    /// A budget over the pods of a workload.
    pub async fn budget(&self, name: &str, app: &str, spec: Value) {
        self.add(object::budget(self.ns(), name, app, spec)).await;
    }

    /// A pod without a controller.
    pub async fn pod(&self, name: &str, pod: PodSpec) {
        self.add(object::pod(self.ns(), name, pod)).await;
    }

    /// A VM; one with run strategy Manual is started.
    pub async fn vm(&self, vm: Vm) {
        let starts = vm.needs_start();
        let vm = object::vm(self.ns(), vm);
        let name = vm.name().to_owned();
        self.add(vm).await;
        match &self.venue {
            Venue::Sim(sim) if starts => {
                let start = json!([{"action": "Start"}]);
                drop(
                    sim.world()
                        .change("VirtualMachine", self.ns(), &name, |v| v.put("/status/stateChangeRequests", start)),
                );
            }
            Venue::Real(real) if starts => {
                real.until("its start", secs(30), async || real.start(self.ns(), &name).await).await;
            }
            Venue::Sim(_) | Venue::Real(_) => {}
        }
    }

    /// Waits until that holds.
    pub async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        match &self.venue {
            Venue::Sim(_) => {
                while !holds().await {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            Venue::Real(real) => real.until(what, secs(60), holds).await,
        }
    }

    /// How many VMs may leave a node at a time. Only a scenario that has the cluster for itself may change it.
    pub async fn migrations_per_node(&self, n: usize) {
        match &self.venue {
            Venue::Sim(sim) => sim.options(|o| o.migrations_per_node = n),
            Venue::Real(real) => {
                let patch =
                    json!({"spec": {"configuration": {"migrations": {"parallelOutboundMigrationsPerNode": n}}}});
                real.patch("KubeVirt", "kubevirt", "kubevirt", &patch).await;
            }
        }
    }

    /// The cluster-wide evictionStrategy from here on. Only a scenario that has the cluster for itself may change it.
    pub async fn eviction_strategy(&self, strategy: &str) {
        match &self.venue {
            Venue::Sim(sim) => sim.eviction_strategy(Some(strategy)),
            Venue::Real(real) => {
                let patch = json!({"spec": {"configuration": {"evictionStrategy": strategy}}});
                real.patch("KubeVirt", "kubevirt", "kubevirt", &patch).await;
                // virt-api learns of it by a watch: what it would stamp into a new VMI shows whether it has.
                let mut probe = object::vmi(self.ns(), Vm::new("probe"));
                probe.put("/apiVersion", "kubevirt.io/v1");
                let dry_run = format!("{}?dryRun=All", path("VirtualMachineInstance", self.ns(), ""));
                let stamped = async || {
                    let vmi = real.send(Method::POST, &dry_run, Some(&probe)).await.unwrap_or_default();
                    vmi.text("/spec/evictionStrategy") == strategy
                };
                real.until("the new strategy", secs(30), stamped).await;
            }
        }
    }

    /// Waits until everything runs that was added, and the budgets know it.
    pub async fn settle(&self) {
        let Venue::Real(real) = &self.venue else { return };
        let namespaces = self.namespaces.borrow().clone();
        let settled = async || {
            for ns in &namespaces {
                if !is_settled(real, ns).await {
                    return false;
                }
            }
            true
        };
        real.until(&format!("the objects of {}", self.name), secs(120), settled).await;
    }

    /// Has everything removed; what is left of it disturbs nobody.
    pub async fn clear(&self) {
        let Venue::Real(real) = &self.venue else { return };
        let namespaces = self.namespaces.borrow().clone();
        for ns in namespaces {
            real.send(Method::DELETE, &path("Namespace", "", &ns), None).await;
        }
    }

    /// All objects of a kind in the namespace.
    pub async fn list(&self, kind: &str) -> Vec<Value> {
        match &self.venue {
            Venue::Sim(sim) => sim.list(kind).into_iter().filter(|o| o.namespace() == self.ns()).collect(),
            Venue::Real(real) => real.list(kind, self.ns()).await,
        }
    }

    /// One object of the namespace.
    pub async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        self.list(kind).await.into_iter().find(|o| o.name() == name)
    }

    /// A drain of its n-th node.
    pub fn drain(&self, n: usize) -> Flow {
        Flow::new(self.venue.clone(), DrainOptions::for_nodes([self.node(n)]))
    }

    /// `cancel` of its n-th node.
    pub fn cancel(&self, n: usize) -> Cancel {
        cancel(self.venue.clone(), [self.node(n).as_str()])
    }

    /// `restart-stale` of its VMs.
    pub fn restart_stale(&self) -> Restart {
        restart_stale(self.venue.clone()).namespace(self.ns())
    }

    /// `audit` of its namespace.
    pub fn audit(&self) -> Audit {
        audit(self.venue.clone()).namespace(self.ns())
    }

    /// Runs a drain, and keeps what came of it for the comparison of clusters.
    pub async fn run(&self, flow: Flow) -> Outcome {
        let run = flow.run().await;
        self.keep(&run);
        run
    }

    /// Keeps an outcome for the comparison.
    pub fn keep(&self, run: &Outcome) {
        self.digests.borrow_mut().extend(run.preview.iter().map(|p| Digest::of(p)));
        self.digests.borrow_mut().push(Digest::of(run));
    }

    /// What came of the runs, in their order.
    pub fn digests(self) -> Vec<Digest> {
        self.digests.into_inner()
    }
}

async fn is_settled(real: &Real, ns: &str) -> bool {
    let pods = real.list("Pod", ns).await;
    let running = |p: &Value| {
        matches!(p.text("/status/phase"), "Succeeded" | "Failed")
            || p.text("/status/phase") == "Running" && (p.is_true("Ready") || p.has("/metadata/annotations/lab~1crash"))
    };
    if !pods.iter().all(running) {
        return false;
    }
    let full = |o: &Value| match o.int("/spec/replicas") {
        Some(n) => o.int("/status/replicas") == Some(n),
        None => {
            o.int("/status/desiredNumberScheduled") > Some(0)
                && o.int("/status/numberReady") == o.int("/status/desiredNumberScheduled")
        }
    };
    for kind in WORKLOADS {
        if !real.list(kind, ns).await.iter().all(full) {
            return false;
        }
    }
    let counted = |b: &Value| {
        let app = b.text("/spec/selector/matchLabels/app");
        let ready = pods.iter().filter(|p| p.label("app") == app && p.is_true("Ready")).count();
        b.int("/status/observedGeneration") == b.int("/metadata/generation")
            && b.int("/status/currentHealthy") == i64::try_from(ready).ok()
    };
    let vmis = real.list("VirtualMachineInstance", ns).await;
    let runs = |vm: &&Value| vm.text("/spec/runStrategy") != "Halted";
    let wanted = real.list("VirtualMachine", ns).await.iter().filter(runs).count();
    real.list("PodDisruptionBudget", ns).await.iter().all(counted)
        && vmis.len() >= wanted
        && vmis.iter().all(|v| v.text("/status/phase") == "Running" && v.condition("LiveMigratable").is_some())
}
