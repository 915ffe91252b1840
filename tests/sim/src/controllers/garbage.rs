//! Garbage collection of what lost its owner, and the end of namespaces.

use serde_json::Value;

use crate::cluster::Cluster;
use crate::json::Json;
use crate::kinds::{Key, Kind, TABLE};

/// Deletes an object whose owners are all gone; when an object is gone, has its dependents looked at.
pub(super) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(object) = cluster.store.get(key) else {
        orphans(cluster, key);
        return;
    };
    let owners = object.list("/metadata/ownerReferences");
    if owners.is_empty() || object.deleting() {
        return;
    }
    let lives = |o: &Value| {
        let Some(kind) = Kind::of_object(o.text("/kind")) else { return true };
        let owner = cluster.store.get(&Key::new(kind, &key.ns, o.text("/name")));
        owner.is_some_and(|x| x.uid() == o.text("/uid"))
    };
    if !owners.iter().any(lives) {
        cluster.delete(key, None);
    }
}

/// The object is gone; those that name it as owner are in its namespace (or anywhere for cluster-wide owners).
fn orphans(cluster: &mut Cluster, key: &Key) {
    let kinds = [Kind::Pod, Kind::ReplicaSet, Kind::Vmi, Kind::Vm, Kind::Pdb];
    let name = key.kind.info().kind;
    for kind in kinds {
        if !matches!(
            key.kind,
            Kind::Pod
                | Kind::ReplicaSet
                | Kind::Deployment
                | Kind::StatefulSet
                | Kind::DaemonSet
                | Kind::Job
                | Kind::Vm
                | Kind::Vmi
                | Kind::Vmirs
        ) {
            return;
        }
        let mut lost = Vec::new();
        for object in cluster.store.iter(kind, &key.ns) {
            let mine = |o: &Value| o.text("/kind") == name && o.text("/name") == key.name;
            if object.list("/metadata/ownerReferences").iter().any(mine) {
                lost.push(Key::new(kind, object.namespace(), object.name()));
            }
        }
        for k in lost {
            cluster.store.touch(&k);
        }
    }
}

/// Empties a namespace that is being deleted, then removes it.
pub(super) fn namespace(cluster: &mut Cluster, key: &Key) {
    let Some(ns) = cluster.store.get(key) else { return };
    if !ns.deleting() {
        return;
    }
    let mut left = false;
    for info in TABLE.iter().filter(|i| i.namespaced) {
        for object in cluster.store.list(info.id, &key.name) {
            left |= cluster.delete(&Key::new(info.id, &key.name, object.name()), None).is_some_and(|o| o.deleting());
        }
    }
    if left {
        let key = key.clone();
        cluster.after(&format!("ns/{}", key.name), std::time::Duration::from_secs(1), move |c| c.store.touch(&key));
    } else {
        cluster.store.remove(key);
    }
}
