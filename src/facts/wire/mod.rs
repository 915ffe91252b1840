//! API objects with only the fields that the plugin reads. Pure: types for `kube::Api` and `kube::runtime::watcher`.
//!
//! What is not used is dropped while it is parsed: of metadata only identity, deletion, labels, owners, finalizers and the
//! few annotations that are read; of `managedFields` nothing, except on nodes the manager that owns `spec.unschedulable`.
//!
//! Parsing is lenient where servers really differ: unknown fields are ignored, `null` counts as absent. An object without
//! name or UID, or with a value of another type, is an error; where one such object must not spoil a whole list, wrap
//! the type in `kube::core::DeserializeGuard`.

mod core;
mod kubevirt;
mod lenient;
mod meta;
mod pod;
mod quantity;

pub use self::core::{Node, PersistentVolume, PersistentVolumeClaim, PodDisruptionBudget};
pub use self::kubevirt::{
    KubeVirt, VirtualMachine, VirtualMachineInstance, VirtualMachineInstanceMigration, VirtualMachineInstanceReplicaSet,
};
pub use self::pod::Pod;

pub(in crate::facts) use self::core::{NodeSelector, Requirement, SelectorWire};
pub(in crate::facts) use self::kubevirt::{MigrationStateWire, VmiDisk, WorkloadUpdateWire};
pub(in crate::facts) use self::lenient::{Condition, condition};
pub(in crate::facts) use self::pod::{Container, PodSpec, PodStatus, TolerationWire};

/// Annotation of the API's picture of a static pod (Kubernetes `pkg/kubelet/types`, `ConfigMirrorAnnotationKey`).
pub(in crate::facts) const MIRROR: &str = "kubernetes.io/config.mirror";
/// Annotation of a launcher: name of its VMI (KubeVirt `DomainAnnotation`).
pub(in crate::facts) const DOMAIN: &str = "kubevirt.io/domain";
/// Annotation of a migration: the node whose evacuation made it (KubeVirt `EvacuationMigrationAnnotation`).
pub(in crate::facts) const EVACUATION: &str = "kubevirt.io/evacuationMigration";
/// Annotation of a node: when virt-handler last spoke (KubeVirt `VirtHandlerHeartbeat`).
pub(in crate::facts) const HEARTBEAT: &str = "kubevirt.io/heartbeat";

/// The annotations that are kept.
const ANNOTATIONS: [&str; 4] = [MIRROR, DOMAIN, EVACUATION, HEARTBEAT];

macro_rules! resource {
    ($type:ident, $group:literal, $version:literal, $plural:literal, $scope:ident) => {
        impl kube::Resource for $type {
            type DynamicType = ();
            type Scope = kube::core::$scope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                stringify!($type).into()
            }

            fn group((): &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }

            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &kube::core::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut kube::core::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

resource!(Pod, "", "v1", "pods", NamespaceResourceScope);
resource!(Node, "", "v1", "nodes", ClusterResourceScope);
resource!(PersistentVolumeClaim, "", "v1", "persistentvolumeclaims", NamespaceResourceScope);
resource!(PersistentVolume, "", "v1", "persistentvolumes", ClusterResourceScope);
resource!(PodDisruptionBudget, "policy", "v1", "poddisruptionbudgets", NamespaceResourceScope);
resource!(VirtualMachine, "kubevirt.io", "v1", "virtualmachines", NamespaceResourceScope);
resource!(VirtualMachineInstance, "kubevirt.io", "v1", "virtualmachineinstances", NamespaceResourceScope);
resource!(
    VirtualMachineInstanceMigration,
    "kubevirt.io",
    "v1",
    "virtualmachineinstancemigrations",
    NamespaceResourceScope
);
resource!(
    VirtualMachineInstanceReplicaSet,
    "kubevirt.io",
    "v1",
    "virtualmachineinstancereplicasets",
    NamespaceResourceScope
);
resource!(KubeVirt, "kubevirt.io", "v1", "kubevirts", NamespaceResourceScope);

#[cfg(test)]
mod tests;
