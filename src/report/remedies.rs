//! What to do about a row: its own remedy, the flags that it needs, else what its cause asks for. Pure.
//!
//! A forecast knows a remedy for what it foresees. What only the run finds comes with its cause alone; the table for it
//! stands here, once.

use crate::outcome::{Cause, PodOutcome, PodRow, VmOutcome, VmRow};

/// What to do about a VM.
pub fn of_vm(row: &VmRow) -> Option<String> {
    if row.outcome == VmOutcome::Lost {
        return Some(LOST.to_owned());
    }
    let stuck = matches!(row.outcome, VmOutcome::Blocks | VmOutcome::Down);
    known(row.remedy.as_ref(), &row.needs).or_else(|| row.cause.filter(|_| stuck).and_then(|cause| for_vm(row, cause)))
}

/// What to do about a pod.
pub fn of_pod(row: &PodRow) -> Option<String> {
    let stuck = matches!(row.outcome, PodOutcome::Blocks | PodOutcome::Returned);
    known(row.remedy.as_ref(), &row.needs).or_else(|| row.cause.filter(|_| stuck).and_then(|cause| for_pod(row, cause)))
}

/// What a guest that may still run is dangerous for.
const LOST: &str = "make sure that the machine is off before it is started elsewhere: two guests corrupt one disk";

/// The row's own remedy, else the flags that it needs.
fn known(remedy: Option<&String>, needs: &[&'static str]) -> Option<String> {
    remedy.cloned().or_else(|| (!needs.is_empty()).then(|| format!("add {}", needs.join(" "))))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the other causes come with a remedy, or pass by themselves")]
fn for_vm(row: &VmRow, cause: Cause) -> Option<String> {
    let (ns, name) = (&row.namespace, &row.name);
    let owned = super::lines::has_vm(row);
    let stop =
        if owned { format!("`virtctl stop {name} -n {ns}`") } else { format!("`kubectl delete vmi {name} -n {ns}`") };
    Some(match cause {
        Cause::MigrationMissing => format!("`kubectl get vmim -n {ns}`, and look at the log of virt-controller"),
        Cause::BecameNonMigratable => "the same command again: a new plan says what it takes now".to_owned(),
        Cause::RestartStalled => format!("`kubectl describe vm {name} -n {ns}` says what it waits for"),
        Cause::RestartRefused => format!("`virtctl restart {name} -n {ns}`, once what refuses it is cleared"),
        Cause::Unschedulable => {
            format!(
                "make room for it; `kubectl describe pod -n {ns} -l vm.kubevirt.io/name={name}` says what is missing"
            )
        }
        Cause::VmLookupFailed => VIRT_API.to_owned(),
        Cause::OrphanLauncher => match &row.launcher {
            Some(launcher) => {
                format!("check that no guest runs in it, then `kubectl delete pod {} -n {ns}`", launcher.name)
            }
            None => "check that no guest runs in its launcher, then delete that pod".to_owned(),
        },
        Cause::NodeNotReady => "bring the node back, or fence it and remove it".to_owned(),
        Cause::SameNode => format!("{stop}, or take the toleration of the cordon away from its template"),
        Cause::ConditionMissing => {
            "look at virt-handler on its node: `kubectl get pods -A -o wide -l kubevirt.io=virt-handler`".to_owned()
        }
        other => return common(ns, &[], other),
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the other causes come with a remedy, or pass by themselves")]
fn for_pod(row: &PodRow, cause: Cause) -> Option<String> {
    let (ns, name) = (&row.namespace, &row.name);
    Some(match cause {
        Cause::OrphanLauncher => {
            format!("check that no guest runs in it, then `kubectl delete pod {name} -n {ns}`")
        }
        Cause::VmLookupFailed => VIRT_API.to_owned(),
        Cause::Returned | Cause::SameNode => {
            "scale its owner down for the time, or take the toleration away from its template".to_owned()
        }
        other => return common(ns, &row.budgets, other),
    })
}

/// Where KubeVirt's webhook lives.
const VIRT_API: &str = "look at virt-api: `kubectl get pods -A -l kubevirt.io=virt-api`";

#[expect(clippy::wildcard_enum_match_arm, reason = "the other causes come with a remedy, or pass by themselves")]
fn common(namespace: &str, budgets: &[String], cause: Cause) -> Option<String> {
    let budget = |verb: &str| match budgets.first().and_then(|b| b.split_once('/')) {
        Some((ns, name)) => format!("`kubectl {verb} pdb {name} -n {ns}`"),
        None => format!("`kubectl {verb} pdb -n {namespace}`"),
    };
    Some(match cause {
        Cause::WebhookUnreachable => "get the service of that webhook running; for KubeVirt's look at virt-api: \
                                      `kubectl get pods -A -l kubevirt.io=virt-api`"
            .to_owned(),
        Cause::WebhookRefused => "clear what it asks for, with whoever runs that webhook".to_owned(),
        Cause::Forbidden => "get that permission (deploy/rbac.yaml has all that a drain needs)".to_owned(),
        Cause::BudgetBroken => format!("{} says what is wrong with it", budget("describe")),
        Cause::BudgetUnsynced => format!("look at kube-controller-manager; {}", budget("describe")),
        Cause::BudgetNever => budget("edit"),
        Cause::MultipleBudgets => {
            format!("`kubectl get pdb -n {namespace}`: change their selectors so that one is left")
        }
        Cause::NodeNotReady => "bring the node back, or fence it and remove it".to_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{pod, vm};

    #[test]
    fn what_only_the_run_finds_has_a_remedy() {
        let causes = [
            Cause::MigrationMissing,
            Cause::BecameNonMigratable,
            Cause::RestartStalled,
            Cause::RestartRefused,
            Cause::Unschedulable,
            Cause::WebhookUnreachable,
            Cause::WebhookRefused,
            Cause::Forbidden,
            Cause::BudgetBroken,
            Cause::MultipleBudgets,
            Cause::VmLookupFailed,
            Cause::OrphanLauncher,
            Cause::NodeNotReady,
            Cause::SameNode,
            Cause::ConditionMissing,
        ];
        for cause in causes {
            let row = VmRow { cause: Some(cause), ..vm("a", VmOutcome::Blocks, "") };
            let remedy = of_vm(&row).unwrap_or_else(|| panic!("{cause:?}"));
            assert_eq!(remedy.matches('`').count() % 2, 0, "{remedy}");
        }
        let pods = [
            Cause::WebhookUnreachable,
            Cause::WebhookRefused,
            Cause::Forbidden,
            Cause::BudgetBroken,
            Cause::BudgetNever,
            Cause::MultipleBudgets,
            Cause::VmLookupFailed,
            Cause::OrphanLauncher,
            Cause::Returned,
        ];
        for cause in pods {
            let row = PodRow { cause: Some(cause), ..pod("shop", "a", PodOutcome::Blocks) };
            assert!(of_pod(&row).is_some(), "{cause:?}");
        }
    }

    #[test]
    fn a_remedy_of_its_own_comes_first_and_what_goes_on_needs_none() {
        let own =
            VmRow { cause: Some(Cause::MigrationFailed), remedy: Some("x".into()), ..vm("a", VmOutcome::Blocks, "") };
        assert_eq!(of_vm(&own).as_deref(), Some("x"));
        let waits = VmRow { cause: Some(Cause::WebhookUnreachable), ..vm("a", VmOutcome::Pending, "") };
        assert_eq!(of_vm(&waits), None);
        let broken = PodRow {
            cause: Some(Cause::BudgetBroken),
            budgets: vec!["shop/web".into()],
            ..pod("shop", "a", PodOutcome::Blocks)
        };
        assert!(of_pod(&broken).unwrap().contains("`kubectl describe pdb web -n shop`"));
    }
}
