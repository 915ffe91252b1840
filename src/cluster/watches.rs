//! Watches, as one stream of changes in the plugin's own terms.
//!
//! Each kind has a follower: list, then watch, for ever. A watch that ends is opened again where it stood, which is
//! routine and not reported; after a failure everything is listed anew, so that nothing can have been missed. Objects
//! become facts as they arrive; one that cannot be read spoils no list.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::stream::{BoxStream, SelectAll};
use futures::{Stream, StreamExt};
use kube::core::{DeserializeGuard, NamespaceResourceScope, ObjectMeta};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::problem::ApiProblem;
use super::requests::PAGE;
use crate::facts::{APP_LABEL, Change, Delta, HOTPLUG, Key, LAUNCHER, PodKey, wire};

/// First and longest pause after a failure.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

/// Failures further apart than this are not one outage.
const CALM: Duration = Duration::from_secs(10);

/// After so many seconds the server ends a watch, which is then resumed. It also bounds how long a connection that
/// died without a word goes unnoticed: the address of a drained control plane node may move.
const WATCH_SECONDS: u32 = 60;

/// A set of objects that is watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watched {
    /// Pods bound to one node.
    Pods(String),
    /// Launchers and hot-plug pods, wherever they run.
    VmPods,
    /// Nodes.
    Nodes,
    /// Disruption budgets.
    Budgets,
    /// VMIs.
    Vmis,
    /// VMs.
    Vms,
    /// Migrations.
    Migrations,
    /// KubeVirt CRs.
    KubeVirts,
}

impl Watched {
    /// True for KubeVirt's kinds.
    pub fn is_kubevirt(&self) -> bool {
        matches!(self, Self::Vmis | Self::Vms | Self::Migrations | Self::KubeVirts)
    }

    /// API group and resource.
    pub fn resource(&self) -> (&'static str, &'static str) {
        match self {
            Self::Pods(_) | Self::VmPods => ("", "pods"),
            Self::Nodes => ("", "nodes"),
            Self::Budgets => ("policy", "poddisruptionbudgets"),
            Self::Vmis => ("kubevirt.io", "virtualmachineinstances"),
            Self::Vms => ("kubevirt.io", "virtualmachines"),
            Self::Migrations => ("kubevirt.io", "virtualmachineinstancemigrations"),
            Self::KubeVirts => ("kubevirt.io", "kubevirts"),
        }
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pods(node) => write!(f, "pods of {node}"),
            Self::VmPods => f.write_str("pods of VMs"),
            Self::Nodes => f.write_str("nodes"),
            Self::Budgets => f.write_str("disruption budgets"),
            Self::Vmis => f.write_str("virtual machine instances"),
            Self::Vms => f.write_str("virtual machines"),
            Self::Migrations => f.write_str("migrations"),
            Self::KubeVirts => f.write_str("KubeVirt objects"),
        }
    }
}

/// What watches tell.
#[derive(Debug, Clone)]
pub enum WatchItem {
    /// Something changed.
    Change(Box<Change>),
    /// A set is complete for the first time; its `Reset` came right before.
    Synced(Watched),
    /// A list or the opening of a watch failed. It is tried again without end; comes once for each failed try.
    Trouble {
        /// What is not seen meanwhile.
        what: Watched,
        /// Why.
        problem: ApiProblem,
        /// When it began.
        since: Instant,
    },
    /// The trouble is over; the `Reset` came right before.
    Recovered {
        /// What is seen again.
        what: Watched,
    },
    /// One object cannot be read. The others are not affected, and what was known of it stands.
    Unreadable {
        /// The set that it belongs to.
        what: Watched,
        /// Its name, with its namespace where it has one.
        object: String,
        /// What is wrong.
        why: String,
    },
}

/// How to watch.
#[derive(Debug, Clone, Copy)]
pub struct WatchOptions {
    /// How long one page of a list may take; `None` is no limit. Never applied to a watch.
    pub limit: Option<Duration>,
    /// Objects per page of a list; 0 lists everything at once.
    pub page_size: u32,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self { limit: Some(Duration::from_secs(30)), page_size: PAGE }
    }
}

/// Everything that is watched, merged. It never ends by itself.
#[derive(Default)]
pub struct Watches(SelectAll<BoxStream<'static, WatchItem>>);

impl fmt::Debug for Watches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watches({})", self.0.len())
    }
}

impl Watches {
    /// Adds the pods of another node.
    pub fn follow_pods(&mut self, client: &Client, node: &str, options: WatchOptions) {
        self.0.push(pods(client, node, options).1);
    }
}

impl Stream for Watches {
    type Item = WatchItem;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<WatchItem>> {
        self.0.poll_next_unpin(cx)
    }
}

impl FromIterator<Follower> for Watches {
    fn from_iter<T: IntoIterator<Item = Follower>>(followers: T) -> Self {
        Self(followers.into_iter().map(|(_, stream)| stream).collect())
    }
}

/// Where the objects are that are watched.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// The API server.
    pub(super) client: &'a Client,
    /// The namespace; `None` is all of them. Objects without a namespace are watched all.
    pub(super) namespace: Option<&'a str>,
    /// How.
    pub(super) options: WatchOptions,
}

impl Place<'_> {
    fn api<K>(&self) -> Api<DeserializeGuard<K>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }
}

/// Watches the pods of these nodes, all nodes and budgets, and with `kubevirt` all of KubeVirt's kinds.
pub fn start(client: &Client, nodes: &[String], kubevirt: bool, options: WatchOptions) -> Watches {
    node_followers(client, nodes, options).into_iter().filter(|(what, _)| kubevirt || !what.is_kubevirt()).collect()
}

/// One set with its stream. Nothing is sent before the stream is polled, and no watch is opened before it is polled
/// after its `Synced`.
pub(super) type Follower = (Watched, BoxStream<'static, WatchItem>);

/// The followers of all kinds for these nodes.
pub(super) fn node_followers(client: &Client, nodes: &[String], options: WatchOptions) -> Vec<Follower> {
    let mut all: Vec<Follower> = nodes.iter().map(|node| pods(client, node, options)).collect();
    all.extend(other_followers(Place { client, namespace: None, options }));
    all
}

/// The followers of all kinds for the VMs of a place; of the pods only theirs, and budgets on demand.
pub(super) fn vm_followers(place: Place<'_>, with_budgets: bool) -> Vec<Follower> {
    let mut config = config(place.options);
    config = config.labels(&format!("{APP_LABEL} in ({LAUNCHER},{HOTPLUG})"));
    let api = place.api::<wire::Pod>();
    let mut all = vec![follow_as(api, Watched::VmPods, place.options, config, pod_key, Change::VmPods)];
    all.extend(other_followers(place).into_iter().filter(|(what, _)| with_budgets || *what != Watched::Budgets));
    all
}

/// The followers of all kinds but pods.
fn other_followers(place: Place<'_>) -> Vec<Follower> {
    let Place { client, options, .. } = place;
    vec![
        follow(Api::<DeserializeGuard<wire::Node>>::all(client.clone()), Watched::Nodes, options, name, Change::Node),
        follow(place.api::<wire::PodDisruptionBudget>(), Watched::Budgets, options, key, Change::Budget),
        follow(place.api::<wire::VirtualMachineInstance>(), Watched::Vmis, options, key, Change::Vmi),
        follow(place.api::<wire::VirtualMachine>(), Watched::Vms, options, key, Change::Vm),
        follow(
            place.api::<wire::VirtualMachineInstanceMigration>(),
            Watched::Migrations,
            options,
            key,
            Change::Migration,
        ),
        // The one that counts may be in any namespace.
        follow(
            Api::<DeserializeGuard<wire::KubeVirt>>::all(client.clone()),
            Watched::KubeVirts,
            options,
            key,
            Change::KubeVirt,
        ),
    ]
}

fn pods(client: &Client, node: &str, options: WatchOptions) -> Follower {
    let owned = node.to_owned();
    let wrap = move |delta| Change::Pods { node: owned.clone(), delta };
    let config = config(options).fields(&format!("spec.nodeName={node}"));
    let api = Api::<DeserializeGuard<wire::Pod>>::all(client.clone());
    follow_as(api, Watched::Pods(node.to_owned()), options, config, pod_key, wrap)
}

fn name(meta: &ObjectMeta) -> String {
    meta.name.clone().unwrap_or_default()
}

fn key(meta: &ObjectMeta) -> Key {
    Key::new(meta.namespace.clone().unwrap_or_default(), name(meta))
}

fn pod_key(meta: &ObjectMeta) -> PodKey {
    PodKey::new(meta.namespace.clone().unwrap_or_default(), name(meta), meta.uid.clone().unwrap_or_default())
}

fn config(options: WatchOptions) -> watcher::Config {
    let mut config = watcher::Config::default().timeout(WATCH_SECONDS);
    config.page_size = Some(options.page_size).filter(|size| *size > 0);
    config
}

fn follow<K, F, I>(
    api: Api<DeserializeGuard<K>>,
    what: Watched,
    options: WatchOptions,
    id: fn(&ObjectMeta) -> I,
    wrap: impl Fn(Delta<F, I>) -> Change + Send + 'static,
) -> Follower
where
    K: Resource<DynamicType = ()> + Clone + fmt::Debug + DeserializeOwned + Send + 'static,
    F: From<K> + Send + 'static,
    I: 'static,
{
    follow_as(api, what, options, config(options), id, wrap)
}

/// The same for a part of the objects.
fn follow_as<K, F, I>(
    api: Api<DeserializeGuard<K>>,
    what: Watched,
    options: WatchOptions,
    config: watcher::Config,
    id: fn(&ObjectMeta) -> I,
    wrap: impl Fn(Delta<F, I>) -> Change + Send + 'static,
) -> Follower
where
    K: Resource<DynamicType = ()> + Clone + fmt::Debug + DeserializeOwned + Send + 'static,
    F: From<K> + Send + 'static,
    I: 'static,
{
    let follow = Follow::<K, F, I> {
        what: what.clone(),
        api,
        config,
        limit: options.limit,
        id,
        wrap: Box::new(wrap),
        stream: None,
        listing: None,
        synced: false,
        outage: None,
        reported: false,
        failed: None,
        pause: PAUSES.0,
        waiting: false,
        out: VecDeque::new(),
    };
    // The future of an item is kept by the stream until it is done: nothing is lost when a poll is given up.
    let stream = futures::stream::unfold(follow, async |mut follow| {
        let item = follow.next().await;
        Some((item, follow))
    });
    (what, stream.boxed())
}

/// Follows one set of objects.
struct Follow<K, F, I> {
    what: Watched,
    api: Api<DeserializeGuard<K>>,
    config: watcher::Config,
    limit: Option<Duration>,
    id: fn(&ObjectMeta) -> I,
    wrap: Box<dyn Fn(Delta<F, I>) -> Change + Send>,
    stream: Option<BoxStream<'static, watcher::Result<Event<DeserializeGuard<K>>>>>,
    /// Objects of a list that is under way.
    listing: Option<Vec<F>>,
    synced: bool,
    /// Begin of the outage that is not over yet.
    outage: Option<Instant>,
    /// True if that outage was reported.
    reported: bool,
    /// The last failure.
    failed: Option<Instant>,
    pause: Duration,
    waiting: bool,
    out: VecDeque<WatchItem>,
}

impl<K, F, I> Follow<K, F, I>
where
    K: Resource<DynamicType = ()> + Clone + fmt::Debug + DeserializeOwned + Send + 'static,
    F: From<K>,
{
    async fn next(&mut self) -> WatchItem {
        loop {
            if let Some(item) = self.out.pop_front() {
                return item;
            }
            if self.waiting {
                tokio::time::sleep(self.pause).await;
                self.pause = (self.pause * 2).min(PAUSES.1);
                self.waiting = false;
            }
            let stream =
                self.stream.get_or_insert_with(|| watcher::watcher(self.api.clone(), self.config.clone()).boxed());
            // Only a list is bounded: between two events of a watch any time may pass.
            let event = if let Some(limit) = self.limit.filter(|_| self.listing.is_some()) {
                let Ok(event) = tokio::time::timeout(limit, stream.next()).await else {
                    self.fail(Some(ApiProblem::timed_out(limit)));
                    continue;
                };
                event
            } else {
                stream.next().await
            };
            match event {
                Some(Ok(event)) => self.take(event),
                Some(Err(error)) => self.fail(reportable(error)),
                None => self.fail(None),
            }
        }
    }

    fn take(&mut self, event: Event<DeserializeGuard<K>>) {
        match event {
            Event::Init => self.listing = Some(Vec::new()),
            Event::InitApply(object) => {
                if let (Some(facts), Some(listing)) = (self.read(object), &mut self.listing) {
                    listing.push(facts);
                }
            }
            Event::InitDone => {
                let objects = self.listing.take().unwrap_or_default();
                self.push(Delta::Reset(objects));
                self.outage = None;
                if std::mem::take(&mut self.reported) {
                    self.out.push_back(WatchItem::Recovered { what: self.what.clone() });
                }
                if !std::mem::replace(&mut self.synced, true) {
                    self.out.push_back(WatchItem::Synced(self.what.clone()));
                }
            }
            Event::Apply(object) => {
                if let Some(facts) = self.read(object) {
                    self.push(Delta::Apply(facts));
                }
            }
            Event::Delete(object) => {
                let id = (self.id)(object.meta());
                self.push(Delta::Delete(id));
            }
        }
    }

    fn push(&mut self, delta: Delta<F, I>) {
        self.out.push_back(WatchItem::Change(Box::new((self.wrap)(delta))));
    }

    fn read(&mut self, object: DeserializeGuard<K>) -> Option<F> {
        match object.0 {
            Ok(object) => Some(F::from(object)),
            Err(invalid) => {
                let name = invalid.metadata.name.unwrap_or_default();
                let object = invalid.metadata.namespace.map_or_else(|| name.clone(), |ns| format!("{ns}/{name}"));
                self.out.push_back(WatchItem::Unreadable { what: self.what.clone(), object, why: invalid.error });
                None
            }
        }
    }

    /// Starts anew after a pause. Without a problem to report it is only noted when it began.
    fn fail(&mut self, problem: Option<ApiProblem>) {
        let now = Instant::now();
        if self.failed.is_none_or(|last| now.duration_since(last) > CALM) {
            self.pause = PAUSES.0;
        }
        self.failed = Some(now);
        self.stream = None;
        self.listing = None;
        self.waiting = true;
        let since = *self.outage.get_or_insert(now);
        if let Some(problem) = problem {
            self.reported = true;
            self.out.push_back(WatchItem::Trouble { what: self.what.clone(), problem, since });
        }
    }
}

/// What to report of a failure: a request that failed. A watch that broke, or whose place in history is forgotten, is
/// no trouble as long as the next list works.
fn reportable(error: watcher::Error) -> Option<ApiProblem> {
    match error {
        watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error) => {
            let problem = ApiProblem::from(error);
            (problem.kind != super::ProblemKind::Gone).then_some(problem)
        }
        watcher::Error::WatchError(_) | watcher::Error::WatchFailed(_) => None,
        watcher::Error::NoResourceVersion => Some(ApiProblem::unreadable("a list without a resource version")),
    }
}

#[cfg(test)]
mod tests;
