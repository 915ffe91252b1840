//! Why a call failed, in words that an admin can act on. Pure.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::client::AuthError;

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiProblem {
    /// HTTP status code; 0 where no answer came.
    pub code: u16,
    /// What kind of failure it is.
    pub kind: ProblemKind,
    /// What happened, as a lower case fragment; the server's own words where it has some.
    pub message: String,
    /// What to do about it, where that is known.
    pub hint: Option<String>,
}

/// Kinds of failures that are treated in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// 403: the user may not.
    Forbidden,
    /// 404: there is no such object, or no such kind.
    NotFound,
    /// 401: the credentials were refused.
    Unauthorized,
    /// No answer in time (also 504).
    Timeout,
    /// No connection, or it broke.
    Unreachable,
    /// 410: a resource version or a page is too old.
    Gone,
    /// 409: somebody else was faster.
    Conflict,
    /// Anything else.
    Other,
}

/// What to do where something answers that is no API server.
const NO_API: &str =
    "is that the address of an API server (`kubectl config view --minify`)? a proxy may answer in its place";

impl ProblemKind {
    fn of_code(code: u16) -> Self {
        match code {
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            408 | 504 => Self::Timeout,
            409 => Self::Conflict,
            410 => Self::Gone,
            _ => Self::Other,
        }
    }
}

impl ApiProblem {
    /// A call that got no answer within its time.
    pub fn timed_out(limit: Duration) -> Self {
        Self::new(ProblemKind::Timeout, format!("the API server gave no answer within {limit:?}")).hint(
            "is it overloaded, or does something on the way drop packets? --request-timeout sets how long to wait",
        )
    }

    /// An answer that could not be understood.
    pub fn unreadable(what: impl fmt::Display) -> Self {
        Self::new(ProblemKind::Other, format!("the server's answer could not be read: {what}")).hint(NO_API)
    }

    /// True if a later try may succeed without anybody doing anything: busy, shutting down, failing inside.
    pub fn may_pass(&self) -> bool {
        match self.kind {
            ProblemKind::Timeout | ProblemKind::Unreachable | ProblemKind::Gone | ProblemKind::Conflict => true,
            ProblemKind::Other => self.code == 429 || self.code >= 500,
            ProblemKind::Forbidden | ProblemKind::NotFound | ProblemKind::Unauthorized => false,
        }
    }

    pub(super) fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Self { code: 0, kind, message: message.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// An answer with an error code. `message` is the `Status` message, or the body where it was none.
    fn no_status(code: u16, body: &str) -> Self {
        if code == 400 && body.contains("HTTP request to an HTTPS server") {
            return Self::answered(code, body);
        }
        let kind = if code == 504 { ProblemKind::Timeout } else { ProblemKind::Other };
        let message =
            format!("the server answered {code}, and not as a Kubernetes API does: {}", shortened(body.trim()));
        Self { code, kind, message, hint: Some(NO_API.to_owned()) }
    }

    pub(super) fn answered(code: u16, message: &str) -> Self {
        let kind = ProblemKind::of_code(code);
        let text = shortened(message.trim());
        let problem = |message: String| Self { code, kind, message, hint: None };
        if kind == ProblemKind::Unauthorized {
            return problem("the API server does not accept the credentials (401 Unauthorized)".to_owned())
                .hint("a token or certificate may have expired: log in again, then try `kubectl auth whoami`");
        }
        if code == 400 && text.contains("HTTP request to an HTTPS server") {
            return problem(text).hint("the server's URL must begin with https://");
        }
        problem(if text.is_empty() { format!("the API server answered {code} without a word") } else { text })
    }
}

impl fmt::Display for ApiProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ApiProblem {}

impl From<kube::Error> for ApiProblem {
    fn from(error: kube::Error) -> Self {
        explain(&error)
    }
}

/// Says what a client error means: message, hint and kind.
///
/// The client's own texts hold debug output and leave out what lies beneath; here the chain of causes is read.
pub fn explain(error: &kube::Error) -> ApiProblem {
    if let kube::Error::Api(status) = error {
        // The client's word for a body that is no `Status`: an overloaded API server, a proxy, or no API server at all.
        if status.reason == "Failed to parse error data" && !matches!(status.code, 401 | 429) {
            return ApiProblem::no_status(status.code, &status.message);
        }
        return ApiProblem::answered(status.code, &status.message);
    }
    if let kube::Error::Auth(auth) = error {
        return explain_auth(auth);
    }
    if let kube::Error::SerdeError(e) = error {
        return ApiProblem::unreadable(e);
    }
    let chain = Chain::of(error);
    if let Some(auth) = chain.find::<AuthError>() {
        return explain_auth(auth);
    }
    if let Some(problem) = chain.find::<ApiProblem>() {
        return problem.clone();
    }
    explain_chain(&chain)
}

/// The errors beneath an error, outermost first.
struct Chain<'a>(Vec<&'a (dyn Error + 'static)>);

impl<'a> Chain<'a> {
    fn of(error: &'a (dyn Error + 'static)) -> Self {
        // A source that points back at itself must not stall this.
        Self(std::iter::successors(Some(error), |e| inner(*e)).take(16).collect())
    }

    fn find<E: Error + 'static>(&self) -> Option<&'a E> {
        self.0.iter().find_map(|e| e.downcast_ref())
    }

    fn io_kind(&self) -> Option<io::ErrorKind> {
        self.0.iter().filter_map(|e| e.downcast_ref::<io::Error>()).map(io::Error::kind).next_back()
    }

    /// The text of the first error that says this.
    fn saying(&self, part: &str) -> Option<String> {
        self.0.iter().rev().map(ToString::to_string).find(|text| text.contains(part))
    }

    fn innermost(&self) -> String {
        self.0.last().map(ToString::to_string).unwrap_or_default()
    }
}

/// The source of an error; of an `io::Error` the error that it wraps, which its `source` would skip.
fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

fn explain_chain(chain: &Chain<'_>) -> ApiProblem {
    let unreachable = |message: String| ApiProblem::new(ProblemKind::Unreachable, message);
    if let Some(text) = chain.saying("invalid peer certificate: ") {
        return explain_certificate(&text);
    }
    if let Some(text) = chain.saying("received fatal alert: ") {
        return explain_alert(&text);
    }
    if chain.saying("InvalidContentType").is_some() {
        return unreachable("the server does not speak TLS on that port".to_owned())
            .hint("check port and scheme of the server's URL");
    }
    if chain.saying("tunnel error").is_some() || chain.saying("SOCKS error").is_some() {
        return unreachable(format!("the proxy does not connect to the API server: {}", chain.innermost()))
            .hint("check proxy-url of the cluster in the kubeconfig, and HTTPS_PROXY and NO_PROXY in the environment");
    }
    if chain.saying("dns error").is_some() {
        return unreachable(format!("the API server's name cannot be resolved: {}", chain.innermost()))
            .hint("is the name right (`kubectl config view --minify`), and is the VPN up?");
    }
    match chain.io_kind() {
        Some(io::ErrorKind::ConnectionRefused) => unreachable("the API server refuses the connection".to_owned())
            .hint("is it running, and is the address right (`kubectl config view --minify`)?"),
        Some(io::ErrorKind::TimedOut) => {
            ApiProblem::new(ProblemKind::Timeout, "no connection to the API server in time").hint(
                "is the address right (`kubectl config view --minify`), and does a firewall or VPN stand between?",
            )
        }
        Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {
            unreachable(format!("no route to the API server: {}", chain.innermost())).hint("is the VPN up?")
        }
        Some(_) => unreachable(format!("the connection to the API server broke: {}", chain.innermost())).hint(NO_API),
        None => {
            let broke = chain.saying("connection closed").or_else(|| chain.saying("SendRequest"));
            match broke {
                Some(_) => {
                    unreachable(format!("the connection to the API server broke: {}", chain.innermost())).hint(NO_API)
                }
                None => ApiProblem::new(ProblemKind::Other, shortened(&chain.innermost())),
            }
        }
    }
}

/// rustls' words about the server's certificate.
fn explain_certificate(text: &str) -> ApiProblem {
    let problem = |message: String| ApiProblem::new(ProblemKind::Unreachable, message);
    let why = text.split_once("invalid peer certificate: ").map_or(text, |(_, why)| why);
    if why.contains("UnknownIssuer") {
        return problem("the API server's certificate is signed by an authority that is not trusted".to_owned())
            .hint("does certificate-authority in the kubeconfig belong to this cluster? Was the cluster rebuilt?");
    }
    if why.contains("expired") {
        let since = moment_after(why, "is not valid after ").map(|t| format!(" since {t}")).unwrap_or_default();
        return problem(format!("the API server's certificate has expired{since}"))
            .hint("renew it on the control plane, or check this machine's clock");
    }
    if why.contains("not valid yet") {
        let from = moment_after(why, "is not valid before ").map(|t| format!(" before {t}")).unwrap_or_default();
        return problem(format!("the API server's certificate is not valid{from}")).hint("check this machine's clock");
    }
    if why.contains("not valid for name") {
        return problem(format!("the API server's certificate is for another name: {why}"))
            .hint("use an address that the certificate names, or --tls-server-name");
    }
    problem(format!("the API server's certificate is not accepted: {why}"))
}

/// The seconds since 1970 that follow `before`, as a point in time.
fn moment_after(text: &str, before: &str) -> Option<Timestamp> {
    let rest = text.split_once(before)?.1;
    let digits = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
    Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_secs(digits.parse().ok()?)).ok()
}

/// A TLS alert: the server's words about our side.
fn explain_alert(text: &str) -> ApiProblem {
    let alert = text.split_once("received fatal alert: ").map_or(text, |(_, alert)| alert);
    let problem = |message: &str| ApiProblem::new(ProblemKind::Unauthorized, message);
    match alert {
        "CertificateExpired" => problem("the API server says that the client certificate has expired")
            .hint("get a new one, for example with your cluster's login or a new admin kubeconfig"),
        "UnknownCA"
        | "UnknownCa"
        | "BadCertificate"
        | "CertificateUnknown"
        | "CertificateRevoked"
        | "CertificateRequired"
        | "AccessDenied" => problem("the API server does not accept the client certificate")
            .hint("does the user in the kubeconfig belong to this cluster? Was the cluster rebuilt?"),
        other => ApiProblem::new(ProblemKind::Unreachable, format!("the API server ended the TLS handshake: {other}")),
    }
}

/// Failures of credentials before anything is sent.
pub(super) fn explain_auth(error: &AuthError) -> ApiProblem {
    let problem = |message: String| ApiProblem::new(ProblemKind::Unauthorized, message);
    if let AuthError::AuthExecRun { cmd, out } = error {
        let words = String::from_utf8_lossy(&out.stderr);
        let words = shortened(words.trim());
        let said = if words.is_empty() { String::new() } else { format!(": {words}") };
        let program = program(cmd);
        return problem(format!("the credential plugin `{program}` failed with {}{said}", out.status))
            .hint("run it by hand; you may have to log in again");
    }
    if let AuthError::AuthExecStart(e) = error {
        return problem(format!("the kubeconfig's credential plugin cannot be started: {e}"))
            .hint("install it, or check PATH (`users[].user.exec.command` names it)");
    }
    if let AuthError::ReadTokenFile(e, path) = error {
        return problem(format!("cannot read the token file {}: {e}", path.display()));
    }
    problem(format!("no credentials: {}", shortened(&error.to_string())))
        .hint("check the user in the kubeconfig (`kubectl config view --minify`)")
}

/// The program of a command as the client prints it: `VARIABLE="…" "program" "argument"`. The rest is not shown: the
/// variables hold the whole cluster entry, arguments may be secret.
fn program(command: &str) -> String {
    let mut words = Vec::new();
    let (mut word, mut quoted, mut escaped) = (String::new(), false, false);
    for c in command.chars() {
        match c {
            _ if std::mem::take(&mut escaped) => word.push(c),
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.push(word);
    let variable = |word: &String| word.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
    words.into_iter().find(|w| !w.is_empty() && !variable(w)).unwrap_or_default()
}

/// At most a few lines' worth: bodies of proxies can be whole pages.
fn shortened(text: &str) -> String {
    const MOST: usize = 500;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(MOST).collect();
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests;
