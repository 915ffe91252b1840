//! Whole runs with what an admin and the API server saw of them, on the simulated cluster or on a real one.

mod auditing;
mod cancelling;
mod checks;
mod command;
mod flow;
mod outcome;
mod real;
mod recording;
mod reporters;
mod restarting;
mod truth;
mod venue;

use std::time::Duration;

pub use self::auditing::{Audit, audit, vms as audited};
pub use self::cancelling::{Cancel, cancel};
pub use self::flow::{Flow, drain};
pub use self::outcome::Outcome;
pub use self::real::{Real, lab, path};
pub use self::restarting::{Restart, restart_stale};
pub use self::venue::Venue;

/// Whole seconds.
pub const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}
