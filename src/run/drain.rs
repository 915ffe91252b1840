//! A drain from its options to its exit code: prepare, settle, then preview or execute.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{BoxFuture, join_all};
use futures::stream::BoxStream;

use super::clock::Clock;
use super::execute::execute;
use super::perform::Performer;
use super::session::{Session, reporters};
use super::start::{api_error, no_such_node, open, server_info, stopped};
use super::terminal::{Terminal, read_line};
use super::{probe, refuse, rights};
use crate::cli;
use crate::cluster::{Connection, Part, Snapshot, Unread, WatchOptions, Watched, Watches, connect, snapshot};
use crate::error::{CliError, ErrorKind};
use crate::event::{Consent as Consented, EventKind, StopReason};
use crate::exit::ExitCode;
use crate::facts::Index;
use crate::machine::{Machine, MachineOptions, Planner};
use crate::plan::consent::{Consent, ConsentOptions, Decision, Question, RestartStale, decline, grant, settle};
use crate::plan::{self, Plan, PlanOptions, build, would_exit};
use crate::report::question as ask;
use crate::report::style::page;
use crate::settings::{self, DrainOptions, DryRun, Invocation, OnAbort, Targets};
use crate::undo;

/// Evictions and restarts in flight at a time (design §8).
const MAX_IN_FLIGHT: usize = 32;
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
    let possible = terminal.stdin && terminal.stderr && !invocation.output.no_input && !options.dry_run.is_preview();
    let asker: Option<Asker> = possible.then(|| {
        let ask = move |text: String| -> BoxFuture<'static, String> {
            let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
            Box::pin(read_line())
        };
        Box::new(ask) as Asker
    });
    let invocation = invocation.clone();
    let world = World {
        connection: Arc::new(connection),
        signals,
        asker,
        own_pod_uid: std::env::var("POD_UID").ok().filter(|uid| !uid.is_empty()),
        width: terminal.stderr_width(),
        did_you_mean: Box::new(move |node| cli::did_you_mean(node, &invocation)),
    };
    drain_in(world, &options, session).await
}

/// Runs a drain in that world. Reports its end, but does not finish the reporters.
pub async fn drain_in(mut world: World, options: &DrainOptions, session: &mut Session) -> ExitCode {
    let prepared = {
        let prepare = prepare(&world.connection, world.own_pod_uid.as_ref(), &world.did_you_mean, options, session);
        tokio::select! {
            Some(reason) = world.signals.next() => Err(reason),
            prepared = prepare => Ok(prepared),
        }
    };
    match prepared {
        Err(reason) => stopped(session, reason),
        Ok(Err(error)) => session.end(error.exit_code(), Some(&error)),
        Ok(Ok(prepared)) if options.dry_run.is_preview() => preview(world, options, prepared, session).await,
        Ok(Ok(prepared)) => settle_and_execute(world, options, prepared, session).await,
    }
}

struct Prepared {
    index: Index,
    watches: Watches,
    plan: Plan,
    plan_options: PlanOptions,
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
    for (what, object, why) in unreadable {
        let text = format!("{object} ({what}) cannot be read and is left out: {why}");
        session.emit(EventKind::Noted { warning: true, text });
    }
    let mut plan_options = plan_options(options, own_pod_uid.cloned(), &nodes);
    let mut plan = build(&index, &nodes, &plan_options, session.clock.wall());
    let missing = rights::missing(&connection.requests(), &plan, options, &index)
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
    let limits = undo::limits(&index).filter(|_| moves && options.on_abort == OnAbort::Cancel);
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
fn tell_unread(unread: &Unread, session: &mut Session) -> Result<(), CliError> {
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
        Part::Objects(Watched::Budgets) | Part::Version | Part::Claims | Part::DaemonSets | Part::CdiNamespace => {
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

fn consent_options(options: &DrainOptions, question_possible: bool) -> ConsentOptions {
    let restart_stale = match options.restart_stale {
        settings::RestartStale::Unset => RestartStale::Unset,
        settings::RestartStale::Ask => RestartStale::Ask,
        settings::RestartStale::Always => RestartStale::Always,
        settings::RestartStale::Never => RestartStale::Never,
    };
    ConsentOptions { question_possible, restart_stale, allow_vm_down: options.allow_vm_down }
}

/// Shows what the same command would do without a terminal, and ends after one pass.
async fn preview(mut world: World, options: &DrainOptions, mut prepared: Prepared, session: &mut Session) -> ExitCode {
    let decision = settle(&mut prepared.plan, &consent_options(options, false));
    emit_consent(options, Consented::None, session);
    // The watches were never opened; the probes need their connections.
    drop(prepared.watches);
    if options.dry_run == DryRun::Server {
        let requests = world.connection.requests();
        let asked = tokio::select! {
            Some(reason) = world.signals.next() => return stopped(session, reason),
            asked = probe::probe(&requests, &mut prepared.plan, &prepared.index, MAX_IN_FLIGHT) => asked,
        };
        let text = format!("the API server was asked about {asked} evictions and restarts, without effect");
        session.emit(EventKind::Noted { warning: false, text });
    }
    session.emit(EventKind::Planned { nodes: prepared.plan.reports() });
    let exit = match decision {
        Decision::Refuse(_) => ExitCode::Refused,
        Decision::Go | Decision::Ask(_) => would_end(&prepared.plan, options),
    };
    session.end(exit, None)
}

/// The exit code that the plan promises.
fn would_end(plan: &Plan, options: &DrainOptions) -> ExitCode {
    if options.only_if_clear && !plan.is_clear() {
        return ExitCode::Refused;
    }
    ExitCode::from_code(would_exit(plan))
}

fn emit_consent(options: &DrainOptions, by_answer: Consented, session: &mut Session) {
    let restart_flag = options.restart_stale == settings::RestartStale::Always;
    session.emit(EventKind::Consented {
        restart_stale: if restart_flag { Consented::Flag } else { by_answer },
        vm_down: if options.allow_vm_down { Consented::Flag } else { by_answer },
    });
}

async fn settle_and_execute(
    mut world: World,
    options: &DrainOptions,
    mut prepared: Prepared,
    session: &mut Session,
) -> ExitCode {
    let consent_options = consent_options(options, world.asker.is_some());
    let decision = settle(&mut prepared.plan, &consent_options);
    let mut consent = Consent::by_flags(consent_options);
    let mut by_answer = Consented::None;
    match decision {
        Decision::Go => {}
        Decision::Refuse(refusals) => {
            session.emit(EventKind::Planned { nodes: prepared.plan.reports() });
            let error = refuse::error(&refusals);
            return session.end(error.exit_code(), Some(&error));
        }
        Decision::Ask(question) => {
            if options.only_if_clear && !prepared.plan.is_clear() {
                return not_clear(&prepared.plan, session);
            }
            // What a yes leads to, with its warnings, before the question.
            session.emit(EventKind::Planned { nodes: prepared.plan.reports() });
            let answered = tokio::select! {
                Some(reason) = world.signals.next() => return stopped(session, reason),
                answer = put(&mut world.asker, world.connection.context.as_ref(), world.width, &question) => answer,
            };
            if answered != "y" && answered != "Y" {
                decline(&mut prepared.plan, &question, &consent_options);
                emit_consent(options, Consented::Declined, session);
                session.emit(EventKind::Planned { nodes: prepared.plan.reports() });
                let error = CliError::new(ErrorKind::Refused, "not confirmed; nothing was changed")
                    .hint("--restart-stale=never drains what needs no restart; --dry-run shows the plan");
                return session.end(error.exit_code(), Some(&error));
            }
            consent = grant(&mut prepared.plan, &question, &consent_options);
            by_answer = Consented::Answer;
        }
    }
    if options.only_if_clear && !prepared.plan.is_clear() {
        return not_clear(&prepared.plan, session);
    }
    emit_consent(options, by_answer, session);
    session.emit(EventKind::Planned { nodes: prepared.plan.reports() });
    run_machine(world, options, prepared, consent, session).await
}

/// `--only-if-clear`, and something stands in the way.
fn not_clear(plan: &Plan, session: &mut Session) -> ExitCode {
    session.emit(EventKind::Planned { nodes: plan.reports() });
    let message = "something would block, and --only-if-clear is given; nothing was changed";
    let error = CliError::new(ErrorKind::Refused, message).hint("--dry-run shows what stands in the way");
    session.end(error.exit_code(), Some(&error))
}

/// Puts the question and gives the line that was typed.
async fn put(asker: &mut Option<Asker>, context: Option<&String>, width: Option<usize>, question: &Question) -> String {
    let vms = |vms: &[plan::consent::QuestionVm]| {
        let because = |vm: &plan::consent::QuestionVm| match vm.data_loss.as_slice() {
            [] => vm.because.clone(),
            lost => format!("{}; loses the data of {}", vm.because, lost.join(", ")),
        };
        vms.iter().map(|vm| ask::QuestionVm { name: vm.vm.to_string(), because: because(vm) }).collect()
    };
    let shown = ask::Question {
        context: context.cloned(),
        nodes: question.nodes.clone(),
        restarted: vms(&question.restarted),
        down: vms(&question.not_running),
        staying: vms(&question.blocking),
    };
    let text = page(&ask::question(&shown, width), false) + ask::PROMPT;
    match asker {
        Some(asker) => asker(text).await,
        None => String::new(),
    }
}

async fn run_machine(
    mut world: World,
    options: &DrainOptions,
    prepared: Prepared,
    consent: Consent,
    session: &mut Session,
) -> ExitCode {
    let Prepared { index, mut watches, plan, plan_options } = prepared;
    let machine_options = MachineOptions {
        timeout: options.timeout,
        wait_blocked: options.wait_blocked,
        skip_wait_for_delete: options.skip_wait_for_delete,
        grace_period: options.grace_period,
        parallel: options.parallel.get(),
        max_in_flight: MAX_IN_FLIGHT,
        undo_on_abort: options.on_abort == OnAbort::Cancel,
    };
    let planner = Planner { options: plan_options, consent };
    let started_at = session.clock.started_at();
    let mut machine = Machine::new(index, plan, Box::new(planner), machine_options, started_at, session.next_seq());
    let performer = Performer::new(world.connection.clone());
    let clock = session.clock;
    execute(&mut machine, &performer, &mut watches, &mut world.signals, session.reporter.as_mut(), &clock).await
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
