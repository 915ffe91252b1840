//! The handle that tests and the binary hold: starts the controllers, gives out clients' services, reads and changes the cluster behind the API's back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use crate::api::SimService;
use crate::api::access::Rule;
use crate::api::fault::Fault;
use crate::api::record::Recorded;
use crate::cluster::Cluster;
use crate::json::Json;
use crate::kinds::{Key, Kind};
use crate::options::{Options, VirtApi};
use crate::world::World;

/// What all handles and tasks of one cluster share.
#[derive(Debug)]
pub(crate) struct Shared {
    cluster: Mutex<Cluster>,
    changed: watch::Sender<u64>,
    stop: watch::Sender<bool>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the cluster and wakes whoever waits for changes.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Cluster) -> T) -> T {
        let result = work(&mut self.lock());
        self.changed.send_modify(|n| *n += 1);
        result
    }

    /// Reads the cluster.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Cluster) -> T) -> T {
        work(&self.lock())
    }

    /// Wakes with each change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Becomes true at the end.
    pub(crate) fn stopped(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }
}

/// A running cluster. Cheap to clone; it ends with `shutdown` or with the last handle.
#[derive(Clone, Debug)]
pub struct Sim {
    shared: Arc<Shared>,
}

impl Sim {
    /// Starts an empty cluster on the current tokio runtime (with KubeVirt's object, when that is installed).
    pub fn new(opts: Options) -> Self {
        let shared = Arc::new(Shared {
            cluster: Mutex::new(Cluster::new(opts)),
            changed: watch::channel(0).0,
            stop: watch::channel(false).0,
        });
        shared.with(crate::world::install);
        tokio::spawn(drive(Arc::downgrade(&shared), shared.changes(), shared.stopped()));
        Self { shared }
    }

    /// Adds settled objects: see [`World`].
    pub fn world(&self) -> World {
        World::new(self.clone())
    }

    /// A client's connection.
    pub fn service(&self) -> SimService {
        SimService::new(Arc::clone(&self.shared))
    }

    /// What was asked so far, in order of arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.read(|c| c.requests.clone())
    }

    /// Forgets what was asked so far.
    pub fn clear_requests(&self) {
        self.shared.with(|c| c.requests.clear());
    }

    /// Time since the start, as in [`Recorded::at`].
    pub fn elapsed(&self) -> Duration {
        self.shared.read(Cluster::elapsed)
    }

    /// One object; `kind` as in objects ("Pod"), namespace "" for cluster-wide ones.
    pub fn get(&self, kind: &str, ns: &str, name: &str) -> Option<Value> {
        self.shared.read(|c| c.get(kind_of(kind), ns, name)).map(|v| Value::clone(&v))
    }

    /// All objects of a kind, in order of namespace and name.
    pub fn list(&self, kind: &str) -> Vec<Value> {
        self.shared.read(|c| c.store.iter(kind_of(kind), "").map(|v| Value::clone(v)).collect())
    }

    /// Creates an object (its `kind` says of what sort). It starts as an API client's would: nothing is settled.
    pub fn create(&self, object: Value) -> Value {
        let kind = kind_of(object.text("/kind"));
        Value::clone(&self.shared.with(|c| c.create(kind, object)))
    }

    /// Changes an object; false when there is none.
    pub fn update(&self, kind: &str, ns: &str, name: &str, change: impl FnOnce(&mut Value)) -> bool {
        self.shared.with(|c| c.update(&Key::new(kind_of(kind), ns, name), change)).is_some()
    }

    /// Deletes an object as the API would (grace and finalizers hold); false when there is none.
    pub fn delete(&self, kind: &str, ns: &str, name: &str) -> bool {
        self.shared.with(|c| c.delete(&Key::new(kind_of(kind), ns, name), None)).is_some()
    }

    /// Makes an object vanish at once, whatever holds it.
    pub fn vanish(&self, kind: &str, ns: &str, name: &str) -> bool {
        self.shared.with(|c| c.store.remove(&Key::new(kind_of(kind), ns, name))).is_some()
    }

    /// Denies what the rule says, in access reviews and in requests.
    pub fn deny(&self, rule: Rule) {
        self.shared.with(|c| c.rules.push(rule));
    }

    /// Scripts a fault.
    pub fn fault(&self, fault: Fault) {
        self.shared.with(|c| crate::api::fault::install(c, fault));
    }

    /// Takes all faults and denials back.
    pub fn mend(&self) {
        self.shared.with(|c| {
            c.faults.clear();
            c.rules.clear();
        });
    }

    /// Ends all open watches without an error, as a busy API server does.
    pub fn cut_watches(&self) {
        self.shared.with(|c| c.cuts += 1);
    }

    /// Ends all open watches with an ERROR event 410, and forgets the history.
    pub fn expire_watches(&self) {
        self.shared.with(|c| {
            c.store.compact();
            c.expiries += 1;
        });
    }

    /// Forgets the history: a watch from an older version gets 410.
    pub fn compact(&self) {
        self.shared.with(|c| c.store.compact());
    }

    /// Changes knobs while it runs.
    pub fn options(&self, change: impl FnOnce(&mut Options)) {
        self.shared.with(|c| {
            change(&mut c.opts);
            for kind in [Kind::Node, Kind::Pdb, Kind::Vmi, Kind::Vm, Kind::Vmim] {
                for o in c.store.list(kind, "") {
                    c.store.touch(&Key::new(kind, o.namespace(), o.name()));
                }
            }
        });
    }

    /// Changes how virt-api is doing.
    pub fn virt_api(&self, state: VirtApi) {
        self.options(|o| o.virt_api = state);
    }

    /// Sets (or with `None` removes) the cluster-wide evictionStrategy.
    pub fn eviction_strategy(&self, strategy: Option<&str>) {
        self.update("KubeVirt", "kubevirt", "kubevirt", |k| match strategy {
            Some(s) => k.put("/spec/configuration/evictionStrategy", s),
            None => k.cut("/spec/configuration/evictionStrategy"),
        });
    }

    /// Works on the insides: for the builder and the loopback server.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Stops the controllers and ends all watches.
    pub fn shutdown(&self) {
        self.shared.stop.send_replace(true);
    }
}

fn kind_of(kind: &str) -> Kind {
    Kind::of_object(kind).unwrap_or_else(|| panic!("the simulator has no kind {kind}"))
}

/// The controllers' task: works when something changed or a timer is due.
async fn drive(shared: Weak<Shared>, mut changed: watch::Receiver<u64>, mut stop: watch::Receiver<bool>) {
    loop {
        let Some(alive) = shared.upgrade() else { return };
        changed.mark_unchanged();
        let (before, next) = {
            let mut cluster = alive.lock();
            let before = cluster.pulse();
            cluster.settle();
            (before, cluster.next_timer())
        };
        if alive.read(Cluster::pulse) != before {
            alive.changed.send_modify(|n| *n += 1);
        }
        drop(alive);
        let due = async {
            match next {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            r = changed.changed() => if r.is_err() { return },
            _ = stop.changed() => return,
        }
    }
}
