//! The command's own manners: nothing half done, nothing said twice, nothing after its end.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use safe_drain::event::{EventKind, StopReason};
use safe_drain::settings::{DrainOptions, RestartStale};
use safe_drain_sim::{Fault, Json, PodSpec, Sim, Then, Vm};
use serde_json::json;

use crate::harness::{Flow, Outcome, drain, secs};
use crate::plain::world;
use crate::vms::{DISK, cluster};

fn slow(stops: &str) -> PodSpec {
    PodSpec::new().grace(600).annotation("lab/stop", stops)
}

#[tokio::test(start_paused = true)]
async fn c64_refusal_leaves_the_node_as_it_was() {
    let sim = world().pod("shop", "bare", PodSpec::new()).deployment("shop", "web", 2).done();
    let version = |sim: &Sim| sim.get("Node", "", "node-0").unwrap().text("/metadata/resourceVersion").to_owned();
    let before = version(&sim);
    let run = drain(&sim, "node-0").run().await;
    run.exits(4).changed_nothing().says("nothing was changed").says("--force");
    assert_eq!(version(&sim), before, "not even a write without effect");
    assert_eq!(run.document["changed"], false);
    // Of several nodes one refusal stops all.
    let sim = world().deployment("shop", "web", 1).on("node-1").pod("shop", "bare", PodSpec::new()).done();
    let run = Flow::new(&sim, DrainOptions::for_nodes(["node-0", "node-1"])).run().await;
    run.exits(4).changed_nothing();
    assert!(!run.cordoned("node-0") && !run.cordoned("node-1"));

    // Stopped after its cordon it says so, and how to take it back.
    let sim = world().deployment_with("shop", "web", 1, slow("100s")).done();
    let run = drain(&sim, "node-0").signal(secs(1), StopReason::Terminate).run().await;
    run.exits(143).says("it stays cordoned").says("kubectl safe-drain cancel node-0");
    // A cordon that is refused takes back those that this run has set, and no other.
    let sim = world().deployment("shop", "web", 1).on("node-1").deployment("shop", "cart", 1).done();
    sim.update("Node", "", "node-2", |n| n.put("/spec/unschedulable", true));
    sim.fault(Fault::on("PATCH", "/nodes/node-1", Then::status(403, "Forbidden", "nodes \"node-1\" is forbidden: no")));
    let run = Flow::new(&sim, DrainOptions::for_nodes(["node-0", "node-2", "node-1"])).without_preview().run().await;
    run.exits(1);
    assert!(!run.cordoned("node-0") && run.cordoned("node-2"), "{run}");
    assert!(run.evictions("").is_empty());
}

/// Lines of stderr without their time, and without the heartbeat's count of what is left.
fn said(run: &Outcome) -> Vec<&str> {
    let lines = run.stderr.lines().map(|l| l.split_once("] ").map_or(l, |(_, text)| text));
    lines.filter(|l| !l.ends_with(" left") && !l.trim().is_empty()).collect()
}

#[tokio::test(start_paused = true)]
async fn c65_no_flood_of_lines() {
    // Twenty pods refused for half an hour: kubectl says 14 400 lines.
    let sim = world().deployment("shop", "web", 20).pdb("shop", "web", "web", json!({"minAvailable": 1})).done();
    for node in ["node-1", "node-2"] {
        sim.update("Node", "", node, |n| n.put("/spec/unschedulable", true));
    }
    let run = drain(&sim, "node-0").timeout(1800).run().await;
    run.exits(124);
    let lines = run.stderr.lines().count();
    let beats = run.stderr.lines().filter(|l| l.ends_with(" left")).count();
    assert!((25..=30).contains(&beats), "one heartbeat a minute: {beats}\n{run}");
    assert!(lines - beats < 20, "{lines} lines\n{run}");
    let all = said(&run);
    let unique: BTreeSet<&&str> = all.iter().collect();
    assert_eq!(unique.len(), all.len(), "nothing is said twice: {all:#?}");
    // A refusal that repeats is one change of state.
    let sim = world().deployment("shop", "web", 1).done();
    let text = "admission webhook \"guard.example.com\" denied the request: not now";
    sim.fault(Fault::on("POST", "/pods/web-", Then::status(403, "Forbidden", text)).between(secs(0), secs(200)));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert!(run.evictions("web-").len() > 5);
    assert_eq!(run.stderr.matches("not now").count(), 1, "{run}");
    assert_eq!(run.stdout.matches("evicting pod").count(), 1, "{run}");
}

#[tokio::test(start_paused = true)]
async fn c68_nothing_goes_on_after_the_end() {
    let build = || {
        let here = json!({"kubernetes.io/hostname": "node-0"});
        cluster("LiveMigrate")
            .vm("tenant-a", Vm::new("hang-1").migration("hang"))
            .vm("tenant-a", Vm::new("web-2"))
            .deployment_with("shop", "slow", 1, slow("300s"))
            .deployment("shop", "fast", 1)
            // Successors find no node: the budget does not recover.
            .deployment_with("shop", "web", 3, slow("1s").with(|o| o.put("/spec/nodeSelector", here)))
            .pdb("shop", "web", "web", json!({"maxUnavailable": 1}))
            .done()
    };
    let check = |run: &Outcome, sim: &Sim| {
        // Three lists: gone, goes on by itself, not begun.
        run.says("2 pods gone").says("Still stopping or migrating (goes on by itself):");
        run.says("Still on the node (waiting or a second run may clear it):");
        run.vm_is("hang-1", "pending", "VmEvacuating");
        assert_eq!(run.vm("hang-1")["marked"], true, "KubeVirt goes on without us\n{run}");
        run.pod_is("slow-", "pending", "Stopping");
        let waiting = run.rows("pods").into_iter().filter(|r| r.text("/outcome") == "pending").count();
        assert!(waiting >= 2, "{run}");
        // Not one request, also when the way is free again.
        let until = sim.elapsed();
        sim.update("PodDisruptionBudget", "shop", "web", |b| b.put("/spec/maxUnavailable", 3));
        until
    };
    for by_signal in [false, true] {
        let sim = build();
        let flow = drain(&sim, "node-0").changes();
        let flow = if by_signal { flow.signal(secs(30), StopReason::Interrupt) } else { flow.timeout(30) };
        let run = flow.run().await;
        run.exits(if by_signal { 130 } else { 124 });
        let last = run.first_write().unwrap() + secs(30);
        assert!(run.requests.iter().all(|r| r.at <= last), "{run}");
        let until = check(&run, &sim);
        tokio::time::sleep(secs(600)).await;
        assert!(sim.requests().iter().all(|r| r.at <= until), "{run}");
        // A second run goes on, and sends nothing twice.
        let again = drain(&sim, "node-0").changes().timeout(30).run().await;
        assert!(again.launcher_evictions("hang-1").is_empty() && again.evictions("slow-").is_empty(), "{again}");
    }
}

fn two(sim: &Sim) -> Flow {
    Flow::new(sim, DrainOptions::for_nodes(["node-0", "node-1"]))
}

/// A VM and two pods on each of two nodes; the first node has one that never goes.
fn two_nodes() -> Sim {
    cluster("LiveMigrate")
        .vm("tenant-a", Vm::new("web-0"))
        .vm("tenant-a", Vm::new("stuck").migration("hang"))
        .deployment("shop", "cart", 2)
        .on("node-1")
        .vm("tenant-a", Vm::new("web-1"))
        .deployment("shop", "shelf", 2)
        .done()
}

#[tokio::test(start_paused = true)]
async fn c82_several_nodes_in_one_command() {
    // A stuck first node has its own deadline, and does not keep the second from its turn.
    let sim = two_nodes();
    let run = two(&sim).timeout(60).run().await;
    run.exits(124).prints("node/node-1 drained");
    let verdicts: Vec<&str> = run.document.list("/nodes").iter().map(|n| n.text("/verdict")).collect();
    assert_eq!(verdicts, ["timeout", "drained"]);
    let took = |n: usize| run.document.list("/nodes")[n]["elapsedSeconds"].as_f64().unwrap();
    assert!((took(0) - 60.0).abs() < 1.0 && took(1) < 20.0, "{} {}", took(0), took(1));
    run.says("node-0 not drained: timeout after").says("node-1 drained in");
    // All cordons come first, so nothing hops onto the next victim and moves twice.
    let first = run.requests.iter().position(|r| r.path.ends_with("/eviction")).unwrap();
    let last = run.requests.iter().rposition(|r| r.method == "PATCH").unwrap();
    assert!(last < first, "{run}");
    for vm in ["web-0", "web-1"] {
        assert_eq!(run.vm_is(vm, "migrates", "").text("/nodeAfter"), "node-2");
        assert_eq!(run.launcher_evictions(vm).len(), 1, "{run}");
    }
    for pods in ["cart-", "shelf-"] {
        assert_eq!(run.evictions(pods).len(), 2, "{run}");
    }
    // No node left for the VMs is said before anything is done.
    let all = Flow::new(&two_nodes(), DrainOptions::for_nodes(["node-0", "node-1", "node-2"])).run().await;
    all.exits(4).changed_nothing().says("no open node is left");
}

#[tokio::test(start_paused = true)]
async fn c82_two_at_a_time() {
    let parallel = |o: &mut DrainOptions| o.parallel = NonZeroUsize::new(2).unwrap();
    let sim = two_nodes();
    let run = two(&sim).timeout(60).with(parallel).run().await;
    run.exits(124).prints("node/node-1 drained");
    // Both clocks run from the start: the whole takes one deadline, not two.
    assert!(run.elapsed >= secs(60) && run.elapsed <= secs(62), "{:?}", run.elapsed);
    let took = |n: usize| run.document.list("/nodes")[n]["elapsedSeconds"].as_f64().unwrap();
    assert!((took(0) - 60.0).abs() < 1.0 && took(1) < 20.0, "{} {}", took(0), took(1));

    // Of three nodes the third has its turn when one of the first two is done, with a clock of its own.
    let sim = world()
        .node("node-3")
        .on("node-0")
        .deployment_with("shop", "a", 1, slow("40s"))
        .on("node-1")
        .deployment_with("shop", "b", 1, slow("10s"))
        .on("node-2")
        .deployment_with("shop", "c", 1, slow("45s"))
        .done();
    let three = DrainOptions::for_nodes(["node-0", "node-1", "node-2"]);
    let run = Flow::new(&sim, three).timeout(50).with(parallel).run().await;
    run.exits(0);
    let start = run.first_write().unwrap();
    let at = |pod: &str| run.evictions(pod)[0].at.saturating_sub(start);
    assert!(at("a-") < secs(1) && at("b-") < secs(1) && at("c-") >= secs(10) && at("c-") < secs(12), "{run}");
    assert!(run.elapsed >= secs(55) && run.elapsed < secs(58), "{:?}", run.elapsed);

    // An API server that takes one eviction at a time serves both nodes in turn.
    let sim = world().deployment("shop", "a", 4).on("node-1").deployment("shop", "b", 4).done();
    let busy = Then::plain(429, 1, "Too many requests, please try again later.\n");
    sim.fault(Fault::on("POST", "/eviction", busy).between(secs(0), secs(20)));
    sim.fault(Fault::on("POST", "/eviction", Then::Slow(secs(1))));
    let run = two(&sim).with(parallel).run().await;
    run.exits(0);
    let accepted: Vec<char> = run
        .evictions("")
        .iter()
        .filter(|r| r.status == 201)
        .map(|r| r.path.split("/pods/").nth(1).unwrap().chars().next().unwrap())
        .collect();
    assert_eq!(accepted.len(), 8, "{run}");
    let half: BTreeSet<&char> = accepted[..2].iter().collect();
    assert_eq!(half.len(), 2, "both nodes move: {accepted:?}\n{run}");
}

#[tokio::test(start_paused = true)]
async fn c81_failure_is_never_recorded_as_drained() {
    // Exit 0 if and only if nothing evictable is left; what is left is named in the document.
    let sim =
        cluster("LiveMigrate").vm("tenant-a", Vm::new("db-0").non_migratable(DISK)).deployment("shop", "web", 1).done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(3);
    let node = &run.document.list("/nodes")[0];
    assert_eq!(
        (node.text("/verdict"), node.int("/exitCode"), run.document.int("/exitCode")),
        ("blocked", Some(3), Some(3))
    );
    run.vm_is("db-0", "blocks", "VmNotMigratable");
    assert!(!run.stdout.contains("node/node-0 drained"), "{run}");
    // Timeout: the same.
    let sim = world().deployment_with("shop", "web", 2, slow("300s")).done();
    let run = drain(&sim, "node-0").timeout(20).run().await;
    run.exits(124);
    assert_eq!(run.document.list("/nodes")[0].text("/verdict"), "timeout");
    assert_eq!(run.rows("pods").iter().filter(|r| r.text("/outcome") == "pending").count(), 2);
    assert!(!run.stdout.contains("drained"), "{run}");
    // Stopped from outside at any time: the same.
    for after in [0, 1, 5] {
        let sim = world().deployment_with("shop", "web", 2, slow("300s")).done();
        let run = drain(&sim, "node-0").without_preview().signal(secs(after), StopReason::Interrupt).run().await;
        run.exits(130);
        assert!(!run.stdout.contains("drained"), "{run}");
        assert!(run.document.list("/nodes").iter().all(|n| n.text("/verdict") != "drained"), "{run}");
    }
    // Consent does not change the meaning: what was agreed to stay down is 0, what should run again and does not is 5.
    let sim = cluster("LiveMigrate")
        .vm("tenant-a", Vm::new("db-0").non_migratable(DISK).node_selector("kubernetes.io/hostname", "node-0"))
        .eviction_strategy("LiveMigrateIfPossible")
        .done();
    let both = |o: &mut DrainOptions| (o.restart_stale, o.allow_vm_down) = (RestartStale::Always, true);
    let run = drain(&sim, "node-0").with(both).changes().run().await;
    run.exits(0);
    run.vm_is("db-0", "down-until-node", "Unschedulable");
    let sim = cluster("LiveMigrate")
        .vm("tenant-a", Vm::new("db-0").non_migratable(DISK))
        .eviction_strategy("LiveMigrateIfPossible")
        .done();
    let full = |sim: &Sim| {
        for node in ["node-1", "node-2"] {
            sim.update("Node", "", node, |n| n.put("/spec/unschedulable", true));
        }
    };
    let restarting = |e: &EventKind| matches!(e, EventKind::VmRestarting { .. });
    let run = drain(&sim, "node-0").with(both).changes().when(restarting, full).run().await;
    run.exits(5).prints("node/node-0 drained").says("drained in").says("but not every VM runs again");
    run.vm_is("db-0", "down", "Unschedulable");
}
