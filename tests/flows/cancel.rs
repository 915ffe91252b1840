//! `cancel`: what a drain left behind is taken back, in KubeVirt's order, or it is said what remains.

use safe_drain::event::{EventKind, StopReason};
use safe_drain::settings::DryRun;
use safe_drain_sim::{Json, Options, PodSpec, Profile, Rule, Sim, VirtApi, Vm};
use serde_json::json;

use crate::harness::{Outcome, cancel, drain, secs};

/// Three nodes; three VMs on node-0 that migrate and never get there, and some pods.
pub(super) fn cluster(profile: Profile) -> Sim {
    let options =
        Options { kubevirt: Some(profile), eviction_strategy: Some("LiveMigrate".to_owned()), ..Options::default() };
    let world = Sim::new(options).world().nodes(3).on("node-0");
    let world =
        ["hang-1", "hang-2", "hang-3"].into_iter().fold(world, |w, vm| w.vm("tenant-a", Vm::new(vm).migration("hang")));
    world.deployment("shop", "cart", 2).done()
}

/// The same after a drain that ran out of time.
async fn drained(profile: Profile) -> Sim {
    let sim = cluster(profile);
    drain(&sim, "node-0").timeout(20).run().await.exits(124);
    assert_eq!((marks(&sim).len(), cordoned(&sim, "node-0")), (3, true));
    assert!(!unfinished(&sim).is_empty());
    sim
}

pub(super) fn marks(sim: &Sim) -> Vec<String> {
    let vmis = sim.list("VirtualMachineInstance");
    let marked = vmis.iter().filter(|v| v.has("/status/evacuationNodeName"));
    marked.map(|v| format!("{} {}", v.name(), v.text("/status/evacuationNodeName"))).collect()
}

pub(super) fn unfinished(sim: &Sim) -> Vec<String> {
    let migrations = sim.list("VirtualMachineInstanceMigration");
    let open = migrations.iter().filter(|m| !matches!(m.text("/status/phase"), "Succeeded" | "Failed"));
    open.map(|m| m.name().to_owned()).collect()
}

pub(super) fn cordoned(sim: &Sim, node: &str) -> bool {
    sim.get("Node", "", node).is_some_and(|n| n.flag("/spec/unschedulable"))
}

pub(super) fn nothing_is_left(sim: &Sim, run: &Outcome) {
    assert_eq!(marks(sim), Vec::<String>::new(), "{run}");
    assert_eq!(unfinished(sim), Vec::<String>::new(), "{run}");
    for vm in ["hang-1", "hang-2", "hang-3"] {
        let vmi = sim.get("VirtualMachineInstance", "tenant-a", vm).unwrap();
        assert_eq!((vmi.text("/status/phase"), vmi.text("/status/nodeName")), ("Running", "node-0"), "{vm}\n{run}");
    }
}

fn node(run: &Outcome) -> &serde_json::Value {
    &run.document.list("/nodes")[0]
}

#[tokio::test(start_paused = true)]
async fn after_a_timeout_nothing_of_the_drain_is_left() {
    for profile in [Profile::V1_7, Profile::V1_8, Profile::V1_9] {
        let sim = drained(profile).await;
        let run = cancel(&sim, ["node-0"]).run().await;
        println!("{profile:?}\n{}", run.transcript());
        run.exits(0).prints("node/node-0 uncordoned\n").says("node-0 undone in").says("the cordon is lifted");
        for vm in ["hang-1", "hang-2", "hang-3"] {
            run.prints(&format!("virtualmachineinstance.kubevirt.io/{vm} evacuation cancelled\n"));
            assert_eq!(run.vm(vm).text("/outcome"), "cancels", "{run}");
        }
        nothing_is_left(&sim, &run);
        assert!(!cordoned(&sim, "node-0"));
        assert_eq!((node(&run).text("/verdict"), run.document.flag("/changed")), ("undone", true));

        // First the marks, then the migrations, last the cordon.
        let order: Vec<&str> = run.writes().iter().map(|r| r.method.as_str()).collect();
        let mut sorted = order.clone();
        sorted.sort_by_key(|m| ["PUT", "DELETE", "PATCH"].iter().position(|o| o == m));
        assert_eq!(order, sorted, "{run}");
        assert!(run.asked("DELETE", "").len() >= 2, "{run}");

        // It stays so, and a second run has nothing to do.
        tokio::time::sleep(secs(600)).await;
        nothing_is_left(&sim, &run);
        let again = cancel(&sim, ["node-0"]).run().await;
        again.exits(0).changed_nothing().says("node-0 has nothing to undo");
        assert_eq!(again.stdout, "");
        assert_eq!((again.document.flag("/changed"), node(&again).list("/vms").len()), (false, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn after_an_interruption() {
    let sim = cluster(Profile::V1_7);
    let moving = |e: &EventKind| matches!(e, EventKind::VmProgressed { .. });
    drain(&sim, "node-0").signal_when(StopReason::Interrupt, moving).run().await.exits(130);
    let run = cancel(&sim, ["node-0"]).run().await;
    run.exits(0);
    nothing_is_left(&sim, &run);
    assert!(!cordoned(&sim, "node-0"));
}

#[tokio::test(start_paused = true)]
async fn an_old_release_says_what_remains() {
    for profile in [Profile::V1_5, Profile::V1_6] {
        let sim = drained(profile).await;
        let before = unfinished(&sim);
        let run = cancel(&sim, ["node-0"]).run().await;
        println!("{}", run.transcript());
        run.exits(3).changed_nothing().says("cannot take a mark off").says("an uncordon would not stop that");
        for vm in ["hang-1", "hang-2", "hang-3"] {
            run.says(&format!("VM tenant-a/{vm}: "));
            let row = run.vm(vm);
            assert_eq!((row.text("/outcome"), row.flag("/marked")), ("blocks", true), "{run}");
            assert!(row.text("/remedy").contains(&format!("virtctl restart {vm} -n tenant-a")), "{row}");
        }
        assert!(!run.stderr.contains("kubectl uncordon"), "{run}");
        assert_eq!((marks(&sim).len(), unfinished(&sim), cordoned(&sim, "node-0")), (3, before, true));
        assert_eq!((node(&run).text("/verdict"), node(&run).text("/cordon")), ("blocked", "stays"));

        let preview = cancel(&sim, ["node-0"]).preview(DryRun::Client).run().await;
        preview.exits(3).changed_nothing();
        assert_eq!(preview.stdout, "", "{preview}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_does_not_say_its_version_is_asked() {
    for (profile, code) in [(Profile::V1_6, 3), (Profile::V1_9, 0)] {
        let sim = drained(profile).await;
        for kubevirt in sim.list("KubeVirt") {
            sim.update("KubeVirt", kubevirt.namespace(), kubevirt.name(), |k| k.cut("/status/observedKubeVirtVersion"));
        }
        let run = cancel(&sim, ["node-0"]).run().await;
        run.exits(code);
        assert_eq!(cordoned(&sim, "node-0"), code == 3, "{run}");
        if code == 3 {
            run.says("this KubeVirt cannot take a mark off");
            assert!(run.asked("DELETE", "").is_empty(), "what is marked is migrated again\n{run}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cordon_of_somebody_else_stays() {
    let sim = cluster(Profile::V1_7);
    sim.update("Node", "", "node-0", |n| n["spec"]["unschedulable"] = true.into());
    drain(&sim, "node-0").timeout(20).run().await.exits(124);
    let run = cancel(&sim, ["node-0"]).run().await;
    run.exits(0).says("it stays cordoned").says("kubectl uncordon node-0");
    nothing_is_left(&sim, &run);
    assert!(cordoned(&sim, "node-0"));
    assert!(run.asked("PATCH", "").is_empty(), "{run}");
    assert_eq!((node(&run).text("/cordon"), node(&run).flag("/cordonedNow")), ("stays", true));
    let again = cancel(&sim, ["node-0"]).run().await;
    again.exits(0).changed_nothing().says("kubectl uncordon node-0");
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_another_node_is_left_alone() {
    let sim = cluster(Profile::V1_7).world().on("node-1").vm("tenant-b", Vm::new("other-1").migration("hang")).done();
    drain(&sim, "node-0").timeout(20).run().await.exits(124);
    sim.update("VirtualMachineInstance", "tenant-b", "other-1", |v| v.put("/status/evacuationNodeName", "node-1"));
    tokio::time::sleep(secs(10)).await;
    // One mark changes hands right before its turn.
    let twin = sim.clone();
    let steal = move || {
        twin.update("VirtualMachineInstance", "tenant-a", "hang-2", |v| v.put("/status/evacuationNodeName", "node-2"));
    };
    let run = cancel(&sim, ["node-0"]).right_before("PUT", "/hang-2/evacuate/cancel", steal).run().await;
    run.exits(0);
    assert_eq!(marks(&sim), ["hang-2 node-2", "other-1 node-1"], "{run}");
    assert!(run.asked("PUT", "/other-1/").is_empty() && run.asked("DELETE", "/tenant-b/").is_empty(), "{run}");
    assert!(!unfinished(&sim).is_empty(), "that of other-1 goes on");
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_gets_away_is_said_to_have_left() {
    let options = Options { migrate: secs(15), ..Options::default() };
    let sim = Sim::new(options).world().nodes(3).on("node-0").vm("tenant-a", Vm::new("web-1")).done();
    drain(&sim, "node-0").timeout(5).run().await.exits(124);
    let twin = sim.clone();
    let ends = move || {
        twin.update("VirtualMachineInstance", "tenant-a", "web-1", |v| {
            v.put("/status/nodeName", "node-1");
            v.cut("/status/evacuationNodeName");
        });
    };
    let run = cancel(&sim, ["node-0"]).right_before("PUT", "/web-1/evacuate/cancel", ends).run().await;
    run.says("VM had left before it could be stopped: tenant-a/web-1 (on node-1)");
    assert_eq!(run.vm("web-1").text("/outcome"), "migrates", "{run}");
}

#[tokio::test(start_paused = true)]
async fn nothing_to_do() {
    for options in [Options::default(), Options::plain()] {
        let sim = Sim::new(options).world().nodes(3).on("node-0").deployment("shop", "web", 2).done();
        let run = cancel(&sim, ["node-0", "node-1"]).run().await;
        run.exits(0).changed_nothing().says("node-0 has nothing to undo; it is not cordoned");
        assert_eq!(run.stdout, "");
        assert_eq!(run.document.list("/nodes").len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cordon_alone_is_lifted_on_any_cluster() {
    let sim = Sim::new(Options::plain()).world().nodes(3).on("node-0");
    let sim = sim.deployment_with("shop", "slow", 1, PodSpec::new().grace(600).annotation("lab/stop", "500s")).done();
    drain(&sim, "node-0").timeout(5).run().await.exits(124);
    let preview = cancel(&sim, ["node-0"]).preview(DryRun::Client).run().await;
    preview.exits(0).changed_nothing();
    assert_eq!(preview.stdout, "node/node-0 uncordoned (dry run)\n");
    let run = cancel(&sim, ["node-0"]).run().await;
    run.exits(0);
    assert_eq!(run.stdout, "node/node-0 uncordoned\n");
    assert!(!cordoned(&sim, "node-0"));
}

#[tokio::test(start_paused = true)]
async fn a_preview_shows_the_steps_and_changes_nothing() {
    let sim = drained(Profile::V1_9).await;
    let before = (marks(&sim), unfinished(&sim));
    for (how, suffix) in [(DryRun::Client, "(dry run)"), (DryRun::Server, "(server dry run)")] {
        let run = cancel(&sim, ["node-0"]).preview(how).run().await;
        run.exits(0).changed_nothing();
        for vm in ["hang-1", "hang-2", "hang-3"] {
            run.prints(&format!("virtualmachineinstance.kubevirt.io/{vm} evacuation cancelled {suffix}\n"));
        }
        run.prints(&format!("node/node-0 uncordoned {suffix}\n"));
        assert_eq!(run.stdout.matches("virtualmachineinstancemigration.kubevirt.io/").count(), before.1.len(), "{run}");
        assert_eq!((node(&run).text("/verdict"), node(&run).flag("/cordonedNow")), ("clear", true));
        assert_eq!((marks(&sim), unfinished(&sim)), before);
        assert!(cordoned(&sim, "node-0"));
        let asked = run.requests.iter().filter(|r| r.is_dry_run()).count();
        assert_eq!(asked, if how == DryRun::Server { 4 + before.1.len() } else { 0 }, "{run}");
        assert!(!run.stderr.contains("Warning"), "{run}");
    }
}

#[tokio::test(start_paused = true)]
async fn missing_rights_end_it_before_anything_is_changed() {
    for (verb, group, resource) in [
        ("update", "subresources.kubevirt.io", "virtualmachineinstances/evacuate"),
        ("delete", "kubevirt.io", "virtualmachineinstancemigrations"),
        ("get", "kubevirt.io", "virtualmachineinstancemigrations"),
        ("patch", "", "nodes"),
        ("list", "kubevirt.io", "virtualmachineinstances"),
        ("list", "kubevirt.io", "virtualmachineinstancemigrations"),
        ("get", "", "nodes"),
    ] {
        let sim = drained(Profile::V1_7).await;
        sim.deny(Rule::new(verb, group, resource));
        let run = cancel(&sim, ["node-0"]).run().await;
        println!("{verb} {resource}");
        run.exits(6).changed_nothing().says("nothing was changed");
        if !matches!((verb, resource), ("list", _) | ("get", "nodes")) {
            run.says(&format!("resources: [\"{resource}\"], verbs: [\"{verb}\"]"));
        }
        assert_eq!((marks(&sim).len(), cordoned(&sim, "node-0")), (3, true));
    }
    // Only what there is to do needs a right.
    let sim = drained(Profile::V1_6).await;
    sim.deny(Rule::new("patch", "", "nodes"));
    cancel(&sim, ["node-0"]).run().await.exits(3);
}

#[tokio::test(start_paused = true)]
async fn while_virt_api_is_away() {
    let sim = drained(Profile::V1_7).await;
    sim.virt_api(VirtApi::NoEndpoints);
    let run = cancel(&sim, ["node-0"]).run().await;
    run.exits(124).says("KubeVirt's API cannot be reached").says("the same command again");
    assert!(run.asked("DELETE", "").is_empty() && cordoned(&sim, "node-0"), "{run}");
    assert!(run.elapsed >= secs(30), "{:?}", run.elapsed);
    assert_eq!((node(&run).text("/verdict"), run.document.flag("/changed")), ("timeout", false));

    sim.virt_api(VirtApi::Hang);
    let run = cancel(&sim, ["node-0"]).run().await;
    run.exits(124).says("context deadline exceeded").says("the same command again");

    // It comes back in time.
    sim.virt_api(VirtApi::NoEndpoints);
    let twin = sim.clone();
    tokio::spawn(async move {
        tokio::time::sleep(secs(10)).await;
        twin.virt_api(VirtApi::Up);
    });
    let run = cancel(&sim, ["node-0"]).run().await;
    run.exits(0);
    nothing_is_left(&sim, &run);
}

#[tokio::test(start_paused = true)]
async fn a_migration_that_does_not_stop_keeps_the_cordon() {
    let sim = drained(Profile::V1_7).await;
    // Nobody is there who would end it.
    sim.options(|o| o.virt_controller = false);
    let run = cancel(&sim, ["node-0"]).run().await;
    run.exits(124).says("its migration is being stopped").says("VMs are still being evacuated");
    assert!(cordoned(&sim, "node-0") && marks(&sim).is_empty(), "{run}");
    sim.options(|o| o.virt_controller = true);
    let run = cancel(&sim, ["node-0"]).run().await;
    run.exits(0);
    assert!(!cordoned(&sim, "node-0"));
}

#[tokio::test(start_paused = true)]
async fn under_the_drain_taint_it_says_what_to_do() {
    let sim = drained(Profile::V1_7).await;
    let taint = json!([{"key": "kubevirt.io/drain", "effect": "NoSchedule"}]);
    sim.update("Node", "", "node-0", |n| n.put("/spec/taints", taint));
    let run = cancel(&sim, ["node-0"]).run().await;
    run.exits(3).changed_nothing().says("`kubectl taint node node-0 kubevirt.io/drain:NoSchedule-`");
    assert!(cordoned(&sim, "node-0"));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_gone() {
    let sim = drained(Profile::V1_7).await;
    let run = cancel(&sim, ["node-0", "node-9"]).run().await;
    run.exits(2).changed_nothing().says("node \"node-9\" not found; nothing was changed");
    sim.vanish("Node", "", "node-0");
    let run = cancel(&sim, ["node-0"]).run().await;
    run.says("Warning: node node-0 does not exist any more, but VMs are still marked for it");
    // virt-api looks for the node and refuses: the marks stay, and so do the migrations.
    run.exits(3).says("the mark stays, the server says").says("nodes \"node-0\" not found");
    assert!(run.asked("DELETE", "").is_empty(), "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_still_runs_is_noticed() {
    let sim = drained(Profile::V1_7).await;
    let twin = sim.clone();
    let again = move || {
        twin.update("VirtualMachineInstance", "tenant-a", "hang-1", |v| v.put("/status/evacuationNodeName", "node-0"));
    };
    let run = cancel(&sim, ["node-0"]).right_before("DELETE", "", again).run().await;
    run.exits(3).says("does a drain of node-0 still run?");
    assert!(cordoned(&sim, "node-0"));
    assert_eq!(run.asked("PUT", "/hang-1/").len(), 1, "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_it() {
    let sim = drained(Profile::V1_7).await;
    let first = |e: &EventKind| matches!(e, EventKind::EvacuationCancelled { .. });
    let run = cancel(&sim, ["node-0"]).signal_when(StopReason::Interrupt, first).run().await;
    run.exits(130).says("nothing more is undone").says("the same command again");
    assert!(cordoned(&sim, "node-0"));
    assert_eq!(node(&run).text("/verdict"), "interrupted");
    let run = cancel(&sim, ["node-0"]).run().await;
    run.exits(0);
    nothing_is_left(&sim, &run);
}

#[tokio::test(start_paused = true)]
async fn external_vms_lose_their_mark_too() {
    let sim = Sim::new(Options::default()).world().nodes(3).on("node-0");
    let sim = sim.vm("tenant-a", Vm::new("ext-1").eviction_strategy("External")).done();
    drain(&sim, "node-0").timeout(5).run().await.exits(124);
    let run = cancel(&sim, ["node-0"]).run().await;
    run.exits(0);
    assert_eq!(marks(&sim), Vec::<String>::new());
}
