//! What holds on any cluster: what the preview says of a VM is what becomes of it, and a drain that was interrupted anywhere and
//! started again comes to the same end.
//!
//! The seed is fixed, so that a run of the tests says the same each time; `PROPTEST_RNG_SEED` and `PROPTEST_CASES` look further.

mod interrupted;
mod promise;
mod stage;

use proptest::test_runner::{Config, RngSeed};

/// So many cases with the fixed seed, unless the environment says otherwise.
fn config(cases: u32) -> Config {
    let given = Config::default();
    let set = |name: &str| std::env::var_os(name).is_some();
    Config {
        cases: if set("PROPTEST_CASES") { given.cases } else { cases },
        rng_seed: if set("PROPTEST_RNG_SEED") { given.rng_seed } else { RngSeed::Fixed(20_261_130) },
        failure_persistence: None,
        ..given
    }
}

/// Runs in virtual time.
fn in_virtual_time<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let local = tokio::task::LocalSet::new();
    runtime.expect("a runtime").block_on(local.run_until(work))
}
