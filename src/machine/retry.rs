//! Delays between tries. The one file that knows the `backoff` crate: only its pure sequence is used, never its clock,
//! its randomness or its sleeping helpers (they ignore the caller's time).

use std::time::Duration;

use backoff::ExponentialBackoff;
use backoff::backoff::Backoff;

/// First delay after a refusal for which no better signal exists.
const FIRST: Duration = Duration::from_millis(500);
/// Longest delay.
const LONGEST: Duration = Duration::from_secs(15);
/// Share of a delay that is spread by the item's identity, in percent, so that equal items do not march in step.
const SPREAD_PERCENT: u64 = 20;

/// The delay before try number `attempt + 1` (the first refusal has `attempt` 0), spread by `seed`.
pub(super) fn delay(attempt: u32, seed: &str) -> Duration {
    let mut sequence = ExponentialBackoff {
        current_interval: FIRST,
        initial_interval: FIRST,
        multiplier: 2.0,
        randomization_factor: 0.0,
        max_interval: LONGEST,
        max_elapsed_time: None,
        ..ExponentialBackoff::default()
    };
    let mut delay = FIRST;
    for _ in 0..=attempt.min(16) {
        delay = sequence.next_backoff().unwrap_or(LONGEST);
    }
    // Whole milliseconds: the crate computes in floating point.
    let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(millis - millis * SPREAD_PERCENT * spread(seed, attempt) / 100 / 100)
}

/// A number from 0 to 99 that depends on identity and attempt only (FNV-1a).
fn spread(seed: &str, attempt: u32) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in seed.bytes().chain(attempt.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash % 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_and_spread_downwards_only() {
        for (attempt, full) in [(0, 500), (1, 1000), (2, 2000), (4, 8000), (5, 15_000), (40, 15_000)] {
            let full = Duration::from_millis(full);
            for seed in ["a", "b", "some-uid"] {
                let delay = delay(attempt, seed);
                assert!(delay <= full && delay >= full * 4 / 5, "attempt {attempt}: {delay:?} of {full:?}");
            }
        }
        assert_eq!(delay(3, "x"), delay(3, "x"));
        assert!((0..20).any(|i| delay(3, &format!("{i}")) != delay(3, "x")));
    }
}
