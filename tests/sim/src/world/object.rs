//! Objects as a client would send them, for the simulated cluster and for real ones.

use serde_json::{Value, json};

use super::{PodSpec, Vm};
use crate::json::Json;

/// A Deployment, StatefulSet or DaemonSet whose pods carry the label `app: NAME`.
pub fn workload(kind: &str, ns: &str, name: &str, replicas: usize, pod: PodSpec) -> Value {
    let template = pod.label("app", name).template();
    let mut object = json!({"kind": kind, "metadata": {"name": name, "namespace": ns, "labels": {"app": name}},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template}});
    if kind != "DaemonSet" {
        object.put("/spec/replicas", replicas);
    }
    object
}

/// A budget over the pods with the label `app: APP`, unless the spec has a selector of its own.
pub fn budget(ns: &str, name: &str, app: &str, mut spec: Value) -> Value {
    if !spec.has("/selector") {
        spec.put("/selector", json!({"matchLabels": {"app": app}}));
    }
    json!({"kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": ns}, "spec": spec})
}

/// A pod without a controller.
pub fn pod(ns: &str, name: &str, pod: PodSpec) -> Value {
    let (mut object, _) = pod.object(ns, name);
    object.put("/kind", "Pod");
    object
}

/// A VM.
pub fn vm(ns: &str, vm: Vm) -> Value {
    let mut object = vm.object(ns);
    object.put("/kind", "VirtualMachine");
    object
}

/// A VMI without a VM.
pub fn vmi(ns: &str, vm: Vm) -> Value {
    let mut object = vm.instance(ns);
    object.put("/kind", "VirtualMachineInstance");
    object
}

/// A replica set of VMIs; `vm` gives the template.
pub fn vmi_replica_set(ns: &str, name: &str, replicas: usize, vm: Vm) -> Value {
    let mut template = vm.template();
    template.set_label("rs", name);
    json!({"kind": "VirtualMachineInstanceReplicaSet", "metadata": {"name": name, "namespace": ns},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"rs": name}}, "template": template}})
}

/// A ready node with plenty of everything, beating now; with KubeVirt also labelled as its node labeller does.
pub fn node(name: &str, kubevirt: bool, now: &str) -> Value {
    let number: usize = name.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
    let amounts = json!({"cpu": "64", "devices.kubevirt.io/kvm": "1k", "devices.kubevirt.io/tun": "1k", "devices.kubevirt.io/vhost-net": "1k",
        "ephemeral-storage": "1Ti", "memory": "512Gi", "nvidia.com/A100": "4", "pods": "1k"});
    let mut node = json!({
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
        "spec": {},
        "status": {"capacity": amounts, "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": null, "reason": "KubeletReady"}],
            "addresses": [{"type": "InternalIP", "address": format!("10.9.0.{}", number + 1)}, {"type": "Hostname", "address": name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": {"machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "", "containerRuntimeVersion": "",
                "kubeletVersion": "", "kubeProxyVersion": "", "operatingSystem": "", "architecture": ""}}
    });
    if kubevirt {
        for label in [
            "cpu-model-migration.node.kubevirt.io/Skylake",
            "cpu-model.node.kubevirt.io/Skylake",
            "cpumanager",
            "host-model-cpu.node.kubevirt.io/Skylake",
            "kubevirt.io/schedulable",
            "machine-type.node.kubevirt.io/pc-q35-rhel9.4.0",
            "machine-type.node.kubevirt.io/q35",
        ] {
            node.set_label(label, "true");
        }
        node.set_annotation("kubevirt.io/heartbeat", Some(now));
    }
    node
}
