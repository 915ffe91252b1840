//! The live screen of a terminal: a line per VM in motion, counts for the rest, time left. [`view`] is pure; [`Screen`] draws.

use std::fmt;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::human::{Human, Output};
use super::state::{NodeState, State, activity_counts};
use super::style::{Label, Line};
use super::text::{duration, left};
use super::words::{activity_label, activity_now, activity_order};
use super::{Reporter, Streams};
use crate::event::{DrainEvent, EventKind, VmProgress};
use crate::facts::Key;

/// Shortest time between two pictures: ten a second.
const FRAME: Duration = Duration::from_millis(100);

/// The screen as lines, none wider than `cols`, together at most `rows`.
pub fn view(state: &State, elapsed: Duration, rows: usize, cols: usize) -> Vec<Line> {
    let active: Vec<&NodeState> = state.active().collect();
    let mut lines = Vec::new();
    if state.contact_lost.is_some() {
        lines.push(Line::new().with(Label::Caution, "No contact with the API server"));
    }
    // One row stays free, so that the screen never scrolls what was written above it.
    let room = rows.saturating_sub(1 + lines.len());
    let share = room / active.len().max(1);
    for node in &active {
        lines.extend(node_view(state, node, elapsed, share));
    }
    lines.truncate(rows.saturating_sub(1));
    lines.into_iter().map(|line| line.cut(cols)).collect()
}

/// A node: its heading, its VMs as far as they fit, its pods.
fn node_view(state: &State, node: &NodeState, elapsed: Duration, room: usize) -> Vec<Line> {
    let mut lines = vec![heading(state, node, elapsed)];
    let pods = if state.restarts { vms_line(node) } else { pods_line(node) };
    let room = room.saturating_sub(1 + usize::from(pods.is_some()));
    let mut vms: Vec<(&Key, &VmProgress)> = node.vms.iter().collect();
    vms.sort_by_key(|(key, vm)| (activity_order(vm.activity), vm.queue, *key));
    let shown = if vms.len() <= room { vms.len() } else { room.saturating_sub(1) };
    let (shown, folded) = vms.split_at(shown);
    let widest = shown.iter().map(|(key, _)| Line::plain(key.to_string()).width()).max().unwrap_or(0);
    for (key, vm) in shown {
        let name = Line::plain("  ").with(Label::Plain, key.to_string()).padded(2 + widest + 3);
        lines.push(name.with(activity_label(vm.activity), activity_now(vm, elapsed)));
    }
    if !folded.is_empty() {
        let counts = activity_counts(folded.iter().map(|(_, vm)| *vm)).join(", ");
        lines.push(Line::plain("  ").with(Label::Faint, format!("and {counts}")));
    }
    lines.extend(pods);
    lines
}

fn heading(state: &State, node: &NodeState, elapsed: Duration) -> Line {
    let took = duration(elapsed.saturating_sub(node.started.unwrap_or(elapsed)));
    let left = state.left(node, elapsed).map_or_else(String::new, |d| format!(", {} left", left(d)));
    let verb = if state.stopped { "Stopping" } else { "Draining" };
    let subject = if state.restarts {
        (if state.stopped { "Stopping" } else { "Restarting VMs" }).to_owned()
    } else {
        format!("{verb} {}", node.name)
    };
    let waiting = state.nodes.iter().filter(|n| n.started.is_none() && !n.ended).count();
    let queue = if waiting == 0 { String::new() } else { format!(" · {waiting} more to come") };
    Line::new().with(Label::Heading, subject).with(Label::Faint, format!(" · {took}{left}{queue}"))
}

/// `3 of 12 VMs done, 1 not restarted`.
fn vms_line(node: &NodeState) -> Option<Line> {
    let blocked = if node.blocked > 0 { format!(", {} not restarted", node.blocked) } else { String::new() };
    (node.vms_planned > 0).then(|| Line::plain("  ").with(Label::Faint, node.vms_ended() + &blocked))
}

/// `pods: 12 of 15 gone, 2 stopping, 1 waiting`.
fn pods_line(node: &NodeState) -> Option<Line> {
    let mut parts = Vec::new();
    if node.planned > 0 {
        parts.push(format!("pods: {} of {} gone", node.gone, node.planned.max(node.gone)));
    }
    parts.extend(node.pod_counts().into_iter().enumerate().map(|(i, text)| match text.split_once(' ') {
        // The noun stands at the start of the line already.
        Some((n, rest)) if i == 0 && node.planned > 0 => {
            format!("{n} {}", rest.split_once(' ').map_or(rest, |(_, verb)| verb))
        }
        _ => text,
    }));
    if node.blocked > 0 {
        parts.push(format!("{} blocked", node.blocked));
    }
    (!parts.is_empty()).then(|| Line::plain("  ").with(Label::Faint, parts.join(", ")))
}

/// Rows and columns of a terminal, asked before each picture.
pub type Size = Box<dyn Fn() -> (usize, usize)>;

/// Reporter that draws the live screen on stderr and writes lines above it. It is gone from the terminal when the run
/// has ended and when it is dropped.
pub struct Screen {
    human: Human,
    streams: Streams,
    multi: MultiProgress,
    picture: ProgressBar,
    size: Size,
    drawn: Option<Duration>,
    over: bool,
}

impl Screen {
    /// A screen on `target` (stderr). `size` tells how large it is.
    pub fn new(human: Human, streams: Streams, target: ProgressDrawTarget, size: Size) -> Self {
        let multi = MultiProgress::with_draw_target(target);
        // One bar with many lines: one picture at a time, where a bar a line would be redrawn line by line.
        let picture = multi.add(ProgressBar::no_length());
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            picture.set_style(style);
        }
        Self { human, streams, multi, picture, size, drawn: None, over: false }
    }

    /// A screen on the process's stderr.
    pub fn on_stderr(human: Human, streams: Streams, size: Size) -> Self {
        Self::new(human, streams, ProgressDrawTarget::stderr_with_hz(10), size)
    }

    /// The bars, so that log lines can be written around them by `suspend`.
    pub fn multi(&self) -> MultiProgress {
        self.multi.clone()
    }

    fn write(&mut self, output: &Output) {
        if !output.is_empty() {
            let streams = &mut self.streams;
            self.multi.suspend(|| streams.write(output));
        }
    }

    fn draw(&mut self, elapsed: Duration) {
        if self.over || self.drawn.is_some_and(|last| elapsed.saturating_sub(last) < FRAME) {
            return;
        }
        self.drawn = Some(elapsed);
        let (rows, cols) = (self.size)();
        let color = self.streams.stderr_color;
        let lines: Vec<String> =
            view(self.human.state(), elapsed, rows, cols).iter().map(|line| line.render(color)).collect();
        if lines.is_empty() {
            // A bar without text would still take a row, and the question must find none of it.
            let _ = self.multi.clear();
        } else {
            self.picture.set_message(lines.join("\n"));
            self.picture.force_draw();
        }
    }

    fn clear(&mut self) {
        self.over = true;
        self.picture.finish_and_clear();
        let _ = self.multi.clear();
    }
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Screen").field("human", &self.human).field("over", &self.over).finish_non_exhaustive()
    }
}

impl Reporter for Screen {
    fn event(&mut self, event: &DrainEvent) {
        let output = self.human.event(event);
        if matches!(event.kind, EventKind::Ended { .. }) {
            self.clear();
        }
        self.write(&output);
        self.draw(Duration::from_millis(event.elapsed_ms));
    }

    fn tick(&mut self, elapsed: Duration) {
        let output = self.human.tick(elapsed);
        self.write(&output);
        self.draw(elapsed);
    }

    fn finish(&mut self) {
        self.clear();
    }

    fn trouble(&self) -> Vec<String> {
        self.streams.trouble()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}
