//! Sub-commands, reserved words, help and completion.

use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::settings::{DryRun, RestartStale, Shell};

#[test]
fn a_sub_command_counts_only_as_the_first_word() {
    assert_eq!(parsed("audit").command.word(), Some("audit"));
    assert_eq!(parsed("restart-stale").command.word(), Some("restart-stale"));
    assert_eq!(parsed("cancel n1").command.word(), Some("cancel"));
    assert_eq!(nodes("node/audit"), ["audit"]);
    assert_eq!(nodes("n1 audit"), ["n1", "audit"]);
    assert_eq!(nodes("n1 --force audit"), ["n1", "audit"]);
    assert_eq!(nodes("-- audit"), ["audit"]);
    assert_eq!(nodes("--dry-run -- cancel"), ["cancel"]);
}

#[test]
fn a_connection_flag_before_a_sub_command_reaches_it() {
    for line in ["--context x audit", "--context=x audit", "audit --context x", "-v 5 --color never --context x audit"]
    {
        let invocation = parsed(line);
        assert_eq!(invocation.command.word(), Some("audit"), "{line}");
        assert_eq!(invocation.client.context.as_deref(), Some("x"), "{line}");
    }
    assert_eq!(client("-n a audit").namespace.as_deref(), Some("a"));
    assert_eq!(output("-v 5 audit").verbosity, 5);
}

#[test]
fn a_drain_flag_before_a_sub_command_is_refused() {
    assert_refused(
        "--dry-run cancel n1",
        &["`--dry-run` stands before `cancel`", "kubectl safe-drain cancel ... --dry-run", "node/cancel"],
    );
    assert_refused("--force audit", &["`audit` has no such flag"]);
    for line in ["-o json audit", "-q audit", "--timeout=5m restart-stale", "-l a=b audit", "--no-input cancel n1"] {
        assert_refused(line, &["stands before"]);
    }
}

#[test]
fn reserved_first_words_are_answered_with_the_command_to_type() {
    let cases = [
        ("plan n1 n2", "`kubectl safe-drain n1 n2 --dry-run`"),
        ("preview", "`kubectl safe-drain NODE --dry-run`"),
        ("drain n1", "`kubectl safe-drain n1`"),
        ("cordon n1", "`kubectl cordon n1`"),
        ("uncordon n1", "`kubectl uncordon n1`"),
        ("status", "`kubectl safe-drain NODE --dry-run`"),
        ("version", "`kubectl safe-drain --version`"),
        ("help", "`kubectl safe-drain --help`"),
        ("--context x --dry-run plan n1", "`kubectl safe-drain n1 --dry-run`"),
    ];
    for (line, expected) in cases {
        assert_refused(line, &["is no sub-command", expected, "kubectl safe-drain node/"]);
    }
    assert_eq!(nodes("node/plan"), ["plan"]);
    assert_eq!(nodes("n1 plan"), ["n1", "plan"]);
    assert_eq!(nodes("-- plan"), ["plan"]);
}

#[test]
fn sub_commands_take_their_own_flags() {
    let Command::Audit(options) = parsed("audit -l a=b -A -o json").command else { panic!("no audit") };
    assert!(options.all_namespaces && options.selector.is_some());
    let line = "restart-stale -l a=b --dry-run --restart-stale --allow-vm-down --delete-emptydir-data --timeout 5m";
    let Command::RestartStale(options) = parsed(line).command else { panic!("no restart") };
    assert_eq!(options.dry_run, DryRun::Client);
    assert_eq!(options.restart_stale, RestartStale::Always);
    assert!(options.allow_vm_down && options.delete_emptydir_data && options.selector.is_some());
    assert_refused("restart-stale n1", &["unexpected argument `n1`", "-l SELECTOR", "n1 --restart-stale`"]);
    assert_eq!(options.timeout, Duration::from_secs(300));
    let Command::Cancel(options) = parsed("cancel --dry-run=server node/n1 n2").command else { panic!("no cancel") };
    assert_eq!(options.nodes, ["n1", "n2"]);
    assert_eq!(options.dry_run, DryRun::Server);
    assert_refused("cancel", &["no node given", "kubectl safe-drain cancel NODE"]);
    assert_refused("audit n1", &["unexpected argument `n1`"]);
}

#[test]
fn completion_takes_one_shell() {
    for shell in Shell::ALL {
        let command = parsed(&format!("completion {}", shell.as_str())).command;
        assert_eq!(command, Command::Completion(shell));
    }
    assert_refused("completion", &["no shell given", "bash, zsh, fish, powershell, kubectl"]);
    assert_refused("completion tcsh", &["`tcsh`", "bash, zsh, fish, powershell, kubectl"]);
    assert!(completion_script(Shell::Kubectl).contains("exec kubectl safe-drain __complete \"$@\""));
}

#[test]
fn the_completion_helper_passes_its_words_on_unread() {
    let words = vec!["--dry-run".to_owned(), "--help".to_owned(), String::new()];
    assert_eq!(parsed("__complete --dry-run --help ''").command, Command::Complete(words.clone()));
    let mut args = split("--dry-run --help ''");
    args[0] = OsString::from("/x/bin/kubectl_complete-safe_drain");
    assert_eq!(parse(args).unwrap().command, Command::Complete(words));
}

#[test]
fn help_and_version_are_texts() {
    for line in ["-h", "--help", "n1 --force --help", "--bogus -h"] {
        assert!(text(line).contains("kubectl safe-drain NODE... [flags]"), "{line}");
    }
    assert!(text("completion -h").contains("kubectl safe-drain completion SHELL [flags]"));
    let help = text("cancel -h");
    for part in ["kubectl safe-drain cancel NODE... [flags]", "--dry-run[=none|client|server]", "30 seconds at most"] {
        assert!(help.contains(part), "{help}");
    }
    let help = text("restart-stale -h");
    for part in
        ["kubectl safe-drain restart-stale [flags]", "--restart-stale[=ask|always|never]", "No node is cordoned"]
    {
        assert!(help.contains(part), "{help}");
    }
    let help = text("audit -h");
    for part in ["kubectl safe-drain audit [flags]", "--detailed-exitcode", "-A, --all-namespaces", "-l, --selector"] {
        assert!(help.contains(part), "{help}");
    }
    for line in ["-V", "--version", "n1 -V"] {
        assert_eq!(text(line), format!("kubectl safe-drain {}\n", env!("CARGO_PKG_VERSION")), "{line}");
    }
    assert!(text("--help-connection").contains("--as-user-extra=KEY=VALUE"));
    assert_refused("-- --help", &["cannot be the name of a node"]);
}

#[test]
fn help_shows_every_flag_and_every_exit_code() {
    let shows = |help: &str, flag: &flags::Flag| {
        let short = flag.short.map_or_else(String::new, |short| format!("-{short}, "));
        let spelling = format!("{short}--{}", flag.name);
        help.lines()
            .any(|line| line.trim_start().split(['=', '[']).next().unwrap().split("  ").next() == Some(&spelling))
    };
    let help = text("--help");
    for flag in flags::flags_of(None) {
        let expected = flag.group.is_shown() && flag.group != flags::Group::Connection;
        assert_eq!(shows(&help, flag), expected, "{}", flag.name);
    }
    let connection = text("--help-connection");
    for flag in kube_flags::CONNECTION {
        assert!(shows(&connection, flag), "{}", flag.name);
    }
    for flag in kube_flags::HIDDEN {
        assert!(connection.contains(&format!("--{}", flag.name)), "{}", flag.name);
    }
    for (code, meaning) in ExitCode::TABLE {
        assert!(help.contains(&format!("{:>5}  {meaning}\n", code.code())), "{code:?}");
    }
}

#[test]
fn help_fits_a_terminal_of_80_columns() {
    for line in ["--help", "--help-connection", "audit -h", "restart-stale -h", "cancel -h", "completion -h"] {
        for shown in text(line).lines() {
            assert!(shown.chars().count() <= 80, "{line}: {shown}");
        }
    }
}

#[cfg(unix)]
#[test]
fn what_is_not_utf8_is_refused_unless_it_is_a_path() {
    use std::os::unix::ffi::OsStringExt;
    let odd = || OsString::from_vec(vec![b'n', 0xff]);
    let mut node = args(&[]);
    node.push(odd());
    assert!(matches!(parse(node), Err(Exit::Error(error)) if error.message().contains("not valid UTF-8")));
    let mut path = args(&["n1", "--kubeconfig"]);
    path.push(odd());
    assert_eq!(parse(path).unwrap().client.kubeconfig, Some(PathBuf::from(odd())));
}

proptest::proptest! {
    /// The line is read twice, by us for the first word and by clap for all of it; they have to agree on what a word
    /// is, or a value becomes a node.
    #[test]
    fn our_reading_and_claps_agree_on_the_words(picked in proptest::collection::vec(0..TOKENS.len(), 1..7)) {
        let words: Vec<&str> = picked.iter().map(|index| TOKENS[*index]).collect();
        let line = Line::read(words.iter().map(OsString::from));
        let plain: Vec<&str> = line.plain.iter().map(|index| words[*index]).collect();
        match parse(args(&words)) {
            Ok(Invocation { command: Command::Drain(DrainOptions { targets: Targets::Nodes(nodes), .. }), .. }) => {
                let mut expected: Vec<&str> = Vec::new();
                for word in plain {
                    if !expected.contains(&word) {
                        expected.push(word);
                    }
                }
                proptest::prop_assert_eq!(nodes, expected);
            }
            Ok(Invocation { command, .. }) => {
                if let Some(word) = command.word() {
                    proptest::prop_assert_eq!(Some(&word), plain.first());
                }
            }
            Err(_) => {}
        }
    }
}

/// Words that are a flag, a value or a node, whichever comes before them.
const TOKENS: [&str; 26] = [
    "n1",
    "n2",
    "audit",
    "cancel",
    "a",
    "5",
    "-1",
    "1m",
    "true",
    "server",
    "--",
    "--context",
    "--context=x",
    "-n",
    "-nx",
    "-v",
    "-v5",
    "-qv",
    "-q",
    "--force",
    "--dry-run",
    "--restart-stale",
    "--grace-period",
    "--timeout",
    "--chunk_size",
    "-l",
];
