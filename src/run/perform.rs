//! Sends what the machine asks for, once, and turns the answer into the machine's words.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use crate::answer::{
    EvictionAnswer, RawAnswer, RestartAnswer, UndoAnswer, classify_eviction, classify_restart, classify_undo,
};
use crate::cluster::{ApiProblem, Attachment, Connection, ProblemKind, Requests};
use crate::facts::NodeFacts;
use crate::machine::{Cordoned, Effect, EffectKind, Failure, Reply, RequestId};
use crate::undo::Step;

/// Sends requests over one connection; renews its credentials when they are refused.
#[derive(Clone)]
pub(super) struct Performer {
    requests: Requests,
    connection: Arc<Connection>,
    renewals: Arc<Renewals>,
}

#[derive(Default)]
struct Renewals {
    done: AtomicU64,
    turn: Mutex<()>,
}

impl Performer {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        Self { requests: connection.requests(), connection, renewals: Arc::default() }
    }

    /// Builds the client again with fresh credentials, once for all requests that were refused with the old ones.
    async fn renew(&self, seen: u64) -> bool {
        let _turn = self.renewals.turn.lock().await;
        if self.renewals.done.load(Ordering::Relaxed) != seen {
            return true;
        }
        let renewed = self.connection.rebuild().await.is_ok();
        self.renewals.done.fetch_add(1, Ordering::Relaxed);
        renewed
    }

    async fn send(&self, kind: &EffectKind) -> Reply {
        let requests = &self.requests;
        match kind {
            EffectKind::Cordon { node, resource_version } => {
                let version = Some(resource_version.as_str()).filter(|v| !v.is_empty());
                Reply::Cordon(wrote(requests.cordon(node, version, false).await))
            }
            EffectKind::CordonFresh { node } => Reply::Cordon(self.cordon_fresh(node).await),
            EffectKind::Uncordon { node } => Reply::Node(requests.uncordon(node, None, false).await.map_err(failure)),
            EffectKind::Evict { pod, grace } => {
                Reply::Eviction(classify_eviction(&requests.evict(pod, grace.map(i64::from), false).await))
            }
            EffectKind::Delete { pod, grace } => {
                Reply::Eviction(classify_eviction(&requests.delete_pod(pod, grace.map(i64::from), false).await))
            }
            EffectKind::Restart { vm } => Reply::Restart(classify_restart(&requests.restart_vm(vm, false).await)),
            EffectKind::ReadVmi { vmi } => Reply::Vmi(found(requests.get_vmi(vmi).await)),
            EffectKind::ReadKubeVirt { key } => Reply::KubeVirt(found(requests.get_kubevirt(key).await)),
            EffectKind::ReadPod { pod } => Reply::Pod(found(requests.get_pod(&pod.key()).await)),
            EffectKind::Undo { step } => Reply::Undo(undo_step(requests, step, false).await),
            EffectKind::ReadPending { namespace } => {
                Reply::Pods(requests.list_pending_pods(namespace).await.map_err(failure))
            }
            EffectKind::RelistPods { node } => Reply::Pods(requests.list_pods_on(node).await.map_err(failure)),
            EffectKind::ListVolumes { node } => Reply::Volumes(attached(requests.volume_attachments(node).await)),
        }
    }

    /// Reads the node and cordons it on what was read; a node that is cordoned already needs no write.
    async fn cordon_fresh(&self, node: &str) -> Result<Cordoned, Failure> {
        let facts = found(self.requests.get_node(node).await)?;
        if facts.unschedulable {
            return Ok(Cordoned { facts, wrote: false });
        }
        wrote(self.requests.cordon(node, Some(&facts.resource_version), false).await)
    }
}

/// Sends one effect. Refused credentials are renewed and the request is sent once more: it had not been looked at.
pub(super) async fn perform(performer: Performer, effect: Effect) -> (RequestId, Reply) {
    let seen = performer.renewals.done.load(Ordering::Relaxed);
    let mut reply = performer.send(&effect.kind).await;
    if is_unauthorized(&reply) && performer.renew(seen).await {
        reply = performer.send(&effect.kind).await;
    }
    (effect.id, reply)
}

/// Sends a step of an undo.
pub(super) async fn undo_step(requests: &Requests, step: &Step, dry_run: bool) -> UndoAnswer {
    match step {
        Step::Unmark { node, vmi } => classify_undo(&requests.cancel_evacuation(vmi, node, dry_run).await),
        Step::Delete { migration, uid, .. } => classify_undo(&requests.delete_migration(migration, uid, dry_run).await),
        Step::Uncordon { node, resource_version } => {
            match requests.uncordon(node, Some(resource_version), dry_run).await {
                Ok(_) => UndoAnswer::Done,
                Err(problem) => classify_problem(problem),
            }
        }
    }
}

/// A patch that failed, in the words of an answer.
fn classify_problem(problem: ApiProblem) -> UndoAnswer {
    if problem.kind == ProblemKind::NotFound {
        return UndoAnswer::Gone;
    }
    classify_undo(&RawAnswer { code: problem.code, text: problem.message, ..RawAnswer::default() })
}

/// Builds the client again with fresh credentials, for the watches too.
pub(super) async fn renew(performer: Performer) {
    let seen = performer.renewals.done.load(Ordering::Relaxed);
    performer.renew(seen).await;
}

fn is_unauthorized(reply: &Reply) -> bool {
    match reply {
        Reply::Cordon(Err(Failure::Unauthorized))
        | Reply::Node(Err(Failure::Unauthorized))
        | Reply::Vmi(Err(Failure::Unauthorized))
        | Reply::KubeVirt(Err(Failure::Unauthorized))
        | Reply::Pod(Err(Failure::Unauthorized))
        | Reply::Pods(Err(Failure::Unauthorized))
        | Reply::Eviction(EvictionAnswer::Unauthorized)
        | Reply::Restart(RestartAnswer::Unauthorized) => true,
        Reply::Cordon(_)
        | Reply::Node(_)
        | Reply::Vmi(_)
        | Reply::KubeVirt(_)
        | Reply::Pod(_)
        | Reply::Pods(_)
        | Reply::Volumes(_)
        | Reply::Eviction(_)
        | Reply::Restart(_)
        | Reply::Undo(_) => false,
    }
}

fn wrote(result: Result<NodeFacts, ApiProblem>) -> Result<Cordoned, Failure> {
    result.map(|facts| Cordoned { facts, wrote: true }).map_err(failure)
}

/// Names of the volumes that are attached, in order.
fn attached(result: Result<Vec<Attachment>, ApiProblem>) -> Result<Vec<String>, Failure> {
    let attached = result.map_err(failure)?.into_iter().filter(|a| a.attached);
    let mut names: Vec<String> = attached.map(|a| a.volume.unwrap_or(a.name)).collect();
    names.sort();
    Ok(names)
}

fn found<T>(result: Result<Option<T>, ApiProblem>) -> Result<T, Failure> {
    result.map_err(failure)?.ok_or(Failure::NotFound)
}

fn failure(problem: ApiProblem) -> Failure {
    match problem.kind {
        ProblemKind::Forbidden => Failure::Forbidden(problem.message),
        ProblemKind::NotFound => Failure::NotFound,
        ProblemKind::Unauthorized => Failure::Unauthorized,
        ProblemKind::Conflict => Failure::Conflict,
        ProblemKind::Timeout | ProblemKind::Unreachable | ProblemKind::Gone => Failure::Passing(problem.message),
        ProblemKind::Other if problem.may_pass() => Failure::Passing(problem.message),
        ProblemKind::Other => Failure::Other(problem.message),
    }
}
