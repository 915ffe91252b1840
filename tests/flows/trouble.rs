//! What an API server, its webhooks and its watches can do in the middle of a drain.

use safe_drain::settings::RestartStale;
use safe_drain_sim::{Fault, Json, Options, Sim, Then, VirtApi, Vm};

use crate::harness::{drain, secs};
use crate::plain::world;

fn vms(options: Options) -> Sim {
    Sim::new(options).world().nodes(3).on("node-0").vm("tenant-a", Vm::new("web-1")).done()
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
async fn lists_that_fail_end_it_before_anything_is_changed() {
    for path in ["/api/v1/pods", "/api/v1/nodes", "/apis/kubevirt.io/v1/virtualmachineinstances", "/apis"] {
        let sim = vms(Options::default());
        sim.fault(Fault::on("GET", path, Then::status(500, "InternalError", "etcd is down")));
        let run = drain(&sim, "node-0").run().await;
        println!("{path}");
        run.exits(6).changed_nothing().says("etcd is down");
    }
}
