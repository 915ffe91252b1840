//! Who owns a VMI, and what that makes of its end.

use safe_drain::settings::RestartStale;
use safe_drain_sim::{Json, Vm, object};
use serde_json::json;

use super::{Act, Stage};

const DISK: &str = "DisksNotLiveMigratable";

pub async fn owners(s: &Stage) {
    s.nodes(1).await;
    s.vm(Vm::new("vm").eviction_strategy("None")).await;
    s.add(object::vmi(s.ns(), Vm::new("alone").eviction_strategy("None"))).await;
    s.add(object::vmi(s.ns(), Vm::new("movable").eviction_strategy("LiveMigrate"))).await;
    s.add(object::vmi_replica_set(s.ns(), "farm", 2, Vm::new("farm").eviction_strategy("None"))).await;
    s.add(object::vmi_replica_set(
        s.ns(),
        "held",
        1,
        Vm::new("held").eviction_strategy("LiveMigrate").non_migratable(DISK),
    ))
    .await;
    s.settle().await;
    s.nodes(2).await;
    // A VMI without an owner does not come back.
    let run = s.run(s.drain(0).timeout(120)).await;
    run.exits(4).changed_nothing().says("--allow-vm-down");
    let run = s.run(s.drain(0).timeout(120).with(|o| o.allow_vm_down = true)).await;
    run.exits(3);
    run.vm_is("vm", "returns", "");
    run.vm_is("alone", "stays-off", "StaysOff");
    run.vm_is("movable", "migrates", "");
    let held = run.rows("vms").into_iter().find(|r| r.text("/owner/name") == "held").expect("a row");
    assert_eq!((held.text("/outcome"), held.text("/cause")), ("blocks", "VmNotMigratable"), "{run}");
    assert!(held.text("/remedy").contains("kubectl delete vmi"), "{run}");
    let farm = || run.rows("vms").into_iter().filter(|r| r.text("/owner/name") == "farm");
    assert_eq!(farm().filter(|r| r.text("/outcome") == "returns").count(), 2, "{run}");
    let left = s.list("VirtualMachineInstance").await;
    let of_farm = left.iter().filter(|v| v.text("/metadata/ownerReferences/0/name") == "farm");
    let elsewhere = of_farm.filter(|v| v.text("/status/phase") == "Running" && v.text("/status/nodeName") != s.node(0));
    assert_eq!(elsewhere.count(), 2, "{run}");
}

pub async fn refused_restart(s: &Stage) {
    s.nodes(1).await;
    for vm in ["once", "gone"] {
        s.vm(Vm::new(vm).run_strategy("Manual").eviction_strategy("LiveMigrate").non_migratable(DISK)).await;
    }
    s.settle().await;
    // Their templates have changed since, so that a restart would help.
    for vm in ["once", "gone"] {
        s.act(template_strategy(s, vm, "LiveMigrateIfPossible")).await;
    }
    s.nodes(1).await;
    // One of them is no VM that can be restarted by the time that it is asked for, the other is deleted, and its VMI orphaned.
    let once = Act::Patch {
        kind: "VirtualMachine",
        ns: s.ns().to_owned(),
        name: "once".to_owned(),
        patch: json!({"spec": {"runStrategy": "Once"}}),
    };
    let run = s
        .run(s.drain(0).timeout(120).changes().with(|o| o.restart_stale = RestartStale::Always).right_before(
            "PUT",
            "/virtualmachines/once/restart",
            s.at_once(once),
        ))
        .await;
    run.exits(3).says("does not support manual restart requests");
    run.vm_is("once", "blocks", "RestartRefused");
    run.vm_is("gone", "restarts", "");
    assert_eq!(run.restarts("gone").len(), 1, "{run}");
    let statuses: Vec<u16> = run.restarts("once").iter().map(|r| r.status).collect();
    assert!(!statuses.is_empty() && statuses.iter().all(|code| *code == 409), "{statuses:?}\n{run}");
}

fn template_strategy(s: &Stage, vm: &str, strategy: &str) -> Act {
    let patch = json!({"spec": {"template": {"spec": {"evictionStrategy": strategy}}}});
    Act::Patch { kind: "VirtualMachine", ns: s.ns().to_owned(), name: vm.to_owned(), patch }
}
