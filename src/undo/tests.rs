use super::*;
use crate::exit::ExitCode;
use crate::facts::testing::{NS, World, kubevirt, migration, node, vmi, world};
use crate::facts::{Change, Delta, Strategy};
use crate::outcome::{CordonOutcome, UndoOutcome, UndoReport, UndoVerdict};

fn marked(name: &str) -> VmiFacts {
    vmi(name).with(|v| v.marked = Some("node-0".into()))
}

fn key(name: &str) -> Key {
    Key::new(NS, name)
}

fn unmark(name: &str) -> Step {
    Step::Unmark { node: "node-0".into(), vmi: key(name) }
}

fn delete(vm: &str) -> Step {
    let m = migration(vm, "Running");
    Step::Delete { node: "node-0".into(), migration: m.key, uid: m.uid }
}

fn uncordon() -> Step {
    Step::Uncordon { node: "node-0".into(), resource_version: "1".into() }
}

/// node-0 with a cordon of that manager.
fn cordoned_by(manager: Option<&str>) -> NodeFacts {
    NodeFacts { cordoned_by: manager.map(str::to_owned), ..node("node-0").cordoned() }
}

/// The node with our cordon, and KubeVirt of that version.
fn drained(version: &str) -> World {
    let mut world = world().node(cordoned_by(Some(FIELD_MANAGER)));
    let mut cr = kubevirt(Some(Strategy::LiveMigrate));
    cr.version = Some(version.into());
    world.index.apply(Change::KubeVirt(Delta::Reset(vec![cr])));
    world
}

fn report(undo: &Undo, world: &World, end: End) -> UndoReport {
    undo.report(&world.index, end, 1.0)
}

fn outcomes(report: &UndoReport) -> Vec<UndoOutcome> {
    report.vms.iter().map(|row| row.outcome).collect()
}

#[test]
fn marks_then_migrations_then_the_cordon() {
    let before = drained("v1.7.0").vmi(marked("a")).migration(migration("a", "Running"));
    let mut undo = Undo::new("node-0", &before.index);
    assert_eq!(undo.planned(&before.index), [unmark("a"), delete("a"), uncordon()]);
    assert_eq!(undo.steps(&before.index), [unmark("a")]);
    undo.answered(&unmark("a"), &UndoAnswer::Done);

    let unmarked = drained("v1.7.0").vmi(vmi("a")).migration(migration("a", "Running"));
    assert_eq!(undo.steps(&unmarked.index), [delete("a")]);
    undo.answered(&delete("a"), &UndoAnswer::Done);
    assert_eq!(undo.steps(&unmarked.index), []);
    assert_eq!(undo.ending(&unmarked.index), [migration("a", "").key]);
    assert!(undo.is_open(&unmarked.index));
    assert_eq!(outcomes(&report(&undo, &unmarked, End::Ran)), [UndoOutcome::Pending]);

    let ended = drained("v1.7.0").vmi(vmi("a")).migration(migration("a", "Failed"));
    assert_eq!(undo.steps(&ended.index), [uncordon()]);
    undo.answered(&uncordon(), &UndoAnswer::Done);
    let after = world().vmi(vmi("a"));
    assert_eq!(undo.steps(&after.index), []);
    assert!(!undo.is_open(&after.index));
    let report = report(&undo, &after, End::Ran);
    assert_eq!((report.verdict, report.exit_code, report.cordon), (UndoVerdict::Undone, 0, CordonOutcome::Lifts));
    assert!(report.cordoned_before && !report.cordoned_now);
    assert_eq!(outcomes(&report), [UndoOutcome::Cancels]);
}

#[test]
fn only_what_names_the_node_is_touched() {
    let elsewhere = vmi("b").with(|v| v.marked = Some("node-1".into()));
    let mut foreign = migration("c", "Running");
    foreign.evacuates = Some("node-1".into());
    let mut by_hand = migration("d", "Running");
    by_hand.evacuates = None;
    let world = world().vmi(elsewhere).vmi(vmi("c")).vmi(vmi("d")).migration(foreign).migration(by_hand);
    let mut undo = Undo::new("node-0", &world.index);
    assert_eq!(undo.planned(&world.index), []);
    assert_eq!(undo.steps(&world.index), []);
    let report = report(&undo, &world, End::Ran);
    assert!(report.is_nothing());
    assert_eq!((report.exit_code, report.cordon), (0, CordonOutcome::None));
}

#[test]
fn a_cordon_of_somebody_else_stays() {
    for (manager, words) in [(Some("kubectl-cordon"), "kubectl-cordon set it"), (None, "does not tell")] {
        let world = world().node(cordoned_by(manager));
        let mut undo = Undo::new("node-0", &world.index);
        assert_eq!(undo.steps(&world.index), []);
        let report = report(&undo, &world, End::Ran);
        assert_eq!((report.exit_code, report.cordon, report.cordoned_now), (0, CordonOutcome::Stays, true));
        assert!(report.cordon_because.unwrap().contains(words));
    }
}

#[test]
fn an_old_release_keeps_its_marks_migrations_and_cordon() {
    let external = marked("b").strategy(Some(Strategy::External)).owned_by(VmiOwner::Standalone);
    let world = drained("v1.6.3").vmi(marked("a")).vmi(external).migration(migration("a", "Running"));
    let mut undo = Undo::new("node-0", &world.index);
    assert_eq!(undo.planned(&world.index), []);
    assert_eq!(undo.steps(&world.index), []);
    assert!(!undo.is_open(&world.index));
    for end in [End::Preview, End::Ran] {
        let report = report(&undo, &world, end);
        assert_eq!((report.verdict, report.exit_code), (UndoVerdict::Blocked, 3));
        assert_eq!((report.cordon, outcomes(&report)), (CordonOutcome::Stays, vec![UndoOutcome::Blocks; 2]));
        assert!(
            report.vms[0].because.contains("KubeVirt v1.6.3") && report.vms[0].because.contains("goes on migrating")
        );
        assert!(report.vms[0].remedy.as_ref().unwrap().contains("virtctl restart a -n tenant-a"));
        assert!(report.vms[1].because.contains("the controller that owns it"));
        assert!(!report.vms[1].remedy.as_ref().unwrap().contains("virtctl"));
    }
}

#[test]
fn an_unknown_release_is_asked() {
    let mut world = drained("v1.7.0").vmi(marked("a"));
    world.index.apply(Change::KubeVirt(Delta::Reset(Vec::new())));
    let mut undo = Undo::new("node-0", &world.index);
    assert_eq!(undo.steps(&world.index), [unmark("a")]);
    undo.answered(&unmark("a"), &UndoAnswer::Unsupported);
    assert_eq!(undo.steps(&world.index), []);
    let report = report(&undo, &world, End::Ran);
    assert_eq!(report.exit_code, 3);
    assert!(report.vms[0].because.contains("this KubeVirt cannot take a mark off"));
}

#[test]
fn each_answer_to_an_unmark() {
    let text = || "why".to_owned();
    let cases = [
        (UndoAnswer::Forbidden { text: text() }, 0, UndoOutcome::Blocks, ExitCode::Failed),
        (UndoAnswer::Refused { text: text() }, 0, UndoOutcome::Blocks, ExitCode::Blocked),
        (UndoAnswer::Unavailable { text: text() }, 1, UndoOutcome::Pending, ExitCode::Timeout),
        (UndoAnswer::Doubtful { text: text() }, 1, UndoOutcome::Pending, ExitCode::Timeout),
        // It was done, and the mark is there all the same.
        (UndoAnswer::Done, 0, UndoOutcome::Blocks, ExitCode::Blocked),
    ];
    for (answer, again, outcome, code) in cases {
        let world = drained("v1.7.0").vmi(marked("a")).migration(migration("a", "Running"));
        let mut undo = Undo::new("node-0", &world.index);
        undo.answered(&unmark("a"), &answer);
        assert_eq!(undo.steps(&world.index), vec![unmark("a"); again], "{answer:?}");
        assert_eq!(undo.is_open(&world.index), again > 0, "{answer:?}");
        let report = report(&undo, &world, End::Ran);
        assert_eq!((outcomes(&report), report.exit_code), (vec![outcome], code.code()), "{answer:?}");
        assert_eq!(report.cordon, CordonOutcome::Stays, "{answer:?}");
    }
}

#[test]
fn doubt_is_followed_by_one_more_try() {
    let world = drained("v1.7.0").vmi(marked("a"));
    let doubt = UndoAnswer::Doubtful { text: "nodes not found".into() };
    let mut undo = Undo::new("node-0", &world.index);
    undo.answered(&unmark("a"), &doubt);
    assert_eq!(undo.steps(&world.index), [unmark("a")]);
    undo.answered(&unmark("a"), &doubt);
    assert_eq!(undo.steps(&world.index), []);
    assert!(report(&undo, &world, End::Ran).vms[0].because.contains("nodes not found"));
}

#[test]
fn a_node_that_changes_is_looked_at_again() {
    let world = drained("v1.7.0");
    let mut undo = Undo::new("node-0", &world.index);
    for _ in 0..5 {
        assert_eq!(undo.steps(&world.index), [uncordon()]);
        undo.answered(&uncordon(), &UndoAnswer::Doubtful { text: "conflict".into() });
        assert!(undo.is_open(&world.index));
    }
    let late = report(&undo, &world, End::Ran);
    assert_eq!((late.exit_code, late.cordon), (124, CordonOutcome::Stays));
    undo.answered(&uncordon(), &UndoAnswer::Forbidden { text: "no".into() });
    let denied = report(&undo, &world, End::Ran);
    assert_eq!((denied.exit_code, denied.verdict), (1, UndoVerdict::Failed));
}

#[test]
fn what_left_or_ended_meanwhile_is_told_apart() {
    let before = drained("v1.7.0").vmi(marked("away")).vmi(marked("gone")).vmi(marked("new"));
    let undo = Undo::new("node-0", &before.index);
    let away = vmi("away").with(|v| v.node = Some("node-2".into()));
    let other = vmi("new").with(|v| v.uid = "another".into());
    let after = drained("v1.7.0").vmi(away).vmi(other);
    let report = report(&undo, &after, End::Ran);
    assert_eq!(outcomes(&report), [UndoOutcome::Migrates, UndoOutcome::Gone, UndoOutcome::Gone]);
}

#[test]
fn the_drain_taint_stands_in_the_way() {
    let tainted = cordoned_by(Some(FIELD_MANAGER)).taint("kubevirt.io/drain", "NoSchedule");
    let world = drained("v1.7.0").node(tainted).vmi(marked("a")).vmi(vmi("b")).migration(migration("b", "Pending"));
    let mut undo = Undo::new("node-0", &world.index);
    assert_eq!(undo.steps(&world.index), []);
    let report = report(&undo, &world, End::Ran);
    assert_eq!((report.exit_code, outcomes(&report)), (3, vec![UndoOutcome::Blocks; 2]));
    assert!(report.vms[0].remedy.as_ref().unwrap().contains("kubectl taint node node-0 kubevirt.io/drain:NoSchedule-"));
}

#[test]
fn a_signal_or_a_lost_contact_leaves_the_rest_pending() {
    let world = drained("v1.7.0").vmi(marked("a"));
    let undo = Undo::new("node-0", &world.index);
    for (end, code, verdict) in
        [(End::Stopped(ExitCode::Terminated), 143, UndoVerdict::Interrupted), (End::Lost, 6, UndoVerdict::Failed)]
    {
        let report = report(&undo, &world, end);
        assert_eq!((report.exit_code, report.verdict), (code, verdict));
        assert_eq!((outcomes(&report), report.cordoned_now), (vec![UndoOutcome::Pending], true));
    }
}
