//! The only part that talks to the API server: connecting, single requests, watches, and the snapshot made of both.
//!
//! What comes in is turned into facts at once; what fails comes back as data ([`ApiProblem`], [`Unread`]), so that the
//! caller decides what it means. Nothing here repeats a request that changes something.

mod access;
mod connect;
mod gate;
mod kubeconfig;
mod lookups;
mod problem;
mod proxy;
mod requests;
mod snapshot;
mod watches;
mod writes;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod sim_tests;

pub use access::{Missing, Right, missing_rights};
pub use connect::{ConnectError, Connection, connect};
pub use problem::{ApiProblem, ProblemKind, explain};
pub use requests::{Attachment, Requests};
pub use snapshot::{Part, Snapshot, Unread, snapshot, snapshot_of_vms};
pub use watches::{WatchItem, WatchOptions, Watched, Watches, start};
