//! A small client for the simulated API.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test binary uses its part; a broken answer ends the test"
)]

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use safe_drain_sim::{Json, Sim, SimBody};
use serde_json::{Value, json};
use tower::Service;

/// An answer.
#[derive(Debug)]
pub struct Got {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub text: String,
    pub body: Value,
}

impl Got {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("")
    }

    pub fn message(&self) -> &str {
        self.body.text("/message")
    }

    pub fn cause(&self) -> &str {
        self.body.text("/details/causes/0/message")
    }
}

pub async fn send(
    sim: &Sim,
    method: &str,
    path: &str,
    body: Option<&Value>,
    headers: &[(&str, &str)],
) -> http::Response<SimBody> {
    let mut request = http::Request::builder().method(method).uri(path).header("User-Agent", "test/1.0");
    for (k, v) in headers {
        request = request.header(*k, *v);
    }
    let bytes = body.map(Value::to_string).unwrap_or_default();
    let request = request.body(Full::new(Bytes::from(bytes))).unwrap();
    sim.service().call(request).await.unwrap()
}

pub async fn call(sim: &Sim, method: &str, path: &str, body: Option<Value>) -> Got {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    read(send(sim, method, path, body.as_ref(), &[("Content-Type", kind)]).await).await
}

pub async fn read(response: http::Response<SimBody>) -> Got {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    Got { status: parts.status.as_u16(), headers: parts.headers, text, body }
}

pub async fn get(sim: &Sim, path: &str) -> Value {
    call(sim, "GET", path, None).await.body
}

pub async fn evict(sim: &Sim, ns: &str, pod: &str) -> Got {
    evict_with(sim, ns, pod, json!({})).await
}

pub async fn evict_with(sim: &Sim, ns: &str, pod: &str, options: Value) -> Got {
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": ns}, "deleteOptions": options});
    call(sim, "POST", &format!("/api/v1/namespaces/{ns}/pods/{pod}/eviction"), Some(body)).await
}

pub async fn cordon(sim: &Sim, node: &str) {
    let path = format!("/api/v1/nodes/{node}?fieldManager=kubectl-safe-drain");
    let got = call(sim, "PATCH", &path, Some(json!({"spec": {"unschedulable": true}}))).await;
    assert_eq!(got.status, 200);
}

pub async fn restart(sim: &Sim, ns: &str, vm: &str) -> Got {
    let path = format!("/apis/subresources.kubevirt.io/v1/namespaces/{ns}/virtualmachines/{vm}/restart");
    call(sim, "PUT", &path, Some(json!({}))).await
}

/// Names of a namespace's pods that are not over.
pub fn pods(sim: &Sim, ns: &str) -> Vec<Value> {
    let over = |p: &Value| matches!(p.text("/status/phase"), "Succeeded" | "Failed");
    sim.list("Pod").into_iter().filter(|p| p.namespace() == ns && !over(p)).collect()
}

/// The live launchers of a VM.
pub fn launchers(sim: &Sim, ns: &str, vm: &str) -> Vec<Value> {
    pods(sim, ns).into_iter().filter(|p| p.annotation("kubevirt.io/domain") == vm).collect()
}

pub async fn sleep(seconds: f64) {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}

/// An open watch, read line by line.
pub struct Watch {
    body: SimBody,
    rest: String,
}

impl Watch {
    pub async fn open(sim: &Sim, path: &str) -> Self {
        let response = send(sim, "GET", path, None, &[]).await;
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), rest: String::new() }
    }

    /// The next event; `None` when the stream has ended.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((line, rest)) = self.rest.split_once('\n') {
                let event = serde_json::from_str(line).unwrap();
                self.rest = String::from(rest);
                return Some(event);
            }
            let frame = self.body.frame().await?.ok()?;
            self.rest.push_str(&String::from_utf8_lossy(&frame.into_data().unwrap()));
        }
    }

    /// The next event, or `None` when none comes within a second.
    pub async fn soon(&mut self) -> Option<Value> {
        tokio::time::timeout(Duration::from_secs(1), self.next()).await.ok().flatten()
    }

    /// Type and name of the next event.
    pub async fn short(&mut self) -> String {
        match self.soon().await {
            Some(e) => format!("{} {}", e.text("/type"), e.text("/object/metadata/name")),
            None => "nothing".to_owned(),
        }
    }
}
