//! The commands of `make demo`, as the script has them.

use crate::cluster::Cluster;
use crate::tool::{PROGRAM, run};

#[test]
fn the_commands_end_as_the_script_says() {
    let script = include_str!("../demo.sh");
    let timeout = "--timeout 60s";
    assert_eq!(script.matches(timeout).count(), 1);
    let cluster = Cluster::scenario("strategy-switch");
    // A migration hangs for ever: the drain lasts as long as it may.
    let script = cluster.home.file("demo.sh", &script.replace(timeout, "--timeout 6s"));
    let mut command = cluster.home.command("sh", &cluster.kubeconfig);
    command.args([script.to_str().unwrap(), "inside", PROGRAM, "strategy-switch"]);
    let run = run(command);
    assert_eq!(run.code(), 0, "{}", run.text());
    assert_eq!(run.stdout.matches("=== exit code 3, as expected").count(), 2, "{}", run.text());
    assert!(run.stdout.contains("Preview of draining node-0 (nothing was changed)"), "{}", run.text());
    assert!(run.stdout.contains("\nnode/node-0 cordoned\n"), "{}", run.text());
    let gone = run.stdout.lines().filter(|line| line.starts_with("pod/web-") && line.ends_with(" evicted"));
    assert_eq!(gone.count(), 4, "{}", run.text());
}

#[test]
fn the_last_one_clears_its_node() {
    let cluster = Cluster::scenario("plain");
    let script = cluster.home.file("demo.sh", include_str!("../demo.sh"));
    let mut command = cluster.home.command("sh", &cluster.kubeconfig);
    command.args([script.to_str().unwrap(), "inside", PROGRAM, "plain"]);
    let run = run(command);
    assert_eq!(run.code(), 0, "{}", run.text());
    assert!(run.stdout.contains("\nnode/node-0 drained\n"), "{}", run.text());
    assert!(run.stdout.contains("=== exit code 0, as expected"), "{}", run.text());
}
