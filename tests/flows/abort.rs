//! `--on-abort=cancel`: a drain whose time is up, or that gets a signal, takes back what it has begun, within ten seconds.

use std::time::Duration;

use safe_drain::event::{EventKind, StopReason};
use safe_drain::settings::{DrainOptions, OnAbort};
use safe_drain_sim::{Fault, Json, Options, PodSpec, Profile, Rule, Sim, Then, Vm};
use serde_json::json;

use crate::cancel::{cluster, cordoned, marks, nothing_is_left, unfinished};
use crate::harness::{Flow, Outcome, drain, secs};

fn aborting(sim: &Sim) -> Flow {
    drain(sim, "node-0").with(|o| o.on_abort = OnAbort::Cancel)
}

fn moving(e: &EventKind) -> bool {
    matches!(e, EventKind::VmProgressed { .. })
}

fn undone(run: &Outcome) -> &serde_json::Value {
    &run.document.list("/nodes")[0]["undo"]
}

/// Nothing of the drain is left, and the document and the summary say so.
fn is_undone(sim: &Sim, run: &Outcome) {
    nothing_is_left(sim, run);
    assert!(!cordoned(sim, "node-0"), "{run}");
    assert_eq!(undone(run).text("/verdict"), "undone", "{run}");
    for vm in ["hang-1", "hang-2", "hang-3"] {
        let row = run.vm(vm);
        assert_eq!((row.text("/outcome"), row.flag("/marked")), ("pending", false), "{run}");
        assert_eq!(row.text("/because"), "evacuation cancelled; runs on here");
    }
    run.prints("node/node-0 uncordoned\n").prints("virtualmachineinstance.kubevirt.io/hang-1 evacuation cancelled\n");
    run.says("taken back: 3 evacuations cancelled, cordon lifted").says("it is not cordoned");
    assert!(!run.stderr.contains("safe-drain cancel"), "there is nothing left to cancel: {run}");
    assert!(!run.stderr.contains("goes on by itself"), "{run}");
}

#[tokio::test(start_paused = true)]
async fn when_time_is_up() {
    for profile in [Profile::V1_7, Profile::V1_9] {
        let sim = cluster(profile);
        let run = aborting(&sim).timeout(20).run().await;
        println!("{profile:?}\n{}", run.transcript());
        run.exits(124);
        is_undone(&sim, &run);
        assert!(run.elapsed < secs(31), "{:?}", run.elapsed);
        assert!(run.evictions("").iter().all(|r| r.at <= secs(20)), "{run}");

        // It stays so.
        tokio::time::sleep(secs(600)).await;
        nothing_is_left(&sim, &run);
    }
}

#[tokio::test(start_paused = true)]
async fn after_each_signal() {
    for (reason, code) in [(StopReason::Interrupt, 130), (StopReason::Terminate, 143), (StopReason::HangUp, 129)] {
        let sim = cluster(Profile::V1_9);
        let run = aborting(&sim).signal(secs(8), reason).run().await;
        run.exits(code).says("taking back what the drain has begun");
        is_undone(&sim, &run);
        assert_eq!(run.document.list("/nodes")[0].text("/verdict"), "interrupted");
    }
}

#[tokio::test(start_paused = true)]
async fn an_eviction_that_is_under_way_may_still_mark_its_vm() {
    let options = Options {
        kubevirt: Some(Profile::V1_9),
        eviction_strategy: Some("LiveMigrate".to_owned()),
        latency: Duration::from_millis(200),
        ..Options::default()
    };
    let mut cut_short = 0;
    for tenths in 5..25 {
        let world = Sim::new(options.clone()).world().nodes(3).on("node-0");
        let vms = ["hang-1", "hang-2", "hang-3"].into_iter();
        let sim = vms.fold(world, |w, vm| w.vm("tenant-a", Vm::new(vm).migration("hang"))).done();
        let at = Duration::from_millis(tenths * 100);
        let run = aborting(&sim).without_preview().signal(at, StopReason::Interrupt).run().await;
        println!("{at:?}\n{}", run.transcript());
        run.exits(130);
        nothing_is_left(&sim, &run);
        assert!(!cordoned(&sim, "node-0"), "{run}");
        cut_short += usize::from(!run.launcher_evictions("hang-1").is_empty() && run.asked("PUT", "").is_empty());
    }
    assert!(cut_short < 3, "evictions were sent before most of these signals");
}

#[tokio::test(start_paused = true)]
async fn while_the_cordon_is_on_its_way() {
    let options = Options { latency: Duration::from_millis(50), ..Options::plain() };
    let planned = |e: &EventKind| matches!(e, EventKind::Planned { .. });
    // Before it is sent, and while its answer is out.
    for sent in [false, true] {
        let sim = Sim::new(options.clone()).world().nodes(3).on("node-0").deployment("shop", "web", 2).done();
        let flow = aborting(&sim).without_preview();
        let flow = if sent {
            let before = drain(&sim, "node-0").preview(safe_drain::settings::DryRun::Client).run().await.elapsed;
            flow.signal(before + Duration::from_millis(20), StopReason::Interrupt)
        } else {
            flow.signal_when(StopReason::Interrupt, planned)
        };
        let run = flow.run().await;
        println!("{}", run.transcript());
        run.exits(130);
        assert!(!run.cordoned("node-0") && run.evictions("").is_empty(), "{run}");
        assert_eq!(run.asked("PATCH", "node-0").len(), if sent { 2 } else { 0 }, "{run}");
        assert!(!run.document.flag("/changed"), "{run}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_node_of_the_run_and_none_that_was_drained() {
    let options = Options { eviction_strategy: Some("LiveMigrate".to_owned()), ..Options::default() };
    let world = Sim::new(options).world().nodes(4).on("node-0").deployment("shop", "cart", 2);
    let sim = world.on("node-1").vm("tenant-a", Vm::new("hang-1").migration("hang")).done();
    let nodes = DrainOptions::for_nodes(["node-0", "node-1", "node-2"]);
    let run = Flow::new(&sim, DrainOptions { on_abort: OnAbort::Cancel, ..nodes })
        .signal(secs(20), StopReason::Interrupt)
        .run()
        .await;
    println!("{}", run.transcript());
    run.exits(130);
    let verdicts: Vec<&str> = run.document.list("/nodes").iter().map(|n| n.text("/verdict")).collect();
    assert_eq!(verdicts, ["drained", "interrupted", "not-started"]);
    assert_eq!(["node-0", "node-1", "node-2"].map(|n| cordoned(&sim, n)), [true, false, false], "{run}");
    assert_eq!((marks(&sim).len(), unfinished(&sim).len()), (0, 0), "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_foreign_cordon_stays() {
    let sim = cluster(Profile::V1_9);
    sim.update("Node", "", "node-0", |n| n.put("/spec/unschedulable", json!(true)));
    let run = aborting(&sim).timeout(20).run().await;
    run.exits(124).says("the cordon stays");
    nothing_is_left(&sim, &run);
    assert!(cordoned(&sim, "node-0"));
}

#[tokio::test(start_paused = true)]
async fn an_old_release_is_said_before_and_after() {
    let sim = cluster(Profile::V1_6);
    let run = aborting(&sim).timeout(20).run().await;
    println!("{}", run.transcript());
    run.exits(124).says("KubeVirt v1.6.3 cannot take an evacuation mark off (1.7 can): VMs that are marked");
    run.says("the cordon stays: VMs are still being evacuated").says("cannot take a mark off");
    assert_eq!((marks(&sim).len(), cordoned(&sim, "node-0")), (3, true));
    assert_eq!(undone(&run).text("/verdict"), "blocked");
    assert!(run.asked("DELETE", "").is_empty() && run.asked("PUT", "").is_empty(), "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_second_signal_ends_it() {
    let sim = cluster(Profile::V1_9);
    sim.fault(Fault::on("PUT", "evacuate/cancel", Then::Hang));
    let run = aborting(&sim).signal(secs(8), StopReason::Interrupt).signal(secs(10), StopReason::Interrupt).run().await;
    println!("{}", run.transcript());
    run.exits(130);
    assert!(run.elapsed < Duration::from_millis(10_500), "{:?}", run.elapsed);
    assert_eq!(undone(&run).text("/verdict"), "interrupted");
    run.says("kubectl safe-drain cancel node-0");
}

#[tokio::test(start_paused = true)]
async fn ten_seconds_are_all_it_has() {
    let sim = cluster(Profile::V1_9);
    sim.fault(Fault::on("PUT", "evacuate/cancel", Then::plain(503, 0, "service unavailable")));
    let run = aborting(&sim).timeout(20).run().await;
    println!("{}", run.transcript());
    run.exits(124);
    assert!(run.elapsed >= secs(29) && run.elapsed < secs(32), "{:?}", run.elapsed);
    assert_eq!(undone(&run).text("/verdict"), "timeout");
    assert!(cordoned(&sim, "node-0"));
    // About one try a second for each of the three.
    assert!((20..=36).contains(&run.asked("PUT", "evacuate/cancel").len()), "{run}");
}

#[tokio::test(start_paused = true)]
async fn what_ends_by_itself_is_no_abort() {
    let sim = Sim::new(Options::plain()).world().nodes(3).on("node-0").deployment("shop", "web", 2).done();
    let run = aborting(&sim).run().await;
    run.exits(0);
    assert!(run.cordoned("node-0"));

    let world = Sim::new(Options::plain()).world().nodes(3).on("node-0");
    let sim = world.deployment("shop", "web", 2).pdb("shop", "web", "web", json!({"maxUnavailable": 0})).done();
    let run = aborting(&sim).run().await;
    run.exits(3);
    assert!(run.cordoned("node-0"), "blocked, and nothing was cut short: {run}");
}

#[tokio::test(start_paused = true)]
async fn pods_that_were_evicted_go_on_stopping() {
    let slow = PodSpec::new().grace(60).annotation("lab/stop", "50s");
    let world = Sim::new(Options::plain()).world().nodes(3).on("node-0");
    let sim = world.deployment_with("shop", "web", 2, slow).done();
    let run = aborting(&sim).timeout(20).run().await;
    run.exits(124).says("taken back: cordon lifted").says("goes on by itself");
    assert!(!run.cordoned("node-0"));
    assert!(run.elapsed < secs(22), "nothing had to be waited for: {:?}", run.elapsed);
}

#[tokio::test(start_paused = true)]
async fn the_rights_for_it_are_asked_for_first() {
    let sim = cluster(Profile::V1_9);
    sim.deny(Rule::new("update", "subresources.kubevirt.io", "virtualmachineinstances/evacuate"));
    let run = aborting(&sim).run().await;
    run.exits(6).changed_nothing().says("virtualmachineinstances/evacuate");
    drain(&sim, "node-0").timeout(5).run().await.exits(124);
}

#[tokio::test(start_paused = true)]
async fn a_migration_that_works_is_stopped_as_well() {
    let options = Options {
        kubevirt: Some(Profile::V1_9),
        eviction_strategy: Some("LiveMigrate".to_owned()),
        migrate: secs(30),
        ..Options::default()
    };
    let sim = Sim::new(options).world().nodes(3).on("node-0").vm("tenant-a", Vm::new("web-1")).done();
    let first = aborting(&sim).signal_when(StopReason::Interrupt, moving).run().await;
    first.exits(130);
    let vmi = sim.get("VirtualMachineInstance", "tenant-a", "web-1").unwrap();
    assert_eq!(vmi.text("/status/nodeName"), "node-0", "{first}");
    drain(&sim, "node-0").run().await.exits(0);
}

#[tokio::test(start_paused = true)]
async fn a_signal_while_it_is_undone_is_how_it_ends() {
    // A loop over nodes in a shell must stop at Ctrl-C, also when the first node's time is up already.
    for signals in [1, 2] {
        let sim = cluster(Profile::V1_9);
        sim.fault(Fault::on("PUT", "evacuate/cancel", Then::Hang));
        let mut flow = aborting(&sim).timeout(20);
        for n in 0..signals {
            flow = flow.signal(secs(22 + 2 * n), StopReason::Interrupt);
        }
        let run = flow.run().await;
        run.exits(130);
        assert_eq!(run.document.list("/nodes")[0].text("/verdict"), "interrupted", "{run}");
        assert!(run.elapsed < if signals == 2 { secs(25) } else { secs(31) }, "{:?}", run.elapsed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_blocker_stays_one() {
    // Three failed migrations block; the deadline comes for the others.
    let options = Options {
        kubevirt: Some(Profile::V1_9),
        eviction_strategy: Some("LiveMigrate".to_owned()),
        ..Options::default()
    };
    let world = Sim::new(options).world().nodes(3).on("node-0");
    let world = world.vm("tenant-a", Vm::new("fail-1").migration("fail"));
    let sim = world.vm("tenant-a", Vm::new("hang-1").migration("hang")).done();
    let run = aborting(&sim).timeout(300).changes().run().await;
    println!("{}", run.transcript());
    run.exits(3);
    let row = run.vm_is("fail-1", "blocks", "MigrationFailed");
    assert!(row.text("/because").starts_with("3 migrations failed in a row"), "{row}");
    assert!(row.text("/because").ends_with("; evacuation cancelled, it runs on here") && row.has("/remedy"), "{row}");
    assert_eq!((marks(&sim).len(), unfinished(&sim).len()), (0, 0), "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_late_is_no_mark_that_came_back() {
    let sim = cluster(Profile::V1_9);
    let undoing = |e: &EventKind| matches!(e, EventKind::UndoStarted { .. });
    // Watches end without a word, and lists are slow for a while.
    let run = aborting(&sim)
        .timeout(20)
        .when(undoing, |sim| {
            let now = sim.elapsed();
            sim.cut_watches();
            let slow = Then::Slow(secs(3));
            sim.fault(Fault::on("GET", "virtualmachineinstances", slow).between(now, now + secs(4)));
        })
        .run()
        .await;
    println!("{}", run.transcript());
    run.exits(124);
    assert_eq!(undone(&run).text("/verdict"), "undone", "{run}");
    assert!(!cordoned(&sim, "node-0"), "{run}");
}

#[tokio::test(start_paused = true)]
async fn contact_that_is_lost_meanwhile_is_told_as_that() {
    let sim = cluster(Profile::V1_9);
    let run = aborting(&sim)
        .timeout(20)
        .without_preview()
        .when(|e| matches!(e, EventKind::UndoStarted { .. }), |sim| sim.fault(Fault::at(sim.elapsed(), Then::Gone)))
        .run()
        .await;
    println!("{}", run.transcript());
    run.exits(6).says("this is the last known state");
    assert!(run.elapsed < secs(32), "{:?}", run.elapsed);
}
