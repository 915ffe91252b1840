//! Pods that are no VMs.

use std::num::NonZeroUsize;

use safe_drain::event::EventKind;
use safe_drain::settings::{LabelSelector, Targets};
use safe_drain_sim::scenario::{Settings, start};
use safe_drain_sim::{Json, Options, PodSpec, Sim, World};
use serde_json::json;

use crate::harness::{drain, secs};

pub fn world() -> World {
    Sim::new(Options::plain()).world().nodes(3).on("node-0")
}

#[tokio::test(start_paused = true)]
async fn plain_pods_are_drained() {
    let sim = start("plain", Settings::default()).unwrap();
    let run = drain(&sim, "node-0").run().await;
    run.exits(0).prints("node/node-0 cordoned\n").prints("node/node-0 drained\n").says("kubectl uncordon node-0");
    assert_eq!(run.evictions("").len(), 6);
    run.pod_is("agent-", "stays", "DaemonSet");
    assert!(run.elapsed < secs(2), "{:?}", run.elapsed);
    assert!(!run.stderr.contains("KubeVirt"), "{run}");
}

#[tokio::test(start_paused = true)]
async fn one_of_each_sort() {
    let sim = start("mixed", Settings::default()).unwrap();
    let run = drain(&sim, "node-0").run().await;
    run.exits(4).changed_nothing().says("--force").says("--delete-emptydir-data");
    run.pod_is("bare", "refused", "Unmanaged");
    run.pod_is("cache-", "refused", "LocalData");
    run.pod_is("static-node-0", "stays", "MirrorPod");
    assert!(!run.cordoned("node-0"));

    let run = drain(&sim, "node-0").with(|o| o.force = true).run().await;
    run.exits(4).changed_nothing();

    let both = |o: &mut safe_drain::settings::DrainOptions| {
        o.force = true;
        o.delete_emptydir_data = true;
    };
    let run = drain(&sim, "node-0").with(both).run().await;
    run.exits(0);
    assert!(sim.get("Pod", "shop", "bare").is_none(), "gone for good");
    run.pod_is("static-node-0", "stays", "MirrorPod");
    assert!(run.evictions("static-").is_empty() && run.evictions("agent-").is_empty());
    // A finished pod is swept, too.
    assert!(sim.get("Pod", "shop", "done").is_none(), "{run}");
}

#[tokio::test(start_paused = true)]
async fn pod_selector_leaves_the_rest_out_and_says_so() {
    let sim = start("mixed", Settings::default()).unwrap();
    let run = drain(&sim, "node-0").with(|o| o.pod_selector = LabelSelector::parse("app=web").ok()).run().await;
    run.exits(0).says("other pods remain");
    assert_eq!(run.evictions("web-").len(), 2);
    assert_eq!(run.evictions("").len(), 2);
    run.pod_is("bare", "not-selected", "");
}

#[tokio::test(start_paused = true)]
async fn own_pod_stays() {
    let sim = world().deployment("ops", "drainer", 1).deployment("shop", "web", 1).done();
    let uid = sim.list("Pod").iter().find(|p| p.namespace() == "ops").unwrap().uid().to_owned();
    let run = drain(&sim, "node-0").own_pod(&uid).run().await;
    run.exits(0);
    run.pod_is("drainer-", "stays", "OwnPod");
    assert!(run.evictions("drainer-").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_successor_under_the_same_name_is_never_touched() {
    // The set's pod is replaced between the list and its turn: the eviction by UID must not hit the successor.
    let sim = world()
        .stateful_set_with("shop", "db", 1, PodSpec::new().tolerates_everything())
        .deployment("shop", "web", 1)
        .done();
    let old = sim.get("Pod", "shop", "db-0").unwrap().uid().to_owned();
    let run = drain(&sim, "node-0")
        .changes()
        .when(
            |e| matches!(e, EventKind::Planned { .. }),
            |sim| {
                sim.vanish("Pod", "shop", "db-0");
            },
        )
        .run()
        .await;
    assert!(run.exit == 0 || run.exit == 3, "{run}");
    for r in run.evictions("db-0") {
        assert_eq!(r.body.as_ref().unwrap().text("/deleteOptions/preconditions/uid"), old, "{run}");
        assert_ne!(r.status, 201, "{run}");
    }
    let now = sim.get("Pod", "shop", "db-0").expect("its successor lives");
    assert!(!now.deleting());
    assert_ne!(now.uid(), old);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_posted_after_the_deadline() {
    let sim = world().deployment("shop", "web", 3).pdb("shop", "web", "web", json!({"maxUnavailable": 1})).done();
    // Successors find no node: the budget never recovers, so two pods wait when the time is up.
    sim.update("Node", "", "node-1", |n| n.put("/spec/unschedulable", true));
    sim.update("Node", "", "node-2", |n| n.put("/spec/unschedulable", true));
    let run = drain(&sim, "node-0").timeout(20).run().await;
    run.exits(124);
    let end = run.first_write().unwrap() + secs(20);
    assert!(run.writes().iter().all(|r| r.at <= end), "{run}");
    assert_eq!(run.rows("pods").iter().filter(|p| p.text("/outcome") == "pending").count(), 2, "{run}");
    // What was open a moment ago clears now: nobody is there to use it.
    sim.update("Node", "", "node-1", |n| n.put("/spec/unschedulable", false));
    tokio::time::sleep(secs(60)).await;
    assert_eq!(sim.requests().iter().filter(|r| r.at > end + secs(2)).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn grace_and_deletion_apply_to_plain_pods() {
    let sim = world().deployment("shop", "web", 2).pdb("shop", "web", "web", json!({"maxUnavailable": 0})).done();
    let run = drain(&sim, "node-0")
        .with(|o| {
            o.disable_eviction = true;
            o.grace_period = Some(3);
        })
        .run()
        .await;
    run.exits(0).prints(" deleted");
    let deleted = run.asked("DELETE", "/pods/web-");
    assert_eq!(deleted.len(), 2);
    for r in deleted {
        let body = r.body.as_ref().unwrap();
        assert_eq!(body.int("/gracePeriodSeconds"), Some(3));
        assert!(!body.text("/preconditions/uid").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_being_deleted_for_long_can_be_skipped() {
    let stuck = PodSpec::new().grace(10).annotation("lab/stop", "3000s");
    let sim = world().deployment_with("shop", "web", 1, stuck).deployment("shop", "cart", 1).done();
    // Its kubelet is down: it never goes.
    sim.update("Node", "", "node-0", |n| n.set_annotation("lab/kubelet", Some("down")));
    let name = sim.list("Pod").iter().find(|p| p.name().starts_with("web-")).unwrap().name().to_owned();
    sim.delete("Pod", "shop", &name);
    tokio::time::sleep(secs(100)).await;
    let run = drain(&sim, "node-0").timeout(30).with(|o| o.skip_wait_for_delete = Some(secs(20))).run().await;
    run.pod_is("web-", "skipped", "Stopping");
    assert!(run.evictions("web-").is_empty());
}

#[tokio::test(start_paused = true)]
async fn targets_that_match_nothing_are_named_and_nothing_changes() {
    let sim = start("plain", Settings::default()).unwrap();
    let run = drain(&sim, "node-7").without_preview().run().await;
    run.exits(2).changed_nothing().says("node \"node-7\" not found");
    let run = drain(&sim, "node-0")
        .without_preview()
        .with(|o| o.targets = Targets::Selector(LabelSelector::parse("pool=none").unwrap()))
        .run()
        .await;
    run.exits(2).changed_nothing().says("no node matches -l pool=none");
}

#[tokio::test(start_paused = true)]
async fn a_selector_drains_what_it_matches() {
    let sim = Sim::new(Options::plain())
        .world()
        .node_with("node-0", |n| n.set_label("pool", "old"))
        .node_with("node-1", |n| n.set_label("pool", "old"))
        .node("node-2")
        .on("node-1")
        .deployment("shop", "web", 2)
        .done();
    let run = drain(&sim, "")
        .with(|o| {
            o.targets = Targets::Selector(LabelSelector::parse("pool=old").unwrap());
            o.parallel = NonZeroUsize::new(2).unwrap();
        })
        .run()
        .await;
    run.exits(0).prints("node/node-0 drained").prints("node/node-1 drained");
    assert!(!run.cordoned("node-2"));
}

#[tokio::test(start_paused = true)]
async fn only_if_clear_changes_nothing_where_something_blocks() {
    let sim = world()
        .deployment("shop", "web", 2)
        .pdb("shop", "web", "web", json!({"maxUnavailable": 0}))
        .deployment("shop", "cart", 1)
        .done();
    let run = drain(&sim, "node-0").with(|o| o.only_if_clear = true).run().await;
    run.exits(4).changed_nothing().says("--only-if-clear");
}
