//! VMIs of a replica set: what makes up for one has another name.

use super::vms::reborn;
use super::*;
use crate::facts::testing::{launcher, vmi, world};
use crate::facts::{PodRole, Strategy, VmiOwner, VmiPhase};
use crate::outcome::{Cause, VmOutcome};

fn replica(name: &str) -> VmiFacts {
    vmi(name).strategy(Some(Strategy::None)).owned_by(VmiOwner::ReplicaSet { name: "rs".into() })
}

/// What the replica set makes.
fn another(name: &str) -> VmiFacts {
    reborn(name).owned_by(VmiOwner::ReplicaSet { name: "rs".into() })
}

fn rig(names: &[&str]) -> Rig {
    let full = names.iter().fold(world(), |world, name| world.vmi(replica(name)).pod(launcher(name)));
    // One that runs elsewhere all the time makes up for nothing.
    Rig::one(full.vmi(replica("old").with(|v| v.node = Some("node-1".into())))).cordoned()
}

fn shut_down(rig: &mut Rig, name: &str) {
    rig.vmi_read(name);
    rig.evict(name, EvictionAnswer::Accepted);
    rig.pod(launcher(name).finished());
    rig.change(Change::Vmi(Delta::Delete(key(name))));
}

fn runs_on(rig: &mut Rig, name: &str, node: &str) {
    rig.vmi(name, |v| {
        v.node = Some(node.into());
        v.phase = VmiPhase::Running;
    });
}

#[test]
fn it_is_back_when_another_of_its_set_runs_elsewhere() {
    let mut rig = rig(&["a"]);
    shut_down(&mut rig, "a");
    rig.change(Change::Vmi(Delta::Apply(another("b"))));
    rig.advance(secs(20));
    assert_eq!(rig.effects(), [], "a VMI that is only scheduled runs nothing");
    runs_on(&mut rig, "b", "node-1");
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    let row = rig.vm_row("a");
    assert_eq!((row.outcome, row.node_after.as_deref()), (VmOutcome::Returns, Some("node-1")));
    assert_eq!(
        (row.new_vmi_uid.as_deref(), row.because.as_str()),
        (Some("new-b"), "b took its place on node-1 with LiveMigrateIfPossible")
    );
}

#[test]
fn it_is_down_when_none_comes() {
    let mut rig = rig(&["a"]);
    shut_down(&mut rig, "a");
    rig.advance(secs(361));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::VmDown));
    assert_eq!(rig.vm_row("a").outcome, VmOutcome::Down);
    assert_eq!(rig.vm_row("a").remedy.as_deref(), Some("kubectl describe vmirs rs -n tenant-a"));
}

#[test]
fn one_that_came_counts_for_one_that_went() {
    let mut rig = rig(&["a", "b"]);
    shut_down(&mut rig, "a");
    rig.change(Change::Vmi(Delta::Apply(another("c"))));
    shut_down(&mut rig, "b");
    runs_on(&mut rig, "c", "node-1");
    assert_eq!(rig.effects(), [], "b has none yet");
    rig.change(Change::Vmi(Delta::Apply(another("d"))));
    runs_on(&mut rig, "d", "node-2");
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.vm_row("a").new_vmi_uid.as_deref(), Some("new-c"));
    assert_eq!(rig.vm_row("b").node_after.as_deref(), Some("node-2"));
}

#[test]
fn one_that_comes_up_here_again_blocks_and_is_not_evicted_in_its_turn() {
    let mut rig = rig(&["a"]);
    shut_down(&mut rig, "a");
    rig.change(Change::Vmi(Delta::Apply(another("b"))));
    rig.vmi("b", |v| v.node = Some("node-0".into()));
    rig.pod(launcher("b").with(|p| {
        if let PodRole::Launcher { vmi_uid, .. } = &mut p.role {
            *vmi_uid = Some("new-b".into());
        }
    }));
    assert_eq!(rig.evictions(), Vec::<String>::new());
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
    assert_eq!(rig.vm_row("a").cause, Some(Cause::SameNode));
}

#[test]
fn one_that_somebody_else_deleted_is_not_awaited() {
    let mut rig = rig(&["a"]);
    rig.vmi_read("a");
    rig.change(Change::Vmi(Delta::Delete(key("a"))));
    rig.pod(launcher("a").finished());
    rig.evict("a", EvictionAnswer::Gone);
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
}
