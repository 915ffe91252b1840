//! VMs: the webhook per release, migrations, restarts by run strategy, what stays off.
#![allow(clippy::unwrap_used, reason = "a broken answer ends the test")]

mod support;
#[path = "support/vms.rs"]
mod tenant;

use safe_drain_sim::{Json, Profile, Rule, Sim, Vm};
use serde_json::{Value, json};
use support::{call, cordon, evict, evict_with, launchers, restart, send, sleep};
use tenant::{DISK, NS, evict_vm, first_launcher, vmi, world};

fn vm(sim: &Sim, name: &str) -> Value {
    sim.get("VirtualMachine", NS, name).unwrap()
}

fn migrations(sim: &Sim, vmi: &str) -> Vec<Value> {
    let mut all: Vec<Value> =
        sim.list("VirtualMachineInstanceMigration").into_iter().filter(|m| m.text("/spec/vmiName") == vmi).collect();
    all.sort_by_key(|m| m.text("/metadata/creationTimestamp").to_owned());
    all
}

#[tokio::test(start_paused = true)]
async fn a_marked_vm_migrates_once_and_its_old_launcher_completes() {
    let sim = world(Profile::V1_7).vm(NS, Vm::new("web")).done();
    let (old, uid) = (first_launcher(&sim, "web"), vmi(&sim, "web").uid().to_owned());
    let dry = evict_with(&sim, NS, &old, json!({"dryRun": ["All"]})).await;
    assert!(dry.message().contains("Eviction triggered evacuation"));
    assert!(!vmi(&sim, "web").has("/status/evacuationNodeName"));
    assert_eq!(evict(&sim, NS, &old).await.status, 429);
    sleep(1.0).await;
    assert_eq!(migrations(&sim, "web")[0].text("/status/phase"), "Running");
    let source = sim.get("Pod", NS, &old).unwrap();
    assert_eq!(source.annotation("descheduler.alpha.kubernetes.io/eviction-in-progress"), "true");
    let target = launchers(&sim, NS, "web").into_iter().find(|p| p.name() != old).unwrap();
    assert!(evict(&sim, NS, target.name()).await.message().contains("Evacuation in progress"));
    assert_eq!(vm(&sim, "web").text("/status/printableStatus"), "Migrating");
    sleep(5.0).await;
    let after = vmi(&sim, "web");
    assert_eq!(
        (after.uid(), after.text("/status/nodeName"), after.label("kubevirt.io/nodeName")),
        (uid.as_str(), "node-1", "node-1")
    );
    assert!(!after.has("/status/evacuationNodeName") && after.flag("/status/migrationState/completed"));
    assert_eq!(sim.get("Pod", NS, &old).unwrap().text("/status/phase"), "Succeeded");
    let m = &migrations(&sim, "web")[0];
    assert_eq!((m.text("/status/phase"), m.text("/status/migrationState/targetNode")), ("Succeeded", "node-1"));
    assert_eq!(evict(&sim, NS, &old).await.status, 201, "what is over may go");
    sleep(0.1).await;
    assert!(sim.get("Pod", NS, &old).is_none());
    sleep(100.0).await;
    assert_eq!(migrations(&sim, "web").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn limits_per_node_and_cluster() {
    let mut w = world(Profile::V1_9);
    for i in 0..8 {
        w = w.vm(NS, Vm::new(&format!("vm-{i}")));
    }
    let sim = w.done();
    for i in 0..8 {
        assert_eq!(evict_vm(&sim, &format!("vm-{i}")).await.status, 429);
    }
    let by = |phase: &str| {
        sim.list("VirtualMachineInstanceMigration").iter().filter(|m| m.text("/status/phase") == phase).count()
    };
    sleep(1.0).await;
    assert_eq!((by("Running"), by("Pending")), (2, 6));
    sleep(6.0).await;
    assert_eq!((by("Succeeded"), by("Running"), by("Pending")), (2, 2, 4));
    sleep(20.0).await;
    assert_eq!(by("Succeeded"), 8);
    let away = |i: usize| vmi(&sim, &format!("vm-{i}")).text("/status/nodeName") != "node-0";
    assert!((0..8).all(away));

    // Releases before 1.9 make no more objects than can run.
    let mut w = world(Profile::V1_7);
    for i in 0..4 {
        w = w.vm(NS, Vm::new(&format!("vm-{i}")));
    }
    let sim = w.done();
    for i in 0..4 {
        evict_vm(&sim, &format!("vm-{i}")).await;
    }
    sleep(1.0).await;
    assert_eq!(sim.list("VirtualMachineInstanceMigration").len(), 2);
    sleep(20.0).await;
    assert!((0..4).all(|i| vmi(&sim, &format!("vm-{i}")).text("/status/nodeName") != "node-0"));
}

#[tokio::test(start_paused = true)]
async fn failed_migrations_back_off_and_only_five_are_kept() {
    let sim = world(Profile::V1_7).vm(NS, Vm::new("bad").migration("fail")).done();
    evict_vm(&sim, "bad").await;
    sleep(7.0).await;
    let all = migrations(&sim, "bad");
    assert_eq!(all.iter().map(|m| m.text("/status/phase")).collect::<Vec<_>>(), ["Failed", "Pending"]);
    assert!(all[0].text("/status/migrationState/failureReason").starts_with("Live migration is not completed"));
    assert_eq!(vmi(&sim, "bad").text("/status/evacuationNodeName"), "node-0", "the mark stays");
    sleep(18.0).await;
    assert_eq!(migrations(&sim, "bad")[1].text("/status/phase"), "Pending");
    sleep(4.0).await;
    assert_eq!(migrations(&sim, "bad")[1].text("/status/phase"), "Running");
    sleep(3600.0).await;
    let kept = migrations(&sim, "bad");
    assert!(kept.len() <= 6, "{}", kept.len());
    assert_eq!(launchers(&sim, NS, "bad").iter().filter(|p| p.text("/spec/nodeName") == "node-0").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_target_that_fits_nowhere_fails_after_five_minutes() {
    let sim = world(Profile::V1_9).vm(NS, Vm::new("pin").node_selector("kubernetes.io/hostname", "node-0")).done();
    cordon(&sim, "node-0").await;
    evict_vm(&sim, "pin").await;
    sleep(2.0).await;
    let target = launchers(&sim, NS, "pin").into_iter().find(|p| p.text("/spec/nodeName").is_empty()).unwrap();
    let text = target.condition("PodScheduled").unwrap().text("/message");
    assert_eq!(
        text,
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    );
    assert_eq!(migrations(&sim, "pin")[0].text("/status/phase"), "Scheduling");
    sleep(300.0).await;
    assert_eq!(migrations(&sim, "pin")[0].text("/status/phase"), "Failed");
    assert_eq!(launchers(&sim, NS, "pin").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn cancelling_takes_the_mark_then_the_migration() {
    let sim = world(Profile::V1_7).vm(NS, Vm::new("slow").migration("hang")).done();
    evict_vm(&sim, "slow").await;
    sleep(2.0).await;
    let path =
        format!("/apis/subresources.kubevirt.io/v1/namespaces/{NS}/virtualmachineinstances/slow/evacuate/cancel");
    for (body, status) in [
        (json!({}), 500),
        (json!({"evacuationNodeName": "node-9"}), 500),
        (json!({"evacuationNodeName": "node-0", "dryRun": ["All"]}), 200),
    ] {
        assert_eq!(call(&sim, "PUT", &path, Some(body)).await.status, status);
        assert_eq!(vmi(&sim, "slow").text("/status/evacuationNodeName"), "node-0");
    }
    // The query's dry run is not looked at: the call is real.
    assert_eq!(
        call(&sim, "PUT", &format!("{path}?dryRun=All"), Some(json!({"evacuationNodeName": "node-0"}))).await.status,
        200
    );
    assert!(!vmi(&sim, "slow").has("/status/evacuationNodeName"));
    let m = migrations(&sim, "slow")[0].name().to_owned();
    call(&sim, "DELETE", &format!("/apis/kubevirt.io/v1/namespaces/{NS}/virtualmachineinstancemigrations/{m}"), None)
        .await;
    sleep(2.0).await;
    assert!(migrations(&sim, "slow").is_empty());
    assert_eq!(vmi(&sim, "slow").text("/status/migrationState/abortStatus"), "Succeeded");
    assert_eq!(launchers(&sim, NS, "slow").len(), 1);
    sleep(60.0).await;
    assert!(migrations(&sim, "slow").is_empty(), "nothing starts again");
}

#[tokio::test(start_paused = true)]
async fn of_a_longer_path_the_first_part_is_authorized() {
    let sim = world(Profile::V1_7).vm(NS, Vm::new("web")).done();
    let path = format!("/apis/subresources.kubevirt.io/v1/namespaces/{NS}/virtualmachineinstances/web/evacuate/cancel");
    let body = || Some(json!({"evacuationNodeName": "node-0"}));
    let group = "subresources.kubevirt.io";
    sim.deny(Rule::new("update", group, "virtualmachineinstances/evacuate/cancel"));
    assert_eq!(call(&sim, "PUT", &path, body()).await.status, 200, "as seen on 1.7.0");
    sim.deny(Rule::new("update", group, "virtualmachineinstances/evacuate"));
    assert_eq!(call(&sim, "PUT", &path, body()).await.status, 403);
}

#[tokio::test(start_paused = true)]
async fn restarts_adopt_the_strategy_and_vacate_the_node() {
    let mut w = world(Profile::V1_7);
    for s in ["Always", "RerunOnFailure", "Manual", "Once"] {
        w = w.vm(NS, Vm::new(&s.to_lowercase()).run_strategy(s).non_migratable(DISK));
    }
    let sim = w
        .vm(NS, Vm::new("off").run_strategy("Halted"))
        .vm(NS, Vm::new("idle").run_strategy("Manual").stopped())
        .eviction_strategy("LiveMigrateIfPossible")
        .done();
    cordon(&sim, "node-0").await;
    for name in ["always", "rerunonfailure", "manual"] {
        let old = vmi(&sim, name);
        assert_eq!((old.text("/status/phase"), old.text("/spec/evictionStrategy")), ("Running", "LiveMigrate"));
        let dry = call(
            &sim,
            "PUT",
            &format!("/apis/subresources.kubevirt.io/v1/namespaces/{NS}/virtualmachines/{name}/restart"),
            Some(json!({"dryRun": ["All"]})),
        )
        .await;
        assert_eq!((dry.status, dry.text.as_str(), dry.header("Content-Type")), (202, "", ""));
        assert!(vm(&sim, name).list("/status/stateChangeRequests").is_empty());
        assert_eq!(restart(&sim, NS, name).await.status, 202);
        let again = restart(&sim, NS, name).await;
        assert_eq!(
            (again.status, again.message()),
            (500, "Internal error occurred: unable to complete request: stop/start already underway")
        );
        sleep(0.5).await;
        assert_eq!(vm(&sim, name).text("/status/printableStatus"), "Stopping");
        sleep(3.0).await;
        let new = vmi(&sim, name);
        assert_ne!(new.uid(), old.uid(), "{name}");
        assert_eq!(
            (new.text("/status/phase"), new.text("/spec/evictionStrategy")),
            ("Running", "LiveMigrateIfPossible")
        );
        assert_ne!(new.text("/status/nodeName"), "node-0");
        assert!(vm(&sim, name).list("/status/stateChangeRequests").is_empty());
    }
    for (name, text) in [
        ("once", "RunStategy Once does not support manual restart requests"),
        ("off", "RunStategy Halted does not support manual restart requests"),
        ("idle", "VM is not running: Halted"),
    ] {
        let got = restart(&sim, NS, name).await;
        assert_eq!(
            (got.status, got.message()),
            (409, format!("Operation cannot be fulfilled on virtualmachine.kubevirt.io \"{name}\": {text}").as_str())
        );
    }
    assert_eq!(restart(&sim, NS, "nobody").await.status, 404);
    let path = format!("/apis/subresources.kubevirt.io/v1/namespaces/{NS}/virtualmachines/idle/start");
    let json_only = send(&sim, "PUT", &path, Some(&json!({})), &[("Accept", "application/json")]).await;
    assert_eq!(json_only.status(), 406);
    assert_eq!(call(&sim, "PUT", &path, Some(json!({}))).await.status, 202);
    sleep(2.0).await;
    assert_eq!(vmi(&sim, "idle").text("/status/phase"), "Running");
}

#[tokio::test(start_paused = true)]
async fn a_restarted_vm_with_nowhere_to_go_stays_down() {
    let sim = world(Profile::V1_7)
        .volume(NS, "disk", "ReadWriteOnce", Some("node-0"))
        .vm(NS, Vm::new("db").claim("disk").non_migratable(DISK))
        .done();
    cordon(&sim, "node-0").await;
    restart(&sim, NS, "db").await;
    sleep(60.0).await;
    assert_eq!(vmi(&sim, "db").text("/status/phase"), "Scheduling");
    assert_eq!(vmi(&sim, "db").condition("PodScheduled").unwrap().text("/reason"), "Unschedulable");
    assert_eq!(vm(&sim, "db").text("/status/printableStatus"), "ErrorUnschedulable");
    sim.update("Node", "", "node-0", |n| n.cut("/spec/unschedulable"));
    sleep(2.0).await;
    assert_eq!(vmi(&sim, "db").text("/status/phase"), "Running");
    assert!(vmi(&sim, "db").condition("PodScheduled").is_none());
}

#[tokio::test(start_paused = true)]
async fn what_an_eviction_that_passes_leaves_behind() {
    let mut w = world(Profile::V1_7).eviction_strategy("LiveMigrateIfPossible");
    for s in ["Always", "RerunOnFailure", "Manual", "Once"] {
        w = w.vm(NS, Vm::new(&format!("{}-clean", s.to_lowercase())).run_strategy(s).non_migratable(DISK)).vm(
            NS,
            Vm::new(&format!("{}-killed", s.to_lowercase())).run_strategy(s).non_migratable(DISK).ignores_shutdown(),
        );
    }
    let sim = w
        .vmi(NS, Vm::new("alone").non_migratable(DISK))
        .vmi_replica_set(NS, "farm", 2, Vm::new("").non_migratable(DISK))
        .done();
    cordon(&sim, "node-0").await;
    let old: Vec<Value> = sim.list("VirtualMachineInstance");
    assert_eq!(old.len(), 11);
    for v in &old {
        assert_eq!(evict_vm(&sim, v.name()).await.status, 201, "{}", v.name());
    }
    sleep(10.0).await;
    assert_eq!(
        vmi(&sim, "always-killed").text("/status/nodeName"),
        "node-0",
        "a guest that ignores its shutdown takes its grace"
    );
    sleep(60.0).await;
    let phase = |name: &str| vmi(&sim, name).text("/status/phase").to_owned();
    for (name, want) in [
        ("always-clean", "Running"),
        ("always-killed", "Running"),
        ("rerunonfailure-clean", ""),
        ("rerunonfailure-killed", "Running"),
        ("manual-clean", "Succeeded"),
        ("manual-killed", "Failed"),
        ("once-clean", "Succeeded"),
        ("once-killed", "Failed"),
        ("alone", "Succeeded"),
    ] {
        assert_eq!(phase(name), want, "{name}");
    }
    let farm: Vec<Value> = sim.list("VirtualMachineInstance").into_iter().filter(|v| v.label("rs") == "farm").collect();
    assert_eq!(farm.len(), 2);
    assert!(farm.iter().all(|v| v.text("/status/phase") == "Running" && old.iter().all(|o| o.name() != v.name())));
    assert!(sim.list("Pod").iter().all(|p| p.text("/spec/nodeName") != "node-0"));
}

#[tokio::test(start_paused = true)]
async fn no_kubevirt_means_no_such_groups() {
    let sim = safe_drain_sim::scenario::start("mixed", safe_drain_sim::scenario::Settings::default()).unwrap();
    let groups = support::get(&sim, "/apis").await;
    assert!(groups.list("/groups").iter().all(|g| !g.text("/name").contains("kubevirt")));
    assert_eq!(call(&sim, "GET", "/apis/kubevirt.io/v1/virtualmachines", None).await.status, 404);
    let kinds: Vec<String> =
        support::pods(&sim, "shop").iter().map(|p| p.name().split('-').next().unwrap_or("").to_owned()).collect();
    assert_eq!(kinds, ["bare", "cache", "db", "web", "web"]);
}

#[tokio::test(start_paused = true)]
async fn the_demo_scenario_is_as_it_says() {
    let sim =
        safe_drain_sim::scenario::start("strategy-switch", safe_drain_sim::scenario::Settings::default()).unwrap();
    let all = sim.list("VirtualMachineInstance");
    assert_eq!(
        all.iter().map(Json::name).collect::<Vec<_>>(),
        ["db-0", "ext-1", "fail-1", "gpu-1", "hang-1", "pinned-1", "web-1"]
    );
    assert!(all.iter().all(|v| v.text("/status/nodeName") == "node-0" && v.text("/status/phase") == "Running"));
    assert_eq!(vmi(&sim, "db-0").text("/spec/evictionStrategy"), "LiveMigrate");
    assert_eq!(
        sim.get("KubeVirt", "kubevirt", "kubevirt").unwrap().text("/spec/configuration/evictionStrategy"),
        "LiveMigrateIfPossible"
    );
    assert_eq!(
        sim.list("Pod").iter().filter(|p| p.namespace() == "shop" && p.text("/spec/nodeName") == "node-0").count(),
        4
    );
    assert_eq!(sim.get("PodDisruptionBudget", "shop", "web").unwrap().int("/status/disruptionsAllowed"), Some(1));
    assert_eq!(sim.elapsed().as_millis(), 0);
}

#[tokio::test(start_paused = true)]
async fn evicting_both_virt_api_pods_takes_the_guard_away() {
    let sim = world(Profile::V1_7).kubevirt_pods().vm(NS, Vm::new("db").non_migratable(DISK)).done();
    cordon(&sim, "node-0").await;
    assert_eq!(evict_vm(&sim, "db").await.status, 429);
    let api: Vec<Value> =
        support::pods(&sim, "kubevirt").into_iter().filter(|p| p.label("kubevirt.io") == "virt-api").collect();
    assert_eq!(evict(&sim, "kubevirt", api[0].name()).await.status, 201);
    sleep(0.05).await;
    assert_eq!(evict(&sim, "kubevirt", api[1].name()).await.status, 429, "its budget");
    for p in &api {
        sim.delete("Pod", "kubevirt", p.name());
    }
    let refused = evict_vm(&sim, "db").await;
    assert!(refused.status == 500 && refused.message().contains("no endpoints available"));
    assert_eq!(restart(&sim, NS, "db").await.status, 503);
    sleep(1.0).await;
    assert_eq!(evict_vm(&sim, "db").await.status, 429, "back with its successors");
}

/// Reasons and texts of the events about an object of that name.
fn told(sim: &Sim, about: &str) -> Vec<String> {
    let events = sim.list("Event").into_iter().filter(|e| e.text("/involvedObject/name").starts_with(about));
    events.map(|e| format!("{}: {}", e.text("/reason"), e.text("/message"))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_quota_refuses_a_migrations_target_until_it_is_raised() {
    let sim = world(Profile::V1_7).vm(NS, Vm::new("web-1")).quota(NS, "small", 1).done();
    assert_eq!(evict_vm(&sim, "web-1").await.status, 429);
    sleep(20.0).await;
    let migration = migrations(&sim, "web-1").remove(0);
    let rejected = "migrationRejectedByResourceQuota";
    assert_eq!(
        (migration.text("/status/phase"), migration.is_true(rejected)),
        ("Pending", true),
        "it takes no place: {migration:#}"
    );
    assert_eq!(launchers(&sim, NS, "web-1").len(), 1);
    let told = told(&sim, "web-1");
    assert!(
        told.iter().any(|t| t.starts_with("FailedCreate: Error creating pod: pods \"virt-launcher-web-1-")
            && t.ends_with("is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1")),
        "{told:#?}"
    );
    sim.update("ResourceQuota", NS, "small", |q| q.put("/spec/hard/pods", "2"));
    sleep(20.0).await;
    let migration = migrations(&sim, "web-1").remove(0);
    assert_eq!(migration.text("/status/phase"), "Succeeded");
    assert!(migration.condition(rejected).is_none(), "{migration:#}");
}

#[tokio::test(start_paused = true)]
async fn a_quota_refuses_a_launcher_and_a_pod_of_a_replica_set() {
    let sim = world(Profile::V1_7).deployment(NS, "web", 2).quota(NS, "small", 2).vm(NS, Vm::new("db-0")).done();
    let waits = vmi(&sim, "db-0");
    assert_eq!(waits.text("/status/phase"), "Pending");
    let condition = waits.condition("Synchronized").expect("what went wrong");
    assert_eq!((condition.text("/status"), condition.text("/reason")), ("False", "FailedCreate"));
    assert!(condition.text("/message").contains("exceeded quota: small"), "{condition}");
    // One more of the deployment is refused, too.
    sim.update("Deployment", NS, "web", |d| d.put("/spec/replicas", 3));
    sleep(10.0).await;
    assert_eq!(sim.list("Pod").len(), 2);
    assert!(told(&sim, "web-").iter().any(|t| t.contains("exceeded quota: small")), "{:#?}", told(&sim, "web-"));
    sim.update("ResourceQuota", NS, "small", |q| q.put("/spec/hard/pods", "4"));
    sleep(10.0).await;
    assert_eq!((sim.list("Pod").len(), vmi(&sim, "db-0").text("/status/phase")), (4, "Running"));
    assert!(vmi(&sim, "db-0").condition("Synchronized").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_target_that_dies_fails_its_migration_without_a_reason_in_its_status() {
    let sim = world(Profile::V1_7).vm(NS, Vm::new("web-1").migration("dies")).done();
    evict_vm(&sim, "web-1").await;
    sleep(5.0).await;
    let failed =
        migrations(&sim, "web-1").into_iter().find(|m| m.text("/status/phase") == "Failed").expect("one failed");
    assert!(!failed.has("/status/migrationState/failureReason"), "it was not handed over: {failed:#}");
    let name = failed.name().to_owned();
    assert!(
        told(&sim, &name).iter().any(|t| t.contains("target pod shutdown during migration")),
        "{:#?}",
        told(&sim, &name)
    );
    sleep(120.0).await;
    let dead = sim.list("Pod").iter().filter(|p| p.text("/status/phase") == "Failed").count();
    assert!(dead >= 3, "they pile up: {dead}");
    assert_eq!(vmi(&sim, "web-1").text("/status/nodeName"), "node-0");
}
