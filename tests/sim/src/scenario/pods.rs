//! Many pods of one deployment on node-0, with a budget on demand: for speed and for budgets. No KubeVirt.

use serde_json::json;

use super::Settings;
use crate::options::Options;
use crate::sim::Sim;

/// Builds it: 250 pods unless told otherwise.
pub(super) fn build(settings: Settings) -> Sim {
    let world = Sim::new(Options { kubevirt: None, ..settings.options }).world().nodes(3).on("node-0").deployment(
        "load",
        "web",
        settings.pods.unwrap_or(250),
    );
    match settings.budget {
        Some(n) => world.pdb("load", "web", "web", json!({"maxUnavailable": n})),
        None => world,
    }
    .done()
}
