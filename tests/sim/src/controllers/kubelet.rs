//! The kubelets and, for guests, the virt-handlers. Steered by annotations:
//! `lab/stop` (how long a pod takes to stop), `lab/shutdown: killed` (the guest ignores its shutdown: takes its whole grace and ends Failed),
//! `lab/shutdown: lost` (nobody says how the guest ended: virt-controller, where it runs, takes it for Failed once the pod is gone),
//! `lab/crash: true` on a pod (it never becomes ready), `lab/nonmigratable` (reason of LiveMigratable=False), `lab/agent: connected`.

use std::time::Duration;

use serde_json::Value;

use super::node::is_up;
use super::vmi::{is_final, pod_is_final};
use crate::cluster::{Cluster, finish};
use crate::json::Json;
use crate::kinds::{Key, Kind};
use crate::machine;

/// Starts what is bound and stops what is deleted.
pub(super) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(pod) = cluster.store.get(key) else { return };
    let node = pod.text("/spec/nodeName");
    if node.is_empty() || !is_up(cluster, node) {
        return;
    }
    let uid = pod.uid().to_owned();
    if pod.deleting() {
        let grace = pod.int("/metadata/deletionGracePeriodSeconds").unwrap_or(0);
        if grace == 0 {
            return;
        }
        let wish = stop_time(cluster, &pod);
        let limit = machine::seconds(grace);
        let (key, cut_short) = (key.clone(), limit < wish);
        cluster.after(&format!("stop/{uid}/{grace}"), wish.min(limit), move |c| {
            if c.store.get(&key).is_some_and(|p| p.uid() == uid && is_up(c, p.text("/spec/nodeName"))) {
                shut_guest(c, &key, cut_short);
                let shown =
                    |p: &Value| p.label("kubevirt.io") == "virt-launcher" || !p.list("/metadata/finalizers").is_empty();
                if c.store.get(&key).is_some_and(|p| shown(&p)) {
                    complete(c, &key);
                }
                finish(c, &key, &uid);
            }
        });
    } else if pod.text("/status/phase") == "Pending" {
        let (key, delay) = (key.clone(), cluster.opts.start);
        cluster.after(&format!("start/{uid}"), delay, move |c| {
            if c.store.get(&key).is_some_and(|p| p.uid() == uid && !p.deleting() && is_up(c, p.text("/spec/nodeName")))
            {
                run(c, &key);
            }
        });
    } else if !pod_is_final(&pod)
        && let Some(vmi) = owner_vmi(cluster, &pod)
        && (is_final(&vmi) || machine::is_left(&vmi, &pod))
    {
        let wait = if is_final(&vmi) { Duration::ZERO } else { stop_time(cluster, &pod) };
        let key = key.clone();
        cluster.after(&format!("left/{uid}"), wait, move |c| {
            let here = |p: &Value| p.uid() == uid && !p.deleting() && is_up(c, p.text("/spec/nodeName"));
            if c.store.get(&key).is_some_and(|p| here(&p)) {
                complete(c, &key);
            }
        });
    }
}

fn complete(cluster: &mut Cluster, key: &Key) {
    let now = cluster.now();
    cluster.update(key, |p| {
        if !pod_is_final(p) {
            machine::pod_completes(p, &now);
        }
    });
}

fn owner_vmi(cluster: &Cluster, pod: &Value) -> Option<std::sync::Arc<Value>> {
    let name = pod.annotation("kubevirt.io/domain");
    if pod.label("kubevirt.io") != "virt-launcher" || name.is_empty() {
        return None;
    }
    cluster.get(Kind::Vmi, pod.namespace(), name).filter(|v| v.uid() == pod.label("kubevirt.io/created-by"))
}

fn stop_time(cluster: &Cluster, pod: &Value) -> Duration {
    let vmi = owner_vmi(cluster, pod).filter(|v| v.text("/status/nodeName") == pod.text("/spec/nodeName"));
    machine::stop_time(pod, vmi.as_deref(), cluster.opts.stop)
}

/// What virt-handler says of a guest whose launcher stops.
fn shut_guest(cluster: &mut Cluster, key: &Key, cut_short: bool) {
    let Some(pod) = cluster.store.get(key) else { return };
    let Some(vmi) = owner_vmi(cluster, &pod) else { return };
    if is_final(&vmi)
        || vmi.text("/status/nodeName") != pod.text("/spec/nodeName")
        || vmi.annotation("lab/shutdown") == "lost"
    {
        return;
    }
    let killed = cut_short || vmi.annotation("lab/shutdown") == "killed";
    let now = cluster.now();
    cluster.update(&Key::new(Kind::Vmi, vmi.namespace(), vmi.name()), |v| machine::guest_ends(v, killed, &now));
}

fn run(cluster: &mut Cluster, key: &Key) {
    let Some(pod) = cluster.store.get(key) else { return };
    let target = !pod.label("kubevirt.io/migrationJobUID").is_empty();
    if target && owner_vmi(cluster, &pod).is_some_and(|v| v.annotation("lab/migration") == "dies") {
        cluster.update(key, |p| p.put("/status/phase", "Failed"));
        return;
    }
    let (now, ip) = (cluster.now(), cluster.new_ip());
    cluster.update(key, |p| machine::pod_runs(p, &now, &ip));
}

/// virt-handler: starts the guest of a scheduled VMI and says whether it can migrate.
pub(super) fn guest(cluster: &mut Cluster, key: &Key) {
    let Some(vmi) = cluster.store.get(key) else { return };
    if vmi.text("/status/phase") != "Scheduled" || vmi.deleting() || !is_up(cluster, vmi.text("/status/nodeName")) {
        return;
    }
    let (key, uid, delay) = (key.clone(), vmi.uid().to_owned(), cluster.opts.start);
    cluster.after(&format!("guest/{uid}"), delay, move |c| {
        let fits = |v: &Value| v.uid() == uid && v.text("/status/phase") == "Scheduled" && !v.deleting();
        if c.store.get(&key).is_some_and(|v| fits(&v) && is_up(c, v.text("/status/nodeName"))) {
            boot(c, &key);
        }
    });
}

fn boot(cluster: &mut Cluster, key: &Key) {
    let now = cluster.now();
    cluster.update(key, |v| machine::guest_runs(v, &now));
}
