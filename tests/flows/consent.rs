//! Each row of the consent table, end to end: what is asked, what is done, with which exit code.

use safe_drain::settings::RestartStale::{self, Always, Ask, Never, Unset};
use safe_drain_sim::{Json, Sim, Vm};

use crate::harness::{Flow, Outcome, drain};
use crate::vms::{DISK, cluster};

/// What becomes of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Restarted,
    Stays,
    /// Evicted, and does not run afterwards.
    Down,
    /// The command was refused.
    Refused,
}
use Fate::{Down, Refused, Restarted, Stays};

/// A VM of one kind: S is stale, SD is stale and bound to the node by its disk, E is let go and stays off.
fn vm(kind: &str) -> Sim {
    let stale = |world: safe_drain_sim::World| world.eviction_strategy("LiveMigrateIfPossible").done();
    match kind {
        "S" => stale(cluster("LiveMigrate").vm("tenant-a", Vm::new("vm").non_migratable(DISK))),
        "SD" => stale(
            cluster("LiveMigrate")
                .volume("tenant-a", "data", "ReadWriteOnce", Some("node-0"))
                .vm("tenant-a", Vm::new("vm").claim("data").non_migratable(DISK)),
        ),
        _ => cluster("None").vm("tenant-a", Vm::new("vm").run_strategy("Once")).done(),
    }
}

fn fate(run: &Outcome) -> Fate {
    let restarts = run.restarts("vm").len();
    let evictions = run.launcher_evictions("vm").len();
    match (run.exit, run.vm("vm").text("/outcome"), restarts, evictions) {
        (4, _, 0, 0) => Refused,
        (3, "blocks", 0, 0) => Stays,
        (0, "restarts" | "down-until-node", 1, 0) => Restarted,
        (0, "stays-off", 0, 1) => Down,
        _ => run.fail("a fate of its own"),
    }
}

fn flow(sim: &Sim, restart: RestartStale, down: bool, answer: Option<&'static str>) -> Flow {
    let flow = drain(sim, "node-0").with(|o| {
        o.restart_stale = restart;
        o.allow_vm_down = down;
    });
    match answer {
        Some(answer) => flow.answers(answer),
        None => flow,
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_can_be_asked() {
    for (restart, down, s, sd, e) in [
        (Unset, false, Stays, Stays, Refused),
        (Unset, true, Stays, Stays, Down),
        (Ask, false, Refused, Refused, Refused),
        (Ask, true, Refused, Refused, Refused),
        (Always, false, Restarted, Stays, Refused),
        (Always, true, Restarted, Restarted, Down),
        (Never, false, Stays, Stays, Refused),
        (Never, true, Stays, Stays, Down),
    ] {
        for (kind, expected) in [("S", s), ("SD", sd), ("E", e)] {
            let sim = vm(kind);
            let run = flow(&sim, restart, down, None).run().await;
            assert_eq!(fate(&run), expected, "{kind} with {restart:?}, --allow-vm-down {down}\n{run}");
            if expected == Refused {
                run.changed_nothing();
                assert!(!run.cordoned("node-0"));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn somebody_can_be_asked() {
    // In the last columns: whether it is asked, and what a yes leads to.
    for (restart, down, s, sd, e) in [
        (Unset, false, (true, Restarted), (true, Restarted), (true, Down)),
        (Unset, true, (true, Restarted), (true, Restarted), (false, Down)),
        (Ask, false, (true, Restarted), (true, Restarted), (true, Down)),
        (Ask, true, (true, Restarted), (true, Restarted), (false, Down)),
        (Always, false, (false, Restarted), (true, Restarted), (true, Down)),
        (Always, true, (false, Restarted), (false, Restarted), (false, Down)),
        (Never, false, (false, Stays), (false, Stays), (true, Down)),
        (Never, true, (false, Stays), (false, Stays), (false, Down)),
    ] {
        for (kind, (asked, expected)) in [("S", s), ("SD", sd), ("E", e)] {
            let context = format!("{kind} with {restart:?}, --allow-vm-down {down}");
            let sim = vm(kind);
            let run = flow(&sim, restart, down, Some("y")).run().await;
            assert_eq!(!run.question.is_empty(), asked, "{context}\n{run}");
            assert_eq!(fate(&run), expected, "{context}\n{run}");
            if !asked {
                continue;
            }
            assert!(run.question.ends_with("Do you want to continue? (y/N): "), "{}", run.question);
            assert!(run.question.contains("tenant-a/vm") && run.question.contains("node-0"), "{}", run.question);
            for answer in ["n", "", "yes", "no"] {
                let sim = vm(kind);
                let run = flow(&sim, restart, down, Some(answer)).run().await;
                run.exits(4).changed_nothing();
                assert!(!run.cordoned("node-0"));
            }
            let sim = vm(kind);
            assert_eq!(fate(&flow(&sim, restart, down, Some("Y")).run().await), expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ctrl_c_at_the_question_changes_nothing() {
    let sim = vm("S");
    let run = drain(&sim, "node-0").answers_ctrl_c().run().await;
    run.exits(130).changed_nothing();
    assert!(!run.question.is_empty());
    assert!(!run.cordoned("node-0"));
}

#[tokio::test(start_paused = true)]
async fn one_question_for_all_nodes_and_groups() {
    let sim = cluster("LiveMigrate")
        .vm("tenant-a", Vm::new("db-0").non_migratable(DISK))
        .on("node-1")
        .vm("tenant-a", Vm::new("db-1").non_migratable(DISK))
        .vm("tenant-a", Vm::new("job-1").eviction_strategy("None").run_strategy("Once"))
        .vm("tenant-a", Vm::new("pinned-1").eviction_strategy("LiveMigrate").non_migratable(DISK))
        .eviction_strategy("LiveMigrateIfPossible")
        .done();
    let flow = Flow::new(&sim, safe_drain::settings::DrainOptions::for_nodes(["node-0", "node-1"]));
    let run = flow.answers("y").run().await;
    run.exits(3);
    for name in ["db-0", "db-1", "job-1", "pinned-1", "node-0", "node-1"] {
        assert!(run.question.contains(name), "{name}: {}", run.question);
    }
    run.vm_is("db-0", "restarts", "");
    run.vm_is("db-1", "restarts", "");
    run.vm_is("job-1", "stays-off", "StaysOff");
    run.vm_is("pinned-1", "blocks", "VmNotMigratable");
}

#[tokio::test(start_paused = true)]
async fn a_migration_needs_no_question() {
    let sim = cluster("LiveMigrate").vm("tenant-a", Vm::new("web-1")).done();
    let run = drain(&sim, "node-0").answers("n").run().await;
    run.exits(0);
    assert!(run.question.is_empty());
}
