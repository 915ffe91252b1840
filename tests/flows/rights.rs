//! Permissions: each right taken away once. Nothing may be changed, and the message names the rule that is missing.

use safe_drain::settings::{DrainOptions, DryRun, RestartStale};
use safe_drain_sim::api::access::Place;
use safe_drain_sim::scenario::{Settings, start};
use safe_drain_sim::{Rule, Sim, Vm};

use crate::harness::{Flow, Outcome, drain};

fn cluster() -> Sim {
    let mut settings = Settings::default();
    settings.options.migrations_per_node = 3;
    start("strategy-switch", settings).unwrap()
}

fn always(options: &mut DrainOptions) {
    options.restart_stale = RestartStale::Always;
}

fn flow(sim: &Sim) -> Flow {
    drain(sim, "node-0").timeout(60).with(always)
}

/// Rights without which nothing is begun where VMs are on the node.
pub const NEEDED: [(&str, &str, &str); 16] = [
    ("patch", "", "nodes"),
    ("create", "", "pods/eviction"),
    ("get", "kubevirt.io", "virtualmachineinstances"),
    ("watch", "", "nodes"),
    ("watch", "", "pods"),
    ("watch", "policy", "poddisruptionbudgets"),
    ("watch", "kubevirt.io", "virtualmachineinstances"),
    ("watch", "kubevirt.io", "virtualmachines"),
    ("watch", "kubevirt.io", "virtualmachineinstancemigrations"),
    ("watch", "kubevirt.io", "kubevirts"),
    ("list", "", "pods"),
    ("list", "kubevirt.io", "virtualmachineinstances"),
    ("list", "kubevirt.io", "virtualmachines"),
    ("list", "kubevirt.io", "virtualmachineinstancemigrations"),
    ("list", "kubevirt.io", "kubevirts"),
    ("get", "", "nodes"),
];

/// The run names the right that is missing, and has changed nothing.
pub fn names_the_right(run: &Outcome, (verb, _, resource): (&str, &str, &str)) {
    run.exits(6).changed_nothing().says(resource);
    if verb != "list" && verb != "get" {
        run.says(&format!("verbs: [\"{verb}\"]")).says(&format!("resources: [\"{resource}\"]"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_right_ends_it_before_anything_is_changed() {
    for right in NEEDED {
        let sim = cluster();
        sim.deny(Rule::new(right.0, right.1, right.2));
        let run = flow(&sim).run().await;
        println!("{right:?}");
        names_the_right(&run, right);
        assert!(!run.cordoned("node-0"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_only_a_forecast_rests_on_is_said() {
    // Claims and volumes are read only where a disk may bind its VM to a node.
    let bound = || {
        crate::vms::cluster("LiveMigrateIfPossible")
            .volume("tenant-a", "data", "ReadWriteOnce", Some("node-0"))
            .vm("tenant-a", Vm::new("db-9").claim("data").non_migratable(crate::vms::DISK))
            .daemon_set("kube-system", "agent")
            .done()
    };
    for (verb, group, resource, word) in [
        ("list", "policy", "poddisruptionbudgets", "budgets"),
        ("*", "", "persistentvolumeclaims", "claims"),
        ("*", "", "persistentvolumes", "volumes"),
        ("*", "apps", "daemonsets", "DaemonSet"),
    ] {
        let sim = bound();
        sim.deny(Rule::new(verb, group, resource));
        let run = flow(&sim).preview(DryRun::Client).run().await;
        println!("{verb} {resource}");
        run.changed_nothing();
        run.prints("Warning: ").prints(word);
    }
}

#[tokio::test(start_paused = true)]
async fn a_denied_restart_leaves_the_stale_where_they_are() {
    let sim = cluster();
    sim.deny(Rule::new("update", "subresources.kubevirt.io", "virtualmachines/restart"));
    let run = flow(&sim).changes().run().await;
    run.exits(3);
    let row = run.vm_is("db-0", "blocks", "Forbidden");
    assert!(row["remedy"].as_str().unwrap_or_default().contains("virtualmachines/restart"), "{row}");
    run.vm_is("web-1", "migrates", "");
    assert!(run.restarts("db-0").is_empty() && run.launcher_evictions("db-0").is_empty());
}

#[tokio::test(start_paused = true)]
async fn rights_per_namespace_are_enough_where_the_plan_acts() {
    let sim = cluster();
    sim.deny(Rule::new("create", "", "pods/eviction").cluster_wide());
    let run = flow(&sim).changes().run().await;
    run.exits(3);
    run.vm_is("web-1", "migrates", "");

    let sim = cluster();
    sim.deny(Rule { place: Place::Namespace("shop".to_owned()), ..Rule::new("create", "", "pods/eviction") });
    let run = flow(&sim).run().await;
    run.exits(6).changed_nothing().says("in shop");
    assert!(!run.stderr.contains("in shop, tenant-a"), "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_preview_needs_no_watches() {
    let sim = cluster();
    sim.deny(Rule::new("watch", "*", "*"));
    flow(&sim).preview(DryRun::Client).run().await.exits(3);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_cordoned_already_needs_no_right_to_cordon() {
    let sim = start("plain", Settings::default()).unwrap();
    sim.update("Node", "", "node-0", |n| n["spec"]["unschedulable"] = true.into());
    sim.deny(Rule::new("patch", "", "nodes"));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0).prints("node/node-0 already cordoned");
    assert!(run.asked("PATCH", "nodes").is_empty());
}
