mod kubevirt;

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::facts::*;

/// Body of a recorded answer.
fn body(name: &str) -> Value {
    let file = format!("{}/tests/fixtures/recordings/http/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let exchange: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    exchange["response"]["body"].clone()
}

/// Items of a recorded list.
pub(in crate::facts) fn list(name: &str) -> Vec<Value> {
    body(name)["items"].as_array().unwrap().clone()
}

fn facts<W: DeserializeOwned, F: From<W>>(value: Value) -> F {
    F::from(serde_json::from_value(value).unwrap())
}

fn all<W: DeserializeOwned, F: From<W>>(name: &str) -> Vec<F> {
    list(name).into_iter().map(facts::<W, F>).collect()
}

fn pods(name: &str) -> BTreeMap<String, PodFacts> {
    all::<wire::Pod, PodFacts>(name).into_iter().map(|p| (p.key.name.clone(), p)).collect()
}

fn pod(value: Value) -> PodFacts {
    facts::<wire::Pod, _>(value)
}

fn budget(name: &str) -> BudgetFacts {
    facts::<wire::PodDisruptionBudget, _>(body(name))
}

fn at(text: &str) -> jiff::Timestamp {
    text.parse().unwrap()
}

fn named<V: Clone>(entries: &[(&str, V)]) -> BTreeMap<String, V> {
    entries.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect()
}

#[test]
fn launchers_in_full() {
    let pods = pods("launcher-pod-list");
    assert_eq!(pods.len(), 16);
    let toleration = |key: &str| Toleration {
        key: Some(key.to_owned()),
        exists: true,
        value: None,
        effect: Some("NoExecute".to_owned()),
    };
    let expected = PodFacts {
        key: PodKey::new("rec-vm", "virt-launcher-external-brjrh", "e7f272a4-f930-45aa-885a-8fd084dc4fc4"),
        node: Some("node-0".to_owned()),
        phase: PodPhase::Running,
        owner: Some(Owner {
            api_version: "kubevirt.io/v1".to_owned(),
            kind: "VirtualMachineInstance".to_owned(),
            name: "external".to_owned(),
            uid: "cf1107fb-ad18-46a0-8e2c-c37dee9e1b31".to_owned(),
        }),
        labels: named(&[
            ("kubevirt.io", "virt-launcher".to_owned()),
            ("kubevirt.io/created-by", "cf1107fb-ad18-46a0-8e2c-c37dee9e1b31".to_owned()),
            ("kubevirt.io/nodeName", "node-0".to_owned()),
            ("vm.kubevirt.io/name", "external".to_owned()),
            ("vmi.kubevirt.io/id", "external".to_owned()),
        ]),
        mirror: false,
        empty_dirs: [
            "private",
            "public",
            "sockets",
            "virt-bin-share-dir",
            "libvirt-runtime",
            "ephemeral-disks",
            "hotplug-disks",
        ]
        .map(str::to_owned)
        .to_vec(),
        deletion: None,
        finalizers: vec![],
        containers_running: true,
        ready: true,
        priority: 0,
        grace_seconds: 60,
        tolerates_cordon: false,
        claims: vec![],
        demands: Demands {
            node_selector: named(&[
                ("kubernetes.io/arch", "amd64".to_owned()),
                ("kubevirt.io/schedulable", "true".to_owned()),
                ("machine-type.node.kubevirt.io/q35", "true".to_owned()),
            ]),
            affinity: vec![NodeTerm {
                labels: vec![NodeExpression {
                    key: "node-labeller.kubevirt.io/obsolete-host-model".to_owned(),
                    operator: "DoesNotExist".to_owned(),
                    values: vec![],
                }],
                fields: vec![],
            }],
            tolerations: vec![toleration("node.kubernetes.io/not-ready"), toleration("node.kubernetes.io/unreachable")],
            devices: named(&[
                ("devices.kubevirt.io/kvm", 1),
                ("devices.kubevirt.io/tun", 1),
                ("devices.kubevirt.io/vhost-net", 1),
            ]),
        },
        role: PodRole::Launcher {
            vmi: "external".to_owned(),
            vmi_uid: Some("cf1107fb-ad18-46a0-8e2c-c37dee9e1b31".to_owned()),
        },
        unschedulable: None,
    };
    assert_eq!(pods["virt-launcher-external-brjrh"], expected);
}

#[test]
fn launchers_of_a_migration() {
    let pods = pods("launcher-pod-list-mid");
    let source = &pods["virt-launcher-migratable-wndnl"];
    assert_eq!((source.phase, source.containers_running), (PodPhase::Succeeded, false));
    assert_eq!(pods["virt-launcher-migratable-8kvff"].node.as_deref(), Some("node-1"));
    let waiting = &pods["virt-launcher-no-target-gp59n"];
    assert_eq!((waiting.phase, &waiting.node), (PodPhase::Pending, &None));
    assert!(
        waiting.unschedulable.as_ref().unwrap().starts_with("0/3 nodes are available: 1 node(s) were unschedulable")
    );
}

#[test]
fn held_and_hot_plugged_pods() {
    let held = pod(body("pod-held-by-finalizer"));
    assert_eq!(held.finalizers, ["example.com/hold"]);
    assert_eq!(held.deletion, Some(Deletion { at: at("2026-11-30T09:54:33Z"), grace_seconds: 0 }));
    assert_eq!((held.owner, held.role, held.node.as_deref()), (None, PodRole::Plain, Some("node-1")));

    let mut object = body("hotplug-pod-object");
    let role = PodRole::Hotplug {
        launcher: "virt-launcher-external-brjrh".to_owned(),
        launcher_uid: "e7f272a4-f930-45aa-885a-8fd084dc4fc4".to_owned(),
    };
    assert_eq!(pod(object.clone()).role, role);
    let owners = object["metadata"]["ownerReferences"].as_array_mut().unwrap();
    owners.push(json!({"apiVersion": "v1", "kind": "Pod", "name": "second", "uid": "2"}));
    assert_eq!(pod(object).role, PodRole::Plain, "the webhook asks for exactly one owner");
}

/// A pod with these parts.
fn made(metadata: Value, spec: Value, status: Value) -> PodFacts {
    let mut meta = json!({"name": "p", "namespace": "ns", "uid": "u"});
    let Value::Object(extra) = metadata else { panic!("{metadata}") };
    meta.as_object_mut().unwrap().extend(extra);
    let parts = [("metadata", meta), ("spec", spec), ("status", status)].map(|(name, part)| (name.to_owned(), part));
    pod(Value::Object(parts.into_iter().collect()))
}

#[test]
fn launchers_without_their_annotation() {
    let launcher = |owner: Value| {
        let meta = json!({"labels": {"kubevirt.io": "virt-launcher"}, "ownerReferences": owner});
        made(meta, json!({}), json!({})).role
    };
    let owner = |kind: &str, controller: bool| json!([{"apiVersion": "kubevirt.io/v1", "kind": kind, "name": "vm", "uid": "1", "controller": controller}]);
    assert_eq!(
        launcher(owner("VirtualMachineInstance", true)),
        PodRole::Launcher { vmi: "vm".to_owned(), vmi_uid: None }
    );
    assert_eq!(launcher(owner("VirtualMachineInstance", false)), PodRole::Plain);
    assert_eq!(launcher(owner("ReplicaSet", true)), PodRole::Plain);
    assert!(made(json!({"annotations": {"kubernetes.io/config.mirror": ""}}), json!({}), json!({})).mirror);
}

#[test]
fn containers_run_until_all_have_ended() {
    let running = |phase: &str, statuses: Value, init: Value| {
        let spec = json!({"containers": [{"name": "a"}, {"name": "b"}]});
        let status = json!({"phase": phase, "containerStatuses": statuses, "initContainerStatuses": init});
        made(json!({}), spec, status).containers_running
    };
    let [up, down, waiting] = [
        json!({"state": {"running": {}}}),
        json!({"state": {"terminated": {"exitCode": 0}}}),
        json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}}}),
    ];
    assert!(running("Running", json!([up, down]), json!([])));
    assert!(!running("Running", json!([down, down]), json!([down])));
    assert!(running("Running", json!([down, down]), json!([up])), "a sidecar");
    assert!(running("Running", json!([down, waiting]), json!([])));
    assert!(running("Running", json!([down]), json!([])), "the other one is unknown");
    assert!(running("Pending", json!(null), json!(null)));
    assert!(!running("Failed", json!(null), json!(null)));
    assert!(!running("Succeeded", json!([down]), json!([up])), "the phase comes last");
}

#[test]
fn tolerating_the_cordon() {
    let tolerates =
        |toleration: Value| made(json!({}), json!({"tolerations": [toleration]}), json!({})).tolerates_cordon;
    let key = "node.kubernetes.io/unschedulable";
    assert!(tolerates(json!({"operator": "Exists"})));
    assert!(tolerates(json!({"key": key, "operator": "Exists", "effect": "NoSchedule"})));
    assert!(tolerates(json!({"key": key, "effect": ""})));
    assert!(tolerates(json!({"key": key, "operator": "Equal", "value": ""})));
    assert!(!tolerates(json!({"key": key, "operator": "Equal", "value": "x"})));
    assert!(!tolerates(json!({"key": key, "operator": "Exists", "effect": "NoExecute"})));
    assert!(!tolerates(json!({"key": key, "operator": "Gt", "value": "1"})));
    assert!(!tolerates(json!({"key": "other", "operator": "Exists"})));
}

#[test]
fn devices_and_volumes_of_a_pod() {
    let asks = |count: u64| json!({"resources": {"limits": {"x.y/gpu": count.to_string(), "cpu": "1"}}});
    let mut sidecar = asks(1);
    sidecar["restartPolicy"] = "Always".into();
    let both = json!({"resources": {"limits": {"x.y/gpu": "2", "x.y/nic": "1"}, "requests": {"x.y/gpu": "2"}}});
    let spec = json!({
        "containers": [both, asks(1)], "initContainers": [sidecar, asks(2)], "priority": 2_000_001_000,
        "volumes": [{"name": "a", "emptyDir": {"medium": "Memory"}}, {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "c", "ephemeral": {"volumeClaimTemplate": {}}}, {"name": "d", "configMap": {"name": "x"}}],
    });
    let facts = made(json!({}), spec, json!({}));
    assert_eq!(facts.demands.devices, named(&[("x.y/gpu", 4), ("x.y/nic", 1)]));
    assert_eq!(
        (facts.empty_dirs, facts.claims, facts.priority),
        (vec!["a".into()], vec!["data".into()], 2_000_001_000)
    );
    let spec = json!({"containers": [asks(1)], "initContainers": [sidecar, asks(5)]});
    assert_eq!(
        made(json!({}), spec, json!({})).demands.devices,
        named(&[("x.y/gpu", 6)]),
        "the init container is the peak"
    );
}

#[test]
fn budgets() {
    let selects_a = LabelSelector { match_labels: named(&[("app", "a".to_owned())]), expressions: vec![] };
    let expected = BudgetFacts {
        key: Key::new("rec-core", "a"),
        uid: "cb9611b1-adf5-4941-841b-4ee8dfc67db1".to_owned(),
        owner: None,
        selector: Some(selects_a),
        min_available: Some(IntOrPercent::Int(2)),
        max_unavailable: None,
        unhealthy: UnhealthyPolicy::IfHealthyBudget,
        observed: true,
        allowed: Some(0),
        healthy: Some(2),
        desired: Some(2),
        expected: Some(2),
        disrupted: vec![],
        sync_failed: None,
    };
    assert_eq!(budget("pdb-object-blocked"), expected);
    let disrupted = budget("pdb-object-disrupted");
    assert_eq!((disrupted.max_unavailable, disrupted.expected), (Some(IntOrPercent::Int(1)), Some(3)));
    let behind = budget("pdb-object-not-observed");
    assert_eq!((behind.observed, behind.allowed), (false, Some(1)));
    let never = budget("pdb-object-never-observed");
    assert_eq!((never.observed, never.allowed, never.healthy, never.expected), (false, None, None, None));

    let made = |spec: Value, status: Value| -> BudgetFacts {
        let owner = json!([{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "vm", "uid": "1",
            "controller": true}]);
        let meta = json!({"name": "b", "namespace": "ns", "uid": "u", "generation": 1, "ownerReferences": owner});
        facts::<wire::PodDisruptionBudget, _>(json!({"metadata": meta, "spec": spec, "status": status}))
    };
    let failed = made(
        json!({"maxUnavailable": "30%", "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": {}}),
        json!({"disruptedPods": {"p": "2026-11-30T10:00:00Z"}, "conditions": [
            {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no scale"}]}),
    );
    assert_eq!(failed.owner.as_ref().unwrap().name, "vm");
    assert_eq!(failed.sync_failed.as_deref(), Some("no scale"));
    assert_eq!((failed.observed, failed.allowed, failed.unhealthy), (false, Some(0), UnhealthyPolicy::AlwaysAllow));
    assert_eq!((failed.max_unavailable, &failed.disrupted), (Some(IntOrPercent::Percent(30)), &vec!["p".to_owned()]));
    let pod = made_pod_in("ns");
    assert!(failed.covers(&pod), "an empty selector selects everything in its namespace");
    assert!(!failed.covers(&made_pod_in("other")));
    assert!(!made(json!({"selector": null, "minAvailable": "odd"}), json!({})).covers(&pod), "none selects nothing");
    let expression = json!({"selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]}});
    assert!(!made(expression, json!({})).covers(&pod));
}

fn made_pod_in(namespace: &str) -> PodFacts {
    made(json!({ "namespace": namespace }), json!({}), json!({}))
}

#[test]
fn nodes() {
    let node = |value: Value| -> NodeFacts { facts::<wire::Node, _>(value) };
    let facts = node(body("node-object"));
    assert_eq!((facts.name.as_str(), facts.resource_version.as_str()), ("node-0", "13443"));
    assert_eq!(facts.uid, "07de0634-539b-4d18-adea-fda63d69cdeb");
    assert_eq!((facts.unschedulable, facts.cordoned_by, facts.ready), (false, None, NodeReady::Yes));
    assert_eq!(facts.heartbeat, Some(at("2026-11-30T09:54:13Z")));
    assert_eq!(
        facts.devices,
        named(&[
            ("devices.kubevirt.io/kvm", 1_000),
            ("devices.kubevirt.io/tun", 1_000),
            ("devices.kubevirt.io/vhost-net", 1_000),
            ("nvidia.com/A100", 4),
        ])
    );
    assert!(node(body("cordon-patch")).unschedulable);

    let facts = node(json!({"metadata": {"name": "n", "uid": "u", "annotations": {"kubevirt.io/heartbeat": "odd"},
            "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}]},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
            "lastTransitionTime": "2026-11-30T10:00:00Z"}]}}));
    assert_eq!(
        facts.ready,
        NodeReady::No { since: Some(at("2026-11-30T10:00:00Z")), reason: "NodeStatusUnknown".to_owned() }
    );
    let taint = Taint { key: "k".to_owned(), value: String::new(), effect: "NoSchedule".to_owned() };
    assert_eq!(
        (facts.taints, facts.heartbeat, facts.cordoned_by),
        (vec![taint], None, None),
        "not cordoned: by nobody"
    );
}

#[test]
fn claims_and_their_volumes() {
    let claim: wire::PersistentVolumeClaim = serde_json::from_value(
        json!({"metadata": {"name": "data", "namespace": "ns", "uid": "u"}, "spec": {"volumeName": "pv-1"}}),
    )
    .unwrap();
    assert_eq!(claim.volume_name(), Some("pv-1"));
    let volume: wire::PersistentVolume = serde_json::from_value(json!({"metadata": {"name": "pv-1", "uid": "v"},
        "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-0"]}]}]}}}}))
    .unwrap();
    let pinned = ClaimFacts::new(claim.clone(), Some(volume));
    assert_eq!(pinned.key, Key::new("ns", "data"));
    assert_eq!((pinned.volume_terms.len(), &pinned.volume_terms[0].labels[0].values), (1, &vec!["node-0".to_owned()]));
    assert_eq!(ClaimFacts::new(claim, None).volume_terms, []);
}
