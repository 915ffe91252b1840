//! The exit codes: a documented interface, never re-used.
//!
//! [`ExitCode::TABLE`] is the one place that says what they mean; `--help` prints it.
//! [`ExitCode::of_all`] says which of several outcomes the command ends with.

use serde::{Serialize, Serializer};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ExitCode {
    /// Drained, and every VM that this run touched runs again or was agreed to stay down.
    Done = 0,
    /// Failed in a way that no other code names.
    Failed = 1,
    /// Command line, kubeconfig, unknown node, selector without a match.
    Usage = 2,
    /// Something remains that waiting will not clear.
    Blocked = 3,
    /// Refused before anything changed: consent or a flag is missing.
    Refused = 4,
    /// Drained, but a VM that should run again does not.
    VmDown = 5,
    /// API, credentials or permissions before the first write, or contact lost at the end.
    Api = 6,
    /// The timeout came first.
    Timeout = 124,
    /// Ended by SIGHUP.
    Hangup = 129,
    /// Ended by SIGINT (Ctrl-C).
    Interrupted = 130,
    /// Ended by SIGTERM.
    Terminated = 143,
}

impl ExitCode {
    /// Every code with its meaning, in numeric order.
    pub const TABLE: [(Self, &'static str); 11] = [
        (Self::Done, "drained; every VM it touched runs again or was agreed to stay down"),
        (Self::Failed, "failed otherwise"),
        (Self::Usage, "command line, kubeconfig, unknown node, selector without a match"),
        (Self::Blocked, "blocked: something remains that waiting will not clear"),
        (Self::Refused, "refused before anything changed: consent or a flag is missing"),
        (Self::VmDown, "drained, but a VM that should run again does not"),
        (Self::Api, "API, credentials or permissions; or contact lost, state unknown"),
        (Self::Timeout, "timeout"),
        (Self::Hangup, "ended by SIGHUP"),
        (Self::Interrupted, "ended by SIGINT (Ctrl-C)"),
        (Self::Terminated, "ended by SIGTERM"),
    ];

    /// The number that the shell sees.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The code with that number; a number that is none of ours counts as [`Self::Failed`].
    pub fn from_code(number: u8) -> Self {
        Self::TABLE.iter().map(|(code, _)| *code).find(|code| code.code() == number).unwrap_or(Self::Failed)
    }

    /// What it means, in one line.
    pub fn meaning(self) -> &'static str {
        Self::TABLE.iter().find(|(code, _)| *code == self).map_or("", |(_, meaning)| *meaning)
    }

    /// The code of an end by this signal number; `None` for a signal that is not handled.
    pub const fn of_signal(number: i32) -> Option<Self> {
        match number {
            1 => Some(Self::Hangup),
            2 => Some(Self::Interrupted),
            15 => Some(Self::Terminated),
            _ => None,
        }
    }

    /// The signal by which the process has to end itself so that a shell loop around it stops too.
    pub const fn signal(self) -> Option<i32> {
        match self {
            Self::Hangup => Some(1),
            Self::Interrupted => Some(2),
            Self::Terminated => Some(15),
            Self::Done
            | Self::Failed
            | Self::Usage
            | Self::Blocked
            | Self::Refused
            | Self::VmDown
            | Self::Api
            | Self::Timeout => None,
        }
    }

    /// The one code for several outcomes: the first of signal › 2 › 4 › 6 › 1 › 3 › 124 › 5 › 0.
    ///
    /// 2 and 4 end a run before anything changed, so they stand for all of it. 3 outranks 124, since a second run
    /// cannot succeed without a human. Of several signals the first one counts; no outcome at all is 0.
    pub fn of_all(outcomes: impl IntoIterator<Item = Self>) -> Self {
        outcomes
            .into_iter()
            .fold(Self::Done, |worst, next| if next.precedence() > worst.precedence() { next } else { worst })
    }

    /// Higher goes first.
    const fn precedence(self) -> u8 {
        match self {
            Self::Hangup | Self::Interrupted | Self::Terminated => 8,
            Self::Usage => 7,
            Self::Refused => 6,
            Self::Api => 5,
            Self::Failed => 4,
            Self::Blocked => 3,
            Self::Timeout => 2,
            Self::VmDown => 1,
            Self::Done => 0,
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.code())
    }
}

impl Serialize for ExitCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_numbers_never_change() {
        let numbers: Vec<u8> = ExitCode::TABLE.iter().map(|(code, _)| code.code()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 124, 129, 130, 143]);
        assert_eq!(ExitCode::Done.code(), 0);
        assert_eq!(ExitCode::Failed.code(), 1);
        assert_eq!(ExitCode::Usage.code(), 2);
        assert_eq!(ExitCode::Blocked.code(), 3);
        assert_eq!(ExitCode::Refused.code(), 4);
        assert_eq!(ExitCode::VmDown.code(), 5);
        assert_eq!(ExitCode::Api.code(), 6);
        assert_eq!(ExitCode::Timeout.code(), 124);
    }

    #[test]
    fn every_code_has_a_meaning() {
        for (code, meaning) in ExitCode::TABLE {
            assert!(!meaning.is_empty());
            assert_eq!(code.meaning(), meaning);
        }
    }

    #[test]
    fn of_several_outcomes_the_first_in_the_documented_order_counts() {
        let order = [
            ExitCode::Interrupted,
            ExitCode::Usage,
            ExitCode::Refused,
            ExitCode::Api,
            ExitCode::Failed,
            ExitCode::Blocked,
            ExitCode::Timeout,
            ExitCode::VmDown,
            ExitCode::Done,
        ];
        for (index, first) in order.iter().enumerate() {
            for second in &order[index..] {
                assert_eq!(ExitCode::of_all([*first, *second]), *first);
                assert_eq!(ExitCode::of_all([*second, *first]), *first);
            }
        }
    }

    #[test]
    fn of_several_signals_the_first_counts_and_nothing_is_done() {
        assert_eq!(ExitCode::of_all([ExitCode::Terminated, ExitCode::Interrupted]), ExitCode::Terminated);
        assert_eq!(ExitCode::of_all([]), ExitCode::Done);
    }

    #[test]
    fn a_signal_end_is_128_and_the_number() {
        for (code, _) in ExitCode::TABLE {
            match code.signal() {
                Some(number) => {
                    assert_eq!(i32::from(code.code()), 128 + number);
                    assert_eq!(ExitCode::of_signal(number), Some(code));
                }
                None => assert!(code.code() < 128),
            }
        }
        assert_eq!(ExitCode::of_signal(9), None);
    }

    #[test]
    fn the_document_has_the_number() {
        assert_eq!(serde_json::to_string(&ExitCode::Timeout).unwrap(), "124");
    }
}
