use std::fmt::Debug;

use kube::Resource;
use kube::core::{DeserializeGuard, ObjectList, WatchEvent};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::facts::convert::tests::list;
use crate::facts::{PodFacts, PodPhase, VmiFacts};

/// What `kube::Api` and `kube::runtime::watcher` ask of a type.
fn watchable<K>() -> String
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    format!("{} {}", K::url_path(&(), Some("ns")), K::kind(&()))
}

#[test]
fn the_types_serve_kube() {
    assert_eq!(watchable::<Pod>(), "/api/v1/namespaces/ns/pods Pod");
    assert_eq!(
        watchable::<PersistentVolumeClaim>(),
        "/api/v1/namespaces/ns/persistentvolumeclaims PersistentVolumeClaim"
    );
    assert_eq!(
        watchable::<PodDisruptionBudget>(),
        "/apis/policy/v1/namespaces/ns/poddisruptionbudgets PodDisruptionBudget"
    );
    assert_eq!(watchable::<VirtualMachine>(), "/apis/kubevirt.io/v1/namespaces/ns/virtualmachines VirtualMachine");
    assert_eq!(
        watchable::<VirtualMachineInstance>(),
        "/apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances VirtualMachineInstance"
    );
    assert_eq!(
        watchable::<VirtualMachineInstanceMigration>(),
        "/apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstancemigrations VirtualMachineInstanceMigration"
    );
    assert_eq!(watchable::<KubeVirt>(), "/apis/kubevirt.io/v1/namespaces/ns/kubevirts KubeVirt");
    assert_eq!(watchable::<DeserializeGuard<Node>>(), "/api/v1/namespaces/ns/nodes Node");
    assert_eq!(PersistentVolume::url_path(&(), None), "/api/v1/persistentvolumes");
    assert_eq!(Node::url_path(&(), None), "/api/v1/nodes");
}

#[test]
fn metadata_keeps_only_what_is_read() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {
            "name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "7", "generation": 2, "selfLink": "/x",
            "generateName": "p-", "creationTimestamp": "2026-11-30T09:57:16Z", "labels": {"a": "b"},
            "annotations": {"kubevirt.io/domain": "vm", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
            "finalizers": ["f"], "ownerReferences": null,
            "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}],
        },
        "spec": null,
    }))
    .unwrap();
    let meta = pod.meta();
    assert_eq!(meta.managed_fields, None);
    assert_eq!(meta.generate_name, None);
    assert_eq!(meta.annotations, Some([("kubevirt.io/domain".to_owned(), "vm".to_owned())].into()));
    assert_eq!((meta.resource_version.as_deref(), meta.generation), (Some("7"), Some(2)));
    assert!(meta.creation_timestamp.is_some());
}

fn cordoned_by(managed_fields: &serde_json::Value) -> Option<String> {
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": "n", "uid": "u", "managedFields": managed_fields}, "spec": {"unschedulable": true},
    }))
    .unwrap();
    assert!(node.metadata.managed_fields.as_ref().is_none_or(|m| m.len() == 1 && m[0].fields_v1.is_none()));
    crate::facts::NodeFacts::from(node).cordoned_by
}

#[test]
fn a_node_tells_who_cordoned_it() {
    let entry = |manager: &str, time: &str, fields: serde_json::Value| {
        json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1",
            "fieldsV1": fields})
    };
    let kubelet = entry(
        "kubelet",
        "2026-11-30T09:00:00Z",
        json!({"f:status": {"f:conditions": {}}, "f:spec": {"f:podCIDR": {}}}),
    );
    let ours = entry("kubectl-safe-drain", "2026-11-30T10:00:00Z", json!({"f:spec": {"f:unschedulable": {}}}));
    let theirs =
        entry("kubectl-cordon", "2026-11-30T09:30:00Z", json!({"f:spec": {"f:taints": {}, "f:unschedulable": {}}}));
    assert_eq!(cordoned_by(&json!([kubelet, ours])).as_deref(), Some("kubectl-safe-drain"));
    assert_eq!(cordoned_by(&json!([kubelet, ours, theirs])).as_deref(), Some("kubectl-cordon"));
    assert_eq!(cordoned_by(&json!([kubelet, {"manager": "odd", "fieldsV1": null}])), None);
    assert_eq!(cordoned_by(&json!(null)), None);
}

#[test]
fn null_counts_as_absent() {
    let text = r#"{"metadata":{"name":"p","namespace":"ns","uid":"u","labels":null,"annotations":null,"finalizers":null,
        "deletionTimestamp":null},"spec":{"containers":null,"initContainers":null,"volumes":null,"tolerations":null,
        "nodeSelector":null,"affinity":{"nodeAffinity":null},"priority":null},"status":{"phase":null,"conditions":null,
        "containerStatuses":null}}"#;
    let pod = PodFacts::from(serde_json::from_str::<Pod>(text).unwrap());
    assert_eq!((pod.phase, pod.grace_seconds, pod.priority), (PodPhase::Pending, 30, 0));
    assert!(pod.containers_running, "no status: unknown");

    let text = r#"{"metadata":{"name":"v","namespace":"ns","uid":"u"},"spec":{"volumes":null,"domain":{"cpu":null,
        "devices":{"gpus":null,"hostDevices":null}}},"status":{"conditions":null,"phaseTransitionTimestamps":null,
        "migrationState":null,"changedBlockTracking":{"state":"x","backupStatus":null}}}"#;
    let vmi = VmiFacts::from(serde_json::from_str::<VirtualMachineInstance>(text).unwrap());
    assert_eq!((vmi.migration, vmi.running_backup, vmi.has_devices), (None, None, false));
}

#[test]
fn one_odd_object_spoils_no_list() {
    let items = json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [
        {"metadata": {"name": "good", "namespace": "ns", "uid": "1", "managedFields": [{"manager": "m"}]}},
        {"metadata": {"name": "no-uid", "namespace": "ns"}},
        {"metadata": {"name": "odd", "namespace": "ns", "uid": "2"}, "spec": {"nodeName": 5}},
    ]});
    assert!(serde_json::from_value::<ObjectList<Pod>>(items.clone()).is_err());
    let list: ObjectList<DeserializeGuard<Pod>> = serde_json::from_value(items).unwrap();
    let names: Vec<_> = list.items.iter().map(|g| (g.meta().name.clone().unwrap(), g.0.is_ok())).collect();
    assert_eq!(names, [("good".to_owned(), true), ("no-uid".to_owned(), false), ("odd".to_owned(), false)]);
    assert_eq!(list.items[1].0.as_ref().unwrap_err().to_string(), "metadata.uid is missing");
}

/// What a watch sends, as the API server writes it: one object a line, bookmarks and errors among them.
#[test]
fn watch_events_carry_the_objects() {
    let vmi = list("vmi-list-before").into_iter().find(|v| v["metadata"]["name"] == "migratable").unwrap();
    let event = |kind: &str, object: &serde_json::Value| json!({"type": kind, "object": object}).to_string();
    let facts = |line: &str| match serde_json::from_str::<WatchEvent<VirtualMachineInstance>>(line).unwrap() {
        WatchEvent::Added(v) => ("added", VmiFacts::from(v)),
        WatchEvent::Modified(v) => ("modified", VmiFacts::from(v)),
        WatchEvent::Deleted(v) => ("deleted", VmiFacts::from(v)),
        other @ (WatchEvent::Bookmark(_) | WatchEvent::Error(_)) => panic!("{other:?}"),
    };
    let mut marked = vmi.clone();
    marked["status"]["evacuationNodeName"] = "node-0".into();
    marked["metadata"]["managedFields"] = json!([{"manager": "virt-api", "fieldsV1": {"f:status": {}}}]);
    let mut deleting = vmi.clone();
    deleting["metadata"]["deletionTimestamp"] = "2026-11-30T10:00:00Z".into();

    let (kind, before) = facts(&event("ADDED", &vmi));
    assert_eq!((kind, &before.marked, before.deleting), ("added", &None, false));
    let (kind, after) = facts(&event("MODIFIED", &marked));
    assert_eq!((kind, after.marked.as_deref()), ("modified", Some("node-0")));
    assert_eq!(VmiFacts { marked: None, ..after }, before, "only the mark changed");
    // A deletion that is accepted is a change; the object is gone with DELETED only, which names the same identity.
    assert!(facts(&event("MODIFIED", &deleting)).1.deleting);
    let (kind, gone) = facts(&event("DELETED", &deleting));
    assert_eq!((kind, gone.key, gone.uid), ("deleted", before.key, before.uid));

    let bookmark = r#"{"type":"BOOKMARK","object":{"kind":"VirtualMachineInstance","apiVersion":"kubevirt.io/v1",
        "metadata":{"resourceVersion":"9","creationTimestamp":null}}}"#;
    let expired = r#"{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410}}"#;
    assert!(matches!(serde_json::from_str(bookmark), Ok(WatchEvent::<VirtualMachineInstance>::Bookmark(_))));
    assert!(matches!(serde_json::from_str(expired), Ok(WatchEvent::<VirtualMachineInstance>::Error(_))));
}
