//! Label selectors in kubectl's notation, checked on the command line and matched here.

use std::collections::BTreeMap;
use std::fmt;

use crate::facts;

/// A label selector that was parsed and is not empty, so that it never means "everything" by accident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelSelector {
    text: String,
    selector: facts::LabelSelector,
}

/// Why a text is no label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// Nothing there, which would select everything.
    #[error("is empty")]
    Empty,
    /// A part that fits no form.
    #[error("has a part that is none of key, !key, key=value, key!=value, key in (a,b), key notin (a,b): `{0}`")]
    Form(String),
    /// No label key.
    #[error("has the impossible label key `{0}`")]
    Key(String),
    /// No label value.
    #[error("has the impossible label value `{0}`")]
    Value(String),
}

impl LabelSelector {
    /// Parses kubectl's notation.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(SelectorError::Empty);
        }
        let expressions = split_requirements(text).into_iter().map(parse_requirement).collect::<Result<_, _>>()?;
        let selector = facts::LabelSelector { expressions, ..facts::LabelSelector::default() };
        Ok(Self { text: text.to_owned(), selector })
    }

    /// The text to send as `labelSelector`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.matches(labels)
    }

    /// What it requires.
    pub fn selector(&self) -> &facts::LabelSelector {
        &self.selector
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Key, operator and values of one part.
type Requirement = (String, String, Vec<String>);

/// Splits at the commas that stand outside parentheses.
fn split_requirements(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut inside = false;
    for (index, c) in text.char_indices() {
        match c {
            '(' => inside = true,
            ')' => inside = false,
            ',' if !inside => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse_requirement(part: &str) -> Result<Requirement, SelectorError> {
    let part = part.trim();
    let form = || SelectorError::Form(part.to_owned());
    if let Some(key) = part.strip_prefix('!') {
        return requirement(key, "DoesNotExist", Vec::new());
    }
    if let Some(list) = part.strip_suffix(')') {
        let (head, list) = list.split_once('(').ok_or_else(form)?;
        let (key, word) = head.trim().split_once(char::is_whitespace).ok_or_else(form)?;
        let values = list.split(',').map(parse_value).collect::<Result<_, _>>()?;
        return match word.trim() {
            "in" => requirement(key, "In", values),
            "notin" => requirement(key, "NotIn", values),
            _ => Err(form()),
        };
    }
    if let Some((key, value)) = part.split_once("!=") {
        return requirement(key, "NotIn", vec![parse_value(value)?]);
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return requirement(key, "In", vec![parse_value(value)?]);
    }
    if let Some((key, value)) = part.split_once('>') {
        return requirement(key, "Gt", vec![number(value).ok_or_else(form)?]);
    }
    if let Some((key, value)) = part.split_once('<') {
        return requirement(key, "Lt", vec![number(value).ok_or_else(form)?]);
    }
    if part.is_empty() || part.contains(char::is_whitespace) {
        return Err(form());
    }
    requirement(part, "Exists", Vec::new())
}

fn requirement(key: &str, operator: &str, values: Vec<String>) -> Result<Requirement, SelectorError> {
    let key = key.trim();
    if is_label_key(key) {
        Ok((key.to_owned(), operator.to_owned(), values))
    } else {
        Err(SelectorError::Key(key.to_owned()))
    }
}

fn number(value: &str) -> Option<String> {
    value.trim().parse::<i64>().ok().map(|n| n.to_string())
}

fn parse_value(value: &str) -> Result<String, SelectorError> {
    let value = value.trim();
    if value.is_empty() || is_name(value) { Ok(value.to_owned()) } else { Err(SelectorError::Value(value.to_owned())) }
}

/// `name` or `prefix/name`, the prefix being a DNS subdomain.
fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        None => is_name(key),
        Some((prefix, name)) => is_name(name) && is_subdomain(prefix),
    }
}

fn is_name(text: &str) -> bool {
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    text.len() <= 63
        && edge(text.bytes().next())
        && edge(text.bytes().last())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn is_subdomain(text: &str) -> bool {
    let label = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn matches_as_kubernetes_does() {
        let web = labels(&[("app", "web"), ("tier", "5")]);
        let cases = [
            ("app", true),
            ("!app", false),
            ("!gone", true),
            ("app=web", true),
            ("app==web", true),
            (" app = web , tier ", true),
            ("app!=web", false),
            ("gone!=web", true),
            ("app in (web, db)", true),
            ("app in (db)", false),
            ("app notin (db)", true),
            ("gone notin (db)", true),
            ("app notin (web,db),tier", false),
            ("tier>4", true),
            ("tier>5", false),
            ("tier<6", true),
            ("app>1", false),
            ("app=", false),
            ("app=web,gone", false),
        ];
        for (text, expected) in cases {
            assert_eq!(LabelSelector::parse(text).unwrap().matches(&web), expected, "{text}");
        }
    }

    #[test]
    fn keeps_the_text_for_the_server() {
        let text = "node-role.kubernetes.io/worker=,app in (a,b)";
        assert_eq!(LabelSelector::parse(text).unwrap().as_str(), text);
    }

    #[test]
    fn refuses_what_selects_nothing_or_everything_by_mistake() {
        for text in ["", "  "] {
            assert_eq!(LabelSelector::parse(text), Err(SelectorError::Empty));
        }
        for text in [
            "a=b,",
            ",a",
            "a b",
            "a in b",
            "a in (b",
            "a within (b)",
            "(a)",
            "a=b=c",
            "-a=b",
            "a/b/c",
            "/a",
            "A.b/c=d",
            "a=b c",
            "a=\u{e4}",
            "a>x",
            "!",
        ] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }
}
