//! Which VMs a command is about that looks at no single node.

use super::{Index, LabelSelector, VmFacts, VmiFacts, VmiOwner};

/// The VMs of a namespace, or of all, with the labels of a selector, or with any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// The namespace; `None` is all of them.
    pub namespace: Option<String>,
    /// What their labels must satisfy; `None` is nothing.
    pub selector: Option<LabelSelector>,
}

impl Scope {
    /// True if the VM is one of them.
    pub fn holds_vm(&self, vm: &VmFacts) -> bool {
        self.has_namespace(&vm.key.namespace) && self.selects(&vm.labels)
    }

    /// True if the VMI is one of them: by the labels of the VM that owns it, by its own where none does.
    ///
    /// Under a selector, a VMI whose VM is not known is not one of them: nobody can tell which labels that VM has.
    pub fn holds(&self, index: &Index, vmi: &VmiFacts) -> bool {
        if !self.has_namespace(&vmi.key.namespace) {
            return false;
        }
        match vmi.owner {
            VmiOwner::VirtualMachine { .. } => match index.vm(&vmi.key) {
                Some(vm) => self.selects(&vm.labels),
                None => self.selector.is_none(),
            },
            VmiOwner::ReplicaSet { .. } | VmiOwner::Other { .. } | VmiOwner::Standalone => self.selects(&vmi.labels),
        }
    }

    /// The VMIs of the scope, by key. Those whose guest has ended are left out: nothing of them runs on any node.
    pub fn vmis<'a>(&'a self, index: &'a Index) -> impl Iterator<Item = &'a VmiFacts> {
        index.vmis().filter(|vmi| !vmi.phase.is_final() && self.holds(index, vmi))
    }

    fn has_namespace(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|wanted| wanted == namespace)
    }

    fn selects(&self, labels: &[(String, String)]) -> bool {
        let label = |key: &str| labels.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str());
        self.selector.as_ref().is_none_or(|selector| selector.matches_by(label))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::VmiPhase;
    use crate::facts::testing::{NS, labels, vm, vmi, world};

    fn label(value: &str) -> Vec<(String, String)> {
        vec![("app".to_owned(), value.to_owned())]
    }

    fn names(scope: &Scope, index: &Index) -> Vec<String> {
        scope.vmis(index).map(|v| v.key.name.clone()).collect()
    }

    #[test]
    fn labels_are_those_of_the_vm_or_of_a_vmi_without_one() {
        let mut vms = [vm("db"), vm("web")];
        vms[0].labels = label("db");
        vms[1].labels = label("web");
        let [db, web] = vms;
        let alone =
            |name: &str, value: &str| vmi(name).owned_by(VmiOwner::Standalone).with(|v| v.labels = label(value));
        let replica = vmi("replica").owned_by(VmiOwner::ReplicaSet { name: "set".into() });
        let cluster = world()
            .vm(db)
            .vm(web)
            // The labels of a VMI that a VM owns are its template's; they do not count.
            .vmi(vmi("db").with(|v| v.labels = label("web")))
            .vmi(vmi("web"))
            .vmi(vmi("orphan").with(|v| v.labels = label("db")))
            .vmi(alone("alone", "db"))
            .vmi(replica.with(|v| v.labels = label("db")))
            .vmi(alone("ended", "db").with(|v| v.phase = VmiPhase::Succeeded));
        let index = &cluster.index;
        let selector = LabelSelector { match_labels: labels(&[("app", "db")]), expressions: Vec::new() };
        let scope = |namespace: Option<&str>, selector: Option<LabelSelector>| Scope {
            namespace: namespace.map(str::to_owned),
            selector,
        };
        let all = ["alone", "db", "orphan", "replica", "web"];
        let cases = [
            (scope(None, None), all.as_slice()),
            (scope(Some(NS), None), all.as_slice()),
            (scope(Some("other"), None), &[]),
            (scope(None, Some(selector.clone())), &["alone", "db", "replica"]),
            (scope(Some("other"), Some(selector.clone())), &[]),
        ];
        for (scope, expected) in cases {
            assert_eq!(names(&scope, index), expected, "{scope:?}");
        }
        let held = |namespace, name: &str| {
            scope(namespace, Some(selector.clone())).holds_vm(index.vm(&crate::facts::Key::new(NS, name)).unwrap())
        };
        assert_eq!((held(None, "db"), held(None, "web"), held(Some("other"), "db")), (true, false, false));
    }
}
