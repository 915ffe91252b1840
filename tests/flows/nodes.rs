//! Several nodes, cordons, and a second run after a first.

use std::num::NonZeroUsize;

use safe_drain::event::{EventKind, StopReason};
use safe_drain::settings::{DrainOptions, RestartStale};
use safe_drain_sim::scenario::{Settings, start};
use safe_drain_sim::{Fault, Json, PodSpec, Sim, Then, Vm};

use crate::harness::{Flow, drain, secs};
use crate::plain::world;
use crate::vms::{DISK, cluster};

fn two(sim: &Sim) -> Flow {
    Flow::new(sim, DrainOptions::for_nodes(["node-0", "node-1"]))
}

#[tokio::test(start_paused = true)]
async fn vms_never_migrate_to_the_other_target() {
    let sim = cluster("LiveMigrate")
        .vm("tenant-a", Vm::new("web-0"))
        .vm("tenant-a", Vm::new("web-1"))
        .on("node-1")
        .vm("tenant-a", Vm::new("web-2"))
        .done();
    let run = two(&sim).run().await;
    run.exits(0);
    for vm in ["web-0", "web-1", "web-2"] {
        assert_eq!(run.vm_is(vm, "migrates", "").text("/nodeAfter"), "node-2", "{run}");
        assert_eq!(run.launcher_evictions(vm).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_signal_leaves_the_second_node_alone() {
    let slow = PodSpec::new().grace(60).annotation("lab/stop", "20s");
    let sim = world().deployment_with("shop", "web", 2, slow).on("node-1").deployment("shop", "cart", 2).done();
    let run = two(&sim).signal(secs(5), StopReason::Terminate).run().await;
    run.exits(143);
    let verdicts: Vec<&str> = run.document.list("/nodes").iter().map(|n| n.text("/verdict")).collect();
    assert_eq!(verdicts, ["interrupted", "not-started"], "{run}");
    assert!(run.evictions("cart-").is_empty());
    run.says("kubectl safe-drain cancel node-0 node-1");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_blocks_does_not_stop_the_next() {
    let sim = cluster("LiveMigrate")
        .vm("tenant-a", Vm::new("db-0").non_migratable(DISK))
        .on("node-1")
        .deployment("shop", "cart", 2)
        .done();
    let run = two(&sim).run().await;
    run.exits(3).prints("node/node-1 drained");
    assert!(!run.stdout.contains("node/node-0 drained"));
}

#[tokio::test(start_paused = true)]
async fn two_at_a_time_take_half_the_time() {
    let build = || {
        let slow = || PodSpec::new().grace(60).annotation("lab/stop", "20s");
        world().deployment_with("shop", "web", 1, slow()).on("node-1").deployment_with("shop", "cart", 1, slow()).done()
    };
    let sim = build();
    let one = two(&sim).run().await;
    let sim = build();
    let both = two(&sim).with(|o| o.parallel = NonZeroUsize::new(2).unwrap()).run().await;
    one.exits(0);
    both.exits(0);
    assert!(one.elapsed >= secs(40) && both.elapsed < secs(25), "{:?} and {:?}", one.elapsed, both.elapsed);
}

#[tokio::test(start_paused = true)]
async fn a_cordon_that_fails_for_a_moment_is_tried_again() {
    let sim = world().deployment("shop", "web", 2).done();
    sim.fault(Fault::on("PATCH", "/nodes/", Then::status(500, "InternalError", "etcd is busy")).first(2));
    drain(&sim, "node-0").run().await.exits(0);
    let sim = world().deployment("shop", "web", 2).done();
    sim.fault(Fault::on("PATCH", "/nodes/", Then::status(409, "Conflict", "the object has been modified")).first(1));
    drain(&sim, "node-0").run().await.exits(0);
}

#[tokio::test(start_paused = true)]
async fn a_cordon_of_somebody_else_is_kept_and_said() {
    let sim = world().deployment("shop", "web", 2).done();
    sim.update("Node", "", "node-0", |n| n.put("/spec/unschedulable", true));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0).prints("node/node-0 already cordoned");
    assert!(run.document.list("/nodes")[0].flag("/cordonedBefore"));
    assert!(run.asked("PATCH", "/nodes/").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_second_run_goes_on_where_the_first_was_stopped() {
    let build = || {
        let mut settings = Settings::default();
        settings.options.migrations_per_node = 3;
        start("strategy-switch", settings).unwrap()
    };
    let flow = |sim: &Sim| drain(sim, "node-0").timeout(60).with(|o| o.restart_stale = RestartStale::Always).changes();
    let end = |sim: &Sim| {
        let vmis = sim.list("VirtualMachineInstance");
        vmis.iter().map(|v| (v.name().to_owned(), v.text("/status/nodeName") == "node-0")).collect::<Vec<_>>()
    };
    let straight = build();
    flow(&straight).run().await.exits(3);

    let sim = build();
    let first = flow(&sim).signal(std::time::Duration::from_millis(500), StopReason::Interrupt).run().await;
    first.exits(130);
    let second = flow(&sim).run().await;
    second.exits(3).prints("node/node-0 already cordoned");
    // What was marked or restarted by the first run is followed, not asked for again.
    for vm in ["web-1", "hang-1", "fail-1", "ext-1"] {
        let posts = first.launcher_evictions(vm).len() + second.launcher_evictions(vm).len();
        assert_eq!(posts, 1, "{vm}: {second}");
    }
    for vm in ["db-0", "gpu-1"] {
        assert_eq!(first.restarts(vm).len() + second.restarts(vm).len(), 1, "{vm}: {second}");
    }
    assert_eq!(end(&sim), end(&straight), "{second}");
}

#[tokio::test(start_paused = true)]
async fn a_run_after_a_run_finds_nothing_to_do() {
    let sim = world().deployment("shop", "web", 2).done();
    drain(&sim, "node-0").run().await.exits(0);
    let run = drain(&sim, "node-0").run().await;
    run.exits(0).changed_nothing();
    assert!(run.event(|e| matches!(e, EventKind::NodeCordoned { already: true, .. })).is_some());
    assert!(run.elapsed < secs(1));
}
