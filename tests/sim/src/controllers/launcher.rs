//! The launcher pod of a VMI, as virt-controller renders it (fields that no client reads are shortened).

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::json::{Json, controlled_by};

/// Status fields that follow from the spec.
pub(super) fn observe(vmi: &mut Value) {
    let guest = vmi.pointer("/spec/domain/memory/guest").cloned().unwrap_or(json!("128Mi"));
    vmi.put("/status/currentCPUTopology", json!({"cores": 1, "sockets": 1, "threads": 1}));
    vmi.put(
        "/status/memory",
        json!({"guestAtBoot": guest, "guestCurrent": guest, "guestRequested": guest, "memoryOverhead": "274688Ki"}),
    );
    vmi.put("/status/interfaces", json!([{"name": "default", "podInterfaceName": "eth0"}]));
    let volumes: Vec<Value> =
        vmi.list("/spec/volumes").iter().map(|v| json!({"name": v.text("/name"), "target": ""})).collect();
    vmi.put("/status/volumeStatus", volumes);
}

fn volumes(vmi: &Value, image: &str, target: bool) -> Vec<Value> {
    let digest = if target { format!("@sha256:{}", "ab".repeat(32)) } else { String::new() };
    let mut all: Vec<Value> =
        ["private", "public", "sockets", "virt-bin-share-dir", "libvirt-runtime", "ephemeral-disks"]
            .iter()
            .map(|n| json!({"name": n, "emptyDir": {}}))
            .collect();
    for v in vmi.list("/spec/volumes") {
        let name = v.text("/name");
        if v.has("/containerDisk") {
            all.push(json!({"name": name, "image": {"reference": format!("{}{digest}", v.text("/containerDisk/image")), "pullPolicy": "Always"}}));
        } else if v.has("/persistentVolumeClaim") {
            all.push(json!({"name": name, "persistentVolumeClaim": {"claimName": v.text("/persistentVolumeClaim/claimName")}}));
        } else if v.has("/dataVolume") {
            all.push(json!({"name": name, "persistentVolumeClaim": {"claimName": v.text("/dataVolume/name")}}));
        } else if v.has("/ephemeral") {
            let claim = v.text("/ephemeral/persistentVolumeClaim/claimName");
            all.push(json!({"name": name, "persistentVolumeClaim": {"claimName": claim, "readOnly": true}}));
        } else if v.has("/hostDisk") {
            all.push(
                json!({"name": name, "hostPath": {"path": v.text("/hostDisk/path"), "type": "DirectoryOrCreate"}}),
            );
        }
    }
    if target {
        // A target is given the disk by its digest and needs no container to find it out.
        all.push(json!({"name": "hotplug-disks", "emptyDir": {}}));
        return all;
    }
    all.push(json!({"name": "launcher-volume", "image": {"reference": image, "pullPolicy": "IfNotPresent"}}));
    all.push(json!({"name": "hotplug-disks", "emptyDir": {}}));
    all
}

fn init_containers(vmi: &Value, image: &str, target: bool) -> Vec<Value> {
    let log = format!("/var/run/kubevirt-private/{}/virt-serial0-log", vmi.uid());
    let tail = |mut c: Value, policy: &str| {
        c.put("/terminationMessagePath", "/dev/termination-log");
        c.put("/terminationMessagePolicy", "File");
        c.put("/imagePullPolicy", policy);
        c.put(
            "/securityContext",
            json!({"capabilities": {"drop": ["ALL"]}, "runAsUser": 107, "runAsNonRoot": true, "allowPrivilegeEscalation": false}),
        );
        c
    };
    let mut all = vec![tail(
        json!({"name": "guest-console-log", "image": image, "command": ["/usr/bin/virt-tail"], "args": ["--logfile", log],
            "env": [{"name": "VIRT_LAUNCHER_LOG_VERBOSITY", "value": "2"}],
            "resources": {"limits": {"cpu": "15m", "memory": "60M"}, "requests": {"cpu": "5m", "memory": "35M"}},
            "restartPolicy": "Always", "volumeMounts": [{"name": "private", "readOnly": true, "mountPath": "/var/run/kubevirt-private"}]}),
        "IfNotPresent",
    )];
    for v in vmi.list("/spec/volumes").iter().filter(|v| v.has("/containerDisk") && !target) {
        all.push(tail(
            json!({"name": format!("volume{}", v.text("/name")), "image": v.text("/containerDisk/image"),
                "command": ["/container-disk-binary/usr/bin/container-disk"], "args": ["--no-op"],
                "resources": {"limits": {"cpu": "10m", "memory": "40M"}, "requests": {"cpu": "1m", "ephemeral-storage": "50M", "memory": "1M"}},
                "volumeMounts": [{"name": "launcher-volume", "readOnly": true, "mountPath": "/container-disk-binary"}]}),
            "Always",
        ));
    }
    all
}

fn compute(vmi: &Value, image: &str, grace: i64) -> Value {
    let (name, ns) = (vmi.name(), vmi.namespace());
    let mut limits =
        json!({"devices.kubevirt.io/kvm": "1", "devices.kubevirt.io/tun": "1", "devices.kubevirt.io/vhost-net": "1"});
    for list in ["/spec/domain/devices/gpus", "/spec/domain/devices/hostDevices"] {
        for d in vmi.list(list) {
            limits[d.text("/deviceName")] = json!("1");
        }
    }
    let mut requests = limits.clone();
    requests["cpu"] = json!("100m");
    requests["ephemeral-storage"] = json!("50M");
    requests["memory"] = json!("405760Ki");
    json!({"name": "compute", "image": image,
        "command": ["/usr/bin/virt-launcher-monitor", "--qemu-timeout", "261s", "--name", name, "--uid", vmi.uid(), "--namespace", ns,
            "--kubevirt-share-dir", "/var/run/kubevirt", "--ephemeral-disk-dir", "/var/run/kubevirt-ephemeral-disks",
            "--container-disk-dir", "/var/run/kubevirt/container-disks", "--grace-period-seconds", (grace - 15).to_string(),
            "--hook-sidecars", "0", "--ovmf-path", "/usr/share/edk2/ovmf", "--disk-memory-limit", "2097152000", "--hypervisor", "kvm",
            "--run-as-nonroot", "--image-volume", "--libvirt-hook-server-and-client", "--upgrade-ordinal-ifaces"],
        "env": [{"name": "XDG_CACHE_HOME", "value": "/var/run/kubevirt-private"}, {"name": "XDG_CONFIG_HOME", "value": "/var/run/kubevirt-private"},
            {"name": "XDG_RUNTIME_DIR", "value": "/var/run"},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
        "resources": {"limits": limits, "requests": requests},
        "volumeMounts": [{"name": "private", "mountPath": "/var/run/kubevirt-private"}, {"name": "public", "mountPath": "/var/run/kubevirt"},
            {"name": "ephemeral-disks", "mountPath": "/var/run/kubevirt-ephemeral-disks"}, {"name": "libvirt-runtime", "mountPath": "/var/run/libvirt"},
            {"name": "sockets", "mountPath": "/var/run/kubevirt/sockets"},
            {"name": "root", "readOnly": true, "mountPath": "/var/run/kubevirt-image-volume/disk_0"},
            {"name": "hotplug-disks", "mountPath": "/var/run/kubevirt/hotplug-disks", "mountPropagation": "HostToContainer"}],
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "FallbackToLogsOnError", "imagePullPolicy": "IfNotPresent",
        "securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}, "runAsUser": 107, "runAsGroup": 107,
            "runAsNonRoot": true, "allowPrivilegeEscalation": false}})
}

/// A launcher pod; with a migration it is that one's target.
pub(super) fn pod(cluster: &mut Cluster, vmi: &Value, migration: Option<&Value>) -> Value {
    let (name, ns) = (vmi.name().to_owned(), vmi.namespace().to_owned());
    let image = format!("quay.io/kubevirt/virt-launcher:{}", cluster.opts.profile().version());
    let grace = vmi.int("/spec/terminationGracePeriodSeconds").unwrap_or(30) + 30;
    let mut pod = json!({
        "metadata": {"generateName": format!("virt-launcher-{name}-"), "namespace": ns,
            "labels": vmi.pointer("/metadata/labels").cloned().unwrap_or(json!({})), "ownerReferences": [controlled_by(vmi)]},
        "spec": {"volumes": volumes(vmi, &image, migration.is_some()), "initContainers": init_containers(vmi, &image, migration.is_some()), "containers": [compute(vmi, &image, grace)],
            "restartPolicy": "Never", "terminationGracePeriodSeconds": grace, "automountServiceAccountToken": false,
            "securityContext": {"runAsUser": 107, "runAsGroup": 107, "runAsNonRoot": true, "fsGroup": 107}, "hostname": name,
            "nodeSelector": {"kubernetes.io/arch": "amd64", "kubevirt.io/schedulable": "true", "machine-type.node.kubevirt.io/q35": "true"},
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "node-labeller.kubevirt.io/obsolete-host-model", "operator": "DoesNotExist"}]}]}}},
            "readinessGates": [{"conditionType": "kubevirt.io/virtual-machine-unpaused"}], "enableServiceLinks": false},
        "status": {"phase": "Pending", "qosClass": "Burstable"}
    });
    pod.cut("/metadata/labels/kubevirt.io~1nodeName");
    pod.cut("/metadata/labels/kubevirt.io~1migrationTargetNodeName");
    pod.set_label("kubevirt.io", "virt-launcher");
    pod.set_label("kubevirt.io/created-by", vmi.uid());
    pod.set_label("vm.kubevirt.io/name", &name);
    pod.set_label("vmi.kubevirt.io/id", &name);
    for (k, v) in vmi.pointer("/metadata/annotations").and_then(Value::as_object).into_iter().flatten() {
        if !k.ends_with("observed-api-version") {
            pod.set_annotation(k, v.as_str());
        }
    }
    let hook = |word: &str| {
        json!(["/usr/bin/virt-freezer", format!("--{word}"), "--name", name, "--namespace", ns])
            .to_string()
            .replace("\",\"", "\", \"")
    };
    for (k, v) in [
        ("kubevirt.io/domain", name.clone()),
        ("descheduler.alpha.kubernetes.io/request-evict-only", String::new()),
        ("kubectl.kubernetes.io/default-container", "compute".to_owned()),
        ("kubevirt.io/memory-overhead-bytes", "281280512".to_owned()),
        ("kubevirt.io/migrationTransportUnix", "true".to_owned()),
        ("post.hook.backup.velero.io/command", hook("unfreeze")),
        ("post.hook.backup.velero.io/container", "compute".to_owned()),
        ("pre.hook.backup.velero.io/command", hook("freeze")),
        ("pre.hook.backup.velero.io/container", "compute".to_owned()),
        ("pre.hook.backup.velero.io/timeout", "60s".to_owned()),
    ] {
        pod.set_annotation(k, Some(&v));
    }
    for (k, v) in vmi.pointer("/spec/nodeSelector").and_then(Value::as_object).into_iter().flatten() {
        pod["spec"]["nodeSelector"][k] = v.clone();
    }
    for field in ["tolerations", "priorityClassName"] {
        if let Some(v) = vmi.pointer(&format!("/spec/{field}")) {
            pod.put(&format!("/spec/{field}"), v.clone());
        }
    }
    let affinity = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    for term in vmi.list(&format!("/spec{affinity}")) {
        // Real terms are merged with the obsolete-host-model one; the term alone selects the same nodes here.
        pod.put(&format!("/spec{affinity}"), json!([term]));
    }
    if let Some(m) = migration {
        // A guest with the host's CPU model goes only where that model can be had.
        let source = cluster.get(crate::kinds::Kind::Node, "", vmi.text("/status/nodeName"));
        let labels = source.as_ref().and_then(|n| n.pointer("/metadata/labels")).and_then(Value::as_object);
        let model = labels.into_iter().flatten().find_map(|(k, _)| k.strip_prefix("host-model-cpu.node.kubevirt.io/"));
        if let (Some(model), "host-model") = (model, vmi.text("/spec/domain/cpu/model")) {
            pod["spec"]["nodeSelector"][format!("cpu-model-migration.node.kubevirt.io/{model}")] = json!("true");
        }
        pod.set_label("kubevirt.io/migrationJobUID", m.uid());
        pod.set_label("kubevirt.io/nodeName", vmi.text("/status/nodeName"));
        pod.set_annotation("kubevirt.io/migrationJobName", Some(m.name()));
        pod.set_annotation("kubevirt.io/nonroot", Some("true"));
        pod.put(
            "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution",
            json!([{"labelSelector": {"matchLabels": {"kubevirt.io/created-by": vmi.uid()}}, "topologyKey": "kubernetes.io/hostname"}]),
        );
    }
    pod
}
