use super::*;
use crate::facts::Key;
use crate::forecast::words::after_failed_migrations;
use crate::report::summary::{Summary, summary};

const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1800);

fn shown(nodes: &[NodeReport]) -> String {
    text(&summary(&Summary { nodes, timeout: TIMEOUT, unmarks: true, width: Some(100) }))
}

fn moved(name: &str, outcome: VmOutcome, to: &str) -> VmRow {
    VmRow { node_after: Some(to.into()), ..vm(name, outcome, "") }
}

fn pending(name: &str, cause: Cause, because: &str) -> VmRow {
    VmRow { cause: Some(cause), marked: true, waiting_helps: Some(true), ..vm(name, VmOutcome::Pending, because) }
}

fn gone(n: usize) -> Vec<PodRow> {
    (0..n).map(|i| pod("shop", &format!("p-{i}"), PodOutcome::Evicts)).chain([daemon("cni-x1")]).collect()
}

#[test]
fn drained() {
    let vms = vec![
        moved("db-0", VmOutcome::Restarts, "node-1"),
        moved("web-1", VmOutcome::Migrates, "node-2"),
        moved("web-2", VmOutcome::Migrates, "node-1"),
    ];
    insta::assert_snapshot!(shown(&[result(Verdict::Drained, 0, vms, gone(12))]), @r"
    node-0 drained in 3m 04s
      ✓ 2 VMs migrated: tenant-a/web-1 → node-2, tenant-a/web-2 → node-1
      ✓ 1 VM restarted: tenant-a/db-0 → node-1
      ✓ 12 pods gone; 1 stays (DaemonSet)

    Next:
      kubectl uncordon node-0  when the maintenance is done
    ");
}

#[test]
fn blocked_says_what_remains_why_and_what_to_do() {
    let vms = vec![
        stale("db-0", "disk root is ReadWriteOnce"),
        stale("db-1", "disk root is ReadWriteOnce"),
        pinned(),
        moved("web-1", VmOutcome::Migrates, "node-2"),
        VmRow { marked: true, ..external(VmOutcome::Waits) },
    ];
    let mut pods = gone(12);
    pods.extend((0..6).map(|n| PodRow {
        cause: Some(Cause::BudgetNever),
        waiting_helps: Some(false),
        budgets: vec!["shop/cart".into()],
        because: "budget shop/cart never allows it: minAvailable 100%".into(),
        remedy: Some("relax the budget".into()),
        ..pod("shop", &format!("cart-{n}"), PodOutcome::Blocks)
    }));
    insta::assert_snapshot!(shown(&[result(Verdict::Blocked, 3, vms, pods)]), @"

    node-0 not drained: blocked, after 3m 04s; it stays cordoned
      ✓ 1 VM migrated: tenant-a/web-1 → node-2
      ✓ 12 pods gone; 1 stays (DaemonSet)
      Still on the node (waiting or a second run may clear it):
        ? VM tenant-a/ext-1: the controller that owns it must act (nothing here can)
      Blocked (waiting will not clear it):
        ✗ VMs tenant-a/db-0, tenant-a/db-1:
            disk root is ReadWriteOnce; a restart gives it LiveMigrateIfPossible → add --restart-stale
        ✗ VM tenant-a/pinned-1:
            disk root is ReadWriteOnce; its VM template asks for LiveMigrate
            → set the template's evictionStrategy, then restart
        ✗ pods shop/cart-0, shop/cart-1, shop/cart-2 and 3 more:
            budget shop/cart never allows it: minAvailable 100% → relax the budget

    Next:
      the same command with --restart-stale  to go on, once the above is done; it resumes what has begun
      kubectl safe-drain cancel node-0       to give up: cancels evacuations (an uncordon would not),
                                             lifts the cordon
    ");
}

#[test]
fn timeout_has_three_lists() {
    let vms = vec![
        moved("web-1", VmOutcome::Migrates, "node-2"),
        pending("hang-1", Cause::VmEvacuating, "migrating for 14m 02s, attempt 2; it still runs here"),
        pending("web-2", Cause::MigrationQueued, "its migration waits for a slot"),
        VmRow { marked: false, ..pending("win-1", Cause::GraceTooLong, "may take 1h to stop, longer than was left") },
    ];
    let mut pods = gone(3);
    pods.push(PodRow {
        cause: Some(Cause::Stopping),
        because: "stopping, up to 59m left".into(),
        ..pod("shop", "slow-0", PodOutcome::Pending)
    });
    pods.push(web(1, PodOutcome::Pending, "budget shop/web needs 3 and has 3"));
    insta::assert_snapshot!(shown(&[result(Verdict::Timeout, 124, vms, pods)]), @"

    node-0 not drained: timeout after 3m 04s; it stays cordoned
      ✓ 1 VM migrated: tenant-a/web-1 → node-2
      ✓ 3 pods gone; 1 stays (DaemonSet)
      Still stopping or migrating (goes on by itself):
        ? VM tenant-a/hang-1: migrating for 14m 02s, attempt 2; it still runs here
        ? VM tenant-a/web-2: its migration waits for a slot
        ? pod shop/slow-0: stopping, up to 59m left
      Still on the node (waiting or a second run may clear it):
        ? VM tenant-a/win-1: may take 1h to stop, longer than was left
        ? pod shop/web-7d9f-1: budget shop/web needs 3 and has 3

    Next:
      the same command again            to go on, with a --timeout above 30m; it resumes what has begun
      kubectl safe-drain cancel node-0  to give up: cancels evacuations (an uncordon would not), lifts
                                        the cordon
    ");
}

#[test]
fn interrupted_and_not_started() {
    let vms = vec![pending("web-1", Cause::VmEvacuating, "migrating to node-2 for 12s; it still runs here")];
    let first = result(Verdict::Interrupted, 130, vms, vec![daemon("cni-x1")]);
    let second = NodeReport { name: "node-1".into(), ..result(Verdict::NotStarted, 1, Vec::new(), Vec::new()) };
    let nodes = [first, second];
    let s = Summary { nodes: &nodes, timeout: TIMEOUT, unmarks: true, width: None };
    insta::assert_snapshot!(text(&summary(&s)), @"

    node-0 not drained: interrupted after 3m 04s; it stays cordoned
        1 pod stays (DaemonSet)
      Still stopping or migrating (goes on by itself):
        ? VM tenant-a/web-1: migrating to node-2 for 12s; it still runs here

    node-1 not started; it stays cordoned

    Next:
      the same command again                   to go on; it resumes what has begun
      kubectl safe-drain cancel node-0 node-1  to give up: cancels evacuations (an uncordon would not), lifts the cordon
    ");
}

#[test]
fn vms_that_stay_down_have_their_next_step() {
    let off =
        VmRow { run_strategy: Some("Manual".into()), ..vm("legacy-1", VmOutcome::StaysOff, "runStrategy Manual") };
    let alone = VmRow { owner: None, ..vm("alone", VmOutcome::StaysOff, "standalone") };
    let bound = vm("disk-1", VmOutcome::DownUntilNode, "disk root is on this node only");
    let down = VmRow {
        cause: Some(Cause::Unschedulable),
        remedy: Some("free a GPU on another node".into()),
        ..vm("gpu-1", VmOutcome::Down, "no node takes it: 0/3 nodes are available: 3 Insufficient nvidia.com/A10")
    };
    let mut pods = gone(1);
    pods.extend((0..14).map(|n| pod("shop", &format!("other-{n}"), PodOutcome::NotSelected)));
    insta::assert_snapshot!(shown(&[result(Verdict::Drained, 5, vec![alone, bound, down, off], pods)]), @r"
    node-0 drained in 3m 04s, but not every VM runs again; 14 other pods remain; the node is not empty
      1 VM should run again and does not:
        ✗ VM tenant-a/gpu-1:
            no node takes it: 0/3 nodes are available: 3 Insufficient nvidia.com/A10
            → free a GPU on another node
      ! 2 VMs shut down and off: tenant-a/alone, tenant-a/legacy-1
      ! 1 VM down until the node is back: tenant-a/disk-1
      ✓ 1 pod gone; 1 stays (DaemonSet)

    Next:
      virtctl start legacy-1 -n tenant-a  it stays off until then
      kubectl uncordon node-0             when the maintenance is done, then tenant-a/disk-1 can run
                                          again
      tenant-a/alone has no VirtualMachine that could start it: create it again.
    ");
}

#[test]
fn refused_needs_no_next_step() {
    let bare = PodRow {
        cause: Some(Cause::Unmanaged),
        needs: vec!["--force"],
        because: "no controller brings it back".into(),
        ..pod("shop", "a", PodOutcome::Refused)
    };
    insta::assert_snapshot!(shown(&[report(Verdict::Refused, 4, Vec::new(), vec![bare])]), @r"
    node-0 not drained: refused before anything changed; it is not cordoned
      Refused (a flag or consent is missing):
        ✗ pod shop/a: no controller brings it back → add --force
    ");
}

#[test]
fn a_failed_migration_has_a_remedy_and_does_not_go_on_by_itself() {
    let why = "not completed after 150 seconds";
    let failed = VmRow {
        cause: Some(Cause::MigrationFailed),
        remedy: Some(after_failed_migrations(why, &Key::new("tenant-a", "big-1"), true)),
        marked: true,
        waiting_helps: Some(false),
        ..vm("big-1", VmOutcome::Blocks, "3 migrations failed in a row, last: not completed after 150 seconds")
    };
    let node = NodeReport { cordoned_before: true, ..result(Verdict::Blocked, 3, vec![failed], gone(0)) };
    insta::assert_snapshot!(shown(&[node]), @"

    node-0 not drained: blocked, after 3m 04s; it is cordoned, as it was before
        1 pod stays (DaemonSet)
      Blocked (waiting will not clear it):
        ✗ VM tenant-a/big-1:
            3 migrations failed in a row, last: not completed after 150 seconds
            → `virtctl stop big-1 -n tenant-a`, or a MigrationPolicy that gives it more time
              (completionTimeoutPerGiB) or allowPostCopy

    Next:
      the same command again            to go on, once the above is done; it resumes what has begun
      kubectl safe-drain cancel node-0  to give up: cancels evacuations (an uncordon would not), lifts
                                        the cordon if safe-drain set it
    ");
}

#[test]
fn a_timeout_that_lets_nothing_begin_says_how_long_it_must_be() {
    let slow = |name: &str| VmRow {
        remedy: Some("run again with --timeout above 3600s".into()),
        ..VmRow { marked: false, ..pending(name, Cause::GraceTooLong, "its guest may take 3600s to stop") }
    };
    insta::assert_snapshot!(shown(&[result(Verdict::Timeout, 124, vec![slow("a"), slow("b")], gone(0))]), @"

    node-0 not drained: --timeout=30m is too short for 2 VMs to shut down; it stays cordoned
        1 pod stays (DaemonSet)
      Still on the node (waiting or a second run may clear it):
        ? VMs tenant-a/a, tenant-a/b:
            each guest may take 3600s to stop → run again with --timeout above 3600s

    Next:
      the same command again            to go on, with a --timeout above 30m; it resumes what has begun
      kubectl safe-drain cancel node-0  to give up: lifts the cordon
    ");
}

#[test]
fn lost_contact_says_that_the_state_is_old() {
    let vms = vec![pending("web-1", Cause::VmEvacuating, "it is migrating")];
    let mut pods = gone(0);
    let waits =
        |n: usize| PodRow { cause: Some(Cause::Interrupted), ..web(n, PodOutcome::Pending, "its turn did not come") };
    pods.extend([waits(1), waits(2)]);
    let back = PodRow { cause: Some(Cause::Returned), ..pod("kube-system", "dns-1", PodOutcome::Returned) };
    pods.push(back);
    insta::assert_snapshot!(shown(&[result(Verdict::Failed, 6, vms, pods)]), @"

    node-0 not drained: lost contact with the API server after 3m 04s, this is the last known state; it stays cordoned
        1 pod stays (DaemonSet)
      Still stopping or migrating (goes on by itself):
        ? VM tenant-a/web-1: it is migrating
      Still on the node (waiting or a second run may clear it):
        ? pods shop/web-7d9f-1, shop/web-7d9f-2: budget shop/web did not let them go in time
      Came back to the node:
        ! pod kube-system/dns-1:
            → scale its owner down for the time, or take the toleration away from its template

    Next:
      the same command again            to go on; it resumes what has begun
      kubectl safe-drain cancel node-0  to give up: cancels evacuations (an uncordon would not), lifts
                                        the cordon
    ");
}

#[test]
fn a_promise_that_was_not_kept_is_not_repeated() {
    let row = |cause| VmRow {
        cause,
        stale: Some(true),
        strategy_fresh: Some(Strategy::LiveMigrateIfPossible),
        ..moved("db-0", VmOutcome::Restarts, "node-1")
    };
    let shown = |cause| shown(&[result(Verdict::Drained, 0, vec![row(cause)], vec![])]);
    assert!(shown(None).contains("node-1 (LiveMigrateIfPossible)"));
    assert!(!shown(Some(Cause::StrategyMismatch)).contains("LiveMigrateIfPossible"));
}

#[test]
fn what_brings_a_vm_back_is_what_its_run_strategy_takes() {
    let once = VmRow {
        run_strategy: Some("Once".into()),
        remedy: Some("kubectl delete vmi legacy-1 -n tenant-a".into()),
        ..vm("legacy-1", VmOutcome::StaysOff, "")
    };
    let text = shown(&[result(Verdict::Drained, 0, vec![once], vec![])]);
    assert!(text.contains("kubectl delete vmi legacy-1 -n tenant-a  it stays off"), "{text}");
    assert!(!text.contains("virtctl start"), "Once takes no start request: {text}");
}
