//! What a client library does behind one's back, and what it leaves out.

use std::time::Duration;

use safe_drain::settings::DryRun;
use safe_drain_sim::{Fault, Json, Sim, Then, Vm};
use serde_json::{Value, json};

use super::answered;
use crate::harness::{drain, secs};
use crate::plain::world;
use crate::vms::{DISK, cluster};

#[tokio::test(start_paused = true)]
async fn c74_no_retry_behind_our_back() {
    // Whatever the library would repeat by itself (429, 503, 504): one decision, one request, with the pause of the tool.
    for busy in [
        Then::plain(429, 1, "Too many requests, please try again later.\n"),
        Then::status(503, "ServiceUnavailable", "the server is currently unable to handle the request"),
        Then::status(504, "Timeout", "the server was unable to return a response in the time allotted"),
    ] {
        let sim = world().deployment("shop", "web", 1).done();
        sim.fault(Fault::on("POST", "/eviction", busy).first(3));
        let run = drain(&sim, "node-0").run().await;
        run.exits(0);
        let at: Vec<Duration> = run.evictions("web-").iter().map(|r| r.at).collect();
        assert_eq!(at.len(), 4, "{run}");
        let least = Duration::from_millis(350);
        assert!(at.windows(2).all(|pair| pair[1] >= pair[0] + least), "{at:?}");
    }
    // The first answer is the one that is acted on: the mark is KubeVirt's, and one POST is enough.
    let sim = cluster("LiveMigrate").vm("tenant-a", Vm::new("web-1")).done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    let posts = run.launcher_evictions("web-1");
    assert_eq!((posts.len(), posts[0].status), (1, 429), "{run}");
    // A preview asks once per pod and waits for nothing, whatever it is told.
    let sim = world().deployment("shop", "web", 3).done();
    let text = "Cannot evict pod as it would violate the pod's disruption budget.";
    let causes = json!({"causes": [{"reason": "DisruptionBudget", "message": "The disruption budget web needs 3 healthy pods and has 3 currently"}]});
    sim.fault(Fault::on("POST", "/eviction", answered(429, "TooManyRequests", text, causes)));
    let run = drain(&sim, "node-0").preview(DryRun::Server).run().await;
    assert_eq!(run.evictions("web-").len(), 3, "{run}");
    assert!(run.elapsed < secs(1), "{:?}", run.elapsed);
    run.changed_nothing();
    // Nor is a read repeated: one list and one watch per kind.
    let sim = world().deployment("shop", "web", 1).done();
    let run = drain(&sim, "node-0").run().await;
    assert_eq!(run.asked("GET", "/api/v1/nodes/node-0?").len(), 1, "{run}");
}

/// Bodies of the evictions of a run.
fn bodies(sim: &Sim) -> Vec<Value> {
    let evictions = sim.requests().into_iter().filter(|r| r.path.ends_with("/eviction"));
    evictions.map(|r| r.body.expect("a body")).collect()
}

#[tokio::test(start_paused = true)]
async fn c75_body_of_an_eviction() {
    let build = || {
        cluster("LiveMigrateIfPossible")
            .vm("tenant-a", Vm::new("web-1"))
            .vm("tenant-a", Vm::new("db-0").non_migratable(DISK))
            .deployment("shop", "cart", 1)
            .done()
    };
    let sim = build();
    let run = drain(&sim, "node-0").with(|o| o.grace_period = Some(7)).without_preview().run().await;
    run.exits(0);
    let all = bodies(&sim);
    assert_eq!(all.len(), 3, "{run}");
    for body in all {
        let name = body.name();
        // Exactly this, and nothing that the server would ignore (it warns of that; the harness fails on a warning).
        let uid = body.text("/deleteOptions/preconditions/uid");
        assert_eq!(uid.len(), 36, "{body}");
        let mut options = json!({"preconditions": {"uid": uid}});
        if name.starts_with("cart-") {
            options["gracePeriodSeconds"] = json!(7);
        }
        let options = without_type(&options);
        assert_eq!(without_type(&body["deleteOptions"]), options, "{body}");
        assert_eq!((body.text("/apiVersion"), body.text("/kind")), ("policy/v1", "Eviction"));
        assert!(["tenant-a", "shop"].contains(&body.namespace()), "{body}");
        assert_eq!(body.as_object().unwrap().len(), 4, "{body}");
    }
    // A dry run says so where the server reads it, and changes nothing.
    let sim = build();
    let run = drain(&sim, "node-0").preview(DryRun::Server).run().await;
    run.changed_nothing();
    let asked = run.evictions("");
    assert_eq!(asked.len(), 3, "{run}");
    for r in asked {
        let body = r.body.as_ref().unwrap();
        assert!(r.query.contains("dryRun=All") && body.list("/deleteOptions/dryRun") == ["All"], "{body}");
        assert!(!body.text("/deleteOptions/preconditions/uid").is_empty(), "{body}");
    }
    assert!(sim.list("Pod").iter().all(|p| !p.deleting()));
    assert!(sim.list("VirtualMachineInstance").iter().all(|v| v.text("/status/evacuationNodeName").is_empty()));
}

/// Delete options without the type that they may carry.
fn without_type(options: &Value) -> Value {
    let mut options = options.clone();
    for field in ["apiVersion", "kind"] {
        options.as_object_mut().expect("an object").remove(field);
    }
    options
}
