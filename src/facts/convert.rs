//! API objects → facts.
