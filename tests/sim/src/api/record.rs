//! What was asked, for assertions.

use std::time::Duration;

use serde_json::Value;

use super::route::Request;

/// One request.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Since the cluster's start.
    pub at: Duration,
    /// Method.
    pub method: String,
    /// Decoded path.
    pub path: String,
    /// Decoded query, "" without one.
    pub query: String,
    /// Body, when it was JSON.
    pub body: Option<Value>,
    /// Code of the answer; 0 while it is open, or when the connection broke.
    pub status: u16,
    /// User-Agent.
    pub user_agent: String,
    /// Text of the Warning header that it was answered with: the request had something that the server ignored.
    pub warning: Option<String>,
}

impl Recorded {
    /// A request that a client of any server is about to send.
    pub fn sent(at: Duration, parts: &http::request::Parts, body: bytes::Bytes) -> Self {
        Self::arrived(at, &Request::read(parts, body))
    }

    pub(super) fn arrived(at: Duration, request: &Request) -> Self {
        Self {
            at,
            method: request.method.clone(),
            path: request.path.clone(),
            query: request.query_text(),
            body: request.body.clone(),
            status: 0,
            user_agent: request.user_agent.clone(),
            warning: None,
        }
    }

    /// Whether it asked for a dry run in the query or in the body.
    pub fn is_dry_run(&self) -> bool {
        let all = |v: Option<&Value>| v.and_then(Value::as_array).is_some_and(|a| a.iter().any(|x| x == "All"));
        self.query.contains("dryRun=All")
            || self.body.as_ref().is_some_and(|b| all(b.pointer("/dryRun")) || all(b.pointer("/deleteOptions/dryRun")))
    }

    /// Whether it can have changed something.
    pub fn is_write(&self) -> bool {
        self.method != "GET" && !self.path.contains("/selfsubject") && !self.is_dry_run()
    }
}
