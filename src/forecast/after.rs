//! What becomes of a VM after its guest was shut down by an eviction.

use super::words;
use crate::facts::{Key, RunStrategy, VmFacts, VmiOwner};

/// What follows a clean shutdown, provided that some node can take the VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum After {
    /// It is started again by its owner.
    Returns {
        /// Who does it.
        by: &'static str,
    },
    /// It would stay off, but a restart in place of the eviction costs the same downtime and brings it back.
    RestartInstead {
        /// Why it would stay off.
        why: String,
    },
    /// It stays off, and nobody wants it to run: no consent is needed.
    Ends {
        /// Why.
        why: &'static str,
    },
    /// It stays off until somebody acts.
    StaysOff {
        /// Why.
        why: String,
        /// What brings it back.
        remedy: Option<String>,
    },
}

/// Looks at who owns the VMI and, for a VM, at its run strategy (virt-controller's VM controller and replica set).
///
/// `RerunOnFailure` and `Manual` keep a VM off that shut down cleanly; `restart` adds a start request, so that it surely
/// returns. `Once` accepts neither restart nor start.
pub fn after(vmi: &Key, owner: &VmiOwner, vm: Option<&VmFacts>, restart_impossible: bool) -> After {
    match (owner, vm) {
        (VmiOwner::VirtualMachine { .. }, Some(vm)) => after_vm(vmi, vm, restart_impossible),
        (VmiOwner::VirtualMachine { .. }, None) => After::StaysOff {
            why: "its VM could not be read, so nobody can tell whether it returns".into(),
            remedy: None,
        },
        (VmiOwner::ReplicaSet { .. }, _) => After::Returns { by: "its replica set" },
        (VmiOwner::Other { kind, name }, _) => {
            After::StaysOff { why: format!("whether {kind} {name} starts it again is unknown"), remedy: None }
        }
        (VmiOwner::Standalone, _) => {
            After::StaysOff { why: "no VM owns it, so nothing starts it again".into(), remedy: None }
        }
    }
}

fn after_vm(vmi: &Key, vm: &VmFacts, restart_impossible: bool) -> After {
    if vm.deleting {
        return After::Ends { why: "its VM is being deleted" };
    }
    if vm.start_requested {
        return After::Returns { by: "the restart that is under way" };
    }
    match &vm.run_strategy {
        RunStrategy::Always => After::Returns { by: "its VM" },
        RunStrategy::Halted => After::Ends { why: "its VM is being stopped" },
        strategy @ (RunStrategy::RerunOnFailure | RunStrategy::Manual) => {
            let why = format!("runStrategy {strategy} keeps it off after a shutdown");
            if restart_impossible {
                let why = format!("{why}, and it cannot be restarted");
                After::StaysOff { why, remedy: Some(words::virtctl("start", vmi)) }
            } else {
                After::RestartInstead { why }
            }
        }
        RunStrategy::Once => After::StaysOff {
            why: "runStrategy Once keeps it off after a shutdown".into(),
            remedy: Some(words::delete_vmi(vmi)),
        },
        strategy @ (RunStrategy::WaitAsReceiver | RunStrategy::Unknown(_)) => After::StaysOff {
            why: format!("whether it runs again under runStrategy {strategy} is unknown"),
            remedy: Some(words::virtctl("start", vmi)),
        },
    }
}
