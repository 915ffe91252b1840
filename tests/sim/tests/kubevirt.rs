//! What virt-controller and virt-api of KubeVirt 1.7.0 were seen to do with launchers, migrations and nodes that go away.
#![allow(clippy::unwrap_used, reason = "a broken answer ends the test")]

mod support;

use safe_drain_sim::{Json, Options, Sim, VirtApi, Vm, World};
use serde_json::{Value, json};
use support::{Got, call, launchers, restart, sleep};

const NS: &str = "tenant-a";
const DISK: &str = "DisksNotLiveMigratable";

fn world() -> World {
    Sim::new(Options { eviction_strategy: Some("None".to_owned()), ..Options::default() }).world().nodes(3).on("node-0")
}

fn vmi(sim: &Sim, name: &str) -> Value {
    sim.get("VirtualMachineInstance", NS, name).unwrap_or(Value::Null)
}

fn ready(vmi: &Value) -> String {
    vmi.condition("Ready").map_or("", |c| c.text("/reason")).to_owned()
}

async fn migrate(sim: &Sim, vm: &str, name: &str) -> Got {
    let path = format!("/apis/kubevirt.io/v1/namespaces/{NS}/virtualmachineinstancemigrations");
    call(sim, "POST", &path, Some(json!({"metadata": {"name": name}, "spec": {"vmiName": vm}}))).await
}

fn phase(sim: &Sim, migration: &str) -> String {
    sim.get("VirtualMachineInstanceMigration", NS, migration)
        .map_or(String::new(), |m| m.text("/status/phase").to_owned())
}

/// The target of a migration.
fn target(sim: &Sim, vm: &str, migration: &str) -> Option<Value> {
    let of = |p: &Value| p.annotation("kubevirt.io/migrationJobName") == migration;
    sim.list("Pod").into_iter().find(|p| p.annotation("kubevirt.io/domain") == vm && of(p))
}

fn events(sim: &Sim, name: &str) -> Vec<(String, String)> {
    let about = |e: &Value| e.text("/involvedObject/name") == name;
    let text = |e: Value| (e.text("/reason").to_owned(), e.text("/message").to_owned());
    sim.list("Event").into_iter().filter(about).map(text).collect()
}

fn failure(sim: &Sim, migration: &str) -> String {
    let all = events(sim, migration);
    all.into_iter().find(|(r, _)| r == "FailedMigration").map_or(String::new(), |(_, m)| m)
}

#[tokio::test(start_paused = true)]
async fn a_guest_without_a_launcher_has_failed() {
    let sim = world()
        .vm(NS, Vm::new("back").run_strategy("RerunOnFailure").annotation("lab/shutdown", "lost"))
        .vm(NS, Vm::new("off").run_strategy("Manual").annotation("lab/shutdown", "lost"))
        .done();
    let old = vmi(&sim, "back");
    for vm in ["back", "off"] {
        sim.delete("Pod", NS, launchers(&sim, NS, vm)[0].name());
    }
    sleep(0.1).await;
    assert_eq!(
        (vmi(&sim, "off").text("/status/phase"), ready(&vmi(&sim, "off"))),
        ("Running", "PodTerminating".into())
    );
    sleep(3.0).await;
    assert_eq!((vmi(&sim, "off").text("/status/phase"), ready(&vmi(&sim, "off"))), ("Failed", "PodNotExists".into()));
    assert_eq!(vmi(&sim, "back").text("/status/phase"), "Running");
    assert_ne!(vmi(&sim, "back").uid(), old.uid());

    // Nobody notices while virt-controller is away.
    sim.options(|o| o.virt_controller = false);
    sim.delete("Pod", NS, launchers(&sim, NS, "back")[0].name());
    sleep(3.0).await;
    assert!(launchers(&sim, NS, "back").is_empty() && vmi(&sim, "back").is_true("Ready"));
    sim.options(|o| o.virt_controller = true);
    sleep(3.0).await;
    assert_eq!(launchers(&sim, NS, "back").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_launcher_is_seen_to_end_before_it_goes() {
    let sim = world().vm(NS, Vm::new("db").run_strategy("Manual")).done();
    let pod = launchers(&sim, NS, "db")[0].clone();
    let mut watch = support::Watch::open(&sim, &format!("/api/v1/namespaces/{NS}/pods?watch=true")).await;
    sim.delete("Pod", NS, pod.name());
    loop {
        let event = watch.next().await.unwrap();
        assert_ne!(event.text("/type"), "DELETED");
        if event.text("/object/status/phase") == "Succeeded" {
            let pod = &event["object"];
            assert!(pod.deleting() && !pod.is_true("Ready") && !pod.is_true("ContainersReady"));
            let ended = |c: &Value| c.has("/state/terminated") && !c.flag("/ready");
            assert!(pod.list("/status/containerStatuses").iter().all(ended));
            break;
        }
    }
    sleep(1.0).await;
    assert_eq!((vmi(&sim, "db").text("/status/phase"), ready(&vmi(&sim, "db"))), ("Succeeded", "PodNotExists".into()));
}

#[tokio::test(start_paused = true)]
async fn the_target_of_a_failed_migration_holds_up_the_next() {
    let sim = world().vm(NS, Vm::new("db").migration("hang")).done();
    migrate(&sim, "db", "one").await;
    sleep(2.0).await;
    let node = target(&sim, "db", "one").unwrap().text("/spec/nodeName").to_owned();
    sim.update("Node", "", &node, |n| n.set_annotation("lab/kubelet", Some("down")));
    sim.delete("VirtualMachineInstanceMigration", NS, "one");
    sleep(2.0).await;
    assert_eq!(phase(&sim, "one"), "", "it is gone");
    assert_eq!(target(&sim, "db", "one").unwrap().text("/status/phase"), "Running");
    assert_eq!(migrate(&sim, "db", "two").await.status, 201);
    sleep(5.0).await;
    assert_eq!(phase(&sim, "two"), "Pending");
    sim.update("Node", "", &node, |n| n.set_annotation("lab/kubelet", None));
    sleep(3.0).await;
    assert_eq!(target(&sim, "db", "one").unwrap().text("/status/phase"), "Succeeded", "it stays");
    assert_eq!(phase(&sim, "two"), "Running");
    sim.delete("VirtualMachineInstance", NS, "db");
    sleep(3.0).await;
    assert!(target(&sim, "db", "one").is_none());
    assert_eq!(failure(&sim, "two"), "Migration failed vmi shutdown during migration.");
}

#[tokio::test(start_paused = true)]
async fn why_migrations_fail() {
    let sim = world().vm(NS, Vm::new("db").migration("hang")).done();
    let cancelled = "Migration failed due to being canceled";
    let reported = "source node reported migration failed";

    migrate(&sim, "db", "copying").await;
    sleep(2.0).await;
    sim.delete("VirtualMachineInstanceMigration", NS, "copying");
    sleep(3.0).await;
    assert_eq!(failure(&sim, "copying"), reported);
    assert!(events(&sim, "copying").iter().any(|(r, _)| r == "SuccessfulAbortMigration"));

    migrate(&sim, "db", "going").await;
    sleep(2.0).await;
    sim.delete("Pod", NS, target(&sim, "db", "going").unwrap().name());
    sleep(3.0).await;
    assert_eq!((phase(&sim, "going"), failure(&sim, "going")), ("Failed".into(), reported.into()));
    assert_eq!(vmi(&sim, "db").text("/status/migrationState/failureReason"), "Target pod is down");

    migrate(&sim, "db", "gone").await;
    sleep(2.0).await;
    sim.vanish("Pod", NS, target(&sim, "db", "gone").unwrap().name());
    sleep(3.0).await;
    assert_eq!(failure(&sim, "gone"), "Migration target pod was removed during active migration.");

    for node in ["node-1", "node-2"] {
        sim.update("Node", "", node, |n| n.set_annotation("lab/kubelet", Some("down")));
    }
    migrate(&sim, "db", "early").await;
    sleep(2.0).await;
    let pod = target(&sim, "db", "early").unwrap();
    sim.delete("VirtualMachineInstanceMigration", NS, "early");
    sleep(1.0).await;
    assert_eq!(failure(&sim, "early"), cancelled);
    let text = format!("migration canceled and pod {NS}/{} is deleted", pod.name());
    assert!(events(&sim, "early").contains(&("SuccessfulDelete".to_owned(), text)));
    assert!(target(&sim, "db", "early").unwrap().deleting());
}

#[tokio::test(start_paused = true)]
async fn a_migration_is_refused_at_its_creation() {
    let sim = world()
        .vm(NS, Vm::new("db").migration("hang"))
        .vm(NS, Vm::new("disk").non_migratable(DISK))
        .vm(NS, Vm::new("off").run_strategy("Manual"))
        .done();
    sim.delete("Pod", NS, launchers(&sim, NS, "off")[0].name());
    migrate(&sim, "db", "one").await;
    sleep(3.0).await;
    let uid = sim.get("VirtualMachineInstanceMigration", NS, "one").unwrap().uid().to_owned();
    let in_flight = format!(
        "in-flight migration detected. Active migration job ({uid}) is currently already in progress for VMI db."
    );
    for (vm, why) in [
        ("nobody", "the VMI \"tenant-a/nobody\" does not exist"),
        ("off", "Cannot migrate VMI in finalized state."),
        (
            "disk",
            "Cannot migrate VMI, Reason: DisksNotLiveMigratable, Message: cannot migrate VMI: PVC root is not shared",
        ),
        ("db", in_flight.as_str()),
    ] {
        let got = migrate(&sim, vm, "two").await;
        assert_eq!((got.status, got.body.text("/reason")), (400, ""), "{vm}");
        let full = format!("admission webhook \"migration-create-validator.kubevirt.io\" denied the request: {why}");
        assert!(got.message().starts_with(&full), "{vm}: {}", got.message());
    }
    let path = format!("/apis/subresources.kubevirt.io/v1/namespaces/{NS}/virtualmachines/db/migrate");
    let got = call(&sim, "PUT", &path, Some(json!({}))).await;
    assert_eq!(got.status, 500);
    assert!(got.message().contains("in-flight migration detected"));
    sim.virt_api(VirtApi::Refused);
    let got = migrate(&sim, "db", "two").await;
    assert_eq!(got.status, 500);
    assert!(got.message().contains("failed calling webhook \"migrations-mutator.kubevirt.io\""));
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_heartbeat_gets_no_guests() {
    let sim = world().done();
    let schedulable = |sim: &Sim| sim.get("Node", "", "node-1").unwrap().label("kubevirt.io/schedulable").to_owned();
    sim.update("Node", "", "node-1", |n| n.set_annotation("lab/kubelet", Some("down")));
    sleep(240.0).await;
    assert_eq!(schedulable(&sim), "true");
    sleep(70.0).await;
    assert_eq!(schedulable(&sim), "false");
    assert!(events(&sim, "node-1").iter().any(|(r, _)| r == "NodeUnresponsive"));
    sim.update("Node", "", "node-1", |n| n.set_annotation("lab/kubelet", None));
    sleep(61.0).await;
    assert_eq!(schedulable(&sim), "true");
    sim.update("Node", "", "node-1", |n| {
        n.set_annotation("lab/kubelet", Some("down"));
        n.set_annotation("kubevirt.io/heartbeat", Some("2020-01-01T00:00:00Z"));
    });
    sleep(0.1).await;
    assert_eq!(schedulable(&sim), "false", "at once");
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_replaces_an_instance_whose_launcher_goes() {
    let sim = world().vmi_replica_set(NS, "farm", 2, Vm::new("")).done();
    let names = || -> Vec<String> {
        let all = sim.list("VirtualMachineInstance").into_iter().filter(|v| !v.deleting());
        all.map(|v| v.name().to_owned()).collect()
    };
    let old = names();
    let pod = launchers(&sim, NS, &old[0])[0].clone();
    sim.delete("Pod", NS, pod.name());
    sleep(0.1).await;
    assert_eq!(vmi(&sim, &old[0]).text("/status/phase"), "Running", "its guest is still stopping");
    assert!(vmi(&sim, &old[0]).deleting());
    assert!(names().len() == 2 && !names().contains(&old[0]));
}

#[tokio::test(start_paused = true)]
async fn a_start_that_came_to_nothing_is_waited_with() {
    let sim = world().vm(NS, Vm::new("db").node_selector("kubernetes.io/hostname", "node-0")).done();
    let vm = |sim: &Sim| sim.get("VirtualMachine", NS, "db").unwrap();
    sim.update("Node", "", "node-0", |n| n.put("/spec/unschedulable", true));
    assert_eq!(restart(&sim, NS, "db").await.status, 202);
    sleep(3.0).await;
    let waiting = vmi(&sim, "db");
    assert_eq!(vm(&sim).text("/status/printableStatus"), "ErrorUnschedulable");
    assert_eq!(restart(&sim, NS, "db").await.status, 202);
    sleep(1.0).await;
    assert_eq!(vm(&sim).text("/status/printableStatus"), "CrashLoopBackOff");
    assert_eq!(vm(&sim).text("/status/startFailure/lastFailedVMIUID"), waiting.uid());
    assert_eq!(vm(&sim).list("/status/stateChangeRequests"), [json!({"action": "Start"})]);
    let got = restart(&sim, NS, "db").await;
    assert!(got.status == 409 && got.message().ends_with("VM is not running: Halted"));
    sleep(11.0).await;
    assert_eq!(vm(&sim).text("/status/printableStatus"), "ErrorUnschedulable");
    sim.update("Node", "", "node-0", |n| n.cut("/spec/unschedulable"));
    sleep(3.0).await;
    assert_eq!(vm(&sim).text("/status/printableStatus"), "Running");
    assert!(!vm(&sim).has("/status/startFailure"));
}
