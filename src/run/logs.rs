//! Logs on stderr, as `-v` asks for. Never headers, never bodies.

use tracing_subscriber::EnvFilter;

/// Starts logging: nothing below `-v=4`, requests from `-v=6` on. kube's own logs stay silent, since they print whole
/// response bodies when one cannot be read. Colour is decided by the caller: left alone, the subscriber colours files too.
pub(super) fn start(verbosity: u8, color: bool) {
    let level = match verbosity {
        0..=3 => return,
        4 | 5 => "safe_drain=debug,safe_drain::http=off",
        _ => "safe_drain=debug",
    };
    let _ = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(level))
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(color)
        .try_init();
}
