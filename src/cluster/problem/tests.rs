use super::*;

fn io(kind: io::ErrorKind, inner: &str) -> kube::Error {
    kube::Error::Service(io::Error::new(kind, inner.to_owned()).into())
}

fn told(error: &kube::Error) -> (ProblemKind, String) {
    let problem = explain(error);
    (problem.kind, problem.message)
}

fn status(code: u16, message: &str) -> kube::Error {
    kube::Error::Api(kube::core::Status::failure(message, "Whatever").with_code(code).boxed())
}

#[test]
fn answers_keep_the_servers_words_and_no_debug_output() {
    let text = r#"pods is forbidden: User "jane" cannot list resource "pods""#;
    assert_eq!(told(&status(403, text)), (ProblemKind::Forbidden, text.to_owned()));
    assert_eq!(told(&status(410, "too old")).0, ProblemKind::Gone);
    assert_eq!(told(&status(500, "")).1, "the API server answered 500 without a word");
    assert!(explain(&status(401, "Unauthorized")).hint.unwrap().contains("log in again"));
    assert!(told(&status(502, &"x".repeat(9000))).1.len() < 600);
}

#[test]
fn what_may_pass_by_itself() {
    for (code, passes) in [(429, true), (500, true), (503, true), (504, true), (401, false), (403, false), (404, false)]
    {
        assert_eq!(explain(&status(code, "x")).may_pass(), passes, "{code}");
    }
}

#[test]
fn connections_that_fail() {
    let refused = explain(&io(io::ErrorKind::ConnectionRefused, "tcp connect error"));
    assert_eq!((refused.kind, refused.code), (ProblemKind::Unreachable, 0));
    assert_eq!(refused.message, "the API server refuses the connection");
    assert_eq!(told(&io(io::ErrorKind::TimedOut, "deadline")).0, ProblemKind::Timeout);
    assert_eq!(
        told(&io(io::ErrorKind::ConnectionReset, "reset by peer")).1,
        "the connection to the API server broke: reset by peer"
    );
    assert!(told(&io(io::ErrorKind::Other, "tunnel error: unsuccessful")).1.starts_with("the proxy does not connect"));
}

#[test]
fn certificates_say_what_is_wrong_and_since_when() {
    let tls = |text: &str| explain(&io(io::ErrorKind::InvalidData, text));
    let unknown = tls("invalid peer certificate: UnknownIssuer");
    assert_eq!(unknown.message, "the API server's certificate is signed by an authority that is not trusted");
    let expired = tls("invalid peer certificate: certificate expired: verification time 1700000100 (UNIX), \
         but certificate is not valid after 1700000000 (100 seconds ago)");
    assert_eq!(expired.message, "the API server's certificate has expired since 2023-11-14T22:13:20Z");
    let early = tls("invalid peer certificate: certificate not valid yet: verification time 1 (UNIX), \
         but certificate is not valid before 1700000000 (2 seconds in future)");
    assert_eq!(early.message, "the API server's certificate is not valid before 2023-11-14T22:13:20Z");
    let alert = tls("received fatal alert: CertificateExpired");
    assert_eq!(
        (alert.kind, alert.message.contains("client certificate has expired")),
        (ProblemKind::Unauthorized, true)
    );
    assert!(tls("received corrupt message of type InvalidContentType").message.contains("does not speak TLS"));
}

#[test]
fn a_limit_that_ran_out_inside_the_client_is_found_again() {
    let limit = ApiProblem::timed_out(Duration::from_secs(3));
    let error = kube::Error::Service(io::Error::new(io::ErrorKind::TimedOut, limit.clone()).into());
    assert_eq!(explain(&error), limit);
}

#[test]
fn credential_plugins_are_quoted_by_what_they_said() {
    let output = std::process::Command::new("sh").args(["-c", "echo no session >&2; exit 3"]).output().unwrap();
    let error = kube::Error::Auth(AuthError::AuthExecRun {
        cmd: r#"KUBERNETES_EXEC_INFO="{\"spec\": \"a b\"}" "login" "--secret""#.to_owned(),
        out: Box::new(output),
    });
    assert_eq!(told(&error).1, "the credential plugin `login` failed with exit status: 3: no session");
}
