//! `--events-file`: every event as a line of JSON.

use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::cluster::Cluster;

/// The events of a file, which are complete and in order.
fn events(text: &str, code: u8) -> Vec<Value> {
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    let expected: Vec<u64> = (1..=events.len() as u64).collect();
    assert_eq!(numbers, expected, "{text}");
    let times: Vec<u64> = events.iter().map(|event| event["elapsedMs"].as_u64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let last = events.last().unwrap();
    assert_eq!((&last["event"], &last["exitCode"]), (&Value::from("ended"), &Value::from(code)), "{text}");
    assert_eq!(events.iter().filter(|event| event["event"] == "ended").count(), 1);
    events
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_drain_with_an_events_file() {
    let cluster = Cluster::scenario("plain");
    let run = cluster.run(&["node-0", "--events-file", "events.jsonl"]);
    assert_eq!(run.code(), 0, "{}", run.text());
    assert!(run.stdout.starts_with("node/node-0 cordoned\n"), "{}", run.text());
    let events = events(&read(&cluster.home.path().join("events.jsonl")), 0);
    let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((count("connected"), count("planned"), count("pod-evicting"), count("pod-gone")), (1, 1, 6, 6));
}

#[test]
fn events_on_stdout_are_the_only_thing_there() {
    let cluster = Cluster::scenario("plain");
    let run = cluster.run(&["node-0", "--events-file", "-"]);
    assert_eq!(run.code(), 0, "{}", run.text());
    events(&run.stdout, 0);
    assert!(run.stderr.contains("node/node-0 drained"), "{}", run.text());
}

#[test]
fn an_events_file_beside_a_document() {
    let cluster = Cluster::scenario("plain");
    let run = cluster.run(&["node-0", "-o", "json", "--events-file", "events.jsonl"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let events = events(&read(&cluster.home.path().join("events.jsonl")), 0);
    let ended = events.iter().find(|event| event["event"] == "node-ended").unwrap();
    assert_eq!(ended["report"], document["nodes"][0]);
}

#[test]
fn an_error_ends_the_events_too() {
    let cluster = Cluster::scenario("plain");
    let run = cluster.run(&["nope", "--events-file", "events.jsonl"]);
    assert_eq!(run.code(), 2, "{}", run.text());
    let events = events(&read(&cluster.home.path().join("events.jsonl")), 2);
    assert_eq!(events.len(), 1);
    assert!(events[0]["error"].as_str().unwrap().contains("nope"));
}

#[test]
fn a_signal_ends_the_events_too() {
    let cluster = Cluster::slow();
    let running = cluster.begin(&["node-0", "--events-file", "-"]);
    running.wait_stdout("pod-evicting");
    running.signal(Signal::TERM);
    let run = running.end();
    let events = events(&run.stdout, 143);
    assert!(events.iter().any(|event| event["event"] == "stopped"), "{}", run.text());
}

#[test]
fn events_can_be_followed_while_the_drain_runs() {
    let cluster = Cluster::slow();
    let running = cluster.begin(&["node-0", "--events-file", "events.jsonl"]);
    running.wait_stdout("evicting pod");
    let path = cluster.home.path().join("events.jsonl");
    crate::tool::until("the event in the file", || read(&path).contains("\"event\":\"pod-evicting\""));
    running.signal(Signal::INT);
    running.end();
    events(&read(&path), 130);
}
