//! Nodes: the taint that follows a cordon, the KubeVirt heartbeat, and work that waited for the node.
//! Annotation `lab/kubelet: down` on a node plays a dead kubelet and virt-handler: nothing starts, stops or beats there.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::json::Json;
use crate::kinds::{Key, Kind};
use crate::machine::SILENCE;

const TAINT: &str = "node.kubernetes.io/unschedulable";
const HEARTBEAT: &str = "kubevirt.io/heartbeat";
const SCHEDULABLE: &str = "kubevirt.io/schedulable";

/// Whether the node's kubelet and virt-handler live.
pub(super) fn is_up(cluster: &Cluster, node: &str) -> bool {
    cluster.get(Kind::Node, "", node).is_some_and(|n| n.annotation("lab/kubelet") != "down")
}

/// Follows a node.
pub(super) fn sync(cluster: &mut Cluster, key: &Key) {
    super::scheduler::retry(cluster);
    for set in cluster.store.list(Kind::DaemonSet, "") {
        cluster.store.touch(&Key::new(Kind::DaemonSet, set.namespace(), set.name()));
    }
    let Some(node) = cluster.store.get(key) else {
        lost(cluster, &key.name);
        return;
    };
    let cordoned = node.flag("/spec/unschedulable");
    let mut taints = node.list("/spec/taints").to_vec();
    let tainted = taints.iter().any(|t| t.text("/key") == TAINT);
    if cordoned != tainted {
        if cordoned {
            let now = cluster.now();
            taints.push(json!({"key": TAINT, "effect": "NoSchedule", "timeAdded": now}));
        } else {
            taints.retain(|t| t.text("/key") != TAINT);
        }
        cluster.update(key, |n| {
            if taints.is_empty() {
                n.cut("/spec/taints");
            } else {
                n.put("/spec/taints", Value::Array(taints));
            }
        });
    }
    heartbeat(cluster, key);
    silence(cluster, key);
    let waiting: Vec<Arc<Value>> = cluster
        .store
        .iter(Kind::Pod, "")
        .filter(|p| {
            p.text("/spec/nodeName") == key.name
                && (p.deleting()
                    || p.text("/status/phase") == "Pending"
                    || p.label("kubevirt.io") == "virt-launcher" && !super::vmi::pod_is_final(p))
        })
        .cloned()
        .collect();
    for p in waiting {
        cluster.store.touch(&Key::new(Kind::Pod, p.namespace(), p.name()));
    }
    for v in cluster
        .store
        .list(Kind::Vmi, "")
        .iter()
        .filter(|v| v.text("/status/nodeName") == key.name && !super::vmi::is_final(v))
    {
        cluster.store.touch(&Key::new(Kind::Vmi, v.namespace(), v.name()));
    }
}

fn heartbeat(cluster: &mut Cluster, key: &Key) {
    if cluster.instant || cluster.opts.kubevirt.is_none() || !is_up(cluster, &key.name) {
        return;
    }
    let every = cluster.opts.heartbeat.mul_f64(cluster.opts.speed);
    let key = key.clone();
    cluster.after(&format!("beat/{}", key.name), every, move |c| {
        if is_up(c, &key.name) {
            let now = c.now();
            let silent = c.get(Kind::Node, "", &key.name).and_then(|n| c.age(n.annotation(HEARTBEAT)));
            c.update(&key, |n| {
                n.set_annotation(HEARTBEAT, Some(&now));
                // A younger label "false" is somebody's wish.
                if silent.is_none_or(|s| s > SILENCE) {
                    n.set_label(SCHEDULABLE, "true");
                }
            });
            c.store.touch(&key);
        }
    });
}

/// virt-controller takes a node whose heartbeat is old for one without virt-handler. Time goes as it does for the heartbeat.
fn silence(cluster: &mut Cluster, key: &Key) {
    let Some(node) = cluster.store.get(key).filter(|n| n.label(SCHEDULABLE) == "true") else { return };
    let Some(age) = cluster.age(node.annotation(HEARTBEAT)) else { return };
    if cluster.instant || !cluster.opts.virt_controller {
        return;
    }
    if age > SILENCE {
        cluster.update(key, |n| n.set_label(SCHEDULABLE, "false"));
        let text = "virt-handler is not responsive, marking node as unresponsive";
        cluster.event(&node, "node-controller", "Normal", "NodeUnresponsive", text);
        return;
    }
    let (key, name) = (key.clone(), format!("silence/{}", key.name));
    cluster.after_exactly(&name, crate::machine::seconds(SILENCE + 1 - age), move |c| c.store.touch(&key));
}

/// The node object is gone: its pods are removed after a while, as the pod garbage collector does.
fn lost(cluster: &mut Cluster, name: &str) {
    let node = name.to_owned();
    cluster.after(&format!("lost/{name}"), std::time::Duration::from_secs(20), move |c| {
        if c.get(Kind::Node, "", &node).is_some() {
            return;
        }
        let pods: Vec<Arc<Value>> =
            c.store.iter(Kind::Pod, "").filter(|p| p.text("/spec/nodeName") == node).cloned().collect();
        for p in pods {
            c.store.remove(&Key::new(Kind::Pod, p.namespace(), p.name()));
        }
    });
}
