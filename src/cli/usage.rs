//! What is wrong with a command line, in our words.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::command::NAME;
use super::flags::{self, SUB_COMMANDS, SubCommand};
use crate::error::CliError;

/// The parser's error as ours.
pub(super) fn from_clap(error: &clap::Error, sub: Option<&'static SubCommand>) -> CliError {
    let flag = flag_name(&text(error, ContextKind::InvalidArg));
    let value = text(error, ContextKind::InvalidValue);
    let valid = list(error, ContextKind::ValidValue);
    #[expect(clippy::wildcard_enum_match_arm, reason = "clap's enum is open; what is not met here keeps clap's words")]
    let found = match error.kind() {
        ErrorKind::UnknownArgument if flag.starts_with('-') => unknown_flag(error, &flag, sub),
        ErrorKind::UnknownArgument => {
            let command = sub.map_or(NAME.to_owned(), |sub| format!("{NAME} {}", sub.word));
            let error = CliError::usage(format!("unexpected argument `{flag}`: `{command}` takes none"));
            match sub.map(|sub| sub.word) {
                Some("restart-stale") => error
                    .hint("`-n NAMESPACE` and `-l SELECTOR` choose the VMs; without them all that are stale are meant")
                    .hint(format!("to restart those of a node and drain it: `{NAME} {flag} --restart-stale`")),
                _ => error,
            }
        }
        ErrorKind::InvalidValue if value.is_empty() => needs_value(&flag, &valid),
        ErrorKind::InvalidValue => bad_choice(error, &flag, &value, &valid),
        ErrorKind::ValueValidation => {
            let hint = format!("`{flag}`, `{flag}=true` or `{flag}=false`");
            CliError::usage(format!("`{flag}={value}` is neither true nor false")).hint(hint)
        }
        ErrorKind::InvalidUtf8 => CliError::usage("an argument is not valid UTF-8"),
        _ => CliError::usage(first_line(error)),
    };
    see_help(found, sub)
}

/// The error with a pointer to the help, if it does not say yet what to do.
pub(super) fn see_help(error: CliError, sub: Option<&'static SubCommand>) -> CliError {
    if !error.hints().is_empty() {
        return error;
    }
    error.hint(match sub {
        Some(sub) => format!("see `{NAME} {} --help`", sub.word),
        None => format!("see `{NAME} --help`"),
    })
}

fn unknown_flag(error: &clap::Error, flag: &str, sub: Option<&'static SubCommand>) -> CliError {
    let found = CliError::usage(format!("unknown flag `{flag}`"));
    if matches!(flag, "-y" | "--yes") {
        return found.hint("consent is given by class: `--restart-stale`, `--allow-vm-down`");
    }
    if let Some(owner) = owner_of(flag, sub) {
        return found.hint(owner);
    }
    match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(suggestion)) => found.hint(format!("did you mean `{}`?", flag_name(suggestion))),
        _ => found,
    }
}

/// Which other command has the flag.
fn owner_of(flag: &str, sub: Option<&'static SubCommand>) -> Option<String> {
    let name = flag.trim_start_matches('-');
    let is_it = |known: &flags::Flag| {
        known.name == name || known.short.is_some_and(|short| name.len() == 1 && name.starts_with(short))
    };
    let other = SUB_COMMANDS.iter().find(|other| other.flags.iter().any(is_it));
    match (sub, other) {
        (Some(_), _) if flags::DRAIN.iter().any(is_it) => Some(format!("`{flag}` is a flag of a drain: `{NAME} NODE`")),
        (_, Some(other)) => Some(format!("`{flag}` is a flag of `{NAME} {}`", other.word)),
        _ => None,
    }
}

fn needs_value(flag: &str, valid: &[String]) -> CliError {
    let error = CliError::usage(format!("`{flag}` needs a value"));
    if flag == "--timeout" {
        error.hint("for example `--timeout=30m`")
    } else if valid.is_empty() {
        error.hint(format!("a value that starts with a dash: `{flag}=VALUE`"))
    } else {
        error.hint(format!("one of {}", valid.join(", ")))
    }
}

fn bad_choice(error: &clap::Error, flag: &str, value: &str, valid: &[String]) -> CliError {
    let valid_list = valid.join(", ");
    let what = if flag.starts_with('-') { format!("{flag}={value}") } else { value.to_owned() };
    let found = CliError::usage(format!("`{what}` is not possible: it has to be one of {valid_list}"));
    match error.get(ContextKind::SuggestedValue) {
        Some(ContextValue::String(suggestion)) => found.hint(format!("did you mean `{suggestion}`?")),
        _ => found,
    }
}

/// `--context <NAME>` → `--context`.
fn flag_name(usage: &str) -> String {
    usage.split([' ', '[', '=']).next().unwrap_or_default().to_owned()
}

fn text(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.first().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}

fn list(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::Strings(texts)) => texts.iter().filter(|text| !text.is_empty()).cloned().collect(),
        _ => Vec::new(),
    }
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
