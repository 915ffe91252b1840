use serde_json::{Value, json};

use super::run::{connected, drain};
use super::schema::{SCHEMA, check, valid};
use super::*;
use crate::event::Consent;
use crate::report::Reporter;
use crate::report::document::{DocumentFold, DocumentKind, DocumentWriter, Format};
use crate::report::events_file::EventsFile;

fn fold(kind: DocumentKind, events: &[DrainEvent]) -> DocumentFold {
    let mut fold = DocumentFold::new(kind, started_at(), json!({"timeout": "30m"}));
    for event in events {
        fold.event(event);
    }
    fold
}

fn json_of(kind: DocumentKind, events: &[DrainEvent]) -> Value {
    serde_json::from_str(&fold(kind, events).document().render(Format::Json)).unwrap()
}

#[test]
fn every_document_fits_its_schema() {
    let events = drain();
    valid(&json_of(DocumentKind::DrainResult, &events));
    valid(&json_of(DocumentKind::DrainResult, &events[..3]));
    valid(&json_of(DocumentKind::DrainPreview, &events[..3]));
    valid(&json_of(DocumentKind::DrainResult, &[]));
}

/// The words that serde writes for the variants of an enum, read from its source.
fn words(source: &str, name: &str, kebab: bool) -> Vec<String> {
    let body = source.split_once(&format!("pub enum {name} {{")).unwrap().1.split_once("\n}").unwrap().0;
    let variants = body.lines().filter_map(|line| line.trim().strip_suffix(',')).filter(|word| !word.contains(' '));
    let spell = |word: &str| {
        let mut out = String::new();
        for c in word.chars() {
            if kebab && c.is_uppercase() && !out.is_empty() {
                out.push('-');
            }
            out.push(if kebab { c.to_ascii_lowercase() } else { c });
        }
        out
    };
    variants.map(spell).collect()
}

#[test]
fn the_schema_knows_every_word_that_the_code_can_write() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let rows = include_str!("../../outcome/mod.rs");
    let causes = include_str!("../../outcome/cause.rs");
    let events = include_str!("../../event.rs");
    for (source, name, kebab, place) in [
        (rows, "VmOutcome", true, "/$defs/vm/properties/outcome"),
        (rows, "PodOutcome", true, "/$defs/pod/properties/outcome"),
        (rows, "Verdict", true, "/$defs/node/properties/verdict"),
        (events, "Consent", true, "/$defs/consent"),
        (causes, "Cause", false, "/$defs/cause"),
    ] {
        let known = schema.pointer(place).unwrap()["enum"].as_array().unwrap();
        let mut known: Vec<String> = known.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect();
        let mut written = words(source, name, kebab);
        known.sort();
        written.sort();
        assert_eq!(written, known, "{name}");
    }
}

#[test]
fn the_check_finds_what_does_not_fit() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut document = json_of(DocumentKind::DrainPreview, &drain()[..3]);
    document["nodes"][0]["vms"][0]["outcome"] = json!("restart");
    document["nodes"][0]["vms"][1]["extra"] = json!(1);
    document["nodes"][0]["pods"][0]["waitingHelps"] = json!("no");
    document["nodes"][0].as_object_mut().unwrap().remove("verdict");
    let errors = check(&schema, &schema, &document, "$");
    insta::assert_snapshot!(errors.join("\n"), @r#"
    $.nodes[0].pods[0].waitingHelps: string is none of [String("boolean"), String("null")]
    $.nodes[0].vms[0].outcome: "restart" is none of its words
    $.nodes[0].vms[1]: extra is not described
    $.nodes[0]: "verdict" is missing
    "#);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one whole document, as a reader sees it")]
fn golden() {
    let pods = vec![web(0, PodOutcome::Evicts, "")];
    let vms = vec![stale("db-0", "disk root is ReadWriteOnce")];
    let events = script(vec![
        (400, connected()),
        (420, EventKind::Planned { nodes: vec![report(Verdict::Blocked, 3, vms, pods)] }),
        (500, EventKind::Ended { exit_code: 3, error: None, hints: vec![] }),
    ]);
    insta::assert_snapshot!(fold(DocumentKind::DrainPreview, &events).document().render(Format::Json), @r#"
    {
      "apiVersion": "safe-drain/v1",
      "kind": "DrainPreview",
      "startedAt": "2026-03-01T12:00:00.25Z",
      "endedAt": "2026-03-01T12:00:00.75Z",
      "server": {
        "context": "prod",
        "kubernetes": "v1.36.3",
        "kubevirt": "v1.7.0",
        "evictionStrategy": "LiveMigrateIfPossible"
      },
      "options": {
        "timeout": "30m"
      },
      "exitCode": 3,
      "changed": false,
      "error": null,
      "consent": {
        "restartStale": "none",
        "vmDown": "none"
      },
      "nodes": [
        {
          "name": "node-0",
          "uid": "uid-node-0",
          "verdict": "blocked",
          "exitCode": 3,
          "cordonedBefore": false,
          "cordonedNow": false,
          "elapsedSeconds": 0.0,
          "counts": {
            "vms": 1,
            "pods": 1,
            "staying": 0,
            "notSelected": 0,
            "blocked": 1,
            "waiting": 0,
            "refused": 0
          },
          "vms": [
            {
              "namespace": "tenant-a",
              "name": "db-0",
              "owner": {
                "kind": "VirtualMachine",
                "name": "db-0"
              },
              "vmiUid": "uid-db-0",
              "newVmiUid": null,
              "launcher": {
                "name": "virt-launcher-db-0-x7k2p",
                "uid": "uid-l-db-0"
              },
              "runStrategy": "Always",
              "strategyNow": "LiveMigrate",
              "strategyFresh": "LiveMigrateIfPossible",
              "strategySource": "cluster",
              "stale": true,
              "restartHelps": true,
              "migratable": false,
              "migratableReason": "DisksNotLiveMigratable",
              "outcome": "blocks",
              "cause": "VmNotMigratable",
              "waitingHelps": false,
              "needs": [
                "--restart-stale"
              ],
              "dataLoss": [],
              "nodeBefore": "node-0",
              "nodeAfter": null,
              "marked": false,
              "attempts": 0,
              "because": "disk root is ReadWriteOnce; a restart gives it LiveMigrateIfPossible",
              "remedy": "add --restart-stale"
            }
          ],
          "pods": [
            {
              "namespace": "shop",
              "name": "web-7d9f-0",
              "uid": "uid-web-7d9f-0",
              "outcome": "evicts",
              "cause": null,
              "waitingHelps": null,
              "needs": [],
              "budgets": [
                "shop/web"
              ],
              "because": "",
              "remedy": null
            }
          ]
        }
      ]
    }
    "#);
    insta::assert_snapshot!(fold(DocumentKind::DrainPreview, &events[..1]).document().render(Format::Yaml), @r#"
    apiVersion: safe-drain/v1
    kind: DrainPreview
    startedAt: "2026-03-01T12:00:00.25Z"
    endedAt: "2026-03-01T12:00:00.65Z"
    server:
      context: prod
      kubernetes: v1.36.3
      kubevirt: v1.7.0
      evictionStrategy: LiveMigrateIfPossible
    options:
      timeout: 30m
    exitCode: 1
    changed: false
    error: the run ended without a result
    consent:
      restartStale: none
      vmDown: none
    nodes: []
    "#);
}

#[test]
fn a_refusal_changed_nothing_and_promises_nothing() {
    let mut events = drain();
    events.truncate(3);
    events.push(DrainEvent {
        seq: 4,
        elapsed_ms: 430,
        kind: EventKind::Consented { restart_stale: Consent::Declined, vm_down: Consent::None },
    });
    events.push(DrainEvent {
        seq: 5,
        elapsed_ms: 430,
        kind: EventKind::Ended { exit_code: 4, error: Some("declined".into()), hints: vec![] },
    });
    let document = json_of(DocumentKind::DrainResult, &events);
    valid(&document);
    assert_eq!(document["changed"], json!(false));
    assert_eq!(document["consent"], json!({"restartStale": "declined", "vmDown": "none"}));
    assert_eq!(document["nodes"][0]["verdict"], "not-started");
    let outcomes: Vec<&Value> = document["nodes"][0]["vms"].as_array().unwrap().iter().map(|v| &v["outcome"]).collect();
    assert_eq!(outcomes, ["blocks", "pending", "pending", "blocks", "pending", "blocks", "pending"]);
}

#[test]
fn a_cordon_that_was_taken_back_is_no_change() {
    let cordon = (1, EventKind::NodeCordoned { node: "node-0".into(), already: false });
    let back = (2, EventKind::NodeUncordoned { node: "node-0".into() });
    assert_eq!(json_of(DocumentKind::DrainResult, &script(vec![cordon.clone()]))["changed"], true);
    assert_eq!(json_of(DocumentKind::DrainResult, &script(vec![cordon, back]))["changed"], false);
}

#[test]
fn the_writer_writes_one_document_however_it_ends() {
    let out = Sink::default();
    let mut writer = DocumentWriter::new(fold(DocumentKind::DrainResult, &[]), Format::Json, Box::new(out.clone()));
    writer.finish();
    let document: Value = serde_json::from_str(&out.text()).unwrap();
    assert_eq!(document["exitCode"], 1);
    assert!(out.text().ends_with("}\n"));
}

#[test]
fn events_are_one_object_a_line() {
    let out = Sink::default();
    let mut file = EventsFile::new(Box::new(out.clone()), started_at());
    let events = drain();
    file.event(&events[3]);
    file.event(&events[8]);
    file.event(&events[28]);
    file.finish();
    assert_eq!(file.trouble(), Vec::<String>::new());
    insta::assert_snapshot!(out.text(), @r#"
    {"apiVersion":"safe-drain/v1","time":"2026-03-01T12:00:00.75Z","seq":4,"elapsedMs":500,"event":"node-cordoned","node":"node-0","already":false}
    {"apiVersion":"safe-drain/v1","time":"2026-03-01T12:00:00.85Z","seq":9,"elapsedMs":600,"event":"vm-progressed","node":"node-0","vm":{"namespace":"tenant-a","name":"web-1"},"progress":{"activity":"queued","sinceMs":600,"attempt":0,"target":null,"queue":2,"detail":null,"nextTryMs":null}}
    {"apiVersion":"safe-drain/v1","time":"2026-03-01T12:03:04.55Z","seq":29,"elapsedMs":184300,"event":"ended","exitCode":3,"error":null}
    "#);
}

/// A disk without room.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::from(io::ErrorKind::StorageFull))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_cannot_be_written_is_told() {
    let mut fanout = crate::report::Fanout::new();
    fanout.add(Box::new(EventsFile::new(Box::new(Full), Timestamp::UNIX_EPOCH)));
    let fold = DocumentFold::new(DocumentKind::DrainResult, Timestamp::UNIX_EPOCH, serde_json::json!({}));
    fanout.add(Box::new(DocumentWriter::new(fold, Format::Json, Box::new(Full))));
    fanout.event(&DrainEvent { seq: 1, elapsed_ms: 0, kind: EventKind::ContactLost });
    fanout.finish();
    let told = fanout.trouble();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("the events file is incomplete") && told[1].starts_with("the document"), "{told:?}");
}
