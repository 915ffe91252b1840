//! KubeVirt's own pods: the guard is away, and when they leave themselves.

use safe_drain::event::{EventKind, StopReason};
use safe_drain::settings::DryRun;
use safe_drain_sim::{Json, PodSpec, Profile, Sim, VirtApi, Vm};

use super::NS;
use crate::harness::{drain, secs};
use crate::vms::{node_of, with};

/// A VM and two pods of the shop; virt-api is in that state.
fn guarded(profile: Profile, state: VirtApi) -> Sim {
    let sim = with(profile, "LiveMigrate").vm(NS, Vm::new("web-1")).deployment("shop", "cart", 2).done();
    sim.virt_api(state);
    sim
}

const GONE: &str = "KubeVirt's webhook (virt-api) cannot be reached: no endpoints available for service \"virt-api\"";

#[tokio::test(start_paused = true)]
async fn c10_a_guard_that_is_away_is_waited_for_and_never_passed_by() {
    for profile in Profile::ALL.into_iter().filter(|p| !p.fails_open()) {
        println!("{profile:?}");
        // For half a minute.
        let sim = guarded(profile, VirtApi::NoEndpoints);
        let run = drain(&sim, "node-0").at(secs(30), |sim| sim.virt_api(VirtApi::Up)).run().await;
        run.exits(0);
        run.vm_is("web-1", "migrates", "");
        assert!(run.elapsed < secs(60), "{:?}\n{run}", run.elapsed);
        assert_eq!(run.stderr.matches(GONE).count(), 1, "said once\n{run}");
        assert!(run.evictions("cart-").iter().all(|r| r.at < secs(1) && r.status == 201), "others go\n{run}");
        assert!(run.asked("DELETE", "").is_empty() && run.launcher_evictions("web-1").len() < 10, "{run}");

        // For good.
        let sim = guarded(profile, VirtApi::NoEndpoints);
        let run = drain(&sim, "node-0").changes().run().await;
        run.exits(3).says("kubectl get pods -A -l kubevirt.io=virt-api");
        let row = run.vm_is("web-1", "blocks", "WebhookUnreachable");
        assert_eq!(row.text("/because"), GONE);
        assert!(run.elapsed > secs(290) && run.elapsed < secs(330), "{:?}", run.elapsed);
        assert!(run.asked("DELETE", "").is_empty() && run.launcher_evictions("web-1").len() < 30, "{run}");
        assert_eq!((node_of(&sim, "web-1").as_str(), run.evictions("cart-").len()), ("node-0", 2));
        // No silence meanwhile: since when, and when it is asked again.
        let beats: Vec<&str> = run.stderr.lines().filter(|l| l.contains("1 VM refused for now, first ")).collect();
        assert!(beats.len() >= 4 && beats[..4].iter().all(|l| l.contains("next try in ")), "{beats:#?}\n{run}");

        // It accepts connections and does not answer.
        let sim = guarded(profile, VirtApi::Hang);
        let run = drain(&sim, "node-0").at(secs(45), |sim| sim.virt_api(VirtApi::Up)).run().await;
        run.exits(0).says("KubeVirt's webhook (virt-api) does not answer within 10s");
        run.vm_is("web-1", "migrates", "");
        assert!(run.elapsed < secs(90), "{:?}\n{run}", run.elapsed);
        let sim = guarded(profile, VirtApi::Hang);
        let run = drain(&sim, "node-0").signal(secs(5), StopReason::Interrupt).run().await;
        run.exits(130);
        let row = run.vm_is("web-1", "pending", "Interrupted");
        assert_eq!(row.text("/because"), "its eviction was sent and not answered yet");
    }
}

#[tokio::test(start_paused = true)]
async fn c11_where_evictions_pass_by_a_dead_guard_the_budget_alone_speaks() {
    for profile in Profile::ALL.into_iter().filter(|p| p.fails_open()) {
        for state in [VirtApi::NoEndpoints, VirtApi::Refused, VirtApi::Hang] {
            println!("{profile:?} {state:?}");
            let sim = guarded(profile, state);
            let run = drain(&sim, "node-0").changes().run().await;
            run.exits(3).says("is virt-api up?").says("kubectl get pods -A -l kubevirt.io=virt-api");
            let row = run.vm_is("web-1", "blocks", "WebhookUnreachable");
            assert!(row.text("/because").contains("KubeVirt's own budget kubevirt-disruption-budget-"), "{row}");
            assert!(!row.flag("/marked") && sim.list("VirtualMachineInstanceMigration").is_empty());
            assert!(run.launcher_evictions("web-1").len() <= 5 && run.elapsed < secs(35), "{:?}\n{run}", run.elapsed);
            assert_eq!((node_of(&sim, "web-1").as_str(), run.evictions("cart-").len()), ("node-0", 2));
        }
        // A guard that comes back at once is in time.
        let sim = guarded(profile, VirtApi::NoEndpoints);
        let run = drain(&sim, "node-0").at(secs(2), |sim| sim.virt_api(VirtApi::Up)).run().await;
        run.exits(0);
        run.vm_is("web-1", "migrates", "");
    }
}

#[tokio::test(start_paused = true)]
async fn c12_what_vms_need_leaves_after_them() {
    let critical = || PodSpec::new().priority_class("system-cluster-critical");
    for profile in Profile::ALL {
        let sim = with(profile, "LiveMigrate")
            .vm(NS, Vm::new("web-1"))
            .deployment("shop", "cart", 1)
            .deployment_with("kube-system", "dns", 1, critical())
            .deployment_with("shop", "importer", 1, PodSpec::new().label("cdi.kubevirt.io", "importer"))
            .kubevirt_pods()
            .done();
        println!("{profile:?}");
        let run = drain(&sim, "node-0").run().await;
        run.exits(0).says("node-0: 8 infrastructure pods are next");
        run.vm_is("web-1", "migrates", "");
        let migrated = run.event(|e| matches!(e, EventKind::VmEnded { .. })).expect("it left").elapsed_ms;
        let last = ["virt-api-", "virt-controller-", "virt-operator-", "dns-", "importer-"];
        for r in last.iter().flat_map(|pod| run.evictions(pod)) {
            assert!(r.at.as_millis() >= u128::from(migrated), "{}\n{run}", r.path);
            assert_eq!(r.status, 201, "{run}");
        }
        assert!(run.evictions("cart-")[0].at < secs(1), "{run}");
        // Both replicas are here; the second goes when the first is gone.
        let api = run.evictions("virt-api-");
        assert_eq!(api.len(), 2, "{run}");
        let first = api[0].path.split('/').rev().nth(1).expect("a name").to_owned();
        let gone = |e: &EventKind| matches!(e, EventKind::PodGone { pod, .. } if pod.name == first);
        assert!(api[1].at.as_millis() >= u128::from(run.event(gone).expect("it went").elapsed_ms), "{run}");
        assert!(run.evictions("virt-handler-").is_empty(), "{run}");
        assert!(run.launcher_evictions("web-1").iter().all(|r| r.status != 500), "{run}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_preview_says_what_the_server_could_not_confirm() {
    for profile in Profile::ALL.into_iter().filter(|p| !p.fails_open()) {
        let sim = guarded(profile, VirtApi::NoEndpoints);
        let run = drain(&sim, "node-0").preview(DryRun::Server).run().await;
        println!("{profile:?}");
        run.exits(0).changed_nothing();
        let row = run.vm_is("web-1", "migrates", "");
        assert_eq!(row.text("/because"), "2 nodes can take it");
        let warning =
            format!("the server could not confirm 1 forecast: {GONE}; a drain asks again for 5m, then they block");
        assert_eq!(
            run.document.pointer("/nodes/0/warnings/0").and_then(|w| w.as_str()),
            Some(&*format!("node-0: {warning}"))
        );
        let words = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&warning), "{run}");
        assert_eq!(run.launcher_evictions("web-1").len(), 1, "{run}");
    }
    // Where evictions pass by a dead webhook, the budget's words give it away, but for releases whose budget always answers.
    for profile in Profile::ALL.into_iter().filter(|p| p.fails_open()) {
        println!("{profile:?}");
        for (state, told) in [(VirtApi::NoEndpoints, profile.refuses_when_it_marks()), (VirtApi::Up, false)] {
            let run = drain(&guarded(profile, state), "node-0").preview(DryRun::Server).run().await;
            run.exits(0).changed_nothing();
            run.vm_is("web-1", "migrates", "");
            assert_eq!(run.stdout.contains("(is virt-api up?)"), told, "{state:?}\n{run}");
        }
    }
}
