use super::*;
use crate::facts::RunStrategy;
use crate::facts::testing::{NS, World, kubevirt, launcher, migration, node, now, vm, vmi, world};
use crate::facts::{Change, Delta, Key, LabelSelector, VmVolumeSource, VmiPhase};
use crate::outcome::{Cause, Hold, VmOutcome};

const DISK: &str = "DisksNotLiveMigratable";

fn audited(world: &World) -> AuditReport {
    audit(&world.index, &Scope::default(), now())
}

fn row_of<'a>(report: &'a AuditReport, name: &str) -> &'a AuditRow {
    report.nodes.iter().flat_map(|n| &n.vms).find(|row| row.vm.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// A cluster whose KubeVirt evicts and migrates what is outdated, or does not.
fn updating(live_migrate: bool, evict: bool) -> World {
    let mut cr = kubevirt(Some(Strategy::LiveMigrateIfPossible));
    cr.workload_update = WorkloadUpdate { live_migrate, evict, batch_size: 10, batch_interval: "1m".to_owned() };
    let mut world = world();
    world.index.apply(Change::KubeVirt(Delta::Reset(vec![cr])));
    world
}

#[test]
fn what_holds_a_vm_that_would_block() {
    let world = world()
        .runs(vm("stale"), vmi("stale").not_migratable(DISK))
        .runs(vm("pinned").template(Strategy::LiveMigrate), vmi("pinned").not_migratable(DISK))
        .runs(vm("once").run(RunStrategy::Once), vmi("once").not_migratable(DISK))
        .runs(vm("free"), vmi("free"));
    let report = audited(&world);
    let expected = [
        ("stale", Some(Hold::Stale), Some("virtctl restart stale -n tenant-a")),
        ("pinned", Some(Hold::Template), None),
        ("once", Some(Hold::Other), None),
        ("free", None, None),
    ];
    for (name, hold, restart) in expected {
        let row = row_of(&report, name);
        assert_eq!((row.hold(), row.restart_command.as_deref()), (hold, restart), "{name}");
    }
    // What to do is what can be done without a drain.
    assert_eq!(row_of(&report, "stale").vm.remedy.as_deref(), Some("`virtctl restart stale -n tenant-a`"));
    let pinned = row_of(&report, "pinned").vm.remedy.clone().unwrap();
    assert!(pinned.ends_with(", then `virtctl restart pinned -n tenant-a`"), "{pinned}");
    let c = report.summary.counts;
    assert_eq!((c.vms, c.blocked, c.blocked_stale, c.blocked_by_template, c.blocked_otherwise), (4, 3, 1, 1, 1));
    assert_eq!((c.migrates, c.stale, c.unclear), (1, 1, 0));
    assert_eq!(c, report.nodes[0].counts);

    let by_cluster =
        self::world().cluster_strategy(Some(Strategy::LiveMigrate)).runs(vm("held"), vmi("held").not_migratable(DISK));
    let report = audited(&by_cluster);
    assert_eq!(row_of(&report, "held").hold(), Some(Hold::Cluster));
    assert_eq!(report.summary.counts.blocked_by_cluster, 1);
}

#[test]
fn no_restart_is_offered_where_it_could_not_be_followed() {
    let stale = |name: &str| vmi(name).not_migratable(DISK);
    let world = world()
        .node(node("node-1").not_ready())
        .runs(vm("restarting"), stale("restarting").with(|v| v.deleting = true))
        .vm(vm("cut-off"))
        .vmi(stale("cut-off").with(|v| v.node = Some("node-1".into())))
        .pod(launcher("cut-off").on("node-1"));
    let report = audited(&world);
    let (restarting, cut_off) = (row_of(&report, "restarting"), row_of(&report, "cut-off"));
    assert_eq!((restarting.vm.outcome, &restarting.restart_command), (VmOutcome::Returns, &None));
    assert_eq!((cut_off.vm.cause, cut_off.hold()), (Some(Cause::NodeNotReady), Some(Hold::Other)));
    assert_eq!(cut_off.restart_command, None);
    let c = report.summary.counts;
    assert_eq!((c.stale, c.blocked_stale, c.blocked_otherwise), (2, 0, 1));
}

#[test]
fn what_an_eviction_shuts_down_is_told_with_what_comes_after() {
    let off = |name: &str| vmi(name).if_possible().not_migratable(DISK);
    let alone = node("node-0");
    let world = world()
        .node(alone)
        .runs(vm("always"), off("always"))
        .runs(vm("manual").run(RunStrategy::Manual), off("manual"))
        .runs(vm("once").run(RunStrategy::Once), off("once"))
        .runs(vm("lossy"), off("lossy").volume("scratch", VmVolumeSource::EmptyDisk));
    let report = audited(&world);
    let outcome = |name: &str| row_of(&report, name).vm.outcome;
    assert_eq!(outcome("always"), VmOutcome::Returns);
    assert_eq!(outcome("manual"), VmOutcome::Restarts);
    assert_eq!(outcome("once"), VmOutcome::StaysOff);
    // Lost data are no reason to block: nobody is asked here.
    let lossy = &row_of(&report, "lossy").vm;
    assert_eq!((lossy.outcome, lossy.data_loss.as_slice()), (VmOutcome::Returns, ["scratch".to_owned()].as_slice()));
    assert_eq!(lossy.needs, ["--delete-emptydir-data"]);
    let c = report.summary.counts;
    assert_eq!((c.returns, c.stays_off, c.down_until_node, c.blocked), (3, 1, 0, 0));
}

#[test]
fn what_is_unknown_is_not_called_false() {
    let world = world()
        .cluster_unclear()
        .runs(vm("stamped"), vmi("stamped").not_migratable(DISK))
        .runs(vm("bare"), vmi("bare").strategy(None))
        .vmi(vmi("alone").owned_by(VmiOwner::Standalone).live_migrate())
        .pod(launcher("alone"));
    let report = audited(&world);
    let stamped = row_of(&report, "stamped");
    assert_eq!((&stamped.vm.strategy_fresh, stamped.vm.stale, stamped.vm.restart_helps), (&None, None, None));
    assert_eq!((stamped.hold(), stamped.update, &stamped.restart_command), (Some(Hold::Other), None, &None));
    assert_eq!(row_of(&report, "bare").vm.strategy_now, None);
    assert!(!row_of(&report, "alone").is_unclear(), "nothing makes a new VMI of it");
    assert_eq!((report.summary.counts.unclear, report.summary.workload_update.as_ref()), (2, None));
}

#[test]
fn where_nodes_cannot_be_read_nothing_blocks_for_want_of_one() {
    let mut blind = world().runs(vm("web"), vmi("web")).runs(vm("db"), vmi("db").not_migratable(DISK));
    blind.index.apply(Change::Node(Delta::Reset(Vec::new())));
    assert_eq!(row_of(&audited(&blind), "web").vm.cause, Some(Cause::NoMigrationTarget));
    blind.index.nodes_unknown = true;
    let report = audited(&blind);
    let web = &row_of(&report, "web").vm;
    assert_eq!((web.outcome, web.because.as_str()), (VmOutcome::Migrates, "which nodes can take it is unknown"));
    assert_eq!(row_of(&report, "db").hold(), Some(Hold::Stale));
    assert_eq!((&report.nodes[0].uid, report.nodes[0].cordoned_now), (&None, None));
}

#[test]
fn each_vm_has_one_row_on_the_node_that_it_runs_on() {
    let arriving = migration("moving", "Running");
    let world = world()
        .runs(vm("moving"), vmi("moving"))
        .pod(launcher("moving").with(|p| {
            p.key.uid = "target".into();
            p.key.name = "virt-launcher-moving-y".into();
            p.node = Some("node-1".into());
        }))
        .migration(arriving)
        .runs(vm("there"), vmi("there").with(|v| v.node = Some("node-1".into())))
        .vm(vm("off").run(RunStrategy::Halted))
        .vm(vm("ended").run(RunStrategy::Manual))
        .vmi(vmi("ended").with(|v| v.phase = VmiPhase::Succeeded))
        .vm(vm("pending"))
        .vmi(vmi("pending").with(|v| {
            v.node = None;
            v.phase = VmiPhase::Scheduling;
        }));
    let report = audited(&world);
    let places: Vec<(&str, Vec<&str>)> = report
        .nodes
        .iter()
        .map(|n| (n.name.as_str(), n.vms.iter().map(|row| row.vm.name.as_str()).collect()))
        .collect();
    assert_eq!(places, [("node-0", vec!["moving"]), ("node-1", vec!["there"])]);
    assert_eq!((report.summary.stopped, report.summary.starting), (2, 1));
    let selector =
        LabelSelector { expressions: vec![("app".into(), "Exists".into(), Vec::new())], ..LabelSelector::default() };
    let none = audit(&world.index, &Scope { selector: Some(selector), namespace: None }, now());
    assert_eq!((none.nodes.len(), none.summary.stopped, none.summary.starting), (0, 0, 0));
}

#[test]
fn what_an_update_of_kubevirt_does_follows_its_methods_and_the_strategy() {
    use UpdateEffect::{Migrates, Returns, Stays, StaysOff};
    let effect = |live_migrate: bool, evict: bool, strategy: Strategy, migratable: bool, run: RunStrategy| {
        let vmi = vmi("a").strategy(Some(strategy));
        let vmi = if migratable { vmi } else { vmi.not_migratable(DISK) };
        let world = updating(live_migrate, evict).runs(vm("a").run(run), vmi);
        row_of(&audited(&world), "a").update.unwrap()
    };
    let always = || RunStrategy::Always;
    let permissive = || Strategy::LiveMigrateIfPossible;
    let cases = [
        ((true, true, permissive(), true, always()), Migrates),
        ((true, true, Strategy::None, true, always()), Migrates),
        ((true, true, permissive(), false, always()), Returns),
        ((true, true, permissive(), false, RunStrategy::RerunOnFailure), StaysOff),
        ((true, true, Strategy::LiveMigrate, false, always()), Stays),
        ((true, true, Strategy::External, false, always()), Stays),
        ((false, true, Strategy::None, true, always()), Returns),
        ((false, true, Strategy::LiveMigrate, true, always()), Migrates),
        ((true, false, permissive(), false, always()), Stays),
        ((false, false, permissive(), true, always()), Stays),
    ];
    for ((live_migrate, evict, strategy, migratable, run), expected) in cases {
        let words = format!("{live_migrate} {evict} {strategy} {migratable} {run}");
        assert_eq!(effect(live_migrate, evict, strategy, migratable, run), expected, "{words}");
    }
    let world = updating(true, true)
        .runs(vm("stale"), vmi("stale").not_migratable(DISK))
        .runs(vm("starting"), vmi("starting").condition_missing())
        .runs(vm("old"), vmi("old").with(|v| v.outdated = true));
    let report = audited(&world);
    let stale = row_of(&report, "stale");
    assert_eq!((stale.update, stale.update_after_restart), (Some(Stays), Some(Returns)));
    assert_eq!(row_of(&report, "starting").update, None, "nobody knows yet");
    assert_eq!((report.summary.counts.outdated, report.summary.counts.shut_down_by_update), (1, 0));
    let policy = report.summary.workload_update.unwrap();
    assert_eq!((policy.methods.as_slice(), policy.batch_eviction_size), (["LiveMigrate", "Evict"].as_slice(), 10));
}

#[test]
fn work_grows_with_the_vms_and_no_faster() {
    let size = |n: usize| {
        let mut world = world();
        for i in 0..n {
            let name = format!("vm-{i}");
            world = world.runs(vm(&name), vmi(&name)).migration(migration(&name, "Succeeded"));
        }
        world
    };
    // Looks at each of 3 000 VMs of one namespace: seconds if each looked at all pods or all migrations.
    let report = audited(&size(3_000));
    assert_eq!(report.summary.counts.migrates, 3_000);
    assert_eq!(report.nodes[0].vms[0].vm.namespace, NS);
    assert!(report.nodes[0].vms.iter().all(|row| row.vm.launcher.is_some()));
    assert_eq!(size(1).index.launchers_of(&Key::new(NS, "vm-0")).count(), 1);
}
