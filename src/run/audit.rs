//! `audit`: one snapshot, one look at every VM of its scope. What is said of them comes from [`crate::audit`].

use serde_json::json;

use super::clock::Clock;
use super::drain::World;
use super::session::{Session, audit_reporters};
use super::start::{api_error, before_changes, open, scope, server_info, tell_unreadable};
use super::terminal::Terminal;
use crate::audit;
use crate::cluster::{Connection, Part, ProblemKind, Snapshot, Unread, WatchOptions, Watched, snapshot_of_vms};
use crate::error::{CliError, ErrorKind};
use crate::event::EventKind;
use crate::exit::ExitCode;
use crate::facts::{Index, Scope};
use crate::forecast::vm::cluster_is_unclear;
use crate::outcome::AuditReport;
use crate::report::text::plural;
use crate::settings::{AuditOptions, Invocation};

/// Audits the cluster that the command line names.
pub(super) async fn audit(options: AuditOptions, invocation: &Invocation, terminal: Terminal) -> ExitCode {
    let scope = scope(invocation.client.namespace.as_deref(), options.all_namespaces, options.selector.as_ref());
    let detailed = invocation.output.detailed_exitcode;
    let selector = options.selector.as_ref().map(ToString::to_string);
    let document = json!({"namespace": scope.namespace, "selector": selector, "detailedExitcode": detailed});
    let clock = Clock::start();
    let reporter = match audit_reporters(&scope, selector, document, &invocation.output, &terminal, &clock) {
        Ok(reporter) => reporter,
        Err(error) => return terminal.fail(&error),
    };
    let mut session = Session::new(clock, reporter);
    let exit = match open(invocation, &mut session).await {
        Err(exit) => exit,
        Ok((connection, signals)) => {
            let world = World::unasked(connection, signals, invocation);
            audit_in(world, &scope, detailed, &mut session).await
        }
    };
    session.finish(exit, &terminal)
}

/// Audits in that world; with `detailed`, VMs that would block make it end with 3. Reports its end, but does not finish
/// the reporters.
pub async fn audit_in(mut world: World, scope: &Scope, detailed: bool, session: &mut Session) -> ExitCode {
    let looked =
        before_changes(&mut world.signals, session, async |session| look(&world.connection, scope, session).await);
    let (report, hidden) = match looked.await {
        Ok(looked) => looked,
        Err(exit) => return exit,
    };
    let blocks = report.summary.counts.blocked > 0;
    session.emit(EventKind::Audited { report });
    if hidden > 0 {
        let text =
            format!("{} cannot be read: what a drain would do to them is unknown", plural(hidden, "VMI", "VMIs"));
        let error = CliError::new(ErrorKind::Api, text).hint("the warnings above name them");
        return session.end(error.exit_code(), Some(&error));
    }
    session.end(if detailed && blocks { ExitCode::Blocked } else { ExitCode::Done }, None)
}

/// What there is to say, and how many VMIs it is not about, since they cannot be read.
async fn look(connection: &Connection, scope: &Scope, session: &mut Session) -> Result<(AuditReport, usize), CliError> {
    let options = WatchOptions { limit: connection.request_timeout(), ..WatchOptions::default() };
    // The watches are dropped unopened.
    let Snapshot { mut index, kubernetes, unread, unreadable, .. } =
        snapshot_of_vms(&connection.requests(), scope, true, options).await;
    session.emit(EventKind::Connected {
        server: server_info(connection, kubernetes, &index),
        nodes: Vec::new(),
        timeout_seconds: 0,
        started_at: session.clock.started_at(),
    });
    let mut cr_is_told = false;
    // Without KubeVirt there is nothing to look at, whatever could not be read.
    let matters = index.kubevirt_installed;
    for unread in unread.iter().filter(|_| matters) {
        tell_unread(unread, &mut index, session)?;
        cr_is_told |= unread.part == Part::Objects(Watched::KubeVirts);
    }
    tell_unreadable(unreadable, session);
    let report = audit::audit(&index, scope, session.clock.wall());
    if cluster_is_unclear(&index) && !cr_is_told && report.summary.counts.vms > 0 {
        let text = "there is no single valid KubeVirt object: what a restarted VM would get is unknown".to_owned();
        session.emit(EventKind::Noted { warning: true, text });
    }
    let hidden = index.unreadable_vmis.len();
    Ok((report, hidden))
}

/// What cannot be read ends the command where nothing can be said without it. Who may read one namespace only may still
/// ask for its VMs: then what lies in no namespace is unknown, and said to be.
fn tell_unread(unread: &Unread, index: &mut Index, session: &mut Session) -> Result<(), CliError> {
    let Unread { part, problem } = unread;
    let forbidden = problem.kind == ProblemKind::Forbidden;
    let unknown = match part {
        Part::Objects(Watched::Nodes) if forbidden => {
            index.nodes_unknown = true;
            "whether another node can take a VM is unknown"
        }
        Part::Objects(Watched::KubeVirts) if forbidden => {
            "the cluster's strategy is unknown, and with it what a restarted VM would get"
        }
        Part::Claims => "which VMs are bound to a node by their disks is unknown",
        Part::Objects(Watched::Budgets) => "which shutdowns a disruption budget would refuse is unknown",
        Part::ReplicaSets => "which strategy a new VMI of a replica set would get is unknown",
        Part::Version | Part::DaemonSets | Part::CdiNamespace => "what depends on it is unknown",
        Part::ApiGroups | Part::Objects(Watched::Nodes) => {
            return Err(api_error(&format!("cannot read {part}"), problem));
        }
        Part::Objects(
            Watched::VmPods
            | Watched::Pods(_)
            | Watched::Vmis
            | Watched::Vms
            | Watched::Migrations
            | Watched::KubeVirts,
        ) => {
            let text = format!("cannot read {part}, and without them no VM can be judged");
            return Err(api_error(&text, problem));
        }
    };
    let text = format!("cannot read {part} ({}): {unknown}", problem.message);
    session.emit(EventKind::Noted { warning: true, text });
    Ok(())
}
