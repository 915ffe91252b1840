//! A signal at every possible moment of a whole run.

use super::vms::reborn;
use super::*;
use crate::event::StopReason;
use crate::facts::testing::{budget, launcher, migration, pod, vm, vmi, world};
use crate::facts::{Strategy, VmiPhase};
use crate::outcome::{PodOutcome, Verdict, VmOutcome};

type Step = Box<dyn Fn(&mut Rig)>;

/// A run with a bit of everything, as a row of steps.
fn steps() -> Vec<Step> {
    let node = |name: &'static str| -> Step {
        Box::new(move |rig: &mut Rig| {
            let named = |k: &EffectKind| matches!(k, EffectKind::Cordon { node, .. } if node == name);
            rig.answer_to(named, cordoned(crate::facts::testing::node(name)));
        })
    };
    vec![
        Box::new(Rig::start),
        node("node-0"),
        node("node-1"),
        Box::new(|rig| rig.vmi_read("moves")),
        Box::new(|rig| rig.vmi_read("stops")),
        Box::new(Rig::cr_read),
        Box::new(|rig| rig.vmi_read("stale")),
        Box::new(|rig| rig.evict("web-0", EvictionAnswer::Accepted)),
        Box::new(|rig| rig.stopping(&pod("web-0"))),
        Box::new(|rig| rig.budget(budget("web").with(|b| b.disrupted = vec!["web-0".into()]))),
        Box::new(|rig| rig.evict("web-1", exhausted("web"))),
        Box::new(|rig| rig.evict("moves", marked())),
        Box::new(|rig| rig.vmi("moves", |v| v.marked = Some("node-0".into()))),
        Box::new(|rig| rig.change(Change::Migration(Delta::Apply(migration("moves", "Running"))))),
        Box::new(|rig| rig.evict("stops", EvictionAnswer::Accepted)),
        Box::new(|rig| rig.restart("stale", RestartAnswer::Accepted)),
        Box::new(|rig| rig.advance(secs(10))),
        Box::new(|rig| rig.vmi("moves", |v| v.node = Some("node-2".into()))),
        Box::new(|rig| rig.gone(&launcher("moves"))),
        Box::new(|rig| rig.gone(&launcher("stops"))),
        Box::new(|rig| rig.gone(&launcher("stale"))),
        Box::new(|rig| rig.change(Change::Vmi(Delta::Apply(reborn("stops"))))),
        Box::new(|rig| rig.change(Change::Vmi(Delta::Apply(reborn("stale"))))),
        Box::new(|rig| runs(rig, "stops")),
        Box::new(|rig| rig.gone(&pod("web-0"))),
        Box::new(|rig| rig.budget(budget("web").with(|b| b.allowed = Some(1)))),
        Box::new(|rig| rig.evict("web-1", EvictionAnswer::Accepted)),
        Box::new(|rig| rig.gone(&pod("web-1"))),
        Box::new(|rig| runs(rig, "stale")),
        Box::new(Rig::relist),
        Box::new(|rig| rig.evict("far-0", EvictionAnswer::Accepted)),
        Box::new(|rig| rig.gone(&pod("far-0").on("node-1"))),
        Box::new(Rig::relist),
    ]
}

fn runs(rig: &mut Rig, name: &str) {
    rig.vmi(name, |v| {
        v.node = Some("node-2".into());
        v.phase = VmiPhase::Running;
    });
}

fn begun() -> Rig {
    let cluster = world()
        .budget(budget("web"))
        .pod(pod("web-0"))
        .pod(pod("web-1"))
        .runs(vm("moves"), vmi("moves"))
        .runs(vm("stops"), vmi("stops").strategy(Some(Strategy::None)))
        .runs(vm("stale"), vmi("stale").live_migrate().not_migratable("DisksNotLiveMigratable"))
        .pod(pod("far-0").on("node-1").label("app", "far"));
    Rig::new(cluster, &["node-0", "node-1"], |_| {})
}

#[test]
fn the_run_without_a_signal_succeeds() {
    let mut rig = begun();
    for step in steps() {
        assert_eq!(rig.ended(), None);
        step(&mut rig);
    }
    assert_eq!(rig.ended(), Some(ExitCode::Done));
    let outcomes: Vec<VmOutcome> = rig.report("node-0").vms.iter().map(|v| v.outcome).collect();
    assert_eq!(outcomes, [VmOutcome::Migrates, VmOutcome::Restarts, VmOutcome::Returns]);
}

#[test]
fn a_signal_at_any_moment_ends_the_run_and_leaves_no_row_without_an_outcome() {
    let reasons = [
        (StopReason::Interrupt, ExitCode::Interrupted),
        (StopReason::Terminate, ExitCode::Terminated),
        (StopReason::HangUp, ExitCode::Hangup),
    ];
    let total = steps().len();
    for (reason, code) in reasons {
        for moment in 1..total {
            let mut rig = begun();
            let all = steps();
            for step in &all[..moment] {
                step(&mut rig);
            }
            let sent = rig.sent.len();
            rig.input(Input::Stop(reason));
            rig.effects();
            assert_eq!(rig.sent.len(), sent, "moment {moment}");
            assert_eq!(rig.ended(), Some(code), "moment {moment}");
            // Answers that were under way arrive all the same.
            for effect in std::mem::take(&mut rig.open) {
                if evicted(&effect.kind).is_some() {
                    let reply = Reply::Eviction(EvictionAnswer::Throttled { after: None });
                    rig.input(Input::Answer { id: effect.id, reply });
                }
            }
            rig.vmi("moves", |v| v.marked = None);
            rig.advance(secs(4000));
            assert_eq!(rig.sent.len(), sent, "moment {moment}");
            check_rows(&rig, moment);
        }
    }
}

fn check_rows(rig: &Rig, moment: usize) {
    let reports = rig.machine.reports();
    assert_eq!(reports.len(), 2, "moment {moment}");
    assert!(reports.iter().any(|r| matches!(r.verdict, Verdict::Interrupted | Verdict::NotStarted)));
    for report in reports {
        for row in &report.vms {
            let done = [VmOutcome::Migrates, VmOutcome::Restarts, VmOutcome::Returns].contains(&row.outcome);
            assert!(done || row.outcome == VmOutcome::Pending, "moment {moment}: {row:?}");
            assert!(!done || row.node_after.is_some(), "moment {moment}: a promise is no result: {row:?}");
            assert!(!row.because.is_empty());
        }
        for row in &report.pods {
            let known = matches!(row.outcome, PodOutcome::Evicts | PodOutcome::Pending);
            assert!(known, "moment {moment}: {row:?}");
            if row.outcome == PodOutcome::Evicts {
                assert_ne!(report.verdict, Verdict::NotStarted, "moment {moment}: {row:?}");
                let node = rig.machine.core.index.pod(&row.uid);
                assert!(node.is_none(), "moment {moment}: it is still there: {row:?}");
            }
        }
    }
}
