//! Four runs, word for word, as a terminal without colour shows them.

use safe_drain::event::{Activity, EventKind, StopReason};
use safe_drain::settings::RestartStale;
use safe_drain_sim::Vm;
use safe_drain_sim::scenario::{Settings, start};

use crate::harness::drain;
use crate::vms::cluster;

#[tokio::test(start_paused = true)]
async fn a_plain_drain() {
    let sim = start("plain", Settings::default()).unwrap();
    let run = drain(&sim, "node-0").run().await;
    insta::assert_snapshot!(run.transcript(), @r"
    node/node-0 cordoned
    evicting pod shop/cart-cls2dsdbsm-28q8f
    evicting pod shop/cart-cls2dsdbsm-v4wjl
    evicting pod shop/web-5g4fh6h6hn-25hx2
    evicting pod shop/web-5g4fh6h6hn-fmlr4
    evicting pod shop/web-5g4fh6h6hn-pwg69
    evicting pod shop/web-5g4fh6h6hn-x4spt
    pod/cart-cls2dsdbsm-28q8f evicted
    pod/cart-cls2dsdbsm-v4wjl evicted
    pod/web-5g4fh6h6hn-25hx2 evicted
    pod/web-5g4fh6h6hn-fmlr4 evicted
    pod/web-5g4fh6h6hn-pwg69 evicted
    pod/web-5g4fh6h6hn-x4spt evicted
    node/node-0 drained
    --- stderr
    [   0.0s] draining node-0 · in-cluster credentials · Kubernetes v1.36.2 · timeout 30m
    [   0.0s] plan for node-0: 6 pods are evicted, 1 stays (DaemonSet)

    node-0 drained in 1s
      ✓ 6 pods gone; 1 stays (DaemonSet)

    Next:
      kubectl uncordon node-0  when the maintenance is done
    --- exit 0
    ");
}

#[tokio::test(start_paused = true)]
async fn a_strategy_switch() {
    let mut settings = Settings::default();
    settings.options.migrations_per_node = 3;
    let sim = start("strategy-switch", settings).unwrap();
    let run = drain(&sim, "node-0").timeout(60).with(|o| o.restart_stale = RestartStale::Always).changes().run().await;
    // Migrations and VMIs are watched apart: whether the end of one is seen before the other is not settled, and in between
    // the VM reads as queued for a moment.
    let between = |line: &&str| !(line.starts_with("[   5.6s]") && line.ends_with(": queued"));
    let transcript: Vec<&str> = run.transcript().leak().lines().filter(between).collect();
    insta::assert_snapshot!(transcript.join("\n"), @r#"
    node/node-0 cordoned
    evicting pod shop/web-tprwtkb8n9-br2dt
    evicting pod shop/web-tprwtkb8n9-d78w7
    evicting pod shop/web-tprwtkb8n9-gzr2x
    evicting pod shop/web-tprwtkb8n9-lk76d
    pod/web-tprwtkb8n9-br2dt evicted
    pod/web-tprwtkb8n9-d78w7 evicted
    virtualmachine.kubevirt.io/db-0 restarted
    virtualmachine.kubevirt.io/gpu-1 restarted
    pod/web-tprwtkb8n9-gzr2x evicted
    pod/web-tprwtkb8n9-lk76d evicted
    virtualmachine.kubevirt.io/web-1 migrated
    --- stderr
    [   0.0s] draining node-0 · in-cluster credentials · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · timeout 1m
    [   0.0s] plan for node-0: 3 VMs migrate, 2 are restarted, 1 waits, 1 blocks; 4 pods are evicted, 1 stays (DaemonSet)
    Warning: tenant-a/db-0, tenant-a/gpu-1: no guest agent: it is likely powered off hard after 30s
    [   0.0s] pod shop/web-tprwtkb8n9-d78w7 waits: budget shop/web lets no more pods go for now
    [   0.0s] VM tenant-a/ext-1: waiting for the controller that owns it (strategy External: an outside controller must drain and delete this VM)
    [   0.0s] VM tenant-a/fail-1: queued
    [   0.0s] VM tenant-a/hang-1: queued behind 1
    [   0.0s] VM tenant-a/web-1: queued behind 1
    [   0.0s] VM tenant-a/fail-1: preparing its target
    [   0.0s] VM tenant-a/hang-1: preparing its target
    [   0.0s] VM tenant-a/web-1: preparing its target
    [   0.0s] VM tenant-a/db-0: restart accepted
    [   0.0s] VM tenant-a/db-0: shutting down (grace 30s)
    [   0.0s] VM tenant-a/gpu-1: restart accepted
    [   0.0s] VM tenant-a/gpu-1: shutting down (grace 30s)
    [   0.3s] VM tenant-a/fail-1: preparing its target on node-2
    [   0.3s] VM tenant-a/hang-1: preparing its target on node-1
    [   0.3s] VM tenant-a/web-1: preparing its target on node-2
    [   0.3s] VM tenant-a/fail-1: migrating → node-2
    [   0.3s] VM tenant-a/hang-1: migrating → node-1
    [   0.3s] VM tenant-a/web-1: migrating → node-2
    [   1.0s] VM tenant-a/db-0: waiting for a node
    [   1.0s] VM tenant-a/gpu-1: waiting for a node
    [   1.3s] VM tenant-a/db-0: starting on node-2
    [   1.3s] VM tenant-a/gpu-1: starting on node-1
    [   5.6s] VM tenant-a/fail-1: queued (last attempt failed: Live migration is not completed after 150 seconds and has been aborted)
    [   6.6s] VM tenant-a/fail-1: queued, attempt 2
    [  25.6s] VM tenant-a/fail-1: preparing its target, attempt 2
    [  25.9s] VM tenant-a/fail-1: preparing its target on node-2, attempt 2
    [  25.9s] VM tenant-a/fail-1: migrating → node-2, attempt 2
    [  31.2s] VM tenant-a/fail-1: queued, attempt 2 (last attempt failed: Live migration is not completed after 150 seconds and has been aborted)
    [  32.2s] VM tenant-a/fail-1: queued, attempt 3
    Warning: node-0: its timeout of 1m is over; nothing new is evicted or restarted

    node-0 not drained: blocked, after 1m 00s; it stays cordoned
      ✓ 1 VM migrated: tenant-a/web-1 → node-2
      ✓ 2 VMs restarted: tenant-a/db-0 → node-2 (LiveMigrateIfPossible), tenant-a/gpu-1 → node-1 (LiveMigrateIfPossible)
      ✓ 4 pods gone; 1 stays (DaemonSet)
      Still stopping or migrating (goes on by itself):
        ? VM tenant-a/fail-1: its migration is queued, attempt 3 (last attempt failed: Live migration is not completed after 150 seconds and has been aborted)
        ? VM tenant-a/hang-1: it is migrating to node-1 for 59s; it still runs on node-0
      Still on the node (waiting or a second run may clear it):
        ? VM tenant-a/ext-1: its owner has not acted (strategy External: an outside controller must drain and delete this VM)
      Blocked (waiting will not clear it):
        ✗ VM tenant-a/pinned-1: disk root is not shared (not ReadWriteMany); its VM template asks for LiveMigrate → `kubectl patch vm pinned-1 -n tenant-a --type=merge -p '{"spec":{"template":{"spec":{"evictionStrategy":"LiveMigrateIfPossible"}}}}'`, then run the same command again

    Next:
      the same command again            to go on, with a --timeout above 1m, once the above is done; it resumes what has begun
      kubectl safe-drain cancel node-0  to give up: cancels evacuations (an uncordon would not), lifts the cordon
    --- exit 3
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_refusal() {
    let sim = start("mixed", Settings::default()).unwrap();
    let run = drain(&sim, "node-0").run().await;
    insta::assert_snapshot!(run.transcript(), @r"
    --- stderr
    [   0.0s] draining node-0 · in-cluster credentials · Kubernetes v1.36.2 · timeout 30m
    [   0.0s] plan for node-0: 4 pods are evicted, 2 are refused, 2 stay (1 DaemonSet, 1 static)
    error: refused, nothing was changed: 2 pods need a flag first
    hint: shop/cache-rsf8g25hx2-km9pm: the data in emptyDir scratch ends with it → --delete-emptydir-data
    hint: shop/bare: no controller owns it, so nothing brings it back → --force
    --- exit 4
    ");
}

#[tokio::test(start_paused = true)]
async fn an_interruption() {
    let sim = cluster("LiveMigrate").vm("tenant-a", Vm::new("web-1")).deployment("shop", "cart", 1).done();
    let migrating = |e: &EventKind| matches!(e, EventKind::VmProgressed { progress, .. } if progress.activity == Activity::Migrating);
    let run = drain(&sim, "node-0").signal_when(StopReason::Interrupt, migrating).run().await;
    insta::assert_snapshot!(run.transcript(), @"
    node/node-0 cordoned
    evicting pod shop/cart-45c6v26qck-qqvf9
    --- stderr
    [   0.0s] draining node-0 · in-cluster credentials · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrate · timeout 30m
    [   0.0s] plan for node-0: 1 VM migrates; 1 pod is evicted
    [   0.0s] VM tenant-a/web-1: queued
    [   0.0s] VM tenant-a/web-1: preparing its target
    [   0.3s] VM tenant-a/web-1: preparing its target on node-2
    [   0.3s] VM tenant-a/web-1: migrating → node-2
    Warning: interrupted (Ctrl-C): nothing new is evicted or restarted

    node-0 not drained: interrupted after 0s; it stays cordoned
      Still stopping or migrating (goes on by itself):
        ? VM tenant-a/web-1: it is migrating to node-2; it still runs on node-0
        ? pod shop/cart-45c6v26qck-qqvf9: accepted, still stopping (grace 30s)

    Next:
      the same command again            to go on; it resumes what has begun
      kubectl safe-drain cancel node-0  to give up: cancels evacuations (an uncordon would not), lifts the cordon
    --- exit 130
    ");
}
