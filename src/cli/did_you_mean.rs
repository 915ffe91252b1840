//! A node that is not found may have been meant as a flag's value.

use super::RESERVED;
use super::command::NAME;
use super::flags;
use crate::settings::{Command, DryRun, Invocation, RestartStale};

/// What was probably meant by a node that does not exist, as a hint.
///
/// `--dry-run server` is a preview of a node called server, since the value of such a flag follows a `=`; the same for
/// `--restart-stale never` and `--force false`. `None` when the name resembles nothing.
pub fn did_you_mean(node: &str, invocation: &Invocation) -> Option<String> {
    let (dry_run, restart_stale) = match &invocation.command {
        Command::Drain(options) => (options.dry_run, options.restart_stale),
        Command::RestartStale(options) => (options.dry_run, options.restart_stale),
        Command::Cancel(options) => (options.dry_run, RestartStale::Unset),
        Command::Audit(_) | Command::Completion(_) | Command::Complete(_) => return None,
    };
    let meant = match node {
        "none" | "client" | "server" if dry_run == DryRun::Client => format!("--dry-run={node}"),
        "ask" | "always" | "never" if restart_stale == RestartStale::Always => format!("--restart-stale={node}"),
        "true" | "false" => {
            return Some(format!("did you mean the value of a flag? It follows a `=`: `--force={node}`"));
        }
        "node" | "nodes" | "no" => return Some(format!("leave the word out: `{NAME} NODE`, or `{NAME} node/NODE`")),
        _ if flags::sub_command(node).is_some() => {
            return Some(format!("did you mean the sub-command? It comes first: `{NAME} {node}`"));
        }
        _ if RESERVED.contains(&node) => return Some(format!("`{node}` is taken as a node here, see `{NAME} --help`")),
        _ => return None,
    };
    Some(format!("did you mean `{meant}`?"))
}
