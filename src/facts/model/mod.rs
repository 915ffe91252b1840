//! The plugin's own model of a cluster: what it needs to know, in types that cannot be misread.
//!
//! Every object carries its UID. A name alone never identifies anything here: a StatefulSet pod that came back under
//! its old name is another pod. Unknown values are `None` or a variant of their own, never a default that looks known.

mod budget;
mod identity;
mod migration;
mod node;
mod pod;
mod vm;

pub use budget::*;
pub use identity::*;
pub use migration::*;
pub use node::*;
pub use pod::*;
pub use vm::*;
