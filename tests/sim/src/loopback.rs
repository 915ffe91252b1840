//! The same API over plain HTTP/1.1 on 127.0.0.1, with a kubeconfig in a temporary folder.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::Service;

use crate::sim::Sim;

/// A listening cluster. Ends, with its folder, when dropped.
#[derive(Debug)]
pub struct Loopback {
    /// Where it listens.
    pub addr: SocketAddr,
    /// A kubeconfig with the context `sim`.
    pub kubeconfig: PathBuf,
    folder: PathBuf,
    accept: JoinHandle<()>,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Sim {
    /// Serves the cluster on a free port of 127.0.0.1.
    pub async fn listen(&self) -> io::Result<Loopback> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let addr = listener.local_addr()?;
        let folder = std::env::temp_dir().join(format!(
            "safe-drain-sim-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        ));
        std::fs::create_dir_all(&folder)?;
        let kubeconfig = folder.join("kubeconfig");
        write_kubeconfig(&kubeconfig, addr)?;
        let accept = tokio::spawn(accept(self.clone(), listener));
        Ok(Loopback { addr, kubeconfig, folder, accept })
    }
}

/// Writes a kubeconfig for the address.
pub(crate) fn write_kubeconfig(path: &Path, addr: SocketAddr) -> io::Result<()> {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: sim\nclusters:\n- name: sim\n  cluster:\n    server: http://{addr}\ncontexts:\n- name: sim\n  context:\n    cluster: sim\n    user: sim\nusers:\n- name: sim\n  user: {{}}\n"
    );
    std::fs::write(path, text)
}

async fn accept(sim: Sim, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let service = sim.service();
        tokio::spawn(async move {
            let each = service_fn(move |request| service.clone().call(request));
            // An error here is a client that went away, or a scripted break of the connection.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), each).await;
        });
    }
}

impl Loopback {
    /// Writes the kubeconfig to another place too.
    pub fn write_kubeconfig(&self, path: &Path) -> io::Result<()> {
        write_kubeconfig(path, self.addr)
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.accept.abort();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
