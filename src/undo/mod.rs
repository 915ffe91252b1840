//! Undoing a drain: from facts to the steps that take it back, and to what remains. Pure.
//!
//! The order is KubeVirt's: first the marks, then the migrations. A migration whose VM is still marked is never deleted,
//! since KubeVirt would begin another one at once. The cordon goes last, and only if nothing of the evacuation is left.
//!
//! [`Undo`] looks at the facts again after each round of steps: what is already as it should be needs no step, so a second
//! run finds nothing to do, and a VM that left meanwhile is left alone.

mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::answer::UndoAnswer;
use crate::event::EventKind;
use crate::facts::{FIELD_MANAGER, Index, Key, KubeVirtState, MigrationFacts, NodeFacts, VmiFacts, VmiOwner};
use crate::outcome::OwnerRef;

pub use report::End;

/// How long the whole of it may take from its first write: migrations that must stop, an API that is away.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What is said of a step that was under way when the time was over.
pub const UNANSWERED: &str = "it was sent, and no answer has come";

/// How often an answer that leaves it open is followed by another try.
const DOUBTS: u8 = 2;

/// Something to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Take the mark off a VMI.
    Unmark {
        /// The node whose name the mark has.
        node: String,
        /// The VMI.
        vmi: Key,
    },
    /// Delete a migration, which ends it.
    Delete {
        /// The node that it evacuates.
        node: String,
        /// The migration.
        migration: Key,
        /// Its UID.
        uid: String,
    },
    /// Lift the cordon.
    Uncordon {
        /// The node.
        node: String,
        /// The version of the node that was looked at.
        resource_version: String,
    },
}

impl Step {
    /// What is told once it is done.
    pub fn done(self) -> EventKind {
        match self {
            Self::Unmark { node, vmi } => EventKind::EvacuationCancelled { node, vm: vmi },
            Self::Delete { node, migration, .. } => EventKind::MigrationDeleted { node, migration },
            Self::Uncordon { node, .. } => EventKind::NodeUncordoned { node },
        }
    }

    /// The node that it belongs to.
    pub fn node(&self) -> &str {
        match self {
            Self::Unmark { node, .. } | Self::Delete { node, .. } | Self::Uncordon { node, .. } => node,
        }
    }
}

/// What came of a step so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Tried {
    /// It was not sent.
    #[default]
    Not,
    /// Nobody answered, for that reason: it is sent again.
    Later(String),
    /// The answer left it open, so often.
    Doubtful(String, u8),
    /// It was done.
    Done,
    /// It will not be done.
    Failed(Trouble),
}

impl Tried {
    fn is_open(&self) -> bool {
        matches!(self, Self::Not | Self::Later(_) | Self::Doubtful(..))
    }

    /// The same after an answer.
    fn after(&self, answer: &UndoAnswer) -> Self {
        match answer {
            UndoAnswer::Done | UndoAnswer::Gone => Self::Done,
            UndoAnswer::Unsupported => Self::Failed(Trouble::Unsupported),
            UndoAnswer::Forbidden { text } => Self::Failed(Trouble::Forbidden(text.clone())),
            UndoAnswer::Refused { text } => Self::Failed(Trouble::Refused(text.clone())),
            UndoAnswer::Unavailable { text } => Self::Later(text.clone()),
            UndoAnswer::Doubtful { text } => match self {
                Self::Doubtful(_, times) if *times + 1 >= DOUBTS => Self::Failed(Trouble::Refused(text.clone())),
                Self::Doubtful(_, times) => Self::Doubtful(text.clone(), times + 1),
                Self::Not | Self::Later(_) | Self::Done | Self::Failed(_) => Self::Doubtful(text.clone(), 1),
            },
        }
    }
}

/// Why a step will not be done.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Trouble {
    /// The release of KubeVirt has no such call.
    Unsupported,
    /// Not permitted.
    Forbidden(String),
    /// The server says no.
    Refused(String),
    /// It was done, and somebody has done the contrary since.
    Returned,
}

/// A VM whose evacuation from the node is, or was, under way.
#[derive(Debug, Clone)]
struct Vm {
    uid: Option<String>,
    owner: Option<OwnerRef>,
    ran_here: bool,
    external: bool,
    unmark: Tried,
    migrations: BTreeMap<String, Migration>,
}

/// An evacuation migration that was unfinished when it was first seen.
#[derive(Debug, Clone)]
struct Migration {
    uid: String,
    delete: Tried,
}

/// The undoing of the drain of one node.
#[derive(Debug, Clone)]
pub struct Undo {
    node: String,
    cordoned_before: bool,
    cordoned_by: Option<String>,
    uncordon: Tried,
    vms: BTreeMap<Key, Vm>,
}

impl Undo {
    /// What is to be undone for a node, as things stand.
    pub fn new(node: &str, index: &Index) -> Self {
        let facts = index.node(node);
        let mut undo = Self {
            node: node.to_owned(),
            cordoned_before: facts.is_some_and(|n| n.unschedulable),
            cordoned_by: facts.and_then(|n| n.cordoned_by.clone()),
            uncordon: Tried::Not,
            vms: BTreeMap::new(),
        };
        undo.observe(index);
        undo
    }

    /// Name of the node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// VMs whose evacuation from the node is under way.
    pub fn vms(&self) -> impl Iterator<Item = &Key> {
        self.vms.keys()
    }

    /// Every step that is needed if nothing goes wrong, in order: what a preview shows.
    pub fn planned(&self, index: &Index) -> Vec<Step> {
        let marked = self.vms.keys().filter(|key| self.is_marked(index, key)).filter(|_| self.can_unmark(index));
        let mut steps: Vec<Step> = marked.map(|key| self.unmark_step(key)).collect();
        for (key, vm) in &self.vms {
            if !self.is_marked(index, key) || self.can_unmark(index) {
                steps.extend(self.unfinished(index, key, vm).filter(|m| !m.deleting).map(|m| self.delete_step(m)));
            }
        }
        let all = self.vms.keys().all(|key| !self.is_marked(index, key)) || self.can_unmark(index);
        steps.extend(self.own_cordon(index).filter(|_| all && self.taint(index).is_none()).map(uncordon_step));
        steps
    }

    /// The steps to send now. Empty where there is nothing left to send, or where it has to be waited first.
    pub fn steps(&mut self, index: &Index) -> Vec<Step> {
        self.observe(index);
        let mut steps = Vec::new();
        for (key, vm) in &self.vms {
            if self.is_marked(index, key) {
                let send = self.can_unmark(index) && vm.unmark.is_open();
                steps.extend(send.then(|| self.unmark_step(key)));
            } else if self.taint(index).is_none() {
                let open = |m: &&MigrationFacts| {
                    !m.deleting && vm.migrations.get(&m.key.name).is_some_and(|own| own.delete.is_open())
                };
                steps.extend(self.unfinished(index, key, vm).filter(open).map(|m| self.delete_step(m)));
            }
        }
        if steps.is_empty() && self.is_clear(index) && self.uncordon.is_open() {
            steps.extend(self.own_cordon(index).map(uncordon_step));
        }
        steps
    }

    /// What a step was answered.
    pub fn answered(&mut self, step: &Step, answer: &UndoAnswer) {
        match step {
            Step::Unmark { vmi, .. } => {
                if let Some(vm) = self.vms.get_mut(vmi) {
                    vm.unmark = vm.unmark.after(answer);
                }
            }
            Step::Delete { migration, .. } => {
                let own = self.vms.iter_mut().filter(|(key, _)| key.namespace == migration.namespace);
                for own in own.filter_map(|(_, vm)| vm.migrations.get_mut(&migration.name)) {
                    own.delete = own.delete.after(answer);
                }
            }
            // A node changes often: its heartbeat is one. What matters is looked at again.
            Step::Uncordon { .. } => {
                self.uncordon = match answer {
                    UndoAnswer::Doubtful { text } => Tried::Later(text.clone()),
                    UndoAnswer::Done
                    | UndoAnswer::Gone
                    | UndoAnswer::Unsupported
                    | UndoAnswer::Forbidden { .. }
                    | UndoAnswer::Refused { .. }
                    | UndoAnswer::Unavailable { .. } => self.uncordon.after(answer),
                }
            }
        }
    }

    /// Migrations that are ending: they are waited for.
    pub fn ending(&self, index: &Index) -> Vec<Key> {
        let mut ending = Vec::new();
        for (key, vm) in self.vms.iter().filter(|(key, _)| !self.is_marked(index, key)) {
            let own = |m: &&MigrationFacts| vm.migrations.get(&m.key.name).is_some_and(|o| o.delete == Tried::Done);
            let found = self.unfinished(index, key, vm).filter(|m| m.deleting || own(m));
            ending.extend(found.map(|m| m.key.clone()));
        }
        ending
    }

    /// True if a later try may bring what this one did not.
    pub fn is_open(&self, index: &Index) -> bool {
        let later = |tried: &Tried| matches!(tried, Tried::Later(_) | Tried::Doubtful(..));
        !self.ending(index).is_empty()
            || later(&self.uncordon)
            || self.vms.values().any(|vm| later(&vm.unmark) || vm.migrations.values().any(|m| later(&m.delete)))
    }

    /// Takes in what there is to undo.
    fn observe(&mut self, index: &Index) {
        for vmi in index.vmis().filter(|v| v.marked.as_deref() == Some(self.node.as_str())) {
            let known = self.vms.get(&vmi.key);
            let same = known.is_some_and(|vm| vm.uid.as_ref() == Some(&vmi.uid));
            if !same {
                let vm = self.vm(Some(vmi));
                self.vms.insert(vmi.key.clone(), vm);
            } else if let Some(vm) = self.vms.get_mut(&vmi.key).filter(|vm| vm.unmark == Tried::Done) {
                vm.unmark = Tried::Failed(Trouble::Returned);
            }
        }
        let unfinished = index.migrations().filter(|m| m.evacuates.as_deref() == Some(self.node.as_str()));
        for migration in unfinished.filter(|m| !m.is_final()) {
            let key = Key::new(&migration.key.namespace, &migration.vmi);
            let fresh = self.vm(index.vmi(&key));
            let vm = self.vms.entry(key).or_insert(fresh);
            let known = vm.migrations.get(&migration.key.name).is_some_and(|own| own.uid == migration.uid);
            if !known {
                let own = Migration { uid: migration.uid.clone(), delete: Tried::Not };
                vm.migrations.insert(migration.key.name.clone(), own);
            }
        }
    }

    fn vm(&self, vmi: Option<&VmiFacts>) -> Vm {
        let owner = |kind: &str, name: &str| Some(OwnerRef { kind: kind.to_owned(), name: name.to_owned() });
        Vm {
            uid: vmi.map(|v| v.uid.clone()),
            owner: vmi.and_then(|v| match &v.owner {
                VmiOwner::VirtualMachine { name } => owner("VirtualMachine", name),
                VmiOwner::ReplicaSet { name } => owner("VirtualMachineInstanceReplicaSet", name),
                VmiOwner::Other { kind, name } => owner(kind, name),
                VmiOwner::Standalone => None,
            }),
            ran_here: vmi.is_some_and(|v| v.node.as_deref() == Some(self.node.as_str())),
            external: vmi.is_some_and(|v| v.strategy == Some(crate::facts::Strategy::External)),
            unmark: Tried::Not,
            migrations: BTreeMap::new(),
        }
    }

    fn is_marked(&self, index: &Index, key: &Key) -> bool {
        index.vmi(key).is_some_and(|v| v.marked.as_deref() == Some(self.node.as_str()))
    }

    /// Its migrations that were seen and have not ended.
    fn unfinished<'a>(&self, index: &'a Index, key: &Key, vm: &'a Vm) -> impl Iterator<Item = &'a MigrationFacts> {
        let of_vm = index.migrations_of(key).into_iter();
        let node = self.node.clone();
        of_vm.filter(move |m| {
            !m.is_final()
                && m.evacuates.as_deref() == Some(node.as_str())
                && vm.migrations.get(&m.key.name).is_some_and(|own| own.uid == m.uid)
        })
    }

    /// True if nothing of the evacuation is left.
    fn is_clear(&self, index: &Index) -> bool {
        self.vms.iter().all(|(key, vm)| !self.is_marked(index, key) && self.unfinished(index, key, vm).next().is_none())
    }

    /// The node, while it has a cordon that safe-drain set.
    fn own_cordon<'a>(&self, index: &'a Index) -> Option<&'a NodeFacts> {
        index.node(&self.node).filter(|n| n.unschedulable && n.cordoned_by.as_deref() == Some(FIELD_MANAGER))
    }

    /// True where a mark can be taken off: the release has the call, and the node is not under KubeVirt's own drain taint.
    /// A release that is not known is asked.
    fn can_unmark(&self, index: &Index) -> bool {
        old_release(index).is_none() && self.taint(index).is_none()
    }

    /// KubeVirt's drain taint, by which it evacuates the whole node without any mark, as `key:effect`.
    fn taint(&self, index: &Index) -> Option<String> {
        let KubeVirtState::One(cr) = index.kubevirt() else { return None };
        let taints = &index.node(&self.node)?.taints;
        let taint = taints.iter().find(|t| t.key == cr.drain_taint && t.effect == "NoSchedule")?;
        Some(format!("{}:{}", taint.key, taint.effect))
    }

    fn unmark_step(&self, vmi: &Key) -> Step {
        Step::Unmark { node: self.node.clone(), vmi: vmi.clone() }
    }

    fn delete_step(&self, migration: &MigrationFacts) -> Step {
        Step::Delete { node: self.node.clone(), migration: migration.key.clone(), uid: migration.uid.clone() }
    }
}

fn uncordon_step(node: &NodeFacts) -> Step {
    Step::Uncordon { node: node.name.clone(), resource_version: node.resource_version.clone() }
}

/// True where the release of KubeVirt is known to have no call that takes a mark off.
pub fn is_too_old(index: &Index) -> bool {
    old_release(index).is_some()
}

/// What cannot be taken back of a drain, said before it begins.
pub fn limits(index: &Index) -> Option<String> {
    let version = old_release(index)?;
    Some(format!(
        "KubeVirt {version} cannot take an evacuation mark off (1.7 can): VMs that are marked when this drain is aborted go on \
         migrating, and the node stays cordoned"
    ))
}

/// The version of KubeVirt, where it is known and older than 1.7, which brought evacuate/cancel.
fn old_release(index: &Index) -> Option<&str> {
    match index.kubevirt() {
        KubeVirtState::One(cr) if !cr.at_least(1, 7) => cr.version.as_deref(),
        KubeVirtState::One(_) | KubeVirtState::Unclear | KubeVirtState::Absent => None,
    }
}
