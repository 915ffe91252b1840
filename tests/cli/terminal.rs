//! On a terminal: the one question, and the live screen.

use insta::assert_snapshot;
use regex::Regex;
use safe_drain_sim::{Options, Sim, Vm};

use crate::cluster::Cluster;
use crate::pty::{Left, Terminal};
use crate::tool::scrub;

const QUESTION: &str = "Do you want to continue? (y/N):";

/// The start of the live screen's first line.
const LIVE: &str = "Draining node-0 · ";

fn start(cluster: &Cluster, args: &[&str], environment: &[(&str, &str)]) -> Terminal {
    Terminal::start(&cluster.home, &cluster.kubeconfig, args, environment)
}

/// Starts a drain of node-0 and waits for the question.
fn asked(cluster: &Cluster) -> Terminal {
    let terminal = start(cluster, &["node-0"], &[("NO_COLOR", "1")]);
    terminal.shows(&[QUESTION]);
    terminal
}

/// Panics unless the terminal is as it was.
fn sane(left: &Left) {
    assert!(left.cursor, "the cursor is hidden\n{}", left.screen);
    assert!(!left.screen.contains(LIVE), "{}\n{:?}", left.screen, left.raw);
    assert!(!left.raw.contains("panicked"), "{}", left.raw);
}

#[test]
fn the_question() {
    let cluster = Cluster::stale();
    let mut terminal = asked(&cluster);
    cluster.nothing_changed();
    assert_snapshot!(scrub(&terminal.shows(&[QUESTION])), @"
    draining node-0 · context sim · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · timeout 30m
    plan for node-0: 1 VM is restarted
    Warning: tenant-a/db-0: no guest agent: it is likely powered off hard after 30s
    Draining node-0 in context sim interrupts VMs. Nothing has been changed yet.

    1 VM will be restarted and run elsewhere afterwards:
      ! tenant-a/db-0  disk root is not shared (not ReadWriteMany); a restart gives it LiveMigrateIfPossible

    Do you want to continue? (y/N):
    ");
    terminal.types("y\r");
    let left = terminal.end();
    sane(&left);
    assert_eq!((left.status.exit_code(), left.status.signal()), (0, None), "{}", left.screen);
    assert_eq!(left.raw.matches("Do you want").count(), 1, "{}", left.raw);
    assert!(left.screen.contains("virtualmachine.kubevirt.io/db-0 restarted"), "{}", left.screen);
}

#[test]
fn anything_but_yes_changes_nothing() {
    // `\u{4}` is Ctrl-D.
    for answer in ["n\r", "\r", "yes\r", " y\r", "\u{4}"] {
        let cluster = Cluster::stale();
        let mut terminal = asked(&cluster);
        terminal.types(answer);
        let left = terminal.end();
        sane(&left);
        assert_eq!(left.status.exit_code(), 4, "{answer:?}: {}", left.screen);
        assert!(left.screen.contains("error: not confirmed; nothing was changed"), "{answer:?}: {}", left.screen);
        cluster.nothing_changed();
    }
}

#[test]
fn ctrl_c_at_the_question() {
    let cluster = Cluster::stale();
    let mut terminal = asked(&cluster);
    terminal.types("\u{3}");
    let left = terminal.end();
    sane(&left);
    assert_eq!(left.status.signal(), Some("Interrupt"), "{}", left.screen);
    cluster.nothing_changed();
}

#[test]
fn one_question_for_all_nodes() {
    let options = Options { speed: 10.0, eviction_strategy: Some("LiveMigrate".to_owned()), ..Options::default() };
    let cluster = Cluster::start(move || {
        let vm = |name: &str| Vm::new(name).non_migratable("DisksNotLiveMigratable");
        let world = Sim::new(options).world().nodes(4).on("node-0").vm("tenant-a", vm("db-0"));
        world.on("node-1").vm("tenant-b", vm("db-1")).eviction_strategy("LiveMigrateIfPossible").done()
    });
    let mut terminal = start(&cluster, &["node-0", "node-1"], &[]);
    terminal.shows(&["node-0", "node-1", "tenant-a/db-0", "tenant-b/db-1", QUESTION]);
    cluster.nothing_changed();
    terminal.types("y\r");
    let left = terminal.end();
    sane(&left);
    assert_eq!(left.status.exit_code(), 0, "{}", left.screen);
    assert_eq!(left.raw.matches("Do you want").count(), 1, "{}", left.raw);
    assert_eq!(cluster.cordoned(), ["node-0", "node-1"]);
}

#[test]
fn the_question_has_no_colour_where_none_is_wanted() {
    let coloured = Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    for (args, environment) in [
        (&["node-0"][..], &[("NO_COLOR", "1")][..]),
        (&["node-0", "--color=never"], &[]),
        (&["node-0"], &[("TERM", "dumb")]),
    ] {
        let cluster = Cluster::stale();
        let mut terminal = start(&cluster, args, environment);
        terminal.shows(&[QUESTION]);
        terminal.types("n\r");
        let left = terminal.end();
        assert!(left.raw.contains(QUESTION), "{:?}", left.raw);
        assert!(!coloured.is_match(&left.raw), "{:?}", left.raw);
    }
}

#[test]
fn no_input_asks_nothing() {
    let cluster = Cluster::stale();
    let left = start(&cluster, &["node-0", "--no-input"], &[]).end();
    sane(&left);
    assert!(!left.raw.contains("Do you want"), "{}", left.raw);
    assert_eq!(left.status.exit_code(), 3, "{}", left.screen);
}

#[test]
fn a_flag_leaves_nothing_to_ask() {
    let cluster = Cluster::stale();
    let left = start(&cluster, &["node-0", "--restart-stale"], &[]).end();
    sane(&left);
    assert!(!left.raw.contains("Do you want"), "{}", left.raw);
    assert_eq!(left.status.exit_code(), 0, "{}", left.screen);
}

#[test]
fn the_live_screen_has_a_line_per_vm_and_is_gone_at_the_end() {
    let cluster = Cluster::kubevirt(|world| {
        world.vm("tenant-a", Vm::new("web-1").migration("hang")).vm("tenant-a", Vm::new("web-2").migration("hang"))
    });
    let mut terminal = start(&cluster, &["node-0"], &[]);
    let screen =
        terminal.shows(&[LIVE, " left", "tenant-a/web-1   migrating", "tenant-a/web-2   migrating", "attempt 1"]);
    let lines = |vm: &str| screen.lines().filter(|line| line.trim_start().starts_with(vm)).count();
    assert_eq!((lines("tenant-a/web-1 "), lines("tenant-a/web-2 ")), (1, 1), "{screen}");
    terminal.types("\u{3}");
    let left = terminal.end();
    sane(&left);
    assert_eq!(left.status.signal(), Some("Interrupt"), "{}", left.screen);
    assert!(left.screen.contains("node/node-0 cordoned"), "{}", left.screen);
    assert!(left.screen.contains("goes on by itself"), "{}", left.screen);
}

#[test]
fn the_live_screen_names_the_target_of_a_migration() {
    let cluster = Cluster::kubevirt(|world| world.vm("tenant-a", Vm::new("web-1").migration("hang")));
    let mut terminal = start(&cluster, &["node-0"], &[]);
    let screen = terminal.shows(&[LIVE, "tenant-a/web-1   migrating → node-"]);
    terminal.types("\u{3}");
    assert!(screen.contains("migrating → node-"), "{screen}");
}

#[test]
fn verbose_has_lines_in_the_place_of_the_screen() {
    let cluster = Cluster::kubevirt(|world| world.vm("tenant-a", Vm::new("web-1")));
    let left = start(&cluster, &["node-0", "-v=1"], &[]).end();
    assert_eq!(left.status.exit_code(), 0, "{}", left.screen);
    assert!(!left.raw.contains(LIVE), "{}", left.raw);
    assert!(left.screen.contains("VM tenant-a/web-1: migrating"), "{}", left.screen);
}
