//! The clusters that the recordings were made on, rebuilt, and the calls in an order that leads to the recorded states.

use std::time::Duration;

use safe_drain_sim::{Fault, Json, Options, PodSpec, Profile, Rule, Sim, Then, VirtApi, Vm};
use serde_json::json;

use crate::Check;
use crate::support::{call, evict, launchers, pods, sleep};

const NS: &str = "rec-vm";

/// Which of the nodes that fit a new pod gets is each scheduler's own choice.
const PLACES: &[&str] = &[": \"node-0\" instead of", ": \"node-1\" instead of", ": \"node-2\" instead of"];

/// The stand-in for the kubelets that the recordings were made with did not say that the containers of a pod that is over have ended.
const HELD: &[&str] =
    &["/status/conditions/Ready/", "/status/conditions/ContainersReady/", "/status/containerStatuses/"];
const COMPLETED: &[&str] = &[
    "/virt-launcher-migratable-<r>/status/conditions/ContainersReady/",
    "/virt-launcher-migratable-<r>/status/containerStatuses/",
    "/virt-launcher-migratable-<r>/status/initContainerStatuses/",
];

/// Nor that these had ended, and their VMs were not started again as they are by a virt-controller that sees it.
const STARTED_AGAIN: &[&str] = &[
    "/virt-launcher-fresh-<r>: not recorded",
    "/virt-launcher-fresh-rerun-<r>: not recorded",
    "/virt-launcher-none-<r>: not recorded",
];

/// Version lists.
pub(crate) async fn discovery(check: &mut Check) {
    let sim = Sim::new(Options { kubevirt: Some(Profile::V1_9), ..Options::default() });
    // Resources that the simulator does not hold are not in its lists; what it lists is as recorded.
    let more = ["missing, recorded {\"kind\"", "missing, recorded {\"categories\"", "missing, recorded {\"group\""];
    for name in ["discovery-core-v1", "discovery-kubevirt-v1", "discovery-subresources-v1"] {
        check.replay_but(&sim, name, &[], &more).await;
    }
}

/// Budgets, access, preconditions, nodes and namespaces: the namespaces rec-core and rec-pdb.
pub(crate) async fn core(check: &mut Check) {
    let one = |n: usize| json!({"maxUnavailable": n});
    let sim = Sim::new(Options { kubevirt: Some(Profile::V1_9), user: "weak".to_owned(), ..Options::default() })
        .world()
        .nodes(3)
        .deployment("rec-core", "a", 2)
        .pdb("rec-core", "a", "a", json!({"minAvailable": 2}))
        .deployment("rec-core", "b", 2)
        .pdb("rec-core", "b1", "b", one(1))
        .pdb("rec-core", "b2", "b", one(1))
        .deployment("rec-core", "c", 2)
        .deployment("rec-core", "d", 3)
        .pdb("rec-core", "d", "d", one(1))
        .deployment("rec-core", "e", 2)
        .pdb("rec-core", "e", "e", one(0))
        .on("node-1")
        .pod("rec-core", "held", PodSpec::new().finalizer("example.com/hold"))
        .deployment("rec-pdb", "a", 2)
        .pdb("rec-pdb", "a", "a", one(1))
        .done();
    let pod = |ns: &str, app: &str, n: usize| {
        let all: Vec<_> = pods(&sim, ns).into_iter().filter(|p| p.label("app") == app).collect();
        (all[n].name().to_owned(), all[n].uid().to_owned())
    };
    let a = pod("rec-core", "a", 0).0;
    let a = [("a-7c9b998fc6-7jjld", a.as_str())];
    let e = pod("rec-core", "e", 0).0;
    let e = [("e-5ddb6b8c56-cqsf9", e.as_str())];
    for name in [
        "ssar-allowed",
        "eviction-body-name-mismatch-400",
        "pdb-min-available-429",
        "pdb-object-blocked",
        "node-object",
        "not-found-404",
    ] {
        // Annotations are an empty map where `kubectl apply` had left one.
        check.replay_but(&sim, name, &a, &["/metadata/annotations: missing, recorded {}"]).await;
    }
    check.replay(&sim, "pdb-max-unavailable-zero-429", &e).await;
    check.replay(&sim, "eviction-snake-case-delete-options", &e).await;
    let b = pod("rec-core", "b", 0).0;
    check.replay(&sim, "two-pdbs-500", &[("b-7fc9db66bb-dltgp", b.as_str())]).await;
    let (c, uid) = pod("rec-core", "c", 0);
    let c = [("c-776bb656bb-jg99s", c.as_str()), ("13aa96bb-e2ab-4163-a227-5d4e81a0f739", uid.as_str())];
    for name in ["accepted-dry-run-201", "uid-precondition-409", "accepted-201"] {
        check.replay(&sim, name, &c).await;
    }
    let (d0, d1) = (pod("rec-core", "d", 0).0, pod("rec-core", "d", 1).0);
    check.replay(&sim, "pdb-first-of-two-201", &[("d-67fc75694f-98l62", d0.as_str())]).await;
    sleep(0.02).await;
    check.replay(&sim, "pdb-second-while-disrupted-429", &[("d-67fc75694f-cf9rr", d1.as_str())]).await;
    check.replay_but(&sim, "pdb-object-disrupted", &[], &["/metadata/annotations: missing, recorded {}"]).await;
    check.replay(&sim, "cordon-patch", &[]).await;
    check.replay(&sim, "uncordon-patch", &[]).await;

    assert_eq!(evict(&sim, "rec-core", "held").await.status, 201);
    sleep(2.0).await;
    // Recorded after a DELETE, here after an eviction; a finalizer leaves an empty map of annotations there.
    let held = ["/metadata/annotations: missing, recorded {}", "DisruptionTarget", "PodScheduled", "/status/phase"];
    check.replay_but(&sim, "pod-held-by-finalizer", &[], &[&held, HELD].concat()).await;

    sim.options(|o| o.disruption_controller = false);
    sim.update("PodDisruptionBudget", "rec-pdb", "a", |b| b.put("/spec/maxUnavailable", 2));
    check.replay_but(&sim, "pdb-object-not-observed", &[], &["/metadata/annotations: missing, recorded {}"]).await;
    let p = pod("rec-pdb", "a", 0).0;
    check.replay(&sim, "pdb-still-being-processed-429", &[("a-7c9b998fc6-5tq6t", p.as_str())]).await;
    sim.create(json!({"kind": "PodDisruptionBudget", "metadata": {"name": "new", "namespace": "rec-pdb"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "zzz"}}}}));
    check.replay_but(&sim, "pdb-object-never-observed", &[], &["/metadata/annotations: missing, recorded {}"]).await;
    sim.fault(
        Fault::on("POST", "/eviction", Then::plain(429, 1, "Too many requests, please try again later.\n")).first(1),
    );
    check.replay(&sim, "apf-429-text", &[("a-7c9b998fc6-cnvh7", p.as_str())]).await;

    sim.deny(Rule::new("*", "*", "*"));
    sim.deny(Rule { subresource: "*".to_owned(), ..Rule::new("*", "*", "*") });
    for name in ["ssar-denied", "rbac-cordon-403", "rbac-evict-403", "rbac-list-vmis-403"] {
        if name == "ssar-denied" {
            // The review itself is always allowed.
            allow_reviews(check, &a).await;
            continue;
        }
        check.replay(&sim, name, &a).await;
    }

    let sim = Sim::new(Options::default())
        .world()
        .nodes(3)
        .deployment("rec-core", "e", 2)
        .pod("rec-core", "held", PodSpec::new().finalizer("example.com/hold"))
        .done();
    let e = pods(&sim, "rec-core").iter().find(|p| p.label("app") == "e").unwrap().name().to_owned();
    call(&sim, "DELETE", "/api/v1/namespaces/rec-core", None).await;
    check.replay(&sim, "namespace-terminating-403", &[("e-5ddb6b8c56-cqsf9", e.as_str())]).await;
    sleep(2.0).await;
    check.replay(&sim, "namespace-terminating-pod-terminating-403", &[]).await;
}

async fn allow_reviews(check: &mut Check, names: &[(&str, &str)]) {
    let sim = Sim::new(Options::plain());
    sim.deny(Rule::new("create", "", "pods/eviction"));
    check.replay(&sim, "ssar-denied", names).await;
}

fn build() -> Sim {
    let disk = "DisksNotLiveMigratable";
    Sim::new(Options {
        kubevirt: Some(Profile::V1_9),
        eviction_strategy: Some("LiveMigrate".to_owned()),
        virt_api_url: "https://localhost:8443".to_owned(),
        virt_api_dial: "127.0.0.1:8443".to_owned(),
        ..Options::default()
    })
    .world()
    .nodes(3)
    .on("node-0")
    .vm(NS, Vm::new("stale-always").non_migratable(disk))
    .vm(NS, Vm::new("stale-rerun").run_strategy("RerunOnFailure").non_migratable("HostDeviceNotLiveMigratable"))
    .vm(NS, Vm::new("stale-manual").run_strategy("Manual").non_migratable(disk))
    .vm(NS, Vm::new("stale-once").run_strategy("Once").non_migratable(disk))
    .vm(
        NS,
        Vm::new("scratch").non_migratable(disk).empty_disk("scratch").with(|t| {
            let disks =
                json!([{"name": "root", "disk": {"bus": "virtio"}}, {"name": "scratch", "disk": {"bus": "virtio"}}]);
            t.put("/spec/domain/devices/disks", disks);
        }),
    )
    .vm(NS, Vm::new("migratable"))
    .vm(NS, Vm::new("migration-hangs").migration("hang"))
    .vm(NS, Vm::new("migration-fails").migration("fail"))
    .vm(NS, Vm::new("no-target").node_selector("kubernetes.io/hostname", "node-0"))
    .vm(NS, Vm::new("template-pins").eviction_strategy("LiveMigrate").non_migratable(disk))
    .vm(NS, Vm::new("external").eviction_strategy("External"))
    // No virt-handler was there to say how the guests of evicted launchers ended: those of `lost` VMs are started again.
    .vm(NS, Vm::new("none").eviction_strategy("None").non_migratable(disk).annotation("lab/shutdown", "lost"))
    .vmi(NS, Vm::new("standalone").non_migratable(disk))
    .vmi_replica_set(NS, "farm", 1, Vm::new(""))
    .eviction_strategy("LiveMigrateIfPossible")
    .vm(NS, Vm::new("fresh").non_migratable(disk).annotation("lab/shutdown", "lost"))
    .vm(
        NS,
        Vm::new("fresh-rerun").run_strategy("RerunOnFailure").non_migratable(disk).annotation("lab/shutdown", "lost"),
    )
    .done()
}

/// Replays an eviction of a VM's launcher.
async fn launcher(check: &mut Check, sim: &Sim, name: &str, recorded: &str, vm: &str) {
    let actual = launchers(sim, NS, vm).into_iter().find(|p| p.text("/spec/nodeName") == "node-0");
    let actual = actual.map(|p| p.name().to_owned()).unwrap_or_default();
    check.replay(sim, name, &[(recorded, actual.as_str())]).await;
}

const LAUNCHERS: &[(&str, &str)] = &[
    ("external", "virt-launcher-external-brjrh"),
    ("fresh-rerun", "virt-launcher-fresh-rerun-4kj5m"),
    ("fresh", "virt-launcher-fresh-wl6xc"),
    ("migratable", "virt-launcher-migratable-wndnl"),
    ("migration-fails", "virt-launcher-migration-fails-9vxbv"),
    ("migration-hangs", "virt-launcher-migration-hangs-wv6f2"),
    ("no-target", "virt-launcher-no-target-588sp"),
    ("none", "virt-launcher-none-7v2cc"),
    ("scratch", "virt-launcher-scratch-xgwkw"),
    ("stale-always", "virt-launcher-stale-always-s4slw"),
    ("stale-manual", "virt-launcher-stale-manual-c47g6"),
    ("stale-once", "virt-launcher-stale-once-c4rwn"),
    ("stale-rerun", "virt-launcher-stale-rerun-cf2ms"),
    ("standalone", "virt-launcher-standalone-6c64v"),
    ("template-pins", "virt-launcher-template-pins-rbdl4"),
];

fn recorded(vm: &str) -> &'static str {
    LAUNCHERS.iter().find(|(v, _)| *v == vm).unwrap().1
}

/// The namespace rec-vm, from before the first eviction to after the restarts.
pub(crate) async fn virtual_machines(check: &mut Check) {
    let sim = build();
    sleep(0.1).await;
    check.replay_but(&sim, "kubevirt-cr-list", &[], &["/metadata/annotations: missing, recorded {}"]).await;
    for name in ["vm-list", "vmi-list-before", "vmi-list-by-node-label", "launcher-pod-list"] {
        check.replay(&sim, name, &[]).await;
    }
    for (vm, pod) in LAUNCHERS {
        launcher(check, &sim, &format!("dryrun-evict-{vm}"), pod, vm).await;
    }
    for vm in ["fresh", "stale-always", "stale-manual", "stale-once", "stale-rerun", "template-pins"] {
        check.replay(&sim, &format!("dryrun-restart-{vm}"), &[]).await;
    }
    // The recorded order of the queue behind the first two is not by age: no-target came before migration-fails.
    for vm in ["migratable", "migration-hangs", "no-target", "migration-fails", "external", "stale-always"] {
        launcher(check, &sim, &format!("evict-{vm}"), recorded(vm), vm).await;
    }
    for vm in ["fresh", "fresh-rerun", "none"] {
        launcher(check, &sim, &format!("evict-{vm}"), recorded(vm), vm).await;
    }
    sleep(1.5).await;
    for vm in ["external", "migratable", "migration-hangs", "stale-always"] {
        launcher(check, &sim, &format!("evict-again-{vm}"), recorded(vm), vm).await;
    }
    let target =
        launchers(&sim, NS, "migration-hangs").into_iter().find(|p| p.text("/spec/nodeName") != "node-0").unwrap();
    check.replay(&sim, "evict-migration-target", &[("virt-launcher-migration-hangs-prmqt", target.name())]).await;
    check.replay(&sim, "vmim-list-early", &[]).await;
    crate::support::cordon(&sim, "node-0").await;
    sleep(5.0).await;
    let pods = [PLACES, COMPLETED, STARTED_AGAIN].concat();
    for (name, allowed) in [("vmim-list-mid", PLACES), ("vmi-list-mid", PLACES), ("launcher-pod-list-mid", &pods)] {
        check.replay_but(&sim, name, &[], allowed).await;
    }
    for name in [
        "evacuate-cancel-wrong-node",
        "evacuate-cancel-empty",
        "evacuate-cancel-unmarked",
        "restart-standalone-404",
        "restart-stale-once",
    ] {
        check.replay(&sim, name, &[]).await;
    }
    for name in [
        "restart-stale-always",
        "restart-stale-rerun",
        "restart-stale-manual",
        "restart-again-stale-manual",
        "restart-template-pins",
        "evacuate-cancel-hangs",
    ] {
        check.replay(&sim, name, &[]).await;
    }
    sleep(20.0).await;
    for name in ["vm-list-after", "vmi-list-after", "vmim-list-after"] {
        check.replay_but(&sim, name, &[], PLACES).await;
    }
    check.replay_but(&sim, "launcher-pod-list-after", &[], &pods).await;
    check.replay(&sim, "restart-not-running", &[]).await;
    start(check, &sim).await;
    guards(check, &sim).await;
}

async fn start(check: &mut Check, sim: &Sim) {
    let stop = format!("/apis/subresources.kubevirt.io/v1/namespaces/{NS}/virtualmachines/stale-manual/stop");
    assert_eq!(call(sim, "PUT", &stop, Some(json!({}))).await.status, 202);
    sleep(5.0).await;
    check.replay(sim, "vm-start-manual-accept-json-406", &[]).await;
    check.replay(sim, "vm-start-manual-202", &[]).await;
}

/// Hotplug, orphans, and virt-api that is not there.
async fn guards(check: &mut Check, sim: &Sim) {
    let owner = launchers(sim, NS, "external")[0].clone();
    sim.create(json!({"kind": "Pod", "metadata": {"name": "hp-volume-abcde", "namespace": NS, "labels": {"kubevirt.io": "hotplug-disk"}, "annotations": {},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": owner.name(), "uid": owner.uid(), "controller": true, "blockOwnerDeletion": true}]},
        "spec": {"nodeName": "node-0", "containers": [{"name": "hotplug-disk", "image": "pause"}]}}));
    sim.create(json!({"kind": "Pod", "metadata": {"name": "virt-launcher-orphan-abcde", "namespace": NS, "labels": {"kubevirt.io": "virt-launcher"},
        "annotations": {"kubevirt.io/domain": "orphan"}}, "spec": {"nodeName": "node-0"}}));
    sleep(1.0).await;
    // Bound by hand: no scheduler ever saw it.
    check.replay_but(sim, "hotplug-pod-object", &[], &["PodScheduled"]).await;
    check.replay(sim, "hotplug-pod-429", &[]).await;
    check.replay(sim, "orphan-launcher-429", &[]).await;
    sim.virt_api(VirtApi::Refused);
    launcher(check, sim, "webhook-refused-500", recorded("external"), "external").await;
    check.replay(sim, "restart-virt-api-down-503", &[]).await;
    sim.virt_api(VirtApi::Hang);
    let before = sim.elapsed();
    launcher(check, sim, "webhook-timeout-500", recorded("external"), "external").await;
    assert_eq!(sim.elapsed().saturating_sub(before), Duration::from_secs(10));
}
