//! What must be the same on all clusters about a run: how it ended, for the node and for each VM and pod.

use std::collections::BTreeMap;

use safe_drain_sim::Json;
use serde_json::Value;

use crate::harness::Outcome;

/// A run, without what differs from run to run.
#[derive(Debug, PartialEq, Eq)]
pub struct Digest {
    exit: u8,
    verdicts: Vec<String>,
    /// How often each row occurs: pods of a workload are alike.
    rows: BTreeMap<String, usize>,
    /// kubectl's lines, likewise.
    lines: BTreeMap<String, usize>,
}

impl Digest {
    /// The digest of a run.
    pub fn of(run: &Outcome) -> Self {
        let nodes = run.document.list("/nodes");
        let mut rows = BTreeMap::new();
        let mut lines = BTreeMap::new();
        for node in nodes {
            for row in node.list("/vms") {
                *rows.entry(row_of("VM", of_set(row), row)).or_default() += 1;
            }
            for row in node.list("/pods") {
                *rows.entry(row_of("pod", workload(row.text("/name")), row)).or_default() += 1;
            }
        }
        let restarted = run.document.text("/kind") == "RestartResult" && run.document.flag("/changed");
        if restarted || matches!(run.document.text("/kind"), "DrainResult" | "CancelResult") {
            let sets: Vec<(&str, &str)> = run
                .rows("vms")
                .into_iter()
                .map(|r| (r.text("/name"), of_set(r)))
                .filter(|(name, set)| name != set)
                .collect();
            for line in run.stdout.lines() {
                let mut line = line.to_owned();
                for (name, set) in &sets {
                    line = line.replace(&format!("/{name} "), &format!("/{set} "));
                }
                let words: Vec<String> = line.split(' ').map(short).collect();
                *lines.entry(words.join(" ")).or_default() += 1;
            }
        }
        let verdicts = nodes.iter().map(|n| format!("{} {}", n.text("/name"), n.text("/verdict"))).collect();
        Self { exit: run.exit, verdicts, rows, lines }
    }
}

/// A VMI of a replica set has a name by chance: the set's counts.
fn of_set(row: &Value) -> &str {
    let set = row.text("/owner/kind") == "VirtualMachineInstanceReplicaSet";
    row.text(if set { "/owner/name" } else { "/name" })
}

/// The workload in a pod's name: workloads of scenarios have no dash in theirs.
fn workload(pod: &str) -> &str {
    pod.split('-').next().unwrap_or(pod)
}

/// A word of a line, with the workload in place of the pod, and a migration without the end of its name.
fn short(word: &str) -> String {
    match word.rsplit_once('/') {
        Some((before, pod)) if !before.ends_with("kubevirt.io") || before.contains("migration") => {
            format!("{before}/{}", workload(pod))
        }
        _ => word.to_owned(),
    }
}

fn row_of(what: &str, name: &str, row: &Value) -> String {
    format!("{what} {}/{name} {} {}", row.text("/namespace"), row.text("/outcome"), row.text("/cause"))
}
