//! Quotas on the number of pods in a namespace (`spec.hard.pods`), as the admission of the API server says them to a
//! controller that makes one more. Other resources are not counted, and nothing is written to a quota's status.

use std::time::Duration;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::json::Json;
use crate::kinds::{Key, Kind};

/// How long a controller waits before it tries again (the real ones wait longer from time to time).
const RETRY: Duration = Duration::from_secs(5);

/// The words of the refusal, if no more pods may be made.
pub(super) fn refusal(cluster: &mut Cluster, pod: &Value) -> Option<String> {
    let ns = pod.namespace().to_owned();
    let over = |p: &Value| matches!(p.text("/status/phase"), "Succeeded" | "Failed");
    let used = cluster.store.iter(Kind::Pod, &ns).filter(|p| !over(p)).count();
    let quotas = cluster.store.list(Kind::ResourceQuota, &ns);
    let full = quotas.iter().find_map(|q| {
        let hard = q.pointer("/spec/hard/pods")?;
        let hard: usize = hard.as_str().map_or_else(|| hard.to_string(), str::to_owned).parse().ok()?;
        (used >= hard).then(|| (q.name().to_owned(), hard))
    });
    let (quota, hard) = full?;
    let name = match pod.name() {
        "" => format!("{}{}", pod.text("/metadata/generateName"), cluster.suffix()),
        name => name.to_owned(),
    };
    Some(format!(
        "pods \"{name}\" is forbidden: exceeded quota: {quota}, requested: pods=1, used: pods={used}, limited: pods={hard}"
    ))
}

/// A quota has changed: whoever makes pods in its namespace looks again.
pub(super) fn changed(cluster: &mut Cluster, key: &Key) {
    for kind in [Kind::Vmi, Kind::Vmim, Kind::ReplicaSet] {
        for object in cluster.store.list(kind, &key.ns) {
            cluster.store.touch(&Key::new(kind, &key.ns, object.name()));
        }
    }
}

/// The controller of that object tries again after a while.
pub(super) fn retry(cluster: &mut Cluster, key: &Key) {
    if cluster.instant {
        return; // Without waiting it would never end.
    }
    let again = key.clone();
    cluster.after_exactly(&format!("quota/{key:?}"), RETRY, move |c| c.store.touch(&again));
}
