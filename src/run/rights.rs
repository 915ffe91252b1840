//! The rights that a plan needs, asked for before the first write.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::cluster::{ApiProblem, Missing, Requests, Right, missing_rights};
use crate::error::{CliError, ErrorKind};
use crate::facts::{FIELD_MANAGER, Index, KubeVirtState};
use crate::plan::{NodePlan, Plan, PodAction, VmAction};
use crate::undo;

/// What a command needs rights for, besides its plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct Need<'a> {
    /// A preview opens no watch.
    pub(super) previews: bool,
    /// Outside a drain no node is cordoned.
    pub(super) in_place: bool,
    /// What was begun is taken back when it is aborted.
    pub(super) undoes: bool,
    /// The namespace in which VMs are watched; `None` is all.
    pub(super) namespace: Option<&'a str>,
}

/// What came of the check.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// Namespaces in which VMs may not be restarted: what rests on a restart there is decided without it.
    pub(super) restart_denied: BTreeSet<String>,
    /// Set where VMs may be restarted in none of the namespaces where the plan wants to.
    pub(super) no_restart: Option<CliError>,
    /// Set where a right is missing without which the drain cannot work.
    pub(super) error: Option<CliError>,
}

/// Asks for everything that the plan needs.
pub(super) async fn missing(
    requests: &Requests,
    plan: &Plan,
    need: &Need<'_>,
    index: &Index,
) -> Result<Checked, ApiProblem> {
    let missing = missing_rights(requests, &needed(plan, need, index)).await?;
    let (restarts, others): (Vec<Missing>, Vec<Missing>) = missing.into_iter().partition(|m| is_restart(&m.right));
    let wanted: BTreeSet<&str> = namespaces(plan, |a| a == VmAction::Restart).collect();
    let denied = restarts.iter().flat_map(|m| m.namespaces.iter().flatten()).map(String::as_str);
    let none_left = !restarts.is_empty() && denied.collect::<BTreeSet<&str>>() == wanted;
    Ok(Checked {
        no_restart: none_left.then(|| error(&restarts)),
        restart_denied: restarts.into_iter().flat_map(|m| m.namespaces.unwrap_or_default()).collect(),
        error: (!others.is_empty()).then(|| error(&others)),
    })
}

/// Namespaces of the VMs with such an action, one for each VM.
fn namespaces(plan: &Plan, wanted: impl Fn(VmAction) -> bool) -> impl Iterator<Item = &str> {
    let vms = plan.nodes.iter().flat_map(|n| &n.vms);
    vms.filter(move |v| wanted(v.action)).map(|v| v.vmi.namespace.as_str())
}

fn is_restart(right: &Right) -> bool {
    right.subresource.as_deref() == Some("restart")
}

/// The rights that the plan needs.
fn needed(plan: &Plan, need: &Need<'_>, index: &Index) -> Vec<Right> {
    let mut rights = Vec::new();
    let ours = |n: &NodePlan| index.node(&n.node).is_some_and(|n| n.cordoned_by.as_deref() == Some(FIELD_MANAGER));
    if !need.in_place && plan.nodes.iter().any(|n| !n.cordoned || need.undoes && ours(n)) {
        rights.push(Right::new("patch", "", "nodes"));
    }
    // A preview opens no watch, and what could not be listed is not watched.
    if !need.previews {
        let watch = |group: &str, resource: &str| {
            let right = Right::new("watch", group, resource);
            match need.namespace {
                Some(namespace) => right.within([namespace]),
                None => right,
            }
        };
        rights.extend([Right::new("watch", "", "nodes"), watch("", "pods")]);
        rights.extend(index.budgets_known.then(|| watch("policy", "poddisruptionbudgets")));
        let vms = ["virtualmachineinstances", "virtualmachines", "virtualmachineinstancemigrations"];
        rights.extend(vms.iter().filter(|_| index.kubevirt_installed).map(|vms| watch("kubevirt.io", vms)));
        rights.extend(index.kubevirt_installed.then(|| Right::new("watch", "kubevirt.io", "kubevirts")));
    }
    let pods = |action: PodAction| {
        let pods = plan.nodes.iter().flat_map(|n| &n.pods).filter(move |p| p.action == action);
        pods.map(|p| p.pod.namespace.clone())
    };
    let vms = |wanted: fn(VmAction) -> bool| namespaces(plan, wanted).map(str::to_owned);
    let evicted = |a: VmAction| a.may_mark() || a == VmAction::ShutDown;
    let acted_on = |a| !matches!(a, VmAction::Leave | VmAction::AwaitGone);
    let restarted = |a| a == VmAction::Restart;
    within(&mut rights, Right::new("create", "", "pods").on("eviction"), pods(PodAction::Evict).chain(vms(evicted)));
    within(&mut rights, Right::new("delete", "", "pods"), pods(PodAction::Delete));
    // A pod whose identity is in doubt is read; so is the KubeVirt object before the first restart.
    within(&mut rights, Right::new("get", "", "pods"), pods(PodAction::Evict).chain(pods(PodAction::Delete)));
    within(&mut rights, Right::new("get", "kubevirt.io", "virtualmachineinstances"), vms(acted_on));
    let restart = Right::new("update", "subresources.kubevirt.io", "virtualmachines").on("restart");
    within(&mut rights, restart, vms(restarted));
    if need.undoes && !undo::is_too_old(index) {
        // Whatever may be marked when the drain is aborted: now, or by one of its evictions.
        let marked = || {
            let vms = plan.nodes.iter().flat_map(|n| &n.vms).filter(|v| v.row.marked || v.action.may_mark());
            vms.map(|v| v.vmi.namespace.clone())
        };
        to_undo(&mut rights, marked(), marked());
    }
    if let (KubeVirtState::One(cr), true) = (index.kubevirt(), vms(restarted).next().is_some()) {
        rights.push(Right::new("get", "kubevirt.io", "kubevirts").within([cr.key.namespace.clone()]));
    }
    rights
}

/// Adds what taking back evacuations needs: marks in these namespaces, migrations in those. Of the path `evacuate/cancel` the
/// API server looks at the first part only, and so does virt-api (seen on 1.7.0, whose own roles name the whole path, which
/// allows nobody anything).
pub(super) fn to_undo(
    rights: &mut Vec<Right>,
    marks: impl Iterator<Item = String>,
    migrations: impl Iterator<Item = String>,
) {
    let unmark = Right::new("update", "subresources.kubevirt.io", "virtualmachineinstances").on("evacuate");
    within(rights, unmark, marks);
    within(rights, Right::new("delete", "kubevirt.io", "virtualmachineinstancemigrations"), migrations);
}

/// Adds a right in these namespaces, if there are any.
pub(super) fn within(rights: &mut Vec<Right>, right: Right, namespaces: impl Iterator<Item = String>) {
    let namespaces: BTreeSet<String> = namespaces.collect();
    if !namespaces.is_empty() {
        rights.push(right.within(namespaces));
    }
}

/// The error of rights that are missing, each with the rule that grants it.
pub(super) fn error(missing: &[Missing]) -> CliError {
    let mut error = CliError::new(ErrorKind::Api, "permissions are missing; nothing was changed");
    for m in missing {
        let mut text = format!("not allowed: {}", m.right);
        if let Some(namespaces) = &m.namespaces {
            let names: Vec<&str> = namespaces.iter().map(String::as_str).collect();
            let _ = write!(text, " in {}", names.join(", "));
        }
        let _ = write!(text, "; this rule grants it: {}", m.rule);
        error = error.hint(text);
    }
    error
}
