//! Drains that went wrong somewhere, each as a test named after its number: what happened to others must not happen here.
//!
//! `vms` has the cases of virtual machines, `cluster` those of any cluster. Each lists its numbers.

mod cluster;
mod vms;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Numbers of the tests in a folder, with how often each occurs.
fn tests_in(folder: &Path) -> BTreeMap<u32, usize> {
    let name = regex::Regex::new(r"\bfn c(\d+)_\w+\(").expect("an expression");
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("a source file");
        for number in name.captures_iter(&text) {
            *found.entry(number[1].parse().expect("digits")).or_default() += 1;
        }
    }
    found
}

#[test]
fn every_listed_case_is_a_test_and_every_test_is_listed() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/flows/cases");
    for (folder, listed) in [("vms", vms::CASES), ("cluster", cluster::CASES)] {
        let found: Vec<u32> = tests_in(&cases.join(folder)).into_keys().collect();
        assert_eq!(found, listed, "{folder}");
    }
}
