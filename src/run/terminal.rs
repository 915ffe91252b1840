//! What the process is attached to: its streams, their looks, and the one question.

use std::io::{IsTerminal, Write};

use crate::error::CliError;
use crate::exit::ExitCode;
use crate::report::Streams;
use crate::report::style::{ColorChoice, ColorEnv, use_color};
use crate::settings;

/// The streams of the process.
#[derive(Debug, Clone, Default)]
pub struct Terminal {
    /// True if stdin is a terminal.
    pub stdin: bool,
    /// True if stdout is a terminal.
    pub stdout: bool,
    /// True if stderr is a terminal.
    pub stderr: bool,
    /// Environment that says how colour is wanted.
    pub color: ColorEnv,
}

impl Terminal {
    /// The process's own streams.
    pub fn of_process() -> Self {
        Self {
            stdin: std::io::stdin().is_terminal(),
            stdout: std::io::stdout().is_terminal(),
            stderr: std::io::stderr().is_terminal(),
            color: ColorEnv { no_color: std::env::var_os("NO_COLOR").is_some(), term: std::env::var("TERM").ok() },
        }
    }

    /// Streams for reporters.
    pub fn streams(&self, choice: settings::ColorChoice) -> Streams {
        let choice = match choice {
            settings::ColorChoice::Auto => ColorChoice::Auto,
            settings::ColorChoice::Always => ColorChoice::Always,
            settings::ColorChoice::Never => ColorChoice::Never,
        };
        Streams {
            stdout: Box::new(std::io::stdout()),
            stderr: Box::new(std::io::stderr()),
            stdout_color: use_color(choice, &self.color, self.stdout),
            stderr_color: use_color(choice, &self.color, self.stderr),
            stderr_is_terminal: self.stderr,
        }
    }

    /// Columns of stdout, where it is a terminal.
    pub fn stdout_width(&self) -> Option<usize> {
        self.stdout.then(|| usize::from(console::Term::stdout().size().1))
    }

    /// Columns of stderr, where it is a terminal.
    pub fn stderr_width(&self) -> Option<usize> {
        self.stderr.then(|| usize::from(console::Term::stderr().size().1))
    }

    /// Prints data.
    pub fn print(&self, text: &str) -> ExitCode {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        ExitCode::Done
    }

    /// Prints an error and says with which code to end.
    pub fn fail(&self, error: &CliError) -> ExitCode {
        let mut err = anstream::stderr().lock();
        let _ = err.write_all(error.render().as_bytes()).and_then(|()| err.flush());
        error.exit_code()
    }
}

/// Reads one line of stdin, without its end; empty at the end of the input.
pub(super) async fn read_line() -> String {
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        let _ = std::io::stdin().read_line(&mut line);
        line
    });
    line.await.unwrap_or_default().trim_end_matches(['\r', '\n']).to_owned()
}
