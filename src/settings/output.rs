//! What is shown, where, and how the end is told.

use std::path::PathBuf;

/// The format of the one document on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// One JSON document.
    Json,
    /// The same document as YAML.
    Yaml,
}

impl OutputFormat {
    /// The value as it stands on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
        }
    }
}

/// Where the events go, one JSON object per line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventsFile {
    /// `--events-file -`; never together with an [`OutputFormat`].
    Stdout,
    /// A file.
    Path(PathBuf),
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorChoice {
    /// On a terminal, unless the environment says no.
    #[default]
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

/// Everything that decides what the user sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputOptions {
    /// The document on stdout; `None` is kubectl's lines or a table.
    pub format: Option<OutputFormat>,
    /// Where the events are written.
    pub events_file: Option<EventsFile>,
    /// stderr has warnings, questions and errors only.
    pub quiet: bool,
    /// When to colour.
    pub color: ColorChoice,
    /// `audit` ends with 3 when something would block.
    pub detailed_exitcode: bool,
    /// 0 warnings · 1–3 info, and plain lines in place of the screen · 4–5 debug · 6 and more one line per request.
    pub verbosity: u8,
    /// Never ask a question.
    pub no_input: bool,
}
