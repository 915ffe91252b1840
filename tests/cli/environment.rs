//! What kubectl reads of its surroundings, and we with it: lists of kubeconfigs, credential plugins, proxies, impersonation.

use std::path::Path;

use crate::cluster::{Cluster, kubeconfig};
use crate::server::{Answer, Server, closed_port};
use crate::tool::{Home, Run, run};

/// Refuses everything.
fn forbidding() -> Server {
    let status = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","reason":"Forbidden","code":403}"#;
    Server::http(Answer::http("403 Forbidden", "application/json", status))
}

#[test]
fn a_list_of_kubeconfigs_is_merged() {
    let cluster = Cluster::scenario("plain");
    let server = std::fs::read_to_string(&cluster.kubeconfig).unwrap();
    let (clusters, users) = server.split_once("users:").unwrap();
    let (clusters, contexts) = clusters.split_once("contexts:").unwrap();
    let head = "apiVersion: v1\nkind: Config\n";
    // The first that says something wins; a file that is not there is passed over.
    let first = cluster.home.file("first", &format!("{head}contexts:{contexts}current-context: sim\n"));
    let second = cluster.home.file(
        "second",
        &format!("{}users:{users}current-context: other\n", clusters.replace("current-context: sim\n", "")),
    );
    let missing = cluster.home.path().join("missing");
    let list = std::env::join_paths([&missing, &first, &second]).unwrap();
    let run = run(cluster.home.tool(Path::new(&list), &["node-0", "--dry-run"]));
    assert_eq!(run.code(), 0, "{}", run.text());
    assert!(run.stdout.contains("context sim"), "{}", run.text());
    // One file is not enough.
    let alone = crate::tool::run(cluster.home.tool(&first, &["node-0", "--dry-run"]));
    assert_eq!(alone.code(), 2, "{}", alone.text());
}

#[test]
fn who_is_impersonated_is_sent_with_each_request() {
    let server = forbidding();
    let home = Home::new();
    let file = home.file("kubeconfig", &kubeconfig(&format!("http://{}", server.address), "", "{token: geheim}"));
    let words =
        ["node-0", "--as", "me", "--as-uid=7", "--as-group", "g1", "--as-group=g2", "--as-user-extra", "scopes=view"];
    let run = run(home.tool(&file, &words));
    assert_eq!(run.code(), 6, "{}", run.text());
    let heads = server.heads();
    assert!(!heads.is_empty());
    for head in heads {
        let head = head.to_ascii_lowercase();
        let sent = ["user: me", "uid: 7", "group: g1", "group: g2", "extra-scopes: view"];
        assert!(sent.iter().all(|part| head.contains(&format!("\r\nimpersonate-{part}\r\n"))), "{head}");
    }
}

/// A drain of a cluster that only a proxy can reach, with these variables.
fn behind(variables: &[(&str, &str)], cluster: &str) -> Run {
    let home = Home::new();
    let file = home.file("kubeconfig", &kubeconfig("https://api.invalid:6443", cluster, "{}"));
    let mut command = home.tool(&file, &["node-0", "--request-timeout=20s"]);
    command.envs(variables.iter().copied());
    let run = run(command);
    assert_eq!(run.code(), 6, "{}", run.text());
    run
}

#[test]
fn a_proxy_is_used_as_the_environment_or_the_kubeconfig_says() {
    for variable in ["HTTPS_PROXY", "https_proxy"] {
        let proxy = forbidding();
        let run = behind(&[(variable, &format!("http://{}", proxy.address))], "");
        assert_eq!(proxy.requests(), ["CONNECT api.invalid:6443 HTTP/1.1"], "{variable}\n{}", run.text());
        assert!(run.stderr.contains("the proxy does not connect to the API server"), "{}", run.text());
    }
    // The kubeconfig's comes first.
    let proxy = forbidding();
    let nobody = format!("http://{}", closed_port());
    let run = behind(&[("HTTPS_PROXY", &nobody)], &format!("    proxy-url: http://{}\n", proxy.address));
    assert_eq!(proxy.requests().len(), 1, "{}", run.text());
}

#[test]
fn no_proxy_is_heeded() {
    for (names, direct) in [("api.invalid", true), (".invalid,10.0.0.0/8", true), ("*", true), ("other.invalid", false)]
    {
        let proxy = forbidding();
        let run = behind(&[("HTTPS_PROXY", &format!("http://{}", proxy.address)), ("NO_PROXY", names)], "");
        assert_eq!(proxy.requests().is_empty(), direct, "{names}\n{}", run.text());
    }
}

#[test]
fn an_http_proxy_is_not_for_https() {
    let proxy = forbidding();
    behind(&[("HTTP_PROXY", &format!("http://{}", proxy.address))], "");
    assert_eq!(proxy.requests(), Vec::<String>::new());
}

#[test]
fn an_entry_of_no_proxy_that_cannot_be_read_is_named() {
    let home = Home::new();
    let file = home.file("kubeconfig", &kubeconfig("https://api.invalid:6443", "", "{}"));
    let mut command = home.tool(&file, &["node-0"]);
    command.envs([("HTTPS_PROXY", "http://127.0.0.1:1"), ("NO_PROXY", "other.example,")]);
    let run = run(command);
    run.one_error_and_a_hint();
    assert!(
        run.stderr.contains("NO_PROXY in the environment cannot be read: comma-separated value is empty"),
        "{}",
        run.text()
    );
    assert_eq!(run.code(), 2, "{}", run.text());
}
