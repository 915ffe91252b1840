//! The kubelets and, for guests, the virt-handlers. Steered by annotations:
//! `lab/stop` (how long a pod takes to stop), `lab/shutdown: killed` (the guest ignores its shutdown: takes its whole grace and ends Failed),
//! `lab/shutdown: lost` (nobody says how the guest ended: the VMI stays Running without a pod),
//! `lab/crash: true` on a pod (it never becomes ready), `lab/nonmigratable` (reason of LiveMigratable=False), `lab/agent: none`.

use std::time::Duration;

use serde_json::{Value, json};

use super::node::is_up;
use super::vmi::is_final;
use crate::cluster::{Cluster, finish};
use crate::json::Json;
use crate::kinds::{Key, Kind};

/// Reads `1.5s`, `300ms`, `2m`.
pub(super) fn duration(text: &str) -> Option<Duration> {
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

/// Starts what is bound and stops what is deleted.
pub(super) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(pod) = cluster.store.get(key) else { return };
    let node = pod.text("/spec/nodeName");
    if node.is_empty() || !is_up(cluster, node) {
        return;
    }
    let uid = pod.uid().to_owned();
    if pod.deleting() {
        let grace = pod.int("/metadata/deletionGracePeriodSeconds").unwrap_or(0);
        if grace == 0 {
            return;
        }
        let wish = stop_time(cluster, &pod);
        let limit = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
        let (key, cut_short) = (key.clone(), limit < wish);
        cluster.after(&format!("stop/{uid}/{grace}"), wish.min(limit), move |c| {
            if c.store.get(&key).is_some_and(|p| p.uid() == uid && is_up(c, p.text("/spec/nodeName"))) {
                shut_guest(c, &key, cut_short);
                if c.store.get(&key).is_some_and(|p| !p.list("/metadata/finalizers").is_empty()) {
                    // The object stays: it shows that nothing runs any more.
                    c.update(&key, |p| p.put("/status/phase", "Succeeded"));
                }
                finish(c, &key, &uid);
            }
        });
    } else if pod.text("/status/phase") == "Pending" {
        let (key, delay) = (key.clone(), cluster.opts.start);
        cluster.after(&format!("start/{uid}"), delay, move |c| {
            if c.store.get(&key).is_some_and(|p| p.uid() == uid && !p.deleting() && is_up(c, p.text("/spec/nodeName")))
            {
                run(c, &key);
            }
        });
    }
}

fn owner_vmi(cluster: &Cluster, pod: &Value) -> Option<std::sync::Arc<Value>> {
    let name = pod.annotation("kubevirt.io/domain");
    if pod.label("kubevirt.io") != "virt-launcher" || name.is_empty() {
        return None;
    }
    cluster.get(Kind::Vmi, pod.namespace(), name).filter(|v| v.uid() == pod.label("kubevirt.io/created-by"))
}

fn stop_time(cluster: &Cluster, pod: &Value) -> Duration {
    let vmi = owner_vmi(cluster, pod).filter(|v| v.text("/status/nodeName") == pod.text("/spec/nodeName"));
    if let Some(vmi) = vmi.filter(|v| v.annotation("lab/shutdown") == "killed") {
        let grace = vmi.int("/spec/terminationGracePeriodSeconds").unwrap_or(30);
        return Duration::from_secs(u64::try_from(grace).unwrap_or(0));
    }
    duration(pod.annotation("lab/stop")).unwrap_or(cluster.opts.stop)
}

/// What virt-handler says of a guest whose launcher stops.
fn shut_guest(cluster: &mut Cluster, key: &Key, cut_short: bool) {
    let Some(pod) = cluster.store.get(key) else { return };
    let Some(vmi) = owner_vmi(cluster, &pod) else { return };
    if is_final(&vmi)
        || vmi.text("/status/nodeName") != pod.text("/spec/nodeName")
        || vmi.annotation("lab/shutdown") == "lost"
    {
        return;
    }
    let killed = cut_short || vmi.annotation("lab/shutdown") == "killed";
    let now = cluster.now();
    cluster.update(&Key::new(Kind::Vmi, vmi.namespace(), vmi.name()), |v| {
        super::vmi::set_phase(v, if killed { "Failed" } else { "Succeeded" }, &now);
        v.set_condition(json!({"type": "Ready", "status": "False", "reason": "PodTerminating", "message": "virt-launcher pod is terminating",
            "lastProbeTime": now, "lastTransitionTime": now}));
    });
}

fn run(cluster: &mut Cluster, key: &Key) {
    let (now, ip) = (cluster.now(), cluster.new_ip());
    cluster.update(key, |p| {
        let ready = p.annotation("lab/crash") != "true";
        let word = if ready { "True" } else { "False" };
        p.put("/status/phase", "Running");
        p.put("/status/podIP", ip.as_str());
        p.put("/status/podIPs", json!([{"ip": ip}]));
        p.put("/status/startTime", now.as_str());
        let rest = p.list("/status/conditions").to_vec();
        p.put("/status/conditions", json!([]));
        for kind in ["Ready", "ContainersReady"] {
            let mut c = json!({"type": kind, "status": word, "lastProbeTime": null, "lastTransitionTime": now});
            if !ready {
                c.put("/reason", "ContainersNotReady");
            }
            p.set_condition(c);
        }
        p.set_condition(
            json!({"type": "Initialized", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}),
        );
        for c in rest {
            p.set_condition(c);
        }
        if !p.is_true("PodScheduled") {
            p.set_condition(
                json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}),
            );
        }
        statuses(p, &now, ready);
    });
}

fn statuses(pod: &mut Value, now: &str, ready: bool) {
    let uid = pod.uid().to_owned();
    let image_id = |image: &str| format!("{image}@sha256:{}", "ab".repeat(32));
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

/// virt-handler: starts the guest of a scheduled VMI and says whether it can migrate.
pub(super) fn guest(cluster: &mut Cluster, key: &Key) {
    let Some(vmi) = cluster.store.get(key) else { return };
    if vmi.text("/status/phase") != "Scheduled" || vmi.deleting() || !is_up(cluster, vmi.text("/status/nodeName")) {
        return;
    }
    let (key, uid, delay) = (key.clone(), vmi.uid().to_owned(), cluster.opts.start);
    cluster.after(&format!("guest/{uid}"), delay, move |c| {
        let fits = |v: &Value| v.uid() == uid && v.text("/status/phase") == "Scheduled" && !v.deleting();
        if c.store.get(&key).is_some_and(|v| fits(&v) && is_up(c, v.text("/status/nodeName"))) {
            boot(c, &key);
        }
    });
}

fn boot(cluster: &mut Cluster, key: &Key) {
    let now = cluster.now();
    cluster.update(key, |v| {
        super::vmi::set_phase(v, "Running", &now);
        v.set_condition(json!({"type": "Ready", "status": "True", "lastTransitionTime": now}));
        v.set_condition(migratable(v.annotation("lab/nonmigratable")));
        if v.annotation("lab/agent") == "connected" {
            v.set_condition(
                json!({"type": "AgentConnected", "status": "True", "lastProbeTime": now, "lastTransitionTime": now}),
            );
        }
        v.put("/status/migrationMethod", "LiveMigration");
        v.put("/status/migrationTransport", "Unix");
        v.put("/status/selinuxContext", "none");
    });
}

/// The LiveMigratable condition for a reason ("" = it can).
pub(super) fn migratable(reason: &str) -> Value {
    let message = match reason {
        "" => return json!({"type": "LiveMigratable", "status": "True"}),
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
    json!({"type": "LiveMigratable", "status": "False", "reason": reason, "message": message})
}
