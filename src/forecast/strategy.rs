//! The eviction strategy of a VM: the one in force, the one that a new VMI would get, and whether a restart helps.

use crate::facts::{Index, Key, KubeVirtState, Migratable, Strategy, VmFacts, VmiFacts, VmiOwner};

/// Where the strategy of a new VMI comes from.
///
/// Instancetypes and preferences have no field for it (KubeVirt's instancetype API, up to 1.9), so a VM that uses one
/// gets its template's value, or the cluster's. Where `instancetype.referencePolicy` expands them, KubeVirt writes the
/// cluster's value of that moment into the VM's template: from then on it is the template's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `spec.template.spec.evictionStrategy` of the VM, or of the replica set.
    Template,
    /// `spec.configuration.evictionStrategy` of the KubeVirt object.
    Cluster,
    /// Nobody sets one; KubeVirt then acts as with `None`.
    Nothing,
}

impl Source {
    /// The word for it in documents.
    pub fn word(self) -> &'static str {
        match self {
            Self::Template => "template",
            Self::Cluster => "cluster",
            Self::Nothing => "none",
        }
    }
}

/// What is known of a VM's eviction strategy. `None` always means unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strategies {
    /// In force for the running VMI.
    pub now: Option<Strategy>,
    /// What a new VMI would get.
    pub fresh: Option<Strategy>,
    /// Where the fresh one comes from.
    pub source: Option<Source>,
    /// True if the two differ in effect.
    pub stale: Option<bool>,
    /// True if a restart lets a VM leave that an eviction cannot move, now and on the next drain.
    pub restart_helps: Option<bool>,
}

/// Works the strategies of a VMI out.
///
/// The VMI's own value comes first, then the cluster's (KubeVirt `pkg/util/migrations`); the value is stamped into a VMI
/// when it is created and never again (`pkg/defaults`), which is how a VMI gets stale. With no single valid KubeVirt
/// object, what a new VMI would get is unknown, and nothing is promised.
pub fn strategies(vmi: &VmiFacts, vm: Option<&VmFacts>, index: &Index) -> Strategies {
    let cluster = match index.kubevirt() {
        KubeVirtState::One(cr) => Some(cr.strategy.clone()),
        KubeVirtState::Absent | KubeVirtState::Unclear => None,
    };
    let now = vmi.strategy.clone().or_else(|| cluster.clone().map(|cluster| cluster.unwrap_or(Strategy::None)));
    let (fresh, source) = match (&cluster, template(vmi, vm, index)) {
        (Some(cluster), Some(template)) => match (template, cluster) {
            (Some(template), _) => (Some(template.clone()), Some(Source::Template)),
            (None, Some(cluster)) => (Some(cluster.clone()), Some(Source::Cluster)),
            (None, None) => (Some(Strategy::None), Some(Source::Nothing)),
        },
        _ => (None, None),
    };
    let stale = now.as_ref().zip(fresh.as_ref()).map(|(now, fresh)| !now.same_effect(fresh));
    let restart_helps = restart_helps(vmi, vm, now.as_ref(), fresh.as_ref(), stale);
    Strategies { now, fresh, source, stale, restart_helps }
}

/// What the template says of which a new VMI would be made; `None` where there is none, or it could not be read.
fn template<'a>(vmi: &VmiFacts, vm: Option<&'a VmFacts>, index: &'a Index) -> Option<&'a Option<Strategy>> {
    match &vmi.owner {
        VmiOwner::VirtualMachine { .. } => vm.map(|vm| &vm.template_strategy),
        VmiOwner::ReplicaSet { name } => index.replica_sets.get(&Key::new(&vmi.key.namespace, name)),
        VmiOwner::Other { .. } | VmiOwner::Standalone => None,
    }
}

fn owned_by_vm(vmi: &VmiFacts) -> bool {
    matches!(vmi.owner, VmiOwner::VirtualMachine { .. })
}

/// A definite "no" wins over anything unknown.
fn restart_helps(
    vmi: &VmiFacts,
    vm: Option<&VmFacts>,
    now: Option<&Strategy>,
    fresh: Option<&Strategy>,
    stale: Option<bool>,
) -> Option<bool> {
    let migratable = match vmi.migratable {
        Migratable::Yes => Some(true),
        Migratable::No { .. } => Some(false),
        Migratable::Missing => None,
    };
    all([
        Some(owned_by_vm(vmi)),
        now.map(|s| *s == Strategy::LiveMigrate),
        migratable.map(|m| !m),
        fresh.map(|s| *s != Strategy::LiveMigrate),
        stale,
        vm.map(|vm| vm.run_strategy.allows_restart() && !vm.deleting),
    ])
}

/// Three-valued "and": false if any is false, else unknown if any is unknown.
fn all(parts: [Option<bool>; 6]) -> Option<bool> {
    if parts.contains(&Some(false)) {
        Some(false)
    } else if parts.contains(&None) {
        None
    } else {
        Some(true)
    }
}
