//! Trouble on the way: an API server that goes away or hangs midway, credentials that end, plugins that hang.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use safe_drain_sim::{Fault, PodSpec, Then};

use crate::cluster::Cluster;
use crate::tool::{run, start, until};

/// A kubeconfig whose user has a credential plugin: this shell script.
fn with_plugin(cluster: &Cluster, script: &str) -> PathBuf {
    let plugin = cluster.home.file("plugin", &format!("#!/bin/sh\necho run >> \"$HOME/plugin-runs\"\n{script}\n"));
    std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o755)).unwrap();
    let exec = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: {}, interactiveMode: Never}}}}",
        plugin.display()
    );
    let plain = std::fs::read_to_string(&cluster.kubeconfig).unwrap();
    cluster.home.file("with-plugin", &plain.replace("user: {}", &format!("user: {exec}")))
}

fn plugin_runs(cluster: &Cluster) -> usize {
    std::fs::read_to_string(cluster.home.path().join("plugin-runs")).unwrap_or_default().lines().count()
}

const CREDENTIAL: &str =
    r#"echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"geheim"}}'"#;

fn unauthorized() -> Then {
    Then::status(401, "Unauthorized", "Unauthorized")
}

#[test]
fn credentials_that_end_midway_are_renewed() {
    let cluster = Cluster::plain(|world| world.deployment("shop", "web", 1));
    let kubeconfig = with_plugin(&cluster, CREDENTIAL);
    cluster.sim.fault(Fault::on("POST", "/eviction", unauthorized()).first(1));
    let run = run(cluster.home.tool(&kubeconfig, &["node-0", "-v=6"]));
    assert_eq!(run.code(), 0, "{}", run.text());
    assert_eq!(plugin_runs(&cluster), 2);
    assert_eq!(cluster.evictions(), 2);
    assert!(!run.text().contains("geheim"), "{}", run.text());
}

#[test]
fn credentials_that_stay_refused_end_the_drain() {
    let cluster = Cluster::plain(|world| world.deployment("shop", "web", 1));
    let kubeconfig = with_plugin(&cluster, CREDENTIAL);
    cluster.sim.fault(Fault::on("POST", "/eviction", unauthorized()));
    let run = run(cluster.home.tool(&kubeconfig, &["node-0", "--timeout", "20s"]));
    assert_eq!(run.code(), 6, "{}", run.text());
    assert!(plugin_runs(&cluster) >= 2);
}

#[test]
fn credentials_that_stay_refused_are_named() {
    let cluster = Cluster::plain(|world| world.deployment("shop", "web", 1));
    cluster.sim.fault(Fault::on("POST", "/eviction", unauthorized()));
    let run = cluster.run(&["node-0", "--timeout", "20s"]);
    assert_eq!(run.code(), 6, "{}", run.text());
    assert!(run.stderr.contains("credentials"), "{}", run.text());
}

#[test]
fn a_credential_plugin_that_hangs_can_be_interrupted() {
    let cluster = Cluster::plain(|world| world);
    let kubeconfig = with_plugin(&cluster, "exec sleep 600");
    let running = start(cluster.home.tool(&kubeconfig, &["node-0"]));
    until("the plugin", || plugin_runs(&cluster) == 1);
    running.signal_group(Signal::INT);
    let run = running.end();
    assert_eq!(run.signal(), Some(2), "{}", run.text());
    assert!(cluster.sim.requests().is_empty());
}

#[test]
fn a_credential_plugin_that_fails() {
    let cluster = Cluster::plain(|world| world);
    let kubeconfig = with_plugin(&cluster, "echo 'please log in' >&2; exit 1");
    let run = run(cluster.home.tool(&kubeconfig, &["node-0"]));
    assert_eq!(run.code(), 6, "{}", run.text());
    assert!(run.stderr.contains("please log in"), "{}", run.text());
    assert!(cluster.sim.requests().is_empty());
}

/// One pod that takes a second to stop.
fn stops_in_a_second() -> Cluster {
    let pod = PodSpec::new().annotation("lab/stop", "10s").grace(3000);
    Cluster::plain(|world| world.deployment_with("shop", "slow", 1, pod))
}

#[test]
fn an_api_server_that_goes_away_for_a_moment() {
    let cluster = stops_in_a_second();
    let running = cluster.begin(&["node-0", "--timeout", "60s"]);
    running.wait_stderr(" is stopping");
    let now = cluster.sim.elapsed();
    cluster.sim.fault(Fault::at(now, Then::Gone).between(now, now + Duration::from_millis(1500)));
    let run = running.end();
    assert_eq!(run.code(), 0, "{}", run.text());
    assert!(run.stdout.ends_with("node/node-0 drained\n"), "{}", run.text());
    assert_eq!(cluster.evictions(), 1);
}

#[test]
fn watches_that_end_are_opened_again() {
    let cluster = stops_in_a_second();
    let running = cluster.begin(&["node-0", "--timeout", "60s"]);
    running.wait_stderr(" is stopping");
    cluster.sim.cut_watches();
    let run = running.end();
    assert_eq!(run.code(), 0, "{}", run.text());
    assert_eq!(run.stdout.matches(" evicted\n").count(), 1, "{}", run.text());
}

/// A drain with a deadline of a second, while requests of that sort get no answer.
fn unanswered(method: &str, path: &str) {
    let cluster = Cluster::plain(|world| world.deployment("shop", "web", 1));
    cluster.sim.fault(Fault::on(method, path, Then::Hang));
    let start = Instant::now();
    let run = cluster.run(&["node-0", "--timeout", "1s"]);
    // The deadline, two seconds, and what a machine under load takes to start a program.
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}\n{}", start.elapsed(), run.text());
    assert_eq!(run.code(), 124, "{}", run.text());
}

#[test]
fn a_deadline_does_not_wait_for_the_answer_to_an_eviction() {
    unanswered("POST", "/eviction");
}

#[test]
fn a_deadline_does_not_wait_for_the_answer_to_a_cordon() {
    unanswered("PATCH", "/nodes");
}

#[test]
fn an_api_server_that_never_comes_back() {
    let cluster = stops_in_a_second();
    let running = cluster.begin(&["node-0", "--timeout", "9s", "-o", "json"]);
    running.wait_stderr(" is stopping");
    let now = cluster.sim.elapsed();
    cluster.sim.fault(Fault::at(now, Then::Gone));
    let run = running.end();
    assert_eq!(run.code(), 6, "{}", run.text());
    let document: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(document["exitCode"], 6);
    assert!(run.stderr.contains("o contact"), "{}", run.text());
}
