//! Rights: missing ones are found before anything is changed.

use safe_drain::settings::RestartStale;
use safe_drain_sim::{Fault, Json, Options, PodSpec, Rule, Sim, Vm};
use serde_json::json;

use super::answered;
use crate::harness::{drain, secs};
use crate::plain::world;
use crate::vms::{DISK, cluster};

/// A VM to migrate, one to restart, and a plain pod.
fn mixed() -> Sim {
    cluster("LiveMigrate")
        .vm("tenant-a", Vm::new("web-1"))
        .vm("tenant-a", Vm::new("db-0").non_migratable(DISK))
        .deployment("shop", "cart", 1)
        .eviction_strategy("LiveMigrateIfPossible")
        .done()
}

// Each right of a drain is taken away once in `rights`; here are the holes that others fell into.
#[tokio::test(start_paused = true)]
async fn c54_holes_in_the_rights() {
    // The cordon would work, and no eviction; pods can be listed, and none can be read; no VMI can be listed.
    for (verb, group, resource) in
        [("create", "", "pods/eviction"), ("get", "", "pods"), ("list", "kubevirt.io", "virtualmachineinstances")]
    {
        let sim = mixed();
        sim.deny(Rule::new(verb, group, resource));
        let run = drain(&sim, "node-0").with(|o| o.restart_stale = RestartStale::Always).run().await;
        println!("{verb} {resource}");
        run.exits(6).changed_nothing().says(resource);
        assert!(!run.cordoned("node-0"), "{run}");
        assert!(run.elapsed < secs(2), "{:?}", run.elapsed);
    }
    // Without KubeVirt nobody needs its rights.
    let sim = world().deployment("shop", "web", 1).done();
    sim.deny(Rule::new("*", "kubevirt.io", "*"));
    drain(&sim, "node-0").run().await.exits(0);

    // A right that the review promised and the request does not have: that pod blocks, with the rule's words, at once.
    let sim = mixed();
    let text = "pods \"cart\" is forbidden: User \"eve\" cannot create resource \"pods/eviction\" in API group \"\" in the namespace \"shop\"";
    sim.fault(Fault::on(
        "POST",
        "/namespaces/shop/",
        answered(403, "Forbidden", text, json!({"name": "cart", "kind": "pods"})),
    ));
    let run = drain(&sim, "node-0").with(|o| o.restart_stale = RestartStale::Always).changes().run().await;
    run.exits(3).says("cannot create resource \"pods/eviction\"");
    assert!(run.pod_is("cart-", "blocks", "Forbidden").text("/remedy").contains("deploy/rbac.yaml"), "{run}");
    assert_eq!(run.evictions("cart-").len(), 1);
    run.vm_is("web-1", "migrates", "");
    run.vm_is("db-0", "restarts", "");
}

#[tokio::test(start_paused = true)]
async fn c54_rights_of_one_namespace_are_named_with_it() {
    let sim = Sim::new(Options::plain())
        .world()
        .nodes(2)
        .on("node-0")
        .deployment_with("shop", "web", 1, PodSpec::new())
        .deployment("bank", "ledger", 1)
        .done();
    sim.deny(Rule {
        place: safe_drain_sim::api::access::Place::Namespace("bank".to_owned()),
        ..Rule::new("create", "", "pods/eviction")
    });
    let run = drain(&sim, "node-0").run().await;
    run.exits(6).changed_nothing().says("not allowed: create pods/eviction in bank;");
}
