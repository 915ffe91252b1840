//! A simulated Kubernetes API server with KubeVirt, for the tests and the demo of `kubectl safe-drain`.
//!
//! [`Sim`] holds a cluster in memory; its controllers are a task on the current tokio runtime and take all time from tokio, so that a whole drain
//! runs in virtual time under a paused clock. [`Sim::service`] is what an HTTP client is built on, [`Sim::listen`] serves the same on loopback.
//!
//! It speaks wire types only and shares no code with the tool. What real servers answered is in `tests/fixtures/recordings`; `tests/contract.rs`
//! holds this crate to it.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::needless_pass_by_value,
    reason = "test support: a broken invariant must end the test at once"
)]

pub mod api;
mod body;
mod cluster;
mod controllers;
mod json;
mod kinds;
mod loopback;
mod machine;
mod options;
pub mod play;
pub mod scenario;
mod selector;
mod sim;
mod store;
mod world;

pub use api::SimService;
pub use api::access::Rule;
pub use api::fault::{Fault, Then};
pub use api::record::Recorded;
pub use body::SimBody;
pub use json::Json;
pub use kinds::{Info, Kind};
pub use loopback::Loopback;
pub use options::{Options, Profile, VirtApi};
pub use play::node;
pub use sim::Sim;
pub use world::{PodSpec, Vm, World, object};
