//! The API server: one request in, one answer out. Order of work as in a real one: faults of the script, access, then the handler.

pub mod access;
pub mod answer;
mod discovery;
mod evict;
pub mod fault;
mod patch;
mod read;
pub mod record;
pub mod route;
mod subresource;
mod watch;
mod webhook;
mod write;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::BodyExt;

use self::answer::{Answer, Content};
use self::fault::Then;
use self::record::Recorded;
use self::route::Request;
use crate::body::SimBody;
use crate::cluster::Cluster;
use crate::sim::Shared;

/// A connection to the simulated API server: what an HTTP client is built on.
#[derive(Clone, Debug)]
pub struct SimService {
    shared: Arc<Shared>,
}

impl SimService {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl<B> tower::Service<http::Request<B>> for SimService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<SimBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<SimBody>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let raw = body.collect().await.map_err(|e| io::Error::other(e.into()))?.to_bytes();
            serve(&shared, Request::read(&parts, raw)).await
        })
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer")
}

async fn serve(shared: &Arc<Shared>, request: Request) -> io::Result<Response<SimBody>> {
    let (index, latency, then) = shared.with(|c| {
        c.requests.push(Recorded::arrived(c.elapsed(), &request));
        let full = format!("{}?{}", request.path, request.query_text());
        let evicts = request.method == "POST" && request.subresource == "eviction";
        let held_up = if evicts { webhook::held_up(c) } else { std::time::Duration::ZERO };
        (c.requests.len() - 1, c.opts.latency + held_up, fault::meet(c, &request.method, &full))
    });
    if !latency.is_zero() {
        tokio::time::sleep(latency).await;
    }
    let (mut late, mut lost) = (std::time::Duration::ZERO, false);
    match then {
        None | Some(Then::CutWatches | Then::ExpireWatches) => {}
        Some(Then::Answer { status, headers, content_type, body }) => {
            let answer = Answer {
                status,
                headers,
                content: Content::Text(content_type, body),
                after: std::time::Duration::ZERO,
            };
            return Ok(respond(shared, index, answer));
        }
        Some(Then::Slow(by)) => tokio::time::sleep(by).await,
        Some(Then::SlowAnswer(by)) => late = by,
        Some(Then::Hang) => std::future::pending::<()>().await,
        Some(Then::Disconnect | Then::Gone) => return Err(broken()),
        Some(Then::DisconnectAfter) => lost = true,
    }
    let answer = shared.with(|c| handle(c, &request));
    if lost {
        return Err(broken());
    }
    let wait = late + answer.after;
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    Ok(respond(shared, index, answer))
}

fn respond(shared: &Arc<Shared>, index: usize, answer: Answer) -> Response<SimBody> {
    let warning = answer.headers.iter().find(|(n, _)| n == "Warning").map(|(_, v)| v.clone());
    shared.with(|c| {
        if let Some(r) = c.requests.get_mut(index) {
            r.status = answer.status;
            r.warning = warning;
        }
    });
    let mut response = Response::builder().status(StatusCode::from_u16(answer.status).expect("a code of this crate"));
    for (name, value) in &answer.headers {
        response = response.header(name.as_str(), value.as_str());
    }
    response = response
        .header("X-Kubernetes-Pf-Flowschema-Uid", "63fbb555-c615-4d84-b209-1ef88542bf0e")
        .header("X-Kubernetes-Pf-Prioritylevel-Uid", "dd0f8716-5143-4af7-ab46-2013990bb480");
    let body = match answer.content {
        Content::Json(value) => {
            response = response.header("Content-Type", "application/json");
            SimBody::full(value.to_string())
        }
        Content::Text(content_type, text) => {
            response = response.header("Content-Type", content_type);
            SimBody::full(text)
        }
        Content::Empty => SimBody::full(Bytes::new()),
        Content::Watch(spec) => {
            response = response.header("Content-Type", "application/json");
            watch::open(shared, *spec)
        }
    };
    response.body(body).expect("headers of this crate")
}

fn handle(cluster: &mut Cluster, request: &Request) -> Answer {
    if request.resource.is_empty() {
        return discovery::answer(cluster, request);
    }
    if let Some(refusal) = access::check(cluster, request) {
        return refusal;
    }
    match (request.group.as_str(), request.resource.as_str()) {
        ("authorization.k8s.io", "selfsubjectaccessreviews") => {
            return access::review(cluster, request.body.as_ref().unwrap_or(&serde_json::Value::Null));
        }
        ("subresources.kubevirt.io", _) => return subresource::answer(cluster, request),
        _ => {}
    }
    let Some(kind) = request.kind().filter(|k| discovery::installed(cluster, *k)) else {
        return answer::no_such_path();
    };
    match (request.method.as_str(), request.name.is_empty(), request.subresource.as_str()) {
        ("GET", true, _) => read::list(cluster, request, kind),
        ("GET", false, "" | "status") => read::get(cluster, request, kind),
        ("POST", true, _) => write::create(cluster, request, kind),
        ("POST", false, "eviction") if request.resource == "pods" => evict::answer(cluster, request),
        ("PUT", false, "" | "status") => write::replace(cluster, request, kind),
        ("PATCH", false, "" | "status") => write::patch(cluster, request, kind),
        ("DELETE", false, "") => write::delete(cluster, request, kind),
        ("GET" | "POST" | "PUT" | "PATCH" | "DELETE", ..) => answer::failure(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
            serde_json::json!({}),
        ),
        _ => answer::no_such_path(),
    }
}
