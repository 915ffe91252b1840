//! The way to the API server: gone for a moment or for good, slow, busy, restarting, and credentials that end.

use std::time::Duration;

use safe_drain::event::EventKind;
use safe_drain_sim::{Fault, Json, PodSpec, Sim, Then, Vm};
use serde_json::json;

use super::answered;
use crate::harness::{Outcome, drain, secs};
use crate::plain::world;
use crate::vms::cluster;

/// Six pods that leave one after the other, a second each.
fn shop() -> Sim {
    world()
        .deployment_with("shop", "web", 6, PodSpec::new().annotation("lab/stop", "1s"))
        .pdb("shop", "web", "web", json!({"maxUnavailable": 1}))
        .done()
}

/// One pod that takes 40 s to stop.
fn slow() -> PodSpec {
    PodSpec::new().grace(60).annotation("lab/stop", "40s")
}

fn lost(run: &Outcome) -> bool {
    run.event(|e| matches!(e, EventKind::ContactLost)).is_some()
}

#[tokio::test(start_paused = true)]
async fn c69_api_server_gone_for_a_moment() {
    let sim = world()
        .deployment_with("shop", "slow", 1, slow())
        .deployment("shop", "web", 6)
        .pdb("shop", "web", "web", json!({"maxUnavailable": 1}))
        .done();
    sim.fault(Fault::at(secs(1), Then::Gone).between(secs(1), secs(21)));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    // Said once each, with how long it was.
    assert!(lost(&run) && run.event(|e| matches!(e, EventKind::ContactRestored { .. })).is_some(), "{run}");
    assert_eq!(run.stderr.matches("no contact with the API server; trying again").count(), 1, "{run}");
    assert_eq!(run.stderr.matches("contact with the API server again after 1").count(), 1, "{run}");
    // All is read again: what went meanwhile is known, and nothing was evicted twice.
    assert!(run.rows("pods").iter().all(|r| r.text("/outcome") == "evicts"), "{run}");
    assert!(run.elapsed < secs(60), "{:?}", run.elapsed);

    // Long enough for a heartbeat: it says so.
    let sim = world().deployment_with("shop", "slow", 1, slow()).done();
    sim.fault(Fault::at(secs(1), Then::Gone).between(secs(1), secs(150)));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0).says("no contact for ");

    // A server that answers, and not well: tried again with growing pauses.
    let trouble = || Then::status(500, "InternalError", "etcdserver: leader changed");
    let sim = world().deployment("shop", "web", 1).done();
    sim.fault(Fault::on("POST", "/pods/web-", trouble()).first(3));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert_eq!(run.evictions("web-").len(), 4);
    let sim = world().deployment("shop", "web", 1).done();
    sim.fault(Fault::on("POST", "/pods/web-", trouble()));
    let run = drain(&sim, "node-0").timeout(120).run().await;
    run.exits(124).says("etcdserver: leader changed");
    assert!(run.evictions("web-").len() < 20, "{run}");
}

#[tokio::test(start_paused = true)]
async fn c69_api_server_gone_for_good() {
    let sim = shop();
    let start = Duration::from_millis(1500);
    sim.fault(Fault::at(start, Then::Gone).between(start, secs(1_000_000)));
    let run = drain(&sim, "node-0").timeout(60).changes().run().await;
    // Unknown, with the last that was seen.
    run.exits(6).says("this is the last known state").says("no contact with the API server for ");
    assert!(run.elapsed <= secs(62), "{:?}", run.elapsed);
    assert_eq!(run.document.list("/nodes")[0].text("/verdict"), "failed");
    assert!(run.rows("pods").iter().any(|r| r.text("/outcome") == "evicts"), "{run}");
    assert!(run.rows("pods").iter().any(|r| r.text("/outcome") == "pending"), "{run}");
    assert!(!run.stdout.contains("node/node-0 drained"), "{run}");
}

#[tokio::test(start_paused = true)]
async fn c70_control_plane_node_that_serves_the_drain() {
    // Its answers take long: each request has 30 s, and no watch is given up for being slow.
    let sim = world().deployment("shop", "web", 3).done();
    sim.fault(Fault::on("", "", Then::Slow(secs(4))));
    let run = drain(&sim, "node-0").without_preview().run().await;
    run.exits(0);
    assert!(run.evictions("").iter().all(|r| r.status == 201), "{run}");
    // One that never comes is given up after 30 s and tried again; its pod is not evicted twice.
    let sim = world().deployment("shop", "web", 3).done();
    sim.fault(Fault::on("POST", "/eviction", Then::Hang).nth(2));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert!(run.elapsed >= secs(30) && run.elapsed < secs(40), "{:?}\n{run}", run.elapsed);

    // It turns NotReady midway, and pods stay beyond their grace: both are said as what they are.
    let sim = world().deployment_with("shop", "web", 2, slow()).done();
    let falls = |sim: &Sim| {
        sim.update("Node", "", "node-0", |n| {
            n.set_annotation("lab/kubelet", Some("down"));
            n.set_condition(json!({"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}));
        });
    };
    let run = drain(&sim, "node-0").timeout(120).changes().at(secs(10), falls).run().await;
    let text = "node node-0 is not ready any more (NodeStatusUnknown): pods on it may never confirm that they stopped";
    run.exits(124).says(text);
    assert_eq!(run.stderr.matches("is not ready any more").count(), 1, "{run}");
    let row = run.pod_is("web-", "pending", "Stopping");
    assert_eq!(row.text("/because"), "accepted, but the node is not ready: nothing confirms that it stopped");
    // A kubelet that comes back reports what has stopped.
    let sim = world().deployment_with("shop", "web", 2, slow()).done();
    let back = |sim: &Sim| {
        sim.update("Node", "", "node-0", |n| {
            n.set_annotation("lab/kubelet", None);
            n.set_condition(json!({"type": "Ready", "status": "True", "reason": "KubeletReady"}));
        });
    };
    let run = drain(&sim, "node-0").timeout(300).changes().at(secs(10), falls).at(secs(90), back).run().await;
    run.exits(0).says("node node-0 is ready again");
}

#[tokio::test(start_paused = true)]
async fn c71_throttling_in_plain_text() {
    let sim = world().deployment("shop", "web", 6).done();
    let busy = Then::plain(429, 4, "Too many requests, please try again later.\n");
    sim.fault(Fault::on("POST", "/eviction", busy).nth(3));
    let run = drain(&sim, "node-0").run().await;
    // Not the pod's refusal: nothing blocks, the server's patience is kept, and its words are not taken for a policy.
    run.exits(0).says("waits: the API server is busy, again in 4s");
    assert_eq!(run.evictions("web-").len(), 7, "each once, and the third again\n{run}");
    let again = run.evictions("web-").last().unwrap().at;
    assert!(again >= secs(4), "Retry-After is kept: {again:?}");
    let throttled =
        |e: &EventKind| matches!(e, EventKind::PodWaiting { cause: safe_drain::outcome::Cause::Throttled, .. });
    assert!(run.event(throttled).is_some());

    // A full server is asked by fewer at a time: 40 pods, of whose evictions it takes three at once.
    let sim = world().deployment("shop", "web", 40).done();
    sim.fault(
        Fault::on("POST", "/eviction", Then::plain(429, 1, "Too many requests, please try again later.\n")).first(29),
    );
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    let refused = run.evictions("web-").iter().filter(|r| r.status == 429).count();
    assert_eq!((refused, run.evictions("web-").len()), (29, 69));
    // The same class in JSON: an API server whose storage is not ready yet. It is no refusal of a budget.
    let sim = world().deployment("shop", "web", 2).pdb("shop", "web", "web", json!({"maxUnavailable": 2})).done();
    let early = answered(429, "TooManyRequests", "storage is (re)initializing", json!({"retryAfterSeconds": 1}));
    sim.fault(Fault::on("POST", "/eviction", early).first(2));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert!(run.event(throttled).is_some() && !run.stderr.contains("budget"), "{run}");
    // Without an eviction API in the way: a list that is throttled does not end the command either.
    let sim = world().deployment("shop", "web", 1).done();
    sim.fault(
        Fault::on("GET", "/api/v1/pods", Then::plain(429, 1, "Too many requests, please try again later.\n")).first(2),
    );
    drain(&sim, "node-0").without_preview().run().await.exits(0);
}

#[tokio::test(start_paused = true)]
async fn c73_api_server_restarts_in_turn() {
    let sim = shop();
    sim.fault(Fault::at(secs(1), Then::CutWatches));
    let text = "The apiserver is shutting down, please try again later.";
    sim.fault(Fault::on("", "", Then::plain(429, 1, text)).between(secs(1), secs(6)));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert!(run.elapsed < secs(20), "{:?}\n{run}", run.elapsed);
    assert!(run.requests.len() < 200, "{} requests: no storm\n{run}", run.requests.len());

    // Watches that end without an error are routine, and told to nobody.
    let sim = shop();
    for n in 1..6 {
        sim.fault(Fault::at(Duration::from_millis(1000 * n - 400), Then::CutWatches));
    }
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert!(!lost(&run) && run.elapsed < secs(12), "{:?}\n{run}", run.elapsed);
    assert!(run.evictions("web-").iter().all(|r| r.status == 201), "{run}");

    // So are those that come back too old (410): listed again, and a deletion that nobody saw is found.
    let sim = shop();
    sim.fault(Fault::at(secs(1), Then::ExpireWatches));
    sim.fault(Fault::at(secs(2), Then::ExpireWatches));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert!(!lost(&run), "{run}");
    let sim = world().deployment_with("shop", "slow", 1, slow()).done();
    sim.fault(Fault::at(secs(35), Then::ExpireWatches));
    sim.fault(
        Fault::on("GET", "/pods", Then::status(503, "ServiceUnavailable", "starting")).between(secs(35), secs(50)),
    );
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    run.pod_is("slow-", "evicts", "");
    assert!(run.elapsed >= secs(50) && run.elapsed < secs(56), "found by the list: {:?}\n{run}", run.elapsed);
}

// That a plugin runs again and the client is built anew is shown by the program itself: tests/cli/trouble.rs,
// `credentials_that_end_midway_are_renewed`, `credentials_that_stay_refused_end_the_drain`.
#[tokio::test(start_paused = true)]
async fn c76_credentials_that_end_midway() {
    let unauthorized = || Then::status(401, "Unauthorized", "Unauthorized");
    let build = || {
        cluster("LiveMigrate")
            .vm("tenant-a", Vm::new("web-1"))
            .deployment_with("shop", "slow", 1, slow())
            .deployment("shop", "web", 2)
            .pdb("shop", "web", "web", json!({"maxUnavailable": 1}))
            .done()
    };
    // At an eviction: nothing is tried blindly again, and what was begun is told.
    let sim = build();
    sim.fault(Fault::on("POST", "/pods/web-", unauthorized()).nth(2));
    let run = drain(&sim, "node-0").changes().run().await;
    run.exits(6)
        .says("the API server does not accept the credentials any more, nor fresh ones; what was begun goes on");
    assert_eq!(run.evictions("web-").len(), 2, "{run}");
    run.pod_is("slow-", "pending", "Stopping");
    run.says("Still stopping or migrating (goes on by itself):").says("shop/slow-");
    assert!(run.elapsed < secs(10), "{:?}", run.elapsed);
    assert!(!run.stdout.contains("node/node-0 drained"), "{run}");

    // At a watch that is opened again.
    let sim = build();
    sim.fault(Fault::at(secs(8), Then::CutWatches));
    sim.fault(Fault::on("", "", unauthorized()).between(secs(8), secs(10_000)));
    let run = drain(&sim, "node-0").changes().timeout(300).run().await;
    run.exits(6).says("the API server does not accept the credentials any more");
    assert!(run.elapsed >= secs(8) && run.elapsed < secs(20), "{:?}", run.elapsed);
    run.pod_is("slow-", "pending", "Stopping");
    // Before anything was done: an error about the connection, and nothing else.
    let sim = build();
    sim.fault(Fault::on("", "", answered(401, "Unauthorized", "Unauthorized", json!(null))));
    let run = drain(&sim, "node-0").without_preview().run().await;
    run.exits(6).changed_nothing().says("does not accept the credentials");
}
