//! Signals: the process ends by the signal itself, soon, without another write, and says what goes on without it.

use insta::assert_snapshot;
use rustix::process::Signal;
use safe_drain_sim::{Fault, PodSpec, Then};
use serde_json::json;

use crate::cluster::{Cluster, kubeconfig};
use crate::server::{Answer, Server};
use crate::tool::{Home, PROGRAM, start, until};

#[test]
fn before_there_is_a_plan() {
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1)] {
        let server = Server::http(Answer::Silence);
        let home = Home::new();
        let file = home.file("kubeconfig", &kubeconfig(&format!("http://{}", server.address), "", "{}"));
        let running = start(home.tool(&file, &["node-0"]));
        until("the first request", || !server.requests().is_empty());
        running.signal(signal);
        let run = running.end();
        assert_eq!(run.signal(), Some(number), "{}", run.text());
        assert_eq!(run.stdout, "");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn while_the_cluster_is_read() {
    let cluster = Cluster::scenario("plain");
    cluster.sim.fault(Fault::on("GET", "/pods", Then::Hang));
    let running = cluster.begin(&["node-0"]);
    cluster.wait_request("GET", "/api/v1/pods");
    running.signal(Signal::INT);
    let run = running.end();
    assert_eq!(run.signal(), Some(2), "{}", run.text());
    cluster.nothing_changed();
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    Warning: interrupted (Ctrl-C): nothing new is evicted or restarted
    [time] nothing was changed
    [ended by signal 2]
    ");
}

#[test]
fn while_the_node_is_cordoned() {
    let cluster = Cluster::scenario("plain");
    cluster.sim.fault(Fault::on("PATCH", "/nodes", Then::Hang));
    let running = cluster.begin(&["node-0"]);
    cluster.wait_request("PATCH", "/nodes/node-0");
    running.signal(Signal::INT);
    let run = running.end();
    assert_eq!(run.signal(), Some(2), "{}", run.text());
    assert_eq!(cluster.evictions(), 0);
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    [time] draining node-0 · context sim · Kubernetes v1.36.2 · timeout 30m
    [time] plan for node-0: 6 pods are evicted, 1 stays (DaemonSet)
    Warning: interrupted (Ctrl-C): nothing new is evicted or restarted
    Warning: the cordon of node-0 was on its way: kubectl get node node-0 tells

    node-0 not drained: interrupted after 0s; it stays cordoned
        1 pod stays (DaemonSet)
      Still on the node (waiting or a second run may clear it):
        ? pods shop/cart-POD, shop/cart-POD, shop/web-POD and 3 more: their turn did not come

    Next:
      the same command again            to go on; it resumes what has begun
      kubectl safe-drain cancel node-0  to give up: lifts the cordon
    [ended by signal 2]
    ");
}

#[test]
fn a_cordon_under_way_is_not_denied() {
    let cluster = Cluster::scenario("plain");
    cluster.sim.fault(Fault::on("PATCH", "/nodes", Then::SlowAnswer(std::time::Duration::from_secs(60))));
    let running = cluster.begin(&["node-0"]);
    until("the cordon", || cluster.cordoned() == ["node-0"]);
    running.signal(Signal::INT);
    let run = running.end();
    assert!(!run.stderr.contains("it is not cordoned"), "{}", run.text());
}

#[test]
fn nothing_is_said_of_a_second_signal() {
    let cluster = Cluster::slow();
    let running = cluster.begin(&["node-0"]);
    running.wait_stderr("stopping");
    running.signal(Signal::INT);
    let run = running.end();
    assert!(!run.stderr.contains("a second signal"), "{}", run.text());
}

#[test]
fn a_signal_before_the_first_write_says_so() {
    let cluster = Cluster::scenario("plain");
    cluster.sim.fault(Fault::on("GET", "/pods", Then::Hang));
    let running = cluster.begin(&["node-0"]);
    cluster.wait_request("GET", "/api/v1/pods");
    running.signal(Signal::INT);
    let run = running.end();
    assert!(run.stderr.contains("nothing was changed"), "{}", run.text());
}

/// Interrupts a drain whose budget lets one of four pods go at a time.
fn midway(signal: Signal, number: i32) {
    let cluster = Cluster::plain(|world| {
        let pod = PodSpec::new().annotation("lab/stop", "3000s").grace(3000);
        world.deployment_with("shop", "slow", 4, pod).pdb("shop", "slow", "slow", json!({"maxUnavailable": 1}))
    });
    let running = cluster.begin(&["node-0"]);
    running.wait_stdout("evicting pod");
    running.wait_stderr(" is stopping");
    running.signal(signal);
    let run = running.end();
    assert_eq!(run.signal(), Some(number), "{}", run.text());
    let before = cluster.evictions();
    // The budget has room again: whoever still drains would go on now.
    let stopping = cluster.sim.list("Pod").into_iter().find(|pod| pod["metadata"]["deletionTimestamp"].is_string());
    let stopping = stopping.unwrap();
    assert!(cluster.sim.vanish("Pod", "shop", stopping["metadata"]["name"].as_str().unwrap()));
    until("room in the budget", || {
        cluster.sim.get("PodDisruptionBudget", "shop", "slow").unwrap()["status"]["disruptionsAllowed"] == 1
    });
    cluster.wait_elapsed(std::time::Duration::from_millis(300));
    assert_eq!(cluster.evictions(), before);
    assert_eq!(cluster.cordoned(), ["node-0"]);
    assert!(run.stderr.contains("accepted, still stopping"), "{}", run.text());
}

#[test]
fn an_interrupt_midway() {
    midway(Signal::INT, 2);
}

#[test]
fn a_termination_midway() {
    midway(Signal::TERM, 15);
}

#[test]
fn a_hang_up_midway() {
    midway(Signal::HUP, 1);
}

#[test]
#[cfg(target_os = "linux")]
fn a_hang_up_that_is_ignored_from_the_start_stays_ignored() {
    // As nohup starts it.
    let cluster = Cluster::plain(|world| {
        let pod = PodSpec::new().annotation("lab/stop", "2s").grace(10);
        world.deployment_with("shop", "slow", 1, pod)
    });
    let mut command = cluster.home.command("sh", &cluster.kubeconfig);
    command.args(["-c", "trap '' HUP; exec \"$0\" node-0", PROGRAM]);
    let running = start(command);
    running.wait_stdout("evicting pod");
    running.signal(Signal::HUP);
    let run = running.end();
    assert_eq!(run.code(), 0, "{}", run.text());
    assert!(run.stdout.contains("node/node-0 drained"), "{}", run.text());
}

#[test]
fn an_eviction_under_way_is_not_denied() {
    let cluster = Cluster::slow();
    let minute = std::time::Duration::from_secs(60);
    cluster.sim.fault(Fault::on("POST", "/eviction", Then::SlowAnswer(minute)));
    let running = cluster.begin(&["node-0"]);
    until("the eviction", || cluster.evictions() == 1);
    running.wait_stdout("evicting pod");
    running.signal(Signal::INT);
    let run = running.end();
    assert!(!run.stderr.contains("not reached yet"), "{}", run.text());
}

#[test]
fn what_an_interrupt_says() {
    let cluster = Cluster::slow();
    let running = cluster.begin(&["node-0"]);
    cluster.wait_request("POST", "/eviction");
    running.wait_stderr("stopping");
    running.signal(Signal::INT);
    let run = running.end();
    assert_snapshot!(run.text(), @"
    node/node-0 cordoned
    evicting pod shop/slow-POD
    ------- stderr -------
    [time] draining node-0 · context sim · Kubernetes v1.36.2 · timeout 30m
    [time] plan for node-0: 1 pod is evicted
    Warning: pod shop/slow-POD may take 50m to stop, and --timeout is 30m: --timeout=55m fits
    [time] pod shop/slow-POD is stopping and may take 50m
    Warning: interrupted (Ctrl-C): nothing new is evicted or restarted

    node-0 not drained: interrupted after 0s; it stays cordoned
      Still stopping (goes on by itself):
        ? pod shop/slow-POD: accepted, still stopping, up to 50m left (grace 50m)

    Next:
      the same command again            to go on; it resumes what has begun
      kubectl safe-drain cancel node-0  to give up: lifts the cordon
    [ended by signal 2]
    ");
}

#[test]
fn what_an_interrupt_says_of_a_migration() {
    let cluster = Cluster::kubevirt(|world| world.vm("tenant-a", safe_drain_sim::Vm::new("web-1").migration("hang")));
    let running = cluster.begin(&["node-0"]);
    running.wait_stderr("migrating → node-1");
    running.signal(Signal::INT);
    let run = running.end();
    assert_eq!(run.signal(), Some(2), "{}", run.text());
    let text = run.text();
    assert!(text.starts_with("node/node-0 cordoned\n"), "{text}");
    // Lines before depend on whether the VMI's or the VMIM's watch is faster.
    let end = text.find("Warning: interrupted").unwrap();
    assert_snapshot!(&text[end..], @"
    Warning: interrupted (Ctrl-C): nothing new is evicted or restarted

    node-0 not drained: interrupted after 0s; it stays cordoned
      Still stopping or migrating (goes on by itself):
        ? VM tenant-a/web-1: it is migrating to node-1; it still runs on node-0

    Next:
      the same command again            to go on; it resumes what has begun
      kubectl safe-drain cancel node-0  to give up: cancels evacuations (an uncordon would not), lifts the cordon
    [ended by signal 2]
    ");
}

#[test]
fn a_shell_loop_over_nodes_stops() {
    let cluster = Cluster::plain(|world| {
        let pod = PodSpec::new().annotation("lab/stop", "3000s").grace(3000);
        world.deployment_with("shop", "slow", 1, pod).on("node-1").deployment("shop", "web", 1)
    });
    for shell in ["sh", "bash"] {
        let mut command = cluster.home.command(shell, &cluster.kubeconfig);
        command.args(["-c", &format!("for n in node-0 node-1; do {PROGRAM} $n; done; echo after the loop")]);
        if std::process::Command::new(shell).args(["-c", ":"]).status().is_err() {
            continue;
        }
        let running = start(command);
        running.wait_stderr("draining node-0");
        cluster.wait_request("POST", "/eviction");
        running.signal_group(Signal::INT);
        let run = running.end();
        assert_eq!(run.signal(), Some(2), "{shell}: {}", run.text());
        assert!(!run.stdout.contains("after the loop"), "{shell}: {}", run.text());
        assert_eq!(cluster.cordoned(), ["node-0"], "{shell}: {}", run.text());
    }
}
