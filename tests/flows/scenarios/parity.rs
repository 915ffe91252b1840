//! Real `kubectl drain` and the program itself, with the same words on nodes with the same pods: the same pods are gone, the same
//! ones refused, and where both succeed the same lines are on stdout.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use futures::FutureExt;
use futures::future::{LocalBoxFuture, join, join_all};
use http::Method;
use safe_drain_sim::{Json, PodSpec};
use serde_json::{Value, json};

use super::{Stage, on_real};
use crate::harness::{Venue, path};

/// How it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Drained,
    /// For pods that need a flag. kubectl has cordoned by then, and says so; here nothing was changed. The row of the table of
    /// differences: "cordons, then checks".
    Refused,
}

/// One command line on nodes with some pods.
struct Case {
    name: &'static str,
    /// `NODE`, `NODE2` and `STAGE` stand for the names of its stage, `SPARE` for the node that is not to be drained.
    words: &'static str,
    end: End,
    build: for<'a> fn(&'a Stage) -> LocalBoxFuture<'a, ()>,
}

/// What came of it, without what is by chance.
#[derive(Debug, PartialEq, Eq)]
struct Came {
    success: bool,
    /// Pods that are on the drained nodes afterwards.
    left: Vec<String>,
    /// Pods that are named as the reason not to drain.
    refused: BTreeSet<String>,
    /// Lines of stdout, each once; names of pods by their workload.
    lines: Vec<String>,
}

/// Flags that let everything go.
const ALL: &str = "NODE --ignore-daemonsets --delete-emptydir-data --force --timeout=60s";

/// The tools, each with the words that come before those of the case.
const TOOLS: [(&str, &[&str]); 2] = [("kubectl", &["drain"]), (env!("CARGO_BIN_EXE_kubectl-safe_drain"), &[])];

async fn deployments(s: &Stage) {
    s.fast_nodes(1).await;
    s.deployment("web", 3, PodSpec::new()).await;
    s.deployment("cart", 2, PodSpec::new()).await;
}

async fn daemons(s: &Stage) {
    s.fast_nodes(1).await;
    s.deployment("web", 2, PodSpec::new()).await;
    s.daemon_set("agent").await;
}

async fn bare(s: &Stage) {
    s.fast_nodes(1).await;
    s.deployment("web", 1, PodSpec::new()).await;
    s.pod("alone", PodSpec::new()).await;
}

async fn scratch(s: &Stage) {
    s.fast_nodes(1).await;
    s.deployment("web", 1, PodSpec::new()).await;
    s.deployment("cache", 2, PodSpec::new().empty_dir()).await;
}

/// One of each sort that needs a flag, and one that needs none.
async fn everything(s: &Stage) {
    s.fast_nodes(1).await;
    s.deployment("web", 2, PodSpec::new()).await;
    s.deployment("cache", 1, PodSpec::new().empty_dir()).await;
    s.daemon_set("agent").await;
    s.pod("alone", PodSpec::new()).await;
    s.pod("scratch", PodSpec::new().empty_dir()).await;
}

async fn stateful(s: &Stage) {
    s.fast_nodes(1).await;
    s.stateful_set("db", 2, PodSpec::new()).await;
    s.pod("done", PodSpec::new()).await;
    s.settle().await;
    let status = json!({"status": {"phase": "Succeeded"}});
    let done = format!("{}/status", path("Pod", s.ns(), "done"));
    real(s, Method::PATCH, &done, &status).await;
}

async fn two(s: &Stage) {
    s.fast_nodes(2).await;
    s.deployment("web", 4, PodSpec::new()).await;
    s.daemon_set("agent").await;
}

async fn budget(s: &Stage) {
    s.fast_nodes(1).await;
    s.deployment("web", 2, PodSpec::new()).await;
    s.budget("web", "web", json!({"maxUnavailable": 1})).await;
}

/// Pods whose daemon set was deleted without them: the garbage collector takes its name off them.
async fn orphans(s: &Stage) {
    daemons(s).await;
    s.settle().await;
    let delete = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"});
    real(s, Method::DELETE, &path("DaemonSet", s.ns(), "agent"), &delete).await;
    let free = async || {
        let pods = s.list("Pod").await;
        let mut agents = pods.iter().filter(|p| p.label("app") == "agent");
        agents.all(|p| p.list("/metadata/ownerReferences").is_empty())
    };
    s.until("pods without an owner", free).await;
}

/// A pod that does not stop: nobody is there to stop it.
async fn overdue(s: &Stage) {
    s.nodes(1).await;
    s.pod("stuck", PodSpec::new().grace(1)).await;
    s.settle().await;
    let down = json!({"metadata": {"annotations": {"lab/kubelet": "down"}}});
    real(s, Method::PATCH, &path("Node", "", &s.node(0)), &down).await;
}

async fn real(s: &Stage, method: Method, path: &str, body: &Value) {
    let Venue::Real(real) = &s.venue else { panic!("a stage of the real cluster") };
    real.send(method, path, Some(body)).await;
}

macro_rules! case {
    ($name:literal, $words:expr, $end:ident, $build:ident) => {
        Case { name: $name, words: $words, end: End::$end, build: |s| $build(s).boxed_local() }
    };
}

fn drained() -> Vec<Case> {
    vec![
        case!("plain", "NODE", Drained, deployments),
        case!("spelling", "node/NODE", Drained, deployments),
        case!("ignored", "NODE --ignore-daemonsets", Drained, daemons),
        case!("forced", "NODE --force", Drained, bare),
        case!("emptied", "NODE --delete-emptydir-data", Drained, scratch),
        case!("all", ALL, Drained, everything),
        case!(
            "deleted",
            "NODE --ignore-daemonsets --delete-emptydir-data --force --disable-eviction",
            Drained,
            everything
        ),
    ]
}

fn drained_too() -> Vec<Case> {
    vec![
        case!("selected", "NODE --pod-selector app=web", Drained, deployments),
        case!("grace", "--grace-period=1 NODE", Drained, deployments),
        case!("started", "NODE -v=2", Drained, deployments),
        case!("stateful", "NODE", Drained, stateful),
        case!("two", "--ignore-daemonsets -l lab/stage=STAGE,kubernetes.io/hostname!=SPARE", Drained, two),
        case!("both", "NODE nodes/NODE2 --ignore-daemonsets=true", Drained, two),
        case!("budget", "NODE --timeout 60s", Drained, budget),
        case!("overdue", "NODE --force --skip-wait-for-delete-timeout=2", Drained, overdue),
        case!("orphansgo", "NODE --force", Drained, orphans),
    ]
}

fn refused() -> Vec<Case> {
    vec![
        case!("daemons", "NODE", Refused, daemons),
        case!("bare", "NODE", Refused, bare),
        case!("scratch", "NODE --ignore-daemonsets", Refused, scratch),
        case!("each", "NODE", Refused, everything),
        case!("some", "NODE --force --ignore-daemonsets", Refused, everything),
        case!("orphans", "NODE --ignore-daemonsets", Refused, orphans),
    ]
}

impl Case {
    /// Builds it, runs one of the tools on it, and says what came of it.
    async fn play(&self, first: &Stage, tool: usize) -> Came {
        let s = first.another(&format!("{}-{}-{tool}", first.ns(), self.name)).await;
        (self.build)(&s).await;
        s.settle().await;
        let drained: Vec<String> = (0..s.node_count()).map(|n| s.node(n)).collect();
        // Where what is evicted runs afterwards.
        s.fast_nodes(1).await;
        let mut pods = s.list("Pod").await;
        // The longest first: a name may begin another.
        pods.sort_by_key(|p| std::cmp::Reverse(p.name().len()));
        let output = self.run(&s, tool).await;
        let (stdout, stderr) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        println!("--- {} {}\n{stdout}{stderr}exit {:?}\n", TOOLS[tool].0, self.name, output.status.code());

        let after = s.list("Pod").await;
        let stays = after.iter().filter(|p| drained.iter().any(|n| n == p.text("/spec/nodeName")));
        let mut left: Vec<String> = stays.map(|p| workload(p).to_owned()).collect();
        left.sort();
        let reasons = ["cannot delete ", "hint: "];
        let reasons: Vec<&str> = stderr.lines().filter(|l| reasons.iter().any(|r| l.starts_with(r))).collect();
        let named = pods.iter().filter(|p| {
            let name = format!("{}/{}", p.namespace(), p.name());
            reasons.iter().any(|line| line.split([' ', ',', ':']).any(|word| word == name))
        });
        let refused = named.map(|p| workload(p).to_owned()).collect();
        let lines: BTreeSet<&str> = stdout.lines().collect();
        let common = |line: &str| {
            let line = pods.iter().fold(line.to_owned(), |line, p| line.replace(p.name(), workload(p)));
            line.replace(s.ns(), "STAGE")
        };
        let mut lines: Vec<String> = lines.into_iter().map(common).collect();
        lines.sort();
        s.clear().await;
        Came { success: output.status.success(), left, refused, lines }
    }

    async fn run(&self, s: &Stage, tool: usize) -> Output {
        let words = self.words.replace("NODE2", &s.node(1)).replace("NODE", &s.node(0)).replace("STAGE", s.ns());
        let words = words.replace("SPARE", &s.node(s.node_count() - 1));
        let (program, before) = TOOLS[tool];
        let mut command = Command::new(program);
        command.args(before).args(words.split(' '));
        if tool == 1 && !words.contains("--ignore-daemonsets") {
            // What kubectl has without a word. The row: "refuses DaemonSet pods without `--ignore-daemonsets`".
            command.arg("--ignore-daemonsets=false");
        }
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        output.expect("no panic").expect("the program is there")
    }

    async fn compare(&self, first: &Stage) {
        let (kubectl, ours) = join(self.play(first, 0), self.play(first, 1)).await;
        let name = self.name;
        assert_eq!(kubectl.success, self.end == End::Drained, "{name}: {kubectl:#?}");
        if self.end == End::Refused {
            assert!(!kubectl.refused.is_empty(), "{name}: {kubectl:#?}");
            assert_eq!((ours.success, &ours.lines), (false, &Vec::new()), "{name}");
            assert_eq!((&kubectl.left, &kubectl.refused), (&ours.left, &ours.refused), "{name}: left is kubectl");
        } else {
            assert_eq!(kubectl, ours, "{name}: left is kubectl");
        }
    }
}

/// The name of a pod without what is by chance.
fn workload(pod: &Value) -> &str {
    let generated = pod.has("/metadata/generateName");
    if generated && pod.label("statefulset.kubernetes.io/pod-name").is_empty() { pod.label("app") } else { pod.name() }
}

fn compare_all(name: &str, cases: &[Case]) {
    on_real(name, async |s| {
        join_all(cases.iter().map(|case| case.compare(s))).await;
    });
}

#[test]
#[ignore = "needs a real cluster: make e2e"]
fn kubectl_and_we_drain_alike() {
    compare_all("parity-d", &drained());
}

#[test]
#[ignore = "needs a real cluster: make e2e"]
fn kubectl_and_we_drain_alike_with_other_words() {
    compare_all("parity-o", &drained_too());
}

#[test]
#[ignore = "needs a real cluster: make e2e"]
fn kubectl_and_we_refuse_alike() {
    compare_all("parity-r", &refused());
}
