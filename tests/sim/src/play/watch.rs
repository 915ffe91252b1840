//! The watches. Each goes on after its server was away, and says what it has not seen any more.

use std::collections::HashSet;
use std::io::{self, Write};
use std::time::Duration;

use futures::StreamExt;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::view::Kind;

/// Between two tries, at most.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a watch has to say.
pub(super) enum News {
    Seen(Kind, Value),
    Gone(Kind, Value),
    /// A whole list came in, of these.
    Listed(Kind, HashSet<String>),
}

/// How a kind is addressed.
pub(super) fn resource(kind: Kind) -> ApiResource {
    let (group, name, plural) = match kind {
        Kind::Node => ("", "Node", "nodes"),
        Kind::Pod => ("", "Pod", "pods"),
        Kind::Vmi => ("kubevirt.io", "VirtualMachineInstance", "virtualmachineinstances"),
    };
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", name), plural)
}

/// Follows all objects of a kind, for ever.
pub(super) async fn follow(client: Client, kind: Kind, news: UnboundedSender<News>) {
    let api: Api<DynamicObject> = Api::all_with(client, &resource(kind));
    let mut stream = std::pin::pin!(watcher(api, watcher::Config::default()));
    let mut seen = HashSet::new();
    let mut wait = Duration::from_millis(100);
    while let Some(event) = stream.next().await {
        let said = match event {
            Ok(event) => {
                wait = Duration::from_millis(100);
                match event {
                    Event::Init => {
                        seen.clear();
                        continue;
                    }
                    Event::InitApply(object) => {
                        seen.extend(object.metadata.uid.clone());
                        News::Seen(kind, value(&object))
                    }
                    Event::Apply(object) => News::Seen(kind, value(&object)),
                    Event::Delete(object) => News::Gone(kind, value(&object)),
                    Event::InitDone => News::Listed(kind, std::mem::take(&mut seen)),
                }
            }
            Err(error) => {
                // The stream tries again when it is asked again.
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(PATIENCE);
                if !is_missing(&error) {
                    let _ = writeln!(io::stderr(), "safe-drain-sim: watching {kind:?}: {error}");
                    continue;
                }
                News::Listed(kind, HashSet::new())
            }
        };
        if news.send(said).is_err() {
            return;
        }
    }
}

/// Whether the cluster does not have this kind (yet).
fn is_missing(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404)
}

fn value(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
