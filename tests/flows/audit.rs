//! `audit`: what it says of the VMs of a cluster, and that it says what a preview of each node says.

use std::collections::{BTreeMap, BTreeSet};

use insta::assert_snapshot;
use safe_drain::event::StopReason;
use safe_drain::settings::DryRun;
use safe_drain_sim::scenario::{Settings, start};
use safe_drain_sim::{Fault, Json, Options, Profile, Rule, Sim, Then, Vm, World};
use serde_json::{Value, json};

use crate::harness::{Outcome, audit, audited, drain, secs};
use crate::vms::DISK;

fn switched() -> Sim {
    start("strategy-switch", Settings::default()).unwrap()
}

/// What a row says of the VM, whether it is of a preview or of an audit. The remedy is that of the command.
fn said(vm: &Value) -> Value {
    let fields = [
        "vmiUid",
        "launcher",
        "runStrategy",
        "strategyNow",
        "strategyFresh",
        "strategySource",
        "stale",
        "restartHelps",
        "migratable",
        "migratableReason",
        "outcome",
        "cause",
        "waitingHelps",
        "needs",
        "dataLoss",
        "nodeBefore",
        "marked",
        "because",
    ];
    fields.into_iter().map(|field| (field.to_owned(), vm[field].clone())).collect::<serde_json::Map<_, _>>().into()
}

fn by_name<'a>(vms: impl IntoIterator<Item = &'a Value>) -> BTreeMap<String, Value> {
    vms.into_iter().map(|vm| (format!("{}/{}", vm.text("/namespace"), vm.text("/name")), said(vm))).collect()
}

/// The audit says of the VMs of each node what a preview of its drain says, with consent to what is taken down.
async fn agrees_with_the_previews(sim: &Sim) -> Outcome {
    let run = audit(sim).run().await;
    run.exits(0);
    let mut seen = BTreeSet::new();
    for node in sim.list("Node").iter().map(|node| node.name().to_owned()) {
        let preview = drain(sim, &node)
            .preview(DryRun::Client)
            .with(|options| {
                options.allow_vm_down = true;
                options.delete_emptydir_data = true;
            })
            .run()
            .await;
        let of_preview = preview.document.list("/nodes").iter().flat_map(|n| n.list("/vms"));
        // A VM that is moving is in the previews of both nodes, and in the audit once.
        let mut expected = by_name(of_preview.filter(|vm| vm.text("/nodeBefore") == node));
        let mut found = by_name(audited(&run).filter(|vm| vm.text("/nodeBefore") == node));
        for rows in [&mut expected, &mut found] {
            // The preview was given these two, the audit says where they are needed.
            for row in rows.values_mut() {
                let given = ["--delete-emptydir-data", "--allow-vm-down"];
                let needs = row.list("/needs").iter().filter(|n| !given.iter().any(|g| *n == g)).cloned();
                row["needs"] = needs.collect();
            }
        }
        assert_eq!(found, expected, "{node}");
        seen.extend(found.into_keys());
    }
    assert_eq!(audited(&run).count(), seen.len());
    run
}

#[tokio::test(start_paused = true)]
async fn after_the_strategy_switch() {
    let sim = switched();
    let run = agrees_with_the_previews(&sim).await;
    assert_snapshot!(run.stdout, @r#"
    in-cluster credentials · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible
    7 VMs on 1 node (nothing was changed)

      VM                 NODE    STRATEGY                ON DRAIN  BECAUSE
    ✗ tenant-a/db-0      node-0  LiveMigrate, stale      blocks    disk root is not shared (not ReadWriteMany); a restart gives it LiveMigrateIfPossible
    ✗ tenant-a/gpu-1     node-0  LiveMigrate, stale      blocks    it has a GPU; a restart gives it LiveMigrateIfPossible
    ✗ tenant-a/pinned-1  node-0  LiveMigrate (template)  blocks    disk root is not shared (not ReadWriteMany); its VM template asks for LiveMigrate → `kubectl patch vm pinned-1 -n tenant-a --type=merge -p '{"spec":{"template":{"spec":{"evictionStrategy":"LiveMigrateIfPossible"}}}}'`, then `virtctl restart pinned-1 -n tenant-a`

    ✗ 3 VMs would block: 2 are stale (a restart helps), 1 is held by its VM template
    ? 1 VM would wait for the controller that owns it (External)
    ✓ 3 VMs would migrate

    2 VMs are stale: `kubectl safe-drain restart-stale` restarts them once you agree; or one by one:
      virtctl restart db-0 -n tenant-a
      virtctl restart gpu-1 -n tenant-a

    Price of a strategy that shuts VMs down: each update of KubeVirt will shut down 2 VMs once they are restarted, at most 10 every 1m; 1 of them stays off (method Evict in workloadUpdateStrategy of the KubeVirt object)
    "#);
    assert_eq!(run.stderr, "");
    run.vm_is("db-0", "blocks", "VmNotMigratable");
    run.vm_is("ext-1", "waits", "ExternalOwner");
    audit(&sim).detailed().run().await.exits(3);
}

/// A cluster with VMs of every kind on two of its three nodes.
fn mixture(strategy: &str) -> World {
    let options =
        Options { kubevirt: Some(Profile::V1_7), eviction_strategy: Some("LiveMigrate".into()), ..Options::default() };
    let mut world = Sim::new(options).world().nodes(3);
    let mut n = 0;
    for own in [None, Some("LiveMigrate"), Some("LiveMigrateIfPossible"), Some("None"), Some("External")] {
        for run_strategy in ["Always", "RerunOnFailure", "Manual", "Once"] {
            for movable in [true, false] {
                let mut vm = Vm::new(&format!("vm-{n}")).run_strategy(run_strategy);
                if let Some(own) = own {
                    vm = vm.eviction_strategy(own);
                }
                if !movable {
                    vm = vm.non_migratable(DISK);
                }
                if n % 7 == 3 {
                    vm = vm.empty_disk("scratch");
                }
                if n % 5 == 4 {
                    vm = vm.node_selector("kubernetes.io/hostname", &format!("node-{}", n / 2 % 2));
                }
                world = world.on(&format!("node-{}", n / 2 % 2)).vm(["tenant-a", "tenant-b"][n / 2 % 2], vm);
                n += 1;
            }
        }
    }
    world.eviction_strategy(strategy)
}

#[tokio::test(start_paused = true)]
async fn every_mixture_is_said_as_in_the_previews() {
    for strategy in ["LiveMigrate", "LiveMigrateIfPossible", "None", "External"] {
        println!("{strategy}");
        let run = agrees_with_the_previews(&mixture(strategy).done()).await;
        assert_eq!(audited(&run).count(), 40);
        let outcomes: BTreeSet<&str> = audited(&run).map(|vm| vm.text("/outcome")).collect();
        assert!(outcomes.len() >= 5, "{outcomes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_owner_and_every_node_is_said_as_in_the_previews() {
    let lonely = || Vm::new("alone").eviction_strategy("LiveMigrateIfPossible").non_migratable(DISK);
    let bound = |name: &str| Vm::new(name).claim("data-0").non_migratable(DISK);
    let sim = crate::vms::cluster("LiveMigrate")
        .on("node-0")
        .volume("tenant-a", "data-0", "ReadWriteOnce", Some("node-0"))
        .vm("tenant-a", bound("bound-stale"))
        .vm("tenant-a", bound("bound-loose").eviction_strategy("LiveMigrateIfPossible"))
        .vm("tenant-a", Vm::new("attached"))
        .hotplug("tenant-a", "attached", "hp-1")
        .vmi("tenant-a", lonely())
        .vmi_replica_set("tenant-a", "set", 2, Vm::new("set").non_migratable(DISK))
        .vm("tenant-a", Vm::new("budget").eviction_strategy("None").label("app", "budget"))
        .pdb("tenant-a", "keep", "budget", json!({"minAvailable": 1}))
        .on("node-1")
        .vm("tenant-b", Vm::new("on-a-cordoned-node"))
        .on("node-2")
        .vm("tenant-b", Vm::new("cut-off").non_migratable(DISK))
        .vm("tenant-b", Vm::new("cut-off-too"))
        .eviction_strategy("LiveMigrateIfPossible")
        .done();
    let run = agrees_with_the_previews(&sim).await;
    for (vm, outcome, cause) in [
        ("bound-stale", "blocks", "VmNotMigratable"),
        ("bound-loose", "down-until-node", "BoundToNode"),
        ("attached", "migrates", ""),
        ("alone", "stays-off", "StaysOff"),
        ("budget", "blocks", "BudgetNever"),
    ] {
        run.vm_is(vm, outcome, cause);
    }
    sim.update("Node", "", "node-1", |node| node["spec"]["unschedulable"] = true.into());
    sim.update("Node", "", "node-2", |node| {
        node.set_condition(json!({"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}));
    });
    let run = agrees_with_the_previews(&sim).await;
    run.vm_is("attached", "blocks", "NoMigrationTarget");
    let row = run.vm_is("cut-off", "blocks", "NodeNotReady");
    assert_eq!(row["restartCommand"], Value::Null, "a restart would hang");
    let cordoned: Vec<(&str, bool)> =
        run.document.list("/nodes").iter().map(|n| (n.text("/name"), n.flag("/cordonedNow"))).collect();
    assert_eq!(cordoned, [("node-0", false), ("node-1", true), ("node-2", false)]);
}

#[tokio::test(start_paused = true)]
async fn while_vms_move() {
    let sim = switched();
    sim.update("VirtualMachineInstance", "tenant-a", "hang-1", |vmi| {
        vmi["status"]["evacuationNodeName"] = "node-0".into();
    });
    tokio::time::sleep(secs(10)).await;
    let run = agrees_with_the_previews(&sim).await;
    run.vm_is("hang-1", "migrates", "");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_and_labels() {
    let sim = mixture("LiveMigrateIfPossible").done();
    sim.update("VirtualMachine", "tenant-a", "vm-4", |vm| vm.set_label("app", "db"));
    sim.update("VirtualMachine", "tenant-b", "vm-2", |vm| vm.set_label("app", "db"));
    // The labels of a VMI are its template's; those of its VM count.
    sim.update("VirtualMachineInstance", "tenant-a", "vm-5", |vmi| vmi.set_label("app", "db"));
    let names = |run: &Outcome| -> Vec<String> { by_name(audited(run)).into_keys().collect() };
    assert_eq!(names(&audit(&sim).selector("app=db").run().await), ["tenant-a/vm-4", "tenant-b/vm-2"]);
    let run = audit(&sim).namespace("tenant-a").selector("app in (db, web)").run().await;
    assert_eq!(names(&run), ["tenant-a/vm-4"]);
    run.prints("1 VM on 1 node in namespace tenant-a with labels app in (db, web) (nothing was changed)\n");
    let run = audit(&sim).namespace("tenant-b").run().await;
    assert!(names(&run).iter().all(|name| name.starts_with("tenant-b/")) && names(&run).len() == 20);
    run.prints("`kubectl safe-drain restart-stale -n tenant-b` restarts");
    let none = audit(&sim).namespace("tenant-c").run().await;
    assert_snapshot!(none.stdout, @"in-cluster credentials · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · no VM runs in namespace tenant-c");
}

#[tokio::test(start_paused = true)]
async fn without_vms_and_without_kubevirt() {
    let plain = start("plain", Settings::default()).unwrap();
    let run = audit(&plain).detailed().run().await;
    run.exits(0);
    assert_snapshot!(run.stdout, @"in-cluster credentials · Kubernetes v1.36.2 · KubeVirt is not installed, so there are no VMs");
    assert_eq!(run.document.list("/nodes").len(), 0);
    only_in(&plain, "nowhere");
    assert_eq!(audit(&plain).run().await.stdout, run.stdout, "nothing of it needs to be read");
    let halted = crate::vms::cluster("LiveMigrate").vm("tenant-a", Vm::new("off").run_strategy("Halted")).done();
    let run = audit(&halted).run().await;
    run.exits(0);
    assert_snapshot!(run.stdout, @"in-cluster credentials · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrate · no VM runs; 1 VM is stopped: it gets its strategy at the next start");
    assert_eq!(run.document.int("/audit/stopped"), Some(1));
}

#[tokio::test(start_paused = true)]
async fn the_price_is_told_where_kubevirt_evicts() {
    let set = |sim: &Sim, strategy: Value| {
        sim.update("KubeVirt", "kubevirt", "kubevirt", |cr| cr["spec"]["workloadUpdateStrategy"] = strategy);
    };
    let sim = crate::vms::cluster("LiveMigrateIfPossible")
        .vm("tenant-a", Vm::new("web-1"))
        .vm("tenant-a", Vm::new("db-0").non_migratable(DISK))
        .vm("tenant-a", Vm::new("db-1").non_migratable(DISK).run_strategy("RerunOnFailure"))
        .done();
    let run = audit(&sim).run().await;
    run.prints(
        "Price of a strategy that shuts VMs down: each update of KubeVirt shuts down 2 VMs that it does not migrate, at most \
         10 every 1m; 1 of them stays off (method Evict in workloadUpdateStrategy of the KubeVirt object)\n",
    );
    set(&sim, json!({"workloadUpdateMethods": ["Evict"], "batchEvictionSize": 3, "batchEvictionInterval": "2m0s"}));
    audit(&sim).run().await.prints("at most 3 every 2m");
    for silent in [json!({"workloadUpdateMethods": ["LiveMigrate"], "batchEvictionSize": 3}), json!({}), Value::Null] {
        set(&sim, silent);
        let run = audit(&sim).run().await;
        assert!(!run.stdout.contains("Price") && !run.stdout.contains("every"), "{run}");
    }
}

#[tokio::test(start_paused = true)]
async fn outdated_launchers() {
    let sim = switched();
    for vm in ["db-0", "web-1"] {
        sim.update("VirtualMachineInstance", "tenant-a", vm, |vmi| {
            vmi.set_label("kubevirt.io/outdatedLauncherImage", "");
        });
    }
    let run = audit(&sim).run().await;
    run.prints("2 VMs run in launchers that are older than KubeVirt: a migration or a restart renews them");
    run.prints("KubeVirt itself migrates those that can and evicts the others");
    let outdated: Vec<&str> =
        audited(&run).filter(|vm| vm.flag("/outdatedLauncher")).map(|vm| vm.text("/name")).collect();
    assert_eq!(outdated, ["db-0", "web-1"]);
}

/// Rights of somebody with a role in one namespace only.
fn only_in(sim: &Sim, namespace: &str) {
    sim.deny(Rule::new("*", "*", "*").cluster_wide());
    for other in sim.list("Namespace").iter().map(|n| n.name().to_owned()).filter(|n| n != namespace) {
        sim.deny(Rule::new("*", "*", "*").in_namespace(&other));
    }
}

#[tokio::test(start_paused = true)]
async fn rights_in_one_namespace_are_enough_for_it() {
    let sim = mixture("LiveMigrateIfPossible").done();
    only_in(&sim, "tenant-a");
    let run = audit(&sim).namespace("tenant-a").detailed().run().await;
    run.exits(3).says("cannot read nodes").says("whether another node can take a VM is unknown");
    run.says("cannot read KubeVirt objects").says("what a restarted VM would get");
    assert_eq!(audited(&run).count(), 20);
    for vm in audited(&run) {
        assert_ne!(vm.text("/cause"), "NoMigrationTarget", "no node can be said to be missing");
        assert_eq!(vm["strategyFresh"], Value::Null);
        assert_eq!(vm["stale"], Value::Null);
        assert_eq!(vm["restartCommand"], Value::Null);
    }
    assert_eq!(run.document["audit"]["workloadUpdate"], Value::Null);
    let run = audit(&sim).run().await;
    run.exits(6).says("cannot read").says("no VM can be judged");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_ends_it_or_is_said() {
    for (group, resource) in [
        ("", "pods"),
        ("kubevirt.io", "virtualmachines"),
        ("kubevirt.io", "virtualmachineinstances"),
        ("kubevirt.io", "virtualmachineinstancemigrations"),
    ] {
        let sim = switched();
        sim.deny(Rule::new("list", group, resource));
        println!("{resource}");
        let run = audit(&sim).run().await;
        run.exits(6).says(resource);
        assert_eq!(run.stdout, "");
    }
    for (group, resource, word) in [
        ("", "nodes", "nodes"),
        ("kubevirt.io", "kubevirts", "KubeVirt objects"),
        ("policy", "poddisruptionbudgets", "disruption budgets"),
    ] {
        let sim = switched();
        sim.deny(Rule::new("list", group, resource));
        let run = audit(&sim).run().await;
        println!("{resource}");
        run.exits(0).says(&format!("cannot read {word}"));
        assert_eq!(audited(&run).count(), 7);
    }
}

#[tokio::test(start_paused = true)]
async fn a_signal_and_a_server_that_does_not_answer() {
    let sim = switched();
    sim.fault(Fault::on("GET", "/apis/kubevirt.io/v1/virtualmachines", Then::Hang));
    for (reason, code) in [(StopReason::Interrupt, 130), (StopReason::Terminate, 143), (StopReason::HangUp, 129)] {
        let run = audit(&sim).signal(secs(2), reason).run().await;
        run.exits(code).says("the audit is not complete");
        assert!(run.elapsed < secs(3), "{run}");
        assert_eq!((run.stdout.as_str(), run.document.list("/nodes").len()), ("", 0));
    }
    let run = audit(&sim).run().await;
    run.exits(6).says("no VM can be judged");
}

/// (group, resource, verb) of a request that reads, or nothing for what needs no right.
fn right(path: &str) -> Option<(String, String, &'static str)> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => return None,
    };
    let (resource, name) = match rest {
        ["namespaces", _, resource, name @ ..] | [resource, name @ ..] => (*resource, name),
        [] => return None,
    };
    let verb = if name.is_empty() { "list" } else { "get" };
    Some((group.to_owned(), resource.to_owned(), verb))
}

#[tokio::test(start_paused = true)]
async fn the_role_that_is_shipped_is_all_that_it_reads() {
    let role = serde_saphyr::from_str::<Value>(include_str!("../../deploy/rbac-audit.yaml")).unwrap();
    let mut shipped = BTreeSet::new();
    for rule in role.list("/rules") {
        let words = |list: &str| rule.list(list).iter().map(|w| w.as_str().unwrap().to_owned()).collect::<Vec<_>>();
        for group in words("/apiGroups") {
            for resource in words("/resources") {
                for verb in words("/verbs") {
                    shipped.insert((group.clone(), resource.clone(), verb));
                }
            }
        }
    }
    let mut used = BTreeSet::new();
    // Few claims are read one by one, many are listed.
    for claims in [1, 70] {
        let mut world = crate::vms::cluster("LiveMigrateIfPossible");
        let mut vm = Vm::new("db-0").non_migratable(DISK);
        for name in (0..claims).map(|n| format!("data-{n}")) {
            world = world.volume("tenant-a", &name, "ReadWriteOnce", Some("node-0"));
            vm = vm.claim(&name);
        }
        let world = world.vm("tenant-a", vm).vmi_replica_set("tenant-a", "farm", 1, Vm::new("farm"));
        let run = audit(&world.done()).run().await;
        run.exits(0);
        let rights = run.requests.iter().filter_map(|r| right(&r.path));
        used.extend(rights.map(|(group, resource, verb)| (group, resource, verb.to_owned())));
    }
    assert_eq!(used, shipped);
}
