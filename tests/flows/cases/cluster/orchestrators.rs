//! Tools around a drain: what they leave behind, and what they make of a result.

use std::time::Duration;

use safe_drain::settings::DrainOptions;
use safe_drain_sim::{Json, PodSpec, Sim, Vm};
use serde_json::json;

use crate::harness::{drain, secs};
use crate::plain::world;
use crate::vms::{DISK, cluster};

/// Nobody else's node may take pods any more.
fn close_the_others(sim: &Sim) {
    for node in ["node-1", "node-2"] {
        sim.update("Node", "", node, |n| n.put("/spec/unschedulable", true));
    }
}

#[tokio::test(start_paused = true)]
async fn c78_after_an_upgrade_that_gave_up() {
    // The upgrade's drain cordoned the node, marked a VM, evicted a pod, and gave up after five minutes.
    let slow = PodSpec::new().grace(600).annotation("lab/stop", "400s");
    let sim = cluster("LiveMigrate")
        .vm("tenant-a", Vm::new("web-1"))
        .vm("tenant-a", Vm::new("db-0").non_migratable(DISK))
        .deployment_with("shop", "slow", 1, slow)
        .done();
    sim.update("Node", "", "node-0", |n| n.put("/spec/unschedulable", true));
    sim.options(|o| o.migrate = secs(200));
    sim.update("VirtualMachineInstance", "tenant-a", "web-1", |v| v.put("/status/evacuationNodeName", "node-0"));
    let name = sim.list("Pod").iter().find(|p| p.name().starts_with("slow-")).unwrap().name().to_owned();
    sim.delete("Pod", "shop", &name);
    tokio::time::sleep(secs(60)).await;
    let run = drain(&sim, "node-0").run().await;
    // It goes on from there: the cordon is seen, what is marked or stopping is followed and not asked for again.
    run.exits(3).prints("node/node-0 already cordoned");
    assert!(run.asked("PATCH", "/nodes/").is_empty(), "{run}");
    assert!(run.launcher_evictions("web-1").is_empty() && run.evictions("slow-").is_empty(), "{run}");
    run.vm_is("web-1", "migrates", "");
    // And it says what the upgrade withheld: who blocks, and why.
    let row = run.vm_is("db-0", "blocks", "VmNotMigratable");
    assert!(!row.text("/because").is_empty() && !row.text("/remedy").is_empty(), "{row}");
    assert!(run.launcher_evictions("db-0").is_empty(), "no burst of requests that nobody can grant\n{run}");
    // How to put it before an upgrade is written down.
    let page = include_str!("../../../../docs/talos.md");
    assert!(page.contains("talosctl -n $NODE_IP upgrade") && page.contains("--drain=false"));
}

#[tokio::test(start_paused = true)]
async fn c79_finite_and_honest_without_a_flag() {
    // No timeout given: 30 minutes, then a code that is not 0, and no guest is cut short for it.
    assert_eq!(DrainOptions::for_nodes(["node-0"]).timeout, Duration::from_secs(30 * 60));
    let sim = world().deployment("shop", "web", 3).pdb("shop", "web", "web", json!({"minAvailable": 2})).done();
    let run = drain(&sim, "node-0").changes().at(secs(0), close_the_others).run().await;
    run.exits(124).says("timeout after 30m");
    assert!(run.elapsed >= secs(1800) && run.elapsed <= secs(1802), "{:?}", run.elapsed);
    assert!(!run.stdout.contains("node/node-0 drained"), "{run}");

    // A guest with a long grace keeps it, also where a shorter one is asked for: that is for pods.
    let sim = cluster("LiveMigrateIfPossible")
        .vm("tenant-a", Vm::new("win-1").grace(900).non_migratable(DISK).annotation("lab/stop", "600s"))
        .deployment("shop", "cart", 1)
        .done();
    let run = drain(&sim, "node-0").with(|o| o.grace_period = Some(60)).run().await;
    run.exits(0);
    run.vm_is("win-1", "returns", "");
    let launcher = run.launcher_evictions("win-1")[0].body.clone().unwrap();
    assert!(!launcher.has("/deleteOptions/gracePeriodSeconds"), "{launcher}");
    assert_eq!(run.evictions("cart-")[0].body.as_ref().unwrap().int("/deleteOptions/gracePeriodSeconds"), Some(60));
    assert!(run.elapsed >= secs(600), "{:?}", run.elapsed);
    // A pod that was rescheduled elsewhere is nobody's business here.
    assert_eq!(run.evictions("cart-").len(), 1, "{run}");
}
