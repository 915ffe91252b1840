//! The control: `kubectl drain` on the same stages. `docs/testing.md` shows what it does beside what this tool does.

use std::process::Output;

use safe_drain_sim::{Json, PodSpec, Vm};
use serde_json::json;

use super::{Stage, on_real};
use crate::harness::secs;

/// `kubectl drain` with the words that a runbook has, ended after a while by its own timeout.
async fn kubectl_drain(s: &Stage, seconds: u32) -> (Output, String) {
    let mut kubectl = std::process::Command::new("kubectl");
    kubectl.args(["drain", &s.node(0), "--ignore-daemonsets", "--delete-emptydir-data"]);
    kubectl.arg(format!("--timeout={seconds}s"));
    let output = tokio::task::spawn_blocking(move || kubectl.output()).await;
    let output = output.expect("no panic").expect("kubectl is there");
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{told}exit {:?}", output.status.code());
    (output, told)
}

#[test]
#[ignore = "needs a real cluster: make e2e"]
fn kubectl_drains_plain_pods() {
    on_real("control-plain", async |s| {
        s.fast_nodes(1).await;
        s.deployment("web", 4, PodSpec::new()).await;
        s.deployment("cart", 2, PodSpec::new()).await;
        s.settle().await;
        s.fast_nodes(2).await;
        let (output, told) = kubectl_drain(s, 60).await;
        assert!(output.status.success(), "{told}");
        for line in ["evicting pod ", " evicted\n"] {
            assert_eq!(told.matches(line).count(), 6, "{told}");
        }
        assert!(told.contains(&format!("node/{} drained", s.node(0))), "{told}");
    });
}

#[test]
#[ignore = "needs a real cluster: make e2e"]
fn kubectl_repeats_what_a_budget_will_never_allow() {
    on_real("control-never", async |s| {
        s.fast_nodes(1).await;
        s.deployment("web", 2, PodSpec::new()).await;
        s.budget("web", "web", json!({"maxUnavailable": 0})).await;
        s.settle().await;
        s.fast_nodes(1).await;
        let (output, told) = kubectl_drain(s, 15).await;
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(
            told.matches("Cannot evict pod as it would violate the pod's disruption budget.").count() >= 4,
            "{told}"
        );
        assert!(told.contains("global timeout reached: 15s"), "{told}");
        let run = s.drain(0).timeout(15).run().await;
        run.exits(3).pod_is("web-", "blocks", "BudgetNever");
        assert!(run.elapsed < secs(5), "{:?}", run.elapsed);
    });
}

#[test]
#[ignore = "needs a real cluster: make e2e"]
fn kubectl_repeats_what_a_vm_will_never_allow() {
    on_real("control-vm", async |s| {
        s.nodes(1).await;
        s.vm(Vm::new("db-0").eviction_strategy("LiveMigrate").non_migratable("DisksNotLiveMigratable")).await;
        s.vm(Vm::new("web-1")).await;
        s.settle().await;
        s.nodes(1).await;
        let (output, told) = kubectl_drain(s, 20).await;
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(
            told.matches("VMI db-0 is configured with an eviction strategy but is not live-migratable").count() >= 3,
            "{told}"
        );
        assert!(told.contains("global timeout reached: 20s"), "{told}");
        let web = s.get("VirtualMachineInstance", "web-1").await.expect("it runs");
        assert_eq!(web.text("/status/nodeName"), s.node(1), "the other one migrated\n{told}");
        assert!(told.contains("Evacuation in progress"), "after refusals that were its migration\n{told}");
        let run = s.drain(0).timeout(20).run().await;
        run.exits(3).vm_is("db-0", "blocks", "VmNotMigratable");
        assert!(run.elapsed < secs(5) && run.launcher_evictions("db-0").is_empty(), "{run}");
    });
}
