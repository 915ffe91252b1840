use std::path::PathBuf;

use super::*;

const TWO: &str = "
current-context: a
clusters:
- {name: ca, cluster: {server: 'https://a:6443', certificate-authority-data: QQ==, tls-server-name: inner}}
- {name: cb, cluster: {server: 'https://b:6443'}}
contexts:
- {name: a, context: {cluster: ca, user: ua, namespace: shop}}
- {name: b, context: {cluster: cb, user: ub}}
- {name: dangling, context: {cluster: ca, user: nobody}}
users:
- {name: ua, user: {client-certificate-data: QQ==, client-key-data: QQ==, as: boss, as-groups: [all]}}
- {name: ub, user: {exec: {command: login}}}
";

fn chosen(options: &ClientOptions) -> Result<Choice, ConnectError> {
    choose(&Kubeconfig::from_yaml(TWO).unwrap(), options)
}

#[test]
fn sources_are_those_of_kubectl() {
    let home = Path::new("/home/u");
    let find =
        |flag: Option<&str>, list: Option<&str>| Sources::find(flag.map(Path::new), list.map(OsStr::new), Some(home));
    let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
    assert_eq!(find(Some("/x"), Some("/a:/b")), Sources { paths: paths(&["/x"]), explicit: true });
    assert_eq!(find(None, Some("/a::/b")), Sources { paths: paths(&["/a", "/b"]), explicit: false });
    for empty in [None, Some(""), Some(":")] {
        assert_eq!(find(None, empty), Sources { paths: paths(&["/home/u/.kube/config"]), explicit: false });
    }
}

#[test]
fn missing_files_of_the_list_are_skipped_but_a_missing_flag_is_an_error() {
    let missing = PathBuf::from("/no/such/kubeconfig");
    let list = Sources { paths: vec![missing.clone(), missing.clone()], explicit: false };
    assert!(list.read().unwrap().is_none());
    let flag = Sources { paths: vec![missing.clone()], explicit: true };
    assert_eq!(flag.read().unwrap_err(), ConnectError::KubeconfigMissing { path: missing });
}

#[test]
fn the_current_context_or_the_named_one() {
    let a = chosen(&ClientOptions::default()).unwrap();
    assert_eq!((a.context.as_deref(), a.namespace.as_deref()), (Some("a"), Some("shop")));
    assert_eq!(a.cluster.server.as_deref(), Some("https://a:6443"));
    let b = chosen(&ClientOptions { context: Some("b".into()), ..ClientOptions::default() }).unwrap();
    assert_eq!(b.cluster.server.as_deref(), Some("https://b:6443"));
    assert!(b.user.exec.is_some());
}

#[test]
fn unknown_names_are_errors_that_list_the_known_ones() {
    let error = |options| chosen(&options).unwrap_err();
    let context = error(ClientOptions { context: Some("x".into()), ..ClientOptions::default() });
    assert_eq!(context.to_string(), "there is no context \"x\" in the kubeconfig");
    assert_eq!(context.hint().unwrap(), "it has: a, b, dangling");
    // The client library would go on without credentials.
    let user = error(ClientOptions { context: Some("dangling".into()), ..ClientOptions::default() });
    assert_eq!(user, ConnectError::UnknownUser { name: "nobody".into(), known: vec!["ua".into(), "ub".into()] });
    let cluster = error(ClientOptions { cluster: Some("x".into()), ..ClientOptions::default() });
    assert_eq!(cluster, ConnectError::UnknownCluster { name: "x".into(), known: vec!["ca".into(), "cb".into()] });
    let none = choose(&Kubeconfig::from_yaml("current-context: ''").unwrap(), &ClientOptions::default()).unwrap_err();
    assert_eq!(none, ConnectError::NoContext { known: vec![] });
}

#[test]
fn a_server_flag_needs_no_context_and_never_means_http() {
    let options = ClientOptions { server: Some("10.0.0.1:6443".into()), ..ClientOptions::default() };
    let choice = choose(&Kubeconfig::default(), &options).unwrap();
    assert_eq!(choice.cluster.server.as_deref(), Some("https://10.0.0.1:6443"));
    let with_context = chosen(&options).unwrap();
    assert_eq!(with_context.cluster.tls_server_name, None, "it belonged to the other server");
    assert!(with_context.user.client_certificate_data.is_some());
}

#[test]
fn a_token_replaces_the_certificate_but_not_whom_to_act_as() {
    let token = ClientOptions { token: Some("t".to_owned().into()), ..ClientOptions::default() };
    let user = chosen(&token).unwrap().user;
    assert!(user.token.is_some() && user.client_certificate_data.is_none() && user.client_key_data.is_none());
    assert_eq!(user.impersonate.as_deref(), Some("boss"));
    let both = ClientOptions {
        token: Some("t".to_owned().into()),
        client_certificate: Some("/c.pem".into()),
        client_key: Some("/k.pem".into()),
        ..ClientOptions::default()
    };
    let user = chosen(&both).unwrap().user;
    assert_eq!((user.token.is_some(), user.client_certificate.as_deref()), (true, Some("/c.pem")));
}

#[test]
fn acting_as_somebody_replaces_the_whole_identity() {
    let options = ClientOptions {
        as_user: Some("jane".into()),
        as_uid: Some("7".into()),
        as_user_extra: vec![("k".into(), "1".into()), ("k".into(), "2".into())],
        ..ClientOptions::default()
    };
    let user = chosen(&options).unwrap().user;
    assert_eq!((user.impersonate.as_deref(), user.impersonate_uid.as_deref()), (Some("jane"), Some("7")));
    assert_eq!(user.impersonate_groups, None);
    assert_eq!(user.impersonate_user_extra.unwrap()["k"], ["1", "2"]);
}

#[test]
fn trust_flags_replace_the_authority() {
    let insecure = ClientOptions { insecure_skip_tls_verify: true, ..ClientOptions::default() };
    let cluster = chosen(&insecure).unwrap().cluster;
    assert_eq!((cluster.insecure_skip_tls_verify, cluster.certificate_authority_data), (Some(true), None));
    let authority = ClientOptions { certificate_authority: Some("/ca.pem".into()), ..ClientOptions::default() };
    let cluster = chosen(&authority).unwrap().cluster;
    assert_eq!(cluster.certificate_authority.as_deref(), Some("/ca.pem"));
    assert_eq!((cluster.insecure_skip_tls_verify, cluster.certificate_authority_data), (Some(false), None));
}
