//! Single requests that read. Each has its own limit, and none is repeated here.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::api::{ListParams, PostParams};
use kube::core::{NamespaceResourceScope, PartialObjectMeta};
use kube::{Api, Client, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::access::Right;
use super::problem::ApiProblem;
use crate::facts::{Key, KubeVirtFacts, MigrationFacts, NodeFacts, PodFacts, VmFacts, VmiFacts, wire};

/// Objects per page of a list.
pub(super) const PAGE: u32 = 100;

/// Single requests to the API server.
#[derive(Clone)]
pub struct Requests {
    pub(super) client: Client,
    pub(super) limit: Option<Duration>,
}

impl Debug for Requests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Requests").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// What a node is attached to, in the words of a `VolumeAttachment`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Name of the object.
    pub name: String,
    /// The driver that attaches.
    pub attacher: String,
    /// Name of the PersistentVolume, where it is one.
    pub volume: Option<String>,
    /// True once it is attached.
    pub attached: bool,
}

impl Requests {
    /// Requests over a client; `None` is no limit.
    pub fn new(client: Client, limit: Option<Duration>) -> Self {
        Self { client, limit }
    }

    /// One node; `None` if there is none of that name.
    pub async fn get_node(&self, name: &str) -> Result<Option<NodeFacts>, ApiProblem> {
        let api: Api<wire::Node> = Api::all(self.client.clone());
        Ok(self.bounded(api.get_opt(name)).await?.map(NodeFacts::from))
    }

    /// All nodes, or those with the labels of a selector.
    pub async fn list_nodes(&self, selector: Option<&str>) -> Result<Vec<NodeFacts>, ApiProblem> {
        let params = selector.map_or_else(ListParams::default, |s| ListParams::default().labels(s));
        let nodes = self.pages::<wire::Node>(Api::all(self.client.clone()), params).await?;
        Ok(nodes.into_iter().map(NodeFacts::from).collect())
    }

    /// One pod; `None` if there is none of that name.
    pub async fn get_pod(&self, key: &Key) -> Result<Option<PodFacts>, ApiProblem> {
        Ok(self.get::<wire::Pod>(key).await?.map(PodFacts::from))
    }

    /// Pods bound to a node.
    pub async fn list_pods_on(&self, node: &str) -> Result<Vec<PodFacts>, ApiProblem> {
        let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let pods = self.pages::<wire::Pod>(Api::all(self.client.clone()), params).await?;
        Ok(pods.into_iter().map(PodFacts::from).collect())
    }

    /// Pods of a namespace that have not started: no node took them, or their containers do not run yet.
    pub async fn list_pending_pods(&self, namespace: &str) -> Result<Vec<PodFacts>, ApiProblem> {
        let params = ListParams::default().fields("status.phase=Pending");
        let pods = self.pages::<wire::Pod>(Api::namespaced(self.client.clone(), namespace), params).await?;
        Ok(pods.into_iter().map(PodFacts::from).collect())
    }

    /// One VMI; `None` if there is none of that name.
    pub async fn get_vmi(&self, key: &Key) -> Result<Option<VmiFacts>, ApiProblem> {
        Ok(self.get::<wire::VirtualMachineInstance>(key).await?.map(VmiFacts::from))
    }

    /// One VM; `None` if there is none of that name.
    pub async fn get_vm(&self, key: &Key) -> Result<Option<VmFacts>, ApiProblem> {
        Ok(self.get::<wire::VirtualMachine>(key).await?.map(VmFacts::from))
    }

    /// One KubeVirt CR; `None` if there is none of that name.
    pub async fn get_kubevirt(&self, key: &Key) -> Result<Option<KubeVirtFacts>, ApiProblem> {
        Ok(self.get::<wire::KubeVirt>(key).await?.map(KubeVirtFacts::from))
    }

    /// All VMIs.
    pub async fn list_vmis(&self) -> Result<Vec<VmiFacts>, ApiProblem> {
        let all = self.pages::<wire::VirtualMachineInstance>(Api::all(self.client.clone()), ListParams::default());
        Ok(all.await?.into_iter().map(VmiFacts::from).collect())
    }

    /// All migrations.
    pub async fn list_migrations(&self) -> Result<Vec<MigrationFacts>, ApiProblem> {
        let params = ListParams::default();
        let all = self.pages::<wire::VirtualMachineInstanceMigration>(Api::all(self.client.clone()), params).await?;
        Ok(all.into_iter().map(MigrationFacts::from).collect())
    }

    /// One migration; `None` if there is none of that name.
    pub async fn get_migration(&self, key: &Key) -> Result<Option<MigrationFacts>, ApiProblem> {
        Ok(self.get::<wire::VirtualMachineInstanceMigration>(key).await?.map(MigrationFacts::from))
    }

    /// All KubeVirt CRs.
    pub async fn list_kubevirts(&self) -> Result<Vec<KubeVirtFacts>, ApiProblem> {
        let all = self.pages::<wire::KubeVirt>(Api::all(self.client.clone()), ListParams::default()).await?;
        Ok(all.into_iter().map(KubeVirtFacts::from).collect())
    }

    /// The API server's version, for example `v1.36.3`.
    pub async fn server_version(&self) -> Result<String, ApiProblem> {
        Ok(self.bounded(self.client.apiserver_version()).await?.git_version)
    }

    /// Names of the API groups. KubeVirt is installed if `kubevirt.io` is among them.
    pub async fn api_groups(&self) -> Result<BTreeSet<String>, ApiProblem> {
        let list = self.bounded(self.client.list_api_groups()).await?;
        Ok(list.groups.into_iter().map(|g| g.name).collect())
    }

    /// True if a DaemonSet of that name exists.
    pub async fn daemon_set_exists(&self, key: &Key) -> Result<bool, ApiProblem> {
        type Meta = PartialObjectMeta<k8s_openapi::api::apps::v1::DaemonSet>;
        let api: Api<Meta> = Api::namespaced(self.client.clone(), &key.namespace);
        Ok(self.bounded(api.get_metadata_opt(&key.name)).await?.is_some())
    }

    /// True if the user has a right, in one namespace or (`None`) in the whole cluster.
    pub async fn access_review(&self, right: &Right, namespace: Option<&str>) -> Result<bool, ApiProblem> {
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    verb: Some(right.verb.clone()),
                    group: Some(right.group.clone()),
                    resource: Some(right.resource.clone()),
                    subresource: right.subresource.clone(),
                    namespace: namespace.map(str::to_owned),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let answer = self.bounded(api.create(&PostParams::default(), &review)).await?;
        Ok(answer.status.is_some_and(|s| s.allowed))
    }

    /// Volumes that are attached to a node, or on their way.
    pub async fn volume_attachments(&self, node: &str) -> Result<Vec<Attachment>, ApiProblem> {
        let mut found = Vec::new();
        let mut page = String::new();
        loop {
            let path = format!("/apis/storage.k8s.io/v1/volumeattachments?limit={PAGE}{page}");
            let list: AttachmentList = self.get_path(&path).await?;
            found.extend(list.items.into_iter().filter(|a| a.spec.node_name == node).map(Attachment::from));
            match list.metadata.next.filter(|token| !token.is_empty()) {
                Some(token) => page = format!("&continue={}", encoded(&token)),
                None => return Ok(found),
            }
        }
    }

    /// GET of a path.
    pub(super) async fn get_path<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiProblem> {
        let request = http::Request::get(path).body(Vec::new()).map_err(ApiProblem::unreadable)?;
        self.bounded(self.client.request(request)).await
    }

    pub(super) async fn get<K>(&self, key: &Key) -> Result<Option<K>, ApiProblem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &key.namespace);
        self.bounded(api.get_opt(&key.name)).await
    }

    /// A whole list, page by page; the limit holds for each page.
    pub(super) async fn pages<K>(&self, api: Api<K>, params: ListParams) -> Result<Vec<K>, ApiProblem>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        let mut params = params.limit(PAGE);
        let mut all = Vec::new();
        loop {
            let page = self.bounded(api.list(&params)).await?;
            all.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => return Ok(all),
            }
        }
    }

    pub(super) async fn bounded<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, ApiProblem> {
        match self.limit {
            None => Ok(call.await?),
            Some(limit) => match tokio::time::timeout(limit, call).await {
                Ok(result) => Ok(result?),
                Err(_) => Err(ApiProblem::timed_out(limit)),
            },
        }
    }
}

/// Text as a value in a query.
fn encoded(text: &str) -> String {
    let mut query = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            query.push(char::from(byte));
        } else {
            query.push('%');
            query.extend([byte >> 4, byte & 15].map(|digit| char::from(b"0123456789ABCDEF"[usize::from(digit)])));
        }
    }
    query
}

#[derive(Deserialize)]
struct AttachmentList {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(default)]
    items: Vec<AttachmentWire>,
}

#[derive(Deserialize, Default)]
struct ListMeta {
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct AttachmentWire {
    metadata: Named,
    spec: AttachmentSpec,
    #[serde(default)]
    status: AttachmentStatus,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttachmentSpec {
    attacher: String,
    node_name: String,
    #[serde(default)]
    source: AttachmentSource,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct AttachmentSource {
    persistent_volume_name: Option<String>,
}

#[derive(Deserialize, Default)]
struct AttachmentStatus {
    #[serde(default)]
    attached: bool,
}

impl From<AttachmentWire> for Attachment {
    fn from(wire: AttachmentWire) -> Self {
        Self {
            name: wire.metadata.name,
            attacher: wire.spec.attacher,
            volume: wire.spec.source.persistent_volume_name,
            attached: wire.status.attached,
        }
    }
}
