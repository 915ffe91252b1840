//! What must hold for every run, whatever it is about.

use std::collections::{BTreeMap, BTreeSet};

use safe_drain::settings::{DrainOptions, OnAbort};
use safe_drain_sim::Json;
use serde_json::Value;

use super::{Outcome, secs};

pub(super) fn always(run: &Outcome, options: &DrainOptions) {
    if !options.dry_run.is_preview() {
        said_once(run);
    }
    document(run);
    if options.dry_run.is_preview() || matches!(run.exit, 2 | 4) {
        run.changed_nothing();
    }
    for node in run.document.list("/nodes") {
        node_is_consistent(run, node, options);
    }
    never_touched(run, options);
    in_time(run, options);
    events(run);
}

/// kubectl's lines come once per fact; two pods of one name, one after the other, are two.
fn said_once(run: &Outcome) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let lines =
        run.stdout.lines().filter(|l| l.contains(" evicted") || l.starts_with("evicting ") || l.ends_with("drained"));
    for line in lines {
        let times = seen.entry(line).or_default();
        *times += 1;
        let namesakes = run.rows("pods").iter().filter(|r| line.contains(&format!("/{}", r.text("/name")))).count();
        if *times > namesakes.max(1) {
            run.fail(&format!("said twice: {line}"));
        }
    }
}

fn document(run: &Outcome) {
    let d = &run.document;
    if d.int("/exitCode") != Some(i64::from(run.exit)) {
        run.fail("the document has another exit code");
    }
    let wrote = run.writes().iter().any(|r| (200..300).contains(&r.status));
    if wrote && !d.flag("/changed") {
        // Cordons that were taken back leave nothing changed.
        let taken_back = run.writes().iter().all(|r| r.method == "PATCH");
        if !taken_back {
            run.fail("the document says that nothing was changed");
        }
    }
    // The refusal of a launcher's eviction is what marks its VM.
    let marked = run.writes().iter().any(|r| r.status == 429 && r.path.contains("/pods/virt-launcher-"));
    // What got no answer may have been carried out.
    let unknown = run.writes().iter().any(|r| r.status == 0);
    if !wrote && !marked && !unknown && d.flag("/changed") {
        run.fail("the document says that something was changed");
    }
}

fn node_is_consistent(run: &Outcome, node: &Value, options: &DrainOptions) {
    let name = node.text("/name");
    let rows = || node.list("/vms").iter().chain(node.list("/pods"));
    let verdict = node.text("/verdict");
    for row in rows() {
        let outcome = row.text("/outcome");
        let untouched = outcome == "pending" && matches!(verdict, "refused" | "not-started");
        if row.text("/because").is_empty() && !untouched && !matches!(outcome, "evicts" | "not-selected" | "gone") {
            run.fail(&format!("a row without a reason: {row:#}"));
        }
        if options.dry_run.is_preview() {
            continue;
        }
        if outcome == "waits" && !matches!(verdict, "refused" | "not-started") && !matches!(run.exit, 4 | 6) {
            run.fail(&format!("a result that waits: {row:#}"));
        }
        if verdict == "drained" && matches!(outcome, "pending" | "blocks" | "waits") {
            run.fail(&format!("drained with {outcome}: {row:#}"));
        }
    }
    if verdict == "drained" && options.pod_selector.is_none() {
        let stays: BTreeSet<&str> = rows()
            .filter(|r| matches!(r.text("/outcome"), "stays" | "skipped" | "returned"))
            .map(|r| r.text("/uid"))
            .collect();
        for pod in run.after.list("Pod") {
            let daemon = pod.text("/metadata/ownerReferences/0/kind") == "DaemonSet";
            let mirror = !pod.annotation("kubernetes.io/config.mirror").is_empty();
            let over = matches!(pod.text("/status/phase"), "Succeeded" | "Failed");
            let tolerates =
                pod.list("/spec/tolerations").iter().any(|t| t.text("/operator") == "Exists" && !t.has("/key"));
            let came_back = |r: &&Value| r.text("/outcome") == "returned" && r.text("/because").contains(pod.name());
            let known = stays.contains(pod.uid()) || rows().any(|r| came_back(&r));
            if pod.text("/spec/nodeName") == name && !(daemon || mirror || over || tolerates || known) {
                run.fail(&format!("drained, and {} is still there", pod.name()));
            }
        }
    }
    if !options.dry_run.is_preview() && run.after.get("Node", "", name).is_some() && !matches!(run.exit, 2 | 6) {
        let cordoned = run.cordoned(name);
        if node.flag("/cordonedNow") != cordoned {
            run.fail(&format!("{name} is cordoned: {cordoned}, the document says the contrary"));
        }
    }
}

/// Launchers and VMIs are never deleted, hotplug and daemon pods never evicted, no pod accepted twice.
fn never_touched(run: &Outcome, options: &DrainOptions) {
    let undoes = options.on_abort == OnAbort::Cancel;
    let mut accepted: BTreeMap<String, usize> = BTreeMap::new();
    for r in &run.requests {
        let name = r.path.trim_end_matches("/eviction").rsplit('/').next().unwrap_or_default();
        let bad = (r.method == "DELETE"
            && (r.path.contains("virt-launcher") || r.path.contains("virtualmachineinstances")))
            || (r.method == "POST" && name.starts_with("hp-"))
            || (r.method == "PUT" && !(r.path.ends_with("/restart") || undoes && r.path.ends_with("/evacuate/cancel")))
            || (r.method == "DELETE" && !undoes && r.path.contains("virtualmachineinstancemigrations"));
        if bad {
            run.fail(&format!("must never be sent: {} {}", r.method, r.path));
        }
        if r.method != "POST" || !r.path.ends_with("/eviction") {
            continue;
        }
        let uid = r.body.as_ref().map(|b| b.text("/deleteOptions/preconditions/uid").to_owned()).unwrap_or_default();
        if uid.is_empty() {
            run.fail(&format!("an eviction without a UID: {}", r.path));
        }
        if let Some(warning) = &r.warning {
            run.fail(&format!("the server ignored something: {warning}"));
        }
        if !r.is_dry_run() && (200..300).contains(&r.status) {
            let n = accepted.entry(uid).or_default();
            *n += 1;
            if *n > 1 {
                run.fail(&format!("evicted again after it was accepted: {}", r.path));
            }
        }
    }
}

/// A node has its time, and two seconds to end; ten more where an aborted drain is undone.
fn in_time(run: &Outcome, options: &DrainOptions) {
    let nodes = u32::try_from(run.document.list("/nodes").len().max(1)).unwrap_or(1);
    let Some(first) = run.first_write() else { return };
    let undoing = if options.on_abort == OnAbort::Cancel { secs(10) } else { secs(0) };
    let limit = first + (options.timeout + undoing + secs(2)) * nodes;
    if run.ended > limit {
        run.fail(&format!("it ended at {:?}, allowed was {limit:?}", run.ended));
    }
}

fn events(run: &Outcome) {
    let numbers: Vec<u64> = run.events.iter().map(|e| e.seq).collect();
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    if numbers != expected {
        run.fail(&format!("events are not numbered in order: {numbers:?}"));
    }
    let ends = run.events.iter().filter(|e| matches!(e.kind, safe_drain::event::EventKind::Ended { .. })).count();
    if ends != 1 {
        run.fail(&format!("{ends} ends"));
    }
}
