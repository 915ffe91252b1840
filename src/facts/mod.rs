//! Facts: what the plugin knows of the cluster, in its own types. Pure.
//!
//! `wire` has the trimmed API objects, `convert` turns them into the model, `index` keeps them up to date.

mod convert;
mod index;
mod model;
mod scope;
#[cfg(test)]
pub(crate) mod testing;
pub mod wire;

pub use index::*;
pub use model::*;
pub use scope::*;
