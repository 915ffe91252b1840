//! Whole runs in virtual time against the simulated cluster: what an admin sees, and what reaches the API server.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "tests: a broken expectation ends the test at once, and what is printed tells which case of a loop it was"
)]

mod abort;
mod architecture;
mod audit;
mod brakes;
mod budgets;
mod cancel;
mod cases;
mod consent;
mod harness;
mod kubectl;
mod nodes;
mod plain;
mod random;
mod restarts;
mod rights;
mod scenarios;
mod signals;
mod snapshots;
mod strategies;
mod switch;
mod trouble;
mod vms;
