//! The completion scripts, as they are in `completions/`.

use crate::settings::Shell;

/// The name of the program that kubectl looks for to complete `kubectl safe-drain`.
pub const COMPLETION_HELPER: &str = "kubectl_complete-safe_drain";

/// The script of this shell.
pub const fn completion_script(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => include_str!("../../completions/kubectl-safe_drain.bash"),
        Shell::Zsh => include_str!("../../completions/_kubectl-safe_drain"),
        Shell::Fish => include_str!("../../completions/kubectl-safe_drain.fish"),
        Shell::Powershell => include_str!("../../completions/_kubectl-safe_drain.ps1"),
        Shell::Kubectl => KUBECTL,
    }
}

/// The helper with its instructions: the lines of `completions/kubectl_complete-safe_drain`, commented.
const KUBECTL: &str = r#"#!/bin/sh
# kubectl (1.26 and later) completes `kubectl safe-drain` by running a program
# called kubectl_complete-safe_drain. Save this text under that name in a
# directory of your PATH and make it executable, for example next to the plugin:
#
#   dir=${KREW_ROOT:-$HOME/.krew}/bin
#   kubectl safe-drain completion kubectl > "$dir/kubectl_complete-safe_drain"
#   chmod +x "$dir/kubectl_complete-safe_drain"
#
# The completion of kubectl itself has to be set up: kubectl completion --help
exec kubectl safe-drain __complete "$@"
"#;
