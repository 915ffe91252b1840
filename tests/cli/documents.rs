//! `-o json|yaml`: exactly one document on stdout at every end after the command line was read.

use std::fs::File;

use rustix::process::Signal;
use safe_drain_sim::{Rule, Vm};
use serde_json::Value;

use crate::cluster::{Cluster, kubeconfig};
use crate::schema::valid;
use crate::server::{Answer, Server, closed_port};
use crate::tool::{Home, Run, run, start};

/// The one document on stdout, which fits the schema and has the exit code.
fn document(run: &Run, code: u8) -> Value {
    let document: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("no single document: {error}\n{}", run.text()));
    valid(&document);
    assert_eq!(document["exitCode"], code, "{}", run.text());
    document
}

/// Runs with `-o json` and gives the document.
fn run_json(cluster: &Cluster, args: &[&str], code: u8) -> Value {
    let run = cluster.run(&[args, &["-o", "json"]].concat());
    assert_eq!(run.code(), i32::from(code), "{}", run.text());
    document(&run, code)
}

#[test]
fn a_drain() {
    let cluster = Cluster::scenario("plain");
    let document = run_json(&cluster, &["node-0"], 0);
    assert_eq!(document["kind"], "DrainResult");
    assert_eq!(document["changed"], true);
    assert_eq!(document["nodes"][0]["verdict"], "drained");
    assert_eq!(document["nodes"][0]["pods"].as_array().unwrap().len(), 7);
}

#[test]
fn a_preview() {
    let cluster = Cluster::scenario("strategy-switch");
    let document = run_json(&cluster, &["node-0", "--dry-run"], 3);
    assert_eq!(document["kind"], "DrainPreview");
    assert_eq!(document["changed"], false);
    assert_eq!(document["nodes"][0]["vms"].as_array().unwrap().len(), 7);
    cluster.nothing_changed();
}

#[test]
fn a_drain_that_is_blocked() {
    let document = run_json(&Cluster::blocked(), &["node-0"], 3);
    assert_eq!(document["nodes"][0]["verdict"], "blocked");
    assert_eq!(document["nodes"][0]["vms"][0]["outcome"], "blocks");
}

#[test]
fn a_refusal() {
    let cluster = Cluster::scenario("mixed");
    let document = run_json(&cluster, &["node-0"], 4);
    assert_eq!(document["nodes"][0]["verdict"], "refused");
    assert_eq!(document["changed"], false);
    assert!(document["error"].as_str().unwrap().contains("nothing was changed"));
}

#[test]
fn a_cancelled_drain() {
    let cluster = Cluster::kubevirt(|world| {
        world.vm("tenant-a", Vm::new("hang-1").eviction_strategy("LiveMigrate").migration("hang"))
    });
    run_json(&cluster, &["node-0", "--timeout", "2s"], 124);
    let preview = run_json(&cluster, &["cancel", "node-0", "--dry-run"], 0);
    assert_eq!((&preview["kind"], &preview["changed"]), (&"CancelResult".into(), &false.into()));
    assert_eq!(preview["options"]["dryRun"], "client");
    assert_eq!(preview["nodes"][0]["verdict"], "clear");
    let result = run_json(&cluster, &["cancel", "node-0"], 0);
    assert_eq!((&result["nodes"][0]["verdict"], &result["changed"]), (&"undone".into(), &true.into()));
    assert_eq!((&result["nodes"][0]["cordon"], &result["nodes"][0]["cordonedNow"]), (&"lifts".into(), &false.into()));
    let (before, after) = (&preview["nodes"][0]["vms"][0], &result["nodes"][0]["vms"][0]);
    assert_eq!((&before["outcome"], &after["outcome"]), (&"cancels".into(), &"cancels".into()));
    assert_eq!((&before["marked"], &after["marked"]), (&true.into(), &false.into()));
    assert_eq!(after["migrations"][0]["finished"], true);
    let again = run_json(&cluster, &["cancel", "node-0"], 0);
    assert_eq!(again["changed"], false);
    assert_eq!(cluster.cordoned(), Vec::<String>::new());
}

#[test]
fn a_cancel_that_cannot_be_done() {
    let cluster = Cluster::scenario("plain");
    assert_eq!(run_json(&cluster, &["cancel", "nope"], 2)["nodes"], serde_json::json!([]));
    let document = run_json(&cluster, &["cancel", "node-0", "--events-file", "missing/events"], 2);
    assert_eq!(document["kind"], "CancelResult");
    cluster.nothing_changed();
}

#[test]
fn permissions_that_are_missing() {
    let cluster = Cluster::scenario("plain");
    cluster.sim.deny(Rule::new("create", "", "pods/eviction"));
    let document = run_json(&cluster, &["node-0"], 6);
    assert_eq!(document["changed"], false);
    assert!(document["error"].is_string());
}

#[test]
fn no_connection() {
    let home = Home::new();
    let file = home.file("kubeconfig", &kubeconfig(&format!("http://{}", closed_port()), "", "{}"));
    let run = run(home.tool(&file, &["node-0", "-o", "json"]));
    assert_eq!(run.code(), 6, "{}", run.text());
    assert_eq!(document(&run, 6)["nodes"], serde_json::json!([]));
}

#[test]
fn a_timeout() {
    let document = run_json(&Cluster::slow(), &["node-0", "--timeout", "1s"], 124);
    assert_eq!(document["nodes"][0]["verdict"], "timeout");
    assert_eq!(document["nodes"][0]["pods"][0]["outcome"], "pending");
}

#[test]
fn an_interrupt() {
    let cluster = Cluster::slow();
    let running = cluster.begin(&["node-0", "-o", "json"]);
    running.wait_stderr("evicting pod");
    running.signal(Signal::INT);
    let run = running.end();
    assert_eq!(run.signal(), Some(2), "{}", run.text());
    let document = document(&run, 130);
    assert_eq!(document["nodes"][0]["verdict"], "interrupted");
    assert_eq!(document["nodes"][0]["cordonedNow"], true);
    assert_eq!(document["changed"], true);
}

#[test]
fn an_interrupt_before_the_plan() {
    let server = Server::http(Answer::Silence);
    let home = Home::new();
    let file = home.file("kubeconfig", &kubeconfig(&format!("http://{}", server.address), "", "{}"));
    let running = start(home.tool(&file, &["node-0", "-o", "json"]));
    crate::tool::until("the first request", || !server.requests().is_empty());
    running.signal(Signal::INT);
    let run = running.end();
    assert_eq!(run.signal(), Some(2), "{}", run.text());
    assert_eq!(document(&run, 130)["changed"], false);
}

#[test]
fn a_node_that_does_not_exist() {
    let document = run_json(&Cluster::scenario("plain"), &["nope"], 2);
    assert_eq!(document["error"], "node \"nope\" not found; nothing was changed");
}

#[test]
fn a_context_that_does_not_exist() {
    run_json(&Cluster::scenario("plain"), &["node-0", "--context", "prod"], 2);
}

#[test]
fn an_events_file_that_cannot_be_written() {
    let cluster = Cluster::scenario("plain");
    let document = run_json(&cluster, &["node-0", "--events-file", "missing/events"], 2);
    assert!(document["error"].as_str().unwrap().contains("missing/events"));
    cluster.nothing_changed();
}

#[test]
fn yaml_is_the_same_document() {
    let cluster = Cluster::scenario("strategy-switch");
    let mut json = run_json(&cluster, &["node-0", "--dry-run"], 3);
    let yaml = cluster.run(&["node-0", "--dry-run", "-o", "yaml"]);
    assert_eq!(yaml.code(), 3, "{}", yaml.text());
    let mut yaml: Value = serde_saphyr::from_str(&yaml.stdout).unwrap();
    valid(&yaml);
    for document in [&mut json, &mut yaml] {
        for time in ["startedAt", "endedAt"] {
            document[time] = Value::Null;
        }
    }
    assert_eq!(json, yaml);
}

#[test]
fn a_document_that_cannot_be_written_does_not_end_the_drain() {
    let Ok(full) = File::options().write(true).open("/dev/full") else { return };
    let cluster = Cluster::scenario("plain");
    let mut command = cluster.tool(&["node-0", "-o", "json"]);
    let status = command.stdout(full).stderr(std::process::Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1), "all went well, but who reads the document does not have it");
    assert_eq!(cluster.evictions(), 6);
}

#[test]
fn lines_that_cannot_be_written_are_told() {
    let Ok(full) = File::options().write(true).open("/dev/full") else { return };
    let cluster = Cluster::scenario("plain");
    let mut command = cluster.tool(&["node-0", "--dry-run"]);
    let output = command.stdout(full).stderr(std::process::Stdio::piped()).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("the output on stdout is incomplete"), "{stderr}");
}
