use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{all, at, facts, list};
use crate::facts::*;

fn vmis(name: &str) -> BTreeMap<String, VmiFacts> {
    all::<wire::VirtualMachineInstance, VmiFacts>(name).into_iter().map(|v| (v.key.name.clone(), v)).collect()
}

#[test]
fn vmis_before_and_after_their_evictions() {
    let (before, mid, after) = (vmis("vmi-list-before"), vmis("vmi-list-mid"), vmis("vmi-list-after"));
    let stale = &before["stale-always"];
    assert_eq!(stale.uid, "cc040b31-bf49-4751-a8b7-ba9770c776a1");
    assert_eq!(stale.owner, VmiOwner::VirtualMachine { name: "stale-always".to_owned() });
    assert_eq!(stale.strategy, Some(Strategy::LiveMigrate));
    let message = "cannot migrate VMI: PVC root is not shared, live migration requires that all PVCs must be shared (using \
                   ReadWriteMany access mode)";
    assert_eq!(
        stale.migratable,
        Migratable::No { reason: "DisksNotLiveMigratable".to_owned(), message: message.to_owned() }
    );
    assert_eq!((stale.phase, stale.node.as_deref(), &stale.marked), (VmiPhase::Running, Some("node-0"), &None));
    assert_eq!(
        (stale.created, stale.scheduled_at),
        (Some(at("2026-11-30T09:57:14Z")), Some(at("2026-11-30T09:57:15Z")))
    );
    assert_eq!((stale.grace_seconds, stale.deleting, stale.has_devices), (30, false, false));
    assert_eq!(stale.cpu_model.as_deref(), Some("host-model"));
    assert_eq!(before["standalone"].owner, VmiOwner::Standalone);
    assert_eq!(before["farm8qf7x"].owner, VmiOwner::ReplicaSet { name: "farm".to_owned() });
    let volumes: Vec<_> = before["scratch"].volumes.iter().map(|v| (v.name.as_str(), &v.source)).collect();
    assert_eq!(volumes, [("root", &VmVolumeSource::Other), ("scratch", &VmVolumeSource::EmptyDisk)]);
    assert_eq!(before["none"].strategy, Some(Strategy::None));

    assert_eq!(mid["external"].marked.as_deref(), Some("node-0"));
    let hangs = &mid["migration-hangs"];
    assert!(hangs.is_migrating() && !before["migration-hangs"].is_migrating());
    let moved = &mid["migratable"];
    assert_eq!(
        (moved.uid == before["migratable"].uid, moved.node.as_deref(), &moved.marked),
        (true, Some("node-1"), &None)
    );
    assert_eq!(
        moved.migration,
        Some(MigrationState {
            migration_uid: Some("f2a42be0-2434-4b14-b5c5-6a8ae3b29ed3".to_owned()),
            source_node: Some("node-0".to_owned()),
            target_node: Some("node-1".to_owned()),
            started: Some(at("2026-11-30T09:57:44Z")),
            ended: Some(at("2026-11-30T09:57:49Z")),
            completed: true,
            failed: false,
            failure_reason: None,
        })
    );
    let restarted = &after["stale-always"];
    assert!(restarted.uid != stale.uid && restarted.node.as_deref() == Some("node-2"));
    assert_eq!(restarted.strategy, Some(Strategy::LiveMigrateIfPossible));
}

#[test]
fn what_the_recorded_vmis_lack() {
    let vmi = |spec: Value, status: Value| -> VmiFacts {
        let meta = json!({"name": "v", "namespace": "ns", "uid": "u",
            "labels": {"cluster.x-k8s.io/cluster-name": "tenant", "kubevirt.io/outdatedLauncherImage": ""},
            "ownerReferences": [{"apiVersion": "x/v1", "kind": "VirtualMachine", "name": "v", "uid": "1", "controller": true}]});
        facts::<wire::VirtualMachineInstance, _>(json!({"metadata": meta, "spec": spec, "status": status}))
    };
    let facts = vmi(
        json!({"domain": {"devices": {"hostDevices": [{"name": "h"}]}}, "volumes": [
            {"name": "a", "persistentVolumeClaim": {"claimName": "pvc"}}, {"name": "b", "dataVolume": {"name": "dv"}},
            {"name": "c", "ephemeral": {"persistentVolumeClaim": {"claimName": "base"}}}, {"name": "d", "hostDisk": {}},
            {"name": "e", "memoryDump": {"claimName": "dump"}}, {"name": "f", "cloudInitNoCloud": {}}]}),
        json!({"phase": "Scheduling", "changedBlockTracking": {"backupStatus": {"backupName": "nightly"}}, "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"},
            {"type": "AgentConnected", "status": "True", "lastTransitionTime": null},
            {"type": "LiveMigratable", "status": "Unknown"}]}),
    );
    assert_eq!(facts.owner, VmiOwner::Other { kind: "VirtualMachine".to_owned(), name: "v".to_owned() });
    let sources: Vec<_> = facts.volumes.into_iter().map(|v| v.source).collect();
    let claim = |name: &str| VmVolumeSource::Claim(name.to_owned());
    let base = VmVolumeSource::Ephemeral("base".to_owned());
    assert_eq!(
        sources,
        [claim("pvc"), claim("dv"), base, VmVolumeSource::HostDisk, claim("dump"), VmVolumeSource::Other]
    );
    assert_eq!((facts.unschedulable.as_deref(), facts.running_backup.as_deref()), (Some("0/3 nodes"), Some("nightly")));
    let refused = |reason: &str, message: &str| {
        let condition = json!({"type": "Synchronized", "status": "False", "reason": reason, "message": message});
        vmi(json!({}), json!({"conditions": [condition]})).not_created
    };
    let quota = "failed to create virtual machine pod: pods \"virt-launcher-a-xyz\" is forbidden: exceeded quota: small, limited: pods=2";
    assert_eq!(refused("FailedCreate", quota).as_deref(), Some("exceeded quota: small, limited: pods=2"));
    assert_eq!(refused("FailedCreate", "no disk").as_deref(), Some("no disk"));
    assert_eq!(refused("Synchronizing with the Domain failed.", "x"), None);
    assert_eq!((facts.migratable, facts.strategy, facts.scheduled_at), (Migratable::Missing, None, None));
    assert!(facts.agent_connected && facts.has_devices && facts.outdated);
    assert!(facts.labels.contains(&("cluster.x-k8s.io/cluster-name".to_owned(), "tenant".to_owned())));
    assert_eq!((facts.tenant_cluster.as_deref(), facts.grace_seconds), (Some("tenant"), 30));
    let done = json!({"changedBlockTracking": {"backupStatus": {"backupName": "nightly", "completed": true}}});
    assert_eq!(vmi(json!({}), done).running_backup, None);
}

#[test]
fn vms_and_their_run_strategies() {
    let vms: BTreeMap<_, _> =
        all::<wire::VirtualMachine, VmFacts>("vm-list").into_iter().map(|v| (v.key.name.clone(), v)).collect();
    let of = |name: &str| (vms[name].run_strategy.clone(), vms[name].template_strategy.clone());
    assert_eq!(of("stale-always"), (RunStrategy::Always, None));
    assert_eq!(of("stale-rerun"), (RunStrategy::RerunOnFailure, None));
    assert_eq!(of("stale-manual"), (RunStrategy::Manual, None));
    assert_eq!(of("stale-once"), (RunStrategy::Once, None));
    assert_eq!(of("template-pins"), (RunStrategy::Always, Some(Strategy::LiveMigrate)));
    assert_eq!(of("none"), (RunStrategy::Always, Some(Strategy::None)));
    let after = all::<wire::VirtualMachine, VmFacts>("vm-list-after");
    let hangs = after.iter().find(|v| v.key.name == "migration-hangs").unwrap();
    assert_eq!(hangs.printable_status.as_deref(), Some("Migrating"));

    let vm = |spec: Value, status: Value| -> VmFacts {
        let meta = json!({"name": "v", "namespace": "ns", "uid": "u", "labels": {"app": "db"}});
        facts::<wire::VirtualMachine, _>(json!({"metadata": meta, "spec": spec, "status": status}))
    };
    assert_eq!(vm(json!({"running": true}), json!({})).run_strategy, RunStrategy::Always);
    assert_eq!(vm(json!({"running": false}), json!({"runStrategy": "Always"})).run_strategy, RunStrategy::Halted);
    assert_eq!(vm(json!({}), json!({"runStrategy": "Once"})).run_strategy, RunStrategy::Once);
    assert_eq!(vm(json!({}), json!({})).run_strategy, RunStrategy::Halted);
    let facts = vm(
        json!({"runStrategy": "New", "instancetype": {"name": "u1"}}),
        json!({"stateChangeRequests": [{"action": "Stop"}], "conditions": [{"type": "RestartRequired", "status": "True"}]}),
    );
    assert_eq!(facts.run_strategy, RunStrategy::Unknown("New".to_owned()));
    assert!(facts.instancetype && facts.change_pending && facts.restart_required && !facts.deleting);
    assert_eq!(facts.labels, [("app".to_owned(), "db".to_owned())]);
    assert!(!vm(json!({"instancetype": null}), json!({"stateChangeRequests": null})).instancetype);
}

#[test]
fn migrations() {
    let phases = |name: &str| -> Vec<(String, String)> {
        all::<wire::VirtualMachineInstanceMigration, MigrationFacts>(name)
            .into_iter()
            .map(|m| (m.vmi, m.phase))
            .collect()
    };
    let pair = |vmi: &str, phase: &str| (vmi.to_owned(), phase.to_owned());
    assert!(phases("vmim-list-early").contains(&pair("migratable", "Running")));
    assert!(phases("vmim-list-after").contains(&pair("migration-fails", "Pending")));
    let mid = all::<wire::VirtualMachineInstanceMigration, MigrationFacts>("vmim-list-mid");
    assert_eq!(
        mid[0],
        MigrationFacts {
            key: Key::new("rec-vm", "kubevirt-evacuation-42v9t"),
            uid: "f2a42be0-2434-4b14-b5c5-6a8ae3b29ed3".to_owned(),
            vmi: "migratable".to_owned(),
            created: Some(at("2026-11-30T09:57:43Z")),
            deleting: false,
            phase: "Succeeded".to_owned(),
            evacuates: Some("node-0".to_owned()),
            source_node: Some("node-0".to_owned()),
            target_node: Some("node-1".to_owned()),
            failure_reason: None,
            quota_rejected: false,
        }
    );
    // While a migration runs, its nodes are known from the VMI only.
    assert_eq!((mid[1].takes_slot(), &mid[1].source_node, &mid[1].target_node), (true, &None, &None));
    let failed: MigrationFacts = facts::<wire::VirtualMachineInstanceMigration, _>(json!({
        "metadata": {"name": "m", "namespace": "ns", "uid": "u"}, "spec": {"vmiName": "v"},
        "status": {"phase": "Failed", "migrationState": {"failed": true, "failureReason": "Target pod is down"},
            "conditions": [{"type": "migrationRejectedByResourceQuota", "status": "True"}]},
    }));
    assert_eq!((failed.failure_reason.as_deref(), failed.quota_rejected), (Some("Target pod is down"), true));
}

#[test]
fn the_kubevirt_cr() {
    let cr = |value: Value| -> KubeVirtFacts { facts::<wire::KubeVirt, _>(value) };
    let mut object = list("kubevirt-cr-list").remove(0);
    let expected = KubeVirtFacts {
        key: Key::new("kubevirt", "kubevirt"),
        valid: true,
        strategy: Some(Strategy::LiveMigrateIfPossible),
        version: Some("v1.9.0".to_owned()),
        target_version: Some("v1.9.0".to_owned()),
        expands_instancetypes: false,
        migrations_per_node: 2,
        migrations_per_cluster: 5,
        drain_taint: "kubevirt.io/drain".to_owned(),
        workload_update: WorkloadUpdate {
            live_migrate: true,
            evict: true,
            batch_size: 10,
            batch_interval: "1m".to_owned(),
        },
    };
    assert_eq!(cr(object.clone()), expected);
    object["spec"]["configuration"] = json!({"evictionStrategy": "Typo", "migrations": {"parallelMigrationsPerCluster": 9,
        "parallelOutboundMigrationsPerNode": 3, "nodeDrainTaintKey": "node.kubernetes.io/unschedulable"}});
    object["spec"]["workloadUpdateStrategy"] = json!({"workloadUpdateMethods": ["LiveMigrate", "Evict"],
        "batchEvictionSize": 3, "batchEvictionInterval": "1h0m0s"});
    object["metadata"]["deletionTimestamp"] = "2026-11-30T10:00:00Z".into();
    let facts = cr(object);
    assert_eq!((facts.migrations_per_node, facts.migrations_per_cluster, facts.valid), (3, 9, false));
    assert_eq!(facts.drain_taint, "node.kubernetes.io/unschedulable");
    let update = &facts.workload_update;
    assert_eq!((update.live_migrate, update.evict, update.batch_size), (true, true, 3));
    assert_eq!(update.batch_interval, "1h");
    for (written, short) in [("1m0s", "1m"), ("90s", "90s"), ("1m30s", "1m30s"), ("10m0s", "10m"), ("1h30m0s", "1h30m")]
    {
        let strategy = json!({"workloadUpdateMethods": null, "batchEvictionInterval": written});
        let update = cr(json!({"metadata": {"name": "k", "uid": "u"}, "spec": {"workloadUpdateStrategy": strategy}}));
        assert_eq!((update.workload_update.batch_interval.as_str(), update.workload_update.evict), (short, false));
    }
    assert_eq!(facts.strategy, Some(Strategy::Unknown("Typo".to_owned())));
    assert!(!cr(json!({"metadata": {"name": "k", "uid": "u"}})).valid);
}
