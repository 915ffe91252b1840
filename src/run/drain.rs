//! A drain from its options to its plan; what follows is carried out.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use futures::stream::BoxStream;

use super::carry_out::{MAX_IN_FLIGHT, Prepared, Terms, carry_out};
use super::clock::Clock;
use super::rights;
use super::session::{Session, reporters};
use super::start::{api_error, before_changes, no_such_node, open, server_info, tell_unreadable};
use super::terminal::{Terminal, read_line};
use crate::cli;
use crate::cluster::{Connection, Part, Snapshot, Unread, WatchOptions, Watched, connect, snapshot};
use crate::error::{CliError, ErrorKind};
use crate::event::{EventKind, StopReason};
use crate::exit::ExitCode;
use crate::machine::MachineOptions;
use crate::plan::{PlanOptions, build};
use crate::report::Task;
use crate::settings::{DrainOptions, Invocation, OnAbort, Targets};
use crate::undo;

/// How long shell completion may take to ask the API server.
const COMPLETION_LIMIT: Duration = Duration::from_secs(2);

/// Answers the one question: gets its text, gives the line that was typed.
pub type Asker = Box<dyn FnMut(String) -> BoxFuture<'static, String> + Send>;

/// Knows a better spelling for a name.
pub type Speller = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What a drain happens in: the cluster, the signals, and somebody who can answer.
pub struct World {
    /// The cluster.
    pub connection: Arc<Connection>,
    /// Signals, as they come.
    pub signals: BoxStream<'static, StopReason>,
    /// Who can be asked; `None` where no question is possible.
    pub asker: Option<Asker>,
    /// UID of the pod in which the command runs.
    pub own_pod_uid: Option<String>,
    /// Columns for a question.
    pub width: Option<usize>,
    /// Better spelling for a node that was not found.
    pub did_you_mean: Speller,
}

impl World {
    /// That of the process: whoever sits at its terminal can be asked.
    pub(super) fn of_process(
        connection: Connection,
        signals: BoxStream<'static, StopReason>,
        invocation: &Invocation,
        terminal: &Terminal,
        previews: bool,
    ) -> Self {
        let possible = terminal.stdin && terminal.stderr && !invocation.output.no_input && !previews;
        let asker: Option<Asker> = possible.then(|| {
            let ask = move |text: String| -> BoxFuture<'static, String> {
                let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
                Box::pin(read_line())
            };
            Box::new(ask) as Asker
        });
        Self {
            asker,
            own_pod_uid: std::env::var("POD_UID").ok().filter(|uid| !uid.is_empty()),
            width: terminal.stderr_width(),
            ..Self::unasked(connection, signals, invocation)
        }
    }

    /// That of a command that asks nothing.
    pub(super) fn unasked(
        connection: Connection,
        signals: BoxStream<'static, StopReason>,
        invocation: &Invocation,
    ) -> Self {
        let invocation = invocation.clone();
        Self {
            connection: Arc::new(connection),
            signals,
            asker: None,
            own_pod_uid: None,
            width: None,
            did_you_mean: Box::new(move |node| cli::did_you_mean(node, &invocation)),
        }
    }
}

/// Runs a drain on the cluster that the command line names.
pub(super) async fn drain(options: DrainOptions, invocation: &Invocation, terminal: Terminal) -> ExitCode {
    let clock = Clock::start();
    let reporter = match reporters(&options, &invocation.output, &terminal, &clock) {
        Ok(reporter) => reporter,
        Err(error) => return terminal.fail(&error),
    };
    let mut session = Session::new(clock, reporter);
    let exit = connected(options, invocation, &terminal, &mut session).await;
    session.finish(exit, &terminal)
}

async fn connected(
    options: DrainOptions,
    invocation: &Invocation,
    terminal: &Terminal,
    session: &mut Session,
) -> ExitCode {
    let (connection, signals) = match open(invocation, session).await {
        Ok(opened) => opened,
        Err(exit) => return exit,
    };
    let world = World::of_process(connection, signals, invocation, terminal, options.dry_run.is_preview());
    drain_in(world, &options, session).await
}

/// Runs a drain in that world. Reports its end, but does not finish the reporters.
pub async fn drain_in(mut world: World, options: &DrainOptions, session: &mut Session) -> ExitCode {
    let prepared = before_changes(&mut world.signals, session, async |session| {
        prepare(&world.connection, world.own_pod_uid.as_ref(), &world.did_you_mean, options, session).await
    });
    match prepared.await {
        Err(exit) => exit,
        Ok(prepared) => carry_out(world, &terms(options), prepared, session).await,
    }
}

fn terms(options: &DrainOptions) -> Terms {
    Terms {
        task: Task::Drain,
        dry_run: options.dry_run,
        restart_stale: options.restart_stale,
        allow_vm_down: options.allow_vm_down,
        only_if_clear: options.only_if_clear,
        machine: MachineOptions {
            timeout: options.timeout,
            wait_blocked: options.wait_blocked,
            skip_wait_for_delete: options.skip_wait_for_delete,
            grace_period: options.grace_period,
            in_place: false,
            parallel: options.parallel.get(),
            max_in_flight: MAX_IN_FLIGHT,
            undo_on_abort: options.on_abort == OnAbort::Cancel,
        },
    }
}

async fn prepare(
    connection: &Arc<Connection>,
    own_pod_uid: Option<&String>,
    did_you_mean: &(dyn Fn(&str) -> Option<String> + Send + Sync),
    options: &DrainOptions,
    session: &mut Session,
) -> Result<Prepared, CliError> {
    let nodes = resolve(connection, &options.targets, did_you_mean).await?;
    let watch_options = WatchOptions { page_size: options.chunk_size, limit: connection.request_timeout() };
    let Snapshot { index, watches, kubernetes, unread, unreadable } =
        snapshot(&connection.requests(), &nodes, watch_options).await;
    session.emit(EventKind::Connected {
        server: server_info(connection, kubernetes, &index),
        nodes: nodes.clone(),
        timeout_seconds: options.timeout.as_secs(),
        started_at: session.clock.started_at(),
    });
    for unread in unread {
        tell_unread(&unread, session)?;
    }
    tell_unreadable(unreadable, session);
    let mut plan_options = plan_options(options, own_pod_uid.cloned(), &nodes);
    let mut plan = build(&index, &nodes, &plan_options, session.clock.wall());
    let undoes = options.on_abort == OnAbort::Cancel;
    let need = rights::Need { previews: options.dry_run.is_preview(), in_place: false, undoes, namespace: None };
    let missing = rights::missing(&connection.requests(), &plan, &need, &index)
        .await
        .map_err(|problem| api_error("permissions cannot be checked", &problem))?;
    plan_options.restart_denied = missing.restart_denied;
    if !plan_options.restart_denied.is_empty() {
        plan = build(&index, &nodes, &plan_options, session.clock.wall());
    }
    if let Some(error) = missing.error {
        return Err(error);
    }
    let moves = plan.nodes.iter().flat_map(|n| &n.vms).any(|vm| vm.row.marked || vm.action.may_mark());
    let limits = undo::limits(&index).filter(|_| moves && undoes);
    for text in plan.warnings.iter().chain(&limits) {
        session.emit(EventKind::Noted { warning: true, text: text.clone() });
    }
    Ok(Prepared { index, watches, plan, plan_options })
}

/// The nodes that the command means; all of them exist.
async fn resolve(
    connection: &Connection,
    targets: &Targets,
    did_you_mean: &(dyn Fn(&str) -> Option<String> + Send + Sync),
) -> Result<Vec<String>, CliError> {
    let requests = connection.requests();
    match targets {
        Targets::Nodes(names) => {
            let found = join_all(names.iter().map(|name| requests.get_node(name))).await;
            for (name, node) in names.iter().zip(found) {
                if node.map_err(|problem| api_error(&format!("cannot read node {name}"), &problem))?.is_none() {
                    return Err(no_such_node(name, did_you_mean));
                }
            }
            Ok(names.clone())
        }
        Targets::Selector(selector) => {
            let found = requests.list_nodes(Some(selector.as_str())).await;
            let nodes = found.map_err(|problem| api_error("cannot list nodes", &problem))?;
            if nodes.is_empty() {
                let message = format!("no node matches -l {}; nothing was changed", selector.as_str());
                return Err(CliError::new(ErrorKind::NotFound, message)
                    .hint("`kubectl get nodes --show-labels` shows their labels"));
            }
            let mut names: Vec<String> = nodes.into_iter().map(|n| n.name).collect();
            names.sort();
            Ok(names)
        }
    }
}

/// What cannot be read ends the command where the drain rests on it, and is said where only a forecast does.
pub(super) fn tell_unread(unread: &Unread, session: &mut Session) -> Result<(), CliError> {
    let Unread { part, problem } = unread;
    match part {
        Part::ApiGroups | Part::Objects(Watched::Pods(_) | Watched::VmPods | Watched::Nodes) => {
            Err(api_error(&format!("cannot read {part}; nothing was changed"), problem))
        }
        // Without them no VM can be judged: absence of KubeVirt is concluded from discovery only.
        Part::Objects(Watched::Vmis | Watched::Vms | Watched::Migrations | Watched::KubeVirts) => Err(api_error(
            &format!("cannot read {part}, and without them no VM can be judged; nothing was changed"),
            problem,
        )),
        Part::Objects(Watched::Budgets)
        | Part::Version
        | Part::Claims
        | Part::DaemonSets
        | Part::ReplicaSets
        | Part::CdiNamespace => {
            let text = format!("cannot read {part} ({}): what depends on it is unknown", problem.message);
            session.emit(EventKind::Noted { warning: true, text });
            Ok(())
        }
    }
}

fn plan_options(options: &DrainOptions, own_pod_uid: Option<String>, nodes: &[String]) -> PlanOptions {
    PlanOptions {
        force: options.force,
        ignore_daemonsets: options.ignore_daemonsets,
        delete_emptydir_data: options.delete_emptydir_data,
        disable_eviction: options.disable_eviction,
        pod_selector: options.pod_selector.as_ref().map(|s| s.selector().clone()),
        skip_wait_for_delete: options.skip_wait_for_delete,
        grace_period: options.grace_period,
        timeout: options.timeout,
        own_pod_uid,
        drained_nodes: nodes.iter().cloned().collect(),
        ..PlanOptions::default()
    }
}

/// What shell completion offers; silent and empty where the cluster does not answer in time.
pub(super) async fn complete(words: &[String]) -> String {
    let mut completion = cli::complete(words);
    if let Some(cli::Dynamic::Nodes { .. }) = &completion.dynamic {
        let nodes = async {
            let connection = connect(&completion.client).await.ok()?;
            connection.requests().list_nodes(None).await.ok()
        };
        if let Ok(Some(nodes)) = tokio::time::timeout(COMPLETION_LIMIT, nodes).await {
            completion.add(nodes.into_iter().map(|n| cli::Candidate { value: n.name, description: String::new() }));
        }
    }
    completion.render()
}
