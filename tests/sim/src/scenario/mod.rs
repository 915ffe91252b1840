//! Clusters by name, for the demo and for tests.

mod mixed;
mod plain;
mod pods;
pub mod strategy_switch;

use crate::options::{Options, Profile};
use crate::sim::Sim;

/// The names that [`start`] knows.
pub const NAMES: &[&str] = &["strategy-switch", "plain", "pods", "mixed"];

/// What a scenario is made with.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Knobs; a scenario decides itself whether there is KubeVirt.
    pub options: Options,
    /// Number of pods, where it has one.
    pub pods: Option<usize>,
    /// maxUnavailable of a budget over them.
    pub budget: Option<usize>,
}

impl Settings {
    /// With another KubeVirt release.
    #[must_use]
    pub fn kubevirt(mut self, profile: Profile) -> Self {
        self.options.kubevirt = Some(profile);
        self
    }
}

/// Starts a scenario on the current runtime; `None` for an unknown name.
pub fn start(name: &str, settings: Settings) -> Option<Sim> {
    Some(match name {
        "strategy-switch" => strategy_switch::build(settings),
        "plain" => plain::build(settings),
        "pods" => pods::build(settings),
        "mixed" => mixed::build(settings),
        _ => return None,
    })
}
