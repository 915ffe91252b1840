//! VMs for the builder.

use serde_json::{Value, json};

use crate::json::Json;

/// A virtual machine: one container disk, runs, can migrate, unless it says otherwise.
#[derive(Clone, Debug)]
pub struct Vm {
    name: String,
    run_strategy: String,
    started: bool,
    template: Value,
}

impl Vm {
    /// A VM of that name.
    pub fn new(name: &str) -> Self {
        let template = json!({"metadata": {}, "spec": {"terminationGracePeriodSeconds": 30,
            "domain": {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}, "resources": {"requests": {"memory": "128Mi"}}},
            "volumes": [{"name": "root", "containerDisk": {"image": "quay.io/kubevirt/cirros"}}]}});
        Self { name: name.to_owned(), run_strategy: "Always".to_owned(), started: true, template }
    }

    /// Always, RerunOnFailure, Manual, Once, Halted.
    #[must_use]
    pub fn run_strategy(mut self, strategy: &str) -> Self {
        strategy.clone_into(&mut self.run_strategy);
        self
    }

    /// Not started (a Manual one).
    #[must_use]
    pub fn stopped(mut self) -> Self {
        self.started = false;
        self
    }

    /// evictionStrategy of the template.
    #[must_use]
    pub fn eviction_strategy(self, strategy: &str) -> Self {
        self.with(|t| t.put("/spec/evictionStrategy", strategy))
    }

    /// LiveMigratable is False for this reason.
    #[must_use]
    pub fn non_migratable(self, reason: &str) -> Self {
        self.annotation("lab/nonmigratable", reason)
    }

    /// How its migrations go: `hang`, `fail` or `dies` (the target pod, at once).
    #[must_use]
    pub fn migration(self, how: &str) -> Self {
        self.annotation("lab/migration", how)
    }

    /// Its migrations fail after the copy, for this reason.
    #[must_use]
    pub fn migration_fails(self, why: &str) -> Self {
        self.migration("fail").annotation("lab/migration-error", why)
    }

    /// The guest ignores its shutdown: takes the whole grace and ends Failed.
    #[must_use]
    pub fn ignores_shutdown(self) -> Self {
        self.annotation("lab/shutdown", "killed")
    }

    /// An annotation of the VMI.
    #[must_use]
    pub fn annotation(self, key: &str, value: &str) -> Self {
        self.with(|t| t.set_annotation(key, Some(value)))
    }

    /// A label of the VMI.
    #[must_use]
    pub fn label(self, key: &str, value: &str) -> Self {
        self.with(|t| t.set_label(key, value))
    }

    /// Grace of the guest in seconds.
    #[must_use]
    pub fn grace(self, seconds: i64) -> Self {
        self.with(|t| t.put("/spec/terminationGracePeriodSeconds", seconds))
    }

    /// Runs on nodes with this label only.
    #[must_use]
    pub fn node_selector(self, key: &str, value: &str) -> Self {
        self.with(|t| t["spec"]["nodeSelector"][key] = json!(value))
    }

    /// With a GPU by its resource name.
    #[must_use]
    pub fn gpu(self, resource: &str) -> Self {
        self.with(|t| t.put("/spec/domain/devices/gpus", json!([{"name": "gpu", "deviceName": resource}])))
    }

    /// With an emptyDisk, which a restart loses.
    #[must_use]
    pub fn empty_disk(self, name: &str) -> Self {
        self.volume(json!({"name": name, "emptyDisk": {"capacity": "1Gi"}}))
    }

    /// With a claim as another disk.
    #[must_use]
    pub fn claim(self, claim: &str) -> Self {
        self.volume(json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}))
    }

    /// With any other volume.
    #[must_use]
    pub fn volume(self, volume: Value) -> Self {
        self.with(|t| {
            let mut all = t.list("/spec/volumes").to_vec();
            all.push(volume);
            t.put("/spec/volumes", all);
        })
    }

    /// Any other change of the template.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.template);
        self
    }

    /// True for one that only a start request brings up.
    pub fn needs_start(&self) -> bool {
        self.started && self.run_strategy == "Manual"
    }

    pub(super) fn template(self) -> Value {
        self.template
    }

    pub(super) fn object(self, ns: &str) -> Value {
        json!({"metadata": {"name": self.name, "namespace": ns}, "spec": {"runStrategy": self.run_strategy, "template": self.template}})
    }

    pub(super) fn instance(self, ns: &str) -> Value {
        let mut object = self.template;
        object.put("/metadata/name", self.name);
        object.put("/metadata/namespace", ns);
        object
    }
}
