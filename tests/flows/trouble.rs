//! What an API server, its webhooks and its watches can do in the middle of a drain.

use safe_drain::event::EventKind;
use safe_drain::settings::RestartStale;
use safe_drain_sim::{Fault, Json, Options, PodSpec, Sim, Then, VirtApi, Vm};
use serde_json::json;

use crate::harness::{drain, secs};
use crate::plain::world;

/// Six pods that leave one after the other, a second each.
fn shop() -> Sim {
    world()
        .deployment_with("shop", "web", 6, PodSpec::new().annotation("lab/stop", "1s"))
        .pdb("shop", "web", "web", json!({"maxUnavailable": 1}))
        .done()
}

fn vms(options: Options) -> Sim {
    Sim::new(options).world().nodes(3).on("node-0").vm("tenant-a", Vm::new("web-1")).done()
}

#[tokio::test(start_paused = true)]
async fn api_gone_for_twenty_seconds() {
    let slow = PodSpec::new().grace(60).annotation("lab/stop", "40s");
    let sim = world()
        .deployment_with("shop", "slow", 1, slow)
        .deployment("shop", "web", 6)
        .pdb("shop", "web", "web", json!({"maxUnavailable": 1}))
        .done();
    sim.fault(Fault::at(secs(1), Then::Gone).between(secs(1), secs(21)));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert!(run.event(|e| matches!(e, EventKind::ContactLost)).is_some(), "{run}");
    assert!(run.event(|e| matches!(e, EventKind::ContactRestored { .. })).is_some(), "{run}");
    assert!(run.elapsed < secs(60), "{:?}", run.elapsed);
    assert_eq!(run.stderr.matches("no contact").count().max(1), 1, "said once\n{run}");
}

#[tokio::test(start_paused = true)]
async fn api_gone_for_good_ends_at_the_deadline_with_an_unknown_state() {
    let sim = shop();
    sim.fault(Fault::at(secs(1), Then::Gone).between(secs(1), secs(1_000_000)));
    let run = drain(&sim, "node-0").timeout(60).changes().run().await;
    run.exits(6);
    assert!(run.elapsed <= secs(62), "{:?}", run.elapsed);
}

#[tokio::test(start_paused = true)]
async fn watches_cut_without_an_error_are_routine() {
    let sim = shop();
    for n in 1..6 {
        sim.fault(Fault::at(std::time::Duration::from_millis(1000 * n - 400), Then::CutWatches));
    }
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert!(run.event(|e| matches!(e, EventKind::ContactLost)).is_none(), "{run}");
    assert!(run.evictions("web-").iter().all(|r| r.status == 201), "{run}");
    assert!(run.elapsed < secs(12), "{:?}", run.elapsed);
}

#[tokio::test(start_paused = true)]
async fn expired_watches_are_listed_again() {
    let sim = shop();
    sim.fault(Fault::at(secs(1), Then::ExpireWatches));
    sim.fault(Fault::at(secs(2), Then::ExpireWatches));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert!(run.event(|e| matches!(e, EventKind::ContactLost)).is_none(), "{run}");
}

#[tokio::test(start_paused = true)]
async fn throttling_in_plain_text_slows_everything_down() {
    let sim = world().deployment("shop", "web", 6).done();
    sim.fault(
        Fault::on("POST", "/eviction", Then::plain(429, 4, "Too many requests, please try again later.\n")).nth(3),
    );
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert_eq!(run.evictions("web-").len(), 7, "each once, and the third again\n{run}");
    let again = run.evictions("web-").last().unwrap().at;
    assert!(again >= secs(4), "Retry-After is kept: {again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_behind_an_eviction_is_no_second_eviction() {
    let sim = world().deployment("shop", "web", 3).done();
    sim.fault(Fault::on("POST", "/eviction", Then::DisconnectAfter).nth(2));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert!(run.rows("pods").iter().all(|p| p.text("/outcome") == "evicts"), "{run}");
}

#[tokio::test(start_paused = true)]
async fn an_eviction_that_hangs_does_not_hold_the_end() {
    let sim = world().deployment("shop", "web", 3).done();
    sim.fault(Fault::on("POST", "/eviction", Then::Hang).nth(2));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert!(run.elapsed < secs(40), "a request has 30 s: {:?}\n{run}", run.elapsed);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_refusal_is_shown_word_for_word_and_bounded() {
    let sim = world().deployment("shop", "web", 1).deployment("shop", "cart", 1).done();
    let text = "admission webhook \"guard.example.com\" denied the request: not before Friday";
    sim.fault(Fault::on("POST", "/pods/web-", Then::status(403, "Forbidden", text)));
    let run = drain(&sim, "node-0").changes().run().await;
    run.exits(3).says("not before Friday").says("guard.example.com");
    run.pod_is("web-", "blocks", "WebhookRefused");
    run.pod_is("cart-", "evicts", "");
    assert!(run.elapsed > secs(290) && run.elapsed < secs(330), "five minutes: {:?}", run.elapsed);
}

#[tokio::test(start_paused = true)]
async fn an_internal_error_is_tried_again_until_the_deadline() {
    let sim = world().deployment("shop", "web", 1).done();
    sim.fault(
        Fault::on("POST", "/pods/web-", Then::status(500, "InternalError", "etcdserver: leader changed")).first(3),
    );
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert_eq!(run.evictions("web-").len(), 4);

    let sim = world().deployment("shop", "web", 1).done();
    sim.fault(Fault::on("POST", "/pods/web-", Then::status(500, "InternalError", "etcdserver: leader changed")));
    let run = drain(&sim, "node-0").timeout(120).run().await;
    run.exits(124).says("etcdserver: leader changed");
    assert!(run.evictions("web-").len() < 20, "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_terminating_namespace_empties_itself() {
    let slow = PodSpec::new().grace(60).annotation("lab/stop", "20s");
    let sim = world().deployment_with("shop", "web", 2, slow).deployment("other", "cart", 1).done();
    let run = drain(&sim, "node-0")
        .when(
            |e| matches!(e, EventKind::Connected { .. }),
            |sim| {
                sim.delete("Namespace", "", "shop");
            },
        )
        .run()
        .await;
    run.exits(0);
    assert!(run.elapsed < secs(60), "{:?}", run.elapsed);
}

#[tokio::test(start_paused = true)]
async fn restarts_while_virt_api_is_down() {
    let stale = || {
        Sim::new(Options { eviction_strategy: Some("LiveMigrate".to_owned()), ..Options::default() })
            .world()
            .nodes(3)
            .on("node-0")
            .vm("tenant-a", Vm::new("db-0").non_migratable("DisksNotLiveMigratable"))
            .eviction_strategy("LiveMigrateIfPossible")
            .done()
    };
    let sim = stale();
    sim.virt_api(VirtApi::NoEndpoints);
    let always = |o: &mut safe_drain::settings::DrainOptions| o.restart_stale = RestartStale::Always;
    let run = drain(&sim, "node-0").with(always).at(secs(30), |sim| sim.virt_api(VirtApi::Up)).run().await;
    run.exits(0);
    run.vm_is("db-0", "restarts", "");
    assert!(run.elapsed < secs(75), "{:?}\n{run}", run.elapsed);

    let sim = stale();
    sim.virt_api(VirtApi::NoEndpoints);
    let run = drain(&sim, "node-0").with(always).timeout(900).changes().run().await;
    assert!(matches!(run.exit, 3 | 124), "{run}");
    assert!(sim.get("VirtualMachineInstance", "tenant-a", "db-0").is_some());
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_restarts_in_turn() {
    let sim = shop();
    sim.fault(Fault::at(secs(1), Then::CutWatches));
    let text = "The apiserver is shutting down, please try again later.";
    sim.fault(Fault::on("", "", Then::plain(429, 1, text)).between(secs(1), secs(6)));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0);
    assert!(run.elapsed < secs(20), "{:?}\n{run}", run.elapsed);
    assert!(run.requests.len() < 200, "{} requests: no storm\n{run}", run.requests.len());
}

#[tokio::test(start_paused = true)]
async fn a_slow_api_server_is_waited_for() {
    let sim = world().deployment("shop", "web", 3).done();
    sim.fault(Fault::on("", "", Then::Slow(secs(4))));
    let run = drain(&sim, "node-0").without_preview().run().await;
    run.exits(0);
    assert!(run.evictions("").iter().all(|r| r.status == 201), "{run}");
}

#[tokio::test(start_paused = true)]
async fn lists_that_fail_end_it_before_anything_is_changed() {
    for path in ["/api/v1/pods", "/api/v1/nodes", "/apis/kubevirt.io/v1/virtualmachineinstances", "/apis"] {
        let sim = vms(Options::default());
        sim.fault(Fault::on("GET", path, Then::status(500, "InternalError", "etcd is down")));
        let run = drain(&sim, "node-0").run().await;
        println!("{path}");
        run.exits(6).changed_nothing().says("etcd is down");
    }
}
