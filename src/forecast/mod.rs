//! What will happen: strategies, targets, budgets and, from all of it, what a drain does to a VM. Pure.
//!
//! The plan asks these functions before anything is touched, and the machine asks them again with fresh facts, so that
//! a promise and a decision never come from two rules.

pub mod after;
pub mod budget;
mod held;
mod notes;
pub mod restart;
pub mod strategy;
pub mod targets;
pub mod vm;
pub mod words;

#[cfg(test)]
mod tests;
