//! Virtual machines: answers of the guard, migrations, and what becomes of the VM afterwards.

mod afterwards;
mod answers;
mod infrastructure;
mod manners;
mod migrations;
mod pods;
mod releases;
mod restarts;

use safe_drain_sim::Profile;

/// The cases that are tests here.
pub(super) const CASES: &[u32] =
    &[1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 15, 16, 19, 20, 22, 23, 24, 25, 26, 27, 29, 30, 32, 35, 36, 37, 38, 84, 86];

/// The namespace of the VMs.
const NS: &str = "tenant-a";

/// One release of each sort of answers, for what is not about their differences.
const SORTS: [Profile; 4] = [Profile::V1_2, Profile::V1_4, Profile::V1_5, Profile::V1_9];
