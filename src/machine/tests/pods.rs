//! One pod, from its eviction until it is gone, and what takes its place.

use super::*;
use crate::event::PodExit;
use crate::facts::testing::{labels, owner, pod, vm, vmi, world};
use crate::facts::{Deletion, PodKey};
use crate::outcome::{Cause, PodOutcome};

fn web() -> Rig {
    Rig::one(world().pod(pod("web-0"))).cordoned()
}

#[test]
fn a_pod_is_evicted_stops_and_is_gone() {
    let mut rig = web();
    let effects = rig.effects();
    assert_eq!(effects, [EffectKind::Evict { pod: pod("web-0").key, grace: None }]);
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.stopping(&pod("web-0"));
    assert_eq!(rig.effects(), []);
    rig.gone(&pod("web-0"));
    assert_eq!(rig.effects(), last_look("node-0"));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.pod_row("web-0").outcome, PodOutcome::Evicts);
    let how: Vec<PodExit> = rig
        .events()
        .iter()
        .filter_map(|e| if let EventKind::PodGone { how, .. } = e { Some(*how) } else { None })
        .collect();
    assert_eq!(how, [PodExit::Evicted]);
}

#[test]
fn a_pod_that_was_gone_before_is_not_ours() {
    let mut rig = web();
    rig.evict("web-0", EvictionAnswer::Gone);
    rig.relist_without(&["web-0"]);
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.pod_row("web-0").outcome, PodOutcome::Gone);
}

#[test]
fn a_pod_that_leaves_while_its_eviction_is_unanswered_counts_as_ours() {
    let mut rig = web();
    rig.effects();
    rig.gone(&pod("web-0"));
    rig.advance(Duration::from_millis(999));
    assert_eq!(rig.effects(), [], "its answer may be on its way");
    rig.advance(Duration::from_millis(1));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.pod_row("web-0").outcome, PodOutcome::Evicts);
}

#[test]
fn the_answer_tells_who_removed_a_pod_that_left_meanwhile() {
    for (answer, outcome, how) in [
        (EvictionAnswer::Accepted, PodOutcome::Evicts, PodExit::Evicted),
        (EvictionAnswer::Gone, PodOutcome::Gone, PodExit::AlreadyGone),
        (EvictionAnswer::PodReplaced, PodOutcome::Gone, PodExit::AlreadyGone),
        (EvictionAnswer::Throttled { after: None }, PodOutcome::Gone, PodExit::AlreadyGone),
    ] {
        let mut rig = web();
        rig.effects();
        rig.gone(&pod("web-0"));
        rig.evict("web-0", answer);
        rig.relist();
        assert_eq!(rig.ended(), Some(ExitCode::Done));
        assert_eq!(rig.pod_row("web-0").outcome, outcome);
        let told = rig
            .events()
            .into_iter()
            .find_map(|e| if let EventKind::PodGone { how, .. } = e { Some(how) } else { None });
        assert_eq!(told, Some(how));
    }
}

#[test]
fn a_pod_that_left_before_its_answer_is_gone_when_the_run_is_cut() {
    let deadline = |rig: &mut Rig| rig.advance(Duration::from_millis(500));
    let signal = |rig: &mut Rig| rig.input(Input::Stop(crate::event::StopReason::Interrupt));
    for cut in [deadline as fn(&mut Rig), signal] {
        let mut rig = Rig::new(world().pod(pod("web-0")), &["node-0"], |s| s.machine.timeout = secs(10)).cordoned();
        rig.effects();
        rig.advance(Duration::from_millis(9500));
        rig.gone(&pod("web-0"));
        cut(&mut rig);
        let row = rig.pod_row("web-0");
        assert_eq!((row.outcome, row.cause), (PodOutcome::Evicts, None), "{row:?}");
        assert!(rig.events().iter().any(|e| matches!(e, EventKind::PodGone { how: PodExit::Evicted, .. })));
    }
}

#[test]
fn a_pod_that_was_refused_for_another_of_its_name_is_never_ours() {
    let mut rig = web();
    rig.evict("web-0", EvictionAnswer::PodReplaced);
    rig.gone(&pod("web-0"));
    rig.relist();
    assert_eq!(rig.pod_row("web-0").outcome, PodOutcome::Gone);
}

#[test]
fn a_successor_waits_for_what_the_answer_says_of_the_pod_before_it() {
    for (answer, outcome, evictions) in [
        (EvictionAnswer::Accepted, PodOutcome::Returned, 1),
        // Somebody else removed the first one: this one is no successor of an eviction, and leaves.
        (EvictionAnswer::Gone, PodOutcome::Gone, 2),
    ] {
        let of_set = |name: &str| {
            pod(name).with(|p| {
                p.owner = Some(owner("apps/v1", "StatefulSet", "web"));
                p.tolerates_cordon = true;
            })
        };
        let mut rig = Rig::one(world().pod(of_set("web-0"))).cordoned();
        rig.effects();
        rig.gone(&of_set("web-0"));
        rig.pod(of_set("web-0").with(|p| p.key.uid = "another".into()));
        assert_eq!(rig.effects(), [], "{answer:?}");
        rig.evict("web-0", answer);
        rig.effects();
        assert_eq!(rig.sent.iter().filter(|(_, k)| evicted(k).is_some()).count(), evictions);
        let row = &rig.machine.nodes[0].pods[0].item.row;
        assert_eq!(row.outcome, outcome);
    }
}

#[test]
fn another_pod_of_the_name_is_read_and_never_evicted() {
    let mut rig = web();
    rig.evict("web-0", EvictionAnswer::PodReplaced);
    assert_eq!(rig.effects(), [EffectKind::ReadPod { pod: pod("web-0").key }]);
    let namesake = pod("web-0").with(|p| p.key.uid = "another".into()).on("node-1");
    rig.answer_to(|k| matches!(k, EffectKind::ReadPod { .. }), Reply::Pod(Ok(namesake)));
    assert_eq!(rig.effects(), last_look("node-0"));
    rig.relist_without(&["web-0"]);
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.pod_row("web-0").outcome, PodOutcome::Gone);
}

#[test]
fn a_pod_whose_identity_was_in_doubt_for_nothing_is_asked_again() {
    let mut rig = web();
    rig.evict("web-0", EvictionAnswer::PodReplaced);
    rig.answer_to(|k| matches!(k, EffectKind::ReadPod { .. }), Reply::Pod(Ok(pod("web-0"))));
    assert_eq!(rig.effects(), []);
    rig.advance(secs(2));
    assert_eq!(rig.sent.iter().filter(|(_, k)| evicted(k).is_some()).count(), 2);
}

#[test]
fn a_deletion_has_the_grace_that_the_user_gave() {
    let mut rig = Rig::new(world().pod(pod("web-0")), &["node-0"], |s| {
        s.plan.disable_eviction = true;
        s.machine.grace_period = Some(5);
    })
    .cordoned();
    assert_eq!(rig.effects(), [EffectKind::Delete { pod: pod("web-0").key, grace: Some(5) }]);
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.gone(&pod("web-0"));
    let deleted = |e: &EventKind| matches!(e, EventKind::PodGone { how: PodExit::Deleted, .. });
    assert!(rig.events().iter().any(deleted));
}

#[test]
fn a_pod_that_is_terminating_is_awaited_without_a_request() {
    let mut rig = Rig::one(world().pod(pod("web-0").deleted(-20))).cordoned();
    assert_eq!(rig.effects(), []);
    rig.gone(&pod("web-0"));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
}

#[test]
fn a_pod_that_somebody_else_stops_before_its_turn_is_not_evicted() {
    let world = world().pod(pod("web-0")).pod(pod("web-1"));
    let mut rig = Rig::new(world, &["node-0"], |s| s.machine.max_in_flight = 1).cordoned();
    assert_eq!(rig.evictions(), ["web-0"]);
    rig.stopping(&pod("web-1"));
    rig.evict("web-0", EvictionAnswer::Accepted);
    assert_eq!(rig.evictions(), [""; 0]);
}

fn held(seconds_ago: i64) -> PodFacts {
    pod("web-0").deleted(seconds_ago).with(|p| {
        p.finalizers = vec!["example.com/hold".into()];
        p.containers_running = false;
    })
}

#[test]
fn a_finalizer_without_containers_is_not_waited_for() {
    let mut rig = web();
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.pod(held(1));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    let row = rig.pod_row("web-0");
    assert_eq!((row.outcome, row.cause), (PodOutcome::Skipped, Some(Cause::Finalizer)));
    assert!(row.because.contains("example.com/hold"), "{}", row.because);
}

#[test]
fn a_finalizer_is_not_waited_for_once_the_grace_period_is_over_also_without_an_event() {
    let mut rig = web();
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.pod(held(-20));
    rig.advance(secs(19));
    assert_eq!(rig.effects(), []);
    rig.advance(secs(2));
    rig.relist();
    assert_eq!(rig.pod_row("web-0").outcome, PodOutcome::Skipped);
}

#[test]
fn what_the_watch_showed_before_the_answer_counts() {
    let mut rig = web();
    rig.effects();
    rig.pod(held(1));
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.relist();
    assert_eq!(rig.pod_row("web-0").outcome, PodOutcome::Skipped);
}

#[test]
fn an_old_deletion_is_not_waited_for_when_told_so() {
    let mut rig = Rig::new(world().pod(pod("web-0")), &["node-0"], |s| {
        s.machine.skip_wait_for_delete = Some(secs(60));
        s.plan.skip_wait_for_delete = Some(secs(60));
    })
    .cordoned();
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.pod(pod("web-0").deleted(0));
    rig.advance(secs(60));
    assert_eq!(rig.ended(), None);
    rig.advance(secs(1));
    rig.relist();
    let row = rig.pod_row("web-0");
    assert_eq!((row.outcome, row.cause), (PodOutcome::Skipped, Some(Cause::Stopping)));
}

#[test]
fn a_zero_for_old_deletions_means_that_all_are_waited_for() {
    let mut rig =
        Rig::new(world().pod(pod("web-0")), &["node-0"], |s| s.machine.skip_wait_for_delete = Some(Duration::ZERO))
            .cordoned();
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.pod(pod("web-0").deleted(5));
    rig.advance(secs(60));
    assert_eq!(rig.effects(), []);
    assert_eq!(rig.ended(), None);
}

fn successor(name: &str) -> PodFacts {
    pod(name).with(|p| p.tolerates_cordon = true)
}

#[test]
fn a_successor_on_the_node_is_reported_and_not_evicted() {
    let mut rig = web();
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.gone(&pod("web-0"));
    rig.pod(successor("web-1"));
    assert_eq!(rig.evictions(), [""; 0]);
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    let row = rig.pod_row("web-0");
    assert_eq!((row.outcome, row.cause), (PodOutcome::Returned, Some(Cause::Returned)));
    assert!(row.because.contains("web-1"), "{}", row.because);
}

#[test]
fn a_successor_that_comes_before_its_predecessor_is_gone_is_not_evicted_either() {
    let mut rig = web();
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.stopping(&pod("web-0"));
    rig.pod(successor("web-1"));
    assert_eq!(rig.evictions(), [""; 0]);
    rig.gone(&pod("web-0"));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.pod_row("web-0").outcome, PodOutcome::Returned);
}

#[test]
fn each_successor_takes_the_place_of_one_and_rather_of_its_namesake() {
    let names = ["web-0", "web-1", "web-2"];
    let mut rig = Rig::one(names.iter().fold(world(), |world, name| world.pod(pod(name)))).cordoned();
    for name in names {
        rig.evict(name, EvictionAnswer::Accepted);
        rig.gone(&pod(name));
    }
    rig.pod(successor("web-1").with(|p| p.key.uid = "again".into()));
    rig.pod(successor("web-7"));
    rig.relist();
    let outcomes = names.map(|name| rig.pod_row(name).outcome);
    assert_eq!(outcomes, [PodOutcome::Returned, PodOutcome::Returned, PodOutcome::Evicts]);
    assert!(rig.pod_row("web-1").because.contains("web-1 took"), "{}", rig.pod_row("web-1").because);
}

#[test]
fn a_workload_that_always_comes_back_is_not_evicted_without_end() {
    let mut rig = web();
    let mut last = pod("web-0");
    let mut evictions = 0;
    for n in 1..10 {
        if !rig.evictions().is_empty() {
            evictions += 1;
            rig.evict(&last.key.name, EvictionAnswer::Accepted);
            rig.stopping(&last);
            let next = pod(&format!("web-{n}"));
            rig.pod(next.clone());
            rig.gone(&last);
            last = next;
        }
    }
    assert_eq!(evictions, 2);
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.pod_row("web-1").outcome, PodOutcome::Returned);
}

#[test]
fn a_late_newcomer_is_evicted() {
    let mut rig = web();
    rig.effects();
    rig.pod(pod("late-0").owned("apps/v1", "StatefulSet", "late"));
    assert_eq!(rig.evictions(), ["late-0"]);
}

#[test]
fn a_newcomer_that_only_the_last_list_shows_is_evicted() {
    let mut rig = web();
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.gone(&pod("web-0"));
    let late = pod("late-0").owned("apps/v1", "StatefulSet", "late");
    rig.answer_to(|k| matches!(k, EffectKind::RelistPods { .. }), Reply::Pods(Ok(vec![late.clone()])));
    assert_eq!(rig.evictions(), ["late-0"]);
    rig.evict("late-0", EvictionAnswer::Accepted);
    rig.gone(&late);
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
}

#[test]
fn a_daemon_set_newcomer_stays() {
    let mut rig = Rig::one(world().daemon_set("agent", true).pod(pod("web-0"))).cordoned();
    rig.effects();
    rig.pod(pod("agent-x").owned("apps/v1", "DaemonSet", "agent"));
    assert_eq!(rig.effects(), []);
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.gone(&pod("web-0"));
    rig.relist();
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    assert_eq!(rig.pod_row("agent-x").outcome, PodOutcome::Stays);
}

#[test]
fn a_newcomer_that_a_flag_would_be_needed_for_blocks() {
    let mut rig = web();
    rig.evict("web-0", EvictionAnswer::Accepted);
    rig.gone(&pod("web-0"));
    rig.pod(pod("bare-0").bare());
    assert_eq!(rig.evictions(), [""; 0]);
    rig.relist();
    assert_eq!(rig.pod_row("bare-0").outcome, PodOutcome::Blocks);
    assert_eq!(rig.ended(), Some(ExitCode::Blocked));
}

#[test]
fn no_more_than_the_limit_is_in_flight() {
    let mut cluster = world();
    for n in 0..100 {
        cluster = cluster.pod(pod(&format!("web-{n:03}")));
    }
    let mut rig = Rig::one(cluster).cordoned();
    assert_eq!(rig.evictions().len(), 32);
    rig.evict("web-000", EvictionAnswer::Accepted);
    assert_eq!(rig.evictions(), ["web-032"]);
    rig.evict("web-001", EvictionAnswer::Forbidden { text: "no".into() });
    assert_eq!(rig.evictions(), ["web-033"]);
}

fn infrastructure(name: &str) -> PodFacts {
    pod(name).with(|p| p.priority = 2_000_000_000).owned("apps/v1", "ReplicaSet", name)
}

#[test]
fn infrastructure_goes_at_once_where_no_vm_is() {
    let mut rig = Rig::one(world().pod(infrastructure("dns"))).cordoned();
    assert_eq!(rig.evictions(), ["dns"]);
}

#[test]
fn infrastructure_waits_for_open_vms_and_not_for_workloads_or_blocked_vms() {
    let stuck = vmi("stuck").live_migrate().not_migratable("DisksNotLiveMigratable");
    let cluster = world()
        .runs(vm("web"), vmi("web"))
        .runs(vm("stuck").template(crate::facts::Strategy::LiveMigrate), stuck)
        .pod(pod("app-0"))
        .pod(infrastructure("dns"));
    let mut rig = Rig::one(cluster).cordoned();
    assert_eq!(rig.evictions(), ["app-0"]);
    rig.vmi_read("web");
    rig.evict("launcher-web", marked());
    rig.vmi("web", |v| v.node = Some("node-1".into()));
    assert_eq!(rig.evictions(), [""; 0]);
    rig.gone(&crate::facts::testing::launcher("web"));
    assert_eq!(rig.evictions(), ["dns"]);
    let started = EventKind::InfrastructureStarted { node: "node-0".into(), pods: 1 };
    assert!(rig.events().contains(&started));
}

#[test]
fn virt_api_leaves_one_pod_at_a_time() {
    let api = |name: &str| infrastructure(name).with(|p| p.labels = labels(&[("kubevirt.io", "virt-api")]));
    let mut rig = Rig::one(world().pod(api("api-0")).pod(api("api-1")).pod(pod("web-0"))).cordoned();
    assert_eq!(rig.evictions(), ["web-0", "api-0"]);
    rig.evict("api-0", EvictionAnswer::Accepted);
    rig.stopping(&api("api-0"));
    assert_eq!(rig.evictions(), [""; 0]);
    rig.gone(&api("api-0"));
    assert_eq!(rig.evictions(), ["api-1"]);
}

#[test]
fn a_request_that_timed_out_and_worked_counts_as_ours() {
    let mut rig = web();
    rig.evict("web-0", EvictionAnswer::ServerTrouble { text: "timeout".into() });
    rig.gone(&pod("web-0"));
    rig.relist();
    assert_eq!(rig.pod_row("web-0").outcome, PodOutcome::Evicts);
}

impl Rig {
    /// The last list lacks these pods, whatever the watch has shown.
    fn relist_without(&mut self, names: &[&str]) {
        self.no_volumes();
        let node = "node-0";
        let pods: Vec<PodFacts> = self.machine.core.index.pods_on(node).cloned().collect();
        let pods = pods.into_iter().filter(|p| !names.contains(&p.key.name.as_str())).collect();
        self.answer_to(|k| matches!(k, EffectKind::RelistPods { .. }), Reply::Pods(Ok(pods)));
    }
}

#[test]
fn an_unknown_uid_is_never_evicted() {
    let mut rig = web();
    rig.effects();
    rig.gone(&pod("web-0"));
    let namesake = PodFacts { key: PodKey::new("tenant-a", "web-0", "other"), ..pod("web-0") };
    let deletion = Some(Deletion { at: now(), grace_seconds: 0 });
    rig.pod(PodFacts { deletion, owner: Some(owner("apps/v1", "StatefulSet", "other")), ..namesake });
    assert_eq!(rig.evictions(), [""; 0]);
}
