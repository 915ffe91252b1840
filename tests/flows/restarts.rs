//! `restart-stale`: the window of a strategy switch without a drain.

mod rights;

use std::time::Duration;

use safe_drain::event::{EventKind, StopReason};
use safe_drain::settings::DryRun;
use safe_drain_sim::scenario::{Settings, start};
use safe_drain_sim::{Fault, Json, Options, Sim, Then, VirtApi, Vm, World};

use crate::harness::{Outcome, restart_stale, secs};
use crate::vms::DISK;

/// Seven VMs that were started under LiveMigrate; the cluster says LiveMigrateIfPossible now.
fn switched() -> Sim {
    start("strategy-switch", Settings::default()).expect("a known name")
}

/// That many stale VMs on node-0, and more from `fill`.
fn stale_with(count: usize, fill: impl FnOnce(World) -> World) -> Sim {
    let options = Options { eviction_strategy: Some("LiveMigrate".to_owned()), ..Options::default() };
    let world = Sim::new(options).world().nodes(3).on("node-0");
    let vms = (0..count).fold(world, |w, i| w.vm("tenant-a", Vm::new(&format!("db-{i}")).non_migratable(DISK)));
    fill(vms).eviction_strategy("LiveMigrateIfPossible").done()
}

fn stale(count: usize) -> Sim {
    stale_with(count, |world| world)
}

fn uid(sim: &Sim, ns: &str, vm: &str) -> String {
    sim.get("VirtualMachineInstance", ns, vm).expect("it runs").uid().to_owned()
}

fn strategy(sim: &Sim, vm: &str) -> String {
    sim.get("VirtualMachineInstance", "tenant-a", vm).expect("it runs").text("/spec/evictionStrategy").to_owned()
}

fn names(run: &Outcome) -> Vec<&str> {
    let mut names: Vec<&str> = run.rows("vms").iter().map(|row| row.text("/name")).collect();
    names.sort_unstable();
    names
}

fn restarting(e: &EventKind) -> bool {
    matches!(e, EventKind::VmRestarting { .. })
}

fn not_ready(sim: &Sim, node: &str) {
    let unknown = serde_json::json!([{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]);
    sim.update("Node", "", node, |n| n.put("/status/conditions", unknown));
}

/// No node takes launchers any more.
fn close_all_nodes(sim: &Sim) {
    for node in ["node-0", "node-1", "node-2"] {
        sim.update("Node", "", node, |n| n.put("/spec/unschedulable", true));
    }
}

#[tokio::test(start_paused = true)]
async fn all_stale_vms_get_the_new_strategy_and_the_others_are_left_alone() {
    let sim = switched();
    let all = ["db-0", "gpu-1", "web-1", "pinned-1", "ext-1", "hang-1", "fail-1"];
    let before: Vec<(&str, String)> = all.map(|vm| (vm, uid(&sim, "tenant-a", vm))).to_vec();
    let run = restart_stale(&sim).run().await;
    println!("{}", run.transcript());
    run.exits(0).says("2 VMs restarted in");
    assert_eq!(names(&run), ["db-0", "gpu-1"]);
    for (vm, old) in &before {
        let helped = matches!(*vm, "db-0" | "gpu-1");
        assert_eq!(uid(&sim, "tenant-a", vm) != *old, helped, "{vm}\n{run}");
        assert_eq!(run.restarts(vm).len(), usize::from(helped), "{vm}\n{run}");
    }
    for vm in ["db-0", "gpu-1"] {
        run.vm_is(vm, "restarts", "");
        run.prints(&format!("virtualmachine.kubevirt.io/{vm} restarted\n"));
        assert_eq!(strategy(&sim, vm), "LiveMigrateIfPossible");
        assert_eq!(run.vm(vm).text("/newVmiUid"), uid(&sim, "tenant-a", vm));
    }
    assert_eq!(run.document.list("/nodes")[0].text("/verdict"), "restarted");
    assert!(!run.cordoned("node-0"));

    let again = restart_stale(&sim).run().await;
    again.exits(0).changed_nothing().says("nothing to do: no VM here needs a restart");
    assert_eq!((again.stdout.as_str(), again.document.list("/nodes").len()), ("", 0));
}

#[tokio::test(start_paused = true)]
async fn a_second_run_follows_the_restarts_of_the_first() {
    // While the guests stop, whatever their run strategy, and when the new ones start.
    for stops in [true, false] {
        let sim = switched();
        sim.options(|o| if stops { o.stop = secs(25) } else { o.start = secs(120) });
        let restarting = |e: &EventKind| matches!(e, EventKind::VmRestarting { vm, .. } if vm.name == "gpu-1");
        let first = restart_stale(&sim).signal_when(StopReason::Interrupt, restarting).changes().once().await;
        first.exits(130);
        tokio::time::sleep(secs(5)).await;
        let second = restart_stale(&sim).changes().run().await;
        println!("{stops}\n{}\n{}", first.transcript(), second.transcript());
        second.exits(0).changed_nothing();
        assert!(!second.stderr.contains("virtctl start") && !second.stdout.contains("stopped"), "{second}");
        if stops {
            assert!(second.rows("vms").iter().all(|r| r.text("/outcome") == "returns"), "{second}");
        } else {
            second.says("nothing to do").says("still start: tenant-a/db-0, tenant-a/gpu-1");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_cannot_be_read_is_no_reason_for_success() {
    let sim = switched();
    sim.update("VirtualMachineInstance", "tenant-a", "db-0", |v| v.put("/spec/terminationGracePeriodSeconds", "soon"));
    sim.update("VirtualMachineInstance", "tenant-a", "gpu-1", |v| v.put("/spec/terminationGracePeriodSeconds", "soon"));
    let run = restart_stale(&sim).changes().once().await;
    run.exits(6).changed_nothing().says("2 objects cannot be read");
}

#[tokio::test(start_paused = true)]
async fn a_preview_says_what_would_happen_and_sends_nothing() {
    let sim = switched();
    let run = restart_stale(&sim).preview(DryRun::Client).run().await;
    run.exits(0).prints("! tenant-a/db-0").prints("Exit code of the command: 0");
    run.vm_is("db-0", "restarts", "");
    let others: Vec<_> = run.requests.iter().filter(|r| r.method != "GET").collect();
    assert!(others.iter().all(|r| r.path.ends_with("/selfsubjectaccessreviews")), "{others:#?}");

    let run = restart_stale(&sim).preview(DryRun::Client).without_consent().run().await;
    run.exits(4).prints("Not restarted: 2 VMs. With --restart-stale: none.");
    assert_eq!(run.vm_is("db-0", "blocks", "ConsentMissing").list("/needs"), ["--restart-stale"]);
}

#[tokio::test(start_paused = true)]
async fn a_preview_on_the_server_asks_once_per_vm_and_only_dry() {
    let sim = switched();
    let run = restart_stale(&sim).preview(DryRun::Server).run().await;
    run.exits(0).prints("asked by 2 dry runs, without effect");
    let asked = run.asked("PUT", "/restart");
    assert_eq!(asked.len(), 2, "{run}");
    assert!(asked.iter().all(|r| r.body.as_ref().is_some_and(|b| b.list("/dryRun") == ["All"])), "{asked:#?}");
    sim.fault(Fault::on("PUT", "/restart", Then::status(409, "Conflict", "no restart today")));
    let run = restart_stale(&sim).preview(DryRun::Server).run().await;
    run.exits(3).vm_is("db-0", "blocks", "RestartRefused");

    // What lacks consent is asked about as well; nothing is evicted, not even dry, and what cannot be restarted is not asked.
    let sim = stale_with(1, |world| world.on("node-1").vm("tenant-a", Vm::new("far-1").non_migratable(DISK)));
    not_ready(&sim, "node-1");
    let run = restart_stale(&sim).preview(DryRun::Server).without_consent().run().await;
    run.exits(4).prints("asked by 1 dry run, without effect");
    assert_eq!((run.restarts("db-0").len(), run.asked("PUT", "").len()), (1, 1), "{run}");
}

#[tokio::test(start_paused = true)]
async fn without_a_terminal_and_without_consent_nothing_is_changed() {
    let sim = stale(2);
    let run = restart_stale(&sim).without_consent().run().await;
    run.exits(4).changed_nothing().says("2 VMs need a flag first").says("--restart-stale");
    assert_eq!(run.document.text("/consent/restartStale"), "none");
}

#[tokio::test(start_paused = true)]
async fn one_question_decides() {
    for (answer, exit) in [("y", 0), ("n", 4), ("", 4), ("yes", 4)] {
        let sim = stale(2);
        let run = restart_stale(&sim).without_consent().answers(answer).run().await;
        run.exits(exit);
        let question = &run.question;
        assert!(question.contains("Restarting the stale VMs in all namespaces"), "{question}");
        assert!(question.contains("2 VMs will be restarted (down until"), "{question}");
        assert!(
            question.contains("tenant-a/db-0") && question.ends_with("Do you want to continue? (y/N): "),
            "{question}"
        );
        assert_eq!(run.asked("PUT", "/restart").len(), if exit == 0 { 2 } else { 0 }, "{answer:?}\n{run}");
        let consent = if exit == 0 { "answer" } else { "declined" };
        assert_eq!(run.document.text("/consent/restartStale"), consent);
    }
    let sim = stale(1);
    restart_stale(&sim).without_consent().answers_ctrl_c().run().await.exits(130).changed_nothing();
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_was_recreated_since_the_question_is_not_restarted_again() {
    let sim = stale(2);
    let old = uid(&sim, "tenant-a", "db-1");
    // Somebody else restarts the second one before its turn.
    let other = |sim: &Sim| {
        sim.delete("VirtualMachineInstance", "tenant-a", "db-1");
    };
    let settled = |e: &EventKind| matches!(e, EventKind::Consented { .. });
    let run = restart_stale(&sim).when(settled, other).run().await;
    run.exits(0).says("VM tenant-a/db-1 was restarted by somebody else").says("1 VM restarted by somebody else");
    run.vm_is("db-0", "restarts", "");
    run.vm_is("db-1", "returns", "");
    assert!(run.restarts("db-1").is_empty(), "{run}");
    assert_ne!(uid(&sim, "tenant-a", "db-1"), old);
    assert!(!run.stdout.contains("db-1"), "{run}");
}

#[tokio::test(start_paused = true)]
async fn at_most_five_are_down_at_a_time_whatever_their_nodes() {
    let sim = stale_with(6, |world| {
        (6..12).fold(world.on("node-1"), |w, i| w.vm("tenant-b", Vm::new(&format!("db-{i}")).non_migratable(DISK)))
    });
    let run = restart_stale(&sim).run().await;
    run.exits(0).says("12 VMs restarted in");
    let (mut under_way, mut most) = (0_usize, 0);
    for event in &run.events {
        under_way += usize::from(restarting(&event.kind));
        under_way -= usize::from(matches!(event.kind, EventKind::VmEnded { .. }));
        most = most.max(under_way);
    }
    assert_eq!(most, 5, "{run}");
    assert_eq!(run.asked("PUT", "/restart").iter().filter(|r| r.at < secs(1)).count(), 5, "{run}");
}

#[tokio::test(start_paused = true)]
async fn the_first_that_finds_no_node_stops_the_rest() {
    let sim = stale(8);
    let run = restart_stale(&sim).timeout(600).when(restarting, close_all_nodes).run().await;
    println!("{}", run.transcript());
    let sent = run.asked("PUT", "/restart").len();
    assert!(sent <= 5, "{sent} restarts\n{run}");
    run.exits(3)
        .says("should run again and do not:")
        .says("no further VM is restarted")
        .says("kubectl describe vmi db-0");
    assert_eq!(run.rows("vms").iter().filter(|r| r.text("/outcome") == "down").count(), sent, "{run}");
    assert_eq!(run.rows("vms").iter().filter(|r| r.text("/cause") == "RestartStalled").count(), 8 - sent, "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_restarted_vm_that_does_not_run_ends_with_five() {
    let sim = stale(1);
    let run = restart_stale(&sim).timeout(600).when(restarting, close_all_nodes).run().await;
    run.exits(5).says("not every VM runs again").says("kubectl describe vmi db-0 -n tenant-a");
    run.vm_is("db-0", "down", "Unschedulable");
}

#[tokio::test(start_paused = true)]
async fn a_vm_whose_node_is_closed_needs_consent_of_its_own() {
    let only_here = || {
        stale_with(1, |world| {
            world.vm(
                "tenant-a",
                Vm::new("near-1").non_migratable(DISK).node_selector("kubernetes.io/hostname", "node-0"),
            )
        })
    };
    // Without a cordon it comes back to its node.
    let sim = only_here();
    restart_stale(&sim).run().await.exits(0).vm_is("near-1", "restarts", "");
    let vmi = sim.get("VirtualMachineInstance", "tenant-a", "near-1").unwrap();
    assert_eq!(vmi.text("/status/nodeName"), "node-0");

    let sim = only_here();
    sim.update("Node", "", "node-0", |n| n.put("/spec/unschedulable", true));
    let run = restart_stale(&sim).run().await;
    run.exits(3).says("add --allow-vm-down");
    run.vm_is("db-0", "restarts", "");
    assert!(run.vm_is("near-1", "blocks", "VmNotMigratable").text("/because").contains("1 is cordoned (node-0)"));

    let sim = only_here();
    sim.update("Node", "", "node-0", |n| n.put("/spec/unschedulable", true));
    let run = restart_stale(&sim).with(|o| o.allow_vm_down = true).run().await;
    run.exits(0).says("1 VM restarted, and down until a node takes it");
    run.vm("near-1");
}

#[tokio::test(start_paused = true)]
async fn local_data_needs_a_flag() {
    let lab =
        || stale_with(1, |world| world.vm("tenant-a", Vm::new("tmp-1").non_migratable(DISK).empty_disk("scratch")));
    let run = restart_stale(&lab()).run().await;
    run.exits(4).changed_nothing().says("1 VM needs a flag first").says("--delete-emptydir-data").says("scratch");
    let run = restart_stale(&lab()).with(|o| o.delete_emptydir_data = true).run().await;
    run.exits(0).vm_is("tmp-1", "restarts", "");
}

#[tokio::test(start_paused = true)]
async fn a_refused_restart_blocks_and_is_not_tried_for_ever() {
    let sim = stale(1);
    let text = "Internal error occurred: VM is not running: restart refused";
    sim.fault(Fault::on("PUT", "/restart", Then::status(409, "Conflict", text)));
    let run = restart_stale(&sim).timeout(120).changes().run().await;
    run.exits(3).says("waiting will not clear the rest").says("refuses the restart");
    run.vm_is("db-0", "blocks", "RestartRefused");
    assert!(run.asked("PUT", "/restart").len() <= 5, "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_whose_answer_is_lost_is_sent_once() {
    let sim = stale(1);
    sim.fault(Fault::on("PUT", "/restart", Then::DisconnectAfter).first(1));
    let run = restart_stale(&sim).run().await;
    run.exits(0).vm_is("db-0", "restarts", "");
    assert_eq!(run.asked("PUT", "/restart").len(), 1, "{run}");
}

#[tokio::test(start_paused = true)]
async fn while_virt_api_is_away_it_waits_and_then_gives_up() {
    let sim = stale(1);
    sim.virt_api(VirtApi::NoEndpoints);
    let run = restart_stale(&sim).timeout(60).changes().run().await;
    run.exits(124)
        .says("timeout after")
        .says("the restart did not get through: ")
        .says("; by now its guest may take 30s");
    assert_eq!(run.stderr.matches("refused for now").count(), 1, "said once\n{run}");
    run.vm_is("db-0", "pending", "GraceTooLong");
    // It comes back, and the same command does the rest.
    sim.virt_api(VirtApi::Up);
    restart_stale(&sim).run().await.exits(0).vm_is("db-0", "restarts", "");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_switched_back_stops_the_restarts() {
    let sim = stale(3);
    let planned = |e: &EventKind| matches!(e, EventKind::Planned { .. });
    let run = restart_stale(&sim).when(planned, |sim| sim.eviction_strategy(Some("LiveMigrate"))).run().await;
    run.exits(3).says("the cluster asks for LiveMigrate, so a restart changes nothing");
    assert!(run.asked("PUT", "/restart").is_empty(), "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_comes_back_with_another_strategy_stops_the_rest() {
    let sim = stale(7);
    let run = restart_stale(&sim).when(restarting, |sim| sim.eviction_strategy(Some("LiveMigrate"))).run().await;
    run.exits(3).says("came back with LiveMigrate").says("Not with the strategy that was expected");
    assert!(run.asked("PUT", "/restart").len() <= 5, "{run}");
    let other = run.rows("vms").iter().filter(|r| r.text("/cause") == "StrategyMismatch").count();
    assert!(other >= 1, "{run}");

    // Also where it was the only one.
    let sim = stale(1);
    let run = restart_stale(&sim).when(restarting, |sim| sim.eviction_strategy(Some("LiveMigrate"))).run().await;
    run.exits(3).says("not every one has the strategy that was expected").vm_is("db-0", "restarts", "StrategyMismatch");
}

#[tokio::test(start_paused = true)]
async fn vms_that_others_delete_or_stop_are_no_failure() {
    let sim = stale(3);
    let away = |sim: &Sim| {
        sim.delete("VirtualMachine", "tenant-a", "db-1");
        // `virtctl stop`: its VM is halted, and its VMI goes.
        sim.update("VirtualMachine", "tenant-a", "db-2", |vm| vm.put("/spec/runStrategy", "Halted"));
        sim.delete("VirtualMachineInstance", "tenant-a", "db-2");
    };
    let run = restart_stale(&sim).when(|e| matches!(e, EventKind::Consented { .. }), away).run().await;
    println!("{}", run.transcript());
    run.exits(0).vm_is("db-0", "restarts", "");
    assert!(run.restarts("db-1").is_empty() && run.restarts("db-2").is_empty(), "{run}");
    for vm in ["db-1", "db-2"] {
        run.vm_is(vm, "gone", "");
        assert!(sim.get("VirtualMachineInstance", "tenant-a", vm).is_none(), "{vm}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_signal_leaves_what_was_begun() {
    let sim = stale(7);
    let run = restart_stale(&sim).signal_when(StopReason::Interrupt, restarting).run().await;
    println!("{}", run.transcript());
    run.exits(130).says("no further VM is restarted").says("interrupted after");
    let sent = run.asked("PUT", "/restart").len();
    assert!((1..=5).contains(&sent), "{run}");
    let unsent = run.rows("vms").iter().filter(|r| r.text("/because").contains("nothing was sent")).count();
    assert_eq!(unsent, 7 - sent, "{run}");
    // KubeVirt goes on with what was asked for, and a second run does the rest.
    tokio::time::sleep(secs(120)).await;
    let again = restart_stale(&sim).run().await;
    again.exits(0);
    let rest = again.asked("PUT", "/restart").len();
    assert!(rest >= 7 - sent && rest < 7, "{rest} after {sent}, of which some were under way\n{again}");
}

#[tokio::test(start_paused = true)]
async fn the_timeout_is_one_for_all() {
    let slow = |world: World| {
        (0..12).fold(world, |w, i| {
            w.vm("tenant-a", Vm::new(&format!("slow-{i}")).non_migratable(DISK).grace(50).ignores_shutdown())
        })
    };
    let sim = stale_with(0, slow);
    let run = restart_stale(&sim).timeout(100).run().await;
    println!("{}", run.transcript());
    run.exits(124).says("5 of 12 VMs restarted; timeout after").says("longer than the time left; nothing was sent");
    assert_eq!(run.asked("PUT", "/restart").len(), 5, "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_without_an_answer_is_told_as_that_when_the_time_is_up() {
    let sim = stale_with(0, |world| {
        (0..7).fold(world, |w, i| w.vm("tenant-a", Vm::new(&format!("db-{i}")).non_migratable(DISK).grace(10)))
    });
    sim.fault(Fault::on("PUT", "/restart", Then::Hang));
    let run = restart_stale(&sim).timeout(20).run().await;
    println!("{}", run.transcript());
    run.exits(124).says("their restart was sent and not answered yet: it may have been accepted");
    assert_eq!(run.stderr.matches("the timeout of 20s is over; no further VM is restarted").count(), 1, "{run}");
    assert!(run.elapsed >= secs(20) && run.elapsed <= secs(22), "{:?}", run.elapsed);
    run.vm_is("db-0", "pending", "Stopping");
    assert!(run.document.flag("/changed"), "nobody knows better");
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_may_take_longer_than_the_time_is_not_stopped() {
    let sim = stale_with(1, |world| world.vm("tenant-a", Vm::new("slow-1").non_migratable(DISK).grace(600)));
    let run = restart_stale(&sim).timeout(120).run().await;
    run.exits(124).says("tenant-a/slow-1 may take 10m to shut down");
    run.vm_is("slow-1", "pending", "GraceTooLong");
    run.vm_is("db-0", "restarts", "");
    assert!(run.restarts("slow-1").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_and_labels_choose_the_vms() {
    let lab = || {
        let label = |vm: &mut serde_json::Value| vm.set_label("app", "db");
        stale_with(2, |world| world.vm("tenant-b", Vm::new("other-0").non_migratable(DISK)))
            .world()
            .change("VirtualMachine", "tenant-a", "db-1", label)
            .change("VirtualMachine", "tenant-b", "other-0", label)
            .done()
    };
    let run = restart_stale(&lab()).namespace("tenant-b").run().await;
    assert_eq!(names(run.exits(0)), ["other-0"]);
    assert!(run.asked("GET", "/virtualmachineinstances").iter().all(|r| r.path.contains("/namespaces/tenant-b/")));
    assert_eq!(names(restart_stale(&lab()).selector("app=db").run().await.exits(0)), ["db-1", "other-0"]);
    let both = restart_stale(&lab()).namespace("tenant-a").selector("app=db").run().await;
    assert_eq!(names(both.exits(0)), ["db-1"]);
    let all = restart_stale(&lab()).namespace("tenant-b").with(|o| o.all_namespaces = true).run().await;
    assert_eq!(names(all.exits(0)), ["db-0", "db-1", "other-0"]);
    restart_stale(&lab()).namespace("empty").run().await.exits(0).changed_nothing().says("nothing to do");
}

#[tokio::test(start_paused = true)]
async fn without_kubevirt_there_is_nothing_to_do() {
    let sim = Sim::new(Options::plain()).world().nodes(2).done();
    restart_stale(&sim).run().await.exits(0).changed_nothing().says("KubeVirt is not installed");
    // Its object is gone: nobody knows what a restart would give.
    let sim = stale(1);
    sim.vanish("KubeVirt", "kubevirt", "kubevirt");
    let run = restart_stale(&sim).run().await;
    run.exits(3).changed_nothing().says("no single valid KubeVirt object could be read");
    run.vm_is("db-0", "blocks", "VmNotMigratable");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_ready_keeps_its_vms() {
    let sim = stale_with(1, |world| world.on("node-1").vm("tenant-a", Vm::new("far-1").non_migratable(DISK)));
    not_ready(&sim, "node-1");
    let run = restart_stale(&sim).run().await;
    run.exits(3).vm_is("far-1", "blocks", "NodeNotReady");
    run.vm_is("db-0", "restarts", "");
    assert!(run.restarts("far-1").is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_outdated_launcher_and_staged_changes_are_named() {
    let sim = stale(1);
    sim.update("VirtualMachineInstance", "tenant-a", "db-0", |v| v.set_label("kubevirt.io/outdatedLauncherImage", ""));
    let run = restart_stale(&sim).preview(DryRun::Client).run().await;
    run.prints("a restart gives it LiveMigrateIfPossible and renews its outdated launcher");
    crate::harness::drain(&sim, "node-0")
        .preview(DryRun::Client)
        .run()
        .await
        .prints("a restart gives it LiveMigrateIfPossible and renews its outdated launcher");
}

#[tokio::test(start_paused = true)]
async fn a_lost_contact_ends_with_the_last_that_was_seen() {
    let sim = stale_with(0, |world| {
        world.vm("tenant-a", Vm::new("slow-1").non_migratable(DISK).grace(25).ignores_shutdown())
    });
    let gone = |sim: &Sim| sim.fault(Fault::at(sim.elapsed() + secs(2), Then::Gone));
    let run = restart_stale(&sim).timeout(30).when(restarting, gone).run().await;
    run.exits(6).says("no contact with the API server").says("this is the last known state");
    assert!(run.elapsed < secs(32) + Duration::from_millis(500), "{:?}", run.elapsed);
}
