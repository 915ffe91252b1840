//! Answers and the bodies of refusals, as a real API server words them.

use std::time::Duration;

use serde_json::{Value, json};

use super::watch::WatchSpec;
use crate::json::Json;
use crate::kinds::Kind;

/// What an answer holds.
#[derive(Debug)]
pub enum Content {
    /// JSON.
    Json(Value),
    /// `text/plain`, or another type.
    Text(String, String),
    /// Nothing, without a content type.
    Empty,
    /// A stream of events.
    Watch(Box<WatchSpec>),
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Code.
    pub status: u16,
    /// More headers.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub content: Content,
    /// It comes only after this time.
    pub after: Duration,
}

impl Answer {
    /// JSON with a code.
    pub fn json(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), content: Content::Json(body), after: Duration::ZERO }
    }

    /// Plain text with a code.
    pub fn text(status: u16, body: &str) -> Self {
        let content = Content::Text("text/plain; charset=utf-8".to_owned(), body.to_owned());
        Self { status, headers: Vec::new(), content, after: Duration::ZERO }
    }

    /// A code without a body.
    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), content: Content::Empty, after: Duration::ZERO }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Comes only after some time.
    #[must_use]
    pub fn delayed(mut self, by: Duration) -> Self {
        self.after = by;
        self
    }
}

/// A Status of a failure; an empty reason and null details are left out.
pub fn failure(code: u16, reason: &str, message: &str, details: Value) -> Answer {
    let mut body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": code});
    if !reason.is_empty() {
        body.put("/reason", reason);
    }
    if !details.is_null() {
        body.put("/details", details);
    }
    Answer::json(code, body)
}

/// A Status of success.
pub fn success(code: u16) -> Answer {
    Answer::json(code, json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}))
}

fn details(kind: Kind, name: &str) -> Value {
    let info = kind.info();
    let mut d = json!({"kind": info.plural});
    if !name.is_empty() {
        d.put("/name", name);
    }
    if !info.group.is_empty() {
        d.put("/group", info.group);
    }
    d
}

/// 404 for one object.
pub fn not_found(kind: Kind, name: &str) -> Answer {
    failure(404, "NotFound", &format!("{} \"{name}\" not found", kind.qualified()), details(kind, name))
}

/// 404 for a path that nothing serves: a text, as the real server's mux gives it.
pub fn no_such_path() -> Answer {
    Answer::text(404, "404 page not found\n")
}

/// 409 for a stale version.
pub fn modified(kind: Kind, name: &str) -> Answer {
    let text = "the object has been modified; please apply your changes to the latest version and try again";
    conflict(kind, name, text)
}

/// 409 with a reason of its own.
pub fn conflict(kind: Kind, name: &str, why: &str) -> Answer {
    let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.qualified());
    failure(409, "Conflict", &message, details(kind, name))
}

/// 403 with a reason of its own.
pub fn forbidden(kind: Kind, name: &str, why: &str) -> Answer {
    let subject = if name.is_empty() { kind.qualified() } else { format!("{} \"{name}\"", kind.qualified()) };
    failure(403, "Forbidden", &format!("{subject} is forbidden: {why}"), details(kind, name))
}

/// 400.
pub fn bad_request(message: &str) -> Answer {
    failure(400, "BadRequest", message, Value::Null)
}

/// 500 with the wrapping that the server gives unknown errors.
pub fn internal(message: &str) -> Answer {
    let full = format!("Internal error occurred: {message}");
    failure(500, "InternalError", &full, json!({"causes": [{"message": message}]}))
}

/// 422.
pub fn invalid(kind: Kind, name: &str, why: &str) -> Answer {
    let message = format!("{} \"{name}\" is invalid: {why}", kind.info().kind);
    failure(422, "Invalid", &message, details(kind, name))
}

/// 410 in an ERROR event or an answer.
pub fn expired(message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": "Expired", "code": 410})
}
