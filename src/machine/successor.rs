//! The VMI that takes the place of one that was shut down: of the same name, or of the same replica set.

use std::collections::BTreeSet;

use super::core::Core;
use super::vm::{State, VmRun};
use crate::facts::{VmiFacts, VmiOwner};

impl VmRun {
    /// True if a replica set makes up for it: under a name that nobody knows before.
    pub(super) fn is_replica(&self) -> bool {
        self.item.row.owner.as_ref().is_some_and(|owner| owner.kind == "VirtualMachineInstanceReplicaSet")
    }

    /// True while it waits for another VMI of its replica set.
    pub(super) fn awaits_replica(&self) -> bool {
        self.siblings.is_some() && matches!(self.state, State::ShuttingDown { .. } | State::Returning { .. })
    }

    /// Right before it is evicted: what its replica set has now cannot be what makes up for it.
    pub(super) fn note_siblings(&mut self, core: &Core) {
        if self.is_replica() && self.siblings.is_none() {
            self.siblings = Some(core.index.vmis().filter(|v| self.is_sibling(v)).map(|v| v.uid.clone()).collect());
        }
    }

    fn is_sibling(&self, other: &VmiFacts) -> bool {
        let set = self.item.row.owner.as_ref().map(|owner| owner.name.as_str());
        other.key.namespace == self.item.vmi.namespace
            && matches!(&other.owner, VmiOwner::ReplicaSet { name } if Some(name.as_str()) == set)
    }

    /// The VMI of its replica set that was found to make up for it.
    pub(super) fn known_successor<'a>(&self, core: &'a Core) -> Option<&'a VmiFacts> {
        self.siblings.as_ref()?;
        core.index.vmis().find(|v| core.successors.get(&v.uid) == Some(&self.item.vmi_uid))
    }

    /// The VMI that came in its place, if it is there. One of a replica set counts for one VM only.
    pub(super) fn successor(&self, core: &mut Core) -> Option<VmiFacts> {
        let own = &self.item.vmi_uid;
        let Some(before) = &self.siblings else {
            return core.index.vmi(&self.item.vmi).filter(|v| v.uid != *own).cloned();
        };
        let lives =
            |v: &&VmiFacts| self.is_sibling(v) && !v.deleting && !v.phase.is_final() && !before.contains(&v.uid);
        let mut fresh: Vec<&VmiFacts> = core.index.vmis().filter(lives).collect();
        fresh.sort_by_key(|v| (core.successors.get(&v.uid) != Some(own), v.created, &v.key));
        let found = fresh.into_iter().find(|v| core.successors.get(&v.uid).is_none_or(|of| of == own)).cloned()?;
        core.successors.insert(found.uid.clone(), own.clone());
        Some(found)
    }
}

/// UIDs of the VMIs that a replica set had.
pub(super) type Siblings = Option<BTreeSet<String>>;
