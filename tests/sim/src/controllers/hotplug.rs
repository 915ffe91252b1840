//! Hot-plugged volumes: beside the launcher runs a pod for each, which holds the volume on the node.

use serde_json::{Value, json};

use super::vmi::{is_final, launchers, pod_is_final};
use crate::cluster::Cluster;
use crate::json::{Json, controlled_by};
use crate::kinds::{Key, Kind};

/// Plugs a volume into a running guest; its first pod gets that name.
pub(crate) fn plug(cluster: &mut Cluster, key: &Key, pod: &str) {
    let Some(vmi) = cluster.store.get(key) else { return };
    let launcher = launchers(cluster, &vmi).into_iter().find(|p| !pod_is_final(p)).expect("the VM has a launcher");
    let pod = cluster.create(Kind::Pod, attachment(&launcher, Some(pod)));
    cluster.update(key, |v| {
        let mut all = v.list("/status/volumeStatus").to_vec();
        all.push(json!({"name": pod.name(), "target": "sda", "phase": "Ready", "reason": "VolumeReady",
            "hotplugVolume": {"attachPodName": pod.name(), "attachPodUID": pod.uid()}}));
        v.put("/status/volumeStatus", all);
    });
}

fn attachment(launcher: &Value, name: Option<&str>) -> Value {
    let mut pod = json!({"metadata": {"namespace": launcher.namespace(), "labels": {"kubevirt.io": "hotplug-disk"},
            "ownerReferences": [controlled_by(launcher)]},
        "spec": {"nodeName": launcher.text("/spec/nodeName"), "containers": [{"name": "hotplug-disk", "image": "pause"}],
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]}});
    match name {
        Some(name) => pod.put("/metadata/name", name),
        None => pod.put("/metadata/generateName", "hp-volume-"),
    }
    pod
}

/// virt-controller: the running launcher has a pod for each volume, launchers that have ended have none.
pub(super) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(vmi) = cluster.store.get(key).filter(|v| !v.deleting() && !is_final(v)) else { return };
    if !vmi.list("/status/volumeStatus").iter().any(|v| v.has("/hotplugVolume")) {
        return;
    }
    let pods = launchers(cluster, &vmi);
    for ended in pods.iter().filter(|p| pod_is_final(p)) {
        for k in cluster.store.owned_by(ended.uid()).into_iter().filter(|k| k.kind == Kind::Pod) {
            cluster.delete(&k, None);
        }
    }
    let here = |p: &&std::sync::Arc<Value>| p.text("/spec/nodeName") == vmi.text("/status/nodeName");
    let live = |p: &&std::sync::Arc<Value>| p.text("/status/phase") == "Running" && !p.deleting();
    let Some(launcher) = pods.iter().filter(here).find(live) else { return };
    let volumes: Vec<Value> = vmi.list("/status/volumeStatus").to_vec();
    let mut changed = false;
    let volumes: Vec<Value> = volumes
        .into_iter()
        .map(|mut volume| {
            let name = volume.text("/hotplugVolume/attachPodName").to_owned();
            let pod = cluster.get(Kind::Pod, &key.ns, &name);
            let held = pod.is_some_and(|p| p.controller().is_some_and(|o| o.text("/uid") == launcher.uid()));
            if volume.has("/hotplugVolume") && !held {
                let pod = cluster.create(Kind::Pod, attachment(launcher, None));
                volume.put("/hotplugVolume", json!({"attachPodName": pod.name(), "attachPodUID": pod.uid()}));
                changed = true;
            }
            volume
        })
        .collect();
    if changed {
        cluster.update(key, |v| v.put("/status/volumeStatus", volumes));
    }
}

/// A pod was evicted or deleted: where it held a volume of a running guest, that guest meets an I/O error and pauses.
pub(crate) fn pulled(cluster: &mut Cluster, pod: &Value) {
    if pod.label("kubevirt.io") != "hotplug-disk" {
        return;
    }
    let ns = pod.namespace();
    let owner = pod.controller().map_or("", |o| o.text("/name"));
    let Some(launcher) = cluster.get(Kind::Pod, ns, owner).filter(|p| !pod_is_final(p) && !p.deleting()) else {
        return;
    };
    let key = Key::new(Kind::Vmi, ns, launcher.annotation("kubevirt.io/domain"));
    let Some(vmi) = cluster.store.get(&key) else { return };
    if vmi.text("/status/phase") != "Running" || vmi.text("/status/nodeName") != launcher.text("/spec/nodeName") {
        return;
    }
    let (now, text) = (cluster.now(), "VMI was paused, low-level IO error detected");
    cluster.update(&key, |v| {
        v.set_condition(json!({"type": "Paused", "status": "True", "reason": "PausedIOError", "message": text,
            "lastProbeTime": now, "lastTransitionTime": now}));
    });
    cluster.event(&vmi, "virt-handler", "Warning", "IOerror", text);
}
