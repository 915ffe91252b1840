//! Pods around a VM: hot-plugged volumes, launchers that have ended, launchers without a VMI.

use safe_drain::settings::RestartStale;
use safe_drain_sim::{Fault, Json, PodSpec, Profile, Sim, Then, Vm, World};
use serde_json::{Value, json};

use super::NS;
use crate::harness::{Outcome, drain, secs};
use crate::vms::{DISK, node_of, with};

fn vmi(sim: &Sim, name: &str) -> Value {
    sim.get("VirtualMachineInstance", NS, name).expect("it runs")
}

/// Two volumes plugged into web-1.
fn plugged(profile: Profile, vm: Vm) -> World {
    with(profile, "LiveMigrate").vm(NS, vm).hotplug(NS, "web-1", "hp-volume-a").hotplug(NS, "web-1", "hp-volume-b")
}

/// The volumes were left alone, and no guest met an I/O error.
#[track_caller]
fn volumes_were_left_alone(run: &Outcome, sim: &Sim) {
    assert!(run.asked("POST", "/pods/hp-").is_empty() && run.asked("DELETE", "/pods/").is_empty(), "{run}");
    assert!(vmi(sim, "web-1").condition("Paused").is_none(), "{run}");
    assert!(run.rows("pods").iter().all(|r| !r.text("/name").starts_with("hp-")), "they have no rows\n{run}");
}

async fn hotplug(profile: Profile) {
    println!("{profile:?}");
    let sim = plugged(profile, Vm::new("web-1")).done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    run.vm_is("web-1", "migrates", "");
    volumes_were_left_alone(&run, &sim);
    run.preview.as_ref().expect("taken").prints("2 nodes can take it (+2 hot-plugged volumes)");
    assert_eq!(run.launcher_evictions("web-1").len(), 1, "{run}");
    let left = run.after.list("Pod").iter().filter(|p| p.name() == "hp-volume-a" || p.name() == "hp-volume-b").count();
    assert_eq!(left, 0, "it waits for them\n{run}");

    // One blocker, not three.
    let sim = plugged(profile, Vm::new("web-1").non_migratable(DISK)).done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(3);
    run.vm_is("web-1", "blocks", "VmNotMigratable");
    volumes_were_left_alone(&run, &sim);
    assert_eq!(run.document.list("/nodes")[0].int("/counts/blocked"), Some(1), "{run}");
    assert!(run.launcher_evictions("web-1").is_empty() && run.elapsed < secs(3), "{run}");

    // They go with a VM that is restarted.
    let sim = plugged(profile, Vm::new("web-1").non_migratable(DISK)).eviction_strategy("LiveMigrateIfPossible").done();
    if profile > Profile::V1_0 {
        let run = drain(&sim, "node-0").with(|o| o.restart_stale = RestartStale::Always).run().await;
        run.exits(0);
        run.vm_is("web-1", "restarts", "");
        volumes_were_left_alone(&run, &sim);
    }
}

#[tokio::test(start_paused = true)]
async fn c08_pods_of_hot_plugged_volumes_are_part_of_their_vm() {
    for profile in Profile::ALL.into_iter().filter(|p| p.guards_hotplug()) {
        hotplug(profile).await;
    }
}

#[tokio::test(start_paused = true)]
async fn c09_nor_are_they_evicted_where_nothing_guards_them() {
    for profile in Profile::ALL.into_iter().filter(|p| !p.guards_hotplug()) {
        hotplug(profile).await;
    }
}

/// web-1 has migrated to node-1, and back if `back`; its first launcher stays on node-0 as a completed pod.
async fn moved(profile: Profile, back: bool) -> (Sim, String) {
    let sim = with(profile, "LiveMigrate").vm(NS, Vm::new("web-1")).deployment("shop", "cart", 1).done();
    let old = sim.list("Pod").iter().find(|p| p.namespace() == NS).expect("a launcher").name().to_owned();
    let targets: &[&str] = if back { &["node-1", "node-0"] } else { &["node-1"] };
    for target in targets {
        for node in ["node-0", "node-1", "node-2"] {
            sim.update("Node", "", node, |v| v.put("/spec/unschedulable", node != *target));
        }
        sim.create(json!({"kind": "VirtualMachineInstanceMigration", "metadata": {"name": target, "namespace": NS},
            "spec": {"vmiName": "web-1"}}));
        tokio::time::sleep(secs(10)).await;
    }
    for node in ["node-0", "node-1", "node-2"] {
        sim.update("Node", "", node, |v| v.cut("/spec/unschedulable"));
    }
    assert_eq!(node_of(&sim, "web-1"), *targets.last().expect("one"));
    assert_eq!(sim.get("Pod", NS, &old).expect("left over").text("/status/phase"), "Succeeded");
    (sim, old)
}

#[tokio::test(start_paused = true)]
async fn c15_completed_launchers_are_left_overs() {
    for profile in Profile::ALL {
        // Beside a live one: up to 1.3.0 an eviction of it would mark the VM.
        let (sim, old) = moved(profile, true).await;
        println!("{profile:?}");
        let run = drain(&sim, "node-0").run().await;
        run.exits(0).prints("node/node-0 drained\n");
        run.preview.as_ref().expect("taken").exits(0).prints("1 stays (finished launcher)");
        run.vm_is("web-1", "migrates", "");
        run.pod_is(&old, "stays", "LeftOver");
        assert!(run.evictions(&old).is_empty(), "{run}");
        assert_eq!(run.launcher_evictions("web-1").len(), 1, "{run}");
        assert!(!run.stderr.contains("infrastructure"), "{run}");
        assert_eq!(sim.list("VirtualMachineInstanceMigration").len(), 3, "two of before, one of the drain");

        // In a second drain only left-overs are here: nothing is asked for, nothing is marked.
        let run = drain(&sim, "node-0").run().await;
        run.exits(0);
        assert!(run.evictions("").is_empty() && run.rows("vms").is_empty(), "{run}");
        assert!(run.rows("pods").iter().all(|r| r.text("/outcome") == "stays"), "{run}");
        tokio::time::sleep(secs(30)).await;
        assert_eq!(vmi(&sim, "web-1").text("/status/evacuationNodeName"), "");
        assert_eq!(sim.list("VirtualMachineInstanceMigration").len(), 3);

        // While virt-api is away it is no blocker either.
        let (sim, old) = moved(profile, false).await;
        sim.virt_api(safe_drain_sim::VirtApi::NoEndpoints);
        let run = drain(&sim, "node-0").run().await;
        run.exits(0);
        run.pod_is(&old, "stays", "LeftOver");
        assert!(run.evictions("virt-launcher-").is_empty() && run.elapsed < secs(5), "{:?}\n{run}", run.elapsed);
        assert_eq!(vmi(&sim, "web-1").text("/status/evacuationNodeName"), "");
    }
}

#[tokio::test(start_paused = true)]
async fn c86_a_launcher_without_its_vmi_blocks_and_is_not_deleted() {
    for profile in Profile::ALL {
        let ghost = PodSpec::new()
            .label("kubevirt.io", "virt-launcher")
            .label("kubevirt.io/created-by", "no-such-uid")
            .annotation("kubevirt.io/domain", "ghost");
        let sim = with(profile, "LiveMigrate").pod(NS, "virt-launcher-ghost-x", ghost).vm(NS, Vm::new("web-2")).done();
        println!("{profile:?}");
        let run = drain(&sim, "node-0").run().await;
        run.exits(3).says("the VMI ghost of this launcher does not exist");
        let row = run.pod_is("virt-launcher-ghost-x", "blocks", "OrphanLauncher");
        assert!(row.text("/remedy").contains("kubectl delete pod virt-launcher-ghost-x -n tenant-a"), "{row}");
        run.vm_is("web-2", "migrates", "");
        assert!(run.evictions("virt-launcher-ghost").is_empty() && run.asked("DELETE", "").is_empty(), "{run}");
        assert!(run.elapsed < secs(15), "no longer than the other VM takes: {:?}\n{run}", run.elapsed);

        // The VMI is there, but virt-api cannot read it: a minute, then it blocks.
        let sim = with(profile, "LiveMigrate").vm(NS, Vm::new("web-1")).done();
        let text = "admission webhook \"virt-launcher-eviction-interceptor.kubevirt.io\" denied the request: kubevirt \
                    failed getting the vmi: virtualmachineinstances.kubevirt.io \"web-1\" is forbidden";
        sim.fault(Fault::on("POST", "/eviction", Then::status(429, "", text)));
        let run = drain(&sim, "node-0").changes().run().await;
        run.exits(3).says("kubectl get pods -A -l kubevirt.io=virt-api");
        run.vm_is("web-1", "blocks", "VmLookupFailed");
        assert!(run.elapsed >= secs(60) && run.elapsed < secs(65), "{:?}\n{run}", run.elapsed);
        assert!(run.launcher_evictions("web-1").len() < 12 && run.asked("DELETE", "").is_empty(), "{run}");
        assert_eq!(node_of(&sim, "web-1"), "node-0");
    }
}
