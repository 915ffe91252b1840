//! Scenarios that run on the simulated cluster, and by `make e2e` on a real control plane with real KubeVirt as well.
//!
//! Each is one description: what is there, what is done, what goes wrong, how it must end. On the real cluster what came of
//! it is also compared, row by row, with what came of it on the simulated one.

mod act;
mod answers;
mod budgets;
mod control;
mod digest;
mod faults;
mod migrations;
mod owners;
mod parity;
mod pods;
mod rights;
mod stage;
mod vms;

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use tokio::runtime::{Builder, Runtime};

pub use self::act::Act;
pub use self::stage::Stage;

use self::digest::Digest;

type Scenario = for<'a> fn(&'a Stage) -> LocalBoxFuture<'a, ()>;

async fn simulated(name: &str, scenario: Scenario) -> Vec<Digest> {
    let stage = Stage::simulated(name);
    scenario(&stage).await;
    stage.digests()
}

/// Runs it on both clusters; the same must come of it.
fn on_both(name: &str, scenario: Scenario) {
    let expected = runtime(true).block_on(simulated(name, scenario));
    assert!(!expected.is_empty(), "a scenario keeps what came of it");
    let got = on_real(name, async |stage| scenario(stage).await);
    for (n, (expected, got)) in expected.iter().zip(&got).enumerate() {
        assert_eq!(expected, got, "run {n}: left is the simulated cluster, right the real one");
    }
    assert_eq!(expected.len(), got.len());
}

fn runtime(paused: bool) -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(paused).build().expect("a runtime")
}

/// Plays on a stage of the real cluster, and mends what was broken when it fails, so that no other stage fails for it.
fn on_real(name: &str, scenario: impl AsyncFnOnce(&Stage)) -> Vec<Digest> {
    runtime(false).block_on(async {
        let stage = Stage::real(name).await;
        let played = AssertUnwindSafe(scenario(&stage)).catch_unwind().await;
        if let Err(panic) = played {
            if stage.is_alone() {
                act::mend().await;
            }
            resume_unwind(panic);
        }
        stage.clear().await;
        stage.digests()
    })
}

macro_rules! scenarios {
    ($real:ident $simulated:ident: $($file:ident::$name:ident)+) => {
        /// On the simulated cluster, in virtual time.
        mod $simulated {
            use futures::FutureExt;

            $(#[tokio::test(start_paused = true)]
            async fn $name() {
                super::simulated(&stringify!($name).replace('_', "-"), |s| super::$file::$name(s).boxed_local()).await;
            })+
        }

        /// On the real cluster that `make e2e` starts.
        mod $real {
            use futures::FutureExt;

            $(#[test]
            #[ignore = "needs a real cluster: make e2e"]
            fn $name() {
                super::on_both(&stringify!($name).replace('_', "-"), |s| super::$file::$name(s).boxed_local());
            })+
        }
    };
}

// Most play beside each other.
scenarios! { real_beside simulated_beside:
    answers::classes
    budgets::budget_never
    budgets::budget_waits
    budgets::two_budgets
    faults::throttled
    migrations::aborted_drain
    migrations::failing_migration
    migrations::target_on_the_node
    migrations::unschedulable_target
    owners::owners
    owners::refused_restart
    pods::bare_pod
    pods::daemon_set
    pods::finalizer
    pods::many_pods
    pods::plain_pods
    pods::replaced_pod
    pods::second_drain
    pods::slow_stop
    pods::stateful_set
    pods::terminating_namespace
    rights::missing_rights
    vms::cancelled_drain
    vms::falls_unmigratable
    vms::restarts_in_place
    vms::resumed_migration
    vms::run_strategies
    vms::strategy_switch
    vms::two_drains
}

// These break what all share: each waits until nobody else plays.
scenarios! { real_alone simulated_alone:
    budgets::budget_not_observed
    faults::api_server_away
    faults::virt_api_away
    faults::webhook_hangs
    migrations::queued_migrations
}
