//! The command line: from words to [`crate::settings`], and the texts that are printed instead.
//!
//! [`parse`] is the only way in. Everything here is pure: the shell prints what comes back and ends with its code.
//!
//! The flags stand in one table (`flags`, `kube_flags`), from which the parser, the help and the completions are made.
//! kubectl's ways that clap does not have by itself (`_` for `-`, the sub-command only as the first word) are handled
//! by reading the line once before clap does (`words`).

mod command;
mod complete;
mod did_you_mean;
mod flags;
mod help;
mod kube_flags;
mod read;
mod scripts;
#[cfg(test)]
mod tests;
mod usage;
mod words;

use std::ffi::OsString;
use std::path::Path;

pub use self::command::command;
pub use self::complete::{Candidate, Completion, Dynamic, complete};
pub use self::did_you_mean::did_you_mean;
use self::flags::SubCommand;
pub use self::scripts::{COMPLETION_HELPER, completion_script};
use self::words::Line;
use crate::error::CliError;
use crate::exit::ExitCode;
use crate::settings::{self, Invocation};

/// First words that would read as sub-commands but are none, each with the command to type.
const RESERVED: [&str; 8] = ["plan", "preview", "drain", "cordon", "uncordon", "status", "version", "help"];

/// An end before anything is done.
#[derive(Clone, Debug)]
pub enum Exit {
    /// Help or version, for stdout; the code is 0.
    Text(String),
    /// The command line cannot be carried out, for stderr; the code is 2.
    Error(CliError),
}

impl Exit {
    /// The exit code.
    pub const fn exit_code(&self) -> ExitCode {
        match self {
            Self::Text(_) => ExitCode::Done,
            Self::Error(error) => error.exit_code(),
        }
    }
}

impl From<CliError> for Exit {
    fn from(error: CliError) -> Self {
        Self::Error(error)
    }
}

/// Parses a command line, the program's name included.
///
/// A program that is called `kubectl_complete-safe_drain` answers kubectl's completion, so a link of that name will do
/// in place of the helper script.
pub fn parse(args: Vec<OsString>) -> Result<Invocation, Exit> {
    let mut args = args.into_iter();
    let program = args.next().unwrap_or_default();
    let mut args: Vec<OsString> = args.collect();
    let is_helper = Path::new(&program).file_stem().is_some_and(|stem| stem == COMPLETION_HELPER);
    if is_helper || args.first().is_some_and(|word| word == "__complete") {
        let words = args.split_off(usize::from(!is_helper));
        let words = words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
        return Ok(bare(settings::Command::Complete(words)));
    }
    let line = Line::read(args);
    parse_line(&line)
}

fn parse_line(line: &Line) -> Result<Invocation, Exit> {
    let sub = line.first_word().and_then(flags::sub_command);
    if line.has("help-connection") {
        return Err(Exit::Text(help::connection()));
    }
    if line.has("help") {
        return Err(Exit::Text(sub.map_or_else(help::drain, help::sub_command)));
    }
    if line.has("version") {
        return Err(Exit::Text(format!("{} {}\n", command::NAME, env!("CARGO_PKG_VERSION"))));
    }
    if let Some(word) = line.first_word() {
        check_reserved(word, line)?;
    }
    let words = match sub {
        Some(sub) => {
            check_before_sub_command(sub, line)?;
            line.without_first()
        }
        None => line.words.clone(),
    };
    let matches = command::parser(sub).try_get_matches_from(words).map_err(|error| usage::from_clap(&error, sub))?;
    let reader = read::Reader(&matches);
    let read = || {
        reader.refuse()?;
        Ok(Invocation { command: reader.command(sub)?, output: reader.output()?, client: reader.client()? })
    };
    read().map_err(|error| Exit::Error(usage::see_help(error, sub)))
}

fn bare(command: settings::Command) -> Invocation {
    Invocation { command, output: settings::OutputOptions::default(), client: settings::ClientOptions::default() }
}

/// A drain's flag before a sub-command must not be dropped silently: `--dry-run cancel n1` must not cancel.
fn check_before_sub_command(sub: &SubCommand, line: &Line) -> Result<(), CliError> {
    let Some(flag) = line.flags_before_first().find(|flag| !flag.is_global()) else { return Ok(()) };
    let (name, word) = (flag.name, sub.word);
    let error = CliError::usage(format!("`--{name}` stands before `{word}`, where it would not reach it"));
    let error = if sub.flags.iter().any(|known| known.name == name) {
        error.hint(format!("put it behind: `{} {word} ... --{name}`", command::NAME))
    } else {
        error.hint(format!("`{word}` has no such flag, see `{} {word} --help`", command::NAME))
    };
    Err(error.hint(format!("to drain a node called {word}: `node/{word}`")))
}

fn check_reserved(word: &str, line: &Line) -> Result<(), CliError> {
    if !RESERVED.contains(&word) {
        return Ok(());
    }
    let name = command::NAME;
    let rest: Vec<&str> = line.further_words().collect();
    let nodes = if rest.is_empty() { "NODE".to_owned() } else { rest.join(" ") };
    let instead = match word {
        "plan" | "preview" | "status" => format!("`{name} {nodes} --dry-run` says what would happen"),
        "drain" => format!("`{name} {nodes}` drains"),
        "cordon" => format!("`kubectl cordon {nodes}` cordons only; `{name} {nodes}` does so by itself"),
        "uncordon" => format!("`kubectl uncordon {nodes}`"),
        "version" => format!("`{name} --version`"),
        _ => format!("`{name} --help`"),
    };
    Err(CliError::usage(format!("`{word}` is no sub-command"))
        .hint(instead)
        .hint(format!("to drain a node called {word}: `{name} node/{word}`")))
}
