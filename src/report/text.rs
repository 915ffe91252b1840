//! Small helpers for words: numbers with their nouns, durations, lists of names, wrapping.

use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use super::style::{Label, Line};

/// Narrowest column that still reads as text; below it the text goes under its row.
const NARROWEST: usize = 32;

/// `1 VM`, `3 VMs`, `no VMs`.
pub fn plural(n: usize, one: &str, many: &str) -> String {
    match n {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        _ => format!("{n} {many}"),
    }
}

/// The form of a word that fits a number.
pub fn agree<'a>(n: usize, one: &'a str, many: &'a str) -> &'a str {
    if n == 1 { one } else { many }
}

/// `a, b, c and 4 more`: at most `max` names. One name more than `max` is written out, since "1 more" is no shorter.
pub fn names<S: AsRef<str>>(names: &[S], max: usize) -> String {
    let join = |part: &[S]| part.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if names.len() <= max + 1 { join(names) } else { format!("{} and {} more", join(&names[..max]), names.len() - max) }
}

/// A span that was measured: `12s`, `3m 04s`, `1h 02m`.
pub fn duration(d: Duration) -> String {
    let s = d.as_secs();
    match s {
        0..60 => format!("{s}s"),
        60..3600 => format!("{}m {:02}s", s / 60, s % 60),
        _ => format!("{}h {:02}m", s / 3600, s / 60 % 60),
    }
}

/// A span that somebody set, without its empty parts: `45s`, `30m`, `1h 30m`.
pub fn span(d: Duration) -> String {
    let s = d.as_secs();
    let parts = [(s / 3600, "h"), (s / 60 % 60, "m"), (s % 60, "s")];
    let text: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
    if text.is_empty() { "0s".into() } else { text.join(" ") }
}

/// Time that is left, as exact as it matters: `21m`, `1h 02m`, under two minutes `95s`.
pub fn left(d: Duration) -> String {
    let s = d.as_secs();
    match s {
        0..120 => format!("{s}s"),
        120..3600 => format!("{}m", s / 60),
        _ => duration(d),
    }
}

/// The stamp of a log line, seconds since the start of the run: `[  12.3s]`.
pub fn stamp(elapsed: Duration) -> String {
    let tenths = elapsed.as_millis() / 100;
    format!("[{:>6}s]", format!("{}.{}", tenths / 10, tenths % 10))
}

/// Breaks a text between words so that each part fits a width. A word longer than that stays whole.
/// So does a command in backticks: it must survive a copy.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    pack(words(text), width)
}

/// The words of a text; what stands in backticks, with what sticks to it, is one word.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut quoted) = (None, false);
    for (i, c) in text.char_indices() {
        if c.is_whitespace() && !quoted {
            words.extend(start.take().map(|start: usize| &text[start..i]));
            continue;
        }
        quoted ^= c == '`';
        start.get_or_insert(i);
    }
    match start {
        // A backtick without its partner quotes nothing.
        Some(start) if quoted => words.extend(text[start..].split_whitespace()),
        Some(start) => words.push(&text[start..]),
        None => {}
    }
    words
}

/// Puts words into lines that fit a width; a word, whatever it holds, is never broken.
pub fn pack<'a>(words: impl IntoIterator<Item = &'a str>, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A row whose last column is a reason and its remedy: on one line where it fits, else wrapped with a hanging indent
/// and the remedy on a line of its own. Without a width nothing is wrapped.
pub fn reason_row(head: Line, because: &str, remedy: Option<&str>, width: Option<usize>) -> Vec<Line> {
    let arrow = |text: &str| format!("→ {text}");
    let mut flat = head.clone().with(Label::Plain, because);
    if let Some(remedy) = remedy {
        let space = if because.is_empty() { "" } else { " " };
        flat = flat.with(Label::Plain, space).with(Label::Remedy, arrow(remedy));
    }
    let Some(width) = width.filter(|w| flat.width() > *w) else { return vec![flat] };

    let under = width < head.width() + NARROWEST;
    let indent = if under { 4 } else { head.width() };
    let room = width.saturating_sub(indent).max(1);
    let mut parts: Vec<Line> = wrap(because, room).into_iter().map(Line::plain).collect();
    if let Some(remedy) = remedy {
        let lines = wrap(remedy, room.saturating_sub(2).max(1));
        parts.extend(lines.into_iter().enumerate().map(|(i, text)| {
            if i == 0 {
                Line::new().with(Label::Remedy, arrow(&text))
            } else {
                Line::plain("  ").with(Label::Remedy, text)
            }
        }));
    }
    let mut rows = Vec::new();
    let mut parts = parts.into_iter();
    match (under, parts.next()) {
        (false, Some(first)) => rows.push(head.and(first)),
        (true, Some(first)) => rows.extend([head, Line::new().padded(indent).and(first)]),
        (_, None) => rows.push(head),
    }
    rows.extend(parts.map(|part| Line::new().padded(indent).and(part)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::style::page;

    #[test]
    fn numbers_agree_with_their_nouns() {
        assert_eq!(plural(0, "VM", "VMs"), "no VMs");
        assert_eq!(plural(1, "VM", "VMs"), "1 VM");
        assert_eq!(plural(2, "VM", "VMs"), "2 VMs");
    }

    #[test]
    fn name_lists_are_bounded() {
        assert_eq!(names(&["a", "b", "c"], 3), "a, b, c");
        assert_eq!(names(&["a", "b", "c", "d"], 3), "a, b, c, d");
        assert_eq!(names(&["a", "b", "c", "d", "e"], 3), "a, b, c and 2 more");
        assert_eq!(names::<&str>(&[], 3), "");
    }

    #[test]
    fn durations() {
        let s = Duration::from_secs;
        assert_eq!([0, 12, 184, 3720].map(|n| duration(s(n))), ["0s", "12s", "3m 04s", "1h 02m"]);
        assert_eq!([0, 45, 1800, 5400, 3600].map(|n| span(s(n))), ["0s", "45s", "30m", "1h 30m", "1h"]);
        assert_eq!([95, 1300, 3720].map(|n| left(s(n))), ["95s", "21m", "1h 02m"]);
        assert_eq!(stamp(Duration::from_millis(12_345)), "[  12.3s]");
        assert_eq!(stamp(s(123_456)), "[123456.0s]");
    }

    #[test]
    fn a_reason_hangs_under_its_column() {
        let head = || Line::plain("✗ tenant-a/db-0  blocks  ");
        let because = "disk root is ReadWriteOnce; a restart gives it LiveMigrateIfPossible";
        insta::assert_snapshot!(page(&reason_row(head(), because, Some("add --restart-stale"), Some(72)), false), @r"
        ✗ tenant-a/db-0  blocks  disk root is ReadWriteOnce; a restart gives it
                                 LiveMigrateIfPossible
                                 → add --restart-stale
        ");
        insta::assert_snapshot!(page(&reason_row(head(), because, Some("add --restart-stale"), Some(50)), false), @r"
        ✗ tenant-a/db-0  blocks
            disk root is ReadWriteOnce; a restart gives it
            LiveMigrateIfPossible
            → add --restart-stale
        ");
        assert_eq!(reason_row(head(), because, Some("add --restart-stale"), None).len(), 1);
        let command = "`kubectl patch vm db-0 -n tenant-a --type=merge -p '{}'`, then go on";
        insta::assert_snapshot!(page(&reason_row(head(), "its template", Some(command), Some(60)), false), @"
        ✗ tenant-a/db-0  blocks  its template
                                 → `kubectl patch vm db-0 -n tenant-a --type=merge -p '{}'`,
                                   then go on
        ");
        assert_eq!(wrap("it`s a word", 4), ["it`s", "a", "word"]);
        assert_eq!(reason_row(head(), "", Some("go"), None)[0].render(false), "✗ tenant-a/db-0  blocks  → go");
    }
}
