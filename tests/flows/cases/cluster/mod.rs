//! Any cluster: budgets, admission, odd pods, endings, transport, the command's manners.

mod storage;

/// The cases that are tests here.
pub(super) const CASES: &[u32] = &[31, 63, 85];
