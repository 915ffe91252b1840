//! Rows that say the same thing, gathered: one line for twenty pods behind one budget.

use super::remedies;
use super::style::{Label, Line, Mark};
use super::text::{agree, names, plural, reason_row};
use super::words::{for_several, pod_because, pod_mark, pod_verb, stays_word, vm_because, vm_mark};
use crate::outcome::{Cause, PodOutcome, PodRow, VmOutcome, VmRow};

/// Names that a group shows before it counts the rest.
const NAMES: usize = 3;

/// Reasons that one kind of refusal may spell out before the rest is counted.
const TEXTS: usize = 4;

/// Rows with one outcome, one kind of reason and one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Mark of its rows.
    pub mark: Mark,
    /// Noun in singular and plural.
    pub noun: (&'static str, &'static str),
    /// What they do, in singular and plural; empty where a heading says it.
    pub verb: (&'static str, &'static str),
    /// `namespace/name` of each.
    pub names: Vec<String>,
    /// Why.
    pub because: String,
    /// What to do about it.
    pub remedy: Option<String>,
    kind: Kind,
}

/// What rows must share so that they can be counted together.
type Kind = (Option<VmOutcome>, Option<PodOutcome>, Option<Cause>, Vec<String>, Vec<&'static str>);

/// Groups of pods by what happens, why, and behind which budget.
pub fn pods<'a>(rows: impl IntoIterator<Item = &'a PodRow>) -> Vec<Group> {
    collect(rows.into_iter().map(|row| Group {
        mark: pod_mark(row.outcome),
        noun: ("pod", "pods"),
        verb: pod_verb(row.outcome),
        names: vec![row.display_name()],
        because: pod_because(row),
        remedy: remedies::of_pod(row),
        kind: (None, Some(row.outcome), row.cause, row.budgets.clone(), row.needs.clone()),
    }))
}

/// Groups of VMs by what happened and why.
pub fn vms<'a>(rows: impl IntoIterator<Item = &'a VmRow>) -> Vec<Group> {
    collect(rows.into_iter().map(|row| Group {
        mark: vm_mark(row.outcome),
        noun: ("VM", "VMs"),
        verb: ("", ""),
        names: vec![row.display_name()],
        because: vm_because(row),
        remedy: remedies::of_vm(row),
        kind: (Some(row.outcome), None, row.cause, Vec::new(), row.needs.clone()),
    }))
}

impl Group {
    /// Its lines as a sentence, for a list of different things: `✗ 2 pods block: why → remedy`, then the names.
    pub fn sentence(&self, indent: usize, width: Option<usize>) -> Vec<Line> {
        let (one, many) = self.verb;
        let n = self.names.len();
        let verb = agree(n, one, many);
        if let [name] = self.names.as_slice() {
            return self.lines(format!("{} {name} {verb}", self.noun.0), indent, width);
        }
        let mut lines = self.lines(format!("{} {verb}", plural(n, self.noun.0, self.noun.1)), indent, width);
        lines.push(Line::new().padded(indent + 4).with(Label::Faint, names(&self.names, NAMES)));
        lines
    }

    /// Its lines as an entry under a heading that says what happens: `✗ pods a, b and 4 more: why → remedy`.
    pub fn entry(&self, indent: usize, width: Option<usize>) -> Vec<Line> {
        let noun = agree(self.names.len(), self.noun.0, self.noun.1);
        self.lines(format!("{noun} {}", names(&self.names, NAMES)), indent, width)
    }

    /// A subject and its reason; where they need more than a line, the reason hangs four columns in.
    fn lines(&self, subject: String, indent: usize, width: Option<usize>) -> Vec<Line> {
        let silent = self.because.is_empty() && self.remedy.is_none();
        let head = Line::new().padded(indent).and(Line::marked(self.mark)).with(Label::Plain, subject);
        if silent {
            return vec![head];
        }
        let several = if self.names.len() > 1 { for_several(&self.because) } else { self.because.clone() };
        let (because, remedy) = (several.as_str(), self.remedy.as_deref());
        let rows = reason_row(head.clone().with(Label::Plain, ": "), because, remedy, width);
        if rows.len() == 1 {
            return rows;
        }
        let under = reason_row(Line::new().padded(indent + 4), because, remedy, width);
        std::iter::once(head.with(Label::Plain, ":")).chain(under).collect()
    }
}

/// Gathers equal rows in the order in which they come, and folds kinds that have too many texts.
fn collect(rows: impl Iterator<Item = Group>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for row in rows {
        let same = |g: &&mut Group| g.kind == row.kind && g.because == row.because && g.remedy == row.remedy;
        let texts = groups.iter().filter(|g| g.kind == row.kind).count();
        if let Some(group) = groups.iter_mut().find(same) {
            group.names.extend(row.names);
        } else if texts < TEXTS {
            groups.push(row);
        } else if let Some(last) = groups.iter_mut().rev().find(|g| g.kind == row.kind) {
            if !last.because.ends_with(MORE) {
                last.because.push_str(MORE);
            }
            last.names.extend(row.names);
        }
    }
    groups
}

/// Ends the text of a group whose members have texts of their own that are not shown.
const MORE: &str = " (and the like)";

/// `3 stay (2 DaemonSet, 1 static)`, `2 stay (DaemonSet)`; nothing where none stays. With `noun` where nothing before it
/// says that these are pods.
pub fn staying(rows: &[PodRow], noun: bool) -> Option<String> {
    let mut words: Vec<(&'static str, usize)> = Vec::new();
    for row in rows.iter().filter(|r| r.outcome == PodOutcome::Stays) {
        let word = stays_word(row.cause);
        match words.iter_mut().find(|(w, _)| *w == word) {
            Some((_, n)) => *n += 1,
            None => words.push((word, 1)),
        }
    }
    words.sort_unstable();
    let total: usize = words.iter().map(|(_, n)| n).sum();
    let parts: Vec<String> = match words.as_slice() {
        [(word, _)] => vec![(*word).to_owned()],
        several => several.iter().map(|(word, n)| format!("{n} {word}")).collect(),
    };
    let count = if noun { plural(total, "pod", "pods") } else { total.to_string() };
    (total > 0).then(|| format!("{count} {} ({})", agree(total, "stays", "stay"), parts.join(", ")))
}
