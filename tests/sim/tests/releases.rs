//! What differs between KubeVirt releases: answers to evictions, dry runs, budgets, stamped strategies, hot-plug pods.
#![allow(clippy::unwrap_used, reason = "a broken answer ends the test")]

mod support;
#[path = "support/vms.rs"]
mod tenant;

use safe_drain_sim::{Json, Profile, Sim, VirtApi, Vm};
use serde_json::{Value, json};
use support::{call, evict, evict_with, launchers, sleep};
use tenant::{DISK, NS, evict_vm, first_launcher, vmi, world};

#[tokio::test(start_paused = true)]
async fn answers_per_release() {
    let budget = "Cannot evict pod as it would violate the pod's disruption budget.";
    let (now, before) = ("Eviction triggered evacuation of VMI", "Evacuation in progress: Eviction triggered");
    for profile in Profile::ALL {
        let (first, second, budgets, hotplug_status) = match profile {
            Profile::V1_0 | Profile::V1_1 | Profile::V1_2 => (budget, budget, 2, 201),
            Profile::V1_3_0 | Profile::V1_3 | Profile::V1_4 => (now, budget, 2, 201),
            Profile::V1_5 => (now, before, 2, 201),
            Profile::V1_6_0 => (now, before, 0, 201),
            Profile::V1_6 | Profile::V1_7 | Profile::V1_8 | Profile::V1_9 => (now, before, 0, 429),
        };
        let sim = world(profile)
            .vm(NS, Vm::new("ext").eviction_strategy("External"))
            .vm(NS, Vm::new("db").non_migratable(DISK))
            .hotplug(NS, "ext", "hp-volume-1")
            .done();
        assert_eq!(sim.list("PodDisruptionBudget").len(), budgets, "{profile:?}");
        sleep(0.1).await;
        for text in [first, second] {
            let got = evict_vm(&sim, "ext").await;
            assert!(got.status == 429 && got.message().contains(text), "{profile:?}: {}", got.text);
        }
        assert_eq!(vmi(&sim, "ext").text("/status/evacuationNodeName"), "node-0");
        let never = evict_vm(&sim, "db").await;
        assert!(
            never.message().ends_with("VMI db is configured with an eviction strategy but is not live-migratable"),
            "{profile:?}"
        );
        assert_eq!(evict(&sim, NS, "hp-volume-1").await.status, hotplug_status, "{profile:?}");
        let paused = vmi(&sim, "ext").condition("Paused").map(|c| c.text("/reason").to_owned());
        assert_eq!(paused.is_some(), hotplug_status == 201, "{profile:?}: its disk was pulled away");

        sim.virt_api(VirtApi::NoEndpoints);
        let down = evict_vm(&sim, "db").await;
        sim.virt_api(VirtApi::Hang);
        let asked = sim.elapsed();
        let hang = evict_vm(&sim, "db").await;
        assert_eq!(sim.elapsed().saturating_sub(asked).as_secs(), 10, "{profile:?}");
        if profile <= Profile::V1_4 {
            assert_eq!((down.status, hang.status), (429, 429), "fails open: only the budget is left");
            assert!(down.message().contains(budget) && hang.message().contains(budget), "{profile:?}");
        } else {
            assert_eq!((down.status, hang.status), (500, 500), "{profile:?}");
            assert!(down.message().ends_with("no endpoints available for service \"virt-api\""), "{}", down.message());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_completed_launcher_per_release() {
    for profile in Profile::ALL {
        let sim = world(profile).vm(NS, Vm::new("web")).done();
        let old = completed(&sim, "web").await;
        let got = evict(&sim, NS, &old).await;
        let marked = vmi(&sim, "web").text("/status/evacuationNodeName") == "node-0";
        let expected = match profile {
            Profile::V1_0 | Profile::V1_1 | Profile::V1_2 => (201, true),
            Profile::V1_3_0 => (429, true),
            Profile::V1_3
            | Profile::V1_4
            | Profile::V1_5
            | Profile::V1_6_0
            | Profile::V1_6
            | Profile::V1_7
            | Profile::V1_8
            | Profile::V1_9 => (201, false),
        };
        assert_eq!((got.status, marked), expected, "{profile:?}: {}", got.text);
    }
}

/// Has a VM migrate to node-1 and back; its first launcher stays on node-0 as a completed pod.
async fn completed(sim: &Sim, name: &str) -> String {
    let old = first_launcher(sim, name);
    for (n, node) in ["node-0", "node-1"].into_iter().enumerate() {
        for other in ["node-0", "node-1", "node-2"] {
            sim.update("Node", "", other, |v| v.put("/spec/unschedulable", other == node || other == "node-2"));
        }
        sim.create(
            json!({"kind": "VirtualMachineInstanceMigration", "metadata": {"name": format!("m-{n}"), "namespace": NS},
            "spec": {"vmiName": name}}),
        );
        sleep(10.0).await;
    }
    assert_eq!(vmi(sim, name).text("/status/nodeName"), "node-0");
    assert_eq!(sim.get("Pod", NS, &old).unwrap().text("/status/phase"), "Succeeded");
    old
}

#[tokio::test(start_paused = true)]
async fn dry_runs_and_stamps_per_release() {
    for profile in Profile::ALL {
        let sim = world(profile).vm(NS, Vm::new("web")).done();
        let stamped = vmi(&sim, "web").text("/spec/evictionStrategy").to_owned();
        assert_eq!(stamped, if profile == Profile::V1_0 { "" } else { "LiveMigrate" }, "{profile:?}");
        sleep(0.1).await;
        let pod = first_launcher(&sim, "web");
        let path = format!("/api/v1/namespaces/{NS}/pods/{pod}/eviction?dryRun=All");
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": NS}});
        assert_eq!(call(&sim, "POST", &path, Some(body)).await.status, 429, "{profile:?}");
        assert!(!vmi(&sim, "web").has("/status/evacuationNodeName"), "{profile:?}: by the query");
        assert_eq!(evict_with(&sim, NS, &pod, json!({"dryRun": ["All"]})).await.status, 429, "{profile:?}");
        let marked = vmi(&sim, "web").has("/status/evacuationNodeName");
        assert_eq!(marked, profile < Profile::V1_4, "{profile:?}: up to 1.3 the body's dry run is real");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugged_volume_follows_its_guest() {
    let sim = world(Profile::V1_7).vm(NS, Vm::new("web")).hotplug(NS, "web", "hp-volume-1").done();
    assert_eq!(evict_vm(&sim, "web").await.status, 429);
    sleep(10.0).await;
    assert!(sim.get("Pod", NS, "hp-volume-1").is_none(), "it goes with the launcher that has ended");
    let pods: Vec<Value> = sim.list("Pod").into_iter().filter(|p| p.label("kubevirt.io") == "hotplug-disk").collect();
    assert_eq!(pods.len(), 1);
    assert_eq!(pods[0].text("/spec/nodeName"), vmi(&sim, "web").text("/status/nodeName"));
    assert_eq!(pods[0].text("/metadata/ownerReferences/0/uid"), launchers(&sim, NS, "web")[0].uid());
    assert!(vmi(&sim, "web").condition("Paused").is_none());
}

#[test]
fn releases_by_name() {
    for profile in Profile::ALL {
        assert_eq!(Profile::parse(profile.version()), Some(profile));
    }
    for (text, profile) in [
        ("1.3", Profile::V1_3),
        ("1.3.0", Profile::V1_3_0),
        ("v1.6", Profile::V1_6),
        ("1.6.0", Profile::V1_6_0),
        ("1.9", Profile::V1_9),
    ] {
        assert_eq!(Profile::parse(text), Some(profile));
    }
    assert_eq!(Profile::parse("1"), None);
    assert_eq!(Profile::parse("2.0"), None);
}
