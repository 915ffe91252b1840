//! Pods for the builder.

use serde_json::{Value, json};

use crate::json::Json;

/// A pod's template, in the words of drain tests.
#[derive(Clone, Debug)]
pub struct PodSpec {
    object: Value,
    phase: Option<&'static str>,
    mirror: bool,
}

impl Default for PodSpec {
    fn default() -> Self {
        Self::new()
    }
}

impl PodSpec {
    /// One container, nothing special.
    pub fn new() -> Self {
        Self {
            object: json!({"metadata": {}, "spec": {"containers": [{"name": "c", "image": "pause"}]}}),
            phase: None,
            mirror: false,
        }
    }

    /// Adds a label.
    #[must_use]
    pub fn label(self, key: &str, value: &str) -> Self {
        self.with(|o| o.set_label(key, value))
    }

    /// Adds an annotation, e.g. `lab/stop: 20s`.
    #[must_use]
    pub fn annotation(self, key: &str, value: &str) -> Self {
        self.with(|o| o.set_annotation(key, Some(value)))
    }

    /// With an emptyDir volume.
    #[must_use]
    pub fn empty_dir(self) -> Self {
        self.with(|o| o.put("/spec/volumes", json!([{"name": "scratch", "emptyDir": {}}])))
    }

    /// Mounts a claim.
    #[must_use]
    pub fn claim(self, name: &str) -> Self {
        self.with(|o| o.put("/spec/volumes", json!([{"name": "data", "persistentVolumeClaim": {"claimName": name}}])))
    }

    /// Grace in seconds.
    #[must_use]
    pub fn grace(self, seconds: i64) -> Self {
        self.with(|o| o.put("/spec/terminationGracePeriodSeconds", seconds))
    }

    /// A finalizer that keeps the object after the pod has stopped.
    #[must_use]
    pub fn finalizer(self, name: &str) -> Self {
        self.with(|o| o.put("/metadata/finalizers", json!([name])))
    }

    /// Tolerates everything: comes back to a cordoned node.
    #[must_use]
    pub fn tolerates_everything(self) -> Self {
        self.with(|o| o.put("/spec/tolerations", json!([{"operator": "Exists"}])))
    }

    /// Its priority class.
    #[must_use]
    pub fn priority_class(self, name: &str) -> Self {
        self.with(|o| o.put("/spec/priorityClassName", name))
    }

    /// Runs, but never gets ready.
    #[must_use]
    pub fn unready(self) -> Self {
        self.annotation("lab/crash", "true")
    }

    /// A mirror of a static pod of the node given with `on`.
    #[must_use]
    pub fn mirror(self) -> Self {
        let mut pod = self
            .annotation("kubernetes.io/config.mirror", "0123456789abcdef")
            .annotation("kubernetes.io/config.source", "file");
        pod.mirror = true;
        pod
    }

    /// Has finished already, in this phase (a pod of its own only).
    #[must_use]
    pub fn finished(self, phase: &'static str) -> Self {
        Self { phase: Some(phase), ..self }
    }

    /// Any other change, on an object with metadata and spec.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.object);
        self
    }

    pub(super) fn is_mirror(&self) -> bool {
        self.mirror
    }

    pub(super) fn template(self) -> Value {
        self.object
    }

    pub(super) fn object(self, ns: &str, name: &str) -> (Value, Option<&'static str>) {
        let mut object = self.object;
        object.put("/metadata/name", name);
        object.put("/metadata/namespace", ns);
        (object, self.phase)
    }
}
