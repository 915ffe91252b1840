//! What breaks in the middle of a drain.

use safe_drain::event::EventKind;
use safe_drain_sim::{PodSpec, VirtApi, Vm};
use serde_json::json;

use super::{Act, Stage};
use crate::harness::{Outcome, secs};

pub async fn api_server_away(s: &Stage) {
    s.nodes(1).await;
    s.deployment("slow", 1, PodSpec::new().grace(60).annotation("lab/stop", "25s")).await;
    s.deployment("web", 6, PodSpec::new()).await;
    s.budget("web", "web", json!({"maxUnavailable": 1})).await;
    s.settle().await;
    s.nodes(2).await;
    s.alone().await;
    let run = s.run(s.drain(0).timeout(300).later(secs(1), s.doing(Act::ApiAway(secs(20))))).await;
    run.exits(0);
    assert!(run.event(|e| matches!(e, EventKind::ContactLost)).is_some(), "{run}");
    assert!(run.event(|e| matches!(e, EventKind::ContactRestored { .. })).is_some(), "{run}");
}

pub async fn virt_api_away(s: &Stage) {
    let run = without_virt_api(s, VirtApi::Refused, 10).await;
    assert_eq!(run.stderr.matches(": refused for now").count(), 1, "said once\n{run}");
}

pub async fn webhook_hangs(s: &Stage) {
    let run = without_virt_api(s, VirtApi::Hang, 15).await;
    let first = run.launcher_evictions("web1")[0];
    assert_eq!(first.status, 500, "the API server waits 10 s for the webhook, then gives up\n{run}");
    assert!(run.elapsed > secs(10), "{:?}", run.elapsed);
}

/// A drain of a VM whose virt-api is like that for some seconds from the cordon on.
async fn without_virt_api(s: &Stage, state: VirtApi, seconds: u64) -> Outcome {
    s.nodes(1).await;
    s.vm(Vm::new("web1")).await;
    s.settle().await;
    s.nodes(1).await;
    s.alone().await;
    let cordoned = |e: &EventKind| matches!(e, EventKind::NodeCordoned { .. });
    let flow = s.drain(0).timeout(300).right_after(cordoned, s.at_once(Act::VirtApi(state)));
    let run = s.run(flow.later_than(cordoned, secs(seconds), s.doing(Act::VirtApi(VirtApi::Up)))).await;
    run.exits(0);
    run.vm_is("web1", "migrates", "");
    run
}

pub async fn throttled(s: &Stage) {
    s.fast_nodes(1).await;
    s.deployment("web", 30, PodSpec::new()).await;
    s.settle().await;
    s.fast_nodes(1).await;
    let user = s.user(None).await;
    s.act(Act::Throttle(user.clone())).await;
    let run = s.run(s.drain(0).user(&user).timeout(120)).await;
    run.exits(0);
    let refused = run.evictions("web-").iter().filter(|r| r.status == 429).count();
    assert!(refused > 0, "32 at a time, and one is served\n{run}");
    assert!(refused < 75, "patience, not a storm: {refused}\n{run}");
}
