//! Any cluster: budgets, admission, odd pods, endings, transport, the command's manners.

mod admission;
mod budgets;
mod client;
mod endings;
mod manners;
mod orchestrators;
mod pods;
mod storage;
mod transport;

use safe_drain_sim::Then;
use serde_json::{Value, json};

/// The cases that are tests here.
pub(super) const CASES: &[u32] = &[
    31, 33, 34, 40, 41, 42, 43, 45, 47, 48, 49, 50, 54, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71,
    73, 74, 75, 76, 78, 79, 81, 82, 83, 85,
];

/// A Status with details, in the server's place.
fn answered(code: u16, reason: &str, message: &str, details: Value) -> Then {
    let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": code});
    for (field, value) in [("reason", json!(reason)), ("details", details)] {
        if value != "" && !value.is_null() {
            status[field] = value;
        }
    }
    Then::Answer {
        status: code,
        headers: Vec::new(),
        content_type: "application/json".to_owned(),
        body: status.to_string(),
    }
}
