//! A cluster without KubeVirt: deployments on node-0, no such API groups.

use super::Settings;
use crate::options::Options;
use crate::sim::Sim;

/// Builds it.
pub(super) fn build(settings: Settings) -> Sim {
    Sim::new(Options { kubevirt: None, ..settings.options })
        .world()
        .nodes(3)
        .on("node-0")
        .deployment("shop", "web", settings.pods.unwrap_or(4))
        .deployment("shop", "cart", 2)
        .daemon_set("kube-system", "agent")
        .done()
}
