//! What each class of refusal does to a pod.

use super::*;
use crate::facts::testing::{pod, vm, vmi, world};
use crate::outcome::{Cause, PodOutcome, Verdict};

fn web() -> Rig {
    Rig::one(world().pod(pod("web-0"))).cordoned()
}

/// Answers every eviction like that for so long; returns the times of the requests.
fn refuse(rig: &mut Rig, answer: &EvictionAnswer, until: Duration) -> Vec<Duration> {
    while rig.now < until && rig.ended().is_none() {
        while rig.open.iter().any(|e| evicted(&e.kind).is_some()) {
            rig.evict("", answer.clone());
            rig.effects();
        }
        let next = rig.machine.poll_timeout().unwrap_or(until).min(until);
        let by = next.saturating_sub(rig.now);
        rig.advance(by);
    }
    rig.sent.iter().filter(|(_, k)| evicted(k).is_some()).map(|(at, _)| *at).collect()
}

fn text() -> String {
    "words of the server".to_owned()
}

#[test]
fn refusals_that_waiting_does_not_clear_block_their_pod_alone() {
    let lost = [
        (EvictionAnswer::Forbidden { text: text() }, Cause::Forbidden),
        (EvictionAnswer::Invalid { text: text() }, Cause::Invalid),
        (EvictionAnswer::MultipleBudgets, Cause::MultipleBudgets),
    ];
    for (answer, cause) in lost {
        let mut rig = Rig::one(world().pod(pod("web-0")).pod(pod("web-1"))).cordoned();
        assert_eq!(rig.evictions(), ["web-0", "web-1"]);
        rig.evict("web-0", answer);
        rig.evict("web-1", EvictionAnswer::Accepted);
        rig.gone(&pod("web-1"));
        rig.relist();
        assert_eq!(rig.ended(), Some(ExitCode::Blocked), "{cause:?}");
        assert_eq!(rig.report("node-0").verdict, Verdict::Blocked);
        let row = rig.pod_row("web-0");
        assert_eq!((row.outcome, row.cause, row.waiting_helps), (PodOutcome::Blocks, Some(cause), Some(false)));
        assert_eq!(rig.pod_row("web-1").outcome, PodOutcome::Evicts);
        assert!(rig.events().iter().any(|e| matches!(e, EventKind::PodBlocked { .. })));
    }
}

#[test]
fn a_malformed_eviction_is_our_own_failure() {
    let mut rig = web();
    rig.evict("web-0", EvictionAnswer::EvictionMalformed { text: text() });
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Failed));
    assert_eq!(rig.report("node-0").verdict, Verdict::Failed);
    assert_eq!(rig.pod_row("web-0").cause, Some(Cause::EvictionMalformed));
}

#[test]
fn refusals_with_a_bound_block_when_it_is_over_and_not_before() {
    let bounded = [
        (EvictionAnswer::WebhookUnreachable { text: text() }, Cause::WebhookUnreachable, 300),
        (EvictionAnswer::WebhookRefused { name: "w".into(), text: text() }, Cause::WebhookRefused, 300),
        (EvictionAnswer::VmLookupFailed { text: text() }, Cause::VmLookupFailed, 60),
        (EvictionAnswer::BudgetBroken { budget: None, text: text() }, Cause::BudgetBroken, 60),
        (EvictionAnswer::BudgetUnsynced { budget: None }, Cause::BudgetUnsynced, 300),
    ];
    for (answer, cause, bound) in bounded {
        let mut rig = web();
        let times = refuse(&mut rig, &answer, secs(bound - 1));
        assert_eq!(rig.ended(), None, "{cause:?}");
        assert!(times.len() >= 5, "{cause:?}: {times:?}");
        let gaps: Vec<Duration> = times.windows(2).map(|w| w[1].saturating_sub(w[0])).collect();
        assert!(gaps[0] <= secs(1) && gaps.iter().all(|g| *g <= secs(30)), "{cause:?}: {gaps:?}");
        refuse(&mut rig, &answer, secs(bound + 1));
        rig.relist();
        assert_eq!(rig.ended(), Some(ExitCode::Blocked), "{cause:?}");
        assert_eq!(rig.pod_row("web-0").cause, Some(cause));
    }
}

#[test]
fn refusals_without_a_bound_are_tried_until_the_deadline() {
    let endless = [
        (EvictionAnswer::ServerTrouble { text: text() }, Cause::ServerTrouble),
        (EvictionAnswer::NamespaceTerminating, Cause::NamespaceTerminating),
        (EvictionAnswer::BudgetBusy { budget: None }, Cause::BudgetBusy),
        (EvictionAnswer::Throttled { after: None }, Cause::Throttled),
    ];
    for (answer, cause) in endless {
        let mut rig = web();
        let times = refuse(&mut rig, &answer, secs(1800));
        assert!(times.len() > 60, "{cause:?}: {}", times.len());
        assert_eq!(rig.ended(), Some(ExitCode::Timeout), "{cause:?}");
        let row = rig.pod_row("web-0");
        assert_eq!((row.outcome, row.cause), (PodOutcome::Pending, Some(cause)));
        let said = rig.events().into_iter().filter(|e| matches!(e, EventKind::PodWaiting { .. })).count();
        assert_eq!(said, 1, "a wait is said once");
    }
}

#[test]
fn a_refusal_that_passes_is_followed_by_the_eviction() {
    let mut rig = web();
    refuse(&mut rig, &EvictionAnswer::WebhookUnreachable { text: text() }, secs(30));
    rig.advance(secs(20));
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.gone(&pod("web-0"));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.pod_row("web-0").cause, None);
}

#[test]
fn another_cause_has_a_bound_of_its_own() {
    let mut rig = web();
    refuse(&mut rig, &EvictionAnswer::WebhookUnreachable { text: text() }, secs(299));
    refuse(&mut rig, &EvictionAnswer::ServerTrouble { text: text() }, secs(400));
    refuse(&mut rig, &EvictionAnswer::WebhookUnreachable { text: text() }, secs(680));
    assert_eq!(rig.ended(), None);
}

#[test]
fn nobody_posts_before_the_time_that_a_busy_server_asks_for() {
    let cluster = world()
        .pod(pod("web-0"))
        .pod(pod("web-1"))
        .pod(pod("web-2"))
        .runs(vm("db"), vmi("db").strategy(None))
        .pod(pod("web-3"));
    let mut rig = Rig::new(cluster, &["node-0"], |s| s.machine.max_in_flight = 3).cordoned();
    // The VMI is read before the answer comes; what follows the read must wait as well.
    assert_eq!(rig.effects().len(), 3);
    rig.evict("web-0", EvictionAnswer::Throttled { after: Some(secs(20)) });
    rig.vmi_read("db");
    rig.evict("web-1", EvictionAnswer::Accepted);
    assert_eq!(rig.effects(), []);
    rig.advance(secs(19));
    assert_eq!(rig.effects(), []);
    assert!(rig.sent.iter().all(|(at, k)| !k.is_post() || at.is_zero()));
    rig.advance(secs(1));
    let then = rig.sent.iter().filter(|(at, k)| *at == secs(20) && k.takes_slot()).count();
    assert_eq!(then, 1, "fewer at a time than the three that were too many: {:?}", rig.sent);
}

#[test]
fn refused_credentials_end_the_run_with_6() {
    let mut rig = Rig::one(world().pod(pod("web-0")).pod(pod("web-1"))).cordoned();
    rig.effects();
    rig.evict("web-0", EvictionAnswer::Unauthorized);
    assert_eq!(rig.ended(), Some(ExitCode::Api));
    assert_eq!(rig.pod_row("web-1").outcome, PodOutcome::Pending);
}

#[test]
fn refused_credentials_end_the_run_also_when_something_is_read() {
    let mut rig = Rig::one(world().runs(vm("web"), vmi("web"))).cordoned();
    rig.answer_to(|k| matches!(k, EffectKind::ReadVmi { .. }), Reply::Vmi(Err(Failure::Unauthorized)));
    assert_eq!(rig.ended(), Some(ExitCode::Api));
}

#[test]
fn an_answer_about_vms_for_a_plain_pod_blocks_it() {
    for answer in [marked(), EvictionAnswer::VmNotMigratable, EvictionAnswer::VmMigrationTarget] {
        let mut rig = web();
        rig.evict("web-0", answer);
        rig.relist();
        assert_eq!(rig.pod_row("web-0").outcome, PodOutcome::Blocks);
    }
}

#[test]
fn an_answer_of_another_kind_or_to_nobody_is_harmless() {
    let mut rig = web();
    rig.effects();
    let id = rig.open[0].id;
    rig.input(Input::Answer { id: crate::machine::RequestId(999), reply: Reply::Eviction(EvictionAnswer::Accepted) });
    assert_eq!(rig.effects(), []);
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.input(Input::Answer { id, reply: Reply::Eviction(EvictionAnswer::Gone) });
    assert_eq!(rig.effects(), []);
    assert_eq!(rig.ended(), None);
}

#[test]
fn a_server_that_asks_for_no_patience_is_not_asked_in_a_hot_loop() {
    for after in [0, 1] {
        let mut rig = web();
        let times = refuse(&mut rig, &EvictionAnswer::Throttled { after: Some(secs(after)) }, secs(120));
        assert!((5..20).contains(&times.len()), "{times:?}");
    }
}

#[test]
fn budgets_that_are_too_many_are_named() {
    let mut rig = web();
    rig.effects();
    for name in ["one", "two"] {
        rig.budget(crate::facts::testing::budget(name));
    }
    rig.evict("web-0", EvictionAnswer::MultipleBudgets);
    rig.relist();
    let because = rig.pod_row("web-0").because;
    assert!(because.ends_with(": tenant-a/one, tenant-a/two"), "{because}");
}
