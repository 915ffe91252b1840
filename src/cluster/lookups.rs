//! What is looked up once and not watched: claims with the nodes of their volumes, DaemonSets, where CDI lives.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, TryStreamExt};
use kube::Api;
use kube::api::ListParams;
use serde::Deserialize;

use super::problem::{ApiProblem, ProblemKind};
use super::requests::Requests;
use crate::facts::{ClaimFacts, Key, Strategy, wire};

/// Requests in flight at a time.
const PARALLEL: usize = 32;

/// Up to so many claims of one namespace, and so many volumes, are read one by one; more are listed.
const ONE_BY_ONE: (usize, usize) = (4, 64);

impl Requests {
    /// These claims, with the nodes that their volumes are bound to. A claim that does not exist is left out.
    pub async fn claims(&self, keys: &BTreeSet<Key>) -> Result<BTreeMap<Key, ClaimFacts>, ApiProblem> {
        let mut namespaces: BTreeMap<&str, Vec<&Key>> = BTreeMap::new();
        for key in keys {
            namespaces.entry(&key.namespace).or_default().push(key);
        }
        let claims: Vec<(Key, wire::PersistentVolumeClaim)> = futures::stream::iter(namespaces)
            .map(|(namespace, wanted)| self.claims_in(namespace, wanted))
            .buffer_unordered(PARALLEL)
            .try_concat()
            .await?;
        let names: BTreeSet<String> = claims.iter().filter_map(|(_, c)| c.volume_name().map(str::to_owned)).collect();
        let mut volumes = self.volumes(&names).await?;
        let with_volume = |(key, claim): (Key, wire::PersistentVolumeClaim)| {
            let volume = claim.volume_name().map(str::to_owned).and_then(|name| volumes.remove(&name));
            (key, ClaimFacts::new(claim, volume))
        };
        Ok(claims.into_iter().map(with_volume).collect())
    }

    async fn claims_in(
        &self,
        namespace: &str,
        wanted: Vec<&Key>,
    ) -> Result<Vec<(Key, wire::PersistentVolumeClaim)>, ApiProblem> {
        if wanted.len() <= ONE_BY_ONE.0 {
            let each =
                wanted.into_iter().map(|key| async move { Ok::<_, ApiProblem>((key.clone(), self.get(key).await?)) });
            let found: Vec<(Key, Option<wire::PersistentVolumeClaim>)> = futures::future::try_join_all(each).await?;
            return Ok(found.into_iter().filter_map(|(key, claim)| Some((key, claim?))).collect());
        }
        let wanted: BTreeSet<&str> = wanted.into_iter().map(|key| key.name.as_str()).collect();
        let api: Api<wire::PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
        let all = self.pages(api, ListParams::default()).await?;
        Ok(all
            .into_iter()
            .map(|claim| (Key::new(namespace, kube::ResourceExt::name_any(&claim)), claim))
            .filter(|(key, _)| wanted.contains(key.name.as_str()))
            .collect())
    }

    async fn volumes(&self, names: &BTreeSet<String>) -> Result<BTreeMap<String, wire::PersistentVolume>, ApiProblem> {
        let api: Api<wire::PersistentVolume> = Api::all(self.client.clone());
        if names.len() > ONE_BY_ONE.1 {
            let all = self.pages(api, ListParams::default()).await?;
            let pairs = all.into_iter().map(|volume| (kube::ResourceExt::name_any(&volume), volume));
            return Ok(pairs.filter(|(name, _)| names.contains(name)).collect());
        }
        let found: Vec<(String, Option<wire::PersistentVolume>)> = futures::stream::iter(names)
            .map(|name| async { Ok::<_, ApiProblem>((name.clone(), self.bounded(api.get_opt(name)).await?)) })
            .buffer_unordered(PARALLEL)
            .try_collect()
            .await?;
        Ok(found.into_iter().filter_map(|(name, volume)| Some((name, volume?))).collect())
    }

    /// Which of these DaemonSets exist. What could not be read is missing, with the first reason beside it.
    pub async fn daemon_sets(&self, keys: &BTreeSet<Key>) -> (BTreeMap<Key, bool>, Option<ApiProblem>) {
        each(keys, async |key| self.daemon_set_exists(key).await.map(Some)).await
    }

    /// The evictionStrategy in the templates of these VMI replica sets. What could not be read is missing, with the first
    /// reason beside it.
    pub async fn replica_sets(&self, keys: &BTreeSet<Key>) -> (BTreeMap<Key, Option<Strategy>>, Option<ApiProblem>) {
        let strategy = async |key: &Key| {
            let set = self.get(key).await?;
            Ok(set.map(wire::VirtualMachineInstanceReplicaSet::template_strategy))
        };
        each(keys, strategy).await
    }

    /// How far the transfers into these claims are, as CDI writes it (`73.42%`); those that do not say it are left out.
    pub async fn transfers(&self, claims: &BTreeSet<Key>) -> BTreeMap<Key, String> {
        futures::stream::iter(claims)
            .map(|key| async move {
                let Key { namespace, name } = key;
                let path = format!("/apis/cdi.kubevirt.io/v1beta1/namespaces/{namespace}/datavolumes/{name}");
                let progress = self.get_path::<DataVolume>(&path).await.ok()?.status.progress?;
                progress.starts_with(|c: char| c.is_ascii_digit()).then(|| (key.clone(), progress))
            })
            .buffer_unordered(PARALLEL)
            .filter_map(futures::future::ready)
            .collect()
            .await
    }

    /// Namespace of CDI's own pods. The CDI object has none; its upload API is served by a service that lives there.
    pub async fn cdi_namespace(&self) -> Result<Option<String>, ApiProblem> {
        let path = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.upload.cdi.kubevirt.io";
        match self.get_path::<ApiService>(path).await {
            Ok(found) => Ok(found.spec.service.map(|s| s.namespace).filter(|ns| !ns.is_empty())),
            Err(problem) if problem.kind == ProblemKind::NotFound => Ok(None),
            Err(problem) => Err(problem),
        }
    }
}

/// Asks about each of these. What does not exist is left out; what could not be read is missing, with the first reason beside it.
async fn each<T>(
    keys: &BTreeSet<Key>,
    ask: impl AsyncFn(&Key) -> Result<Option<T>, ApiProblem>,
) -> (BTreeMap<Key, T>, Option<ApiProblem>) {
    let ask = &ask;
    let answers = futures::stream::iter(keys).map(|key| async move { (key, ask(key).await) });
    let mut answers = std::pin::pin!(answers.buffer_unordered(PARALLEL));
    let (mut known, mut problem) = (BTreeMap::new(), None);
    while let Some((key, answer)) = answers.next().await {
        match answer {
            Ok(Some(found)) => {
                known.insert(key.clone(), found);
            }
            Ok(None) => {}
            Err(e) => problem = problem.or(Some(e)),
        }
    }
    (known, problem)
}

#[derive(Deserialize)]
struct DataVolume {
    #[serde(default)]
    status: DataVolumeStatus,
}

#[derive(Deserialize, Default)]
struct DataVolumeStatus {
    progress: Option<String>,
}

#[derive(Deserialize)]
struct ApiService {
    #[serde(default)]
    spec: ApiServiceSpec,
}

#[derive(Deserialize, Default)]
struct ApiServiceSpec {
    service: Option<ServiceReference>,
}

#[derive(Deserialize)]
struct ServiceReference {
    #[serde(default)]
    namespace: String,
}
