//! API servers that are not there, do not answer, are somebody else, or do not let the user in.

use std::time::{Duration, Instant};

use insta::assert_snapshot;

use crate::cluster::{Cluster, kubeconfig};
use crate::server::{Answer, Server, closed_port};
use crate::tls::{Authority, Validity};
use crate::tool::{Home, Run, run};

/// Runs a drain against that server.
fn drain(server: &str, cluster: &str, args: &[&str]) -> Run {
    let home = Home::new();
    let file = home.file("kubeconfig", &kubeconfig(server, cluster, "{token: geheim}"));
    let run = run(home.tool(&file, &[&["node-0"], args].concat()));
    assert!(!run.text().contains("geheim"), "{}", run.text());
    run
}

/// The same, and it ends with 6 and a hint.
fn refused(server: &str, cluster: &str, args: &[&str]) -> Run {
    let run = drain(server, cluster, args);
    run.one_error_and_a_hint();
    assert_eq!(run.code(), 6, "{}", run.text());
    run
}

#[test]
fn nobody_listens() {
    let run = refused(&format!("http://{}", closed_port()), "", &[]);
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    error: cannot read node node-0: the API server refuses the connection
    hint: is it running, and is the address right (`kubectl config view --minify`)?
    [exit status: 6]
    ");
}

#[test]
fn the_name_does_not_resolve() {
    let run = refused("https://host.invalid:6443", "", &["--request-timeout", "20s"]);
    let first = run.stderr.lines().next().unwrap();
    // What follows is the system's text.
    assert!(first.starts_with("error: cannot read node node-0: the API server's name cannot be resolved"), "{first}");
}

#[test]
fn the_server_never_answers() {
    let server = Server::http(Answer::Silence);
    let start = Instant::now();
    let run = refused(&format!("http://{}", server.address), "", &["--request-timeout", "1s"]);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!(server.requests(), ["GET /api/v1/nodes/node-0 HTTP/1.1"]);
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    error: cannot read node node-0: the API server gave no answer within 1s
    hint: is it overloaded, or does something on the way drop packets? --request-timeout sets how long to wait
    [exit status: 6]
    ");
}

#[test]
fn the_server_closes_the_connection() {
    let server = Server::http(Answer::Bytes(String::new()));
    let run = drain(&format!("http://{}", server.address), "", &[]);
    assert_eq!(run.code(), 6, "{}", run.text());
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    error: cannot read node node-0: the connection to the API server broke: connection closed before message completed
    hint: is that the address of an API server (`kubectl config view --minify`)? a proxy may answer in its place
    [exit status: 6]
    ");
}

#[test]
fn the_server_speaks_html() {
    let page = "<!DOCTYPE html><html><head><title>Sign in</title></head><body>please</body></html>";
    let server = Server::http(Answer::http("200 OK", "text/html", page));
    let run = drain(&format!("http://{}", server.address), "", &[]);
    assert_eq!(run.code(), 6, "{}", run.text());
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    error: cannot read node node-0: the server's answer could not be read: expected value at line 1 column 1
    hint: is that the address of an API server (`kubectl config view --minify`)? a proxy may answer in its place
    [exit status: 6]
    ");
}

#[test]
fn a_proxy_answers_with_a_page_of_its_own() {
    let server =
        Server::http(Answer::http("502 Bad Gateway", "text/html", "<html><body>upstream failed</body></html>"));
    let run = drain(&format!("http://{}", server.address), "", &[]);
    assert_eq!(run.code(), 6, "{}", run.text());
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    error: cannot read node node-0: the server answered 502, and not as a Kubernetes API does: <html><body>upstream failed</body></html>
    hint: is that the address of an API server (`kubectl config view --minify`)? a proxy may answer in its place
    [exit status: 6]
    ");
}

#[test]
fn an_answer_that_is_no_status_is_named_by_its_code() {
    for status in ["502 Bad Gateway", "404 Not Found", "403 Forbidden"] {
        let server = Server::http(Answer::http(status, "text/html", "<html><body>a proxy</body></html>"));
        let run = refused(&format!("http://{}", server.address), "", &[]);
        assert!(run.stderr.contains(&status[..3]), "{}", run.text());
    }
}

#[test]
fn answers_that_cannot_be_understood_come_with_a_hint() {
    for answer in [Answer::http("200 OK", "text/html", "<html></html>"), Answer::Bytes(String::new())] {
        let server = Server::http(answer);
        refused(&format!("http://{}", server.address), "", &[]);
    }
}

#[test]
fn the_server_speaks_something_else() {
    let server = Server::http(Answer::Bytes("SSH-2.0-OpenSSH_9.6\r\n".to_owned()));
    let run = drain(&format!("http://{}", server.address), "", &[]);
    assert_eq!(run.code(), 6, "{}", run.text());
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    error: cannot read node node-0: the connection to the API server broke: invalid HTTP version parsed
    hint: is that the address of an API server (`kubectl config view --minify`)? a proxy may answer in its place
    [exit status: 6]
    ");
}

const UNAUTHORIZED: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;

fn unauthorized() -> Answer {
    Answer::http("401 Unauthorized", "application/json", UNAUTHORIZED)
}

#[test]
fn the_credentials_are_refused() {
    let server = Server::http(unauthorized());
    let run = refused(&format!("http://{}", server.address), "", &[]);
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    error: cannot read node node-0: the API server does not accept the credentials (401 Unauthorized)
    hint: a token or certificate may have expired: log in again, then try `kubectl auth whoami`
    [exit status: 6]
    ");
}

#[test]
fn a_credential_plugin_that_is_not_installed() {
    let cluster = Cluster::scenario("plain");
    let user = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin, interactiveMode: Never}}";
    let server = std::fs::read_to_string(&cluster.kubeconfig).unwrap();
    let file = cluster.home.file("with-plugin", &server.replace("user: {}", &format!("user: {user}")));
    let run = run(cluster.home.tool(&file, &["node-0"]));
    assert_eq!(run.code(), 6, "{}", run.text());
    run.one_error_and_a_hint();
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    error: the kubeconfig's credential plugin cannot be started: No such file or directory (os error 2)
    hint: install it, or check PATH (`users[].user.exec.command` names it)
    [exit status: 6]
    ");
    assert!(cluster.sim.requests().is_empty());
}

#[test]
fn a_certificate_that_is_trusted_lets_the_request_through() {
    let authority = Authority::new();
    let server = Server::tls(authority.server(Validity::Now), unauthorized());
    let run = refused(&format!("https://{}", server.address), &authority.trusted(), &[]);
    assert!(run.stderr.contains("401 Unauthorized"), "{}", run.text());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_certificate_that_has_expired() {
    let authority = Authority::new();
    let server = Server::tls(authority.server(Validity::Past), unauthorized());
    let run = refused(&format!("https://{}", server.address), &authority.trusted(), &[]);
    assert_eq!(server.requests(), Vec::<String>::new());
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    error: cannot read node node-0: the API server's certificate has expired since 2020-01-01T00:00:00Z
    hint: renew it on the control plane, or check this machine's clock
    [exit status: 6]
    ");
}

#[test]
fn a_certificate_of_an_unknown_authority() {
    let server = Server::tls(Authority::new().server(Validity::Now), unauthorized());
    let run = refused(&format!("https://{}", server.address), &Authority::new().trusted(), &[]);
    assert_eq!(server.requests(), Vec::<String>::new());
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    error: cannot read node node-0: the API server's certificate is signed by an authority that is not trusted
    hint: does certificate-authority in the kubeconfig belong to this cluster? Was the cluster rebuilt?
    [exit status: 6]
    ");
}

#[test]
fn a_certificate_for_another_name() {
    let authority = Authority::new();
    let server = Server::tls(authority.server(Validity::Now), unauthorized());
    let cluster = authority.trusted() + "    tls-server-name: elsewhere.example\n";
    let run = refused(&format!("https://{}", server.address), &cluster, &[]);
    assert_eq!(server.requests(), Vec::<String>::new());
    assert_snapshot!(run.text(), @r#"
    ------- stderr -------
    error: cannot read node node-0: the API server's certificate is for another name: certificate not valid for name "elsewhere.example"; certificate is only valid for IpAddress(127.0.0.1)
    hint: use an address that the certificate names, or --tls-server-name
    [exit status: 6]
    "#);
}

#[test]
fn plain_http_where_tls_was_expected() {
    let cluster = Cluster::scenario("plain");
    let server = std::fs::read_to_string(&cluster.kubeconfig).unwrap();
    let file = cluster.home.file("with-https", &server.replace("http://", "https://"));
    let run = run(cluster.home.tool(&file, &["node-0"]));
    assert_eq!(run.code(), 6, "{}", run.text());
    assert!(cluster.sim.requests().is_empty());
    assert_snapshot!(run.text(), @"
    ------- stderr -------
    error: cannot read node node-0: the server does not speak TLS on that port
    hint: check port and scheme of the server's URL
    [exit status: 6]
    ");
}

#[test]
fn tls_where_plain_http_was_expected() {
    let server = Server::tls(Authority::new().server(Validity::Now), unauthorized());
    let run = drain(&format!("http://{}", server.address), "", &[]);
    assert_eq!(run.code(), 6, "{}", run.text());
    assert!(run.stderr.starts_with("error: cannot read node node-0: "), "{}", run.text());
}
