//! The imperative shell: it connects, asks, draws and sends; what it does is decided elsewhere.
//!
//! ```text
//! connect → resolve nodes → snapshot → plan → rights → consent ─┬─► preview (probe) → report
//!                                                               └─► execute (machine ⇄ cluster) → report
//! ```
//!
//! `restart-stale` goes the same way, by the VMs of a scope in place of nodes. `cancel` begins in the same way; what it sends
//! comes from `undo`. `audit` ends after its snapshot: it sends nothing.

mod audit;
mod cancel;
mod carry_out;
mod clock;
mod drain;
mod execute;
mod logs;
mod perform;
mod probe;
mod refuse;
mod restart;
mod rights;
mod session;
mod start;
mod terminal;

pub use audit::audit_in;
pub use cancel::cancel_in;
pub use clock::Clock;
pub use drain::{Asker, Speller, World, drain_in};
pub use restart::restart_in;
pub use session::Session;
pub use terminal::Terminal;

use crate::cli;
use crate::error::{CliError, ErrorKind};
use crate::exit::ExitCode;
use crate::settings::{Command, Invocation};

/// Runs a parsed command line on a runtime of its own, with logs as `-v` asks for.
pub fn in_runtime(invocation: Invocation, terminal: Terminal) -> ExitCode {
    logs::start(invocation.output.verbosity, terminal.streams(invocation.output.color).stderr_color);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return terminal.fail(&CliError::new(ErrorKind::Failed, "the runtime cannot start").caused_by(error));
        }
    };
    let exit = runtime.block_on(run(invocation, terminal));
    // A question that nobody answers must not hold the process: its thread is left behind.
    runtime.shutdown_background();
    exit
}

/// Runs a parsed command line to its end. Nothing is printed but through the reporters and the terminal.
pub async fn run(invocation: Invocation, terminal: Terminal) -> ExitCode {
    match &invocation.command {
        Command::Drain(options) => drain::drain(options.clone(), &invocation, terminal).await,
        Command::Completion(shell) => terminal.print(cli::completion_script(*shell)),
        Command::Complete(words) => terminal.print(&drain::complete(words).await),
        Command::Cancel(options) => cancel::cancel(options.clone(), &invocation, terminal).await,
        Command::RestartStale(options) => restart::restart(options.clone(), &invocation, terminal).await,
        Command::Audit(options) => audit::audit(options.clone(), &invocation, terminal).await,
    }
}
