//! Lines of kubectl that only some flags bring, and the silence about VMs where there are none.

use safe_drain::event::StopReason;
use safe_drain::settings::{DryRun, OnAbort};
use safe_drain_sim::scenario::{Settings, start};
use safe_drain_sim::{Json, Options, PodSpec, Rule, Sim, World};
use serde_json::json;

use crate::harness::{Outcome, drain, secs};

fn world() -> World {
    Sim::new(Options::plain()).world().nodes(2).on("node-0")
}

/// How often stdout has lines that end like that.
fn count(run: &Outcome, end: &str) -> usize {
    run.stdout.lines().filter(|line| line.ends_with(end)).count()
}

#[tokio::test(start_paused = true)]
async fn accepted_evictions_are_told_from_verbosity_2_on() {
    for (verbosity, expected) in [(0, 0), (1, 0), (2, 3), (6, 3)] {
        let sim = world().deployment("shop", "web", 3).done();
        let run = drain(&sim, "node-0").verbosity(verbosity).run().await;
        run.exits(0);
        assert_eq!(count(&run, " eviction started"), expected, "{run}");
        assert_eq!(count(&run, " evicted"), 3, "{run}");
    }
    // Also where the pod is gone before the answer to its eviction.
    let sim = world().deployment_with("shop", "web", 3, PodSpec::new().grace(0)).done();
    let run = drain(&sim, "node-0").verbosity(2).run().await;
    assert_eq!(count(&run, " eviction started"), 3, "{run}");
}

#[tokio::test(start_paused = true)]
async fn accepted_deletions_are_told_from_verbosity_2_on() {
    let sim = world().deployment("shop", "web", 3).done();
    let run = drain(&sim, "node-0").with(|o| o.disable_eviction = true).verbosity(2).run().await;
    run.exits(0);
    assert_eq!((count(&run, " deletion started"), count(&run, " deleted")), (3, 3), "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_waited_for_any_more_is_told() {
    let sim = world().pod("shop", "web-0", PodSpec::new().grace(5)).done();
    // Nobody is there to stop it.
    sim.update("Node", "", "node-0", |n| n.set_annotation("lab/kubelet", Some("down")));
    let run = drain(&sim, "node-0").with(|o| {
        o.force = true;
        o.skip_wait_for_delete = Some(secs(60));
    });
    let run = run.run().await;
    run.exits(0).prints("pod \"web-0\" has DeletionTimestamp older than 60 seconds, skipping\n");
    run.pod_is("web-0", "skipped", "Stopping");
    assert_eq!(count(&run, "pod/web-0 evicted"), 0, "{run}");
    let progress = run.stderr.lines().filter(|line| line.starts_with('[') && line.contains("no longer waited for"));
    assert_eq!(progress.count(), 0, "said on stdout already\n{run}");
    assert!(run.elapsed >= secs(65) && run.elapsed < secs(67), "{:?}", run.elapsed);
}

/// On a cluster without KubeVirt: no word about VMs, no request about them.
fn is_silent_about_vms(run: &Outcome) {
    for text in [&run.stdout, &run.stderr] {
        let words = ["VM", "vm", "virt", "Virt", "migrat", "guest"];
        assert!(words.iter().all(|word| !text.contains(word)), "{}", run.transcript());
    }
    let asked: Vec<&str> = run.requests.iter().map(|r| r.path.as_str()).filter(|p| p.contains("kubevirt")).collect();
    assert!(asked.is_empty(), "{asked:?}");
    assert!(run.rows("vms").is_empty() && run.document["server"]["kubevirt"].is_null(), "{:#}", run.document);
    for node in run.document.list("/nodes") {
        assert_eq!(node.int("/counts/vms"), Some(0), "{node:#}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_kubevirt_nothing_is_said_or_asked_about_vms() {
    for (flags, exit) in [(false, 4), (true, 0)] {
        for dry_run in [DryRun::None, DryRun::Client, DryRun::Server] {
            let sim = start("mixed", Settings { options: Options::plain(), ..Settings::default() }).unwrap();
            let flow = drain(&sim, "node-0").with(|o| {
                (o.force, o.delete_emptydir_data, o.dry_run) = (flags, flags, dry_run);
            });
            let run = flow.run().await;
            run.exits(exit);
            is_silent_about_vms(&run);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_kubevirt_no_trouble_speaks_of_vms_either() {
    // A budget that never allows anything.
    let never = || world().deployment("shop", "web", 2).pdb("shop", "web", "web", json!({"maxUnavailable": 0})).done();
    for dry_run in [DryRun::None, DryRun::Client, DryRun::Server] {
        let run = drain(&never(), "node-0").preview(dry_run).run().await;
        run.exits(3);
        is_silent_about_vms(&run);
    }
    let run = drain(&never(), "node-0").with(|o| o.only_if_clear = true).run().await;
    run.exits(4);
    is_silent_about_vms(&run);
    // A pod too slow for the timeout, what it undoes then, and a signal.
    let slow =
        || world().deployment_with("shop", "web", 1, PodSpec::new().grace(300).annotation("lab/stop", "200s")).done();
    for on_abort in [OnAbort::Leave, OnAbort::Cancel] {
        let run = drain(&slow(), "node-0").timeout(10).with(|o| o.on_abort = on_abort).run().await;
        run.exits(124);
        is_silent_about_vms(&run);
        let flow = drain(&slow(), "node-0").with(|o| o.on_abort = on_abort);
        let run = flow.signal(secs(5), StopReason::Interrupt).run().await;
        run.exits(130);
        is_silent_about_vms(&run);
    }
    // Somebody lifts the cordon in the middle.
    let lift = |sim: &Sim| {
        sim.update("Node", "", "node-0", |n| n.put("/spec/unschedulable", false));
    };
    let run = drain(&slow(), "node-0").timeout(10).at(secs(2), lift).changes().run().await;
    run.exits(124).says("is not cordoned any more");
    is_silent_about_vms(&run);
    // Others may not be evicted, or nothing may be listed.
    for (verb, resource) in [("create", "pods/eviction"), ("list", "pods"), ("list", "poddisruptionbudgets")] {
        let sim = world().deployment("shop", "web", 1).done();
        sim.deny(Rule::new(verb, if resource.starts_with("pods") { "" } else { "policy" }, resource));
        let run = drain(&sim, "node-0").without_preview().run().await;
        is_silent_about_vms(&run);
    }
}
