//! Every cell of the table of consent, on a VM of each kind.

use super::{planned, planned_with, vm_of};
use crate::facts::testing::{World, claim_on, vm, vmi, world};
use crate::facts::{RunStrategy, VmVolumeSource};
use crate::outcome::{Cause, VmOutcome};
use crate::plan::consent::RestartStale::{Always, Ask, Never, Unset};
use crate::plan::consent::{Consent, ConsentOptions, Decision, Question, RestartStale, decline, grant, settle};
use crate::plan::{ConsentKind, Plan, PlanOptions, VmAction, would_exit};

use Then::{Asks, Evicts, Refused, Restarts, Stays};

const DISKS: &str = "DisksNotLiveMigratable";

/// A cluster with one VM of the kind, and one that migrates.
fn with(kind: ConsentKind) -> World {
    let world = world().runs(vm("ok"), vmi("ok"));
    let stale = vmi("x").live_migrate().not_migratable(DISKS);
    match kind {
        ConsentKind::Restart => world.runs(vm("x"), stale),
        ConsentKind::RestartDown => {
            let bound = stale.volume("root", VmVolumeSource::Claim("root".into()));
            world.claim(claim_on("root", "node-0")).runs(vm("x"), bound)
        }
        ConsentKind::EvictDown => {
            world.runs(vm("x").run(RunStrategy::Once), vmi("x").if_possible().not_migratable(DISKS))
        }
    }
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Then {
    Asks,
    Restarts,
    Evicts,
    Stays,
    Refused,
}

fn settled(kind: ConsentKind, options: ConsentOptions) -> (Plan, Decision, Then) {
    let mut plan = planned(&with(kind));
    let decision = settle(&mut plan, &options);
    let item = vm_of(&plan, "x");
    assert_eq!(item.consent, Some(kind));
    let then = match (&decision, item.action) {
        (Decision::Ask(_), _) => Asks,
        (Decision::Refuse(_), VmAction::Leave) => Refused,
        (Decision::Go, VmAction::Restart) => Restarts,
        (Decision::Go, VmAction::ShutDown) => Evicts,
        (Decision::Go, VmAction::Leave) => Stays,
        other => panic!("unexpected {other:?}"),
    };
    (plan, decision, then)
}

fn row(question_possible: bool, restart_stale: RestartStale, allow_vm_down: bool, expected: [Then; 3]) {
    let options = ConsentOptions { question_possible, restart_stale, allow_vm_down };
    let kinds = [ConsentKind::Restart, ConsentKind::RestartDown, ConsentKind::EvictDown];
    for (kind, expected) in kinds.into_iter().zip(expected) {
        let (plan, _, then) = settled(kind, options);
        assert_eq!(then, expected, "{kind:?} under {options:?}");
        match then {
            Stays => assert_eq!(would_exit(&plan), 3),
            Refused => assert_eq!(would_exit(&plan), 4),
            Restarts | Evicts => assert_eq!(would_exit(&plan), 0),
            Asks => {}
        }
    }
}

#[test]
fn question_unset() {
    row(true, Unset, false, [Asks, Asks, Asks]);
}

#[test]
fn question_unset_allow_down() {
    row(true, Unset, true, [Asks, Asks, Evicts]);
}

#[test]
fn question_ask() {
    row(true, Ask, false, [Asks, Asks, Asks]);
}

#[test]
fn question_ask_allow_down() {
    row(true, Ask, true, [Asks, Asks, Evicts]);
}

#[test]
fn question_always() {
    row(true, Always, false, [Restarts, Asks, Asks]);
}

#[test]
fn question_always_allow_down() {
    row(true, Always, true, [Restarts, Restarts, Evicts]);
}

#[test]
fn question_never() {
    row(true, Never, false, [Stays, Stays, Asks]);
}

#[test]
fn no_question_never() {
    row(false, Never, false, [Stays, Stays, Refused]);
}

#[test]
fn any_never_allow_down() {
    row(true, Never, true, [Stays, Stays, Evicts]);
    row(false, Never, true, [Stays, Stays, Evicts]);
}

#[test]
fn no_question_unset() {
    row(false, Unset, false, [Stays, Stays, Refused]);
}

#[test]
fn no_question_unset_allow_down() {
    row(false, Unset, true, [Stays, Stays, Evicts]);
}

#[test]
fn no_question_ask() {
    row(false, Ask, false, [Refused, Refused, Refused]);
    row(false, Ask, true, [Refused, Refused, Refused]);
}

#[test]
fn no_question_always() {
    row(false, Always, false, [Restarts, Stays, Refused]);
}

#[test]
fn no_question_always_allow_down() {
    row(false, Always, true, [Restarts, Restarts, Evicts]);
}

#[test]
fn what_stays_says_which_flags_would_help() {
    let none = ConsentOptions::default();
    let (plan, _, _) = settled(ConsentKind::Restart, none);
    let item = &vm_of(&plan, "x").row;
    assert_eq!((item.outcome, item.cause), (VmOutcome::Blocks, Some(Cause::VmNotMigratable)));
    assert_eq!((item.waiting_helps, item.remedy.as_deref()), (Some(false), Some("add --restart-stale")));
    let (plan, _, _) = settled(ConsentKind::RestartDown, none);
    assert_eq!(vm_of(&plan, "x").row.needs, ["--restart-stale", "--allow-vm-down"]);
    let (plan, _, _) = settled(ConsentKind::RestartDown, ConsentOptions { restart_stale: Always, ..none });
    assert_eq!(vm_of(&plan, "x").row.remedy.as_deref(), Some("add --allow-vm-down"), "the other one is given");
    let (plan, decision, _) = settled(ConsentKind::EvictDown, none);
    assert_eq!(vm_of(&plan, "x").row.needs, ["--allow-vm-down"]);
    assert_eq!(vm_of(&plan, "x").row.cause, Some(Cause::ConsentMissing));
    let Decision::Refuse(refusals) = decision else { panic!("not refused") };
    assert_eq!(refusals.len(), 1, "the VM that migrates is no refusal");
    assert_eq!(
        (refusals[0].cause, refusals[0].needs.as_slice()),
        (Cause::ConsentMissing, ["--allow-vm-down"].as_slice())
    );
}

fn asked(world: &World) -> (Plan, Question) {
    let mut plan = planned(world);
    let options = ConsentOptions { question_possible: true, ..ConsentOptions::default() };
    match settle(&mut plan, &options) {
        Decision::Ask(question) => (plan, question),
        Decision::Go | Decision::Refuse(_) => panic!("not asked"),
    }
}

#[test]
fn the_question_has_its_groups() {
    let world = with(ConsentKind::Restart)
        .runs(vm("manual").run(RunStrategy::Manual), vmi("manual").if_possible().not_migratable(DISKS))
        .runs(vm("once").run(RunStrategy::Once), vmi("once").if_possible().not_migratable(DISKS))
        .runs(vm("stuck").template(crate::facts::Strategy::LiveMigrate), vmi("stuck").not_migratable(DISKS));
    let (_, question) = asked(&world);
    let names =
        |group: &[crate::plan::consent::QuestionVm]| group.iter().map(|v| v.vm.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&question.restarted), ["manual", "x"]);
    assert_eq!(names(&question.not_running), ["once"]);
    assert_eq!(names(&question.blocking), ["stuck"]);
    let kinds: Vec<_> = question.asked().map(|a| (a.vmi_uid, a.kind)).collect();
    assert_eq!(
        kinds,
        [("uid-x".to_owned(), ConsentKind::Restart), ("uid-once".to_owned(), ConsentKind::EvictDown)],
        "a restart in place of an eviction is only announced"
    );
    assert_eq!(question.nodes, ["node-0"]);
}

#[test]
fn a_yes_counts_for_the_vmis_shown() {
    let (mut plan, question) = asked(&with(ConsentKind::Restart));
    let options = ConsentOptions { question_possible: true, ..ConsentOptions::default() };
    let consent = grant(&mut plan, &question, &options);
    assert_eq!(vm_of(&plan, "x").action, VmAction::Restart);
    assert!(consent.allows(ConsentKind::Restart, "uid-x"));
    assert!(!consent.allows(ConsentKind::Restart, "uid-x-2"), "another VMI of that name");
    assert!(!consent.allows(ConsentKind::RestartDown, "uid-x"), "it was not said that it would stay down");
    assert!(!consent.allows(ConsentKind::EvictDown, "uid-x"));

    let mut late = vm_of(&planned(&with(ConsentKind::Restart)), "x").clone();
    late.vmi_uid = "uid-new".into();
    assert!(!consent.apply(&mut late));
    assert_eq!((late.action, late.row.outcome), (VmAction::Leave, VmOutcome::Blocks));
}

#[test]
fn a_plan_with_more_than_was_shown_is_cut_to_it() {
    let (_, question) = asked(&with(ConsentKind::Restart));
    let options = ConsentOptions { question_possible: true, ..ConsentOptions::default() };
    let mut newer = planned(&with(ConsentKind::Restart).runs(vm("y"), vmi("y").not_migratable(DISKS)));
    grant(&mut newer, &question, &options);
    assert_eq!(vm_of(&newer, "x").action, VmAction::Restart);
    assert_eq!(vm_of(&newer, "y").action, VmAction::Leave);
}

#[test]
fn a_no_refuses_the_command() {
    for kind in [ConsentKind::Restart, ConsentKind::RestartDown, ConsentKind::EvictDown] {
        let (mut plan, question) = asked(&with(kind));
        decline(&mut plan, &question, &ConsentOptions::default());
        assert_eq!(vm_of(&plan, "x").row.cause, Some(Cause::ConsentMissing));
        assert_eq!(vm_of(&plan, "ok").action, VmAction::Migrate);
        assert_eq!(would_exit(&plan), 4);
    }
}

#[test]
fn a_flag_consents_to_what_turns_up_later() {
    let flags = ConsentOptions { restart_stale: Always, ..ConsentOptions::default() };
    let consent = Consent::by_flags(flags);
    let mut item = vm_of(&planned(&with(ConsentKind::Restart)), "x").clone();
    assert!(consent.apply(&mut item));
    assert_eq!(item.action, VmAction::Restart);
    let mut down = vm_of(&planned(&with(ConsentKind::EvictDown)), "x").clone();
    assert!(!consent.apply(&mut down));
    assert_eq!((down.row.outcome, down.row.cause), (VmOutcome::Blocks, Some(Cause::ConsentMissing)));
}

#[test]
fn data_that_no_flag_gives_up_refuses_what_would_lose_it() {
    let scratch = |run| {
        world().runs(
            vm("x").run(run),
            vmi("x").live_migrate().not_migratable(DISKS).volume("tmp", VmVolumeSource::EmptyDisk),
        )
    };
    let always = ConsentOptions { restart_stale: Always, ..ConsentOptions::default() };
    let mut refused = planned(&scratch(RunStrategy::Always));
    let Decision::Refuse(refusals) = settle(&mut refused, &always) else { panic!("not refused") };
    assert_eq!(
        (refusals[0].cause, refusals[0].needs.as_slice()),
        (Cause::LocalData, ["--delete-emptydir-data"].as_slice())
    );
    assert!(refusals[0].because.contains("tmp"));
    assert_eq!(would_exit(&refused), 4);

    let mut asks = planned(&scratch(RunStrategy::Always));
    let question = ConsentOptions { question_possible: true, ..ConsentOptions::default() };
    assert!(matches!(settle(&mut asks, &question), Decision::Refuse(_)), "a question cannot give the data up");

    let mut stays = planned(&scratch(RunStrategy::Always));
    assert_eq!(settle(&mut stays, &ConsentOptions::default()), Decision::Go, "what is left alone loses nothing");
    assert_eq!(vm_of(&stays, "x").row.needs, ["--restart-stale", "--delete-emptydir-data"]);

    let flag = PlanOptions { delete_emptydir_data: true, ..PlanOptions::default() };
    let mut goes = planned_with(&scratch(RunStrategy::Always), &flag);
    assert_eq!(settle(&mut goes, &always), Decision::Go);
    assert_eq!(vm_of(&goes, "x").row.data_loss, ["tmp"]);

    let none = vmi("x").if_possible().not_migratable(DISKS).volume("tmp", VmVolumeSource::EmptyDisk);
    let mut returns = planned(&world().runs(vm("x"), none));
    assert!(matches!(settle(&mut returns, &ConsentOptions::default()), Decision::Refuse(_)), "announced ones too");
}

#[test]
fn a_refusal_takes_open_questions_with_it() {
    let world = with(ConsentKind::Restart).pod(crate::facts::testing::pod("bare").bare());
    let mut plan = planned(&world);
    let question = ConsentOptions { question_possible: true, ..ConsentOptions::default() };
    let Decision::Refuse(refusals) = settle(&mut plan, &question) else { panic!("not refused") };
    assert_eq!(refusals.len(), 1);
    assert_eq!(vm_of(&plan, "x").action, VmAction::Leave);
}
