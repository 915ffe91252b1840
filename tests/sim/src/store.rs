//! Objects, one resourceVersion counter, and the log of changes that watches read.
//! It knows nothing of what objects mean, apart from when `generation` goes up.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use crate::json::Json;
use crate::kinds::{Key, Kind};

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Change {
    /// The version that it made.
    pub rv: u64,
    /// What changed.
    pub key: Key,
    /// Before; `None` for a creation.
    pub old: Option<Arc<Value>>,
    /// After; for a deletion the last state, with the deletion's version.
    pub new: Arc<Value>,
    /// Whether it was deleted.
    pub deleted: bool,
}

/// The objects of a cluster.
#[derive(Debug)]
pub struct Store {
    objects: BTreeMap<Kind, BTreeMap<(String, String), Arc<Value>>>,
    owned: HashMap<String, BTreeSet<Key>>,
    log: VecDeque<Change>,
    rv: u64,
    compacted: u64,
    keep: usize,
    queue: VecDeque<Key>,
    queued: HashSet<Key>,
}

impl Store {
    /// An empty store whose log holds `keep` changes.
    pub fn new(keep: usize) -> Self {
        Self {
            objects: BTreeMap::new(),
            owned: HashMap::new(),
            log: VecDeque::new(),
            rv: 1000,
            compacted: 1000,
            keep,
            queue: VecDeque::new(),
            queued: HashSet::new(),
        }
    }

    /// The newest version.
    pub fn rv(&self) -> u64 {
        self.rv
    }

    /// Forgets the log: older watches get 410.
    pub fn compact(&mut self) {
        self.compacted = self.rv;
        self.log.clear();
    }

    /// One object.
    pub fn get(&self, key: &Key) -> Option<Arc<Value>> {
        self.objects.get(&key.kind)?.get(&(key.ns.clone(), key.name.clone())).cloned()
    }

    /// All objects of a kind, of one namespace or of all ("").
    pub fn list(&self, kind: Kind, ns: &str) -> Vec<Arc<Value>> {
        self.iter(kind, ns).cloned().collect()
    }

    /// As `list`, borrowed.
    pub fn iter(&self, kind: Kind, ns: &str) -> impl Iterator<Item = &Arc<Value>> {
        let ns = ns.to_owned();
        let start = (ns.clone(), String::new());
        self.objects
            .get(&kind)
            .into_iter()
            .flat_map(move |m| m.range(start.clone()..))
            .take_while({
                let ns = ns.clone();
                move |((n, _), _)| ns.is_empty() || *n == ns
            })
            .map(|(_, v)| v)
    }

    /// The objects that name `uid` as an owner.
    pub fn owned_by(&self, uid: &str) -> Vec<Key> {
        self.owned.get(uid).map(|s| s.iter().cloned().collect()).unwrap_or_default()
    }

    /// Writes an object; nothing happens when it is the same as before.
    pub fn put(&mut self, key: &Key, mut value: Value) -> Arc<Value> {
        let old = self.get(key);
        if let Some(old) = &old {
            let rv = old.text("/metadata/resourceVersion").to_owned();
            value.put("/metadata/resourceVersion", rv);
            if **old == value {
                return Arc::clone(old);
            }
        }
        generation(key.kind, old.as_deref(), &mut value);
        self.rv += 1;
        value.put("/metadata/resourceVersion", self.rv.to_string());
        let new = Arc::new(value);
        self.index(key, old.as_deref(), Some(&new));
        self.objects.entry(key.kind).or_default().insert((key.ns.clone(), key.name.clone()), Arc::clone(&new));
        self.record(Change { rv: self.rv, key: key.clone(), old, new: Arc::clone(&new), deleted: false });
        new
    }

    /// Removes an object for good.
    pub fn remove(&mut self, key: &Key) -> Option<Arc<Value>> {
        let old = self.objects.get_mut(&key.kind)?.remove(&(key.ns.clone(), key.name.clone()))?;
        self.index(key, Some(&old), None);
        self.rv += 1;
        let mut last = Value::clone(&old);
        last.put("/metadata/resourceVersion", self.rv.to_string());
        let last = Arc::new(last);
        self.record(Change { rv: self.rv, key: key.clone(), old: Some(old), new: Arc::clone(&last), deleted: true });
        Some(last)
    }

    fn index(&mut self, key: &Key, old: Option<&Value>, new: Option<&Value>) {
        for owner in old.map_or(&[][..], |o| o.list("/metadata/ownerReferences")) {
            if let Some(set) = self.owned.get_mut(owner.text("/uid")) {
                set.remove(key);
            }
        }
        for owner in new.map_or(&[][..], |o| o.list("/metadata/ownerReferences")) {
            self.owned.entry(owner.text("/uid").to_owned()).or_default().insert(key.clone());
        }
    }

    fn record(&mut self, change: Change) {
        self.touch(&change.key);
        for object in change.old.iter().chain(std::iter::once(&change.new)) {
            for owner in object.list("/metadata/ownerReferences") {
                if let Some(kind) = Kind::of_object(owner.text("/kind")) {
                    self.touch(&Key::new(kind, &change.key.ns, owner.text("/name")));
                }
            }
        }
        self.log.push_back(change);
        while self.log.len() > self.keep {
            if let Some(gone) = self.log.pop_front() {
                self.compacted = gone.rv;
            }
        }
    }

    /// Puts an object on the controllers' queue.
    pub fn touch(&mut self, key: &Key) {
        if self.queued.insert(key.clone()) {
            self.queue.push_back(key.clone());
        }
    }

    /// The next object for the controllers.
    pub fn next(&mut self) -> Option<Key> {
        let key = self.queue.pop_front()?;
        self.queued.remove(&key);
        Some(key)
    }

    /// The changes of a kind after `rv`, or `None` when they are no longer known.
    pub fn since(&self, kind: Kind, rv: u64) -> Option<Vec<Change>> {
        if rv < self.compacted {
            return None;
        }
        let start = self.log.partition_point(|c| c.rv <= rv);
        Some(self.log.range(start..).filter(|c| c.key.kind == kind).cloned().collect())
    }
}

/// `generation` as the API server counts it: with the spec, for VMIs (no status subresource) with every change.
fn generation(kind: Kind, old: Option<&Value>, new: &mut Value) {
    let counts = !matches!(
        kind,
        Kind::Node
            | Kind::Namespace
            | Kind::Event
            | Kind::PersistentVolume
            | Kind::PersistentVolumeClaim
            | Kind::Service
            | Kind::ConfigMap
    );
    if !counts {
        return;
    }
    let next = match old {
        None => 1,
        Some(old) => {
            let before = old.int("/metadata/generation").unwrap_or(1);
            let changed = old.get("spec") != new.get("spec")
                || old.deleting() != new.deleting()
                || kind == Kind::Vmi && old.get("status") != new.get("status");
            before + i64::from(changed)
        }
    };
    new.put("/metadata/generation", next);
}
