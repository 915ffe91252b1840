//! Disks: those that bind a pod or a VM to its node, and those that are still attached when all pods have gone.

use std::time::Duration;

use safe_drain::settings::DryRun;
use safe_drain_sim::{Fault, Json, PodSpec, Rule, Sim, Then, Vm, World};
use serde_json::{Value, json};

use crate::harness::{drain, secs};
use crate::plain::world;
use crate::vms::{DISK, cluster};

const LIST: &str = "/apis/storage.k8s.io/v1/volumeattachments";

/// A StatefulSet and a VM, both with a disk that only node-0 reaches.
fn local_disks() -> Sim {
    let pod = PodSpec::new().claim("data-db");
    cluster("LiveMigrateIfPossible")
        .volume("shop", "data-db", "ReadWriteOnce", Some("node-0"))
        .stateful_set_with("shop", "db", 1, pod)
        .deployment("shop", "web", 2)
        .volume("tenant-a", "root", "ReadWriteOnce", Some("node-0"))
        .vm("tenant-a", Vm::new("vm-0").claim("root").non_migratable(DISK))
        .done()
}

#[tokio::test(start_paused = true)]
async fn c31_disk_that_only_this_node_reaches() {
    let sim = local_disks();
    let run = drain(&sim, "node-0").preview(DryRun::Client).run().await;
    run.exits(4).changed_nothing();
    let row = run.pod_is("db-0", "evicts", "BoundToNode");
    let why = "no other node can take it: 2 cannot reach claim data-db; what replaces it stays Pending";
    assert_eq!(row.text("/because"), why);
    run.prints(&format!("pod shop/db-0 is evicted: {why}")).prints("2 more pods are evicted");
    let vm = run.vm_is("vm-0", "blocks", "ConsentMissing");
    assert_eq!(vm.list("/needs"), ["--allow-vm-down"]);
    assert!(vm.text("/because").contains("2 cannot reach claim root"), "{vm}");

    // A VM goes down only with consent; a pod of a controller needs none (kubectl's rule), it is said.
    let run = drain(&sim, "node-0").run().await;
    run.exits(4).changed_nothing();
    let run = drain(&sim, "node-0").with(|o| o.allow_vm_down = true).run().await;
    run.exits(0).says("what replaces 1 pod stays Pending, no other node can take it: shop/db-0");
    run.says("1 VM down until the node is back: tenant-a/vm-0");
    run.pod_is("db-0", "evicts", "BoundToNode");
    run.pod_is("web-", "evicts", "");
    let successor = sim.get("Pod", "shop", "db-0").expect("the set made another");
    assert_eq!(successor.text("/status/phase"), "Pending");
    assert_eq!((run.evictions("db-0").len(), run.launcher_evictions("vm-0").len()), (1, 1));
}

fn attachment(name: &str, node: &str, volume: &str, attached: bool) -> Value {
    json!({"kind": "VolumeAttachment", "metadata": {"name": name},
        "spec": {"attacher": "csi.example.com", "nodeName": node, "source": {"persistentVolumeName": volume}},
        "status": {"attached": attached}})
}

fn attached() -> World {
    let base = world().deployment("shop", "web", 2);
    [
        ("csi-1", "node-0", "pv-b", true),
        ("csi-2", "node-0", "pv-a", true),
        ("csi-3", "node-1", "pv-c", true),
        ("csi-4", "node-0", "pv-d", false),
    ]
    .into_iter()
    .fold(base, |world, (name, node, volume, is)| world.object(attachment(name, node, volume, is)))
}

#[tokio::test(start_paused = true)]
async fn c63_volumes_still_attached_at_the_end() {
    let sim = attached().done();
    let run = drain(&sim, "node-0").run().await;
    let text = "2 volumes are still attached: pv-a, pv-b; wait before you power the node off";
    run.exits(0).prints("node/node-0 drained").says(text);
    let node = &run.document.list("/nodes")[0];
    assert_eq!(node.list("/attachedVolumes"), ["pv-a", "pv-b"]);
    assert_eq!(node.list("/warnings"), [text]);
    // Read once, at the end, and never touched.
    assert_eq!(run.asked("GET", LIST).len(), 1, "{run}");
    assert_eq!(run.requests.iter().filter(|r| r.path.contains("volumeattachments")).count(), 1);
    let last = run.evictions("").last().unwrap().at;
    assert!(run.asked("GET", LIST)[0].at > last);
    assert_eq!(sim.list("VolumeAttachment").len(), 4);
    assert!(run.preview.as_ref().unwrap().asked("GET", LIST).is_empty(), "a preview cannot know them");

    // Detached meanwhile: nothing to say.
    for name in ["csi-1", "csi-2"] {
        sim.vanish("VolumeAttachment", "", name);
    }
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert!(!run.stderr.contains("attached") && !run.document.list("/nodes")[0].has("/attachedVolumes"), "{run}");
}

#[tokio::test(start_paused = true)]
async fn c63_without_the_right_to_list_them() {
    let sim = attached().done();
    sim.deny(Rule::new("list", "storage.k8s.io", "volumeattachments"));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0)
        .says("which volumes are still attached to node-0 is not known: listing volumeattachments is not permitted");
    assert!(!run.stderr.contains("Warning"), "the right is optional\n{run}");
    assert_eq!(run.asked("GET", LIST).len(), 1, "not tried again");
}

#[tokio::test(start_paused = true)]
async fn c63_list_that_does_not_come() {
    let fast = drain(&attached().done(), "node-0").run().await.elapsed;
    let sim = attached().done();
    sim.fault(Fault::on("GET", LIST, Then::Hang));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0).says("is not known: the list did not come in time");
    assert!(run.elapsed <= fast + Duration::from_millis(500), "{:?} and {fast:?}", run.elapsed);
    // What the deadline cuts is this list, and no drain.
    let sim = attached().done();
    sim.options(|o| o.stop = Duration::from_millis(800));
    sim.fault(Fault::on("GET", LIST, Then::Hang));
    let run = drain(&sim, "node-0").timeout(1).run().await;
    run.exits(0).prints("node/node-0 drained");
    assert_eq!(run.elapsed, secs(1), "nothing is waited for after the deadline\n{run}");
    // A node with a blocker keeps its volumes for a reason: nobody asks.
    let sim = attached().pdb("shop", "web", "web", json!({"maxUnavailable": 0})).done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(3);
    assert!(run.asked("GET", LIST).is_empty(), "{run}");
}

#[tokio::test(start_paused = true)]
async fn c85_other_nodes_are_tainted_by_the_storage() {
    let quorum = |node: &mut Value| {
        node.put("/spec/taints", json!([{"key": "drbd.linbit.com/lost-quorum", "effect": "NoSchedule"}]));
    };
    let sim = cluster("LiveMigrate").vm("tenant-a", Vm::new("web-1")).done();
    for node in ["node-1", "node-2"] {
        sim.update("Node", "", node, quorum);
    }
    // Design: a hard fact is no wait. The launcher is not POSTed, so no migration starts that cannot end.
    let run = drain(&sim, "node-0").run().await;
    run.exits(3).says("2 are tainted drbd.linbit.com/lost-quorum");
    let row = run.vm_is("web-1", "blocks", "NoMigrationTarget");
    assert!(row.text("/because").contains("drbd.linbit.com/lost-quorum"), "{row}");
    assert!(run.launcher_evictions("web-1").is_empty(), "{run}");
    // One node without the taint is enough, and counted.
    sim.update("Node", "", "node-2", |n| n.cut("/spec/taints"));
    let run = drain(&sim, "node-0").preview(DryRun::Client).run().await;
    run.exits(0);
    assert_eq!(run.vm_is("web-1", "migrates", "").text("/because"), "1 node can take it");
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert_eq!(run.vm_is("web-1", "migrates", "").text("/nodeAfter"), "node-2");
}
