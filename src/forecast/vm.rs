//! What a drain does to one VM, from the facts as they are.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::after::{After, after};
use super::budget::{self, BudgetForecast, PodBudgets};
use super::held::held;
use super::notes::note;
use super::restart::{bound_cause, in_place, restart};
use super::strategy::{Strategies, strategies};
use super::targets::{self, Hindrance, Search, Targets};
use super::words;
use crate::facts::{
    Demands, Index, Key, KubeVirtState, Migratable, MigrationState, NodeFacts, NodeReady, PodFacts, Strategy, VmFacts,
    VmVolumeSource, VmiFacts,
};
use crate::outcome::{Cause, VmOutcome};
use crate::plan::{ConsentKind, PlanOptions, VmAction};

/// How long LiveMigratable may be missing after the VMI is Scheduled before the VM counts as blocked.
pub const CONDITION_WAIT: SignedDuration = SignedDuration::from_mins(2);
/// virt-controller gives a node up when virt-handler's heartbeat is this old.
pub const HEARTBEAT_LIMIT: SignedDuration = SignedDuration::from_mins(5);

/// Facts about one VM on its node.
#[derive(Debug, Clone, Copy)]
pub struct VmContext<'a> {
    /// The cluster.
    pub index: &'a Index,
    /// The node.
    pub node: &'a str,
    /// The VMI.
    pub vmi: &'a VmiFacts,
    /// Its VM, where one owns it and could be read.
    pub vm: Option<&'a VmFacts>,
    /// Its launcher on the node.
    pub launcher: Option<&'a PodFacts>,
    /// What the command was told.
    pub options: &'a PlanOptions,
    /// The time.
    pub now: Timestamp,
}

/// The forecast. Before consent: what happens if it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmForecast {
    /// What to do.
    pub action: VmAction,
    /// Consent that it needs.
    pub consent: Option<ConsentKind>,
    /// What comes of it.
    pub outcome: VmOutcome,
    /// Class of the reason.
    pub cause: Option<Cause>,
    /// Whether waiting helps.
    pub waiting_helps: Option<bool>,
    /// Flags that the action needs and that are missing.
    pub needs: Vec<&'static str>,
    /// Volumes whose data ends with the launcher.
    pub data_loss: Vec<String>,
    /// The reason in one clause.
    pub because: String,
    /// What a human can type.
    pub remedy: Option<String>,
    /// More that is worth knowing.
    pub notes: Vec<String>,
    /// Budgets that the eviction must respect: only where it shuts the guest down.
    pub budgets: Vec<Key>,
}

impl VmForecast {
    pub(super) fn new(action: VmAction, outcome: VmOutcome, because: impl Into<String>) -> Self {
        Self {
            action,
            consent: None,
            outcome,
            cause: None,
            waiting_helps: None,
            needs: Vec::new(),
            data_loss: Vec::new(),
            because: because.into(),
            remedy: None,
            notes: Vec::new(),
            budgets: Vec::new(),
        }
    }

    pub(super) fn blocks(cause: Cause, because: impl Into<String>) -> Self {
        Self {
            cause: Some(cause),
            waiting_helps: Some(false),
            ..Self::new(VmAction::Leave, VmOutcome::Blocks, because)
        }
    }

    pub(super) fn waits(action: VmAction, cause: Cause, because: impl Into<String>) -> Self {
        Self { cause: Some(cause), waiting_helps: Some(true), ..Self::new(action, VmOutcome::Waits, because) }
    }

    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// Why nothing that happens on a node can be confirmed: it is not ready, or virt-handler is silent. An unknown condition
/// or heartbeat is no reason.
pub fn silent_node(node: &NodeFacts, now: Timestamp) -> Option<String> {
    if let NodeReady::No { reason, .. } = &node.ready {
        return Some(format!("the node is not ready ({reason}): nothing can confirm that the guest stopped"));
    }
    let age = node.heartbeat.map(|at| now.duration_since(at))?;
    (age > HEARTBEAT_LIMIT).then(|| {
        let age = words::duration(age.as_secs() / 60 * 60);
        format!("virt-handler has been silent for {age}: nothing can confirm that the guest stopped")
    })
}

/// True while a migration of the VMI exists that has not ended.
pub fn in_motion(index: &Index, vmi: &VmiFacts) -> bool {
    vmi.is_migrating() || index.migrations_of(&vmi.key).iter().any(|m| !m.is_final())
}

/// True while a migration that has not ended has this node as its target. A VMIM names its nodes only when it is over;
/// until then the VMI's own state of it does.
fn arrives(ctx: &VmContext<'_>) -> bool {
    let here = |target: &Option<String>| target.as_deref() == Some(ctx.node);
    let state = ctx.vmi.migration.as_ref();
    let of_state = |uid: &str| state.is_some_and(|s| s.migration_uid.as_deref() == Some(uid) && here(&s.target_node));
    (ctx.vmi.is_migrating() && state.is_some_and(|s| here(&s.target_node)))
        || ctx
            .index
            .migrations_of(&ctx.vmi.key)
            .iter()
            .any(|m| !m.is_final() && (here(&m.target_node) || of_state(&m.uid)))
}

/// Forecasts one VM. The first clause that fits decides.
pub fn forecast(ctx: &VmContext<'_>) -> VmForecast {
    let known = strategies(ctx.vmi, ctx.vm, ctx.index);
    let mut forecast = if ctx.options.in_place { in_place(ctx, &known) } else { decide(ctx, &known) };
    note(ctx, &known, &mut forecast);
    forecast
}

fn decide(ctx: &VmContext<'_>, known: &Strategies) -> VmForecast {
    let vmi = ctx.vmi;
    if let Some(elsewhere) = vmi.node.as_deref().filter(|n| *n != ctx.node) {
        let has_left = |m: &MigrationState| {
            m.source_node.as_deref() == Some(ctx.node) && m.target_node.as_deref() == Some(elsewhere)
        };
        if vmi.migration.as_ref().is_some_and(has_left) {
            let because = format!("it runs on {elsewhere} already; its old launcher here is ending");
            let migrates = VmForecast::new(VmAction::AwaitMigration, VmOutcome::Migrates, because);
            return VmForecast { cause: Some(Cause::VmEvacuating), waiting_helps: Some(true), ..migrates };
        }
        let because = format!("a migration of it from {elsewhere} to this node must end first");
        return VmForecast::waits(VmAction::AwaitMigration, Cause::VmMigrationTarget, because);
    }
    if let Some(why) = ctx.index.node(ctx.node).and_then(|n| silent_node(n, ctx.now)) {
        return VmForecast::blocks(Cause::NodeNotReady, why).remedy("bring the node back, or fence it and remove it");
    }
    let Some(launcher) = ctx.launcher else {
        let because = "KubeVirt has it on this node, but no launcher of it runs here";
        return VmForecast::waits(VmAction::AwaitCondition, Cause::ConditionMissing, because);
    };
    if vmi.deleting || launcher.deletion.is_some() {
        return leaving(ctx);
    }
    let Some(now) = &known.now else {
        let because = "its strategy is the cluster's, and KubeVirt's one configuration could not be read";
        return VmForecast::blocks(Cause::VmLookupFailed, because);
    };
    let marked = vmi.marked.as_deref() == Some(ctx.node);
    if *now == Strategy::External && (marked || !in_motion(ctx.index, vmi)) {
        return external(ctx);
    }
    if !marked && arrives(ctx) {
        let because = "the migration that brought it here has not ended";
        return VmForecast::waits(VmAction::AwaitMigration, Cause::VmMigrationTarget, because);
    }
    if in_motion(ctx.index, vmi) {
        return resume(ctx, marked, now);
    }
    match (now, &vmi.migratable) {
        (Strategy::LiveMigrate | Strategy::LiveMigrateIfPossible, Migratable::Missing) => missing(ctx),
        (Strategy::LiveMigrate | Strategy::LiveMigrateIfPossible, Migratable::Yes) => migrate(ctx, marked),
        (Strategy::LiveMigrate, Migratable::No { .. }) => refused(ctx, known),
        (Strategy::LiveMigrateIfPossible, Migratable::No { .. }) => shut_down(ctx, &words::not_migratable(vmi)),
        (Strategy::None | Strategy::Unknown(_) | Strategy::External, _) => {
            shut_down(ctx, &format!("its strategy is {now}"))
        }
    }
}

/// Somebody stops it already: a restart, a stop or an earlier eviction.
pub(super) fn leaving(ctx: &VmContext<'_>) -> VmForecast {
    let outcome = match after(&ctx.vmi.key, &ctx.vmi.owner, ctx.vm, false) {
        After::Returns { .. } => VmOutcome::Returns,
        After::RestartInstead { .. } | After::Ends { .. } | After::StaysOff { .. } => VmOutcome::StaysOff,
    };
    let mut forecast = VmForecast::new(VmAction::AwaitGone, outcome, "it is being shut down already");
    forecast.cause = Some(Cause::Stopping);
    forecast.waiting_helps = Some(true);
    forecast
}

/// `External`: KubeVirt marks it and does nothing; its own controller drains and deletes it.
fn external(ctx: &VmContext<'_>) -> VmForecast {
    let why = if ctx.vmi.tenant_cluster.is_some() { "" } else { " (strategy External)" };
    VmForecast::waits(VmAction::AwaitOwner, Cause::ExternalOwner, whose_turn(ctx.vmi) + why)
}

/// Who must act on a VM with the strategy External.
pub fn whose_turn(vmi: &VmiFacts) -> String {
    let who = match &vmi.tenant_cluster {
        Some(cluster) => format!("the controller of tenant cluster {cluster}"),
        None => "an outside controller".to_owned(),
    };
    format!("{who} must drain and delete this VM")
}

/// A migration exists. An eviction joins it only where the strategy asks for one; otherwise it would end the guest.
fn resume(ctx: &VmContext<'_>, marked: bool, now: &Strategy) -> VmForecast {
    let migrates = match now {
        Strategy::LiveMigrate | Strategy::LiveMigrateIfPossible => ctx.vmi.migratable == Migratable::Yes,
        Strategy::None | Strategy::Unknown(_) | Strategy::External => false,
    };
    if !marked && !migrates {
        let because = "a migration of it is under way and must end first";
        return VmForecast::waits(VmAction::AwaitMigration, Cause::VmEvacuating, because);
    }
    let target =
        ctx.index.migrations_of(&ctx.vmi.key).iter().rev().find(|m| !m.is_final()).and_then(|m| m.target_node.clone());
    let because = match target {
        Some(target) => format!("its migration to {target} is under way"),
        None => "its migration is under way".into(),
    };
    VmForecast { waiting_helps: Some(true), ..VmForecast::new(VmAction::Migrate, VmOutcome::Migrates, because) }
}

fn missing(ctx: &VmContext<'_>) -> VmForecast {
    match ctx.vmi.scheduled_at.map(|at| ctx.now.duration_since(at)) {
        Some(age) if age > CONDITION_WAIT => VmForecast::blocks(
            Cause::ConditionMissing,
            format!(
                "virt-handler has not said for {} whether it can migrate",
                words::duration(age.as_secs() / 60 * 60)
            ),
        )
        .remedy("look at virt-handler on this node"),
        _ => VmForecast::waits(
            VmAction::AwaitCondition,
            Cause::ConditionMissing,
            "it is starting; whether it can migrate is not known yet",
        ),
    }
}

/// It migrates, if any node can take it: a mark without a target would block every later eviction.
fn migrate(ctx: &VmContext<'_>, marked: bool) -> VmForecast {
    let targets = ctx.migration_targets();
    if let Some((_, why)) = targets.none {
        return VmForecast::blocks(Cause::NoMigrationTarget, why).remedy(words::open_a_node(
            &ctx.vmi.key,
            ctx.vm.is_some(),
            &targets.cordoned,
        ));
    }
    let takers = if targets.unknown {
        "which nodes can take it is unknown".to_owned()
    } else {
        format!("{} can take it", words::count(targets.nodes.len(), "node"))
    };
    let because = if marked { format!("marked already; {takers}") } else { takers };
    VmForecast { waiting_helps: Some(true), ..VmForecast::new(VmAction::Migrate, VmOutcome::Migrates, because) }
}

/// LiveMigrate, and it cannot migrate: every eviction is refused. A restart helps where a new VMI would be let go.
fn refused(ctx: &VmContext<'_>, known: &Strategies) -> VmForecast {
    let why = words::not_migratable(ctx.vmi);
    restart(ctx, known, &why).unwrap_or_else(|| held(ctx, known, &why))
}

/// The eviction passes and shuts the guest down: what follows depends on its owner and on where it can run.
fn shut_down(ctx: &VmContext<'_>, why: &str) -> VmForecast {
    let after = after(&ctx.vmi.key, &ctx.vmi.owner, ctx.vm, ctx.restart_impossible());
    let targets = ctx.new_launcher_targets();
    let mut forecast = match (after, targets.none) {
        (After::Ends { why }, _) => {
            let mut ends = VmForecast::new(VmAction::ShutDown, VmOutcome::StaysOff, why);
            ends.cause = Some(Cause::StaysOff);
            ends
        }
        (After::StaysOff { why: off, remedy }, _) => {
            let mut off = VmForecast::new(VmAction::ShutDown, VmOutcome::StaysOff, format!("{why}; {off}"));
            off.consent = Some(ConsentKind::EvictDown);
            off.cause = Some(Cause::StaysOff);
            off.remedy = remedy;
            off
        }
        (After::Returns { .. }, Some((hindrance, reason))) => {
            down(VmAction::ShutDown, hindrance, format!("{why}; {}", stays_down(ctx, hindrance, &reason)))
        }
        (After::RestartInstead { .. }, Some((hindrance, reason))) => {
            down(VmAction::Restart, hindrance, format!("{why}; {}", stays_down(ctx, hindrance, &reason)))
        }
        (After::Returns { by }, None) => {
            VmForecast::new(VmAction::ShutDown, VmOutcome::Returns, format!("{why}; {by} starts it again elsewhere"))
        }
        (After::RestartInstead { why: off }, None) => {
            VmForecast::new(VmAction::Restart, VmOutcome::Restarts, format!("{why}; {off}, so it is restarted instead"))
        }
    };
    ctx.count_losses(&mut forecast);
    if forecast.action == VmAction::ShutDown { ctx.ask_budgets(forecast) } else { forecast }
}

/// A VM that no other node can take, once its guest has stopped.
pub(super) fn stays_down(ctx: &VmContext<'_>, hindrance: Hindrance, reason: &str) -> String {
    if ctx.options.in_place {
        return format!("it stays down until a node is open to it ({reason})");
    }
    let or = if hindrance == Hindrance::Bound { "" } else { " or another node is open to it" };
    format!("it stays down until {} is back{or} ({reason})", ctx.node)
}

fn down(action: VmAction, hindrance: Hindrance, because: String) -> VmForecast {
    let mut forecast = VmForecast::new(action, VmOutcome::DownUntilNode, because);
    forecast.consent = Some(ConsentKind::EvictDown);
    forecast.cause = Some(bound_cause(hindrance));
    forecast
}

impl VmContext<'_> {
    pub(super) fn restart_impossible(&self) -> bool {
        self.options.restart_denied.contains(&self.vmi.key.namespace)
            || self.options.restart_refused.contains(&self.vmi.key)
    }

    pub(super) fn migration_targets(&self) -> Targets {
        let source = self.index.node(self.node);
        let demands = self.launcher.map(|l| l.demands.clone()).unwrap_or_default();
        self.targets(&demands, targets::migration_cpu_model(self.vmi, source))
    }

    pub(super) fn new_launcher_targets(&self) -> Targets {
        let demands = self.launcher.map(|l| targets::without_migration_selectors(&l.demands)).unwrap_or_default();
        self.targets(&demands, None)
    }

    fn targets(&self, demands: &Demands, cpu_model: Option<String>) -> Targets {
        let claims = self.claims();
        let drained = &self.options.drained_nodes;
        let source = Some(self.node).filter(|_| !self.options.in_place);
        targets::find(self.index, &Search { demands, claims, source, drained, launcher: true, cpu_model })
    }

    fn claims(&self) -> BTreeSet<Key> {
        let of_vmi = self.vmi.volumes.iter().filter_map(|v| match &v.source {
            VmVolumeSource::Claim(claim) | VmVolumeSource::Ephemeral(claim) => Some(claim),
            VmVolumeSource::EmptyDisk | VmVolumeSource::HostDisk | VmVolumeSource::Other => None,
        });
        let of_pod = self.launcher.iter().flat_map(|l| &l.claims);
        of_vmi.chain(of_pod).map(|claim| Key::new(&self.vmi.key.namespace, claim)).collect()
    }

    /// Volumes that end with the launcher: lost by a shutdown or restart, kept by a migration.
    pub(super) fn count_losses(&self, forecast: &mut VmForecast) {
        let lost = |v: &VmVolumeSource| matches!(v, VmVolumeSource::EmptyDisk | VmVolumeSource::Ephemeral(_));
        forecast.data_loss = self.vmi.volumes.iter().filter(|v| lost(&v.source)).map(|v| v.name.clone()).collect();
        if !forecast.data_loss.is_empty() && !self.options.delete_emptydir_data {
            forecast.needs.push("--delete-emptydir-data");
        }
    }

    /// Budgets count only for a launcher that the eviction itself removes.
    fn ask_budgets(&self, mut forecast: VmForecast) -> VmForecast {
        let Some(launcher) = self.launcher else { return forecast };
        match budget::forecast(launcher, self.index.budgets_of(launcher)) {
            PodBudgets::Free => {}
            PodBudgets::Multiple(keys) => {
                let names: Vec<String> = keys.iter().map(|k| k.name.clone()).collect();
                return VmForecast::blocks(
                    Cause::MultipleBudgets,
                    format!("the budgets {} all count it, so no eviction can pass", names.join(" and ")),
                )
                .remedy("change their selectors so that one is left");
            }
            PodBudgets::One(_, BudgetForecast::Never { cause, why, remedy }) => {
                return VmForecast::blocks(cause, why).remedy(remedy);
            }
            PodBudgets::One(key, BudgetForecast::AfterRecovery { why }) => {
                forecast.notes.push(format!("waits for its budget: {why}"));
                forecast.budgets.push(key);
            }
            PodBudgets::One(key, BudgetForecast::AllowedNow | BudgetForecast::Unknown) => forecast.budgets.push(key),
        }
        forecast
    }
}

/// True where the cluster's KubeVirt object is missing, doubled or unreadable: said once for the whole command.
pub fn cluster_is_unclear(index: &Index) -> bool {
    index.kubevirt() == KubeVirtState::Unclear
}
