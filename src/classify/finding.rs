//! One thing to say about a pod.

use crate::outcome::Cause;

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Worth a look before going on.
    Warning,
    /// Waiting will not clear it: the pod stays.
    Blocks,
    /// A flag is missing: nothing of the command is done without it.
    Refuses,
}

/// One thing to say about a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its class.
    pub code: Cause,
    /// Its weight.
    pub severity: Severity,
    /// In words.
    pub text: String,
    /// The flag that answers it.
    pub remedy: Option<&'static str>,
    /// What a human can do, where no flag answers it.
    pub hint: Option<String>,
    /// True if the pod may go although a rule that keeps pods applies to it.
    pub passes: bool,
}

impl Finding {
    fn new(code: Cause, severity: Severity, text: impl Into<String>) -> Self {
        Self { code, severity, text: text.into(), remedy: None, hint: None, passes: false }
    }

    /// Worth knowing.
    pub fn note(code: Cause, text: impl Into<String>) -> Self {
        Self::new(code, Severity::Note, text)
    }

    /// Worth a look.
    pub fn warns(code: Cause, text: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, text)
    }

    /// Keeps the pod where it is.
    pub fn blocks(code: Cause, text: impl Into<String>) -> Self {
        Self::new(code, Severity::Blocks, text)
    }

    /// Needs a flag.
    pub fn refuses(code: Cause, flag: &'static str, text: impl Into<String>) -> Self {
        Self { remedy: Some(flag), ..Self::new(code, Severity::Refuses, text) }
    }

    pub(super) fn hint(mut self, text: impl Into<String>) -> Self {
        self.hint = Some(text.into());
        self
    }

    pub(super) fn passes(mut self) -> Self {
        self.passes = true;
        self
    }
}
