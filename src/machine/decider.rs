//! How the machine decides anew: by the same functions that made the plan, on the facts of now.

use jiff::Timestamp;

use crate::facts::{Index, Key};
use crate::plan::consent::Consent;
use crate::plan::{NodePlan, PlanOptions, PodItem, VmItem, build, forecast_pod, forecast_vm};

/// Plans a node or an item again. Consent that was given stays given, and is never widened.
pub trait Decide {
    /// The plan of the node as it would be made now; `None` if the node is not known.
    fn plan(&self, index: &Index, node: &str, now: Timestamp) -> Option<NodePlan>;

    /// One VM of the node as it would be planned now; `None` if it is not on the node any more.
    fn vm(&self, index: &Index, node: &str, vmi: &Key, now: Timestamp) -> Option<VmItem>;

    /// A pod as it would be planned now; `None` if it is gone.
    fn pod(&self, index: &Index, item: &PodItem, now: Timestamp) -> Option<PodItem>;
}

/// A boxed [`Decide`].
pub type Decider = Box<dyn Decide>;

/// The decider of a drain: the functions of the plan, with the command's options and the consent that was given.
#[derive(Debug, Clone)]
pub struct Planner {
    /// What the command was told, with all nodes that it drains.
    pub options: PlanOptions,
    /// What flags and an answer allow.
    pub consent: Consent,
}

impl Decide for Planner {
    fn plan(&self, index: &Index, node: &str, now: Timestamp) -> Option<NodePlan> {
        let plan = build(index, &[node.to_owned()], &self.options, now);
        let mut plan = plan.nodes.into_iter().next()?;
        for item in &mut plan.vms {
            self.consent.apply(item);
        }
        Some(plan)
    }

    fn vm(&self, index: &Index, node: &str, vmi: &Key, now: Timestamp) -> Option<VmItem> {
        let mut item = forecast_vm(index, node, vmi, &self.options, now)?;
        self.consent.apply(&mut item);
        Some(item)
    }

    fn pod(&self, index: &Index, item: &PodItem, now: Timestamp) -> Option<PodItem> {
        forecast_pod(index.pod(&item.pod.uid)?, index, &self.options, now)
    }
}
