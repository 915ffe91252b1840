//! How every command that needs the cluster begins: signals, connection, and the errors of that.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, unfold};

use super::session::Session;
use crate::cluster::{ApiProblem, ConnectError, Connection, Watched, connect};
use crate::error::{CliError, ErrorKind};
use crate::event::{EventKind, ServerInfo, StopReason};
use crate::exit::ExitCode;
use crate::facts::{Index, KubeVirtState, Scope};
use crate::settings::{Invocation, LabelSelector};
use crate::signal::Signals;

/// How long a signal may come after the failure that it has caused.
const SIGNAL_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Listens for signals and connects. The error is an end that has been reported.
pub(super) async fn open(
    invocation: &Invocation,
    session: &mut Session,
) -> Result<(Connection, BoxStream<'static, StopReason>), ExitCode> {
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => {
            let error = CliError::new(ErrorKind::Failed, "cannot listen for signals").caused_by(error);
            return Err(session.end(error.exit_code(), Some(&error)));
        }
    };
    let mut signals = unfold(signals, async |mut signals| Some((signals.next().await, signals))).boxed();
    let connection = tokio::select! {
        biased;
        Some(reason) = signals.next() => return Err(stopped(session, reason)),
        connection = connect(&invocation.client) => connection,
    };
    match connection {
        Ok(connection) => Ok((connection, signals)),
        Err(error) => {
            // A Ctrl-C ends a credential plugin, too, which may be heard of first: then the signal is what counts.
            if !error.is_configuration()
                && let Ok(Some(reason)) = tokio::time::timeout(SIGNAL_AFTER_FAILURE, signals.next()).await
            {
                return Err(stopped(session, reason));
            }
            let error = connect_error(&error);
            Err(session.end(error.exit_code(), Some(&error)))
        }
    }
}

/// The VMs that a command means: those of the namespace that the command line names, and without one all of them.
pub(super) fn scope(namespace: Option<&str>, all_namespaces: bool, selector: Option<&LabelSelector>) -> Scope {
    Scope {
        namespace: namespace.filter(|_| !all_namespaces).map(str::to_owned),
        selector: selector.map(|selector| selector.selector().clone()),
    }
}

/// Does what comes before anything is changed, unless a signal comes first. The error is an end that has been reported.
pub(super) async fn before_changes<T>(
    signals: &mut BoxStream<'static, StopReason>,
    session: &mut Session,
    work: impl AsyncFnOnce(&mut Session) -> Result<T, CliError>,
) -> Result<T, ExitCode> {
    let done = {
        let work = Box::pin(work(session));
        tokio::select! {
            Some(reason) = signals.next() => Err(reason),
            done = work => Ok(done),
        }
    };
    match done {
        Err(reason) => Err(stopped(session, reason)),
        Ok(Err(error)) => Err(session.end(error.exit_code(), Some(&error))),
        Ok(Ok(done)) => Ok(done),
    }
}

/// A signal before anything was changed.
pub(super) fn stopped(session: &mut Session, reason: StopReason) -> ExitCode {
    session.emit(EventKind::Stopped { reason });
    session.emit(EventKind::Noted { warning: false, text: "nothing was changed".to_owned() });
    session.end(reason.exit_code(), None)
}

/// A node that the command names and that does not exist.
pub(super) fn no_such_node(name: &str, did_you_mean: &(dyn Fn(&str) -> Option<String> + Send + Sync)) -> CliError {
    let error = CliError::new(ErrorKind::NotFound, format!("node \"{name}\" not found; nothing was changed"));
    error.hint(did_you_mean(name).unwrap_or_else(|| "`kubectl get nodes` lists them".to_owned()))
}

/// The servers, as they are told.
pub(super) fn server_info(connection: &Connection, kubernetes: Option<String>, index: &Index) -> ServerInfo {
    let (kubevirt, eviction_strategy) = match index.kubevirt() {
        KubeVirtState::One(cr) => {
            let strategy = cr.strategy.as_ref().map_or_else(|| "None".to_owned(), ToString::to_string);
            (Some(cr.version.clone().unwrap_or_else(|| "unknown version".to_owned())), Some(strategy))
        }
        KubeVirtState::Unclear => (Some("unknown version".to_owned()), None),
        KubeVirtState::Absent => (None, None),
    };
    ServerInfo { context: connection.context.clone(), kubernetes, kubevirt, eviction_strategy }
}

fn connect_error(error: &ConnectError) -> CliError {
    let kind = if error.is_configuration() { ErrorKind::Kubeconfig } else { ErrorKind::Api };
    let told = CliError::new(kind, error.to_string());
    match error.hint() {
        Some(hint) => told.hint(hint),
        None => told,
    }
}

/// Objects that are not as their kind says are left out, and said.
pub(super) fn tell_unreadable(unreadable: Vec<(Watched, String, String)>, session: &mut Session) {
    for (what, object, why) in unreadable {
        let text = format!("{object} ({what}) cannot be read and is left out: {why}");
        session.emit(EventKind::Noted { warning: true, text });
    }
}

/// An API call that failed before anything was changed.
pub(super) fn api_error(what: &str, problem: &ApiProblem) -> CliError {
    let told = CliError::new(ErrorKind::Api, format!("{what}: {}", problem.message));
    match &problem.hint {
        Some(hint) => told.hint(hint.clone()),
        None => told,
    }
}
