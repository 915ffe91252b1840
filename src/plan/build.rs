//! Builds the plan.
use super::{NodePlan, Plan};
use crate::facts::Index;
use crate::outcome::NodeReport;
use jiff::Timestamp;
/// What the plan depends on besides the facts.
#[derive(Debug, Clone, Default)]
pub struct PlanOptions {}
/// Builds the plan for these nodes.
pub fn build(_index: &Index, _nodes: &[String], _options: &PlanOptions, _now: Timestamp) -> Plan {
    todo!()
}
impl NodePlan {
    /// The forecast as a report.
    pub fn report(&self) -> NodeReport {
        todo!()
    }
}
