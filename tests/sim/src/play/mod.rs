//! The machines of a real cluster: kubelets and virt-handlers without machines, for clusters that have real API servers and real KubeVirt but nothing
//! to run a guest on. It obeys the annotations of the simulated cluster, with the same delays, and writes what that one writes.
//!
//! What to do is read off the objects alone (`decide`), so that a player that starts again goes on where the last one stopped. The loop
//! (`work`) keeps one timer for each object, looks again when it runs out, and writes; a write that does not hold is tried again while it is due.
//!
//! It plays nodes with the label [`PLAYED`] that kwok does not play. It must act as virt-controller's account: KubeVirt drops, without a word,
//! a VMI status that any other one writes.

mod decide;
#[cfg(test)]
mod tests;
mod view;
mod watch;
mod work;

use std::io;
use std::path::Path;

use jiff::Timestamp;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::json::Json;
use crate::machine;
use crate::options::Options;

/// The label, with the value `true`, of the nodes that are played.
pub const PLAYED: &str = "lab/played";

/// A node to create, with its status: Ready, big, and played. With `kubevirt` it looks as if a virt-handler ran there.
/// Where nodes are tainted for being new, the player takes that off.
pub fn node(name: &str, kubevirt: bool, now: Timestamp) -> Value {
    let mut node = machine::node(name, kubevirt, &written(now));
    node.put("/apiVersion", "v1");
    node.put("/kind", "Node");
    node.set_label(PLAYED, "true");
    node.put("/spec/taints", json!([]));
    node
}

/// Plays until it is dropped. Fails only when the kubeconfig cannot be used.
pub async fn play(kubeconfig: &Path, options: &Options) -> io::Result<()> {
    let config = Kubeconfig::read_from(kubeconfig).map_err(io::Error::other)?;
    let config =
        Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.map_err(io::Error::other)?;
    let client = Client::try_from(config).map_err(io::Error::other)?;
    work::run(client, options).await
}

/// The time of a real cluster.
#[expect(clippy::disallowed_methods, reason = "plays on a cluster that has real time")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// As objects write it.
fn written(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
