//! The outermost layer of every connection: it logs each request, bounds the wait for an answer's headers, and lets the
//! client beneath be replaced while clones of it are in use.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::time::Instant;
use tower::{BoxError, Service};

/// The client in use now, shared by everything that was made from the gate.
#[derive(Clone)]
pub(super) struct Current(Arc<RwLock<Client>>);

impl Current {
    pub(super) fn new(client: Client) -> Self {
        Self(Arc::new(RwLock::new(client)))
    }

    pub(super) fn get(&self) -> Client {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn replace(&self, client: Client) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = client;
    }
}

/// A client as a service, for layers on top of it.
#[derive(Clone)]
pub(super) struct Through(pub(super) Client);

impl Service<Request<Body>> for Through {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Answering<BoxError>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move { Ok(client.send(request).await?) })
    }
}

type Answering<E> = Pin<Box<dyn Future<Output = Result<Response<Body>, E>> + Send>>;

/// A service in front of the current client.
///
/// The bound covers headers only: the body of a watch lasts as long as the watch. It also covers the opening of a watch,
/// which nothing else would.
pub(super) struct Gate {
    current: Current,
    limit: Option<Duration>,
}

impl Gate {
    /// A client whose every request passes the gate.
    pub(super) fn client(current: Current, limit: Option<Duration>) -> Client {
        let namespace = current.get().default_namespace().to_owned();
        Client::new(Self { current, limit }, namespace)
    }
}

impl Service<Request<Body>> for Gate {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = Answering<kube::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.current.get();
        let limit = self.limit;
        let line = tracing::enabled!(target: "safe_drain::http", tracing::Level::DEBUG).then(|| {
            let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
            // The token of a further page is long and tells nothing.
            let path = path.split_once("&continue=").map_or(path, |(path, _)| path);
            format!("{} {path}", request.method())
        });
        Box::pin(async move {
            let start = Instant::now();
            let result = within(limit, client.send(request)).await;
            if let Some(line) = line {
                let ms = start.elapsed().as_millis();
                let code = result.as_ref().map_or("failed".to_owned(), |answer| answer.status().as_str().to_owned());
                tracing::debug!(target: "safe_drain::http", "{line} {code} {ms}ms");
            }
            result
        })
    }
}

async fn within<T>(
    limit: Option<Duration>,
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    let Some(limit) = limit else { return call.await };
    tokio::time::timeout(limit, call).await.unwrap_or_else(|_| {
        Err(kube::Error::Service(io::Error::new(io::ErrorKind::TimedOut, super::ApiProblem::timed_out(limit)).into()))
    })
}
