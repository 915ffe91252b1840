//! Scripted faults: which requests they meet, and what becomes of them.

use std::time::Duration;

use tokio::time::Instant;

use super::answer::{Answer, Content};
use crate::cluster::Cluster;

/// What a fault does.
#[derive(Clone, Debug)]
pub enum Then {
    /// Answers in the server's place.
    Answer {
        /// Code.
        status: u16,
        /// More headers.
        headers: Vec<(String, String)>,
        /// Content type.
        content_type: String,
        /// Body.
        body: String,
    },
    /// Waits, then goes on as usual.
    Slow(Duration),
    /// Does what was asked, then waits with the answer.
    SlowAnswer(Duration),
    /// Never answers.
    Hang,
    /// Breaks the connection; nothing was done.
    Disconnect,
    /// Does what was asked, then breaks the connection.
    DisconnectAfter,
    /// No API at all: breaks open watches at `from`, and every request's connection until `until`.
    Gone,
    /// Ends all watches at `from`, without an error.
    CutWatches,
    /// Ends all watches at `from` with an ERROR event 410 and forgets the history.
    ExpireWatches,
}

impl Then {
    /// A JSON Status.
    pub fn status(code: u16, reason: &str, message: &str) -> Self {
        let Answer { content, .. } = super::answer::failure(code, reason, message, serde_json::Value::Null);
        let body = if let Content::Json(v) = content { v.to_string() } else { String::new() };
        Self::Answer { status: code, headers: Vec::new(), content_type: "application/json".to_owned(), body }
    }

    /// Plain text, with Retry-After when not 0.
    pub fn plain(code: u16, retry_after: u32, body: &str) -> Self {
        let headers =
            if retry_after > 0 { vec![("Retry-After".to_owned(), retry_after.to_string())] } else { Vec::new() };
        Self::Answer {
            status: code,
            headers,
            content_type: "text/plain; charset=utf-8".to_owned(),
            body: body.to_owned(),
        }
    }
}

/// A scripted fault. Empty selectors meet every request.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Method, "" for all.
    pub method: String,
    /// Part of the path with its query, "" for all.
    pub path_contains: String,
    /// From this time of the cluster on.
    pub from: Duration,
    /// Until this time; `None` for ever.
    pub until: Option<Duration>,
    /// Lets this many fitting requests pass first.
    pub skip: usize,
    /// Meets at most this many; `None` for all.
    pub count: Option<usize>,
    /// What happens.
    pub then: Then,
}

impl Fault {
    /// Meets requests by method and part of the path.
    pub fn on(method: &str, path_contains: &str, then: Then) -> Self {
        Self {
            method: method.to_owned(),
            path_contains: path_contains.to_owned(),
            from: Duration::ZERO,
            until: None,
            skip: 0,
            count: None,
            then,
        }
    }

    /// Meets everything from a time of the cluster on.
    pub fn at(from: Duration, then: Then) -> Self {
        Self { from, ..Self::on("", "", then) }
    }

    /// Restricts it to a stretch of time.
    #[must_use]
    pub fn between(self, from: Duration, until: Duration) -> Self {
        Self { from, until: Some(until), ..self }
    }

    /// Meets only the n-th fitting request, counted from 1.
    #[must_use]
    pub fn nth(self, n: usize) -> Self {
        Self { skip: n.saturating_sub(1), count: Some(1), ..self }
    }

    /// Meets only the first n fitting requests.
    #[must_use]
    pub fn first(self, n: usize) -> Self {
        Self { count: Some(n), ..self }
    }
}

/// A fault and how often it has met something.
#[derive(Debug)]
pub struct FaultState {
    fault: Fault,
    seen: usize,
}

/// Adds a fault; those about watches become timers.
pub fn install(cluster: &mut Cluster, fault: Fault) {
    let raise: Option<fn(&mut Cluster)> = match fault.then {
        Then::Gone => Some(|c| c.breaks += 1),
        Then::CutWatches => Some(|c| c.cuts += 1),
        Then::ExpireWatches => Some(|c| {
            c.store.compact();
            c.expiries += 1;
        }),
        Then::Answer { .. }
        | Then::Slow(_)
        | Then::SlowAnswer(_)
        | Then::Hang
        | Then::Disconnect
        | Then::DisconnectAfter => None,
    };
    if let Some(raise) = raise {
        let at = Instant::now() + fault.from.saturating_sub(cluster.elapsed());
        cluster.at(at, raise);
    }
    if !matches!(fault.then, Then::CutWatches | Then::ExpireWatches) {
        cluster.faults.push(FaultState { fault, seen: 0 });
    }
}

/// The first fault that meets a request now.
pub fn meet(cluster: &mut Cluster, method: &str, path: &str) -> Option<Then> {
    let now = cluster.elapsed();
    for state in &mut cluster.faults {
        let f = &state.fault;
        let fits = (f.method.is_empty() || f.method == method)
            && path.contains(&f.path_contains)
            && now >= f.from
            && f.until.is_none_or(|u| now < u);
        if !fits {
            continue;
        }
        state.seen += 1;
        if state.seen > f.skip && f.count.is_none_or(|c| state.seen <= f.skip + c) {
            return Some(f.then.clone());
        }
    }
    None
}
