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

/// Something that happens right before the first request that fits is sent.
pub(super) struct Before {
    pub(super) method: &'static str,
    pub(super) part: &'static str,
    pub(super) work: Box<dyn FnOnce() + Send>,
}

/// A client whose requests are written down.
#[derive(Clone)]
pub(super) struct Recording {
    inner: Client,
    venue: Venue,
    log: Log,
    before: Arc<Mutex<Vec<Before>>>,
}

impl Recording {
    pub(super) fn client(inner: Client, venue: Venue, log: Log, before: Vec<Before>) -> Client {
        Client::new(Self { inner, venue, log, before: Arc::new(Mutex::new(before)) }, "default")
    }

    fn what_comes_before(&self, request: &Recorded) -> Option<Before> {
        let mut before = self.before.lock().expect("no panic while it is held");
        let fits = |b: &Before| b.method == request.method && request.path.contains(b.part);
        before.iter().position(fits).map(|n| before.remove(n))
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
        let this = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let sent = Recorded::sent(this.venue.elapsed(), &parts, body.clone());
            if let Some(before) = this.what_comes_before(&sent) {
                (before.work)();
            }
            let index = this.log.push(sent);
            let answer = this.inner.send(Request::from_parts(parts, Body::from(body))).await?;
            let warning = answer.headers().get(WARNING).and_then(|v| v.to_str().ok()).map(str::to_owned);
            this.log.answered(index, answer.status().as_u16(), warning);
            Ok(answer)
        })
    }
}
