//! A signal at any moment: its code, nothing sent afterwards, and what is said about what goes on by itself.

use std::time::Duration;

use safe_drain::event::{Activity, EventKind, StopReason};
use safe_drain::settings::RestartStale;
use safe_drain_sim::{Json, Options, PodSpec, Sim, Vm};

use crate::harness::{drain, secs};
use crate::plain::world;
use crate::vms::cluster;

#[tokio::test(start_paused = true)]
async fn before_the_plan_stands() {
    let options = Options { latency: Duration::from_millis(50), ..Options::plain() };
    let sim = Sim::new(options).world().nodes(3).on("node-0").deployment("shop", "web", 2).done();
    for (reason, code) in [(StopReason::Interrupt, 130), (StopReason::Terminate, 143), (StopReason::HangUp, 129)] {
        let run = drain(&sim, "node-0").without_preview().signal(Duration::from_millis(70), reason).run().await;
        run.exits(code).changed_nothing();
        assert!(!run.cordoned("node-0"));
        assert!(run.event(|e| matches!(e, EventKind::Planned { .. })).is_none());
        assert!(run.elapsed < Duration::from_millis(100), "{:?}", run.elapsed);
    }
}

#[tokio::test(start_paused = true)]
async fn while_a_cordon_is_on_its_way() {
    let options = Options { latency: Duration::from_millis(50), ..Options::plain() };
    let sim = Sim::new(options).world().nodes(3).on("node-0").deployment("shop", "web", 2).done();
    let run = drain(&sim, "node-0")
        .without_preview()
        .signal_when(StopReason::Interrupt, |e| matches!(e, EventKind::Planned { .. }))
        .run()
        .await;
    run.exits(130);
    assert!(run.evictions("").is_empty(), "{run}");
}

#[tokio::test(start_paused = true)]
async fn right_after_the_cordon() {
    let sim = world().deployment("shop", "web", 2).done();
    let run = drain(&sim, "node-0")
        .signal_when(StopReason::Interrupt, |e| matches!(e, EventKind::NodeCordoned { .. }))
        .run()
        .await;
    run.exits(130).says("kubectl safe-drain cancel node-0");
    assert!(run.cordoned("node-0"));
    assert_eq!(run.stdout.matches("evicting pod").count(), run.evictions("").len(), "{run}");
    let node = &run.document.list("/nodes")[0];
    assert_eq!(node.text("/verdict"), "interrupted");
}

#[tokio::test(start_paused = true)]
async fn while_pods_stop() {
    let slow = PodSpec::new().grace(60).annotation("lab/stop", "20s");
    let sim = world()
        .deployment_with("shop", "web", 3, slow)
        .pdb("shop", "web", "web", serde_json::json!({"maxUnavailable": 1}))
        .done();
    let run = drain(&sim, "node-0").signal(secs(5), StopReason::Interrupt).run().await;
    run.exits(130).says("the same command again");
    assert!(run.elapsed < secs(6), "{:?}", run.elapsed);
    assert!(run.evictions("web-").iter().all(|r| r.at <= secs(5)), "{run}");
    assert!(run.rows("pods").iter().any(|p| p.text("/outcome") == "pending"), "{run}");
}

#[tokio::test(start_paused = true)]
async fn in_the_middle_of_a_migration() {
    let sim = cluster("LiveMigrate").vm("tenant-a", Vm::new("web-1")).done();
    let migrating = |e: &EventKind| matches!(e, EventKind::VmProgressed { progress, .. } if progress.activity == Activity::Migrating);
    let run = drain(&sim, "node-0").signal_when(StopReason::Interrupt, migrating).run().await;
    run.exits(130).says("tenant-a/web-1").says("stay");
    run.vm_is("web-1", "pending", "VmEvacuating");
    assert_eq!(run.vm("web-1")["marked"], true, "KubeVirt goes on without us: {run}");
    assert!(run.cordoned("node-0"));
}

#[tokio::test(start_paused = true)]
async fn while_a_restart_is_under_way() {
    let sim = cluster("LiveMigrate")
        .vm("tenant-a", Vm::new("db-0").non_migratable(crate::vms::DISK))
        .eviction_strategy("LiveMigrateIfPossible")
        .done();
    let run = drain(&sim, "node-0")
        .with(|o| o.restart_stale = RestartStale::Always)
        .signal_when(StopReason::Interrupt, |e| matches!(e, EventKind::VmRestarting { .. }))
        .run()
        .await;
    run.exits(130);
    run.vm_is("db-0", "pending", "Stopping");
    assert_eq!(run.restarts("db-0").len(), 1);
}
