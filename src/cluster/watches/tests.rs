use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::cluster::fake::{Fake, json as answer};

fn node(name: &str) -> Value {
    json!({"metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "5"}, "spec": {}, "status": {}})
}

fn list(items: &[Value]) -> Value {
    json!({"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": items})
}

fn nodes(fake: &Fake, limit: Option<Duration>) -> BoxStream<'static, WatchItem> {
    let options = WatchOptions { limit, ..WatchOptions::default() };
    let all = node_followers(&fake.client(), &[], options);
    all.into_iter().find(|(what, _)| *what == Watched::Nodes).unwrap().1
}

/// An item without what cannot be foreseen.
fn told(item: &WatchItem) -> String {
    match item {
        WatchItem::Change(change) => {
            let Change::Node(delta) = &**change else { return format!("{change:?}") };
            match delta {
                Delta::Reset(all) => {
                    format!("reset {}", all.iter().map(|n| n.name.as_str()).collect::<Vec<_>>().join(" "))
                }
                Delta::Apply(n) => format!("apply {}", n.name),
                Delta::Delete(n) => format!("delete {n}"),
            }
        }
        WatchItem::Synced(what) => format!("synced {what}"),
        WatchItem::Trouble { what, problem, since } => {
            format!("trouble {what} {:?} {:?}", problem.kind, since.elapsed())
        }
        WatchItem::Recovered { what } => format!("recovered {what}"),
        WatchItem::Unreadable { what, object, .. } => format!("unreadable {what} {object}"),
    }
}

async fn next(stream: &mut BoxStream<'static, WatchItem>) -> String {
    told(&stream.next().await.unwrap())
}

#[tokio::test]
async fn no_watch_is_opened_before_it_is_asked_for() {
    let fake = Fake::new(|line| {
        assert_eq!(line, "GET /api/v1/nodes?&limit=100");
        answer(200, &list(&[node("a"), node("b")]))
    });
    let mut stream = nodes(&fake, None);
    assert_eq!(next(&mut stream).await, "reset a b");
    assert_eq!(next(&mut stream).await, "synced nodes");
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn an_ended_watch_is_resumed_in_silence() {
    let watches = AtomicUsize::new(0);
    let fake = Fake::new(move |line| {
        if !line.contains("watch=true") {
            return answer(200, &list(&[node("a")]));
        }
        match watches.fetch_add(1, Ordering::Relaxed) {
            0 => (200, vec![], Some(format!("{}\n", json!({"type": "ADDED", "object": node("b")})))),
            1 => (200, vec![], Some(String::new())),
            2 => (200, vec![], Some(format!("{}\n", json!({"type": "DELETED", "object": node("a")})))),
            _ => (200, vec![], None),
        }
    });
    let mut stream = nodes(&fake, None);
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(next(&mut stream).await);
    }
    assert_eq!(seen, ["reset a", "synced nodes", "apply b", "delete a"]);
    let lists = fake.seen().iter().filter(|s| !s.line.contains("watch=true")).count();
    assert_eq!(lists, 1);
}

#[tokio::test]
async fn one_bad_object_spoils_no_list() {
    let mut bad = node("bad");
    bad["spec"] = json!("not an object");
    let fake = Fake::new(move |_| answer(200, &list(&[node("a"), bad.clone(), node("b")])));
    let mut stream = nodes(&fake, None);
    assert_eq!(next(&mut stream).await, "unreadable nodes bad");
    assert_eq!(next(&mut stream).await, "reset a b");
}

#[tokio::test(start_paused = true)]
async fn trouble_is_told_with_its_begin_and_ends_with_a_fresh_list() {
    let calls = AtomicUsize::new(0);
    let fake = Fake::new(move |line| {
        if line.contains("watch=true") {
            return (200, vec![], None);
        }
        match calls.fetch_add(1, Ordering::Relaxed) {
            0..=4 => answer(503, &json!({"kind": "Status", "status": "Failure", "message": "busy", "code": 503})),
            5 => (200, vec![], None),
            _ => answer(200, &list(&[node("a")])),
        }
    });
    let mut stream = nodes(&fake, Some(Duration::from_secs(3)));
    let mut seen = Vec::new();
    for _ in 0..9 {
        seen.push(next(&mut stream).await);
    }
    assert_eq!(
        seen,
        [
            "trouble nodes Other 0ns",
            "trouble nodes Other 200ms",
            "trouble nodes Other 600ms",
            "trouble nodes Other 1.4s",
            "trouble nodes Other 3s",
            "trouble nodes Timeout 8s",
            "reset a",
            "recovered nodes",
            "synced nodes",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_place_in_history_is_listed_anew_in_silence() {
    let watches = AtomicUsize::new(0);
    let fake = Fake::new(move |line| {
        if !line.contains("watch=true") {
            return answer(200, &list(&[node("a")]));
        }
        let expired = json!({"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "message": "too old",
            "reason": "Expired", "code": 410}});
        match watches.fetch_add(1, Ordering::Relaxed) {
            0 => (200, vec![], Some(format!("{expired}\n"))),
            _ => (200, vec![], None),
        }
    });
    let mut stream = nodes(&fake, None);
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(next(&mut stream).await);
    }
    assert_eq!(seen, ["reset a", "synced nodes", "reset a"]);
}
