mod consent;
mod lab;
mod pods;
mod restarts;

use crate::facts::testing::{NS, World, now};
use crate::plan::{Plan, PlanOptions, PodItem, VmItem, build};

fn planned(world: &World) -> Plan {
    planned_with(world, &PlanOptions::default())
}

fn planned_with(world: &World, options: &PlanOptions) -> Plan {
    build(&world.index, &["node-0".to_owned()], options, now())
}

fn vm_of<'a>(plan: &'a Plan, name: &str) -> &'a VmItem {
    plan.nodes.iter().flat_map(|n| &n.vms).find(|v| v.vmi.namespace == NS && v.vmi.name == name).unwrap()
}

fn pod_of<'a>(plan: &'a Plan, name: &str) -> &'a PodItem {
    plan.nodes.iter().flat_map(|n| &n.pods).find(|p| p.pod.name == name).unwrap()
}
