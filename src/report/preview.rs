//! The table of `--dry-run`: what a drain would do to each VM and pod, why, and with which exit code it would end. Pure.

use std::fmt::Write as _;

use super::groups;
use super::style::{Label, Line, Mark};
use super::table::vm_table;
use super::text::{agree, plural, reason_row};
use super::words::vm_on_drain;
use crate::event::ServerInfo;
use crate::exit::ExitCode;
use crate::outcome::{Cause, NodeReport, PodOutcome, PodRow, Verdict, VmOutcome, VmRow};

/// What the table is made of.
#[derive(Debug, Clone, Copy)]
pub struct Preview<'a> {
    /// The servers.
    pub server: &'a ServerInfo,
    /// One report a node, in order.
    pub nodes: &'a [NodeReport],
    /// What was done besides the forecast.
    pub notes: &'a [String],
    /// Warnings that belong to no single node.
    pub warnings: &'a [String],
    /// Exit code that the same command would have without `--dry-run`.
    pub exit_code: u8,
    /// Columns of the terminal; without it nothing is wrapped.
    pub width: Option<usize>,
}

/// The preview as lines.
pub fn preview(p: &Preview<'_>) -> Vec<Line> {
    let names: Vec<&str> = p.nodes.iter().map(|n| n.name.as_str()).collect();
    let mut lines = vec![
        Line::new()
            .with(Label::Heading, format!("Preview of draining {}", names.join(", ")))
            .with(Label::Plain, " (nothing was changed)"),
    ];
    let mut facts = server_words(p.server);
    if let [node] = p.nodes {
        let _ = write!(facts, " · {}", size(node, p.server.kubevirt.is_some()));
    }
    lines.extend(reason_row(Line::new(), &facts, None, p.width));
    lines.extend(p.notes.iter().flat_map(|note| reason_row(Line::new(), note, None, p.width)));
    for node in p.nodes {
        if p.nodes.len() > 1 {
            let size = size(node, p.server.kubevirt.is_some());
            let (label, verdict) = verdict_words(node.verdict);
            lines.push(Line::new());
            lines.push(
                Line::new()
                    .with(Label::Heading, format!("Node {}", node.name))
                    .with(Label::Plain, " · ")
                    .with(label, verdict)
                    .with(Label::Plain, format!(" · {size}")),
            );
        }
        lines.extend(section(node, p.width));
    }
    let told: Vec<String> = p.nodes.iter().flat_map(|n| &n.warnings).chain(p.warnings).cloned().collect();
    lines.extend(warnings(&told, p.width));
    lines.push(Line::new());
    lines.extend(ending(p));
    lines
}

/// The warnings, under an empty line.
pub(super) fn warnings(warnings: &[String], width: Option<usize>) -> Vec<Line> {
    let head = || Line::new().with(Label::Caution, "Warning: ");
    let lines = warnings.iter().flat_map(|text| reason_row(head(), text, None, width));
    let blank = (!warnings.is_empty()).then(Line::new);
    blank.into_iter().chain(lines).collect()
}

/// `context prod · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible`.
pub fn server_words(server: &ServerInfo) -> String {
    let context =
        server.context.as_ref().map_or_else(|| "in-cluster credentials".to_owned(), |c| format!("context {c}"));
    match (&server.kubevirt, &server.kubernetes) {
        (Some(version), _) => {
            let strategy = server.eviction_strategy.as_deref().unwrap_or("unset or unknown");
            format!("{context} · KubeVirt {version}, cluster evictionStrategy {strategy}")
        }
        (None, Some(version)) => format!("{context} · Kubernetes {version}"),
        (None, None) => context,
    }
}

/// `7 VMs, 15 pods, cordoned already`.
fn size(node: &NodeReport, kubevirt: bool) -> String {
    let mut parts = Vec::new();
    if kubevirt || !node.vms.is_empty() {
        parts.push(plural(node.vms.len(), "VM", "VMs"));
    }
    let (one, many) = if node.vms.is_empty() { ("pod", "pods") } else { ("other pod", "other pods") };
    parts.push(plural(node.pods.len(), one, many));
    if node.cordoned_before {
        parts.push("cordoned already".to_owned());
    }
    parts.join(", ")
}

/// The tables of one node.
fn section(node: &NodeReport, width: Option<usize>) -> Vec<Line> {
    let mut lines = Vec::new();
    if !node.vms.is_empty() {
        lines.push(Line::new());
        lines.extend(vm_table(&node.vms, ("ON DRAIN", vm_on_drain), width));
    }
    let of = |outcome: PodOutcome| node.pods.iter().filter(move |p| p.outcome == outcome);
    let order = [PodOutcome::Refused, PodOutcome::Blocks, PodOutcome::Waits];
    let mut groups: Vec<groups::Group> = order.into_iter().flat_map(|o| groups::pods(of(o))).collect();
    let noted = groups::pods(node.pods.iter().filter(|p| is_noted(p)));
    groups.extend(noted.into_iter().map(|mut group| {
        group.mark = Mark::Down;
        group
    }));
    if !node.pods.is_empty() {
        lines.push(Line::new());
    }
    lines.extend(groups.iter().flat_map(|g| g.sentence(0, width)));
    let folded = folded_words(&node.pods);
    if !folded.is_empty() {
        lines.push(Line::plain("  ").with(Label::Faint, folded));
    }
    lines
}

/// True for a pod that goes, but not without something to be said about it.
fn is_noted(pod: &PodRow) -> bool {
    let noted = [
        Cause::Returned,
        Cause::BoundToNode,
        Cause::LocalData,
        Cause::Unmanaged,
        Cause::OrphanedDaemonSetPod,
        Cause::Finalizer,
    ];
    pod.outcome == PodOutcome::Evicts && pod.cause.is_some_and(|cause| noted.contains(&cause))
}

/// The pods that need no line of their own, counted: `12 pods are evicted, 3 stay (2 DaemonSet, 1 static)`.
fn folded_words(pods: &[PodRow]) -> String {
    let count = |outcome: PodOutcome| pods.iter().filter(|p| p.outcome == outcome).count();
    let mut parts = Vec::new();
    let noted = pods.iter().filter(|p| is_noted(p)).count();
    let evicted = count(PodOutcome::Evicts) - noted;
    let more = if noted > 0 { ("more pod", "more pods") } else { ("pod", "pods") };
    if evicted > 0 {
        parts.push(format!(
            "{} {} evicted{}",
            plural(evicted, more.0, more.1),
            agree(evicted, "is", "are"),
            paces(pods, evicted)
        ));
    }
    parts.extend(groups::staying(pods, evicted == 0));
    let left_out = count(PodOutcome::NotSelected);
    if left_out > 0 {
        parts.push(format!("{left_out} {} not selected", agree(left_out, "is", "are")));
    }
    parts.join(", ")
}

/// `, 1 at a time (budget load/web)`, or ` (40 of them 1 at a time: …)`: pods that a budget lets go one by one.
fn paces(pods: &[PodRow], evicted: usize) -> String {
    let mut paces: Vec<(&str, usize)> = Vec::new();
    let slow = |p: &&PodRow| p.outcome == PodOutcome::Evicts && p.because.contains(" at a time (budget ");
    for pod in pods.iter().filter(slow) {
        match paces.iter_mut().find(|(because, _)| *because == pod.because) {
            Some((_, n)) => *n += 1,
            None => paces.push((&pod.because, 1)),
        }
    }
    let bare = |because: &str| because.replace(" (budget ", ": budget ").trim_end_matches(')').to_owned();
    match paces.as_slice() {
        [] => String::new(),
        [(because, n)] if *n == evicted => format!(", {because}"),
        several => {
            let said: Vec<String> = several.iter().map(|(why, n)| format!("{n} of them {}", bare(why))).collect();
            format!(" ({})", said.join(", "))
        }
    }
}

/// What stands in the way in numbers, what a flag would change, and the exit code.
fn ending(p: &Preview<'_>) -> Vec<Line> {
    let vms = || p.nodes.iter().flat_map(|n| &n.vms);
    let pods = || p.nodes.iter().flat_map(|n| &n.pods);
    let mut lines = Vec::new();

    let blocked_vms: Vec<&VmRow> = vms().filter(|v| v.is_blocked()).collect();
    let blocked_pods: Vec<&PodRow> = pods().filter(|p| p.outcome == PodOutcome::Blocks).collect();
    if !blocked_vms.is_empty() || !blocked_pods.is_empty() {
        let needs: Vec<&[&str]> = blocked_vms
            .iter()
            .map(|v| v.needs.as_slice())
            .chain(blocked_pods.iter().map(|p| p.needs.as_slice()))
            .collect();
        let mut text = format!("{}.", things(blocked_vms.len(), blocked_pods.len()));
        for (flags, left) in with_flags(&needs) {
            let left = if left == 0 { "none".to_owned() } else { left.to_string() };
            let _ = write!(text, " With {}: {left} blocked.", flags.join(" "));
        }
        lines.extend(reason_row(Line::new().with(Label::Bad, "Blocked: "), &text, None, p.width));
    }

    let refused_vms = vms().filter(|v| v.outcome != VmOutcome::Blocks && !v.needs.is_empty());
    let refused_pods = pods().filter(|p| p.outcome == PodOutcome::Refused);
    let refused = refusals(refused_vms.map(|v| &v.needs), refused_pods.map(|p| &p.needs));
    if !refused.is_empty() {
        lines.extend(reason_row(Line::new().with(Label::Bad, "Refused: "), &format!("{refused}."), None, p.width));
    }

    if p.exit_code == 0 {
        let waiting_vms = vms().filter(|v| v.outcome == VmOutcome::Waits).count();
        let waiting_pods = pods().filter(|p| p.outcome == PodOutcome::Waits).count();
        let waiting = things(waiting_vms, waiting_pods);
        let words = if waiting.is_empty() {
            "Nothing stands in the way.".to_owned()
        } else {
            format!("Nothing blocks; {waiting} will take some time.")
        };
        lines.push(Line::new().with(Label::Good, words));
        lines.push(Line::plain("Exit code of the drain: ").with(Label::Good, "0"));
        return lines;
    }
    let code = Line::plain("Exit code of the drain: ").with(Label::Bad, format!("{} ", p.exit_code));
    lines.extend(reason_row(code, &format!("({})", ExitCode::from_code(p.exit_code).meaning()), None, p.width));
    lines
}

/// What a forecast says of a node, in a word.
fn verdict_words(verdict: Verdict) -> (Label, &'static str) {
    match verdict {
        Verdict::Clear | Verdict::Drained | Verdict::Restarted => (Label::Good, "clear"),
        Verdict::Refused => (Label::Bad, "refused"),
        Verdict::Blocked | Verdict::Timeout | Verdict::Interrupted | Verdict::Failed | Verdict::NotStarted => {
            (Label::Bad, "blocked")
        }
    }
}

/// `1 VM without --allow-vm-down, 6 pods without --force`.
fn refusals<'a>(
    vms: impl Iterator<Item = &'a Vec<&'static str>>,
    pods: impl Iterator<Item = &'a Vec<&'static str>>,
) -> String {
    let mut sets: Vec<(&[&'static str], usize, usize)> = Vec::new();
    for (needs, vm, pod) in vms.map(|needs| (needs, 1, 0)).chain(pods.map(|needs| (needs, 0, 1))) {
        match sets.iter_mut().find(|(set, _, _)| *set == needs.as_slice()) {
            Some((_, vms, pods)) => {
                *vms += vm;
                *pods += pod;
            }
            None => sets.push((needs, vm, pod)),
        }
    }
    let without = |set: &[&str]| if set.is_empty() { String::new() } else { format!(" without {}", set.join(" ")) };
    let said = sets.iter().map(|(set, vms, pods)| format!("{}{}", things(*vms, *pods), without(set)));
    said.collect::<Vec<_>>().join(", ")
}

/// `3 VMs, 1 pod`, without what there is none of.
fn things(vms: usize, pods: usize) -> String {
    let counts = [(vms, "VM", "VMs"), (pods, "pod", "pods")];
    let said = counts.into_iter().filter(|(n, _, _)| *n > 0).map(|(n, one, many)| plural(n, one, many));
    said.collect::<Vec<_>>().join(", ")
}

/// For each growing set of flags that would clear something: how many items would still block with it.
pub(super) fn with_flags(needs: &[&[&'static str]]) -> Vec<(Vec<&'static str>, usize)> {
    let mut sets: Vec<&[&'static str]> = needs.iter().copied().filter(|n| !n.is_empty()).collect();
    sets.sort_by_key(|set| (set.len(), set.to_vec()));
    sets.dedup();
    let mut flags: Vec<&'static str> = Vec::new();
    let mut steps = Vec::new();
    for set in sets {
        flags = union([flags.as_slice(), set]);
        let cleared = needs.iter().filter(|n| !n.is_empty() && n.iter().all(|f| flags.contains(f))).count();
        steps.push((flags.clone(), needs.len() - cleared));
    }
    steps.dedup_by(|a, b| a.0 == b.0);
    steps
}

/// All flags of some sets, each once, in their first order.
fn union<'a>(sets: impl IntoIterator<Item = &'a [&'static str]>) -> Vec<&'static str> {
    let mut all = Vec::new();
    for flag in sets.into_iter().flatten() {
        if !all.contains(flag) {
            all.push(*flag);
        }
    }
    all
}
