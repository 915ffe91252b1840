//! Eviction answers.
use super::{EvictionAnswer, RawAnswer};
/// Classifies the answer to a POST of an eviction.
pub fn classify_eviction(answer: &RawAnswer) -> EvictionAnswer {
    todo!("{answer:?}")
}
impl EvictionAnswer {
    #[doc = "stub"]
    pub fn cause(&self) -> Option<crate::outcome::Cause> {
        todo!()
    }
    #[doc = "stub"]
    pub fn waiting_helps(&self) -> Option<bool> {
        todo!()
    }
    #[doc = "stub"]
    pub fn bound(&self) -> Option<std::time::Duration> {
        todo!()
    }
    #[doc = "stub"]
    pub fn describe(&self) -> String {
        todo!()
    }
}
