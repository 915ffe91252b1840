//! A VM that an eviction cannot move and a restart would not free: which knob holds it, and the price of the way out.

use super::strategy::{Source, Strategies};
use super::vm::{VmContext, VmForecast, stays_down};
use super::words;
use crate::facts::{KubeVirtState, Strategy, VmFacts, VmiOwner};
use crate::outcome::Cause;

/// LiveMigrate, it cannot migrate, and a restart would not change that.
pub(super) fn held(ctx: &VmContext<'_>, known: &Strategies, why: &str) -> VmForecast {
    let key = &ctx.vmi.key;
    let blocks = |rest: String| VmForecast::blocks(Cause::VmNotMigratable, format!("{why}; {rest}"));
    match (&ctx.vmi.owner, ctx.vm) {
        (VmiOwner::VirtualMachine { .. }, Some(vm)) if !vm.run_strategy.allows_restart() => blocks(format!(
            "runStrategy {} allows no restart",
            vm.run_strategy
        ))
        .remedy(format!("`{}` ends this guest; after that the VM acts by its run strategy", words::delete_vmi(key))),
        (VmiOwner::VirtualMachine { .. }, Some(vm)) if vm.deleting => blocks("its VM is being deleted".into()),
        (VmiOwner::VirtualMachine { .. }, Some(vm)) => match known.source {
            Some(Source::Template) => blocks(template_words(ctx, vm)).remedy(change_and_restart(ctx, vm)),
            Some(Source::Cluster | Source::Nothing) => {
                blocks("the cluster's evictionStrategy (KubeVirt object) asks for LiveMigrate".into())
                    .remedy(change_and_restart(ctx, vm))
            }
            None => blocks("whether a restart helps is unknown: no single valid KubeVirt object could be read".into())
                .remedy(format!("`{}` after the cordon moves it", words::virtctl("restart", key))),
        },
        (VmiOwner::VirtualMachine { name }, None) => blocks(format!("its VM {name} could not be read")),
        (VmiOwner::ReplicaSet { name }, _) => {
            let with = match &known.fresh {
                Some(Strategy::LiveMigrate) => " with LiveMigrate again".to_owned(),
                Some(fresh) => format!(" with {fresh}"),
                None => String::new(),
            };
            blocks(format!("replica set {name} owns it, so it cannot be restarted")).remedy(format!(
                "`{}` after the cordon ends this guest; the replica set starts another{with}",
                words::delete_vmi(key)
            ))
        }
        (VmiOwner::Other { kind, name }, _) => blocks(format!("{kind} {name} owns it, so it cannot be restarted"))
            .remedy(format!("`{}` ends this guest; what follows is up to its owner", words::delete_vmi(key))),
        (VmiOwner::Standalone, _) => blocks("no VM owns it, so it cannot be restarted".into())
            .remedy(format!("`{}` ends it for good", words::delete_vmi(key))),
    }
}

/// Who wrote LiveMigrate into its template, as far as that can be told.
fn template_words(ctx: &VmContext<'_>, vm: &VmFacts) -> String {
    let expands = matches!(ctx.index.kubevirt(), KubeVirtState::One(cr) if cr.expands_instancetypes);
    let who = match &vm.pool {
        Some(pool) => format!(", as pool {pool} wants it"),
        None if expands => {
            " (KubeVirt's instancetype.referencePolicy copies the cluster's strategy into templates)".to_owned()
        }
        None => String::new(),
    };
    format!("its VM template asks for LiveMigrate{who}")
}

/// The change after which a restart helps. A VM of a pool gets its template from the pool.
fn change_and_restart(ctx: &VmContext<'_>, vm: &VmFacts) -> String {
    let patch = match &vm.pool {
        Some(pool) => words::patch_pool(&vm.key.namespace, pool),
        None => words::patch_template(&vm.key),
    };
    let wait = if vm.pool.is_some() { ", once the pool has updated its VM" } else { "" };
    match ctx.new_launcher_targets().none {
        None => format!("`{patch}`{}{wait}", words::THEN_RESTART),
        Some((hindrance, reason)) => {
            format!("`{patch}`{} --allow-vm-down{wait}: {}", words::THEN_RESTART, stays_down(ctx, hindrance, &reason))
        }
    }
}
