use super::*;
use crate::outcome::{AuditCounts, AuditNode, AuditReport, AuditRow, AuditSummary, UpdateEffect, UpdatePolicy};
use crate::report::Fold;
use crate::report::audit::{AuditHuman, AuditOptions};
use crate::report::human::Stdout;

fn row(vm: VmRow) -> AuditRow {
    let restart = format!("virtctl restart {} -n {}", vm.name, vm.namespace);
    AuditRow {
        outdated_launcher: false,
        restart_command: (vm.restart_helps == Some(true)).then_some(restart),
        update: Some(UpdateEffect::Stays),
        update_after_restart: None,
        notes: Vec::new(),
        vm,
    }
}

fn audit(rows: Vec<AuditRow>, methods: &[&'static str]) -> AuditReport {
    let counts = AuditCounts::of(&rows);
    let update =
        UpdatePolicy { methods: methods.to_vec(), batch_eviction_size: 10, batch_eviction_interval: "1m".into() };
    AuditReport {
        summary: AuditSummary { counts, stopped: 0, starting: 0, workload_update: Some(update) },
        nodes: vec![AuditNode { name: "node-0".into(), uid: None, cordoned_now: Some(false), counts, vms: rows }],
    }
}

fn shown(report: &AuditReport, options: AuditOptions) -> String {
    let mut fold = AuditHuman::new(options);
    let connected =
        EventKind::Connected { server: server(), nodes: Vec::new(), timeout_seconds: 0, started_at: started_at() };
    let mut stdout = Vec::new();
    for (n, kind) in [(1, connected), (2, EventKind::Audited { report: report.clone() })] {
        stdout.extend(fold.event(&DrainEvent { seq: n, elapsed_ms: 0, kind }).stdout);
    }
    text(&stdout)
}

#[test]
fn what_needs_a_look_comes_first_and_the_rest_is_counted() {
    let held = |name: &str, source: &'static str| VmRow {
        cause: Some(Cause::VmNotMigratable),
        strategy_source: Some(source),
        ..vm(name, VmOutcome::Blocks, "its disk is not shared")
    };
    let unknown = VmRow {
        strategy_now: None,
        strategy_fresh: None,
        strategy_source: None,
        ..vm("blind", VmOutcome::Blocks, "unknown")
    };
    let mut rows: Vec<AuditRow> = (0..3_000).map(|n| row(vm(&format!("web-{n}"), VmOutcome::Migrates, ""))).collect();
    rows.extend([
        row(vm("once-1", VmOutcome::StaysOff, "runStrategy Once keeps it off")),
        row(held("tpl-1", "template")),
        row(held("own-1", "cluster")),
        row(unknown),
        row(stale("db-0", "its disk is not shared")),
        row(vm("ext-1", VmOutcome::Waits, "")),
    ]);
    let report = audit(rows, &["LiveMigrate"]);
    let options =
        AuditOptions { namespace: Some("tenant-a".into()), selector: Some("app".into()), ..AuditOptions::default() };
    insta::assert_snapshot!(shown(&report, options.clone()), @"
    context prod · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible
    3006 VMs on 1 node in namespace tenant-a with labels app (nothing was changed)

      VM               NODE    STRATEGY                ON DRAIN              BECAUSE
    ✗ tenant-a/db-0    node-0  LiveMigrate, stale      blocks                its disk is not shared; a restart gives it LiveMigrateIfPossible
    ✗ tenant-a/tpl-1   node-0  LiveMigrate (template)  blocks                its disk is not shared
    ✗ tenant-a/own-1   node-0  LiveMigrate (cluster)   blocks                its disk is not shared
    ✗ tenant-a/blind   node-0  unknown                 blocks                unknown
    ! tenant-a/once-1  node-0  LiveMigrate             shut down, stays off  runStrategy Once keeps it off

    ✗ 4 VMs would block: 1 is stale (a restart helps), 1 is held by its VM template, 1 is held by the cluster's evictionStrategy, 1 is held by something else
    ! 1 VM would be shut down and stay off: somebody must start it
    ? 1 VM would wait for something that passes (a start, a migration)
    ✓ 3000 VMs would migrate
      1 VM: its strategy, or the one that it would get, is unknown, so nobody can promise that a restart helps

    1 VM is stale: `kubectl safe-drain restart-stale -n tenant-a -l 'app'` restarts it once you agree; or by hand:
      virtctl restart db-0 -n tenant-a
    ");
    assert_eq!(shown(&report, AuditOptions { stdout: Stdout::Taken, ..options }), "");
    let narrow = shown(&report, AuditOptions { stdout_width: Some(80), ..AuditOptions::default() });
    let commands = |line: &&str| !line.contains('`') && !line.contains("virtctl");
    assert!(narrow.lines().filter(commands).all(|line| line.chars().count() <= 80), "{narrow}");
}

#[test]
fn the_price_in_numbers() {
    let effects = |now: Option<UpdateEffect>, later: Option<UpdateEffect>, name: &str| AuditRow {
        update: now,
        update_after_restart: later,
        ..row(vm(name, VmOutcome::Returns, ""))
    };
    let (returns, off) = (Some(UpdateEffect::Returns), Some(UpdateEffect::StaysOff));
    let stays = Some(UpdateEffect::Stays);
    let price = |rows: Vec<AuditRow>| {
        let shown = shown(&audit(rows, &["LiveMigrate", "Evict"]), AuditOptions::default());
        shown.lines().find_map(|line| line.strip_prefix("Price of a strategy that shuts VMs down: ").map(str::to_owned))
    };
    let end = "(method Evict in workloadUpdateStrategy of the KubeVirt object)";
    let cases = [
        (vec![effects(stays, None, "a"), effects(None, None, "b")], None),
        (
            vec![effects(returns, None, "a")],
            Some(format!(
                "each update of KubeVirt shuts down 1 VM that it does not migrate, at most 10 every 1m {end}"
            )),
        ),
        (
            vec![effects(off, None, "a")],
            Some(format!(
                "each update of KubeVirt shuts down 1 VM that it does not migrate, at most 10 every 1m; it stays off {end}"
            )),
        ),
        (
            vec![effects(returns, None, "a"), effects(stays, off, "b"), effects(stays, returns, "c")],
            Some(format!(
                "each update of KubeVirt shuts down 1 VM that it does not migrate, and 2 more once they are restarted, at most 10 every 1m; 1 of them stays off {end}"
            )),
        ),
        (
            vec![effects(stays, off, "b"), effects(stays, off, "c")],
            Some(format!(
                "each update of KubeVirt will shut down 2 VMs once they are restarted, at most 10 every 1m; they stay off {end}"
            )),
        ),
    ];
    for (rows, expected) in cases {
        assert_eq!(price(rows), expected);
    }
}

#[test]
fn who_renews_outdated_launchers() {
    let line = |methods: &[&'static str]| {
        let old = AuditRow { outdated_launcher: true, ..row(vm("a", VmOutcome::Migrates, "")) };
        let shown = shown(&audit(vec![old], methods), AuditOptions::default());
        shown.lines().find(|line| line.contains("older than KubeVirt")).unwrap().to_owned()
    };
    assert_eq!(
        line(&[]),
        "  1 VM runs in a launcher that is older than KubeVirt: a migration or a restart renews it; KubeVirt does not by \
         itself (its workloadUpdateMethods are empty)"
    );
    for (methods, words) in [
        (&["LiveMigrate"][..], "itself migrates those that can (w"),
        (&["Evict"], "itself evicts those that let it (w"),
        (&["LiveMigrate", "Evict"], "itself migrates those that can and evicts the others (w"),
    ] {
        assert!(line(methods).contains(words), "{}", line(methods));
    }
}
