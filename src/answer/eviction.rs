//! Eviction answers.
use super::{EvictionAnswer, RawAnswer};
/// Classifies the answer to a POST of an eviction.
pub fn classify_eviction(answer: &RawAnswer) -> EvictionAnswer {
    todo!("{answer:?}")
}
