use std::time::Duration;

use indicatif::{InMemoryTerm, ProgressDrawTarget};

use super::run::{connected, drain};
use super::*;
use crate::event::{Activity, VmProgress};
use crate::facts::Key;
use crate::report::human::{Human, HumanOptions};
use crate::report::progress::Detail;
use crate::report::screen::{Screen, view};
use crate::report::state::State;
use crate::report::{Reporter, Streams};

fn state(events: &[DrainEvent]) -> State {
    let mut state = State::default();
    for event in events {
        state.event(event);
    }
    state
}

fn crowd() -> State {
    let mut events = vec![(0, connected()), (10, EventKind::NodeStarted { node: "node-0".into() })];
    for n in 0..12u32 {
        let moving = n < 2;
        let activity = if moving { Activity::Migrating } else { Activity::Queued };
        let progress = VmProgress {
            activity,
            since_ms: 1000,
            attempt: u32::from(moving),
            target: moving.then(|| "node-2".into()),
            queue: (!moving).then_some(n),
            detail: None,
            next_try_ms: None,
        };
        events.push((
            1000,
            EventKind::VmProgressed { node: "node-0".into(), vm: Key::new("tenant-a", format!("web-{n}")), progress },
        ));
    }
    state(&script(events))
}

#[test]
fn a_line_per_vm_in_motion() {
    let state = state(&drain()[..15]);
    insta::assert_snapshot!(text(&view(&state, Duration::from_millis(24_300), 24, 100)), @"
    Draining node-0 · 23s, 29m left
      tenant-a/web-1   migrating → node-2, running 12s, attempt 1
      pods: 0 of 6 gone, 1 stopping, 2 waiting, 4 blocked
    ");
}

#[test]
fn what_does_not_fit_is_counted() {
    let shown = view(&crowd(), Duration::from_secs(90), 8, 60);
    assert!(shown.len() < 8);
    insta::assert_snapshot!(text(&shown), @r"
    Draining node-0 · 1m 29s, 28m left
      tenant-a/web-0   migrating → node-2, running 1m 29s, atte…
      tenant-a/web-1   migrating → node-2, running 1m 29s, atte…
      tenant-a/web-2   queued behind 2
      tenant-a/web-3   queued behind 3
      tenant-a/web-4   queued behind 4
      and 7 VMs queued
    ");
    assert!(view(&crowd(), Duration::from_secs(90), 8, 20).iter().all(|line| line.width() <= 20));
    assert!(view(&crowd(), Duration::from_secs(90), 1, 20).is_empty());
}

fn screen(term: &InMemoryTerm, stdout: &Sink) -> Screen {
    let streams = Streams {
        stdout: Box::new(stdout.clone()),
        stderr: Box::new(Sink::default()),
        stdout_color: false,
        stderr_color: false,
        stderr_is_terminal: true,
        lost: None,
    };
    let options = HumanOptions { detail: Detail::BesideScreen, ..HumanOptions::default() };
    let target = ProgressDrawTarget::term_like(Box::new(term.clone()));
    Screen::new(Human::new(options), streams, target, Box::new(|| (24, 80)))
}

#[test]
fn the_picture_follows_ticks_and_is_gone_at_the_end() {
    let (term, stdout) = (InMemoryTerm::new(24, 80), Sink::default());
    let mut screen = screen(&term, &stdout);
    let events = drain();
    for event in &events[..15] {
        screen.event(event);
    }
    screen.tick(Duration::from_millis(20_300));
    insta::assert_snapshot!(term.contents(), @"
    Draining node-0 · 19s, 29m left
      tenant-a/web-1   migrating → node-2, running 8s, attempt 1
      pods: 0 of 6 gone, 1 stopping, 2 waiting, 4 blocked
    ");
    screen.tick(Duration::from_millis(20_350));
    assert!(term.contents().contains("running 8s"), "not more than ten pictures a second");
    screen.tick(Duration::from_millis(21_300));
    assert!(term.contents().contains("running 9s"), "{}", term.contents());
    for event in &events[15..] {
        screen.event(event);
    }
    assert_eq!(term.contents(), "");
    assert!(stdout.text().ends_with("virtualmachine.kubevirt.io/db-0 restarted\n"), "{}", stdout.text());
}

#[test]
fn a_dropped_screen_leaves_the_terminal_clean() {
    let (term, stdout) = (InMemoryTerm::new(24, 80), Sink::default());
    let mut screen = screen(&term, &stdout);
    for event in &drain()[..10] {
        screen.event(event);
    }
    screen.tick(Duration::from_secs(5));
    assert!(!term.contents().is_empty());
    drop(screen);
    assert_eq!(term.contents(), "");
}

#[test]
fn before_its_first_node_the_screen_takes_no_row() {
    let (term, stdout) = (InMemoryTerm::new(24, 80), Sink::default());
    let mut screen = screen(&term, &stdout);
    for event in &drain()[..3] {
        screen.event(event);
    }
    screen.tick(Duration::from_secs(5));
    assert_eq!(term.contents(), "");
    assert!(!term.moves_since_last_check().contains("Str"));
}
