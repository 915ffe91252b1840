//! Seven VMs that cover what a drain meets, made under LiveMigrate before the cluster went to LiveMigrateIfPossible.

use super::{planned, vm_of};
use crate::facts::testing::{World, hotplug, node, pod, vm, vmi, world};
use crate::facts::{RunStrategy, Strategy};
use crate::outcome::{Cause, Verdict, VmOutcome};
use crate::plan::consent::{ConsentOptions, Decision, RestartStale, settle};
use crate::plan::{ConsentKind, Plan, VmAction, would_exit};

fn lab() -> World {
    let disks = "DisksNotLiveMigratable";
    world()
        .runs(vm("db-0"), vmi("db-0").live_migrate().not_migratable(disks))
        .runs(vm("web-1"), vmi("web-1").live_migrate())
        .runs(
            vm("gpu-1").run(RunStrategy::RerunOnFailure),
            vmi("gpu-1").live_migrate().not_migratable("HostDeviceNotLiveMigratable"),
        )
        .runs(vm("pinned-1").template(Strategy::LiveMigrate), vmi("pinned-1").live_migrate().not_migratable(disks))
        .runs(vm("ext-1").template(Strategy::External), vmi("ext-1").strategy(Some(Strategy::External)))
        .runs(vm("hang-1"), vmi("hang-1").live_migrate())
        .runs(vm("fail-1"), vmi("fail-1").live_migrate())
        .pod(hotplug("db-0"))
        .pod(pod("web-0"))
}

#[test]
fn without_consent() {
    let mut plan = planned(&lab());
    assert_eq!(settle(&mut plan, &ConsentOptions::default()), Decision::Go);
    let rows = [
        ("db-0", VmOutcome::Blocks, VmAction::Leave, Some(Cause::VmNotMigratable), vec!["--restart-stale"]),
        ("ext-1", VmOutcome::Waits, VmAction::AwaitOwner, Some(Cause::ExternalOwner), vec![]),
        ("fail-1", VmOutcome::Migrates, VmAction::Migrate, None, vec![]),
        ("gpu-1", VmOutcome::Blocks, VmAction::Leave, Some(Cause::VmNotMigratable), vec!["--restart-stale"]),
        ("hang-1", VmOutcome::Migrates, VmAction::Migrate, None, vec![]),
        ("pinned-1", VmOutcome::Blocks, VmAction::Leave, Some(Cause::VmNotMigratable), vec![]),
        ("web-1", VmOutcome::Migrates, VmAction::Migrate, None, vec![]),
    ];
    let names: Vec<&str> = plan.nodes[0].vms.iter().map(|v| v.vmi.name.as_str()).collect();
    assert_eq!(names, rows.each_ref().map(|r| r.0), "sorted");
    for (name, outcome, action, cause, needs) in rows {
        let item = vm_of(&plan, name);
        assert_eq!((item.row.outcome, item.action, item.row.cause), (outcome, action, cause), "{name}");
        assert_eq!(item.row.needs, needs, "{name}");
    }
    let db = &vm_of(&plan, "db-0").row;
    assert_eq!((db.stale, db.restart_helps, db.strategy_source), (Some(true), Some(true), Some("cluster")));
    let because = "disk root is not shared (not ReadWriteMany); a restart gives it LiveMigrateIfPossible";
    assert_eq!(db.because, format!("{because} (+1 hot-plugged volume)"));
    assert_eq!(db.remedy.as_deref(), Some("add --restart-stale"));
    assert_eq!(vm_of(&plan, "gpu-1").row.because, "it has a GPU; a restart gives it LiveMigrateIfPossible");
    let report = plan.nodes[0].report();
    assert_eq!((report.verdict, report.exit_code), (Verdict::Blocked, 3));
    assert_eq!((report.counts.blocked, report.counts.waiting, report.counts.pods), (3, 1, 1));
    assert!(!plan.is_clear());
}

#[test]
fn with_restart_stale_one_is_left() {
    let mut plan = planned(&lab());
    let options = ConsentOptions { restart_stale: RestartStale::Always, ..ConsentOptions::default() };
    assert_eq!(settle(&mut plan, &options), Decision::Go);
    for name in ["db-0", "gpu-1"] {
        let item = vm_of(&plan, name);
        assert_eq!((item.action, item.row.outcome), (VmAction::Restart, VmOutcome::Restarts), "{name}");
        assert_eq!((item.consent, item.row.needs.len()), (Some(ConsentKind::Restart), 0), "{name}");
    }
    assert_eq!(plan.nodes[0].report().counts.blocked, 1);
    assert_eq!(would_exit(&plan), 3);
}

#[test]
fn hotplug_pods_are_folded_under_their_vm() {
    let plan = planned(&lab());
    assert_eq!(vm_of(&plan, "db-0").companions.len(), 1);
    assert_eq!(plan.nodes[0].pods.len(), 1, "only web-0 has a row of its own");
}

#[test]
fn external_ends_at_the_timeout_and_a_clear_node_at_zero() {
    let external = world().runs(vm("e"), vmi("e").strategy(Some(Strategy::External)));
    let plan = planned(&external);
    let report = plan.nodes[0].report();
    assert_eq!((report.verdict, report.exit_code), (Verdict::Clear, 124));
    assert!(plan.is_clear() && would_exit(&plan) == 124);
    assert!(report.warnings.iter().any(|w| w.contains("124")));
    assert_eq!(would_exit(&planned(&world().runs(vm("a"), vmi("a")))), 0);
}

#[test]
fn with_no_open_node_left_the_command_is_refused() {
    let alone = || world().node(node("node-1").cordoned()).node(node("node-2").not_ready());
    let mut plan = planned(&alone().runs(vm("a"), vmi("a")));
    let closed = "no open node is left for the VMs that must move: \
                  node-1 is cordoned (`kubectl uncordon node-1`), node-2 is not ready";
    assert!(matches!(settle(&mut plan, &ConsentOptions::default()), Decision::Refuse(r) if r[0].because == closed));
    assert_eq!(would_exit(&plan), 4);
    let mut plan = planned(&alone().pod(pod("web-0")));
    assert_eq!(settle(&mut plan, &ConsentOptions::default()), Decision::Go, "no VM must move");
    let nodes = ["node-0".to_owned(), "node-1".to_owned(), "node-2".to_owned()];
    let all = world().runs(vm("a"), vmi("a"));
    let plan =
        crate::plan::build(&all.index, &nodes, &crate::plan::PlanOptions::default(), crate::facts::testing::now());
    assert!(plan.nowhere_to_go, "this command's nodes do not count");
}

#[test]
fn a_grace_period_beyond_the_timeout_is_said_with_a_fitting_value() {
    let slow = vmi("win").if_possible().not_migratable("DisksNotLiveMigratable").with(|v| v.grace_seconds = 3600);
    let plan = planned(&world().runs(vm("win"), slow));
    assert_eq!(
        plan.nodes[0].warnings,
        ["tenant-a/win may take 1h to shut down, and --timeout is 30m, so it is not begun: --timeout=65m fits"]
    );
    assert_eq!(would_exit(&plan), 124, "a shutdown that is not begun remains");
    let mut stale = world();
    for n in 0..12 {
        let name = format!("v{n}");
        let slow = vmi(&name).not_migratable("DisksNotLiveMigratable").with(|v| v.grace_seconds = 900);
        stale = stale.runs(vm(&name), slow);
    }
    let mut plan = planned(&stale);
    let rounds = "12 VMs restart, 5 at a time, which may take 45m, and --timeout is 30m, so the last of them may not be begun: \
                  --timeout=50m fits";
    assert_eq!(plan.nodes[0].warnings, [rounds], "three rounds of 15 minutes");
    settle(&mut plan, &ConsentOptions::default());
    assert!(plan.nodes[0].warnings.is_empty(), "none of them is restarted: {:?}", plan.nodes[0].warnings);
    let mut many = world();
    for n in 0..300 {
        let name = format!("v{n}");
        many = many.runs(vm(&name), vmi(&name));
    }
    let warnings = &planned(&many).nodes[0].warnings;
    assert_eq!(warnings.len(), 1);
    // How long the memory of a guest takes, nobody knows before: no value surely fits.
    let queue =
        "300 VMs migrate, 2 at a time, which takes 37m30s or more, and --timeout is 30m: give it --timeout=43m or more";
    assert_eq!(warnings[0], queue);
}

#[test]
fn warnings_are_about_what_the_plan_does() {
    let silent = |v: &mut crate::facts::VmiFacts| (v.agent_connected, v.grace_seconds) = (false, 30);
    let off = vmi("back").if_possible().not_migratable("DisksNotLiveMigratable").with(silent);
    let stale = vmi("old").not_migratable("DisksNotLiveMigratable").with(silent);
    let mut plan = planned(&world().runs(vm("old"), stale).runs(vm("back"), off));
    let agents = |plan: &Plan| plan.nodes[0].warnings.iter().filter(|w| w.contains("no guest agent")).count();
    assert_eq!(agents(&plan), 2);
    settle(&mut plan, &ConsentOptions::default());
    assert_eq!(agents(&plan), 1, "the stale VM stays up: {:?}", plan.nodes[0].warnings);
}

#[test]
fn an_unclear_cluster_is_said_once() {
    let plan = planned(&world().cluster_unclear().runs(vm("a"), vmi("a")).runs(vm("b"), vmi("b")));
    assert_eq!(plan.warnings.iter().filter(|w| w.contains("KubeVirt object")).count(), 1);
}
