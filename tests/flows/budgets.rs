//! Disruption budgets: what waits, what never goes, and what a refusal costs.

use safe_drain::event::EventKind;
use safe_drain_sim::Json;
use safe_drain_sim::scenario::{Settings, start};
use serde_json::json;

use crate::harness::{drain, secs};
use crate::plain::world;

#[tokio::test(start_paused = true)]
async fn a_budget_that_recovers_is_waited_for_without_a_refusal() {
    let sim = world().deployment("shop", "web", 4).pdb("shop", "web", "web", json!({"maxUnavailable": 1})).done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(0).says("budget shop/web lets no more pods go for now");
    assert_eq!(run.evictions("web-").len(), 4, "{run}");
    assert!(run.evictions("web-").iter().all(|r| r.status == 201), "{run}");
    // One line for all of them (kubectl says it every five seconds).
    assert_eq!(run.stderr.matches("lets no more pods go for now").count(), 1, "{run}");
}

#[tokio::test(start_paused = true)]
async fn wait_blocked_waits_for_a_human() {
    let sim = world().deployment("shop", "web", 2).pdb("shop", "web", "web", json!({"maxUnavailable": 0})).done();
    let run = drain(&sim, "node-0")
        .timeout(120)
        .with(|o| o.wait_blocked = true)
        .changes()
        .at(secs(60), |sim| {
            sim.update("PodDisruptionBudget", "shop", "web", |p| p.put("/spec/maxUnavailable", 2));
        })
        .run()
        .await;
    run.exits(0);
    assert!(run.elapsed > secs(60) && run.elapsed < secs(65), "{:?}", run.elapsed);
    assert!(run.evictions("web-").len() <= 3, "{run}");

    let sim = world().deployment("shop", "web", 2).pdb("shop", "web", "web", json!({"maxUnavailable": 0})).done();
    let run = drain(&sim, "node-0").timeout(60).with(|o| o.wait_blocked = true).run().await;
    run.exits(3);
    assert!(run.elapsed >= secs(60), "{:?}", run.elapsed);
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_closed_for_good_while_the_drain_runs_blocks() {
    let sim = world().deployment("shop", "web", 2).pdb("shop", "web", "web", json!({"maxUnavailable": 1})).done();
    let run = drain(&sim, "node-0")
        .changes()
        .when(
            |e| matches!(e, EventKind::NodeCordoned { .. }),
            |sim| {
                sim.update("PodDisruptionBudget", "shop", "web", |p| p.put("/spec/maxUnavailable", 0));
            },
        )
        .run()
        .await;
    run.exits(3);
    run.pod_is("web-", "blocks", "BudgetNever");
    assert!(run.elapsed < secs(60), "{:?}", run.elapsed);
}

#[tokio::test(start_paused = true)]
async fn many_pods_cost_few_requests_and_no_refusal() {
    let sim = start("pods", Settings { budget: Some(10), ..Settings::default() }).unwrap();
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    let evictions = run.evictions("web-");
    assert_eq!(evictions.len(), 250);
    assert!(evictions.iter().all(|r| r.status == 201), "a refusal is a request for nothing");
    assert!(run.requests.len() <= 250 * 12 / 10 + 40, "{} requests", run.requests.len());
}
