//! Drains that end before anything is changed: rights that are missing, and pods that need a flag.

use insta::assert_snapshot;
use safe_drain_sim::{PodSpec, Rule};

use crate::cluster::Cluster;
use crate::tool::Run;

/// A drain under these denials, which must change nothing.
fn denied(scenario: &'static str, rules: &[(&str, &str, &str)]) -> Run {
    let cluster = Cluster::scenario(scenario);
    for (verb, group, resource) in rules {
        cluster.sim.deny(Rule::new(verb, group, resource));
    }
    let run = cluster.run(&["node-0"]);
    cluster.nothing_changed();
    run
}

/// Lists without which no drain is possible: code 6 and the server's words.
fn denied_list(scenario: &'static str, group: &str, resource: &str) {
    let run = denied(scenario, &[("list", group, resource)]);
    assert_eq!(run.code(), 6, "{}", run.text());
    assert_eq!(run.stdout, "", "{}", run.text());
    let errors: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{}", run.text());
    let words =
        format!("User \"admin\" cannot list resource \"{resource}\" in API group \"{group}\" at the cluster scope");
    assert!(errors[0].contains(&words), "{}", run.text());
    assert!(errors[0].contains("nothing was changed"), "{}", run.text());
}

#[test]
fn pods_may_not_be_listed() {
    denied_list("plain", "", "pods");
}

#[test]
fn nodes_may_not_be_listed() {
    denied_list("plain", "", "nodes");
}

#[test]
fn vms_may_not_be_listed() {
    for resource in ["virtualmachineinstances", "virtualmachines", "virtualmachineinstancemigrations", "kubevirts"] {
        denied_list("strategy-switch", "kubevirt.io", resource);
    }
}

#[test]
fn the_node_may_not_be_read() {
    let run = denied("plain", &[("get", "", "nodes")]);
    assert_eq!(run.code(), 6, "{}", run.text());
    assert_snapshot!(run.text(), @r#"
    ------- stderr -------
    error: cannot read node node-0: nodes "node-0" is forbidden: User "admin" cannot get resource "nodes" in API group "" at the cluster scope
    [exit status: 6]
    "#);
}

#[test]
fn budgets_may_not_be_listed_and_the_drain_goes_on() {
    let cluster = Cluster::scenario("plain");
    cluster.sim.deny(Rule::new("list", "policy", "poddisruptionbudgets"));
    let run = cluster.run(&["node-0"]);
    assert_eq!(run.code(), 0, "{}", run.text());
    let warnings: Vec<&str> = run.stderr.lines().filter(|line| line.contains("Warning: ")).collect();
    assert!(!warnings.is_empty(), "{}", run.text());
    assert!(warnings[0].contains("poddisruptionbudgets.policy is forbidden"), "{}", run.text());
    assert_eq!(cluster.evictions(), 6);
}

#[test]
fn budgets_that_may_not_be_listed_are_warned_of_once() {
    let cluster = Cluster::scenario("plain");
    cluster.sim.deny(Rule::new("list", "policy", "poddisruptionbudgets"));
    let run = cluster.run(&["node-0"]);
    assert_eq!(run.stderr.matches("Warning: ").count(), 1, "{}", run.text());
}

#[test]
fn pods_may_not_be_evicted() {
    let run = denied("plain", &[("create", "", "pods/eviction")]);
    assert_eq!(run.code(), 6, "{}", run.text());
    assert_snapshot!(run.text(), @r#"
    ------- stderr -------
    [time] draining node-0 · context sim · Kubernetes v1.36.2 · timeout 30m
    error: permissions are missing; nothing was changed
    hint: not allowed: create pods/eviction in shop; this rule grants it: {apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"]}
    [exit status: 6]
    "#);
}

#[test]
fn the_node_may_not_be_cordoned() {
    let run = denied("plain", &[("patch", "", "nodes")]);
    assert_eq!(run.code(), 6, "{}", run.text());
    assert_snapshot!(run.text(), @r#"
    ------- stderr -------
    [time] draining node-0 · context sim · Kubernetes v1.36.2 · timeout 30m
    error: permissions are missing; nothing was changed
    hint: not allowed: patch nodes; this rule grants it: {apiGroups: [""], resources: ["nodes"], verbs: ["patch"]}
    [exit status: 6]
    "#);
}

#[test]
fn nothing_may_be_watched() {
    let run = denied("plain", &[("watch", "*", "*")]);
    assert_eq!(run.code(), 6, "{}", run.text());
    assert_snapshot!(run.text(), @r#"
    ------- stderr -------
    [time] draining node-0 · context sim · Kubernetes v1.36.2 · timeout 30m
    error: permissions are missing; nothing was changed
    hint: not allowed: watch nodes; this rule grants it: {apiGroups: [""], resources: ["nodes"], verbs: ["watch"]}
    hint: not allowed: watch pods; this rule grants it: {apiGroups: [""], resources: ["pods"], verbs: ["watch"]}
    hint: not allowed: watch poddisruptionbudgets (policy); this rule grants it: {apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: ["watch"]}
    [exit status: 6]
    "#);
}

#[test]
fn permissions_cannot_be_asked_for() {
    let run = denied("plain", &[("create", "authorization.k8s.io", "selfsubjectaccessreviews")]);
    assert_eq!(run.code(), 6, "{}", run.text());
    assert_snapshot!(run.text(), @r#"
    ------- stderr -------
    [time] draining node-0 · context sim · Kubernetes v1.36.2 · timeout 30m
    error: permissions cannot be checked: selfsubjectaccessreviews.authorization.k8s.io is forbidden: User "admin" cannot create resource "selfsubjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope
    [exit status: 6]
    "#);
}

#[test]
fn a_bare_pod() {
    let cluster = Cluster::plain(|world| world.deployment("shop", "web", 1).pod("shop", "bare", PodSpec::new()));
    let run = cluster.run(&["node-0"]);
    cluster.nothing_changed();
    assert_eq!(run.code(), 4, "{}", run.text());
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    [time] draining node-0 · context sim · Kubernetes v1.36.2 · timeout 30m
    [time] plan for node-0: 1 pod is evicted, 1 is refused
    error: refused, nothing was changed: 1 pod needs a flag first
    hint: shop/bare: no controller owns it, so nothing brings it back → --force
    [exit status: 4]
    ");
}

#[test]
fn a_pod_with_local_data() {
    let cluster = Cluster::plain(|world| world.deployment_with("shop", "cache", 1, PodSpec::new().empty_dir()));
    let run = cluster.run(&["node-0"]);
    cluster.nothing_changed();
    assert_eq!(run.code(), 4, "{}", run.text());
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    [time] draining node-0 · context sim · Kubernetes v1.36.2 · timeout 30m
    [time] plan for node-0: 1 pod is refused
    error: refused, nothing was changed: 1 pod needs a flag first
    hint: shop/cache-POD: the data in emptyDir scratch ends with it → --delete-emptydir-data
    [exit status: 4]
    ");
}

#[test]
fn a_daemon_set_that_is_not_ignored() {
    let cluster = Cluster::scenario("plain");
    let run = cluster.run(&["node-0", "--ignore-daemonsets=false"]);
    cluster.nothing_changed();
    assert_eq!(run.code(), 4, "{}", run.text());
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    [time] draining node-0 · context sim · Kubernetes v1.36.2 · timeout 30m
    [time] plan for node-0: 6 pods are evicted, 1 is refused
    error: refused, nothing was changed: 1 pod needs a flag first
    hint: kube-system/agent-POD: DaemonSet agent would put it back at once → --ignore-daemonsets
    [exit status: 4]
    ");
}

#[test]
fn the_flags_that_the_refusals_name_let_the_drain_go_on() {
    let cluster = Cluster::scenario("mixed");
    let refused = cluster.run(&["node-0"]);
    assert_eq!(refused.code(), 4, "{}", refused.text());
    cluster.nothing_changed();
    let flags = ["--force", "--delete-emptydir-data"];
    assert!(flags.iter().all(|flag| refused.stderr.contains(flag)), "{}", refused.text());
    let drained = cluster.run(&["node-0", "--force", "--delete-emptydir-data"]);
    assert_eq!(drained.code(), 0, "{}", drained.text());
}

#[test]
fn a_refusal_of_the_second_node_leaves_the_first_alone() {
    let cluster =
        Cluster::plain(|world| world.deployment("shop", "web", 1).on("node-1").pod("shop", "bare", PodSpec::new()));
    let run = cluster.run(&["node-0", "node-1"]);
    cluster.nothing_changed();
    assert_eq!(run.code(), 4, "{}", run.text());
}

#[test]
fn a_vm_that_needs_consent_where_nobody_can_be_asked() {
    let cluster = Cluster::stale();
    let run = cluster.run(&["node-0", "--restart-stale=ask"]);
    cluster.nothing_changed();
    assert_eq!(run.code(), 4, "{}", run.text());
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    [time] draining node-0 · context sim · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · timeout 30m
    [time] plan for node-0: 1 VM blocks
    error: refused, nothing was changed: 1 VM needs a flag first
    hint: tenant-a/db-0: disk root is not shared (not ReadWriteMany); a restart gives it LiveMigrateIfPossible → --restart-stale
    [exit status: 4]
    ");
}

#[test]
fn only_if_clear() {
    let cluster = Cluster::blocked();
    let run = cluster.run(&["node-0", "--only-if-clear"]);
    cluster.nothing_changed();
    assert_eq!(run.code(), 4, "{}", run.text());
    assert_snapshot!(run.text(), @r#"
    ------- stderr -------
    [time] draining node-0 · context sim · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · timeout 30m
    [time] plan for node-0: 1 VM blocks

    node-0 not drained: refused before anything changed; it is not cordoned
      Blocked (waiting will not clear it):
        ✗ VM tenant-a/pinned-1: disk root is not shared (not ReadWriteMany); its VM template asks for LiveMigrate → `kubectl patch vm pinned-1 -n tenant-a --type=merge -p '{"spec":{"template":{"spec":{"evictionStrategy":"LiveMigrateIfPossible"}}}}'`, then add --restart-stale
    error: something would block, and --only-if-clear is given; nothing was changed
    hint: --dry-run shows what stands in the way
    [exit status: 4]
    "#);
}
