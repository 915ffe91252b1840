//! What a budget will answer.

use crate::facts::testing::{budget, owner, pod};
use crate::facts::{BudgetFacts, IntOrPercent, PodFacts, PodPhase, UnhealthyPolicy};
use crate::forecast::budget::{BudgetForecast, PodBudgets, forecast};
use crate::outcome::Cause;

fn one(pod: &PodFacts, budget: &BudgetFacts) -> BudgetForecast {
    match forecast(pod, [budget].into_iter()) {
        PodBudgets::One(_, forecast) => forecast,
        PodBudgets::Free | PodBudgets::Multiple(_) => panic!("expected one budget"),
    }
}

fn never(forecast: &BudgetForecast) -> Option<Cause> {
    match forecast {
        BudgetForecast::Never { cause, .. } => Some(*cause),
        BudgetForecast::AllowedNow | BudgetForecast::AfterRecovery { .. } | BudgetForecast::Unknown => None,
    }
}

#[test]
fn allowed_now_or_after_recovery() {
    assert_eq!(one(&pod("a"), &budget("b")), BudgetForecast::AllowedNow);
    assert_eq!(
        one(&pod("a"), &budget("b").status(0, 2, 2, 3)),
        BudgetForecast::AfterRecovery { why: "budget b wants 2 healthy pods and has 2".into() }
    );
    assert_eq!(
        one(&pod("a"), &budget("b").status(0, 1, 2, 3)),
        BudgetForecast::AfterRecovery { why: "budget b wants 2 healthy pods and has 1".into() },
        "others may recover"
    );
}

#[test]
fn never_as_it_stands() {
    let max =
        |value| budget("b").status(0, 3, 3, 3).with(|b| (b.min_available, b.max_unavailable) = (None, Some(value)));
    let min = |value| budget("b").status(0, 1, 1, 1).with(|b| b.min_available = Some(value));
    let rows = [
        ("maxUnavailable 0", max(IntOrPercent::Int(0))),
        ("maxUnavailable 0%", max(IntOrPercent::Percent(0))),
        ("one replica, minAvailable 1", min(IntOrPercent::Int(1))),
        ("minAvailable 100%", min(IntOrPercent::Percent(100))),
        ("minAvailable above the replicas", budget("b").status(0, 3, 5, 3)),
        ("minAvailable 100% before a recovery", budget("b").status(0, 2, 3, 3)),
    ];
    for (what, budget) in rows {
        assert_eq!(never(&one(&pod("a"), &budget)), Some(Cause::BudgetNever), "{what}");
    }
    let broken = budget("b").status(0, 0, 0, 0).with(|b| b.sync_failed = Some("no scale".into()));
    assert_eq!(never(&one(&pod("a"), &broken)), Some(Cause::BudgetBroken));
}

#[test]
fn nothing_expected_is_not_never() {
    assert_eq!(never(&one(&pod("a"), &budget("b").status(0, 0, 0, 0))), None);
}

#[test]
fn unready_pods_follow_the_policy() {
    let broken_app = budget("b").status(0, 0, 2, 3);
    let unready = pod("a").unready();
    assert_eq!(never(&one(&unready, &broken_app)), Some(Cause::BudgetNever));
    assert_eq!(never(&one(&pod("a"), &broken_app)), None, "a ready pod only waits");
    let always = broken_app.with(|b| b.unhealthy = UnhealthyPolicy::AlwaysAllow);
    assert_eq!(one(&unready, &always), BudgetForecast::AllowedNow);
    assert_eq!(one(&unready, &budget("b").status(0, 2, 2, 3)), BudgetForecast::AllowedNow, "enough healthy others");
    let nothing_wanted = one(&unready, &budget("b").status(0, 0, 0, 0));
    assert!(matches!(nothing_wanted, BudgetForecast::AfterRecovery { .. }), "with nothing wanted the rule is off");
}

#[test]
fn an_unobserved_budget_is_unknown() {
    assert_eq!(one(&pod("a"), &budget("b").with(|b| b.observed = false)), BudgetForecast::Unknown);
    assert_eq!(one(&pod("a"), &budget("b").with(|b| b.allowed = None)), BudgetForecast::Unknown);
}

#[test]
fn two_budgets_refuse_for_ever_but_kubevirts_own_does_not_count() {
    let two = [budget("a"), budget("b")];
    let keys = two.iter().map(|b| b.key.clone()).collect();
    assert_eq!(forecast(&pod("x"), two.iter()), PodBudgets::Multiple(keys));
    let own = budget("b").with(|b| b.owner = Some(owner("kubevirt.io/v1", "VirtualMachineInstance", "db-0")));
    assert!(matches!(forecast(&pod("x"), [budget("a"), own.clone()].iter()), PodBudgets::One(..)));
    assert_eq!(forecast(&pod("x"), [own].iter()), PodBudgets::Free);
}

#[test]
fn pods_that_do_not_run_ask_no_budget() {
    let none = budget("b").status(0, 0, 1, 1);
    for pod in [pod("a").finished(), pod("a").deleted(-10), pod("a").with(|p| p.phase = PodPhase::Pending)] {
        assert_eq!(forecast(&pod, [&none].into_iter()), PodBudgets::Free);
    }
}

#[test]
fn the_remedy_fits_the_arithmetic() {
    let remedy = |budget: &BudgetFacts| match one(&pod("a"), budget) {
        BudgetForecast::Never { remedy, .. } => remedy,
        BudgetForecast::AllowedNow | BudgetForecast::AfterRecovery { .. } | BudgetForecast::Unknown => String::new(),
    };
    let max = budget("b").status(0, 3, 3, 3).with(|b| {
        (b.min_available, b.max_unavailable) = (None, Some(IntOrPercent::Int(0)));
    });
    assert!(!remedy(&max).contains("replica") && remedy(&max).contains("maxUnavailable 1"), "{}", remedy(&max));
    let min = budget("b").status(0, 1, 1, 1).with(|b| b.min_available = Some(IntOrPercent::Int(1)));
    assert!(remedy(&min).ends_with("or add a replica"), "{}", remedy(&min));
    let share = budget("b").status(0, 3, 3, 3).with(|b| b.min_available = Some(IntOrPercent::Percent(100)));
    assert!(!remedy(&share).contains("replica"), "{}", remedy(&share));
}
