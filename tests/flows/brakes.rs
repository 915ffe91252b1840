//! What stops further harm: restarts that go wrong, infrastructure that VMs still need, credentials that end.

use safe_drain::event::EventKind;
use safe_drain::settings::{DrainOptions, RestartStale};
use safe_drain_sim::{Fault, Json, Options, PodSpec, Sim, Then, Vm, World};
use serde_json::json;

use crate::harness::{drain, secs};
use crate::plain::world;
use crate::vms::{DISK, cluster};

fn always(options: &mut DrainOptions) {
    options.restart_stale = RestartStale::Always;
}

/// That many stale VMs that a restart helps.
fn stale(count: usize) -> World {
    let vms = (0..count)
        .fold(cluster("LiveMigrate"), |w, i| w.vm("tenant-a", Vm::new(&format!("db-{i}")).non_migratable(DISK)));
    vms.eviction_strategy("LiveMigrateIfPossible")
}

#[tokio::test(start_paused = true)]
async fn at_most_five_restarts_at_a_time() {
    let sim = stale(12).done();
    let run = drain(&sim, "node-0").with(always).run().await;
    run.exits(0);
    let at: Vec<_> = run.restarts("db-").iter().map(|r| r.at).collect();
    assert_eq!(run.stdout.matches(" restarted\n").count(), 12);
    let first = run.asked("PUT", "/restart").iter().filter(|r| r.at < secs(1)).count();
    assert_eq!(first, 5, "{at:?}\n{run}");
}

#[tokio::test(start_paused = true)]
async fn the_first_restart_without_a_node_stops_further_ones() {
    let sim = stale(8).done();
    // After the plan, no node takes launchers any more: quotas and room are nothing that a plan can see.
    let full = |sim: &Sim| {
        for node in ["node-1", "node-2"] {
            sim.update("Node", "", node, |n| n.put("/spec/unschedulable", true));
        }
    };
    let run = drain(&sim, "node-0")
        .with(always)
        .timeout(600)
        .changes()
        .when(|e| matches!(e, EventKind::VmRestarting { .. }), full)
        .run()
        .await;
    let sent = run.asked("PUT", "/restart").len();
    assert!(sent <= 5, "{sent} restarts\n{run}");
    let down = run.rows("vms").iter().filter(|r| r.text("/outcome") == "down").count();
    assert!(down >= 1, "{run}");
    assert_eq!(run.exit, 3, "those that were not restarted block\n{run}");
    assert!(run.rows("vms").iter().any(|r| r.text("/cause") == "RestartStalled"), "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_keeps_a_restarted_vm_off_is_said_and_stops_further_ones() {
    let sim = stale(8).quota("tenant-a", "small", 100).done();
    let lowered = |sim: &Sim| {
        sim.update("ResourceQuota", "tenant-a", "small", |q| q.put("/spec/hard/pods", "0"));
    };
    let run = drain(&sim, "node-0")
        .with(always)
        .timeout(600)
        .changes()
        .when(|e| matches!(e, EventKind::VmRestarting { .. }), lowered)
        .run()
        .await;
    run.exits(3);
    assert_eq!(run.asked("PUT", "/restart").len(), 5, "{run}");
    let rows = run.rows("vms");
    let down: Vec<_> = rows.iter().filter(|r| r.text("/outcome") == "down").collect();
    assert_eq!(down.len(), 5, "{run}");
    for row in down {
        let why = "its launcher cannot be made: exceeded quota: small, requested: pods=1";
        assert!(row.text("/because").starts_with(why) && row.text("/cause") == "Unschedulable", "{row}");
    }
    let kept = rows.iter().filter(|r| r.text("/because").ends_with("could not be started after its restart")).count();
    assert_eq!(kept, 3, "{run}");
    assert!(run.elapsed < secs(90), "the words of a quota are the same each time: {:?}", run.elapsed);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_switched_back_stops_the_restarts() {
    let sim = stale(3).done();
    let run = drain(&sim, "node-0")
        .with(always)
        .changes()
        .when(|e| matches!(e, EventKind::Planned { .. }), |sim| sim.eviction_strategy(Some("LiveMigrate")))
        .run()
        .await;
    run.exits(3);
    assert!(run.asked("PUT", "/restart").is_empty(), "a restart would help nobody\n{run}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_whose_answer_is_lost_is_sent_once() {
    let sim = stale(1).done();
    sim.fault(Fault::on("PUT", "/restart", Then::DisconnectAfter).first(1));
    let run = drain(&sim, "node-0").with(always).run().await;
    run.exits(0);
    run.vm_is("db-0", "restarts", "");
    assert_eq!(run.asked("PUT", "/restart").len(), 1, "{run}");
}

#[tokio::test(start_paused = true)]
async fn refused_credentials_end_it() {
    let sim = world().deployment("shop", "web", 3).done();
    sim.fault(Fault::on("POST", "/eviction", Then::status(401, "Unauthorized", "Unauthorized")));
    let run = drain(&sim, "node-0").changes().run().await;
    run.exits(6).says("credentials");
    assert!(run.elapsed < secs(5), "{:?}", run.elapsed);
    assert!(run.evictions("").len() <= 6, "{run}");
}

#[tokio::test(start_paused = true)]
async fn kubevirt_without_its_object_offers_no_restart() {
    let sim = stale(1).done();
    sim.vanish("KubeVirt", "kubevirt", "kubevirt");
    let run = drain(&sim, "node-0").with(always).run().await;
    run.exits(3).says("no single valid KubeVirt object");
    run.vm_is("db-0", "blocks", "VmNotMigratable");
    assert!(run.vm("db-0")["stale"].is_null() && run.vm("db-0")["strategyFresh"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_was_started_while_the_drain_runs_needs_consent_too() {
    let sim = Sim::new(Options { eviction_strategy: None, ..Options::default() })
        .world()
        .nodes(2)
        .on("node-0")
        .deployment_with("shop", "slow", 1, PodSpec::new().grace(60).annotation("lab/stop", "30s"))
        .done();
    let late = |sim: &Sim| {
        sim.update("Node", "", "node-0", |n| n.put("/spec/unschedulable", false));
        drop(sim.world().on("node-0").vm("tenant-a", Vm::new("late-1").run_strategy("Once")));
        sim.update("Node", "", "node-0", |n| n.put("/spec/unschedulable", true));
    };
    let run = drain(&sim, "node-0").changes().at(secs(5), late).run().await;
    run.exits(3);
    run.vm_is("late-1", "blocks", "ConsentMissing");
    assert!(run.launcher_evictions("late-1").is_empty(), "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_late_pod_is_evicted_too() {
    let slow = PodSpec::new().grace(60).annotation("lab/stop", "30s");
    let sim = world().deployment_with("shop", "slow", 1, slow).done();
    let late = |sim: &Sim| {
        sim.create(json!({"kind": "Pod", "metadata": {"name": "late", "namespace": "shop",
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": true}]},
            "spec": {"nodeName": "node-0", "containers": [{"name": "c", "image": "pause"}]}}));
    };
    let run = drain(&sim, "node-0").changes().at(secs(5), late).run().await;
    assert!(run.evictions("late").len() <= 1);
    run.exits(0);
}

#[tokio::test(start_paused = true)]
async fn vms_that_somebody_stops_meanwhile_are_gone_and_nobodys_broken_promise() {
    let vms = cluster("LiveMigrate")
        .vm("tenant-a", Vm::new("db-0").non_migratable(DISK))
        .vm("tenant-a", Vm::new("web-1"))
        .vm("tenant-a", Vm::new("old-1").eviction_strategy("None"));
    let sim = vms.eviction_strategy("LiveMigrateIfPossible").done();
    let stop = |sim: &Sim| {
        for vm in ["db-0", "web-1", "old-1"] {
            sim.update("VirtualMachine", "tenant-a", vm, |v| v.put("/spec/runStrategy", "Halted"));
            sim.delete("VirtualMachineInstance", "tenant-a", vm);
        }
    };
    let settled = |e: &EventKind| matches!(e, EventKind::Consented { .. });
    let run = drain(&sim, "node-0").with(always).changes().when(settled, stop).run().await;
    run.exits(0).says("deleted by somebody else");
    for vm in ["db-0", "web-1", "old-1"] {
        run.vm_is(vm, "gone", "");
        assert!(run.restarts(vm).is_empty() && run.launcher_evictions(vm).is_empty(), "{run}");
    }
    assert!(!run.stderr.contains("virtctl start"), "who stopped them knows\n{run}");
}
