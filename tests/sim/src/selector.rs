//! Label selectors (as text and as objects) and the field selectors that real servers index.

use serde_json::Value;

use crate::json::Json;
use crate::kinds::Kind;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Op {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

/// A parsed label selector: all requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Vec<(String, Op)>);

impl Labels {
    /// Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let (mut depth, mut start) = (0, 0);
        for (i, c) in text.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                ',' if depth == 0 => {
                    parts.push(&text[start..i]);
                    start = i + 1;
                }
                _ => {}
            }
        }
        parts.push(&text[start..]);
        parts.iter().map(|p| p.trim()).filter(|p| !p.is_empty()).map(requirement).collect::<Result<_, _>>().map(Self)
    }

    /// Reads a LabelSelector object. A missing one selects nothing: that is the caller's business.
    pub fn from_object(selector: &Value) -> Self {
        let mut all = Vec::new();
        if let Some(map) = selector.get("matchLabels").and_then(Value::as_object) {
            all.extend(map.iter().map(|(k, v)| (k.clone(), Op::In(vec![v.as_str().unwrap_or("").to_owned()]))));
        }
        for e in selector.list("/matchExpressions") {
            all.push((e.text("/key").to_owned(), operator(e)));
        }
        Self(all)
    }

    /// Whether an object's labels fit.
    pub fn matches(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
        self.0.iter().all(|(key, op)| holds(op, labels.and_then(|l| l.get(key)).and_then(Value::as_str)))
    }
}

fn operator(e: &Value) -> Op {
    let values = || e.list("/values").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    match e.text("/operator") {
        "In" => Op::In(values()),
        "NotIn" => Op::NotIn(values()),
        "Exists" => Op::Exists,
        _ => Op::Absent,
    }
}

fn holds(op: &Op, value: Option<&str>) -> bool {
    match op {
        Op::In(all) => value.is_some_and(|v| all.iter().any(|a| a == v)),
        Op::NotIn(all) => value.is_none_or(|v| all.iter().all(|a| a != v)),
        Op::Exists => value.is_some(),
        Op::Absent => value.is_none(),
    }
}

fn requirement(part: &str) -> Result<(String, Op), String> {
    if let Some(key) = part.strip_prefix('!') {
        return Ok((key.trim().to_owned(), Op::Absent));
    }
    if let Some((head, values)) = part.split_once('(') {
        let values: Vec<String> = values.trim_end_matches(')').split(',').map(|v| v.trim().to_owned()).collect();
        let mut words = head.split_whitespace();
        return match (words.next(), words.next()) {
            (Some(key), Some("in")) => Ok((key.to_owned(), Op::In(values))),
            (Some(key), Some("notin")) => Ok((key.to_owned(), Op::NotIn(values))),
            _ => Err(format!("unable to parse requirement: {part}")),
        };
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Ok((key.trim().to_owned(), Op::NotIn(vec![value.trim().to_owned()])));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok((key.trim().to_owned(), Op::In(vec![value.trim().to_owned()])));
    }
    if part.contains(char::is_whitespace) {
        return Err(format!("unable to parse requirement: {part}"));
    }
    Ok((part.to_owned(), Op::Exists))
}

/// A parsed field selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, bool, String)>);

impl Fields {
    /// Reads `a=b,c!=d`; a field that a real server does not index is an error.
    pub fn parse(kind: Kind, text: &str) -> Result<Self, String> {
        let mut all = Vec::new();
        for part in text.split(',').filter(|p| !p.trim().is_empty()) {
            let (field, equal, value) = if let Some((f, v)) = part.split_once("!=") {
                (f, false, v)
            } else if let Some((f, v)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (f, true, v)
            } else {
                return Err(format!("invalid selector: '{part}'; can't understand '{part}'"));
            };
            let field = field.trim();
            let known = matches!(field, "metadata.name")
                || field == "metadata.namespace" && kind.info().namespaced
                || kind == Kind::Pod
                    && matches!(
                        field,
                        "spec.nodeName" | "spec.restartPolicy" | "spec.schedulerName" | "status.phase" | "status.podIP"
                    )
                || kind == Kind::Node && field == "spec.unschedulable"
                || kind == Kind::Namespace && field == "status.phase"
                || kind == Kind::Event
                    && (field.starts_with("involvedObject.")
                        || matches!(field, "reason" | "type" | "reportingComponent"));
            if !known {
                return Err(if kind.is_custom() {
                    format!("field label not supported: {field}")
                } else {
                    format!("\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
                });
            }
            all.push((field.to_owned(), equal, value.trim().to_owned()));
        }
        Ok(Self(all))
    }

    /// Whether an object fits.
    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(field, equal, value)| {
            let path = format!("/{}", field.replace('.', "/"));
            let actual = match object.pointer(&path) {
                Some(Value::Bool(b)) => b.to_string(),
                Some(v) => v.as_str().unwrap_or("").to_owned(),
                None if field == "spec.unschedulable" => "false".to_owned(),
                None => String::new(),
            };
            (actual == *value) == *equal
        })
    }

    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether the node fits a list of nodeSelectorTerms (any term; all of its expressions).
pub(crate) fn node_terms(terms: &[Value], node: &Value) -> bool {
    terms.iter().any(|term| {
        let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
        let expressions = term.list("/matchExpressions");
        let fields = term.list("/matchFields");
        !(expressions.is_empty() && fields.is_empty())
            && expressions
                .iter()
                .all(|e| holds(&operator(e), labels.and_then(|l| l.get(e.text("/key"))).and_then(Value::as_str)))
            && fields.iter().all(|e| holds(&operator(e), Some(node.name())))
    })
}
