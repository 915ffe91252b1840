use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::*;
use crate::cluster::fake::{Fake, json as answer};

#[test]
fn rules_are_what_an_admin_can_paste() {
    let right = Right::new("create", "", "pods").on("eviction");
    assert_eq!(right.rule(), r#"{apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"]}"#);
    assert_eq!(right.to_string(), "create pods/eviction");
    assert_eq!(Right::new("list", "kubevirt.io", "kubevirts").to_string(), "list kubevirts (kubevirt.io)");
}

#[test]
fn what_is_denied_everywhere_is_missing_only_where_it_is_needed() {
    let rights = [
        Right::new("create", "", "pods").on("eviction").within(["a", "b"]),
        Right::new("patch", "", "nodes"),
        Right::new("list", "", "pods"),
        Right::new("update", "x", "y").within(Vec::<String>::new()),
    ];
    let cluster = [(&rights[0], false), (&rights[1], false), (&rights[2], true), (&rights[3], false)]
        .map(|(right, allowed)| ((right, None), allowed))
        .into();
    let second = second_questions(&rights, &cluster);
    assert_eq!(second, [(&rights[0], Some("a")), (&rights[0], Some("b"))]);
    let found = missing(&rights, &cluster, &[((&rights[0], Some("a")), true), ((&rights[0], Some("b")), false)].into());
    let told: Vec<_> = found.iter().map(|m| (m.right.resource.as_str(), m.namespaces.clone())).collect();
    assert_eq!(told, [("pods", Some(["b".to_owned()].into())), ("nodes", None)]);
}

#[tokio::test]
async fn namespaces_are_asked_for_only_after_a_denial() {
    let allowed = AtomicUsize::new(0);
    let fake = Fake::new(move |_| {
        let allowed = allowed.fetch_add(1, Ordering::Relaxed) > 0;
        answer(201, &json!({"spec": {}, "status": {"allowed": allowed}}))
    });
    let requests = Requests::new(fake.client(), None);
    let rights = [Right::new("create", "", "pods").on("eviction").within(["shop"])];
    assert_eq!(missing_rights(&requests, &rights).await.unwrap(), []);
    let bodies: Vec<_> = fake.seen().into_iter().map(|s| s.body["spec"]["resourceAttributes"].clone()).collect();
    let asked = json!({"group": "", "resource": "pods", "subresource": "eviction", "verb": "create"});
    let mut in_shop = asked.clone();
    in_shop["namespace"] = json!("shop");
    assert_eq!(bodies, [asked, in_shop]);
}
