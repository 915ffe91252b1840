//! From parsed flags to [`crate::settings`]: the checks that the parser cannot make.

use std::ffi::OsString;
use std::fmt::Display;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::ArgMatches;
use clap::parser::MatchesError;
use secrecy::SecretString;

use super::command::{ARGUMENTS, NAME, parse_bool};
use super::flags::{self, SubCommand};
use super::kube_flags::REFUSED;
use crate::error::CliError;
use crate::settings::{
    AuditOptions, CancelOptions, ClientOptions, ColorChoice, Command, DEFAULT_TIMEOUT, DrainOptions, DryRun,
    EventsFile, LabelSelector, OnAbort, OutputFormat, OutputOptions, RestartOptions, RestartStale, Shell, Targets,
    parse_request_timeout, parse_timeout,
};

/// The flags of one command line. A flag that the command does not have reads as not given.
pub(super) struct Reader<'a>(pub(super) &'a ArgMatches);

type Outcome<T> = Result<T, CliError>;

impl Reader<'_> {
    /// The command. `None` is a drain.
    pub(super) fn command(&self, sub: Option<&SubCommand>) -> Outcome<Command> {
        match sub.map(|sub| sub.word) {
            Some("audit") => {
                Ok(Command::Audit(AuditOptions { selector: self.selector("selector")?, all_namespaces: self.all() }))
            }
            Some("restart-stale") => Ok(Command::RestartStale(self.restart()?)),
            Some("cancel") => {
                let nodes = self.nodes()?;
                if nodes.is_empty() {
                    return Err(CliError::usage("no node given: name the nodes whose drain shall be undone")
                        .hint(format!("`{NAME} cancel NODE...`")));
                }
                Ok(Command::Cancel(CancelOptions { nodes, dry_run: self.dry_run()? }))
            }
            Some("completion") => self.shell().map(Command::Completion),
            Some(_) | None => self.drain().map(Command::Drain),
        }
    }

    /// What to show.
    pub(super) fn output(&self) -> Outcome<OutputOptions> {
        let options = OutputOptions {
            format: self.text("output").and_then(|word| match word {
                "json" => Some(OutputFormat::Json),
                "yaml" => Some(OutputFormat::Yaml),
                _ => None,
            }),
            events_file: self.path("events-file").map(|path| match path.to_str() {
                Some("-") => EventsFile::Stdout,
                _ => EventsFile::Path(path),
            }),
            quiet: self.switch("quiet"),
            color: match self.text("color") {
                Some("always") => ColorChoice::Always,
                Some("never") => ColorChoice::Never,
                _ => ColorChoice::Auto,
            },
            detailed_exitcode: self.switch("detailed-exitcode"),
            verbosity: self.number("v", 0, i64::from(u8::MAX), "`-v 6` shows each request")?.unwrap_or(0),
            no_input: self.switch("no-input"),
        };
        if options.format.is_some() && options.events_file == Some(EventsFile::Stdout) {
            return Err(CliError::usage("`-o` and `--events-file -` both want stdout")
                .hint("write the events to a file: `--events-file events.jsonl`"));
        }
        Ok(options)
    }

    /// How to connect.
    pub(super) fn client(&self) -> Outcome<ClientOptions> {
        let owned = |name| self.text(name).map(str::to_owned);
        let secret = |name| self.text(name).map(SecretString::from);
        let options = ClientOptions {
            kubeconfig: self.path("kubeconfig"),
            context: owned("context"),
            cluster: owned("cluster"),
            user: owned("user"),
            namespace: owned("namespace"),
            server: owned("server"),
            token: secret("token"),
            username: owned("username"),
            password: secret("password"),
            as_user: owned("as"),
            as_groups: self.many("as-group"),
            as_uid: owned("as-uid"),
            as_user_extra: self.many("as-user-extra").iter().map(|text| key_value(text)).collect::<Outcome<_>>()?,
            certificate_authority: self.path("certificate-authority"),
            client_certificate: self.path("client-certificate"),
            client_key: self.path("client-key"),
            insecure_skip_tls_verify: self.switch("insecure-skip-tls-verify"),
            tls_server_name: owned("tls-server-name"),
            request_timeout: match self.raw("request-timeout") {
                None => ClientOptions::default().request_timeout,
                Some(text) => parse_request_timeout(text)
                    .map_err(|error| bad("request-timeout", text, error).hint("for example `--request-timeout=30s`"))?,
            },
        };
        if let Some(namespace) = options.namespace.as_deref().filter(|name| !is_label(name)) {
            return Err(CliError::usage(format!("`{namespace}` cannot be the name of a namespace"))
                .hint("small letters, digits and dashes, at most 63 of them"));
        }
        let extras = !options.as_groups.is_empty() || options.as_uid.is_some() || !options.as_user_extra.is_empty();
        if extras && options.as_user.is_none() {
            return Err(CliError::usage("a group, uid or extra to impersonate needs a user to impersonate")
                .hint("add `--as USER`"));
        }
        if options.insecure_skip_tls_verify && options.certificate_authority.is_some() {
            return Err(CliError::usage(
                "`--certificate-authority` would not be used with `--insecure-skip-tls-verify`",
            )
            .hint("leave out one of them"));
        }
        Ok(options)
    }

    /// Refuses the flags that promise a failure which would not come.
    pub(super) fn refuse(&self) -> Outcome<()> {
        for (name, reason) in REFUSED {
            if self.switch(name) {
                return Err(CliError::usage(format!("`--{name}` is not supported: {reason}"))
                    .hint(format!("leave `--{name}` out")));
            }
        }
        Ok(())
    }

    fn drain(&self) -> Outcome<DrainOptions> {
        let mut options = DrainOptions::new(self.targets()?);
        options.dry_run = self.dry_run()?;
        options.force = self.switch("force");
        options.ignore_daemonsets = self.given_switch("ignore-daemonsets").unwrap_or(true);
        options.delete_emptydir_data = self.switch("delete-emptydir-data") || self.switch("delete-local-data");
        let hint = "for example `--grace-period=60`; -1 is each pod's own";
        let grace: Option<i64> = self.number("grace-period", i64::MIN, i64::from(u32::MAX), hint)?;
        options.grace_period = grace.and_then(|seconds| u32::try_from(seconds).ok());
        options.timeout = self.timeout()?;
        options.pod_selector = self.selector("pod-selector")?;
        options.disable_eviction = self.switch("disable-eviction");
        let hint = "for example `--skip-wait-for-delete-timeout=60`";
        let skip: Option<i64> = self.number("skip-wait-for-delete-timeout", i64::MIN, i64::from(u32::MAX), hint)?;
        let skip = skip.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
        options.skip_wait_for_delete = skip.map(Duration::from_secs);
        let hint = "for example `--chunk-size=100`; 0 reads all at once";
        if let Some(size) = self.number("chunk-size", 0, i64::from(u32::MAX), hint)? {
            options.chunk_size = size;
        }
        options.restart_stale = self.restart_stale();
        options.allow_vm_down = self.switch("allow-vm-down");
        options.only_if_clear = self.switch("only-if-clear");
        options.wait_blocked = self.switch("wait-blocked");
        if self.text("on-abort") == Some("cancel") {
            options.on_abort = OnAbort::Cancel;
        }
        let parallel: Option<usize> = self.number("parallel", 1, i64::from(u16::MAX), "for example `--parallel=2`")?;
        if let Some(parallel) = parallel.and_then(NonZeroUsize::new) {
            options.parallel = parallel;
        }
        Ok(options)
    }

    fn restart(&self) -> Outcome<RestartOptions> {
        for name in ["selector", "namespace"] {
            if self.raw(name).is_some_and(|text| text.trim().is_empty()) {
                return Err(CliError::usage(format!("`--{name}` is empty, which would restart VMs everywhere"))
                    .hint(format!("a variable that is not set? Without `--{name}` it is all of them on purpose")));
            }
        }
        Ok(RestartOptions {
            selector: self.selector("selector")?,
            all_namespaces: self.all(),
            dry_run: self.dry_run()?,
            restart_stale: self.restart_stale(),
            allow_vm_down: self.switch("allow-vm-down"),
            delete_emptydir_data: self.switch("delete-emptydir-data"),
            timeout: self.timeout()?,
        })
    }

    /// NODE or a selector, never both and never neither.
    fn targets(&self) -> Outcome<Targets> {
        let nodes = self.nodes()?;
        match (nodes.is_empty(), self.selector("selector")?) {
            (false, None) => Ok(Targets::Nodes(nodes)),
            (true, Some(selector)) => Ok(Targets::Selector(selector)),
            (false, Some(_)) => Err(CliError::usage("cannot specify both a node name and a --selector option")
                .hint(format!("either `{NAME} {}` or `-l`", nodes.join(" ")))),
            (true, None) => {
                let message = match self.raw("selector") {
                    Some(_) => "`-l` is empty, which selects no node, and no node is named",
                    None => "no node given",
                };
                Err(CliError::usage(message)
                    .hint(format!("name the nodes, `{NAME} NODE...`, or select them, `{NAME} -l KEY=VALUE`"))
                    .hint(format!("all flags: `{NAME} --help`")))
            }
        }
    }

    /// The node names: no prefix, no duplicates, in their order.
    fn nodes(&self) -> Outcome<Vec<String>> {
        let mut nodes: Vec<String> = Vec::new();
        for word in self.0.get_many::<String>(ARGUMENTS).into_iter().flatten() {
            let name = node_name(word)?;
            if !nodes.iter().any(|node| node == name) {
                nodes.push(name.to_owned());
            }
        }
        Ok(nodes)
    }

    fn shell(&self) -> Outcome<Shell> {
        let word = self.0.get_one::<String>(ARGUMENTS).map(String::as_str);
        Shell::ALL.into_iter().find(|shell| Some(shell.as_str()) == word).ok_or_else(|| {
            let shells: Vec<&str> = Shell::ALL.iter().map(|shell| shell.as_str()).collect();
            CliError::usage("no shell given").hint(format!("one of {}", shells.join(", ")))
        })
    }

    fn dry_run(&self) -> Outcome<DryRun> {
        match self.raw("dry-run") {
            None | Some("none") => Ok(DryRun::None),
            Some("client") => Ok(DryRun::Client),
            Some("server") => Ok(DryRun::Server),
            Some(word) => match parse_bool(word) {
                Ok(true) => Ok(DryRun::Client),
                Ok(false) => Ok(DryRun::None),
                Err(reason) => Err(CliError::usage(format!("`--dry-run={word}` {reason}"))),
            },
        }
    }

    fn restart_stale(&self) -> RestartStale {
        match self.raw("restart-stale") {
            Some("ask") => RestartStale::Ask,
            Some("always") => RestartStale::Always,
            Some("never") => RestartStale::Never,
            _ => RestartStale::Unset,
        }
    }

    fn timeout(&self) -> Outcome<Duration> {
        match self.raw("timeout") {
            None => Ok(DEFAULT_TIMEOUT),
            Some(text) => parse_timeout(text).map_err(|error| bad("timeout", text, error).hint(timeout_hint(text))),
        }
    }

    fn all(&self) -> bool {
        self.switch("all-namespaces")
    }

    fn selector(&self, name: &str) -> Outcome<Option<LabelSelector>> {
        let Some(text) = self.text(name).filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        LabelSelector::parse(text).map(Some).map_err(|error| {
            bad(name, text, error)
                .hint(format!("for example `--{name} app=web` or `--{name} 'app in (web,db),!canary'`"))
        })
    }

    fn number<T: TryFrom<i64>>(&self, name: &str, least: i64, most: i64, hint: &str) -> Outcome<Option<T>> {
        let Some(text) = self.raw(name) else { return Ok(None) };
        let number: Option<i64> = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.and_then(|number| T::try_from(number).ok()).map(Some).ok_or_else(|| {
            let from = if least == i64::MIN { String::new() } else { format!(" from {least}") };
            CliError::usage(format!("`--{name}={text}` is no whole number{from} up to {most}")).hint(hint)
        })
    }

    /// A text as typed, the empty one too.
    fn raw(&self, name: &str) -> Option<&str> {
        self.one::<String>(name).map(String::as_str)
    }

    /// A text; an empty one counts as not given.
    fn text(&self, name: &str) -> Option<&str> {
        self.raw(name).filter(|text| !text.is_empty())
    }

    fn many(&self, name: &str) -> Vec<String> {
        let values = self.0.try_get_many::<String>(name).ok().flatten();
        values.into_iter().flatten().filter(|text| !text.is_empty()).cloned().collect()
    }

    /// A path; an empty one counts as not given.
    fn path(&self, name: &str) -> Option<PathBuf> {
        self.one::<OsString>(name).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    fn switch(&self, name: &str) -> bool {
        self.given_switch(name).unwrap_or(false)
    }

    fn given_switch(&self, name: &str) -> Option<bool> {
        self.one(name).copied()
    }

    /// The value of a flag; `None` if it was not given or the command does not have it.
    fn one<T: Clone + Send + Sync + 'static>(&self, name: &str) -> Option<&T> {
        debug_assert!(flags::by_name(name).is_some(), "no flag is called {name}");
        match self.0.try_get_one(name) {
            Ok(value) => value,
            Err(error) => {
                debug_assert!(matches!(error, MatchesError::UnknownArgument { .. }), "{name}: {error}");
                None
            }
        }
    }
}

/// A limit that would be taken: days in hours, where that is what was meant.
fn timeout_hint(text: &str) -> String {
    match text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok()).filter(|days| *days > 0) {
        Some(days) => {
            format!("give a limit with its unit, `--timeout=30m`; days in hours: `--timeout={}h`", u64::from(days) * 24)
        }
        None => "give a limit with its unit, `--timeout=30m`".to_owned(),
    }
}

fn bad(name: &str, text: &str, error: impl Display) -> CliError {
    CliError::usage(format!("`--{name}={text}` {error}"))
}

/// The name without `node/`, checked: it becomes a part of a path, and an empty one would name all nodes.
fn node_name(word: &str) -> Outcome<&str> {
    let name = ["node/", "nodes/", "no/"].iter().find_map(|prefix| word.strip_prefix(prefix)).unwrap_or(word);
    if name.is_empty() {
        return Err(CliError::usage(format!("a node name is empty (`{word}`)")).hint("a variable that is not set?"));
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.starts_with(edge) && name.ends_with(edge) && name.chars().all(allowed) && !name.contains("..") {
        return Ok(name);
    }
    Err(CliError::usage(format!("`{word}` cannot be the name of a node"))
        .hint("names are as in `kubectl get nodes`, each a word of its own"))
}

fn key_value(text: &str) -> Outcome<(String, String)> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(bad("as-user-extra", text, "is not of the form KEY=VALUE")),
    }
}

/// A DNS label (RFC 1123), which is what names of namespaces are.
fn is_label(name: &str) -> bool {
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&name.len()) && name.chars().all(inside) && !name.starts_with('-') && !name.ends_with('-')
}
