//! What the code promises about itself: a pure core, arrows in one direction, files that can be read, a simulator of its own.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Modules that take data and return data.
const PURE: &[&str] = &[
    "answer", "audit", "classify", "error", "event", "exit", "facts", "forecast", "machine", "outcome", "plan",
    "report", "settings", "undo",
];

/// What none of them may mention: the world, or a clock.
const WORLD: &[&str] = &[
    "kube::",
    "tokio",
    "std::io",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "println!",
    "print!(",
];

/// Exceptions: file, word, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("facts/wire/", "kube::", "the wire types implement kube-core's traits for typed lists and watches"),
    ("facts/convert/", "kube::", "reads the metadata of wire types"),
    ("exit.rs", "std::process", "a conversion into the type that main returns"),
    ("report/mod.rs", "std::io", "writes to the streams it was given"),
    ("report/document.rs", "std::io", "writes to the stream it was given"),
    ("report/events_file.rs", "std::io", "writes to the stream it was given"),
];

/// Who may import whom, among the steps of a drain; `event`, `outcome`, `exit` and `error` are words shared by all.
const ARROWS: &[(&str, &[&str])] = &[
    ("facts", &[]),
    ("answer", &["outcome"]),
    ("classify", &["facts", "outcome"]),
    ("forecast", &["facts", "outcome"]),
    ("plan", &["facts", "answer", "classify", "forecast", "outcome", "exit"]),
    ("machine", &["facts", "answer", "forecast", "plan", "undo", "event", "outcome", "exit"]),
    ("report", &["facts", "event", "outcome", "exit", "error"]),
    ("audit", &["facts", "forecast", "plan", "outcome"]),
    ("undo", &["facts", "answer", "event", "outcome", "exit"]),
    ("outcome", &["facts"]),
    ("event", &["facts", "outcome", "exit"]),
    ("exit", &[]),
    ("error", &["exit"]),
    ("settings", &["facts"]),
];

/// Words of the plan that earlier steps use: what the command was told, and the names of what can be done.
const PLAN_WORDS: &[&str] = &["ConsentKind", "PlanOptions", "VmAction"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Files of the crate as (path below src, text), without those of its unit tests.
fn sources() -> Vec<(String, String)> {
    let src = root().join("src");
    let mut found = Vec::new();
    files(&src, &mut found);
    let name = |path: &Path| path.strip_prefix(&src).unwrap().to_string_lossy().replace('\\', "/");
    let mut all: Vec<_> = found.iter().map(|p| (name(p), fs::read_to_string(p).unwrap())).collect();
    all.retain(|(name, _)| !name.contains("tests") && !name.ends_with("testing.rs"));
    all.sort();
    assert!(all.len() > 60, "only {} files were found", all.len());
    all
}

/// Lines of code with their number: no comments, and nothing behind the unit tests at the end of a file.
fn code(text: &str) -> Vec<(usize, &str)> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().enumerate().filter(|(_, l)| !l.trim_start().starts_with("//")).map(|(n, l)| (n + 1, l)).collect()
}

fn module(name: &str) -> &str {
    name.split('/').next().unwrap_or_default().trim_end_matches(".rs")
}

#[test]
fn the_core_is_pure() {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for (name, text) in sources().iter().filter(|(name, _)| PURE.contains(&module(name))) {
        for (number, line) in code(text) {
            for word in WORLD.iter().filter(|w| line.contains(**w)) {
                match EXCEPTIONS.iter().position(|(file, w, _)| name.starts_with(file) && w == word) {
                    Some(exception) => drop(used.insert(exception)),
                    None => wrong.push(format!("{name}:{number}: {word} in {}", line.trim())),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(used.len(), EXCEPTIONS.len(), "an exception is not needed any more");
}

/// Modules of the crate that a line imports, with what of them.
fn imports(line: &str) -> Vec<(String, String)> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    line.split("crate::").skip(1).map(|rest| (word(rest), rest[word(rest).len()..].to_owned())).collect()
}

#[test]
fn arrows_point_in_one_direction() {
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        let Some((_, allowed)) = ARROWS.iter().find(|(m, _)| *m == module(&name)) else { continue };
        for (number, line) in code(&text) {
            for (other, what) in imports(line) {
                let words = what.trim_start_matches("::").trim_matches(['{', '}', ';']).split(',').map(str::trim);
                let only_words = other == "plan"
                    && matches!(module(&name), "classify" | "forecast")
                    && words.clone().all(|w| PLAN_WORDS.contains(&w));
                if other != module(&name) && !allowed.contains(&other.as_str()) && !only_words {
                    wrong.push(format!("{name}:{number}: {other} in {}", line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_pure_module_has_its_arrows() {
    let listed: BTreeSet<&str> = ARROWS.iter().map(|(m, _)| *m).collect();
    assert_eq!(listed, PURE.iter().copied().collect());
    for name in PURE {
        let src = root().join("src");
        assert!(src.join(name).is_dir() || src.join(format!("{name}.rs")).is_file(), "{name} is gone");
    }
}

#[test]
fn no_file_is_too_long_to_read() {
    let mut found = Vec::new();
    for folder in ["src", "tests"] {
        files(&root().join(folder), &mut found);
    }
    let lines = |path: &PathBuf| fs::read_to_string(path).unwrap().lines().count();
    // The facts are one list of plain structs, read from top to bottom.
    let exempt = |path: &PathBuf| path.ends_with("src/facts/model.rs");
    let long: Vec<_> = found.iter().filter(|p| !exempt(p)).map(|p| (lines(p), p)).filter(|(n, _)| *n > 500).collect();
    assert!(long.is_empty(), "{long:#?}");
}

/// The lines of a section of a manifest.
fn section<'a>(manifest: &'a str, name: &str) -> Vec<&'a str> {
    let lines = manifest.lines().skip_while(|l| *l != format!("[{name}]")).skip(1);
    lines.take_while(|l| !l.starts_with('[')).filter(|l| !l.is_empty()).collect()
}

#[test]
fn the_simulator_and_the_tool_share_no_code() {
    let tool = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let sim = fs::read_to_string(root().join("tests/sim/Cargo.toml")).unwrap();
    assert!(!section(&tool, "dependencies").is_empty() && !section(&sim, "dependencies").is_empty());
    assert!(!section(&tool, "dependencies").iter().any(|l| l.contains("sim")));
    assert!(section(&tool, "dev-dependencies").iter().any(|l| l.starts_with("safe-drain-sim")));
    assert!(!sim.contains("safe_drain\"") && !sim.contains("kubectl-safe_drain"));
    let mut found = Vec::new();
    files(&root().join("tests/sim"), &mut found);
    for path in found {
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("safe_drain::"), "{} uses the tool", path.display());
    }
}

#[test]
fn only_one_file_knows_the_backoff_crate() {
    let users: Vec<String> = sources()
        .into_iter()
        .filter(|(_, t)| code(t).iter().any(|(_, l)| l.contains("backoff::")))
        .map(|(n, _)| n)
        .collect();
    assert_eq!(users, ["machine/retry.rs"]);
}
