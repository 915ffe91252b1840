//! Trimmed API objects.
