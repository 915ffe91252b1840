//! The facts that are kept up to date: apply, delete and reset, and the look-ups that the core needs.
//!
//! Watches are translated into [`Change`]s; `Reset` carries the whole set after a (re)list, so what is missing in it is
//! gone. Applying a change tells what it touched, so that only those items are looked at again.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    BudgetFacts, ClaimFacts, Key, KubeVirtFacts, MigrationFacts, NodeFacts, PodFacts, PodKey, PodRole, VmFacts,
    VmiFacts,
};

/// A change of a set of objects of type `T` that are identified by `I`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta<T, I> {
    /// The object is there and looks like this.
    Apply(T),
    /// The object is gone.
    Delete(I),
    /// These are all objects of the set.
    Reset(Vec<T>),
}

/// A change of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Pods of one node (the set of a `Reset` is that node's).
    Pods {
        /// The node.
        node: String,
        /// The change.
        delta: Delta<PodFacts, PodKey>,
    },
    /// Launchers and hot-plug pods, wherever they run (the set of a `Reset` is all of them).
    VmPods(Delta<PodFacts, PodKey>),
    /// VMIs.
    Vmi(Delta<VmiFacts, Key>),
    /// VMs.
    Vm(Delta<VmFacts, Key>),
    /// Migrations.
    Migration(Delta<MigrationFacts, Key>),
    /// Disruption budgets.
    Budget(Delta<BudgetFacts, Key>),
    /// Nodes.
    Node(Delta<NodeFacts, String>),
    /// KubeVirt CRs.
    KubeVirt(Delta<KubeVirtFacts, Key>),
}

/// What a change touched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    /// UIDs of pods.
    pub pods: BTreeSet<String>,
    /// VMIs and VMs (they share their key) with their migrations.
    pub vms: BTreeSet<Key>,
    /// Budgets.
    pub budgets: BTreeSet<Key>,
    /// Nodes.
    pub nodes: BTreeSet<String>,
    /// True if the KubeVirt CR changed.
    pub kubevirt: bool,
}

/// What is known of the KubeVirt installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KubeVirtState<'a> {
    /// Not installed: discovery does not know `kubevirt.io`.
    Absent,
    /// Installed, with one valid CR.
    One(&'a KubeVirtFacts),
    /// Installed, but there is no valid CR, more than one, or it could not be read.
    Unclear,
}

/// The cluster as it is known now.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// True if KubeVirt's API is there.
    pub kubevirt_installed: bool,
    /// True if budgets could be read.
    pub budgets_known: bool,
    /// Claims of the pods and VMs of the nodes; `None` where they could not be read.
    pub claims: Option<BTreeMap<Key, ClaimFacts>>,
    /// Whether the DaemonSets that own pods exist; missing: could not be read.
    pub daemon_sets: BTreeMap<Key, bool>,
    /// Namespaces that hold the CDI objects and other operators' own pods: their pods go last.
    pub infrastructure_namespaces: BTreeSet<String>,
    pods: BTreeMap<String, PodFacts>,
    vmis: BTreeMap<Key, VmiFacts>,
    vms: BTreeMap<Key, VmFacts>,
    migrations: BTreeMap<Key, MigrationFacts>,
    budgets: BTreeMap<Key, BudgetFacts>,
    nodes: BTreeMap<String, NodeFacts>,
    kubevirts: BTreeMap<Key, KubeVirtFacts>,
}

impl Index {
    /// Applies one change.
    pub fn apply(&mut self, change: Change) -> Touched {
        let mut touched = Touched::default();
        match change {
            Change::Pods { node, delta } => {
                self.apply_pods(delta, |pod| pod.node.as_deref() == Some(&node), &mut touched);
            }
            Change::VmPods(delta) => self.apply_pods(delta, PodFacts::is_of_vm, &mut touched),
            Change::Vmi(delta) => touched.vms = apply(&mut self.vmis, delta, |v| v.key.clone()),
            Change::Vm(delta) => touched.vms = apply(&mut self.vms, delta, |v| v.key.clone()),
            Change::Migration(delta) => {
                // What goes away tells afterwards no more whose it was.
                let gone: Vec<Key> = match &delta {
                    Delta::Apply(_) => Vec::new(),
                    Delta::Delete(key) => self.migrations.get(key).map(vmi_key).into_iter().collect(),
                    Delta::Reset(all) => {
                        let stay: BTreeSet<&Key> = all.iter().map(|m| &m.key).collect();
                        self.migrations.values().filter(|m| !stay.contains(&m.key)).map(vmi_key).collect()
                    }
                };
                let keys = apply(&mut self.migrations, delta, |m| m.key.clone());
                touched.vms = keys.iter().filter_map(|k| self.migrations.get(k).map(vmi_key)).chain(gone).collect();
            }
            Change::Budget(delta) => touched.budgets = apply(&mut self.budgets, delta, |b| b.key.clone()),
            Change::Node(delta) => touched.nodes = apply(&mut self.nodes, delta, |n| n.name.clone()),
            Change::KubeVirt(delta) => {
                touched.kubevirt = !apply(&mut self.kubevirts, delta, |k| k.key.clone()).is_empty();
            }
        }
        touched
    }

    /// `of_set` tells which pods a `Reset` is about.
    fn apply_pods(
        &mut self,
        delta: Delta<PodFacts, PodKey>,
        of_set: impl Fn(&PodFacts) -> bool,
        touched: &mut Touched,
    ) {
        let mut gone = Vec::new();
        match delta {
            Delta::Apply(pod) => {
                touched.pods.insert(pod.key.uid.clone());
                self.pods.insert(pod.key.uid.clone(), pod);
            }
            Delta::Delete(key) => gone.push(key.uid),
            Delta::Reset(pods) => {
                let uids: BTreeSet<String> = pods.iter().map(|p| p.key.uid.clone()).collect();
                let is_gone = |p: &&PodFacts| of_set(p) && !uids.contains(&p.key.uid);
                gone.extend(self.pods.values().filter(is_gone).map(|p| p.key.uid.clone()));
                for pod in pods {
                    touched.pods.insert(pod.key.uid.clone());
                    self.pods.insert(pod.key.uid.clone(), pod);
                }
            }
        }
        for uid in gone {
            self.pods.remove(&uid);
            touched.pods.insert(uid);
        }
    }

    /// The pod of that UID.
    pub fn pod(&self, uid: &str) -> Option<&PodFacts> {
        self.pods.get(uid)
    }

    /// All pods that are known.
    pub fn pods(&self) -> impl Iterator<Item = &PodFacts> {
        self.pods.values()
    }

    /// Pods bound to a node.
    pub fn pods_on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a PodFacts> {
        self.pods.values().filter(move |p| p.node.as_deref() == Some(node))
    }

    /// Unfinished launchers of a VMI that are known (those on the watched nodes).
    pub fn launchers_of<'a>(&'a self, vmi: &'a Key) -> impl Iterator<Item = &'a PodFacts> {
        self.pods.values().filter(move |p| {
            p.key.namespace == vmi.namespace
                && !p.phase.is_finished()
                && matches!(&p.role, PodRole::Launcher { vmi: name, .. } if *name == vmi.name)
        })
    }

    /// Hot-plug pods of a launcher.
    pub fn companions_of<'a>(&'a self, launcher: &'a PodKey) -> impl Iterator<Item = &'a PodFacts> {
        self.pods
            .values()
            .filter(move |p| matches!(&p.role, PodRole::Hotplug { launcher_uid, .. } if *launcher_uid == launcher.uid))
    }

    /// The VMI of that key.
    pub fn vmi(&self, key: &Key) -> Option<&VmiFacts> {
        self.vmis.get(key)
    }

    /// All VMIs.
    pub fn vmis(&self) -> impl Iterator<Item = &VmiFacts> {
        self.vmis.values()
    }

    /// The VM of that key.
    pub fn vm(&self, key: &Key) -> Option<&VmFacts> {
        self.vms.get(key)
    }

    /// All VMs.
    pub fn vms(&self) -> impl Iterator<Item = &VmFacts> {
        self.vms.values()
    }

    /// All migrations.
    pub fn migrations(&self) -> impl Iterator<Item = &MigrationFacts> {
        self.migrations.values()
    }

    /// Migrations of a VMI, oldest first.
    pub fn migrations_of(&self, vmi: &Key) -> Vec<&MigrationFacts> {
        let mut found: Vec<_> = in_namespace(&self.migrations, &vmi.namespace).filter(|m| m.vmi == vmi.name).collect();
        found.sort_by(|a, b| (a.created, &a.key).cmp(&(b.created, &b.key)));
        found
    }

    /// The budget of that key.
    pub fn budget(&self, key: &Key) -> Option<&BudgetFacts> {
        self.budgets.get(key)
    }

    /// Budgets that count a pod.
    pub fn budgets_of<'a>(&'a self, pod: &'a PodFacts) -> impl Iterator<Item = &'a BudgetFacts> {
        in_namespace(&self.budgets, &pod.key.namespace).filter(move |b| b.covers(pod))
    }

    /// The node of that name.
    pub fn node(&self, name: &str) -> Option<&NodeFacts> {
        self.nodes.get(name)
    }

    /// All nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeFacts> {
        self.nodes.values()
    }

    /// The KubeVirt installation.
    pub fn kubevirt(&self) -> KubeVirtState<'_> {
        if !self.kubevirt_installed {
            return KubeVirtState::Absent;
        }
        let mut valid = self.kubevirts.values().filter(|k| k.valid);
        match (valid.next(), valid.next()) {
            (Some(one), None) => KubeVirtState::One(one),
            _ => KubeVirtState::Unclear,
        }
    }
}

fn vmi_key(migration: &MigrationFacts) -> Key {
    Key::new(&migration.key.namespace, &migration.vmi)
}

/// The objects of one namespace, without a look at the others.
fn in_namespace<'a, 'n, T>(
    map: &'a BTreeMap<Key, T>,
    namespace: &'n str,
) -> impl Iterator<Item = &'a T> + use<'a, 'n, T> {
    map.range(Key::new(namespace, "")..)
        .take_while(move |(key, _)| key.namespace == namespace)
        .map(|(_, object)| object)
}

/// Applies a delta to a map; returns the identities that changed.
fn apply<T: PartialEq, I: Ord + Clone>(
    map: &mut BTreeMap<I, T>,
    delta: Delta<T, I>,
    id: impl Fn(&T) -> I,
) -> BTreeSet<I> {
    let mut touched = BTreeSet::new();
    match delta {
        Delta::Apply(object) => {
            let key = id(&object);
            touched.insert(key.clone());
            map.insert(key, object);
        }
        Delta::Delete(key) => {
            map.remove(&key);
            touched.insert(key);
        }
        Delta::Reset(objects) => {
            let mut fresh: BTreeMap<I, T> = objects.into_iter().map(|o| (id(&o), o)).collect();
            touched.extend(map.keys().filter(|k| !fresh.contains_key(*k)).cloned());
            touched.extend(fresh.iter().filter(|(k, v)| map.get(*k) != Some(*v)).map(|(k, _)| k.clone()));
            std::mem::swap(map, &mut fresh);
        }
    }
    touched
}
