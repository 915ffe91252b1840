//! Building clusters for tests and scenarios. What a [`World`] adds is settled at once: pods run, guests run, budgets are counted,
//! all by the same controllers that work later, only without waiting.

pub mod object;
mod pod;
mod vm;

use serde_json::{Value, json};

pub use self::pod::PodSpec;
pub use self::vm::Vm;
use crate::cluster::Cluster;
use crate::controllers::hotplug;
use crate::json::{Json, controlled_by};
use crate::kinds::{Key, Kind};
use crate::machine;
use crate::sim::Sim;

/// What every cluster has from the start.
pub(crate) fn install(cluster: &mut Cluster) {
    for ns in ["default", "kube-system"] {
        cluster.create(Kind::Namespace, json!({"metadata": {"name": ns}}));
    }
    let Some(profile) = cluster.opts.kubevirt else { return };
    cluster.create(Kind::Namespace, json!({"metadata": {"name": "kubevirt"}}));
    let version = profile.version();
    let mut spec = json!({"configuration": {"vmRolloutStrategy": "LiveUpdate"},
        "workloadUpdateStrategy": {"batchEvictionInterval": "1m", "batchEvictionSize": 10, "workloadUpdateMethods": ["LiveMigrate", "Evict"]}});
    if let Some(strategy) = &cluster.opts.eviction_strategy {
        spec.put("/configuration/evictionStrategy", strategy.as_str());
    }
    cluster.create(
        Kind::KubeVirt,
        json!({"metadata": {"name": "kubevirt", "namespace": "kubevirt"}, "spec": spec,
            "status": {"defaultArchitecture": "amd64", "observedKubeVirtVersion": version, "operatorVersion": version,
                "targetKubeVirtVersion": version, "outdatedVirtualMachineInstanceWorkloads": 0, "phase": "Deployed"}}),
    );
}

/// A cluster in the making.
#[derive(Debug)]
pub struct World {
    sim: Sim,
    on: Option<String>,
}

impl World {
    pub(crate) fn new(sim: Sim) -> Self {
        Self { sim, on: None }
    }

    /// What follows goes to this node as long as it fits there ("" = wherever the scheduler likes).
    #[must_use]
    pub fn on(self, node: &str) -> Self {
        Self { on: (!node.is_empty()).then(|| node.to_owned()), ..self }
    }

    fn settled(&self, work: impl FnOnce(&mut Cluster)) {
        self.sim.shared().with(|c| {
            c.instant = true;
            c.prefer.clone_from(&self.on);
            work(c);
            c.settle();
            c.instant = false;
            c.prefer = None;
            for node in c.store.list(Kind::Node, "") {
                c.store.touch(&Key::new(Kind::Node, "", node.name()));
            }
        });
    }

    fn in_namespace(&self, ns: &str, work: impl FnOnce(&mut Cluster)) {
        self.settled(|c| {
            if c.get(Kind::Namespace, "", ns).is_none() {
                c.create(Kind::Namespace, json!({"metadata": {"name": ns}}));
            }
            work(c);
        });
    }

    /// A node, labelled as KubeVirt's node labeller does.
    #[must_use]
    pub fn node(self, name: &str) -> Self {
        self.node_with(name, |_| {})
    }

    /// A node with changes.
    #[must_use]
    pub fn node_with(self, name: &str, change: impl FnOnce(&mut Value)) -> Self {
        self.settled(|c| {
            let mut node = machine::node(name, c.opts.kubevirt.is_some(), &c.now());
            change(&mut node);
            c.create(Kind::Node, node);
        });
        self
    }

    /// node-0 … node-(n-1)
    #[must_use]
    pub fn nodes(self, n: usize) -> Self {
        (0..n).fold(self, |w, i| w.node(&format!("node-{i}")))
    }

    /// Any object, created and settled.
    #[must_use]
    pub fn object(self, object: Value) -> Self {
        let kind = Kind::of_object(object.text("/kind")).expect("a kind of the table");
        let ns = object.namespace().to_owned();
        let work = |c: &mut Cluster| {
            c.create(kind, object);
        };
        if kind.info().namespaced {
            self.in_namespace(if ns.is_empty() { "default" } else { &ns }, work);
        } else {
            self.settled(work);
        }
        self
    }

    /// A namespace.
    #[must_use]
    pub fn namespace(self, ns: &str) -> Self {
        self.in_namespace(ns, |_| {});
        self
    }

    /// A deployment whose pods carry the label `app: NAME`.
    #[must_use]
    pub fn deployment(self, ns: &str, name: &str, replicas: usize) -> Self {
        self.deployment_with(ns, name, replicas, PodSpec::new())
    }

    /// A deployment of such pods.
    #[must_use]
    pub fn deployment_with(self, ns: &str, name: &str, replicas: usize, pod: PodSpec) -> Self {
        self.workload("Deployment", ns, name, replicas, pod)
    }

    /// A stateful set.
    #[must_use]
    pub fn stateful_set(self, ns: &str, name: &str, replicas: usize) -> Self {
        self.workload("StatefulSet", ns, name, replicas, PodSpec::new())
    }

    /// A stateful set of such pods.
    #[must_use]
    pub fn stateful_set_with(self, ns: &str, name: &str, replicas: usize, pod: PodSpec) -> Self {
        self.workload("StatefulSet", ns, name, replicas, pod)
    }

    /// A daemon set: a pod on each node, also on later ones.
    #[must_use]
    pub fn daemon_set(self, ns: &str, name: &str) -> Self {
        self.workload("DaemonSet", ns, name, 1, PodSpec::new())
    }

    fn workload(self, kind: &str, ns: &str, name: &str, replicas: usize, pod: PodSpec) -> Self {
        self.object(object::workload(kind, ns, name, replicas, pod))
    }

    /// A pod of its own, without a controller.
    #[must_use]
    pub fn pod(self, ns: &str, name: &str, pod: PodSpec) -> Self {
        let mirror = pod.is_mirror();
        let (mut object, phase) = pod.object(ns, name);
        let on = self.on.clone();
        self.in_namespace(ns, |c| {
            if mirror
                && let Some(node) = on.as_deref().and_then(|n| c.get(Kind::Node, "", n))
            {
                object.put("/spec/nodeName", node.name());
                object.put("/metadata/ownerReferences", json!([controlled_by(&node)]));
            }
            c.create(Kind::Pod, object);
            c.settle();
            if let Some(phase) = phase {
                c.update(&Key::new(Kind::Pod, ns, name), |p| {
                    p.put("/status/phase", phase);
                    p.set_condition(json!({"type": "Ready", "status": "False", "reason": "PodCompleted", "lastProbeTime": null, "lastTransitionTime": null}));
                });
            }
        });
        self
    }

    /// A budget over the pods with the label `app: APP`; `spec` is e.g. `json!({"maxUnavailable": 1})`.
    #[must_use]
    pub fn pdb(self, ns: &str, name: &str, app: &str, spec: Value) -> Self {
        self.object(object::budget(ns, name, app, spec))
    }

    /// A VM, running unless it says otherwise.
    #[must_use]
    pub fn vm(self, ns: &str, vm: Vm) -> Self {
        let starts = vm.needs_start();
        let object = vm.object(ns);
        self.in_namespace(ns, |c| {
            let made = c.create(Kind::Vm, object);
            c.settle();
            if starts {
                c.update(&Key::new(Kind::Vm, ns, made.name()), |v| {
                    v.put("/status/stateChangeRequests", json!([{"action": "Start"}]));
                });
            }
        });
        self
    }

    /// A VM that a pool made: owned by it, with its template. The pool itself is not played.
    #[must_use]
    pub fn pool_vm(self, ns: &str, pool: &str, vm: Vm) -> Self {
        let mut object = vm.object(ns);
        let owner = json!({"apiVersion": "pool.kubevirt.io/v1beta1", "kind": "VirtualMachinePool", "name": pool,
            "uid": format!("uid-of-{pool}"), "controller": true, "blockOwnerDeletion": true});
        object.put("/metadata/ownerReferences", json!([owner]));
        self.in_namespace(ns, |c| {
            c.create(Kind::Vm, object);
        });
        self
    }

    /// A VMI without a VM.
    #[must_use]
    pub fn vmi(self, ns: &str, vm: Vm) -> Self {
        let object = vm.instance(ns);
        self.in_namespace(ns, |c| {
            c.create(Kind::Vmi, object);
        });
        self
    }

    /// A replica set of VMIs; `vm` gives the template.
    #[must_use]
    pub fn vmi_replica_set(self, ns: &str, name: &str, replicas: usize, vm: Vm) -> Self {
        self.object(object::vmi_replica_set(ns, name, replicas, vm))
    }

    /// Plugs a volume into a VM that runs; the pod that attaches it gets that name (real ones begin with `hp-volume-`).
    #[must_use]
    pub fn hotplug(self, ns: &str, vm: &str, pod: &str) -> Self {
        self.in_namespace(ns, |c| {
            hotplug::plug(c, &Key::new(Kind::Vmi, ns, vm), pod);
        });
        self
    }

    /// A claim and its volume; with a node the volume can be used on that one only.
    #[must_use]
    pub fn volume(self, ns: &str, claim: &str, mode: &str, node: Option<&str>) -> Self {
        let pv = format!("pv-{ns}-{claim}");
        let mut spec = json!({"capacity": {"storage": "10Gi"}, "accessModes": [mode], "claimRef": {"namespace": ns, "name": claim}, "storageClassName": "lab"});
        if let Some(node) = node {
            let term =
                json!({"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]});
            spec.put("/nodeAffinity/required/nodeSelectorTerms", json!([term]));
        }
        self.object(json!({"kind": "PersistentVolume", "metadata": {"name": pv}, "spec": spec, "status": {"phase": "Bound"}})).object(
            json!({"kind": "PersistentVolumeClaim", "metadata": {"name": claim, "namespace": ns},
                "spec": {"accessModes": [mode], "volumeName": pv, "storageClassName": "lab", "resources": {"requests": {"storage": "10Gi"}}},
                "status": {"phase": "Bound"}}),
        )
    }

    /// A quota: no more pods than that may be made in the namespace.
    #[must_use]
    pub fn quota(self, ns: &str, name: &str, pods: usize) -> Self {
        self.object(json!({"kind": "ResourceQuota", "metadata": {"name": name, "namespace": ns}, "spec": {"hard": {"pods": pods.to_string()}}}))
    }

    /// KubeVirt's own pods, with a budget over virt-api. From here on virt-api answers only while one of its pods is ready.
    #[must_use]
    pub fn kubevirt_pods(self) -> Self {
        let pod = |name: &str| PodSpec::new().label("kubevirt.io", name).priority_class("kubevirt-cluster-critical");
        let world = self
            .deployment_with("kubevirt", "virt-api", 2, pod("virt-api"))
            .pdb("kubevirt", "virt-api-pdb", "virt-api", json!({"minAvailable": 1}))
            .deployment_with("kubevirt", "virt-controller", 2, pod("virt-controller"))
            .deployment_with("kubevirt", "virt-operator", 2, pod("virt-operator"))
            .workload("DaemonSet", "kubevirt", "virt-handler", 1, pod("virt-handler"));
        world.sim.options(|o| o.virt_api_from_pods = true);
        world
    }

    /// The cluster-wide evictionStrategy from here on; VMs that run keep theirs.
    #[must_use]
    pub fn eviction_strategy(self, strategy: &str) -> Self {
        self.settled(|c| {
            c.update(&Key::new(Kind::KubeVirt, "kubevirt", "kubevirt"), |k| {
                k.put("/spec/configuration/evictionStrategy", strategy);
            });
        });
        self
    }

    /// Changes an object and settles.
    #[must_use]
    pub fn change(self, kind: &str, ns: &str, name: &str, change: impl FnOnce(&mut Value)) -> Self {
        let kind = Kind::of_object(kind).expect("a kind of the table");
        self.settled(|c| {
            c.update(&Key::new(kind, ns, name), change).expect("an object to change");
        });
        self
    }

    /// The cluster.
    pub fn done(self) -> Sim {
        self.sim
    }
}
