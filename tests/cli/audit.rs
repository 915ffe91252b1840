//! `audit`: what an admin types and reads, and what a program gets.

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;

use crate::cluster::{Cluster, kubeconfig};
use crate::schema::valid;
use crate::server::{Answer, Server};
use crate::tool::{Home, Run, start, until};

/// The one document on stdout, which fits the schema.
fn document(run: &Run, code: i32) -> Value {
    assert_eq!(run.code(), code, "{}", run.text());
    let document: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{e}\n{}", run.text()));
    valid(&document);
    assert_eq!((&document["kind"], &document["exitCode"]), (&"Audit".into(), &code.into()));
    assert_eq!(document["changed"], false);
    document
}

#[test]
fn a_table_and_exit_code_0() {
    let cluster = Cluster::stale();
    assert_snapshot!(cluster.run(&["audit"]).text(), @"
    context sim · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible
    1 VM on 1 node (nothing was changed)

      VM             NODE    STRATEGY            ON DRAIN  BECAUSE
    ✗ tenant-a/db-0  node-0  LiveMigrate, stale  blocks    disk root is not shared (not ReadWriteMany); a restart gives it LiveMigrateIfPossible

    ✗ 1 VM would block: it is stale (a restart helps)

    1 VM is stale: `kubectl safe-drain restart-stale` restarts it once you agree; or by hand:
      virtctl restart db-0 -n tenant-a

    Price of a strategy that shuts VMs down: each update of KubeVirt will shut down 1 VM once it is restarted, at most 10 every 1m (method Evict in workloadUpdateStrategy of the KubeVirt object)
    [exit status: 0]
    ");
    let run = cluster.run(&["audit", "-A", "-q"]);
    assert_eq!((run.code(), run.stderr.as_str()), (0, ""), "{}", run.text());
    assert_eq!(cluster.run(&["audit", "--detailed-exitcode"]).code(), 3);
    cluster.nothing_changed();
}

#[test]
fn a_namespace() {
    let cluster = Cluster::stale();
    assert_snapshot!(cluster.run(&["audit", "-n", "shop"]).text(), @"
    context sim · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · no VM runs in namespace shop
    [exit status: 0]
    ");
    let run = cluster.run(&["-n", "shop", "audit", "-A"]);
    assert!(run.stdout.contains("tenant-a/db-0"), "-A counts, whatever -n says: {}", run.text());
}

#[test]
fn a_document() {
    let cluster = Cluster::scenario("strategy-switch");
    let found = document(&cluster.run(&["audit", "-o", "json", "--detailed-exitcode"]), 3);
    assert_eq!(found["options"], serde_json::json!({"namespace": null, "selector": null, "detailedExitcode": true}));
    assert_eq!((&found["audit"]["counts"]["vms"], &found["audit"]["counts"]["stale"]), (&7.into(), &2.into()));
    assert_eq!(found["audit"]["workloadUpdate"]["batchEvictionSize"], 10);
    let vms = found["nodes"][0]["vms"].as_array().unwrap();
    assert_eq!(vms.len(), 7);
    for vm in vms {
        for field in ["outdatedLauncher", "restartCommand", "update", "updateAfterRestart", "notes"] {
            assert!(vm.get(field).is_some(), "{field} of {vm:#}");
        }
    }
    let db = vms.iter().find(|vm| vm["name"] == "db-0").unwrap();
    assert_eq!((&db["outcome"], &db["stale"]), (&"blocks".into(), &true.into()));
    assert_eq!(db["restartCommand"], "virtctl restart db-0 -n tenant-a");

    let mut found = document(&cluster.run(&["audit", "-n", "tenant-a", "-l", "no=such", "-o", "json"]), 0);
    assert_eq!(
        (&found["options"]["namespace"], &found["options"]["selector"]),
        (&"tenant-a".into(), &"no=such".into())
    );
    assert_eq!(found["nodes"].as_array().unwrap().len(), 0);
    let yaml = cluster.run(&["audit", "-n", "tenant-a", "-l", "no=such", "-o", "yaml"]);
    let mut yaml: Value = serde_saphyr::from_str(&yaml.stdout).unwrap();
    valid(&yaml);
    for document in [&mut found, &mut yaml] {
        document["startedAt"] = Value::Null;
        document["endedAt"] = Value::Null;
    }
    assert_eq!(found, yaml);
    let yaml = cluster.run(&["audit", "-o", "yaml"]);
    let yaml: Value = serde_saphyr::from_str(&yaml.stdout).unwrap();
    valid(&yaml);
    assert_eq!(yaml["nodes"][0]["vms"].as_array().unwrap().len(), 7);
    cluster.nothing_changed();
}

#[test]
fn a_document_without_kubevirt() {
    let cluster = Cluster::scenario("plain");
    let found = document(&cluster.run(&["audit", "-o", "json", "--detailed-exitcode"]), 0);
    assert_eq!((&found["server"]["kubevirt"], &found["audit"]["workloadUpdate"]), (&Value::Null, &Value::Null));
}

#[test]
fn an_interrupt() {
    let server = Server::http(Answer::Silence);
    let home = Home::new();
    let file = home.file("kubeconfig", &kubeconfig(&format!("http://{}", server.address), "", "{}"));
    let running = start(home.tool(&file, &["audit", "-o", "json"]));
    until("the first request", || !server.requests().is_empty());
    running.signal(Signal::INT);
    let run = running.end();
    assert_eq!(run.signal(), Some(2), "{}", run.text());
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    valid(&document);
    assert_eq!((&document["kind"], &document["exitCode"]), (&"Audit".into(), &130.into()));
    assert_eq!(document["nodes"].as_array().unwrap().len(), 0);
}
