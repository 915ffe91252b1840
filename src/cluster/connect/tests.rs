use std::path::PathBuf;

use super::*;

/// A kubeconfig in a file of its own, removed when dropped.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("safe-drain-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn kubeconfig(user: &str) -> String {
    format!(
        "current-context: c\n\
         clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         users: [{{name: u, user: {user}}}]\n"
    )
}

fn options(file: &File) -> ClientOptions {
    ClientOptions { kubeconfig: Some(file.0.clone()), ..ClientOptions::default() }
}

#[tokio::test]
async fn a_plugin_that_gives_a_token_runs_once_per_build() {
    let runs = File::new("runs", "");
    let user = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: sh, args: ['-c', \
         'echo run >> {}; echo \"{{\\\"kind\\\":\\\"ExecCredential\\\",\\\"apiVersion\\\":\\\"client.authentication.k8s.io/v1\\\",\
         \\\"status\\\":{{\\\"token\\\":\\\"t\\\"}}}}\"']}}}}",
        runs.0.display()
    );
    let file = File::new("token", &kubeconfig(&user));
    let count = || std::fs::read_to_string(&runs.0).unwrap().lines().count();
    let connection = connect(&options(&file)).await.unwrap();
    assert_eq!((connection.context.as_deref(), connection.server.as_str()), (Some("c"), "https://127.0.0.1:1"));
    assert_eq!(count(), 1);
    connection.rebuild().await.unwrap();
    assert_eq!(count(), 2);
}

#[tokio::test]
async fn a_plugin_that_fails_is_quoted() {
    let user = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never, \
                args: ['-c', 'echo please log in >&2; exit 3']}}";
    let file = File::new("failing", &kubeconfig(user));
    let error = connect(&options(&file)).await.unwrap_err();
    assert_eq!(error.to_string(), "the credential plugin `sh` failed with exit status: 3: please log in");
    assert!(!error.is_configuration());
}

#[tokio::test]
async fn files_that_are_missing_are_named() {
    let file = File::new("cert", &kubeconfig("{client-certificate: /no/such.crt, client-key: /no/such.key}"));
    let error = connect(&options(&file)).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot read the client certificate /no/such.crt: "), "{error}");
    let missing = ClientOptions { kubeconfig: Some("/no/such/kubeconfig".into()), ..ClientOptions::default() };
    let error = connect(&missing).await.unwrap_err();
    assert_eq!(error.to_string(), "the kubeconfig /no/such/kubeconfig does not exist");
    assert!(error.is_configuration());
}

#[tokio::test]
async fn secrets_of_a_broken_kubeconfig_are_not_repeated() {
    let file = File::new("broken", "users:\n- name: u\n  user:\n    token: hunter2\n   bad: [\n");
    let error = connect(&options(&file)).await.unwrap_err();
    assert!(matches!(error, ConnectError::KubeconfigInvalid { .. }));
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[tokio::test]
async fn nobody_listens() {
    let file = File::new("refused", &kubeconfig("{token: t}"));
    let requests = connect(&options(&file)).await.unwrap().requests();
    let problem = requests.server_version().await.unwrap_err();
    assert_eq!(problem.message, "the API server refuses the connection");
}
