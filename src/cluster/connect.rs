//! The connection to a cluster.

use std::fmt;
use std::path::PathBuf;

use http::HeaderValue;
use http::header::USER_AGENT;
use jiff::Timestamp;
use kube::client::{ClientBuilder, ConfigExt};
use kube::config::{ExecInteractiveMode, KubeConfigOptions, KubeconfigError, LoadDataError};
use kube::{Client, Config};

use super::gate::{Current, Gate, Through};
use super::kubeconfig::{Choice, Sources, choose};
use super::problem::{ApiProblem, explain};
use super::proxy;
use super::requests::Requests;
use crate::settings::ClientOptions;

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// `--kubeconfig` names a file that is not there.
    #[error("the kubeconfig {} does not exist", path.display())]
    KubeconfigMissing {
        /// The file.
        path: PathBuf,
    },
    /// A kubeconfig is there and cannot be read.
    #[error("cannot read the kubeconfig {}: {why}", path.display())]
    KubeconfigUnreadable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        why: String,
    },
    /// A kubeconfig has no valid content.
    #[error("the kubeconfig {} is not valid: {why}", path.display())]
    KubeconfigInvalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// No kubeconfig, and this is no pod either.
    #[error("no kubeconfig found")]
    NoKubeconfig {
        /// Where it was looked for.
        tried: Vec<PathBuf>,
    },
    /// No context is current and none was named.
    #[error("no context is chosen")]
    NoContext {
        /// Contexts of the kubeconfig.
        known: Vec<String>,
    },
    /// The context does not exist.
    #[error("there is no context {name:?} in the kubeconfig")]
    UnknownContext {
        /// The name.
        name: String,
        /// Contexts of the kubeconfig.
        known: Vec<String>,
    },
    /// The cluster, named by the context or `--cluster`, does not exist.
    #[error("there is no cluster {name:?} in the kubeconfig")]
    UnknownCluster {
        /// The name.
        name: String,
        /// Clusters of the kubeconfig.
        known: Vec<String>,
    },
    /// The user, named by the context or `--user`, does not exist.
    #[error("there is no user {name:?} in the kubeconfig")]
    UnknownUser {
        /// The name.
        name: String,
        /// Users of the kubeconfig.
        known: Vec<String>,
    },
    /// The cluster has no server.
    #[error("no server is set{}", cluster.as_ref().map(|c| format!(" for the cluster {c:?}")).unwrap_or_default())]
    NoServer {
        /// The cluster, where it has a name.
        cluster: Option<String>,
    },
    /// A setting of cluster, proxy or headers cannot be used.
    #[error("{why}")]
    Setting {
        /// What is wrong.
        why: String,
    },
    /// `NO_PROXY` has an entry that cannot be read. (Go passes over such entries; the library ends there.)
    #[error("NO_PROXY in the environment cannot be read: {why}")]
    NoProxy {
        /// What is wrong.
        why: String,
    },
    /// Certificates, keys, tokens or a credential plugin cannot be used.
    #[error("{why}")]
    Credentials {
        /// What is wrong.
        why: String,
        /// What to do.
        hint: Option<String>,
    },
}

impl ConnectError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::KubeconfigMissing { .. } => Some("check --kubeconfig".to_owned()),
            Self::KubeconfigUnreadable { .. } => Some("check its permissions, KUBECONFIG and --kubeconfig".to_owned()),
            Self::KubeconfigInvalid { .. } => Some("try `kubectl config view`".to_owned()),
            Self::NoKubeconfig { tried } => {
                let tried: Vec<String> = tried.iter().map(|p| p.display().to_string()).collect();
                let files = if tried.is_empty() { "nowhere".to_owned() } else { tried.join(", ") };
                Some(format!("looked in {files}; set KUBECONFIG or --kubeconfig"))
            }
            Self::NoContext { known } if known.is_empty() => Some("the kubeconfig is empty".to_owned()),
            Self::NoContext { known } => Some(format!("use --context, one of: {}", list(known))),
            Self::UnknownContext { known, .. }
            | Self::UnknownCluster { known, .. }
            | Self::UnknownUser { known, .. } => Some(if known.is_empty() {
                "the kubeconfig has none".to_owned()
            } else {
                format!("it has: {}", list(known))
            }),
            Self::NoServer { .. } => Some("set clusters[].cluster.server in the kubeconfig, or --server".to_owned()),
            Self::Setting { .. } => None,
            Self::NoProxy { .. } => Some("leave that entry out of NO_PROXY (or no_proxy)".to_owned()),
            Self::Credentials { hint, .. } => hint.clone(),
        }
    }

    /// True if the kubeconfig or a flag is wrong (exit code 2), false if credentials could not be got (exit code 6).
    pub fn is_configuration(&self) -> bool {
        !matches!(self, Self::Credentials { .. })
    }
}

/// Names for a hint: not more than can be read.
fn list(names: &[String]) -> String {
    const MOST: usize = 12;
    let shown = names[..names.len().min(MOST)].join(", ");
    if names.len() > MOST { format!("{shown} and {} more", names.len() - MOST) } else { shown }
}

/// A connection to one cluster.
pub struct Connection {
    /// The client; clones of it follow a [`Connection::rebuild`].
    pub client: Client,
    /// Name of the context; `None` in a pod or where flags alone named the cluster.
    pub context: Option<String>,
    /// URL of the API server.
    pub server: String,
    current: Current,
    origin: Option<Origin>,
    request_timeout: Option<std::time::Duration>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("context", &self.context)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// What a connection was made of, to make it again.
#[derive(Debug, Clone)]
enum Origin {
    Kubeconfig(Box<ClientOptions>),
    InCluster,
}

impl Connection {
    /// A connection over a client that exists, for tests and simulations. It cannot be rebuilt.
    pub fn over(client: Client, server: impl Into<String>, request_timeout: Option<std::time::Duration>) -> Self {
        let current = Current::new(client);
        Self {
            client: Gate::client(current.clone(), request_timeout),
            context: None,
            server: server.into(),
            current,
            origin: None,
            request_timeout,
        }
    }

    /// Single requests over it.
    pub fn requests(&self) -> Requests {
        Requests::new(self.client.clone(), self.request_timeout)
    }

    /// How long a single request may take; `None` is no limit.
    pub fn request_timeout(&self) -> Option<std::time::Duration> {
        self.request_timeout
    }

    /// When the credentials end, where they tell: client certificates of a credential plugin are not renewed by
    /// themselves. (Tokens of plugins are, if the plugin says when they end.)
    pub fn valid_until(&self) -> Option<Timestamp> {
        *self.current.get().valid_until()
    }

    /// Reads kubeconfig and credentials anew and runs the credential plugin again. Everything made from
    /// [`Connection::client`] goes on with the new credentials; what is under way is not disturbed.
    ///
    /// A plugin may not ask anything now: there may be a live screen.
    pub async fn rebuild(&self) -> Result<(), ConnectError> {
        let Some(origin) = self.origin.clone() else {
            return Err(ConnectError::Setting { why: "this connection cannot be built again".to_owned() });
        };
        let (client, ..) = build(origin, false).await?;
        self.current.replace(client);
        Ok(())
    }
}

/// Connects as kubectl would: flags, then kubeconfig; a pod's own credentials only where neither exists. Nothing is sent
/// yet, but a credential plugin runs, and may ask for something: call it before anything is drawn.
pub async fn connect(options: &ClientOptions) -> Result<Connection, ConnectError> {
    let origin = Origin::Kubeconfig(Box::new(options.clone()));
    let (origin, built) = match build(origin.clone(), true).await {
        Err(ConnectError::NoKubeconfig { tried }) if !options.chooses_connection() => {
            let in_cluster = build(Origin::InCluster, true).await;
            (Origin::InCluster, in_cluster.map_err(|_| ConnectError::NoKubeconfig { tried })?)
        }
        built => (origin, built?),
    };
    let (client, context, server) = built;
    let current = Current::new(client);
    Ok(Connection {
        client: Gate::client(current.clone(), options.request_timeout),
        context,
        server,
        current,
        origin: Some(origin),
        request_timeout: options.request_timeout,
    })
}

/// A client with its context and server. Files and credential plugins block, so this has a thread of its own.
async fn build(origin: Origin, may_ask: bool) -> Result<(Client, Option<String>, String), ConnectError> {
    let task = tokio::task::spawn_blocking(move || {
        let (config, context) = configure(&origin, may_ask)?;
        let server = config.cluster_url.to_string();
        let client = client(config).map_err(|e| unusable(&e))?;
        Ok((client, context, server.trim_end_matches('/').to_owned()))
    });
    task.await.unwrap_or_else(|e| Err(ConnectError::Setting { why: format!("cannot build a client: {e}") }))
}

/// A client. The library would run a credential plugin three times, each of which may take seconds or open a browser:
/// here one that gives a token runs once. (For one that gives certificates there is no such way.)
fn client(mut config: Config) -> Result<Client, kube::Error> {
    if config.auth_info.exec.is_some()
        && let Some(token) = config.auth_layer()?
    {
        config.auth_info.exec = None;
        let anonymous = Client::try_from(config)?;
        let namespace = anonymous.default_namespace().to_owned();
        return Ok(ClientBuilder::new(Through(anonymous), namespace).with_layer(&token).build());
    }
    Client::try_from(config)
}

fn configure(origin: &Origin, may_ask: bool) -> Result<(Config, Option<String>), ConnectError> {
    let (mut config, context, proxy) = match origin {
        Origin::InCluster => {
            let config = Config::incluster().map_err(|e| ConnectError::Setting { why: e.to_string() })?;
            (config, None, None)
        }
        Origin::Kubeconfig(options) => from_kubeconfig(options, may_ask)?,
    };
    // The kubeconfig's own, whatever NO_PROXY says; else that of the environment.
    let proxy = proxy.or_else(|| proxy::of_environment(&config.cluster_url, |name| std::env::var(name).ok()));
    let proxy =
        proxy.map(|url| url.parse().map_err(|e| ConnectError::Setting { why: format!("the proxy's URL: {e}") }));
    config.proxy_url = proxy.transpose()?;
    // Repeating is this tool's own business: the client would repeat a refused eviction 15 times, unseen.
    config.default_retry = false;
    // A limit on reading would end watches; each request has its own.
    config.read_timeout = None;
    let agent = HeaderValue::from_static(concat!("kubectl-safe_drain/", env!("CARGO_PKG_VERSION")));
    config.headers.push((USER_AGENT, agent));
    Ok((config, context))
}

/// The configuration, its context, and the proxy that the kubeconfig names.
fn from_kubeconfig(
    options: &ClientOptions,
    may_ask: bool,
) -> Result<(Config, Option<String>, Option<String>), ConnectError> {
    let variable = std::env::var_os("KUBECONFIG");
    let home = std::env::home_dir();
    let sources = Sources::find(options.kubeconfig.as_deref(), variable.as_deref(), home.as_deref());
    let config = match sources.read()? {
        Some(config) => config,
        None if options.server.is_some() => kube::config::Kubeconfig::default(),
        None => return Err(ConnectError::NoKubeconfig { tried: sources.paths().to_vec() }),
    };
    let mut choice: Choice = choose(&config, options)?;
    if let Some(exec) = choice.user.exec.as_mut().filter(|_| !may_ask) {
        exec.interactive_mode = Some(ExecInteractiveMode::Never);
    }
    let context = choice.context.clone();
    let proxy = choice.cluster.proxy_url.clone().filter(|url| !url.is_empty());
    let loaded = tokio::runtime::Handle::current()
        .block_on(Config::from_custom_kubeconfig(choice.into_kubeconfig(), &KubeConfigOptions::default()));
    Ok((loaded.map_err(|e| invalid(&e))?, context, proxy))
}

/// What is wrong with the values of a kubeconfig that could be read.
fn invalid(error: &KubeconfigError) -> ConnectError {
    let why = |what: &str, error: &LoadDataError| match error {
        LoadDataError::ReadFile(e, path) => format!("cannot read the {what} {}: {e}", path.display()),
        LoadDataError::DecodeBase64(_) | LoadDataError::NoBase64DataOrFile => format!("the {what}: {error}"),
    };
    if let KubeconfigError::LoadClientCertificate(e) = error {
        return ConnectError::Credentials { why: why("client certificate", e), hint: None };
    }
    if let KubeconfigError::LoadClientKey(e) = error {
        return ConnectError::Credentials { why: why("client key", e), hint: None };
    }
    if let KubeconfigError::LoadCertificateAuthority(e) = error {
        return ConnectError::Setting { why: why("certificate authority", e) };
    }
    if let KubeconfigError::ParseNoProxy(e) = error {
        return ConnectError::NoProxy { why: e.to_string() };
    }
    ConnectError::Setting { why: error.to_string() }
}

/// Why no client can be made of a configuration.
fn unusable(error: &kube::Error) -> ConnectError {
    if let kube::Error::InferKubeconfig(e) = error {
        return invalid(e);
    }
    if let kube::Error::RustlsTls(e) = error {
        return ConnectError::Credentials {
            why: format!("the certificates cannot be used: {e}"),
            hint: Some("check certificate-authority, client-certificate and client-key".to_owned()),
        };
    }
    if let kube::Error::ProxyProtocolUnsupported { proxy_url } = error {
        let scheme = proxy_url.scheme_str().unwrap_or_default();
        return ConnectError::Setting { why: format!("proxies of the kind {scheme:?} are not supported") };
    }
    let ApiProblem { message, hint, .. } = explain(error);
    if matches!(error, kube::Error::Auth(_)) {
        ConnectError::Credentials { why: message, hint }
    } else {
        ConnectError::Setting { why: message }
    }
}

#[cfg(test)]
mod tests;
