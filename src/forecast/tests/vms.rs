//! What a drain does to one VM.

use crate::facts::testing::{
    NS, World, ago, budget, claim_on, labels, launcher, migration, node, now, tolerates, vm, vmi, world,
};
use crate::facts::{Key, MigrationState, RunStrategy, Strategy, VmFacts, VmVolumeSource, VmiFacts, VmiOwner};
use crate::outcome::{Cause, VmOutcome};
use crate::plan::{ConsentKind, PlanOptions, VmAction, VmItem, forecast_vm};

const DISKS: &str = "DisksNotLiveMigratable";

fn item(world: &World, name: &str) -> VmItem {
    with_options(world, name, &PlanOptions::default())
}

fn with_options(world: &World, name: &str, options: &PlanOptions) -> VmItem {
    let mut options = options.clone();
    options.drained_nodes.insert("node-0".into());
    forecast_vm(&world.index, "node-0", &Key::new(NS, name), &options, now()).unwrap()
}

fn runs(vm: VmFacts, vmi: VmiFacts) -> VmItem {
    let name = vm.key.name.clone();
    item(&world().runs(vm, vmi), &name)
}

/// A migration whose transfer is over.
fn came_to(node: &str) -> MigrationState {
    MigrationState {
        migration_uid: None,
        source_node: Some("node-1".into()),
        target_node: Some(node.into()),
        started: Some(ago(20)),
        ended: Some(ago(1)),
        completed: true,
        failed: false,
        failure_reason: None,
    }
}

fn says(item: &VmItem) -> (VmAction, Option<ConsentKind>, VmOutcome, Option<Cause>) {
    (item.action, item.consent, item.row.outcome, item.row.cause)
}

#[test]
fn migratable_vms_migrate_unless_no_node_can_take_them() {
    for machine in [vmi("a").live_migrate(), vmi("a").if_possible()] {
        let found = runs(vm("a"), machine.clone());
        assert_eq!(says(&found), (VmAction::Migrate, None, VmOutcome::Migrates, None));
        assert_eq!(found.row.because, "2 nodes can take it");
        let full = world().node(node("node-1").cordoned()).node(node("node-2").cordoned()).runs(vm("a"), machine);
        let found = item(&full, "a");
        assert_eq!(says(&found), (VmAction::Leave, None, VmOutcome::Blocks, Some(Cause::NoMigrationTarget)));
        assert_eq!(found.row.waiting_helps, Some(false));
        assert_eq!(found.row.because, "no other node can take it: 2 are cordoned (node-1, node-2)");
    }
}

#[test]
fn the_host_model_decides_about_a_migration_but_not_about_a_restart() {
    let world = world().node(node("node-0").label("host-model-cpu.node.kubevirt.io/Skylake", "true"));
    let host_model = |v: VmiFacts| v.with(|v| v.cpu_model = Some("host-model".into()));
    let world = world.runs(vm("a"), host_model(vmi("a"))).runs(vm("b"), host_model(vmi("b").not_migratable(DISKS)));
    assert_eq!(item(&world, "a").row.cause, Some(Cause::NoMigrationTarget));
    assert_eq!(item(&world, "b").row.outcome, VmOutcome::Restarts);
}

#[test]
fn a_stale_vm_that_cannot_migrate_takes_a_restart() {
    let found = runs(vm("a"), vmi("a").not_migratable(DISKS).volume("os", VmVolumeSource::Claim("root".into())));
    assert_eq!(says(&found), (VmAction::Restart, Some(ConsentKind::Restart), VmOutcome::Restarts, None));
    assert_eq!(
        found.row.because,
        "disk os is not shared (not ReadWriteMany); a restart gives it LiveMigrateIfPossible"
    );
    let staged = runs(vm("a"), vmi("a").not_migratable(DISKS));
    assert!(!staged.row.because.contains("staged"));
    let mut machine = vm("a");
    machine.restart_required = true;
    let staged = runs(machine, vmi("a").not_migratable(DISKS));
    assert!(staged.row.because.ends_with("LiveMigrateIfPossible and applies staged changes"));
}

#[test]
fn a_restart_that_leaves_a_vm_down_is_of_another_kind() {
    let disk = vmi("a").not_migratable(DISKS).volume("root", VmVolumeSource::Claim("root".into()));
    let found = item(&world().claim(claim_on("root", "node-0")).runs(vm("a"), disk), "a");
    let down = (VmAction::Restart, Some(ConsentKind::RestartDown), VmOutcome::DownUntilNode);
    assert_eq!((found.action, found.consent, found.row.outcome), down);
    assert_eq!(found.row.cause, Some(Cause::BoundToNode));

    let gpu = launcher("a").with(|p| p.demands.devices = [("nvidia.com/A100".to_owned(), 1)].into());
    let here = node("node-0").device("nvidia.com/A100", 1);
    let world = world().node(here).runs(vm("a"), vmi("a").not_migratable("HostDeviceNotLiveMigratable")).pod(gpu);
    let found = item(&world, "a");
    assert_eq!((found.action, found.consent, found.row.outcome), down);
    assert_eq!(found.row.cause, Some(Cause::BoundToNode));
    assert_eq!(item(&world.node(node("node-2").device("nvidia.com/A100", 1)), "a").consent, Some(ConsentKind::Restart));
}

#[test]
fn what_holds_a_vm_that_is_not_stale_is_named() {
    let stuck = || vmi("a").not_migratable(DISKS);
    let found = runs(vm("a").template(Strategy::LiveMigrate), stuck());
    assert_eq!(says(&found), (VmAction::Leave, None, VmOutcome::Blocks, Some(Cause::VmNotMigratable)));
    assert_eq!(found.row.waiting_helps, Some(false));
    assert!(found.row.because.contains("its VM template asks for LiveMigrate"), "{}", found.row.because);
    let remedy = found.row.remedy.unwrap();
    assert!(remedy.contains("kubectl patch vm a -n tenant-a --type=merge -p"), "{remedy}");
    assert!(remedy.ends_with("`, then add --restart-stale"), "{remedy}");

    let cluster = world().cluster_strategy(Some(Strategy::LiveMigrate)).runs(vm("a"), stuck());
    assert!(item(&cluster, "a").row.because.contains("the cluster's evictionStrategy"));

    let unclear = world().cluster_unclear().runs(vm("a"), stuck());
    assert!(item(&unclear, "a").row.because.contains("unknown"));
    assert_eq!(item(&unclear, "a").row.outcome, VmOutcome::Blocks);

    let once = runs(vm("a").run(RunStrategy::Once), stuck());
    assert_eq!(once.row.outcome, VmOutcome::Blocks);
    assert!(once.row.because.contains("runStrategy Once allows no restart"));

    let set = item(&world().vmi(stuck().owned_by(VmiOwner::ReplicaSet { name: "rs".into() })).pod(launcher("a")), "a");
    assert!(set.row.remedy.unwrap().contains("kubectl delete vmi a -n tenant-a"));
    assert!(!set.has_vm);
    let alone = item(&world().vmi(stuck().owned_by(VmiOwner::Standalone)).pod(launcher("a")), "a");
    assert!(alone.row.remedy.unwrap().contains("ends it for good"));
}

#[test]
fn a_shutdown_is_followed_by_what_the_run_strategy_says() {
    use ConsentKind::EvictDown;
    use VmAction::{Restart, ShutDown};
    let rows = [
        (RunStrategy::Always, ShutDown, None, VmOutcome::Returns),
        (RunStrategy::RerunOnFailure, Restart, None, VmOutcome::Restarts),
        (RunStrategy::Manual, Restart, None, VmOutcome::Restarts),
        (RunStrategy::Once, ShutDown, Some(EvictDown), VmOutcome::StaysOff),
        (RunStrategy::Halted, ShutDown, None, VmOutcome::StaysOff),
        (RunStrategy::WaitAsReceiver, ShutDown, Some(EvictDown), VmOutcome::StaysOff),
    ];
    for (strategy, action, consent, outcome) in rows {
        for machine in [vmi("a").if_possible().not_migratable(DISKS), vmi("a").strategy(Some(Strategy::None))] {
            let found = runs(vm("a").run(strategy.clone()), machine);
            assert_eq!((found.action, found.consent, found.row.outcome), (action, consent, outcome), "{strategy}");
        }
    }
}

#[test]
fn a_shutdown_without_a_vm() {
    let goes = |owner| {
        item(&world().vmi(vmi("a").if_possible().not_migratable(DISKS).owned_by(owner)).pod(launcher("a")), "a")
    };
    let set = goes(VmiOwner::ReplicaSet { name: "rs".into() });
    assert_eq!(says(&set), (VmAction::ShutDown, None, VmOutcome::Returns, None));
    let alone = goes(VmiOwner::Standalone);
    assert_eq!(
        says(&alone),
        (VmAction::ShutDown, Some(ConsentKind::EvictDown), VmOutcome::StaysOff, Some(Cause::StaysOff))
    );
    let unread = item(&world().vmi(vmi("a").strategy(Some(Strategy::None))).pod(launcher("a")), "a");
    assert_eq!(unread.consent, Some(ConsentKind::EvictDown), "its VM could not be read");
}

#[test]
fn a_shutdown_of_a_bound_vm_needs_consent() {
    for run in [RunStrategy::Always, RunStrategy::RerunOnFailure] {
        let bound = vmi("a").if_possible().not_migratable(DISKS).volume("root", VmVolumeSource::Claim("root".into()));
        let found = item(&world().claim(claim_on("root", "node-0")).runs(vm("a").run(run), bound), "a");
        assert_eq!((found.consent, found.row.outcome), (Some(ConsentKind::EvictDown), VmOutcome::DownUntilNode));
        assert_eq!(found.row.cause, Some(Cause::BoundToNode));
    }
}

#[test]
fn restarts_that_are_not_permitted_or_refused() {
    let denied = PlanOptions { restart_denied: [NS.to_owned()].into(), ..PlanOptions::default() };
    let refused = PlanOptions { restart_refused: [Key::new(NS, "a")].into(), ..PlanOptions::default() };
    let stale = world().runs(vm("a"), vmi("a").not_migratable(DISKS));
    let found = with_options(&stale, "a", &denied);
    assert_eq!(says(&found), (VmAction::Leave, None, VmOutcome::Blocks, Some(Cause::Forbidden)));
    assert_eq!(with_options(&stale, "a", &refused).row.cause, Some(Cause::RestartRefused));
    let manual = world().runs(vm("a").run(RunStrategy::Manual), vmi("a").strategy(Some(Strategy::None)));
    for options in [denied, refused] {
        let found = with_options(&manual, "a", &options);
        assert_eq!(says(&found).0, VmAction::ShutDown);
        assert_eq!(found.consent, Some(ConsentKind::EvictDown));
        assert_eq!(found.row.remedy.as_deref(), Some("virtctl start a -n tenant-a"));
    }
}

#[test]
fn data_that_ends_with_the_launcher_takes_a_flag_unless_it_migrates() {
    let scratch = |v: VmiFacts| {
        v.volume("scratch", VmVolumeSource::EmptyDisk).volume("os", VmVolumeSource::Ephemeral("img".into()))
    };
    let flag = PlanOptions { delete_emptydir_data: true, ..PlanOptions::default() };
    for machine in [vmi("a").not_migratable(DISKS), vmi("a").strategy(Some(Strategy::None))] {
        let world = world().runs(vm("a"), scratch(machine));
        let found = item(&world, "a");
        assert_eq!(found.row.data_loss, ["scratch", "os"]);
        assert_eq!(found.row.needs, ["--delete-emptydir-data"]);
        assert!(with_options(&world, "a", &flag).row.needs.is_empty());
    }
    let found = runs(vm("a"), scratch(vmi("a")));
    assert!(found.row.needs.is_empty() && found.row.data_loss.is_empty(), "a migration copies it");
}

#[test]
fn waits() {
    let external = |v: VmiFacts| v.strategy(Some(Strategy::External));
    let found = runs(vm("a"), external(vmi("a")).with(|v| v.tenant_cluster = Some("prod".into())));
    assert_eq!(says(&found), (VmAction::AwaitOwner, None, VmOutcome::Waits, Some(Cause::ExternalOwner)));
    assert_eq!(found.row.because, "the controller of tenant cluster prod must drain and delete this VM");

    let found = runs(vm("a"), vmi("a").condition_missing().with(|v| v.scheduled_at = Some(ago(30))));
    assert_eq!(says(&found), (VmAction::AwaitCondition, None, VmOutcome::Waits, Some(Cause::ConditionMissing)));
    let found = runs(vm("a"), vmi("a").condition_missing().with(|v| v.scheduled_at = Some(ago(121))));
    assert_eq!(says(&found), (VmAction::Leave, None, VmOutcome::Blocks, Some(Cause::ConditionMissing)));
    let found = runs(vm("a"), vmi("a").strategy(Some(Strategy::None)).condition_missing());
    assert_eq!(found.row.outcome, VmOutcome::Returns, "None shuts it down whatever the condition says");

    let found = runs(vm("a"), vmi("a").with(|v| v.node = Some("node-1".into())));
    assert_eq!(says(&found), (VmAction::AwaitMigration, None, VmOutcome::Waits, Some(Cause::VmMigrationTarget)));

    // It runs here already, and the VMIM has not said its last word.
    let arriving = |phase: &str| {
        let mut incoming = migration("a", phase);
        incoming.target_node = None;
        let state = MigrationState { migration_uid: Some(incoming.uid.clone()), ..came_to("node-0") };
        item(&world().runs(vm("a"), vmi("a").with(|v| v.migration = Some(state))).migration(incoming), "a")
    };
    let waits = (VmAction::AwaitMigration, None, VmOutcome::Waits, Some(Cause::VmMigrationTarget));
    assert_eq!(says(&arriving("Running")), waits);
    assert_eq!(arriving("Succeeded").action, VmAction::Migrate);

    let found = runs(vm("a"), vmi("a").with(|v| v.deleting = true));
    assert_eq!(says(&found), (VmAction::AwaitGone, None, VmOutcome::Returns, Some(Cause::Stopping)));
    let going = world().runs(vm("a"), vmi("a").strategy(Some(Strategy::None))).pod(launcher("a").deleted(-20));
    assert_eq!(item(&going, "a").action, VmAction::AwaitGone);
}

#[test]
fn a_second_run_resumes() {
    let marked = |v: VmiFacts| v.with(|v| v.marked = Some("node-0".into()));
    let found = runs(vm("a"), marked(vmi("a")));
    assert_eq!((found.action, found.row.marked), (VmAction::Migrate, true));
    assert!(!runs(vm("a"), vmi("a").with(|v| v.marked = Some("node-9".into()))).row.marked, "another node's mark");

    let full = || world().node(node("node-1").cordoned()).node(node("node-2").cordoned());
    let under_way = full().runs(vm("a"), marked(vmi("a"))).migration(migration("a", "Running"));
    assert_eq!(item(&under_way, "a").row.because, "its migration to node-1 is under way");
    let over = full().runs(vm("a"), marked(vmi("a"))).migration(migration("a", "Failed"));
    assert_eq!(item(&over, "a").row.cause, Some(Cause::NoMigrationTarget));
    let stuck = runs(vm("a"), marked(vmi("a").not_migratable(DISKS)));
    assert_eq!(stuck.action, VmAction::Restart, "a mark that nothing follows does not make it migratable");
}

#[test]
fn an_eviction_never_breaks_a_migration_of_a_vm_that_it_would_shut_down() {
    let moving = world().runs(vm("a"), vmi("a").strategy(Some(Strategy::None))).migration(migration("a", "Running"));
    assert_eq!(item(&moving, "a").action, VmAction::AwaitMigration);
}

#[test]
fn a_silent_node_confirms_nothing() {
    for silent in [node("node-0").not_ready(), node("node-0").heartbeat(301)] {
        for machine in [vmi("a"), vmi("a").strategy(Some(Strategy::None)), vmi("a").not_migratable(DISKS)] {
            let found = item(&world().node(silent.clone()).runs(vm("a"), machine), "a");
            assert_eq!(says(&found), (VmAction::Leave, None, VmOutcome::Blocks, Some(Cause::NodeNotReady)));
        }
    }
    let fresh = world().node(node("node-0").heartbeat(299)).runs(vm("a"), vmi("a"));
    assert_eq!(item(&fresh, "a").action, VmAction::Migrate);
}

#[test]
fn budgets_count_only_for_a_shutdown() {
    let never = || budget("b").over_launchers().status(0, 1, 1, 1);
    let goes = |machine: VmiFacts, world: World| item(&world.runs(vm("a"), machine), "a");
    let none = || vmi("a").strategy(Some(Strategy::None));
    let found = goes(none(), world().budget(never()));
    assert_eq!(says(&found), (VmAction::Leave, None, VmOutcome::Blocks, Some(Cause::BudgetNever)));
    assert_eq!(goes(vmi("a"), world().budget(never())).action, VmAction::Migrate);
    assert_eq!(goes(vmi("a").not_migratable(DISKS), world().budget(never())).action, VmAction::Restart);
    let twice = world().budget(budget("a").over_launchers()).budget(budget("b").over_launchers());
    assert_eq!(goes(none(), twice).row.cause, Some(Cause::MultipleBudgets));
    let allowed = goes(none(), world().budget(budget("b").over_launchers()));
    assert_eq!((allowed.action, allowed.budgets), (VmAction::ShutDown, vec![Key::new(NS, "b")]));
}

#[test]
fn notes() {
    let noted =
        |item: VmItem, text: &str| assert!(item.notes.iter().any(|n| n.contains(text)), "{text}: {:?}", item.notes);
    let none = || vmi("a").strategy(Some(Strategy::None));
    noted(runs(vm("a"), none()), "virtctl migrate a -n tenant-a");
    noted(runs(vm("a"), none()), "a new VMI would get LiveMigrateIfPossible");
    noted(runs(vm("a"), vmi("a").with(|v| v.running_backup = Some("nightly".into()))), "backup nightly");
    noted(runs(vm("a"), none().with(|v| (v.agent_connected, v.grace_seconds) = (false, 30))), "no guest agent");
    noted(runs(vm("a"), none().volume("data", VmVolumeSource::HostDisk)), "hostDisk");
    let tolerant = launcher("a").with(|p| {
        p.tolerates_cordon = true;
        p.demands.tolerations = vec![tolerates(None)];
    });
    noted(item(&world().runs(vm("a"), none()).pod(tolerant), "a"), "may come back");
    assert!(runs(vm("a"), vmi("a")).notes.is_empty());
}

#[test]
fn a_vm_that_is_none_of_this_nodes() {
    let ask = |world: World| forecast_vm(&world.index, "node-0", &Key::new(NS, "a"), &PlanOptions::default(), now());
    assert!(ask(world()).is_none());
    let elsewhere = vmi("a").with(|v| v.node = Some("node-1".into()));
    assert!(ask(world().vm(vm("a")).vmi(elsewhere.clone()).pod(launcher("a").on("node-1"))).is_none());
    assert!(ask(world().vm(vm("a")).vmi(elsewhere).pod(launcher("a").finished())).is_none());
    let lost = ask(world().vm(vm("a")).vmi(vmi("a"))).unwrap();
    assert_eq!((lost.action, lost.row.launcher), (VmAction::AwaitCondition, None));
    let other = launcher("a").label("tier", "x");
    let options = PlanOptions {
        pod_selector: Some(crate::facts::LabelSelector {
            match_labels: labels(&[("tier", "y")]),
            expressions: Vec::new(),
        }),
        ..PlanOptions::default()
    };
    let world = world().vm(vm("a")).vmi(vmi("a")).pod(other);
    assert!(forecast_vm(&world.index, "node-0", &Key::new(NS, "a"), &options, now()).is_none());
}
