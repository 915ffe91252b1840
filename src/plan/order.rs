//! Which pods go last: those that VMs and disks need while they leave.

use super::Wave;
use crate::facts::{CDI_LABEL, Index, KubeVirtState, PodFacts};

/// Priority of system classes (`system-cluster-critical` is 2 000 000 000).
const SYSTEM_PRIORITY: i32 = 2_000_000_000;

/// Pods of storage managers, as (label, value) of their own manifests: a disk that detaches needs them.
///
/// Longhorn's instance managers and share managers; Rook's Ceph daemons; Piraeus and LINSTOR satellites and controllers;
/// OpenEBS' target pods; Portworx; StorageOS.
const STORAGE_MANAGERS: &[(&str, &str)] = &[
    ("longhorn.io/component", "instance-manager"),
    ("longhorn.io/component", "share-manager"),
    ("app", "rook-ceph-mon"),
    ("app", "rook-ceph-osd"),
    ("app", "rook-ceph-mgr"),
    ("app", "rook-ceph-mds"),
    ("app.kubernetes.io/component", "linstor-satellite"),
    ("app.kubernetes.io/component", "linstor-controller"),
    ("openebs.io/target", "cstor-target"),
    ("app.kubernetes.io/name", "linstor"),
    ("name", "portworx"),
    ("app", "storageos"),
];

/// Namespaces that hold nothing but a storage manager.
const STORAGE_NAMESPACES: &[&str] = &[
    "longhorn-system",
    "rook-ceph",
    "openebs",
    "piraeus-datastore",
    "linbit-sds",
    "cozy-linstor",
    "portworx",
    "mayastor",
];

/// When a pod has its turn. From KubeVirt 1.5 on, evictions of launchers fail while virt-api is away, so KubeVirt's own
/// pods leave after the VMs.
pub(super) fn wave(pod: &PodFacts, index: &Index) -> Wave {
    let namespace = pod.key.namespace.as_str();
    let last = pod.priority >= SYSTEM_PRIORITY
        || index.infrastructure_namespaces.contains(namespace)
        || kubevirt_namespace(index) == Some(namespace)
        || pod.labels.contains_key(CDI_LABEL)
        || STORAGE_NAMESPACES.contains(&namespace)
        || STORAGE_MANAGERS.iter().any(|(key, value)| pod.labels.get(*key).map(String::as_str) == Some(value));
    if last { Wave::Infrastructure } else { Wave::Workload }
}

/// virt-api leaves one pod at a time: its webhook answers every eviction of a launcher.
pub(super) fn one_at_a_time(pod: &PodFacts) -> Option<&'static str> {
    (pod.labels.get("kubevirt.io").map(String::as_str) == Some("virt-api")).then_some("virt-api")
}

fn kubevirt_namespace(index: &Index) -> Option<&str> {
    match index.kubevirt() {
        KubeVirtState::One(cr) => Some(cr.key.namespace.as_str()),
        KubeVirtState::Absent | KubeVirtState::Unclear => None,
    }
}
