//! Where a run happens: the simulated cluster in virtual time, or a real one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use safe_drain::cluster::{Connection, Requests};
use safe_drain_sim::{Json, Sim};
use serde_json::Value;

use super::real::Real;
use super::recording::{Before, Log, Recording};
use super::secs;

/// Kinds that checks look at after a run.
const CHECKED: [&str; 2] = ["Node", "Pod"];

/// A cluster to run in.
#[derive(Clone)]
pub enum Venue {
    Sim(Sim),
    Real(Arc<Real>),
}

/// Some objects of a cluster at one moment.
pub struct State(BTreeMap<&'static str, Vec<Value>>);

impl State {
    /// All objects of a kind.
    pub fn list(&self, kind: &str) -> &[Value] {
        self.0.get(kind).map_or(&[], Vec::as_slice)
    }

    /// One object.
    pub fn get(&self, kind: &str, ns: &str, name: &str) -> Option<&Value> {
        self.list(kind).iter().find(|o| o.namespace() == ns && o.name() == name)
    }
}

impl From<&Sim> for Venue {
    fn from(sim: &Sim) -> Self {
        Self::Sim(sim.clone())
    }
}

impl Venue {
    /// Time since the cluster's or the test's start.
    pub fn elapsed(&self) -> Duration {
        match self {
            Self::Sim(sim) => sim.elapsed(),
            Self::Real(real) => real.started.elapsed(),
        }
    }

    /// Wall time.
    #[expect(clippy::disallowed_methods, reason = "a real cluster has the wall's")]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::Sim(sim) => {
                let namespace = sim.get("Namespace", "", "default").expect("every cluster has it");
                let base: Timestamp = namespace.text("/metadata/creationTimestamp").parse().expect("a time");
                base + SignedDuration::try_from(sim.elapsed()).expect("not that long")
            }
            Self::Real(_) => Timestamp::now(),
        }
    }

    /// The tool's connection, whose requests go into the log; `user` is somebody else than the admin.
    pub(super) async fn connection(&self, user: Option<&str>, log: &Log, before: Vec<Before>) -> Connection {
        let (client, server) = match self {
            Self::Sim(sim) => (Client::new(sim.service(), "default"), "https://sim".to_owned()),
            Self::Real(real) => real.connect(user).await,
        };
        Connection::over(Recording::client(client, self.clone(), log.clone(), before), server, Some(secs(30)))
    }

    /// Requests of the tool, outside of any run.
    pub async fn requests(&self) -> Requests {
        self.connection(None, &Log::default(), Vec::new()).await.requests()
    }

    /// How long nothing may be asked after an end.
    pub(super) fn silence(&self) -> Duration {
        match self {
            Self::Sim(_) => secs(5),
            Self::Real(_) => secs(1),
        }
    }

    /// The objects that checks look at.
    pub(super) async fn state(&self) -> State {
        let mut state = State(BTreeMap::new());
        for kind in CHECKED {
            let objects = match self {
                Self::Sim(sim) => sim.list(kind),
                Self::Real(real) => real.list(kind, "").await,
            };
            state.0.insert(kind, objects);
        }
        state
    }
}
