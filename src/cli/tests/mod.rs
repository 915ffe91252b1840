//! Each sentence of the contract about parsing, as a test of its own.

use std::ffi::OsString;

use super::*;
use crate::settings::{ClientOptions, Command, DrainOptions, OutputOptions, Targets};

mod first_word;
mod flag_forms;

fn args(words: &[&str]) -> Vec<OsString> {
    std::iter::once("kubectl-safe_drain").chain(words.iter().copied()).map(OsString::from).collect()
}

/// Splits at blanks; `''` is an empty word.
fn split(line: &str) -> Vec<OsString> {
    let words: Vec<&str> = line.split_whitespace().map(|word| if word == "''" { "" } else { word }).collect();
    args(&words)
}

fn parsed(line: &str) -> Invocation {
    match parse(split(line)) {
        Ok(invocation) => invocation,
        Err(exit) => panic!("{line}: {exit:?}"),
    }
}

fn drained(line: &str) -> DrainOptions {
    let Command::Drain(options) = parsed(line).command else { panic!("{line} is no drain") };
    options
}

fn nodes(line: &str) -> Vec<String> {
    match drained(line).targets {
        Targets::Nodes(nodes) => nodes,
        Targets::Selector(selector) => panic!("{line}: {selector}"),
    }
}

fn output(line: &str) -> OutputOptions {
    parsed(line).output
}

fn client(line: &str) -> ClientOptions {
    parsed(line).client
}

/// The error's text with its hints; it has to end with 2. For a sub-command of a later release: what its own parser
/// says, which nobody gets to see before that release.
fn refused(line: &str) -> String {
    match parse_line(&Line::read(split(line).into_iter().skip(1))) {
        Err(Exit::Error(error)) => {
            assert_eq!(error.exit_code().code(), 2, "{line}");
            anstream::adapter::strip_str(&error.render()).to_string()
        }
        other => panic!("{line}: {other:?}"),
    }
}

fn text(line: &str) -> String {
    match parse(split(line)) {
        Err(Exit::Text(text)) => text,
        other => panic!("{line}: {other:?}"),
    }
}

#[track_caller]
fn assert_refused(line: &str, parts: &[&str]) {
    let text = refused(line);
    for part in parts {
        assert!(text.contains(part), "{line}: {part:?} is not in\n{text}");
    }
}
