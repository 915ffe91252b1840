//! What users see, as snapshots over the seven VMs of the lab and a few plain pods.

mod audit;
mod document;
mod preview;
mod question;
mod restarts;
mod run;
// One check of the schema for what is rendered here and for what the program prints.
#[path = "../../../tests/cli/schema.rs"]
mod schema;
mod screen;
mod summary;

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use jiff::Timestamp;

use super::style::{Line, page};
use crate::event::{DrainEvent, EventKind, ServerInfo};
use crate::facts::{PodKey, Strategy};
use crate::outcome::{Cause, Counts, NameUid, NodeReport, OwnerRef, PodOutcome, PodRow, Verdict, VmOutcome, VmRow};

pub(super) fn text(lines: &[Line]) -> String {
    page(lines, false)
}

pub(super) fn started_at() -> Timestamp {
    "2026-03-01T12:00:00.25Z".parse().unwrap()
}

pub(super) fn server() -> ServerInfo {
    ServerInfo {
        context: Some("prod".into()),
        kubernetes: Some("v1.36.3".into()),
        kubevirt: Some("v1.7.0".into()),
        eviction_strategy: Some("LiveMigrateIfPossible".into()),
    }
}

pub(super) fn without_kubevirt() -> ServerInfo {
    ServerInfo { kubevirt: None, eviction_strategy: None, ..server() }
}

/// A VM of a VirtualMachine in `tenant-a`.
pub(super) fn vm(name: &str, outcome: VmOutcome, because: &str) -> VmRow {
    VmRow {
        namespace: "tenant-a".into(),
        name: name.into(),
        owner: Some(OwnerRef { kind: "VirtualMachine".into(), name: name.into() }),
        vmi_uid: format!("uid-{name}"),
        new_vmi_uid: None,
        launcher: Some(NameUid { name: format!("virt-launcher-{name}-x7k2p"), uid: format!("uid-l-{name}") }),
        run_strategy: Some("Always".into()),
        strategy_now: Some(Strategy::LiveMigrate),
        strategy_fresh: Some(Strategy::LiveMigrate),
        strategy_source: Some("template"),
        stale: Some(false),
        restart_helps: Some(false),
        migratable: Some(true),
        migratable_reason: None,
        outcome,
        cause: None,
        waiting_helps: None,
        needs: Vec::new(),
        data_loss: Vec::new(),
        node_before: Some("node-0".into()),
        node_after: None,
        marked: false,
        attempts: 0,
        because: because.into(),
        remedy: None,
    }
}

/// A VM that blocks since its strategy is out of date.
pub(super) fn stale(name: &str, why: &str) -> VmRow {
    VmRow {
        strategy_fresh: Some(Strategy::LiveMigrateIfPossible),
        strategy_source: Some("cluster"),
        stale: Some(true),
        restart_helps: Some(true),
        migratable: Some(false),
        migratable_reason: Some("DisksNotLiveMigratable".into()),
        cause: Some(Cause::VmNotMigratable),
        waiting_helps: Some(false),
        needs: vec!["--restart-stale"],
        remedy: Some("add --restart-stale".into()),
        ..vm(name, VmOutcome::Blocks, &format!("{why}; a restart gives it LiveMigrateIfPossible"))
    }
}

pub(super) fn pinned() -> VmRow {
    VmRow {
        migratable: Some(false),
        migratable_reason: Some("DisksNotLiveMigratable".into()),
        cause: Some(Cause::VmNotMigratable),
        waiting_helps: Some(false),
        remedy: Some("set the template's evictionStrategy, then restart".into()),
        ..vm("pinned-1", VmOutcome::Blocks, "disk root is ReadWriteOnce; its VM template asks for LiveMigrate")
    }
}

pub(super) fn external(outcome: VmOutcome) -> VmRow {
    VmRow {
        strategy_now: Some(Strategy::External),
        strategy_fresh: Some(Strategy::External),
        cause: Some(Cause::ExternalOwner),
        waiting_helps: Some(true),
        ..vm("ext-1", outcome, "the controller that owns it must act (nothing here can)")
    }
}

/// The seven VMs of the lab before the drain.
pub(super) fn lab_vms() -> Vec<VmRow> {
    let migrates = |name: &str| vm(name, VmOutcome::Migrates, "2 nodes can take it");
    vec![
        stale("db-0", "disk root is ReadWriteOnce"),
        external(VmOutcome::Waits),
        migrates("fail-1"),
        stale("gpu-1", "GPU; runStrategy RerunOnFailure"),
        migrates("hang-1"),
        pinned(),
        migrates("web-1"),
    ]
}

pub(super) fn pod(namespace: &str, name: &str, outcome: PodOutcome) -> PodRow {
    PodRow {
        namespace: namespace.into(),
        name: name.into(),
        uid: format!("uid-{name}"),
        outcome,
        cause: None,
        waiting_helps: None,
        needs: Vec::new(),
        budgets: Vec::new(),
        because: String::new(),
        remedy: None,
    }
}

pub(super) fn daemon(name: &str) -> PodRow {
    PodRow { cause: Some(Cause::DaemonSet), ..pod("kube-system", name, PodOutcome::Stays) }
}

/// A pod of a Deployment behind the budget `shop/web`.
pub(super) fn web(n: usize, outcome: PodOutcome, because: &str) -> PodRow {
    PodRow {
        cause: (!because.is_empty()).then_some(Cause::BudgetExhausted),
        waiting_helps: (!because.is_empty()).then_some(true),
        budgets: vec!["shop/web".into()],
        because: because.into(),
        ..pod("shop", &format!("web-7d9f-{n}"), outcome)
    }
}

/// A Deployment under a PDB, a DaemonSet and a static pod.
pub(super) fn lab_pods() -> Vec<PodRow> {
    let waits = "the budget allows 1 eviction at a time and has given it out";
    let mut pods = vec![
        daemon("cni-x1"),
        daemon("csi-x2"),
        PodRow { cause: Some(Cause::MirrorPod), ..pod("kube-system", "proxy-node-0", PodOutcome::Stays) },
        web(0, PodOutcome::Evicts, ""),
    ];
    pods.extend((1..6).map(|n| web(n, PodOutcome::Waits, waits)));
    pods
}

pub(super) fn report(verdict: Verdict, exit_code: u8, vms: Vec<VmRow>, pods: Vec<PodRow>) -> NodeReport {
    NodeReport {
        name: "node-0".into(),
        uid: "uid-node-0".into(),
        verdict,
        exit_code,
        cordoned_before: false,
        cordoned_now: false,
        elapsed_seconds: 0.0,
        counts: Counts::of(&vms, &pods),
        vms,
        pods,
        undo: None,
        warnings: Vec::new(),
        attached_volumes: Vec::new(),
        vanished: false,
    }
}

/// A report after a drain that took three minutes.
pub(super) fn result(verdict: Verdict, exit_code: u8, vms: Vec<VmRow>, pods: Vec<PodRow>) -> NodeReport {
    NodeReport { cordoned_now: true, elapsed_seconds: 184.2, ..report(verdict, exit_code, vms, pods) }
}

pub(super) fn pod_key(name: &str) -> PodKey {
    PodKey::new("shop", name, format!("uid-{name}"))
}

/// Events from (milliseconds, kind).
pub(super) fn script(events: Vec<(u64, EventKind)>) -> Vec<DrainEvent> {
    let number = |(i, (elapsed_ms, kind))| DrainEvent { seq: i as u64 + 1, elapsed_ms, kind };
    events.into_iter().enumerate().map(number).collect()
}

/// A stream whose text can be read afterwards.
#[derive(Clone, Default)]
pub(super) struct Sink(Rc<RefCell<Vec<u8>>>);

impl Sink {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).unwrap()
    }
}

impl Write for Sink {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
