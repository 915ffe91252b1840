//! The controllers. Each change of an object puts it (and its owners) on one queue; `reconcile` brings one object closer to what is wanted.
//! Work that takes time is a timer of the cluster. One queue, one order: runs are repeatable.

pub(crate) mod defaults;
pub(crate) mod disruption;
mod evacuation;
mod garbage;
pub(crate) mod hotplug;
mod kubelet;
mod launcher;
pub(crate) mod migration;
mod node;
mod quota;
mod scheduler;
pub(crate) mod vm;
pub(crate) mod vmi;
mod workloads;

use crate::cluster::Cluster;
use crate::json::Json;
use crate::kinds::{Key, Kind};

/// Brings one object, and what depends on it, closer to what is wanted.
pub(crate) fn reconcile(cluster: &mut Cluster, key: &Key) {
    garbage::sync(cluster, key);
    match key.kind {
        Kind::Namespace => garbage::namespace(cluster, key),
        Kind::Node => node::sync(cluster, key),
        Kind::Pod => pod(cluster, key),
        Kind::ReplicaSet => workloads::replica_set(cluster, key),
        Kind::Deployment => workloads::deployment(cluster, key),
        Kind::StatefulSet => workloads::stateful_set(cluster, key),
        Kind::DaemonSet => workloads::daemon_set(cluster, key),
        Kind::Pdb => disruption::sync(cluster, key),
        Kind::Vm if cluster.opts.virt_controller => vm::sync(cluster, key),
        Kind::Vmi => {
            if cluster.opts.virt_controller {
                vmi::sync(cluster, key);
                vmi::budget(cluster, key);
                evacuation::sync(cluster, key);
                hotplug::sync(cluster, key);
            }
            kubelet::guest(cluster, key);
            for m in cluster.store.list(Kind::Vmim, &key.ns) {
                if m.text("/spec/vmiName") == key.name && !migration::is_final(&m) {
                    cluster.store.touch(&Key::new(Kind::Vmim, &key.ns, m.name()));
                }
            }
        }
        Kind::ResourceQuota => quota::changed(cluster, key),
        Kind::Vmim if cluster.opts.virt_controller => migration::sync(cluster, key),
        Kind::Vmirs if cluster.opts.virt_controller => vmi::replica_set(cluster, key),
        Kind::Vm
        | Kind::Vmim
        | Kind::Vmirs
        | Kind::Event
        | Kind::PersistentVolume
        | Kind::PersistentVolumeClaim
        | Kind::Service
        | Kind::ConfigMap
        | Kind::Job
        | Kind::StorageClass
        | Kind::VolumeAttachment
        | Kind::ApiService
        | Kind::KubeVirt
        | Kind::Cdi
        | Kind::DataVolume => {}
    }
}

fn pod(cluster: &mut Cluster, key: &Key) {
    for budget in cluster.store.list(Kind::Pdb, &key.ns) {
        disruption::schedule(cluster, &Key::new(Kind::Pdb, &key.ns, budget.name()));
    }
    let Some(pod) = cluster.store.get(key) else {
        cluster.unscheduled.remove(key);
        scheduler::retry(cluster);
        return;
    };
    if matches!(pod.text("/status/phase"), "Succeeded" | "Failed") {
        scheduler::retry(cluster);
    }
    let job = pod.label("kubevirt.io/migrationJobUID");
    if !job.is_empty() {
        let name = pod.annotation("kubevirt.io/migrationJobName");
        cluster.store.touch(&Key::new(Kind::Vmim, &key.ns, name));
    }
    scheduler::sync(cluster, key);
    kubelet::sync(cluster, key);
}
