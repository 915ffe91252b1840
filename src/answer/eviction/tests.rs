use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use EvictionAnswer as E;

/// The answer of a recording, and the request's path without its query.
fn recording(path: &Path) -> (String, RawAnswer) {
    let exchange: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let response = &exchange["response"];
    let body = &response["body"];
    let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned).into_bytes();
    let header = |name: &str| response["headers"][name].as_str();
    let code = u16::try_from(response["status"].as_u64().unwrap()).unwrap();
    let path = exchange["request"]["path"].as_str().unwrap().split('?').next().unwrap().to_owned();
    (path, RawAnswer::from_parts(code, header("Content-Type"), header("Retry-After"), &body))
}

/// All recorded answers to requests whose path ends like this, by file name.
pub(in crate::answer) fn recordings(path_ends: &str) -> BTreeMap<String, RawAnswer> {
    std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/recordings/http"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|file| file.extension().is_some_and(|e| e == "json"))
        .filter_map(|file| {
            let (path, answer) = recording(&file);
            let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
            path.ends_with(path_ends).then_some((name, answer))
        })
        .collect()
}

fn exhausted(budget: &str) -> E {
    let text = format!("The disruption budget {budget} needs 2 healthy pods and has 2 currently");
    E::BudgetExhausted { budget: Some(budget.to_owned()), needs: Some(2), has: Some(2), text }
}

#[test]
fn every_recorded_eviction_has_its_class() {
    const MARKED_NOW: E = E::VmEvacuating { marked_now: true };
    const IN_PROGRESS: E = E::VmEvacuating { marked_now: false };
    let unreachable = |why: &str| E::WebhookUnreachable {
        text: format!(
            "Internal error occurred: failed calling webhook \"virt-launcher-eviction-interceptor.kubevirt.io\": failed to \
             call webhook: Post \"https://localhost:8443/pod-eviction-validate?timeout=10s\": {why}"
        ),
    };
    let expected = [
        ("accepted-201", E::Accepted),
        ("accepted-dry-run-201", E::Accepted),
        ("apf-429-text", E::Throttled { after: Some(Duration::from_secs(1)) }),
        ("dryrun-evict-external", MARKED_NOW),
        ("dryrun-evict-fresh", E::Accepted),
        ("dryrun-evict-fresh-rerun", E::Accepted),
        ("dryrun-evict-migratable", MARKED_NOW),
        ("dryrun-evict-migration-fails", MARKED_NOW),
        ("dryrun-evict-migration-hangs", MARKED_NOW),
        ("dryrun-evict-no-target", MARKED_NOW),
        ("dryrun-evict-none", E::Accepted),
        ("dryrun-evict-scratch", E::VmNotMigratable),
        ("dryrun-evict-stale-always", E::VmNotMigratable),
        ("dryrun-evict-stale-manual", E::VmNotMigratable),
        ("dryrun-evict-stale-once", E::VmNotMigratable),
        ("dryrun-evict-stale-rerun", E::VmNotMigratable),
        ("dryrun-evict-standalone", E::VmNotMigratable),
        ("dryrun-evict-template-pins", E::VmNotMigratable),
        ("evict-again-external", IN_PROGRESS),
        ("evict-again-migratable", IN_PROGRESS),
        ("evict-again-migration-hangs", IN_PROGRESS),
        ("evict-again-stale-always", E::VmNotMigratable),
        ("evict-external", MARKED_NOW),
        ("evict-fresh", E::Accepted),
        ("evict-fresh-rerun", E::Accepted),
        ("evict-migratable", MARKED_NOW),
        ("evict-migration-fails", MARKED_NOW),
        ("evict-migration-hangs", MARKED_NOW),
        ("evict-migration-target", IN_PROGRESS),
        ("evict-no-target", MARKED_NOW),
        ("evict-none", E::Accepted),
        ("evict-stale-always", E::VmNotMigratable),
        (
            "eviction-body-name-mismatch-400",
            E::Invalid { text: "name in URL does not match name in Eviction object".to_owned() },
        ),
        ("eviction-snake-case-delete-options", exhausted("e")),
        ("hotplug-pod-429", E::HotplugCompanion),
        ("namespace-terminating-403", E::NamespaceTerminating),
        ("namespace-terminating-pod-terminating-403", E::NamespaceTerminating),
        ("not-found-404", E::Gone),
        (
            "orphan-launcher-429",
            E::VmLookupFailed {
                text: "kubevirt failed getting the vmi: virtualmachineinstances.kubevirt.io \"orphan\" not found".to_owned(),
            },
        ),
        ("pdb-first-of-two-201", E::Accepted),
        ("pdb-max-unavailable-zero-429", exhausted("e")),
        ("pdb-min-available-429", exhausted("a")),
        ("pdb-second-while-disrupted-429", exhausted("d")),
        ("pdb-still-being-processed-429", E::BudgetUnsynced { budget: Some("a".to_owned()) }),
        (
            "rbac-evict-403",
            E::Forbidden {
                text: "pods \"a-7c9b998fc6-7jjld\" is forbidden: User \"weak\" cannot create resource \"pods/eviction\" in \
                       API group \"\" in the namespace \"rec-core\""
                    .to_owned(),
            },
        ),
        ("two-pdbs-500", E::MultipleBudgets),
        ("uid-precondition-409", E::PodReplaced),
        ("webhook-refused-500", unreachable("dial tcp 127.0.0.1:8443: connect: connection refused")),
        ("webhook-timeout-500", unreachable("context deadline exceeded")),
    ];
    let expected: BTreeMap<&str, E> = expected.into_iter().collect();
    let recorded = recordings("/eviction");
    for (name, answer) in &recorded {
        let Some(class) = expected.get(name.as_str()) else { panic!("{name} is not in the table") };
        assert_eq!(classify_eviction(answer), *class, "{name}");
    }
    assert_eq!(recorded.len(), expected.len(), "a recording of the table is missing");
}

fn status(code: u16, body: &Value) -> RawAnswer {
    let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code});
    status.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    let retry_after = status["details"]["retryAfterSeconds"].as_u64().map(|s| s.to_string());
    RawAnswer::from_parts(code, Some("application/json"), retry_after.as_deref(), status.to_string().as_bytes())
}

fn plain(code: u16, retry_after: Option<&str>, text: &str) -> RawAnswer {
    RawAnswer::from_parts(code, Some("text/plain; charset=utf-8"), retry_after, text.as_bytes())
}

fn launcher(text: &str) -> RawAnswer {
    let message =
        format!("admission webhook \"virt-launcher-eviction-interceptor.kubevirt.io\" denied the request: {text}");
    status(429, &json!({ "message": message }))
}

fn budget(cause: &str, retry_after: u64) -> RawAnswer {
    let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": cause}]});
    if retry_after > 0 {
        details["retryAfterSeconds"] = retry_after.into();
    }
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    status(429, &json!({"message": message, "reason": "TooManyRequests", "details": details}))
}

fn check<const N: usize>(rows: [(RawAnswer, E); N]) {
    for (answer, class) in rows {
        assert_eq!(classify_eviction(&answer), class, "{answer:?}");
    }
}

fn refused(name: &str, text: &str) -> E {
    E::WebhookRefused { name: name.to_owned(), text: text.to_owned() }
}

fn trouble(text: &str) -> E {
    E::ServerTrouble { text: text.to_owned() }
}

#[test]
fn shapes_of_kubevirt() {
    check([
        (launcher("Eviction triggered evacuation of VMI \"a/b\""), E::VmEvacuating { marked_now: true }),
        (
            launcher("Evacuation in progress: Eviction triggered evacuation of VMI \"a/b\""),
            E::VmEvacuating { marked_now: false },
        ),
        (launcher("VMI b is configured with an eviction strategy but is not live-migratable"), E::VmNotMigratable),
        (
            status(
                429,
                &json!({"reason": "Forbidden", "message": "pods \"virt-launcher-b-x\" is forbidden: admission webhook \
                    \"virt-launcher-eviction-interceptor.kubevirt.io\" denied the request: VMI b is configured with an \
                    eviction strategy but is not live-migratable"}),
            ),
            E::VmNotMigratable,
        ),
        (launcher("Eviction request for target Pod"), E::VmMigrationTarget),
        (
            launcher("cannot evict hotplug pod: hp-volume-a associated with running vmi: b in namespace c"),
            E::HotplugCompanion,
        ),
        // virt-api's own write was refused by a webhook: the first refusal counts, the second is quoted.
        (
            launcher(
                "kubevirt failed marking the vmi for eviction: admission webhook \"x.example\" denied the request: Evacuation in progress",
            ),
            E::VmLookupFailed {
                text:
                    "kubevirt failed marking the vmi for eviction: admission webhook \"x.example\" denied the request: \
                       Evacuation in progress"
                        .to_owned(),
            },
        ),
        (
            launcher("failed getting owner for hotplug pod: timeout"),
            E::VmLookupFailed { text: "failed getting owner for hotplug pod: timeout".to_owned() },
        ),
        (
            launcher("failed to parse the eviction object: EOF"),
            E::EvictionMalformed { text: "failed to parse the eviction object: EOF".to_owned() },
        ),
        (launcher("the moon is full"), refused("virt-launcher-eviction-interceptor.kubevirt.io", "the moon is full")),
    ]);
}

#[test]
fn shapes_of_budgets() {
    let conflict = "Operation cannot be fulfilled on poddisruptionbudgets.policy \"web\": the object has been modified; please \
                    apply your changes to the latest version and try again";
    let negative = "poddisruptionbudget.policy \"web\" is forbidden: pdb disruptions allowed is negative";
    let sync = "The disruption budget web does not allow evicting pods currently because it failed sync: no scale";
    let held = "The disruption budget web does not allow evicting pods currently (Held): by hand";
    let two = json!({"message": "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."});
    check([
        (budget("The disruption budget d needs 2 healthy pods and has 2 currently", 0), exhausted("d")),
        (
            budget(held, 0),
            E::BudgetExhausted { budget: Some("web".to_owned()), needs: None, has: None, text: held.to_owned() },
        ),
        (
            status(429, &json!({"message": "Cannot evict pod as it would violate the pod's disruption budget."})),
            E::BudgetExhausted {
                budget: None,
                needs: None,
                has: None,
                text: "Cannot evict pod as it would violate the pod's disruption budget.".to_owned(),
            },
        ),
        (
            budget("The disruption budget web is still being processed by the server.", 10),
            E::BudgetUnsynced { budget: Some("web".to_owned()) },
        ),
        (budget("", 10), E::BudgetUnsynced { budget: None }),
        (budget(sync, 0), E::BudgetBroken { budget: Some("web".to_owned()), text: sync.to_owned() }),
        (
            status(
                403,
                &json!({"message": negative, "reason": "Forbidden",
                    "details": {"name": "web", "group": "policy", "kind": "poddisruptionbudget"}}),
            ),
            E::BudgetBroken { budget: Some("web".to_owned()), text: negative.to_owned() },
        ),
        (
            status(
                409,
                &json!({"message": conflict, "reason": "Conflict",
                    "details": {"name": "web", "group": "policy", "kind": "poddisruptionbudgets"}}),
            ),
            E::BudgetBusy { budget: Some("web".to_owned()) },
        ),
        (
            status(
                504,
                &json!({"message": "Timeout: couldn't update PodDisruptionBudget \"web\" due to conflicts", "reason": "Timeout",
                    "details": {"retryAfterSeconds": 10}}),
            ),
            E::BudgetBusy { budget: Some("web".to_owned()) },
        ),
        (plain(504, None, "upstream request timeout"), E::BudgetBusy { budget: None }),
        (status(500, &two), E::MultipleBudgets),
        // Inside a success: judged by its own code.
        (RawAnswer { code: 201, ..status(500, &two) }, E::MultipleBudgets),
    ]);
}

#[test]
fn shapes_of_webhooks_and_the_server() {
    let after = |seconds| E::Throttled { after: Some(Duration::from_secs(seconds)) };
    check([
        (RawAnswer { code: 200, ..RawAnswer::default() }, E::Accepted),
        (RawAnswer { code: 404, ..RawAnswer::default() }, E::ServerTrouble { text: "HTTP 404".into() }),
        (
            RawAnswer::from_parts(404, Some("text/html"), None, b"<h1>not here</h1>"),
            E::ServerTrouble { text: "<h1>not here</h1>".into() },
        ),
        (
            status(404, &json!({"reason": "NotFound", "message": "the server could not find the requested resource"})),
            E::ServerTrouble { text: "the server could not find the requested resource".into() },
        ),
        (RawAnswer { code: 201, ..status(201, &json!({"message": "no"})) }, trouble("no")),
        (
            status(
                409,
                &json!({"message": "Precondition failed: UID in precondition: a, UID in object meta: b", "reason": "Conflict"}),
            ),
            E::PodReplaced,
        ),
        (status(409, &json!({"message": "the object has been modified"})), trouble("the object has been modified")),
        (
            status(400, &json!({"message": "admission webhook \"x.example\" denied the request without explanation"})),
            refused("x.example", "without explanation"),
        ),
        (
            status(403, &json!({"message": "admission webhook \"x.example\" denied the request: on call"})),
            refused("x.example", "on call"),
        ),
        (
            status(404, &json!({"message": "admission webhook \"x.example\" denied the request: no ticket"})),
            refused("x.example", "no ticket"),
        ),
        (
            status(
                429,
                &json!({"message": "admission webhook \"x.example\" denied the request: Evacuation in progress"}),
            ),
            refused("x.example", "Evacuation in progress"),
        ),
        (
            status(
                429,
                &json!({"message": "storage is (re)initializing", "reason": "TooManyRequests",
                    "details": {"retryAfterSeconds": 1}}),
            ),
            after(1),
        ),
        (plain(429, Some("1"), "Too many requests, please try again later.\n"), after(1)),
        (plain(429, Some("5"), "The apiserver is shutting down, please try again later."), after(5)),
        (plain(429, None, "slow down"), E::Throttled { after: None }),
        (
            status(400, &json!({"message": "admission webhook \"x.example\" does not support dry run"})),
            E::ProbeImpossible { text: "admission webhook \"x.example\" does not support dry run".to_owned() },
        ),
        (status(422, &json!({"message": "bad"})), E::Invalid { text: "bad".to_owned() }),
        (plain(405, None, ""), E::Invalid { text: "HTTP 405".to_owned() }),
        (status(401, &json!({"message": "Unauthorized", "reason": "Unauthorized"})), E::Unauthorized),
        (plain(503, None, "service unavailable\n"), trouble("service unavailable")),
        (status(500, &json!({"message": "etcdserver: leader changed"})), trouble("etcdserver: leader changed")),
        (RawAnswer::no_answer("connection reset by peer"), trouble("connection reset by peer")),
        (RawAnswer::default(), trouble("no answer")),
        (plain(302, None, ""), trouble("HTTP 302")),
    ]);
}

/// What follows from each class, as the design's table has it: helps, bound in seconds, and the clause for people.
#[test]
fn consequences_and_clauses() {
    let text = || "x".to_owned();
    let web = || Some("web".to_owned());
    let rows = [
        (E::Accepted, None, None, "evicted"),
        (E::Gone, None, None, "gone"),
        (E::VmEvacuating { marked_now: true }, Some(true), None, "KubeVirt has marked the VM for migration"),
        (E::VmEvacuating { marked_now: false }, Some(true), None, "KubeVirt is moving the VM"),
        (E::VmNotMigratable, Some(false), None, "its eviction strategy demands a live migration, which it cannot do"),
        (E::VmMigrationTarget, Some(true), None, "it takes part in a migration that is not finished"),
        (E::HotplugCompanion, None, None, "holds a hot-plugged volume and leaves with its VM"),
        (E::VmLookupFailed { text: text() }, Some(true), Some(60), "KubeVirt could not handle the VM: x"),
        (E::EvictionMalformed { text: text() }, Some(false), None, "KubeVirt could not read the eviction: x"),
        (exhausted("d"), Some(true), None, "the disruption budget d needs 2 healthy pods and has 2"),
        (E::BudgetExhausted { budget: None, needs: None, has: None, text: text() }, Some(true), None, "x"),
        (E::BudgetUnsynced { budget: None }, Some(true), Some(300), "its disruption budget has not been evaluated yet"),
        (
            E::BudgetBroken { budget: web(), text: text() },
            Some(true),
            Some(60),
            "the disruption budget web is broken: x",
        ),
        (E::BudgetBusy { budget: web() }, Some(true), None, "the disruption budget web is being changed by others"),
        (
            E::MultipleBudgets,
            Some(false),
            None,
            "more than one disruption budget counts it, which evictions do not support",
        ),
        (E::PodReplaced, None, None, "another pod has its name now"),
        (
            E::WebhookUnreachable { text: "Internal error occurred: y".to_owned() },
            Some(true),
            Some(300),
            "an admission webhook cannot be reached: y",
        ),
        (
            E::WebhookUnreachable {
                text: "Internal error occurred: failed calling webhook \"virt-launcher-eviction-interceptor.kubevirt.io\": \
                       failed to call webhook: Post \"https://virt-api.kubevirt.svc:443/pod-eviction-validate?timeout=10s\": \
                       no endpoints available for service \"virt-api\""
                    .to_owned(),
            },
            Some(true),
            Some(300),
            "KubeVirt's webhook (virt-api) cannot be reached: no endpoints available for service \"virt-api\"",
        ),
        (
            E::WebhookUnreachable {
                text: "Internal error occurred: failed calling webhook \"guard.example.com\": failed to call webhook: Post \
                       \"https://guard.example.svc:443/?timeout=10s\": context deadline exceeded"
                    .to_owned(),
            },
            Some(true),
            Some(300),
            "the admission webhook guard.example.com does not answer within 10s",
        ),
        (
            E::WebhookRefused { name: "n".to_owned(), text: "a\nb".to_owned() },
            Some(true),
            Some(300),
            "the admission webhook n refuses: a b",
        ),
        (E::Throttled { after: Some(Duration::from_secs(3)) }, Some(true), None, "the API server is busy, again in 3s"),
        (E::NamespaceTerminating, Some(true), None, "its namespace is being deleted"),
        (E::ProbeImpossible { text: text() }, None, None, "a dry run is not possible: x"),
        (E::Forbidden { text: text() }, Some(false), None, "not permitted: x"),
        (E::Invalid { text: text() }, Some(false), None, "the API server does not accept the eviction: x"),
        (E::Unauthorized, Some(false), None, "the API server does not accept the credentials"),
        (E::ServerTrouble { text: text() }, Some(true), None, "the API server has trouble: x"),
    ];
    for (answer, helps, bound, clause) in rows {
        assert_eq!(answer.waiting_helps(), helps, "{answer:?}");
        assert_eq!(answer.bound(), bound.map(Duration::from_secs), "{answer:?}");
        assert_eq!(answer.describe(), clause);
        let stands_in_the_way = !matches!(answer, E::Accepted | E::Gone | E::PodReplaced | E::ProbeImpossible { .. });
        assert_eq!(answer.cause().is_some(), stands_in_the_way, "{answer:?}");
    }
}

/// Texts that are made of the phrases which classes are known by, in any order, and of noise.
fn words() -> impl Strategy<Value = String> {
    let phrase = prop::sample::select(vec![
        "admission webhook \"virt-launcher-eviction-interceptor.kubevirt.io\" denied the request: ",
        "admission webhook \"",
        "\" denied",
        "Evacuation in progress: ",
        "Eviction triggered evacuation of VMI \"a/b\"",
        "failed calling webhook \"x\"",
        "The disruption budget ",
        " needs 99999999999 healthy pods and has ",
        "more than one PodDisruptionBudget \"",
        "UID in the precondition",
        "does not support dry run",
        "İPodDisruptionBudget \"ß\"",
        "\n",
    ]);
    prop::collection::vec(prop_oneof![phrase.prop_map(str::to_owned), ".{0,12}"], 0..5).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn nothing_panics_and_only_success_is_accepted(
        code in prop_oneof![any::<u16>(), 199u16..600],
        own_code in any::<u16>(),
        failure in any::<bool>(),
        is_status in any::<bool>(),
        message in words(),
        cause in words(),
        kind in prop::sample::select(vec!["", "Pod", "poddisruptionbudgets"]),
        retry_after in prop::option::of(0u64..20),
    ) {
        let status = RawStatus {
            failure,
            code: own_code,
            message: message.clone(),
            details_kind: kind.to_owned(),
            causes: vec![("DisruptionBudget".to_owned(), cause)],
            ..RawStatus::default()
        };
        let answer =
            RawAnswer { code, retry_after, status: is_status.then_some(status), text: message, ..RawAnswer::default() };
        let class = classify_eviction(&answer);
        prop_assert!(!class.describe().chars().any(char::is_control));
        let success = (200..300).contains(&code) && !(is_status && failure);
        prop_assert_eq!(class == E::Accepted, success);
        let restart = crate::answer::classify_restart(&answer);
        prop_assert_eq!(restart == crate::answer::RestartAnswer::Accepted, success);
        prop_assert!(!restart.describe().is_empty());
    }

    #[test]
    fn any_body_can_be_read(code in any::<u16>(), body in prop::collection::vec(any::<u8>(), 0..200)) {
        let answer = RawAnswer::from_parts(code, None, None, &body);
        prop_assert_eq!(classify_eviction(&answer) == E::Accepted, (200..300).contains(&code));
    }
}
