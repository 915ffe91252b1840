//! How the machine decides anew: by the same functions that made the plan, on the facts of now.

use jiff::Timestamp;

use crate::facts::{Index, Key};
use crate::plan::{NodePlan, PodItem, VmItem};

/// Plans a node or an item again. Consent that was given stays given, and is never widened.
pub trait Decide {
    /// The plan of the node as it would be made now; `None` if the node is not known.
    fn plan(&self, index: &Index, node: &str, now: Timestamp) -> Option<NodePlan>;

    /// One VM of the node as it would be planned now; `None` if it is not on the node any more.
    fn vm(&self, index: &Index, node: &str, vmi: &Key, now: Timestamp) -> Option<VmItem> {
        self.plan(index, node, now)?.vms.into_iter().find(|item| item.vmi == *vmi)
    }

    /// A pod as it would be planned now; `None` if it is not on a node any more.
    fn pod(&self, index: &Index, item: &PodItem, now: Timestamp) -> Option<PodItem> {
        let node = index.pod(&item.pod.uid)?.node.clone()?;
        self.plan(index, &node, now)?.pods.into_iter().find(|fresh| fresh.pod.uid == item.pod.uid)
    }
}

/// A boxed [`Decide`].
pub type Decider = Box<dyn Decide>;
