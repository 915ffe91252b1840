//! `restart-stale`: what an admin types and reads.

use insta::{Settings, assert_snapshot};
use safe_drain_sim::Json;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::pty::Terminal;
use crate::schema::valid;
use crate::tool::scrub;

/// Snapshots without what differs from run to run.
fn steady(check: impl FnOnce()) {
    let mut settings = Settings::clone_current();
    settings.add_filter(r"restarted in \ds", "restarted in Ns");
    settings.add_filter(r"(→|on) node-\d", "$1 NODE");
    settings.bind(check);
}

fn document(cluster: &Cluster, args: &[&str], code: i32) -> Value {
    let run = cluster.run(&[&["restart-stale", "-o", "json"], args].concat());
    assert_eq!(run.code(), code, "{}", run.text());
    let document =
        serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("no single document: {e}\n{}", run.text()));
    valid(&document);
    document
}

#[test]
fn a_preview_and_the_restart() {
    let cluster = Cluster::stale();
    assert_snapshot!(cluster.run(&["restart-stale", "--dry-run"]).text(), @"
    Preview of restarting the stale VMs in all namespaces (nothing was changed)
    context sim · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible

      VM             STRATEGY            ON RESTART     BECAUSE
    ✗ tenant-a/db-0  LiveMigrate, stale  not restarted  disk root is not shared (not ReadWriteMany); a restart gives it LiveMigrateIfPossible → add --restart-stale

    Not restarted: 1 VM. With --restart-stale: none.
    Exit code of the command: 4 (refused before anything changed: consent or a flag is missing)
    [exit status: 4]
    ");
    assert_snapshot!(cluster.run(&["restart-stale", "-n", "tenant-a", "--dry-run=server", "--restart-stale"]).text(), @"
    Preview of restarting the stale VMs in namespace tenant-a (nothing was changed)
    context sim · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible
    the API server was asked by 1 dry run, without effect

      VM             STRATEGY            ON RESTART  BECAUSE
    ! tenant-a/db-0  LiveMigrate, stale  restarts    disk root is not shared (not ReadWriteMany); a restart gives it LiveMigrateIfPossible

    Warning: tenant-a/db-0: no guest agent: it is likely powered off hard after 30s

    Exit code of the command: 0
    [exit status: 0]
    ");
    cluster.nothing_changed();
    steady(|| {
        assert_snapshot!(cluster.run(&["restart-stale", "--restart-stale"]).text(), @"
        virtualmachine.kubevirt.io/db-0 restarted
        ------- stderr -------
        [time] restarting the stale VMs in all namespaces · context sim · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · timeout 30m
        [time] plan: 1 VM is restarted
        Warning: tenant-a/db-0: no guest agent: it is likely powered off hard after 30s
        [time] VM tenant-a/db-0: restart accepted
        [time] VM tenant-a/db-0: shutting down (grace 30s)
        [time] VM tenant-a/db-0: waiting for a node
        [time] VM tenant-a/db-0: starting on NODE

        1 VM restarted in Ns
          ✓ runs again: tenant-a/db-0 → NODE (LiveMigrateIfPossible)
        [exit status: 0]
        ");
        assert_snapshot!(cluster.run(&["restart-stale"]).text(), @"
        ------- stderr -------
        [time] restarting the stale VMs in all namespaces · context sim · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · timeout 30m
        [time] nothing to do: no VM here needs a restart for another eviction strategy
        [exit status: 0]
        ");
    });
    let quiet = cluster.run(&["restart-stale", "-q"]);
    assert_eq!((quiet.code(), quiet.stdout.as_str(), quiet.stderr.as_str()), (0, "", ""));
    assert_eq!(cluster.cordoned(), Vec::<String>::new());
    let writes = cluster.writes();
    assert_eq!(writes.len(), 1, "{writes:?}");
    assert!(writes[0].starts_with("PUT ") && writes[0].ends_with("/virtualmachines/db-0/restart"), "{writes:?}");
}

#[test]
fn without_a_terminal_consent_is_a_flag() {
    let cluster = Cluster::stale();
    assert_snapshot!(cluster.run(&["restart-stale"]).text(), @"
    ------- stderr -------
    [time] restarting the stale VMs in all namespaces · context sim · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · timeout 30m
    [time] plan: 1 VM is not restarted
    error: refused, nothing was changed: 1 VM needs a flag first
    hint: tenant-a/db-0: disk root is not shared (not ReadWriteMany); a restart gives it LiveMigrateIfPossible → --restart-stale
    [exit status: 4]
    ");
    let never = cluster.run(&["restart-stale", "--restart-stale=never"]);
    assert_eq!(never.code(), 3, "{}", never.text());
    cluster.nothing_changed();
}

#[test]
fn nodes_are_no_arguments_of_it() {
    let cluster = Cluster::stale();
    assert_snapshot!(cluster.run(&["restart-stale", "node-0"]).text(), @"
    ------- stderr -------
    error: unexpected argument `node-0`: `kubectl safe-drain restart-stale` takes none
    hint: `-n NAMESPACE` and `-l SELECTOR` choose the VMs; without them all that are stale are meant
    hint: to restart those of a node and drain it: `kubectl safe-drain node-0 --restart-stale`
    [exit status: 2]
    ");
    assert_snapshot!(cluster.run(&["restart-stale", "-l", ""]).text(), @"
    ------- stderr -------
    error: `--selector` is empty, which would restart VMs everywhere
    hint: a variable that is not set? Without `--selector` it is all of them on purpose
    [exit status: 2]
    ");
    assert_snapshot!(cluster.run(&["restart-stale", "--force"]).text(), @"
    ------- stderr -------
    error: unknown flag `--force`
    hint: `--force` is a flag of a drain: `kubectl safe-drain NODE`
    [exit status: 2]
    ");
    cluster.nothing_changed();
}

#[test]
fn the_one_document_at_every_end() {
    let cluster = Cluster::stale();
    let preview = document(&cluster, &["--dry-run", "-l", "!gone", "--restart-stale"], 0);
    assert_eq!((preview.text("/kind"), preview.flag("/changed")), ("RestartResult", false));
    assert_eq!((preview.text("/options/dryRun"), preview.text("/options/selector")), ("client", "!gone"));
    assert_eq!(preview.text("/nodes/0/vms/0/outcome"), "restarts");
    let refused = document(&cluster, &[], 4);
    assert_eq!((refused.text("/nodes/0/verdict"), refused.text("/nodes/0/vms/0/cause")), ("refused", "ConsentMissing"));
    assert!(refused.text("/error").contains("1 VM needs a flag first"), "{refused:#}");
    let done = document(&cluster, &["--restart-stale"], 0);
    assert_eq!((done.text("/nodes/0/verdict"), done.flag("/changed")), ("restarted", true));
    assert_eq!(done.text("/consent/restartStale"), "flag");
    let nothing = document(&cluster, &["--restart-stale"], 0);
    assert_eq!((nothing.list("/nodes").len(), nothing.flag("/changed")), (0, false));
    let nobody = Cluster::scenario("plain");
    assert_eq!(document(&nobody, &[], 0).list("/nodes").len(), 0, "no KubeVirt");
}

#[test]
fn its_events() {
    let cluster = Cluster::stale();
    let run = cluster.run(&["restart-stale", "--restart-stale", "--events-file", "-"]);
    assert_eq!(run.code(), 0, "{}", run.text());
    let events: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut names: Vec<&str> = events.iter().map(|event| event.text("/event")).collect();
    names.dedup();
    for name in
        ["connected", "planned", "consented", "node-started", "vm-restarting", "vm-ended", "node-ended", "ended"]
    {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("cordon") || name.starts_with("pod-")), "{names:?}");
    assert!(run.stderr.contains("VM tenant-a/db-0: restarted"), "stderr says what stdout would: {}", run.text());
}

#[test]
fn the_question_on_a_terminal() {
    let cluster = Cluster::stale();
    let start = || Terminal::start(&cluster.home, &cluster.kubeconfig, &["restart-stale"], &[("NO_COLOR", "1")]);
    let question = "Do you want to continue? (y/N):";
    let mut terminal = start();
    assert_snapshot!(scrub(&terminal.shows(&[question])), @"
    restarting the stale VMs in all namespaces · context sim · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossib
    le · timeout 30m
    plan: 1 VM is restarted
    Warning: tenant-a/db-0: no guest agent: it is likely powered off hard after 30s
    Restarting the stale VMs in all namespaces, context sim: that interrupts them. Nothing has been changed yet.

    1 VM will be restarted (down until the guest has stopped and booted again):
      ! tenant-a/db-0  disk root is not shared (not ReadWriteMany); a restart gives it LiveMigrateIfPossible

    Do you want to continue? (y/N):
    ");
    terminal.types("n\r");
    let left = terminal.end();
    assert_eq!(left.status.exit_code(), 4, "{}", left.screen);
    assert!(left.screen.contains("error: not confirmed; nothing was changed"), "{}", left.screen);
    cluster.nothing_changed();

    let mut terminal = start();
    terminal.shows(&[question]);
    terminal.types("y\r");
    let left = terminal.end();
    assert_eq!((left.status.exit_code(), left.status.signal()), (0, None), "{}", left.screen);
    assert!(left.screen.contains("virtualmachine.kubevirt.io/db-0 restarted"), "{}", left.screen);
    assert!(left.raw.contains("Restarting VMs · ") && !left.screen.contains("Restarting VMs · "), "{}", left.raw);
}
