//! VMs that a restart helps, and restarts that are refused.

use safe_drain::event::{EventKind, StopReason};
use safe_drain::settings::{DrainOptions, RestartStale};
use safe_drain_sim::{Fault, Json, Profile, Sim, Then, Vm};

use super::{NS, SORTS};
use crate::harness::{drain, secs};
use crate::vms::{DISK, node_of, with};

fn always(options: &mut DrainOptions) {
    options.restart_stale = RestartStale::Always;
}

#[tokio::test(start_paused = true)]
async fn c03_only_a_stale_strategy_is_a_reason_to_restart() {
    for profile in Profile::ALL.into_iter().filter(|p| *p > Profile::V1_0) {
        let world = || {
            with(profile, "LiveMigrate")
                .vm(NS, Vm::new("db-0").non_migratable(DISK))
                .vm(NS, Vm::new("pinned-1").eviction_strategy("LiveMigrate").non_migratable(DISK))
                .vmi(NS, Vm::new("lone-1").non_migratable(DISK))
                .eviction_strategy("LiveMigrateIfPossible")
                .done()
        };
        println!("{profile:?}");
        let sim = world();
        let run = drain(&sim, "node-0").run().await;
        run.exits(3);
        let preview = run.preview.as_ref().expect("taken");
        preview.prints("LiveMigrate, stale").prints("a restart gives it LiveMigrateIfPossible");
        preview.prints("Blocked: 3 VMs. With --restart-stale: 2 blocked.");
        assert_eq!(run.vm_is("db-0", "blocks", "VmNotMigratable").list("/needs"), ["--restart-stale"]);
        assert!(run.vm_is("pinned-1", "blocks", "VmNotMigratable").text("/because").contains("its VM template asks"));
        assert!(run.vm_is("lone-1", "blocks", "VmNotMigratable").text("/because").contains("no VM owns it"));
        assert!(run.evictions("virt-launcher-").is_empty() && run.asked("PUT", "/restart").is_empty(), "{run}");

        let sim = world();
        let old = sim.get("VirtualMachineInstance", NS, "db-0").unwrap().uid().to_owned();
        let run = drain(&sim, "node-0").with(always).run().await;
        run.exits(3);
        let row = run.vm_is("db-0", "restarts", "");
        let now = sim.get("VirtualMachineInstance", NS, "db-0").unwrap();
        assert!(now.uid() != old && row.text("/newVmiUid") == now.uid(), "{row}");
        assert_eq!(now.text("/spec/evictionStrategy"), "LiveMigrateIfPossible");
        assert_ne!(now.text("/status/nodeName"), "node-0");
        assert_eq!(run.asked("PUT", "/restart").len(), 1, "{run}");
        assert!(run.evictions("virt-launcher-").is_empty(), "{run}");
        for other in ["pinned-1", "lone-1"] {
            run.vm_is(other, "blocks", "VmNotMigratable");
            assert_eq!(node_of(&sim, other), "node-0");
        }
    }
    // Controls: a VMI without a strategy of its own follows the cluster at once (made before releases gave it one).
    for profile in Profile::ALL {
        println!("{profile:?} without a strategy of its own");
        let sim = with(profile, "LiveMigrate")
            .vm(NS, Vm::new("db-0").non_migratable(DISK))
            .change("VirtualMachineInstance", NS, "db-0", |v| v.cut("/spec/evictionStrategy"))
            .eviction_strategy("LiveMigrateIfPossible")
            .done();
        let run = drain(&sim, "node-0").with(always).run().await;
        run.exits(0);
        run.vm_is("db-0", "returns", "");
        assert!(run.asked("PUT", "/restart").is_empty(), "{run}");
        assert_eq!(run.launcher_evictions("db-0").iter().map(|r| r.status).collect::<Vec<_>>(), [201], "{run}");
    }
}

/// One stale VM that a restart helps.
fn stale(profile: Profile) -> Sim {
    with(profile, "LiveMigrate")
        .vm(NS, Vm::new("db-0").non_migratable(DISK))
        .eviction_strategy("LiveMigrateIfPossible")
        .done()
}

const CONFLICT: &str = "Operation cannot be fulfilled on virtualmachine.kubevirt.io \"db-0\": ";

#[tokio::test(start_paused = true)]
async fn c37_a_restart_that_is_refused_leaves_a_blocker_and_is_never_forced() {
    let recovery = "VM recovery required: Volume migration failed, leaving some volumes pointing to non-existing ones";
    let refusals = [
        (409, "Conflict", format!("{CONFLICT}{recovery}"), "RestartRefused", recovery, 3),
        (409, "Conflict", format!("{CONFLICT}VM is not running: Halted"), "RestartRefused", "not running", 3),
        (
            403,
            "Forbidden",
            "User \"u\" cannot update virtualmachines/restart".to_owned(),
            "Forbidden",
            "cannot update",
            1,
        ),
        (400, "BadRequest", "only gracePeriod=0 is supported for now".to_owned(), "Invalid", "gracePeriod=0", 1),
    ];
    for profile in SORTS {
        for (code, reason, message, cause, words, most) in &refusals {
            let sim = stale(profile);
            sim.fault(Fault::on("PUT", "/restart", Then::status(*code, reason, message)));
            println!("{profile:?} {code} {words}");
            let run = drain(&sim, "node-0").with(always).changes().run().await;
            run.exits(3).says(words);
            let row = run.vm_is("db-0", "blocks", cause);
            assert!(
                row.text("/because").contains(words) && !row.text("/because").contains("Operation cannot"),
                "{row}"
            );
            let puts = run.restarts("db-0");
            assert!(puts.len() <= *most, "{} restarts\n{run}", puts.len());
            assert!(puts.iter().all(|r| r.body.as_ref().is_none_or(|b| !b.has("/gracePeriodSeconds"))), "{run}");
            assert!(run.launcher_evictions("db-0").is_empty() && run.elapsed < secs(30), "{:?}\n{run}", run.elapsed);
            assert_eq!(run.stderr.matches("VM tenant-a/db-0 blocks").count(), 1, "one line\n{run}");
            assert_eq!(node_of(&sim, "db-0"), "node-0");
        }
        // Where a restart is not defined it is not offered.
        let sim = with(profile, "LiveMigrate")
            .vm(NS, Vm::new("job-1").run_strategy("Once").non_migratable(DISK))
            .eviction_strategy("LiveMigrateIfPossible")
            .done();
        let run = drain(&sim, "node-0").with(always).run().await;
        run.exits(3);
        let row = run.vm_is("job-1", "blocks", "VmNotMigratable");
        assert!(row.text("/because").contains("runStrategy Once allows no restart"), "{row}");
        assert!(run.restarts("job-1").is_empty() && run.launcher_evictions("job-1").is_empty(), "{run}");

        // The API behind it is away for half a minute.
        let sim = stale(profile);
        sim.fault(
            Fault::on("PUT", "/restart", Then::status(503, "ServiceUnavailable", "service unavailable"))
                .between(secs(0), secs(30)),
        );
        let run = drain(&sim, "node-0").with(always).run().await;
        run.exits(0);
        run.vm_is("db-0", "restarts", "");
        assert!(run.restarts("db-0").len() < 10 && run.elapsed < secs(60), "{:?}\n{run}", run.elapsed);

        // Ctrl-C while no answer has come.
        let sim = stale(profile);
        sim.fault(Fault::on("PUT", "/restart", Then::Hang));
        let run = drain(&sim, "node-0").with(always).signal(secs(5), StopReason::Interrupt).run().await;
        run.exits(130);
        let because = "its restart was sent and not answered yet: it may have been accepted";
        assert_eq!(run.vm_is("db-0", "pending", "Stopping").text("/because"), because);

        // Accepted, and the new VMI carries something else than was promised.
        let sim = stale(profile);
        let run = drain(&sim, "node-0")
            .with(always)
            .changes()
            .when(|e| matches!(e, EventKind::VmRestarting { .. }), |sim| sim.eviction_strategy(Some("LiveMigrate")))
            .run()
            .await;
        run.exits(0).says("came back with LiveMigrate, but LiveMigrateIfPossible was expected");
        run.vm_is("db-0", "restarts", "StrategyMismatch");
        assert_eq!(run.restarts("db-0").len(), 1, "{run}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_stamps_nothing_keeps_its_promise() {
    // KubeVirt 1.0.0: the new VMI has no strategy of its own, and the cluster's is what was promised.
    let sim = with(Profile::V1_0, "LiveMigrateIfPossible")
        .vm(NS, Vm::new("db-0").eviction_strategy("LiveMigrate").non_migratable(DISK))
        .change("VirtualMachine", NS, "db-0", |v| v.cut("/spec/template/spec/evictionStrategy"))
        .done();
    let run = drain(&sim, "node-0").with(always).run().await;
    run.exits(0);
    run.vm_is("db-0", "restarts", "");
}
