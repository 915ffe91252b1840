//! Pods that are no VMs.

use safe_drain::event::{EventKind, StopReason};
use safe_drain_sim::{Json, PodSpec, object};

use super::{Act, Stage};

pub async fn plain_pods(s: &Stage) {
    s.fast_nodes(1).await;
    s.deployment("web", 4, PodSpec::new()).await;
    s.deployment("cart", 2, PodSpec::new()).await;
    s.settle().await;
    s.fast_nodes(2).await;
    let run = s.run(s.drain(0)).await;
    run.exits(0).prints(&format!("node/{} drained\n", s.node(0)));
    assert_eq!(run.evictions("").len(), 6, "{run}");
}

pub async fn daemon_set(s: &Stage) {
    s.fast_nodes(2).await;
    s.daemon_set("agent").await;
    s.settle().await;
    let run = s.run(s.drain(0).with(|o| o.ignore_daemonsets = false)).await;
    run.exits(4).changed_nothing().says("--ignore-daemonsets");
    run.pod_is("agent-", "refused", "DaemonSet");
    let run = s.run(s.drain(0)).await;
    run.exits(0);
    run.pod_is("agent-", "stays", "DaemonSet");
    assert!(run.evictions("").is_empty(), "{run}");
}

pub async fn stateful_set(s: &Stage) {
    s.fast_nodes(1).await;
    s.stateful_set("db", 3, PodSpec::new()).await;
    s.settle().await;
    s.fast_nodes(2).await;
    let run = s.run(s.drain(0)).await;
    run.exits(0);
    // Their successors have the same names, and run elsewhere.
    s.settle().await;
    for pod in s.list("Pod").await {
        assert_ne!(pod.text("/spec/nodeName"), s.node(0), "{run}");
    }
}

pub async fn bare_pod(s: &Stage) {
    s.fast_nodes(1).await;
    s.pod("bare", PodSpec::new()).await;
    s.deployment("cache", 1, PodSpec::new().empty_dir()).await;
    s.settle().await;
    s.fast_nodes(1).await;
    let run = s.run(s.drain(0)).await;
    run.exits(4).changed_nothing().says("--force").says("--delete-emptydir-data");
    let both = |o: &mut safe_drain::settings::DrainOptions| {
        o.force = true;
        o.delete_emptydir_data = true;
    };
    s.run(s.drain(0).with(both)).await.exits(0);
    assert!(s.get("Pod", "bare").await.is_none(), "gone for good");
}

pub async fn finalizer(s: &Stage) {
    s.nodes(1).await;
    s.deployment("web", 1, PodSpec::new().finalizer("example.com/hold").grace(2)).await;
    s.deployment("cart", 1, PodSpec::new()).await;
    s.settle().await;
    s.nodes(1).await;
    let run = s.run(s.drain(0).timeout(60)).await;
    run.exits(0);
    let row = run.pod_is("web-", "skipped", "Finalizer");
    assert!(row.text("/because").contains("example.com/hold"), "{row}");
}

pub async fn replaced_pod(s: &Stage) {
    s.fast_nodes(1).await;
    s.pod("bare", PodSpec::new()).await;
    s.settle().await;
    // It is made again, under its name, right before its eviction goes out.
    let old = s.get("Pod", "bare").await.expect("it runs").uid().to_owned();
    let again = object::pod(s.ns(), "bare", PodSpec::new().with(|o| o.put("/spec/nodeName", s.node(0))));
    let flow = s.drain(0).with(|o| o.force = true).changes();
    let flow = flow.right_before("POST", "/pods/bare/eviction", s.at_once(Act::Replace(again)));
    let run = s.run(flow).await;
    run.exits(0);
    let sent = run.evictions("bare");
    assert_eq!(sent.len(), 2, "{run}");
    for r in sent {
        let uid = r.body.as_ref().expect("a body").text("/deleteOptions/preconditions/uid");
        // 404 where the API server looks at it in the moment between the two.
        let refused = matches!(r.status, 404 | 409);
        assert_eq!(uid == old, refused, "the old UID is refused, the new one is evicted:\n{run}");
    }
    for row in run.rows("pods") {
        let expected = if row.text("/uid") == old { "gone" } else { "evicts" };
        assert_eq!(row.text("/outcome"), expected, "{run}");
    }
}

pub async fn terminating_namespace(s: &Stage) {
    s.nodes(1).await;
    let slow = PodSpec::new().grace(60).annotation("lab/stop", "5s");
    let doomed = s.namespace("doomed").await;
    s.add(object::workload("Deployment", &doomed, "web", 2, slow)).await;
    s.deployment("cart", 1, PodSpec::new()).await;
    s.settle().await;
    s.nodes(1).await;
    let delete = Act::Delete { kind: "Namespace", ns: String::new(), name: doomed };
    let flow = s.drain(0).right_after(|e| matches!(e, EventKind::NodeCordoned { .. }), s.at_once(delete));
    let run = s.run(flow).await;
    run.exits(0);
    assert!(run.evictions("web-").iter().all(|r| r.status == 403), "nothing is created there any more\n{run}");
    let stopping = run.after.list("Pod").iter().filter(|p| p.namespace().ends_with("-doomed")).count();
    assert_eq!(stopping, 0, "{run}");
}

pub async fn many_pods(s: &Stage) {
    s.fast_nodes(1).await;
    s.deployment("web", 250, PodSpec::new().grace(0)).await;
    s.settle().await;
    s.fast_nodes(2).await;
    let run = s.run(s.drain(0)).await;
    run.exits(0);
    assert_eq!(run.evictions("web-").len(), 250, "each once");
    assert!(run.requests.len() < 250 * 6 / 5 + 40, "{} requests", run.requests.len());
}

pub async fn slow_stop(s: &Stage) {
    s.nodes(1).await;
    s.deployment("web", 1, PodSpec::new().grace(300).annotation("lab/stop", "200s")).await;
    s.deployment("cart", 1, PodSpec::new()).await;
    s.settle().await;
    s.nodes(1).await;
    let run = s.run(s.drain(0).timeout(10)).await;
    run.exits(124);
    run.pod_is("web-", "pending", "Stopping");
    run.pod_is("cart-", "evicts", "");
}

pub async fn second_drain(s: &Stage) {
    s.nodes(1).await;
    s.deployment("web", 1, PodSpec::new().grace(60).annotation("lab/stop", "20s")).await;
    s.deployment("cart", 1, PodSpec::new()).await;
    s.settle().await;
    s.nodes(1).await;
    let stopping = |e: &EventKind| matches!(e, EventKind::PodGone { .. });
    let run = s.run(s.drain(0).signal_when(StopReason::Interrupt, stopping)).await;
    run.exits(130);
    run.pod_is("web-", "pending", "Stopping");
    let run = s.run(s.drain(0)).await;
    run.exits(0);
    assert!(run.evictions("web-").is_empty(), "it was stopping already\n{run}");
}
