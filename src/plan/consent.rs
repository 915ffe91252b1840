//! Consent.
