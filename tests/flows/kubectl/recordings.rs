//! The command lines that were recorded with kubectl, each run again with this tool on the cluster that it was meant for: the
//! same set of lines on stdout, except where a row of the table of differences says otherwise.

use std::collections::BTreeSet;
use std::ffi::OsString;

use regex::Regex;
use safe_drain::cli::parse;
use safe_drain::settings::Command;
use safe_drain_sim::scenario::strategy_switch;
use safe_drain_sim::{Fault, Json, Options, PodSpec, Profile, Rule, Sim, Then, Vm, World, object};
use serde_json::{Value, json};

use super::rows::{self, Row};
use crate::harness::{Flow, Outcome};

const SCRIPTED: &str = include_str!("../../fixtures/kubectl/drain-fake-api-1.32.4.txt");
const SEVEN_STDOUT: &str = include_str!("../../fixtures/kubectl/drain-kubevirt-1.9.0.stdout.txt");
const SEVEN_STDERR: &str = include_str!("../../fixtures/kubectl/drain-kubevirt-1.9.0.stderr.txt");

/// What is on our stdout in place of kubectl's lines.
#[derive(Clone, Copy)]
enum Ours {
    /// These lines, and the exit code.
    Lines(&'static [&'static str], u8),
    /// The table of a preview, and no line of kubectl.
    Table,
    /// The result as JSON.
    Document,
}

/// The command lines whose output may differ, each with the row that allows it.
const ALLOWED: &[(&str, &str, Row, Ours)] = &[
    ("ok", "n1 --dry-run=client", rows::DRY_RUN, Ours::Table),
    ("ok", "n1 --dry-run=server", rows::DRY_RUN, Ours::Table),
    ("ok", "n1 --dry-run", rows::DRY_RUN, Ours::Table),
    ("mix", "n1 --ignore-daemonsets --delete-emptydir-data --force --dry-run=client", rows::DRY_RUN, Ours::Table),
    ("mix", "n1", rows::CORDONS_FIRST, Ours::Lines(&[], 4)),
    ("orphan", "n1 --ignore-daemonsets", rows::CORDONS_FIRST, Ours::Lines(&[], 4)),
    (
        "429",
        "n1 --delete-emptydir-data",
        rows::LAUNCHERS,
        Ours::Lines(
            &[
                "node/n1 cordoned",
                "evicting pod default/web-1",
                "pod/web-1 evicted",
                "virtualmachine.kubevirt.io/vm1 migrated",
                "node/n1 drained",
            ],
            0,
        ),
    ),
    (
        "block",
        "n1 --delete-emptydir-data --timeout=7s",
        rows::LAUNCHERS,
        Ours::Lines(&["node/n1 cordoned", "evicting pod default/web-1", "pod/web-1 evicted"], 124),
    ),
    ("403", "n1", rows::CORDON_REFUSED, Ours::Lines(&[], 6)),
    ("ok", "-l r=zzz", rows::NO_MATCH, Ours::Lines(&[], 2)),
    ("ok", "n1 -o json", rows::NO_DOCUMENT, Ours::Document),
];

/// One command line and what kubectl did.
#[derive(Debug)]
struct Recorded {
    mode: &'static str,
    command: &'static str,
    stdout: BTreeSet<&'static str>,
    stderr: Vec<&'static str>,
    code: u8,
}

fn recorded() -> Vec<Recorded> {
    let block = |text: &'static str| {
        let (head, rest) = text.split_once('\n').expect("a command line");
        let (mode, command) = head.split_once("] kubectl ").expect("a mode");
        let lines = |mark: &'static str| rest.lines().filter_map(move |line| line.strip_prefix(mark));
        let code = lines("rc=").next().and_then(|code| code.parse().ok()).expect("an exit code");
        Recorded { mode, command, stdout: lines("OUT| ").collect(), stderr: lines("ERR| ").collect(), code }
    };
    SCRIPTED.split("##### [").filter(|text| !text.is_empty()).map(block).collect()
}

/// A pod of some controller that does not make up for it.
fn managed(pod: PodSpec) -> PodSpec {
    owned(
        pod,
        json!({"apiVersion": "example.com/v1", "kind": "Rollout", "name": "r", "uid": "u-1", "controller": true}),
    )
}

fn owned(pod: PodSpec, owner: Value) -> PodSpec {
    pod.with(|o| {
        let mut owners = o.list("/metadata/ownerReferences").to_vec();
        owners.push(owner);
        o.put("/metadata/ownerReferences", owners);
    })
}

/// A pod that says to be of that DaemonSet.
fn daemon_pod(set: &str, uid: &str) -> PodSpec {
    let owner = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": set, "uid": uid, "controller": true});
    owned(PodSpec::new(), owner)
}

fn two_nodes(options: Options) -> World {
    let rack = |node: &mut Value| node.set_label("r", "w");
    let world = Sim::new(options).world().node_with("n1", rack).node_with("n2", rack).on("n1");
    world.pod("default", "web-1", managed(PodSpec::new()))
}

/// The cluster that a mode of the recording stands for.
fn cluster(mode: &str) -> Sim {
    let plain = || two_nodes(Options::plain());
    let refusing = |code, reason, message| {
        let sim = plain().done();
        sim.fault(Fault::on("POST", "/pods/web-1/eviction", Then::status(code, reason, message)));
        sim
    };
    match mode {
        "ok" => plain().done(),
        "mix" => {
            // It makes no pods of its own: no node fits.
            let nowhere = PodSpec::new().with(|o| o.put("/spec/nodeSelector/nowhere", "yes"));
            let set = object::workload("DaemonSet", "kube-system", "ds", 1, nowhere);
            let sim = plain().object(set).done();
            let uid = sim.get("DaemonSet", "kube-system", "ds").expect("just made").uid().to_owned();
            sim.world()
                .on("n1")
                .pod("kube-system", "ds-a", daemon_pod("ds", &uid))
                .pod("kube-system", "ds-b", daemon_pod("ds", &uid))
                .pod("default", "naked", PodSpec::new())
                .pod("default", "cache-1", managed(PodSpec::new().empty_dir()))
                .pod("default", "done", PodSpec::new().finished("Succeeded"))
                .done()
        }
        "429" => two_nodes(Options::default()).vm("vm", Vm::new("vm1")).done(),
        "block" => two_nodes(Options::default()).vm("vm", Vm::new("vm1").migration("hang")).done(),
        "deny400" => refusing(400, "", "admission webhook \"x\" denied the request: nope"),
        "500" => refusing(
            500,
            "InternalError",
            "Internal error occurred: failed calling webhook \"virt-launcher-eviction-interceptor.kubevirt.io\": \
             failed to call webhook: EOF",
        ),
        "403" => {
            let sim = plain().done();
            sim.deny(Rule::new("patch", "", "nodes"));
            sim
        }
        "orphan" => {
            // Another owner is there, or the garbage collector would remove it.
            let pod = daemon_pod("gone", "u-0");
            let other = json!({"apiVersion": "example.com/v1", "kind": "Fleet", "name": "f", "uid": "u-2"});
            let world = Sim::new(Options::plain()).world().node("n1").node("n2").on("n1");
            world.pod("kube-system", "ds-x", owned(pod, other)).done()
        }
        _ => panic!("no cluster for mode {mode}"),
    }
}

/// Our run with the words of kubectl's; `None` where the line is refused before anything is asked.
async fn ours(sim: &Sim, words: &[&str]) -> Option<Outcome> {
    let program = std::iter::once("kubectl-safe_drain");
    let invocation = parse(program.chain(words.iter().copied()).map(OsString::from).collect()).ok()?;
    let Command::Drain(options) = invocation.command else { panic!("{words:?} is no drain") };
    let verbosity = invocation.output.verbosity;
    Some(Flow::new(sim, options).verbosity(verbosity).without_preview().run().await)
}

/// `NAMESPACE/NAME` of the pods that kubectl refuses for.
fn refused_by_kubectl(stderr: &[&str]) -> BTreeSet<String> {
    let refusals = stderr.iter().filter(|line| line.starts_with("cannot delete "));
    let pods = refusals.filter_map(|line| line.rsplit_once(": ")).flat_map(|(_, pods)| pods.split(", "));
    pods.map(str::to_owned).collect()
}

fn refused_by_us(run: &Outcome) -> BTreeSet<String> {
    let refused = run.rows("pods").into_iter().filter(|row| row.text("/outcome") == "refused");
    refused.map(|row| format!("{}/{}", row.text("/namespace"), row.text("/name"))).collect()
}

async fn compare(recorded: &Recorded, line: &str) {
    let name = format!("[{}] {}", recorded.mode, recorded.command);
    let mut words: Vec<&str> = line.split_whitespace().collect();
    if !words.contains(&"--ignore-daemonsets") {
        // What kubectl has without a word.
        words.push("--ignore-daemonsets=false");
    }
    let sim = cluster(recorded.mode);
    let run = ours(&sim, &words).await;
    let allowed = ALLOWED.iter().find(|(mode, of, ..)| *mode == recorded.mode && *of == line);
    let told = run.as_ref().map_or_else(String::new, ToString::to_string);
    let lines: BTreeSet<&str> = run.as_ref().map(|r| r.stdout.lines().collect()).unwrap_or_default();
    let code = run.as_ref().map_or(2, |r| r.exit);
    match allowed.map(|(.., ours)| *ours) {
        None => {
            assert_eq!(recorded.stdout, lines, "{name}: left is kubectl\n{told}");
            assert_eq!(recorded.code == 0, code == 0, "{name}: exit {code}\n{told}");
        }
        Some(Ours::Lines(expected, exit)) => {
            assert_eq!(lines, expected.iter().copied().collect(), "{name}\n{told}");
            assert_eq!(code, exit, "{name}\n{told}");
        }
        Some(Ours::Table) => {
            assert!(lines.contains("Preview of draining n1 (nothing was changed)"), "{name}\n{told}");
            assert!(recorded.stdout.iter().all(|line| !lines.contains(line)), "{name}\n{told}");
            assert_eq!(recorded.code, code, "{name}\n{told}");
        }
        Some(Ours::Document) => {
            let run = run.as_ref().expect("a line that we take");
            assert_eq!(run.document.text("/kind"), "DrainResult", "{name}\n{told}");
        }
    }
    let refused = refused_by_kubectl(&recorded.stderr);
    assert_eq!(refused, run.as_ref().map(refused_by_us).unwrap_or_default(), "{name}: left is kubectl\n{told}");
}

#[tokio::test(start_paused = true)]
async fn each_recorded_command_line_prints_what_kubectl_prints() {
    let mut compared = 0;
    for recorded in recorded() {
        match recorded.command.split_once(' ') {
            // Not ours: kubectl has them, and keeps them.
            Some(("cordon" | "uncordon", _)) => {}
            Some(("drain", line)) => compare(&recorded, line).await,
            None if recorded.command == "drain" => compare(&recorded, "").await,
            _ => panic!("{recorded:?}"),
        }
        compared += 1;
    }
    assert_eq!(compared, 31, "the recording is read");
}

#[test]
fn each_difference_is_of_a_recorded_command_line() {
    let recorded = recorded();
    for (mode, line, ..) in ALLOWED {
        let command = format!("drain {line}");
        assert!(recorded.iter().any(|r| r.mode == *mode && r.command == command), "[{mode}] {line}");
    }
}

/// Name of the VM whose launcher a line tells of.
fn launchers(text: &str) -> BTreeSet<&str> {
    let pattern = Regex::new(r"virt-launcher-([\w-]+)-\w{5}\b").expect("a pattern");
    pattern.captures_iter(text).filter_map(|found| found.get(1)).map(|name| name.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_recorded_drain_of_seven_vms() {
    let kubevirt = Some(Profile::V1_9);
    let options = Options { kubevirt, eviction_strategy: Some("LiveMigrate".to_owned()), ..Options::default() };
    let world = Sim::new(options).world().nodes(3).on("node-0");
    let world = strategy_switch::vms().into_iter().fold(world, |world, vm| world.vm("tenant-a", vm));
    let sim = world.eviction_strategy("LiveMigrateIfPossible").done();
    let words = ["node-0", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s"];
    let run = ours(&sim, &words).await.expect("kubectl's words");

    let (of_launchers, others): (BTreeSet<&str>, BTreeSet<&str>) =
        SEVEN_STDOUT.lines().partition(|line| !launchers(line).is_empty());
    let (of_vms, lines): (BTreeSet<&str>, BTreeSet<&str>) =
        run.stdout.lines().partition(|line| line.starts_with("virtualmachine"));
    assert_eq!(others, lines, "left is kubectl\n{run}");
    // The row that allows the rest: launchers are told of as VMs.
    let left: BTreeSet<&str> = of_launchers.iter().filter(|line| line.ends_with(" evicted")).copied().collect();
    assert_eq!(launchers(&left.into_iter().collect::<String>()), BTreeSet::from(["web-1"]));
    assert_eq!(of_vms, BTreeSet::from(["virtualmachine.kubevirt.io/web-1 migrated"]), "{run}");

    // The same ones are left, and named.
    let pending = SEVEN_STDERR.lines().filter(|line| line.starts_with("pod/")).collect::<Vec<_>>().join("\n");
    let stay = run.rows("vms").into_iter().filter(|row| row.text("/outcome") != "migrates");
    assert_eq!(launchers(&pending), stay.map(|row| row.text("/name")).collect(), "left is kubectl\n{run}");
    assert_ne!(run.exit, 0);
    for name in launchers(&pending) {
        run.says(&format!("tenant-a/{name}"));
    }
}
