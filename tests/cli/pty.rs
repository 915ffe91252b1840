//! The program on a terminal: what is on the screen is what a user would see.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use portable_pty::{CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use vt100::Parser;

use crate::tool::{Home, PATIENCE, PROGRAM};

/// What came out so far.
struct Seen {
    screen: Parser,
    raw: Vec<u8>,
    closed: bool,
    status: Option<ExitStatus>,
}

/// The program on a terminal of its own.
pub(crate) struct Terminal {
    seen: Arc<(Mutex<Seen>, Condvar)>,
    keyboard: Box<dyn Write + Send>,
    killer: Box<dyn portable_pty::ChildKiller + Send + Sync>,
    _master: Box<dyn MasterPty + Send>,
}

/// What is left on a terminal after the program.
pub(crate) struct Left {
    /// The screen as text.
    pub(crate) screen: String,
    /// Everything that was written, control sequences included.
    pub(crate) raw: String,
    /// True if the cursor can be seen.
    pub(crate) cursor: bool,
    /// How the program ended.
    pub(crate) status: ExitStatus,
}

impl Terminal {
    /// Starts the program on a terminal of 40 rows and 120 columns.
    pub(crate) fn start(home: &Home, kubeconfig: &Path, args: &[&str], environment: &[(&str, &str)]) -> Self {
        let (rows, cols) = (40, 120);
        let pair = native_pty_system().openpty(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
        let mut command = CommandBuilder::new(PROGRAM);
        command.args(args);
        command.env_clear();
        command.cwd(home.path());
        command.env("TERM", "xterm-256color");
        for (name, value) in home.environment(kubeconfig) {
            command.env(name, value);
        }
        for (name, value) in environment {
            command.env(name, value);
        }
        let mut child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let killer = child.clone_killer();
        let seen = Seen { screen: Parser::new(rows, cols, 0), raw: Vec::new(), closed: false, status: None };
        let seen = Arc::new((Mutex::new(seen), Condvar::new()));
        let mut output = pair.master.try_clone_reader().unwrap();
        let reader = Arc::clone(&seen);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // A terminal without a program is an error on Linux and an end elsewhere.
            while let Some(read) = output.read(&mut buffer).ok().filter(|read| *read > 0) {
                let mut seen = lock(&reader.0);
                seen.screen.process(&buffer[..read]);
                seen.raw.extend_from_slice(&buffer[..read]);
                reader.1.notify_all();
            }
            lock(&reader.0).closed = true;
            reader.1.notify_all();
        });
        let waiter = Arc::clone(&seen);
        thread::spawn(move || {
            let status = child.wait().unwrap();
            lock(&waiter.0).status = Some(status);
            waiter.1.notify_all();
        });
        let keyboard = pair.master.take_writer().unwrap();
        Self { seen, keyboard, killer, _master: pair.master }
    }

    /// Types something.
    pub(crate) fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// Waits until the screen shows all of these texts at once, and gives it.
    pub(crate) fn shows(&self, texts: &[&str]) -> String {
        let all = |seen: &Seen| texts.iter().all(|text| picture(seen).contains(text));
        picture(&self.wait(&format!("{texts:?}"), all))
    }

    fn wait(&self, what: &str, holds: impl Fn(&Seen) -> bool) -> MutexGuard<'_, Seen> {
        let seen = lock(&self.seen.0);
        let over = |seen: &Seen| seen.closed && seen.status.is_some();
        let (seen, late) = self
            .seen
            .1
            .wait_timeout_while(seen, PATIENCE, |seen| !holds(seen) && !over(seen))
            .unwrap_or_else(PoisonError::into_inner);
        let screen = || picture(&seen);
        assert!(!late.timed_out() && holds(&seen), "never seen: {what}; {:?}\n{}", seen.status, screen());
        seen
    }

    /// Waits for the end.
    pub(crate) fn end(self) -> Left {
        let seen = self.wait("the end", |seen| seen.closed && seen.status.is_some());
        Left {
            screen: picture(&seen),
            raw: String::from_utf8_lossy(&seen.raw).into_owned(),
            cursor: !seen.screen.screen().hide_cursor(),
            status: seen.status.clone().unwrap(),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if lock(&self.seen.0).status.is_none() {
            let _ = self.killer.kill();
        }
    }
}

/// The rows of the screen, as one would read them: a row that fills the width does not run into the next.
fn picture(seen: &Seen) -> String {
    let screen = seen.screen.screen();
    let rows: Vec<String> = screen.rows(0, screen.size().1).map(|row| row.trim_end().to_owned()).collect();
    rows.join("\n").trim_end().to_owned()
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
