//! What `kubectl drain` is called with and what it prints, as lists and recordings, and where this tool differs on purpose.

mod flags;
mod lines;
mod recordings;
pub mod rows;
