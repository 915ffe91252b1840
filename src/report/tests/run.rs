use std::time::Duration;

use super::*;
use crate::event::{Activity, PodExit, StopReason, VmProgress};
use crate::facts::Key;
use crate::report::human::{Human, HumanOptions, Stdout};
use crate::report::plain::Plain;
use crate::report::progress::Detail;
use crate::report::{Fanout, Reporter, Streams};

fn progress(activity: Activity, since_ms: u64, attempt: u32) -> VmProgress {
    VmProgress { activity, since_ms, attempt, target: None, queue: None, detail: None, next_try_ms: None }
}

fn node() -> String {
    "node-0".into()
}

fn web_1() -> Key {
    Key::new("tenant-a", "web-1")
}

pub(super) fn connected() -> EventKind {
    EventKind::Connected { server: server(), nodes: vec![node()], timeout_seconds: 1800, started_at: started_at() }
}

/// A drain with a migration that fails once, a restart, a VM that blocks, and pods behind a budget.
pub(super) fn drain() -> Vec<DrainEvent> {
    let planned = report(Verdict::Blocked, 3, lab_vms(), lab_pods());
    let waits = |n: usize| EventKind::PodWaiting {
        node: node(),
        pod: pod_key(&format!("web-7d9f-{n}")),
        cause: Cause::BudgetExhausted,
        because: "budget shop/web needs 3 and has 3".into(),
    };
    let evicting =
        |n: usize| EventKind::PodEvicting { node: node(), pod: pod_key(&format!("web-7d9f-{n}")), launcher: false };
    let moves = |progress| EventKind::VmProgressed { node: node(), vm: web_1(), progress };
    let queued = |n| VmProgress { queue: Some(n), ..progress(Activity::Queued, 600, 0) };
    let web_gone = VmRow { node_after: Some("node-2".into()), attempts: 2, ..vm("web-1", VmOutcome::Migrates, "") };
    let db_gone = VmRow { node_after: Some("node-1".into()), attempts: 1, ..vm("db-0", VmOutcome::Restarts, "") };
    let vms = vec![db_gone.clone(), pinned(), web_gone.clone()];
    let pods = vec![
        daemon("cni-x1"),
        web(0, PodOutcome::Evicts, ""),
        web(1, PodOutcome::Evicts, ""),
        web(2, PodOutcome::Evicts, ""),
    ];
    script(vec![
        (400, connected()),
        (410, EventKind::Noted { warning: true, text: "PersistentVolumes cannot be listed".into() }),
        (420, EventKind::Planned { nodes: vec![planned] }),
        (500, EventKind::NodeCordoned { node: node(), already: false }),
        (500, EventKind::NodeStarted { node: node() }),
        (
            510,
            EventKind::PodEvicting {
                node: node(),
                pod: PodKey::new("tenant-a", "virt-launcher-web-1", "l1"),
                launcher: true,
            },
        ),
        (520, evicting(0)),
        (530, EventKind::VmRestarting { node: node(), vm: Key::new("tenant-a", "db-0") }),
        (600, moves(queued(2))),
        (700, waits(1)),
        (701, waits(2)),
        (
            800,
            EventKind::PodStopping { node: node(), pod: pod_key("web-7d9f-0"), launcher: false, grace_seconds: 3600 },
        ),
        (900, moves(queued(1))),
        (900, EventKind::VmEnded { node: node(), row: Box::new(pinned()) }),
        (12_300, moves(VmProgress { target: Some("node-2".into()), ..progress(Activity::Migrating, 12_300, 1) })),
        (
            31_000,
            moves(VmProgress { detail: Some("attempt 1: timed out".into()), ..progress(Activity::Queued, 31_000, 1) }),
        ),
        (40_000, moves(VmProgress { target: Some("node-2".into()), ..progress(Activity::Migrating, 40_000, 2) })),
        (
            41_000,
            EventKind::PodGone { node: node(), pod: pod_key("web-7d9f-0"), launcher: false, how: PodExit::Evicted },
        ),
        (41_100, evicting(1)),
        (41_200, evicting(1)),
        (
            42_000,
            EventKind::PodGone { node: node(), pod: pod_key("web-7d9f-1"), launcher: false, how: PodExit::Evicted },
        ),
        (
            43_000,
            EventKind::PodGone { node: node(), pod: pod_key("web-7d9f-2"), launcher: false, how: PodExit::AlreadyGone },
        ),
        (150_000, EventKind::ContactLost),
        (152_000, EventKind::ContactRestored { lost_ms: 2000 }),
        (160_000, EventKind::VmEnded { node: node(), row: Box::new(web_gone) }),
        (170_000, EventKind::VmEnded { node: node(), row: Box::new(db_gone) }),
        (170_100, EventKind::InfrastructureStarted { node: node(), pods: 1 }),
        (184_200, EventKind::NodeEnded { report: result(Verdict::Blocked, 3, vms, pods) }),
        (184_300, EventKind::Ended { exit_code: 3, error: None, hints: vec![] }),
    ])
}

pub(super) fn play(options: HumanOptions, events: &[DrainEvent]) -> String {
    let (stdout, stderr) = (Sink::default(), Sink::default());
    let streams = Streams {
        stdout: Box::new(stdout.clone()),
        stderr: Box::new(stderr.clone()),
        stdout_color: false,
        stderr_color: false,
        stderr_is_terminal: false,
        lost: None,
    };
    let mut reporter = Fanout::new();
    reporter.add(Box::new(Plain::new(Human::new(options), streams)));
    let mut last = 0;
    for event in events {
        // A tick each second between two events.
        for s in (last / 1000 + 1)..=(event.elapsed_ms / 1000) {
            reporter.tick(Duration::from_secs(s));
        }
        last = event.elapsed_ms;
        reporter.event(event);
    }
    reporter.finish();
    format!("{}------- stderr -------\n{}", stdout.text(), stderr.text())
}

#[test]
fn a_drain_in_a_log() {
    insta::assert_snapshot!(play(HumanOptions::default(), &drain()), @"
    node/node-0 cordoned
    evicting pod shop/web-7d9f-0
    pod/web-7d9f-0 evicted
    evicting pod shop/web-7d9f-1
    pod/web-7d9f-1 evicted
    virtualmachine.kubevirt.io/web-1 migrated
    virtualmachine.kubevirt.io/db-0 restarted
    ------- stderr -------
    [   0.4s] draining node-0 · context prod · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · timeout 30m
    Warning: PersistentVolumes cannot be listed
    [   0.4s] plan for node-0: 3 VMs migrate, 1 waits, 3 block; 1 pod is evicted, 5 wait, 3 stay (2 DaemonSet, 1 static)
    [   0.5s] VM tenant-a/db-0: restart accepted
    [   0.6s] VM tenant-a/web-1: queued behind 2
    [   0.7s] pod shop/web-7d9f-1 waits: budget shop/web needs 3 and has 3
    [   0.8s] pod shop/web-7d9f-0 is stopping and may take 1h
    [   0.9s] VM tenant-a/pinned-1 blocks: disk root is ReadWriteOnce; its VM template asks for LiveMigrate
    [  12.3s] VM tenant-a/web-1: migrating → node-2
    [  31.0s] VM tenant-a/web-1: queued (attempt 1: timed out)
    [  40.0s] VM tenant-a/web-1: migrating → node-2, attempt 2
    [  43.0s] pod shop/web-7d9f-2 is gone, without an eviction of ours
    [ 103.0s] 1 VM migrating, 4 blocked, 28m left
    Warning: no contact with the API server; trying again
    [ 152.0s] contact with the API server again after 2s
    [ 170.1s] node-0: 1 infrastructure pod is next

    node-0 not drained: blocked, after 3m 04s; it stays cordoned
      ✓ 1 VM migrated: tenant-a/web-1 → node-2
      ✓ 1 VM restarted: tenant-a/db-0 → node-1
      ✓ 3 pods gone; 1 stays (DaemonSet)
      Blocked (waiting will not clear it):
        ✗ VM tenant-a/pinned-1: disk root is ReadWriteOnce; its VM template asks for LiveMigrate → set the template's evictionStrategy, then restart

    Next:
      the same command again            to go on, once the above is done; it resumes what has begun
      kubectl safe-drain cancel node-0  to give up: lifts the cordon
    ");
}

#[test]
fn quiet_has_warnings_and_the_bad_end_only() {
    let options = HumanOptions { detail: Detail::Quiet, ..HumanOptions::default() };
    insta::assert_snapshot!(play(options.clone(), &drain()[..8]), @r"
    node/node-0 cordoned
    evicting pod shop/web-7d9f-0
    ------- stderr -------
    Warning: PersistentVolumes cannot be listed
    ");
    let page = play(options, &drain());
    assert!(page.contains("Blocked (waiting will not clear it):"), "{page}");
}

#[test]
fn with_a_document_on_stdout_stderr_says_what_its_lines_would() {
    let options = HumanOptions { stdout: Stdout::Taken, ..HumanOptions::default() };
    let page = play(options, &drain());
    let (stdout, stderr) = page.split_once("------- stderr -------\n").unwrap();
    assert_eq!(stdout, "");
    assert!(stderr.contains("[   0.5s] node/node-0 cordoned\n"), "{stderr}");
    assert!(stderr.contains("[ 160.0s] VM tenant-a/web-1: migrated to node-2\n"), "{stderr}");
}

#[test]
fn a_dry_run_has_its_table_on_stdout_and_nothing_twice() {
    let options = HumanOptions { stdout: Stdout::Preview, dry_run: true, ..HumanOptions::default() };
    let events: Vec<DrainEvent> = script(vec![
        (400, connected()),
        (410, EventKind::Noted { warning: true, text: "PersistentVolumes cannot be listed".into() }),
        (
            420,
            EventKind::Planned {
                nodes: vec![report(Verdict::Clear, 0, Vec::new(), vec![web(0, PodOutcome::Evicts, "")])],
            },
        ),
        (430, EventKind::Ended { exit_code: 0, error: None, hints: vec![] }),
    ]);
    insta::assert_snapshot!(play(options.clone(), &events), @r"
    Preview of draining node-0 (nothing was changed)
    context prod · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · no VMs, 1 pod

      1 pod is evicted

    Warning: PersistentVolumes cannot be listed

    Nothing stands in the way.
    Exit code of the drain: 0
    ------- stderr -------
    ");
    let failed = script(vec![
        (10, EventKind::Noted { warning: true, text: "PersistentVolumes cannot be listed".into() }),
        (430, EventKind::Ended { exit_code: 6, error: Some("pods cannot be listed: forbidden".into()), hints: vec![] }),
    ]);
    insta::assert_snapshot!(play(options, &failed), @r"
    ------- stderr -------
    Warning: PersistentVolumes cannot be listed
    error: pods cannot be listed: forbidden
    ");
}

#[test]
fn kubectls_lines_word_by_word() {
    let gone = |name: &str, how| EventKind::PodGone { node: node(), pod: pod_key(name), launcher: false, how };
    let ended = |row| EventKind::VmEnded { node: node(), row: Box::new(row) };
    let alone = VmRow { owner: None, ..vm("alone", VmOutcome::StaysOff, "") };
    let events = script(vec![
        (1, EventKind::NodeCordoned { node: node(), already: true }),
        (2, EventKind::PodEvicting { node: node(), pod: pod_key("x"), launcher: false }),
        (3, gone("x", PodExit::Evicted)),
        (4, gone("y", PodExit::Deleted)),
        (5, ended(vm("db-0", VmOutcome::Restarts, ""))),
        (6, ended(vm("web-1", VmOutcome::Migrates, ""))),
        (7, ended(alone)),
        (8, EventKind::NodeEnded { report: result(Verdict::Drained, 0, Vec::new(), Vec::new()) }),
        (9, EventKind::NodeUncordoned { node: node() }),
    ]);
    insta::assert_snapshot!(play(HumanOptions::default(), &events), @r"
    node/node-0 already cordoned
    evicting pod shop/x
    pod/x evicted
    pod/y deleted
    virtualmachine.kubevirt.io/db-0 restarted
    virtualmachine.kubevirt.io/web-1 migrated
    virtualmachineinstance.kubevirt.io/alone stopped
    node/node-0 drained
    node/node-0 uncordoned
    ------- stderr -------
    ");
}

#[test]
fn an_interrupt_is_said_at_once() {
    let mut events = drain();
    events.truncate(9);
    events.push(DrainEvent { seq: 10, elapsed_ms: 900, kind: EventKind::Stopped { reason: StopReason::Interrupt } });
    let row = VmRow {
        cause: Some(Cause::VmEvacuating),
        marked: true,
        ..vm("web-1", VmOutcome::Pending, "queued; it still runs here")
    };
    let ended = result(Verdict::Interrupted, 130, vec![row], vec![daemon("cni-x1")]);
    events.push(DrainEvent { seq: 11, elapsed_ms: 950, kind: EventKind::NodeEnded { report: ended } });
    events.push(DrainEvent {
        seq: 12,
        elapsed_ms: 960,
        kind: EventKind::Ended { exit_code: 130, error: None, hints: vec![] },
    });
    insta::assert_snapshot!(play(HumanOptions::default(), &events), @"
    node/node-0 cordoned
    evicting pod shop/web-7d9f-0
    ------- stderr -------
    [   0.4s] draining node-0 · context prod · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · timeout 30m
    Warning: PersistentVolumes cannot be listed
    [   0.4s] plan for node-0: 3 VMs migrate, 1 waits, 3 block; 1 pod is evicted, 5 wait, 3 stay (2 DaemonSet, 1 static)
    [   0.5s] VM tenant-a/db-0: restart accepted
    [   0.6s] VM tenant-a/web-1: queued behind 2
    Warning: interrupted (Ctrl-C): nothing new is evicted or restarted

    node-0 not drained: interrupted after 3m 04s; it stays cordoned
        1 pod stays (DaemonSet)
      Still stopping or migrating (goes on by itself):
        ? VM tenant-a/web-1: queued; it still runs here

    Next:
      the same command again            to go on; it resumes what has begun
      kubectl safe-drain cancel node-0  to give up: cancels evacuations (an uncordon would not), lifts the cordon
    ");
}

#[test]
fn a_refusal_says_which_flag_is_missing() {
    let bare = PodRow {
        cause: Some(Cause::Unmanaged),
        needs: vec!["--force"],
        because: "no controller brings it back".into(),
        ..pod("shop", "debug", PodOutcome::Refused)
    };
    let off = VmRow {
        needs: vec!["--allow-vm-down"],
        ..vm("legacy-1", VmOutcome::StaysOff, "runStrategy Manual: nothing starts it again")
    };
    let events = script(vec![
        (400, connected()),
        (420, EventKind::Planned { nodes: vec![report(Verdict::Refused, 4, vec![off], vec![bare])] }),
        (
            430,
            EventKind::Ended {
                exit_code: 4,
                error: Some("consent or a flag is missing; nothing was changed".into()),
                hints: vec![],
            },
        ),
    ]);
    insta::assert_snapshot!(play(HumanOptions::default(), &events), @r"
    ------- stderr -------
    [   0.4s] draining node-0 · context prod · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · timeout 30m
    [   0.4s] plan for node-0: 1 VM stays off; 1 pod is refused

    node-0 not drained: refused before anything changed; it is not cordoned
      Refused (a flag or consent is missing):
        ! VM tenant-a/legacy-1: runStrategy Manual: nothing starts it again → add --allow-vm-down
        ✗ pod shop/debug: no controller brings it back → add --force
    error: consent or a flag is missing; nothing was changed
    ");
}

#[test]
fn several_nodes_say_whose_turn_it_is() {
    let other = || "node-1".to_owned();
    let done = result(Verdict::Drained, 0, Vec::new(), vec![web(0, PodOutcome::Evicts, "")]);
    let blocked = NodeReport { name: other(), ..result(Verdict::Blocked, 3, vec![pinned()], Vec::new()) };
    let events = script(vec![
        (
            400,
            EventKind::Connected {
                server: server(),
                nodes: vec![node(), other()],
                timeout_seconds: 1800,
                started_at: started_at(),
            },
        ),
        (500, EventKind::NodeCordoned { node: node(), already: false }),
        (510, EventKind::NodeCordoned { node: other(), already: false }),
        (520, EventKind::NodeStarted { node: node() }),
        (530, EventKind::PodEvicting { node: node(), pod: pod_key("web-7d9f-0"), launcher: false }),
        (
            70_000,
            EventKind::PodGone { node: node(), pod: pod_key("web-7d9f-0"), launcher: false, how: PodExit::Evicted },
        ),
        (70_100, EventKind::NodeEnded { report: done }),
        (70_200, EventKind::NodeStarted { node: other() }),
        (71_000, EventKind::NodeEnded { report: blocked }),
        (71_100, EventKind::Ended { exit_code: 3, error: None, hints: vec![] }),
    ]);
    insta::assert_snapshot!(play(HumanOptions::default(), &events), @"
    node/node-0 cordoned
    node/node-1 cordoned
    evicting pod shop/web-7d9f-0
    pod/web-7d9f-0 evicted
    node/node-0 drained
    ------- stderr -------
    [   0.4s] draining node-0, node-1 · context prod · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · timeout 30m per node
    [   0.5s] node-0: its turn
    [  61.0s] node-0: 1 pod evicting, 28m left
    [  70.2s] node-1: its turn
    [  71.0s] node-1 not drained: blocked, after 3m 04s; it stays cordoned

    node-0 drained in 3m 04s
      ✓ 1 pod gone

    node-1 not drained: blocked, after 3m 04s; it stays cordoned
      Blocked (waiting will not clear it):
        ✗ VM tenant-a/pinned-1: disk root is ReadWriteOnce; its VM template asks for LiveMigrate → set the template's evictionStrategy, then restart

    Next:
      kubectl uncordon node-0           when the maintenance is done
      the same command again            to go on, once the above is done; it resumes what has begun
      kubectl safe-drain cancel node-1  to give up: lifts the cordon
    ");
}

#[test]
fn a_failure_is_told_once_and_a_late_queued_is_not_the_last_word() {
    let failed = "last attempt failed: timed out";
    let step = |activity, attempt, detail: Option<&str>| EventKind::VmProgressed {
        node: node(),
        vm: web_1(),
        progress: VmProgress { detail: detail.map(str::to_owned), ..progress(activity, 0, attempt) },
    };
    let steps = [
        step(Activity::Queued, 0, None),
        step(Activity::Migrating, 1, None),
        step(Activity::Queued, 1, Some(failed)),
        step(Activity::Queued, 2, Some(failed)),
        step(Activity::Migrating, 2, Some(failed)),
        step(Activity::Queued, 2, Some(failed)),
        step(Activity::Migrating, 3, Some(failed)),
        step(Activity::Migrating, 3, None),
        step(Activity::Queued, 3, None),
    ];
    let events = script(steps.into_iter().enumerate().map(|(n, kind)| (n as u64 * 1000, kind)).collect());
    insta::assert_snapshot!(play(HumanOptions::default(), &events), @"
    ------- stderr -------
    [   0.0s] VM tenant-a/web-1: queued
    [   1.0s] VM tenant-a/web-1: migrating
    [   2.0s] VM tenant-a/web-1: queued (last attempt failed: timed out)
    [   3.0s] VM tenant-a/web-1: queued, attempt 2
    [   4.0s] VM tenant-a/web-1: migrating, attempt 2
    [   5.0s] VM tenant-a/web-1: queued, attempt 2 (last attempt failed: timed out)
    [   6.0s] VM tenant-a/web-1: migrating, attempt 3
    ");
}

#[test]
fn only_if_clear_lists_what_stands_in_the_way() {
    let events = script(vec![
        (400, connected()),
        (420, EventKind::Planned { nodes: vec![report(Verdict::Blocked, 3, lab_vms(), lab_pods())] }),
        (430, EventKind::Ended { exit_code: 4, error: Some("not clear".into()), hints: vec!["look".into()] }),
    ]);
    insta::assert_snapshot!(play(HumanOptions::default(), &events), @"
    ------- stderr -------
    [   0.4s] draining node-0 · context prod · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · timeout 30m
    [   0.4s] plan for node-0: 3 VMs migrate, 1 waits, 3 block; 1 pod is evicted, 5 wait, 3 stay (2 DaemonSet, 1 static)

    node-0 not drained: refused before anything changed; it is not cordoned
      Blocked (waiting will not clear it):
        ✗ VM tenant-a/db-0: disk root is ReadWriteOnce; a restart gives it LiveMigrateIfPossible → add --restart-stale
        ✗ VM tenant-a/gpu-1: GPU; runStrategy RerunOnFailure; a restart gives it LiveMigrateIfPossible → add --restart-stale
        ✗ VM tenant-a/pinned-1: disk root is ReadWriteOnce; its VM template asks for LiveMigrate → set the template's evictionStrategy, then restart
    error: not clear
    hint: look
    ");
}

#[test]
fn a_preview_with_a_document_does_not_say_that_it_drains() {
    let options = HumanOptions { stdout: Stdout::Taken, dry_run: true, ..HumanOptions::default() };
    assert!(play(options, &script(vec![(400, connected())])).contains("previewing node-0"));
}
