//! The help, made from the table of flags.

use super::command::NAME;
use super::flags::{self, Arguments, Flag, Group, SUB_COMMANDS, SubCommand, Takes};
use super::kube_flags;
use crate::exit::ExitCode;

/// Columns of a terminal that has not been widened.
const WIDTH: usize = 80;

/// Where the explanations start.
const INDENT: usize = 30;

const ABOUT: &str = "\
Drain nodes whose KubeVirt VMs may block it; a superset of kubectl drain.

It plans before it touches anything and asks at most once. Then it cordons and
evicts, follows live migrations, names the cause of every refusal and whether
waiting helps, and restarts, with consent, the VMs that block only because they
carry an old eviction strategy. It always ends, by --timeout at the latest.
";

const EXAMPLES: &str = "\
Examples:
  # What would happen? Nothing is changed.
  kubectl safe-drain node-0 --dry-run

  # Drain, with one question before a VM is restarted or goes down.
  kubectl safe-drain node-0

  # In a script: consent by flag, the result as one document.
  kubectl safe-drain node-0 --restart-stale --timeout=1h -o json
";

const DIFFERENCES: &str = "\
Where it differs from kubectl drain:
  it always has a timeout (30m), and previews end after one pass
  plan, permissions and question come before the cordon, of all nodes
  a cordon that is refused ends it; a selector without a match is an error
  DaemonSet pods stay without a flag; launchers need no --delete-emptydir-data,
  but a VM that would lose an emptyDisk or ephemeral volume does
  --grace-period, --force and --disable-eviction never apply to VMs
  pods are evicted by UID, infrastructure last; it says which pods remain
  the value of --dry-run and --restart-stale follows a =, never a space
";

/// The help of a drain.
pub(super) fn drain() -> String {
    let mut text = String::from(ABOUT);
    text.push_str("\nUsage:\n  kubectl safe-drain NODE... [flags]\n  kubectl safe-drain -l SELECTOR [flags]\n");
    for sub in SUB_COMMANDS {
        text.push_str("  ");
        text.push_str(NAME);
        text.push(' ');
        text.push_str(&usage_words(sub));
        text.push('\n');
    }
    text.push('\n');
    text.push_str(EXAMPLES);
    let all = || flags::flags_of(None);
    push_group(&mut text, "VMs, consent, pace", all(), Group::Own);
    push_group(&mut text, "kubectl drain's flags", all(), Group::Drain);
    push_group(&mut text, "Output", all(), Group::Output);
    push_group(&mut text, "Help", all(), Group::Help);
    text.push('\n');
    text.push_str(DIFFERENCES);
    push_exit_codes(&mut text);
    text
}

/// The help of a sub-command.
pub(super) fn sub_command(sub: &'static SubCommand) -> String {
    let mut text = String::new();
    push_wrapped(&mut text, &format!("{}.", capitalised(sub.about)), 0, true);
    text.push_str("\nUsage:\n  ");
    text.push_str(NAME);
    text.push(' ');
    text.push_str(&usage_words(sub));
    text.push_str(" [flags]\n");
    if !sub.details.is_empty() {
        text.push('\n');
        text.push_str(sub.details);
    }
    let all = || flags::flags_of(Some(sub));
    push_group(&mut text, "Flags", all(), Group::Own);
    push_group(&mut text, "Output", all(), Group::Output);
    push_group(&mut text, "Help", all(), Group::Help);
    text
}

/// The help of the connection flags.
pub(super) fn connection() -> String {
    let mut text = String::from("kubectl's connection flags, as in `kubectl options`. They go\n");
    text.push_str("behind the name: `kubectl safe-drain --context prod NODE`.\n");
    push_group(&mut text, "Connection", kube_flags::CONNECTION.iter(), Group::Connection);
    let inert: Vec<String> = kube_flags::HIDDEN
        .iter()
        .filter(|flag| flag.group == Group::Inert)
        .map(|flag| format!("--{}", flag.name))
        .collect();
    text.push_str("\nAccepted without effect:\n");
    push_wrapped(&mut text, &inert.join(", "), 2, true);
    text.push_str("\nRefused, since they promise a failure that would not come:\n");
    let refused: Vec<String> = kube_flags::REFUSED.iter().map(|(name, _)| format!("--{name}")).collect();
    push_wrapped(&mut text, &refused.join(", "), 2, true);
    text
}

fn push_exit_codes(text: &mut String) {
    text.push_str("\nExit codes (of several the first of signal, 2, 4, 6, 1, 3, 124, 5, 0):\n");
    for (code, meaning) in ExitCode::TABLE {
        let line = format!("  {:>3}  {meaning}\n", code.code());
        text.push_str(&line);
    }
}

fn push_group(text: &mut String, title: &str, all: impl Iterator<Item = &'static Flag>, group: Group) {
    let entries: Vec<&Flag> = all.filter(|flag| flag.group == group).collect();
    if entries.is_empty() {
        return;
    }
    text.push('\n');
    text.push_str(title);
    text.push_str(":\n");
    for flag in entries {
        push_entry(text, &spelling(flag), flag.help);
    }
}

/// One name with its explanation beside it, or below it where the name is too long.
fn push_entry(text: &mut String, name: &str, help: &str) {
    text.push_str("  ");
    text.push_str(name);
    let used = 2 + name.chars().count();
    if used + 2 > INDENT {
        text.push('\n');
        push_wrapped(text, help, INDENT, true);
    } else {
        text.push_str(&" ".repeat(INDENT - used));
        push_wrapped(text, help, INDENT, false);
    }
}

/// Wraps a text at [`WIDTH`]; `fresh` says that the first line has no indent yet.
fn push_wrapped(text: &mut String, words: &str, indent: usize, fresh: bool) {
    let margin = " ".repeat(indent);
    if fresh {
        text.push_str(&margin);
    }
    let mut column = indent;
    for (index, word) in words.split_whitespace().enumerate() {
        let length = word.chars().count();
        if index > 0 && column + 1 + length > WIDTH {
            text.push('\n');
            text.push_str(&margin);
            column = indent;
        } else if index > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
}

fn spelling(flag: &Flag) -> String {
    let short = flag.short.map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
    let value = flag.value_name();
    match flag.takes {
        Takes::Nothing => format!("{short}--{}", flag.name),
        Takes::MaybeOneOf(..) => format!("{short}--{}[={value}]", flag.name),
        Takes::Text(_) | Takes::Path(_) | Takes::Number(_) | Takes::Duration(_) | Takes::Many(_) | Takes::OneOf(_) => {
            format!("{short}--{}={value}", flag.name)
        }
    }
}

fn usage_words(sub: &SubCommand) -> String {
    match sub.arguments {
        Arguments::None => sub.word.to_owned(),
        Arguments::Nodes => format!("{} NODE...", sub.word),
        Arguments::Shell => format!("{} SHELL", sub.word),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
