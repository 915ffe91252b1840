//! Signals as stop reasons, and the end of the process by the signal itself.
//!
//! A shell loop over nodes stops at Ctrl-C only if the command inside it dies of the signal; an exit code of 130 alone
//! would let the loop go on to the next node.

use crate::event::StopReason;
use crate::exit::ExitCode;

/// The signals that stop a run.
#[derive(Debug)]
pub struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hang_up: Option<tokio::signal::unix::Signal>,
}

impl Signals {
    /// Starts to listen; from now on the signals no longer end the process by themselves.
    pub fn listen() -> std::io::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                // Who starts it with nohup wants it to outlive the terminal.
                hang_up: if hang_up_is_ignored() { None } else { Some(signal(SignalKind::hangup())?) },
            })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// The next signal.
    pub async fn next(&mut self) -> StopReason {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => StopReason::Interrupt,
            _ = self.terminate.recv() => StopReason::Terminate,
            Some(()) = hung_up(self.hang_up.as_mut()) => StopReason::HangUp,
        }
        #[cfg(not(unix))]
        {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
            StopReason::Interrupt
        }
    }
}

#[cfg(unix)]
async fn hung_up(signal: Option<&mut tokio::signal::unix::Signal>) -> Option<()> {
    match signal {
        Some(signal) => signal.recv().await,
        None => std::future::pending().await,
    }
}

/// True where this process was started with SIGHUP ignored. Only Linux says so without asking the C library.
#[cfg(unix)]
fn hang_up_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Ends the process by the signal that the code stands for; returns only where that is impossible.
pub fn end_by_signal(code: ExitCode) {
    #[cfg(unix)]
    if let Some(number) = code.signal() {
        // Restores the default action and raises the signal.
        let _ = signal_hook::low_level::emulate_default_handler(number);
    }
    #[cfg(not(unix))]
    let _ = code;
}
