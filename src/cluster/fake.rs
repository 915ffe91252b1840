//! A server in a closure, for tests that look at requests byte for byte.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tower::Service;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) line: String,
    pub(super) headers: http::HeaderMap,
    pub(super) body: Value,
}

/// Answers by method and path, and remembers what it was asked.
#[derive(Clone)]
pub(super) struct Fake {
    answer: Arc<dyn Fn(&str) -> Answer + Send + Sync>,
    seen: Arc<Mutex<VecDeque<Seen>>>,
}

/// Code, headers, body. A body of `None` never ends.
pub(super) type Answer = (u16, Vec<(&'static str, &'static str)>, Option<String>);

impl Fake {
    /// A server that answers each `METHOD /path?query` by this function.
    pub(super) fn new(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        Self { answer: Arc::new(answer), seen: Arc::default() }
    }

    /// A client of it.
    pub(super) fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// The requests since the last call.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().drain(..).collect()
    }
}

/// A JSON answer.
pub(super) fn json(code: u16, body: &Value) -> Answer {
    (code, vec![("content-type", "application/json")], Some(body.to_string()))
}

impl Service<Request<Body>> for Fake {
    type Response = Response<Body>;
    type Error = std::convert::Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let fake = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let line = format!("{} {}", parts.method, parts.uri);
            let (code, headers, answer) = (fake.answer)(&line);
            fake.seen.lock().unwrap().push_back(Seen {
                line,
                headers: parts.headers,
                body: serde_json::from_slice(&body).unwrap_or(Value::Null),
            });
            let Some(answer) = answer else { return std::future::pending().await };
            let mut response = Response::builder().status(code);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            Ok(response.body(Body::from(answer.into_bytes())).unwrap())
        })
    }
}
