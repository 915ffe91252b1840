//! VMs: what real KubeVirt does with them.

use futures::future::join_all;
use safe_drain::event::{Activity, EventKind, StopReason};
use safe_drain::settings::{DryRun, RestartStale};
use safe_drain_sim::scenario::strategy_switch;
use safe_drain_sim::{Json, PodSpec, Vm};
use serde_json::json;

use super::{Act, Stage};
use crate::harness::secs;

const DISK: &str = "DisksNotLiveMigratable";

pub async fn strategy_switch(s: &Stage) {
    s.nodes(1).await;
    s.alone().await;
    s.eviction_strategy("LiveMigrate").await;
    for vm in strategy_switch::vms() {
        s.vm(vm).await;
    }
    s.deployment("web", 4, PodSpec::new()).await;
    s.settle().await;
    s.eviction_strategy("LiveMigrateIfPossible").await;
    s.shared();
    s.nodes(2).await;
    let before = s.list("VirtualMachineInstance").await;
    // What virt-api itself says of each eviction, told apart from a budget that recovers.
    let run = s.run(s.drain(0).preview(DryRun::Server)).await;
    run.exits(3).changed_nothing();
    // An audit says the same, without a drain.
    let audited = s.audit().run().await;
    s.keep(&audited);
    for (vm, outcome, cause) in [
        ("db-0", "blocks", "VmNotMigratable"),
        ("gpu-1", "blocks", "VmNotMigratable"),
        ("pinned-1", "blocks", "VmNotMigratable"),
        ("web-1", "migrates", ""),
        ("ext-1", "waits", "ExternalOwner"),
    ] {
        run.vm_is(vm, outcome, cause);
        audited.vm_is(vm, outcome, cause);
    }
    assert_eq!(run.launcher_evictions("pinned-1").len(), 1, "{run}");
    let contrary = run.rows("vms").into_iter().find(|r| r.text("/because").contains("the server says"));
    assert!(contrary.is_none(), "virt-api sees it otherwise: {contrary:#?}");
    let run = s.run(s.drain(0).timeout(60).with(|o| o.restart_stale = RestartStale::Always)).await;
    run.exits(3);
    for (vm, outcome, cause) in [
        ("db-0", "restarts", ""),
        ("gpu-1", "restarts", ""),
        ("web-1", "migrates", ""),
        ("pinned-1", "blocks", "VmNotMigratable"),
        ("ext-1", "pending", "ExternalOwner"),
        ("hang-1", "pending", "VmEvacuating"),
    ] {
        run.vm_is(vm, outcome, cause);
    }
    for vm in ["db-0", "gpu-1", "web-1"] {
        let old = before.iter().find(|v| v.name() == vm).expect("it ran");
        let now = s.get("VirtualMachineInstance", vm).await.expect("it runs");
        assert_ne!(now.text("/status/nodeName"), s.node(0), "{vm}\n{run}");
        assert_eq!(now.uid() == old.uid(), vm == "web-1", "{vm}\n{run}");
        assert_eq!(run.restarts(vm).len(), usize::from(vm != "web-1"), "{vm}\n{run}");
        if vm != "web-1" {
            assert_eq!(now.text("/spec/evictionStrategy"), "LiveMigrateIfPossible", "{vm}");
        }
    }
    for vm in ["web-1", "hang-1", "fail-1"] {
        assert_eq!(run.launcher_evictions(vm).len(), 1, "one POST per mark: {vm}\n{run}");
    }
    assert!(run.vm("fail-1").int("/attempts") >= Some(2), "{run}");
}

/// The same VMs, without a drain: each comes back to the one node that there is.
pub async fn restarts_in_place(s: &Stage) {
    s.nodes(1).await;
    s.alone().await;
    s.eviction_strategy("LiveMigrate").await;
    for vm in strategy_switch::vms() {
        s.vm(vm).await;
    }
    s.settle().await;
    s.eviction_strategy("LiveMigrateIfPossible").await;
    s.shared();
    let before = s.list("VirtualMachineInstance").await;
    let preview = s.restart_stale().preview(DryRun::Server).run().await;
    s.keep(&preview);
    preview.exits(0).prints("asked by 2 dry runs");
    let run = s.restart_stale().run().await;
    s.keep(&run);
    run.exits(0);
    for old in &before {
        let vm = old.name();
        let stale = matches!(vm, "db-0" | "gpu-1");
        let now = s.get("VirtualMachineInstance", vm).await.expect("it runs");
        assert_eq!(now.uid() != old.uid(), stale, "{vm}\n{run}");
        assert_eq!((now.text("/status/nodeName"), run.restarts(vm).len()), (&*s.node(0), usize::from(stale)), "{vm}");
        if stale {
            assert_eq!(now.text("/spec/evictionStrategy"), "LiveMigrateIfPossible", "{vm}");
            assert_eq!((now.text("/status/phase"), run.vm(vm).text("/newVmiUid")), ("Running", now.uid()), "{vm}");
        }
    }
    assert!(!run.cordoned(&s.node(0)));
    s.restart_stale().run().await.exits(0).changed_nothing().says("nothing to do");
}

pub async fn falls_unmigratable(s: &Stage) {
    s.nodes(1).await;
    s.vm(Vm::new("web-1").eviction_strategy("LiveMigrate")).await;
    s.deployment("cart", 1, PodSpec::new()).await;
    s.settle().await;
    s.nodes(1).await;
    // It can migrate when it is looked at for the last time.
    let fall = s.at_once(Act::Unmigratable { ns: s.ns().to_owned(), vmi: "web-1".to_owned() });
    let run = s.run(s.drain(0).timeout(60).changes().right_before("POST", "/pods/virt-launcher-web-1", fall)).await;
    run.exits(3);
    run.vm_is("web-1", "blocks", "BecameNonMigratable");
    assert_eq!(run.launcher_evictions("web-1").iter().map(|r| r.status).collect::<Vec<_>>(), [429], "{run}");
    assert!(run.elapsed < secs(30), "waiting would not clear it: {:?}", run.elapsed);
    run.pod_is("cart-", "evicts", "");
}

pub async fn run_strategies(s: &Stage) {
    s.nodes(1).await;
    s.vm(Vm::new("always").non_migratable(DISK)).await;
    s.vm(Vm::new("rerun").run_strategy("RerunOnFailure").non_migratable(DISK)).await;
    s.vm(Vm::new("once").run_strategy("Once").non_migratable(DISK)).await;
    s.vm(Vm::new("manual").run_strategy("Manual").non_migratable(DISK)).await;
    s.vm(Vm::new("halted").run_strategy("Halted").non_migratable(DISK)).await;
    s.settle().await;
    s.nodes(1).await;
    let run = s.run(s.drain(0).timeout(120)).await;
    run.exits(4).changed_nothing().says("--allow-vm-down");
    let run = s.run(s.drain(0).timeout(120).with(|o| o.allow_vm_down = true)).await;
    run.exits(0);
    run.vm_is("always", "returns", "");
    run.vm_is("rerun", "restarts", "");
    run.vm_is("manual", "restarts", "");
    run.vm_is("once", "stays-off", "StaysOff");
    assert_eq!(run.rows("vms").len(), 4, "a halted VM is on no node\n{run}");
    let evicted = ["rerun", "manual"].map(|vm| run.launcher_evictions(vm).len());
    assert_eq!((run.restarts("always").len(), evicted), (0, [0, 0]), "{run}");
}

pub async fn two_drains(s: &Stage) {
    s.nodes(1).await;
    s.vm(Vm::new("vm-0")).await;
    s.deployment("web", 2, PodSpec::new()).await;
    s.settle().await;
    let cordon = |n: usize| Act::Patch {
        kind: "Node",
        ns: String::new(),
        name: s.node(n),
        patch: json!({"spec": {"unschedulable": true}}),
    };
    s.act(cordon(0)).await;
    s.nodes(1).await;
    s.vm(Vm::new("vm-1")).await;
    s.deployment("cart", 2, PodSpec::new()).await;
    s.settle().await;
    s.act(cordon(1)).await;
    s.nodes(1).await;
    let drains = [0, 1].map(|n| Box::pin(s.drain(n).timeout(120).run()));
    let runs = join_all(drains).await;
    for (run, vm) in runs.iter().zip(["vm-0", "vm-1"]) {
        s.keep(run);
        run.exits(0);
        run.vm_is(vm, "migrates", "");
    }
}

pub async fn resumed_migration(s: &Stage) {
    s.nodes(1).await;
    // Nothing else is on the node: what had stopped by the time of the signal would be chance.
    s.vm(Vm::new("web-1").annotation("lab/migrate", "20s")).await;
    s.settle().await;
    s.nodes(1).await;
    let uid = s.get("VirtualMachineInstance", "web-1").await.expect("it runs").uid().to_owned();
    // While it is copied: before that, which of two watches is faster decides whether it is queued.
    let moving = |e: &EventKind| matches!(e, EventKind::VmProgressed { progress, .. } if progress.activity == Activity::Migrating);
    let run = s.run(s.drain(0).timeout(120).signal_when(StopReason::Interrupt, moving)).await;
    run.exits(130);
    run.vm_is("web-1", "pending", "VmEvacuating");
    let run = s.run(s.drain(0).timeout(120)).await;
    run.exits(0);
    run.vm_is("web-1", "migrates", "");
    assert!(run.launcher_evictions("web-1").is_empty(), "its mark counts\n{run}");
    let now = s.get("VirtualMachineInstance", "web-1").await.expect("it runs");
    assert_eq!((now.uid(), now.text("/status/nodeName")), (uid.as_str(), s.node(1).as_str()), "{run}");
}

pub async fn cancelled_drain(s: &Stage) {
    s.nodes(1).await;
    let vms = ["hang-1", "hang-2"];
    for vm in vms {
        s.vm(Vm::new(vm).eviction_strategy("LiveMigrate").migration("hang")).await;
    }
    s.settle().await;
    s.nodes(1).await;
    let user = s.user(None).await;
    let left = async || {
        let guests = s.list("VirtualMachineInstance").await;
        let marked = guests.iter().filter(|v| v.has("/status/evacuationNodeName")).count();
        let over = |m: &&serde_json::Value| matches!(m.text("/status/phase"), "Succeeded" | "Failed");
        let open = s.list("VirtualMachineInstanceMigration").await.iter().filter(|m| !over(m)).count();
        (marked, open)
    };
    // The cordon is safe-drain's, then somebody else's.
    for foreign in [false, true] {
        if foreign {
            let patch = json!({"spec": {"unschedulable": true}});
            s.act(Act::Patch { kind: "Node", ns: String::new(), name: s.node(0), patch }).await;
        }
        let run = s.run(s.drain(0).timeout(10)).await;
        run.exits(124);
        assert_eq!(left().await, (2, 2), "{run}");
        let preview = s.cancel(0).user(&user).preview(DryRun::Server).run().await;
        s.keep(&preview);
        preview.exits(0).prints("virtualmachineinstance.kubevirt.io/hang-1 evacuation cancelled (server dry run)\n");
        assert_eq!((left().await, preview.stderr.contains("Warning")), ((2, 2), false), "{preview}");
        let run = s.cancel(0).user(&user).run().await;
        s.keep(&run);
        run.exits(0);
        assert_eq!((left().await, run.cordoned(&s.node(0))), ((0, 0), foreign), "{run}");
        // KubeVirt begins nothing anew.
        tokio::time::sleep(secs(8)).await;
        assert_eq!(left().await, (0, 0), "{run}");
        let again = s.cancel(0).user(&user).run().await;
        s.keep(&again);
        again.exits(0).changed_nothing();
    }
    for vm in vms {
        let vmi = s.get("VirtualMachineInstance", vm).await.expect("it runs");
        assert_eq!((vmi.text("/status/phase"), vmi.text("/status/nodeName")), ("Running", s.node(0).as_str()), "{vm}");
    }
}
