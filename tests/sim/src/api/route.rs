//! Reads a request's path and query.

use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::kinds::Kind;

/// A request, taken apart.
#[derive(Debug, Default, Clone)]
pub struct Request {
    /// Method.
    pub method: String,
    /// Decoded path.
    pub path: String,
    /// Decoded query parameters.
    pub query: Vec<(String, String)>,
    /// API group, "" for core.
    pub group: String,
    /// API version.
    pub version: String,
    /// Namespace, "" for none.
    pub ns: String,
    /// Resource (plural), "" when the path is not about one.
    pub resource: String,
    /// Object, "" for the collection.
    pub name: String,
    /// Subresource, with its slashes.
    pub subresource: String,
    /// Accept header.
    pub accept: String,
    /// Content-Type header.
    pub content_type: String,
    /// User-Agent header.
    pub user_agent: String,
    /// Body as sent.
    pub raw: bytes::Bytes,
    /// Body, when it is JSON.
    pub body: Option<Value>,
}

fn decode(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

impl Request {
    /// Takes a request apart.
    pub fn read(parts: &http::request::Parts, raw: bytes::Bytes) -> Self {
        let header = |name: &str| parts.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("").to_owned();
        let mut r = Self {
            method: parts.method.to_string(),
            path: decode(parts.uri.path()),
            accept: header("accept"),
            content_type: header("content-type"),
            user_agent: header("user-agent"),
            body: serde_json::from_slice(&raw).ok(),
            raw,
            ..Self::default()
        };
        for pair in parts.uri.query().unwrap_or("").split('&').filter(|p| !p.is_empty()) {
            let (k, v) = pair.split_once('=').unwrap_or((pair, ""));
            r.query.push((decode(k), decode(v)));
        }
        r.resolve();
        r
    }

    fn resolve(&mut self) {
        let path = self.path.trim_matches('/').to_owned();
        let mut steps: Vec<&str> = path.split('/').collect();
        let rest = match steps.first().copied() {
            Some("api") if steps.len() >= 2 => {
                steps[1].clone_into(&mut self.version);
                steps.split_off(2)
            }
            Some("apis") if steps.len() >= 3 => {
                steps[1].clone_into(&mut self.group);
                steps[2].clone_into(&mut self.version);
                steps.split_off(3)
            }
            _ => return,
        };
        let rest = match rest.as_slice() {
            ["namespaces", ns, tail @ ..] if !tail.is_empty() && !matches!(tail, ["status" | "finalize"]) => {
                (*ns).clone_into(&mut self.ns);
                tail.to_vec()
            }
            all => all.to_vec(),
        };
        if let [resource, tail @ ..] = rest.as_slice() {
            (*resource).clone_into(&mut self.resource);
            if let [name, sub @ ..] = tail {
                (*name).clone_into(&mut self.name);
                self.subresource = sub.join("/");
            }
        }
    }

    /// A query parameter, or "".
    pub fn param(&self, name: &str) -> &str {
        self.query.iter().find(|(k, _)| k == name).map_or("", |(_, v)| v.as_str())
    }

    /// The query as text.
    pub fn query_text(&self) -> String {
        self.query.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join("&")
    }

    /// Whether it opens a watch.
    pub fn is_watch(&self) -> bool {
        self.method == "GET" && matches!(self.param("watch"), "true" | "1")
    }

    /// Whether the query asks for a dry run.
    pub fn dry_query(&self) -> bool {
        self.query.iter().any(|(k, v)| k == "dryRun" && v == "All")
    }

    /// The verb as access rules name it.
    pub fn verb(&self) -> &'static str {
        match (self.method.as_str(), self.name.is_empty()) {
            ("GET", true) if self.is_watch() => "watch",
            ("GET", true) => "list",
            ("GET", false) => "get",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", true) => "deletecollection",
            _ => "delete",
        }
    }

    /// The resource, when the table has it.
    pub fn kind(&self) -> Option<Kind> {
        Kind::of_path(&self.group, &self.version, &self.resource)
    }
}
