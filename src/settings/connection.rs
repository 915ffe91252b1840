//! How to reach the API server: kubectl's connection flags.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

/// How long one request may take, watches excepted, unless `--request-timeout` says otherwise.
pub const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// kubectl's connection flags. A flag with an empty value counts as not given, as in kubectl.
///
/// There is no `PartialEq` on purpose: it would compare secrets.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// `--kubeconfig`.
    pub kubeconfig: Option<PathBuf>,
    /// `--context`.
    pub context: Option<String>,
    /// `--cluster`.
    pub cluster: Option<String>,
    /// `--user`.
    pub user: Option<String>,
    /// `-n`, `--namespace`. No effect on a drain, as in kubectl.
    pub namespace: Option<String>,
    /// `-s`, `--server`, as typed.
    pub server: Option<String>,
    /// `--token`.
    pub token: Option<SecretString>,
    /// `--username`.
    pub username: Option<String>,
    /// `--password`.
    pub password: Option<SecretString>,
    /// `--as`.
    pub as_user: Option<String>,
    /// `--as-group`, repeatable. Never without `--as`.
    pub as_groups: Vec<String>,
    /// `--as-uid`. Never without `--as`.
    pub as_uid: Option<String>,
    /// `--as-user-extra key=value`, repeatable. Never without `--as`.
    pub as_user_extra: Vec<(String, String)>,
    /// `--certificate-authority`. Never together with `--insecure-skip-tls-verify`.
    pub certificate_authority: Option<PathBuf>,
    /// `--client-certificate`.
    pub client_certificate: Option<PathBuf>,
    /// `--client-key`.
    pub client_key: Option<PathBuf>,
    /// `--insecure-skip-tls-verify`.
    pub insecure_skip_tls_verify: bool,
    /// `--tls-server-name`.
    pub tls_server_name: Option<String>,
    /// How long one request may take; `None` (`--request-timeout=0`) is no limit. Never applied to watches.
    pub request_timeout: Option<Duration>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            cluster: None,
            user: None,
            namespace: None,
            server: None,
            token: None,
            username: None,
            password: None,
            as_user: None,
            as_groups: Vec::new(),
            as_uid: None,
            as_user_extra: Vec::new(),
            certificate_authority: None,
            client_certificate: None,
            client_key: None,
            insecure_skip_tls_verify: false,
            tls_server_name: None,
            request_timeout: Some(DEFAULT_REQUEST_TIMEOUT),
        }
    }
}

impl ClientOptions {
    /// True if any flag names a cluster, a user or a way in. In-cluster credentials are used only if none does and
    /// there is no kubeconfig.
    ///
    /// `-n` and `--request-timeout` say nothing about where to connect and do not count.
    pub const fn chooses_connection(&self) -> bool {
        self.kubeconfig.is_some()
            || self.context.is_some()
            || self.cluster.is_some()
            || self.user.is_some()
            || self.server.is_some()
            || self.token.is_some()
            || self.username.is_some()
            || self.password.is_some()
            || self.as_user.is_some()
            || self.certificate_authority.is_some()
            || self.client_certificate.is_some()
            || self.client_key.is_some()
            || self.insecure_skip_tls_verify
            || self.tls_server_name.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_or_a_request_timeout_chooses_no_connection() {
        let options =
            ClientOptions { namespace: Some("a".to_owned()), request_timeout: None, ..ClientOptions::default() };
        assert!(!options.chooses_connection());
    }

    #[test]
    fn a_context_or_an_impersonated_user_chooses_a_connection() {
        let context = ClientOptions { context: Some("prod".to_owned()), ..ClientOptions::default() };
        let user = ClientOptions { as_user: Some("admin".to_owned()), ..ClientOptions::default() };
        assert!(context.chooses_connection());
        assert!(user.chooses_connection());
    }

    #[test]
    fn a_token_never_shows_in_debug_output() {
        let options = ClientOptions { token: Some(SecretString::from("s3cret")), ..ClientOptions::default() };
        assert!(!format!("{options:?}").contains("s3cret"));
    }
}
