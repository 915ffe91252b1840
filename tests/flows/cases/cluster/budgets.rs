//! Disruption budgets: never, not now, not known yet, too many, about pods that are not even ready.

use std::time::Duration;

use safe_drain::event::EventKind;
use safe_drain_sim::{Fault, Json, Options, PodSpec, Sim, Then};
use serde_json::{Value, json};

use super::answered;
use crate::harness::{drain, secs};
use crate::plain::world;

const VIOLATES: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// A refusal by a budget, with that as its cause.
fn refused(cause: &str) -> Then {
    answered(429, "TooManyRequests", VIOLATES, json!({"causes": [{"reason": "DisruptionBudget", "message": cause}]}))
}

#[tokio::test(start_paused = true)]
async fn c40_budget_without_head_room() {
    let budgets = [
        (json!({"minAvailable": 2}), "budget web wants 2 of 2 pods healthy, so none may ever go"),
        (json!({"maxUnavailable": 0}), "budget web allows no disruption at all (maxUnavailable 0)"),
        (json!({"minAvailable": "100%"}), "budget web wants 2 of 2 pods healthy, so none may ever go"),
    ];
    for (spec, why) in budgets {
        let sim =
            world().deployment("shop", "web", 2).pdb("shop", "web", "web", spec).deployment("shop", "cart", 2).done();
        let run = drain(&sim, "node-0").run().await;
        run.exits(3);
        assert!(run.elapsed < secs(3), "{:?}", run.elapsed);
        let row = run.pod_is("web-", "blocks", "BudgetNever");
        assert_eq!((row.list("/budgets"), &row["waitingHelps"]), ([json!("shop/web")].as_slice(), &json!(false)));
        assert!(row.text("/because").contains(why), "{row}");
        assert!(row.text("/remedy").contains("kubectl edit pdb web -n shop"), "{row}");
        run.pod_is("cart-", "evicts", "");
        // Said before anything is done, with the code of the drain; no request tells what the arithmetic tells.
        run.says("2 block").says("Blocked (waiting will not clear it):").says("kubectl safe-drain cancel node-0");
        run.preview.as_ref().unwrap().exits(3).prints("2 pods block");
        assert!(run.evictions("web-").is_empty() && run.cordoned("node-0"));
    }
    // Fewer healthy than there should be: that is "not now", and waiting helps.
    let sim = world().deployment("shop", "web", 3).pdb("shop", "web", "web", json!({"minAvailable": 2})).done();
    let name = sim.list("Pod").iter().find(|p| p.name().starts_with("web-")).unwrap().name().to_owned();
    sim.update("Pod", "shop", &name, |p| p.set_condition(json!({"type": "Ready", "status": "False"})));
    tokio::time::sleep(secs(1)).await;
    let ready = move |sim: &Sim| {
        sim.update("Pod", "shop", &name, |p| p.set_condition(json!({"type": "Ready", "status": "True"})));
    };
    let run = drain(&sim, "node-0").at(secs(20), ready).run().await;
    run.exits(0);
    let before = run.preview.as_ref().unwrap();
    let waiting = before.rows("pods").into_iter().find(|r| r.text("/outcome") == "waits").unwrap();
    assert_eq!((waiting.text("/cause"), &waiting["waitingHelps"]), ("BudgetExhausted", &json!(true)));
    assert_eq!(waiting.text("/because"), "budget web wants 2 healthy pods and has 2");
}

/// Two pods, and a budget that its controller has not looked at.
fn unwatched() -> Sim {
    let options = Options { disruption_controller: false, ..Options::plain() };
    let sim = Sim::new(options).world().nodes(3).on("node-0").deployment("shop", "web", 2).done();
    sim.world().pdb("shop", "web", "web", json!({"maxUnavailable": 1})).done()
}

#[tokio::test(start_paused = true)]
async fn c41_budget_that_is_still_being_processed() {
    // Looked at late: its event wakes the pods, not the 10 s that the server asks for.
    let sim = unwatched();
    let run = drain(&sim, "node-0").at(secs(20), |sim| sim.options(|o| o.disruption_controller = true)).run().await;
    run.exits(0);
    assert!(run.elapsed < secs(25), "woken by the budget: {:?}\n{run}", run.elapsed);
    run.preview.as_ref().unwrap().pod_is("web-", "waits", "BudgetUnsynced");
    assert_eq!(run.stderr.matches("has not been evaluated yet").count(), 1, "one line for both pods\n{run}");

    // Never looked at: one request at a time, no closer than the server asks, and after five minutes a hint.
    let sim = unwatched();
    let run = drain(&sim, "node-0").changes().timeout(900).run().await;
    run.exits(3).says("look at kube-controller-manager");
    assert!(run.rows("pods").iter().all(|p| p.text("/cause") == "BudgetUnsynced"), "{run}");
    assert!(run.elapsed > secs(290) && run.elapsed < secs(340), "{:?}\n{run}", run.elapsed);
    let posts: Vec<Duration> = run.evictions("").iter().map(|r| r.at).collect();
    assert!(posts.windows(2).all(|pair| pair[1] >= pair[0] + secs(10)), "{posts:?}");
    assert!(posts.len() < 25, "{} requests", posts.len());
}

#[tokio::test(start_paused = true)]
async fn c42_two_budgets_over_one_pod() {
    let sim = world()
        .deployment("shop", "web", 2)
        .pdb("shop", "one", "web", json!({"maxUnavailable": 1}))
        // An empty selector counts all pods of the namespace.
        .pdb("shop", "all", "", json!({"maxUnavailable": 1, "selector": {}}))
        .deployment("other", "cart", 1)
        .done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(3);
    let row = run.pod_is("web-", "blocks", "MultipleBudgets");
    assert!(row.text("/because").contains("the budgets all and one all count it"), "{row}");
    assert_eq!(row.list("/budgets"), ["shop/all", "shop/one"]);
    assert!(row.text("/remedy").contains("selectors"), "{row}");
    run.pod_is("cart-", "evicts", "");
    assert!(run.evictions("web-").is_empty(), "known without asking\n{run}");
    run.preview.as_ref().unwrap().exits(3).prints("2 pods block");

    // What only the server knows: a budget that comes between look and eviction.
    let sim = world().deployment("shop", "web", 1).pdb("shop", "one", "web", json!({"maxUnavailable": 1})).done();
    let text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    sim.fault(Fault::on("POST", "/pods/web-", Then::status(500, "", text)));
    let run = drain(&sim, "node-0").changes().run().await;
    run.exits(3).says("more than one disruption budget counts it");
    run.pod_is("web-", "blocks", "MultipleBudgets");
    assert!(run.elapsed < secs(3) && run.evictions("web-").len() == 1, "no retry fixes it\n{run}");
}

#[tokio::test(start_paused = true)]
async fn c43_budget_over_pods_that_are_not_ready() {
    let broken = |spec: Value| {
        world().deployment_with("shop", "web", 2, PodSpec::new().unready()).pdb("shop", "web", "web", spec).done()
    };
    let sim = broken(json!({"minAvailable": 1}));
    let run = drain(&sim, "node-0").timeout(60).run().await;
    run.exits(3);
    let row = run.pod_is("web-", "blocks", "BudgetNever");
    let why = "the pod is not ready, and budget web wants 1 healthy pods but has 0";
    assert!(row.text("/because").contains(why), "{row}");
    assert!(row.text("/remedy").contains("unhealthyPodEvictionPolicy AlwaysAllow"), "{row}");
    assert!(run.evictions("web-").is_empty(), "no way around the budget\n{run}");

    let sim = broken(json!({"minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert_eq!(run.evictions("web-").len(), 2, "{run}");

    // Enough healthy ones elsewhere: the server lets an unready pod go, whatever disruptionsAllowed says.
    let sim = world().deployment("shop", "web", 2).pdb("shop", "web", "web", json!({"minAvailable": 1})).done();
    let name = sim.list("Pod").iter().find(|p| p.name().starts_with("web-")).unwrap().name().to_owned();
    sim.update("Pod", "shop", &name, |p| p.set_condition(json!({"type": "Ready", "status": "False"})));
    tokio::time::sleep(secs(1)).await;
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert_eq!((run.evictions(&name).len(), run.evictions(&name)[0].status), (1, 201), "{run}");
}

#[tokio::test(start_paused = true)]
async fn c47_conflict_about_the_budget() {
    let text = "Operation cannot be fulfilled on poddisruptionbudgets.policy \"web\": the object has been modified; \
                please apply your changes to the latest version and try again";
    let details = json!({"name": "web", "group": "policy", "kind": "poddisruptionbudgets"});
    let conflict = answered(409, "Conflict", text, details);
    let late = answered(
        504,
        "Timeout",
        "Timeout: couldn't update PodDisruptionBudget \"web\" due to conflicts",
        json!({"retryAfterSeconds": 10}),
    );
    for busy in [conflict, late] {
        let sim = world().deployment("shop", "web", 2).pdb("shop", "web", "web", json!({"maxUnavailable": 1})).done();
        sim.fault(Fault::on("POST", "/eviction", busy).first(2));
        let run = drain(&sim, "node-0").run().await;
        run.exits(0).says("waits: the disruption budget web is being changed by others");
        let evictions = run.evictions("web-");
        assert_eq!(evictions.len(), 4, "tried again, not given up\n{run}");
        // Not about the pod: nobody reads it, and its UID is the same each time.
        assert!(run.asked("GET", "/pods/web-").is_empty(), "{run}");
        // Design: as many at a time as the budget's status allows, here one.
        let accepted: Vec<_> = evictions.iter().filter(|r| r.status == 201).collect();
        assert_eq!(accepted.len(), 2);
        assert!(accepted[1].at > accepted[0].at, "{run}");
    }
}

#[tokio::test(start_paused = true)]
async fn c66_answer_names_the_culprit() {
    // Its words are shown, whatever they are, once for all pods behind it.
    let sim = world().deployment("shop", "web", 3).pdb("shop", "web", "web", json!({"maxUnavailable": 3})).done();
    let cause = "The disruption budget web does not allow evicting pods currently (Paused): the team said no";
    sim.fault(Fault::on("POST", "/eviction", refused(cause)).between(secs(0), secs(40)));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0).says("the team said no");
    assert_eq!(run.stderr.matches("the team said no").count(), 1, "{run}");
    let cause_of = |e: &EventKind| matches!(e, EventKind::PodWaiting { because, .. } if because.contains("(Paused): the team said no"));
    assert!(run.event(cause_of).is_some());

    // Twenty pods behind two budgets are two lines, in the preview and at the end.
    let sim = world()
        .deployment("shop", "web", 10)
        .pdb("shop", "web", "web", json!({"maxUnavailable": 0}))
        .deployment("shop", "cart", 10)
        .pdb("shop", "cart", "cart", json!({"minAvailable": 10}))
        .done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(3);
    let preview = run.preview.as_ref().unwrap();
    for text in [&preview.stdout, &run.stderr] {
        for budget in ["budget web allows no disruption", "budget cart wants 10 of 10"] {
            let lines = text.lines().filter(|l| l.contains(budget)).count();
            assert!(lines > 0 && lines <= 2, "{budget}\n{run}");
        }
    }
    preview.prints("10 pods block: budget cart wants 10 of 10 pods healthy");
    run.says("and 7 more: budget web allows no disruption at all (maxUnavailable 0)");
}
