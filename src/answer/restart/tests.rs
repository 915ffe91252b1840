use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::answer::eviction::tests::recordings;

fn refused(text: &str) -> RestartAnswer {
    RestartAnswer::NotPossible { text: text.to_owned() }
}

#[test]
fn every_recorded_restart_has_its_class() {
    use RestartAnswer as R;
    let once = || {
        refused(
            "Operation cannot be fulfilled on virtualmachine.kubevirt.io \"stale-once\": RunStategy Once does not support manual \
             restart requests",
        )
    };
    let down = "error trying to reach service: dial tcp 127.0.0.1:8443: connect: connection refused".to_owned();
    let expected = BTreeMap::from([
        ("dryrun-restart-fresh", R::Accepted),
        ("dryrun-restart-stale-always", R::Accepted),
        ("dryrun-restart-stale-manual", R::Accepted),
        ("dryrun-restart-stale-once", once()),
        ("dryrun-restart-stale-rerun", R::Accepted),
        ("dryrun-restart-template-pins", R::Accepted),
        ("restart-again-stale-manual", R::Underway),
        ("restart-not-running", R::Accepted),
        ("restart-stale-always", R::Accepted),
        ("restart-stale-manual", R::Accepted),
        ("restart-stale-once", once()),
        ("restart-stale-rerun", R::Accepted),
        ("restart-standalone-404", R::NoSuchVm),
        ("restart-template-pins", R::Accepted),
        ("restart-virt-api-down-503", R::Unavailable { text: down, after: None }),
    ]);
    let recorded = recordings("/restart");
    for (name, answer) in &recorded {
        let Some(class) = expected.get(name.as_str()) else { panic!("{name} is not in the table") };
        assert_eq!(classify_restart(answer), *class, "{name}");
    }
    assert_eq!(recorded.len(), expected.len(), "a recording of the table is missing");
    assert_eq!(
        once().describe(),
        "KubeVirt refuses the restart: RunStategy Once does not support manual restart requests"
    );
}

#[test]
fn what_no_recording_shows() {
    use RestartAnswer as R;
    let plain = |code, text: &str| RawAnswer::from_parts(code, Some("text/plain"), None, text.as_bytes());
    let unavailable = |text: &str| R::Unavailable { text: text.to_owned(), after: None };
    let inside = br#"{"kind":"Status","status":"Failure","code":409,"message":"m"}"#;
    let rows = [
        (plain(202, ""), R::Accepted),
        (RawAnswer::from_parts(202, None, None, inside), refused("m")),
        (plain(400, "gracePeriod has to be greater or equal to 0"), {
            R::Invalid { text: "gracePeriod has to be greater or equal to 0".to_owned() }
        }),
        (plain(406, ""), R::Invalid { text: "HTTP 406".to_owned() }),
        (plain(401, "no"), R::Unauthorized),
        (plain(403, "no"), R::Forbidden { text: "no".to_owned() }),
        (plain(404, ""), R::NoSuchVm),
        (plain(404, "404 page not found\n"), unavailable("404 page not found")),
        (plain(409, "VM is not running: Halted"), refused("VM is not running: Halted")),
        (RawAnswer::from_parts(429, None, Some("2"), b"busy"), R::Throttled { after: Some(Duration::from_secs(2)) }),
        (plain(500, "something else"), unavailable("something else")),
        (RawAnswer::no_answer("reset"), unavailable("reset")),
    ];
    for (answer, class) in rows {
        assert_eq!(classify_restart(&answer), class, "{answer:?}");
    }
}
