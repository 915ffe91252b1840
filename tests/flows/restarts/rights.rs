//! Permissions of `restart-stale`: what it needs, and what only a drain does.

use safe_drain_sim::{Rule, Vm};

use super::{names, stale, stale_with};
use crate::harness::restart_stale;
use crate::vms::DISK;

/// Rights without which nothing is begun.
const NEEDED: [(&str, &str, &str); 11] = [
    ("update", "subresources.kubevirt.io", "virtualmachines/restart"),
    ("get", "kubevirt.io", "virtualmachineinstances"),
    ("get", "kubevirt.io", "kubevirts"),
    ("watch", "", "nodes"),
    ("watch", "", "pods"),
    ("watch", "kubevirt.io", "virtualmachineinstances"),
    ("watch", "kubevirt.io", "virtualmachines"),
    ("watch", "kubevirt.io", "virtualmachineinstancemigrations"),
    ("list", "", "nodes"),
    ("list", "kubevirt.io", "virtualmachines"),
    ("list", "kubevirt.io", "kubevirts"),
];

#[tokio::test(start_paused = true)]
async fn a_missing_right_ends_it_before_anything_is_changed() {
    for (verb, group, resource) in NEEDED {
        let sim = stale(1);
        sim.deny(Rule::new(verb, group, resource));
        let run = restart_stale(&sim).run().await;
        println!("{verb} {resource}");
        run.exits(6).changed_nothing();
        if verb != "list" {
            run.says(&format!("verbs: [\"{verb}\"]")).says(&format!("resources: [\"{resource}\"]"));
        }
    }
    // What only a drain needs is not asked for.
    for (verb, group, resource) in
        [("patch", "", "nodes"), ("create", "", "pods/eviction"), ("get", "apps", "daemonsets")]
    {
        let sim = stale(1);
        sim.deny(Rule::new(verb, group, resource));
        restart_stale(&sim).run().await.exits(0);
    }
}

#[tokio::test(start_paused = true)]
async fn rights_in_some_namespaces_are_enough_for_those() {
    let lab = || stale_with(1, |world| world.vm("tenant-b", Vm::new("other-0").non_migratable(DISK)));
    let sim = lab();
    sim.deny(Rule::new("update", "subresources.kubevirt.io", "virtualmachines/restart").cluster_wide());
    restart_stale(&sim).run().await.exits(0);
    let sim = lab();
    sim.deny(Rule::new("update", "subresources.kubevirt.io", "virtualmachines/restart").cluster_wide());
    sim.deny(Rule::new("update", "subresources.kubevirt.io", "virtualmachines/restart").in_namespace("tenant-b"));
    let run = restart_stale(&sim).run().await;
    run.exits(3).vm_is("db-0", "restarts", "");
    run.vm_is("other-0", "blocks", "Forbidden");
}

#[tokio::test(start_paused = true)]
async fn whoever_has_rights_in_one_namespace_only_restarts_there() {
    let kinds = ["virtualmachineinstances", "virtualmachines", "virtualmachineinstancemigrations"];
    let sim = stale_with(1, |world| world.vm("tenant-b", Vm::new("other-0").non_migratable(DISK)));
    for verb in ["get", "list", "watch"] {
        for kind in kinds {
            sim.deny(Rule::new(verb, "kubevirt.io", kind).cluster_wide());
        }
        sim.deny(Rule::new(verb, "", "pods").cluster_wide());
        sim.deny(Rule::new(verb, "", "persistentvolumeclaims").cluster_wide());
        sim.deny(Rule::new(verb, "policy", "poddisruptionbudgets").cluster_wide());
    }
    sim.deny(Rule::new("update", "subresources.kubevirt.io", "virtualmachines/restart").cluster_wide());
    restart_stale(&sim).run().await.exits(6).changed_nothing();
    let run = restart_stale(&sim).namespace("tenant-a").run().await;
    run.exits(0).vm_is("db-0", "restarts", "");
    assert_eq!(names(&run), ["db-0"]);
}
