//! What turns up on a node after its plan was made: successors of what was evicted, late pods, VMs that came back.

use std::time::Duration;

use super::core::Core;
use super::node::NodeRun;
use super::pod::{PodRun, Successor};
use super::vm::VmRun;
use crate::facts::PodFacts;
use crate::outcome::Cause;
use crate::plan::VmItem;

/// How long a launcher may be known before its VMI is: the two are watched apart.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(5);

impl NodeRun {
    /// When a launcher without a VMI counts as an orphan.
    pub(super) fn unclear_until(&self) -> Option<Duration> {
        self.unclear.values().min().map(|since| *since + ORPHAN_PATIENCE)
    }

    /// Pods on the node that the plan does not know.
    pub(super) fn newcomers(&mut self, core: &mut Core, now: Duration) {
        if core.options.in_place {
            return;
        }
        let unknown: Vec<PodFacts> = core
            .index
            .pods_on(&self.place.node)
            .filter(|p| {
                let uid = &p.key.uid;
                !p.phase.is_finished()
                    && !self.by_pod.contains_key(uid)
                    && !self.by_launcher.contains_key(uid)
                    && !self.ignored.contains(uid)
            })
            .cloned()
            .collect();
        self.unclear.retain(|uid, _| unknown.iter().any(|pod| pod.key.uid == *uid));
        if unknown.is_empty() {
            return;
        }
        let plan = core.decider.plan(&core.index, &self.place.node, core.wall(now));
        self.undecided = false;
        for pod in unknown {
            let uid = pod.key.uid.clone();
            if self.may_have_predecessor(&pod) {
                self.undecided = true;
                continue;
            }
            if let Some(number) = self.predecessor(&pod) {
                self.ignored.insert(uid);
                let tolerates_cordon = pod.tolerates_cordon;
                self.pods[number].returned(Successor { name: pod.key.name, tolerates_cordon });
                continue;
            }
            let Some(plan) = &plan else { continue };
            if let Some(item) = plan.pods.iter().find(|i| i.pod.uid == uid) {
                let orphan = item.row.cause == Some(Cause::OrphanLauncher);
                if orphan && now < *self.unclear.entry(uid.clone()).or_insert(now) + ORPHAN_PATIENCE {
                    continue;
                }
                self.unclear.remove(&uid);
                let mut run = PodRun::new(item.clone());
                run.late = true;
                self.adopt_pod(run, core);
                self.step_pod(self.pods.len() - 1, core, now);
            } else if let Some(item) = plan.vms.iter().find(|i| i.launcher.uid == uid) {
                self.unclear.remove(&uid);
                self.launcher_came(item, core, now);
            } else {
                self.ignored.insert(uid);
            }
        }
    }

    /// The evicted pod whose place a newcomer takes. A pod that does not tolerate the cordon was bound before it, so it
    /// is late and no successor, unless a late one of its controller was evicted before: then it always comes back.
    fn predecessor(&self, pod: &PodFacts) -> Option<usize> {
        let owner = pod.owner.as_ref()?;
        let same = self.owners.get(&owner.uid)?;
        let gone = same.iter().copied().filter(|number| {
            let run = &self.pods[*number];
            run.evicted_by_us() && !run.has_successor() && (pod.tolerates_cordon || run.late)
        });
        // A StatefulSet gives the name again.
        gone.min_by_key(|number| self.pods[*number].item.pod.name != pod.key.name)
    }

    /// True while it is not known whether a pod of its controller left because of us: then this one is its successor.
    fn may_have_predecessor(&self, pod: &PodFacts) -> bool {
        let same = pod.owner.as_ref().and_then(|owner| self.owners.get(&owner.uid));
        pod.tolerates_cordon && same.is_some_and(|same| same.iter().any(|number| self.pods[*number].is_undecided()))
    }

    /// A launcher of that VM runs here that was not known.
    fn launcher_came(&mut self, item: &VmItem, core: &mut Core, now: Duration) {
        let uid = item.launcher.uid.clone();
        let replaces = |vm: &VmRun| core.successors.get(&item.vmi_uid) == Some(&vm.item.vmi_uid);
        let number = if let Some(number) = self.vms.iter().position(replaces) {
            self.by_launcher.insert(uid, number);
            number
        } else if let Some(number) = self.by_vm.get(&item.vmi).copied() {
            self.by_launcher.insert(uid, number);
            let known = &mut self.vms[number];
            if known.item.vmi_uid != item.vmi_uid && !known.has_acted() {
                // Another VMI has the name, and not by our doing: it is planned as what it is.
                core.brake.release(&item.vmi);
                *known = VmRun::new(item.clone());
            }
            number
        } else {
            self.adopt_vm(VmRun::new(item.clone()));
            self.vms.len() - 1
        };
        self.vms[number].step(core, &self.place, now);
    }
}
