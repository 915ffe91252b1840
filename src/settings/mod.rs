//! What one invocation asks for, as plain validated values.
//!
//! The command line is parsed once, at the edge (see [`crate::cli`]); everything behind it works with these types and
//! never looks at a flag again. An impossible combination cannot be expressed here or is refused before a value of
//! these types exists.
//!
//! Pure: no input or output, no clock, no environment.

mod command;
mod connection;
mod drain;
mod duration;
mod output;
mod selector;

pub use self::command::{AuditOptions, CancelOptions, Command, Invocation, RestartOptions, Shell};
pub use self::connection::{ClientOptions, DEFAULT_REQUEST_TIMEOUT};
pub use self::drain::{
    DEFAULT_CHUNK_SIZE, DEFAULT_PARALLEL, DEFAULT_TIMEOUT, DrainOptions, DryRun, OnAbort, RestartStale, Targets,
};
pub use self::duration::{DurationError, parse_go_duration, parse_request_timeout, parse_timeout};
pub use self::output::{ColorChoice, EventsFile, OutputFormat, OutputOptions};
pub use self::selector::{LabelSelector, SelectorError};
