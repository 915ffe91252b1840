//! A real cluster: the one that `tests/lab/lab run` has started. Its admin changes it as a test wants.

use std::path::PathBuf;
use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use safe_drain::cluster::connect;
use safe_drain::settings::ClientOptions;
use safe_drain_sim::{Json, Kind};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::secs;

/// The cluster of this process.
pub struct Real {
    pub(super) started: Instant,
    kubeconfig: PathBuf,
    admin: Client,
}

impl Real {
    /// Connects to the cluster of the environment. Clients belong to the runtime that made them: one per test.
    pub async fn of_environment() -> Self {
        let kubeconfig = std::env::var_os("KUBECONFIG").map(PathBuf::from).filter(|_| lab().is_some());
        let kubeconfig = kubeconfig.expect("a cluster for tests: run them by `make e2e`");
        let (admin, _) = client(&kubeconfig, None).await;
        Self { started: Instant::now(), kubeconfig, admin }
    }

    pub(super) async fn connect(&self, user: Option<&str>) -> (Client, String) {
        client(&self.kubeconfig, user).await
    }

    /// Sends a request as the admin; `None` for a 404.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Option<Value> {
        let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let bytes = body.map(|b| serde_json::to_vec(b).expect("JSON")).unwrap_or_default();
        let request = Request::builder().method(method.clone()).uri(path).header("Content-Type", content);
        let request = request.body(bytes).expect("a path");
        match self.admin.request::<Value>(request).await {
            Ok(value) => Some(value),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("{method} {path}: {error}\n{body:#?}"),
        }
    }

    /// UID of the priority level in which the API server puts a POST of that user.
    pub async fn priority_level(&self, user: &str, path: &str, body: &Value) -> String {
        let (client, _) = self.connect(Some(user)).await;
        let request = Request::post(path).header("Content-Type", "application/json");
        let request = request.body(kube::client::Body::from(serde_json::to_vec(body).expect("JSON"))).expect("a path");
        let answer = client.send(request).await.expect("an answer");
        let level = answer.headers().get("X-Kubernetes-Pf-Prioritylevel-Uid");
        level.and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned()
    }

    /// Whether a user may do that in all namespaces, as the authorizer knows it by now.
    pub async fn may(&self, user: &str, verb: &str, resource: &str) -> bool {
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": {"verb": verb, "resource": resource}}});
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        self.send(Method::POST, path, Some(&review)).await.is_some_and(|r| r.flag("/status/allowed"))
    }

    /// All objects of a kind; namespace "" for all of them.
    pub async fn list(&self, kind: &str, ns: &str) -> Vec<Value> {
        let mut list = self.send(Method::GET, &path(kind, ns, ""), None).await.unwrap_or_default();
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        }
    }

    /// Creates an object that says its kind.
    pub async fn create(&self, mut object: Value) -> Value {
        let kind = Kind::of_object(object.text("/kind")).expect("a kind of the table");
        object.put("/apiVersion", kind.api_version());
        let path = path(object.text("/kind"), object.namespace(), "");
        self.send(Method::POST, &path, Some(&object)).await.expect("a place for it")
    }

    /// Changes a VMI as its virt-handler does: what anybody else writes into its status is dropped without a word.
    pub async fn patch_vmi(&self, ns: &str, name: &str, patch: &Value) {
        let (client, _) = self.connect(Some("system:serviceaccount:kubevirt:kubevirt-controller")).await;
        let request = Request::patch(path("VirtualMachineInstance", ns, name));
        let request = request.header("Content-Type", "application/merge-patch+json");
        let request = request.body(serde_json::to_vec(patch).expect("JSON")).expect("a path");
        client.request::<Value>(request).await.expect("a VMI to change");
    }

    /// Asks for the start of a VM; false while it cannot be started.
    pub async fn start(&self, ns: &str, vm: &str) -> bool {
        let path = format!("/apis/subresources.kubevirt.io/v1/namespaces/{ns}/virtualmachines/{vm}/start");
        // An empty answer, and the default Accept would be refused.
        let request = Request::put(path).header("Accept", "*/*").header("Content-Type", "application/json");
        let request = request.body(kube::client::Body::from(b"{}".to_vec())).expect("a path");
        self.admin.send(request).await.expect("an answer").status().is_success()
    }

    /// One object.
    pub async fn get(&self, kind: &str, ns: &str, name: &str) -> Option<Value> {
        self.send(Method::GET, &path(kind, ns, name), None).await
    }

    /// Applies a merge patch.
    pub async fn patch(&self, kind: &str, ns: &str, name: &str, patch: &Value) {
        self.send(Method::PATCH, &path(kind, ns, name), Some(patch)).await.expect("an object to change");
    }

    /// Waits until that holds.
    pub async fn until(&self, what: &str, limit: Duration, holds: impl AsyncFn() -> bool) {
        let wait = async {
            while !holds().await {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(limit, wait).await.unwrap_or_else(|_| panic!("gave up waiting for {what}"));
    }
}

/// State folder of the cluster for tests.
pub fn lab() -> Option<PathBuf> {
    std::env::var_os("SAFE_DRAIN_LAB").map(PathBuf::from)
}

async fn client(kubeconfig: &std::path::Path, user: Option<&str>) -> (Client, String) {
    let options = ClientOptions {
        kubeconfig: Some(kubeconfig.to_owned()),
        as_user: user.map(str::to_owned),
        request_timeout: Some(secs(30)),
        ..ClientOptions::default()
    };
    let connection = connect(&options).await.expect("the lab's kubeconfig");
    (connection.client.clone(), connection.server.clone())
}

/// The path of an object, or of a collection where the name is empty.
pub fn path(kind: &str, ns: &str, name: &str) -> String {
    let kind = Kind::of_object(kind).expect("a kind of the table");
    let info = kind.info();
    let root = if info.group.is_empty() { "/api" } else { "/apis" };
    let namespace = if info.namespaced && !ns.is_empty() { format!("/namespaces/{ns}") } else { String::new() };
    let object = if name.is_empty() { String::new() } else { format!("/{name}") };
    format!("{root}/{}{namespace}/{}{object}", kind.api_version(), info.plural)
}
