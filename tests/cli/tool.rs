//! The program as a child process: what it is started with, what it has said so far, how it ended.

use std::fmt::Write as _;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use regex::Regex;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

/// How long anything may take that a test waits for. Only a failing test gets there.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-safe_drain");

/// Waits until something holds; panics with `what` when it never does.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "still waiting after {PATIENCE:?}: {what}");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// A user's surroundings: an empty home folder, and nothing of the machine's environment but PATH.
#[derive(Debug)]
pub(crate) struct Home {
    folder: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file and gives its path.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Any program in these surroundings, with that kubeconfig.
    pub(crate) fn command(&self, program: &str, kubeconfig: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.path()).stdin(Stdio::null());
        command.envs(self.environment(kubeconfig));
        command
    }

    /// The variables of these surroundings.
    pub(crate) fn environment(&self, kubeconfig: &Path) -> Vec<(&'static str, String)> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let mut all = vec![
            ("HOME", text(self.path())),
            ("KUBECONFIG", text(kubeconfig)),
            ("PATH", std::env::var("PATH").unwrap_or_default()),
        ];
        // Where coverage is measured, the child has to know where to leave it.
        all.extend(std::env::var("LLVM_PROFILE_FILE").ok().map(|file| ("LLVM_PROFILE_FILE", file)));
        all
    }

    /// The program with these arguments.
    pub(crate) fn tool(&self, kubeconfig: &Path, args: &[&str]) -> Command {
        let mut command = self.command(PROGRAM, kubeconfig);
        command.args(args);
        command
    }
}

/// What a child has said and how it ended.
#[derive(Debug, Default)]
struct Said {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    open: usize,
    status: Option<ExitStatus>,
}

/// A child that runs. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    pid: Pid,
    said: Arc<(Mutex<Said>, Condvar)>,
}

/// Starts a child.
pub(crate) fn start(mut command: Command) -> Running {
    // A group of its own: a signal to the group reaches the child and what it started, and nothing of the tests.
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Running::of(child)
}

/// Runs a child to its end.
pub(crate) fn run(command: Command) -> Run {
    start(command).end()
}

impl Running {
    fn of(mut child: Child) -> Self {
        let said = Arc::new((Mutex::new(Said { open: 2, ..Said::default() }), Condvar::new()));
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        collect(stdout, Arc::clone(&said), |said| &mut said.stdout);
        collect(stderr, Arc::clone(&said), |said| &mut said.stderr);
        let pid = Pid::from_child(&child);
        let waiter = Arc::clone(&said);
        thread::spawn(move || {
            let status = child.wait().unwrap();
            lock(&waiter.0).status = Some(status);
            waiter.1.notify_all();
        });
        Self { pid, said }
    }

    /// Waits until stderr has that text.
    pub(crate) fn wait_stderr(&self, text: &str) {
        self.wait(&format!("{text:?} on stderr"), |said| contains(&said.stderr, text));
    }

    /// Waits until stdout has that text.
    pub(crate) fn wait_stdout(&self, text: &str) {
        self.wait(&format!("{text:?} on stdout"), |said| contains(&said.stdout, text));
    }

    fn wait(&self, what: &str, holds: impl Fn(&Said) -> bool) {
        let said = lock(&self.said.0);
        let over = |said: &Said| said.status.is_some() && said.open == 0;
        let (said, late) = self
            .said
            .1
            .wait_timeout_while(said, PATIENCE, |said| !holds(said) && !over(said))
            .unwrap_or_else(PoisonError::into_inner);
        let shown = || format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
        assert!(!late.timed_out() && holds(&said), "never seen: {what}; {:?}\n{}", said.status, shown());
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Sends a signal to the whole group, as a terminal does at Ctrl-C.
    pub(crate) fn signal_group(&self, signal: Signal) {
        kill_process_group(self.pid, signal).unwrap();
    }

    /// Waits for the end and gives everything that was said.
    pub(crate) fn end(self) -> Run {
        self.wait("the end", |said| said.status.is_some() && said.open == 0);
        let mut said = lock(&self.said.0);
        let text = |bytes: &mut Vec<u8>| String::from_utf8(std::mem::take(bytes)).unwrap();
        Run { stdout: text(&mut said.stdout), stderr: text(&mut said.stderr), status: said.status.unwrap() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if lock(&self.said.0).status.is_none() {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }
}

fn lock(said: &Mutex<Said>) -> MutexGuard<'_, Said> {
    said.lock().unwrap_or_else(PoisonError::into_inner)
}

fn contains(bytes: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(bytes).contains(text)
}

fn collect(
    mut from: impl Read + Send + 'static,
    said: Arc<(Mutex<Said>, Condvar)>,
    which: fn(&mut Said) -> &mut Vec<u8>,
) {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            let read = from.read(&mut buffer).unwrap_or(0);
            let mut said_now = lock(&said.0);
            if read == 0 {
                said_now.open -= 1;
            } else {
                which(&mut said_now).extend_from_slice(&buffer[..read]);
            }
            said.1.notify_all();
            if read == 0 {
                return;
            }
        }
    });
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) status: ExitStatus,
}

impl Run {
    /// The exit code; panics where a signal ended it.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by a signal\n{}", self.text()))
    }

    /// The signal that ended it.
    pub(crate) fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Everything in one text: stdout, a divider, stderr, the status. Times, ports and folders are left out.
    pub(crate) fn text(&self) -> String {
        let mut text = self.stdout.clone();
        if !self.stderr.is_empty() {
            text.push_str("------- stderr -------\n");
            text.push_str(&self.stderr);
        }
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => writeln!(text, "[exit status: {code}]"),
            (None, signal) => writeln!(text, "[ended by signal {}]", signal.unwrap_or_default()),
        }
        .unwrap();
        scrub(&text)
    }

    /// Panics unless stderr has exactly one error, with at least one hint behind it, and stdout is empty.
    pub(crate) fn one_error_and_a_hint(&self) {
        let count = |word: &str| self.stderr.lines().filter(|line| line.starts_with(word)).count();
        assert_eq!(count("error: "), 1, "{}", self.text());
        assert!(count("hint: ") >= 1, "{}", self.text());
        assert!(!self.stderr.contains("panicked"), "{}", self.text());
        assert_eq!(self.stdout, "", "{}", self.text());
    }
}

/// Replaces what differs from run to run.
pub(crate) fn scrub(text: &str) -> String {
    let rules = [
        (r"\[ +\d+(\.\d+)?s\]", "[time]"),
        (r"127\.0\.0\.1:\d+", "ADDRESS"),
        (r"/[\w/.-]*/\.tmp\w{6}", "FOLDER"),
        (r"\b(web|cart|cache|agent|slow)-[a-z0-9]{10}-[a-z0-9]{5}\b", "$1-POD"),
        (r"\b(agent)-[a-z0-9]{5}\b", "$1-POD"),
        (r"\b(drained|blocked|ended) in \d+s", "$1 in TIME"),
    ];
    let mut text = text.to_owned();
    for (pattern, replacement) in rules {
        text = Regex::new(pattern).unwrap().replace_all(&text, replacement).into_owned();
    }
    text
}
