//! The `kubectl safe-drain` program: parse, run, end.

use std::process::ExitCode as ProcessExit;

use safe_drain::cli::{self, Exit};
use safe_drain::run::{Terminal, in_runtime};
use safe_drain::signal::end_by_signal;

fn main() -> ProcessExit {
    let terminal = Terminal::of_process();
    let code = match cli::parse(std::env::args_os().collect()) {
        Err(Exit::Text(text)) => terminal.print(&text),
        Err(Exit::Error(error)) => terminal.fail(&error),
        Ok(invocation) => in_runtime(invocation, terminal),
    };
    end_by_signal(code);
    code.into()
}
