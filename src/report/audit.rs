//! What people read of `audit`: one table of what needs a look, counts for the rest, and what to type. The fold is pure.

use super::human::{Output, Stdout};
use super::preview::server_words;
use super::style::{Label, Line, Mark};
use super::table::table;
use super::text::{agree, plural, reason_row};
use super::words::{stop_reason, vm_on_drain};
use super::{Fold, Written, remedies};
use crate::event::{DrainEvent, EventKind, ServerInfo};
use crate::outcome::{
    AuditCounts, AuditNode, AuditReport, AuditRow, AuditSummary, Hold, UpdateEffect, VmOutcome, VmRow,
};

/// How it is told.
#[derive(Debug, Clone, Default)]
pub struct AuditOptions {
    /// What stdout is for.
    pub stdout: Stdout,
    /// Namespace that is looked at; `None` for all.
    pub namespace: Option<String>,
    /// Labels that the VMs must have.
    pub selector: Option<String>,
    /// Columns of stdout, where it is a terminal.
    pub stdout_width: Option<usize>,
    /// Columns of stderr, where it is a terminal.
    pub stderr_width: Option<usize>,
}

/// The fold.
#[derive(Debug)]
pub struct AuditHuman {
    options: AuditOptions,
    server: ServerInfo,
}

/// Reporter that writes what the fold gives.
pub type AuditPlain = Written<AuditHuman>;

impl AuditHuman {
    /// A fold that has seen nothing.
    pub fn new(options: AuditOptions) -> Self {
        Self { options, server: ServerInfo::default() }
    }
}

impl Fold for AuditHuman {
    fn event(&mut self, event: &DrainEvent) -> Output {
        let mut output = Output::default();
        if let EventKind::Connected { server, .. } = &event.kind {
            self.server.clone_from(server);
        } else if let EventKind::Audited { report } = &event.kind {
            if self.options.stdout != Stdout::Taken {
                output.stdout = page(&self.server, report, &self.options);
            }
        } else if let EventKind::Noted { warning: true, text } = &event.kind {
            let head = Line::new().with(Label::Caution, "Warning: ");
            output.stderr.extend(reason_row(head, text, None, self.options.stderr_width));
        } else if let EventKind::Stopped { reason } = &event.kind {
            let text = format!("{}: the audit is not complete", stop_reason(*reason));
            output.stderr.push(Line::new().with(Label::Caution, "Warning: ").with(Label::Plain, text));
        } else if let EventKind::Ended { error, hints, .. } = &event.kind {
            output.stderr.extend(error.iter().map(|e| Line::new().with(Label::Bad, "error: ").with(Label::Plain, e)));
            let hint = |hint: &String| Line::new().with(Label::Heading, "hint: ").with(Label::Plain, hint);
            output.stderr.extend(hints.iter().map(hint));
        }
        output
    }
}

fn page(server: &ServerInfo, report: &AuditReport, options: &AuditOptions) -> Vec<Line> {
    let width = options.stdout_width;
    let summary = &report.summary;
    if server.kubevirt.is_none() {
        return vec![Line::plain(format!("{} · KubeVirt is not installed, so there are no VMs", server_words(server)))];
    }
    if summary.counts.vms == 0 {
        let mut text = format!("{} · no VM runs{}", server_words(server), scope_words(options));
        for (n, what) in [(summary.stopped, stopped(summary.stopped)), (summary.starting, starting(summary.starting))] {
            if n > 0 {
                text.push_str("; ");
                text.push_str(&what);
            }
        }
        return reason_row(Line::new(), &text, None, width);
    }
    let size = format!(
        "{} on {}{} (nothing was changed)",
        plural(summary.counts.vms, "VM", "VMs"),
        plural(report.nodes.len(), "node", "nodes"),
        scope_words(options)
    );
    let mut lines = reason_row(Line::new(), &server_words(server), None, width);
    lines.push(Line::plain(size));
    lines.extend(attention(&report.nodes, width));
    lines.push(Line::new());
    lines.extend(counted(summary, width));
    lines.extend(restarts(report, options));
    lines.extend(price(report, width));
    lines
}

/// ` in namespace shop with labels app=db`; nothing for all.
fn scope_words(options: &AuditOptions) -> String {
    let namespace = options.namespace.as_ref().map(|ns| format!(" in namespace {ns}"));
    let labels = options.selector.as_ref().map(|labels| format!(" with labels {labels}"));
    namespace.into_iter().chain(labels).collect()
}

/// The VMs that need a look, one row each: what blocks first, and of that what a restart helps.
fn attention(nodes: &[AuditNode], width: Option<usize>) -> Vec<Line> {
    let shown =
        |row: &&AuditRow| matches!(row.vm.outcome, VmOutcome::Blocks | VmOutcome::StaysOff | VmOutcome::DownUntilNode);
    let order = |row: &AuditRow| match (row.hold(), row.vm.outcome) {
        (Some(Hold::Stale), _) => 0,
        (Some(Hold::Template), _) => 1,
        (Some(Hold::Cluster), _) => 2,
        (Some(Hold::Other), _) => 3,
        (None, VmOutcome::StaysOff) => 4,
        (None, _) => 5,
    };
    let mut rows: Vec<&AuditRow> = nodes.iter().flat_map(|node| &node.vms).filter(shown).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    rows.sort_by_key(|row| (order(row), row.vm.display_name()));
    // The commands that restart stale VMs stand below, together.
    let remedy = |row: &AuditRow| remedies::of_vm(&row.vm).filter(|_| row.restart_command.is_none());
    let rows: Vec<(&VmRow, Option<String>)> = rows.into_iter().map(|row| (&row.vm, remedy(row))).collect();
    let mut lines = vec![Line::new()];
    lines.extend(table(&rows, ("ON DRAIN", vm_on_drain), true, width));
    lines
}

/// All of them in numbers.
fn counted(summary: &AuditSummary, width: Option<usize>) -> Vec<Line> {
    let c = &summary.counts;
    let marked = [
        (Mark::Blocks, c.blocked, blocked_words(c)),
        (Mark::Down, c.stays_off, "would be shut down and stay off: somebody must start them".to_owned()),
        (Mark::Down, c.down_until_node, "would be down until their node is back".to_owned()),
        (Mark::Down, c.returns, "would be shut down and run again elsewhere".to_owned()),
        (Mark::Waits, c.waits_for_owner, "would wait for the controllers that own them (External)".to_owned()),
        (Mark::Waits, c.waits, "would wait for something that passes (a start, a migration)".to_owned()),
        (Mark::Goes, c.migrates, "would migrate".to_owned()),
    ];
    let mut lines = Vec::new();
    for (mark, n, words) in marked.into_iter().filter(|(_, n, _)| *n > 0) {
        let words = if n == 1 { for_one(&words) } else { words };
        let text = format!("{} {words}", plural(n, "VM", "VMs"));
        lines.extend(reason_row(Line::marked(mark), &text, None, width));
    }
    let notes = [
        (summary.starting, starting(summary.starting)),
        (summary.stopped, stopped(summary.stopped)),
        (c.outdated, outdated(summary)),
        (c.unclear, unclear(c.unclear)),
    ];
    for (_, text) in notes.into_iter().filter(|(n, _)| *n > 0) {
        lines.extend(reason_row(Line::plain("  "), &text, None, width));
    }
    lines
}

fn for_one(words: &str) -> String {
    words
        .replace("start them", "start it")
        .replace("their node", "its node")
        .replace("the controllers that own them", "the controller that owns it")
}

/// `would block: 2 are stale (a restart helps), 1 is held by its VM template`.
fn blocked_words(c: &AuditCounts) -> String {
    let template = agree(c.blocked_by_template, "held by its VM template", "held by their VM templates");
    let parts = [
        (c.blocked_stale, "stale (a restart helps)"),
        (c.blocked_by_template, template),
        (c.blocked_by_cluster, "held by the cluster's evictionStrategy"),
        (c.blocked_otherwise, "held by something else"),
    ];
    let parts: Vec<(usize, &str)> = parts.into_iter().filter(|(n, _)| *n > 0).collect();
    let said: Vec<String> = match parts.as_slice() {
        [(n, words)] => vec![format!("{} {words}", agree(*n, "it is", "they are"))],
        several => several.iter().map(|(n, words)| format!("{n} {} {words}", agree(*n, "is", "are"))).collect(),
    };
    format!("would block: {}", said.join(", "))
}

fn starting(n: usize) -> String {
    format!("{} {} and {} no node yet", plural(n, "VM", "VMs"), agree(n, "starts", "start"), agree(n, "has", "have"))
}

fn stopped(n: usize) -> String {
    let gets = agree(n, "it gets its strategy", "they get their strategy");
    format!("{} {} stopped: {gets} at the next start", plural(n, "VM", "VMs"), agree(n, "is", "are"))
}

/// Who renews outdated launchers, and how.
fn outdated(summary: &AuditSummary) -> String {
    let n = summary.counts.outdated;
    let run = agree(n, "runs in a launcher that is", "run in launchers that are");
    let renews = agree(n, "renews it", "renews them");
    let by_itself = summary.workload_update.as_ref().map(|update| match update.methods.as_slice() {
        [] => "; KubeVirt does not by itself (its workloadUpdateMethods are empty)",
        ["LiveMigrate"] => "; KubeVirt itself migrates those that can (workloadUpdateMethods)",
        ["Evict"] => "; KubeVirt itself evicts those that let it (workloadUpdateMethods)",
        _ => "; KubeVirt itself migrates those that can and evicts the others (workloadUpdateMethods)",
    });
    format!(
        "{} {run} older than KubeVirt: a migration or a restart {renews}{}",
        plural(n, "VM", "VMs"),
        by_itself.unwrap_or_default()
    )
}

fn unclear(n: usize) -> String {
    let whose =
        agree(n, "its strategy, or the one that it would get,", "their strategy, or the one that they would get,");
    format!("{}: {whose} is unknown, so nobody can promise that a restart helps", plural(n, "VM", "VMs"))
}

/// What to type for the stale ones.
fn restarts(report: &AuditReport, options: &AuditOptions) -> Vec<Line> {
    let commands: Vec<&String> =
        report.nodes.iter().flat_map(|n| &n.vms).filter_map(|row| row.restart_command.as_ref()).collect();
    if commands.is_empty() {
        return Vec::new();
    }
    let n = commands.len();
    let mut all = "kubectl safe-drain restart-stale".to_owned();
    if let Some(namespace) = &options.namespace {
        all = format!("{all} -n {namespace}");
    }
    if let Some(selector) = &options.selector {
        all = format!("{all} -l '{selector}'");
    }
    let head = Line::new().with(Label::Heading, format!("{} stale: ", agree(n, "1 VM is", &format!("{n} VMs are"))));
    let (them, by_hand) = if n == 1 { ("it", "or by hand") } else { ("them", "or one by one") };
    let text = format!("`{all}` restarts {them} once you agree; {by_hand}:");
    let mut lines = vec![Line::new()];
    lines.extend(reason_row(head, &text, None, options.stdout_width));
    lines.extend(commands.into_iter().map(|command| Line::plain("  ").with(Label::Remedy, command)));
    lines
}

/// What a strategy that lets VMs be shut down costs at each update of KubeVirt. Nothing where KubeVirt evicts nothing.
fn price(report: &AuditReport, width: Option<usize>) -> Vec<Line> {
    let Some(update) = &report.summary.workload_update else { return Vec::new() };
    let rows = || report.nodes.iter().flat_map(|n| &n.vms);
    let shut = |effect: Option<UpdateEffect>| effect.is_some_and(UpdateEffect::is_shutdown);
    let now = rows().filter(|row| shut(row.update)).count();
    let later = rows().filter(|row| !shut(row.update) && shut(row.update_after_restart)).count();
    if now + later == 0 {
        return Vec::new();
    }
    let once = |n: usize| agree(n, "once it is restarted", "once they are restarted");
    let who = match (now, later) {
        (0, n) => format!("will shut down {} {}", plural(n, "VM", "VMs"), once(n)),
        (n, 0) => format!("shuts down {} that it does not migrate", plural(n, "VM", "VMs")),
        (n, m) => format!("shuts down {} that it does not migrate, and {m} more {}", plural(n, "VM", "VMs"), once(m)),
    };
    let off = Some(UpdateEffect::StaysOff);
    let stay = rows().filter(|row| row.update == off || row.update_after_restart == off).count();
    let off = match stay {
        0 => String::new(),
        n if n == now + later => agree(n, "; it stays off", "; they stay off").to_owned(),
        n => format!("; {n} of them {} off", agree(n, "stays", "stay")),
    };
    let text = format!(
        "each update of KubeVirt {who}, at most {} every {}{off} (method Evict in workloadUpdateStrategy of the KubeVirt \
         object)",
        update.batch_eviction_size, update.batch_eviction_interval
    );
    let head = Line::new().with(Label::Heading, "Price of a strategy that shuts VMs down: ");
    let mut lines = vec![Line::new()];
    lines.extend(reason_row(head, &text, None, width));
    lines
}
