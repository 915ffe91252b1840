//! How the command deals with an admin's habits, and with the pods around VMs.

use safe_drain::event::EventKind;
use safe_drain::settings::{DryRun, LabelSelector};
use safe_drain_sim::{Json, Options, PodSpec, Profile, Sim, Vm, World};
use serde_json::json;

use crate::harness::{drain, secs};
use crate::vms::DISK;

/// Three nodes; what follows is on node-0.
fn cluster(profile: Profile) -> World {
    with(Options { kubevirt: Some(profile), ..Options::default() })
}

fn with(options: Options) -> World {
    let eviction_strategy = Some("LiveMigrate".to_owned());
    Sim::new(Options { eviction_strategy, ..options }).world().nodes(3).on("node-0")
}

#[tokio::test(start_paused = true)]
async fn c35_a_selector_says_what_it_leaves_on_the_node() {
    for profile in [Profile::V1_4, Profile::V1_6_0, Profile::V1_7, Profile::V1_9] {
        let sim = cluster(profile)
            .vm("tenant-a", Vm::new("web-1"))
            .hotplug("tenant-a", "web-1", "hp-1")
            .vm("tenant-a", Vm::new("web-2").eviction_strategy("None").non_migratable(DISK))
            .deployment("shop", "cart", 2)
            .pod("shop", "bare", PodSpec::new())
            .done();
        // The words of the manual: launchers only, with a --force that they do not need.
        let run = drain(&sim, "node-0")
            .with(|o| {
                o.pod_selector = LabelSelector::parse("kubevirt.io=virt-launcher").ok();
                o.force = true;
            })
            .at(secs(7), |sim| {
                sim.delete("Pod", "tenant-a", "hp-1");
            })
            .run()
            .await;
        run.exits(0).says("node-0 drained in").says("; 3 other pods remain; the node is not empty");
        run.vm_is("web-1", "migrates", "");
        run.vm_is("web-2", "returns", "");
        run.pod_is("bare", "not-selected", "");
        // The disk of a selected VM goes with it: never by itself, and it is not counted as left behind.
        assert!(run.evictions("hp-").is_empty(), "{run}");
        assert!(run.rows("pods").iter().all(|r| r.text("/name") != "hp-1"), "{run}");
        assert_eq!(run.evictions("").len(), 2, "{run}");
        let left =
            sim.list("Pod").iter().filter(|p| p.text("/spec/nodeName") == "node-0" && p.namespace() == "shop").count();
        assert_eq!(left, 3, "{run}");
    }
    // One VM by its label: the other one stays where it is.
    let sim = cluster(Profile::V1_7)
        .vm("tenant-a", Vm::new("web-1"))
        .hotplug("tenant-a", "web-1", "hp-1")
        .vm("tenant-a", Vm::new("db-0").non_migratable(DISK))
        .done();
    let run = drain(&sim, "node-0")
        .with(|o| o.pod_selector = LabelSelector::parse("vm.kubevirt.io/name=web-1").ok())
        .at(secs(7), |sim| {
            sim.delete("Pod", "tenant-a", "hp-1");
        })
        .run()
        .await;
    run.exits(0).prints("virtualmachine.kubevirt.io/web-1 migrated");
    assert_eq!(run.evictions("").len(), 1, "{run}");
    let db = sim.get("VirtualMachineInstance", "tenant-a", "db-0").expect("it runs");
    assert_eq!((db.text("/status/phase"), db.text("/status/nodeName")), ("Running", "node-0"), "{run}");
}

#[tokio::test(start_paused = true)]
async fn c38_a_replacement_without_a_node_is_named_with_the_budget() {
    let control = |name: &str| {
        PodSpec::new().label("kubevirt.io", name).with(|p| p.put("/spec/nodeSelector", json!({"control": "yes"})))
    };
    let sim = cluster(Profile::V1_7)
        .change("Node", "", "node-0", |n| n.set_label("control", "yes"))
        .deployment_with("kubevirt", "virt-api", 2, control("virt-api"))
        .pdb("kubevirt", "virt-api-pdb", "virt-api", json!({"minAvailable": 1}))
        .vm("tenant-a", Vm::new("web-1"))
        .done();
    let run = drain(&sim, "node-0").timeout(180).run().await;
    run.exits(124);
    run.vm_is("web-1", "migrates", "");
    let rows = run.rows("pods");
    let stuck = rows.iter().find(|r| r.text("/outcome") == "pending").unwrap_or_else(|| run.fail("none waits"));
    let replacement =
        sim.list("Pod").into_iter().find(|p| p.text("/status/phase") == "Pending").expect("a replacement");
    let name = replacement.name();
    let why = format!(
        "budget virt-api-pdb waits for pod {name}, which no node accepts: 0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector"
    );
    assert_eq!((stuck.text("/cause"), stuck.text("/because")), ("BudgetExhausted", why.as_str()), "{run}");
    assert_eq!(
        stuck.text("/remedy"),
        format!("make room for it: `kubectl describe pod {name} -n kubevirt`; the budget is right")
    );
    // Said while it goes on, once.
    let said = |e: &EventKind| matches!(e, EventKind::PodWaiting { because, .. } if *because == why);
    assert_eq!(run.events.iter().filter(|e| said(&e.kind)).count(), 1, "{run}");
    assert!(run.event(said).is_some_and(|e| e.elapsed_ms < 60_000), "{run}");
    assert!(!run.stderr.contains("delete pdb"), "{run}");

    // Room for it, and the rest goes.
    let sim2 = cluster(Profile::V1_7)
        .change("Node", "", "node-0", |n| n.set_label("control", "yes"))
        .deployment_with("kubevirt", "virt-api", 2, control("virt-api"))
        .pdb("kubevirt", "virt-api-pdb", "virt-api", json!({"minAvailable": 1}))
        .done();
    let room = |sim: &Sim| {
        sim.update("Node", "", "node-1", |n| n.set_label("control", "yes"));
    };
    let run = drain(&sim2, "node-0").at(secs(90), room).run().await;
    run.exits(0);
    assert!(run.rows("pods").iter().all(|r| r.text("/outcome") == "evicts" && r["remedy"].is_null()), "{run}");
}

#[tokio::test(start_paused = true)]
async fn c84_an_import_that_starts_anew_is_said_before() {
    let world = || {
        let options = Options { kubevirt: Some(Profile::V1_7), cdi: true, ..Options::default() };
        let world = with(options).volume("tenant-a", "disk-1", "ReadWriteOnce", None);
        let sim = world.done();
        let claim = sim.get("PersistentVolumeClaim", "tenant-a", "disk-1").expect("the claim");
        let owner = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "disk-1", "uid": claim.uid(), "controller": true});
        let importer = PodSpec::new()
            .label("cdi.kubevirt.io", "importer")
            .with(|p| p.put("/metadata/ownerReferences", json!([owner])));
        sim.world().on("node-0").pod("tenant-a", "importer-disk-1", importer).vm("tenant-a", Vm::new("web-1"))
    };
    let data_volume = json!({"kind": "DataVolume", "metadata": {"name": "disk-1", "namespace": "tenant-a"},
        "status": {"phase": "ImportInProgress", "progress": "73.42%"}});
    for (world, at) in [(world(), ""), (world().object(data_volume), " (at 73.42%)")] {
        let why =
            format!("tenant-a/importer-disk-1: it fills claim disk-1{at}: the transfer starts anew on another node");
        let sim = world.done();
        let preview = drain(&sim, "node-0").preview(DryRun::Client).run().await;
        preview.exits(0).changed_nothing().prints(&format!("Warning: {why}"));
        let run = drain(&sim, "node-0").run().await;
        run.exits(0).says(&why);
        run.pod_is("importer-disk-1", "evicts", "");
        // It has all the time that the VMs take.
        let left = run.event(|e| matches!(e, EventKind::VmEnded { .. })).expect("it left").elapsed_ms;
        let evicted = run.evictions("importer-disk-1");
        assert_eq!(evicted.len(), 1, "{run}");
        assert!(evicted[0].at.as_millis() >= u128::from(left), "{run}");
    }
}
