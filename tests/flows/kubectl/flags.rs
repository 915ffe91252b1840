//! Whatever flag is typed after `kubectl drain` can be typed after `kubectl safe-drain`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::Command;

use regex::Regex;
use safe_drain::cli::{Exit, parse};
use safe_drain::settings::Invocation;

use super::rows::{DAEMON_SETS, PAGES, Row, TIMEOUT};

const LIST: &str = include_str!("../../fixtures/kubectl/flags-1.36.3.txt");

/// The home in which the list was made: a default lies there.
const HOME: &str = "/home/somebody";

/// Refused with a reason, since they promise a failure that would not come.
const REFUSED: [&str; 2] = ["match-server-version", "warnings-as-errors"];

/// Other defaults than kubectl's, on purpose.
const OTHER_DEFAULTS: [(&str, Row); 4] =
    [("timeout", TIMEOUT), ("ignore-daemonsets", DAEMON_SETS), ("chunk-size", PAGES), ("request-timeout", PAGES)];

/// A flag of kubectl.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Flag {
    name: String,
    short: Option<char>,
    /// As kubectl's help shows it: text in quotes, lists in brackets, the rest plain.
    default: String,
}

impl Flag {
    fn is_list(&self) -> bool {
        self.default == "[]"
    }

    /// A value of its kind; `None` for a switch.
    fn value(&self) -> Option<&'static str> {
        match self.default.as_str() {
            _ if self.name == "namespace" => Some("shop"),
            "true" | "false" => None,
            "'none'" => Some("none"),
            number if number.parse::<i64>().is_ok() => Some("7"),
            duration if duration.ends_with('s') || duration == "'0'" => Some("7s"),
            // A selector, an extra, a name, a path.
            _ => Some("a=b"),
        }
    }
}

fn flags() -> Vec<Flag> {
    let lines = LIST.lines().filter(|line| !line.starts_with('#'));
    let flag = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let short = words.next().and_then(|w| w.chars().next()).filter(|c| *c != '-');
        let name = words.next().expect("a name").to_owned();
        Flag { name, short, default: words.next().unwrap_or_default().to_owned() }
    };
    lines.map(flag).collect()
}

fn parsed(words: &[String]) -> Result<Invocation, Exit> {
    let program = std::iter::once("kubectl-safe_drain".to_owned());
    parse(program.chain(words.iter().cloned()).map(OsString::from).collect())
}

/// A line with that flag, and what else it needs.
fn line(flag: &Flag, words: &[&str]) -> Vec<String> {
    let mut line: Vec<String> = words.iter().map(|&w| w.to_owned()).collect();
    if flag.name != "selector" {
        line.push("n1".to_owned());
    }
    if flag.name.starts_with("as-") {
        line.push("--as=me".to_owned());
    }
    line
}

/// All ways to write a flag.
fn spellings(flag: &Flag) -> Vec<Vec<String>> {
    let long = format!("--{}", flag.name);
    let mut all = Vec::new();
    match flag.value() {
        None => {
            all.push(line(flag, &[&long]));
            all.push(line(flag, &[&format!("{long}=true")]));
            all.push(line(flag, &[&format!("{long}=false")]));
        }
        Some(value) => {
            all.push(line(flag, &[&format!("{long}={value}")]));
            // In kubectl, too, `--dry-run VALUE` is a flag and a node.
            if flag.name != "dry-run" {
                all.push(line(flag, &[&long, value]));
            }
            if let Some(short) = flag.short {
                all.push(line(flag, &[&format!("-{short}"), value]));
                all.push(line(flag, &[&format!("-{short}={value}")]));
            }
        }
    }
    all
}

#[test]
fn each_flag_of_kubectl_is_taken() {
    let flags = flags();
    assert_eq!(flags.len(), 40, "the list is read");
    for flag in &flags {
        for words in spellings(flag) {
            // Who types `=false` asks for no failure.
            let asks = words.iter().all(|word| !word.ends_with("=false"));
            match parsed(&words) {
                Ok(_) => assert!(!asks || !REFUSED.contains(&flag.name.as_str()), "{words:?}"),
                Err(Exit::Error(error)) => {
                    let text = error.render();
                    assert!(REFUSED.contains(&flag.name.as_str()), "{words:?}: {text}");
                    assert!(text.contains("is not supported: "), "{words:?}: {text}");
                }
                Err(Exit::Text(text)) => panic!("{words:?}: {text}"),
            }
        }
    }
}

#[test]
fn a_flag_that_is_not_given_means_what_it_means_in_kubectl() {
    for flag in flags().iter().filter(|f| !REFUSED.contains(&f.name.as_str()) && !f.is_list()) {
        let bare = parsed(&line(&Flag { name: "force".to_owned(), ..flag.clone() }, &[]));
        let default = flag.default.trim_matches('\'');
        let words = vec![format!("--{}={default}", flag.name), "n1".to_owned()];
        let same =
            matches!(parsed(&words), Ok(given) if format!("{given:?}") == format!("{:?}", bare.expect("a node")));
        assert_eq!(same, OTHER_DEFAULTS.iter().all(|(name, _)| *name != flag.name), "{words:?}");
    }
}

/// The flags of a help of kubectl.
fn of_help(words: &[&str]) -> Vec<Flag> {
    let mut kubectl = Command::new("kubectl");
    kubectl.args(words).env("HOME", HOME).env_remove("KUBECACHEDIR");
    let help = String::from_utf8(kubectl.output().expect("kubectl is there").stdout).expect("UTF-8");
    let entry = Regex::new(r"(?m)^    (?:-(\w), )?--([\w-]+)=(.*):$").expect("a pattern");
    let flag = |found: regex::Captures<'_>| Flag {
        name: found[2].to_owned(),
        short: found.get(1).and_then(|m| m.as_str().chars().next()),
        default: found[3].to_owned(),
    };
    entry.captures_iter(&help).map(flag).collect()
}

/// Name and short name of the flags of a help of this tool, those that it only names included.
fn of_ours(words: &[&str]) -> BTreeSet<(String, Option<char>)> {
    let output = Command::new(env!("CARGO_BIN_EXE_kubectl-safe_drain")).args(words).output().expect("it starts");
    assert!(output.status.success());
    let help = String::from_utf8(output.stdout).expect("UTF-8");
    let entry = Regex::new(r"(?m)(?:^  -(\w), |^      |^  |, )--([\w-]+)").expect("a pattern");
    let flag = |found: regex::Captures<'_>| (found[2].to_owned(), found.get(1).and_then(|m| m.as_str().chars().next()));
    entry.captures_iter(&help).map(flag).collect()
}

#[test]
#[ignore = "needs a real cluster: make e2e"]
fn no_flag_of_the_real_kubectl_is_missing() {
    let mut real = of_help(&["drain", "--help"]);
    real.extend(of_help(&["options"]));
    real.sort();
    let mut listed = flags();
    listed.sort();
    assert_eq!(real, listed, "left is kubectl, right tests/fixtures/kubectl");
    let mut ours = of_ours(&["--help"]);
    ours.extend(of_ours(&["--help-connection"]));
    let missing: Vec<&Flag> = real.iter().filter(|f| !ours.contains(&(f.name.clone(), f.short))).collect();
    assert!(missing.is_empty(), "{missing:#?}\nin {ours:#?}");
}
