//! Which stream has what: kubectl's lines on stdout, everything else on stderr, colour where it was asked for.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;

use crate::cluster::Cluster;
use crate::tool::{run, start};

#[test]
fn stdout_has_the_lines_of_kubectl_and_nothing_else() {
    let cluster = Cluster::scenario("plain");
    let run = cluster.run(&["node-0"]);
    assert_eq!(run.code(), 0, "{}", run.text());
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 14, "{}", run.stdout);
    assert_eq!(lines[0], "node/node-0 cordoned");
    assert_eq!(lines[13], "node/node-0 drained");
    let evicted: Vec<String> = cluster
        .writes()
        .iter()
        .filter_map(|request| request.strip_prefix("POST /api/v1/namespaces/shop/pods/")?.strip_suffix("/eviction"))
        .map(str::to_owned)
        .collect();
    assert_eq!(evicted.len(), 6);
    for pod in evicted {
        let count = |line: &str| lines.iter().filter(|found| **found == line).count();
        assert_eq!(count(&format!("evicting pod shop/{pod}")), 1, "{}", run.stdout);
        assert_eq!(count(&format!("pod/{pod} evicted")), 1, "{}", run.stdout);
    }
    assert!(!run.text().contains('\u{1b}'), "{}", run.text());
}

#[test]
fn a_drain_of_pods() {
    let cluster = Cluster::plain(|world| world.deployment("shop", "web", 1).daemon_set("kube-system", "agent"));
    let run = cluster.run(&["node-0"]);
    assert_snapshot!(run.text(), @"
    node/node-0 cordoned
    evicting pod shop/web-POD
    pod/web-POD evicted
    node/node-0 drained
    ------- stderr -------
    [time] draining node-0 · context sim · Kubernetes v1.36.2 · timeout 30m
    [time] plan for node-0: 1 pod is evicted, 1 stays (DaemonSet)

    node-0 drained in TIME
      ✓ 1 pod gone; 1 stays (DaemonSet)

    Next:
      kubectl uncordon node-0  when the maintenance is done
    [exit status: 0]
    ");
    let again = cluster.run(&["node/node-0"]);
    assert_snapshot!(again.text(), @"
    node/node-0 already cordoned
    node/node-0 drained
    ------- stderr -------
    [time] draining node-0 · context sim · Kubernetes v1.36.2 · timeout 30m
    [time] plan for node-0: 1 pod stays (DaemonSet)

    node-0 drained in TIME
        1 pod stays (DaemonSet)

    Next:
      kubectl uncordon node-0  when the maintenance is done
    [exit status: 0]
    ");
}

#[test]
fn a_drain_that_is_blocked() {
    let run = Cluster::blocked().run(&["node-0"]);
    assert_eq!(run.code(), 3, "{}", run.text());
    assert_snapshot!(run.text(), @r#"
    node/node-0 cordoned
    ------- stderr -------
    [time] draining node-0 · context sim · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · timeout 30m
    [time] plan for node-0: 1 VM blocks

    node-0 not drained: blocked, after 0s; it stays cordoned
      Blocked (waiting will not clear it):
        ✗ VM tenant-a/pinned-1: disk root is not shared (not ReadWriteMany); its VM template asks for LiveMigrate → `kubectl patch vm pinned-1 -n tenant-a --type=merge -p '{"spec":{"template":{"spec":{"evictionStrategy":"LiveMigrateIfPossible"}}}}'`, then add --restart-stale

    Next:
      the same command again            to go on, once the above is done; it resumes what has begun
      kubectl safe-drain cancel node-0  to give up: lifts the cordon
    [exit status: 3]
    "#);
}

#[test]
fn a_vm_that_is_restarted() {
    let run = Cluster::stale().run(&["node-0", "--restart-stale"]);
    assert_eq!(run.code(), 0, "{}", run.text());
    assert_snapshot!(run.stdout, @"
    node/node-0 cordoned
    virtualmachine.kubevirt.io/db-0 restarted
    node/node-0 drained
    ");
}

#[test]
fn quiet_leaves_stdout_as_it_is_and_stderr_empty() {
    let cluster = Cluster::plain(|world| world.deployment("shop", "web", 1));
    let run = cluster.run(&["node-0", "-q"]);
    assert_snapshot!(run.text(), @"
    node/node-0 cordoned
    evicting pod shop/web-POD
    pod/web-POD evicted
    node/node-0 drained
    [exit status: 0]
    ");
}

#[test]
fn quiet_still_says_errors() {
    let cluster = Cluster::scenario("plain");
    let run = cluster.run(&["node-9", "-q"]);
    run.one_error_and_a_hint();
    assert_eq!(run.code(), 2);
}

#[test]
fn color_always_colours_pipes() {
    let cluster = Cluster::plain(|world| world.deployment("shop", "web", 1));
    let run = cluster.run(&["node-0", "--color=always"]);
    assert_eq!(run.code(), 0);
    assert!(run.stdout.contains("\u{1b}[32m"), "{}", run.text());
    assert!(run.stderr.contains("\u{1b}["), "{}", run.text());
}

#[test]
fn color_always_colours_errors_too() {
    let cluster = Cluster::scenario("plain");
    for args in [&["node-9", "--color=always"][..], &["node-0", "--color=always", "--context", "prod"]] {
        let run = cluster.run(args);
        assert_eq!(run.code(), 2);
        assert!(run.stderr.contains("\u{1b}["), "{}", run.text());
    }
}

#[test]
fn color_always_beats_no_color() {
    let cluster = Cluster::plain(|world| world.deployment("shop", "web", 1));
    let mut always = cluster.tool(&["node-0", "--color=always"]);
    always.env("NO_COLOR", "1");
    assert!(run(always).stdout.contains("\u{1b}["));
}

#[test]
fn a_reader_that_goes_away_does_not_end_the_drain() {
    let cluster = Cluster::scenario("plain");
    let mut command = cluster.tool(&["node-0"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "node/node-0 cordoned\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
    assert_eq!(cluster.evictions(), 6);
}

#[test]
fn readers_of_both_streams_may_go_away() {
    let cluster = Cluster::scenario("plain");
    let mut command = cluster.tool(&["node-0"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(cluster.evictions(), 6);
}

#[test]
fn requests_are_logged_without_headers_and_bodies() {
    let cluster = Cluster::plain(|world| world.deployment("shop", "web", 1));
    let run = cluster.run(&["node-0", "-v=6", "--token", "geheim"]);
    assert_eq!(run.code(), 0, "{}", run.text());
    let logged: Vec<&str> = run.stderr.lines().filter(|line| line.contains(" DEBUG ")).collect();
    let has = |text: &str| logged.iter().any(|line| line.contains(text));
    assert!(has("GET /api/v1/nodes/node-0 200 "), "{}", run.text());
    assert!(has("PATCH /api/v1/nodes/node-0"), "{}", run.text());
    assert!(has("/eviction"), "{}", run.text());
    for secret in ["geheim", "uthorization:", "Bearer", "unschedulable", "metadata"] {
        assert!(!run.stderr.contains(secret), "{secret}: {}", run.text());
    }
    assert!(!run.stderr.contains('\u{1b}'), "{}", run.text());
    assert!(run.stdout.starts_with("node/node-0 cordoned\n"), "{}", run.text());
}

#[test]
fn below_six_no_request_is_logged() {
    let cluster = Cluster::plain(|world| world.deployment("shop", "web", 1));
    for level in ["-v=1", "-v=4", "-v=5"] {
        let run = cluster.run(&["node-0", "--dry-run", level]);
        assert!(!run.stderr.contains("/api/v1/nodes"), "{}", run.text());
    }
}

#[test]
fn colour_of_logs_follows_the_flag() {
    let cluster = Cluster::plain(|world| world.deployment("shop", "web", 1));
    let logs = |args: &[&str]| cluster.run(&[&["node-0", "--dry-run", "-v=6"], args].concat()).stderr;
    assert!(!logs(&[]).contains('\u{1b}'));
    assert!(!logs(&["--color=never"]).contains('\u{1b}'));
    assert!(logs(&["--color=always"]).contains('\u{1b}'));
}

#[test]
fn help_and_version_are_data() {
    let cluster = Cluster::scenario("plain");
    for args in [&["--help"][..], &["node-0", "-h"], &["--version"], &["completion", "bash"]] {
        let run = cluster.run(args);
        assert_eq!((run.code(), run.stderr.as_str()), (0, ""), "{args:?}");
        assert!(!run.stdout.is_empty(), "{args:?}");
    }
    assert!(cluster.sim.requests().is_empty());
}

#[test]
fn a_preview_is_data_and_changes_nothing() {
    let cluster = Cluster::scenario("strategy-switch");
    for args in [&["node-0", "--dry-run"][..], &["node-0", "--dry-run=server"]] {
        let run = cluster.run(args);
        assert_eq!(run.code(), 3, "{}", run.text());
        assert_eq!(run.stderr, "");
        assert!(run.stdout.starts_with("Preview of draining node-0 (nothing was changed)\n"), "{}", run.text());
    }
    cluster.nothing_changed();
}

#[test]
fn a_timeout_ends_the_command_soon_after() {
    let cluster = Cluster::slow();
    let running = start(cluster.tool(&["node-0", "--timeout", "1s"]));
    running.wait_stdout("evicting pod");
    let before = std::time::Instant::now();
    let run = running.end();
    assert!(before.elapsed().as_secs() < 3, "{:?}", before.elapsed());
    assert_eq!(run.code(), 124, "{}", run.text());
    assert_snapshot!(run.text(), @"
    node/node-0 cordoned
    evicting pod shop/slow-POD
    ------- stderr -------
    [time] draining node-0 · context sim · Kubernetes v1.36.2 · timeout 1s
    [time] plan for node-0: 1 pod is evicted
    Warning: pod shop/slow-POD may take 50m to stop, and --timeout is 1s: --timeout=55m fits
    [time] pod shop/slow-POD is stopping and may take 50m
    Warning: node-0: its timeout of 1s is over; nothing new is evicted or restarted

    node-0 not drained: timeout after 1s; it stays cordoned
      Still stopping (goes on by itself):
        ? pod shop/slow-POD: accepted, still stopping, up to 50m left (grace 50m)

    Next:
      the same command again            to go on, with a --timeout above 1s; it resumes what has begun
      kubectl safe-drain cancel node-0  to give up: lifts the cordon
    [exit status: 124]
    ");
}
