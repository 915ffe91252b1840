//! kubectl's own flags: those that choose cluster and user, those without effect here, and those that are refused.

use super::flags::{Flag, Group, Takes, flag, flag_short};

/// kubectl's connection flags.
pub(super) const CONNECTION: &[Flag] = &[
    flag(
        "kubeconfig",
        Takes::Path("PATH"),
        Group::Connection,
        "the kubeconfig file (else $KUBECONFIG, ~/.kube/config)",
    ),
    flag("context", Takes::Text("NAME"), Group::Connection, "the kubeconfig context"),
    flag("cluster", Takes::Text("NAME"), Group::Connection, "the kubeconfig cluster"),
    flag("user", Takes::Text("NAME"), Group::Connection, "the kubeconfig user"),
    flag_short('n', "namespace", Takes::Text("NAME"), Group::Connection, "the namespace; no effect on a drain"),
    flag_short('s', "server", Takes::Text("URL"), Group::Connection, "address of the API server"),
    flag("token", Takes::Text("TOKEN"), Group::Connection, "bearer token"),
    flag("username", Takes::Text("NAME"), Group::Connection, "user name for basic authentication"),
    flag("password", Takes::Text("PASSWORD"), Group::Connection, "password for basic authentication"),
    flag("as", Takes::Text("USER"), Group::Connection, "the user to impersonate"),
    flag("as-group", Takes::Many("GROUP"), Group::Connection, "a group to impersonate; repeat it for more"),
    flag("as-uid", Takes::Text("UID"), Group::Connection, "the uid to impersonate"),
    flag("as-user-extra", Takes::Many("KEY=VALUE"), Group::Connection, "an extra to impersonate; repeat it for more"),
    flag("certificate-authority", Takes::Path("PATH"), Group::Connection, "certificates to trust the API server by"),
    flag("client-certificate", Takes::Path("PATH"), Group::Connection, "client certificate"),
    flag("client-key", Takes::Path("PATH"), Group::Connection, "key of the client certificate"),
    flag("insecure-skip-tls-verify", Takes::Nothing, Group::Connection, "don't check the API server's certificate"),
    flag("tls-server-name", Takes::Text("NAME"), Group::Connection, "the name that the certificate must carry"),
    flag(
        "request-timeout",
        Takes::Duration("DURATION"),
        Group::Connection,
        "limit of one request, watches excepted; a bare number is seconds, 0 none (default 30s)",
    ),
];

/// Accepted without effect, or refused by [`REFUSED`]; neither help nor completion shows them.
pub(super) const HIDDEN: &[Flag] = &[
    flag("cache-dir", Takes::Path("PATH"), Group::Inert, "no effect: nothing is cached"),
    flag("vmodule", Takes::Text("PATTERN"), Group::Inert, "no effect"),
    flag("log-flush-frequency", Takes::Duration("DURATION"), Group::Inert, "no effect: logs are not buffered"),
    flag("profile", Takes::Text("NAME"), Group::Inert, "no effect"),
    flag("profile-output", Takes::Path("PATH"), Group::Inert, "no effect"),
    flag("disable-compression", Takes::Nothing, Group::Inert, "no effect"),
    flag("kuberc", Takes::Path("PATH"), Group::Inert, "no effect: preferences are for kubectl's own commands"),
    flag("warnings-as-errors", Takes::Nothing, Group::Refused, "refused"),
    flag("match-server-version", Takes::Nothing, Group::Refused, "refused"),
];

/// Flags that promise a failure which would not come, each with the reason it is refused for.
pub(super) const REFUSED: &[(&str, &str)] = &[
    ("warnings-as-errors", "a warning of the server is shown here, but it would not make the command fail"),
    ("match-server-version", "any supported server is accepted here, so a difference would not make the command fail"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refused_flag_has_a_reason() {
        let refused: Vec<&str> = HIDDEN.iter().filter(|flag| flag.group == Group::Refused).map(|f| f.name).collect();
        let reasons: Vec<&str> = REFUSED.iter().map(|(name, _)| *name).collect();
        assert_eq!(refused, reasons);
    }
}
