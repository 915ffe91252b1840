//! Where the strategy of a new VMI comes from: template, pool, replica set, instancetype, cluster; and what is offered for it.

use safe_drain::settings::{DryRun, RestartStale};
use safe_drain_sim::{Json, Rule, Sim, Vm, World};
use serde_json::{Value, json};

use crate::harness::{Outcome, drain};
use crate::vms::{DISK, cluster};

/// The strategies of a VM as a document has them.
fn strategies(run: &Outcome, vm: &str) -> Value {
    let row = run.vm(vm);
    json!([row["strategyNow"], row["strategyFresh"], row["strategySource"], row["stale"], row["restartHelps"]])
}

fn instancetype(vm: &str) -> impl FnOnce(&mut Value) {
    let revision = format!("{vm}-u1.small-1");
    move |v| {
        v.put(
            "/spec/instancetype",
            json!({"kind": "VirtualMachineClusterInstancetype", "name": "u1.small", "revisionName": revision}),
        );
    }
}

fn expanding(world: World) -> World {
    world.change("KubeVirt", "kubevirt", "kubevirt", |k| {
        k.put("/spec/configuration/instancetype", json!({"referencePolicy": "expand"}));
    })
}

#[tokio::test(start_paused = true)]
async fn an_instancetype_has_no_strategy_of_its_own() {
    // What refers to one gets the cluster's strategy with a restart, as any other VM.
    let sim = cluster("LiveMigrate")
        .vm("tenant-a", Vm::new("db-0").non_migratable(DISK))
        .change("VirtualMachine", "tenant-a", "db-0", instancetype("db-0"))
        .eviction_strategy("LiveMigrateIfPossible")
        .done();
    let run = drain(&sim, "node-0").with(|o| o.restart_stale = RestartStale::Always).run().await;
    run.exits(0);
    run.vm_is("db-0", "restarts", "");
    let preview = run.preview.as_ref().expect("a preview");
    assert_eq!(strategies(preview, "db-0"), json!(["LiveMigrate", "LiveMigrateIfPossible", "cluster", true, true]));
    let vmi = sim.get("VirtualMachineInstance", "tenant-a", "db-0").expect("it runs");
    assert_eq!(vmi.text("/spec/evictionStrategy"), "LiveMigrateIfPossible");

    // Where KubeVirt expands it, the cluster's strategy of that time stands in the template, and no restart helps.
    let sim = expanding(cluster("LiveMigrate"))
        .vm("tenant-a", Vm::new("db-0").eviction_strategy("LiveMigrate").non_migratable(DISK))
        .eviction_strategy("LiveMigrateIfPossible")
        .done();
    let run = drain(&sim, "node-0").with(|o| o.restart_stale = RestartStale::Always).run().await;
    run.exits(3);
    assert_eq!(strategies(&run, "db-0"), json!(["LiveMigrate", "LiveMigrate", "template", false, false]));
    let row = run.vm_is("db-0", "blocks", "VmNotMigratable");
    assert!(row.text("/because").ends_with("its VM template asks for LiveMigrate (KubeVirt's instancetype.referencePolicy copies the cluster's strategy into templates)"), "{row}");
    assert!(row.text("/remedy").starts_with("`kubectl patch vm db-0 -n tenant-a"), "{row}");
    assert!(run.restarts("db-0").is_empty() && run.launcher_evictions("db-0").is_empty(), "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_pool_is_named_where_its_template_holds_a_vm() {
    let sim = cluster("LiveMigrate")
        .pool_vm("tenant-a", "web", Vm::new("web-0").non_migratable(DISK).eviction_strategy("LiveMigrate"))
        .eviction_strategy("LiveMigrateIfPossible")
        .done();
    let run = drain(&sim, "node-0").with(|o| o.restart_stale = RestartStale::Always).run().await;
    run.exits(3);
    let row = run.vm_is("web-0", "blocks", "VmNotMigratable");
    assert!(row.text("/because").ends_with("its VM template asks for LiveMigrate, as pool web wants it"), "{row}");
    let patch = r#"`kubectl patch vmpool web -n tenant-a --type=merge -p '{"spec":{"virtualMachineTemplate":{"spec":{"template":{"spec":{"evictionStrategy":"LiveMigrateIfPossible"}}}}}}'`, then run the same command again, once the pool has updated its VM"#;
    assert_eq!(row.text("/remedy"), patch);

    // Its VMs can be restarted as any other.
    let sim = cluster("LiveMigrate")
        .pool_vm("tenant-a", "web", Vm::new("web-0").non_migratable(DISK))
        .eviction_strategy("LiveMigrateIfPossible")
        .done();
    let run = drain(&sim, "node-0").with(|o| o.restart_stale = RestartStale::Always).run().await;
    run.exits(0);
    run.vm_is("web-0", "restarts", "");
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_gives_what_its_template_or_the_cluster_says() {
    for (template, fresh, source) in [
        (None, "LiveMigrateIfPossible", "cluster"),
        (Some("None"), "None", "template"),
        (Some("LiveMigrate"), "LiveMigrate", "template"),
    ] {
        let stale = fresh != "LiveMigrate";
        let world = || {
            let sim = cluster("LiveMigrate")
                .vmi_replica_set("tenant-a", "pool", 1, Vm::new("pool").non_migratable(DISK))
                .done();
            if let Some(template) = template {
                sim.update("VirtualMachineInstanceReplicaSet", "tenant-a", "pool", |s| {
                    s.put("/spec/template/spec/evictionStrategy", template);
                });
            }
            sim.eviction_strategy(Some("LiveMigrateIfPossible"));
            sim
        };
        let sim = world();
        let name = sim.list("VirtualMachineInstance")[0].name().to_owned();
        let run = drain(&sim, "node-0").with(|o| o.restart_stale = RestartStale::Always).run().await;
        run.exits(3);
        let row = run.vm_is(&name, "blocks", "VmNotMigratable");
        assert_eq!(strategies(&run, &name), json!(["LiveMigrate", fresh, source, stale, false]), "{run}");
        let with = if stale { format!("with {fresh}") } else { "with LiveMigrate again".to_owned() };
        assert_eq!(
            row.text("/remedy"),
            format!(
                "`kubectl delete vmi {name} -n tenant-a` after the cordon ends this guest; the replica set starts another {with}"
            )
        );

        // Who may not read replica sets is told so; nothing else depends on it.
        let sim = world();
        sim.deny(Rule::new("get", "kubevirt.io", "virtualmachineinstancereplicasets"));
        let run = drain(&sim, "node-0").preview(DryRun::Client).run().await;
        run.exits(3).prints("Warning: cannot read replica sets of VMs");
        assert!(run.vm(&name)["strategyFresh"].is_null() && run.vm(&name)["stale"].is_null(), "{run}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_standalone_vmi_has_no_fresh_strategy() {
    let sim: Sim =
        cluster("LiveMigrate").vmi("tenant-a", Vm::new("lone-1").non_migratable(DISK)).eviction_strategy("None").done();
    let run = drain(&sim, "node-0").with(|o| o.restart_stale = RestartStale::Always).run().await;
    run.exits(3);
    assert_eq!(strategies(&run, "lone-1"), json!(["LiveMigrate", null, null, null, false]));
}

#[tokio::test(start_paused = true)]
async fn a_no_to_vms_that_go_down_names_no_flag_that_does_not_help() {
    let once = || cluster("None").vm("tenant-a", Vm::new("job-1").run_strategy("Once")).done();
    let run = drain(&once(), "node-0").answers("n").run().await;
    run.exits(4).changed_nothing().says("a VM that may not go down must be moved or stopped by hand first");
    assert!(!run.stderr.contains("--restart-stale=never"), "{run}");
    let stale =
        cluster("LiveMigrate").vm("tenant-a", Vm::new("db-0").non_migratable(DISK)).eviction_strategy("None").done();
    let run = drain(&stale, "node-0").answers("n").run().await;
    run.exits(4).changed_nothing().says("--restart-stale=never drains what needs no restart");
}

#[tokio::test(start_paused = true)]
async fn what_a_flag_clears_is_no_matter_of_the_same_command_again() {
    let world = || cluster("LiveMigrate").vm("tenant-a", Vm::new("db-0").non_migratable(DISK));
    let sim = world().eviction_strategy("LiveMigrateIfPossible").done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(3).says("the same command with --restart-stale  to go on; it resumes what has begun");
    // Where somebody must do something else first, it is the same command again.
    let sim = world()
        .vm("tenant-a", Vm::new("db-1").eviction_strategy("LiveMigrate").non_migratable(DISK))
        .eviction_strategy("None")
        .done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(3).says("the same command with --restart-stale  to go on, once the above is done; it resumes");
    let run = drain(&world().done(), "node-0").run().await;
    run.exits(3).says("the same command again").says("once the above is done");
}
