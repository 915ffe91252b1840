//! Live migrations: queue and limits, target pod, hand-over, the copy itself, success, failure and abort.
//! Annotations on the VMI: `lab/migration: hang` (never ends) or `fail` (fails after the copy time, for the reason in `lab/migration-error`)
//! or `dies` (its target pod fails at once); `lab/migrate` (how long the copy takes).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::vmi::{is_final as vmi_is_final, launchers, pod_is_final, set_phase};
use super::{launcher, quota};
use crate::cluster::Cluster;
use crate::json::Json;
use crate::kinds::{Key, Kind};
use crate::machine::{self, duration};

/// How many finished migrations of one VMI are kept.
const KEPT: usize = 5;

/// The condition of a migration whose target pod a quota does not admit.
const REJECTED: &str = "migrationRejectedByResourceQuota";

const SHUTDOWN: &str = "Migration failed vmi shutdown during migration.";

/// A VMI has ended and goes: its migrations fail before another of its name comes.
pub(super) fn end_all(cluster: &mut Cluster, vmi: &Key) {
    for m in cluster.store.list(Kind::Vmim, &vmi.ns).iter().filter(|m| m.text("/spec/vmiName") == vmi.name) {
        fail(cluster, &Key::new(Kind::Vmim, &vmi.ns, m.name()), SHUTDOWN);
    }
}

/// Whether a migration is over.
pub(crate) fn is_final(m: &Value) -> bool {
    matches!(m.text("/status/phase"), "Succeeded" | "Failed")
}

/// Whether it counts against the limits.
pub(super) fn counts(m: &Value) -> bool {
    !is_final(m) && !matches!(m.text("/status/phase"), "" | "Pending")
}

fn target_of(cluster: &Cluster, m: &Value) -> Option<Arc<Value>> {
    cluster.store.iter(Kind::Pod, m.namespace()).find(|p| p.label("kubevirt.io/migrationJobUID") == m.uid()).cloned()
}

fn mine(vmi: &Value, m: &Value) -> bool {
    vmi.text("/status/migrationState/migrationUid") == m.uid()
}

fn go(cluster: &mut Cluster, key: &Key, phase: &str) {
    let now = cluster.now();
    cluster.update(key, |m| set_phase(m, phase, &now));
}

/// Moves a migration on.
pub(super) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(m) = cluster.store.get(key) else {
        wake(cluster);
        return;
    };
    if is_final(&m) {
        return finished(cluster, key, &m);
    }
    let vmi = cluster.get(Kind::Vmi, &key.ns, m.text("/spec/vmiName"));
    let Some(vmi) = vmi.filter(|v| !vmi_is_final(v)) else { return fail(cluster, key, SHUTDOWN) };
    if m.deleting() && !mine(&vmi, &m) {
        return cancel(cluster, key, &m);
    }
    if counts(&m) && !vmi.deleting() {
        match target_of(cluster, &m) {
            Some(p) if pod_is_final(&p) => {
                return fail(cluster, key, "Migration failed because target pod shutdown during migration");
            }
            None => return fail(cluster, key, "Migration target pod was removed during active migration."),
            Some(_) => {}
        }
    }
    match m.text("/status/phase") {
        "" => {
            let current = launchers(cluster, &vmi).into_iter().find(|p| !pod_is_final(p));
            let now = cluster.now();
            cluster.update(&Key::new(Kind::Vmi, &key.ns, vmi.name()), |v| {
                v.set_annotation("kubevirt.io/nonroot", Some("true"));
            });
            cluster.update(key, |m| {
                set_phase(m, "Pending", &now);
                if let Some(p) = current {
                    m.put("/status/migrationState", json!({"sourcePod": p.name()}));
                }
            });
        }
        "Pending" => pending(cluster, key, &m, &vmi),
        "Scheduling" => scheduling(cluster, key, &m, &vmi),
        "Scheduled" => prepare(cluster, key, &m, &vmi),
        "PreparingTarget" => {
            go(cluster, key, "TargetReady");
            go(cluster, key, "Running");
            copy(cluster, key, &m);
        }
        _ => running(cluster, key, &m, &vmi),
    }
}

/// Those that wait get another look, oldest first.
fn wake(cluster: &mut Cluster) {
    let mut waiting: Vec<(u64, Key)> = cluster
        .store
        .iter(Kind::Vmim, "")
        .filter(|m| m.text("/status/phase") == "Pending")
        .map(|m| {
            (m.text("/metadata/resourceVersion").parse().unwrap_or(0), Key::new(Kind::Vmim, m.namespace(), m.name()))
        })
        .collect();
    waiting.sort();
    for (_, key) in waiting {
        cluster.store.touch(&key);
    }
}

fn pending(cluster: &mut Cluster, key: &Key, m: &Value, vmi: &Value) {
    let automatic = !m.annotation("kubevirt.io/evacuationMigration").is_empty();
    if automatic && let Some(wait) = cluster.backoff(vmi.uid()) {
        let text = format!("backoff migrating vmi {}/{}", vmi.namespace(), vmi.name());
        let key = key.clone();
        if cluster.is_free(&format!("backoff/{}", m.uid())) {
            cluster.event(vmi, "virtualmachine-controller", "Warning", "MigrationBackoff", &text);
        }
        cluster.after_exactly(&format!("backoff/{}", m.uid()), wait, move |c| c.store.touch(&key));
        return;
    }
    let node = vmi.text("/status/nodeName");
    let source = |m: &Value| {
        let v = cluster.get(Kind::Vmi, m.namespace(), m.text("/spec/vmiName"));
        v.is_some_and(|v| v.text("/status/nodeName") == node)
    };
    let active: Vec<Arc<Value>> = cluster.store.list(Kind::Vmim, "").into_iter().filter(|m| counts(m)).collect();
    let outbound = active.iter().filter(|m| source(m)).count();
    if active.len() >= cluster.opts.migrations_per_cluster || outbound >= cluster.opts.migrations_per_node {
        return;
    }
    if launchers(cluster, vmi).iter().filter(|p| !pod_is_final(p)).count() > 1 {
        return;
    }
    let pod = launcher::pod(cluster, vmi, Some(m));
    if let Some(text) = quota::refusal(cluster, &pod) {
        let event = format!("Error creating pod: {text}");
        cluster.event(vmi, "virtualmachine-controller", "Warning", "FailedCreate", &event);
        let now = cluster.now();
        let known = m.condition(REJECTED).is_some();
        cluster.update(key, |m| {
            if !known {
                m.set_condition(
                    json!({"type": REJECTED, "status": "True", "lastProbeTime": now, "lastTransitionTime": null}),
                );
            }
        });
        return quota::retry(cluster, key);
    }
    let pod = cluster.create(Kind::Pod, pod);
    let text = format!("Created migration target pod {}", pod.name());
    cluster.event(m, "virtualmachine-controller", "Normal", "SuccessfulCreate", &text);
    go(cluster, key, "Scheduling");
}

fn scheduling(cluster: &mut Cluster, key: &Key, m: &Value, vmi: &Value) {
    if m.condition(REJECTED).is_some() {
        cluster.update(key, |m| m.cut_condition(REJECTED));
    }
    let Some(pod) = target_of(cluster, m).filter(|p| !p.deleting()) else { return };
    if pod.text("/status/phase") == "Running" {
        return go(cluster, key, "Scheduled");
    }
    if pod.condition("PodScheduled").is_some_and(|c| c.text("/reason") == "Unschedulable") {
        let text =
            format!("Migration target pod for VMI [{}/{}] is currently unschedulable.", vmi.namespace(), vmi.name());
        let (key, uid, limit) = (key.clone(), pod.uid().to_owned(), cluster.opts.unschedulable_target);
        let name = format!("unschedulable/{}", m.uid());
        if cluster.is_free(&name) {
            cluster.event(m, "virtualmachine-controller", "Warning", "migrationTargetPodUnschedulable", &text);
        }
        cluster.after(&name, limit, move |c| {
            let still = c.store.get(&key).is_some_and(|m| {
                m.text("/status/phase") == "Scheduling"
                    && target_of(c, &m).is_some_and(|p| p.uid() == uid && p.text("/spec/nodeName").is_empty())
            });
            if still && let Some(m) = c.store.get(&key) {
                drop_target(c, &m, |pod| format!("unschedulable pod {pod} timeout period exceeded"));
            }
        });
    }
}

/// Hands over to the nodes: the VMI's migration state.
fn prepare(cluster: &mut Cluster, key: &Key, m: &Value, vmi: &Value) {
    let Some(target) = target_of(cluster, m) else { return };
    cluster.event(
        m,
        "virtualmachine-controller",
        "Normal",
        "SuccessfulHandOver",
        "Migration target pod is ready for preparation by virt-handler.",
    );
    let (node, pod) = (target.text("/spec/nodeName").to_owned(), target.name().to_owned());
    let settings = json!({"allowAutoConverge": false, "allowPostCopy": false, "allowWorkloadDisruption": false, "bandwidthPerMigration": "0",
        "completionTimeoutPerGiB": 150, "maxDowntimeMs": 900, "nodeDrainTaintKey": "kubevirt.io/drain",
        "parallelMigrationsPerCluster": cluster.opts.migrations_per_cluster, "parallelOutboundMigrationsPerNode": cluster.opts.migrations_per_node,
        "progressTimeout": 150, "unsafeMigrationOverride": false, "utilityVolumesTimeout": 150});
    cluster.update(&Key::new(Kind::Vmi, &key.ns, vmi.name()), |v| {
        v.set_label("kubevirt.io/migrationTargetNodeName", &node);
        v.put(
            "/status/migrationState",
            json!({"migrationUid": m.uid(), "sourceNode": v.text("/status/nodeName"), "sourcePod": m.text("/status/migrationState/sourcePod"),
                "targetNode": node, "targetPod": pod, "targetMemoryOverhead": "274688Ki", "migrationConfiguration": settings}),
        );
    });
    go(cluster, key, "PreparingTarget");
}

/// The copy: starts after the hand-over, ends after its time, unless it is made to hang.
fn copy(cluster: &mut Cluster, key: &Key, m: &Value) {
    let (key, uid, handover) = (key.clone(), m.uid().to_owned(), cluster.opts.handover);
    cluster.after(&format!("copy/{uid}"), handover, move |c| {
        let Some(vmi) = running_vmi(c, &key, &uid) else { return };
        let now = c.now();
        let vmi_key = Key::new(Kind::Vmi, &key.ns, vmi.name());
        c.update(&vmi_key, |v| machine::copy_starts(v, &now));
        let how = vmi.annotation("lab/migration").to_owned();
        if how == "hang" {
            return;
        }
        let time = duration(vmi.annotation("lab/migrate")).unwrap_or(c.opts.migrate);
        c.after("", time, move |c| {
            let Some(vmi) = running_vmi(c, &key, &uid) else { return };
            if how == "fail" {
                let now = c.now();
                c.update(&Key::new(Kind::Vmi, &key.ns, vmi.name()), |v| {
                    machine::copy_ends(v, machine::failure(&vmi), &now);
                });
            } else {
                succeed(c, &key, &vmi);
            }
        });
    });
}

/// The VMI, while this migration of it still runs.
fn running_vmi(cluster: &Cluster, key: &Key, uid: &str) -> Option<Arc<Value>> {
    let m = cluster.store.get(key).filter(|m| m.uid() == uid && m.text("/status/phase") == "Running")?;
    let up = |v: &Value| super::node::is_up(cluster, v.text("/status/nodeName"));
    cluster
        .get(Kind::Vmi, &key.ns, m.text("/spec/vmiName"))
        .filter(|v| mine(v, &m) && !v.deleting() && !v.flag("/status/migrationState/completed") && up(v))
}

fn succeed(cluster: &mut Cluster, key: &Key, vmi: &Value) {
    let now = cluster.now();
    let source = Key::new(Kind::Pod, &key.ns, vmi.text("/status/migrationState/sourcePod"));
    cluster.update(&Key::new(Kind::Vmi, &key.ns, vmi.name()), |v| machine::guest_moves(v, &now));
    let target = Key::new(Kind::Pod, &key.ns, vmi.text("/status/migrationState/targetPod"));
    let ready = now.replace('T', " ").replace('Z', " +0000 UTC");
    cluster.update(&target, |p| p.set_annotation("kubevirt.io/migration-target-ready-timestamp", Some(&ready)));
    cluster.update(&source, |p| machine::pod_completes(p, &now));
}

fn running(cluster: &mut Cluster, key: &Key, m: &Value, vmi: &Value) {
    if !mine(vmi, m) {
        return fail(
            cluster,
            key,
            "VMI's migration state was taken over by another migration job during active migration.",
        );
    }
    if !vmi.flag("/status/migrationState/completed") {
        if m.deleting() {
            abort(cluster, key, m, vmi);
        } else if target_of(cluster, m).is_some_and(|p| p.deleting()) {
            lose_target(cluster, key, m);
        }
        return;
    }
    if vmi.flag("/status/migrationState/failed") {
        return fail(cluster, key, "source node reported migration failed");
    }
    cluster.event(
        m,
        "virtualmachine-controller",
        "Normal",
        "SuccessfulMigration",
        "Source node reported migration succeeded",
    );
    go(cluster, key, "Succeeded");
    cluster.forgive(vmi.uid());
}

/// The source sees that its target goes.
fn lose_target(cluster: &mut Cluster, key: &Key, m: &Value) {
    let (key, uid, wait) = (key.clone(), m.uid().to_owned(), cluster.opts.handover);
    cluster.after(&format!("break/{uid}"), wait, move |c| {
        if let Some(vmi) = running_vmi(c, &key, &uid) {
            let now = c.now();
            let vmi = Key::new(Kind::Vmi, &key.ns, vmi.name());
            c.update(&vmi, |v| machine::copy_ends(v, machine::TARGET_DOWN, &now));
        }
    });
}

/// Ends a migration badly; the mark stays. Its target pod is told by virt-handler, not by virt-controller, and stays as a completed one.
fn fail(cluster: &mut Cluster, key: &Key, why: &str) {
    let Some(m) = cluster.store.get(key).filter(|m| !is_final(m)) else { return };
    cluster.event(&m, "virtualmachine-controller", "Warning", "FailedMigration", why);
    if let Some(vmi) = cluster.get(Kind::Vmi, &key.ns, m.text("/spec/vmiName")) {
        if !m.deleting() {
            cluster.blame(vmi.uid());
        }
        let now = cluster.now();
        cluster.update(&Key::new(Kind::Vmi, &key.ns, vmi.name()), |v| {
            if mine(v, &m) && !v.flag("/status/migrationState/completed") {
                v.put("/status/migrationState/completed", true);
                v.put("/status/migrationState/failed", true);
                v.put("/status/migrationState/failureReason", why);
                v.put("/status/migrationState/endTimestamp", now);
            }
        });
    }
    go(cluster, key, "Failed");
    if let Some(pod) = target_of(cluster, &m) {
        cluster.store.touch(&Key::new(Kind::Pod, &key.ns, pod.name()));
    }
}

/// Deletes a target pod that the nodes have not been told of.
fn drop_target(cluster: &mut Cluster, m: &Value, text: impl FnOnce(&str) -> String) {
    if let Some(pod) = target_of(cluster, m).filter(|p| !p.deleting() && !pod_is_final(p)) {
        cluster.delete(&Key::new(Kind::Pod, pod.namespace(), pod.name()), None);
        let text = text(&format!("{}/{}", pod.namespace(), pod.name()));
        cluster.event(m, "virtualmachine-controller", "Normal", "SuccessfulDelete", &text);
    }
}

/// The migration object is being deleted before the nodes were told of it.
fn cancel(cluster: &mut Cluster, key: &Key, m: &Value) {
    drop_target(cluster, m, |pod| format!("migration canceled and pod {pod} is deleted"));
    fail(cluster, key, "Migration failed due to being canceled");
}

/// The migration object is being deleted during the copy: the nodes end that.
fn abort(cluster: &mut Cluster, key: &Key, m: &Value, vmi: &Value) {
    if vmi.flag("/status/migrationState/abortRequested") {
        return;
    }
    let text = "Migration is ready to be canceled by virt-handler.";
    cluster.event(m, "virtualmachine-controller", "Normal", "SuccessfulAbortMigration", text);
    let now = cluster.now();
    let vmi_key = Key::new(Kind::Vmi, &key.ns, vmi.name());
    cluster.update(key, |m| {
        m.set_condition(json!({"type": "migrationAbortRequested", "status": "True", "lastProbeTime": now, "lastTransitionTime": now}));
    });
    cluster.update(&vmi_key, |v| v.put("/status/migrationState/abortRequested", true));
    let (key, uid) = (key.clone(), m.uid().to_owned());
    cluster.after(&format!("abort/{uid}"), Duration::from_millis(500), move |c| {
        if running_vmi(c, &key, &uid).is_none() {
            return;
        }
        let now = c.now();
        c.update(&vmi_key, |v| machine::copy_is_aborted(v, &now));
    });
}

/// A finished one: copies the VMI's state, lets go of the object, makes room for the next, and clears away the oldest.
fn finished(cluster: &mut Cluster, key: &Key, m: &Value) {
    if !m.list("/metadata/finalizers").is_empty() {
        let vmi = cluster.get(Kind::Vmi, &key.ns, m.text("/spec/vmiName"));
        let state = vmi.as_ref().filter(|v| mine(v, m)).and_then(|v| v.pointer("/status/migrationState").cloned());
        cluster.update(key, |m| {
            if let Some(state) = state {
                m.put("/status/migrationState", state);
            }
            m.put("/metadata/finalizers", json!([]));
        });
        cluster.store.touch(&Key::new(Kind::Vmi, &key.ns, m.text("/spec/vmiName")));
        wake(cluster);
        return;
    }
    let mut done: Vec<Arc<Value>> = cluster
        .store
        .iter(Kind::Vmim, &key.ns)
        .filter(|x| is_final(x) && x.text("/spec/vmiName") == m.text("/spec/vmiName"))
        .cloned()
        .collect();
    done.sort_by_key(|x| x.text("/metadata/resourceVersion").parse::<u64>().unwrap_or(0));
    for old in done.iter().take(done.len().saturating_sub(KEPT)) {
        let pod = Key::new(Kind::Pod, &key.ns, old.text("/status/migrationState/sourcePod"));
        if cluster.store.get(&pod).is_some_and(|p| pod_is_final(&p)) {
            cluster.delete(&pod, None);
        }
        cluster.delete(&Key::new(Kind::Vmim, &key.ns, old.name()), None);
    }
}
