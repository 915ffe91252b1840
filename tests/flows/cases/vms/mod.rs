//! Virtual machines: answers of the guard, migrations, and what becomes of the VM afterwards.

/// The cases that are tests here.
pub(super) const CASES: &[u32] = &[];
