//! Evictions and budgets: the arithmetic, the order of checks, the texts.
#![allow(clippy::unwrap_used, reason = "a broken answer ends the test")]

mod support;

use safe_drain_sim::{Json, Options, PodSpec, Sim};
use serde_json::json;
use support::{call, evict, evict_with, pods, sleep};

fn plain() -> safe_drain_sim::World {
    Sim::new(Options::plain()).world().nodes(3).on("node-0")
}

fn status(sim: &Sim, name: &str) -> (i64, i64, i64, i64) {
    let b = sim.get("PodDisruptionBudget", "shop", name).unwrap();
    let n = |f: &str| b.int(&format!("/status/{f}")).unwrap_or(-1);
    (n("disruptionsAllowed"), n("currentHealthy"), n("desiredHealthy"), n("expectedPods"))
}

#[tokio::test(start_paused = true)]
async fn statuses_of_all_sorts() {
    let sim = plain()
        .deployment("shop", "web", 5)
        .pdb("shop", "max1", "web", json!({"maxUnavailable": 1}))
        .pdb("shop", "max0", "web", json!({"maxUnavailable": 0}))
        .pdb("shop", "max30", "web", json!({"maxUnavailable": "30%"}))
        .pdb("shop", "min3", "web", json!({"minAvailable": 3}))
        .pdb("shop", "min50", "web", json!({"minAvailable": "50%"}))
        .pdb("shop", "min9", "web", json!({"minAvailable": 9}))
        .pdb("shop", "none", "other", json!({"minAvailable": 1}))
        .daemon_set("shop", "agent")
        .pdb("shop", "daemons", "agent", json!({"maxUnavailable": 1}))
        .done();
    assert_eq!(status(&sim, "max1"), (1, 5, 4, 5));
    assert_eq!(status(&sim, "max0"), (0, 5, 5, 5));
    assert_eq!(status(&sim, "max30"), (2, 5, 3, 5));
    assert_eq!(status(&sim, "min3"), (2, 5, 3, 5));
    assert_eq!(status(&sim, "min50"), (2, 5, 3, 5));
    assert_eq!(status(&sim, "min9"), (0, 5, 9, 5));
    assert_eq!(status(&sim, "none"), (0, 0, 1, 0));
    let failed = sim.get("PodDisruptionBudget", "shop", "daemons").unwrap();
    assert_eq!(failed.condition("DisruptionAllowed").unwrap().text("/reason"), "SyncFailed");
    assert_eq!(
        failed.condition("DisruptionAllowed").unwrap().text("/message"),
        "daemonsets.apps does not implement the scale subresource"
    );
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_and_again_once_the_successor_is_ready() {
    let sim = plain().deployment("shop", "web", 3).pdb("shop", "web", "web", json!({"maxUnavailable": 1})).done();
    let all: Vec<String> = pods(&sim, "shop").iter().map(|p| p.name().to_owned()).collect();
    assert_eq!(evict(&sim, "shop", &all[0]).await.status, 201);
    let early = evict(&sim, "shop", &all[1]).await;
    assert_eq!(
        early.cause(),
        "The disruption budget web does not allow evicting pods currently",
        "before the budget was counted again"
    );
    sleep(0.02).await;
    let refused = evict(&sim, "shop", &all[1]).await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.cause(), "The disruption budget web needs 2 healthy pods and has 2 currently");
    let gone = sim.get("Pod", "shop", &all[0]).unwrap();
    assert!(gone.deleting());
    assert_eq!(gone.condition("DisruptionTarget").unwrap().text("/reason"), "EvictionByEvictionAPI");
    sleep(0.18).await;
    assert_eq!(status(&sim, "web"), (0, 2, 2, 3));
    sleep(0.3).await; // the successor needs 20 ms to be bound and 300 ms to start
    assert_eq!(status(&sim, "web"), (1, 3, 2, 3));
    assert_eq!(evict(&sim, "shop", &all[1]).await.status, 201);
    sleep(3.0).await;
    assert!(sim.get("Pod", "shop", &all[0]).is_none() && sim.get("Pod", "shop", &all[1]).is_none());
    assert_eq!(pods(&sim, "shop").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn order_of_checks() {
    let sim = plain()
        .deployment("shop", "web", 2)
        .pdb("shop", "one", "web", json!({"maxUnavailable": 1}))
        .pod("shop", "done", PodSpec::new().label("app", "web").finished("Succeeded"))
        .done();
    let pod = pods(&sim, "shop")[0].clone();
    let name = pod.name();
    let path = format!("/api/v1/namespaces/shop/pods/{name}/eviction");

    let mismatch = call(&sim, "POST", &path, Some(json!({"metadata": {"name": "other"}}))).await;
    assert_eq!((mismatch.status, mismatch.message()), (400, "name in URL does not match name in Eviction object"));

    // Dry run, in the query or in the body, spends nothing.
    assert_eq!(evict_with(&sim, "shop", name, json!({"dryRun": ["All"]})).await.status, 201);
    let body = json!({"metadata": {"name": name}});
    assert_eq!(call(&sim, "POST", &format!("{path}?dryRun=All"), Some(body)).await.status, 201);
    assert_eq!(status(&sim, "one").0, 1);
    let odd = call(
        &sim,
        "POST",
        &format!("{path}?dryRun=All"),
        Some(json!({"metadata": {"name": name}, "deleteOptions": {"dryRun": ["x"]}})),
    )
    .await;
    assert_eq!(
        (odd.status, odd.message()),
        (500, "Non-matching dry-run options in request and content: [All] and [x]")
    );

    // A wrong UID is found out last: it costs a disruption, which comes back after two minutes.
    let wrong = evict_with(&sim, "shop", name, json!({"preconditions": {"uid": "0"}})).await;
    assert_eq!(wrong.status, 409);
    assert_eq!(wrong.body.text("/details/kind"), "Pod");
    assert_eq!(evict(&sim, "shop", name).await.status, 429);
    sleep(119.0).await;
    assert_eq!(status(&sim, "one").0, 0);
    sleep(3.0).await;
    assert_eq!(status(&sim, "one").0, 1);

    // Finished pods skip budgets, two budgets on one pod are an error.
    assert_eq!(evict(&sim, "shop", "done").await.status, 201);
    sim.create(json!({"kind": "PodDisruptionBudget", "metadata": {"name": "two", "namespace": "shop"},
        "spec": {"maxUnavailable": 1, "selector": {}}}));
    let two = evict(&sim, "shop", name).await;
    assert_eq!((two.status, two.body.text("/reason")), (500, ""));
    assert!(two.message().starts_with("This pod has more than one PodDisruptionBudget"));
    assert_eq!(evict(&sim, "shop", "nobody").await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_was_not_observed_asks_for_patience() {
    let sim = plain().deployment("shop", "web", 2).done();
    sim.options(|o| o.disruption_controller = false);
    sim.create(json!({"kind": "PodDisruptionBudget", "metadata": {"name": "new", "namespace": "shop"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}}));
    let name = pods(&sim, "shop")[0].name().to_owned();
    sleep(1.0).await;
    let got = evict(&sim, "shop", &name).await;
    assert_eq!((got.status, got.header("Retry-After")), (429, "10"));
    assert_eq!(got.cause(), "The disruption budget new is still being processed by the server.");
    sim.options(|o| o.disruption_controller = true);
    sleep(0.1).await;
    assert_eq!(evict(&sim, "shop", &name).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn unready_pods_by_policy() {
    let world = plain().deployment_with("shop", "bad", 2, PodSpec::new().unready());
    let sim = world.pdb("shop", "bad", "bad", json!({"minAvailable": 1})).done();
    let name = pods(&sim, "shop")[0].name().to_owned();
    assert_eq!(evict(&sim, "shop", &name).await.status, 429, "IfHealthyBudget is the default");
    sim.update("PodDisruptionBudget", "shop", "bad", |b| b.put("/spec/unhealthyPodEvictionPolicy", "AlwaysAllow"));
    assert_eq!(evict(&sim, "shop", &name).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_ignored_with_a_warning_and_recorded() {
    let sim = plain().pod("shop", "bare", PodSpec::new()).done();
    let body = json!({"metadata": {"name": "bare"}, "delete_options": {"dryRun": ["All"]}});
    let got = call(&sim, "POST", "/api/v1/namespaces/shop/pods/bare/eviction", Some(body)).await;
    assert_eq!((got.status, got.header("Warning")), (201, "299 - \"unknown field \\\"delete_options\\\"\""));
    let last = sim.requests().pop().unwrap();
    assert_eq!((last.status, last.user_agent.as_str()), (201, "test/1.0"));
    assert!(last.warning.is_some() && last.is_write());
}

#[tokio::test(start_paused = true)]
async fn grace_finalizers_and_dead_nodes() {
    let sim = plain()
        .pod("shop", "slow", PodSpec::new().annotation("lab/stop", "20s"))
        .pod("shop", "cut", PodSpec::new().annotation("lab/stop", "20s").grace(3))
        .pod("shop", "held", PodSpec::new().finalizer("example.com/hold"))
        .done();
    for name in ["slow", "cut", "held"] {
        assert_eq!(evict(&sim, "shop", name).await.status, 201);
    }
    let left = |sim: &Sim| -> Vec<String> {
        sim.list("Pod").iter().filter(|p| p.namespace() == "shop").map(|p| p.name().to_owned()).collect()
    };
    sleep(2.5).await;
    assert_eq!(left(&sim), ["cut", "held", "slow"]);
    let held = sim.get("Pod", "shop", "held").unwrap();
    assert_eq!(held.int("/metadata/deletionGracePeriodSeconds"), Some(0));
    assert_eq!(held.text("/status/phase"), "Succeeded", "nothing runs in it any more");
    sleep(1.0).await;
    assert_eq!(left(&sim), ["held", "slow"]);
    sim.update("Pod", "shop", "held", |p| p.cut("/metadata/finalizers"));
    assert_eq!(left(&sim), ["slow"]);
    sim.update("Node", "", "node-0", |n| n.set_annotation("lab/kubelet", Some("down")));
    sleep(100.0).await;
    assert_eq!(left(&sim), ["slow"], "nothing stops where no kubelet is");
    sim.update("Node", "", "node-0", |n| n.set_annotation("lab/kubelet", None));
    sleep(21.0).await;
    assert!(left(&sim).is_empty());
}
