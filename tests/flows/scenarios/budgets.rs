//! Budgets as the real disruption controller counts them.

use safe_drain::event::EventKind;
use safe_drain::outcome::Cause;
use safe_drain_sim::{Json, PodSpec, object};
use serde_json::json;

use super::{Act, Stage};
use crate::harness::secs;

pub async fn budget_waits(s: &Stage) {
    s.nodes(1).await;
    s.deployment("web", 4, PodSpec::new()).await;
    s.budget("web", "web", json!({"maxUnavailable": 1})).await;
    s.settle().await;
    s.nodes(1).await;
    let run = s.run(s.drain(0).timeout(120)).await;
    run.exits(0);
    assert_eq!(run.evictions("web-").len(), 4, "no refusal\n{run}");
}

pub async fn budget_never(s: &Stage) {
    s.fast_nodes(1).await;
    s.deployment("web", 2, PodSpec::new()).await;
    s.budget("web", "web", json!({"maxUnavailable": 0})).await;
    s.deployment("cart", 1, PodSpec::new()).await;
    s.settle().await;
    s.fast_nodes(1).await;
    let run = s.run(s.drain(0).timeout(120)).await;
    run.exits(3);
    let row = run.pod_is("web-", "blocks", "BudgetNever");
    assert_eq!(row.list("/budgets"), [json!(format!("{}/web", s.ns()))], "{row}");
    run.pod_is("cart-", "evicts", "");
}

pub async fn two_budgets(s: &Stage) {
    s.fast_nodes(1).await;
    s.deployment("web", 2, PodSpec::new()).await;
    // A change of a pod has only one of its budgets counted again: these find it as it will be.
    s.settle().await;
    s.budget("one", "web", json!({"maxUnavailable": 1})).await;
    s.budget("two", "web", json!({"maxUnavailable": 1})).await;
    s.settle().await;
    s.fast_nodes(1).await;
    let run = s.run(s.drain(0).timeout(120)).await;
    run.exits(3);
    let row = run.pod_is("web-", "blocks", "MultipleBudgets");
    assert_eq!(row.list("/budgets").len(), 2, "{row}");
}

pub async fn budget_not_observed(s: &Stage) {
    s.fast_nodes(1).await;
    s.deployment("web", 2, PodSpec::new()).await;
    s.settle().await;
    s.fast_nodes(1).await;
    s.alone().await;
    s.act(Act::Controllers(false)).await;
    s.act(Act::Create(object::budget(s.ns(), "web", "web", json!({"maxUnavailable": 1})))).await;
    let run = s.run(s.drain(0).timeout(120).later(secs(8), s.doing(Act::Controllers(true)))).await;
    run.exits(0);
    assert!(run.evictions("web-").iter().any(|r| r.status == 429), "{run}");
    let unsynced = |e: &EventKind| matches!(e, EventKind::PodWaiting { cause: Cause::BudgetUnsynced, .. });
    assert!(run.event(unsynced).is_some(), "{run}");
}
