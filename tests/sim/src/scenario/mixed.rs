//! One of each sort of pod that a drain treats apart, on node-0.

use super::Settings;
use crate::options::Options;
use crate::sim::Sim;
use crate::world::PodSpec;

/// Builds it.
pub(super) fn build(settings: Settings) -> Sim {
    Sim::new(Options { kubevirt: None, ..settings.options })
        .world()
        .nodes(3)
        .on("node-0")
        .deployment("shop", "web", settings.pods.unwrap_or(2))
        .deployment_with("shop", "cache", 1, PodSpec::new().empty_dir())
        .stateful_set("shop", "db", 1)
        .pod("shop", "bare", PodSpec::new())
        .pod("shop", "done", PodSpec::new().finished("Succeeded"))
        .pod("kube-system", "static-node-0", PodSpec::new().mirror())
        .daemon_set("kube-system", "agent")
        .done()
}
