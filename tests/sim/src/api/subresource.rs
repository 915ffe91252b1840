//! The aggregated API of virt-api: restart, start, stop, migrate, evacuate/cancel.
//! A dry run is asked for by the body only; `?dryRun=All` is ignored and the call is real, as seen on real releases.

use std::time::Duration;

use serde_json::{Value, json};

use super::answer::{Answer, bad_request, internal, no_such_path};
use super::route::Request;
use super::webhook::{failed_patch, is_live, no_migration, vm_conflict, vm_not_found};
use crate::cluster::Cluster;
use crate::controllers::vm::run_strategy;
use crate::json::Json;
use crate::kinds::{Key, Kind};
use crate::options::{Profile, VirtApi};

/// What the aggregator answers while virt-api is away.
pub(super) fn down(cluster: &Cluster) -> Answer {
    match cluster.virt_api() {
        VirtApi::NoEndpoints => Answer::text(503, "service unavailable\n"),
        VirtApi::Hang => Answer::text(504, "error trying to reach service: context deadline exceeded\n")
            .delayed(Duration::from_secs(30).div_f64(cluster.opts.speed)),
        VirtApi::Up | VirtApi::Refused => {
            let text = format!(
                "error trying to reach service: dial tcp {}: connect: connection refused\n",
                cluster.opts.virt_api_dial
            );
            Answer::text(503, &text)
        }
    }
}

/// Answers a call of the group.
pub(super) fn answer(cluster: &mut Cluster, request: &Request) -> Answer {
    if cluster.opts.kubevirt.is_none() {
        return no_such_path();
    }
    if cluster.virt_api() != VirtApi::Up {
        return down(cluster);
    }
    if !request.accept.is_empty() && !request.accept.split(',').any(|a| a.trim().starts_with("*/*")) {
        return Answer::text(406, "406: Not Acceptable\n\nAvailable representations: ");
    }
    if request.method != "PUT" {
        return no_such_path();
    }
    match (request.resource.as_str(), request.subresource.as_str()) {
        ("virtualmachines", "restart") => restart(cluster, request),
        ("virtualmachines", "start") => start(cluster, request),
        ("virtualmachines", "stop") => stop(cluster, request),
        ("virtualmachines", "migrate") => migrate(cluster, request),
        ("virtualmachines" | "virtualmachineinstances", "evacuate/cancel")
            if cluster.opts.profile() >= Profile::V1_7 =>
        {
            cancel(cluster, request)
        }
        _ => no_such_path(),
    }
}

fn dry_run(request: &Request) -> bool {
    request.body.as_ref().is_some_and(|b| b.list("/dryRun").iter().any(|v| v == "All"))
}

fn ask(cluster: &mut Cluster, request: &Request, vm: &Value, actions: Value) -> Answer {
    if !vm.list("/status/stateChangeRequests").is_empty() {
        return internal("unable to complete request: stop/start already underway");
    }
    if !dry_run(request) {
        let key = Key::new(Kind::Vm, &request.ns, &request.name);
        cluster.update(&key, |v| {
            v.put("/status/stateChangeRequests", actions);
            v.cut("/status/startFailure");
        });
    }
    Answer::empty(202)
}

fn restart(cluster: &mut Cluster, request: &Request) -> Answer {
    let name = &request.name;
    let grace = request.body.as_ref().and_then(|b| b.int("/gracePeriodSeconds"));
    match grace {
        Some(g) if g > 0 => return bad_request("For force restart, only gracePeriod=0 is supported for now"),
        Some(g) if g < 0 => return bad_request("gracePeriod has to be greater or equal to 0"),
        _ => {}
    }
    let Some(vm) = cluster.get(Kind::Vm, &request.ns, name) else { return vm_not_found("virtualmachine", name) };
    if vm.is_true("ManualRecoveryRequired") || vm.is_true("VolumesChange") {
        let why = "VM recovery required: Volume migration failed, leaving some volumes pointing to non-consistent targets; manual intervention is needed to reassign them to their original volumes.";
        return vm_conflict("virtualmachine", name, why);
    }
    let strategy = run_strategy(&vm);
    if matches!(strategy, "Halted" | "Once") {
        return vm_conflict(
            "virtualmachine",
            name,
            &format!("RunStategy {strategy} does not support manual restart requests"),
        );
    }
    let Some(vmi) = cluster.get(Kind::Vmi, &request.ns, name) else {
        return vm_conflict("virtualmachine", name, "VM is not running: Halted");
    };
    if grace == Some(0) && !dry_run(request) {
        cluster.update(&Key::new(Kind::Vmi, &request.ns, name), |v| v.put("/spec/terminationGracePeriodSeconds", 1));
    }
    ask(cluster, request, &vm, json!([{"action": "Stop", "uid": vmi.uid()}, {"action": "Start"}]))
}

fn start(cluster: &mut Cluster, request: &Request) -> Answer {
    let name = &request.name;
    let Some(vm) = cluster.get(Kind::Vm, &request.ns, name) else { return vm_not_found("virtualmachine", name) };
    let vmi = cluster.get(Kind::Vmi, &request.ns, name);
    if is_live(vmi.as_deref()) {
        return vm_conflict("virtualmachine", name, "VM is already running");
    }
    match (run_strategy(&vm), &vmi) {
        (s @ ("Always" | "Once"), _) => {
            vm_conflict("virtualmachine", name, &format!("{s} does not support manual start requests"))
        }
        ("Halted", _) => {
            if !dry_run(request) {
                cluster.update(&Key::new(Kind::Vm, &request.ns, name), |v| {
                    v.cut("/spec/running");
                    v.put("/spec/runStrategy", "Always");
                });
            }
            Answer::empty(202)
        }
        ("RerunOnFailure", Some(v)) if v.text("/status/phase") == "Failed" => {
            vm_conflict("virtualmachine", name, "RerunOnFailure does not support starting VM from failed state")
        }
        (_, Some(v)) => ask(cluster, request, &vm, json!([{"action": "Stop", "uid": v.uid()}, {"action": "Start"}])),
        (_, None) => ask(cluster, request, &vm, json!([{"action": "Start"}])),
    }
}

fn stop(cluster: &mut Cluster, request: &Request) -> Answer {
    let name = &request.name;
    let Some(vm) = cluster.get(Kind::Vm, &request.ns, name) else { return vm_not_found("virtualmachine", name) };
    let vmi = cluster.get(Kind::Vmi, &request.ns, name);
    match run_strategy(&vm) {
        "Halted" => vm_conflict("virtualmachine", name, "VM is not running"),
        "Manual" | "RerunOnFailure" => match vmi.filter(|v| is_live(Some(v))) {
            Some(v) => ask(cluster, request, &vm, json!([{"action": "Stop", "uid": v.uid()}])),
            None => vm_conflict("virtualmachine", name, "VM is not running"),
        },
        _ => {
            if !dry_run(request) {
                cluster.update(&Key::new(Kind::Vm, &request.ns, name), |v| {
                    v.cut("/spec/running");
                    v.put("/spec/runStrategy", "Halted");
                });
            }
            Answer::empty(202)
        }
    }
}

fn migrate(cluster: &mut Cluster, request: &Request) -> Answer {
    let name = &request.name;
    if cluster.get(Kind::Vm, &request.ns, name).is_none() {
        return vm_not_found("virtualmachine", name);
    }
    let running = cluster.get(Kind::Vmi, &request.ns, name).is_some_and(|v| v.text("/status/phase") == "Running");
    if !running {
        return vm_conflict("virtualmachine", name, "VM is not running");
    }
    if let Some(refusal) = no_migration(cluster, &request.ns, name) {
        return refusal;
    }
    if !dry_run(request) {
        cluster.create(
            Kind::Vmim,
            json!({"metadata": {"generateName": "kubevirt-migrate-vm-", "namespace": request.ns}, "spec": {"vmiName": name}}),
        );
    }
    Answer::empty(202)
}

fn cancel(cluster: &mut Cluster, request: &Request) -> Answer {
    let (ns, name) = (&request.ns, &request.name);
    if request.resource == "virtualmachines" && cluster.get(Kind::Vm, ns, name).is_none() {
        return vm_not_found("virtualmachine", name);
    }
    let Some(vmi) = cluster.get(Kind::Vmi, ns, name) else {
        if request.resource == "virtualmachines" {
            return vm_conflict("virtualmachine", name, "VM is not running");
        }
        return vm_not_found("virtualmachineinstance", name);
    };
    let mark = vmi.text("/status/evacuationNodeName");
    let node = if mark.is_empty() { vmi.text("/status/nodeName") } else { mark };
    let Some(node) = cluster.get(Kind::Node, "", node) else { return internal(&format!("nodes \"{node}\" not found")) };
    let taint = |t: &Value| t.text("/key") == "kubevirt.io/drain" && t.text("/effect") == "NoSchedule";
    if node.list("/spec/taints").iter().any(taint) {
        return bad_request(&format!(
            "Node \"{}\" has NodeDrainTaintKey \"kubevirt.io/drain:NoSchedule\"",
            node.name()
        ));
    }
    if mark.is_empty() {
        return Answer::empty(200);
    }
    if request.raw.is_empty() {
        return bad_request("No body");
    }
    if request.body.as_ref().map_or("", |b| b.text("/evacuationNodeName")) != mark {
        return failed_patch();
    }
    if !dry_run(request) {
        cluster.update(&Key::new(Kind::Vmi, ns, name), |v| v.cut("/status/evacuationNodeName"));
    }
    Answer::empty(200)
}
