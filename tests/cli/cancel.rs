//! `cancel`: what an admin types and reads.

use insta::{Settings, assert_snapshot};
use safe_drain_sim::Vm;

use crate::cluster::Cluster;

/// One VM whose migration hangs.
fn hanging() -> Cluster {
    Cluster::kubevirt(|world| {
        world.vm("tenant-a", Vm::new("hang-1").eviction_strategy("LiveMigrate").migration("hang"))
    })
}

/// Snapshots without what differs from run to run.
fn steady(check: impl FnOnce()) {
    let mut settings = Settings::clone_current();
    settings.add_filter(r"\[ +\d+\.\ds\]", "[TIME]");
    settings.add_filter(r"kubevirt-evacuation-\w+", "kubevirt-evacuation-NAME");
    settings.add_filter(r"undone in \ds", "undone in Ns");
    settings.bind(check);
}

#[test]
fn a_drain_is_given_up() {
    let cluster = hanging();
    assert_eq!(cluster.run(&["node-0", "--timeout=2s"]).code(), 124);
    steady(|| {
        assert_snapshot!(cluster.run(&["cancel", "node-0", "--dry-run"]).text(), @"
        virtualmachineinstance.kubevirt.io/hang-1 evacuation cancelled (dry run)
        virtualmachineinstancemigration.kubevirt.io/kubevirt-evacuation-NAME deleted (dry run)
        node/node-0 uncordoned (dry run)
        ------- stderr -------
        [time] previewing the undoing of the drain of node-0 · context sim · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible

        node-0 can be undone; the cordon would be lifted
          ✓ 1 VM would stay: tenant-a/hang-1
        [exit status: 0]
        ");
        assert_snapshot!(cluster.run(&["cancel", "node/node-0"]).text(), @"
        virtualmachineinstance.kubevirt.io/hang-1 evacuation cancelled
        virtualmachineinstancemigration.kubevirt.io/kubevirt-evacuation-NAME deleted
        node/node-0 uncordoned
        ------- stderr -------
        [time] undoing the drain of node-0 · context sim · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible

        node-0 undone in Ns; the cordon is lifted
          ✓ 1 VM stays: tenant-a/hang-1
        [exit status: 0]
        ");
        assert_snapshot!(cluster.run(&["cancel", "node-0"]).text(), @"
        ------- stderr -------
        [time] undoing the drain of node-0 · context sim · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible

        node-0 has nothing to undo; it is not cordoned
        [exit status: 0]
        ");
    });
    let run = cluster.run(&["cancel", "node-0", "-q"]);
    assert_eq!((run.code(), run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
}

#[test]
fn a_cordon_of_somebody_else() {
    let cluster = Cluster::scenario("plain");
    cluster.sim.update("Node", "", "node-1", |node| node["spec"]["unschedulable"] = true.into());
    steady(|| {
        assert_snapshot!(cluster.run(&["cancel", "node-1"]).text(), @"
    ------- stderr -------
    [time] undoing the drain of node-1 · context sim · Kubernetes v1.36.2

    node-1 has nothing to undo; it stays cordoned: the API does not tell who set it

    Next:
      kubectl uncordon node-1  if you want the cordon off, too
    [exit status: 0]
    ");
    });
    assert_eq!(cluster.cordoned(), ["node-1"]);
}

#[test]
fn an_unknown_node() {
    let cluster = Cluster::scenario("plain");
    assert_snapshot!(cluster.run(&["cancel", "nope"]).text(), @r#"
    ------- stderr -------
    error: node "nope" not found; nothing was changed
    hint: `kubectl get nodes` lists them
    [exit status: 2]
    "#);
    assert_snapshot!(cluster.run(&["cancel", "--dry-run", "server"]).text(), @r#"
    ------- stderr -------
    error: node "server" not found; nothing was changed
    hint: did you mean `--dry-run=server`?
    [exit status: 2]
    "#);
    assert_snapshot!(cluster.run(&["cancel"]).text(), @"
    ------- stderr -------
    error: no node given: name the nodes whose drain shall be undone
    hint: `kubectl safe-drain cancel NODE...`
    [exit status: 2]
    ");
    cluster.nothing_changed();
}

#[test]
fn its_events() {
    let cluster = hanging();
    assert_eq!(cluster.run(&["node-0", "--timeout=2s"]).code(), 124);
    let run = cluster.run(&["cancel", "node-0", "--events-file", "-"]);
    assert_eq!(run.code(), 0, "{}", run.text());
    let events: Vec<serde_json::Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    let expected = [
        "connected",
        "undo-planned",
        "evacuation-cancelled",
        "migration-deleted",
        "node-uncordoned",
        "undo-ended",
        "ended",
    ];
    assert_eq!(names, expected);
    assert!(run.stderr.contains("node/node-0 uncordoned"), "stderr says what stdout would: {}", run.text());
}
