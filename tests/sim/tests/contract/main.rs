//! Holds the simulator to what a real control plane answered: every recorded exchange is replayed against a cluster in the matching state and must
//! give the recorded code, content type, Retry-After, Warning and body. `compare.rs` says what is not compared because it differs from run to run;
//! `ALLOWED` what is known to differ, and why; `NOT_SERVED` what is not replayed, and why. A recording in neither list fails the test.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::many_single_char_names,
    reason = "a broken answer ends the test; the recordings name their workloads a to e"
)]

mod compare;
mod story;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;

use safe_drain_sim::{Json, Sim};
use serde_json::Value;

/// Recordings that are not replayed.
const NOT_SERVED: &[(&str, &str)] = &[
    ("event-list", "the simulator writes the events that clients read, not all of them, and not with the same counts"),
    ("validating-webhook-configuration", "the simulator has no webhook configurations"),
];

/// Paths that may differ, by a part of the path, with the reason.
const ALLOWED: &[(&str, &str)] = &[
    ("/lastTransitionTime", "the stand-in for the kubelets left some of them null"),
    ("/lastProbeTime", "as above"),
    ("/metadata/managedFields", "cut out of the recordings"),
    ("/phaseTransitionTimestamps", "the stand-in for virt-handler did not date the phase Running"),
    ("/status/startFailure", "comes from the same gap: virt-controller thought the old VMI had never run"),
    ("/metadata/annotations/lab/shutdown", "steers the simulator only"),
    ("/metadata/annotations/kubevirt.io/migration-target-ready-timestamp", "a time in another form"),
];

/// Replays recordings and remembers which.
#[derive(Default)]
pub struct Check {
    done: BTreeSet<String>,
    failures: Vec<String>,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/recordings/http")
}

fn load(name: &str) -> Value {
    let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

impl Check {
    /// Replays one recording; `names` are pairs of (recorded, simulated) names.
    pub async fn replay(&mut self, sim: &Sim, name: &str, names: &[(&str, &str)]) {
        self.replay_but(sim, name, names, &[]).await;
    }

    /// As `replay`, with more parts of paths that may differ, for a reason given where it is called.
    pub async fn replay_but(&mut self, sim: &Sim, name: &str, names: &[(&str, &str)], allowed: &[&str]) {
        self.done.insert(name.to_owned());
        let recorded = load(name);
        let swap = |text: &str| names.iter().fold(text.to_owned(), |t, (a, b)| t.replace(a, b));
        let back = |text: &str| names.iter().fold(text.to_owned(), |t, (a, b)| t.replace(b, a));
        let body = recorded
            .pointer("/request/body")
            .filter(|b| !b.is_null())
            .map(|b| serde_json::from_str::<Value>(&swap(&b.to_string())).unwrap());
        let method = recorded.text("/request/method");
        let kind = if method == "PATCH" { "application/strategic-merge-patch+json" } else { "application/json" };
        let mut headers = vec![("Content-Type", kind)];
        if name.contains("accept-json") {
            headers.push(("Accept", "application/json"));
        }
        let got = support::send(sim, method, &swap(recorded.text("/request/path")), body.as_ref(), &headers).await;
        let got = support::read(got).await;
        let mut out = Vec::new();
        if i64::from(got.status) != recorded.int("/response/status").unwrap() {
            out.push(format!("code {} instead of {}: {}", got.status, recorded["response"]["status"], got.text));
        }
        for header in ["Content-Type", "Retry-After", "Warning"] {
            let want = recorded.text(&format!("/response/headers/{header}"));
            if got.header(header) != want {
                out.push(format!("{header}: {:?} instead of {want:?}", got.header(header)));
            }
        }
        let want = &recorded["response"]["body"];
        if want.is_string() {
            if want.as_str() != Some(back(&got.text).as_str()) {
                out.push(format!("body {:?} instead of {want}", got.text));
            }
        } else {
            let simulated: Value = serde_json::from_str(&back(&got.text)).unwrap_or(Value::Null);
            compare::diff("", &compare::normal(want), &compare::normal(&simulated), &mut out);
        }
        out.retain(|line| !ALLOWED.iter().map(|(p, _)| p).chain(allowed).any(|p| line.contains(p)));
        self.failures.extend(out.into_iter().map(|line| format!("{name}: {line}")));
    }
}

#[tokio::test(start_paused = true)]
async fn answers_as_recorded() {
    let mut check = Check::default();
    story::discovery(&mut check).await;
    story::core(&mut check).await;
    story::virtual_machines(&mut check).await;
    assert!(check.failures.is_empty(), "{} differences:\n{}", check.failures.len(), check.failures.join("\n"));

    let mut files: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|f| f.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    for (name, why) in NOT_SERVED {
        assert!(files.remove(*name), "{name} is listed as not served ({why}), but there is no such recording");
    }
    assert_eq!(check.done, files, "every recording is replayed or listed as not served");
}
