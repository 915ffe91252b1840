//! What is worth knowing about a VM beside what is decided.

use super::strategy::Strategies;
use super::vm::{VmContext, VmForecast};
use super::words;
use crate::facts::{KubeVirtState, Migratable, Strategy, VmVolumeSource};
use crate::plan::VmAction;

/// Without a guest agent, KubeVirt needs about this many seconds before a shutdown request reaches the guest.
const AGENT_GRACE: i64 = 30;

/// From 1.5 on KubeVirt asks the guest agent to stop the guest before it presses the power button: where none is connected,
/// a short grace is over before the guest hears of it. An unknown release is taken for a new one.
fn asks_the_agent_first(ctx: &VmContext<'_>) -> bool {
    match ctx.index.kubevirt() {
        KubeVirtState::One(cr) => cr.version.is_none() || cr.at_least(1, 5),
        KubeVirtState::Absent | KubeVirtState::Unclear => true,
    }
}

/// What is worth knowing beside the decision.
pub(super) fn note(ctx: &VmContext<'_>, known: &Strategies, forecast: &mut VmForecast) {
    let vmi = ctx.vmi;
    let stops = matches!(forecast.action, VmAction::ShutDown | VmAction::Restart);
    let mut say = |text: String| forecast.notes.push(text);
    if let Some(backup) = vmi.running_backup.as_ref().filter(|_| forecast.action != VmAction::Leave) {
        let then = match forecast.action {
            VmAction::Migrate => ", and the migration ends it",
            VmAction::ShutDown => ", and the shutdown ends it",
            VmAction::Restart => ", and the restart waits for it",
            VmAction::AwaitOwner
            | VmAction::AwaitCondition
            | VmAction::AwaitMigration
            | VmAction::AwaitGone
            | VmAction::Leave => "",
        };
        say(format!("backup {backup} of it runs{then}"));
    }
    if stops && !vmi.agent_connected && vmi.grace_seconds <= AGENT_GRACE && asks_the_agent_first(ctx) {
        say(format!("no guest agent: it is likely powered off hard after {}", words::duration(vmi.grace_seconds)));
    }
    if stops {
        if ctx.vm.is_some_and(|vm| vm.restart_required) {
            say("its staged changes take effect".into());
        }
        for volume in vmi.volumes.iter().filter(|v| v.source == VmVolumeSource::HostDisk) {
            say(format!("disk {} is a hostDisk and stays on {}", volume.name, ctx.node));
        }
        if !ctx.options.in_place && ctx.launcher.is_some_and(|l| l.tolerates_cordon) {
            say("it tolerates the cordon and may come back to this node".into());
        }
    }
    if stops && known.now != Some(Strategy::LiveMigrate) {
        let would_migrate = |s: &Strategy| matches!(s, Strategy::LiveMigrate | Strategy::LiveMigrateIfPossible);
        let fresh = known.fresh.as_ref().filter(|s| would_migrate(s));
        if let Some(fresh) = fresh.filter(|_| known.stale == Some(true)) {
            say(format!("a new VMI would get {fresh}, but this one was made with another strategy"));
        }
        if vmi.migratable == Migratable::Yes && ctx.migration_targets().none.is_none() {
            let migrate = words::virtctl("migrate", &vmi.key);
            say(format!("it could migrate instead: `{migrate}` first"));
            if fresh.is_some() {
                forecast.remedy.get_or_insert_with(|| format!("`{migrate}` first moves it without a shutdown"));
            }
        }
    }
}
