//! Consent: what flags and one answer allow, and what a plan looks like once that is settled.
//!
//! | question possible | `--restart-stale` | `--allow-vm-down` | S | SD | E |
//! |---|---|---|---|---|---|
//! | yes | unset, ask | no / yes | ask | ask | ask / evict |
//! | yes | always | no / yes | restart | ask / restart | ask / evict |
//! | any | never | no | stays | stays | ask, or without a terminal refused |
//! | any | never | yes | stays | stays | evict |
//! | no | unset | no / yes | stays | stays | refused / evict |
//! | no | ask | any | refused | refused | refused |
//! | no | always | no / yes | restart | stays / restart | refused / evict |
//!
//! S, SD and E are the kinds of [`ConsentKind`]. What stays blocks and is left alone; what is refused stops the whole
//! command before anything is changed.

use std::collections::BTreeMap;

use super::{ConsentKind, NodePlan, Plan, VmAction, VmItem};
use crate::facts::Key;
use crate::forecast::words::{THEN_AGAIN, THEN_RESTART};
use crate::outcome::{Cause, PodOutcome, VmOutcome};

/// `--restart-stale`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RestartStale {
    /// Not given: ask where a question is possible, else never.
    #[default]
    Unset,
    /// `ask`.
    Ask,
    /// `always`, or the bare flag.
    Always,
    /// `never`.
    Never,
}

/// What the command line says about consent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConsentOptions {
    /// True if a question can be asked: stdin and stderr are terminals, and neither `--no-input` nor `--dry-run` is given.
    pub question_possible: bool,
    /// `--restart-stale`.
    pub restart_stale: RestartStale,
    /// `--allow-vm-down`.
    pub allow_vm_down: bool,
}

/// One cell of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// The flags allow it.
    Allowed,
    /// It takes a `y`.
    Ask,
    /// It is left alone and blocks.
    Stays,
    /// The whole command is refused.
    Refused,
}

/// Looks the table up.
pub fn cell(kind: ConsentKind, options: &ConsentOptions) -> Cell {
    let ask_or = |other| if options.question_possible { Cell::Ask } else { other };
    match (options.restart_stale, kind) {
        (RestartStale::Ask, _) if !options.question_possible => Cell::Refused,
        (_, ConsentKind::EvictDown) if options.allow_vm_down => Cell::Allowed,
        (_, ConsentKind::EvictDown) => ask_or(Cell::Refused),
        (RestartStale::Never, _) => Cell::Stays,
        (RestartStale::Always, kind) if kind == ConsentKind::Restart || options.allow_vm_down => Cell::Allowed,
        _ => ask_or(Cell::Stays),
    }
}

/// What may be done: classes by flags, single VMIs by a `y`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consent {
    options: ConsentOptions,
    asked: BTreeMap<String, ConsentKind>,
}

impl Consent {
    /// What the flags alone allow.
    pub fn by_flags(options: ConsentOptions) -> Self {
        Self { options, asked: BTreeMap::new() }
    }

    /// Adds a `y` to a question: it counts for the VMIs shown, and for no more than was shown.
    #[must_use]
    pub fn with_yes(mut self, question: &Question) -> Self {
        self.asked.extend(question.asked().map(|vm| (vm.vmi_uid.clone(), vm.kind)));
        self
    }

    /// True if this VMI may be treated like that. Who agreed to a restart that leaves a VM down agreed to one that does
    /// not.
    pub fn allows(&self, kind: ConsentKind, vmi_uid: &str) -> bool {
        cell(kind, &self.options) == Cell::Allowed
            || self.asked.get(vmi_uid).is_some_and(|shown| {
                *shown == kind || (kind == ConsentKind::Restart && *shown == ConsentKind::RestartDown)
            })
    }

    /// Settles one item that was forecast again after the cordon: without consent, or with a flag missing for its data, it
    /// is left alone and blocks. True if its action may be done.
    pub fn apply(&self, item: &mut VmItem) -> bool {
        say_again(item, self.options);
        if let Some(kind) = item.consent.filter(|kind| !self.allows(*kind, &item.vmi_uid)) {
            deny(item, kind, Cell::Stays, self.options);
            return false;
        }
        !refuse_data_loss(item)
    }
}

/// One VM in a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionVm {
    /// Its node.
    pub node: String,
    /// Its name.
    pub vm: Key,
    /// UID of its VMI.
    pub vmi_uid: String,
    /// The reason in one clause.
    pub because: String,
    /// Volumes whose data ends with it.
    pub data_loss: Vec<String>,
    /// What is asked for; `None` for what happens (or stays) anyway.
    pub asks: Option<ConsentKind>,
}

/// A VM that a `y` covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedVm {
    /// UID of its VMI.
    pub vmi_uid: String,
    /// What is asked for.
    pub kind: ConsentKind,
}

/// The one question of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// Nodes, in order.
    pub nodes: Vec<String>,
    /// VMs that will be restarted and run elsewhere.
    pub restarted: Vec<QuestionVm>,
    /// VMs that will not run afterwards by themselves.
    pub not_running: Vec<QuestionVm>,
    /// VMs that stay and block whatever is answered.
    pub blocking: Vec<QuestionVm>,
}

impl Question {
    /// The VMs that the answer decides about.
    pub fn asked(&self) -> impl Iterator<Item = AskedVm> + '_ {
        self.restarted
            .iter()
            .chain(&self.not_running)
            .filter_map(|vm| vm.asks.map(|kind| AskedVm { vmi_uid: vm.vmi_uid.clone(), kind }))
    }
}

/// Why the command is refused before anything is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Node; `None` where it is about all of them.
    pub node: Option<String>,
    /// VM or pod as `namespace/name`; `None` where it is about none.
    pub object: Option<String>,
    /// Whether that is a VM.
    pub is_vm: bool,
    /// Class of the reason.
    pub cause: Cause,
    /// In words.
    pub because: String,
    /// Flags that would change it.
    pub needs: Vec<&'static str>,
}

/// What settling a plan came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Nothing more is needed.
    Go,
    /// Ask this; a `y` goes on with [`grant`], anything else with [`decline`].
    Ask(Question),
    /// Refused (exit 4): nothing of it may be done, on no node.
    Refuse(Vec<Refusal>),
}

/// Applies the flags to a plan: what stays is rewritten to `blocks`, what is refused is named.
///
/// While a question is open, the VMs that it asks about read as they will be after a `y`.
pub fn settle(plan: &mut Plan, options: &ConsentOptions) -> Decision {
    let mut pending: Vec<(usize, usize)> = Vec::new();
    for (n, node) in plan.nodes.iter_mut().enumerate() {
        for (v, item) in node.vms.iter_mut().enumerate() {
            say_again(item, *options);
            match item.consent.map(|kind| (kind, cell(kind, options))) {
                Some((kind, cell @ (Cell::Stays | Cell::Refused))) => deny(item, kind, cell, *options),
                Some((_, Cell::Ask)) => {
                    if !refuse_data_loss(item) {
                        pending.push((n, v));
                    }
                }
                Some((_, Cell::Allowed)) | None => {
                    refuse_data_loss(item);
                }
            }
        }
    }
    plan.nodes.iter_mut().for_each(NodePlan::drop_idle_warnings);
    let refusals = refusals(plan);
    if !refusals.is_empty() {
        for (n, v) in pending {
            let item = &mut plan.nodes[n].vms[v];
            if let Some(kind) = item.consent {
                deny(item, kind, Cell::Stays, *options);
            }
        }
        return Decision::Refuse(refusals);
    }
    if pending.is_empty() { Decision::Go } else { Decision::Ask(question(plan, *options)) }
}

/// Rewrites an item to what an eviction alone would come to: a VM that only a restart could move blocks. Nothing is
/// asked or refused for want of consent, since nothing is done.
pub fn as_evicted(item: &mut VmItem) {
    if let Some(kind @ (ConsentKind::Restart | ConsentKind::RestartDown)) = item.consent {
        deny(item, kind, Cell::Stays, ConsentOptions::default());
    }
}

/// Applies a `y`: what the question did not show stays and blocks.
pub fn grant(plan: &mut Plan, question: &Question, options: &ConsentOptions) -> Consent {
    let consent = Consent::by_flags(*options).with_yes(question);
    for item in items(plan) {
        consent.apply(item);
    }
    plan.nodes.iter_mut().for_each(NodePlan::drop_idle_warnings);
    consent
}

/// Applies any other answer: the VMs that it was about are refused, and so is the command.
pub fn decline(plan: &mut Plan, question: &Question, options: &ConsentOptions) {
    let asked: Vec<AskedVm> = question.asked().collect();
    for item in items(plan).filter(|i| asked.iter().any(|a| a.vmi_uid == i.vmi_uid)) {
        if let Some(kind) = item.consent {
            deny(item, kind, Cell::Refused, *options);
        }
    }
}

fn items(plan: &mut Plan) -> impl Iterator<Item = &mut VmItem> {
    plan.nodes.iter_mut().flat_map(|n| &mut n.vms)
}

/// The flags that allow a kind.
fn flags(kind: ConsentKind) -> &'static [&'static str] {
    match kind {
        ConsentKind::Restart => &["--restart-stale"],
        ConsentKind::RestartDown => &["--restart-stale", "--allow-vm-down"],
        ConsentKind::EvictDown => &["--allow-vm-down"],
    }
}

/// True for a flag that is on the command line already: nobody need add it.
fn is_given(flag: &str, options: ConsentOptions) -> bool {
    match flag {
        "--restart-stale" => options.restart_stale == RestartStale::Always,
        "--allow-vm-down" => options.allow_vm_down,
        _ => false,
    }
}

/// A flag that is given need not be added.
fn say_again(item: &mut VmItem, options: ConsentOptions) {
    if options.restart_stale == RestartStale::Always
        && let Some(remedy) = &mut item.row.remedy
    {
        *remedy = remedy.replace(THEN_RESTART, THEN_AGAIN);
    }
}

/// Rewrites an item that may not have its way. What an eviction would refuse anyway keeps that cause; only a refused
/// command, or an eviction that nobody allowed, is for want of consent.
fn deny(item: &mut VmItem, kind: ConsentKind, cell: Cell, options: ConsentOptions) {
    if item.action == VmAction::Leave {
        return;
    }
    let missing: Vec<&str> = flags(kind).iter().filter(|flag| !is_given(flag, options)).copied().collect();
    // Where `ask` refuses it, all of them are given, and still they are what it takes.
    let mut needs = if missing.is_empty() { flags(kind).to_vec() } else { missing };
    needs.extend(item.row.needs.iter().filter(|flag| !needs.contains(flag)).copied().collect::<Vec<_>>());
    item.action = VmAction::Leave;
    item.budgets.clear();
    item.row.outcome = VmOutcome::Blocks;
    let evicted = kind == ConsentKind::EvictDown;
    item.row.cause =
        Some(if evicted || cell == Cell::Refused { Cause::ConsentMissing } else { Cause::VmNotMigratable });
    item.row.waiting_helps = Some(false);
    item.row.remedy = Some(format!("add {}", needs.join(" ")));
    item.row.needs = needs;
}

/// True, and the item rewritten, if its guest would stop and data would be lost that no flag gives up.
fn refuse_data_loss(item: &mut VmItem) -> bool {
    let stops = matches!(item.action, VmAction::ShutDown | VmAction::Restart);
    if !stops || item.row.needs.is_empty() {
        return false;
    }
    item.action = VmAction::Leave;
    item.budgets.clear();
    item.row.outcome = VmOutcome::Blocks;
    item.row.cause = Some(Cause::LocalData);
    item.row.waiting_helps = Some(false);
    item.row.because = format!("{}; the data on {} would be lost", item.row.because, item.row.data_loss.join(", "));
    item.row.remedy = Some(format!("add {}", item.row.needs.join(" ")));
    true
}

fn refusals(plan: &Plan) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    if plan.nowhere_to_go {
        refusals.push(Refusal {
            node: None,
            object: None,
            is_vm: false,
            cause: Cause::NoMigrationTarget,
            because: format!("no open node is left for the VMs that must move: {}", plan.closed_nodes),
            needs: Vec::new(),
        });
    }
    for node in &plan.nodes {
        let vms = node.vms.iter().filter(|v| matches!(v.row.cause, Some(Cause::ConsentMissing | Cause::LocalData)));
        refusals.extend(vms.filter(|v| v.row.is_blocked()).map(|v| Refusal {
            node: Some(node.node.clone()),
            object: Some(v.row.display_name()),
            is_vm: true,
            cause: v.row.cause.unwrap_or(Cause::ConsentMissing),
            because: v.row.because.clone(),
            needs: v.row.needs.clone(),
        }));
        let pods = node.pods.iter().filter(|p| p.row.outcome == PodOutcome::Refused);
        refusals.extend(pods.map(|p| Refusal {
            node: Some(node.node.clone()),
            object: Some(p.row.display_name()),
            is_vm: false,
            cause: p.row.cause.unwrap_or(Cause::Unmanaged),
            because: p.row.because.clone(),
            needs: p.row.needs.clone(),
        }));
    }
    refusals
}

fn question(plan: &Plan, options: ConsentOptions) -> Question {
    let mut question = Question { nodes: plan.nodes.iter().map(|n| n.node.clone()).collect(), ..Question::default() };
    for node in &plan.nodes {
        for item in &node.vms {
            let group = match item.row.outcome {
                VmOutcome::Restarts => &mut question.restarted,
                VmOutcome::StaysOff | VmOutcome::DownUntilNode => &mut question.not_running,
                VmOutcome::Blocks => &mut question.blocking,
                VmOutcome::Migrates
                | VmOutcome::Returns
                | VmOutcome::Waits
                | VmOutcome::Replaced
                | VmOutcome::Gone
                | VmOutcome::Lost
                | VmOutcome::Down
                | VmOutcome::Pending => continue,
            };
            group.push(QuestionVm {
                node: node.node.clone(),
                vm: item.vmi.clone(),
                vmi_uid: item.vmi_uid.clone(),
                because: item.row.because.clone(),
                data_loss: item.row.data_loss.clone(),
                asks: item.consent.filter(|kind| item.action != VmAction::Leave && cell(*kind, &options) == Cell::Ask),
            });
        }
    }
    question
}
