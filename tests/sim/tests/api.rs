//! The API server: watches, selectors, pages, patches, access, faults.

mod support;

use std::time::Duration;

use safe_drain_sim::{Fault, Json, Options, PodSpec, Rule, Sim, Then};
use serde_json::json;
use support::{Watch, call, cordon, evict, get, pods, sleep};

fn small() -> Sim {
    Sim::new(Options::plain())
        .world()
        .nodes(2)
        .on("node-0")
        .pod("shop", "a", PodSpec::new().label("tier", "x"))
        .pod("shop", "b", PodSpec::new().label("tier", "y"))
        .on("node-1")
        .pod("shop", "c", PodSpec::new())
        .done()
}

fn names(list: &serde_json::Value) -> Vec<&str> {
    list.list("/items").iter().map(Json::name).collect()
}

#[tokio::test(start_paused = true)]
async fn selectors_and_pages() {
    let sim = small();
    let all = "/api/v1/namespaces/shop/pods";
    assert_eq!(names(&get(&sim, &format!("{all}?labelSelector=tier%3Dx")).await), ["a"]);
    assert_eq!(names(&get(&sim, &format!("{all}?labelSelector=tier%20in%20(x,y)")).await), ["a", "b"]);
    assert_eq!(names(&get(&sim, &format!("{all}?labelSelector=!tier")).await), ["c"]);
    assert_eq!(names(&get(&sim, &format!("{all}?labelSelector=tier,tier!=x")).await), ["b"]);
    assert_eq!(names(&get(&sim, "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1").await), ["c"]);
    assert_eq!(names(&get(&sim, "/api/v1/pods?fieldSelector=spec.nodeName%3D").await), Vec::<&str>::new());
    assert_eq!(
        names(&get(&sim, "/api/v1/pods?fieldSelector=status.phase!%3DRunning,metadata.namespace%3Dshop").await),
        Vec::<&str>::new()
    );
    let bad = call(&sim, "GET", "/api/v1/pods?fieldSelector=spec.color%3Dred", None).await;
    assert_eq!((bad.status, bad.body.text("/reason")), (400, "BadRequest"));

    let first = get(&sim, "/api/v1/pods?limit=2").await;
    assert_eq!((names(&first), first.int("/metadata/remainingItemCount")), (vec!["a", "b"], Some(1)));
    let token = first.text("/metadata/continue").replace('|', "%7C");
    let second = get(&sim, &format!("/api/v1/pods?limit=2&continue={token}")).await;
    assert_eq!((names(&second), second.text("/metadata/continue")), (vec!["c"], ""));
    sim.update("Pod", "shop", "c", |p| p.set_label("x", "1"));
    sim.compact();
    assert_eq!(call(&sim, "GET", &format!("/api/v1/pods?limit=2&continue={token}"), None).await.status, 410);
    assert_eq!(
        names(&get(&sim, "/api/v1/pods?limit=1&resourceVersion=0").await).len(),
        3,
        "the cache gives whole lists"
    );
}

#[tokio::test(start_paused = true)]
async fn watches_follow_selectors_and_the_log() {
    let sim = small();
    let rv = get(&sim, "/api/v1/pods").await.text("/metadata/resourceVersion").to_owned();
    let mut watch =
        Watch::open(&sim, &format!("/api/v1/pods?watch=1&resourceVersion={rv}&labelSelector=tier%3Dx")).await;
    assert_eq!(watch.short().await, "nothing");
    sim.update("Pod", "shop", "c", |p| p.set_label("tier", "x"));
    sim.update("Pod", "shop", "b", |p| p.set_label("odd", "1"));
    sim.update("Pod", "shop", "a", |p| {
        p.set_label("tier", "z");
        p.set_label("new", "1");
    });
    assert_eq!(watch.short().await, "ADDED c");
    let left = watch.soon().await.unwrap();
    assert_eq!((left.text("/type"), left.text("/object/metadata/name")), ("DELETED", "a"));
    assert_eq!(left["object"]["metadata"]["labels"], json!({"tier": "x"}), "with the state before");
    assert!(left.text("/object/metadata/resourceVersion") > rv.as_str());

    let mut initial =
        Watch::open(&sim, "/api/v1/namespaces/shop/pods?watch=true&allowWatchBookmarks=true&sendInitialEvents=true")
            .await;
    for want in ["ADDED a", "ADDED b", "ADDED c", "BOOKMARK "] {
        assert_eq!(initial.short().await, want);
    }
    sleep(61.0).await;
    assert_eq!(initial.short().await, "BOOKMARK ");

    let mut short = Watch::open(
        &sim,
        &format!("/api/v1/pods?watch=1&resourceVersion={rv}&timeoutSeconds=5&fieldSelector=metadata.name%3Dq"),
    )
    .await;
    let before = sim.elapsed();
    assert!(short.next().await.is_none());
    assert_eq!(sim.elapsed().saturating_sub(before).as_secs(), 5);

    sim.compact();
    let mut old = Watch::open(&sim, &format!("/api/v1/pods?watch=1&resourceVersion={rv}")).await;
    let error = old.next().await.unwrap();
    assert_eq!((error.text("/type"), error.int("/object/code")), ("ERROR", Some(410)));
    assert!(old.next().await.is_none());

    sim.options(|o| o.streaming_lists = false);
    assert_eq!(call(&sim, "GET", "/api/v1/pods?watch=1&sendInitialEvents=true", None).await.status, 422);
}

#[tokio::test(start_paused = true)]
async fn faults_by_script() {
    let sim = small();
    let t0 = sim.elapsed();
    sim.fault(
        Fault::on("POST", "/eviction", Then::plain(429, 1, "Too many requests, please try again later.\n")).nth(2),
    );
    sim.fault(Fault::at(t0 + Duration::from_secs(3), Then::CutWatches));
    sim.fault(
        Fault::on("GET", "/nodes", Then::status(503, "ServiceUnavailable", "x"))
            .between(Duration::ZERO, t0 + Duration::from_secs(10)),
    );
    sim.fault(Fault::on("GET", "/namespaces", Then::SlowAnswer(Duration::from_secs(60))).first(1));
    let mut watch = Watch::open(&sim, "/api/v1/pods?watch=1&resourceVersion=0").await;
    assert_eq!(evict(&sim, "shop", "a").await.status, 201);
    let second = evict(&sim, "shop", "b").await;
    assert_eq!(
        (second.status, second.header("Retry-After"), second.header("Content-Type")),
        (429, "1", "text/plain; charset=utf-8")
    );
    assert_eq!(evict(&sim, "shop", "b").await.status, 201);
    while watch.next().await.is_some() {}
    assert_eq!(sim.elapsed().saturating_sub(t0).as_millis(), 3000, "cut without an error");
    assert_eq!(call(&sim, "GET", "/api/v1/nodes", None).await.status, 503);
    sleep(7.5).await;
    assert_eq!(call(&sim, "GET", "/api/v1/nodes", None).await.status, 200);
    let before = sim.elapsed();
    assert_eq!(call(&sim, "GET", "/api/v1/namespaces", None).await.status, 200);
    assert_eq!(sim.elapsed().saturating_sub(before).as_secs(), 60);

    let now = sim.elapsed();
    sim.fault(Fault::on("", "", Then::Gone).between(now, now + Duration::from_secs(20)));
    let mut service = sim.service();
    let request = || http::Request::get("/version").body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    assert!(tower::Service::call(&mut service, request()).await.is_err());
    sleep(20.0).await;
    assert!(tower::Service::call(&mut service, request()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn cordons_taint_the_node_and_say_who_set_them() {
    let sim = small();
    let rv = get(&sim, "/api/v1/nodes/node-0").await.text("/metadata/resourceVersion").to_owned();
    let path = "/api/v1/nodes/node-0?fieldManager=kubectl-safe-drain";
    let dry = call(&sim, "PATCH", &format!("{path}&dryRun=All"), Some(json!({"spec": {"unschedulable": true}}))).await;
    assert!(
        dry.body.flag("/spec/unschedulable") && !sim.get("Node", "", "node-0").unwrap().flag("/spec/unschedulable")
    );
    cordon(&sim, "node-0").await;
    sleep(0.01).await;
    let node = sim.get("Node", "", "node-0").unwrap();
    assert_eq!(node.text("/metadata/managedFields/0/manager"), "kubectl-safe-drain");
    assert_eq!(node.text("/spec/taints/0/key"), "node.kubernetes.io/unschedulable");
    let stale =
        call(&sim, "PATCH", path, Some(json!({"metadata": {"resourceVersion": rv}, "spec": {"unschedulable": null}})))
            .await;
    assert_eq!((stale.status, stale.body.text("/reason")), (409, "Conflict"));
    let lift = call(&sim, "PATCH", path, Some(json!({"spec": {"unschedulable": null}}))).await;
    assert!(lift.body["spec"].get("unschedulable").is_none());
    sleep(0.01).await;
    let node = sim.get("Node", "", "node-0").unwrap();
    assert!(node.list("/spec/taints").is_empty() && node.list("/metadata/managedFields").is_empty());
}

#[tokio::test(start_paused = true)]
async fn denials_hold_for_reviews_and_requests() {
    let sim = small();
    sim.deny(Rule::new("create", "", "pods/eviction").in_namespace("shop"));
    sim.deny(Rule::new("list", "", "pods").cluster_wide());
    let review = |verb: &str, sub: &str, ns: &str| json!({"spec": {"resourceAttributes": {"verb": verb, "resource": "pods", "subresource": sub, "namespace": ns}}});
    for (verb, sub, ns, allowed) in [
        ("create", "eviction", "shop", false),
        ("create", "eviction", "", false),
        ("create", "eviction", "default", true),
        ("list", "", "", false),
        ("list", "", "shop", true),
    ] {
        let got =
            call(&sim, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", Some(review(verb, sub, ns)))
                .await;
        assert_eq!((got.status, got.body.flag("/status/allowed")), (201, allowed), "{verb} {sub} {ns}");
    }
    let refused = evict(&sim, "shop", "a").await;
    assert_eq!(refused.status, 403);
    assert_eq!(
        refused.message(),
        "pods \"a\" is forbidden: User \"admin\" cannot create resource \"pods/eviction\" in API group \"\" in the namespace \"shop\""
    );
    assert_eq!(call(&sim, "GET", "/api/v1/pods", None).await.status, 403);
    assert_eq!(call(&sim, "GET", "/api/v1/namespaces/shop/pods", None).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn namespaces_end_with_their_content() {
    let sim = small();
    call(&sim, "DELETE", "/api/v1/namespaces/shop", None).await;
    let refused = evict(&sim, "shop", "a").await;
    assert_eq!((refused.status, refused.body.text("/details/causes/0/reason")), (403, "NamespaceTerminating"));
    sleep(3.0).await;
    assert!(pods(&sim, "shop").is_empty() && sim.get("Namespace", "", "shop").is_none());
}

#[tokio::test(start_paused = true)]
async fn loopback_serves_the_same() {
    let sim = small();
    let loopback = sim.listen().await.unwrap();
    let config = std::fs::read_to_string(&loopback.kubeconfig).unwrap();
    assert!(config.contains(&format!("server: http://{}", loopback.addr)) && config.contains("current-context: sim"));
    let folder = loopback.kubeconfig.parent().unwrap().to_owned();
    drop(loopback);
    assert!(!folder.exists());
}
