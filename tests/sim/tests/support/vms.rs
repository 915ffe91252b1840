//! VMs of one tenant on three nodes, under `LiveMigrate`.

use safe_drain_sim::{Json, Options, Profile, Sim, World};
use serde_json::Value;

use crate::support::{Got, evict, launchers};

pub(crate) const NS: &str = "tenant-a";
pub(crate) const DISK: &str = "DisksNotLiveMigratable";

pub(crate) fn world(profile: Profile) -> World {
    Sim::new(Options {
        kubevirt: Some(profile),
        eviction_strategy: Some("LiveMigrate".to_owned()),
        ..Options::default()
    })
    .world()
    .nodes(3)
    .on("node-0")
}

pub(crate) fn vmi(sim: &Sim, name: &str) -> Value {
    sim.get("VirtualMachineInstance", NS, name).unwrap_or(Value::Null)
}

pub(crate) fn first_launcher(sim: &Sim, name: &str) -> String {
    launchers(sim, NS, name)[0].name().to_owned()
}

pub(crate) async fn evict_vm(sim: &Sim, name: &str) -> Got {
    evict(sim, NS, &first_launcher(sim, name)).await
}
