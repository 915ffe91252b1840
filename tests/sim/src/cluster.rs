//! The state of a simulated cluster and the primitives that the API and the controllers share: clock, timers, names,
//! create/update/delete with finalizers. Everything here runs under one lock and never waits.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api::access::Rule;
use crate::api::fault::FaultState;
use crate::api::record::Recorded;
use crate::controllers;
use crate::json::Json;
use crate::kinds::{Key, Kind};
use crate::options::{Options, VirtApi};
use crate::store::Store;

type Action = Box<dyn FnOnce(&mut Cluster) + Send>;

/// The cluster.
pub struct Cluster {
    /// Objects.
    pub store: Store,
    /// Knobs; may be changed while it runs.
    pub opts: Options,
    /// What was asked so far.
    pub requests: Vec<Recorded>,
    /// What is denied.
    pub rules: Vec<Rule>,
    /// Scripted faults.
    pub faults: Vec<FaultState>,
    /// Pods that found no node.
    pub unscheduled: BTreeSet<Key>,
    /// While building: everything that takes time is done at once.
    pub instant: bool,
    /// While building: the node that pods go to if they can.
    pub prefer: Option<String>,
    /// Raised to end all watches without an error.
    pub cuts: u64,
    /// Raised to end all watches with an ERROR event 410.
    pub expiries: u64,
    /// Raised to break all connections of watches.
    pub breaks: u64,
    base: Timestamp,
    started: Instant,
    timers: BTreeMap<(Instant, u64), (Option<String>, Action)>,
    busy: HashSet<String>,
    failures: HashMap<String, (u32, Instant)>,
    timer: u64,
    rng: u64,
    ip: u32,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("rv", &self.store.rv()).finish_non_exhaustive()
    }
}

#[expect(clippy::disallowed_methods, reason = "the one base of all object timestamps; time itself is tokio's")]
fn wall() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

impl Cluster {
    /// An empty cluster.
    pub fn new(opts: Options) -> Self {
        Self {
            store: Store::new(opts.watch_history),
            rng: opts.seed,
            opts,
            requests: Vec::new(),
            rules: Vec::new(),
            faults: Vec::new(),
            unscheduled: BTreeSet::new(),
            instant: false,
            prefer: None,
            cuts: 0,
            expiries: 0,
            breaks: 0,
            base: wall(),
            started: Instant::now(),
            timers: BTreeMap::new(),
            busy: HashSet::new(),
            failures: HashMap::new(),
            timer: 0,
            ip: 0,
        }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The wall time of an instant of this cluster.
    pub fn timestamp(&self) -> Timestamp {
        self.base + SignedDuration::try_from(self.elapsed()).unwrap_or(SignedDuration::ZERO)
    }

    /// As objects write it.
    pub fn now(&self) -> String {
        self.now_plus(0)
    }

    /// As objects write it, `seconds` from now.
    pub fn now_plus(&self, seconds: i64) -> String {
        (self.timestamp() + SignedDuration::from_secs(seconds)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Seconds since an object's timestamp.
    pub fn age(&self, text: &str) -> Option<i64> {
        text.parse::<Timestamp>().ok().map(|t| self.timestamp().duration_since(t).as_secs())
    }

    /// A delay of the cluster, in its speed.
    pub fn scaled(&self, delay: Duration) -> Duration {
        if self.instant { Duration::ZERO } else { delay.div_f64(self.opts.speed) }
    }

    fn random(&mut self) -> u64 {
        self.rng = self.rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.rng;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A new uid.
    pub fn new_uid(&mut self) -> String {
        let (a, b) = (self.random(), self.random());
        format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            a >> 32,
            a >> 16 & 0xffff,
            a & 0xfff,
            b >> 52,
            b & 0xffff_ffff_ffff
        )
    }

    /// Five characters as generated names have them.
    pub fn suffix(&mut self) -> String {
        const SET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut r = self.random();
        (0..5)
            .map(|_| {
                let c = SET[usize::try_from(r % SET.len() as u64).unwrap_or(0)];
                r /= SET.len() as u64;
                char::from(c)
            })
            .collect()
    }

    /// A new pod address.
    pub fn new_ip(&mut self) -> String {
        self.ip += 1;
        format!("10.8.{}.{}", self.ip / 250, self.ip % 250 + 1)
    }

    /// How virt-api is doing, by the knob and by its pods.
    pub fn virt_api(&self) -> VirtApi {
        let ready = |p: &Arc<Value>| p.label("kubevirt.io") == "virt-api" && p.is_true("Ready") && !p.deleting();
        let no_pods = self.opts.virt_api_from_pods && !self.store.iter(Kind::Pod, "kubevirt").any(ready);
        if self.opts.virt_api == VirtApi::Up && no_pods { VirtApi::NoEndpoints } else { self.opts.virt_api }
    }

    /// One object.
    pub fn get(&self, kind: Kind, ns: &str, name: &str) -> Option<Arc<Value>> {
        self.store.get(&Key::new(kind, ns, name))
    }

    /// Creates an object: fills in what the API server fills in.
    pub fn create(&mut self, kind: Kind, mut value: Value) -> Arc<Value> {
        let info = kind.info();
        value.put("/apiVersion", kind.api_version());
        value.put("/kind", info.kind);
        if value.name().is_empty() {
            let name = format!("{}{}", value.text("/metadata/generateName"), self.suffix());
            value.put("/metadata/name", name);
        }
        if info.namespaced && value.namespace().is_empty() {
            value.put("/metadata/namespace", "default");
        }
        if value.uid().is_empty() {
            let uid = self.new_uid();
            value.put("/metadata/uid", uid);
        }
        if !value.has("/metadata/creationTimestamp") {
            let now = self.now();
            value.put("/metadata/creationTimestamp", now);
        }
        controllers::defaults::fill(self, kind, &mut value);
        let key = Key::new(kind, value.namespace(), value.name());
        self.store.put(&key, value)
    }

    /// Changes an object in place; `None` when it is gone. An object that is being deleted and loses its last finalizer goes.
    pub fn update(&mut self, key: &Key, change: impl FnOnce(&mut Value)) -> Option<Arc<Value>> {
        let old = self.store.get(key)?;
        let mut new = Value::clone(&old);
        change(&mut new);
        let ended = new.deleting()
            && new.list("/metadata/finalizers").is_empty()
            && new.int("/metadata/deletionGracePeriodSeconds").unwrap_or(0) == 0;
        if new.has("/metadata/finalizers") && new.list("/metadata/finalizers").is_empty() {
            new.cut("/metadata/finalizers");
        }
        let new = self.store.put(key, new);
        if ended && key.kind != Kind::Namespace {
            self.store.remove(key);
        }
        Some(new)
    }

    /// Deletes an object as the API server does: pods gracefully, others at once unless a finalizer holds them.
    pub fn delete(&mut self, key: &Key, grace: Option<i64>) -> Option<Arc<Value>> {
        let old = self.store.get(key)?;
        if key.kind == Kind::Namespace {
            return self.update(key, |n| n.put("/status/phase", "Terminating")).and_then(|_| {
                let now = self.now();
                self.update(key, |n| {
                    if !n.deleting() {
                        n.put("/metadata/deletionTimestamp", now);
                    }
                })
            });
        }
        let seconds = if key.kind == Kind::Pod { pod_grace(&old, grace) } else { 0 };
        let held = !old.list("/metadata/finalizers").is_empty();
        if seconds == 0 && !held {
            return self.store.remove(key);
        }
        let before = old.int("/metadata/deletionGracePeriodSeconds");
        if old.deleting() && before.is_some_and(|b| b <= seconds) {
            return Some(old);
        }
        let at = self.now_plus(seconds);
        self.update(key, |o| {
            o.put("/metadata/deletionGracePeriodSeconds", seconds);
            o.put("/metadata/deletionTimestamp", at);
        })
    }

    /// Runs `action` after a delay (in the cluster's speed), once per `name` at a time.
    pub fn after(&mut self, name: &str, delay: Duration, action: impl FnOnce(&mut Self) + Send + 'static) {
        if !name.is_empty() && !self.busy.insert(name.to_owned()) {
            return;
        }
        let at = Instant::now() + self.scaled(delay);
        self.timer += 1;
        let name = (!name.is_empty()).then(|| name.to_owned());
        self.timers.insert((at, self.timer), (name, Box::new(action)));
    }

    /// Runs `action` at an instant, whatever the speed.
    pub fn at(&mut self, at: Instant, action: impl FnOnce(&mut Self) + Send + 'static) {
        self.timer += 1;
        self.timers.insert((at, self.timer), (None, Box::new(action)));
    }

    /// As `after`, by a time that is already in the cluster's speed.
    pub fn after_exactly(&mut self, name: &str, delay: Duration, action: impl FnOnce(&mut Self) + Send + 'static) {
        let factor = self.opts.speed;
        self.after(name, delay.mul_f64(factor), action);
    }

    /// Whether no timer of that name runs.
    pub fn is_free(&self, name: &str) -> bool {
        !self.busy.contains(name)
    }

    /// Counts a failed migration of a VMI.
    pub fn blame(&mut self, vmi: &str) {
        let entry = self.failures.entry(vmi.to_owned()).or_insert((0, Instant::now()));
        *entry = (entry.0 + 1, Instant::now());
    }

    /// Forgets a VMI's failed migrations.
    pub fn forgive(&mut self, vmi: &str) {
        self.failures.remove(vmi);
    }

    /// How long the next evacuation migration of a VMI still waits: doubles with each failure; only five are remembered.
    pub fn backoff(&self, vmi: &str) -> Option<Duration> {
        let (count, at) = self.failures.get(vmi)?;
        let wait = self.scaled(self.opts.migration_backoff) * 2_u32.pow((*count).clamp(1, 5) - 1);
        wait.checked_sub(at.elapsed()).filter(|d| !d.is_zero())
    }

    /// When the next timer is due.
    pub fn next_timer(&self) -> Option<Instant> {
        self.timers.keys().next().map(|(at, _)| *at)
    }

    /// Changes whenever somebody who watches has something to see.
    pub fn pulse(&self) -> (u64, u64, u64, u64) {
        (self.store.rv(), self.cuts, self.expiries, self.breaks)
    }

    /// Lets the controllers work until nothing is left to do at this instant: by turns all that is queued and all timers that are due,
    /// so that a set of pods that change together is looked at once.
    pub fn settle(&mut self) {
        let now = Instant::now();
        loop {
            while let Some(key) = self.store.next() {
                controllers::reconcile(self, &key);
            }
            let due: Vec<(Instant, u64)> = self.timers.keys().take_while(|(at, _)| *at <= now).copied().collect();
            if due.is_empty() {
                return;
            }
            for id in due {
                let Some((name, action)) = self.timers.remove(&id) else { continue };
                if let Some(name) = name {
                    self.busy.remove(&name);
                }
                action(self);
            }
        }
    }

    /// Writes an event about an object.
    pub fn event(&mut self, about: &Value, component: &str, kind: &str, reason: &str, message: &str) {
        let ns = if about.namespace().is_empty() { "default" } else { about.namespace() };
        let stamp = self.store.rv();
        let now = self.now();
        self.create(
            Kind::Event,
            json!({
                "metadata": {"name": format!("{}.{:x}", about.name(), 0x18ec_0000_0000_0000_u64 + stamp), "namespace": ns},
                "involvedObject": {"kind": about.text("/kind"), "namespace": ns, "name": about.name(), "uid": about.uid(),
                    "apiVersion": about.text("/apiVersion"), "resourceVersion": about.text("/metadata/resourceVersion")},
                "reason": reason, "message": message, "source": {"component": component}, "firstTimestamp": now, "lastTimestamp": now,
                "count": 1, "type": kind, "eventTime": null, "reportingComponent": component, "reportingInstance": ""
            }),
        );
    }
}

/// The grace that a deletion of a pod gets.
fn pod_grace(pod: &Value, asked: Option<i64>) -> i64 {
    if pod.text("/spec/nodeName").is_empty() || matches!(pod.text("/status/phase"), "Succeeded" | "Failed") {
        return 0;
    }
    asked.or_else(|| pod.int("/spec/terminationGracePeriodSeconds")).unwrap_or(30).max(0)
}

/// Removes everything that may hold an object's place, in a deletion that cannot wait: what the kubelet does last.
pub(crate) fn finish(cluster: &mut Cluster, key: &Key, uid: &str) {
    let Some(pod) = cluster.store.get(key).filter(|p| p.uid() == uid) else { return };
    if pod.list("/metadata/finalizers").is_empty() {
        cluster.update(key, |p| p.put("/metadata/deletionGracePeriodSeconds", 0));
        return;
    }
    let now = cluster.now();
    cluster.update(key, |p| {
        p.put("/metadata/deletionGracePeriodSeconds", 0);
        p.put("/metadata/deletionTimestamp", now);
    });
}
