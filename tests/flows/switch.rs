//! VMs that still carry LiveMigrate after the cluster was switched to LiveMigrateIfPossible.

use std::time::Duration;

use safe_drain::settings::{DryRun, RestartStale};
use safe_drain_sim::scenario::{Settings, start};
use safe_drain_sim::{Json, Sim};

use crate::harness::{drain, secs};

/// Seven VMs; three of them may migrate at the same time, so that the one that hangs does not hold up the others.
fn cluster() -> Sim {
    let mut settings = Settings::default();
    settings.options.migrations_per_node = 3;
    start("strategy-switch", settings).expect("a known name")
}

#[tokio::test(start_paused = true)]
async fn preview_names_each_vm_and_changes_nothing() {
    let sim = cluster();
    let run = drain(&sim, "node-0").preview(DryRun::Client).run().await;
    run.exits(3).changed_nothing();
    for (vm, outcome, cause) in [
        ("db-0", "blocks", "VmNotMigratable"),
        ("gpu-1", "blocks", "VmNotMigratable"),
        ("pinned-1", "blocks", "VmNotMigratable"),
        ("web-1", "migrates", ""),
        ("hang-1", "migrates", ""),
        ("fail-1", "migrates", ""),
        ("ext-1", "waits", "ExternalOwner"),
    ] {
        run.vm_is(vm, outcome, cause);
    }
    assert_eq!(run.vm("db-0").list("/needs"), ["--restart-stale"]);
    assert!(run.vm("pinned-1").list("/needs").is_empty());
    assert!(run.vm("pinned-1").text("/because").contains("template"));
    run.prints("✗ tenant-a/db-0").prints("With --restart-stale: 1 blocked.");
    // Nothing but reads and access reviews.
    let others: Vec<_> = run.requests.iter().filter(|r| r.method != "GET").collect();
    assert!(others.iter().all(|r| r.path.ends_with("/selfsubjectaccessreviews")), "{others:#?}");
}

#[tokio::test(start_paused = true)]
async fn server_preview_asks_once_per_pod_and_only_dry() {
    let sim = cluster();
    let run =
        drain(&sim, "node-0").preview(DryRun::Server).with(|o| o.restart_stale = RestartStale::Always).run().await;
    run.exits(3).changed_nothing();
    let asked: Vec<_> =
        run.requests.iter().filter(|r| r.path.ends_with("/eviction") || r.path.ends_with("/restart")).collect();
    let mut paths: Vec<&str> = asked.iter().map(|r| r.path.as_str()).collect();
    paths.sort_unstable();
    let total = paths.len();
    paths.dedup();
    assert_eq!(paths.len(), total, "each once: {paths:#?}");
    // Five VMs by eviction (pinned-1 blocks, which the server confirms), two by restart, four pods.
    assert_eq!(total, 11, "{paths:#?}");
    for r in asked {
        assert_eq!(
            r.body.as_ref().map_or(0, |b| b.list("/dryRun").len() + b.list("/deleteOptions/dryRun").len()),
            1,
            "{r:?}"
        );
        if r.path.ends_with("/eviction") {
            assert!(r.query.contains("dryRun=All"), "{r:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn drain_restarts_the_stale_and_says_what_stays() {
    let sim = cluster();
    let uid = |name: &str| sim.get("VirtualMachineInstance", "tenant-a", name).expect("it runs").uid().to_owned();
    let before: Vec<(&str, String)> = ["db-0", "gpu-1", "web-1"].map(|n| (n, uid(n))).to_vec();
    let run = drain(&sim, "node-0").timeout(60).with(|o| o.restart_stale = RestartStale::Always).changes().run().await;
    run.exits(3);
    for (vm, old) in &before {
        let now = sim.get("VirtualMachineInstance", "tenant-a", vm).expect("it runs");
        assert_ne!(now.text("/status/nodeName"), "node-0", "{vm}\n{run}");
        assert_eq!(now.text("/status/phase"), "Running");
        assert_eq!(now.uid() == old, *vm == "web-1", "{vm}");
        assert_eq!(run.launcher_evictions(vm).len(), usize::from(*vm == "web-1"));
        assert_eq!(run.restarts(vm).len(), usize::from(*vm != "web-1"));
        if *vm != "web-1" {
            assert_eq!(now.text("/spec/evictionStrategy"), "LiveMigrateIfPossible");
            assert_eq!(run.vm(vm).text("/newVmiUid"), now.uid());
        }
        assert_eq!(run.vm(vm).text("/nodeAfter"), now.text("/status/nodeName"));
    }
    run.vm_is("db-0", "restarts", "");
    run.vm_is("gpu-1", "restarts", "");
    run.vm_is("web-1", "migrates", "");
    let pinned = run.vm_is("pinned-1", "blocks", "VmNotMigratable");
    assert!(pinned.text("/because").contains("template"), "{pinned}");
    assert!(pinned.text("/remedy").contains("kubectl patch vm pinned-1"), "{pinned}");
    assert!(run.launcher_evictions("pinned-1").is_empty());
    run.vm_is("ext-1", "pending", "ExternalOwner");
    run.vm_is("hang-1", "pending", "VmEvacuating");
    assert_eq!(run.launcher_evictions("hang-1").len(), 1, "one POST per mark");
    assert_eq!(run.launcher_evictions("fail-1").len(), 1, "one POST per mark");
    assert!(matches!(run.vm("fail-1").text("/outcome"), "pending" | "blocks"), "{run}");
    assert!(run.vm("fail-1").int("/attempts") >= Some(2), "{run}");
    for line in [
        "node/node-0 cordoned",
        "virtualmachine.kubevirt.io/db-0 restarted",
        "virtualmachine.kubevirt.io/gpu-1 restarted",
        "virtualmachine.kubevirt.io/web-1 migrated",
    ] {
        assert_eq!(run.stdout.lines().filter(|l| *l == line).count(), 1, "{line}\n{run}");
    }
    assert!(!run.stdout.contains("node/node-0 drained"));
    assert!(run.elapsed <= secs(62) && run.elapsed >= secs(60), "{:?}", run.elapsed);
    assert!(run.cordoned("node-0"));
    // The four pods of the shop left one by one, as their budget wants.
    let web: Vec<Duration> = run.evictions("web-").iter().map(|r| r.at).collect();
    assert_eq!(web.len(), 4, "no refusal:\n{run}");
}
