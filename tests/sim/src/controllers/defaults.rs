//! What admission and defaulting fill in when an object is created.

use serde_json::{Map, Value, json};

use crate::cluster::Cluster;
use crate::json::Json;
use crate::kinds::Kind;

fn fill_in(value: &mut Value, path: &str, default: Value) {
    if !value.has(path) {
        value.put(path, default);
    }
}

/// Fills in a new object.
pub(crate) fn fill(cluster: &mut Cluster, kind: Kind, value: &mut Value) {
    match kind {
        Kind::Pod => pod(value),
        Kind::Namespace => {
            let name = value.name().to_owned();
            value.set_label("kubernetes.io/metadata.name", &name);
            fill_in(value, "/spec/finalizers", json!(["kubernetes"]));
            fill_in(value, "/status/phase", json!("Active"));
        }
        Kind::Pdb => fill_in(
            value,
            "/status",
            json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}),
        ),
        Kind::Deployment | Kind::ReplicaSet | Kind::StatefulSet => fill_in(value, "/spec/replicas", json!(1)),
        Kind::Vm => vm(cluster, value),
        Kind::Vmi => vmi(cluster, value),
        Kind::Vmim => {
            let name = value.text("/spec/vmiName").to_owned();
            value.set_label("kubevirt.io/vmi-name", &name);
            observed(value);
            value.put("/metadata/finalizers", json!(["kubevirt.io/migrationJobFinalize"]));
            fill_in(value, "/status", json!({}));
        }
        Kind::Node
        | Kind::Event
        | Kind::PersistentVolume
        | Kind::PersistentVolumeClaim
        | Kind::ResourceQuota
        | Kind::Service
        | Kind::ConfigMap
        | Kind::DaemonSet
        | Kind::Job
        | Kind::StorageClass
        | Kind::VolumeAttachment
        | Kind::ApiService
        | Kind::Vmirs
        | Kind::KubeVirt
        | Kind::Cdi
        | Kind::DataVolume => {}
    }
}

fn observed(value: &mut Value) {
    value.set_annotation("kubevirt.io/latest-observed-api-version", Some("v1"));
    value.set_annotation("kubevirt.io/storage-observed-api-version", Some("v1"));
}

fn pod(value: &mut Value) {
    fill_in(value, "/status/phase", json!("Pending"));
    fill_in(value, "/status/qosClass", json!("BestEffort"));
    for (field, default) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("securityContext", json!({})),
        ("schedulerName", json!("default-scheduler")),
        ("enableServiceLinks", json!(true)),
        ("preemptionPolicy", json!("PreemptLowerPriority")),
        ("containers", json!([{"name": "c", "image": "pause"}])),
    ] {
        fill_in(value, &format!("/spec/{field}"), default);
    }
    if !value.has("/spec/priority") {
        let priority = match value.text("/spec/priorityClassName") {
            "system-node-critical" => 2_000_001_000_i64,
            "system-cluster-critical" => 2_000_000_000,
            "kubevirt-cluster-critical" => 1_000_000_000,
            _ => 0,
        };
        value.put("/spec/priority", priority);
    }
    for c in value.pointer_mut("/spec/containers").and_then(Value::as_array_mut).into_iter().flatten() {
        fill_in(c, "/resources", json!({}));
        fill_in(c, "/terminationMessagePath", json!("/dev/termination-log"));
        fill_in(c, "/terminationMessagePolicy", json!("File"));
        fill_in(c, "/imagePullPolicy", json!("Always"));
    }
    let mut tolerations = value.list("/spec/tolerations").to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        if !tolerations.iter().any(|t| t.text("/key") == key || t.text("/key").is_empty()) {
            tolerations
                .push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
    value.put("/spec/tolerations", tolerations);
}

fn vm(cluster: &mut Cluster, value: &mut Value) {
    observed(value);
    fill_in(value, "/metadata/finalizers", json!(["kubevirt.io/virtualMachineControllerFinalize"]));
    let (serial, uuid) = (cluster.new_uid(), cluster.new_uid());
    let mut template = value.pointer("/spec/template").cloned().unwrap_or_else(|| json!({}));
    template.set_annotation("kubevirt.io/pci-topology-version", Some("v3"));
    fill_in(&mut template, "/spec/architecture", json!("amd64"));
    fill_in(&mut template, "/spec/domain/devices", json!({}));
    fill_in(&mut template, "/spec/domain/machine/type", json!("q35"));
    fill_in(&mut template, "/spec/domain/firmware", json!({"serial": serial, "uuid": uuid}));
    value.put("/spec/template", template);
}

/// The VMI mutator: stamps the eviction strategy that holds at creation.
fn vmi(cluster: &mut Cluster, value: &mut Value) {
    observed(value);
    value.set_annotation("kubevirt.io/pci-topology-version", Some("v3"));
    let finalizers = if value.controller().is_some_and(|o| o.text("/kind") == "VirtualMachine") {
        json!(["kubevirt.io/virtualMachineControllerFinalize", "kubevirt.io/foregroundDeleteVirtualMachine"])
    } else {
        json!(["kubevirt.io/foregroundDeleteVirtualMachine"])
    };
    fill_in(value, "/metadata/finalizers", finalizers);
    let (strategy, uuid) = (super::vmi::cluster_strategy(cluster), cluster.new_uid());
    fill_in(value, "/spec/domain/firmware", json!({"uuid": uuid}));
    if cluster.opts.profile().stamps_strategy() {
        fill_in(value, "/spec/evictionStrategy", json!(strategy));
    }
    fill_in(value, "/spec/architecture", json!("amd64"));
    fill_in(value, "/spec/terminationGracePeriodSeconds", json!(30));
    fill_in(value, "/spec/domain/machine/type", json!("q35"));
    fill_in(value, "/spec/domain/features", json!({"acpi": {"enabled": true}}));
    fill_in(
        value,
        "/spec/domain/cpu",
        json!({"cores": 1, "maxSockets": 4, "model": "host-model", "sockets": 1, "threads": 1}),
    );
    fill_in(value, "/spec/domain/devices/interfaces", json!([{"bridge": {}, "name": "default"}]));
    fill_in(value, "/spec/networks", json!([{"name": "default", "pod": {}}]));
    if !value.has("/spec/domain/memory/guest") {
        let memory = value.pointer("/spec/domain/resources/requests/memory").cloned().unwrap_or(json!("128Mi"));
        value.put("/spec/domain/memory/guest", memory);
    }
    for v in value.pointer_mut("/spec/volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        if v.has("/containerDisk") {
            fill_in(v, "/containerDisk/imagePullPolicy", json!("Always"));
        }
    }
    fill_in(value, "/status", Value::Object(Map::new()));
}
