//! kubectl as the caller: it finds the program by its name and asks it for completions.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::cluster::Cluster;
use crate::tool::{PROGRAM, Run, run};

/// Runs kubectl with the program and its completion helper on PATH; `None` where there is no kubectl.
fn kubectl(cluster: &Cluster, args: &[&str]) -> Option<Run> {
    if Command::new("kubectl")
        .args(["version", "--client"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_err()
    {
        skipped("there is no kubectl on PATH");
        return None;
    }
    let helpers = Path::new(env!("CARGO_MANIFEST_DIR")).join("completions");
    let programs = Path::new(PROGRAM).parent().unwrap();
    let path = format!("{}:{}:{}", programs.display(), helpers.display(), std::env::var("PATH").unwrap());
    let mut command = cluster.home.command("kubectl", &cluster.kubeconfig);
    command.args(args).env("PATH", path);
    Some(run(command))
}

#[expect(clippy::print_stderr, reason = "says why a test did nothing")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

#[test]
fn kubectl_finds_the_program() {
    let cluster = Cluster::scenario("plain");
    let Some(run) = kubectl(&cluster, &["safe-drain", "node-0", "--dry-run"]) else { return };
    assert_eq!(run.code(), 0, "{}", run.text());
    assert!(run.stdout.starts_with("Preview of draining node-0 (nothing was changed)\n"), "{}", run.text());
    cluster.nothing_changed();
}

#[test]
fn the_exit_code_passes_through_kubectl() {
    let Some(run) = kubectl(&Cluster::blocked(), &["safe-drain", "node-0"]) else { return };
    assert_eq!(run.code(), 3, "{}", run.text());
}

#[test]
fn the_simulated_cluster_is_good_enough_for_kubectl() {
    let cluster = Cluster::scenario("plain");
    let Some(run) = kubectl(&cluster, &["get", "pods", "-A"]) else { return };
    assert_eq!(run.code(), 0, "{}", run.text());
    assert_eq!(run.stdout.lines().filter(|line| line.starts_with("shop ")).count(), 6, "{}", run.text());
    let Some(run) = kubectl(&cluster, &["cordon", "node-1"]) else { return };
    assert_eq!(run.stdout, "node/node-1 cordoned\n", "{}", run.text());
    assert_eq!(cluster.cordoned(), ["node-1"]);
}

/// What kubectl offers, without descriptions and directives.
fn offered(run: &Run) -> Vec<&str> {
    let lines = run.stdout.lines().filter(|line| !line.starts_with(':'));
    lines.map(|line| line.split('\t').next().unwrap()).collect()
}

#[test]
fn kubectl_completes_nodes_and_flags() {
    let cluster = Cluster::scenario("plain");
    let Some(run) = kubectl(&cluster, &["__complete", "safe-drain", ""]) else { return };
    assert_eq!(run.code(), 0, "{}", run.text());
    let found = offered(&run);
    assert!(["node-0", "node-1", "node-2"].iter().all(|node| found.contains(node)), "{}", run.text());
    let Some(run) = kubectl(&cluster, &["__complete", "safe-drain", "node-0", "--restart"]) else { return };
    assert!(offered(&run).iter().any(|flag| flag.starts_with("--restart-stale")), "{}", run.text());
    cluster.nothing_changed();
}

#[test]
fn completion_is_silent_without_a_cluster() {
    let cluster = Cluster::scenario("plain");
    let mut command = cluster.home.tool(Path::new("missing"), &["__complete", ""]);
    command.env("KUBECONFIG", "missing");
    let run = run(command);
    assert_eq!((run.code(), run.stderr.as_str()), (0, ""), "{}", run.text());
    assert!(run.stdout.trim_end().lines().last().unwrap().starts_with(':'), "{}", run.text());
}
