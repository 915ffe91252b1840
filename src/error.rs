//! What went wrong, said once, with what to do next.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use anstyle::{AnsiColor, Style};

use crate::exit::ExitCode;

/// What kind of end an error is; it decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command line cannot be carried out as typed.
    Usage,
    /// The kubeconfig is missing, unreadable or contradicts itself.
    Kubeconfig,
    /// A node is unknown, or a selector matches none.
    NotFound,
    /// Refused before anything changed: consent or a flag is missing.
    Refused,
    /// The API server, the credentials or the permissions.
    Api,
    /// Everything else.
    Failed,
}

impl ErrorKind {
    /// The exit code of this kind.
    pub const fn exit_code(self) -> ExitCode {
        match self {
            Self::Usage | Self::Kubeconfig | Self::NotFound => ExitCode::Usage,
            Self::Refused => ExitCode::Refused,
            Self::Api => ExitCode::Api,
            Self::Failed => ExitCode::Failed,
        }
    }
}

/// An error for the user: a lower case fragment, hints that say what to do next, and the cause if there is one.
#[derive(Clone, Debug)]
pub struct CliError {
    kind: ErrorKind,
    message: String,
    hints: Vec<String>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl CliError {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new(), source: None }
    }

    /// The command line cannot be carried out as typed.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// The same error with one more hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The same error with its cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The kind.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message without hints and causes.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do next.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// The exit code.
    pub const fn exit_code(&self) -> ExitCode {
        self.kind.exit_code()
    }

    /// The message followed by its causes, in one line; a cause that repeats what was said is left out.
    pub fn full_message(&self) -> String {
        let mut text = self.message.clone();
        let mut source = self.source.as_deref().map(|source| source as &dyn Error);
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !text.contains(&cause_text) {
                text.push_str(": ");
                text.push_str(&cause_text);
            }
            source = cause.source();
        }
        text
    }

    /// What stderr shows: one `error:` line, then one `hint:` line per hint, each ended by a newline. Further lines of
    /// a text that has several are indented, so that every line that starts with a word is one of ours.
    ///
    /// Always styled; the stream strips it where colour is not wanted.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let error = AnsiColor::Red.on_default().bold();
        push_line(&mut text, error, "error", &self.full_message());
        for hint in &self.hints {
            push_line(&mut text, AnsiColor::Cyan.on_default(), "hint", hint);
        }
        text
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for CliError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

fn push_line(text: &mut String, style: Style, label: &str, message: &str) {
    let message = message.trim().replace('\n', "\n  ");
    for piece in [&format!("{style}{label}:{style:#} "), message.as_str(), "\n"] {
        text.push_str(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(error: &CliError) -> String {
        anstream::adapter::strip_str(&error.render()).to_string()
    }

    #[test]
    fn the_kind_decides_the_exit_code() {
        let cases = [
            (ErrorKind::Usage, 2),
            (ErrorKind::Kubeconfig, 2),
            (ErrorKind::NotFound, 2),
            (ErrorKind::Refused, 4),
            (ErrorKind::Api, 6),
            (ErrorKind::Failed, 1),
        ];
        for (kind, code) in cases {
            assert_eq!(CliError::new(kind, "x").exit_code().code(), code, "{kind:?}");
        }
    }

    #[test]
    fn renders_the_error_then_its_hints() {
        let error = CliError::usage("no node given").hint("name one").hint("or select by label");
        assert_eq!(plain(&error), "error: no node given\nhint: name one\nhint: or select by label\n");
        assert!(error.render().contains("\u{1b}["));
    }

    #[test]
    fn renders_causes_once() {
        let cause = CliError::new(ErrorKind::Failed, "permission denied").caused_by(CliError::usage("errno 13"));
        let error = CliError::new(ErrorKind::Kubeconfig, "cannot read /etc/k").caused_by(cause);
        assert_eq!(plain(&error), "error: cannot read /etc/k: permission denied: errno 13\n");
        let echo = CliError::usage("no such context: prod").caused_by(CliError::usage("prod"));
        assert_eq!(plain(&echo), "error: no such context: prod\n");
    }

    #[test]
    fn a_server_text_of_several_lines_stays_below_its_error() {
        let error = CliError::new(ErrorKind::Api, "refused:\nhint: not ours\n");
        assert_eq!(plain(&error), "error: refused:\n  hint: not ours\n");
    }
}
