//! The clap commands, made from the table of flags.

use std::ffi::OsString;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, Command, value_parser};

use super::flags::{self, Arguments, Flag, SUB_COMMANDS, SubCommand, Takes};
use crate::settings::Shell;

/// How the user calls it.
pub(super) const NAME: &str = "kubectl safe-drain";

/// The file name of the program.
pub(super) const PROGRAM: &str = "kubectl-safe_drain";

/// The name of the positional arguments.
pub(super) const ARGUMENTS: &str = "arguments";

/// The whole command as a tree, for generating completion scripts: what can be run today, without the flags that are
/// only accepted. The command line itself is read by [`super::parse`].
pub fn command() -> Command {
    let subs = SUB_COMMANDS.iter().map(|sub| {
        let command = Command::new(sub.word).about(sub.about).args(shown_args(Some(sub)));
        bare(command).args(positional(sub.arguments))
    });
    bare(Command::new(PROGRAM))
        .about("drain nodes whose KubeVirt VMs may block it")
        .args(shown_args(None))
        .args(positional(Arguments::Nodes))
        .subcommands(subs)
}

/// The parser of one command, a drain for `None`; it knows every flag of it, shown or not, and no sub-command.
pub(super) fn parser(sub: Option<&'static SubCommand>) -> Command {
    bare(Command::new(PROGRAM))
        .no_binary_name(true)
        .args_override_self(true)
        .args(flags::flags_of(sub).map(parsed_arg))
        .args(positional(sub.map_or(Arguments::Nodes, |sub| sub.arguments)))
}

fn bare(command: Command) -> Command {
    command.disable_help_flag(true).disable_version_flag(true).disable_help_subcommand(true)
}

fn positional(arguments: Arguments) -> Option<Arg> {
    match arguments {
        Arguments::None => None,
        Arguments::Nodes => Some(Arg::new(ARGUMENTS).value_name("NODE").help("node names").num_args(0..)),
        Arguments::Shell => {
            let shells = Shell::ALL.iter().map(|shell| shell.as_str());
            Some(
                Arg::new(ARGUMENTS)
                    .value_name("SHELL")
                    .help("the shell")
                    .value_parser(PossibleValuesParser::new(shells)),
            )
        }
    }
}

/// A flag as it is parsed.
fn parsed_arg(flag: &'static Flag) -> Arg {
    let arg = named(flag);
    match flag.takes {
        Takes::Nothing => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_parser(parse_bool)
            .action(ArgAction::Set),
        Takes::MaybeOneOf(words, missing) => {
            arg.num_args(0..=1).require_equals(true).default_missing_value(missing).value_parser(choice(flag, words))
        }
        Takes::OneOf(words) => arg.value_parser(choice(flag, words)),
        Takes::Text(_) => arg,
        Takes::Many(_) => arg.action(ArgAction::Append),
        Takes::Path(_) => arg.value_parser(value_parser!(OsString)),
        Takes::Number(_) => arg.allow_negative_numbers(true),
        Takes::Duration(_) => arg.allow_hyphen_values(true),
    }
}

/// The flags of a command as a completion script shows them. One whose value is optional is a plain switch there: a
/// script would offer the value after a space, where it is the name of a node.
fn shown_args(sub: Option<&'static SubCommand>) -> impl Iterator<Item = Arg> {
    flags::flags_of(sub).filter(|flag| flag.group.is_shown()).map(|flag| match flag.takes {
        Takes::Nothing | Takes::MaybeOneOf(..) => named(flag).action(ArgAction::SetTrue),
        Takes::Path(_) => parsed_arg(flag).value_hint(clap::ValueHint::FilePath),
        Takes::Text(_) | Takes::Many(_) | Takes::Number(_) | Takes::Duration(_) | Takes::OneOf(_) => {
            parsed_arg(flag).value_hint(clap::ValueHint::Other)
        }
    })
}

fn named(flag: &'static Flag) -> Arg {
    let arg = Arg::new(flag.name).long(flag.name).help(flag.help);
    let arg = match flag.short {
        Some(short) => arg.short(short),
        None => arg,
    };
    let value = flag.value_name();
    if value.is_empty() { arg } else { arg.value_name(value) }
}

/// The words of a choice. `--dry-run` also takes kubectl's old booleans, and an empty `-o` counts as not given.
fn choice(flag: &Flag, words: &[&'static str]) -> PossibleValuesParser {
    let shown = words.iter().map(|word| PossibleValue::new(*word));
    let hidden: &[&'static str] = match flag.name {
        "dry-run" => &BOOLEAN_WORDS,
        "output" => &[""],
        _ => &[],
    };
    PossibleValuesParser::new(shown.chain(hidden.iter().map(|word| PossibleValue::new(*word).hide(true))))
}

/// What Go's `ParseBool` takes.
const BOOLEAN_WORDS: [&str; 12] = ["1", "t", "T", "true", "TRUE", "True", "0", "f", "F", "false", "FALSE", "False"];

/// Go's `ParseBool`.
pub(super) fn parse_bool(text: &str) -> Result<bool, &'static str> {
    match BOOLEAN_WORDS.iter().position(|word| *word == text) {
        Some(index) => Ok(index < BOOLEAN_WORDS.len() / 2),
        None => Err("is neither true nor false"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_accepts_every_definition() {
        command().debug_assert();
        parser(None).debug_assert();
        for sub in SUB_COMMANDS {
            parser(Some(sub)).debug_assert();
        }
    }

    #[test]
    fn booleans_take_go_words() {
        for word in ["1", "t", "T", "TRUE", "true", "True"] {
            assert_eq!(parse_bool(word), Ok(true), "{word}");
        }
        for word in ["0", "f", "F", "FALSE", "false", "False"] {
            assert_eq!(parse_bool(word), Ok(false), "{word}");
        }
        for word in ["", "yes", "no", "on", "tRUE", "2"] {
            assert!(parse_bool(word).is_err(), "{word}");
        }
    }
}
