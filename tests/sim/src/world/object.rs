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
