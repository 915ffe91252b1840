//! What the guard says to an eviction, and what a drain makes of it.

use safe_drain::event::EventKind;
use safe_drain_sim::{Fault, Json, Profile, Sim, Then, Vm};
use serde_json::{Value, json};

use super::{NS, SORTS};
use crate::harness::{drain, secs};
use crate::vms::{DISK, node_of, with};

fn vmi(sim: &Sim, name: &str) -> Value {
    sim.get("VirtualMachineInstance", NS, name).expect("it runs")
}

fn migrations(sim: &Sim) -> usize {
    sim.list("VirtualMachineInstanceMigration").len()
}

#[tokio::test(start_paused = true)]
async fn c01_the_refusal_of_a_migratable_vm_is_how_it_leaves() {
    for profile in Profile::ALL {
        for strategy in ["LiveMigrate", "LiveMigrateIfPossible"] {
            println!("{profile:?} {strategy}");
            let sim = with(profile, strategy).vm(NS, Vm::new("web-1")).done();
            let (before, launcher) = (vmi(&sim, "web-1"), sim.list("Pod")[0].name().to_owned());
            let run = drain(&sim, "node-0").run().await;
            run.exits(0).prints("virtualmachine.kubevirt.io/web-1 migrated\n").prints("node/node-0 drained\n");
            let (row, now) = (run.vm_is("web-1", "migrates", ""), vmi(&sim, "web-1"));
            assert_eq!((row.text("/nodeAfter"), now.uid()), (now.text("/status/nodeName"), before.uid()));
            assert_ne!(row.text("/nodeAfter"), "node-0");
            let posts = run.launcher_evictions("web-1");
            assert_eq!(posts.iter().map(|r| r.status).collect::<Vec<_>>(), [429], "one POST per mark\n{run}");
            assert_eq!(migrations(&sim), 1);
            // The refusal is not told as one, and what goes on is told once.
            assert!(!run.stderr.contains("refused") && !run.stderr.contains("budget"), "{run}");
            assert_eq!(run.stderr.matches("VM tenant-a/web-1: migrating → node-").count(), 1, "{run}");
            // It is over when the VM runs elsewhere and its launcher has completed.
            assert_eq!(sim.get("Pod", NS, &launcher).expect("left over").text("/status/phase"), "Succeeded");
            assert!(run.elapsed < secs(10), "{:?}\n{run}", run.elapsed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c02_a_vm_that_cannot_migrate_blocks_before_any_eviction() {
    let reasons = [
        (DISK, "disk root is not shared"),
        ("HostDeviceNotLiveMigratable", "it has a GPU"),
        ("InterfaceNotLiveMigratable", "its pod network is a bridge"),
        ("CPUModeLiveMigratable", "its node does not let host-model CPUs migrate"),
    ];
    for profile in Profile::ALL {
        let all = if SORTS.contains(&profile) { reasons.len() } else { 1 };
        for (reason, words) in reasons.into_iter().take(all) {
            let sim = with(profile, "LiveMigrate")
                .vm(NS, Vm::new("db-0").non_migratable(reason))
                .deployment("shop", "cart", 2)
                .done();
            println!("{profile:?} {reason}");
            let run = drain(&sim, "node-0").run().await;
            run.exits(3).says(words);
            let row = run.vm_is("db-0", "blocks", "VmNotMigratable");
            assert_eq!((row.text("/migratableReason"), row["waitingHelps"].as_bool()), (reason, Some(false)), "{row}");
            assert!(row.text("/because").contains(words), "{row}");
            assert!(row.text("/remedy").contains("kubectl patch vm db-0"), "{row}");
            assert!(run.launcher_evictions("db-0").is_empty() && run.restarts("db-0").is_empty(), "{run}");
            assert_eq!(vmi(&sim, "db-0").text("/status/evacuationNodeName"), "");
            assert_eq!(node_of(&sim, "db-0"), "node-0");
            // The rest of the node goes, and nothing is waited for.
            assert_eq!(run.evictions("cart-").len(), 2, "{run}");
            assert!(run.elapsed < secs(3), "{:?}", run.elapsed);
            let preview = run.preview.as_ref().expect("taken");
            preview.exits(3).prints("blocks").prints(words);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c04_an_eviction_that_is_granted_shuts_the_guest_down() {
    let vms: [(&str, Vm, &str); 4] = [
        ("LiveMigrateIfPossible", Vm::new("db-0").non_migratable(DISK), "disk root is not shared"),
        ("None", Vm::new("db-0"), "its strategy is None"),
        ("", Vm::new("db-0"), "its strategy is None"),
        ("None", Vm::new("db-0").non_migratable(DISK), "its strategy is None"),
    ];
    for profile in Profile::ALL {
        let all = if SORTS.contains(&profile) { vms.len() } else { 1 };
        for (strategy, vm, why) in vms.iter().take(all) {
            let sim = with(profile, strategy).vm(NS, vm.clone()).done();
            let old = vmi(&sim, "db-0").uid().to_owned();
            println!("{profile:?} {strategy}");
            let run = drain(&sim, "node-0").run().await;
            run.exits(0).prints("virtualmachine.kubevirt.io/db-0 returned\n");
            let preview = run.preview.as_ref().expect("taken");
            preview.exits(0).prints("shut down, returns").prints(why).prints("starts it again elsewhere");
            let row = run.vm_is("db-0", "returns", "");
            assert_eq!(row.text("/newVmiUid"), vmi(&sim, "db-0").uid());
            assert_ne!(row.text("/newVmiUid"), old);
            assert_eq!(row.text("/nodeAfter"), node_of(&sim, "db-0"));
            assert_ne!(row.text("/nodeAfter"), "node-0");
            let posts = run.launcher_evictions("db-0");
            assert_eq!(posts.iter().map(|r| r.status).collect::<Vec<_>>(), [201], "{run}");
            assert!(run.restarts("db-0").is_empty() && migrations(&sim) == 0, "{run}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c06_an_external_vm_waits_for_its_owner_and_no_migration_is_promised() {
    for profile in Profile::ALL {
        println!("{profile:?}");
        let tenant = Vm::new("ext-1").eviction_strategy("External").label("cluster.x-k8s.io/cluster-name", "blue");
        // Nobody listens.
        let sim = with(profile, "None").vm(NS, tenant.clone()).done();
        let run = drain(&sim, "node-0").timeout(60).run().await;
        run.exits(124).says("strategy External: the controller of tenant cluster blue must drain and delete this VM");
        super::migrations::how_to_give_up(&run);
        let row = run.vm_is("ext-1", "pending", "ExternalOwner");
        assert!(row.flag("/marked") && row.text("/because").contains("its owner has not acted"), "{row}");
        assert_eq!(vmi(&sim, "ext-1").text("/status/evacuationNodeName"), "node-0");
        assert!(!run.stdout.contains("migrat") && !run.stderr.contains("migrating"), "{run}");
        assert_eq!((run.launcher_evictions("ext-1").len(), migrations(&sim)), (1, 0), "{run}");
        let preview = run.preview.as_ref().expect("taken");
        preview.exits(124).prints("waits").prints("tenant cluster blue");

        // Its owner deletes it: its VM makes another of the name.
        let sim = with(profile, "None").vm(NS, tenant.clone()).done();
        let old = vmi(&sim, "ext-1").uid().to_owned();
        let delete = |sim: &Sim| {
            sim.delete("VirtualMachineInstance", NS, "ext-1");
        };
        let run = drain(&sim, "node-0").timeout(120).at(secs(20), delete).run().await;
        run.exits(0).prints("virtualmachine.kubevirt.io/ext-1 replaced\n");
        let row = run.vm_is("ext-1", "replaced", "");
        assert_eq!(row.text("/newVmiUid"), vmi(&sim, "ext-1").uid());
        assert!(vmi(&sim, "ext-1").uid() != old && !run.stdout.contains("migrated"), "{run}");
        assert_eq!(run.launcher_evictions("ext-1").len(), 1, "{run}");

        // One without a VM is gone for good.
        let sim = with(profile, "None").vmi(NS, tenant).done();
        let run = drain(&sim, "node-0").timeout(120).at(secs(20), delete).run().await;
        run.exits(0);
        run.vm_is("ext-1", "gone", "");
        assert_eq!(run.launcher_evictions("ext-1").len(), 1, "{run}");
    }
}

/// Starts a migration from node-1 to node-0 and waits until it copies.
async fn arriving(profile: Profile, vm: Vm) -> Sim {
    let sim = with(profile, "LiveMigrate").on("node-1").vm(NS, vm).done();
    sim.update("Node", "", "node-2", |n| n.put("/spec/unschedulable", true));
    sim.create(json!({"kind": "VirtualMachineInstanceMigration", "metadata": {"name": "m-1", "namespace": NS},
        "spec": {"vmiName": "web-1"}}));
    tokio::time::sleep(secs(3)).await;
    sim.update("Node", "", "node-2", |n| n.put("/spec/unschedulable", false));
    sim
}

#[tokio::test(start_paused = true)]
async fn c16_a_migration_to_the_node_ends_before_its_vm_is_moved_on() {
    for profile in Profile::ALL {
        println!("{profile:?}");
        let sim = arriving(profile, Vm::new("web-1").annotation("lab/migrate", "20s")).await;
        let arrival =
            |e: &EventKind| matches!(e, EventKind::VmProgressed { progress, .. } if progress.target.is_some());
        let run = drain(&sim, "node-0").run().await;
        run.exits(0).says("waiting for a migration of it to end");
        run.preview.as_ref().expect("taken").prints("a migration of it from node-1 to this node must end first");
        run.vm_is("web-1", "migrates", "");
        assert_ne!(node_of(&sim, "web-1"), "node-0");
        let posts = run.launcher_evictions("web-1");
        assert_eq!(posts.len(), 1, "{run}");
        let asked = run.event(arrival).expect("it is followed").elapsed_ms;
        assert!(asked > 15_000, "not before it has arrived: {asked}\n{run}");
        assert_eq!(migrations(&sim), 2);

        // It chooses this node after the plan was made, right before the cordon.
        let vm = Vm::new("web-1").annotation("lab/migrate", "20s");
        let sim = with(profile, "LiveMigrate").on("node-1").vm(NS, vm).done();
        sim.update("Node", "", "node-2", |n| n.put("/spec/unschedulable", true));
        sim.fault(Fault::on("PATCH", "/nodes/node-0", Then::Slow(secs(2))));
        let choose = |sim: &Sim| {
            sim.create(json!({"kind": "VirtualMachineInstanceMigration", "metadata": {"name": "m-1", "namespace": NS},
                "spec": {"vmiName": "web-1"}}));
        };
        let open = |sim: &Sim| {
            sim.update("Node", "", "node-2", |n| n.put("/spec/unschedulable", false));
        };
        let planned = |e: &EventKind| matches!(e, EventKind::Planned { .. });
        let run = drain(&sim, "node-0").when(planned, choose).at(secs(5), open).run().await;
        run.exits(0);
        run.vm_is("web-1", "migrates", "");
        assert_ne!(node_of(&sim, "web-1"), "node-0");
        assert_eq!((run.launcher_evictions("web-1").len(), migrations(&sim)), (1, 2), "{run}");
        assert!(!run.stderr.contains("budget"), "KubeVirt's own may be behind\n{run}");

        // It fails: its target has ended, and nothing was asked for.
        let vm = Vm::new("web-1").annotation("lab/migrate", "20s").migration("fail");
        let sim = arriving(profile, vm).await;
        let run = drain(&sim, "node-0").run().await;
        run.exits(0);
        let row = run.vm_is("web-1", "gone", "");
        assert_eq!(row.text("/because"), "its migration to this node did not come about");
        assert!(run.launcher_evictions("web-1").is_empty(), "{run}");
        assert_eq!((node_of(&sim, "web-1").as_str(), migrations(&sim)), ("node-1", 1));
        assert_eq!(vmi(&sim, "web-1").text("/status/evacuationNodeName"), "");
    }
}
