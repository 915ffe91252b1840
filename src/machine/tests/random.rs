//! What holds in every order of answers and changes.

use proptest::prelude::*;

use super::fair::{Fair, Kind};
use super::*;
use crate::event::StopReason;
use crate::outcome::{PodOutcome, Verdict, VmOutcome};

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::Migrates),
        2 => Just(Kind::Stops),
        4 => Just(Kind::Stale),
        1 => Just(Kind::Rerun),
        1 => Just(Kind::External),
        1 => Just(Kind::Held),
        1 => Just(Kind::StaysOff),
        1 => Just(Kind::Starting),
    ]
}

/// The code that the rows of a node stand for.
fn code_of(report: &NodeReport) -> ExitCode {
    let vm = |outcome| report.vms.iter().any(|v| v.outcome == outcome);
    let pod = |outcome| report.pods.iter().any(|p| p.outcome == outcome);
    if vm(VmOutcome::Blocks) || pod(PodOutcome::Blocks) {
        ExitCode::Blocked
    } else if vm(VmOutcome::Pending) || pod(PodOutcome::Pending) {
        ExitCode::Timeout
    } else if vm(VmOutcome::Down) {
        ExitCode::VmDown
    } else {
        ExitCode::Done
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_fair_world_is_drained(
        seed in any::<u64>(),
        apps in prop::collection::vec((1u8..12, 1u8..4), 0..3),
        vms in prop::collection::vec(kind(), 0..12),
        parallel in 1usize..3,
        max_in_flight in prop_oneof![Just(1usize), Just(3), Just(32)],
    ) {
        let mut fair = Fair::new(seed, &apps, &vms, |s| {
            s.machine.parallel = parallel;
            s.machine.max_in_flight = max_in_flight;
        });
        fair.run(20_000);
        let ended = fair.rig.machine.ended();
        prop_assert!(ended.is_some(), "it does not end\n{}", fair.story());
        let reports = fair.rig.machine.reports();
        prop_assert_eq!(ended, Some(ExitCode::of_all(reports.iter().map(code_of))));
        let held = vms.contains(&Kind::Held);
        let want = if held { ExitCode::Blocked } else { ExitCode::Done };
        prop_assert_eq!(ended, Some(want), "{:#?}\n{}", reports, fair.story());
        for report in &reports {
            let verdict = if report.exit_code == 0 { Verdict::Drained } else { Verdict::Blocked };
            prop_assert_eq!(report.verdict, verdict);
        }
        let rows: Vec<&VmRow> = reports.iter().flat_map(|r| &r.vms).collect();
        // The second node is planned when its turn comes: an owner may have acted before.
        let missing = vms.len() - rows.len();
        prop_assert!(missing <= vms.iter().filter(|k| **k == Kind::External).count());
        for row in rows {
            let outcome = row.outcome;
            let number: usize = row.name.trim_start_matches("vm-").parse().unwrap();
            let promised = match vms[number] {
                Kind::Migrates | Kind::Starting => VmOutcome::Migrates,
                Kind::Stops => VmOutcome::Returns,
                Kind::Stale | Kind::Rerun => VmOutcome::Restarts,
                Kind::External => VmOutcome::Replaced,
                Kind::Held => VmOutcome::Blocks,
                Kind::StaysOff => VmOutcome::StaysOff,
            };
            // The owner of an External VM may act before its node has its turn.
            let early = vms[number] == Kind::External
                && matches!(outcome, VmOutcome::Gone | VmOutcome::Returns | VmOutcome::Replaced);
            prop_assert!(outcome == promised || early, "{:?}\n{}", row, fair.story());
        }
    }

    #[test]
    fn a_fair_world_has_its_stale_vms_restarted_in_place(
        seed in any::<u64>(),
        apps in prop::collection::vec((1u8..4, 1u8..4), 0..2),
        vms in prop::collection::vec(kind(), 0..16),
        max_in_flight in prop_oneof![Just(1usize), Just(3), Just(32)],
    ) {
        let mut fair = Fair::new(seed, &apps, &vms, |s| {
            (s.plan.in_place, s.machine.in_place) = (true, true);
            s.machine.max_in_flight = max_in_flight;
        });
        fair.run(20_000);
        let reports = fair.rig.machine.reports();
        prop_assert_eq!(fair.rig.machine.ended(), Some(ExitCode::Done), "{:#?}\n{}", reports, fair.story());
        let rows: Vec<&VmRow> = reports.iter().flat_map(|r| &r.vms).collect();
        prop_assert_eq!(rows.len(), vms.iter().filter(|k| **k == Kind::Stale).count());
        for row in rows {
            prop_assert!(row.outcome == VmOutcome::Restarts && row.new_vmi_uid.is_some(), "{:?}", row);
        }
        for report in &reports {
            prop_assert_eq!(report.verdict, Verdict::Restarted);
        }
        let foreign = |kind: &EffectKind| {
            !matches!(kind, EffectKind::Restart { .. } | EffectKind::ReadVmi { .. } | EffectKind::ReadKubeVirt { .. })
        };
        let foreign: Vec<_> = fair.rig.sent.iter().filter(|(_, kind)| foreign(kind)).collect();
        prop_assert!(foreign.is_empty(), "{:?}", foreign);
    }

    #[test]
    fn a_stopped_run_sends_nothing_more(
        seed in any::<u64>(),
        apps in prop::collection::vec((1u8..8, 1u8..4), 0..3),
        vms in prop::collection::vec(kind(), 0..8),
        steps in 0usize..300,
    ) {
        let mut fair = Fair::new(seed, &apps, &vms, |_| {});
        fair.run(steps);
        if fair.rig.machine.ended().is_some() {
            return Ok(());
        }
        let sent = fair.rig.sent.len();
        fair.rig.input(Input::Stop(StopReason::Interrupt));
        prop_assert_eq!(fair.rig.machine.ended(), Some(ExitCode::Interrupted));
        fair.rig.effects();
        prop_assert_eq!(fair.rig.sent.len(), sent);
        prop_assert_eq!(fair.rig.machine.poll_timeout(), None);
        let reports = fair.rig.machine.reports();
        prop_assert_eq!(reports.len(), 2);
        for report in reports {
            for row in report.vms {
                prop_assert!(row.outcome != VmOutcome::Waits, "{:?}", row);
                prop_assert!(row.outcome != VmOutcome::Migrates || row.node_after.is_some(), "{:?}", row);
            }
            prop_assert!(report.pods.iter().all(|p| p.outcome != PodOutcome::Waits));
        }
    }

    #[test]
    fn an_aborted_run_only_takes_back(
        seed in any::<u64>(),
        apps in prop::collection::vec((1u8..8, 1u8..4), 0..3),
        vms in prop::collection::vec(kind(), 0..8),
        steps in 1usize..300,
    ) {
        let mut fair = Fair::new(seed, &apps, &vms, |s| s.machine.undo_on_abort = true);
        fair.run(steps);
        if fair.rig.machine.ended().is_some() {
            return Ok(());
        }
        let (sent, at) = (fair.rig.sent.len(), fair.rig.now);
        fair.rig.input(Input::Stop(StopReason::Interrupt));
        fair.run(20_000);
        prop_assert_eq!(fair.rig.machine.ended(), Some(ExitCode::Interrupted), "{}", fair.story());
        prop_assert!(fair.rig.now <= at + secs(10), "{:?} after {:?}", fair.rig.now, at);
        for (_, kind) in &fair.rig.sent[sent..] {
            prop_assert!(matches!(kind, EffectKind::Undo { .. }), "{:?}\n{}", kind, fair.story());
        }
    }
}
