//! The whole of it against the simulated cluster, in virtual time.

use std::time::Duration;

use futures::StreamExt;
use safe_drain_sim::scenario::{Settings, start as scenario};
use safe_drain_sim::{Fault, Options, PodSpec, Rule, Sim, Then};

use super::*;
use crate::facts::{FIELD_MANAGER, Index, Key, KubeVirtState, PodFacts, PodRole, Scope};

async fn taken(sim: &Sim) -> (Requests, Snapshot) {
    let client = kube::Client::new(sim.service(), "default");
    let requests = Connection::over(client, "sim", Some(Duration::from_secs(30))).requests();
    let snapshot = snapshot(&requests, &["node-0".to_owned()], WatchOptions::default()).await;
    (requests, snapshot)
}

/// Follows the watches for a time; returns the reports of trouble and recovery.
async fn follow(index: &mut Index, watches: &mut Watches, time: Duration) -> Vec<String> {
    let mut told = Vec::new();
    let _ = tokio::time::timeout(time, async {
        while let Some(item) = watches.next().await {
            match item {
                WatchItem::Change(change) => drop(index.apply(*change)),
                WatchItem::Synced(_) => {}
                WatchItem::Trouble { what, .. } => told.push(format!("trouble {what}")),
                WatchItem::Recovered { what } => told.push(format!("recovered {what}")),
                WatchItem::Unreadable { what, object, why } => panic!("{what} {object}: {why}"),
            }
        }
    })
    .await;
    told
}

fn same(one: &Index, other: &Index) -> bool {
    let pods = |i: &Index| i.pods_on("node-0").cloned().collect::<Vec<_>>();
    let vmis = |i: &Index| i.vmis().cloned().collect::<Vec<_>>();
    let migrations = |i: &Index| i.migrations().cloned().collect::<Vec<_>>();
    pods(one) == pods(other) && vmis(one) == vmis(other) && migrations(one) == migrations(other)
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_of_vms() {
    let sim = scenario("strategy-switch", Settings::default()).unwrap();
    let (_, snapshot) = taken(&sim).await;
    assert_eq!(snapshot.unread, []);
    assert_eq!(snapshot.unreadable, []);
    assert!(matches!(snapshot.index.kubevirt(), KubeVirtState::One(_)));
    assert!(snapshot.index.infrastructure_namespaces.contains("kubevirt"));
    let launchers = snapshot.index.pods_on("node-0").filter(|p| matches!(p.role, PodRole::Launcher { .. })).count();
    assert!(launchers > 0);
    assert!(sim.requests().iter().all(|r| !r.is_write()), "a preview writes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_of_a_scope_knows_its_vms_as_one_of_their_node_does() {
    let sim = scenario("strategy-switch", Settings::default()).unwrap();
    let (requests, of_node) = taken(&sim).await;
    let scope = Scope { namespace: Some("tenant-a".to_owned()), selector: None };
    let of_scope = snapshot_of_vms(&requests, &scope, true, WatchOptions::default()).await;
    assert_eq!((of_scope.unread, of_scope.unreadable), (vec![], vec![]));
    let (index, other) = (&of_scope.index, &of_node.index);
    let vmis: Vec<_> = scope.vmis(index).cloned().collect();
    assert_eq!(vmis, other.vmis().filter(|v| v.key.namespace == "tenant-a").cloned().collect::<Vec<_>>());
    let of_vms = |index: &Index| {
        let theirs = |p: &&PodFacts| p.key.namespace == "tenant-a" && p.is_of_vm();
        index.pods_on("node-0").filter(theirs).cloned().collect::<Vec<_>>()
    };
    assert_eq!(of_vms(index), of_vms(other));
    assert!(!of_vms(index).is_empty());
    assert!(index.pods().all(PodFacts::is_of_vm), "other pods are not asked for");
    let claims = |index: &Index| index.claims.clone().unwrap();
    for (key, claim) in claims(other).iter().filter(|(key, _)| key.namespace == "tenant-a") {
        assert_eq!(claims(index).get(key), Some(claim), "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_watches_of_a_scope_go_on_from_its_snapshot() {
    let sim = scenario("strategy-switch", Settings::default()).unwrap();
    let (requests, _) = taken(&sim).await;
    let Snapshot { mut index, mut watches, .. } =
        snapshot_of_vms(&requests, &Scope::default(), true, WatchOptions::default()).await;
    let vm = Key::new("tenant-a", "db-0");
    let before = index.vmi(&vm).unwrap().uid.clone();
    let old: Vec<_> = index.launchers_of(&vm).map(|p| p.key.clone()).collect();
    assert_eq!(requests.restart_vm(&vm, false).await.code, 202);
    assert_eq!(follow(&mut index, &mut watches, Duration::from_secs(300)).await, Vec::<String>::new());
    assert_ne!(index.vmi(&vm).unwrap().uid, before);
    let fresh = snapshot_of_vms(&requests, &Scope::default(), true, WatchOptions::default()).await.index;
    assert!(index.pods().eq(fresh.pods()) && index.vmis().eq(fresh.vmis()) && index.vms().eq(fresh.vms()));
    assert!(index.launchers_of(&vm).all(|p| !old.contains(&p.key)), "the old launcher is gone");

    // A list that is made anew leaves out what went unseen.
    sim.fault(Fault::at(sim.elapsed(), Then::ExpireWatches));
    assert_eq!(requests.restart_vm(&vm, false).await.code, 202);
    assert_eq!(follow(&mut index, &mut watches, Duration::from_secs(300)).await, Vec::<String>::new());
    let fresh = snapshot_of_vms(&requests, &Scope::default(), true, WatchOptions::default()).await.index;
    assert!(index.pods().eq(fresh.pods()));
}

#[tokio::test(start_paused = true)]
async fn watches_hold_through_cuts_forgotten_history_and_an_outage() {
    let sim = scenario("strategy-switch", Settings::default()).unwrap();
    let (requests, snapshot) = taken(&sim).await;
    let Snapshot { mut index, mut watches, .. } = snapshot;
    let from = sim.elapsed();
    let at = |seconds| from + Duration::from_secs(seconds);
    sim.fault(Fault::at(at(2), Then::CutWatches));
    sim.fault(Fault::at(at(4), Then::ExpireWatches));
    for pod in index.pods_on("node-0").filter(|p| p.role == PodRole::Plain) {
        requests.evict(&pod.key, None, false).await;
    }
    let quiet = follow(&mut index, &mut watches, Duration::from_secs(9)).await;
    assert_eq!(quiet, Vec::<String>::new(), "neither of the two is trouble");
    let (_, fresh) = taken(&sim).await;
    assert!(same(&index, &fresh.index));

    sim.fault(Fault::at(at(10), Then::Gone).between(at(10), at(16)));
    let told = follow(&mut index, &mut watches, Duration::from_secs(12)).await;
    for what in ["pods of node-0", "nodes", "disruption budgets", "virtual machine instances", "migrations"] {
        assert!(told.contains(&format!("trouble {what}")), "{told:?}");
        assert_eq!(told.iter().filter(|t| **t == format!("recovered {what}")).count(), 1, "{told:?}");
    }
    let (_, fresh) = taken(&sim).await;
    assert!(same(&index, &fresh.index));
}

#[tokio::test(start_paused = true)]
async fn a_restart_by_dry_run_changes_nothing_and_a_real_one_makes_a_new_vmi() {
    let sim = scenario("strategy-switch", Settings::default()).unwrap();
    let (requests, snapshot) = taken(&sim).await;
    let Snapshot { mut index, mut watches, .. } = snapshot;
    let vm = Key::new("tenant-a", "db-0");
    let before = index.vmi(&vm).unwrap().uid.clone();
    assert_eq!(requests.restart_vm(&vm, true).await.code, 202);
    follow(&mut index, &mut watches, Duration::from_secs(40)).await;
    assert_eq!(index.vmi(&vm).unwrap().uid, before);

    let node = index.node("node-0").unwrap().clone();
    let cordoned = requests.cordon("node-0", Some(&node.resource_version), false).await;
    let cordoned = match cordoned {
        Err(problem) if problem.kind == ProblemKind::Conflict => requests.cordon("node-0", None, false).await,
        other => other,
    };
    assert_eq!(cordoned.unwrap().cordoned_by.as_deref(), Some(FIELD_MANAGER));
    assert_eq!(requests.restart_vm(&vm, false).await.code, 202);
    follow(&mut index, &mut watches, Duration::from_secs(120)).await;
    let after = index.vmi(&vm).unwrap();
    assert_ne!(after.uid, before);
    assert!(after.node.as_deref().is_some_and(|node| node != "node-0"));
}

#[tokio::test(start_paused = true)]
async fn missing_rights_are_found_where_they_are_missing() {
    let sim = Sim::new(Options::plain())
        .world()
        .nodes(2)
        .on("node-0")
        .pod("shop", "a", PodSpec::new())
        .pod("bank", "b", PodSpec::new())
        .done();
    sim.deny(Rule::new("create", "", "pods/eviction").cluster_wide());
    sim.deny(Rule::new("create", "", "pods/eviction").in_namespace("bank"));
    sim.deny(Rule::new("list", "policy", "poddisruptionbudgets"));
    let (requests, snapshot) = taken(&sim).await;
    let problem = snapshot.problem(&Part::Objects(Watched::Budgets)).unwrap();
    assert_eq!(problem.kind, ProblemKind::Forbidden);
    assert!(!snapshot.index.budgets_known);
    let rights =
        [Right::new("create", "", "pods").on("eviction").within(["bank", "shop"]), Right::new("patch", "", "nodes")];
    let missing = missing_rights(&requests, &rights).await.unwrap();
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].namespaces, Some(["bank".to_owned()].into()));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up_after_the_limit() {
    let sim = scenario("strategy-switch", Settings::default()).unwrap();
    sim.fault(Fault::on("GET", "/api/v1/pods", Then::Hang));
    let begin = tokio::time::Instant::now();
    let (_, snapshot) = taken(&sim).await;
    assert!(begin.elapsed() <= Duration::from_secs(31), "{:?}", begin.elapsed());
    let problem = snapshot.problem(&Part::Objects(Watched::Pods("node-0".to_owned()))).unwrap();
    assert_eq!(problem.kind, ProblemKind::Timeout);
}
