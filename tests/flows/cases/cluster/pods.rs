//! Pods that are not what they look like: others of their name, others in their place, without a controller, or not to be moved.

use safe_drain::event::{EventKind, PodExit};
use safe_drain::settings::{DrainOptions, DryRun};
use safe_drain_sim::{Fault, Json, PodSpec, Rule, Sim, Then, Vm};
use serde_json::json;

use super::answered;
use crate::harness::{Outcome, drain, secs};
use crate::plain::world;
use crate::vms::{DISK, cluster};

const HOST: &str = "kubernetes.io/hostname";

/// Runs on node-0 only.
fn pinned(pod: PodSpec) -> PodSpec {
    pod.with(|o| o.put("/spec/nodeSelector", json!({HOST: "node-0"})))
}

fn uid(sim: &Sim, ns: &str, name: &str) -> String {
    sim.get("Pod", ns, name).expect("a pod").uid().to_owned()
}

/// UIDs that the evictions of a pod named.
fn asked_for(run: &Outcome, pod: &str) -> Vec<String> {
    let uid = |b: &serde_json::Value| b.text("/deleteOptions/preconditions/uid").to_owned();
    run.evictions(pod).iter().map(|r| uid(r.body.as_ref().expect("a body"))).collect()
}

#[tokio::test(start_paused = true)]
async fn c34_empty_dirs_of_launchers_and_of_others() {
    let scratch = || PodSpec::new().empty_dir();
    let launcher = |l: &mut serde_json::Value| {
        l.put(
            "/spec/volumes",
            json!([{"name": "ephemeral-disks", "emptyDir": {}}, {"name": "libvirt-runtime", "emptyDir": {}}]),
        );
    };
    let build = || {
        let sim = cluster("LiveMigrate").vm("tenant-a", Vm::new("web-1")).done();
        let pods = sim.list("Pod");
        sim.update("Pod", "tenant-a", pods[0].name(), launcher);
        sim
    };
    // A launcher's own are no user data: nothing is asked for.
    let sim = build();
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    run.vm_is("web-1", "migrates", "");

    // Those of other pods still are, by pod and volume; what is said of a launcher is not mixed with it.
    let sim = build();
    let sim =
        sim.world().on("node-0").deployment_with("shop", "cache", 2, scratch()).deployment("shop", "web", 1).done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(4).changed_nothing().says("--delete-emptydir-data").says("the data in emptyDir scratch ends with it");
    let row = run.pod_is("cache-", "refused", "LocalData");
    assert_eq!(row.list("/needs"), ["--delete-emptydir-data"]);
    assert!(!run.stderr.contains("virt-launcher"), "{run}");
    let run = drain(&sim, "node-0").with(|o| o.delete_emptydir_data = true).run().await;
    run.exits(0);
    run.preview.as_ref().unwrap().prints("2 pods are evicted: the data in emptyDir scratch ends with them");

    // A guest that goes down and keeps data in an emptyDisk does lose it: that is asked for.
    let sim = cluster("LiveMigrateIfPossible")
        .vm("tenant-a", Vm::new("db-0").empty_disk("scratch").non_migratable(DISK))
        .done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(4).changed_nothing().says("--delete-emptydir-data");
    assert_eq!(run.vm("db-0").list("/dataLoss"), ["scratch"], "{run}");
}

#[tokio::test(start_paused = true)]
async fn c45_successor_of_the_same_name_stays_pending() {
    let sim = world().stateful_set_with("shop", "db", 1, pinned(PodSpec::new())).deployment("shop", "web", 1).done();
    let old = uid(&sim, "shop", "db-0");
    let run = drain(&sim, "node-0").run().await;
    // Said before it is done, and at the end.
    let why = "no other node can take it: 2 lack label kubernetes.io/hostname=node-0; what replaces it stays Pending";
    run.preview.as_ref().unwrap().prints(&format!("pod shop/db-0 is evicted: {why}"));
    run.exits(0).prints("pod/db-0 evicted").says("stays Pending, no other node can take it: shop/db-0");
    assert_eq!(run.pod_is("db-0", "evicts", "BoundToNode").text("/because"), why);
    // One POST, for the old UID; the Pending one under its name is not touched.
    assert_eq!(asked_for(&run, "db-0"), [old.as_str()]);
    let now = sim.get("Pod", "shop", "db-0").expect("the set made another");
    assert!(now.uid() != old && !now.deleting() && now.text("/spec/nodeName").is_empty(), "{now}");

    // A budget makes it wait; meanwhile somebody deletes it: no POST for the Pending one under its name.
    let sim = world()
        .stateful_set_with("shop", "db", 1, pinned(PodSpec::new()))
        .pdb("shop", "db", "db", json!({"maxUnavailable": 1}))
        .done();
    let old = uid(&sim, "shop", "db-0");
    let busy = answered(
        429,
        "TooManyRequests",
        "wait",
        json!({"causes": [{"reason": "DisruptionBudget",
        "message": "The disruption budget db needs 1 healthy pods and has 1 currently"}]}),
    );
    sim.fault(Fault::on("POST", "/pods/db-0/", busy));
    let gone = |sim: &Sim| assert!(sim.vanish("Pod", "shop", "db-0"));
    let run = drain(&sim, "node-0").changes().at(secs(5), gone).run().await;
    run.exits(0);
    run.pod_is("db-0", "gone", "");
    assert!(asked_for(&run, "db-0").iter().all(|asked| *asked == old), "{run}");
    assert!(run.evictions("db-0").iter().all(|r| r.at <= secs(5)), "{run}");
}

#[tokio::test(start_paused = true)]
async fn c49_pod_that_is_gone_already() {
    let sim = world().deployment("shop", "web", 2).done();
    let name = sim.list("Pod")[0].name().to_owned();
    let gone = name.clone();
    let planned = |e: &EventKind| matches!(e, EventKind::Planned { .. });
    let run = drain(&sim, "node-0").when(planned, move |sim| assert!(sim.vanish("Pod", "shop", &gone))).run().await;
    run.exits(0).says(&format!("pod shop/{name} is gone, without an eviction of ours"));
    run.pod_is(&name, "gone", "");
    let left =
        |e: &EventKind| matches!(e, EventKind::PodGone { pod, how: PodExit::AlreadyGone, .. } if pod.name == name);
    assert!(run.event(left).is_some());
    assert!(!run.stdout.contains(&format!("pod/{name} evicted")), "not by us\n{run}");
    assert!(run.evictions(&name).iter().all(|r| r.status == 404), "{run}");
}

#[tokio::test(start_paused = true)]
async fn c50_uid_precondition() {
    // Its successor has the name before the watch tells: the precondition is the last net.
    let sim = world().stateful_set("shop", "db", 1).pdb("shop", "db", "db", json!({"maxUnavailable": 1})).done();
    let old = uid(&sim, "shop", "db-0");
    let vanish = sim.clone();
    let run = drain(&sim, "node-0")
        .changes()
        .right_before("POST", "/pods/db-0/eviction", move || {
            vanish.vanish("Pod", "shop", "db-0");
        })
        .run()
        .await;
    run.exits(0);
    run.pod_is("db-0", "gone", "");
    assert_eq!(asked_for(&run, "db-0"), [old.as_str()], "one POST, for the old one\n{run}");
    assert!(matches!(run.evictions("db-0")[0].status, 404 | 409), "{run}");
    let now = sim.get("Pod", "shop", "db-0").expect("its successor lives");
    assert!(!now.deleting() && now.uid() != old);

    // A 409 that says so although it is the same pod (a race over its resourceVersion): read, then tried again.
    let sim = world().deployment("shop", "web", 1).done();
    let name = sim.list("Pod")[0].name().to_owned();
    let text = format!(
        "Operation cannot be fulfilled on Pod \"{name}\": the UID in the precondition (a) does not match the UID in \
         record (b). The object might have been deleted and then recreated"
    );
    let replaced = answered(409, "Conflict", &text, json!({"name": name, "kind": "Pod"}));
    sim.fault(Fault::on("POST", "/pods/web-", replaced).first(1));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    let asked: Vec<(&str, u16)> = run
        .requests
        .iter()
        .filter(|r| r.path.contains(&format!("/pods/{name}")))
        .map(|r| (r.method.as_str(), r.status))
        .collect();
    assert_eq!(asked, [("POST", 409), ("GET", 200), ("POST", 201)], "{run}");
}

#[tokio::test(start_paused = true)]
async fn c56_pod_that_tolerates_the_cordon() {
    let sim = world()
        .deployment_with("shop", "agent", 1, pinned(PodSpec::new().tolerates_everything()))
        .deployment("shop", "web", 1)
        .done();
    let run = drain(&sim, "node-0").changes().run().await;
    run.preview.as_ref().unwrap().prints("it tolerates the cordon and may come back");
    // A stated exception, and no blocker; it is not chased.
    run.exits(0).prints("node/node-0 drained").says("Came back to the node:").says("it tolerates the cordon: agent-");
    let row = run.pod_is("agent-", "returned", "Returned");
    assert!(row.text("/remedy").contains("toleration"), "{row}");
    assert_eq!(run.evictions("agent-").len(), 1, "{run}");
    let there = sim.list("Pod").into_iter().filter(|p| p.name().starts_with("agent-"));
    assert_eq!(there.filter(|p| p.text("/spec/nodeName") == "node-0" && !p.deleting()).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn c57_pod_with_a_fixed_node_name() {
    let fixed = PodSpec::new().with(|o| o.put("/spec/nodeName", "node-0"));
    let sim = world().deployment_with("shop", "agent", 1, fixed).deployment("shop", "web", 1).done();
    let run = drain(&sim, "node-0").changes().run().await;
    // Design: no template is read, and a pod does not tell who bound it. So the first successor counts as one that was
    // bound before the cordon and is evicted, too; the next one is known for what it is.
    assert_eq!(run.evictions("agent-").len(), 2, "at most one repeat\n{run}");
    run.exits(0).prints("node/node-0 drained").says("Came back to the node:").says("past the scheduler");
    let returned: Vec<_> = run.rows("pods").into_iter().filter(|r| r.text("/outcome") == "returned").collect();
    let [row] = returned.as_slice() else { run.fail("one row tells that it came back") };
    assert!(row.text("/because").contains("as with a nodeName in its template"), "{row}");
    assert!(row.text("/remedy").contains("take the nodeName from its template"), "{row}");
    assert!(run.elapsed < secs(10), "{:?}", run.elapsed);
}

#[tokio::test(start_paused = true)]
async fn c58_daemon_set_pods() {
    // `old` was deleted with its pods left behind (`--cascade=orphan`).
    let mixed = || {
        let sim = world().daemon_set("ops", "agent").daemon_set("ops", "old").deployment("shop", "web", 1).done();
        let text = "daemonsets.apps \"old\" not found";
        sim.fault(Fault::on("GET", "/daemonsets/old", Then::status(404, "NotFound", text)));
        sim.update("DaemonSet", "ops", "old", |d| d.put("/spec/template/spec/nodeSelector", json!({"no": "node"})));
        sim
    };
    // Live ones stay and are counted; an orphan is a class of its own that only --force moves.
    let sim = mixed();
    let run = drain(&sim, "node-0").run().await;
    run.exits(4).changed_nothing().says("its DaemonSet old is gone, so nothing brings it back");
    assert_eq!(run.pod_is("old-", "refused", "OrphanedDaemonSetPod").list("/needs"), ["--force"]);
    run.pod_is("agent-", "stays", "DaemonSet");
    let run = drain(&sim, "node-0").with(|o| o.force = true).run().await;
    run.exits(0).says("1 stays (DaemonSet)");
    run.pod_is("old-", "evicts", "");
    assert_eq!(run.evictions("old-").len(), 1, "{run}");
    assert!(run.evictions("agent-").is_empty(), "{run}");

    // Without the flag they refuse, as in kubectl.
    let sim = world().daemon_set("ops", "agent").done();
    let run = drain(&sim, "node-0").with(|o| o.ignore_daemonsets = false).run().await;
    run.exits(4).changed_nothing().says("--ignore-daemonsets");

    // A DaemonSet that cannot be read does not abort the rest: its pod is left in place, and that is said.
    let sim = world().daemon_set("ops", "agent").deployment("shop", "web", 2).done();
    sim.deny(Rule::new("get", "apps", "daemonsets"));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0).says("DaemonSet agent could not be read, so its pod is left in place");
    run.pod_is("agent-", "stays", "DaemonSet");
    assert_eq!(run.evictions("").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn c59_pods_without_a_controller_and_with_an_exotic_one() {
    let owned = |api: &str, kind: &str| {
        let owner = json!([{"apiVersion": api, "kind": kind, "name": "x", "uid": "11111111-2222-4333-8444-555555555555", "controller": true}]);
        move |o: &mut serde_json::Value| o.put("/metadata/ownerReferences", owner)
    };
    let build = || {
        let sim =
            world().pod("shop", "debug", PodSpec::new()).pod("shop", "scratch", PodSpec::new().empty_dir()).done();
        for name in ["exotic", "debug-2"] {
            sim.world().on("node-0").pod("shop", name, PodSpec::new()).done();
        }
        // Any controller counts, also one of a kind that nobody knows.
        sim.update("Pod", "shop", "exotic", owned("example.com/v1", "Fleet"));
        sim
    };
    let sim = build();
    let run = drain(&sim, "node-0").run().await;
    run.exits(4).changed_nothing().says("no controller owns it, so nothing brings it back");
    // No finding is lost: one pod needs both flags, and each is named.
    assert_eq!(run.pod_is("debug", "refused", "Unmanaged").list("/needs"), ["--force"]);
    assert_eq!(run.pod("scratch").list("/needs"), ["--delete-emptydir-data", "--force"]);
    run.says("shop/debug").says("shop/debug-2").says("shop/scratch");
    run.preview.as_ref().unwrap().pod_is("exotic", "evicts", "");
    // --force is for them alone: it brings no emptyDir data down with it.
    let run = drain(&sim, "node-0").with(|o| o.force = true).run().await;
    run.exits(4).changed_nothing();
    assert_eq!(run.pod("scratch").list("/needs"), ["--delete-emptydir-data"]);
    let both = |o: &mut DrainOptions| (o.force, o.delete_emptydir_data) = (true, true);
    let run = drain(&sim, "node-0").with(both).run().await;
    run.exits(0);
    run.preview.as_ref().unwrap().prints("2 pods are evicted: no controller owns them, so nothing brings them back");
    assert_eq!(run.evictions("").len(), 4);
    assert!(sim.get("Pod", "shop", "debug").is_none(), "gone for good");
}

#[tokio::test(start_paused = true)]
async fn c60_mirror_pods() {
    let sim = world()
        .pod("kube-system", "etcd-node-0", PodSpec::new().mirror())
        .pod("kube-system", "scheduler-node-0", PodSpec::new().mirror().empty_dir())
        .pod("kube-system", "proxy-node-0", PodSpec::new().mirror())
        .deployment("shop", "web", 1)
        .done();
    let run = drain(&sim, "node-0").preview(DryRun::Client).run().await;
    run.exits(0).prints("3 stay (static)");
    let run = drain(&sim, "node-0").run().await;
    run.exits(0).says("1 pod gone; 3 stay (static)");
    for name in ["etcd-", "scheduler-", "proxy-"] {
        run.pod_is(name, "stays", "MirrorPod");
        assert!(run.evictions(name).is_empty(), "{run}");
    }
    assert!(run.elapsed < secs(3), "never waited for: {:?}", run.elapsed);
}
