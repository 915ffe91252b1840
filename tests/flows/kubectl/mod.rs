//! What `kubectl drain` prints, and what this tool prints in its place.

mod lines;
