//! What becomes of a VM that was shut down.

use safe_drain::settings::DryRun;
use safe_drain_sim::{Json, Options, Profile, Sim, Vm, World};

use crate::harness::{Outcome, drain, secs};
use crate::vms::DISK;

/// Three nodes; what follows is on node-0.
fn cluster(profile: Profile, strategy: &str) -> World {
    let eviction_strategy = Some(strategy.to_owned());
    Sim::new(Options { kubevirt: Some(profile), eviction_strategy, ..Options::default() }).world().nodes(3).on("node-0")
}

/// The reason of a VM before, and after.
fn because<'a>(run: &'a Outcome, vm: &str) -> (&'a str, &'a str) {
    let before = run.preview.as_ref().expect("a preview").vm(vm);
    (before.text("/because"), run.vm(vm).text("/because"))
}

#[tokio::test(start_paused = true)]
async fn c05_a_vm_that_stays_off_is_announced_and_named_at_the_end() {
    let world = |profile, strategy: &str| {
        cluster(profile, "LiveMigrateIfPossible")
            .vm("tenant-a", Vm::new("app-1").run_strategy(strategy).non_migratable(DISK))
    };
    for profile in [Profile::V1_5, Profile::V1_7, Profile::V1_9] {
        // Two of them would stay off after a clean shutdown: they are restarted instead, with the same downtime.
        for strategy in ["RerunOnFailure", "Manual"] {
            let sim = world(profile, strategy).done();
            let run = drain(&sim, "node-0").run().await;
            run.exits(0);
            run.vm_is("app-1", "restarts", "");
            let (before, _) = because(&run, "app-1");
            assert!(
                before.ends_with(&format!(
                    "runStrategy {strategy} keeps it off after a shutdown, so it is restarted instead"
                )),
                "{before}"
            );
            assert_eq!((run.restarts("app-1").len(), run.launcher_evictions("app-1").len()), (1, 0), "{run}");
        }
        // Once takes no restart: nothing is done without consent, and afterwards it is named with what starts it again.
        let sim = world(profile, "Once").done();
        drain(&sim, "node-0").run().await.exits(4).changed_nothing().says("--allow-vm-down");
        let run = drain(&sim, "node-0").with(|o| o.allow_vm_down = true).run().await;
        run.exits(0)
            .prints("virtualmachine.kubevirt.io/app-1 stopped\n")
            .says("1 VM shut down and off: tenant-a/app-1");
        run.says("kubectl delete vmi app-1 -n tenant-a  it stays off until then");
        let row = run.vm_is("app-1", "stays-off", "StaysOff");
        assert_eq!((row.text("/runStrategy"), row.text("/remedy")), ("Once", "kubectl delete vmi app-1 -n tenant-a"));
        assert_eq!((run.restarts("app-1").len(), run.launcher_evictions("app-1").len()), (0, 1), "{run}");
        tokio::time::sleep(secs(600)).await;
        let vm = sim.get("VirtualMachine", "tenant-a", "app-1").expect("the VM");
        assert_eq!(vm.text("/status/printableStatus"), "Stopped");
    }
}

#[tokio::test(start_paused = true)]
async fn c30_a_device_of_this_node_alone_is_said_before_the_vm_goes() {
    for profile in [Profile::V1_6, Profile::V1_7, Profile::V1_9] {
        let world = |strategy| {
            ["node-1", "node-2"].into_iter().fold(cluster(profile, strategy), |w, node| {
                w.change("Node", "", node, |n| n.cut("/status/allocatable/nvidia.com~1A100"))
            })
        };
        let gpu = || Vm::new("gpu-1").gpu("nvidia.com/A100").non_migratable("HostDeviceNotLiveMigratable");
        let sim = world("LiveMigrateIfPossible").vm("tenant-a", gpu()).done();
        let preview = drain(&sim, "node-0").preview(DryRun::Client).run().await;
        preview.exits(4).prints(
            "it has a GPU; it stays down until node-0 is back (no other node can take it: 2 lack device nvidia.com/A100) → add --allow-vm-down",
        );
        drain(&sim, "node-0").run().await.exits(4).changed_nothing();
        let run = drain(&sim, "node-0").with(|o| o.allow_vm_down = true).run().await;
        run.exits(0).says("1 VM down until the node is back: tenant-a/gpu-1").says("then tenant-a/gpu-1 can run again");
        run.vm_is("gpu-1", "down-until-node", "BoundToNode");
        assert_eq!((run.restarts("gpu-1").len(), run.launcher_evictions("gpu-1").len()), (0, 1), "{run}");

        // The node comes back, and so does the VM.
        sim.update("Node", "", "node-0", |n| n.put("/spec/unschedulable", false));
        tokio::time::sleep(secs(60)).await;
        let vmi = sim.get("VirtualMachineInstance", "tenant-a", "gpu-1").expect("it runs");
        assert_eq!((vmi.text("/status/phase"), vmi.text("/status/nodeName")), ("Running", "node-0"));

        // A stale one: what a restart would come to is said before it is offered.
        let sim = world("LiveMigrate").vm("tenant-a", gpu()).eviction_strategy("LiveMigrateIfPossible").done();
        let run = drain(&sim, "node-0").answers("n").run().await;
        run.exits(4).changed_nothing();
        assert!(run.question.contains("then it stays down until node-0 is back"), "{}", run.question);
        let row = run.vm("gpu-1");
        assert_eq!(row.list("/needs"), ["--restart-stale", "--allow-vm-down"], "{row}");

        // The template holds it, and nothing else fits: the way out has its price beside it.
        let sim = world("LiveMigrate").vm("tenant-a", gpu().eviction_strategy("LiveMigrate")).done();
        let run = drain(&sim, "node-0").run().await;
        run.exits(3);
        let row = run.vm_is("gpu-1", "blocks", "VmNotMigratable");
        let remedy = row.text("/remedy");
        assert!(remedy.starts_with("`kubectl patch vm gpu-1 -n tenant-a"), "{row}");
        assert!(
            remedy.ends_with("then add --restart-stale --allow-vm-down: it stays down until node-0 is back (no other node can take it: 2 lack device nvidia.com/A100)"),
            "{remedy}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn c32_a_guest_without_an_agent_is_announced_to_be_switched_off() {
    const NOTE: &str = "tenant-a/db-0: no guest agent: it is likely powered off hard after 30s";
    // From 1.5 on KubeVirt asks the agent first.
    for (profile, asks_the_agent) in [
        (Profile::V1_2, false),
        (Profile::V1_4, false),
        (Profile::V1_5, true),
        (Profile::V1_7, true),
        (Profile::V1_9, true),
    ] {
        for (agent, grace, said) in [(false, 30, asks_the_agent), (true, 30, false), (false, 300, false)] {
            let vm = Vm::new("db-0").non_migratable(DISK).grace(grace);
            let vm = if agent { vm.annotation("lab/agent", "connected") } else { vm.ignores_shutdown() };
            let sim = cluster(profile, "LiveMigrateIfPossible").vm("tenant-a", vm).done();
            let run = drain(&sim, "node-0").run().await;
            run.exits(0);
            run.vm_is("db-0", "returns", "");
            let preview = run.preview.as_ref().expect("a preview");
            assert_eq!(preview.stdout.contains(NOTE), said, "{profile:?} {agent} {grace}\n{preview}");
            assert_eq!(run.stderr.contains(NOTE), said, "{profile:?} {agent} {grace}\n{run}");
            // Its grace is never cut short, whatever --grace-period says of other pods.
            let posts = run.launcher_evictions("db-0");
            assert_eq!(posts.len(), 1, "{run}");
            let body = posts[0].body.as_ref().expect("a body");
            assert!(!body.has("/deleteOptions/gracePeriodSeconds"), "{body}");
        }
    }
    let sim = cluster(Profile::V1_7, "None").vm("tenant-a", Vm::new("db-0").grace(90).ignores_shutdown()).done();
    let run = drain(&sim, "node-0").with(|o| o.grace_period = Some(1)).run().await;
    run.exits(0);
    assert!(run.elapsed >= secs(90), "{:?}", run.elapsed);
    assert!(!run.launcher_evictions("db-0")[0].body.as_ref().expect("a body").has("/deleteOptions/gracePeriodSeconds"));
}
