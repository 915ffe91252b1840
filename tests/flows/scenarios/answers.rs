//! What servers really answer to an eviction, and the class that it gets: the table of the classifier against real words.

use safe_drain::answer::{EvictionAnswer, classify_eviction};
use safe_drain::facts::PodKey;
use safe_drain_sim::{Json, PodSpec, Vm};
use serde_json::json;

use super::Stage;

const DISK: &str = "DisksNotLiveMigratable";

impl Stage {
    /// The class of the answer to an eviction of the first pod whose name starts like that, with that UID or its own.
    async fn evicted(&self, pod: &str, uid: Option<&str>, dry_run: bool) -> EvictionAnswer {
        let pods = self.list("Pod").await;
        let found = pods.iter().find(|p| p.name().starts_with(pod) && !p.deleting());
        let key = PodKey {
            namespace: self.ns().to_owned(),
            name: found.map_or(pod, |p| p.name()).to_owned(),
            uid: uid.or(found.map(Json::uid)).unwrap_or("11111111-2222-3333-4444-555555555555").to_owned(),
        };
        classify_eviction(&self.venue.requests().await.evict(&key, None, dry_run).await)
    }

    async fn answers(&self, pod: &str, dry_run: bool, class: &str) {
        let answer = self.evicted(pod, None, dry_run).await;
        let name = format!("{answer:?}");
        assert_eq!(name.split([' ', '{']).next(), Some(class), "{pod}: {name}");
    }
}

pub async fn classes(s: &Stage) {
    s.nodes(1).await;
    s.vm(Vm::new("fixed").eviction_strategy("LiveMigrate").non_migratable(DISK)).await;
    s.vm(Vm::new("moves").eviction_strategy("LiveMigrate").annotation("lab/migrate", "60s")).await;
    s.vm(Vm::new("perhaps").eviction_strategy("LiveMigrateIfPossible").non_migratable(DISK)).await;
    s.vm(Vm::new("none").eviction_strategy("None")).await;
    s.vm(Vm::new("outside").eviction_strategy("External")).await;
    s.deployment("plain", 1, PodSpec::new()).await;
    for app in ["never", "double"] {
        s.deployment(app, 1, PodSpec::new()).await;
    }
    s.settle().await;
    s.budget("never", "never", json!({"maxUnavailable": 0})).await;
    for budget in ["double-1", "double-2"] {
        s.budget(budget, "double", json!({"maxUnavailable": 1})).await;
    }
    s.settle().await;
    s.nodes(1).await;
    for (pod, class) in [
        ("virt-launcher-fixed-", "VmNotMigratable"),
        ("virt-launcher-moves-", "VmEvacuating"),
        ("virt-launcher-perhaps-", "Accepted"),
        ("virt-launcher-none-", "Accepted"),
        ("virt-launcher-outside-", "VmEvacuating"),
        ("plain-", "Accepted"),
        ("never-", "BudgetExhausted"),
        ("double-", "MultipleBudgets"),
        ("nobody", "Gone"),
    ] {
        s.answers(pod, true, class).await;
    }
    let other = s.evicted("plain-", Some("11111111-2222-3333-4444-555555555555"), true).await;
    assert_eq!(other, EvictionAnswer::PodReplaced);
    // A dry run marks nothing: the first real one does, and the next finds it.
    let moves = "virt-launcher-moves-";
    assert_eq!(s.evicted(moves, None, false).await, EvictionAnswer::VmEvacuating { marked_now: true });
    assert_eq!(s.evicted(moves, None, false).await, EvictionAnswer::VmEvacuating { marked_now: false });
    s.run(s.drain(0).preview(safe_drain::settings::DryRun::Client)).await;
}
