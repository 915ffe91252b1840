//! Single requests that change something, each sent exactly once: what happens next depends on the answer, which is
//! returned whole.

use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{Method, Request, Response};
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use serde_json::{Value, json};

use super::problem::{ApiProblem, explain};
use super::requests::Requests;
use crate::answer::RawAnswer;
use crate::facts::{FIELD_MANAGER, Key, NodeFacts, PodKey, wire};

impl Requests {
    /// Marks a node unschedulable. With a resource version the write is refused with 409 if the node changed since;
    /// read it again then.
    pub async fn cordon(
        &self,
        node: &str,
        resource_version: Option<&str>,
        dry_run: bool,
    ) -> Result<NodeFacts, ApiProblem> {
        self.set_unschedulable(node, resource_version, json!(true), dry_run).await
    }

    /// Lifts a cordon.
    pub async fn uncordon(
        &self,
        node: &str,
        resource_version: Option<&str>,
        dry_run: bool,
    ) -> Result<NodeFacts, ApiProblem> {
        self.set_unschedulable(node, resource_version, Value::Null, dry_run).await
    }

    async fn set_unschedulable(
        &self,
        node: &str,
        resource_version: Option<&str>,
        value: Value,
        dry_run: bool,
    ) -> Result<NodeFacts, ApiProblem> {
        let mut patch = json!({"spec": {"unschedulable": value}});
        if let Some(version) = resource_version {
            patch["metadata"] = json!({"resourceVersion": version});
        }
        let params = PatchParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let api: Api<wire::Node> = Api::all(self.client.clone());
        Ok(self.bounded(api.patch(node, &params, &Patch::Merge(patch))).await?.into())
    }

    /// Evicts a pod, if it still has this UID. `grace` overrides the pod's own grace period.
    pub async fn evict(&self, pod: &PodKey, grace: Option<i64>, dry_run: bool) -> RawAnswer {
        let body = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": delete_options(&pod.uid, grace, dry_run),
        });
        let path = format!("/api/v1/namespaces/{}/pods/{}/eviction{}", pod.namespace, pod.name, query(dry_run));
        self.raw(Method::POST, &path, "application/json", &body).await
    }

    /// Deletes a pod past all budgets, if it still has this UID.
    pub async fn delete_pod(&self, pod: &PodKey, grace: Option<i64>, dry_run: bool) -> RawAnswer {
        let path = format!("/api/v1/namespaces/{}/pods/{}{}", pod.namespace, pod.name, query(dry_run));
        self.raw(Method::DELETE, &path, "application/json", &delete_options(&pod.uid, grace, dry_run)).await
    }

    /// Restarts a VM. KubeVirt heeds a dry run in the body only: with the query parameter the restart is real.
    pub async fn restart_vm(&self, vm: &Key, dry_run: bool) -> RawAnswer {
        self.vm_subresource("virtualmachines", vm, "restart", with_dry_run(json!({}), dry_run)).await
    }

    /// Takes the evacuation mark off a VMI that was marked for this node.
    pub async fn cancel_evacuation(&self, vmi: &Key, node: &str, dry_run: bool) -> RawAnswer {
        let body = with_dry_run(json!({"evacuationNodeName": node}), dry_run);
        self.vm_subresource("virtualmachineinstances", vmi, "evacuate/cancel", body).await
    }

    /// Deletes a migration, if it still has this UID: KubeVirt then aborts it.
    pub async fn delete_migration(&self, key: &Key, uid: &str, dry_run: bool) -> RawAnswer {
        let path = format!(
            "/apis/kubevirt.io/v1/namespaces/{}/virtualmachineinstancemigrations/{}{}",
            key.namespace,
            key.name,
            query(dry_run)
        );
        self.raw(Method::DELETE, &path, "application/json", &delete_options(uid, None, dry_run)).await
    }

    /// The subresource API answers 406 to `Accept: application/json`.
    async fn vm_subresource(&self, plural: &str, key: &Key, subresource: &str, body: Value) -> RawAnswer {
        let path = format!(
            "/apis/subresources.kubevirt.io/v1/namespaces/{}/{plural}/{}/{subresource}",
            key.namespace, key.name
        );
        self.raw(Method::PUT, &path, "*/*", &body).await
    }

    /// Sends a request and returns the answer whatever it is. No answer is code 0 with the reason as text.
    async fn raw(&self, method: Method, path: &str, accept: &str, body: &Value) -> RawAnswer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(ACCEPT, accept)
            .header(CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_string().into_bytes()));
        let request = match request {
            Ok(request) => request,
            Err(e) => return RawAnswer::no_answer(format!("the request could not be built: {e}")),
        };
        let exchange = async {
            let response = self.client.send(request).await?;
            let (parts, body) = response.into_parts();
            let bytes = body.collect_bytes().await?;
            Ok::<_, kube::Error>(raw_answer(&Response::from_parts(parts, ()), &bytes))
        };
        let outcome = match self.limit {
            None => exchange.await,
            Some(limit) => match tokio::time::timeout(limit, exchange).await {
                Ok(outcome) => outcome,
                Err(_) => return RawAnswer::no_answer(ApiProblem::timed_out(limit).message),
            },
        };
        outcome.unwrap_or_else(|e| RawAnswer::no_answer(explain(&e).message))
    }
}

fn query(dry_run: bool) -> &'static str {
    if dry_run { "?dryRun=All" } else { "" }
}

fn with_dry_run(mut body: Value, dry_run: bool) -> Value {
    if dry_run {
        body["dryRun"] = json!(["All"]);
    }
    body
}

fn delete_options(uid: &str, grace: Option<i64>, dry_run: bool) -> Value {
    let mut options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": uid},
    });
    if let Some(seconds) = grace {
        options["gracePeriodSeconds"] = json!(seconds);
    }
    with_dry_run(options, dry_run)
}

/// An answer in the classifiers' terms.
pub(super) fn raw_answer(head: &Response<()>, body: &[u8]) -> RawAnswer {
    let header = |name| head.headers().get(name).and_then(|v: &http::HeaderValue| v.to_str().ok());
    RawAnswer::from_parts(head.status().as_u16(), header(CONTENT_TYPE), header(RETRY_AFTER), body)
}

#[cfg(test)]
mod tests;
