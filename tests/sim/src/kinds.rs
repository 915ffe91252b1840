//! The resources that the simulator holds, in one table: paths, discovery and object kinds are all read from it.

/// A resource.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum Kind {
    Namespace,
    Node,
    Pod,
    Event,
    PersistentVolume,
    PersistentVolumeClaim,
    ResourceQuota,
    Service,
    ConfigMap,
    ReplicaSet,
    Deployment,
    StatefulSet,
    DaemonSet,
    Job,
    Pdb,
    StorageClass,
    VolumeAttachment,
    ApiService,
    Vm,
    Vmi,
    Vmim,
    Vmirs,
    KubeVirt,
    Cdi,
    DataVolume,
}

/// What the API says about a resource.
#[derive(Debug)]
pub struct Info {
    /// The resource.
    pub id: Kind,
    /// API group, "" for core.
    pub group: &'static str,
    /// API version without the group.
    pub version: &'static str,
    /// Plural, as in paths.
    pub plural: &'static str,
    /// Singular.
    pub singular: &'static str,
    /// The object's kind.
    pub kind: &'static str,
    /// Whether it lives in a namespace.
    pub namespaced: bool,
    /// kubectl's short names.
    pub short: &'static [&'static str],
}

macro_rules! table {
    ($($id:ident $group:literal $version:literal $plural:literal $singular:literal $kind:literal $ns:literal [$($short:literal),*];)*) => {
        /// All resources.
        pub(crate) static TABLE: &[Info] = &[$(Info { id: Kind::$id, group: $group, version: $version, plural: $plural,
            singular: $singular, kind: $kind, namespaced: $ns, short: &[$($short),*] }),*];
    };
}

table! {
    Namespace "" "v1" "namespaces" "namespace" "Namespace" false ["ns"];
    Node "" "v1" "nodes" "node" "Node" false ["no"];
    Pod "" "v1" "pods" "pod" "Pod" true ["po"];
    Event "" "v1" "events" "event" "Event" true ["ev"];
    PersistentVolume "" "v1" "persistentvolumes" "persistentvolume" "PersistentVolume" false ["pv"];
    PersistentVolumeClaim "" "v1" "persistentvolumeclaims" "persistentvolumeclaim" "PersistentVolumeClaim" true ["pvc"];
    ResourceQuota "" "v1" "resourcequotas" "resourcequota" "ResourceQuota" true ["quota"];
    Service "" "v1" "services" "service" "Service" true ["svc"];
    ConfigMap "" "v1" "configmaps" "configmap" "ConfigMap" true ["cm"];
    ReplicaSet "apps" "v1" "replicasets" "replicaset" "ReplicaSet" true ["rs"];
    Deployment "apps" "v1" "deployments" "deployment" "Deployment" true ["deploy"];
    StatefulSet "apps" "v1" "statefulsets" "statefulset" "StatefulSet" true ["sts"];
    DaemonSet "apps" "v1" "daemonsets" "daemonset" "DaemonSet" true ["ds"];
    Job "batch" "v1" "jobs" "job" "Job" true [];
    Pdb "policy" "v1" "poddisruptionbudgets" "poddisruptionbudget" "PodDisruptionBudget" true ["pdb"];
    StorageClass "storage.k8s.io" "v1" "storageclasses" "storageclass" "StorageClass" false ["sc"];
    VolumeAttachment "storage.k8s.io" "v1" "volumeattachments" "volumeattachment" "VolumeAttachment" false [];
    ApiService "apiregistration.k8s.io" "v1" "apiservices" "apiservice" "APIService" false [];
    Vm "kubevirt.io" "v1" "virtualmachines" "virtualmachine" "VirtualMachine" true ["vm", "vms"];
    Vmi "kubevirt.io" "v1" "virtualmachineinstances" "virtualmachineinstance" "VirtualMachineInstance" true ["vmi", "vmis"];
    Vmim "kubevirt.io" "v1" "virtualmachineinstancemigrations" "virtualmachineinstancemigration" "VirtualMachineInstanceMigration" true ["vmim", "vmims"];
    Vmirs "kubevirt.io" "v1" "virtualmachineinstancereplicasets" "virtualmachineinstancereplicaset" "VirtualMachineInstanceReplicaSet" true ["vmirs", "vmirss"];
    KubeVirt "kubevirt.io" "v1" "kubevirts" "kubevirt" "KubeVirt" true ["kv", "kvs"];
    Cdi "cdi.kubevirt.io" "v1beta1" "cdis" "cdi" "CDI" false ["cdi"];
    DataVolume "cdi.kubevirt.io" "v1beta1" "datavolumes" "datavolume" "DataVolume" true ["dv", "dvs"];
}

impl Kind {
    /// The table row.
    pub fn info(self) -> &'static Info {
        TABLE.iter().find(|i| i.id == self).expect("every kind has a row")
    }

    /// The resource of a path.
    pub fn of_path(group: &str, version: &str, plural: &str) -> Option<Self> {
        TABLE.iter().find(|i| i.group == group && i.version == version && i.plural == plural).map(|i| i.id)
    }

    /// The resource of an object's `kind` (kinds are unique in the table).
    pub fn of_object(kind: &str) -> Option<Self> {
        TABLE.iter().find(|i| i.kind == kind).map(|i| i.id)
    }

    /// `group/version`, or `version` for core.
    pub fn api_version(self) -> String {
        let i = self.info();
        if i.group.is_empty() { i.version.to_owned() } else { format!("{}/{}", i.group, i.version) }
    }

    /// `plural.group`, or `plural` for core: how error texts name a resource.
    pub fn qualified(self) -> String {
        let i = self.info();
        if i.group.is_empty() { i.plural.to_owned() } else { format!("{}.{}", i.plural, i.group) }
    }

    /// Whether it comes from a custom resource definition (those answer with other field sets).
    pub fn is_custom(self) -> bool {
        self.info().group.ends_with("kubevirt.io")
    }
}

/// Names one object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// The resource.
    pub kind: Kind,
    /// Namespace, "" for cluster-wide objects.
    pub ns: String,
    /// Name.
    pub name: String,
}

impl Key {
    /// Names an object.
    pub fn new(kind: Kind, ns: &str, name: &str) -> Self {
        let ns = if kind.info().namespaced { ns.to_owned() } else { String::new() };
        Self { kind, ns, name: name.to_owned() }
    }
}
