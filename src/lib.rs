//! `kubectl safe-drain`: drains nodes with KubeVirt VMs, bounded in time, with every refusal explained.
//!
//! The library is the plugin's own; it has no stable API. It reads in one direction:
//!
//! ```text
//! facts → classify → forecast → plan → machine → event → report
//!   ▲                                    │  ▲
//!   └───────── cluster (watches) ────────┘  └── run (the shell: one select loop)
//! ```
//!
//! `undo` takes a drain back: facts and answers in, steps and rows out. `audit` gathers the forecasts of all VMs.
//!
//! Everything but `cluster`, `run`, `signal` and the drawing in `report` is pure: it takes data and returns data.

pub mod answer;
pub mod audit;
pub mod classify;
pub mod cli;
pub mod cluster;
pub mod error;
pub mod event;
pub mod exit;
pub mod facts;
pub mod forecast;
pub mod machine;
pub mod outcome;
pub mod plan;
pub mod report;
pub mod run;
pub mod settings;
pub mod signal;
pub mod undo;
