//! Restart answers.
use super::{RawAnswer, RestartAnswer};
/// Classifies the answer to a PUT of a restart.
pub fn classify_restart(answer: &RawAnswer) -> RestartAnswer {
    todo!("{answer:?}")
}
