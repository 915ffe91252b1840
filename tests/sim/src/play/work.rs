//! The loop: one timer for each object that waits for something, and the requests.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::header::CONTENT_TYPE;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Preconditions};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use super::decide::{Due, Form, Step, Write, due, writes};
use super::now;
use super::view::{Id, Kind, View};
use super::watch::{News, follow, resource};
use crate::json::Json;
use crate::options::Options;

/// Requests at a time.
const PARALLEL: usize = 16;
/// The longest wait for an answer.
const ANSWER: Duration = Duration::from_secs(10);

struct Timer {
    due: Due,
    at: Instant,
    tries: u32,
    busy: bool,
}

struct Player<'a> {
    client: Client,
    options: &'a Options,
    view: View,
    timers: HashMap<Id, Timer>,
    listed: HashSet<Kind>,
    slots: Arc<Semaphore>,
    done: UnboundedSender<Done>,
}

/// How a step went: what the objects are now.
struct Done {
    id: Id,
    result: Result<Vec<Answer>, kube::Error>,
}

enum Answer {
    Now(Value),
    Gone,
}

/// Between a try and the next.
fn pause(tries: u32) -> Duration {
    Duration::from_millis(50 << tries.min(6))
}

/// Plays for ever.
pub(super) async fn run(client: Client, options: &Options) -> io::Result<()> {
    let (news, mut inbox) = unbounded_channel();
    let mut watches = tokio::task::JoinSet::new();
    for kind in [Kind::Node, Kind::Pod, Kind::Vmi] {
        watches.spawn(follow(client.clone(), kind, news.clone()));
    }
    let (done, mut outbox) = unbounded_channel();
    let mut player = Player {
        client,
        options,
        view: View::default(),
        timers: HashMap::new(),
        listed: HashSet::new(),
        slots: Arc::new(Semaphore::new(PARALLEL)),
        done,
    };
    player.work(&mut inbox, &mut outbox).await;
    Err(io::Error::other("the watches have ended"))
}

impl Player<'_> {
    async fn work(&mut self, inbox: &mut UnboundedReceiver<News>, outbox: &mut UnboundedReceiver<Done>) {
        loop {
            let next = self.timers.values().filter(|t| !t.busy).map(|t| t.at).min();
            let timer = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                news = inbox.recv() => match news {
                    Some(news) => self.take(news),
                    None => return,
                },
                Some(done) = outbox.recv() => self.finish(done),
                () = timer => self.fire(),
            }
        }
    }

    fn take(&mut self, news: News) {
        let concerned = match news {
            News::Seen(kind, object) => {
                let id = self.view.put(kind, object);
                self.view.related(&id, self.view.get(&id))
            }
            News::Gone(kind, object) => {
                let id = Id::new(kind, object.uid());
                let concerned = self.view.related(&id, Some(&object));
                self.view.remove(&id);
                concerned
            }
            News::Listed(kind, seen) => {
                self.view.keep(kind, &seen);
                self.listed.insert(kind);
                let mut all: HashSet<Id> = self.view.ids().into_iter().collect();
                all.extend(self.timers.keys().cloned());
                all.into_iter().collect()
            }
        };
        self.look(&concerned);
    }

    /// Sets the timers of these objects to what they wait for. Nothing is known for sure before all has been listed once.
    fn look(&mut self, ids: &[Id]) {
        if self.listed.len() < 3 {
            return;
        }
        let (clock, start) = (now(), Instant::now());
        for id in ids {
            if self.timers.get(id).is_some_and(|t| t.busy) {
                continue;
            }
            let Some(due) = due(&self.view, id, self.options, clock) else {
                self.timers.remove(id);
                continue;
            };
            let at = start + due.wait;
            match self.timers.get_mut(id).filter(|t| t.due.step == due.step && t.due.of == due.of) {
                // Only sooner: what it waits for began when it was first seen. A step that failed keeps its distance.
                Some(timer) if timer.tries == 0 => timer.at = timer.at.min(at),
                Some(_) => {}
                None => {
                    self.timers.insert(id.clone(), Timer { due, at, tries: 0, busy: false });
                }
            }
        }
    }

    fn fire(&mut self) {
        let (clock, at) = (now(), Instant::now());
        let ripe: Vec<Id> =
            self.timers.iter().filter(|(_, t)| !t.busy && t.at <= at).map(|(id, _)| id.clone()).collect();
        for id in ripe {
            let Some(timer) = self.timers.get_mut(&id) else { continue };
            let list = writes(&self.view, &id, timer.due.step, self.options, clock);
            let Some(object) = self.view.get(&id) else { continue };
            timer.busy = true;
            let target = (object.namespace().to_owned(), object.name().to_owned());
            let (client, slots, done) = (self.client.clone(), Arc::clone(&self.slots), self.done.clone());
            tokio::spawn(async move {
                let _slot = slots.acquire().await;
                let work = send(&client, &id, &target.0, &target.1, &list);
                let late = |_| Err(kube::Error::Service("no answer in time".into()));
                let result = tokio::time::timeout(ANSWER, work).await.unwrap_or_else(late);
                let _ = done.send(Done { id, result });
            });
        }
    }

    fn finish(&mut self, done: Done) {
        let id = done.id;
        match done.result {
            Ok(answers) => {
                for answer in answers {
                    match answer {
                        Answer::Now(object) => {
                            self.view.put(id.kind, object);
                        }
                        Answer::Gone => self.view.remove(&id),
                    }
                }
            }
            Err(error) => {
                let expected = matches!(&error, kube::Error::Api(status) if matches!(status.code, 404 | 409));
                if !expected {
                    let _ = writeln!(io::stderr(), "safe-drain-sim: {:?} {}: {error}", id.kind, id.uid);
                }
            }
        }
        // If the same is due again it did not hold, or the watch is behind: not at once.
        if let Some(old) = self.timers.remove(&id)
            && let Some(due) = due(&self.view, &id, self.options, now())
        {
            let again = due.step == old.due.step && due.of == old.due.of;
            let next_beat = due.step == Step::Beat && !due.wait.is_zero();
            let (wait, tries) = if again && !next_beat { (pause(old.tries), old.tries + 1) } else { (due.wait, 0) };
            self.timers.insert(id.clone(), Timer { due, at: Instant::now() + wait, tries, busy: false });
        }
        let object = self.view.get(&id);
        let concerned = self.view.related(&id, object);
        self.look(&concerned);
    }
}

async fn send(client: &Client, id: &Id, ns: &str, name: &str, list: &[Write]) -> Result<Vec<Answer>, kube::Error> {
    let kind = resource(id.kind);
    let api: Api<DynamicObject> = if ns.is_empty() {
        Api::all_with(client.clone(), &kind)
    } else {
        Api::namespaced_with(client.clone(), ns, &kind)
    };
    let value = |object: DynamicObject| serde_json::to_value(object).unwrap_or_default();
    let mut answers = Vec::new();
    for write in list {
        answers.push(match write {
            Write::Patch { status, form, body } => {
                let form = match form {
                    Form::Json => "application/json-patch+json",
                    Form::Merge => "application/merge-patch+json",
                    Form::Strategic => "application/strategic-merge-patch+json",
                };
                let part = if *status { "/status" } else { "" };
                let request = Request::patch(format!("{}/{name}{part}", api.resource_url()))
                    .header(CONTENT_TYPE, form)
                    .body(body.to_string().into_bytes())
                    .map_err(|error| kube::Error::Service(error.into()))?;
                Answer::Now(client.request::<Value>(request).await?)
            }
            Write::Delete => {
                let only = Preconditions { uid: Some(id.uid.clone()), resource_version: None };
                let params = DeleteParams {
                    grace_period_seconds: Some(0),
                    preconditions: Some(only),
                    ..DeleteParams::default()
                };
                let left = api.delete(name, &params).await?.left();
                match left.filter(|o| o.metadata.finalizers.as_ref().is_some_and(|f| !f.is_empty())) {
                    Some(object) => Answer::Now(value(object)),
                    None => Answer::Gone,
                }
            }
        });
    }
    Ok(answers)
}
