//! Scenarios that run on the simulated cluster, and by `make e2e` on a real control plane with real KubeVirt as well.
//!
//! Each is one description: what is there, what is done, what goes wrong, how it must end. On the real cluster what came of
//! it is also compared, row by row, with what came of it on the simulated one.

mod act;
mod budgets;
mod digest;
mod faults;
mod pods;
mod rights;
mod stage;
mod vms;

use std::sync::LazyLock;

use futures::future::LocalBoxFuture;
use tokio::sync::RwLock;

pub use self::act::Act;
pub use self::stage::Stage;

use self::digest::Digest;

type Scenario = for<'a> fn(&'a Stage) -> LocalBoxFuture<'a, ()>;

/// Who disturbs the whole cluster must have it for itself.
static CLUSTER: LazyLock<RwLock<()>> = LazyLock::new(RwLock::default);

/// How a scenario uses the real cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Beside others: it keeps to its own nodes and namespaces.
    Shared,
    /// For itself: it breaks or changes what all share.
    Alone,
}

async fn simulated(name: &str, scenario: Scenario) -> Vec<Digest> {
    let stage = Stage::simulated(name);
    scenario(&stage).await;
    stage.digests()
}

async fn real(name: &str, scenario: Scenario) -> Vec<Digest> {
    let stage = Stage::real(name).await;
    scenario(&stage).await;
    stage.digests()
}

/// Runs it on both clusters; the same must come of it.
fn on_both(name: &'static str, scenario: Scenario, use_of: Use) {
    let runtime = |paused| {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(paused).build().expect("a runtime")
    };
    let expected = runtime(true).block_on(simulated(name, scenario));
    let got = runtime(false).block_on(async {
        if use_of == Use::Alone {
            let _cluster = CLUSTER.write().await;
            real(name, scenario).await
        } else {
            let _cluster = CLUSTER.read().await;
            real(name, scenario).await
        }
    });
    assert!(!expected.is_empty(), "a scenario keeps what came of it");
    for (n, (expected, got)) in expected.iter().zip(&got).enumerate() {
        assert_eq!(expected, got, "run {n}: left is the simulated cluster, right the real one");
    }
    assert_eq!(expected.len(), got.len());
}

macro_rules! scenarios {
    ($($file:ident::$name:ident $use:ident;)+) => {
        /// On the simulated cluster, in virtual time.
        mod simulated_cluster {
            use futures::FutureExt;

            $(#[tokio::test(start_paused = true)]
            async fn $name() {
                super::simulated(&stringify!($name).replace('_', "-"), |s| super::$file::$name(s).boxed_local()).await;
            })+
        }

        /// On the real cluster that `make e2e` starts.
        mod real_cluster {
            use futures::FutureExt;

            $(#[test]
            #[ignore = "needs a real cluster: make e2e"]
            fn $name() {
                let name: &'static str = stringify!($name).replace('_', "-").leak();
                super::on_both(name, |s| super::$file::$name(s).boxed_local(), super::Use::$use);
            })+
        }
    };
}

scenarios! {
    pods::plain_pods Shared;
    pods::daemon_set Shared;
    pods::stateful_set Shared;
    pods::bare_pod Shared;
    pods::finalizer Shared;
    pods::replaced_pod Shared;
    pods::terminating_namespace Shared;
    pods::many_pods Shared;
    pods::slow_stop Shared;
    pods::second_drain Shared;
    budgets::budget_waits Shared;
    budgets::budget_never Shared;
    budgets::two_budgets Shared;
    budgets::budget_not_observed Alone;
    vms::strategy_switch Alone;
    vms::run_strategies Shared;
    vms::two_drains Shared;
    vms::resumed_migration Shared;
    faults::api_server_away Alone;
    faults::virt_api_away Alone;
    faults::webhook_hangs Alone;
    faults::throttled Shared;
    rights::missing_rights Shared;
}
