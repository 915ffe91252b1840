//! The same stage on each KubeVirt release, and what only some releases do.

use safe_drain::settings::{DryRun, RestartStale};
use safe_drain_sim::{Json, Profile, Sim, VirtApi, Vm, World};
use serde_json::json;

use super::{NS, SORTS};
use crate::harness::{Outcome, drain, secs};
use crate::vms::{DISK, node_of, with};

/// One VM of each kind on node-0.
fn stage(profile: Profile) -> Sim {
    let budget = json!({"minAvailable": 1, "selector": {"matchLabels": {"team": "a"}}});
    with(profile, "LiveMigrateIfPossible")
        .vm(NS, Vm::new("web-1"))
        .vm(NS, Vm::new("plug-1"))
        .hotplug(NS, "plug-1", "hp-volume-1")
        .vm(NS, Vm::new("guard-1").label("team", "a"))
        .pdb(NS, "team-a-vms", "", budget)
        .vm(NS, Vm::new("off-1").eviction_strategy("None"))
        .vm(NS, Vm::new("ext-1").eviction_strategy("External"))
        .vm(NS, Vm::new("db-0").eviction_strategy("LiveMigrate").non_migratable(DISK))
        .change("VirtualMachine", NS, "db-0", |v| v.cut("/spec/template/spec/evictionStrategy"))
        .done()
}

fn eviction_codes(run: &Outcome, vm: &str) -> Vec<u16> {
    run.launcher_evictions(vm).iter().map(|r| r.status).collect()
}

#[tokio::test(start_paused = true)]
async fn each_release_is_drained_with_as_few_requests() {
    for profile in Profile::ALL {
        let unset = SORTS.contains(&profile).then_some(RestartStale::Unset);
        for restart in std::iter::once(RestartStale::Always).chain(unset) {
            println!("{profile:?} {restart:?}");
            let sim = stage(profile);
            let restarts = restart == RestartStale::Always;
            let delete = |sim: &Sim| {
                sim.delete("VirtualMachineInstance", NS, "ext-1");
            };
            let run = drain(&sim, "node-0").with(|o| o.restart_stale = restart).at(secs(30), delete).run().await;
            run.exits(if restarts { 0 } else { 3 });
            assert_eq!(run.document.text("/server/kubevirt"), profile.version());
            for vm in ["web-1", "plug-1", "guard-1"] {
                run.vm_is(vm, "migrates", "");
            }
            run.vm_is("off-1", "returns", "");
            run.vm_is("ext-1", "replaced", "");
            if restarts {
                run.vm_is("db-0", "restarts", "");
            } else {
                assert_eq!(run.vm_is("db-0", "blocks", "VmNotMigratable").list("/needs"), ["--restart-stale"]);
            }
            // Up to 1.2 the mark comes with a refusal that does not tell of it: one with two budgets says nothing at all.
            let marks = if profile.refuses_when_it_marks() { 429 } else { 500 };
            assert_eq!(eviction_codes(&run, "guard-1"), [marks], "{run}");
            for vm in ["web-1", "plug-1", "ext-1"] {
                assert_eq!(eviction_codes(&run, vm), [429], "{vm}\n{run}");
            }
            assert_eq!(eviction_codes(&run, "off-1"), [201], "{run}");
            assert!(eviction_codes(&run, "db-0").is_empty(), "{run}");
            assert_eq!(run.asked("PUT", "/restart").len(), usize::from(restarts), "{run}");
            assert_eq!(run.evictions("").len(), 5, "none for the hot-plugged volume\n{run}");
            assert!(run.elapsed < secs(60), "{:?}\n{run}", run.elapsed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c27_a_users_budget_speaks_only_where_the_eviction_shuts_the_guest_down() {
    let over = |name: &'static str, spec: serde_json::Value| {
        move |w: World| {
            w.pdb(NS, name, "", {
                let mut s = spec;
                s.put("/selector/matchLabels/team", "a");
                s
            })
        }
    };
    for profile in Profile::ALL {
        println!("{profile:?}");
        let web = || Vm::new("web-1").label("team", "a");
        let team = || over("team-a-vms", json!({"minAvailable": 1}));
        // It migrates: up to 1.5 with a budget of KubeVirt's beside it.
        let sim = team()(with(profile, "LiveMigrate").vm(NS, web())).done();
        let run = drain(&sim, "node-0").run().await;
        run.exits(0);
        run.vm_is("web-1", "migrates", "");
        assert_eq!(run.launcher_evictions("web-1").len(), 1, "{run}");
        assert!(!run.stderr.contains("budget"), "nothing to tell of it\n{run}");
        let run = drain(&sim, node_of(&sim, "web-1").as_str()).preview(DryRun::Server).run().await;
        run.exits(0);
        assert_eq!(run.vm_is("web-1", "migrates", "").text("/because"), "1 node can take it");

        // With two budgets and no guard nothing begins to migrate it.
        if profile.fails_open() {
            let sim = team()(with(profile, "LiveMigrate").vm(NS, web())).done();
            sim.virt_api(VirtApi::NoEndpoints);
            let run = drain(&sim, "node-0").changes().run().await;
            run.exits(3).says("KubeVirt's own budget kubevirt-disruption-budget-").says("is virt-api up?");
            run.vm_is("web-1", "blocks", "WebhookUnreachable");
            assert!(run.elapsed < secs(10), "{:?}\n{run}", run.elapsed);
        }

        // It is shut down: the budget is what blocks, by name.
        let sim = team()(with(profile, "None").vm(NS, web())).done();
        let run = drain(&sim, "node-0").run().await;
        run.exits(3).says("team-a-vms");
        let row = run.vm_is("web-1", "blocks", "BudgetNever");
        assert!(row.text("/because").contains("team-a-vms"), "{row}");
        assert!(run.launcher_evictions("web-1").is_empty() && run.elapsed < secs(3), "{run}");
        let sim = over("other", json!({"minAvailable": 0}))(team()(with(profile, "None").vm(NS, web()))).done();
        let run = drain(&sim, "node-0").run().await;
        run.exits(3).says("the budgets other and team-a-vms all count it");
        run.vm_is("web-1", "blocks", "MultipleBudgets");
        assert!(run.launcher_evictions("web-1").is_empty(), "{run}");
    }
}

#[tokio::test(start_paused = true)]
async fn c29_no_eviction_is_sent_while_a_migration_is_under_way() {
    for profile in Profile::ALL {
        println!("{profile:?}");
        let vm = Vm::new("web-1").annotation("lab/migrate", "20s");
        let sim = with(profile, "LiveMigrate").vm(NS, vm).done();
        let uid = sim.get("VirtualMachineInstance", NS, "web-1").unwrap().uid().to_owned();
        sim.create(json!({"kind": "VirtualMachineInstanceMigration", "metadata": {"name": "m-1", "namespace": NS},
            "spec": {"vmiName": "web-1"}}));
        tokio::time::sleep(secs(3)).await;
        // The target of an earlier one lingers: where KubeVirt keeps a budget, it is satisfied now.
        sim.create(json!({"kind": "Pod", "metadata": {"name": "virt-launcher-web-1-old", "namespace": NS,
                "labels": {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": uid},
                "annotations": {"kubevirt.io/domain": "web-1"}},
            "spec": {"nodeName": "node-2", "containers": [{"name": "compute", "image": "pause"}]}}));
        tokio::time::sleep(secs(1)).await;
        let allows = |b: &serde_json::Value| b.int("/status/disruptionsAllowed") == Some(1);
        assert_eq!(sim.list("PodDisruptionBudget").iter().any(allows), profile.keeps_budgets(), "the gap is there");
        let run = drain(&sim, "node-0").run().await;
        run.exits(0).prints("virtualmachine.kubevirt.io/web-1 migrated");
        run.vm_is("web-1", "migrates", "");
        assert!(run.launcher_evictions("web-1").is_empty(), "{run}");
        let now = sim.get("VirtualMachineInstance", NS, "web-1").unwrap();
        assert_eq!((now.uid(), now.text("/status/phase")), (uid.as_str(), "Running"));
        assert_ne!(now.text("/status/nodeName"), "node-0");
        assert!(run.elapsed > secs(10), "{:?}", run.elapsed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_migration_of_others_that_fails_is_made_up_for() {
    for profile in SORTS {
        println!("{profile:?}");
        let sim = with(profile, "LiveMigrate").vm(NS, Vm::new("web-1").migration("fail")).done();
        sim.create(json!({"kind": "VirtualMachineInstanceMigration", "metadata": {"name": "m-1", "namespace": NS},
            "spec": {"vmiName": "web-1"}}));
        tokio::time::sleep(secs(2)).await;
        let mend = |sim: &Sim| {
            sim.update("VirtualMachineInstance", NS, "web-1", |v| v.set_annotation("lab/migration", None));
        };
        let run = drain(&sim, "node-0").at(secs(5), mend).run().await;
        run.exits(0);
        run.vm_is("web-1", "migrates", "");
        assert_eq!(run.launcher_evictions("web-1").len(), 1, "{run}");
        assert!(run.launcher_evictions("web-1")[0].at > secs(4), "{run}");
    }
}

#[tokio::test(start_paused = true)]
async fn c36_a_server_preview_asks_once_and_only_dry() {
    for profile in Profile::ALL {
        println!("{profile:?}");
        let sim = stage(profile);
        let run = drain(&sim, "node-0").preview(DryRun::Server).run().await;
        run.exits(3).changed_nothing();
        for (vm, outcome, cause) in [
            ("web-1", "migrates", ""),
            ("plug-1", "migrates", ""),
            ("guard-1", "migrates", ""),
            ("off-1", "returns", ""),
            ("ext-1", "waits", "ExternalOwner"),
            ("db-0", "blocks", "VmNotMigratable"),
        ] {
            run.vm_is(vm, outcome, cause);
            assert_eq!(run.launcher_evictions(vm).len(), 1, "{vm}\n{run}");
        }
        assert_eq!(run.evictions("").len(), 6, "{run}");
        for r in run.evictions("") {
            let body = r.body.as_ref().expect("a body");
            assert!(r.query.contains("dryRun=All") && body.list("/deleteOptions/dryRun") == ["All"], "{r:?}");
        }
        assert!(run.asked("PATCH", "").is_empty() && run.elapsed < secs(2), "{run}");
        let marked = |v: &serde_json::Value| v.has("/status/evacuationNodeName");
        assert!(!sim.list("VirtualMachineInstance").iter().any(marked), "{run}");
        assert!(sim.list("VirtualMachineInstanceMigration").is_empty());
    }
}
