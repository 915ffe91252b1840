use super::*;
use crate::report::preview::{Preview, preview};

fn shown(server: &ServerInfo, nodes: &[NodeReport], exit_code: u8, width: Option<usize>) -> String {
    text(&preview(&Preview { server, nodes, notes: &[], warnings: &[], exit_code, width }))
}

#[test]
fn pods_behind_a_budget_that_lets_few_go_say_how_many() {
    let slow =
        |n| PodRow { cause: None, waiting_helps: None, ..web(n, PodOutcome::Evicts, "1 at a time (budget shop/web)") };
    let said = |pods: Vec<PodRow>| {
        let nodes = [report(Verdict::Clear, 0, Vec::new(), pods)];
        let server = without_kubevirt();
        let p = Preview { server: &server, nodes: &nodes, notes: &[], warnings: &[], exit_code: 0, width: None };
        text(&preview(&p))
    };
    assert!(said(vec![slow(0), slow(1)]).contains("2 pods are evicted, 1 at a time (budget shop/web)\n"));
    let mixed = said(vec![slow(0), slow(1), pod("shop", "a", PodOutcome::Evicts)]);
    assert!(mixed.contains("3 pods are evicted (2 of them 1 at a time: budget shop/web)"), "{mixed}");
}

#[test]
fn the_lab() {
    let nodes = [report(Verdict::Blocked, 3, lab_vms(), lab_pods())];
    insta::assert_snapshot!(shown(&server(), &nodes, 3, None), @r"
    Preview of draining node-0 (nothing was changed)
    context prod · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · 7 VMs, 9 other pods

      VM                 STRATEGY                ON DRAIN  BECAUSE
    ✗ tenant-a/db-0      LiveMigrate, stale      blocks    disk root is ReadWriteOnce; a restart gives it LiveMigrateIfPossible → add --restart-stale
    ✗ tenant-a/gpu-1     LiveMigrate, stale      blocks    GPU; runStrategy RerunOnFailure; a restart gives it LiveMigrateIfPossible → add --restart-stale
    ✗ tenant-a/pinned-1  LiveMigrate (template)  blocks    disk root is ReadWriteOnce; its VM template asks for LiveMigrate → set the template's evictionStrategy, then restart
    ? tenant-a/ext-1     External                waits     the controller that owns it must act (nothing here can)
    ✓ tenant-a/fail-1    LiveMigrate             migrates  2 nodes can take it
    ✓ tenant-a/hang-1    LiveMigrate             migrates  2 nodes can take it
    ✓ tenant-a/web-1     LiveMigrate             migrates  2 nodes can take it

    ? 5 pods wait: the budget allows 1 eviction at a time and has given it out (budget shop/web)
        shop/web-7d9f-1, shop/web-7d9f-2, shop/web-7d9f-3 and 2 more
      1 pod is evicted, 3 stay (2 DaemonSet, 1 static)

    Blocked: 3 VMs. With --restart-stale: 1 blocked.
    Exit code of the drain: 3 (blocked: something remains that waiting will not clear)
    ");
}

#[test]
fn the_lab_on_a_narrow_terminal() {
    let nodes = [report(Verdict::Blocked, 3, lab_vms(), lab_pods())];
    insta::assert_snapshot!(shown(&server(), &nodes, 3, Some(100)), @r"
    Preview of draining node-0 (nothing was changed)
    context prod · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · 7 VMs, 9 other pods

      VM                 STRATEGY                ON DRAIN  BECAUSE
    ✗ tenant-a/db-0      LiveMigrate, stale      blocks    disk root is ReadWriteOnce; a restart gives
                                                           it LiveMigrateIfPossible
                                                           → add --restart-stale
    ✗ tenant-a/gpu-1     LiveMigrate, stale      blocks    GPU; runStrategy RerunOnFailure; a restart
                                                           gives it LiveMigrateIfPossible
                                                           → add --restart-stale
    ✗ tenant-a/pinned-1  LiveMigrate (template)  blocks    disk root is ReadWriteOnce; its VM template
                                                           asks for LiveMigrate
                                                           → set the template's evictionStrategy, then
                                                             restart
    ? tenant-a/ext-1     External                waits     the controller that owns it must act (nothing
                                                           here can)
    ✓ tenant-a/fail-1    LiveMigrate             migrates  2 nodes can take it
    ✓ tenant-a/hang-1    LiveMigrate             migrates  2 nodes can take it
    ✓ tenant-a/web-1     LiveMigrate             migrates  2 nodes can take it

    ? 5 pods wait: the budget allows 1 eviction at a time and has given it out (budget shop/web)
        shop/web-7d9f-1, shop/web-7d9f-2, shop/web-7d9f-3 and 2 more
      1 pod is evicted, 3 stay (2 DaemonSet, 1 static)

    Blocked: 3 VMs. With --restart-stale: 1 blocked.
    Exit code of the drain: 3 (blocked: something remains that waiting will not clear)
    ");
}

#[test]
fn the_lab_on_eighty_columns_never_gets_wider() {
    let nodes = [report(Verdict::Blocked, 3, lab_vms(), lab_pods())];
    let page = shown(&server(), &nodes, 3, Some(80));
    assert!(page.lines().all(|line| Line::plain(line).width() <= 80), "{page}");
}

#[test]
fn a_clean_node_is_short() {
    let pods = vec![daemon("cni-x1"), web(0, PodOutcome::Evicts, ""), web(1, PodOutcome::Evicts, "")];
    let nodes = [report(Verdict::Clear, 0, Vec::new(), pods)];
    insta::assert_snapshot!(shown(&server(), &nodes, 0, None), @r"
    Preview of draining node-0 (nothing was changed)
    context prod · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible · no VMs, 3 pods

      2 pods are evicted, 1 stays (DaemonSet)

    Nothing stands in the way.
    Exit code of the drain: 0
    ");
}

#[test]
fn without_kubevirt_nothing_speaks_of_vms() {
    let mut pods = lab_pods();
    pods.push(PodRow {
        cause: Some(Cause::BudgetNever),
        waiting_helps: Some(false),
        budgets: vec!["shop/cart".into()],
        because: "budget shop/cart never allows it: minAvailable 1 of 1".into(),
        remedy: Some("scale it up or relax the budget".into()),
        ..pod("shop", "cart-0", PodOutcome::Blocks)
    });
    let nodes = [report(Verdict::Blocked, 3, Vec::new(), pods)];
    let page = shown(&without_kubevirt(), &nodes, 3, None);
    assert!(!page.contains("VM"), "{page}");
    insta::assert_snapshot!(page, @r"
    Preview of draining node-0 (nothing was changed)
    context prod · Kubernetes v1.36.3 · 10 pods

    ✗ pod shop/cart-0 blocks: budget shop/cart never allows it: minAvailable 1 of 1 → scale it up or relax the budget
    ? 5 pods wait: the budget allows 1 eviction at a time and has given it out (budget shop/web)
        shop/web-7d9f-1, shop/web-7d9f-2, shop/web-7d9f-3 and 2 more
      1 pod is evicted, 3 stay (2 DaemonSet, 1 static)

    Blocked: 1 pod.
    Exit code of the drain: 3 (blocked: something remains that waiting will not clear)
    ");
}

#[test]
fn refusals_name_their_flags_and_two_nodes_have_sections() {
    let bare = |name: &str| PodRow {
        cause: Some(Cause::Unmanaged),
        needs: vec!["--force"],
        because: "no controller brings it back".into(),
        ..pod("shop", name, PodOutcome::Refused)
    };
    let cache = PodRow {
        cause: Some(Cause::LocalData),
        needs: vec!["--delete-emptydir-data"],
        because: "emptyDir cache would be lost".into(),
        ..pod("shop", "cache-0", PodOutcome::Refused)
    };
    let off = VmRow {
        strategy_now: Some(Strategy::None),
        strategy_source: Some("none"),
        run_strategy: Some("Manual".into()),
        needs: vec!["--allow-vm-down"],
        data_loss: vec!["scratch".into()],
        cause: Some(Cause::StaysOff),
        ..vm("legacy-1", VmOutcome::StaysOff, "runStrategy Manual: nothing starts it again")
    };
    let mut both = stale("disk-1", "disk root is on this node only");
    both.needs.push("--allow-vm-down");
    both.remedy = None;
    let mut first =
        report(Verdict::Refused, 4, vec![off, both, stale("db-0", "disk root is ReadWriteOnce")], Vec::new());
    first.warnings.push("web-1 may take 1h to stop, longer than --timeout=30m: use --timeout=65m".into());
    let mut pods: Vec<PodRow> = ["a", "b", "c", "d", "e", "f"].map(bare).into();
    pods.push(cache);
    pods.push(pod("shop", "other", PodOutcome::NotSelected));
    let second =
        NodeReport { name: "node-1".into(), cordoned_before: true, ..report(Verdict::Refused, 4, Vec::new(), pods) };
    let warnings = ["PersistentVolumes cannot be listed: what depends on them is unknown".to_owned()];
    let nodes = [first, second];
    let p =
        Preview { server: &server(), nodes: &nodes, notes: &[], warnings: &warnings, exit_code: 4, width: Some(110) };
    insta::assert_snapshot!(text(&preview(&p)), @r"
    Preview of draining node-0, node-1 (nothing was changed)
    context prod · KubeVirt v1.7.0, cluster evictionStrategy LiveMigrateIfPossible

    Node node-0 · refused · 3 VMs, no other pods

      VM                 STRATEGY            ON DRAIN              BECAUSE
    ✗ tenant-a/db-0      LiveMigrate, stale  blocks                disk root is ReadWriteOnce; a restart gives it
                                                                   LiveMigrateIfPossible
                                                                   → add --restart-stale
    ✗ tenant-a/disk-1    LiveMigrate, stale  blocks                disk root is on this node only; a restart gives
                                                                   it LiveMigrateIfPossible
                                                                   → add --restart-stale --allow-vm-down
    ! tenant-a/legacy-1  None                shut down, stays off  runStrategy Manual: nothing starts it again;
                                                                   loses the data of scratch
                                                                   → add --allow-vm-down

    Node node-1 · refused · no VMs, 8 pods, cordoned already

    ✗ 6 pods are refused: no controller brings it back → add --force
        shop/a, shop/b, shop/c and 3 more
    ✗ pod shop/cache-0 is refused: emptyDir cache would be lost → add --delete-emptydir-data
      1 is not selected

    Warning: web-1 may take 1h to stop, longer than --timeout=30m: use --timeout=65m
    Warning: PersistentVolumes cannot be listed: what depends on them is unknown

    Blocked: 2 VMs. With --restart-stale: 1 blocked. With --restart-stale --allow-vm-down: none blocked.
    Refused: 1 VM without --allow-vm-down, 6 pods without --force, 1 pod without --delete-emptydir-data.
    Exit code of the drain: 4 (refused before anything changed: consent or a flag is missing)
    ");
}
