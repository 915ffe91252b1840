//! The scheduler and the workload controllers.

mod support;

use safe_drain_sim::{Json, Options, PodSpec, Sim};
use serde_json::json;
use support::{cordon, evict, pods, sleep};

fn condition(sim: &Sim, ns: &str, pod: &str) -> String {
    sim.get("Pod", ns, pod)
        .and_then(|p| p.condition("PodScheduled").map(|c| c.text("/message").to_owned()))
        .unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn says_why_no_node_fits_and_looks_again() {
    let sim = Sim::new(Options::plain())
        .world()
        .nodes(3)
        .change("Node", "", "node-0", |n| n.put("/spec/unschedulable", true))
        .change("Node", "", "node-1", |n| {
            n.put("/spec/taints", json!([{"key": "gpu", "value": "only", "effect": "NoSchedule"}]));
        })
        .change("Node", "", "node-2", |n| n.put("/status/allocatable/pods", "0"))
        .volume("shop", "disk", "ReadWriteOnce", Some("node-0"))
        .pod("shop", "p", PodSpec::new())
        .pod("shop", "q", PodSpec::new().claim("disk"))
        .done();
    let text = condition(&sim, "shop", "p");
    assert!(text.starts_with("0/3 nodes are available: 1 Too many pods, 1 node(s) had untolerated taint {gpu: only}, 1 node(s) were unschedulable."), "{text}");
    sim.update("Node", "", "node-0", |n| n.cut("/spec/unschedulable"));
    sleep(1.0).await;
    for name in ["p", "q"] {
        assert_eq!(sim.get("Pod", "shop", name).unwrap().text("/spec/nodeName"), "node-0");
    }
}

#[tokio::test(start_paused = true)]
async fn volumes_pin_and_stateful_sets_wait_for_their_namesake() {
    let sim = Sim::new(Options::plain())
        .world()
        .nodes(2)
        .volume("shop", "disk", "ReadWriteOnce", Some("node-0"))
        .stateful_set_with("shop", "db", 1, PodSpec::new().claim("disk"))
        .done();
    let uid = sim.get("Pod", "shop", "db-0").unwrap().uid().to_owned();
    cordon(&sim, "node-0").await;
    assert_eq!(evict(&sim, "shop", "db-0").await.status, 201);
    sleep(0.5).await;
    assert_eq!(sim.get("Pod", "shop", "db-0").unwrap().uid(), uid, "the old one first");
    sleep(1.0).await;
    let text = condition(&sim, "shop", "db-0");
    assert!(
        text.contains("1 node(s) were unschedulable")
            && text.contains("1 node(s) didn't match PersistentVolume's node affinity"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn daemon_pods_come_back_to_a_cordoned_node() {
    let sim = Sim::new(Options::plain()).world().nodes(2).daemon_set("kube-system", "agent").done();
    cordon(&sim, "node-0").await;
    let on = |sim: &Sim| pods(sim, "kube-system").into_iter().find(|p| p.text("/spec/nodeName") == "node-0");
    let old = on(&sim).unwrap();
    assert_eq!(evict(&sim, "kube-system", old.name()).await.status, 201);
    sleep(2.0).await;
    let new = on(&sim).unwrap();
    assert!(new.uid() != old.uid() && new.is_true("Ready"));
}

#[tokio::test(start_paused = true)]
async fn two_hundred_and_fifty_pods_leave_a_node() {
    let settings = safe_drain_sim::scenario::Settings { options: Options::plain(), pods: Some(250), budget: Some(25) };
    let sim = safe_drain_sim::scenario::start("pods", settings).unwrap();
    cordon(&sim, "node-0").await;
    let old: Vec<String> = pods(&sim, "load").iter().map(|p| p.name().to_owned()).collect();
    assert_eq!(old.len(), 250);
    let mut left = old.clone();
    while !left.is_empty() {
        let mut next = Vec::new();
        for name in left {
            if evict(&sim, "load", &name).await.status != 201 {
                next.push(name);
            }
        }
        left = next;
        sleep(0.1).await;
    }
    sleep(2.0).await;
    assert!(pods(&sim, "load").iter().all(|p| p.text("/spec/nodeName") != "node-0"));
    assert_eq!(pods(&sim, "load").len(), 250);
}
