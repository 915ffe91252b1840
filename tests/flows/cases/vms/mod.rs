//! Virtual machines: answers of the guard, migrations, and what becomes of the VM afterwards.

mod answers;
mod infrastructure;
mod pods;
mod releases;
mod restarts;

/// The cases that are tests here.
pub(super) const CASES: &[u32] = &[1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 15, 16, 27, 29, 36, 37, 86];

/// The namespace of the VMs.
const NS: &str = "tenant-a";
