//! The table of what a change of a strategy means for a running VMI.

use crate::facts::testing::{vm, vmi, world};
use crate::facts::{RunStrategy, Strategy, VmFacts, VmiFacts, VmiOwner};
use crate::forecast::strategy::{Source, Strategies, strategies};

const LM: Strategy = Strategy::LiveMigrate;
const LMIP: Strategy = Strategy::LiveMigrateIfPossible;

fn look(cluster: Option<Strategy>, vm: &VmFacts, vmi: &VmiFacts) -> Strategies {
    let world = world().cluster_strategy(cluster);
    strategies(vmi, Some(vm), &world.index)
}

#[test]
fn rows_of_the_table() {
    let typo = || Some(Strategy::Unknown("LiveMigrat".into()));
    // (what, template, cluster, VMI) → (stale, fresh, source)
    let rows = [
        ("unset, X, X", None, Some(LMIP), Some(LMIP), Some(false), LMIP, Source::Cluster),
        ("unset, X, Y", None, Some(LMIP), Some(LM), Some(true), LMIP, Source::Cluster),
        ("unset, unset, Y", None, None, Some(LM), Some(true), Strategy::None, Source::Nothing),
        ("unset, unset, None", None, None, Some(Strategy::None), Some(false), Strategy::None, Source::Nothing),
        ("A, any, A", Some(LM), Some(LMIP), Some(LM), Some(false), LM, Source::Template),
        ("A, any, B", Some(LMIP), Some(LM), Some(LM), Some(true), LMIP, Source::Template),
        ("VMI without one follows the cluster", None, Some(LM), None, Some(false), LM, Source::Cluster),
        ("VMI without one, template set", Some(LMIP), Some(LM), None, Some(true), LMIP, Source::Template),
        ("a typo acts as None", None, typo(), Some(Strategy::None), Some(false), typo().unwrap(), Source::Cluster),
    ];
    for (what, template, cluster, own, stale, fresh, source) in rows {
        let mut machine = vm("a");
        machine.template_strategy = template;
        let found = look(cluster, &machine, &vmi("a").strategy(own).not_migratable("DisksNotLiveMigratable"));
        assert_eq!(found.stale, stale, "{what}: stale");
        assert_eq!(found.fresh, Some(fresh), "{what}: fresh");
        assert_eq!(found.source, Some(source), "{what}: source");
    }
}

#[test]
fn a_vmi_without_a_strategy_has_the_clusters() {
    assert_eq!(look(Some(LM), &vm("a"), &vmi("a").strategy(None)).now, Some(LM));
    assert_eq!(look(None, &vm("a"), &vmi("a").strategy(None)).now, Some(Strategy::None));
}

#[test]
fn nothing_is_promised_without_one_clear_kubevirt_object() {
    let world = world().cluster_unclear();
    let vmi = vmi("a").live_migrate().not_migratable("DisksNotLiveMigratable");
    let found = strategies(&vmi, Some(&vm("a").template(LMIP)), &world.index);
    assert_eq!((found.now, found.fresh, found.stale, found.restart_helps), (Some(LM), None, None, None));
    let found = strategies(&vmi.strategy(None), Some(&vm("a")), &world.index);
    assert_eq!(found.now, None);
}

#[test]
fn fresh_is_unknown_where_no_vm_owns_the_vmi() {
    for owner in [VmiOwner::Standalone, VmiOwner::ReplicaSet { name: "rs".into() }] {
        let vmi = vmi("a").live_migrate().not_migratable("DisksNotLiveMigratable").owned_by(owner);
        let found = strategies(&vmi, None, &world().index);
        assert_eq!((found.fresh, found.source, found.stale), (None, None, None));
        assert_eq!(found.restart_helps, Some(false), "there is nothing to restart");
    }
}

#[test]
fn a_restart_helps_only_if_all_of_its_conditions_hold() {
    let stale = || vmi("a").live_migrate().not_migratable("DisksNotLiveMigratable");
    let helps = |vm: VmFacts, vmi: VmiFacts| look(Some(LMIP), &vm, &vmi).restart_helps;
    assert_eq!(helps(vm("a"), stale()), Some(true));
    assert_eq!(helps(vm("a").run(RunStrategy::RerunOnFailure), stale()), Some(true));
    assert_eq!(helps(vm("a").run(RunStrategy::Manual), stale()), Some(true));
    assert_eq!(helps(vm("a").run(RunStrategy::Once), stale()), Some(false), "409");
    assert_eq!(helps(vm("a").run(RunStrategy::Halted), stale()), Some(false), "409");
    assert_eq!(helps(vm("a").template(LM), stale()), Some(false), "not stale");
    assert_eq!(helps(vm("a"), vmi("a").live_migrate()), Some(false), "it migrates");
    assert_eq!(helps(vm("a"), stale().condition_missing()), None, "not known yet");
    assert_eq!(helps(vm("a"), stale().strategy(Some(Strategy::None))), Some(false), "the eviction passes anyway");
    assert_eq!(
        strategies(&stale(), None, &world().index).restart_helps,
        None,
        "a VM that could not be read may be anything"
    );
}
