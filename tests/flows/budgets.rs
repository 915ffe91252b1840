//! Disruption budgets: what waits, what never goes, and what a refusal costs.

use safe_drain::event::EventKind;
use safe_drain_sim::scenario::{Settings, start};
use safe_drain_sim::{Json, Options, PodSpec, Sim};
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
async fn a_budget_that_never_allows_blocks_at_once_and_the_rest_goes() {
    let sim = world()
        .deployment("shop", "web", 2)
        .pdb("shop", "web", "web", json!({"minAvailable": 2}))
        .deployment("shop", "cart", 2)
        .done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(3);
    assert!(run.elapsed < secs(3), "{:?}", run.elapsed);
    let row = run.pod_is("web-", "blocks", "BudgetNever");
    assert_eq!(row.list("/budgets"), ["shop/web"]);
    assert!(row.text("/remedy").contains("kubectl edit pdb web -n shop"), "{row}");
    run.pod_is("cart-", "evicts", "");
    assert!(run.evictions("web-").is_empty());
    assert!(run.cordoned("node-0"));
    run.says("kubectl safe-drain cancel node-0");
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
async fn two_budgets_over_one_pod_are_named() {
    let sim = world()
        .deployment("shop", "web", 2)
        .pdb("shop", "one", "web", json!({"maxUnavailable": 1}))
        .pdb("shop", "two", "web", json!({"maxUnavailable": 1}))
        .deployment("shop", "cart", 1)
        .done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(3);
    let row = run.pod_is("web-", "blocks", "MultipleBudgets");
    assert!(row.text("/because").contains("one and two"), "{row}");
    run.pod_is("cart-", "evicts", "");
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

fn unwatched() -> Sim {
    let options = Options { disruption_controller: false, ..Options::plain() };
    let sim = Sim::new(options).world().nodes(3).on("node-0").deployment("shop", "web", 2).done();
    sim.world().pdb("shop", "web", "web", json!({"maxUnavailable": 1})).done()
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_nobody_has_looked_at_blocks_after_five_minutes() {
    let sim = unwatched();
    let run = drain(&sim, "node-0").changes().timeout(900).run().await;
    run.exits(3);
    assert!(run.rows("pods").iter().all(|p| p.text("/cause") == "BudgetUnsynced"), "{run}");
    assert!(run.elapsed > secs(290) && run.elapsed < secs(340), "{:?}\n{run}", run.elapsed);
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_looked_at_late_wakes_its_pods() {
    let sim = unwatched();
    let run = drain(&sim, "node-0").at(secs(20), |sim| sim.options(|o| o.disruption_controller = true)).run().await;
    run.exits(0);
    assert!(run.elapsed < secs(25), "woken by the budget: {:?}\n{run}", run.elapsed);
}

#[tokio::test(start_paused = true)]
async fn unready_pods_under_a_strict_budget_are_explained() {
    let sim = world()
        .deployment_with("shop", "web", 2, PodSpec::new().unready())
        .pdb("shop", "web", "web", json!({"minAvailable": 1}))
        .done();
    let run = drain(&sim, "node-0").timeout(60).run().await;
    run.exits(3);
    let row = run.pod_is("web-", "blocks", "BudgetNever");
    assert!(row.text("/because").contains("ready") || row.text("/because").contains("health"), "{row}");
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
