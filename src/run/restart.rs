//! `restart-stale`: restarts the stale VMs of a scope where they are, without a drain.

use std::sync::Arc;

use super::carry_out::{MAX_IN_FLIGHT, Prepared, Terms, carry_out};
use super::clock::Clock;
use super::drain::{World, tell_unread};
use super::rights;
use super::session::{Session, restart_reporters};
use super::start::{api_error, before_changes, open, scope, server_info, tell_unreadable};
use super::terminal::Terminal;
use crate::cluster::{Connection, Snapshot, WatchOptions, Watched, snapshot_of_vms};
use crate::error::{CliError, ErrorKind};
use crate::event::EventKind;
use crate::exit::ExitCode;
use crate::facts::{Index, Scope, VmiFacts, VmiPhase};
use crate::machine::MachineOptions;
use crate::plan::{PlanOptions, restarts};
use crate::report::Task;
use crate::report::text::{agree, names, plural};
use crate::settings::{Invocation, RestartOptions, RestartStale};

/// Restarts stale VMs of the cluster that the command line names.
pub(super) async fn restart(options: RestartOptions, invocation: &Invocation, terminal: Terminal) -> ExitCode {
    let clock = Clock::start();
    let namespace = invocation.client.namespace.as_deref();
    let reporter = match restart_reporters(&options, namespace, &invocation.output, &terminal, &clock) {
        Ok(reporter) => reporter,
        Err(error) => return terminal.fail(&error),
    };
    let mut session = Session::new(clock, reporter);
    let exit = match open(invocation, &mut session).await {
        Err(exit) => exit,
        Ok((connection, signals)) => {
            let previews = options.dry_run.is_preview();
            let world = World::of_process(connection, signals, invocation, &terminal, previews);
            restart_in(world, &options, namespace, &mut session).await
        }
    };
    session.finish(exit, &terminal)
}

/// Restarts stale VMs in that world; `namespace` is that of the connection flags. Reports its end, but does not finish the
/// reporters.
pub async fn restart_in(
    mut world: World,
    options: &RestartOptions,
    namespace: Option<&str>,
    session: &mut Session,
) -> ExitCode {
    let scope = scope(namespace, options.all_namespaces, options.selector.as_ref());
    let prepared = before_changes(&mut world.signals, session, async |session| {
        prepare(&world.connection, &scope, options, session).await
    });
    match prepared.await {
        Err(exit) => exit,
        Ok(None) => session.end(ExitCode::Done, None),
        Ok(Some(prepared)) => carry_out(world, &terms(options, namespace), prepared, session).await,
    }
}

/// The task in words for people.
pub(super) fn task(options: &RestartOptions, namespace: Option<&str>) -> Task {
    let namespace = namespace.filter(|_| !options.all_namespaces);
    let mut scope = namespace.map_or_else(|| "all namespaces".to_owned(), |name| format!("namespace {name}"));
    if let Some(selector) = &options.selector {
        scope = format!("{scope} with labels {selector}");
    }
    Task::Restart { scope }
}

fn terms(options: &RestartOptions, namespace: Option<&str>) -> Terms {
    Terms {
        task: task(options, namespace),
        dry_run: options.dry_run,
        // Restarts are all that it is for: where nobody agrees to them, nothing is left to do, and it is refused.
        restart_stale: match options.restart_stale {
            RestartStale::Unset => RestartStale::Ask,
            given @ (RestartStale::Ask | RestartStale::Always | RestartStale::Never) => given,
        },
        allow_vm_down: options.allow_vm_down,
        only_if_clear: false,
        machine: MachineOptions {
            timeout: options.timeout,
            wait_blocked: false,
            skip_wait_for_delete: None,
            grace_period: None,
            in_place: true,
            parallel: usize::MAX,
            max_in_flight: MAX_IN_FLIGHT,
            undo_on_abort: false,
        },
    }
}

/// Looks, plans and checks what is permitted. `None` where there is nothing to do.
async fn prepare(
    connection: &Arc<Connection>,
    scope: &Scope,
    options: &RestartOptions,
    session: &mut Session,
) -> Result<Option<Prepared>, CliError> {
    let requests = connection.requests();
    let watch_options = WatchOptions { limit: connection.request_timeout(), ..WatchOptions::default() };
    let Snapshot { index, watches, kubernetes, unread, unreadable } =
        snapshot_of_vms(&requests, scope, false, watch_options).await;
    session.emit(EventKind::Connected {
        server: server_info(connection, kubernetes, &index),
        nodes: Vec::new(),
        timeout_seconds: options.timeout.as_secs(),
        started_at: session.clock.started_at(),
    });
    // Without KubeVirt there is nothing to restart, whatever could not be read.
    let matters = index.kubevirt_installed;
    for unread in unread.iter().filter(|_| matters) {
        tell_unread(unread, session)?;
    }
    let hidden = unreadable.iter().filter(|(what, ..)| matches!(what, Watched::Vmis | Watched::Vms)).count();
    tell_unreadable(unreadable, session);
    let mut plan_options = PlanOptions {
        in_place: true,
        delete_emptydir_data: options.delete_emptydir_data,
        timeout: options.timeout,
        ..PlanOptions::default()
    };
    let mut plan = restarts(&index, scope, &plan_options, session.clock.wall());
    if plan.nodes.is_empty() {
        if hidden > 0 {
            let text = format!(
                "{} cannot be read: whether they need a restart is unknown",
                plural(hidden, "object", "objects")
            );
            return Err(CliError::new(ErrorKind::Api, text).hint("the warnings above name them; nothing was changed"));
        }
        nothing_to_do(&why_nothing(&index, scope), session);
        return Ok(None);
    }
    let namespace = scope.namespace.as_deref();
    let need = rights::Need { previews: options.dry_run.is_preview(), in_place: true, undoes: false, namespace };
    let missing = rights::missing(&requests, &plan, &need, &index)
        .await
        .map_err(|problem| api_error("permissions cannot be checked", &problem))?;
    if let Some(error) = missing.error.or(missing.no_restart) {
        return Err(error);
    }
    plan_options.restart_denied = missing.restart_denied;
    if !plan_options.restart_denied.is_empty() {
        plan = restarts(&index, scope, &plan_options, session.clock.wall());
    }
    for text in &plan.warnings {
        session.emit(EventKind::Noted { warning: true, text: text.clone() });
    }
    Ok(Some(Prepared { index, watches, plan, plan_options }))
}

const NO_STALE: &str = "nothing to do: no VM here needs a restart for another eviction strategy";
const NO_VM: &str = "nothing to do: no VM runs here";
const NO_KUBEVIRT: &str = "nothing to do: KubeVirt is not installed in this cluster";

/// Why there is nothing to do. VMs that are starting may be those of an earlier run.
fn why_nothing(index: &Index, scope: &Scope) -> String {
    if !index.kubevirt_installed {
        return NO_KUBEVIRT.to_owned();
    }
    let starts = |phase: VmiPhase| !matches!(phase, VmiPhase::Running) && !phase.is_final();
    let (vms, starting): (Vec<&VmiFacts>, Vec<&VmiFacts>) = scope.vmis(index).partition(|vmi| !starts(vmi.phase));
    if vms.is_empty() && starting.is_empty() {
        return NO_VM.to_owned();
    }
    let listed: Vec<String> = starting.iter().map(|vmi| vmi.key.to_string()).collect();
    match listed.len() {
        0 => NO_STALE.to_owned(),
        n => format!(
            "{NO_STALE}; {} still {}: {}",
            plural(n, "VM", "VMs"),
            agree(n, "starts", "start"),
            names(&listed, 8)
        ),
    }
}

fn nothing_to_do(why: &str, session: &mut Session) {
    session.emit(EventKind::Planned { nodes: Vec::new() });
    session.emit(EventKind::Noted { warning: false, text: why.to_owned() });
}
