//! What a restart does to a stale VM: as part of a drain, and outside one.

use super::strategy::{Source, Strategies, strategies};
use super::targets::Hindrance;
use super::vm::{VmContext, VmForecast, in_motion, leaving, silent_node, stays_down};
use super::words;
use crate::facts::{Index, Migratable, Strategy, VmiFacts, VmiOwner};
use crate::outcome::{Cause, VmOutcome};
use crate::plan::{ConsentKind, VmAction};

/// What a restart must wait for, looked at right before it is sent.
pub fn restart_must_wait(index: &Index, vmi: &VmiFacts) -> Option<(Cause, String)> {
    if let Some(backup) = &vmi.running_backup {
        return Some((Cause::BackupRunning, format!("backup {backup} of it runs")));
    }
    in_motion(index, vmi).then(|| (Cause::VmEvacuating, "a migration of it is under way".into()))
}

/// A VM that every eviction refuses and that a restart helps: what the restart gives it, and whether it runs afterwards.
/// `None` where a restart does not help, or nobody knows.
pub(super) fn restart(ctx: &VmContext<'_>, known: &Strategies, why: &str) -> Option<VmForecast> {
    let (Some(true), Some(fresh)) = (known.restart_helps, &known.fresh) else { return None };
    let mut because = format!("{why}; a restart {}", gains(ctx, fresh));
    if ctx.options.restart_denied.contains(&ctx.vmi.key.namespace) {
        let denied = VmForecast::blocks(Cause::Forbidden, format!("{because}, but you may not restart it"));
        return Some(denied.remedy("ask for the permission to update virtualmachines/restart"));
    }
    if ctx.restart_impossible() {
        let text = format!("{because}, but the server refuses the restart");
        return Some(VmForecast::blocks(Cause::RestartRefused, text));
    }
    let targets = ctx.new_launcher_targets();
    let mut forecast = if let Some((hindrance, reason)) = targets.none {
        because = format!("{because}; then {}", stays_down(ctx, hindrance, &reason));
        let mut down = VmForecast::new(VmAction::Restart, VmOutcome::DownUntilNode, because);
        down.consent = Some(ConsentKind::RestartDown);
        down.cause = Some(bound_cause(hindrance));
        down
    } else {
        let mut restarts = VmForecast::new(VmAction::Restart, VmOutcome::Restarts, because);
        restarts.consent = Some(ConsentKind::Restart);
        restarts
    };
    ctx.count_losses(&mut forecast);
    Some(forecast)
}

/// `gives it LiveMigrateIfPossible, renews its outdated launcher and applies staged changes`. KubeVirt's workload updater
/// labels a VMI whose launcher is of an older release; every new VMI has a launcher of the present one.
fn gains(ctx: &VmContext<'_>, fresh: &Strategy) -> String {
    let mut gains = vec![format!("gives it {fresh}")];
    if ctx.vmi.outdated {
        gains.push("renews its outdated launcher".to_owned());
    }
    if ctx.vm.is_some_and(|vm| vm.restart_required) {
        gains.push("applies staged changes".to_owned());
    }
    let last = gains.pop().unwrap_or_default();
    if gains.is_empty() { last } else { format!("{} and {last}", gains.join(", ")) }
}

/// True for a VM that `restart-stale` speaks of: a restart helps it, or it blocks drains and nobody knows whether one would.
pub fn is_candidate(index: &Index, vmi: &VmiFacts) -> bool {
    let vm = index.vm(&vmi.key).filter(|_| matches!(vmi.owner, VmiOwner::VirtualMachine { .. }));
    let known = strategies(vmi, vm, index);
    known.restart_helps.unwrap_or(matches!(vmi.migratable, Migratable::No { .. }))
}

/// Forecasts a VM that is restarted outside a drain. The first clause that fits decides.
pub(super) fn in_place(ctx: &VmContext<'_>, known: &Strategies) -> VmForecast {
    let vmi = ctx.vmi;
    let Some(node) = ctx.index.node(ctx.node) else {
        let because = format!("its node {} does not exist: nothing can confirm that the guest stopped", ctx.node);
        return VmForecast::blocks(Cause::NodeNotReady, because);
    };
    if let Some(why) = silent_node(node, ctx.now) {
        return VmForecast::blocks(Cause::NodeNotReady, why).remedy("bring the node back, or fence it and remove it");
    }
    if vmi.deleting || ctx.launcher.is_some_and(|launcher| launcher.deletion.is_some()) {
        return leaving(ctx);
    }
    if in_motion(ctx.index, vmi) {
        let because = "a migration of it is under way and must end first";
        return VmForecast::waits(VmAction::AwaitMigration, Cause::VmEvacuating, because);
    }
    restart(ctx, known, &words::not_migratable(vmi)).unwrap_or_else(|| unhelped(ctx, known))
}

/// A restart does not help, or not any more.
fn unhelped(ctx: &VmContext<'_>, known: &Strategies) -> VmForecast {
    let why = words::not_migratable(ctx.vmi);
    let blocks = |cause, text: String| VmForecast::blocks(cause, text);
    if ctx.vmi.migratable == Migratable::Yes {
        return blocks(Cause::RestartRefused, "it can migrate now, so it needs no restart".to_owned());
    }
    match (known.restart_helps, ctx.vm) {
        (None, None) => blocks(Cause::RestartRefused, format!("{why}; its VM could not be read")),
        (None, Some(_)) => blocks(
            Cause::VmNotMigratable,
            format!("{why}; whether a restart helps is unknown: no single valid KubeVirt object could be read"),
        ),
        (Some(_), Some(vm)) if !vm.run_strategy.allows_restart() => {
            blocks(Cause::RestartRefused, format!("runStrategy {} allows no restart", vm.run_strategy))
        }
        (Some(_), _) if known.fresh == Some(Strategy::LiveMigrate) => {
            let whose = if known.source == Some(Source::Template) { "its VM template" } else { "the cluster" };
            blocks(Cause::VmNotMigratable, format!("{why}; {whose} asks for LiveMigrate, so a restart changes nothing"))
        }
        (Some(_), _) => blocks(Cause::RestartRefused, "a restart would not help it any more".to_owned()),
    }
}

pub(super) fn bound_cause(hindrance: Hindrance) -> Cause {
    match hindrance {
        Hindrance::Bound => Cause::BoundToNode,
        Hindrance::NoNodeOpen | Hindrance::Mixed => Cause::Unschedulable,
    }
}
