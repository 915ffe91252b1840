//! Watches: a task per open watch that follows the store's log.
//! Selectors are applied to both sides of a change, so an object that leaves the selection comes as DELETED with its previous state.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::answer::expired;
use crate::body::SimBody;
use crate::cluster::Cluster;
use crate::json::Json;
use crate::kinds::Kind;
use crate::selector::{Fields, Labels};
use crate::sim::Shared;
use crate::store::Change;

/// What a watch is about.
#[derive(Clone, Debug)]
pub struct WatchSpec {
    /// Resource.
    pub kind: Kind,
    /// Namespace, "" for all.
    pub ns: String,
    /// One name only, "" for all.
    pub name: String,
    /// Labels.
    pub labels: Labels,
    /// Fields.
    pub fields: Fields,
    /// Changes after this version.
    pub rv: u64,
    /// Objects to begin with, as ADDED.
    pub initial: Vec<Arc<Value>>,
    /// Whether a bookmark marks the end of those.
    pub initial_end: bool,
    /// Whether bookmarks are wanted.
    pub bookmarks: bool,
    /// Ends after this time.
    pub timeout: Duration,
}

impl WatchSpec {
    fn selects(&self, object: &Value) -> bool {
        (self.ns.is_empty() || object.namespace() == self.ns)
            && (self.name.is_empty() || object.name() == self.name)
            && self.labels.matches(object)
            && self.fields.matches(object)
    }

    fn event(&self, change: &Change) -> Option<Value> {
        let before = change.old.as_deref().is_some_and(|o| self.selects(o));
        let after = !change.deleted && self.selects(&change.new);
        let (kind, object) = match (before, after) {
            (false, true) => ("ADDED", Value::clone(&change.new)),
            (true, true) => ("MODIFIED", Value::clone(&change.new)),
            (true, false) => {
                let mut last = Value::clone(change.old.as_deref()?);
                last.put("/metadata/resourceVersion", change.rv.to_string());
                ("DELETED", last)
            }
            (false, false) => return None,
        };
        Some(json!({"type": kind, "object": object}))
    }

    fn bookmark(&self, rv: u64, initial_end: bool) -> Value {
        let mut object = json!({"kind": self.kind.info().kind, "apiVersion": self.kind.api_version(), "metadata": {"resourceVersion": rv.to_string()}});
        if initial_end {
            object.set_annotation("k8s.io/initial-events-end", Some("true"));
        }
        json!({"type": "BOOKMARK", "object": object})
    }
}

fn line(out: &mut Vec<u8>, event: &Value) {
    out.extend_from_slice(event.to_string().as_bytes());
    out.push(b'\n');
}

/// Opens a watch.
pub(super) fn open(shared: &Arc<Shared>, spec: WatchSpec) -> SimBody {
    let (sender, receiver) = mpsc::channel(64);
    tokio::spawn(follow(Arc::clone(shared), spec, sender));
    SimBody::stream(receiver)
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Marks {
    cuts: u64,
    expiries: u64,
    breaks: u64,
}

fn marks(c: &Cluster) -> Marks {
    Marks { cuts: c.cuts, expiries: c.expiries, breaks: c.breaks }
}

async fn follow(shared: Arc<Shared>, mut spec: WatchSpec, sender: mpsc::Sender<io::Result<Bytes>>) {
    let mut changes = shared.changes();
    let mut stopped = shared.stopped();
    let start = shared.read(marks);
    let every = shared.read(|c| c.opts.bookmark);
    let end = Instant::now() + spec.timeout;
    let mut next_bookmark = Instant::now() + every;
    let mut out = Vec::new();
    for object in std::mem::take(&mut spec.initial) {
        line(&mut out, &json!({"type": "ADDED", "object": &*object}));
    }
    if spec.initial_end {
        line(&mut out, &spec.bookmark(spec.rv, true));
    }
    loop {
        changes.mark_unchanged();
        let (news, now) = shared.read(|c| {
            let news = c.store.since(spec.kind, spec.rv).map(|all| (c.store.rv(), all));
            (news, marks(c))
        });
        if now.breaks != start.breaks {
            let _ = sender.send(Err(io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer"))).await;
            return;
        }
        if now.cuts != start.cuts {
            return;
        }
        let over = now.expiries != start.expiries;
        match news {
            Some((rv, all)) if !over => {
                all.iter().filter_map(|c| spec.event(c)).for_each(|e| line(&mut out, &e));
                spec.rv = rv;
            }
            _ => {
                let text = format!("too old resource version: {} ({})", spec.rv, shared.read(|c| c.store.rv()));
                line(&mut out, &json!({"type": "ERROR", "object": expired(&text)}));
                let _ = sender.send(Ok(Bytes::from(out))).await;
                return;
            }
        }
        if Instant::now() >= next_bookmark {
            next_bookmark += every;
            if spec.bookmarks {
                line(&mut out, &spec.bookmark(spec.rv, false));
            }
        }
        if !out.is_empty() && sender.send(Ok(Bytes::from(std::mem::take(&mut out)))).await.is_err() {
            return;
        }
        let bookmark = async {
            if spec.bookmarks { tokio::time::sleep_until(next_bookmark).await } else { std::future::pending().await }
        };
        tokio::select! {
            r = changes.changed() => if r.is_err() { return },
            () = tokio::time::sleep_until(end) => return,
            () = bookmark => {}
            () = sender.closed() => return,
            _ = stopped.changed() => return,
        }
    }
}
