//! A drain that is interrupted at any event and started again comes to the end of one that was not.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestCaseResult};
use safe_drain::event::{EventKind, StopReason};
use safe_drain_sim::{Json, Sim};

use super::stage::{Flags, Stage, flags, stage};
use super::{config, in_virtual_time};
use crate::harness::{Flow, Outcome, secs};

/// What matters of a cluster when a drain is over.
#[derive(Debug, PartialEq, Eq)]
struct End {
    exit: u8,
    verdict: String,
    cordoned: bool,
    /// VMIs: still the same one, on node-0, marked, phase, strategy.
    vmis: BTreeMap<String, (bool, bool, bool, String, String)>,
    /// Pods on node-0 that have not ended, but launchers.
    pods: Vec<String>,
}

impl End {
    fn of(sim: &Sim, run: &Outcome, uids: &BTreeMap<String, String>) -> Self {
        let vmis = sim.list("VirtualMachineInstance").into_iter().map(|vmi| {
            let same = uids.get(vmi.name()).is_some_and(|uid| uid == vmi.uid());
            let here = vmi.text("/status/nodeName") == "node-0";
            let marked = vmi.has("/status/evacuationNodeName");
            let words = |at: &str| vmi.text(at).to_owned();
            let name = if same || uids.contains_key(vmi.name()) {
                vmi.name().to_owned()
            } else {
                "of a replica set".to_owned()
            };
            (name, (same, here, marked, words("/status/phase"), words("/spec/evictionStrategy")))
        });
        let vmis = vmis.collect();
        let on_node = |p: &serde_json::Value| p.text("/spec/nodeName") == "node-0";
        let over = |p: &serde_json::Value| matches!(p.text("/status/phase"), "Succeeded" | "Failed");
        let pods = sim.list("Pod").into_iter().filter(|p| on_node(p) && !over(p)).map(|p| p.name().to_owned());
        let mut pods: Vec<String> = pods.collect();
        pods.sort();
        Self {
            exit: run.exit,
            verdict: run.document.list("/nodes").first().map(|n| n.text("/verdict").to_owned()).unwrap_or_default(),
            cordoned: run.cordoned("node-0"),
            vmis,
            pods,
        }
    }
}

fn uids(sim: &Sim) -> BTreeMap<String, String> {
    sim.list("VirtualMachineInstance").into_iter().map(|v| (v.name().to_owned(), v.uid().to_owned())).collect()
}

/// Requests that must not come twice over both runs.
fn twice(runs: [&Outcome; 2]) -> Option<String> {
    let mut seen = BTreeMap::new();
    for request in runs.iter().flat_map(|run| run.writes()).filter(|r| (200..300).contains(&r.status)) {
        let uid =
            request.body.as_ref().map(|b| b.text("/deleteOptions/preconditions/uid").to_owned()).unwrap_or_default();
        let count: &mut usize = seen.entry((request.method.clone(), request.path.clone(), uid)).or_default();
        *count += 1;
        if *count > 1 {
            return Some(format!("{} {}", request.method, request.path));
        }
    }
    None
}

/// Nothing is to be compared where the run does nothing.
fn whole(stage: &Stage, flags: Flags) -> Option<(End, usize)> {
    in_virtual_time(async {
        let sim = stage.build();
        let uids = uids(&sim);
        let run = Flow::new(&sim, flags.options()).without_preview().run().await;
        (run.exit != 4).then(|| (End::of(&sim, &run, &uids), run.events.len()))
    })
}

fn interrupted(stage: &Stage, flags: Flags, after: usize, want: &End) -> TestCaseResult {
    in_virtual_time(async {
        let sim = stage.build();
        let uids = uids(&sim);
        let mut left = after;
        let at = move |e: &EventKind| {
            let now = left == 0;
            left = left.saturating_sub(1);
            now && !matches!(e, EventKind::Ended { .. })
        };
        let at = std::cell::RefCell::new(at);
        let first = Flow::new(&sim, flags.options())
            .without_preview()
            .signal_when(StopReason::Interrupt, move |e| (at.borrow_mut())(e))
            .run()
            .await;
        // The pause in which somebody types the command again.
        tokio::time::sleep(secs(2)).await;
        let second = Flow::new(&sim, flags.options()).without_preview().changes().run().await;
        let end = End::of(&sim, &second, &uids);
        if let Some(request) = twice([&first, &second]) {
            return Err(TestCaseError::fail(format!("sent twice: {request}\n{first}\n{second}")));
        }
        prop_assert_eq!(&end, want, "interrupted after {} events\n{}\n{}", after, first, second);
        Ok(())
    })
}

proptest! {
    #![proptest_config(config(40))]

    #[test]
    fn a_second_run_comes_to_the_same_end(stage in stage(), flags in flags(), at in any::<prop::sample::Index>()) {
        if let Some((want, events)) = whole(&stage, flags) {
            interrupted(&stage, flags, at.index(events), &want)?;
        }
    }
}
