//! Disruption budgets: never more in flight than allowed, and awake on their events.

use super::*;
use crate::facts::testing::{budget, launcher, pod, vm, vmi, world};
use crate::outcome::{Cause, PodOutcome, VmOutcome};

fn crowd(pods: usize, allowed: i64) -> Rig {
    let mut cluster = world().budget(budget("web").status(allowed, 60, 40, 60));
    for n in 0..pods {
        cluster = cluster.pod(pod(&format!("web-{n:02}")));
    }
    Rig::one(cluster).cordoned()
}

fn allows(rig: &mut Rig, allowed: i64, disrupted: &[&str]) {
    let disrupted = disrupted.iter().map(|n| (*n).to_owned()).collect();
    rig.budget(budget("web").status(allowed, 60, 40, 60).with(|b| b.disrupted = disrupted));
}

#[test]
fn no_more_evictions_than_allowed_are_unanswered_or_unshown() {
    let mut rig = crowd(60, 10);
    assert_eq!(rig.evictions().len(), 10);
    rig.evict("web-00", EvictionAnswer::Accepted);
    // Accepted, and the budget does not show it yet: its disruption is still taken.
    assert_eq!(rig.evictions(), [""; 0]);
    // The pod's watch is faster than the budget's.
    rig.stopping(&pod("web-00"));
    assert_eq!(rig.evictions(), [""; 0]);
    allows(&mut rig, 9, &["web-00"]);
    assert_eq!(rig.evictions(), [""; 0]);
    // One comes back.
    allows(&mut rig, 10, &[]);
    assert_eq!(rig.evictions(), ["web-10"]);
}

#[test]
fn a_status_that_came_before_the_answer_counts_when_the_answer_comes() {
    let mut rig = crowd(3, 1);
    assert_eq!(rig.evictions(), ["web-00"]);
    allows(&mut rig, 0, &["web-00"]);
    allows(&mut rig, 1, &["web-00"]);
    assert_eq!(rig.evictions(), [""; 0]);
    rig.evict("web-00", EvictionAnswer::Accepted);
    assert_eq!(rig.evictions(), ["web-01"]);
}

#[test]
fn an_exhausted_budget_is_asked_again_on_its_event_and_not_before() {
    let mut rig = crowd(1, 1);
    rig.evict("web-00", exhausted("web"));
    rig.advance(secs(29));
    assert_eq!(rig.evictions(), [""; 0]);
    allows(&mut rig, 1, &[]);
    assert_eq!(rig.evictions(), ["web-00"]);
}

#[test]
fn an_event_that_came_during_the_request_is_not_waited_for_again() {
    let mut rig = crowd(1, 1);
    rig.effects();
    allows(&mut rig, 1, &[]);
    rig.evict("web-00", exhausted("web"));
    rig.advance(secs(1));
    assert_eq!(rig.sent.iter().filter(|(_, k)| evicted(k).is_some()).count(), 2);
}

#[test]
fn an_event_that_does_not_come_is_replaced_by_one_question_at_a_time() {
    let mut rig = crowd(60, 0);
    rig.advance(secs(29));
    assert_eq!(rig.sent.iter().filter(|(_, k)| evicted(k).is_some()).count(), 0);
    rig.advance(secs(2));
    assert_eq!(rig.sent.iter().filter(|(_, k)| evicted(k).is_some()).count(), 1);
}

#[test]
fn a_refusal_for_another_reason_lets_the_next_one_through_at_once() {
    let mut rig = crowd(2, 1);
    assert_eq!(rig.evictions(), ["web-00"]);
    rig.evict("web-00", EvictionAnswer::Forbidden { text: "no".into() });
    assert_eq!(rig.evictions(), ["web-01"]);
    // And the forbidden one is not tried again on events of the budget.
    rig.evict("web-01", EvictionAnswer::Accepted);
    allows(&mut rig, 5, &["web-01"]);
    assert_eq!(rig.evictions(), [""; 0]);
}

#[test]
fn a_refusal_by_the_budget_does_not_make_the_next_one_try() {
    let mut rig = crowd(2, 1);
    assert_eq!(rig.evictions(), ["web-00"]);
    rig.evict("web-00", exhausted("web"));
    assert_eq!(rig.evictions(), [""; 0]);
}

#[test]
fn a_budget_that_was_not_evaluated_is_asked_by_one_and_wakes_on_its_event() {
    let unsynced = budget("web").with(|b| b.observed = false);
    let mut rig = Rig::one(world().budget(unsynced).pod(pod("web-00")).pod(pod("web-01"))).cordoned();
    assert_eq!(rig.evictions(), ["web-00"]);
    rig.evict("web-00", EvictionAnswer::BudgetUnsynced { budget: Some("web".into()) });
    rig.advance(secs(9));
    assert_eq!(rig.evictions(), [""; 0]);
    allows(&mut rig, 2, &[]);
    assert_eq!(rig.evictions(), ["web-00", "web-01"]);
}

#[test]
fn a_pod_that_no_budget_would_be_asked_about_takes_nothing_from_it() {
    let mut rig = Rig::one(
        world()
            .budget(budget("web").status(1, 60, 40, 60))
            .pod(pod("web-00").unready())
            .pod(pod("web-01"))
            .pod(pod("web-02")),
    )
    .cordoned();
    assert_eq!(rig.evictions(), ["web-00", "web-01"]);
}

#[test]
fn a_human_who_changes_the_budget_frees_what_it_held_for_good() {
    let never = budget("web").status(0, 3, 3, 3);
    let mut rig =
        Rig::new(world().budget(never).pod(pod("web-00")), &["node-0"], |s| s.machine.wait_blocked = true).cordoned();
    rig.advance(secs(600));
    assert_eq!(rig.effects(), []);
    assert_eq!(rig.ended(), None);
    rig.change(Change::Budget(Delta::Delete(key("web"))));
    assert_eq!(rig.evictions(), ["web-00"]);
    rig.evict("web-00", EvictionAnswer::Accepted);
    rig.gone(&pod("web-00"));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
}

#[test]
fn a_budget_of_two_is_ended_by_the_deletion_of_one() {
    let mut rig = Rig::new(world().budget(budget("web")).budget(budget("too")).pod(pod("web-00")), &["node-0"], |s| {
        s.machine.wait_blocked = true;
    })
    .cordoned();
    rig.effects();
    rig.change(Change::Budget(Delta::Delete(key("too"))));
    assert_eq!(rig.evictions(), ["web-00"]);
}

#[test]
fn a_held_pod_that_a_human_deletes_is_gone() {
    let never = budget("web").status(0, 3, 3, 3);
    let mut rig = Rig::one(world().budget(never).pod(pod("web-00")).pod(pod("app-0").label("app", "x"))).cordoned();
    rig.effects();
    rig.stopping(&pod("web-00"));
    rig.evict("app-0", EvictionAnswer::Accepted);
    rig.gone(&pod("app-0"));
    assert_eq!(rig.effects(), [], "it is stopping, so it is open");
    rig.gone(&pod("web-00"));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.pod_row("web-00").outcome, PodOutcome::Gone);
}

fn off(name: &str) -> VmiFacts {
    vmi(name).strategy(Some(crate::facts::Strategy::None))
}

#[test]
fn a_vm_that_is_shut_down_waits_for_its_budget_without_reading_it_over_and_over() {
    let held = budget("guests").over_launchers().status(0, 2, 2, 3);
    let mut rig = Rig::one(world().budget(held).runs(vm("db"), off("db"))).cordoned();
    rig.advance(secs(29));
    assert_eq!(rig.effects(), []);
    rig.budget(budget("guests").over_launchers().status(1, 3, 2, 3));
    rig.vmi_read("db");
    assert_eq!(rig.evictions(), [launcher("db").key.name]);
    rig.evict("db", exhausted("guests"));
    assert_eq!(rig.effects(), []);
    rig.budget(budget("guests").over_launchers().status(1, 3, 2, 4));
    assert_eq!(rig.effects(), [EffectKind::ReadVmi { vmi: key("db") }]);
}

#[test]
fn a_vm_whose_budget_never_allows_it_is_freed_by_a_human() {
    let never = budget("guests").over_launchers().status(0, 3, 3, 3);
    let mut rig = Rig::new(world().budget(never).runs(vm("db"), off("db")), &["node-0"], |s| {
        s.machine.wait_blocked = true;
    })
    .cordoned();
    assert_eq!(rig.effects(), []);
    rig.change(Change::Budget(Delta::Delete(key("guests"))));
    rig.advance(secs(1));
    assert_eq!(rig.sent.last().unwrap().1, EffectKind::ReadVmi { vmi: key("db") });
}

#[test]
fn a_blocked_vm_names_its_budget() {
    let never = budget("guests").over_launchers().status(0, 3, 3, 3);
    let mut rig = Rig::one(world().budget(never).runs(vm("db"), off("db"))).cordoned();
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
    let row = rig.vm_row("db");
    assert_eq!((row.outcome, row.cause), (VmOutcome::Blocks, Some(Cause::BudgetNever)));
}

#[test]
fn a_pod_that_a_changed_budget_never_allows_names_it_and_what_helps() {
    let mut rig = crowd(2, 1);
    rig.evict("web-00", EvictionAnswer::Accepted);
    rig.budget(budget("web").status(0, 60, 60, 60));
    rig.gone(&pod("web-00"));
    rig.relist();
    let row = rig.pod_row("web-01");
    assert_eq!((row.outcome, row.cause), (PodOutcome::Blocks, Some(Cause::BudgetNever)));
    assert_eq!(row.budgets, ["tenant-a/web"]);
    assert!(row.remedy.is_some());
}
