use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::cluster::fake::{Answer, Fake, json as answer};

fn empty() -> Answer {
    answer(200, &json!({"metadata": {"resourceVersion": "7"}, "items": []}))
}

fn failure(code: u16) -> Answer {
    answer(code, &json!({"kind": "Status", "status": "Failure", "message": format!("no: {code}"), "code": code}))
}

fn groups(names: &[&str]) -> Answer {
    let groups: Vec<Value> =
        names.iter().map(|name| json!({"name": name, "versions": [], "serverAddressByClientCIDRs": null})).collect();
    answer(200, &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
}

fn version() -> Answer {
    let mut version = json!({"gitVersion": "v1.36.3"});
    for field in ["major", "minor", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"] {
        version[field] = json!("");
    }
    answer(200, &version)
}

/// A cluster without objects; `special` answers first.
fn cluster(installed: &'static [&'static str], special: fn(&str) -> Option<Answer>) -> Fake {
    Fake::new(move |line| {
        if let Some(answer) = special(line) {
            return answer;
        }
        match line {
            "GET /apis" => groups(installed),
            "GET /version" => version(),
            line if line.contains("watch=true") => (200, vec![], None),
            line if line.contains("kubevirt.io") && installed.is_empty() => failure(404),
            _ => empty(),
        }
    })
}

async fn taken(fake: &Fake) -> Snapshot {
    let requests = Requests::new(fake.client(), Some(Duration::from_secs(30)));
    snapshot(&requests, &["n1".to_owned(), "n2".to_owned()], WatchOptions::default()).await
}

#[tokio::test]
async fn a_preview_lists_once_and_opens_no_watch() {
    let fake = cluster(&["kubevirt.io"], |_| None);
    let snapshot = taken(&fake).await;
    assert_eq!(snapshot.unread, []);
    assert_eq!(snapshot.kubernetes.as_deref(), Some("v1.36.3"));
    assert!(snapshot.index.budgets_known && snapshot.index.kubevirt_installed);
    drop(snapshot.watches);
    let mut lines: Vec<String> = fake.seen().into_iter().map(|s| s.line).collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "GET /api/v1/nodes?&limit=100",
            "GET /api/v1/pods?&fieldSelector=spec.nodeName%3Dn1&limit=100",
            "GET /api/v1/pods?&fieldSelector=spec.nodeName%3Dn2&limit=100",
            "GET /apis",
            "GET /apis/kubevirt.io/v1/kubevirts?&limit=100",
            "GET /apis/kubevirt.io/v1/virtualmachineinstancemigrations?&limit=100",
            "GET /apis/kubevirt.io/v1/virtualmachineinstances?&limit=100",
            "GET /apis/kubevirt.io/v1/virtualmachines?&limit=100",
            "GET /apis/policy/v1/poddisruptionbudgets?&limit=100",
            "GET /version",
        ]
    );
}

#[tokio::test]
async fn a_scope_asks_for_the_pods_of_vms_only_and_in_its_namespace_only() {
    let fake = cluster(&["cdi.kubevirt.io", "kubevirt.io"], |_| None);
    let requests = Requests::new(fake.client(), Some(Duration::from_secs(30)));
    let pods = "pods?&labelSelector=kubevirt.io+in+%28virt-launcher%2Chotplug-disk%29&limit=100";
    for (namespace, core, policy, kubevirt) in [
        (None, "/api/v1", "/apis/policy/v1", "/apis/kubevirt.io/v1"),
        (
            Some("shop"),
            "/api/v1/namespaces/shop",
            "/apis/policy/v1/namespaces/shop",
            "/apis/kubevirt.io/v1/namespaces/shop",
        ),
    ] {
        let scope = Scope { namespace: namespace.map(str::to_owned), selector: None };
        let snapshot = snapshot_of_vms(&requests, &scope, true, WatchOptions::default()).await;
        assert_eq!(snapshot.unread, []);
        assert!(snapshot.index.budgets_known && snapshot.index.kubevirt_installed);
        assert_eq!(format!("{:?}", snapshot.watches), "Watches(7)");
        let mut lines: Vec<String> = fake.seen().into_iter().map(|s| s.line).collect();
        let mut expected = [
            "GET /apis".to_owned(),
            "GET /version".to_owned(),
            "GET /api/v1/nodes?&limit=100".to_owned(),
            "GET /apis/kubevirt.io/v1/kubevirts?&limit=100".to_owned(),
            format!("GET {core}/{pods}"),
            format!("GET {policy}/poddisruptionbudgets?&limit=100"),
            format!("GET {kubevirt}/virtualmachineinstancemigrations?&limit=100"),
            format!("GET {kubevirt}/virtualmachineinstances?&limit=100"),
            format!("GET {kubevirt}/virtualmachines?&limit=100"),
        ];
        lines.sort();
        expected.sort();
        assert_eq!(lines, expected);
    }
}

#[tokio::test]
async fn without_kubevirt_its_lists_mean_nothing() {
    let snapshot = taken(&cluster(&[], |_| None)).await;
    assert_eq!(snapshot.unread, []);
    assert!(!snapshot.index.kubevirt_installed);
    assert_eq!(format!("{:?}", snapshot.watches), "Watches(4)");
}

#[tokio::test]
async fn a_list_that_is_not_permitted_is_told_and_not_watched() {
    let fake = cluster(&["kubevirt.io"], |line| line.contains("poddisruptionbudgets").then(|| failure(403)));
    let snapshot = taken(&fake).await;
    assert!(!snapshot.index.budgets_known);
    let problem = snapshot.problem(&Part::Objects(Watched::Budgets)).unwrap();
    assert_eq!((problem.kind, problem.code), (ProblemKind::Forbidden, 403));
    assert_eq!(format!("{:?}", snapshot.watches), "Watches(7)");
}

#[tokio::test]
async fn unknown_groups_never_mean_that_kubevirt_is_absent() {
    let fake = cluster(&[], |line| (line == "GET /apis").then(|| failure(500)));
    let snapshot = taken(&fake).await;
    assert!(snapshot.index.kubevirt_installed);
    assert!(snapshot.problem(&Part::ApiGroups).is_some());
    assert!(snapshot.problem(&Part::Objects(Watched::Vmis)).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_busy_is_given_up() {
    let fake = cluster(&[], |line| line.starts_with("GET /api/v1/nodes").then(|| failure(503)));
    let snapshot = taken(&fake).await;
    assert_eq!(snapshot.problem(&Part::Objects(Watched::Nodes)).unwrap().code, 503);
    assert_eq!(fake.seen().iter().filter(|s| s.line.starts_with("GET /api/v1/nodes")).count(), 3);
}

#[tokio::test]
async fn claims_bring_the_nodes_of_their_volumes() {
    let fake = cluster(&[], |line| {
        let pod = json!({"metadata": {"name": "db-0", "namespace": "shop", "uid": "u1"},
            "spec": {"nodeName": "n1", "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]},
            "status": {"phase": "Running"}});
        let term = json!({"matchExpressions": [{"key": "host", "operator": "In", "values": ["n1"]}]});
        match line {
            "GET /api/v1/pods?&fieldSelector=spec.nodeName%3Dn1&limit=100" => {
                Some(answer(200, &json!({"metadata": {"resourceVersion": "7"}, "items": [pod]})))
            }
            "GET /api/v1/namespaces/shop/persistentvolumeclaims/data" => Some(answer(
                200,
                &json!({"metadata": {"name": "data", "namespace": "shop", "uid": "c"}, "spec": {"volumeName": "pv1"}}),
            )),
            "GET /api/v1/persistentvolumes/pv1" => Some(answer(
                200,
                &json!({"metadata": {"name": "pv1", "uid": "v"},
                    "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}}),
            )),
            _ => None,
        }
    });
    let snapshot = taken(&fake).await;
    let claims = snapshot.index.claims.unwrap();
    let claim = &claims[&Key::new("shop", "data")];
    assert_eq!(claim.volume_terms[0].labels[0].values, ["n1"]);
}

#[tokio::test]
async fn claims_that_may_not_be_read_are_unknown() {
    let fake = cluster(&[], |line| {
        let pod = json!({"metadata": {"name": "db-0", "namespace": "shop", "uid": "u1"},
            "spec": {"nodeName": "n1", "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]},
            "status": {"phase": "Running"}});
        if line.contains("persistentvolumeclaims") {
            return Some(failure(403));
        }
        line.contains("spec.nodeName%3Dn1")
            .then(|| answer(200, &json!({"metadata": {"resourceVersion": "7"}, "items": [pod]})))
    });
    let snapshot = taken(&fake).await;
    assert_eq!(snapshot.index.claims, None);
    assert_eq!(snapshot.problem(&Part::Claims).unwrap().kind, ProblemKind::Forbidden);
}
