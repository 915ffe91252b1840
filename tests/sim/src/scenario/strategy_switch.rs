//! Seven VMs that run under LiveMigrate while the cluster already says LiveMigrateIfPossible: the case that the tool is made for.
//! Beside them a web shop under a budget and a daemon set.

use serde_json::json;

use super::Settings;
use crate::sim::Sim;
use crate::world::Vm;

/// The seven, by what becomes of them when their node is drained after the switch.
pub fn vms() -> Vec<Vm> {
    let disk = "DisksNotLiveMigratable";
    vec![
        Vm::new("db-0").non_migratable(disk),
        Vm::new("web-1"),
        Vm::new("gpu-1").run_strategy("RerunOnFailure").non_migratable("HostDeviceNotLiveMigratable"),
        Vm::new("pinned-1").eviction_strategy("LiveMigrate").non_migratable(disk),
        Vm::new("ext-1").eviction_strategy("External"),
        Vm::new("hang-1").migration("hang"),
        Vm::new("fail-1").migration("fail"),
    ]
}

/// Builds it.
pub(super) fn build(settings: Settings) -> Sim {
    let mut options = settings.options;
    if options.kubevirt.is_none() {
        options.kubevirt = Some(crate::Profile::V1_7);
    }
    options.eviction_strategy = Some("LiveMigrate".to_owned());
    let world = Sim::new(options).world().nodes(3).on("node-0");
    vms()
        .into_iter()
        .fold(world, |world, vm| world.vm("tenant-a", vm))
        .eviction_strategy("LiveMigrateIfPossible")
        .deployment("shop", "web", 4)
        .pdb("shop", "web", "web", json!({"maxUnavailable": 1}))
        .daemon_set("kube-system", "agent")
        .done()
}
