//! The plan of restarts outside a drain: whom it is about, and what becomes of each.

use std::time::Duration;

use super::vm_of;
use crate::facts::testing::{World, claim_on, launcher, migration, node, vm, vmi, world};
use crate::facts::{RunStrategy, Scope, Strategy, VmVolumeSource, VmiFacts, VmiOwner};
use crate::outcome::{Cause, VmOutcome};
use crate::plan::consent::{ConsentOptions, Decision, RestartStale, settle};
use crate::plan::{ConsentKind, Plan, PlanOptions, VmAction, VmItem, restarts, would_exit};

const DISKS: &str = "DisksNotLiveMigratable";

fn options() -> PlanOptions {
    PlanOptions { in_place: true, ..PlanOptions::default() }
}

fn planned(world: &World) -> Plan {
    planned_with(world, &options())
}

fn planned_with(world: &World, options: &PlanOptions) -> Plan {
    restarts(&world.index, &Scope::default(), options, crate::facts::testing::now())
}

fn stale(name: &str) -> VmiFacts {
    vmi(name).live_migrate().not_migratable(DISKS)
}

fn names(plan: &Plan) -> Vec<String> {
    plan.nodes.iter().flat_map(|n| n.vms.iter().map(|v| format!("{} {}", n.node, v.vmi.name))).collect()
}

fn says(item: &VmItem) -> (VmAction, Option<ConsentKind>, VmOutcome, Option<Cause>) {
    (item.action, item.consent, item.row.outcome, item.row.cause)
}

#[test]
fn only_vms_that_a_restart_helps_are_in_it() {
    let far = |name: &str| stale(name).with(|v| v.node = Some("node-1".into()));
    let world = world()
        .runs(vm("stale"), stale("stale"))
        .vm(vm("far"))
        .vmi(far("far"))
        .pod(launcher("far").on("node-1"))
        .runs(vm("moves"), vmi("moves"))
        .runs(vm("pinned").template(Strategy::LiveMigrate), stale("pinned"))
        .runs(vm("fresh"), vmi("fresh").if_possible().not_migratable(DISKS))
        .runs(vm("once").run(RunStrategy::Once), stale("once"))
        .runs(vm("manual").run(RunStrategy::Manual), stale("manual"))
        .runs(vm("starts"), stale("starts").condition_missing())
        .vmi(stale("alone").owned_by(VmiOwner::Standalone))
        .pod(launcher("alone"));
    let plan = planned(&world);
    assert_eq!(names(&plan), ["node-0 manual", "node-0 stale", "node-1 far"]);
    for name in ["manual", "stale", "far"] {
        let restart = (VmAction::Restart, Some(ConsentKind::Restart), VmOutcome::Restarts, None);
        assert_eq!(says(vm_of(&plan, name)), restart, "{name}");
    }
    assert!(plan.nodes.iter().all(|n| n.pods.is_empty()), "no other pod is anybody's business");
}

#[test]
fn a_vm_may_come_back_to_its_node_unless_that_is_closed() {
    let bound = |world: World| {
        let machine = stale("x").volume("root", VmVolumeSource::Claim("root".into()));
        world.claim(claim_on("root", "node-0")).runs(vm("x"), machine)
    };
    assert_eq!(says(vm_of(&planned(&bound(world())), "x")).2, VmOutcome::Restarts);
    // Alone in the cluster it has a node as well: its own.
    let item = planned(&bound(world().node(node("node-1").cordoned()).node(node("node-2").cordoned())));
    assert_eq!(says(vm_of(&item, "x")).2, VmOutcome::Restarts);

    let closed = planned(&bound(world().node(node("node-0").cordoned())));
    let item = vm_of(&closed, "x");
    assert_eq!((item.consent, item.row.outcome), (Some(ConsentKind::RestartDown), VmOutcome::DownUntilNode));
    let because = &item.row.because;
    assert!(
        because.contains("then it stays down until a node is open to it (no node can take it")
            && because.contains("cordoned (node-0)"),
        "{because}"
    );
}

#[test]
fn what_cannot_be_restarted_now_says_why() {
    let silent = planned(&world().node(node("node-0").not_ready()).runs(vm("x"), stale("x")));
    assert_eq!(says(vm_of(&silent, "x")), (VmAction::Leave, None, VmOutcome::Blocks, Some(Cause::NodeNotReady)));
    let gone = planned(&world().vm(vm("x")).vmi(stale("x").with(|v| v.node = Some("lost".into()))));
    assert_eq!(vm_of(&gone, "x").row.cause, Some(Cause::NodeNotReady));

    let denied = PlanOptions { restart_denied: [crate::facts::testing::NS.to_owned()].into(), ..options() };
    let plan = planned_with(&world().runs(vm("x"), stale("x")), &denied);
    assert_eq!(says(vm_of(&plan, "x")), (VmAction::Leave, None, VmOutcome::Blocks, Some(Cause::Forbidden)));

    let unclear = planned(&world().cluster_unclear().runs(vm("x"), stale("x")));
    let item = vm_of(&unclear, "x");
    assert_eq!((item.action, item.row.cause), (VmAction::Leave, Some(Cause::VmNotMigratable)));
    assert!(item.row.because.contains("unknown: no single valid KubeVirt object"), "{}", item.row.because);
    assert!(unclear.warnings[0].contains("no restart is offered"), "{:?}", unclear.warnings);
    let unread = planned(&world().vmi(stale("x")).pod(launcher("x")));
    assert_eq!(vm_of(&unread, "x").row.cause, Some(Cause::RestartRefused));

    let going = planned(&world().runs(vm("x"), stale("x").with(|v| v.deleting = true)));
    assert_eq!(says(vm_of(&going, "x")), (VmAction::AwaitGone, None, VmOutcome::Returns, Some(Cause::Stopping)));
    let moving = planned(&world().runs(vm("x"), stale("x")).migration(migration("x", "Running")));
    assert_eq!(says(vm_of(&moving, "x")).0, VmAction::AwaitMigration);
}

#[test]
fn what_a_restart_brings_besides_is_named() {
    let because = |outdated: bool, staged: bool| {
        let machine = vm("x");
        let machine = crate::facts::VmFacts { restart_required: staged, ..machine };
        let world = world().runs(machine, stale("x").with(|v| v.outdated = outdated));
        let text = vm_of(&planned(&world), "x").row.because.clone();
        text.split_once("; a restart ").unwrap().1.to_owned()
    };
    assert_eq!(because(false, false), "gives it LiveMigrateIfPossible");
    assert_eq!(because(true, false), "gives it LiveMigrateIfPossible and renews its outdated launcher");
    assert_eq!(because(false, true), "gives it LiveMigrateIfPossible and applies staged changes");
    let both = "gives it LiveMigrateIfPossible, renews its outdated launcher and applies staged changes";
    assert_eq!(because(true, true), both);
}

#[test]
fn consent_is_that_of_a_drain() {
    let lab =
        world().runs(vm("x"), stale("x")).runs(vm("tmp"), stale("tmp").volume("scratch", VmVolumeSource::EmptyDisk));
    let always = ConsentOptions { restart_stale: RestartStale::Always, ..ConsentOptions::default() };
    let Decision::Refuse(refusals) = settle(&mut planned(&lab), &always) else { panic!("data would be lost") };
    let [refusal] = refusals.as_slice() else { panic!("{refusals:?}") };
    assert_eq!((refusal.cause, refusal.needs.as_slice()), (Cause::LocalData, ["--delete-emptydir-data"].as_slice()));
    let flag = PlanOptions { delete_emptydir_data: true, ..options() };
    let mut plan = planned_with(&lab, &flag);
    assert_eq!((settle(&mut plan, &always), would_exit(&plan)), (Decision::Go, 0));

    let nobody = ConsentOptions { restart_stale: RestartStale::Ask, ..ConsentOptions::default() };
    let mut plan = planned_with(&lab, &flag);
    let Decision::Refuse(refusals) = settle(&mut plan, &nobody) else { panic!("nobody agreed") };
    assert_eq!((refusals.len(), would_exit(&plan)), (2, 4));
}

#[test]
fn a_guest_that_may_outlast_the_timeout_is_warned_of_once() {
    let slow = |name: &str| stale(name).with(|v| v.grace_seconds = 3600);
    let world = world().runs(vm("a"), slow("a")).runs(vm("b"), slow("b"));
    let short = PlanOptions { timeout: Duration::from_secs(600), ..options() };
    let warnings = planned_with(&world, &short).warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("may take 1h to shut down") && warnings[0].contains("--timeout=65m fits"),
        "{warnings:?}"
    );
}
