//! Which command, with what.

use std::time::Duration;

use super::connection::ClientOptions;
use super::drain::{DrainOptions, DryRun, RestartStale};
use super::output::OutputOptions;
use super::selector::LabelSelector;

/// One parsed command line.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// What to do.
    pub command: Command,
    /// What to show.
    pub output: OutputOptions,
    /// How to connect.
    pub client: ClientOptions,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Drain nodes, or preview it.
    Drain(DrainOptions),
    /// Which VMs of the cluster would block, restart, stay off or stay down.
    Audit(AuditOptions),
    /// Restart the stale VMs that a restart helps, outside a drain.
    RestartStale(RestartOptions),
    /// Undo a drain.
    Cancel(CancelOptions),
    /// Print a completion script.
    Completion(Shell),
    /// Answer a request of kubectl's completion: the words after the plugin's name, the last one being typed.
    Complete(Vec<String>),
}

impl Command {
    /// The sub-command as typed; `None` for a drain.
    pub const fn word(&self) -> Option<&'static str> {
        match self {
            Self::Drain(_) => None,
            Self::Audit(_) => Some("audit"),
            Self::RestartStale(_) => Some("restart-stale"),
            Self::Cancel(_) => Some("cancel"),
            Self::Completion(_) => Some("completion"),
            Self::Complete(_) => Some("__complete"),
        }
    }
}

/// What `audit` looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditOptions {
    /// Only VMs with these labels.
    pub selector: Option<LabelSelector>,
    /// `-A`: all namespaces although the command line names one. Without it the namespace of the connection flags
    /// counts, and none means all.
    pub all_namespaces: bool,
}

/// What `restart-stale` restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestartOptions {
    /// Only VMs with these labels.
    pub selector: Option<LabelSelector>,
    /// `-A`: all namespaces although the command line names one.
    pub all_namespaces: bool,
    /// Whether this is a preview.
    pub dry_run: DryRun,
    /// Consent to the restarts.
    pub restart_stale: RestartStale,
    /// Consent to VMs that will not run afterwards by themselves.
    pub allow_vm_down: bool,
    /// Agree to lose what is in a VM's `emptyDisk` and `ephemeral` volumes.
    pub delete_emptydir_data: bool,
    /// How long the whole command may take from its first write.
    pub timeout: Duration,
}

/// What `cancel` undoes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelOptions {
    /// Node names without prefix, in the order given, without duplicates, at least one.
    pub nodes: Vec<String>,
    /// Whether this is a preview.
    pub dry_run: DryRun,
}

/// Whose completion script to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// bash.
    Bash,
    /// zsh.
    Zsh,
    /// fish.
    Fish,
    /// PowerShell.
    Powershell,
    /// kubectl's own completion: the helper program that it looks for.
    Kubectl,
}

impl Shell {
    /// Every value, in the order of the help.
    pub const ALL: [Self; 5] = [Self::Bash, Self::Zsh, Self::Fish, Self::Powershell, Self::Kubectl];

    /// The value as it stands on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Powershell => "powershell",
            Self::Kubectl => "kubectl",
        }
    }
}
