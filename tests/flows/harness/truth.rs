//! A preview is a promise: each run is compared with the preview made right before, by the tables of `docs/truth.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use safe_drain::event::EventKind;
use safe_drain_sim::Json;
use serde_json::Value;

use super::Outcome;

const PAGE: &str = include_str!("../../../docs/truth.md");
static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::read(PAGE));

/// What a pair counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Kept,
    Cut,
    Changed,
}

/// One allowed pair.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    kind: Kind,
    /// Causes with which it is allowed; `None` is any.
    causes: Option<BTreeSet<String>>,
}

#[derive(Debug, Default)]
struct Rules {
    vms: BTreeMap<(String, String), Rule>,
    pods: BTreeMap<(String, String), Rule>,
    nodes: BTreeMap<(String, String), Rule>,
}

/// Words in backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn is_cause(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase()) && word != "External"
}

impl Rules {
    fn read(page: &str) -> Self {
        let mut rules = Self::default();
        let answers =
            page.split("**An answer**").nth(1).and_then(|t| t.split("\n\n").next()).expect("the list of answers");
        let answers: BTreeSet<String> =
            quoted(answers).into_iter().filter(|w| is_cause(w)).map(str::to_owned).collect();
        assert!(answers.len() > 10, "the list of answers was not read");
        let mut section = "";
        for line in page.lines() {
            if let Some(title) = line.strip_prefix("## ") {
                section = title;
            }
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let table = match section {
                "VMs" => &mut rules.vms,
                "Other pods" => &mut rules.pods,
                "Nodes" => &mut rules.nodes,
                _ => continue,
            };
            if !line.starts_with("| `") || cells.len() < 3 {
                continue;
            }
            let kind = match cells[2].split(':').next() {
                Some("kept") => Kind::Kept,
                Some("cut") => Kind::Cut,
                Some("changed") => Kind::Changed,
                other => panic!("unknown word {other:?} in {line}"),
            };
            let text = cells.get(3).copied().unwrap_or_default();
            for from in quoted(cells[0]) {
                for to in quoted(cells[1]) {
                    let causes = if kind == Kind::Kept { None } else { causes(text, &answers, table, to) };
                    table.insert((from.to_owned(), to.to_owned()), Rule { kind, causes });
                }
            }
        }
        assert!(rules.vms.len() > 40 && rules.pods.len() > 15 && rules.nodes.len() > 5, "tables were not read");
        rules
    }
}

/// The causes that the last column allows: named ones, "an answer", "as for `x`", or any.
fn causes(
    text: &str,
    answers: &BTreeSet<String>,
    table: &BTreeMap<(String, String), Rule>,
    to: &str,
) -> Option<BTreeSet<String>> {
    let mut causes: BTreeSet<String> = quoted(text).into_iter().filter(|w| is_cause(w)).map(str::to_owned).collect();
    if text.contains("n answer") {
        causes.extend(answers.iter().cloned());
    }
    if text.contains("budget cause") {
        causes.extend(["BudgetExhausted", "BudgetUnsynced", "BudgetBusy"].map(str::to_owned));
    }
    if text.contains("no cause") {
        causes.insert(String::new());
    }
    if let Some(rest) = text.split("as for ").nth(1) {
        for other in quoted(rest) {
            let same = table.get(&(other.to_owned(), to.to_owned()));
            causes.extend(same.and_then(|r| r.causes.clone()).unwrap_or_default());
        }
    }
    let any = text.contains("any cause") || text.contains("cause that passes") && !text.contains("budget cause");
    if any || causes.is_empty() { None } else { Some(causes) }
}

struct Promise {
    outcome: String,
    row: Value,
}

/// Compares; `changes` says that the test disturbed the cluster.
pub(super) fn check(run: &Outcome, changes: bool) {
    let promised = promised(run);
    let Some((exit, nodes)) = promised else { return };
    // Refused, interrupted before a plan, no API: nothing was done, so there is nothing to compare but the code.
    let mut worst = Kind::Kept;
    for node in run.document.list("/nodes") {
        let Some(before) = nodes.iter().find(|n| n.text("/name") == node.text("/name")) else { continue };
        for (kind, rules, uid) in [("/vms", &RULES.vms, "/vmiUid"), ("/pods", &RULES.pods, "/uid")] {
            let rows = before.list(kind).iter();
            let earlier: BTreeMap<&str, Promise> = rows
                .map(|r| (r.text(uid), Promise { outcome: r.text("/outcome").to_owned(), row: r.clone() }))
                .collect();
            for row in node.list(kind) {
                let Some(promise) = earlier.get(row.text(uid)) else { continue };
                worst = worse(worst, pair(run, rules, promise, row, node, changes));
                never(run, promise, row);
            }
        }
        if run.exit != 4 && run.exit != 6 {
            let key = (before.text("/verdict").to_owned(), node.text("/verdict").to_owned());
            match RULES.nodes.get(&key) {
                None => run.fail(&format!("broken promise of the node: {key:?}")),
                Some(rule) => worst = worse(worst, rule.kind),
            }
        }
    }
    // 124 is the worst that an owner's patience can come to.
    if worst == Kind::Kept && matches!(run.exit, 0 | 3 | 4) && i64::from(run.exit) != exit && exit != 124 {
        run.fail(&format!("the preview promised exit {exit}"));
    }
}

fn worse(a: Kind, b: Kind) -> Kind {
    if a == Kind::Changed || b == Kind::Changed {
        Kind::Changed
    } else if a == Kind::Cut || b == Kind::Cut {
        Kind::Cut
    } else {
        Kind::Kept
    }
}

/// The preview's exit code and nodes; with somebody at the terminal, what the plan came to after the answer.
fn promised(run: &Outcome) -> Option<(i64, Vec<Value>)> {
    if let Some(preview) = &run.preview {
        let exit = preview.document.int("/exitCode")?;
        return Some((exit, preview.document.list("/nodes").to_vec()));
    }
    let planned = run.events.iter().rev().find_map(|e| {
        let EventKind::Planned { nodes } = &e.kind else { return None };
        serde_json::to_value(nodes).ok()
    })?;
    Some((i64::from(run.exit), planned.as_array()?.clone()))
}

fn pair(
    run: &Outcome,
    rules: &BTreeMap<(String, String), Rule>,
    promise: &Promise,
    row: &Value,
    node: &Value,
    changes: bool,
) -> Kind {
    let now = row.text("/outcome");
    let kind_of_end = node.text("/verdict");
    if matches!(kind_of_end, "refused" | "not-started") && (now == promise.outcome || now == "pending") {
        return Kind::Cut;
    }
    let key = (promise.outcome.clone(), now.to_owned());
    let Some(rule) = rules.get(&key) else {
        run.fail(&format!("broken promise {key:?}:\npreview {:#}\nresult {row:#}", promise.row))
    };
    let cause = row.text("/cause");
    if rule.causes.as_ref().is_some_and(|causes| !causes.contains(cause)) {
        run.fail(&format!("{key:?} is not allowed with cause {cause:?}:\npreview {:#}\nresult {row:#}", promise.row));
    }
    if rule.kind == Kind::Changed && !changes {
        run.fail(&format!("{key:?} although nothing changed:\npreview {:#}\nresult {row:#}", promise.row));
    }
    rule.kind
}

/// The rows that are broken promises whatever the cause (the last section of the page).
fn never(run: &Outcome, promise: &Promise, row: &Value) {
    let now = row.text("/outcome");
    let went_down = matches!(now, "restarts" | "stays-off" | "down-until-node" | "down");
    let unannounced = matches!(promise.outcome.as_str(), "migrates" | "blocks") && went_down;
    let stays =
        matches!(promise.outcome.as_str(), "returns" | "restarts") && matches!(now, "stays-off" | "down-until-node");
    if unannounced || stays {
        run.fail(&format!("never: {} became {now}: {row:#}", promise.outcome));
    }
    let down = matches!(now, "stays-off" | "down-until-node") && !matches!(run.exit, 4 | 6 | 129 | 130 | 143);
    if down && run.document.text("/consent/vmDown") == "none" && row.text("/cause") != "Stopping" {
        run.fail(&format!("it does not run afterwards, and nobody agreed: {row:#}"));
    }
}

#[test]
fn the_tables_say_what_the_page_says() {
    let rule =
        |table: &BTreeMap<(String, String), Rule>, a: &str, b: &str| table[&(a.to_owned(), b.to_owned())].clone();
    assert_eq!(rule(&RULES.vms, "migrates", "migrates"), Rule { kind: Kind::Kept, causes: None });
    let causes = rule(&RULES.vms, "migrates", "blocks").causes.expect("named");
    assert!(causes.contains("MigrationFailed") && causes.contains("WebhookRefused") && !causes.contains("SameNode"));
    assert_eq!(rule(&RULES.vms, "stays-off", "pending").kind, Kind::Cut);
    assert_eq!(rule(&RULES.vms, "stays-off", "pending").causes, rule(&RULES.vms, "returns", "pending").causes);
    assert!(rule(&RULES.vms, "restarts", "down").causes.expect("named").contains(""));
    assert!(!RULES.vms.contains_key(&("migrates".to_owned(), "restarts".to_owned())));
    assert!(!RULES.pods.contains_key(&("stays".to_owned(), "evicts".to_owned())));
    assert_eq!(rule(&RULES.nodes, "blocked", "timeout").kind, Kind::Cut);
}
