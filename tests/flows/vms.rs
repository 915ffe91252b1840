//! VMs: how they leave, and what becomes of them.

use safe_drain::event::EventKind;
use safe_drain::settings::{LabelSelector, RestartStale};
use safe_drain_sim::{Json, Options, Profile, Sim, Vm, World};
use serde_json::json;

use crate::harness::{drain, secs};

pub const DISK: &str = "DisksNotLiveMigratable";

/// Three nodes, KubeVirt 1.7; what follows is on node-0.
pub fn cluster(strategy: &str) -> World {
    with(Profile::V1_7, strategy)
}

/// The same with another release.
pub fn with(profile: Profile, strategy: &str) -> World {
    let eviction_strategy = (!strategy.is_empty()).then(|| strategy.to_owned());
    Sim::new(Options { kubevirt: Some(profile), eviction_strategy, ..Options::default() }).world().nodes(3).on("node-0")
}

pub fn node_of(sim: &Sim, vmi: &str) -> String {
    let vmi = sim.get("VirtualMachineInstance", "tenant-a", vmi);
    vmi.map(|v| v.text("/status/nodeName").to_owned()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_standalone_vmi_ends_for_good() {
    let world = || cluster("None").vmi("tenant-a", Vm::new("lone-1")).done();
    let sim = world();
    drain(&sim, "node-0").run().await.exits(4).changed_nothing();
    let sim = world();
    let run = drain(&sim, "node-0").with(|o| o.allow_vm_down = true).run().await;
    run.exits(0);
    run.vm_is("lone-1", "stays-off", "StaysOff");

    let sim = cluster("LiveMigrate").vmi("tenant-a", Vm::new("lone-1")).done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    run.vm_is("lone-1", "migrates", "");

    let sim = cluster("LiveMigrate").vmi("tenant-a", Vm::new("lone-1").non_migratable(DISK)).done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(3);
    let row = run.vm_is("lone-1", "blocks", "VmNotMigratable");
    assert!(row.text("/remedy").contains("kubectl delete vmi lone-1"), "{row}");
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_starts_others() {
    let sim = cluster("None").vmi_replica_set("tenant-a", "pool", 2, Vm::new("pool")).done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert_eq!(run.rows("vms").len(), 2);
    assert!(run.rows("vms").iter().all(|r| r.text("/outcome") == "returns"), "{run}");
    let left = sim.list("VirtualMachineInstance");
    assert!(left.iter().all(|v| v.text("/status/nodeName") != "node-0"), "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_ignores_its_shutdown_takes_its_grace() {
    let sim = cluster("LiveMigrateIfPossible")
        .vm("tenant-a", Vm::new("db-0").non_migratable(DISK).ignores_shutdown().grace(40))
        .done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    run.vm_is("db-0", "returns", "");
    assert!(run.elapsed >= secs(40), "{:?}", run.elapsed);
}

#[tokio::test(start_paused = true)]
async fn no_shutdown_is_sent_that_cannot_end_in_time() {
    let sim = cluster("LiveMigrateIfPossible").vm("tenant-a", Vm::new("db-0").non_migratable(DISK).grace(3600)).done();
    let run = drain(&sim, "node-0").timeout(600).run().await;
    run.exits(124).says("--timeout=");
    run.vm_is("db-0", "pending", "GraceTooLong");
    assert!(run.launcher_evictions("db-0").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_no_other_node_takes_is_not_marked() {
    let sim = cluster("LiveMigrate")
        .change("Node", "", "node-0", |n| n.set_label("pool", "gpu"))
        .vm("tenant-a", Vm::new("gpu-1").node_selector("pool", "gpu"))
        .vm("tenant-a", Vm::new("web-1"))
        .done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(3);
    run.vm_is("gpu-1", "blocks", "NoMigrationTarget");
    run.vm_is("web-1", "migrates", "");
    assert!(run.launcher_evictions("gpu-1").is_empty(), "a mark would block every later eviction");
}

#[tokio::test(start_paused = true)]
async fn the_only_node_has_its_disk() {
    let world = || {
        cluster("LiveMigrateIfPossible")
            .volume("tenant-a", "data", "ReadWriteOnce", Some("node-0"))
            .vm("tenant-a", Vm::new("db-0").claim("data").non_migratable(DISK))
            .done()
    };
    let sim = world();
    drain(&sim, "node-0").run().await.exits(4).changed_nothing();
    let sim = world();
    let run = drain(&sim, "node-0").with(|o| o.allow_vm_down = true).run().await;
    run.exits(0);
    run.vm_is("db-0", "down-until-node", "BoundToNode");
}

#[tokio::test(start_paused = true)]
async fn a_guests_own_disk_needs_the_flag_for_lost_data() {
    let world = || {
        cluster("LiveMigrateIfPossible")
            .vm("tenant-a", Vm::new("db-0").empty_disk("scratch").non_migratable(DISK))
            .done()
    };
    let sim = world();
    let run = drain(&sim, "node-0").run().await;
    run.exits(4).changed_nothing().says("scratch").says("--delete-emptydir-data");
    let sim = world();
    let run = drain(&sim, "node-0").with(|o| o.delete_emptydir_data = true).run().await;
    run.exits(0);
    assert_eq!(run.vm_is("db-0", "returns", "").list("/dataLoss"), ["scratch"]);
    // One that migrates keeps its data and needs nothing.
    let sim = cluster("LiveMigrate").vm("tenant-a", Vm::new("web-1").empty_disk("scratch")).done();
    drain(&sim, "node-0").run().await.exits(0);
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_loses_its_ability_to_migrate_is_not_shut_down() {
    let sim = cluster("LiveMigrateIfPossible").vm("tenant-a", Vm::new("web-1")).done();
    let run = drain(&sim, "node-0")
        .changes()
        .when(|e| matches!(e, EventKind::Planned { .. }), |sim| {
            sim.update("VirtualMachineInstance", "tenant-a", "web-1", |v| {
                v.set_condition(json!({"type": "LiveMigratable", "status": "False", "reason": DISK, "message": "its disk became local"}));
            });
        })
        .run()
        .await;
    run.exits(3);
    run.vm_is("web-1", "blocks", "BecameNonMigratable");
    assert!(run.launcher_evictions("web-1").is_empty(), "the eviction would have shut it down\n{run}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_keeps_its_vms() {
    let sim = cluster("LiveMigrateIfPossible").vm("tenant-a", Vm::new("db-0").non_migratable(DISK)).done();
    sim.update("Node", "", "node-0", |n| {
        n.set_condition(json!({"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}));
        n.set_annotation("lab/kubelet", Some("down"));
    });
    let run = drain(&sim, "node-0").with(|o| o.restart_stale = RestartStale::Always).timeout(60).run().await;
    run.exits(3);
    run.vm_is("db-0", "blocks", "NodeNotReady");
    assert!(run.launcher_evictions("db-0").is_empty() && run.restarts("db-0").is_empty());
}

#[tokio::test(start_paused = true)]
async fn many_vms_queue_and_all_arrive() {
    let world = (0..7).fold(cluster("LiveMigrate"), |w, i| w.vm("tenant-a", Vm::new(&format!("web-{i}"))));
    let sim = world.done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert_eq!(run.stdout.matches(" migrated\n").count(), 7);
    assert!((0..7).all(|i| run.launcher_evictions(&format!("web-{i}")).len() == 1), "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_selector_leaves_vms_out() {
    let sim = cluster("LiveMigrate")
        .vm("tenant-a", Vm::new("web-1"))
        .hotplug("tenant-a", "web-1", "hp-1")
        .vm("tenant-a", Vm::new("db-0").non_migratable(DISK))
        .deployment("shop", "cart", 2)
        .done();
    let run = drain(&sim, "node-0").with(|o| o.pod_selector = LabelSelector::parse("app=cart").ok()).run().await;
    run.exits(0).says("other pods remain");
    assert_eq!(run.evictions("").len(), 2, "{run}");
    assert!(run.rows("vms").is_empty() || run.launcher_evictions("web-1").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_others_migrate_away_has_migrated() {
    for strategy in ["None", "External"] {
        // While it is copied, and when it runs on the other node but its old launcher is still there.
        for after in [1000, 20_600, 20_800, 21_000] {
            let vm = Vm::new("web-1").eviction_strategy(strategy).annotation("lab/migrate", "20s");
            let sim = cluster("None").vm("tenant-a", vm).done();
            sim.create(json!({"kind": "VirtualMachineInstanceMigration",
                "metadata": {"name": "by-hand", "namespace": "tenant-a"}, "spec": {"vmiName": "web-1"}}));
            tokio::time::sleep(std::time::Duration::from_millis(after)).await;
            let run = drain(&sim, "node-0").timeout(120).run().await;
            println!("{strategy} {after}\n{}", run.transcript());
            run.exits(0);
            if let Some(row) = run.rows("vms").first() {
                assert_eq!((row.text("/outcome"), row.text("/nodeAfter").is_empty()), ("migrates", false), "{run}");
            }
            assert!(run.launcher_evictions("web-1").is_empty(), "{run}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_cannot_be_read_is_not_said_to_be_gone() {
    let sim = cluster("LiveMigrate").vm("tenant-a", Vm::new("web-1")).done();
    sim.update("VirtualMachineInstance", "tenant-a", "web-1", |v| v.put("/spec/terminationGracePeriodSeconds", "soon"));
    let run = drain(&sim, "node-0").run().await;
    println!("{}", run.transcript());
    run.exits(3).says("could not be read, so nothing can be said of the guest in it");
    run.pod_is("virt-launcher-web-1-", "blocks", "VmLookupFailed");
    assert!(!run.stderr.contains("kubectl delete pod") && run.launcher_evictions("web-1").is_empty(), "{run}");
}
