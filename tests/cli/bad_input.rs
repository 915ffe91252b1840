//! Command lines and kubeconfigs that cannot be carried out: one error, a hint, code 2, and no request that matters.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use insta::assert_snapshot;

use crate::cluster::Cluster;
use crate::tool::{Home, Run, run};

/// Runs a line that must fail before anything is asked of the cluster.
fn refused(args: &[&str]) -> Run {
    let cluster = Cluster::scenario("plain");
    let run = cluster.run(args);
    run.one_error_and_a_hint();
    assert_eq!(run.code(), 2, "{}", run.text());
    let requests: Vec<String> = cluster.sim.requests().iter().map(|r| format!("{} {}", r.method, r.path)).collect();
    assert!(requests.is_empty(), "{requests:?}");
    run
}

/// Runs a line that the cluster has to be asked about, and that changes nothing.
fn not_found(args: &[&str]) -> Run {
    let cluster = Cluster::scenario("plain");
    let run = cluster.run(args);
    run.one_error_and_a_hint();
    assert_eq!(run.code(), 2, "{}", run.text());
    assert!(!cluster.sim.requests().is_empty());
    cluster.nothing_changed();
    run
}

#[test]
fn no_arguments() {
    assert_snapshot!(refused(&[]).text(), @"
    ------- stderr -------
    error: no node given
    hint: name the nodes, `kubectl safe-drain NODE...`, or select them, `kubectl safe-drain -l KEY=VALUE`
    hint: all flags: `kubectl safe-drain --help`
    [exit status: 2]
    ");
}

#[test]
fn an_unknown_node() {
    assert_snapshot!(not_found(&["nope"]).text(), @r#"
    ------- stderr -------
    error: node "nope" not found; nothing was changed
    hint: `kubectl get nodes` lists them
    [exit status: 2]
    "#);
}

#[test]
fn one_unknown_node_among_others() {
    assert_snapshot!(not_found(&["node-0", "node-9", "node-1"]).text(), @r#"
    ------- stderr -------
    error: node "node-9" not found; nothing was changed
    hint: `kubectl get nodes` lists them
    [exit status: 2]
    "#);
}

#[test]
fn an_unknown_node_that_was_meant_as_a_value() {
    assert_snapshot!(not_found(&["--dry-run", "server"]).text(), @r#"
    ------- stderr -------
    error: node "server" not found; nothing was changed
    hint: did you mean `--dry-run=server`?
    [exit status: 2]
    "#);
    assert_snapshot!(not_found(&["node-0", "--restart-stale", "always"]).text(), @r#"
    ------- stderr -------
    error: node "always" not found; nothing was changed
    hint: did you mean `--restart-stale=always`?
    [exit status: 2]
    "#);
}

#[test]
fn a_selector_without_a_match() {
    assert_snapshot!(not_found(&["-l", "rack=r7"]).text(), @"
    ------- stderr -------
    error: no node matches -l rack=r7; nothing was changed
    hint: `kubectl get nodes --show-labels` shows their labels
    [exit status: 2]
    ");
}

#[test]
fn an_empty_selector_selects_nothing() {
    assert_snapshot!(refused(&["-l", ""]).text(), @"
    ------- stderr -------
    error: `-l` is empty, which selects no node, and no node is named
    hint: name the nodes, `kubectl safe-drain NODE...`, or select them, `kubectl safe-drain -l KEY=VALUE`
    hint: all flags: `kubectl safe-drain --help`
    [exit status: 2]
    ");
}

#[test]
fn an_empty_selector_beside_a_node_counts_as_not_given() {
    let cluster = Cluster::scenario("plain");
    let run = cluster.run(&["node-0", "-l", ""]);
    assert_eq!(run.code(), 0, "{}", run.text());
    assert_eq!(cluster.cordoned(), ["node-0"]);
}

#[test]
fn a_node_and_a_selector() {
    assert_snapshot!(refused(&["node-0", "-l", "a=b"]).text(), @"
    ------- stderr -------
    error: cannot specify both a node name and a --selector option
    hint: either `kubectl safe-drain node-0` or `-l`
    [exit status: 2]
    ");
}

#[test]
fn timeouts_that_are_none() {
    assert_snapshot!(refused(&["node-0", "--timeout", "0"]).text(), @"
    ------- stderr -------
    error: `--timeout=0` would mean no limit, which a drain here never has
    hint: give a limit with its unit, `--timeout=30m`
    [exit status: 2]
    ");
    assert_snapshot!(refused(&["node-0", "--timeout", "30"]).text(), @"
    ------- stderr -------
    error: `--timeout=30` has no unit
    hint: give a limit with its unit, `--timeout=30m`
    [exit status: 2]
    ");
    assert_snapshot!(refused(&["node-0", "--timeout", "1d"]).text(), @"
    ------- stderr -------
    error: `--timeout=1d` has the unknown unit `d` (known are h, m, s, ms, us, ns)
    hint: give a limit with its unit, `--timeout=30m`; days in hours: `--timeout=24h`
    [exit status: 2]
    ");
    assert_snapshot!(refused(&["node-0", "--timeout", "-5s"]).text(), @"
    ------- stderr -------
    error: `--timeout=-5s` is negative
    hint: give a limit with its unit, `--timeout=30m`
    [exit status: 2]
    ");
    assert_snapshot!(refused(&["node-0", "--timeout=-5s"]).text(), @"
    ------- stderr -------
    error: `--timeout=-5s` is negative
    hint: give a limit with its unit, `--timeout=30m`
    [exit status: 2]
    ");
    assert_snapshot!(refused(&["node-0", "--timeout="]).text(), @"
    ------- stderr -------
    error: `--timeout=` is empty
    hint: give a limit with its unit, `--timeout=30m`
    [exit status: 2]
    ");
}

#[test]
fn an_output_format_of_kubectl_get() {
    assert_snapshot!(refused(&["node-0", "-o", "table"]).text(), @"
    ------- stderr -------
    error: `--output=table` is not possible: it has to be one of json, yaml
    hint: see `kubectl safe-drain --help`
    [exit status: 2]
    ");
}

#[test]
fn an_unknown_flag() {
    assert_snapshot!(refused(&["node-0", "--drain-harder"]).text(), @"
    ------- stderr -------
    error: unknown flag `--drain-harder`
    hint: see `kubectl safe-drain --help`
    [exit status: 2]
    ");
    assert_snapshot!(refused(&["node-0", "--ignore-daemonset"]).text(), @"
    ------- stderr -------
    error: unknown flag `--ignore-daemonset`
    hint: did you mean `--ignore-daemonsets`?
    [exit status: 2]
    ");
}

#[test]
fn flags_that_promise_what_is_not_given() {
    assert_snapshot!(refused(&["node-0", "--warnings-as-errors"]).text(), @"
    ------- stderr -------
    error: `--warnings-as-errors` is not supported: a warning of the server is shown here, but it would not make the command fail
    hint: leave `--warnings-as-errors` out
    [exit status: 2]
    ");
    assert_snapshot!(refused(&["node-0", "--match-server-version"]).text(), @"
    ------- stderr -------
    error: `--match-server-version` is not supported: any supported server is accepted here, so a difference would not make the command fail
    hint: leave `--match-server-version` out
    [exit status: 2]
    ");
}

#[test]
fn words_that_are_no_sub_commands() {
    for word in ["plan", "preview", "drain", "cordon", "uncordon", "status", "version", "help"] {
        let run = refused(&[word, "node-0"]);
        assert!(run.stderr.contains(&format!("node/{word}")), "{}", run.text());
    }
    assert_snapshot!(refused(&["drain", "node-0"]).text(), @"
    ------- stderr -------
    error: `drain` is no sub-command
    hint: `kubectl safe-drain node-0` drains
    hint: to drain a node called drain: `kubectl safe-drain node/drain`
    [exit status: 2]
    ");
}

#[test]
fn an_audit_of_a_node() {
    assert_snapshot!(refused(&["audit", "node-0"]).text(), @"
    ------- stderr -------
    error: unexpected argument `node-0`: `kubectl safe-drain audit` takes none
    hint: see `kubectl safe-drain audit --help`
    [exit status: 2]
    ");
    assert_snapshot!(refused(&["--dry-run", "audit"]).text(), @"
    ------- stderr -------
    error: `--dry-run` stands before `audit`, where it would not reach it
    hint: `audit` has no such flag, see `kubectl safe-drain audit --help`
    hint: to drain a node called audit: `node/audit`
    [exit status: 2]
    ");
    assert_snapshot!(refused(&["audit", "--force"]).text(), @"
    ------- stderr -------
    error: unknown flag `--force`
    hint: `--force` is a flag of a drain: `kubectl safe-drain NODE`
    [exit status: 2]
    ");
}

#[test]
fn a_flag_of_the_drain_before_a_sub_command() {
    assert_snapshot!(refused(&["--dry-run", "cancel", "node-0"]).text(), @"
    ------- stderr -------
    error: `--dry-run` stands before `cancel`, where it would not reach it
    hint: put it behind: `kubectl safe-drain cancel ... --dry-run`
    hint: to drain a node called cancel: `node/cancel`
    [exit status: 2]
    ");
}

#[test]
fn an_events_file_in_a_folder_that_does_not_exist() {
    let run = refused(&["node-0", "--events-file", "missing/events"]);
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    error: cannot write the events file missing/events: No such file or directory (os error 2)
    hint: give a path that can be written, or leave --events-file out
    [exit status: 2]
    ");
}

#[test]
fn an_events_file_on_stdout_beside_a_document() {
    assert_snapshot!(refused(&["node-0", "--events-file", "-", "-o", "json"]).text(), @"
    ------- stderr -------
    error: `-o` and `--events-file -` both want stdout
    hint: write the events to a file: `--events-file events.jsonl`
    [exit status: 2]
    ");
}

/// Runs with a kubeconfig that cannot be used.
fn unusable(home: &Home, kubeconfig: &Path, args: &[&str]) -> String {
    let run = run(home.tool(kubeconfig, args));
    run.one_error_and_a_hint();
    assert_eq!(run.code(), 2, "{}", run.text());
    run.text().replace(home.path().to_str().unwrap(), "FOLDER")
}

#[test]
fn a_kubeconfig_that_the_flag_names_and_that_is_missing() {
    let home = Home::new();
    let missing = home.path().join("missing");
    let flag = ["node-0", "--kubeconfig", missing.to_str().unwrap()];
    assert_snapshot!(unusable(&home, Path::new(""), &flag), @"
    ------- stderr -------
    error: the kubeconfig FOLDER/missing does not exist
    hint: check --kubeconfig
    [exit status: 2]
    ");
}

#[test]
fn a_kubeconfig_that_the_variable_names_and_that_is_missing() {
    let home = Home::new();
    assert_snapshot!(unusable(&home, &home.path().join("missing"), &["node-0"]), @"
    ------- stderr -------
    error: no kubeconfig found
    hint: looked in FOLDER/missing; set KUBECONFIG or --kubeconfig
    [exit status: 2]
    ");
}

#[test]
fn no_kubeconfig_at_all() {
    let home = Home::new();
    assert_snapshot!(unusable(&home, Path::new(""), &["node-0"]), @"
    ------- stderr -------
    error: no kubeconfig found
    hint: looked in FOLDER/.kube/config; set KUBECONFIG or --kubeconfig
    [exit status: 2]
    ");
}

#[test]
fn a_kubeconfig_that_is_a_folder() {
    let home = Home::new();
    assert_snapshot!(unusable(&home, home.path(), &["node-0"]), @"
    ------- stderr -------
    error: cannot read the kubeconfig FOLDER: Is a directory (os error 21)
    hint: check its permissions, KUBECONFIG and --kubeconfig
    [exit status: 2]
    ");
}

#[test]
fn a_kubeconfig_that_may_not_be_read() {
    let home = Home::new();
    let file = home.file("kubeconfig", "");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&file).is_ok() {
        eprintln_skipped("this user may read everything");
        return;
    }
    let text = unusable(&home, &file, &["node-0"]);
    assert!(text.contains("error: cannot read the kubeconfig FOLDER/kubeconfig: Permission denied"), "{text}");
}

#[expect(clippy::print_stderr, reason = "says why a test did nothing")]
fn eprintln_skipped(why: &str) {
    eprintln!("skipped: {why}");
}

#[test]
fn a_kubeconfig_that_is_no_yaml() {
    let home = Home::new();
    let file = home.file("kubeconfig", "clusters: [\nusers:\n- name: a\n  user: {token: geheim}\n");
    let text = unusable(&home, &file, &["node-0"]);
    assert!(!text.contains("geheim"), "{text}");
    assert!(
        text.starts_with("------- stderr -------\nerror: the kubeconfig FOLDER/kubeconfig is not valid: "),
        "{text}"
    );
}

#[test]
fn a_kubeconfig_with_a_secret_where_an_object_should_be() {
    let home = Home::new();
    let file = home.file("kubeconfig", "apiVersion: v1\nkind: Config\nusers: geheim\n");
    let text = unusable(&home, &file, &["node-0"]);
    assert!(!text.contains("geheim"), "{text}");
}

#[test]
fn a_kubeconfig_that_is_empty() {
    let home = Home::new();
    let file = home.file("kubeconfig", "");
    assert_snapshot!(unusable(&home, &file, &["node-0"]), @"
    ------- stderr -------
    error: no context is chosen
    hint: the kubeconfig is empty
    [exit status: 2]
    ");
}

#[test]
fn an_unknown_context() {
    assert_snapshot!(refused(&["node-0", "--context", "prod"]).text(), @r#"
    ------- stderr -------
    error: there is no context "prod" in the kubeconfig
    hint: it has: sim
    [exit status: 2]
    "#);
}

#[test]
fn an_unknown_cluster_and_an_unknown_user() {
    assert_snapshot!(refused(&["node-0", "--cluster", "prod"]).text(), @r#"
    ------- stderr -------
    error: there is no cluster "prod" in the kubeconfig
    hint: it has: sim
    [exit status: 2]
    "#);
    assert_snapshot!(refused(&["node-0", "--user", "root"]).text(), @r#"
    ------- stderr -------
    error: there is no user "root" in the kubeconfig
    hint: it has: sim
    [exit status: 2]
    "#);
}
