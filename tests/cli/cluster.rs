//! A simulated cluster on a thread of its own, on a port of its own.

use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use safe_drain_sim::scenario::{self, Settings};
use safe_drain_sim::{Options, PodSpec, Recorded, Sim, Vm, World};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::tool::{Home, Run, Running, run, start, until};

/// A cluster, and somebody's home with a kubeconfig for it.
pub(crate) struct Cluster {
    pub(crate) sim: Sim,
    pub(crate) home: Home,
    pub(crate) kubeconfig: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Cluster {
    /// Starts what `build` makes.
    pub(crate) fn start(build: impl FnOnce() -> Sim + Send + 'static) -> Self {
        let (ready, started) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let sim = build();
                let loopback = sim.listen().await.unwrap();
                ready.send((sim.clone(), loopback.addr)).unwrap();
                let _ = stopped.await;
                sim.shutdown();
            });
        });
        let (sim, address) = started.recv().unwrap();
        until("pods and VMs that run", || is_settled(&sim));
        let home = Home::new();
        let kubeconfig = home.file("kubeconfig", &kubeconfig(&format!("http://{address}"), "", "{}"));
        Self { sim, home, kubeconfig, stop: Some(stop), thread: Some(thread) }
    }

    /// A scenario by its name, ten times as fast as a cluster.
    pub(crate) fn scenario(name: &'static str) -> Self {
        let options = Options { speed: 10.0, ..Options::default() };
        Self::start(move || scenario::start(name, Settings { options, ..Settings::default() }).unwrap())
    }

    /// Three nodes without KubeVirt, and what `fill` puts on node-0.
    pub(crate) fn plain(fill: impl FnOnce(World) -> World + Send + 'static) -> Self {
        let options = Options { speed: 10.0, ..Options::plain() };
        Self::start(move || fill(Sim::new(options).world().nodes(3).on("node-0")).done())
    }

    /// Three nodes with KubeVirt, and what `fill` puts on node-0.
    pub(crate) fn kubevirt(fill: impl FnOnce(World) -> World + Send + 'static) -> Self {
        let options = Options { speed: 10.0, ..Options::default() };
        Self::start(move || fill(Sim::new(options).world().nodes(3).on("node-0")).done())
    }

    /// One pod on node-0 that takes minutes to stop.
    pub(crate) fn slow() -> Self {
        Self::plain(|world| {
            let pod = PodSpec::new().annotation("lab/stop", "3000s").grace(3000);
            world.deployment_with("shop", "slow", 1, pod)
        })
    }

    /// One VM on node-0 that only a restart helps.
    pub(crate) fn stale() -> Self {
        let mut options = Options { speed: 10.0, ..Options::default() };
        options.eviction_strategy = Some("LiveMigrate".to_owned());
        Self::start(move || {
            let vm = Vm::new("db-0").non_migratable("DisksNotLiveMigratable");
            let world = Sim::new(options).world().nodes(3).on("node-0").vm("tenant-a", vm);
            world.eviction_strategy("LiveMigrateIfPossible").done()
        })
    }

    /// One VM on node-0 that nothing but its owner can clear.
    pub(crate) fn blocked() -> Self {
        Self::kubevirt(|world| {
            let vm = Vm::new("pinned-1").eviction_strategy("LiveMigrate").non_migratable("DisksNotLiveMigratable");
            world.vm("tenant-a", vm)
        })
    }

    /// The program on this cluster.
    pub(crate) fn tool(&self, args: &[&str]) -> Command {
        self.home.tool(&self.kubeconfig, args)
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        run(self.tool(args))
    }

    /// Starts the program.
    pub(crate) fn begin(&self, args: &[&str]) -> Running {
        start(self.tool(args))
    }

    /// Requests that can have changed something, as `METHOD path`.
    pub(crate) fn writes(&self) -> Vec<String> {
        let shown = |request: &Recorded| format!("{} {}", request.method, request.path);
        self.sim.requests().iter().filter(|request| request.is_write()).map(shown).collect()
    }

    /// Evictions that were asked for.
    pub(crate) fn evictions(&self) -> usize {
        self.writes().iter().filter(|request| request.ends_with("/eviction")).count()
    }

    /// Waits for a request.
    pub(crate) fn wait_request(&self, method: &str, path_contains: &str) {
        until(&format!("{method} {path_contains}"), || {
            let fits = |request: &Recorded| request.method == method && request.path.contains(path_contains);
            self.sim.requests().iter().any(fits)
        });
    }

    /// Panics if anything was written or a node is cordoned.
    pub(crate) fn nothing_changed(&self) {
        assert_eq!(self.writes(), Vec::<String>::new());
        assert_eq!(self.cordoned(), Vec::<String>::new());
    }

    /// Names of the cordoned nodes.
    pub(crate) fn cordoned(&self) -> Vec<String> {
        let nodes = self.sim.list("Node");
        let cordoned = nodes.iter().filter(|node| node["spec"]["unschedulable"] == true);
        cordoned.map(|node| node["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Lets time go by in the cluster.
    pub(crate) fn wait_elapsed(&self, more: Duration) {
        let end = self.sim.elapsed() + more;
        until("the cluster's time", || self.sim.elapsed() >= end);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// True when everything that was built has come up.
fn is_settled(sim: &Sim) -> bool {
    let pods = sim.list("Pod").iter().all(|pod| pod["status"]["phase"] != "Pending");
    let judged = |vmi: &Value| {
        let conditions = vmi["status"]["conditions"].as_array();
        conditions.is_some_and(|all| all.iter().any(|condition| condition["type"] == "LiveMigratable"))
    };
    pods && sim.list("VirtualMachineInstance").iter().all(|vmi| vmi["status"]["phase"] == "Running" && judged(vmi))
}

/// A kubeconfig with one context, `sim`; `cluster` and `user` are more YAML for the two.
pub(crate) fn kubeconfig(server: &str, cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: sim\nclusters:\n- name: sim\n  cluster:\n    server: {server}\n\
         {cluster}contexts:\n- name: sim\n  context: {{cluster: sim, user: sim}}\nusers:\n- name: sim\n  user: {user}\n"
    )
}
