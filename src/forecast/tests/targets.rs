//! Which nodes can take a pod.

use std::collections::BTreeSet;

use crate::facts::testing::{NS, World, claim_on, labels, node, term, tolerates, vmi, world};
use crate::facts::{Demands, Index, Key, NodeExpression, NodeTerm};
use crate::forecast::targets::{Hindrance, Search, Targets, find, migration_cpu_model, without_migration_selectors};

fn search(index: &Index, demands: &Demands, change: impl FnOnce(&mut Search<'_>)) -> Targets {
    let drained = BTreeSet::from(["node-0".to_owned()]);
    let mut search = Search {
        demands,
        claims: BTreeSet::new(),
        source: Some("node-0"),
        drained: &drained,
        launcher: true,
        cpu_model: None,
    };
    change(&mut search);
    find(index, &search)
}

fn fits(world: &World, demands: &Demands) -> Vec<String> {
    search(&world.index, demands, |_| {}).nodes
}

#[test]
fn each_hard_fact_counts() {
    let plain = Demands::default();
    let selects = Demands { node_selector: labels(&[("zone", "a")]), ..Demands::default() };
    let affine = Demands { affinity: vec![term("zone", "In", &["a", "b"])], ..Demands::default() };
    let tolerant = Demands { tolerations: vec![tolerates(Some("gpu"))], ..Demands::default() };
    let everything = Demands { tolerations: vec![tolerates(None)], ..Demands::default() };
    let device = Demands { devices: [("nvidia.com/A100".to_owned(), 1)].into(), ..Demands::default() };

    assert_eq!(fits(&world(), &plain), ["node-1", "node-2"], "the source is none");
    assert_eq!(fits(&world().node(node("node-1").cordoned()), &plain), ["node-2"]);
    assert_eq!(fits(&world().node(node("node-1").cordoned()), &everything), ["node-1", "node-2"]);
    assert_eq!(fits(&world().node(node("node-1").not_ready()), &everything), ["node-2"]);
    assert_eq!(fits(&world().node(node("node-1").label("kubevirt.io/schedulable", "false")), &plain), ["node-2"]);
    assert_eq!(fits(&world().node(node("node-1").label("zone", "a")), &selects), ["node-1"]);
    assert_eq!(fits(&world().node(node("node-1").label("zone", "b")), &affine), ["node-1"]);
    assert_eq!(fits(&world().node(node("node-1").taint("gpu", "NoSchedule")), &plain), ["node-2"]);
    assert_eq!(fits(&world().node(node("node-1").taint("gpu", "PreferNoSchedule")), &plain), ["node-1", "node-2"]);
    assert_eq!(fits(&world().node(node("node-1").taint("gpu", "NoExecute")), &tolerant), ["node-1", "node-2"]);
    assert_eq!(fits(&world().node(node("node-2").device("nvidia.com/A100", 1)), &device), ["node-2"]);
}

#[test]
fn a_claim_binds_to_the_nodes_of_its_volume() {
    let world = world().claim(claim_on("data", "node-1"));
    let demands = Demands::default();
    let claims = BTreeSet::from([Key::new(NS, "data"), Key::new(NS, "unknown")]);
    assert_eq!(search(&world.index, &demands, |s| s.claims = claims).nodes, ["node-1"]);
}

#[test]
fn nodes_that_this_command_drains_take_nothing() {
    let drained = BTreeSet::from(["node-0".to_owned(), "node-1".to_owned(), "node-2".to_owned()]);
    let world = world();
    let demands = Demands { tolerations: vec![tolerates(None)], ..Demands::default() };
    let found = find(
        &world.index,
        &Search {
            demands: &demands,
            claims: BTreeSet::new(),
            source: Some("node-0"),
            drained: &drained,
            launcher: true,
            cpu_model: None,
        },
    );
    assert_eq!(
        found.none,
        Some((Hindrance::NoNodeOpen, "no other node can take it: 2 are drained by this command".into()))
    );
}

#[test]
fn the_reason_names_what_stands_in_the_way() {
    let world = world().claim(claim_on("data", "node-0"));
    let claims = || BTreeSet::from([Key::new(NS, "data")]);
    let plain = Demands::default();
    let found = search(&world.index, &plain, |s| s.claims = claims());
    assert_eq!(found.none, Some((Hindrance::Bound, "no other node can take it: 2 cannot reach claim data".into())));

    let device = Demands { devices: [("nvidia.com/A100".to_owned(), 1)].into(), ..Demands::default() };
    assert_eq!(search(&world.index, &device, |_| {}).none.unwrap().0, Hindrance::Bound);

    let selects = Demands { node_selector: labels(&[("zone", "a")]), ..Demands::default() };
    let world = world.node(node("node-1").label("zone", "a").cordoned());
    let found = search(&world.index, &selects, |_| {}).none.unwrap();
    assert_eq!(
        found,
        (Hindrance::Mixed, "no other node can take it: 1 lacks label zone=a, 1 is cordoned (node-1)".into())
    );

    let alone = World::default().node(node("node-0"));
    let found = search(&alone.index, &plain, |_| {}).none.unwrap();
    assert_eq!(found, (Hindrance::NoNodeOpen, "there is no other node".into()));
}

#[test]
fn expressions_as_kubernetes_reads_them() {
    let world = world().node(node("node-1").label("cores", "8").label("zone", "a"));
    let one = |term: NodeTerm| fits(&world, &Demands { affinity: vec![term], ..Demands::default() });
    assert_eq!(one(term("cores", "Gt", &["7"])), ["node-1"]);
    assert!(one(term("cores", "Gt", &["8"])).is_empty());
    assert_eq!(one(term("cores", "Lt", &["9"])), ["node-1"]);
    assert_eq!(one(term("zone", "Exists", &[])), ["node-1"]);
    assert_eq!(one(term("zone", "DoesNotExist", &[])), ["node-2"]);
    assert_eq!(one(term("zone", "NotIn", &["a"])), ["node-2"], "a missing label is not in");
    assert!(one(NodeTerm::default()).is_empty(), "an empty term matches nothing");
    let by_name = NodeExpression { key: "metadata.name".into(), operator: "In".into(), values: vec!["node-2".into()] };
    assert_eq!(one(NodeTerm { labels: Vec::new(), fields: vec![by_name] }), ["node-2"]);
    let both = NodeTerm {
        labels: [term("zone", "Exists", &[]).labels, term("cores", "In", &["4"]).labels].concat(),
        fields: Vec::new(),
    };
    assert!(one(both).is_empty(), "all expressions of a term");
}

#[test]
fn a_host_model_guest_keeps_the_model_of_its_host() {
    let source = node("node-0").label("host-model-cpu.node.kubevirt.io/Skylake", "true");
    let host_model = vmi("a").with(|v| v.cpu_model = Some("host-model".into()));
    let default_model = vmi("a").with(|v| v.cpu_model = None);
    let named = vmi("a").with(|v| v.cpu_model = Some("EPYC".into()));
    assert_eq!(migration_cpu_model(&host_model, Some(&source)).as_deref(), Some("Skylake"));
    assert_eq!(migration_cpu_model(&default_model, Some(&source)).as_deref(), Some("Skylake"));
    assert_eq!(migration_cpu_model(&named, Some(&source)), None);
    assert_eq!(migration_cpu_model(&host_model, Some(&node("node-0"))), None, "a node without such labels");

    let world = world().node(node("node-2").label("cpu-model-migration.node.kubevirt.io/Skylake", "true"));
    let plain = Demands::default();
    assert_eq!(search(&world.index, &plain, |s| s.cpu_model = Some("Skylake".into())).nodes, ["node-2"]);
}

#[test]
fn a_new_launcher_does_not_inherit_what_a_migration_added() {
    let demands = Demands {
        node_selector: labels(&[("cpu-model-migration.node.kubevirt.io/Skylake", "true"), ("zone", "a")]),
        ..Demands::default()
    };
    assert_eq!(without_migration_selectors(&demands).node_selector, labels(&[("zone", "a")]));
}
