//! What a client sends, written down on its way to the server.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::header::WARNING;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use safe_drain_sim::Recorded;
use tower::Service;

use super::venue::Venue;

/// Requests in the order in which they were sent.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<Recorded>>>);

impl Log {
    pub(super) fn all(&self) -> Vec<Recorded> {
        self.0.lock().expect("no panic while it is held").clone()
    }

    fn push(&self, request: Recorded) -> usize {
        let mut all = self.0.lock().expect("no panic while it is held");
        all.push(request);
        all.len() - 1
    }

    fn answered(&self, index: usize, status: u16, warning: Option<String>) {
        let mut all = self.0.lock().expect("no panic while it is held");
        let request = all.get_mut(index).expect("it was pushed");
        request.status = status;
        request.warning = warning;
    }
}

/// A client whose requests are written down.
#[derive(Clone)]
pub(super) struct Recording {
    inner: Client,
    venue: Venue,
    log: Log,
}

impl Recording {
    pub(super) fn client(inner: Client, venue: Venue, log: Log) -> Client {
        Client::new(Self { inner, venue, log }, "default")
    }
}

impl Service<Request<Body>> for Recording {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, kube::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { inner, venue, log } = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let index = log.push(Recorded::sent(venue.elapsed(), &parts, body.clone()));
            let answer = inner.send(Request::from_parts(parts, Body::from(body))).await?;
            let warning = answer.headers().get(WARNING).and_then(|v| v.to_str().ok()).map(str::to_owned);
            log.answered(index, answer.status().as_u16(), warning);
            Ok(answer)
        })
    }
}
