//! Comparing a recorded body with a simulated one: what changes from run to run is replaced by a word, the rest must be the same.
//!
//! Replaced everywhere: uids, times, resourceVersion and generation, addresses of pods, the random end of generated names.

use serde_json::{Map, Value};

/// Fields whose value is never compared, only that they are there.
const VOLATILE: &[&str] = &[
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "podIP",
    "ip",
    "containerID",
    "serial",
    "uuid",
    "continue",
    "virtualMachineRevisionName",
    "observedGeneration",
    "desiredGeneration",
    "startTimestamp",
    "endTimestamp",
    "firstTimestamp",
];

fn is_uid(text: &str) -> bool {
    text.len() == 36
        && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
        && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

fn is_time(text: &str) -> bool {
    text.len() == 20 && text.ends_with('Z') && text.as_bytes()[10] == b'T'
}

/// A string without what is random in it.
pub(crate) fn steady(text: &str) -> String {
    let text = text.replace("recording.example/", "lab/");
    if is_time(&text) {
        return "<time>".to_owned();
    }
    if text.starts_with("10.8.") {
        return "<ip>".to_owned();
    }
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        if rest.len() >= 36 && rest.is_char_boundary(36) && is_uid(&rest[..36]) {
            out.push_str("<uid>");
            rest = &rest[36..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    let out = farms(&out);
    // The launcher's timeout has a random part.
    if out.len() == 4 && out.ends_with('s') && out[..3].chars().all(|c| c.is_ascii_digit()) {
        return "<timeout>".to_owned();
    }
    let random = |end: &str| end.len() == 5 && end.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    match out.rsplit_once('-') {
        Some((stem, end)) if random(end) && (stem.starts_with("virt-launcher-") || stem == "kubevirt-evacuation") => {
            format!("{stem}-<r>")
        }
        _ => out,
    }
}

/// The VMIs of a replica set have random names themselves: `farm` and five characters.
fn farms(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("farm") {
        let end = at + 4;
        out.push_str(&rest[..end]);
        rest = &rest[end..];
        if rest.len() >= 5
            && rest.is_char_boundary(5)
            && rest[..5].chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        {
            out.push_str("<r>");
            rest = &rest[5..];
        }
    }
    out + rest
}

/// A value without what is random in it.
pub(crate) fn normal(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut out = Map::new();
            for (k, v) in map {
                let key = if is_uid(k) { "<uid>".to_owned() } else { k.replace("recording.example/", "lab/") };
                let new =
                    if VOLATILE.contains(&k.as_str()) && !v.is_object() { Value::from("<any>") } else { normal(v) };
                out.insert(key, new);
            }
            Value::Object(out)
        }
        Value::Array(list) => Value::Array(list.iter().map(normal).collect()),
        Value::String(s) => Value::String(steady(s)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Objects of a list by their steady names; conditions by their types. Order does not count for either.
fn keyed(list: &[Value]) -> Option<Map<String, Value>> {
    let key = |v: &Value| {
        let by = |p: &str| v.pointer(p).and_then(Value::as_str).map(str::to_owned);
        by("/spec/vmiName")
            .or_else(|| by("/metadata/name"))
            .or_else(|| if v.get("status").is_some() { by("/type") } else { None })
            .or_else(|| if v.get("verbs").is_some() { by("/name") } else { None })
    };
    let mut out = Map::new();
    for v in list {
        let mut name = key(v)?;
        if v.pointer("/metadata/labels").is_some_and(|l| l.get("kubevirt.io/migrationJobUID").is_some()) {
            name.push_str(" (target)");
        }
        while out.contains_key(&name) {
            name.push('+');
        }
        out.insert(name, v.clone());
    }
    Some(out)
}

/// The differences between two normal values, one line each.
pub(crate) fn diff(path: &str, want: &Value, got: &Value, out: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(a), Value::Object(b)) => maps(path, a, b, out),
        (Value::Array(a), Value::Array(b)) => match (keyed(a), keyed(b)) {
            (Some(x), Some(y)) => maps(path, &x, &y, out),
            _ if a.len() == b.len() => {
                for (i, (x, y)) in a.iter().zip(b).enumerate() {
                    diff(&format!("{path}/{i}"), x, y, out);
                }
            }
            _ => out.push(format!("{path}: {got} instead of {want}")),
        },
        _ if want == got => {}
        _ => out.push(format!("{path}: {got} instead of {want}")),
    }
}

fn maps(path: &str, want: &Map<String, Value>, got: &Map<String, Value>, out: &mut Vec<String>) {
    for (k, v) in want {
        match got.get(k) {
            Some(g) => diff(&format!("{path}/{k}"), v, g, out),
            None => out.push(format!("{path}/{k}: missing, recorded {v}")),
        }
    }
    for k in got.keys().filter(|k| !want.contains_key(*k)) {
        out.push(format!("{path}/{k}: not recorded, simulated {}", got[k]));
    }
}
