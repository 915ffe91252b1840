//! Reasons in plain words: what a reader at three in the morning needs, and nothing that must be looked up.

use crate::facts::{Key, Migratable, VmVolumeSource, VmiFacts};

/// Why the VM cannot migrate, in one clause. virt-handler's reasons are a fixed list (KubeVirt `virt-handler/vm.go`); an
/// unknown one is shown as it is.
pub fn not_migratable(vmi: &VmiFacts) -> String {
    let Migratable::No { reason, message } = &vmi.migratable else {
        return "it cannot migrate".into();
    };
    match reason.as_str() {
        "DisksNotLiveMigratable" => disks(vmi, message),
        "HostDeviceNotLiveMigratable" if message.contains("too many GPUs") => "it has more than one GPU".into(),
        "HostDeviceNotLiveMigratable" if message.contains("GPU") => "it has a GPU".into(),
        "HostDeviceNotLiveMigratable" => "it has a host device (PCI passthrough)".into(),
        "InterfaceNotLiveMigratable" if message.contains("masquerade") => "its pod network is a bridge".into(),
        "CPUModeLiveMigratable" => "its node does not let host-model CPUs migrate".into(),
        "SEVNotLiveMigratable" => "its memory is encrypted (SEV)".into(),
        "TDXNotLiveMigratable" => "its memory is encrypted (TDX)".into(),
        "SecureExecutionNotLiveMigratable" => "its memory is encrypted (Secure Execution)".into(),
        "NoTSCFrequencyNotLiveMigratable" => "its Hyper-V clock needs a TSC frequency that the cluster hides".into(),
        "HypervPassthroughNotLiveMigratable" => "it uses Hyper-V passthrough".into(),
        "VirtIOFSNotLiveMigratable" => "it shares a file system with its node (virtiofs)".into(),
        "PersistentReservationNotLiveMigratable" => "a disk uses SCSI persistent reservations".into(),
        _ if message.is_empty() => reason.clone(),
        _ => format!("{reason}: {message}"),
    }
}

fn disks(vmi: &VmiFacts, message: &str) -> String {
    if message.contains("HostDisk") {
        return match vmi.volumes.iter().find(|v| v.source == VmVolumeSource::HostDisk) {
            Some(volume) => format!("disk {} lies on its node (hostDisk)", volume.name),
            None => "a disk lies on its node (hostDisk)".into(),
        };
    }
    let Some(claim) = message.split("PVC ").nth(1).and_then(|rest| rest.split_whitespace().next()) else {
        return "a disk is not shared (not ReadWriteMany)".into();
    };
    let holds = |source: &VmVolumeSource| match source {
        VmVolumeSource::Claim(name) | VmVolumeSource::Ephemeral(name) => name == claim,
        VmVolumeSource::EmptyDisk | VmVolumeSource::HostDisk | VmVolumeSource::Other => false,
    };
    let disk = vmi.volumes.iter().find(|v| holds(&v.source)).map_or(claim, |v| v.name.as_str());
    if message.contains("Unable to determine") {
        format!("nobody can tell whether disk {disk} is shared")
    } else {
        format!("disk {disk} is not shared (not ReadWriteMany)")
    }
}

/// The same where that flag is given already.
pub const THEN_AGAIN: &str = ", then run the same command again";
/// How a remedy ends after which it takes a restart, in the words of a drain.
pub const THEN_RESTART: &str = ", then add --restart-stale";
/// The command that sets the strategy in the template of a pool of VMs.
pub fn patch_pool(namespace: &str, pool: &str) -> String {
    format!(
        "kubectl patch vmpool {pool} -n {namespace} --type=merge -p '{{\"spec\":{{\"virtualMachineTemplate\":{{\"spec\":{{\"template\":{{\"spec\":{{\"evictionStrategy\":\"LiveMigrateIfPossible\"}}}}}}}}}}}}'"
    )
}

/// The command that sets a VM template's strategy.
pub fn patch_template(vm: &Key) -> String {
    format!(
        "kubectl patch vm {} -n {} --type=merge -p '{{\"spec\":{{\"template\":{{\"spec\":{{\"evictionStrategy\":\"LiveMigrateIfPossible\"}}}}}}}}'",
        vm.name, vm.namespace
    )
}

/// What to do where no node can take a VM.
pub fn open_a_node(vmi: &Key, has_vm: bool, cordoned: &[String]) -> String {
    let stop = if has_vm { virtctl("stop", vmi) } else { delete_vmi(vmi) };
    match cordoned.first() {
        Some(node) => format!("`kubectl uncordon {node}`, or stop the VM: `{stop}`"),
        None => format!("open a node for it (label or untaint one), or stop the VM: `{stop}`"),
    }
}

/// A `virtctl` command for a VM.
pub fn virtctl(verb: &str, vm: &Key) -> String {
    format!("virtctl {verb} {} -n {}", vm.name, vm.namespace)
}

/// The command that deletes a VMI.
pub fn delete_vmi(vmi: &Key) -> String {
    format!("kubectl delete vmi {} -n {}", vmi.name, vmi.namespace)
}

/// What to do where one migration after the other fails, by libvirt's or KubeVirt's reason for the last one.
pub fn after_failed_migrations(why: &str, vmi: &Key, has_vm: bool) -> String {
    let stop = if has_vm { virtctl("stop", vmi) } else { delete_vmi(vmi) };
    let Key { namespace, name } = vmi;
    if why.contains("CPU") || why.contains("cpu ") {
        let restart = virtctl("restart", vmi);
        let anew =
            if has_vm { format!(", or `{restart}`: it starts with the CPU of its new host") } else { String::new() };
        return format!("waiting does not heal it: add a host with that CPU{anew}");
    }
    if why.contains("not completed") || why.contains("stuck") || why.contains("converge") {
        let policy = "a MigrationPolicy that gives it more time (completionTimeoutPerGiB) or allowPostCopy";
        return format!("`{stop}`, or {policy}");
    }
    if why.starts_with("no node accepts") {
        return format!("make room for it on another node, or `{stop}`");
    }
    format!("`kubectl get pods -n {namespace} -l vm.kubevirt.io/name={name}` shows its targets; or `{stop}`")
}

/// The scheduler's words without what it says of preemption: `0/3 nodes are available: 2 Too many pods`.
pub fn scheduler(text: &str) -> String {
    let end = ["no new claims to deallocate", "preemption:"].iter().filter_map(|rest| text.find(rest)).min();
    text[..end.unwrap_or(text.len())].trim().trim_end_matches(['.', ',']).to_owned()
}

/// `1 node`, `2 nodes`.
pub fn count(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// Seconds as people write them: `45s`, `10m`, `1h`, `1h5m`.
pub fn duration(seconds: i64) -> String {
    let (hours, minutes, rest) = (seconds / 3600, seconds % 3600 / 60, seconds % 60);
    let mut text = String::new();
    for (n, unit) in [(hours, "h"), (minutes, "m"), (rest, "s")] {
        if n > 0 {
            text.push_str(&n.to_string());
            text.push_str(unit);
        }
    }
    if text.is_empty() { "0s".into() } else { text }
}

/// A length of time as people write it.
pub fn spoken(length: std::time::Duration) -> String {
    duration(i64::try_from(length.as_secs()).unwrap_or(i64::MAX))
}
