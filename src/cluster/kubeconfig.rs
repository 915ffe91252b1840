//! Which cluster and which user: kubeconfig files, and the flags that override them.
//!
//! Everything that could send a drain to another cluster, or under another name, than the one that was asked for is an
//! error here: an unknown context, cluster or user, and an explicit file that is missing.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use kube::config::{
    AuthInfo, Cluster, Context, Kubeconfig, KubeconfigError, NamedAuthInfo, NamedCluster, NamedContext,
};

use super::connect::ConnectError;
use crate::settings::ClientOptions;

/// Files to read, in order of precedence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sources {
    paths: Vec<PathBuf>,
    /// True for `--kubeconfig`: the file must be there.
    explicit: bool,
}

impl Sources {
    /// `--kubeconfig`, else the list in `KUBECONFIG`, else `~/.kube/config`.
    pub(super) fn find(flag: Option<&Path>, variable: Option<&OsStr>, home: Option<&Path>) -> Self {
        if let Some(path) = flag {
            return Self { paths: vec![path.to_owned()], explicit: true };
        }
        let listed: Vec<PathBuf> = variable
            .map(|list| std::env::split_paths(list).filter(|p| !p.as_os_str().is_empty()).collect())
            .unwrap_or_default();
        let paths =
            if listed.is_empty() { home.map(|h| h.join(".kube").join("config")).into_iter().collect() } else { listed };
        Self { paths, explicit: false }
    }

    /// Reads and merges the files; `None` if none of them exists. Of two entries with one name the first counts.
    pub(super) fn read(&self) -> Result<Option<Kubeconfig>, ConnectError> {
        let mut merged: Option<Kubeconfig> = None;
        for path in &self.paths {
            let next = match Kubeconfig::read_from(path) {
                Ok(config) => config,
                Err(KubeconfigError::ReadConfig(e, _)) if e.kind() == io::ErrorKind::NotFound => {
                    if self.explicit {
                        return Err(ConnectError::KubeconfigMissing { path: path.clone() });
                    }
                    continue;
                }
                Err(KubeconfigError::ReadConfig(e, _)) => {
                    return Err(ConnectError::KubeconfigUnreadable { path: path.clone(), why: e.to_string() });
                }
                Err(e) => {
                    // Further lines of a YAML error repeat the file, which has credentials in it.
                    let why = e.to_string().lines().next().unwrap_or_default().to_owned();
                    return Err(ConnectError::KubeconfigInvalid { path: path.clone(), why });
                }
            };
            merged = Some(match merged {
                None => next,
                Some(first) => first
                    .merge(next)
                    .map_err(|e| ConnectError::KubeconfigInvalid { path: path.clone(), why: e.to_string() })?,
            });
        }
        Ok(merged)
    }

    /// The files, for a message.
    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

/// One cluster, one user: what a connection is made of.
#[derive(Debug, Clone, Default)]
pub(super) struct Choice {
    /// Name of the context, where one was chosen.
    pub(super) context: Option<String>,
    /// Namespace of the context.
    pub(super) namespace: Option<String>,
    /// The cluster, flags applied.
    pub(super) cluster: Cluster,
    /// The user, flags applied.
    pub(super) user: AuthInfo,
}

impl Choice {
    /// The same as a kubeconfig with nothing else in it.
    pub(super) fn into_kubeconfig(self) -> Kubeconfig {
        let name = "chosen".to_owned();
        Kubeconfig {
            clusters: vec![NamedCluster { name: name.clone(), cluster: Some(self.cluster), ..NamedCluster::default() }],
            auth_infos: vec![NamedAuthInfo {
                name: name.clone(),
                auth_info: Some(self.user),
                ..NamedAuthInfo::default()
            }],
            contexts: vec![NamedContext {
                name: name.clone(),
                context: Some(Context {
                    cluster: name.clone(),
                    user: Some(name.clone()),
                    namespace: self.namespace,
                    ..Context::default()
                }),
                ..NamedContext::default()
            }],
            current_context: Some(name),
            ..Kubeconfig::default()
        }
    }
}

/// Picks cluster and user out of a kubeconfig and applies the flags.
pub(super) fn choose(config: &Kubeconfig, options: &ClientOptions) -> Result<Choice, ConnectError> {
    let wanted = options.context.clone().or_else(|| filled(config.current_context.as_ref()));
    let known = || names(config.contexts.iter().map(|c| &c.name));
    let context = match &wanted {
        Some(name) => Some(
            config
                .contexts
                .iter()
                .find(|c| c.name == *name)
                .and_then(|c| c.context.clone())
                .ok_or_else(|| ConnectError::UnknownContext { name: name.clone(), known: known() })?,
        ),
        // Flags alone can name a cluster, as with kubectl.
        None if options.server.is_some() || options.cluster.is_some() => None,
        None => return Err(ConnectError::NoContext { known: known() }),
    };

    let cluster_name =
        options.cluster.clone().or_else(|| context.as_ref().map(|c| c.cluster.clone()).filter(|c| !c.is_empty()));
    let mut cluster = match &cluster_name {
        Some(name) => {
            config.clusters.iter().find(|c| c.name == *name).and_then(|c| c.cluster.clone()).ok_or_else(|| {
                ConnectError::UnknownCluster {
                    name: name.clone(),
                    known: names(config.clusters.iter().map(|c| &c.name)),
                }
            })?
        }
        None => Cluster::default(),
    };
    let user_name = options.user.clone().or_else(|| context.as_ref().and_then(|c| filled(c.user.as_ref())));
    let mut user = match &user_name {
        Some(name) => config
            .auth_infos
            .iter()
            .find(|u| u.name == *name)
            .map(|u| u.auth_info.clone().unwrap_or_default())
            .ok_or_else(|| ConnectError::UnknownUser {
                name: name.clone(),
                known: names(config.auth_infos.iter().map(|u| &u.name)),
            })?,
        None => AuthInfo::default(),
    };

    override_cluster(&mut cluster, options)?;
    override_user(&mut user, options)?;
    if filled(cluster.server.as_ref()).is_none() {
        return Err(ConnectError::NoServer { cluster: cluster_name });
    }
    Ok(Choice { context: wanted, namespace: context.and_then(|c| filled(c.namespace.as_ref())), cluster, user })
}

fn override_cluster(cluster: &mut Cluster, options: &ClientOptions) -> Result<(), ConnectError> {
    if let Some(server) = &options.server {
        // Without a scheme kubectl may take http, which sends credentials in the clear.
        let url = if server.contains("://") { server.clone() } else { format!("https://{server}") };
        cluster.server = Some(url);
        cluster.tls_server_name = None;
    }
    if let Some(name) = &options.tls_server_name {
        cluster.tls_server_name = Some(name.clone());
    }
    if options.insecure_skip_tls_verify || options.certificate_authority.is_some() {
        cluster.insecure_skip_tls_verify = Some(options.insecure_skip_tls_verify);
        cluster.certificate_authority_data = None;
        cluster.certificate_authority = options.certificate_authority.as_deref().map(text).transpose()?;
    }
    Ok(())
}

/// Credentials on the command line replace those of the kubeconfig: sent side by side, the API server would take the
/// certificate and ignore a `--token` without a word.
fn override_user(user: &mut AuthInfo, options: &ClientOptions) -> Result<(), ConnectError> {
    let certificate = options.client_certificate.is_some() || options.client_key.is_some();
    let basic = options.username.is_some() || options.password.is_some();
    if options.token.is_some() || basic {
        let (username, password) = (user.username.take(), user.password.take());
        *user = without_credentials(user);
        user.token.clone_from(&options.token);
        user.username = options.username.clone().or(username).filter(|_| basic);
        user.password = options.password.clone().or(password).filter(|_| basic);
    } else if certificate {
        let files = (user.client_certificate.take(), user.client_key.take());
        let data = (user.client_certificate_data.take(), user.client_key_data.take());
        *user = without_credentials(user);
        (user.client_certificate, user.client_key) = files;
        (user.client_certificate_data, user.client_key_data) = data;
    }
    if let Some(path) = &options.client_certificate {
        user.client_certificate = Some(text(path)?);
        user.client_certificate_data = None;
    }
    if let Some(path) = &options.client_key {
        user.client_key = Some(text(path)?);
        user.client_key_data = None;
    }
    if let Some(name) = &options.as_user {
        let mut extra: HashMap<String, Vec<String>> = HashMap::new();
        for (key, value) in &options.as_user_extra {
            extra.entry(key.clone()).or_default().push(value.clone());
        }
        user.impersonate = Some(name.clone());
        user.impersonate_uid.clone_from(&options.as_uid);
        user.impersonate_groups = Some(options.as_groups.clone()).filter(|g| !g.is_empty());
        user.impersonate_user_extra = Some(extra).filter(|e| !e.is_empty());
    }
    Ok(())
}

/// Only whom the user acts as.
fn without_credentials(user: &mut AuthInfo) -> AuthInfo {
    AuthInfo {
        impersonate: user.impersonate.take(),
        impersonate_uid: user.impersonate_uid.take(),
        impersonate_groups: user.impersonate_groups.take(),
        impersonate_user_extra: user.impersonate_user_extra.take(),
        ..AuthInfo::default()
    }
}

fn text(path: &Path) -> Result<String, ConnectError> {
    path.to_str().map(str::to_owned).ok_or_else(|| ConnectError::Credentials {
        why: format!("the path {} is not UTF-8", path.display()),
        hint: None,
    })
}

fn filled(text: Option<&String>) -> Option<String> {
    text.filter(|t| !t.is_empty()).cloned()
}

fn names<'a>(all: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut names: Vec<String> = all.cloned().collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests;
