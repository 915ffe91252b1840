//! What kubelets and virt-handlers write, as changes of the objects: the simulated cluster plays them with it, and [`crate::play`] on a real one.

use std::time::Duration;

use serde_json::{Value, json};

use crate::controllers::vmi::set_phase;
use crate::json::Json;

/// Why a migration with `lab/migration: fail` fails, unless `lab/migration-error` says otherwise.
const TOO_LONG: &str = "Live migration is not completed after 150 seconds and has been aborted";
/// Why one fails whose target has gone.
pub(crate) const TARGET_DOWN: &str = "Target pod is down";

/// Seconds after a node's last heartbeat at which virt-controller takes it to be without virt-handler.
pub(crate) const SILENCE: i64 = 300;

/// Why the migrations of a VMI with `lab/migration: fail` fail.
pub(crate) fn failure(vmi: &Value) -> &str {
    match vmi.annotation("lab/migration-error") {
        "" => TOO_LONG,
        why => why,
    }
}

/// Reads `1.5s`, `300ms`, `2m`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let number: f64 = text[..split].parse().ok()?;
    let unit = match &text[split..] {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(Duration::from_secs_f64(number * unit))
}

/// A node as its kubelet registers it, with KubeVirt labelled as KubeVirt's node labeller does.
pub(crate) fn node(name: &str, kubevirt: bool, now: &str) -> Value {
    let number: usize = name.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
    let amounts = json!({"cpu": "64", "devices.kubevirt.io/kvm": "1k", "devices.kubevirt.io/tun": "1k", "devices.kubevirt.io/vhost-net": "1k",
        "ephemeral-storage": "1Ti", "memory": "512Gi", "nvidia.com/A100": "4", "pods": "1k"});
    let mut node = json!({
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

/// A pod's containers run; it is ready unless `lab/crash` is on it.
pub(crate) fn pod_runs(p: &mut Value, now: &str, ip: &str) {
    let ready = p.annotation("lab/crash") != "true";
    let word = if ready { "True" } else { "False" };
    p.put("/status/phase", "Running");
    p.put("/status/podIP", ip);
    p.put("/status/podIPs", json!([{"ip": ip}]));
    p.put("/status/startTime", now);
    let rest = p.list("/status/conditions").to_vec();
    p.put("/status/conditions", json!([]));
    for kind in ["Ready", "ContainersReady"] {
        let mut c = json!({"type": kind, "status": word, "lastProbeTime": null, "lastTransitionTime": now});
        if !ready {
            c.put("/reason", "ContainersNotReady");
        }
        p.set_condition(c);
    }
    p.set_condition(json!({"type": "Initialized", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}));
    for c in rest {
        p.set_condition(c);
    }
    if !p.is_true("PodScheduled") {
        p.set_condition(
            json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}),
        );
    }
    statuses(p, now, ready);
}

fn statuses(pod: &mut Value, now: &str, ready: bool) {
    let uid = pod.uid().to_owned();
    // A migration target is given its images by their digest.
    let image_id = |image: &str| format!("{}@sha256:{}", image.split('@').next().unwrap_or(image), "ab".repeat(32));
    let running = json!({"running": {"startedAt": now}});
    let mut all = Vec::new();
    for c in pod.list("/spec/containers") {
        let (name, image) = (c.text("/name"), c.text("/image"));
        all.push(
            json!({"name": name, "state": running, "lastState": {}, "ready": ready, "restartCount": 0, "image": image,
            "imageID": image_id(image), "containerID": format!("containerd://{uid}{name}"), "started": true}),
        );
    }
    let mut init = Vec::new();
    for c in pod.list("/spec/initContainers") {
        let (name, image) = (c.text("/name"), c.text("/image"));
        let mut s = json!({"name": name, "lastState": {}, "ready": true, "restartCount": 0, "image": image, "imageID": image_id(image)});
        if c.text("/restartPolicy") == "Always" {
            s.put("/state", running.clone());
            s.put("/started", true);
        } else {
            s.put("/state", json!({"terminated": {"exitCode": 0, "startedAt": null, "finishedAt": null}}));
        }
        init.push(s);
    }
    pod.put("/status/containerStatuses", all);
    if !init.is_empty() {
        pod.put("/status/initContainerStatuses", init);
    }
}

/// How long a pod takes to stop, as far as its grace lets it; `guest` is the VMI that runs in it.
pub(crate) fn stop_time(pod: &Value, guest: Option<&Value>, default: Duration) -> Duration {
    if let Some(vmi) = guest.filter(|v| v.annotation("lab/shutdown") == "killed") {
        return seconds(vmi.int("/spec/terminationGracePeriodSeconds").unwrap_or(30));
    }
    duration(pod.annotation("lab/stop")).unwrap_or(default)
}

/// A number of seconds as objects write it.
pub(crate) fn seconds(number: i64) -> Duration {
    Duration::from_secs(u64::try_from(number).unwrap_or(0))
}

/// Whether this launcher is the one that a migration has left without a guest: the source of one that went well, the target of one that failed.
pub(crate) fn is_left(vmi: &Value, pod: &Value) -> bool {
    let Some(state) = vmi.pointer("/status/migrationState") else { return false };
    let side = if state.flag("/failed") { "/targetPod" } else { "/sourcePod" };
    state.flag("/completed")
        && state.text(side) == pod.name()
        && vmi.text("/status/nodeName") != pod.text("/spec/nodeName")
}

/// A pod has ended well, and so have its containers.
pub(crate) fn pod_completes(p: &mut Value, now: &str) {
    p.put("/status/phase", "Succeeded");
    for kind in ["Ready", "ContainersReady"] {
        p.set_condition(json!({"type": kind, "status": "False", "reason": "PodCompleted", "lastProbeTime": null, "lastTransitionTime": now}));
    }
    for list in ["/status/containerStatuses", "/status/initContainerStatuses"] {
        for c in p.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if c.has("/state/running") || c.has("/state/waiting") {
                let started = c.pointer("/state/running/startedAt").cloned().unwrap_or_else(|| json!(now));
                let id = c.text("/containerID").to_owned();
                c.put("/state", json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": now}}));
                if !id.is_empty() {
                    c.put("/state/terminated/containerID", id);
                }
                c.put("/ready", false);
                c.put("/started", false);
            }
        }
    }
}

/// The guest of a scheduled VMI runs, and it is said whether it can migrate.
pub(crate) fn guest_runs(v: &mut Value, now: &str) {
    set_phase(v, "Running", now);
    v.set_condition(json!({"type": "Ready", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}));
    v.set_condition(migratable(v.annotation("lab/nonmigratable")));
    if v.annotation("lab/agent") == "connected" {
        v.set_condition(
            json!({"type": "AgentConnected", "status": "True", "lastProbeTime": now, "lastTransitionTime": now}),
        );
    }
    v.put("/status/migrationMethod", "LiveMigration");
    v.put("/status/migrationTransport", "Unix");
    v.put("/status/selinuxContext", "none");
}

/// The guest has ended.
pub(crate) fn guest_ends(v: &mut Value, killed: bool, now: &str) {
    set_phase(v, if killed { "Failed" } else { "Succeeded" }, now);
    v.set_condition(json!({"type": "Ready", "status": "False", "reason": "PodTerminating", "message": "virt-launcher pod is terminating",
        "lastProbeTime": now, "lastTransitionTime": now}));
}

/// The target is prepared and the copy of a migration goes on.
pub(crate) fn copy_starts(v: &mut Value, now: &str) {
    v.put("/status/migrationState/startTimestamp", now);
    v.put("/status/migrationState/mode", "PreCopy");
    v.put("/status/migrationState/targetNodeAddress", "10.9.0.9");
    v.put("/status/migrationState/targetDirectMigrationNodePorts", json!({"30001": 49152}));
}

/// The copy has failed.
pub(crate) fn copy_ends(v: &mut Value, why: &str, now: &str) {
    v.put("/status/migrationState/completed", true);
    v.put("/status/migrationState/failed", true);
    v.put("/status/migrationState/failureReason", why);
    v.put("/status/migrationState/endTimestamp", now);
}

/// The copy was ended because somebody wished so.
pub(crate) fn copy_is_aborted(v: &mut Value, now: &str) {
    v.put("/status/migrationState/abortStatus", "Succeeded");
    copy_ends(v, "Live migration has been aborted", now);
}

/// The guest runs on the target of its migration.
pub(crate) fn guest_moves(v: &mut Value, now: &str) {
    let node = v.text("/status/migrationState/targetNode").to_owned();
    v.set_label("kubevirt.io/nodeName", &node);
    v.put("/status/nodeName", node);
    v.cut("/status/evacuationNodeName");
    v.put("/status/migrationState/completed", true);
    v.put("/status/migrationState/endTimestamp", now);
    v.put("/status/migrationState/targetNodeDomainDetected", true);
    v.put("/status/migrationState/targetNodeDomainReadyTimestamp", now);
}

/// The LiveMigratable condition for a reason ("" = it can). The empty times are there because virt-controller aborts a migration by a patch
/// that tests the whole status, as its own types write it.
fn migratable(reason: &str) -> Value {
    let message = match reason {
        "" => {
            return json!({"type": "LiveMigratable", "status": "True", "lastProbeTime": null, "lastTransitionTime": null});
        }
        "DisksNotLiveMigratable" => {
            "cannot migrate VMI: PVC root is not shared, live migration requires that all PVCs must be shared (using ReadWriteMany access mode)"
        }
        "HostDeviceNotLiveMigratable" => "VMI specifies a GPU but feature gate VGPULiveMigration is not enabled",
        "InterfaceNotLiveMigratable" => {
            "cannot migrate VMI which does not use masquerade or a migratable plugin to connect to the pod network"
        }
        "CPUModeLiveMigratable" => "the node \"node-0\" does not allow migration with host-model",
        "SEVNotLiveMigratable" => "VMI uses SEV",
        "TDXNotLiveMigratable" => "VMI uses TDX",
        _ => "the VMI cannot be migrated",
    };
    json!({"type": "LiveMigratable", "status": "False", "reason": reason, "message": message, "lastProbeTime": null, "lastTransitionTime": null})
}
