//! Which nodes can take a pod: the hard facts of scheduling, without requests and quota (those only the scheduler knows).

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{Demands, Index, Key, NodeFacts, NodeReady, NodeTerm, Taint, Toleration, VmiFacts, holds};

/// Node label with which KubeVirt says that VMs may start there.
const KUBEVIRT_SCHEDULABLE: &str = "kubevirt.io/schedulable";
/// Label prefix that names the CPU model of a node's host.
const HOST_MODEL: &str = "host-model-cpu.node.kubevirt.io/";
/// Label prefix of the CPU models that a node accepts from a migration.
const MIGRATION_MODEL: &str = "cpu-model-migration.node.kubevirt.io/";
/// The taint that a cordon puts on a node.
const CORDON_TAINT: &str = "node.kubernetes.io/unschedulable";

/// Closed nodes that are named before they are only counted.
const NAMED: usize = 4;

/// Why one node cannot take a pod, the strongest reason first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Unfit {
    Drained,
    Disk(String),
    Device(String),
    Label(String, String),
    Affinity,
    CpuModel(String),
    Taint(String),
    NotForVms,
    NotReady,
    Cordoned,
}

impl Unfit {
    /// `2 are cordoned (n1, n2)`, `1 lacks device nvidia.com/A10`.
    fn words(&self, nodes: &[String]) -> String {
        let n = nodes.len();
        let (is, lacks) = if n == 1 { ("is", "lacks") } else { ("are", "lack") };
        let named = || if n <= NAMED { format!(" ({})", nodes.join(", ")) } else { String::new() };
        match self {
            Self::Drained => format!("{n} {is} drained by this command"),
            Self::Disk(claim) => format!("{n} cannot reach claim {claim}"),
            Self::Device(name) => format!("{n} {lacks} device {name}"),
            Self::Label(key, value) => format!("{n} {lacks} label {key}={value}"),
            Self::Affinity => format!("{n} {is} outside its node affinity"),
            Self::CpuModel(model) => format!("{n} {lacks} CPU model {model}"),
            Self::Taint(key) => format!("{n} {is} tainted {key}"),
            Self::NotForVms => format!("{n} {is} not open for VMs"),
            Self::NotReady => format!("{n} {is} not ready{}", named()),
            Self::Cordoned => format!("{n} {is} cordoned{}", named()),
        }
    }
}

/// What keeps a pod from all other nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindrance {
    /// Only its own node has its disk or device.
    Bound,
    /// There are no nodes left at all, or all of them are closed (cordoned, not ready, drained by this command).
    NoNodeOpen,
    /// None of them fits.
    Mixed,
}

/// The nodes that can take a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Targets {
    /// Their names, sorted.
    pub nodes: Vec<String>,
    /// Where there is none: what stands in the way, and how to say it.
    pub none: Option<(Hindrance, String)>,
    /// Nodes that could take it if they were not cordoned, sorted.
    pub cordoned: Vec<String>,
    /// True where the nodes could not be read, so that nobody can tell.
    pub unknown: bool,
}

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Search<'a> {
    /// What the pod asks for.
    pub demands: &'a Demands,
    /// Claims that it mounts.
    pub claims: BTreeSet<Key>,
    /// Node that it leaves; `None` where it may come back to the one that it is on.
    pub source: Option<&'a str>,
    /// Nodes that this command drains: they take nothing.
    pub drained: &'a BTreeSet<String>,
    /// True for launchers: KubeVirt must call the node schedulable.
    pub launcher: bool,
    /// CPU model that the target of a migration must accept, see [`migration_cpu_model`].
    pub cpu_model: Option<String>,
}

/// CPU model that a migration's target must accept: a guest with model `host-model` (also where none is asked for) keeps
/// the model of its source host, and KubeVirt adds the selector `cpu-model-migration.node.kubevirt.io/MODEL` to the
/// target pod (virt-controller, `migration.go`). Nothing where the source node carries no such labels.
pub fn migration_cpu_model(vmi: &VmiFacts, source: Option<&NodeFacts>) -> Option<String> {
    if !matches!(vmi.cpu_model.as_deref(), None | Some("host-model" | "")) {
        return None;
    }
    source?.labels.keys().find_map(|label| label.strip_prefix(HOST_MODEL)).map(str::to_owned)
}

/// The demands of a new launcher: those of the present one without what a migration added to it.
pub fn without_migration_selectors(demands: &Demands) -> Demands {
    let mut demands = demands.clone();
    demands.node_selector.retain(|key, _| !key.starts_with(MIGRATION_MODEL));
    demands
}

/// True if any other node can take the pod: ends at the first.
pub fn exists(index: &Index, search: &Search<'_>) -> bool {
    index
        .nodes()
        .any(|node| Some(node.name.as_str()) != search.source && first_hindrance(index, search, node).is_none())
}

/// Looks for nodes that can take the pod.
pub fn find(index: &Index, search: &Search<'_>) -> Targets {
    if index.nodes_unknown {
        return Targets { nodes: Vec::new(), none: None, cordoned: Vec::new(), unknown: true };
    }
    let mut nodes = Vec::new();
    let mut unfit: BTreeMap<Unfit, Vec<String>> = BTreeMap::new();
    for node in index.nodes().filter(|n| Some(n.name.as_str()) != search.source) {
        match first_hindrance(index, search, node) {
            None => nodes.push(node.name.clone()),
            Some(reason) => unfit.entry(reason).or_default().push(node.name.clone()),
        }
    }
    nodes.sort();
    for names in unfit.values_mut() {
        names.sort();
    }
    let none =
        nodes.is_empty().then(|| explain(&unfit, if search.source.is_some() { "no other node" } else { "no node" }));
    let cordoned = unfit.remove(&Unfit::Cordoned).unwrap_or_default();
    Targets { nodes, none, cordoned, unknown: false }
}

/// Why no node is open, for a command that drains the rest: `node-1 is cordoned (`kubectl uncordon node-1`)`.
pub fn closed_nodes(index: &Index, drained: &BTreeSet<String>) -> String {
    let closed = |wanted: &dyn Fn(&NodeFacts) -> bool| -> Vec<&str> {
        let mut names: Vec<&str> =
            index.nodes().filter(|n| !drained.contains(&n.name) && wanted(n)).map(|n| n.name.as_str()).collect();
        names.sort_unstable();
        names
    };
    let ready = |n: &NodeFacts| !matches!(n.ready, NodeReady::No { .. });
    let cordoned = closed(&|n| ready(n) && n.unschedulable);
    let broken = closed(&|n| !ready(n));
    let is = |names: &[&str]| if names.len() == 1 { "is" } else { "are" };
    let list = |names: &[&str]| match names.len() {
        0..=NAMED => names.join(", "),
        n => format!("{} and {} more", names[..NAMED].join(", "), n - NAMED),
    };
    let mut parts = Vec::new();
    if let Some(first) = cordoned.first() {
        let (names, is) = (list(&cordoned), is(&cordoned));
        parts.push(format!("{names} {is} cordoned (`kubectl uncordon {first}`)"));
    }
    if !broken.is_empty() {
        parts.push(format!("{} {} not ready", list(&broken), is(&broken)));
    }
    if parts.is_empty() { "there is no other node".to_owned() } else { parts.join(", ") }
}

/// True if a node takes new pods at all.
pub fn is_open(node: &NodeFacts) -> bool {
    !node.unschedulable && !matches!(node.ready, NodeReady::No { .. })
}

fn explain(unfit: &BTreeMap<Unfit, Vec<String>>, nobody: &str) -> (Hindrance, String) {
    let bound = |u: &Unfit| matches!(u, Unfit::Disk(_) | Unfit::Device(_));
    let closed = |u: &Unfit| matches!(u, Unfit::Drained | Unfit::NotReady | Unfit::Cordoned);
    let hindrance = if unfit.keys().any(bound) && unfit.keys().all(|u| bound(u) || *u == Unfit::Drained) {
        Hindrance::Bound
    } else if unfit.keys().all(closed) {
        Hindrance::NoNodeOpen
    } else {
        Hindrance::Mixed
    };
    if unfit.is_empty() {
        return (hindrance, "there is no other node".into());
    }
    let mut parts: Vec<(&Unfit, &Vec<String>)> = unfit.iter().collect();
    parts.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then_with(|| a.0.cmp(b.0)));
    let words: Vec<String> = parts.iter().take(3).map(|(reason, nodes)| reason.words(nodes)).collect();
    (hindrance, format!("{nobody} can take it: {}", words.join(", ")))
}

fn first_hindrance(index: &Index, search: &Search<'_>, node: &NodeFacts) -> Option<Unfit> {
    if search.drained.contains(&node.name) {
        return Some(Unfit::Drained);
    }
    for claim in &search.claims {
        let facts = index.claims.as_ref().and_then(|claims| claims.get(claim));
        if let Some(facts) = facts.filter(|f| !matches_terms(&f.volume_terms, node)) {
            return Some(Unfit::Disk(facts.key.name.clone()));
        }
    }
    for (device, units) in &search.demands.devices {
        if node.devices.get(device).copied().unwrap_or(0) < *units {
            return Some(Unfit::Device(device.clone()));
        }
    }
    for (key, value) in &search.demands.node_selector {
        if node.labels.get(key) != Some(value) {
            return Some(if key == KUBEVIRT_SCHEDULABLE {
                Unfit::NotForVms
            } else {
                Unfit::Label(key.clone(), value.clone())
            });
        }
    }
    if !matches_terms(&search.demands.affinity, node) {
        return Some(Unfit::Affinity);
    }
    if let Some(model) = &search.cpu_model
        && node.labels.get(&format!("{MIGRATION_MODEL}{model}")).map(String::as_str) != Some("true")
    {
        return Some(Unfit::CpuModel(model.clone()));
    }
    if search.launcher && node.labels.get(KUBEVIRT_SCHEDULABLE).map(String::as_str) != Some("true") {
        return Some(Unfit::NotForVms);
    }
    if matches!(node.ready, NodeReady::No { .. }) {
        return Some(Unfit::NotReady);
    }
    let tolerations = &search.demands.tolerations;
    let cordon = Taint { key: CORDON_TAINT.into(), value: String::new(), effect: "NoSchedule".into() };
    if node.unschedulable && !tolerated(tolerations, &cordon) {
        return Some(Unfit::Cordoned);
    }
    let hard = |t: &&Taint| t.effect == "NoSchedule" || t.effect == "NoExecute";
    node.taints.iter().filter(hard).find(|t| !tolerated(tolerations, t)).map(|t| Unfit::Taint(t.key.clone()))
}

/// Kubernetes' rule (`Toleration.ToleratesTaint`): effect and key must fit where they are set, then operator and value.
fn tolerated(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|t| {
        let set = |field: &Option<String>| field.as_deref().unwrap_or_default().to_owned();
        let (effect, key) = (set(&t.effect), set(&t.key));
        (effect.is_empty() || effect == taint.effect)
            && (key.is_empty() || key == taint.key)
            && (t.exists || (!key.is_empty() && set(&t.value) == taint.value))
    })
}

/// True if any of the terms matches the node; no terms ask for nothing. A term without expressions matches no node
/// (Kubernetes, `nodeaffinity.NodeSelector`).
pub fn matches_terms(terms: &[NodeTerm], node: &NodeFacts) -> bool {
    let label = |key: &str| node.labels.get(key).map(String::as_str);
    let field = |key: &str| (key == "metadata.name").then_some(node.name.as_str());
    terms.is_empty()
        || terms.iter().any(|term| {
            !(term.labels.is_empty() && term.fields.is_empty())
                && term.labels.iter().all(|e| holds(&e.operator, label(&e.key), &e.values))
                && term.fields.iter().all(|e| holds(&e.operator, field(&e.key), &e.values))
        })
}
