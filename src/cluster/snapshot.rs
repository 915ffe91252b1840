//! The state of the cluster at one moment, and the watches that keep it up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use futures::StreamExt;
use futures::future::join_all;

use super::problem::{ApiProblem, ProblemKind};
use super::requests::Requests;
use super::watches::{Follower, Place, WatchItem, WatchOptions, Watched, Watches, node_followers, vm_followers};
use crate::facts::{Change, Delta, Index, Key, PodFacts, PodRole, Scope, VmVolumeSource, VmiFacts, VmiOwner};

/// How often a list is tried that fails inside the server or is turned away because it is busy.
const TRIES: u32 = 3;

/// What was read of the cluster.
#[derive(Debug)]
pub struct Snapshot {
    /// The facts.
    pub index: Index,
    /// The API server's version, where it could be read.
    pub kubernetes: Option<String>,
    /// What could not be read. The watches leave it out, too.
    pub unread: Vec<Unread>,
    /// Objects that could not be read in lists that could: set, name, reason.
    pub unreadable: Vec<(Watched, String, String)>,
    /// The watches that go on from here. Dropped unpolled (as a preview does), no watch is ever opened.
    pub watches: Watches,
}

impl Snapshot {
    /// Why a set could not be read, if it could not.
    pub fn problem(&self, part: &Part) -> Option<&ApiProblem> {
        self.unread.iter().find(|u| u.part == *part).map(|u| &u.problem)
    }
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// What it is.
    pub part: Part,
    /// Why.
    pub problem: ApiProblem,
}

/// A part of what a snapshot reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The API groups: whether KubeVirt is installed is unknown.
    ApiGroups,
    /// A set of objects.
    Objects(Watched),
    /// The API server's version.
    Version,
    /// PersistentVolumeClaims or PersistentVolumes: which VMs are bound to a node by their disks is unknown.
    Claims,
    /// Whether some DaemonSets exist.
    DaemonSets,
    /// Templates of the replica sets that own VMIs: what another VMI of them would get is unknown.
    ReplicaSets,
    /// Where CDI's own pods are.
    CdiNamespace,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiGroups => f.write_str("API groups"),
            Self::Objects(what) => what.fmt(f),
            Self::Version => f.write_str("the server's version"),
            Self::Claims => f.write_str("volume claims"),
            Self::DaemonSets => f.write_str("daemon sets"),
            Self::ReplicaSets => f.write_str("replica sets of VMs"),
            Self::CdiNamespace => f.write_str("the namespace of CDI"),
        }
    }
}

/// Reads everything that a plan for these nodes needs.
pub async fn snapshot(requests: &Requests, nodes: &[String], options: WatchOptions) -> Snapshot {
    let followers = node_followers(&requests.client, nodes, options);
    let looked_up = |index: &Index| LookedUp {
        claims: claims_of_nodes(index, nodes),
        daemon_sets: pods_of(index, nodes).filter_map(daemon_set).collect(),
        replica_sets: vmis_on(index, nodes).filter_map(replica_set).collect(),
        transfers: pods_of(index, nodes).filter_map(PodFacts::fills).collect(),
    };
    taken(requests, followers, true, looked_up).await
}

/// Reads everything that a forecast for the VMs of a scope needs: nodes and KubeVirt objects of the whole cluster, all
/// else in the scope's namespace only. Of the pods only launchers and hot-plug pods are read.
///
/// Budgets matter only where VMs may be evicted.
///
/// A label selector leaves nothing out here (a VMI does not carry the labels of its VM); [`Scope::vmis`] does.
pub async fn snapshot_of_vms(
    requests: &Requests,
    scope: &Scope,
    with_budgets: bool,
    options: WatchOptions,
) -> Snapshot {
    let place = Place { client: &requests.client, namespace: scope.namespace.as_deref(), options };
    let looked_up = |index: &Index| LookedUp {
        claims: claims_of_vms(index, scope),
        replica_sets: scope.vmis(index).filter_map(replica_set).collect(),
        ..LookedUp::default()
    };
    taken(requests, vm_followers(place, with_budgets), false, looked_up).await
}

/// What is looked up once the lists are there.
#[derive(Default)]
struct LookedUp {
    claims: BTreeSet<Key>,
    daemon_sets: BTreeSet<Key>,
    /// Replica sets that own VMIs.
    replica_sets: BTreeSet<Key>,
    /// Claims that pods fill.
    transfers: BTreeSet<Key>,
}

/// The first lists go out at once, KubeVirt's as soon as discovery says that it is there: a cluster without it is never
/// asked for its kinds.
async fn taken(
    requests: &Requests,
    followers: Vec<Follower>,
    with_infrastructure: bool,
    looked_up: impl Fn(&Index) -> LookedUp,
) -> Snapshot {
    let (kubevirt, core): (Vec<Follower>, Vec<Follower>) =
        followers.into_iter().partition(|(what, _)| what.is_kubevirt());
    let core = join_all(core.into_iter().map(until_synced));
    let discovered = async {
        let groups = requests.api_groups().await;
        let has = |group: &str| groups.as_ref().map_or(group == "kubevirt.io", |groups| groups.contains(group));
        let kubevirt = if has("kubevirt.io") { kubevirt } else { Vec::new() };
        let has_cdi = with_infrastructure && has("cdi.kubevirt.io");
        let cdi = async { if has_cdi { requests.cdi_namespace().await } else { Ok(None) } };
        let (lists, cdi) = tokio::join!(join_all(kubevirt.into_iter().map(until_synced)), cdi);
        (groups, lists, cdi)
    };
    let (mut lists, (groups, kubevirt, cdi), version) = tokio::join!(core, discovered, requests.server_version());
    lists.extend(kubevirt);

    let mut taken = Taken::default();
    taken.index.kubevirt_installed = match groups {
        Ok(groups) => groups.contains("kubevirt.io"),
        Err(problem) => {
            taken.unread(Part::ApiGroups, problem);
            true
        }
    };
    let cdi = taken.or_unread(Part::CdiNamespace, cdi).flatten();
    taken.index.infrastructure_namespaces.extend(cdi);
    let kubernetes = taken.or_unread(Part::Version, version);
    let kept = taken.lists(lists);
    let LookedUp { claims, daemon_sets, replica_sets, transfers } = looked_up(&taken.index);
    let (claims, daemon_sets, replica_sets, transfers) = tokio::join!(
        requests.claims(&claims),
        requests.daemon_sets(&daemon_sets),
        requests.replica_sets(&replica_sets),
        requests.transfers(&transfers),
    );
    taken.index.claims = taken.or_unread(Part::Claims, claims);
    let (known, problem) = daemon_sets;
    taken.index.daemon_sets = known;
    if let Some(problem) = problem {
        taken.unread(Part::DaemonSets, problem);
    }
    let (known, problem) = replica_sets;
    taken.index.replica_sets = known;
    if let Some(problem) = problem {
        taken.unread(Part::ReplicaSets, problem);
    }
    taken.index.transfers = transfers;
    let Taken { mut index, unread, unreadable } = taken;
    let vmis = unreadable.iter().filter(|(what, ..)| *what == Watched::Vmis);
    index.unreadable_vmis = vmis.map(|(_, name, _)| name.clone()).collect();
    Snapshot { index, kubernetes, unread, unreadable, watches: kept.into_iter().collect() }
}

/// What the first list of one set brought.
struct FirstList {
    follower: Follower,
    changes: Vec<Change>,
    unreadable: Vec<(Watched, String, String)>,
    problem: Option<ApiProblem>,
}

/// Polls a follower until its first list is complete, or has failed for good.
async fn until_synced(mut follower: Follower) -> FirstList {
    let mut changes = Vec::new();
    let mut unreadable = Vec::new();
    let mut tries = 0;
    let mut problem = None;
    while let Some(item) = follower.1.next().await {
        match item {
            WatchItem::Change(change) => changes.push(*change),
            WatchItem::Synced(_) => break,
            WatchItem::Recovered { .. } => {}
            WatchItem::Unreadable { what, object, why } => unreadable.push((what, object, why)),
            WatchItem::Trouble { problem: reason, .. } => {
                tries += 1;
                // A server that cannot be reached is told at once: most often the address is wrong.
                let busy = reason.kind == ProblemKind::Other && reason.may_pass();
                if !busy || tries >= TRIES {
                    problem = Some(reason);
                    break;
                }
            }
        }
    }
    FirstList { follower, changes, unreadable, problem }
}

#[derive(Default)]
struct Taken {
    index: Index,
    unread: Vec<Unread>,
    unreadable: Vec<(Watched, String, String)>,
}

impl Taken {
    fn unread(&mut self, part: Part, problem: ApiProblem) {
        self.unread.push(Unread { part, problem });
    }

    fn or_unread<T>(&mut self, part: Part, result: Result<T, ApiProblem>) -> Option<T> {
        result.map_err(|problem| self.unread(part, problem)).ok()
    }

    /// Takes in the first lists; returns the followers that go on.
    fn lists(&mut self, lists: Vec<FirstList>) -> Vec<Follower> {
        let mut kept = Vec::new();
        for list in lists {
            let what = list.follower.0.clone();
            self.unreadable.extend(list.unreadable);
            if let Some(problem) = list.problem {
                self.unread(Part::Objects(what), problem);
                continue;
            }
            if what == Watched::Budgets {
                self.index.budgets_known = true;
            }
            for change in list.changes {
                if let Change::KubeVirt(Delta::Reset(crs)) = &change {
                    self.index.infrastructure_namespaces.extend(crs.iter().map(|cr| cr.key.namespace.clone()));
                }
                self.index.apply(change);
            }
            kept.push(list.follower);
        }
        kept
    }
}

/// Claims of what may have to leave these nodes: pods that are not finished and no DaemonSet's, and VMIs.
fn claims_of_nodes(index: &Index, nodes: &[String]) -> BTreeSet<Key> {
    let pods = pods_of(index, nodes).filter(|p| !p.phase.is_finished() && daemon_set(p).is_none());
    pods.flat_map(pod_claims).chain(vmis_on(index, nodes).flat_map(vmi_claims)).collect()
}

fn vmis_on<'a>(index: &'a Index, nodes: &'a [String]) -> impl Iterator<Item = &'a VmiFacts> {
    index.vmis().filter(|v| v.node.as_ref().is_some_and(|node| nodes.contains(node)))
}

/// Claims of the VMIs of a scope and of their launchers.
fn claims_of_vms(index: &Index, scope: &Scope) -> BTreeSet<Key> {
    let vmis: BTreeMap<&Key, &VmiFacts> = scope.vmis(index).map(|vmi| (&vmi.key, vmi)).collect();
    let is_theirs = |pod: &&PodFacts| match &pod.role {
        PodRole::Launcher { vmi, .. } => vmis.contains_key(&Key::new(&pod.key.namespace, vmi)),
        PodRole::Hotplug { .. } | PodRole::Plain => false,
    };
    let launchers = index.pods().filter(|p| !p.phase.is_finished()).filter(is_theirs);
    launchers.flat_map(pod_claims).chain(vmis.values().copied().flat_map(vmi_claims)).collect()
}

fn pod_claims(pod: &PodFacts) -> impl Iterator<Item = Key> + '_ {
    pod.claims.iter().map(|name| Key::new(&pod.key.namespace, name))
}

fn vmi_claims(vmi: &VmiFacts) -> impl Iterator<Item = Key> + '_ {
    vmi.volumes.iter().filter_map(|volume| match &volume.source {
        VmVolumeSource::Claim(name) | VmVolumeSource::Ephemeral(name) => Some(Key::new(&vmi.key.namespace, name)),
        VmVolumeSource::EmptyDisk | VmVolumeSource::HostDisk | VmVolumeSource::Other => None,
    })
}

/// The replica set that owns a VMI.
fn replica_set(vmi: &VmiFacts) -> Option<Key> {
    match &vmi.owner {
        VmiOwner::ReplicaSet { name } => Some(Key::new(&vmi.key.namespace, name)),
        VmiOwner::VirtualMachine { .. } | VmiOwner::Other { .. } | VmiOwner::Standalone => None,
    }
}

fn daemon_set(pod: &PodFacts) -> Option<Key> {
    let owner = pod.owner.as_ref().filter(|o| o.kind == "DaemonSet" && o.api_version.starts_with("apps/"))?;
    Some(Key::new(&pod.key.namespace, &owner.name))
}

fn pods_of<'a>(index: &'a Index, nodes: &'a [String]) -> impl Iterator<Item = &'a PodFacts> {
    nodes.iter().flat_map(|node| index.pods_on(node))
}

#[cfg(test)]
mod tests;
