//! The facts that are kept up to date: apply, delete and reset, and the look-ups that the core needs.
//!
//! Watches are translated into [`Change`]s; `Reset` carries the whole set after a (re)list, so what is missing in it is
//! gone. Applying a change tells what it touched, so that only those items are looked at again.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    BudgetFacts, ClaimFacts, Key, KubeVirtFacts, MigrationFacts, NodeFacts, PodFacts, PodKey, PodRole, Strategy,
    VmFacts, VmiFacts,
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
    /// The evictionStrategy in the templates of the replica sets that own VMIs; missing: could not be read.
    pub replica_sets: BTreeMap<Key, Option<Strategy>>,
    /// How far the transfers into claims are, where CDI says it: `73.42%`.
    pub transfers: BTreeMap<Key, String>,
    /// Namespaces that hold the CDI objects and other operators' own pods: their pods go last.
    pub infrastructure_namespaces: BTreeSet<String>,
    /// VMIs that are there and whose objects are not as their kind says, as `namespace/name`.
    pub unreadable_vmis: BTreeSet<String>,
    /// True where nodes could not be read: which of them can take a VM is unknown.
    pub nodes_unknown: bool,
    pods: BTreeMap<String, PodFacts>,
    /// UIDs of the launchers of each VMI.
    launchers: BTreeMap<Key, BTreeSet<String>>,
    /// UIDs of the hot-plug pods of each launcher, by its UID.
    companions: BTreeMap<String, BTreeSet<String>>,
    vmis: BTreeMap<Key, VmiFacts>,
    vms: BTreeMap<Key, VmFacts>,
    migrations: BTreeMap<Key, MigrationFacts>,
    /// Names of the migrations of each VMI.
    migrations_of: BTreeMap<Key, BTreeSet<String>>,
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
                let is_reset = matches!(delta, Delta::Reset(_));
                let keys = apply(&mut self.migrations, delta, |m| m.key.clone());
                self.link_migrations(is_reset, &keys, &gone);
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

    /// Keeps the names of each VMI's migrations after a change; `gone` are the VMIs of those that went away.
    fn link_migrations(&mut self, all: bool, changed: &BTreeSet<Key>, gone: &[Key]) {
        if all {
            self.migrations_of.clear();
        }
        let of_all = all.then(|| self.migrations.values()).into_iter().flatten();
        let of_some = (!all).then(|| changed.iter().filter_map(|key| self.migrations.get(key))).into_iter().flatten();
        for migration in of_all.chain(of_some) {
            let name = migration.key.name.clone();
            self.migrations_of.entry(vmi_key(migration)).or_default().insert(name);
        }
        for key in changed.iter().filter(|key| !all && !self.migrations.contains_key(*key)) {
            forget(&mut self.migrations_of, gone, &key.name);
        }
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
            Delta::Apply(pod) => self.insert_pod(pod, touched),
            Delta::Delete(key) => gone.push(key.uid),
            Delta::Reset(pods) => {
                let uids: BTreeSet<String> = pods.iter().map(|p| p.key.uid.clone()).collect();
                let is_gone = |p: &&PodFacts| of_set(p) && !uids.contains(&p.key.uid);
                gone.extend(self.pods.values().filter(is_gone).map(|p| p.key.uid.clone()));
                for pod in pods {
                    self.insert_pod(pod, touched);
                }
            }
        }
        for uid in gone {
            if let Some(pod) = self.pods.remove(&uid) {
                self.unlink(&pod);
            }
            touched.pods.insert(uid);
        }
    }

    fn insert_pod(&mut self, pod: PodFacts, touched: &mut Touched) {
        let uid = pod.key.uid.clone();
        touched.pods.insert(uid.clone());
        if let Some(before) = self.pods.get(&uid).filter(|before| before.role != pod.role).cloned() {
            self.unlink(&before);
        }
        match &pod.role {
            PodRole::Launcher { vmi, .. } => {
                let vmi = Key::new(&pod.key.namespace, vmi);
                self.launchers.entry(vmi).or_default().insert(uid.clone());
            }
            PodRole::Hotplug { launcher_uid, .. } => {
                self.companions.entry(launcher_uid.clone()).or_default().insert(uid.clone());
            }
            PodRole::Plain => {}
        }
        self.pods.insert(uid, pod);
    }

    /// Takes a pod that is gone out of what is looked up by its role.
    fn unlink(&mut self, pod: &PodFacts) {
        let uid = &pod.key.uid;
        match &pod.role {
            PodRole::Launcher { vmi, .. } => forget(&mut self.launchers, &[Key::new(&pod.key.namespace, vmi)], uid),
            PodRole::Hotplug { launcher_uid, .. } => {
                forget(&mut self.companions, std::slice::from_ref(launcher_uid), uid);
            }
            PodRole::Plain => {}
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
        let uids = self.launchers.get(vmi).into_iter().flatten();
        uids.filter_map(|uid| self.pods.get(uid)).filter(|p| !p.phase.is_finished())
    }

    /// Hot-plug pods of a launcher.
    pub fn companions_of<'a>(&'a self, launcher: &'a PodKey) -> impl Iterator<Item = &'a PodFacts> {
        self.companions.get(&launcher.uid).into_iter().flatten().filter_map(|uid| self.pods.get(uid))
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
        let names = self.migrations_of.get(vmi).into_iter().flatten();
        let mut found: Vec<_> = names.filter_map(|name| self.migrations.get(&Key::new(&vmi.namespace, name))).collect();
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

/// Takes a member out of the sets with these keys.
fn forget<K: Ord>(sets: &mut BTreeMap<K, BTreeSet<String>>, keys: &[K], member: &str) {
    for key in keys {
        if let Some(set) = sets.get_mut(key) {
            set.remove(member);
            if set.is_empty() {
                sets.remove(key);
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::testing::{NS, hotplug, launcher, migration, vmi};

    fn names(index: &Index, vm: &str) -> (Vec<String>, Vec<String>) {
        let key = Key::new(NS, vm);
        let launchers = index.launchers_of(&key).map(|p| p.key.name.clone()).collect();
        (launchers, index.migrations_of(&key).iter().map(|m| m.key.name.clone()).collect())
    }

    #[test]
    fn what_belongs_to_a_vm_is_found_through_every_change() {
        let mut index = Index::default();
        let (a, b) = (launcher("a"), launcher("b"));
        let attach = hotplug("a");
        index.apply(Change::Vmi(Delta::Apply(vmi("a"))));
        index.apply(Change::VmPods(Delta::Reset(vec![a.clone(), b.clone(), attach.clone()])));
        assert_eq!(names(&index, "a").0, ["virt-launcher-a-x"]);
        assert_eq!(index.companions_of(&a.key).map(|p| &p.key).collect::<Vec<_>>(), [&attach.key]);
        // A pod that loses its role belongs to nobody.
        let plain = PodFacts { role: PodRole::Plain, ..b.clone() };
        index.apply(Change::Pods { node: "node-0".into(), delta: Delta::Apply(plain) });
        assert_eq!(names(&index, "b").0, Vec::<String>::new());
        index.apply(Change::VmPods(Delta::Delete(attach.key)));
        assert_eq!(index.companions_of(&a.key).count(), 0);
        index.apply(Change::Pods { node: "node-0".into(), delta: Delta::Reset(Vec::new()) });
        assert_eq!((names(&index, "a").0, index.pods().count()), (Vec::new(), 0));

        let named = |name: &str, vm: &str| MigrationFacts { key: Key::new(NS, name), ..migration(vm, "Running") };
        let (one, two, other) = (named("one", "a"), named("two", "a"), named("other", "b"));
        index.apply(Change::Migration(Delta::Reset(vec![one.clone(), other.clone()])));
        index.apply(Change::Migration(Delta::Apply(two.clone())));
        index.apply(Change::Migration(Delta::Apply(MigrationFacts { phase: "Succeeded".into(), ..one.clone() })));
        assert_eq!(names(&index, "a").1, ["one", "two"]);
        assert_eq!(names(&index, "b").1, ["other"]);
        index.apply(Change::Migration(Delta::Delete(one.key)));
        assert_eq!(names(&index, "a").1, ["two"]);
        index.apply(Change::Migration(Delta::Reset(vec![other])));
        assert_eq!((names(&index, "a").1, names(&index, "b").1), (Vec::new(), vec!["other".to_owned()]));
    }
}
