//! Migrations: followed to a good end, through failures and queues, and to nodes that are drained themselves.

use safe_drain::event::{Activity, EventKind};
use safe_drain::settings::OnAbort;
use safe_drain_sim::{Json, PodSpec, Vm};
use serde_json::{Value, json};

use super::{Act, Stage};
use crate::harness::{Outcome, secs};

/// All details that were told of a VM's progress.
fn details(run: &Outcome, vm: &str) -> Vec<String> {
    let of = |e: &EventKind| {
        let EventKind::VmProgressed { vm: key, progress, .. } = e else { return None };
        progress.detail.clone().filter(|_| key.name == vm)
    };
    run.events.iter().filter_map(|e| of(&e.kind)).collect()
}

fn unschedulable(s: &Stage, n: usize, yes: bool) -> Act {
    let patch = json!({"spec": {"unschedulable": yes}});
    Act::Patch { kind: "Node", ns: String::new(), name: s.node(n), patch }
}

pub async fn failing_migration(s: &Stage) {
    s.nodes(1).await;
    s.vm(Vm::new("fail-1").eviction_strategy("LiveMigrate").migration("fail")).await;
    s.deployment("cart", 1, PodSpec::new()).await;
    s.settle().await;
    s.nodes(1).await;
    let run = s.run(s.drain(0).timeout(300).changes()).await;
    run.exits(3).says("3 migrations failed in a row");
    let row = run.vm_is("fail-1", "blocks", "MigrationFailed");
    assert_eq!(row.int("/attempts"), Some(3), "{run}");
    assert_eq!(run.launcher_evictions("fail-1").len(), 1, "one POST per mark\n{run}");
    run.pod_is("cart-", "evicts", "");
    // KubeVirt goes on with another; `cancel` ends that, too.
    tokio::time::sleep(secs(5)).await;
    let cancel = s.cancel(0).run().await;
    s.keep(&cancel);
    cancel.exits(0);
}

pub async fn queued_migrations(s: &Stage) {
    s.alone().await;
    s.migrations_per_node(2).await;
    s.nodes(1).await;
    let vms = ["vm-0", "vm-1", "vm-2", "vm-3", "vm-4", "vm-5"];
    for vm in vms {
        s.vm(Vm::new(vm).eviction_strategy("LiveMigrate")).await;
    }
    s.settle().await;
    s.nodes(2).await;
    let run = s.run(s.drain(0).timeout(180)).await;
    s.migrations_per_node(3).await;
    run.exits(0);
    for vm in vms {
        run.vm_is(vm, "migrates", "");
        assert_eq!(run.launcher_evictions(vm).len(), 1, "one POST per mark\n{run}");
    }
    // Four of them had to wait for a place, and it was said.
    let queued = |e: &EventKind| {
        let EventKind::VmProgressed { vm, progress, .. } = e else { return None };
        (progress.activity == Activity::Queued).then(|| vm.name.clone())
    };
    let mut waited: Vec<String> = run.events.iter().filter_map(|e| queued(&e.kind)).collect();
    waited.sort();
    waited.dedup();
    assert!(waited.len() >= 4, "{waited:?}\n{run}");
}

pub async fn target_on_the_node(s: &Stage) {
    s.nodes(1).await;
    s.vm(Vm::new("web-1").eviction_strategy("LiveMigrate").annotation("lab/migrate", "10s")).await;
    s.settle().await;
    // The only other node that is open is the one that will be drained.
    s.nodes(2).await;
    s.act(unschedulable(s, 2, true)).await;
    s.act(Act::Create(
        json!({"kind": "VirtualMachineInstanceMigration", "metadata": {"name": "by-hand", "namespace": s.ns()},
        "spec": {"vmiName": "web-1"}}),
    ))
    .await;
    s.until("its migration", async || {
        let vmi = s.get("VirtualMachineInstance", "web-1").await.unwrap_or_default();
        vmi.text("/status/migrationState/targetNode") == s.node(1)
    })
    .await;
    s.act(unschedulable(s, 2, false)).await;
    s.act(unschedulable(s, 0, true)).await;
    let uid = s.get("VirtualMachineInstance", "web-1").await.expect("it runs").uid().to_owned();
    let run = s.run(s.drain(1).timeout(120)).await;
    run.exits(0);
    let row = run.vm_is("web-1", "migrates", "");
    assert_eq!(row.text("/nodeAfter"), s.node(2), "{run}");
    let now = s.get("VirtualMachineInstance", "web-1").await.expect("it runs");
    assert_eq!((now.uid(), now.text("/status/nodeName")), (uid.as_str(), s.node(2).as_str()), "{run}");
}

pub async fn unschedulable_target(s: &Stage) {
    s.nodes(1).await;
    s.vm(Vm::new("web-1").eviction_strategy("LiveMigrate")).await;
    s.settle().await;
    s.nodes(1).await;
    // The only node that could take it is closed when its eviction is on its way.
    let close = s.at_once(unschedulable(s, 1, true));
    let open = s.doing(unschedulable(s, 1, false));
    let evicting = |e: &EventKind| matches!(e, EventKind::PodEvicting { launcher: true, .. });
    let run = s
        .run(s.drain(0).timeout(180).changes().right_before("POST", "/pods/virt-launcher-web-1", close).later_than(
            evicting,
            secs(8),
            open,
        ))
        .await;
    run.exits(0);
    run.vm_is("web-1", "migrates", "");
    let words = details(&run, "web-1");
    assert!(words.iter().any(|d| d.contains("nodes are available")), "the scheduler's words: {words:?}\n{run}");
}

pub async fn aborted_drain(s: &Stage) {
    s.nodes(1).await;
    for vm in ["hang-1", "hang-2"] {
        s.vm(Vm::new(vm).eviction_strategy("LiveMigrate").migration("hang")).await;
    }
    s.settle().await;
    s.nodes(1).await;
    let run = s.run(s.drain(0).timeout(10).with(|o| o.on_abort = OnAbort::Cancel)).await;
    run.exits(124).says("taken back: 2 evacuations cancelled, cordon lifted");
    let left = async || {
        let guests = s.list("VirtualMachineInstance").await;
        let marked = guests.iter().filter(|v| v.has("/status/evacuationNodeName")).count();
        let over = |m: &&Value| matches!(m.text("/status/phase"), "Succeeded" | "Failed");
        (marked, s.list("VirtualMachineInstanceMigration").await.iter().filter(|m| !over(m)).count())
    };
    assert_eq!((left().await, run.cordoned(&s.node(0))), ((0, 0), false), "{run}");
    tokio::time::sleep(secs(8)).await;
    assert_eq!(left().await, (0, 0), "{run}");
}
