//! The objects as last seen, by UID.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::json::Json;

/// What is watched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Kind {
    Node,
    Pod,
    Vmi,
}

/// One object; another of the same name is another one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Id {
    pub(super) kind: Kind,
    pub(super) uid: String,
}

impl Id {
    pub(super) fn new(kind: Kind, uid: &str) -> Self {
        Self { kind, uid: uid.to_owned() }
    }
}

/// All of them.
#[derive(Default)]
pub(super) struct View {
    objects: HashMap<Id, Value>,
}

fn version(object: &Value) -> u64 {
    object.text("/metadata/resourceVersion").parse().unwrap_or(0)
}

impl View {
    /// Takes an object in, unless a newer state of it is there. Says which it was.
    pub(super) fn put(&mut self, kind: Kind, mut object: Value) -> Id {
        object.cut("/metadata/managedFields");
        let id = Id::new(kind, object.uid());
        if self.objects.get(&id).is_none_or(|old| version(old) <= version(&object)) {
            self.objects.insert(id.clone(), object);
        }
        id
    }

    pub(super) fn remove(&mut self, id: &Id) {
        self.objects.remove(id);
    }

    /// Drops those of a kind that a new list does not have.
    pub(super) fn keep(&mut self, kind: Kind, seen: &HashSet<String>) {
        self.objects.retain(|id, _| id.kind != kind || seen.contains(&id.uid));
    }

    pub(super) fn get(&self, id: &Id) -> Option<&Value> {
        self.objects.get(id)
    }

    pub(super) fn ids(&self) -> Vec<Id> {
        self.objects.keys().cloned().collect()
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |(id, _)| id.kind == kind).map(|(_, object)| object)
    }

    pub(super) fn node(&self, name: &str) -> Option<&Value> {
        self.of(Kind::Node).find(|n| n.name() == name)
    }

    /// The VMI that a launcher belongs to.
    pub(super) fn owner(&self, pod: &Value) -> Option<&Value> {
        self.get(&Id::new(Kind::Vmi, owner_uid(pod)?))
    }

    pub(super) fn launchers(&self, vmi: &Value) -> impl Iterator<Item = &Value> {
        let uid = vmi.uid().to_owned();
        self.of(Kind::Pod).filter(move |p| owner_uid(p) == Some(&uid))
    }

    /// The objects that a change of this one may concern, itself among them.
    pub(super) fn related(&self, id: &Id, object: Option<&Value>) -> Vec<Id> {
        let mut all = vec![id.clone()];
        match id.kind {
            Kind::Node => return self.ids(),
            Kind::Pod => all.extend(object.and_then(owner_uid).map(|uid| Id::new(Kind::Vmi, uid))),
            Kind::Vmi => all.extend(
                self.of(Kind::Pod).filter(|p| owner_uid(p) == Some(&id.uid)).map(|p| Id::new(Kind::Pod, p.uid())),
            ),
        }
        all
    }
}

fn owner_uid(pod: &Value) -> Option<&str> {
    (pod.label("kubevirt.io") == "virt-launcher").then(|| pod.label("kubevirt.io/created-by"))
}
