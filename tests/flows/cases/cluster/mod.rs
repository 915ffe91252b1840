//! Any cluster: budgets, admission, odd pods, endings, transport, the command's manners.

/// The cases that are tests here.
pub(super) const CASES: &[u32] = &[];
