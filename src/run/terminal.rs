//! What the process is attached to: its streams, their looks, and the one question.

use std::io::{self, IsTerminal, Write};

use console::Term;
use indicatif::{ProgressDrawTarget, TermLike};

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
            stdin: io::stdin().is_terminal(),
            stdout: io::stdout().is_terminal(),
            stderr: io::stderr().is_terminal(),
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
            stdout: Box::new(io::stdout()),
            stderr: Box::new(io::stderr()),
            stdout_color: use_color(choice, &self.color, self.stdout),
            stderr_color: use_color(choice, &self.color, self.stderr),
            stderr_is_terminal: self.stderr,
            lost: None,
        }
    }

    /// Columns of stdout, where it is a terminal.
    pub fn stdout_width(&self) -> Option<usize> {
        self.stdout.then(|| usize::from(Term::stdout().size().1))
    }

    /// Columns of stderr, where it is a terminal.
    pub fn stderr_width(&self) -> Option<usize> {
        self.stderr.then(|| usize::from(Term::stderr().size().1))
    }

    /// Prints data.
    pub fn print(&self, text: &str) -> ExitCode {
        let mut out = io::stdout().lock();
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

/// Pictures a second at most; a screen has fewer.
const PICTURES: u8 = 20;

/// The terminal on stderr, to draw on.
pub(super) fn draw_target() -> ProgressDrawTarget {
    ProgressDrawTarget::term_like_with_hz(Box::new(Canvas(Term::buffered_stderr())), PICTURES)
}

/// A terminal on which the cursor rests at the left of the picture's last row. indicatif leaves it at the right end,
/// where the echo of a `^C` moves it to the next row; the picture would then be cleared a row too low.
///
/// A terminal that is gone takes no picture, and that is no error: the run has more to do, and indicatif panics on one.
#[derive(Debug)]
struct Canvas(Term);

impl TermLike for Canvas {
    fn width(&self) -> u16 {
        self.0.size().1
    }

    fn height(&self) -> u16 {
        self.0.size().0
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        drawn(self.0.move_cursor_up(n))
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        drawn(self.0.move_cursor_down(n))
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        drawn(self.0.move_cursor_right(n))
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        drawn(self.0.move_cursor_left(n))
    }

    fn write_line(&self, s: &str) -> io::Result<()> {
        drawn(self.0.write_line(s))
    }

    fn write_str(&self, s: &str) -> io::Result<()> {
        drawn(self.0.write_str(s))
    }

    fn clear_line(&self) -> io::Result<()> {
        drawn(self.0.clear_line())
    }

    fn flush(&self) -> io::Result<()> {
        drawn(self.0.write_str("\r").and_then(|()| self.0.flush()))
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the trait wants a result")]
fn drawn(result: io::Result<()>) -> io::Result<()> {
    drop(result);
    Ok(())
}

/// Reads one line of stdin, without its end; empty at the end of the input.
pub(super) async fn read_line() -> String {
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        let _ = io::stdin().read_line(&mut line);
        line
    });
    line.await.unwrap_or_default().trim_end_matches(['\r', '\n']).to_owned()
}
