//! Pods: order, budgets, rows.

use super::{planned, planned_with, pod_of};
use crate::facts::testing::{NS, World, budget, claim_on, hotplug, labels, launcher, node, pod, vmi, world};
use crate::facts::{Key, PodKey};
use crate::outcome::{Cause, PodOutcome, Verdict};
use crate::plan::consent::{ConsentOptions, Decision, settle};
use crate::plan::{PlanOptions, PodAction, Wave, would_exit};

#[test]
fn pods_that_go_one_by_one_say_so() {
    let pace = |allowed| {
        let world = world().budget(budget("web").status(allowed, 3, 2, 3)).pod(pod("web-0")).pod(pod("web-1"));
        pod_of(&planned(&world), "web-0").row.because.clone()
    };
    assert_eq!(pace(1), format!("1 at a time (budget {NS}/web)"));
    assert_eq!(pace(2), "", "all may go");
}

#[test]
fn infrastructure_goes_last() {
    let in_namespace = |name: &str, ns: &str| pod(name).with(|p| p.key = PodKey::new(ns, name, format!("uid-{name}")));
    let world = world()
        .pod(pod("app"))
        .pod(pod("critical").with(|p| p.priority = 2_000_000_000))
        .pod(pod("high").with(|p| p.priority = 1_999_999_999))
        .pod(in_namespace("virt-api", "kubevirt").label("kubevirt.io", "virt-api"))
        .pod(in_namespace("cdi-apiserver", "cdi"))
        .pod(pod("importer").label("cdi.kubevirt.io", "importer"))
        .pod(in_namespace("ceph", "rook-ceph"))
        .pod(pod("longhorn").label("longhorn.io/component", "instance-manager"));
    let plan = planned(&world);
    for (name, wave) in [
        ("app", Wave::Workload),
        ("high", Wave::Workload),
        ("critical", Wave::Infrastructure),
        ("virt-api", Wave::Infrastructure),
        ("cdi-apiserver", Wave::Infrastructure),
        ("importer", Wave::Infrastructure),
        ("ceph", Wave::Infrastructure),
        ("longhorn", Wave::Infrastructure),
    ] {
        assert_eq!(pod_of(&plan, name).wave, wave, "{name}");
    }
    assert_eq!(pod_of(&plan, "virt-api").one_at_a_time, Some("virt-api"));
    assert_eq!(pod_of(&plan, "cdi-apiserver").one_at_a_time, None);
}

#[test]
fn budgets_decide() {
    let with = |b| {
        let plan = planned(&world().pod(pod("a")).budget(b));
        let item = pod_of(&plan, "a").clone();
        (item.action, item.row.outcome, item.row.cause, item.budgets)
    };
    let key = vec![Key::new("tenant-a", "b")];
    assert_eq!(with(budget("b")), (PodAction::Evict, PodOutcome::Evicts, None, key.clone()));
    assert_eq!(
        with(budget("b").status(0, 2, 2, 3)),
        (PodAction::Evict, PodOutcome::Waits, Some(Cause::BudgetExhausted), key.clone())
    );
    assert_eq!(
        with(budget("b").status(0, 1, 1, 1)),
        (PodAction::Leave, PodOutcome::Blocks, Some(Cause::BudgetNever), key.clone())
    );
    let unseen = budget("b").with(|b| b.observed = false);
    assert_eq!(with(unseen), (PodAction::Evict, PodOutcome::Waits, Some(Cause::BudgetUnsynced), key));
}

#[test]
fn two_budgets_are_named() {
    let plan = planned(&world().pod(pod("a")).budget(budget("one")).budget(budget("two")));
    let item = pod_of(&plan, "a");
    assert_eq!((item.action, item.row.cause), (PodAction::Leave, Some(Cause::MultipleBudgets)));
    assert_eq!(item.row.budgets, ["tenant-a/one", "tenant-a/two"]);
    assert!(item.row.because.contains("one and two"));
}

#[test]
fn disable_eviction_deletes_plain_pods_and_asks_no_budget() {
    let options = PlanOptions { disable_eviction: true, ..PlanOptions::default() };
    let world = world().pod(pod("a")).pod(launcher("old").finished()).budget(budget("b").status(0, 1, 1, 1));
    let plan = planned_with(&world, &options);
    assert_eq!(pod_of(&plan, "a").action, PodAction::Delete);
    assert_eq!(pod_of(&plan, "a").row.outcome, PodOutcome::Evicts);
    assert_eq!(pod_of(&plan, "virt-launcher-old-x").action, PodAction::Leave);
}

#[test]
fn a_missing_flag_refuses_the_whole_command() {
    let mut plan = planned(&world().pod(pod("bare").bare().empty_dir("cache")).pod(pod("a")));
    let item = pod_of(&plan, "bare");
    assert_eq!((item.action, item.row.outcome), (PodAction::Refuse, PodOutcome::Refused));
    assert_eq!(item.row.needs, ["--delete-emptydir-data", "--force"]);
    assert_eq!(item.row.remedy.as_deref(), Some("add --delete-emptydir-data --force"));
    let Decision::Refuse(refusals) = settle(&mut plan, &ConsentOptions::default()) else { panic!("not refused") };
    assert_eq!(refusals.len(), 1);
    assert_eq!(refusals[0].object.as_deref(), Some("tenant-a/bare"));
    let report = plan.nodes[0].report();
    assert_eq!((report.verdict, report.exit_code, report.counts.refused), (Verdict::Refused, 4, 1));
    assert_eq!(would_exit(&plan), 4);
}

#[test]
fn what_stays_is_neither_blocked_nor_refused() {
    let world = world().pod(pod("ds").owned("apps/v1", "DaemonSet", "agent")).daemon_set("agent", true);
    let plan = planned(&world);
    assert_eq!(pod_of(&plan, "ds").row.outcome, PodOutcome::Stays);
    let report = plan.nodes[0].report();
    assert_eq!((report.verdict, report.counts.staying), (Verdict::Clear, 1));
    assert!(plan.is_clear());
}

#[test]
fn orphan_launchers_and_their_hotplug_pods_block_as_pods() {
    let plan = planned(&world().pod(launcher("ghost")).pod(hotplug("ghost")));
    assert!(plan.nodes[0].vms.is_empty());
    let item = pod_of(&plan, "virt-launcher-ghost-x");
    assert_eq!((item.action, item.row.cause), (PodAction::Leave, Some(Cause::OrphanLauncher)));
    assert_eq!(item.row.waiting_helps, Some(false));
    assert!(item.row.remedy.is_some());
    assert_eq!(pod_of(&plan, "hp-volume-ghost").action, PodAction::Leave);
}

#[test]
fn a_launcher_that_is_left_out_has_a_row_among_the_pods() {
    let selector = crate::facts::LabelSelector { match_labels: labels(&[("app", "web")]), expressions: Vec::new() };
    let options = PlanOptions { pod_selector: Some(selector), ..PlanOptions::default() };
    let plan = planned_with(&world().vmi(vmi("a")).pod(launcher("a")).pod(hotplug("a")).pod(pod("w")), &options);
    assert!(plan.nodes[0].vms.is_empty());
    assert_eq!(plan.nodes[0].report().counts.not_selected, 2);
    assert_eq!(pod_of(&plan, "w").action, PodAction::Evict);
}

#[test]
fn pods_are_sorted_and_have_their_grace() {
    let options = PlanOptions { grace_period: Some(5), ..PlanOptions::default() };
    let plan = planned_with(&world().pod(pod("b")).pod(pod("a")), &options);
    let names: Vec<&str> = plan.nodes[0].pods.iter().map(|p| p.pod.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(pod_of(&plan, "a").grace.as_secs(), 5);
}

#[test]
fn a_daemon_set_that_could_not_be_read_is_a_warning_of_the_node() {
    let plan = planned(&world().pod(pod("ds").owned("apps/v1", "DaemonSet", "agent")));
    assert_eq!(pod_of(&plan, "ds").row.outcome, PodOutcome::Stays);
    assert!(plan.nodes[0].warnings[0].contains("DaemonSet agent could not be read"), "{:?}", plan.nodes[0].warnings);
}

#[test]
fn left_over_launchers_stay_where_they_are() {
    let plan = planned(&world().vmi(vmi("a")).pod(launcher("a").finished()));
    let item = pod_of(&plan, "virt-launcher-a-x");
    assert_eq!((item.action, item.wave, item.row.outcome), (PodAction::Leave, Wave::Workload, PodOutcome::Stays));
}

#[test]
fn what_no_other_node_can_take_is_said_and_goes_all_the_same() {
    let on = |zone: &str| {
        let zone = zone.to_owned();
        move |p: &mut crate::facts::PodFacts| {
            p.demands.node_selector = labels(&[("zone", &zone)]);
        }
    };
    let labelled = |name: &str, zone: &str| node(name).label("zone", zone);
    let base = || world().node(labelled("node-0", "a")).node(labelled("node-1", "b")).node(labelled("node-2", "b"));
    let look = |world: &World| {
        let item = pod_of(&planned(world), "web").clone();
        (item.action, item.row.outcome, item.row.cause, item.bound)
    };
    let (action, outcome, cause, bound) = look(&base().pod(pod("web").with(on("a"))));
    assert_eq!((action, outcome, cause), (PodAction::Evict, PodOutcome::Evicts, Some(Cause::BoundToNode)));
    let why = "no other node can take it: 2 lack label zone=a; what replaces it stays Pending";
    assert_eq!(bound.as_deref(), Some(why));
    let free = (PodAction::Evict, PodOutcome::Evicts, None, None);
    assert_eq!(look(&base().pod(pod("web").with(on("a"))).node(labelled("node-2", "a"))), free);
    // Closed nodes may open again; nothing replaces a pod of a DaemonSet that is gone.
    let closed = base().node(labelled("node-1", "a").cordoned()).node(labelled("node-2", "a").cordoned());
    assert_eq!(look(&closed.pod(pod("web").with(on("a")))), free);
    let claim = base().claim(claim_on("data", "node-0")).pod(pod("web").with(|p| p.claims = vec!["data".into()]));
    assert_eq!(
        look(&claim).3.unwrap(),
        "no other node can take it: 2 cannot reach claim data; what replaces it stays Pending"
    );
    // What a budget or a flag has to say stays first.
    let waits = base().pod(pod("web").with(on("a"))).budget(budget("b").status(0, 2, 2, 3));
    let (_, outcome, cause, bound) = look(&waits);
    assert_eq!((outcome, cause), (PodOutcome::Waits, Some(Cause::BudgetExhausted)));
    assert!(bound.is_some());
}
