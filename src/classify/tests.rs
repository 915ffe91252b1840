//! Each of kubectl's filters, and what KubeVirt adds.

use std::time::Duration;

use super::{Classified, Role, Severity, classify};
use crate::facts::testing::{World, hotplug, labels, launcher, now, pod, vmi, world};
use crate::facts::{Key, LabelSelector, PodFacts, PodRole, VmiPhase};
use crate::outcome::Cause;
use crate::plan::PlanOptions;

fn look(world: &World, pod: &PodFacts, options: &PlanOptions) -> Classified {
    classify(pod, &world.index, options, now())
}

fn codes(found: &Classified) -> Vec<Cause> {
    found.findings.iter().map(|f| f.code).collect()
}

fn plain(pod: &PodFacts, options: &PlanOptions) -> Classified {
    look(&world(), pod, options)
}

fn default() -> PlanOptions {
    PlanOptions::default()
}

#[test]
fn a_pod_with_a_controller_goes() {
    let found = plain(&pod("a"), &default());
    assert_eq!((found.role, found.findings.len()), (Role::Evictable, 0));
    let exotic = pod("a").owned("example.com/v1", "Thing", "x");
    assert_eq!(plain(&exotic, &default()).severity(), None, "any controller counts");
}

#[test]
fn deleting_pods_are_waited_for_until_the_skip_limit() {
    assert_eq!(plain(&pod("a").deleted(100), &default()).role, Role::Leaving);
    let skip = PlanOptions { skip_wait_for_delete: Some(Duration::from_secs(60)), ..default() };
    assert_eq!(plain(&pod("a").deleted(61), &skip).role, Role::Skipped);
    assert_eq!(plain(&pod("a").deleted(60), &skip).role, Role::Leaving, "older, not as old");
    assert_eq!(plain(&pod("a").deleted(-20), &skip).role, Role::Leaving, "its grace period still runs");
    let off = PlanOptions { skip_wait_for_delete: Some(Duration::ZERO), ..default() };
    assert_eq!(plain(&pod("a").deleted(1000), &off).role, Role::Leaving, "0 is off");
    let world = world().vmi(vmi("a"));
    assert!(matches!(look(&world, &launcher("a").deleted(1000), &skip).role, Role::Vm { .. }), "never for launchers");
    let leaving = pod("a").bare().empty_dir("data").deleted(5);
    assert_eq!(plain(&leaving, &default()).needs(), Vec::<&str>::new(), "it goes anyway");
}

#[test]
fn a_pod_held_by_a_finalizer_is_said() {
    let held = pod("a").deleted(5).with(|p| {
        p.finalizers = vec!["x/y".into()];
        p.containers_running = false;
    });
    assert_eq!(codes(&plain(&held, &default())), [Cause::Finalizer]);
}

#[test]
fn daemon_sets() {
    let daemon = || pod("ds").owned("apps/v1", "DaemonSet", "agent").empty_dir("tmp");
    let there = world().daemon_set("agent", true);
    let gone = world().daemon_set("agent", false);
    let strict = PlanOptions { ignore_daemonsets: false, ..default() };
    let force = PlanOptions { force: true, ..default() };

    let found = look(&there, &daemon(), &default());
    assert_eq!((found.role, found.findings[0].severity), (Role::Stays, Severity::Note));
    let found = look(&there, &daemon(), &strict);
    assert_eq!((found.needs(), found.role), (vec!["--ignore-daemonsets"], Role::Evictable));
    let found = look(&gone, &daemon(), &default());
    assert_eq!(found.needs(), ["--force", "--delete-emptydir-data"], "no finding is lost");
    let found = look(&gone, &daemon(), &PlanOptions { delete_emptydir_data: true, ..force.clone() });
    assert_eq!((&found.role, found.severity()), (&Role::Evictable, Some(Severity::Warning)));
    let found = look(&world(), &daemon(), &default());
    assert_eq!((found.role, found.findings[0].severity), (Role::Stays, Severity::Warning), "could not be read");
    assert_eq!(look(&world(), &daemon(), &strict).needs(), ["--ignore-daemonsets"]);

    assert_eq!(look(&there, &daemon().finished(), &strict).severity(), None, "finished ones may go");
    let old = pod("ds").owned("extensions/v1beta1", "DaemonSet", "agent");
    assert_eq!(look(&there, &old, &default()).role, Role::Evictable, "only apps/v1 counts");
    assert_eq!(look(&there, &daemon().deleted(5), &default()).role, Role::Stays);
}

#[test]
fn mirror_pods_stay() {
    let mirror = pod("kube-proxy").owned("v1", "Node", "node-0").with(|p| p.mirror = true).empty_dir("tmp");
    let found = plain(&mirror, &default());
    assert_eq!((found.role.clone(), codes(&found)), (Role::Stays, vec![Cause::MirrorPod]));
}

#[test]
fn local_storage() {
    let pod = pod("a").empty_dir("cache").empty_dir("tmp");
    let found = plain(&pod, &default());
    assert_eq!(found.needs(), ["--delete-emptydir-data"]);
    assert!(found.findings[0].text.contains("cache, tmp"), "{}", found.findings[0].text);
    let flag = PlanOptions { delete_emptydir_data: true, ..default() };
    assert_eq!(plain(&pod, &flag).severity(), Some(Severity::Note), "the loss is still said");
    assert_eq!(plain(&pod.finished(), &default()).severity(), None);
}

#[test]
fn unmanaged_pods() {
    let bare = pod("a").bare();
    assert_eq!(plain(&bare, &default()).needs(), ["--force"]);
    assert_eq!(plain(&bare, &PlanOptions { force: true, ..default() }).severity(), Some(Severity::Warning));
    assert_eq!(plain(&bare.clone().finished(), &default()).severity(), None);
    assert_eq!(
        plain(&bare.empty_dir("x"), &default()).needs(),
        ["--delete-emptydir-data", "--force"],
        "kubectl would only show the last"
    );
}

#[test]
fn our_own_pod_is_never_evicted() {
    let own = PlanOptions { own_pod_uid: Some("uid-job".into()), ..default() };
    let found = plain(&pod("job").bare(), &own);
    assert_eq!((found.role.clone(), codes(&found)), (Role::Stays, vec![Cause::OwnPod]));
    assert_eq!(plain(&pod("other"), &own).role, Role::Evictable);
}

#[test]
fn pods_that_tolerate_the_cordon_may_come_back() {
    let tolerant = pod("a").with(|p| p.tolerates_cordon = true);
    assert_eq!(codes(&plain(&tolerant, &default())), [Cause::Returned]);
    assert!(plain(&tolerant.finished(), &default()).findings.is_empty());
}

#[test]
fn a_pod_selector_leaves_out_of_everything() {
    let selector = LabelSelector { match_labels: labels(&[("app", "db")]), expressions: Vec::new() };
    let options = PlanOptions { pod_selector: Some(selector), ..default() };
    let world = world().vmi(vmi("a")).vmi(vmi("b")).pod(launcher("a")).pod(launcher("b").label("app", "db"));
    assert_eq!(look(&world, &pod("x").bare().empty_dir("data"), &options).role, Role::NotSelected);
    assert_eq!(look(&world, &pod("y").label("app", "db"), &options).role, Role::Evictable);
    assert_eq!(look(&world, &launcher("a"), &options).role, Role::NotSelected);
    assert_eq!(look(&world, &hotplug("a"), &options).role, Role::NotSelected, "follows its launcher");
    let db = launcher("b").label("app", "db");
    assert_eq!(look(&world, &db, &options).role, Role::Vm { vmi: Key::new("tenant-a", "b") });
    let follows = Role::Companion { launcher_uid: db.key.uid };
    assert_eq!(look(&world, &hotplug("b"), &options).role, follows, "though its own labels do not match");
}

#[test]
fn launchers_are_their_vms() {
    let world = world().vmi(vmi("a")).pod(launcher("a")).pod(hotplug("a"));
    let found = look(&world, &launcher("a"), &default());
    assert_eq!(found.role, Role::Vm { vmi: Key::new("tenant-a", "a") });
    assert!(found.findings.is_empty(), "its emptyDirs hold no user data");
    assert!(matches!(look(&world, &hotplug("a"), &default()).role, Role::Companion { .. }));
}

#[test]
fn left_over_launchers_stay_until_kubevirt_removes_them() {
    let world = world().vmi(vmi("a"));
    let found = look(&world, &launcher("a").finished(), &default());
    assert_eq!((found.role.clone(), codes(&found)), (Role::Stays, vec![Cause::LeftOver]));
    assert_eq!(look(&world, &launcher("a").finished().deleted(5), &default()).role, Role::Leaving);
}

#[test]
fn a_launcher_whose_guest_has_ended_may_go() {
    let ended = world().vmi(vmi("a").with(|v| v.phase = VmiPhase::Failed));
    assert_eq!(look(&ended, &launcher("a"), &default()).role, Role::Evictable);
}

#[test]
fn a_launcher_without_its_vmi_blocks() {
    let orphan = launcher("ghost");
    let found = look(&world(), &orphan, &default());
    assert_eq!((codes(&found), found.severity()), (vec![Cause::OrphanLauncher], Some(Severity::Blocks)));
    let namesake = world().vmi(vmi("ghost").with(|v| v.uid = "another".into()));
    assert_eq!(codes(&look(&namesake, &orphan, &default())), [Cause::OrphanLauncher], "the UID decides");
    assert_eq!(look(&world(), &orphan.clone().deleted(5), &default()).role, Role::Leaving);
    let world = world().pod(orphan);
    assert_eq!(codes(&look(&world, &hotplug("ghost"), &default())), [Cause::HotplugCompanion]);
}

#[test]
fn a_hotplug_pod_whose_launcher_is_gone_leaves_by_itself() {
    assert_eq!(look(&world(), &hotplug("a"), &default()).role, Role::Leaving);
    let world = world().vmi(vmi("a")).pod(launcher("a").finished());
    assert_eq!(look(&world, &hotplug("a"), &default()).role, Role::Leaving);
}

#[test]
fn without_kubevirt_a_launcher_is_a_pod_like_others() {
    let world = world().without_kubevirt();
    let found = look(&world, &launcher("a"), &default());
    assert_eq!((found.role, found.findings.len()), (Role::Evictable, 0), "its emptyDirs still hold no user data");
    assert!(!matches!(launcher("a").role, PodRole::Plain));
}
