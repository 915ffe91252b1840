//! `cancel`: undoes a drain, by rounds of looking and sending. What is sent comes from [`crate::undo`].

use std::future::Future;
use std::time::Duration;

use futures::future::join_all;
use futures::{StreamExt, TryStreamExt};
use tokio::time::{Instant, sleep, timeout_at};

use super::clock::Clock;
use super::drain::World;
use super::perform::undo_step;
use super::rights;
use super::session::{Session, undo_reporters};
use super::start::{api_error, before_changes, no_such_node, open, server_info, stopped};
use super::terminal::Terminal;
use crate::answer::UndoAnswer;
use crate::cluster::{ApiProblem, Connection, Requests, Right, missing_rights};
use crate::error::{CliError, ErrorKind};
use crate::event::EventKind;
use crate::exit::ExitCode;
use crate::facts::{Change, Delta, Index, Key};
use crate::outcome::UndoReport;
use crate::report::text::plural;
use crate::settings::{CancelOptions, DryRun, Invocation};
use crate::undo::{End, PATIENCE, Step, Undo};

/// Between two looks at what is waited for.
const PAUSE: Duration = Duration::from_secs(1);
/// Requests in flight at a time.
const PARALLEL: usize = 32;

/// Undoes a drain on the cluster that the command line names.
pub(super) async fn cancel(options: CancelOptions, invocation: &Invocation, terminal: Terminal) -> ExitCode {
    let clock = Clock::start();
    let reporter = match undo_reporters(&options, &invocation.output, &terminal, &clock) {
        Ok(reporter) => reporter,
        Err(error) => return terminal.fail(&error),
    };
    let mut session = Session::new(clock, reporter);
    let exit = match open(invocation, &mut session).await {
        Err(exit) => exit,
        Ok((connection, signals)) => {
            let world = World::unasked(connection, signals, invocation);
            cancel_in(world, &options, &mut session).await
        }
    };
    session.finish(exit, &terminal)
}

/// Undoes a drain in that world. Reports its end, but does not finish the reporters.
pub async fn cancel_in(mut world: World, options: &CancelOptions, session: &mut Session) -> ExitCode {
    let requests = world.connection.requests();
    let prepared = before_changes(&mut world.signals, session, async |session| {
        prepare(&world.connection, &world.did_you_mean, options, session).await
    });
    let (mut index, mut undos) = match prepared.await {
        Ok(prepared) => prepared,
        Err(exit) => return exit,
    };
    if options.dry_run.is_preview() {
        if options.dry_run == DryRun::Server {
            let signal = tokio::select! {
                Some(reason) = world.signals.next() => Some(reason),
                () = Box::pin(probe(&requests, &mut undos, &index, session)) => None,
            };
            if let Some(reason) = signal {
                return stopped(session, reason);
            }
        }
        return ended(&undos, &index, End::Preview, session);
    }
    let ran = tokio::select! {
        biased;
        Some(reason) = world.signals.next() => Err(reason),
        end = Box::pin(rounds(&requests, &mut undos, &mut index, session)) => Ok(end),
    };
    let end = ran.unwrap_or_else(|reason| {
        session.emit(EventKind::Stopped { reason });
        End::Stopped(reason.exit_code())
    });
    ended(&undos, &index, end, session)
}

/// Looks, checks what is named and permitted, and says what there is to undo.
async fn prepare(
    connection: &Connection,
    did_you_mean: &(dyn Fn(&str) -> Option<String> + Send + Sync),
    options: &CancelOptions,
    session: &mut Session,
) -> Result<(Index, Vec<Undo>), CliError> {
    let requests = &connection.requests();
    let (index, kubernetes) = tokio::join!(look(requests, &options.nodes), requests.server_version());
    let index =
        index.map_err(|(what, problem)| api_error(&format!("cannot read {what}; nothing was changed"), &problem))?;
    let undos: Vec<Undo> = options.nodes.iter().map(|node| Undo::new(node, &index)).collect();
    let gone = |undo: &&Undo| index.node(undo.node()).is_none();
    if let Some(unknown) = undos.iter().filter(gone).find(|undo| undo.vms().next().is_none()) {
        return Err(no_such_node(unknown.node(), did_you_mean));
    }
    session.emit(EventKind::Connected {
        server: server_info(connection, kubernetes.ok(), &index),
        nodes: options.nodes.clone(),
        timeout_seconds: PATIENCE.as_secs(),
        started_at: session.clock.started_at(),
    });
    for undo in undos.iter().filter(gone) {
        let text = format!("node {} does not exist any more, but VMs are still marked for it", undo.node());
        session.emit(EventKind::Noted { warning: true, text });
    }
    let missing = missing_rights(requests, &needed(&undos, &index)).await;
    let missing = missing.map_err(|problem| api_error("permissions cannot be checked", &problem))?;
    if !missing.is_empty() {
        return Err(rights::error(&missing));
    }
    session.emit(EventKind::UndoPlanned { nodes: reports(&undos, &index, End::Preview, 0.0) });
    Ok((index, undos))
}

/// What an undo rests on. The error names what could not be read.
async fn look(requests: &Requests, nodes: &[String]) -> Result<Index, (&'static str, ApiProblem)> {
    let kubevirt = async {
        let groups = requests.api_groups().await.map_err(|p| ("API groups", p))?;
        if !groups.contains("kubevirt.io") {
            return Ok(None);
        }
        let (vmis, migrations, crs) =
            tokio::join!(requests.list_vmis(), requests.list_migrations(), requests.list_kubevirts());
        Ok(Some((
            vmis.map_err(|p| ("virtual machine instances", p))?,
            migrations.map_err(|p| ("migrations", p))?,
            crs.map_err(|p| ("KubeVirt objects", p))?,
        )))
    };
    let (kubevirt, found) = tokio::join!(kubevirt, join_all(nodes.iter().map(|node| requests.get_node(node))));
    let mut index = Index::default();
    for node in found {
        if let Some(node) = node.map_err(|p| ("nodes", p))? {
            index.apply(Change::Node(Delta::Apply(node)));
        }
    }
    if let Some((vmis, migrations, crs)) = kubevirt? {
        index.kubevirt_installed = true;
        index.apply(Change::Vmi(Delta::Reset(vmis)));
        index.apply(Change::Migration(Delta::Reset(migrations)));
        index.apply(Change::KubeVirt(Delta::Reset(crs)));
    }
    Ok(index)
}

/// The rights that it needs. A VM that is marked may have a migration by the time that its mark is off.
fn needed(undos: &[Undo], index: &Index) -> Vec<Right> {
    let steps: Vec<Step> = undos.iter().flat_map(|undo| undo.planned(index)).collect();
    let namespaces = |marks_only: bool| {
        steps.iter().filter_map(move |step| match step {
            Step::Unmark { vmi, .. } => Some(vmi.namespace.clone()),
            Step::Delete { migration, .. } if !marks_only => Some(migration.namespace.clone()),
            Step::Delete { .. } | Step::Uncordon { .. } => None,
        })
    };
    let mut rights = Vec::new();
    rights::to_undo(&mut rights, namespaces(true), namespaces(false));
    // What is ending is looked at one by one.
    let migrations = Right::new("get", "kubevirt.io", "virtualmachineinstancemigrations");
    rights::within(&mut rights, migrations, namespaces(false));
    if steps.iter().any(|step| matches!(step, Step::Uncordon { .. })) {
        rights.push(Right::new("patch", "", "nodes"));
    }
    rights
}

/// Sends what there is to send, looks again, and so on until nothing is left that could still be undone.
async fn rounds(requests: &Requests, undos: &mut [Undo], index: &mut Index, session: &mut Session) -> End {
    let nodes: Vec<String> = undos.iter().map(|undo| undo.node().to_owned()).collect();
    let mut deadline = None;
    loop {
        let steps: Vec<Step> = undos.iter_mut().flat_map(|undo| undo.steps(index)).collect();
        let open = undos.iter().any(|undo| undo.is_open(index));
        if steps.is_empty() && !open {
            return End::Ran;
        }
        let deadline = *deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
        if Instant::now() >= deadline {
            return End::Ran;
        }
        let mut answers = futures::stream::iter(&steps)
            .map(|step| async move { (step, undo_step(requests, step, false).await) })
            .buffer_unordered(PARALLEL);
        while let Ok(Some((step, answer))) = timeout_at(deadline, answers.next()).await {
            tell(step, &answer, session);
            for undo in undos.iter_mut().filter(|undo| undo.node() == step.node()) {
                undo.answered(step, &answer);
            }
        }
        if steps.is_empty() || undos.iter().any(|undo| undo.is_open(index)) {
            let ending: Vec<Key> = undos.iter().flat_map(|undo| undo.ending(index)).collect();
            wait(requests, &ending, deadline).await;
        }
        match patiently(deadline, || look(requests, &nodes)).await {
            Ok(fresh) => *index = fresh,
            Err((what, problem)) => {
                let text = format!("cannot read {what}: {}", problem.message);
                session.emit(EventKind::Noted { warning: true, text });
                return End::Lost;
            }
        }
    }
}

/// Repeats what may yet succeed, until the deadline.
async fn patiently<T, E, F>(deadline: Instant, call: impl Fn() -> F) -> Result<T, (E, ApiProblem)>
where
    F: Future<Output = Result<T, (E, ApiProblem)>>,
{
    loop {
        match call().await {
            Err((_, problem)) if problem.may_pass() && Instant::now() < deadline => sleep(PAUSE).await,
            result => return result,
        }
    }
}

/// Waits until these migrations have ended; a pause where there is none.
async fn wait(requests: &Requests, ending: &[Key], deadline: Instant) {
    loop {
        sleep(PAUSE).await;
        if Instant::now() >= deadline {
            return;
        }
        let going: Result<Vec<bool>, ApiProblem> = futures::stream::iter(ending)
            .map(|key| async move { Ok(requests.get_migration(key).await?.is_some_and(|m| !m.is_final())) })
            .buffer_unordered(PARALLEL)
            .try_collect()
            .await;
        // What cannot be read is looked at again, with all the rest.
        if going.is_err() || going.is_ok_and(|going| !going.contains(&true)) {
            return;
        }
    }
}

/// Asks the server about each step, without effect.
async fn probe(requests: &Requests, undos: &mut [Undo], index: &Index, session: &mut Session) {
    let steps: Vec<Step> = undos.iter().flat_map(|undo| undo.planned(index)).collect();
    let answers = join_all(steps.iter().map(|step| undo_step(requests, step, true))).await;
    let text = format!("the API server was asked by {}, without effect", plural(steps.len(), "dry run", "dry runs"));
    session.emit(EventKind::Noted { warning: false, text });
    for (step, answer) in steps.iter().zip(&answers) {
        if let UndoAnswer::Doubtful { text } | UndoAnswer::Unavailable { text } = answer {
            let text = format!("{}: the server says: {text}", words(step));
            session.emit(EventKind::Noted { warning: true, text });
        } else if !matches!(answer, UndoAnswer::Done) {
            undos.iter_mut().filter(|undo| undo.node() == step.node()).for_each(|undo| undo.answered(step, answer));
        }
    }
}

/// What was done, told once.
fn tell(step: &Step, answer: &UndoAnswer, session: &mut Session) {
    if *answer != UndoAnswer::Done {
        return;
    }
    session.emit(step.clone().done());
}

fn words(step: &Step) -> String {
    match step {
        Step::Unmark { vmi, .. } => format!("the mark of VM {vmi}"),
        Step::Delete { migration, .. } => format!("migration {migration}"),
        Step::Uncordon { node, .. } => format!("the cordon of {node}"),
    }
}

fn reports(undos: &[Undo], index: &Index, end: End, elapsed: f64) -> Vec<UndoReport> {
    undos.iter().map(|undo| undo.report(index, end, elapsed)).collect()
}

/// Reports the end of each node and of the command.
fn ended(undos: &[Undo], index: &Index, end: End, session: &mut Session) -> ExitCode {
    let elapsed = if end == End::Preview { 0.0 } else { session.clock.elapsed().as_secs_f64() };
    let reports = reports(undos, index, end, elapsed);
    let signal = if let End::Stopped(code) = end { Some(code) } else { None };
    let exit = ExitCode::of_all(reports.iter().map(|r| ExitCode::from_code(r.exit_code)).chain(signal));
    for report in reports {
        session.emit(EventKind::UndoEnded { report });
    }
    let lost = CliError::new(ErrorKind::Api, "no contact with the API server: what was undone last is not known")
        .hint("the same command again tells, and undoes the rest");
    session.end(exit, (end == End::Lost).then_some(&lost))
}
