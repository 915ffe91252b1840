//! KubeVirt's webhooks for evictions, per release, and for new migrations: who is asked, what they answer, and what the API server makes
//! of a webhook that does not answer.

use std::time::Duration;

use serde_json::{Value, json};

use super::answer::{Answer, failure, internal};
use crate::cluster::Cluster;
use crate::controllers::migration;
use crate::controllers::vmi::{effective_strategy, is_final};
use crate::json::Json;
use crate::kinds::{Key, Kind};
use crate::options::{Profile, VirtApi};

const LAUNCHER: &str = "virt-launcher-eviction-interceptor.kubevirt.io";
const HOTPLUG: &str = "hotplug-pod-eviction-interceptor.kubevirt.io";
const MIGRATION: &str = "migration-create-validator.kubevirt.io";
const MIGRATION_MUTATOR: &str = "migrations-mutator.kubevirt.io";

/// What admission says.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Goes on to the budgets.
    Allow,
    /// The answer to the client.
    Refuse(Answer),
}

fn deny(webhook: &str, text: &str) -> Verdict {
    Verdict::Refuse(failure(
        429,
        "",
        &format!("admission webhook \"{webhook}\" denied the request: {text}"),
        Value::Null,
    ))
}

/// Reviews an eviction.
pub(super) fn review(cluster: &mut Cluster, ns: &str, name: &str, dry_query: bool, dry_body: bool) -> Verdict {
    let Some(profile) = cluster.opts.kubevirt else { return Verdict::Allow };
    let webhook = if profile.fails_open() || name.starts_with("virt-launcher") {
        LAUNCHER
    } else if name.starts_with("hp-volume-") && profile.guards_hotplug() {
        HOTPLUG
    } else {
        return Verdict::Allow;
    };
    if cluster.virt_api() != VirtApi::Up {
        return unreachable(cluster, profile, webhook);
    }
    let Some(pod) = cluster.get(Kind::Pod, ns, name) else { return Verdict::Allow };
    if profile.guards_hotplug()
        && pod.label("kubevirt.io") == "hotplug-disk"
        && pod.list("/metadata/ownerReferences").len() == 1
    {
        return hotplug(cluster, &pod);
    }
    let done = profile.passes_completed() && matches!(pod.text("/status/phase"), "Succeeded" | "Failed");
    if pod.label("kubevirt.io") != "virt-launcher" || done {
        return Verdict::Allow;
    }
    launcher(cluster, profile, &pod, dry_query || dry_body && profile.reads_dry_run_of_body())
}

fn launcher(cluster: &mut Cluster, profile: Profile, pod: &Value, dry_run: bool) -> Verdict {
    let (ns, name) = (pod.namespace(), pod.annotation("kubevirt.io/domain"));
    if name.is_empty() {
        return Verdict::Allow;
    }
    let Some(vmi) = cluster.get(Kind::Vmi, ns, name) else {
        let text = format!("kubevirt failed getting the vmi: virtualmachineinstances.kubevirt.io \"{name}\" not found");
        return deny(LAUNCHER, &text);
    };
    let migratable = vmi.is_true("LiveMigratable");
    match effective_strategy(cluster, &vmi).as_str() {
        "LiveMigrate" if !migratable => {
            return deny(
                LAUNCHER,
                &format!("VMI {name} is configured with an eviction strategy but is not live-migratable"),
            );
        }
        "LiveMigrateIfPossible" if !migratable => return Verdict::Allow,
        "LiveMigrate" | "LiveMigrateIfPossible" | "External" => {}
        _ => return Verdict::Allow,
    }
    let trigger = format!("Eviction triggered evacuation of VMI \"{ns}/{name}\"");
    let marked = !vmi.text("/status/evacuationNodeName").is_empty();
    let here = vmi.text("/status/nodeName") == pod.text("/spec/nodeName");
    if profile.refuses_marked() {
        if marked {
            return deny(LAUNCHER, &format!("Evacuation in progress: {trigger}"));
        }
        if !here {
            return deny(LAUNCHER, "Eviction request for target Pod");
        }
    } else if marked || !here {
        return Verdict::Allow;
    }
    if !dry_run {
        let node = pod.text("/spec/nodeName").to_owned();
        cluster.update(&Key::new(Kind::Vmi, ns, name), |v| v.put("/status/evacuationNodeName", node));
    }
    if profile.refuses_when_it_marks() { deny(LAUNCHER, &trigger) } else { Verdict::Allow }
}

fn hotplug(cluster: &Cluster, pod: &Value) -> Verdict {
    let ns = pod.namespace();
    let owner = pod.list("/metadata/ownerReferences").first().map_or("", |o| o.text("/name"));
    let Some(owner) = cluster.get(Kind::Pod, ns, owner) else { return Verdict::Allow };
    let live =
        owner.label("kubevirt.io") == "virt-launcher" && !matches!(owner.text("/status/phase"), "Succeeded" | "Failed");
    let vmi = owner.annotation("kubevirt.io/domain");
    if !live || vmi.is_empty() || cluster.get(Kind::Vmi, ns, vmi).is_none() {
        return Verdict::Allow;
    }
    deny(
        HOTPLUG,
        &format!("cannot evict hotplug pod: {} associated with running vmi: {vmi} in namespace {ns}", pod.name()),
    )
}

/// Reviews a new migration, as 1.7.0 does.
pub(super) fn migration(cluster: &Cluster, ns: &str, name: &str) -> Verdict {
    if cluster.opts.kubevirt.is_none() {
        return Verdict::Allow;
    }
    if cluster.virt_api() != VirtApi::Up {
        return Verdict::Refuse(unanswered(cluster, MIGRATION_MUTATOR, "migration-mutate-create"));
    }
    match why_not(cluster, ns, name) {
        None => Verdict::Allow,
        Some(text) => {
            let text = format!("admission webhook \"{MIGRATION}\" denied the request: {text}");
            Verdict::Refuse(failure(400, "", &text, Value::Null))
        }
    }
}

/// What virt-api itself says when the migration that it makes for a caller is refused.
pub(super) fn no_migration(cluster: &Cluster, ns: &str, name: &str) -> Option<Answer> {
    let text = why_not(cluster, ns, name)?;
    Some(internal(&format!("admission webhook \"{MIGRATION}\" denied the request: {text}")))
}

fn why_not(cluster: &Cluster, ns: &str, name: &str) -> Option<String> {
    let Some(vmi) = cluster.get(Kind::Vmi, ns, name) else {
        return Some(format!("the VMI \"{ns}/{name}\" does not exist"));
    };
    if is_final(&vmi) {
        return Some("Cannot migrate VMI in finalized state.".to_owned());
    }
    if let Some(c) = vmi.condition("LiveMigratable").filter(|c| c.text("/status") == "False") {
        return Some(format!("Cannot migrate VMI, Reason: {}, Message: {}", c.text("/reason"), c.text("/message")));
    }
    let open = |m: &&std::sync::Arc<Value>| m.text("/spec/vmiName") == name && !migration::is_final(m);
    cluster.store.iter(Kind::Vmim, ns).find(open).map(|m| {
        format!(
            "in-flight migration detected. Active migration job ({}) is currently already in progress for VMI {name}.",
            m.uid()
        )
    })
}

fn unreachable(cluster: &Cluster, profile: Profile, webhook: &str) -> Verdict {
    if profile.fails_open() {
        return Verdict::Allow;
    }
    let path = if profile >= Profile::V1_7 { "pod-eviction-validate" } else { "launcher-eviction-validate" };
    Verdict::Refuse(unanswered(cluster, webhook, path))
}

/// How long the API server waits for a webhook.
fn time_out(cluster: &Cluster) -> Duration {
    Duration::from_secs(10).div_f64(cluster.opts.speed)
}

/// How long an eviction is held up by a webhook that hangs and fails open, before the budgets are asked.
pub(super) fn held_up(cluster: &Cluster) -> Duration {
    let open = cluster.opts.kubevirt.is_some_and(Profile::fails_open);
    if open && cluster.virt_api() == VirtApi::Hang { time_out(cluster) } else { Duration::ZERO }
}

fn unanswered(cluster: &Cluster, webhook: &str, path: &str) -> Answer {
    let (opts, hang) = (&cluster.opts, cluster.virt_api() == VirtApi::Hang);
    let wait = if hang { time_out(cluster) } else { Duration::ZERO };
    let why = match cluster.virt_api() {
        VirtApi::Hang => "context deadline exceeded".to_owned(),
        VirtApi::Refused => format!("dial tcp {}: connect: connection refused", opts.virt_api_dial),
        VirtApi::Up | VirtApi::NoEndpoints => "no endpoints available for service \"virt-api\"".to_owned(),
    };
    let text = format!(
        "failed calling webhook \"{webhook}\": failed to call webhook: Post \"{}/{path}?timeout=10s\": {why}",
        opts.virt_api_url
    );
    internal(&text).delayed(wait)
}

/// What a JSON patch that fails its test gets through virt-api.
pub(super) fn failed_patch() -> Answer {
    internal("the server rejected our request due to an error in our request")
}

/// 409 as virt-api words it.
pub(super) fn vm_conflict(resource: &str, name: &str, why: &str) -> Answer {
    let message = format!("Operation cannot be fulfilled on {resource}.kubevirt.io \"{name}\": {why}");
    failure(409, "Conflict", &message, json!({"name": name, "group": "kubevirt.io", "kind": resource}))
}

/// 404 as virt-api words it.
pub(super) fn vm_not_found(resource: &str, name: &str) -> Answer {
    let message = format!("{resource}.kubevirt.io \"{name}\" not found");
    failure(404, "NotFound", &message, json!({"name": name, "group": "kubevirt.io", "kind": resource}))
}

/// Whether a VMI runs or is on its way there.
pub(super) fn is_live(vmi: Option<&Value>) -> bool {
    vmi.is_some_and(|v| !is_final(v))
}
