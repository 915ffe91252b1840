//! Migrations that do not end, or not soon.

use safe_drain::event::{Activity, EventKind, StopReason};
use safe_drain::settings::DryRun;
use safe_drain_sim::{Json, Options, PodSpec, Profile, Sim, Vm, World};

use crate::harness::{Outcome, cancel, drain, secs};

const WEBHOOK: [Profile; 4] = [Profile::V1_5, Profile::V1_6, Profile::V1_7, Profile::V1_9];

/// Three nodes, `LiveMigrate`; what follows is on node-0.
fn cluster(profile: Profile) -> World {
    let eviction_strategy = Some("LiveMigrate".to_owned());
    Sim::new(Options { kubevirt: Some(profile), eviction_strategy, ..Options::default() }).world().nodes(3).on("node-0")
}

/// The other nodes have no room for one more pod, which only the scheduler knows.
fn full(world: World) -> World {
    ["node-1", "node-2"]
        .into_iter()
        .fold(world, |w, node| w.change("Node", "", node, |n| n.put("/status/allocatable/pods", "0")))
}

/// The VM of that name stays as it is: marked, asked for once, its guest running on node-0.
fn runs_on(sim: &Sim, run: &Outcome, vm: &str) {
    let vmi = sim.get("VirtualMachineInstance", "tenant-a", vm).expect("it runs");
    assert_eq!((vmi.text("/status/phase"), vmi.text("/status/nodeName")), ("Running", "node-0"), "{run}");
    assert_eq!(vmi.text("/status/evacuationNodeName"), "node-0", "{run}");
    assert!(run.vm(vm).flag("/marked"), "{run}");
    assert_eq!(run.launcher_evictions(vm).len(), 1, "one POST per mark\n{run}");
    assert!(run.restarts(vm).is_empty(), "{run}");
    how_to_give_up(run);
}

/// Releases before 1.7 cannot take a mark off, and it would be wrong to advise it.
pub(super) fn how_to_give_up(run: &Outcome) {
    let release: u32 =
        run.document.text("/server/kubevirt").split('.').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    if release < 7 {
        run.says("kubectl uncordon node-0").says("nothing stops their evacuation before KubeVirt 1.7");
        assert!(!run.stderr.contains("safe-drain cancel"), "{run}");
    } else {
        run.says("kubectl safe-drain cancel node-0").says("cancels evacuations (an uncordon would not)");
    }
}

/// When that was said first.
fn first_said(run: &Outcome, text: &str) -> u64 {
    let fits = |e: &EventKind| matches!(e, EventKind::VmProgressed { progress, .. } if progress.detail.as_ref().is_some_and(|d| d.contains(text)));
    run.event(fits).unwrap_or_else(|| run.fail(text)).elapsed_ms
}

#[tokio::test(start_paused = true)]
async fn c19_a_target_that_finds_no_node_is_said_in_the_schedulers_words() {
    const WORDS: &str =
        "no node accepts its target pod: 0/3 nodes are available: 1 node(s) were unschedulable, 2 Too many pods";
    for profile in [Profile::V1_4, Profile::V1_5, Profile::V1_7, Profile::V1_9] {
        // The deadline comes in the second attempt: the cause is no mere timeout.
        let sim = full(cluster(profile).vm("tenant-a", Vm::new("web-1"))).done();
        let run = drain(&sim, "node-0").timeout(400).run().await;
        run.exits(124);
        let row = run.vm_is("web-1", "pending", "NoMigrationTarget");
        assert_eq!(
            row.text("/because"),
            format!("{WORDS} (attempt 2, for 1m19s); it still runs on node-0"),
            "{profile:?}\n{run}"
        );
        assert_eq!((row.text("/remedy"), row.int("/attempts")), ("make room for it on another node", Some(2)), "{run}");
        assert!(first_said(&run, WORDS) <= 6_000, "within seconds\n{run}");
        run.says(&format!("VM tenant-a/web-1: preparing its target ({WORDS})"));
        run.says("Still on the node (waiting or a second run may clear it):");
        runs_on(&sim, &run, "web-1");
        // Its namespace is looked at every half minute at most, and only while the target does not come.
        let looks = run.asked("GET", "status.phase").len();
        assert!((10..=16).contains(&looks), "{looks}\n{run}");

        // Room in time, and it goes on.
        let sim = full(cluster(profile).vm("tenant-a", Vm::new("web-1"))).done();
        let room = |sim: &Sim| {
            sim.update("Node", "", "node-1", |n| n.put("/status/allocatable/pods", "100"));
        };
        let run = drain(&sim, "node-0").at(secs(60), room).run().await;
        run.exits(0);
        assert!(run.vm_is("web-1", "migrates", "")["remedy"].is_null(), "{run}");

        // After three attempts it is no matter of time.
        let sim = full(cluster(profile).vm("tenant-a", Vm::new("web-1"))).done();
        let run = drain(&sim, "node-0").changes().run().await;
        run.exits(3);
        let row = run.vm_is("web-1", "blocks", "MigrationFailed");
        assert_eq!(row.text("/because"), format!("3 migrations failed in a row, last: {WORDS}"));
        assert!(row.text("/remedy").starts_with("make room for it on another node"), "{row}");
        runs_on(&sim, &run, "web-1");
    }

    // What a plan can see is seen before: no mark is set that nothing would come of.
    let taint = r#"[{"key": "drbd.linbit.com/lost-quorum", "effect": "NoSchedule"}]"#;
    let taint: serde_json::Value = serde_json::from_str(taint).expect("JSON");
    let world = ["node-1", "node-2"].into_iter().fold(cluster(Profile::V1_7), |w, node| {
        let taint = taint.clone();
        w.change("Node", "", node, move |n| n.put("/spec/taints", taint))
    });
    let sim = world.vm("tenant-a", Vm::new("web-1")).done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(3);
    let row = run.vm_is("web-1", "blocks", "NoMigrationTarget");
    assert_eq!(row.text("/because"), "no other node can take it: 2 are tainted drbd.linbit.com/lost-quorum");
    assert!(run.launcher_evictions("web-1").is_empty(), "{run}");
}

#[tokio::test(start_paused = true)]
async fn c20_a_cpu_that_no_other_host_has_is_no_matter_of_waiting() {
    // The label of another host says it before: nothing is asked for.
    for profile in WEBHOOK {
        let other = |w: World, node: &str| {
            w.change("Node", "", node, |n| {
                n.cut("/metadata/labels/cpu-model-migration.node.kubevirt.io~1Skylake");
            })
        };
        let world = ["node-1", "node-2"].into_iter().fold(cluster(profile), other);
        let vm = Vm::new("web-1").with(|t| t.put("/spec/domain/cpu", serde_json::json!({"model": "host-model"})));
        let sim = world.vm("tenant-a", vm).done();
        let run = drain(&sim, "node-0").run().await;
        run.exits(3);
        let row = run.vm_is("web-1", "blocks", "NoMigrationTarget");
        assert_eq!(row.text("/because"), "no other node can take it: 2 lack CPU model Skylake");
        assert!(run.launcher_evictions("web-1").is_empty(), "{run}");

        // libvirt finds it out: after the third time it is said that waiting does not heal it.
        let why = "operation failed: guest CPU doesn't match specification: missing features: pcid,avx512f";
        let sim = cluster(profile).vm("tenant-a", Vm::new("web-1").migration_fails(why)).done();
        let run = drain(&sim, "node-0").changes().run().await;
        run.exits(3).says(&format!("last attempt failed: {why}"));
        let row = run.vm_is("web-1", "blocks", "MigrationFailed");
        assert_eq!(row.text("/because"), format!("3 migrations failed in a row, last: {why}"), "{profile:?}");
        assert_eq!(
            row.text("/remedy"),
            "waiting does not heal it: add a host with that CPU, or `virtctl restart web-1 -n tenant-a`: it starts with the CPU of its new host"
        );
        assert_eq!((row.int("/attempts"), row["waitingHelps"].as_bool()), (Some(3), Some(false)));
        runs_on(&sim, &run, "web-1");
        assert!(run.elapsed < secs(90), "20 s and 40 s of backoff: {:?}", run.elapsed);
    }
}

#[tokio::test(start_paused = true)]
async fn c22_targets_that_die_one_after_the_other_end_after_three() {
    for profile in WEBHOOK {
        let sim = cluster(profile)
            .vm("tenant-a", Vm::new("web-1").migration("dies"))
            .vm("tenant-a", Vm::new("web-2"))
            .deployment("shop", "cart", 2)
            .done();
        let run = drain(&sim, "node-0").changes().run().await;
        run.exits(3).prints("virtualmachine.kubevirt.io/web-2 migrated\n");
        let row = run.vm_is("web-1", "blocks", "MigrationFailed");
        assert_eq!(
            row.text("/because"),
            "3 migrations failed in a row, last: its target pod ended before it was ready",
            "{profile:?}\n{run}"
        );
        assert!(row.text("/remedy").contains("kubectl get pods -n tenant-a -l vm.kubevirt.io/name=web-1"), "{row}");
        assert_eq!(row.int("/attempts"), Some(3), "{run}");
        runs_on(&sim, &run, "web-1");
        assert!(run.elapsed < secs(75), "it does not go on till the timeout: {:?}", run.elapsed);
        let lists = run.requests.iter().filter(|r| r.method == "GET" && r.query.contains("limit="));
        assert!(lists.clone().count() < 20, "{}", lists.count());

        // The way out that was named ends it.
        let undo = cancel(&sim, ["node-0"]).run().await;
        if profile >= Profile::V1_7 {
            undo.exits(0);
            tokio::time::sleep(secs(900)).await;
            let open = sim.list("VirtualMachineInstanceMigration");
            assert!(open.iter().all(|m| matches!(m.text("/status/phase"), "Failed" | "Succeeded")), "{undo}");
        } else {
            undo.exits(3).says("cannot take a mark off");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c23_a_long_queue_is_no_row_of_blockers() {
    for profile in [Profile::V1_7, Profile::V1_9] {
        let world = |takes: &str| {
            let vm = |i: usize| Vm::new(&format!("web-{i:02}")).annotation("lab/migrate", takes);
            (0..30).fold(cluster(profile), |w, i| w.vm("tenant-a", vm(i)))
        };
        let sim = world("60s").done();
        let preview = drain(&sim, "node-0").timeout(120).preview(DryRun::Client).run().await;
        // The least is 15 rounds of 15 s; how long a guest's memory takes, nobody knows before.
        preview.exits(0).prints(
            "Warning: 30 VMs migrate, 2 at a time, which takes 3m45s or more, and --timeout is 2m: give it --timeout=9m or more",
        );
        let run = drain(&sim, "node-0").timeout(120).run().await;
        run.exits(124).says("2 VMs migrating, 28 queued").says("with a --timeout above 2m");
        let count = |outcome: &str, cause: &str| {
            let rows = run.rows("vms");
            rows.iter().filter(|r| (r.text("/outcome"), r.text("/cause")) == (outcome, cause)).count()
        };
        assert_eq!(count("blocks", ""), 0);
        assert_eq!(
            (count("migrates", ""), count("pending", "VmEvacuating"), count("pending", "MigrationQueued")),
            (2, 2, 26),
            "{profile:?}\n{run}"
        );
        run.says("Still stopping or migrating (goes on by itself):").says("VMs tenant-a/");
        assert!((0..30).all(|i| run.launcher_evictions(&format!("web-{i:02}")).len() == 1), "{run}");
        if profile >= Profile::V1_9 {
            // Each has its migration at once, and so its place.
            let last =
                |e: &EventKind| matches!(e, EventKind::VmProgressed { progress, .. } if progress.queue == Some(27));
            assert!(run.event(last).is_some(), "{run}");
        }

        // With the time that they need all of them arrive, two at a time.
        let sim = world("20s").done();
        let run = drain(&sim, "node-0").run().await;
        run.exits(0);
        assert_eq!(run.stdout.matches(" migrated\n").count(), 30);
        assert!(run.elapsed >= secs(15 * 20), "{:?}", run.elapsed);
        assert!((0..30).all(|i| run.launcher_evictions(&format!("web-{i:02}")).len() == 1), "{run}");
    }
}

#[tokio::test(start_paused = true)]
async fn c24_a_migration_that_does_not_converge_says_how_long_it_runs() {
    const WHY: &str = "Live migration stuck for 150 seconds and has been aborted";
    for profile in WEBHOOK {
        let vm = || Vm::new("busy-1").migration_fails(WHY).annotation("lab/migrate", "5m");
        let sim = cluster(profile).vm("tenant-a", vm()).done();
        let run = drain(&sim, "node-0").timeout(600).run().await;
        run.exits(124);
        let row = run.vm_is("busy-1", "pending", "VmEvacuating");
        assert_eq!(
            row.text("/because"),
            format!(
                "it is migrating to node-1 for 4m39s, attempt 2 (last attempt failed: {WHY}); it still runs on node-0"
            ),
            "{profile:?}"
        );
        assert_eq!(row.int("/attempts"), Some(2));
        runs_on(&sim, &run, "busy-1");

        let sim = cluster(profile).vm("tenant-a", vm()).done();
        let run = drain(&sim, "node-0").changes().run().await;
        run.exits(3);
        let row = run.vm_is("busy-1", "blocks", "MigrationFailed");
        assert_eq!(row.text("/because"), format!("3 migrations failed in a row, last: {WHY}"));
        assert!(row.text("/remedy").contains("completionTimeoutPerGiB"), "{row}");
        runs_on(&sim, &run, "busy-1");
        assert!(run.elapsed < secs(17 * 60), "{:?}", run.elapsed);
    }
}

#[tokio::test(start_paused = true)]
async fn c25_what_the_target_needs_stays_until_the_vm_has_left() {
    let storage = || PodSpec::new().label("app.kubernetes.io/component", "linstor-satellite");
    let cdi = || PodSpec::new().label("cdi.kubevirt.io", "cdi-deployment");
    let world = |vm: Vm| {
        cluster(Profile::V1_7)
            .vm("tenant-a", vm)
            .deployment_with("storage", "satellite", 1, storage())
            .deployment_with("cdi", "cdi-deployment", 1, cdi())
            .deployment("shop", "cart", 2)
    };
    let sim = world(Vm::new("web-1").annotation("lab/migrate", "40s")).done();
    let run = drain(&sim, "node-0").run().await;
    run.exits(0).says("node-0: 2 infrastructure pods are next");
    run.vm_is("web-1", "migrates", "");
    let left = run.event(|e| matches!(e, EventKind::VmEnded { .. })).expect("it left").elapsed_ms;
    for (pod, count) in [("satellite-", 1), ("cdi-deployment-", 1), ("cart-", 2)] {
        let evicted = run.evictions(pod);
        assert_eq!(evicted.len(), count, "{run}");
        let infrastructure = pod != "cart-";
        assert!(evicted.iter().all(|r| (r.at.as_millis() >= u128::from(left)) == infrastructure), "{pod}\n{run}");
    }

    // A target that is on its node and does not start is said to be there, and the storage stays as long as it waits.
    let sim = world(Vm::new("web-1")).done();
    sim.options(|o| o.start = secs(120));
    let run = drain(&sim, "node-0").run().await;
    run.exits(0).says("its target pod on node-1 has not started yet: `kubectl describe pod -n tenant-a");
    let starting = |e: &EventKind| matches!(e, EventKind::VmProgressed { progress, .. } if progress.activity == Activity::PreparingTarget);
    assert!(run.event(starting).is_some());
    assert!(run.evictions("satellite-")[0].at >= secs(120), "{run}");
}

#[tokio::test(start_paused = true)]
async fn c26_who_gives_a_drain_up_is_told_what_goes_on_and_how_to_end_it() {
    for profile in [Profile::V1_5, Profile::V1_6, Profile::V1_7, Profile::V1_8, Profile::V1_9] {
        let world =
            || cluster(profile).vm("tenant-a", Vm::new("hang-1").migration("hang")).vm("tenant-a", Vm::new("web-1"));
        for stopped in [true, false] {
            let sim = world().done();
            let flow = drain(&sim, "node-0").timeout(60);
            let flow = if stopped { flow.signal(secs(20), StopReason::Interrupt) } else { flow };
            let run = flow.run().await;
            run.exits(if stopped { 130 } else { 124 });
            run.vm_is("hang-1", "pending", "VmEvacuating");
            run.vm_is("web-1", "migrates", "");
            assert!(!run.vm("web-1").flag("/marked"), "{run}");
            run.says("VM tenant-a/hang-1: it is migrating to node-").says("goes on by itself");
            runs_on(&sim, &run, "hang-1");

            // An uncordon ends nothing; a second run takes up what is there.
            sim.update("Node", "", "node-0", |n| n.put("/spec/unschedulable", false));
            tokio::time::sleep(secs(60)).await;
            assert!(
                sim.get("VirtualMachineInstance", "tenant-a", "hang-1")
                    .is_some_and(|v| v.has("/status/evacuationNodeName"))
            );
            let again = drain(&sim, "node-0").timeout(30).run().await;
            again.exits(124);
            assert!(again.launcher_evictions("hang-1").is_empty(), "its mark counts\n{again}");

            let undo = cancel(&sim, ["node-0"]).run().await;
            let marked = sim
                .get("VirtualMachineInstance", "tenant-a", "hang-1")
                .expect("it runs")
                .has("/status/evacuationNodeName");
            if profile >= Profile::V1_7 {
                undo.exits(0);
                assert!(!marked, "{undo}");
                let asked = undo.asked("PUT", "/virtualmachineinstances/hang-1/evacuate/cancel");
                assert_eq!(asked.len(), 1, "{undo}");
                assert_eq!(asked[0].body.as_ref().map(|b| b.text("/evacuationNodeName")), Some("node-0"));
            } else {
                undo.exits(3).says("cannot take a mark off");
                assert!(marked && undo.asked("PUT", "").is_empty(), "{undo}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_does_not_admit_the_target_is_said_and_its_end_is_noticed() {
    const WORDS: &str = "a quota of namespace tenant-a does not admit its target pod";
    for profile in WEBHOOK {
        let sim = cluster(profile).vm("tenant-a", Vm::new("web-1")).quota("tenant-a", "small", 1).done();
        let run = drain(&sim, "node-0").timeout(90).run().await;
        run.exits(124).says(&format!("VM tenant-a/web-1: preparing its target ({WORDS})"));
        let row = run.vm_is("web-1", "pending", "NoMigrationTarget");
        assert_eq!(row.text("/because"), format!("{WORDS} (attempt 1, for 1m30s); it still runs on node-0"), "{run}");
        assert_eq!(
            row.text("/remedy"),
            "`kubectl describe resourcequota -n tenant-a`: raise it, or stop something there"
        );
        runs_on(&sim, &run, "web-1");
        let refused = sim.list("VirtualMachineInstanceMigration");
        assert_eq!((refused.len(), refused[0].text("/status/phase")), (1, "Pending"), "{run}");

        let sim = cluster(profile).vm("tenant-a", Vm::new("web-1")).quota("tenant-a", "small", 1).done();
        let raise = |sim: &Sim| {
            sim.update("ResourceQuota", "tenant-a", "small", |q| q.put("/spec/hard/pods", "5"));
        };
        let run = drain(&sim, "node-0").at(secs(30), raise).run().await;
        run.exits(0);
        assert!(run.vm_is("web-1", "migrates", "")["remedy"].is_null(), "{run}");
        assert!(run.elapsed < secs(45), "{:?}", run.elapsed);
    }
}
