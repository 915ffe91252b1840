//! The evacuation controller: a migration for each marked VMI that has none. Releases before 1.9 make only as many as can run.

use std::sync::Arc;

use serde_json::{Value, json};

use super::migration::{counts, is_final as migration_is_final};
use super::vmi::{effective_strategy, is_final, launchers, pod_is_final};
use crate::cluster::Cluster;
use crate::json::Json;
use crate::kinds::{Key, Kind};
use crate::options::Profile;

/// Looks at one VMI.
pub(super) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(vmi) = cluster.store.get(key) else { return };
    let node = vmi.text("/status/nodeName").to_owned();
    if is_final(&vmi) || vmi.deleting() || node.is_empty() || !vmi.is_true("LiveMigratable") {
        return;
    }
    let drained = cluster.get(Kind::Node, "", &node).is_some_and(|n| {
        n.list("/spec/taints")
            .iter()
            .any(|t| t.text("/key") == "kubevirt.io/drain" && t.text("/effect") == "NoSchedule")
    });
    if !drained && vmi.text("/status/evacuationNodeName") != node {
        return;
    }
    if !matches!(effective_strategy(cluster, &vmi).as_str(), "LiveMigrate" | "LiveMigrateIfPossible") {
        return;
    }
    let open = cluster.store.list(Kind::Vmim, "").into_iter().filter(|m| !migration_is_final(m));
    if open.clone().any(|m| m.namespace() == key.ns && m.text("/spec/vmiName") == key.name) {
        return;
    }
    if launchers(cluster, &vmi).iter().filter(|p| !pod_is_final(p)).count() != 1 {
        return;
    }
    if cluster.opts.profile() < Profile::V1_9 {
        let outbound = open.clone().filter(|m| m.annotation("kubevirt.io/evacuationMigration") == node).count();
        if open.clone().filter(|m| counts(m)).count().max(open.count()) >= cluster.opts.migrations_per_cluster
            || outbound >= cluster.opts.migrations_per_node
            || others_go_first(cluster, &vmi, &node)
        {
            let (again, key) = (std::time::Duration::from_secs(5), key.clone());
            cluster.after(&format!("evacuate/{}", vmi.uid()), again, move |c| c.store.touch(&key));
            return;
        }
    }
    let mut spec = json!({"vmiName": key.name});
    if cluster.opts.profile() >= Profile::V1_7 {
        spec.put("/priority", "system-critical");
    }
    let migration = cluster.create(
        Kind::Vmim,
        json!({"metadata": {"generateName": "kubevirt-evacuation-", "namespace": key.ns, "annotations": {"kubevirt.io/evacuationMigration": node}}, "spec": spec}),
    );
    let text = format!("Created Migration {}", migration.name());
    cluster.event(&vmi, "evacuation-controller", "Normal", "SuccessfulCreate", &text);
}

/// True for a VMI whose migration failed while one waits that has not been tried. The real controller takes its candidates
/// in no fixed order, so that none starves for ever; a fixed order has to see to that itself.
fn others_go_first(cluster: &Cluster, vmi: &Value, node: &str) -> bool {
    let untried = |v: &Arc<Value>| {
        let open = |m: &Arc<Value>| {
            m.text("/spec/vmiName") == v.name() && m.namespace() == v.namespace() && !migration_is_final(m)
        };
        v.uid() != vmi.uid()
            && v.text("/status/evacuationNodeName") == node
            && v.is_true("LiveMigratable")
            && matches!(effective_strategy(cluster, v).as_str(), "LiveMigrate" | "LiveMigrateIfPossible")
            && cluster.backoff(v.uid()).is_none()
            && !cluster.store.iter(Kind::Vmim, "").any(open)
    };
    cluster.backoff(vmi.uid()).is_some() && cluster.store.iter(Kind::Vmi, "").any(untried)
}
