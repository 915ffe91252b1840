//! An HTTP answer taken apart. Pure: the shell hands in what it received.

use std::time::Duration;

use serde_json::Value;

use super::{RawAnswer, RawStatus};

/// Longest body that is kept as text, in bytes: an error page is no message.
const MAX_TEXT: usize = 2048;

impl RawStatus {
    /// Reads a `Status` object; `None` for any other JSON. Fields of the wrong type count as absent.
    pub fn from_json(value: &Value) -> Option<Self> {
        let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let outcome = text(value, "status");
        match value.get("kind").and_then(Value::as_str) {
            Some("Status") => {}
            // Some proxies answer with a Status that lost its kind.
            None if matches!(outcome.as_str(), "Success" | "Failure") => {}
            _ => return None,
        }
        let details = value.get("details").unwrap_or(&Value::Null);
        let causes = details.get("causes").and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            failure: outcome == "Failure",
            code: value.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok()).unwrap_or(0),
            message: text(value, "message"),
            reason: text(value, "reason"),
            details_name: text(details, "name"),
            details_kind: text(details, "kind"),
            causes: causes.map(|cause| (text(cause, "reason"), text(cause, "message"))).collect(),
            retry_after: details.get("retryAfterSeconds").and_then(Value::as_u64).filter(|seconds| *seconds > 0),
        })
    }
}

impl RawAnswer {
    /// Takes an HTTP answer apart: status code, the headers `Content-Type` and `Retry-After` as received, and the body.
    /// A `Retry-After` that is a date counts as absent (Kubernetes sends seconds).
    pub fn from_parts(code: u16, content_type: Option<&str>, retry_after: Option<&str>, body: &[u8]) -> Self {
        let content_type =
            content_type.and_then(|t| t.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase();
        // The body decides: proxies relabel what they pass on.
        let status = serde_json::from_slice(body).ok().and_then(|json| RawStatus::from_json(&json));
        let text = if status.is_some() { String::new() } else { readable(body) };
        Self { code, content_type, retry_after: retry_after.and_then(|s| s.trim().parse().ok()), status, text }
    }

    /// The answer to a request that got none: nothing is known of what the server did.
    pub fn no_answer(error: impl Into<String>) -> Self {
        Self { text: error.into(), ..Self::default() }
    }

    /// The code by which the answer is judged. Some refusals come as a `Status` of their own inside a success (an
    /// eviction handler's error inside HTTP 201): then that code counts, and where it claims success too, none does.
    pub(super) fn judged_code(&self) -> u16 {
        match &self.status {
            Some(status) if is_success(self.code) && status.failure => {
                if is_success(status.code) {
                    0
                } else {
                    status.code
                }
            }
            _ => self.code,
        }
    }

    /// The server's message: that of the `Status`, else the body.
    pub(super) fn words(&self) -> &str {
        self.status.as_ref().map(|s| s.message.as_str()).filter(|m| !m.is_empty()).unwrap_or(&self.text)
    }

    /// The server's message, or the bare code where it said nothing.
    pub(super) fn words_or_code(&self) -> String {
        match (self.words(), self.judged_code()) {
            ("", 0) => "no answer".to_owned(),
            ("", code) => format!("HTTP {code}"),
            (words, _) => words.to_owned(),
        }
    }

    /// False where a 404 is about the path, not about the object: plain text, or the API server's word for a resource that
    /// it does not serve.
    pub(super) fn names_an_object(&self) -> bool {
        match &self.status {
            Some(status) => !status.message.starts_with("the server could not find the requested resource"),
            None => self.text.is_empty(),
        }
    }

    /// How long the server asks to wait, where it does; the header comes first.
    pub(super) fn asked_wait(&self) -> Option<u64> {
        self.retry_after.or_else(|| self.status.as_ref()?.retry_after)
    }

    /// [`Self::asked_wait`] as a duration.
    pub(super) fn after(&self) -> Option<Duration> {
        self.asked_wait().map(Duration::from_secs)
    }
}

/// True for 2xx.
pub(super) fn is_success(code: u16) -> bool {
    (200..300).contains(&code)
}

/// A server's words on one line: line ends and other control characters become spaces.
pub(super) fn one_line(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn readable(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_TEXT)]);
    text.trim_end_matches(char::REPLACEMENT_CHARACTER).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_and_other_json_is_not() {
        let body = br#"{"kind":"Status","status":"Failure","message":"m","reason":"r","code":429,
            "details":{"name":"n","kind":"k","causes":[{"reason":"c","message":"cm"},{"message":null}],"retryAfterSeconds":10}}"#;
        let answer = RawAnswer::from_parts(429, Some("application/json; charset=utf-8"), Some(" 7 "), body);
        assert_eq!(answer.content_type, "application/json");
        assert_eq!((answer.retry_after, answer.asked_wait()), (Some(7), Some(7)));
        assert_eq!(answer.text, "");
        let status = answer.status.unwrap();
        assert!(status.failure);
        assert_eq!((status.code, status.retry_after), (429, Some(10)));
        assert_eq!((status.details_name.as_str(), status.details_kind.as_str()), ("n", "k"));
        assert_eq!(status.causes, [("c".into(), "cm".into()), (String::new(), String::new())]);

        for other in ["{}", "[]", "null", "1", r#"{"kind":"Eviction","status":"Success"}"#, r#"{"status":{}}"#] {
            assert_eq!(RawStatus::from_json(&serde_json::from_str(other).unwrap()), None, "{other}");
        }
        let bare = serde_json::json!({"status": "Failure", "code": 70_000, "details": null});
        assert_eq!(RawStatus::from_json(&bare), Some(RawStatus { failure: true, ..RawStatus::default() }));
    }

    #[test]
    fn a_text_body_is_kept_short() {
        let answer = RawAnswer::from_parts(503, None, Some("Wed, 21 Oct 2026 07:28:00 GMT"), b"service unavailable\n");
        assert_eq!((answer.text.as_str(), answer.retry_after, answer.status), ("service unavailable", None, None));
        let long = "ä".repeat(5000);
        let text = RawAnswer::from_parts(502, Some("text/html"), None, long.as_bytes()).text;
        assert!(text.len() <= MAX_TEXT && text.chars().all(|c| c == 'ä'), "{text}");
    }

    #[test]
    fn a_failure_inside_a_success_is_judged_by_its_own_code() {
        let inside = |code| RawAnswer {
            code: 201,
            status: Some(RawStatus { failure: true, code, ..RawStatus::default() }),
            ..RawAnswer::default()
        };
        assert_eq!(inside(500).judged_code(), 500);
        assert_eq!(inside(0).judged_code(), 0);
        assert_eq!(inside(201).judged_code(), 0);
        assert_eq!(RawAnswer { code: 201, ..RawAnswer::default() }.judged_code(), 201);
    }
}
