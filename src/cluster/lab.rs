//! dev only
use super::*;
use futures::StreamExt;
use std::time::Instant;
#[tokio::test(flavor = "current_thread")]
#[ignore]
async fn lab() {
    tracing_subscriber::fmt()
        .with_env_filter(std::env::var("LOG").unwrap_or_default())
        .with_writer(std::io::stderr)
        .init();
    let c = connect(&crate::settings::ClientOptions::default()).await.unwrap();
    println!("{c:?} {:?}", c.valid_until());
    let r = c.requests();
    for _ in 0..3 {
        let t = Instant::now();
        let s = snapshot(&r, &["node-0".into()], WatchOptions::default()).await;
        println!(
            "snapshot {:?} pods {} vmis {} unread {:?} {:?} k8s {:?} ns {:?} claims {:?} ds {:?} kv {:?}",
            t.elapsed(),
            s.index.pods_on("node-0").count(),
            s.index.vmis().count(),
            s.unread,
            s.unreadable,
            s.kubernetes,
            s.index.infrastructure_namespaces,
            s.index.claims.as_ref().map(|c| c.len()),
            s.index.daemon_sets,
            s.index.kubevirt()
        );
    }
    let hwm = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("{}", hwm.lines().find(|l| l.starts_with("VmHWM")).unwrap());
    let s = snapshot(&r, &["node-0".into()], WatchOptions::default()).await;
    let mut w = s.watches;
    let secs: u64 = std::env::var("SECS").ok().and_then(|s| s.parse().ok()).unwrap_or(5);
    let t = Instant::now();
    let _ = tokio::time::timeout(std::time::Duration::from_secs(secs), async {
        while let Some(i) = w.next().await {
            let s = format!("{i:?}");
            println!("{:?} {}", t.elapsed(), &s[..s.len().min(220)]);
        }
    })
    .await;
}
