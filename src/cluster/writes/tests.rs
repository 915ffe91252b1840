use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::cluster::fake::{Answer, Fake, Seen, json as answer};

fn requests(fake: &Fake) -> Requests {
    Requests::new(fake.client(), Some(Duration::from_secs(30)))
}

fn only(fake: &Fake) -> Seen {
    let mut seen = fake.seen();
    assert_eq!(seen.len(), 1, "exactly one request: {seen:?}");
    seen.remove(0)
}

fn success() -> Answer {
    answer(201, &json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}))
}

fn node() -> Answer {
    answer(200, &json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1", "uid": "u"}, "spec": {}}))
}

fn pod() -> PodKey {
    PodKey::new("shop", "web-0", "uid-1")
}

#[tokio::test]
async fn evictions_carry_uid_and_grace_in_delete_options() {
    let fake = Fake::new(|_| success());
    let got = requests(&fake).evict(&pod(), Some(0), false).await;
    assert_eq!((got.code, got.status.map(|s| s.failure)), (201, Some(false)));
    let seen = only(&fake);
    assert_eq!(seen.line, "POST /api/v1/namespaces/shop/pods/web-0/eviction");
    assert_eq!(
        seen.body,
        json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": "web-0", "namespace": "shop"},
            "deleteOptions": {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": "uid-1"},
                "gracePeriodSeconds": 0,
            },
        })
    );
}

#[tokio::test]
async fn a_dry_run_says_so_in_query_and_body() {
    let fake = Fake::new(|_| success());
    requests(&fake).evict(&pod(), None, true).await;
    let seen = only(&fake);
    assert_eq!(seen.line, "POST /api/v1/namespaces/shop/pods/web-0/eviction?dryRun=All");
    assert_eq!(seen.body["deleteOptions"]["dryRun"], json!(["All"]));
    assert_eq!(seen.body["deleteOptions"]["gracePeriodSeconds"], Value::Null);

    requests(&fake).delete_pod(&pod(), Some(5), true).await;
    let seen = only(&fake);
    assert_eq!(seen.line, "DELETE /api/v1/namespaces/shop/pods/web-0?dryRun=All");
    assert_eq!(
        seen.body,
        json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": "uid-1"},
            "gracePeriodSeconds": 5,
            "dryRun": ["All"],
        })
    );
}

#[tokio::test]
async fn restarts_are_dry_by_body_and_accept_anything() {
    let fake = Fake::new(|_| (202, vec![], Some(String::new())));
    let vm = Key::new("tenant", "db");
    let got = requests(&fake).restart_vm(&vm, false).await;
    assert_eq!(got, RawAnswer { code: 202, ..RawAnswer::default() });
    let seen = only(&fake);
    assert_eq!(seen.line, "PUT /apis/subresources.kubevirt.io/v1/namespaces/tenant/virtualmachines/db/restart");
    assert_eq!(seen.headers["accept"], "*/*");
    assert_eq!(seen.headers["content-type"], "application/json");
    assert_eq!(seen.body, json!({}));

    requests(&fake).restart_vm(&vm, true).await;
    let seen = only(&fake);
    assert_eq!(seen.line, "PUT /apis/subresources.kubevirt.io/v1/namespaces/tenant/virtualmachines/db/restart");
    assert_eq!(seen.body, json!({"dryRun": ["All"]}));

    requests(&fake).cancel_evacuation(&vm, "n1", true).await;
    let seen = only(&fake);
    assert_eq!(
        seen.line,
        "PUT /apis/subresources.kubevirt.io/v1/namespaces/tenant/virtualmachineinstances/db/evacuate/cancel"
    );
    assert_eq!(seen.body, json!({"evacuationNodeName": "n1", "dryRun": ["All"]}));
}

#[tokio::test]
async fn cordons_are_optimistic_and_signed() {
    let fake = Fake::new(|_| node());
    requests(&fake).cordon("n1", Some("42"), false).await.unwrap();
    let seen = only(&fake);
    assert_eq!(seen.line, "PATCH /api/v1/nodes/n1?&fieldManager=kubectl-safe-drain");
    assert_eq!(seen.headers["content-type"], "application/merge-patch+json");
    assert_eq!(seen.body, json!({"spec": {"unschedulable": true}, "metadata": {"resourceVersion": "42"}}));

    requests(&fake).uncordon("n1", None, true).await.unwrap();
    let seen = only(&fake);
    assert_eq!(seen.line, "PATCH /api/v1/nodes/n1?&dryRun=All&fieldManager=kubectl-safe-drain");
    assert_eq!(seen.body, json!({"spec": {"unschedulable": null}}));
}

#[tokio::test]
async fn a_refused_write_is_sent_once_and_returned_whole() {
    let fake = Fake::new(|_| {
        (429, vec![("content-type", "text/plain; charset=utf-8"), ("retry-after", "1")], Some("Too many\n".to_owned()))
    });
    let got = requests(&fake).evict(&pod(), None, false).await;
    only(&fake);
    assert_eq!(
        got,
        RawAnswer {
            code: 429,
            content_type: "text/plain".to_owned(),
            retry_after: Some(1),
            status: None,
            text: "Too many".to_owned(),
        }
    );
}

#[tokio::test(start_paused = true)]
async fn no_answer_in_time_is_code_0() {
    let fake = Fake::new(|_| (200, vec![], None));
    let start = tokio::time::Instant::now();
    let got = requests(&fake).evict(&pod(), None, false).await;
    assert_eq!(start.elapsed(), Duration::from_secs(30));
    assert_eq!((got.code, got.text.as_str()), (0, "the API server gave no answer within 30s"));
    let problem = requests(&fake).cordon("n1", None, false).await.unwrap_err();
    assert_eq!(problem.kind, crate::cluster::ProblemKind::Timeout);
}

#[tokio::test]
async fn a_conflict_is_the_callers() {
    let fake = Fake::new(|_| {
        answer(
            409,
            &json!({"kind": "Status", "status": "Failure", "message": "changed", "reason": "Conflict", "code": 409}),
        )
    });
    let problem = requests(&fake).cordon("n1", Some("1"), false).await.unwrap_err();
    only(&fake);
    assert_eq!((problem.kind, problem.code), (crate::cluster::ProblemKind::Conflict, 409));
    assert_eq!(problem.message, "changed");
}

#[test]
fn odd_bodies_never_count_as_a_status() {
    let head = |code: u16| Response::builder().status(code).body(()).unwrap();
    assert_eq!(raw_answer(&head(200), br#"{"kind":"Pod"}"#).status, None);
    assert_eq!(raw_answer(&head(502), b"<html>").text, "<html>");
    assert_eq!(raw_answer(&head(500), br#"{"kind":"Pod"}"#).text, r#"{"kind":"Pod"}"#);
    let odd = raw_answer(
        &head(429),
        br#"{"kind":"Status","status":"Failure","code":"x","details":{"causes":{},"retryAfterSeconds":10}}"#,
    );
    let status = odd.status.unwrap();
    assert_eq!((status.failure, status.code, status.retry_after, status.causes.len()), (true, 0, Some(10), 0));
}
