//! From "accepted" to "gone": long grace periods, finalizers, dead kubelets, namespaces and nodes that go away.

use std::time::Duration;

use safe_drain::event::{EventKind, PodExit};
use safe_drain::settings::DryRun;
use safe_drain_sim::{Fault, Json, PodSpec, Sim, Vm};
use serde_json::{Value, json};

use super::answered;
use crate::harness::{drain, secs};
use crate::plain::world;
use crate::vms::{DISK, cluster};

/// Stops after that long, with that grace.
fn slow(grace: i64, stops: &str) -> PodSpec {
    PodSpec::new().grace(grace).annotation("lab/stop", stops)
}

#[tokio::test(start_paused = true)]
async fn c33_grace_period_of_an_hour() {
    let windows = || {
        cluster("LiveMigrateIfPossible")
            .vm("tenant-a", Vm::new("win-1").grace(3600).non_migratable(DISK).annotation("lab/stop", "3000s"))
            .deployment_with("shop", "db", 1, slow(3600, "2400s"))
            .done()
    };
    // Warned of at the start, with a value that fits. Design: a shutdown that may take longer than the time left is not
    // begun, so the guest is never cut; that is no policy, and said so.
    let sim = windows();
    let run = drain(&sim, "node-0").timeout(300).run().await;
    let warning = "tenant-a/win-1 may take 1h to shut down, and --timeout is 5m, so it is not begun";
    run.exits(124).says(warning).says("may take 1h to stop, and --timeout is 5m: --timeout=65m fits");
    let row = run.vm_is("win-1", "pending", "GraceTooLong");
    assert_eq!(row.text("/because"), "its guest may take 1h to stop, longer than the time left; nothing was sent");
    assert!(run.launcher_evictions("win-1").is_empty(), "{run}");
    // The pod was accepted: still stopping, and not "blocked by policy".
    let row = run.pod_is("db-", "pending", "Stopping");
    assert_eq!(row.text("/because"), "accepted, still stopping, up to 55m left (grace 1h)");
    assert_eq!(row["waitingHelps"], true);
    run.says("Still stopping (goes on by itself):").says("is stopping and may take 1h");
    assert!(!run.stderr.contains("Blocked"), "{run}");

    // Time enough: both are waited for, and no grace period is shortened.
    let sim = windows();
    let run = drain(&sim, "node-0").timeout(3900).run().await;
    run.exits(0);
    run.vm_is("win-1", "returns", "");
    assert!(!run.stderr.contains("--timeout"), "{run}");
    run.says("VM tenant-a/win-1: shutting down (grace 1h)");
    assert!(run.elapsed > secs(2400), "{:?}", run.elapsed);
    for r in run.evictions("") {
        assert!(!r.body.as_ref().unwrap().has("/deleteOptions/gracePeriodSeconds"), "{run}");
    }
}

#[tokio::test(start_paused = true)]
async fn c61_finalizer_on_a_pod_that_has_ended() {
    let held = PodSpec::new().finalizer("batch.kubernetes.io/job-tracking").grace(5);
    let sim = world().deployment_with("shop", "job", 1, held).deployment("shop", "web", 1).done();
    let run = drain(&sim, "node-0").timeout(60).run().await;
    run.exits(0).prints("node/node-0 drained");
    let row = run.pod_is("job-", "skipped", "Finalizer");
    let text = "no container runs; its object is kept by finalizer batch.kubernetes.io/job-tracking";
    assert_eq!(row.text("/because"), text);
    run.says(text);
    assert!(run.event(|e| matches!(e, EventKind::PodGone { how: PodExit::Skipped, .. })).is_some());
    assert!(run.elapsed < secs(10), "{:?}", run.elapsed);
    // Nobody touches the finalizer.
    let pods = sim.list("Pod");
    let kept = pods.iter().find(|p| p.deleting()).expect("the object is there");
    assert_eq!(kept.list("/metadata/finalizers"), ["batch.kubernetes.io/job-tracking"]);
    assert!(run.asked("PATCH", "/pods/").is_empty() && run.asked("PUT", "/pods/").is_empty(), "{run}");

    // While its containers run it is waited for, finalizer or not.
    let held = slow(300, "100s").finalizer("example.com/hold");
    let sim = world().deployment_with("shop", "job", 1, held).done();
    let run = drain(&sim, "node-0").timeout(30).run().await;
    run.exits(124);
    run.pod_is("job-", "pending", "Stopping");
}

/// Its kubelet and virt-handler are dead, and the node controller has seen it.
fn kubelet_dies(sim: &Sim) {
    sim.update("Node", "", "node-0", |n| {
        n.set_annotation("lab/kubelet", Some("down"));
        n.set_condition(json!({"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}));
        n.put("/spec/taints", json!([{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]));
    });
}

#[tokio::test(start_paused = true)]
async fn c62_node_whose_kubelet_is_down() {
    let sim = cluster("LiveMigrateIfPossible")
        .vm("tenant-a", Vm::new("web-1"))
        .vm("tenant-a", Vm::new("db-0").non_migratable(DISK))
        .deployment("shop", "cart", 1)
        .done();
    kubelet_dies(&sim);
    let run = drain(&sim, "node-0").preview(DryRun::Client).run().await;
    run.exits(3).prints("node-0 is not ready (NodeStatusUnknown): pods on it may never confirm that they stopped");
    let run = drain(&sim, "node-0").timeout(120).run().await;
    // 3 outranks 124: a second run cannot succeed without a human.
    run.exits(3).says("node-0 is not ready (NodeStatusUnknown)");
    for vm in ["web-1", "db-0"] {
        let row = run.vm_is(vm, "blocks", "NodeNotReady");
        assert!(row.text("/because").contains("nothing can confirm that the guest stopped"), "{row}");
        assert!(row.text("/remedy").contains("fence"), "{row}");
        assert!(run.launcher_evictions(vm).is_empty() && run.restarts(vm).is_empty(), "{run}");
    }
    // An ordinary pod is evicted, and nobody confirms that it stopped.
    let row = run.pod_is("cart-", "pending", "Stopping");
    assert_eq!(row.text("/because"), "accepted, but the node is not ready: nothing confirms that it stopped");
    assert!(row["waitingHelps"] == false && row.text("/remedy").contains("fence"), "{row}");
    assert!(!run.stdout.contains("evicted"), "{run}");
}

#[tokio::test(start_paused = true)]
async fn c67_accepted_is_not_gone() {
    let sim = world().deployment_with("shop", "web", 3, slow(60, "20s")).done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(0).says("3 pods gone");
    assert!(run.elapsed >= secs(20), "{:?}", run.elapsed);
    let at = |fits: &dyn Fn(&EventKind) -> bool| -> Vec<u64> {
        run.events.iter().filter(|e| fits(&e.kind)).map(|e| e.elapsed_ms).collect()
    };
    let accepted = at(&|e| matches!(e, EventKind::PodStopping { .. }));
    let gone = at(&|e| matches!(e, EventKind::PodGone { how: PodExit::Evicted, .. }));
    let drained = at(&|e| matches!(e, EventKind::NodeEnded { .. }));
    assert_eq!((accepted.len(), gone.len(), drained.len()), (3, 3, 1));
    assert!(accepted.iter().all(|t| *t < 1000) && gone.iter().all(|t| *t >= 20_000), "{accepted:?} {gone:?}");
    assert!(gone.iter().all(|t| *t <= drained[0]));
    // Cut in between, the two are two numbers.
    let sim = world().deployment_with("shop", "web", 2, slow(60, "20s")).deployment("shop", "cart", 2).done();
    let run = drain(&sim, "node-0").timeout(10).run().await;
    run.exits(124).says("2 pods gone").says("accepted, still stopping (grace 1m)");
    assert_eq!(run.stdout.matches(" evicted").count(), 2, "kubectl's word for gone\n{run}");
    assert_eq!(run.stdout.matches("evicting pod").count(), 4);
}

#[tokio::test(start_paused = true)]
async fn c48_namespace_is_being_deleted() {
    // The namespace refuses what is created in it, evictions too, before its pods are marked.
    let sim = world().deployment_with("shop", "web", 2, slow(60, "10s")).deployment("other", "cart", 1).done();
    let name = |p: &Value| p.name().to_owned();
    let web: Vec<String> = sim.list("Pod").iter().filter(|p| p.namespace() == "shop").map(name).collect();
    let text =
        "pods \"web\" is forbidden: unable to create new content in namespace shop because it is being terminated";
    let causes = json!([{"reason": "NamespaceTerminating", "message": "namespace shop is being terminated", "field": "metadata.namespace"}]);
    let terminating = answered(403, "Forbidden", text, json!({"name": "web", "kind": "pods", "causes": causes}));
    sim.fault(Fault::on("POST", "/namespaces/shop/", terminating));
    let marked = move |sim: &Sim| web.iter().for_each(|name| assert!(sim.delete("Pod", "shop", name)));
    let run = drain(&sim, "node-0").at(secs(15), marked).run().await;
    run.exits(0).says("waits: its namespace is being deleted");
    assert_eq!(run.stderr.matches("its namespace is being deleted").count(), 1, "once for both\n{run}");
    // Marked, it is only waited for.
    assert!(run.evictions("web-").iter().all(|r| r.at <= secs(15)), "{run}");
    assert!(run.elapsed >= secs(25), "{:?}", run.elapsed);
    run.pod_is("cart-", "evicts", "");

    // The same code for want of a right is another thing: no wait helps.
    let sim = world().deployment("shop", "web", 1).deployment("other", "cart", 1).done();
    let text = "pods \"web\" is forbidden: User \"eve\" cannot create resource \"pods/eviction\" in API group \"\" in the namespace \"shop\"";
    sim.fault(Fault::on(
        "POST",
        "/namespaces/shop/",
        answered(403, "Forbidden", text, json!({"name": "web", "kind": "pods"})),
    ));
    let run = drain(&sim, "node-0").changes().run().await;
    run.exits(3).says("cannot create resource \"pods/eviction\"");
    run.pod_is("web-", "blocks", "Forbidden");
    assert_eq!(run.evictions("web-").len(), 1, "{run}");
    run.pod_is("cart-", "evicts", "");
}

#[tokio::test(start_paused = true)]
async fn c83_node_object_vanishes() {
    let sim = cluster("LiveMigrate")
        .vm("tenant-a", Vm::new("web-1").migration("hang"))
        .deployment_with("shop", "cart", 2, slow(300, "200s"))
        .deployment("shop", "fast", 1)
        .done();
    let vanishes = |sim: &Sim| assert!(sim.vanish("Node", "", "node-0"));
    let run = drain(&sim, "node-0").timeout(600).changes().at(secs(15), vanishes).run().await;
    run.exits(1).says("node node-0 was deleted during the drain");
    assert!(run.elapsed <= secs(16), "nothing is left to wait for: {:?}", run.elapsed);
    // Its VM is lost, not migrated; what was gone before is gone; the rest is not known to have stopped.
    let row = run.vm_is("web-1", "lost", "NodeNotReady");
    assert!(row["nodeAfter"].is_null(), "{row}");
    run.says("1 VM is lost with its node:");
    run.pod_is("fast-", "evicts", "");
    let row = run.pod_is("cart-", "pending", "Stopping");
    assert_eq!(row.text("/because"), "accepted, but its node is gone: nothing confirms that it stopped");
    run.says("failed after 15s; its Node object is gone").says("two guests corrupt one disk");
    assert!(!run.stderr.contains("goes on by itself") && !run.stderr.contains("same command again"), "{run}");
    assert_eq!(run.document.list("/nodes")[0]["vanished"], true);
    assert!(!run.stdout.contains("migrated") && !run.stdout.contains("node/node-0 drained"), "{run}");
    assert!(!run.stderr.contains("kubectl uncordon node-0"), "there is nothing to uncordon\n{run}");
    let end = run.ended;
    assert!(run.requests.iter().all(|r| r.at <= end + Duration::from_millis(1)));
}
