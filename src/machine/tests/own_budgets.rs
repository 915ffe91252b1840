//! Budgets that KubeVirt (1.5 and older) keeps for VMIs, and migrations that others began.

use super::*;
use crate::event::{Activity, StopReason};
use crate::facts::testing::{budget, labels, launcher, migration, owner, vm, vmi, world};
use crate::facts::{LabelSelector, MigrationFacts, Owner};
use crate::outcome::{Cause, VmOutcome};

const OWN: &str = "kubevirt-disruption-budget-abcde";

/// web has a budget of KubeVirt's; its eviction is on its way.
fn guarded() -> Rig {
    let mut own = budget(OWN).status(0, 1, 1, 1);
    let uid = "uid-web".to_owned();
    own.owner = Some(Owner { uid, ..owner("kubevirt.io/v1", "VirtualMachineInstance", "web") });
    own.selector =
        Some(LabelSelector { match_labels: labels(&[("kubevirt.io", "virt-launcher")]), expressions: Vec::new() });
    let mut rig = Rig::one(world().runs(vm("web"), vmi("web")).budget(own)).cordoned();
    rig.vmi_read("web");
    rig
}

/// What may be answered by it, alone or beside another.
fn refusals() -> [EvictionAnswer; 4] {
    let budget = || Some(OWN.to_owned());
    [
        EvictionAnswer::BudgetExhausted { budget: budget(), needs: Some(1), has: Some(1), text: String::new() },
        EvictionAnswer::BudgetUnsynced { budget: budget() },
        EvictionAnswer::BudgetBusy { budget: budget() },
        EvictionAnswer::MultipleBudgets,
    ]
}

fn evictions(rig: &Rig) -> usize {
    rig.sent.iter().filter(|(_, k)| evicted(k).is_some()).count()
}

fn refused(rig: &mut Rig) -> usize {
    let said = |e: &EventKind| matches!(e, EventKind::VmProgressed { progress, .. } if progress.activity == Activity::Retrying);
    rig.events().iter().filter(|e| said(e)).count()
}

#[test]
fn its_refusal_of_a_marked_vm_is_its_evacuation() {
    for answer in refusals() {
        let mut rig = guarded();
        rig.vmi("web", |v| v.marked = Some("node-0".into()));
        rig.evict("web", answer.clone());
        rig.advance(secs(60));
        assert_eq!((evictions(&rig), refused(&mut rig)), (1, 0), "{answer:?}");
        rig.vmi("web", |v| (v.node, v.marked) = (Some("node-1".into()), None));
        rig.pod(launcher("web").finished());
        rig.relist();
        assert_eq!(rig.vm_row("web").outcome, VmOutcome::Migrates);
    }
}

#[test]
fn an_answer_that_overtakes_the_watch_is_no_refusal() {
    for answer in refusals() {
        let mut rig = guarded();
        rig.evict("web", answer.clone());
        rig.advance(secs(1));
        rig.vmi_is("web", |v| v.marked = Some("node-0".into()));
        rig.advance(secs(60));
        assert_eq!((evictions(&rig), refused(&mut rig)), (1, 0), "{answer:?}");
    }
}

#[test]
fn where_nothing_begins_to_migrate_it_the_guard_may_be_down() {
    for answer in refusals() {
        let mut rig = guarded();
        while rig.now < secs(15) {
            rig.take();
            if rig.open.iter().any(|e| evicted(&e.kind).is_some()) {
                rig.evict("web", answer.clone());
            } else if rig.open.iter().any(|e| matches!(e.kind, EffectKind::ReadVmi { .. })) {
                rig.vmi_read("web");
            } else {
                rig.advance(secs(1));
            }
        }
        rig.relist();
        let row = rig.vm_row("web");
        assert_eq!((row.outcome, row.cause), (VmOutcome::Blocks, Some(Cause::WebhookUnreachable)), "{answer:?}");
        assert!(row.because.contains(OWN) && row.because.contains("is virt-api up?"), "{}", row.because);
        let last = rig.sent.iter().rev().find(|(_, k)| evicted(k).is_some()).map(|(at, _)| *at);
        assert!(last < Some(secs(8)) && evictions(&rig) <= 6, "{last:?}");
    }
}

#[test]
fn a_migration_of_others_is_followed_and_asked_for_only_when_it_has_failed() {
    let theirs = |phase: &str| MigrationFacts { evacuates: None, ..migration("web", phase) };
    let mut rig = Rig::one(world().runs(vm("web"), vmi("web")).migration(theirs("Running"))).cordoned();
    rig.advance(secs(120));
    assert_eq!(evictions(&rig), 0);
    rig.change(Change::Migration(Delta::Apply(theirs("Failed"))));
    rig.advance(secs(5));
    rig.vmi_read("web");
    assert_eq!(rig.evictions(), [launcher("web").key.name]);

    let mut rig = Rig::one(world().runs(vm("web"), vmi("web"))).cordoned();
    rig.change(Change::Migration(Delta::Apply(theirs("Pending"))));
    rig.vmi_read("web");
    rig.advance(secs(60));
    assert_eq!(evictions(&rig), 0, "it began between the plan and the read");
}

#[test]
fn what_was_sent_and_not_answered_is_no_forecast() {
    let mut rig = guarded();
    rig.input(Input::Stop(StopReason::Interrupt));
    rig.advance(secs(40));
    let row = rig.vm_row("web");
    assert_eq!((row.outcome, row.cause), (VmOutcome::Pending, Some(Cause::Interrupted)));
    assert_eq!(row.because, "its eviction was sent and not answered yet");
}

#[test]
fn a_refusal_that_passes_says_when_it_is_asked_again() {
    let mut rig = Rig::one(world().runs(vm("web"), vmi("web"))).cordoned();
    rig.vmi_read("web");
    rig.evict("web", EvictionAnswer::WebhookUnreachable { text: "x".into() });
    let next = rig.events().into_iter().find_map(|e| match e {
        EventKind::VmProgressed { progress, .. } => progress.next_try_ms,
        _ => None,
    });
    let next = next.expect("it says so");
    assert!(next > 0 && next <= 1000, "{next}");
    rig.advance(Duration::from_millis(next));
    let mut reads = rig.sent.iter().filter(|(_, k)| matches!(k, EffectKind::ReadVmi { .. }));
    assert_eq!(reads.next_back().map(|(at, _)| *at), Some(Duration::from_millis(next)), "as it said");
}
