//! Restarts outside a drain, as people and programs read of them.

use std::time::Duration;

use serde_json::{Value, json};

use super::run::play;
use super::schema::valid;
use super::*;
use crate::event::{Activity, Consent, VmProgress};
use crate::facts::Key;
use crate::report::document::{DocumentFold, DocumentKind, Format};
use crate::report::human::{HumanOptions, Stdout};
use crate::report::question::{PROMPT, Question, QuestionVm, question};
use crate::report::screen::view;
use crate::report::state::State;
use crate::report::{Task, restarts};

fn task() -> Task {
    Task::Restart { scope: "namespace tenant-a".to_owned() }
}

fn options() -> HumanOptions {
    HumanOptions { task: task(), ..HumanOptions::default() }
}

fn will_restart(name: &str) -> VmRow {
    let because = "disk root is ReadWriteOnce; a restart gives it LiveMigrateIfPossible".to_owned();
    let row = stale(name, "");
    VmRow {
        outcome: VmOutcome::Restarts,
        because,
        cause: None,
        waiting_helps: None,
        needs: vec![],
        remedy: None,
        ..row
    }
}

fn on(name: &str, verdict: Verdict, exit_code: u8, vms: Vec<VmRow>) -> NodeReport {
    let uid = format!("uid-{name}");
    NodeReport { name: name.into(), uid, elapsed_seconds: 62.0, ..report(verdict, exit_code, vms, vec![]) }
}

fn progressed(name: &str, activity: Activity, target: Option<&str>) -> EventKind {
    let target = target.map(Into::into);
    let progress =
        VmProgress { activity, since_ms: 0, attempt: 1, target, queue: None, detail: None, next_try_ms: None };
    EventKind::VmProgressed { node: "node-0".into(), vm: Key::new("tenant-a", name), progress }
}

fn connected() -> EventKind {
    EventKind::Connected { server: server(), nodes: vec![], timeout_seconds: 1800, started_at: started_at() }
}

fn planned() -> EventKind {
    let warned = |name: &str| format!("tenant-a/{name}: no guest agent: it is likely powered off hard after 30s");
    let mut first = on("node-0", Verdict::Clear, 0, vec![will_restart("db-0"), will_restart("db-1"), pinned()]);
    first.warnings = vec![warned("db-0"), warned("db-1")];
    let mut second = on("node-1", Verdict::Clear, 0, vec![will_restart("db-2"), will_restart("db-3")]);
    second.warnings = vec![warned("db-2")];
    EventKind::Planned { nodes: vec![first, second] }
}

/// Two nodes: one VM is restarted, one does not run again, one comes too late, one by somebody else.
fn run() -> Vec<DrainEvent> {
    let fresh = |row: VmRow, outcome, because: &str| VmRow { outcome, because: because.into(), ..row };
    let db0 = VmRow {
        node_after: Some("node-0".into()),
        ..fresh(will_restart("db-0"), VmOutcome::Restarts, "runs on node-0 with LiveMigrateIfPossible")
    };
    let db1 = VmRow {
        cause: Some(Cause::Unschedulable),
        waiting_helps: Some(false),
        remedy: Some("kubectl describe vmi db-1 -n tenant-a".into()),
        ..fresh(will_restart("db-1"), VmOutcome::Down, "no node takes it: 0/3 nodes are available")
    };
    let db2 = VmRow {
        cause: Some(Cause::RestartStalled),
        waiting_helps: Some(false),
        ..fresh(
            will_restart("db-2"),
            VmOutcome::Blocks,
            "no further VM is restarted: tenant-a/db-1 found no node after its restart",
        )
    };
    let db3 = VmRow {
        node_after: Some("node-2".into()),
        ..fresh(will_restart("db-3"), VmOutcome::Returns, "runs on node-2 with LiveMigrateIfPossible")
    };
    let ended = |node: &str, row: &VmRow| EventKind::VmEnded { node: node.into(), row: Box::new(row.clone()) };
    let first = vec![db0.clone(), db1.clone()];
    let second = vec![db2.clone(), db3.clone()];
    script(vec![
        (0, connected()),
        (0, EventKind::Consented { restart_stale: Consent::Flag, vm_down: Consent::None }),
        (10, planned()),
        (20, EventKind::NodeStarted { node: "node-0".into() }),
        (20, EventKind::NodeStarted { node: "node-1".into() }),
        (100, EventKind::VmRestarting { node: "node-0".into(), vm: Key::new("tenant-a", "db-0") }),
        (100, progressed("db-0", Activity::ShuttingDown, None)),
        (1_500, progressed("db-0", Activity::Starting, Some("node-0"))),
        (2_000, ended("node-0", &db0)),
        (2_100, progressed("db-1", Activity::Scheduling, None)),
        (3_000, ended("node-1", &db3)),
        (62_100, ended("node-0", &db1)),
        (62_100, ended("node-1", &db2)),
        (62_200, EventKind::NodeEnded { report: on("node-0", Verdict::Restarted, 5, first) }),
        (62_200, EventKind::NodeEnded { report: on("node-1", Verdict::Blocked, 3, second) }),
        (62_300, EventKind::Ended { exit_code: 3, error: None, hints: vec![] }),
    ])
}

#[test]
fn restarts_in_a_log() {
    insta::assert_snapshot!(play(options(), &run()), @"
    virtualmachine.kubevirt.io/db-0 restarted
    ------- stderr -------
    [   0.0s] restarting the stale VMs in namespace tenant-a · context prod · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · timeout 30m
    [   0.0s] plan: 4 VMs are restarted, 1 is not restarted
    Warning: tenant-a/db-0, tenant-a/db-1, tenant-a/db-2: no guest agent: it is likely powered off hard after 30s
    [   0.1s] VM tenant-a/db-0: restart accepted
    [   0.1s] VM tenant-a/db-0: shutting down
    [   1.5s] VM tenant-a/db-0: starting on node-0
    [   2.1s] VM tenant-a/db-1: waiting for a node
    [   3.0s] VM tenant-a/db-3 was restarted by somebody else: runs on node-2 with LiveMigrateIfPossible
    Warning: VM tenant-a/db-1 should run again and does not: no node takes it: 0/3 nodes are available → kubectl describe vmi db-1 -n tenant-a
    [  62.1s] VM tenant-a/db-2 is not restarted: no further VM is restarted: tenant-a/db-1 found no node after its restart

    1 of 4 VMs restarted, after 1m 02s; waiting will not clear the rest
      1 VM should run again and does not:
        ✗ VM tenant-a/db-1: no node takes it: 0/3 nodes are available → kubectl describe vmi db-1 -n tenant-a
      ✓ runs again: tenant-a/db-0 → node-0 (LiveMigrateIfPossible)
      ✓ 1 VM restarted by somebody else: tenant-a/db-3 → node-2
      Not restarted (waiting will not clear it):
        ✗ VM tenant-a/db-2: no further VM is restarted: tenant-a/db-1 found no node after its restart → `kubectl describe vm db-2 -n tenant-a` says what it waits for

    Next:
      the same command again  to restart the rest, once the above is done
    ");
}

#[test]
fn the_preview() {
    let mut db1 = will_restart("db-1");
    db1.outcome = VmOutcome::DownUntilNode;
    db1.because.push_str("; then it stays down: no node can take it: 3 are cordoned");
    let nodes = vec![
        on("node-0", Verdict::Blocked, 3, vec![stale("db-0", "disk root is ReadWriteOnce"), db1]),
        on("node-1", Verdict::Clear, 0, vec![will_restart("db-2")]),
    ];
    let preview = HumanOptions { stdout: Stdout::Preview, dry_run: true, ..options() };
    let events = script(vec![
        (0, connected()),
        (10, EventKind::Planned { nodes }),
        (20, EventKind::Ended { exit_code: 4, error: None, hints: vec![] }),
    ]);
    insta::assert_snapshot!(play(preview.clone(), &events), @"
    Preview of restarting the stale VMs in namespace tenant-a (nothing was changed)
    context prod · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible

      VM             STRATEGY            ON RESTART     BECAUSE
    ✗ tenant-a/db-0  LiveMigrate, stale  not restarted  disk root is ReadWriteOnce; a restart gives it LiveMigrateIfPossible → add --restart-stale
    ! tenant-a/db-1  LiveMigrate, stale  stays down     disk root is ReadWriteOnce; a restart gives it LiveMigrateIfPossible; then it stays down: no node can take it: 3 are cordoned
    ! tenant-a/db-2  LiveMigrate, stale  restarts       disk root is ReadWriteOnce; a restart gives it LiveMigrateIfPossible

    Not restarted: 1 VM. With --restart-stale: none.
    Exit code of the command: 4 (refused before anything changed: consent or a flag is missing)
    ------- stderr -------
    ");
    let nothing = script(vec![
        (0, connected()),
        (10, EventKind::Planned { nodes: vec![] }),
        (10, EventKind::Noted { warning: false, text: "nothing to do: no VM here needs a restart".into() }),
        (20, EventKind::Ended { exit_code: 0, error: None, hints: vec![] }),
    ]);
    insta::assert_snapshot!(play(preview, &nothing), @"
    Preview of restarting the stale VMs in namespace tenant-a (nothing was changed)
    context prod · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible
    nothing to do: no VM here needs a restart

    Exit code of the command: 0
    ------- stderr -------
    ");
    insta::assert_snapshot!(play(options(), &nothing), @"
    ------- stderr -------
    [   0.0s] restarting the stale VMs in namespace tenant-a · context prod · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · timeout 30m
    [   0.0s] nothing to do: no VM here needs a restart
    ");
}

#[test]
fn the_question() {
    let vm = |name: &str, because: &str| QuestionVm { name: format!("tenant-a/{name}"), because: because.into() };
    let q = Question {
        task: task(),
        context: Some("prod".into()),
        nodes: vec!["node-0".into()],
        restarted: vec![vm("db-0", "a restart gives it LiveMigrateIfPossible")],
        down: vec![vm("gpu-1", "no node can take it: 3 are cordoned")],
        staying: vec![vm("far-1", "the node is not ready")],
    };
    insta::assert_snapshot!(text(&question(&q, Some(80))) + PROMPT, @"
    Restarting the stale VMs in namespace tenant-a, context prod: that interrupts them. Nothing has been changed yet.

    1 VM will be restarted (down until the guest has stopped and booted again):
      ! tenant-a/db-0  a restart gives it LiveMigrateIfPossible

    1 VM will not run afterwards:
      ! tenant-a/gpu-1  no node can take it: 3 are cordoned

    1 VM will not be restarted, whatever the answer:
      ✗ tenant-a/far-1  the node is not ready

    Do you want to continue? (y/N):
    ");
}

#[test]
fn the_screen_shows_vms_whatever_their_nodes() {
    let picture = |events: &[DrainEvent], elapsed: u64| {
        let mut state = State::new(true);
        for event in events {
            state.event(event);
        }
        text(&view(&state, Duration::from_secs(elapsed), 24, 80))
    };
    insta::assert_snapshot!(picture(&run()[..8], 2), @"
    Restarting VMs · 1s, 29m left
      tenant-a/db-0   starting on node-0, 2s, attempt 1
      0 of 4 VMs done
    ");
    insta::assert_snapshot!(picture(&run()[..11], 30), @"
    Restarting VMs · 29s, 29m left
      tenant-a/db-1   waiting for a node, 30s, attempt 1
      2 of 4 VMs done
    ");
    assert_eq!(picture(&run(), 63), "", "it is gone at the end");
}

#[test]
fn warnings_that_say_the_same_are_one() {
    let all = ["a: x", "b: y", "c: x", "no single object"].map(str::to_owned);
    assert_eq!(restarts::folded(&all), ["a, c: x", "b: y", "no single object"]);
}

#[test]
fn the_document_before_and_after() {
    let document = |previews: bool, events: &[DrainEvent]| -> Value {
        let fold = DocumentFold::new(DocumentKind::RestartResult, started_at(), json!({"dryRun": "none"}));
        let mut fold = fold.of_run(!previews);
        for event in events {
            fold.event(event);
        }
        let document = serde_json::from_str(&fold.document().render(Format::Json)).unwrap();
        valid(&document);
        document
    };
    let all = run();
    let result = document(false, &all);
    assert_eq!(
        (&result["kind"], &result["changed"], &result["exitCode"]),
        (&"RestartResult".into(), &true.into(), &3.into())
    );
    assert_eq!(result["nodes"][0]["verdict"], "restarted");
    assert_eq!(result["nodes"][1]["vms"][0]["outcome"], "blocks");
    let preview = document(true, &all[..3]);
    assert_eq!((&preview["changed"], &preview["nodes"][0]["vms"][0]["outcome"]), (&false.into(), &"restarts".into()));
    // A run that ended before its first restart has done none of what was planned.
    let stopped = document(false, &all[..3]);
    assert_eq!(stopped["nodes"][0]["vms"][0]["outcome"], "pending");
    assert_eq!(stopped["nodes"][0]["verdict"], "not-started");
}
