//! Every flag, as one table: the parser, the help, the completions and the search for the first word are made from it.

use super::kube_flags;

/// One flag.
#[derive(Debug)]
pub(super) struct Flag {
    /// The long name, without dashes.
    pub(super) name: &'static str,
    /// The short name.
    pub(super) short: Option<char>,
    /// What follows it.
    pub(super) takes: Takes,
    /// Where it stands in the help.
    pub(super) group: Group,
    /// What it does, in a line.
    pub(super) help: &'static str,
}

/// What follows a flag.
#[derive(Clone, Copy, Debug)]
pub(super) enum Takes {
    /// Nothing, or a boolean after `=`.
    Nothing,
    /// A text.
    Text(&'static str),
    /// A path.
    Path(&'static str),
    /// A number, which may be negative.
    Number(&'static str),
    /// A duration; one that starts with a dash is taken too, to be refused by name.
    Duration(&'static str),
    /// A text; the flag may be repeated.
    Many(&'static str),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Nothing, which means the second, or one of these words after `=`; never a word after a space.
    MaybeOneOf(&'static [&'static str], &'static str),
}

/// The groups of the help, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Those that kubectl drain does not have: VMs, consent, pace.
    Own,
    /// kubectl drain's own.
    Drain,
    /// What is shown.
    Output,
    /// kubectl's connection flags.
    Connection,
    /// Accepted without effect; not shown.
    Inert,
    /// Refused with a reason; not shown.
    Refused,
    /// Old spellings; not shown.
    Old,
    /// Help and version.
    Help,
}

impl Group {
    /// Whether help and completion show its flags.
    pub(super) const fn is_shown(self) -> bool {
        !matches!(self, Self::Inert | Self::Refused | Self::Old)
    }
}

impl Flag {
    const fn new(name: &'static str, takes: Takes, group: Group, help: &'static str) -> Self {
        Self { name, short: None, takes, group, help }
    }

    const fn short(mut self, short: char) -> Self {
        self.short = Some(short);
        self
    }

    /// Whether it may stand before a sub-command.
    pub(super) const fn is_global(&self) -> bool {
        matches!(self.group, Group::Connection | Group::Inert | Group::Refused | Group::Help)
            || matches!(self.name.as_bytes(), b"v" | b"color")
    }

    /// The value's name in the help; empty if it takes none.
    pub(super) fn value_name(&self) -> String {
        match self.takes {
            Takes::Nothing => String::new(),
            Takes::Text(name) | Takes::Path(name) | Takes::Number(name) | Takes::Duration(name) | Takes::Many(name) => {
                name.to_owned()
            }
            Takes::OneOf(words) | Takes::MaybeOneOf(words, _) => words.join("|"),
        }
    }
}

/// Shorthand for the tables.
pub(super) const fn flag(name: &'static str, takes: Takes, group: Group, help: &'static str) -> Flag {
    Flag::new(name, takes, group, help)
}

/// Shorthand for the tables, with a short name.
pub(super) const fn flag_short(
    short: char,
    name: &'static str,
    takes: Takes,
    group: Group,
    help: &'static str,
) -> Flag {
    Flag::new(name, takes, group, help).short(short)
}

const DRY_RUN_WORDS: &[&str] = &["none", "client", "server"];
const RESTART_WORDS: &[&str] = &["ask", "always", "never"];

/// The flags of a drain.
pub(super) const DRAIN: &[Flag] = &[
    flag(
        "restart-stale",
        Takes::MaybeOneOf(RESTART_WORDS, "always"),
        Group::Own,
        "restart VMs that block only for their old eviction strategy (not given: ask, or never off a terminal)",
    ),
    ALLOW_VM_DOWN,
    flag("only-if-clear", Takes::Nothing, Group::Own, "change nothing if anything would block (exit 4)"),
    flag("wait-blocked", Takes::Nothing, Group::Own, "wait till the timeout for what a human must clear"),
    flag(
        "on-abort",
        Takes::OneOf(&["leave", "cancel"]),
        Group::Own,
        "when time is up or a signal comes: leave evacuations and cordon (default), or take them back (10s at most)",
    ),
    flag("parallel", Takes::Number("N"), Group::Own, "nodes at a time (default 1)"),
    NO_INPUT,
    flag(
        "dry-run",
        Takes::MaybeOneOf(DRY_RUN_WORDS, "client"),
        Group::Drain,
        "preview: one pass, changes nothing, exit code of the drain; server also tries each eviction as a dry run",
    ),
    flag("timeout", Takes::Duration("DURATION"), Group::Drain, "limit per node from its first write (default 30m)"),
    flag_short('l', "selector", Takes::Text("SELECTOR"), Group::Drain, "drain the nodes with these labels"),
    flag("pod-selector", Takes::Text("SELECTOR"), Group::Drain, "touch only pods with these labels; the rest stays"),
    flag("force", Takes::Nothing, Group::Drain, "also evict pods that no controller brings back"),
    flag("ignore-daemonsets", Takes::Nothing, Group::Drain, "leave DaemonSet pods (default); =false refuses"),
    flag("delete-emptydir-data", Takes::Nothing, Group::Drain, "agree to lose data in emptyDir, in VMs emptyDisk"),
    flag("grace-period", Takes::Number("SECONDS"), Group::Drain, "time for each pod to stop; -1: its own (default)"),
    flag("disable-eviction", Takes::Nothing, Group::Drain, "delete pods, past their budgets; VMs are evicted"),
    flag(
        "skip-wait-for-delete-timeout",
        Takes::Number("SECONDS"),
        Group::Drain,
        "don't wait for pods terminating for longer",
    ),
    flag("chunk-size", Takes::Number("N"), Group::Drain, "page size of lists; 0: one page (default 100)"),
    flag("delete-local-data", Takes::Nothing, Group::Old, "old name of --delete-emptydir-data"),
    OUTPUT_FORMAT,
    EVENTS_FILE,
    QUIET,
];

const ALLOW_VM_DOWN: Flag =
    flag("allow-vm-down", Takes::Nothing, Group::Own, "agree to VMs that do not run again by themselves");
const OUTPUT_FORMAT: Flag = flag_short(
    'o',
    "output",
    Takes::OneOf(&["json", "yaml"]),
    Group::Output,
    "print one document in place of lines and tables",
);
const EVENTS_FILE: Flag =
    flag("events-file", Takes::Path("PATH"), Group::Output, "one JSON line per event; - is stdout, not with -o");
const QUIET: Flag =
    flag_short('q', "quiet", Takes::Nothing, Group::Output, "on stderr only warnings, questions and errors");
const NO_INPUT: Flag = flag("no-input", Takes::Nothing, Group::Own, "never ask a question");
const DRY_RUN: Flag =
    flag("dry-run", Takes::MaybeOneOf(DRY_RUN_WORDS, "client"), Group::Own, "say what would happen and change nothing");
const ALL_NAMESPACES: Flag =
    flag_short('A', "all-namespaces", Takes::Nothing, Group::Own, "all namespaces (the default without -n)");
const VM_SELECTOR: Flag =
    flag_short('l', "selector", Takes::Text("SELECTOR"), Group::Own, "only VMs with these labels");

/// Flags of every command.
pub(super) const COMMON: &[Flag] = &[
    flag(
        "color",
        Takes::OneOf(&["auto", "always", "never"]),
        Group::Output,
        "when to colour (default auto; honours NO_COLOR)",
    ),
    flag_short('v', "v", Takes::Number("N"), Group::Output, "1 plain lines, 4 debug, 6 each request (default 0)"),
    flag_short('h', "help", Takes::Nothing, Group::Help, "this text"),
    flag("help-connection", Takes::Nothing, Group::Help, "connection flags (--context, -n, --as ...)"),
    flag_short('V', "version", Takes::Nothing, Group::Help, "the version"),
];

/// A sub-command.
#[derive(Debug)]
pub(super) struct SubCommand {
    /// The word.
    pub(super) word: &'static str,
    /// What it does, in a line.
    pub(super) about: &'static str,
    /// What its help says besides; empty or whole lines.
    pub(super) details: &'static str,
    /// Its arguments.
    pub(super) arguments: Arguments,
    /// Its flags, without those of every command.
    pub(super) flags: &'static [Flag],
}

/// The words that a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arguments {
    /// None.
    None,
    /// Node names.
    Nodes,
    /// One shell.
    Shell,
}

/// The sub-commands, in the order of the help.
pub(super) const SUB_COMMANDS: &[SubCommand] = &[
    SubCommand {
        word: "audit",
        about: "which VMs would block a drain, restart, stay off or stay down, and which are stale",
        details: "\
Each running VM is judged as if its node were drained now, with the rules of a
drain; nothing is changed. Without -n it looks at all namespaces, whatever the
context's namespace is. With -n, rights in that namespace are enough: without
the right to read nodes and the KubeVirt object, what depends on them is said
to be unknown.

Exit code 0, whatever it finds; with --detailed-exitcode 3 when something would
block. 6: the VMs cannot be read.
",
        arguments: Arguments::None,
        flags: &[
            VM_SELECTOR,
            ALL_NAMESPACES,
            OUTPUT_FORMAT,
            QUIET,
            flag("detailed-exitcode", Takes::Nothing, Group::Output, "exit 3 when something would block"),
        ],
    },
    SubCommand {
        word: "restart-stale",
        about: "restart the stale VMs that a restart helps, outside a drain",
        details: "\
A VM is stale if it still runs with LiveMigrate, cannot migrate, and would get
another eviction strategy with its next start: every drain stops at it. Without
-n all namespaces are meant. No node is cordoned and nothing is evicted; a VM
may come back to its node. VMs that can migrate, or that a restart does not
help, are left alone. One question is asked before the first restart; at most
five VMs are down at a time, and the first that finds no node stops the rest.
A restart also renews an outdated launcher and applies staged changes.

Exit code 0: all restarted and running with the new strategy, or nothing to do.
3: some were not restarted. 4: consent is missing (--restart-stale), nothing was
changed. 5: a restarted VM does not run. The others are those of a drain.
",
        arguments: Arguments::None,
        flags: &[
            VM_SELECTOR,
            ALL_NAMESPACES,
            DRY_RUN,
            flag(
                "restart-stale",
                Takes::MaybeOneOf(RESTART_WORDS, "always"),
                Group::Own,
                "consent to the restarts (not given: ask; refused off a terminal)",
            ),
            flag(
                "allow-vm-down",
                Takes::Nothing,
                Group::Own,
                "agree to VMs that will not run afterwards by themselves",
            ),
            flag(
                "delete-emptydir-data",
                Takes::Nothing,
                Group::Own,
                "agree to lose data in emptyDisk and ephemeral volumes",
            ),
            flag("timeout", Takes::Duration("DURATION"), Group::Own, "limit for all of it (default 30m)"),
            NO_INPUT,
            OUTPUT_FORMAT,
            EVENTS_FILE,
            QUIET,
        ],
    },
    SubCommand {
        word: "cancel",
        about: "undo a drain: cancel its evacuations, lift the cordon that it set",
        details: "\
It takes the evacuation marks of these nodes off their VMs, ends the migrations
that belong to them, and then lifts the cordon, if safe-drain set it. What has
moved stays where it is. No VM is evicted, restarted or stopped, so nothing is
asked. It takes 30 seconds at most. A second run finds nothing to do.

Exit code 0: nothing of the drain is left. 3: something goes on that waiting
will not stop (KubeVirt before 1.7 cannot take marks off). 124: not all of it
was done in time; try again. The others are those of a drain.
",
        arguments: Arguments::Nodes,
        flags: &[DRY_RUN, NO_INPUT, OUTPUT_FORMAT, EVENTS_FILE, QUIET],
    },
    SubCommand {
        word: "completion",
        about: "print a completion script, or with kubectl the helper for kubectl's own completion",
        details: "",
        arguments: Arguments::Shell,
        flags: &[],
    },
];

/// Every flag of one command: a sub-command, or with `None` a drain.
pub(super) fn flags_of(sub: Option<&'static SubCommand>) -> impl Iterator<Item = &'static Flag> {
    sub.map_or(DRAIN, |sub| sub.flags).iter().chain(COMMON).chain(kube_flags::CONNECTION).chain(kube_flags::HIDDEN)
}

/// Every flag of every command; some stand there more than once, always with the same spelling and arity.
pub(super) fn all_flags() -> impl Iterator<Item = &'static Flag> {
    flags_of(None).chain(SUB_COMMANDS.iter().flat_map(|sub| sub.flags))
}

/// The flag of any command with this long name.
pub(super) fn by_name(name: &str) -> Option<&'static Flag> {
    all_flags().find(|flag| flag.name == name)
}

/// The flag of any command with this short name.
pub(super) fn by_short(short: char) -> Option<&'static Flag> {
    all_flags().find(|flag| flag.short == Some(short))
}

/// The sub-command of this word.
pub(super) fn sub_command(word: &str) -> Option<&'static SubCommand> {
    SUB_COMMANDS.iter().find(|sub| sub.word == word)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::mem::discriminant;

    use super::*;

    #[test]
    fn a_flag_of_several_commands_has_one_spelling_and_arity() {
        let mut seen: BTreeMap<&str, &Flag> = BTreeMap::new();
        for flag in all_flags() {
            if let Some(other) = seen.insert(flag.name, flag) {
                assert_eq!(other.short, flag.short, "{}", flag.name);
                assert_eq!(discriminant(&other.takes), discriminant(&flag.takes), "{}", flag.name);
            }
        }
    }

    #[test]
    fn a_short_name_means_one_flag() {
        let mut seen: BTreeMap<char, &str> = BTreeMap::new();
        for flag in all_flags() {
            if let Some(short) = flag.short {
                assert_eq!(*seen.entry(short).or_insert(flag.name), flag.name);
            }
        }
    }

    #[test]
    fn only_connection_flags_verbosity_and_colour_go_before_a_sub_command() {
        for name in ["context", "namespace", "v", "color", "cache-dir", "help", "token"] {
            assert!(by_name(name).unwrap().is_global(), "{name}");
        }
        for name in ["dry-run", "force", "output", "quiet", "events-file", "selector", "no-input", "restart-stale"] {
            assert!(!by_name(name).unwrap().is_global(), "{name}");
        }
    }
}
