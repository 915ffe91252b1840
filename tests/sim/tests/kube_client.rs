//! A real client library on top of the service: what the tool's own tests will do.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{EvictParams, ListParams, Patch, PatchParams};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use safe_drain_sim::scenario::{Settings, start};
use safe_drain_sim::{Fault, Then};

#[tokio::test(start_paused = true)]
async fn lists_watches_patches_and_evicts() {
    let sim = start("strategy-switch", Settings::default()).unwrap();
    let client = Client::new(sim.service(), "default");
    assert_eq!(client.apiserver_version().await.unwrap().git_version, "v1.36.2");
    let groups = client.list_api_groups().await.unwrap();
    assert!(groups.groups.iter().any(|g| g.name == "kubevirt.io"));

    let pods: Api<Pod> = Api::all(client.clone());
    let here = pods.list(&ListParams::default().fields("spec.nodeName=node-0")).await.unwrap();
    assert_eq!(here.items.len(), 12);

    let nodes: Api<Node> = Api::all(client.clone());
    let patch = serde_json::json!({"spec": {"unschedulable": true}});
    let node = nodes.patch("node-0", &PatchParams::apply("kubectl-safe-drain"), &Patch::Merge(patch)).await.unwrap();
    assert_eq!(node.managed_fields()[0].manager.as_deref(), Some("kubectl-safe-drain"));

    // The stream goes on over watches that end without an error, and over a history that is gone.
    for (at, then) in [(2, Then::CutWatches), (4, Then::ExpireWatches)] {
        sim.fault(Fault::at(Duration::from_secs(at), then));
    }
    let shop: Api<Pod> = Api::namespaced(client.clone(), "shop");
    let mut stream = watcher::watcher(shop.clone(), watcher::Config::default()).boxed();
    let first = here.items.iter().find(|p| p.namespace().as_deref() == Some("shop")).unwrap().name_any();
    let mut known = 0;
    loop {
        match stream.try_next().await.unwrap().unwrap() {
            Event::InitApply(_) => known += 1,
            Event::InitDone => break,
            Event::Init | Event::Apply(_) | Event::Delete(_) => {}
        }
    }
    assert_eq!(known, 4);
    tokio::time::sleep(Duration::from_secs(5)).await;
    shop.evict(&first, &EvictParams::default()).await.unwrap();
    let gone = async {
        loop {
            match stream.next().await {
                Some(Ok(Event::Delete(p))) if p.name_any() == first => break,
                Some(_) => {}
                None => panic!("a watcher never ends"),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.unwrap();

    let launchers: Api<Pod> = Api::namespaced(client, "tenant-a");
    let db =
        launchers.list(&ListParams::default().labels("vm.kubevirt.io/name=db-0")).await.unwrap().items[0].name_any();
    match launchers.evict(&db, &EvictParams::default()).await {
        Err(kube::Error::Api(status)) => {
            assert_eq!(status.code, 429);
            assert!(status.message.ends_with("is not live-migratable"));
        }
        other => panic!("{other:?}"),
    }
}
