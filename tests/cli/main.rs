//! The program as users run it: a process of its own against a simulated cluster on loopback, or against servers that
//! are broken on purpose.
//!
//! Every test has its own cluster, port and folders. Nothing waits for a stretch of time: tests wait for something that
//! can be seen (a line, a request, the end) and fail when it does not come.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test may panic, its helpers too; this side of the process border has real time"
)]

mod audit;
mod bad_input;
mod caller;
mod cancel;
mod cluster;
mod connection;
mod demo;
mod documents;
mod environment;
mod events;
mod pty;
mod refusals;
mod restart;
mod schema;
mod server;
mod signals;
mod streams;
mod terminal;
mod tls;
mod tool;
mod trouble;
