//! The three kinds of PATCH. A strategic patch merges objects and those lists that have a merge key here; other lists are replaced.

use serde_json::{Map, Value};

use crate::json::Json;

/// RFC 7396.
pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let map = target.as_object_mut().expect("made an object above");
    for (key, value) in patch {
        if value.is_null() {
            map.remove(key);
        } else {
            merge(map.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// The merge key of a list in the objects that are patched here.
fn merge_key(field: &str) -> Option<&'static str> {
    match field {
        "conditions" | "addresses" => Some("type"),
        "containers" | "initContainers" | "containerStatuses" | "volumes" | "env" => Some("name"),
        "ownerReferences" => Some("uid"),
        _ => None,
    }
}

/// A strategic merge.
pub(super) fn strategic(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let map = target.as_object_mut().expect("made an object above");
    for (key, value) in patch.iter().filter(|(k, _)| !k.starts_with('$')) {
        match (value, merge_key(key)) {
            (Value::Null, _) => {
                map.remove(key);
            }
            (Value::Array(items), Some(id)) => {
                let list = map.entry(key.clone()).or_insert_with(|| Value::Array(Vec::new()));
                merge_list(list, items, id);
            }
            (Value::Object(_), _) => strategic(map.entry(key.clone()).or_insert(Value::Null), value),
            _ => {
                map.insert(key.clone(), value.clone());
            }
        }
    }
}

fn merge_list(list: &mut Value, items: &[Value], id: &str) {
    let Some(list) = list.as_array_mut() else { return };
    for item in items {
        let same = |o: &Value| o.get(id) == item.get(id);
        if item.text("/$patch") == "delete" {
            list.retain(|o| !same(o));
        } else if let Some(old) = list.iter_mut().find(|o| same(o)) {
            strategic(old, item);
        } else {
            list.push(item.clone());
        }
    }
}

/// RFC 6902, with the operations that clients use here.
pub(super) fn json_patch(target: &mut Value, patch: &Value) -> Result<(), String> {
    for step in patch.as_array().ok_or("a JSON patch is a list")? {
        let at = step.text("/path");
        let value = step.get("value").cloned().unwrap_or(Value::Null);
        match step.text("/op") {
            "test" if target.pointer(at).unwrap_or(&Value::Null) == &value => {}
            "test" => return Err(format!("testing value {at} failed")),
            "add" => add(target, at, value)?,
            "replace" if target.pointer(at).is_some() => *target.pointer_mut(at).expect("present") = value,
            "remove" if target.pointer(at).is_some() => remove(target, at),
            op @ ("replace" | "remove") => {
                return Err(format!("{op} operation does not apply: doc is missing path: {at}"));
            }
            op => return Err(format!("unexpected operation {op}")),
        }
    }
    Ok(())
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let (parent, key) = path.rsplit_once('/').ok_or("empty path")?;
    match target.pointer_mut(parent) {
        Some(Value::Array(list)) if key == "-" => list.push(value),
        Some(Value::Array(list)) => {
            let at = key.parse::<usize>().map_err(|e| e.to_string())?.min(list.len());
            list.insert(at, value);
        }
        Some(Value::Object(_)) => target.put(path, value),
        _ => return Err(format!("add operation does not apply: doc is missing path: {path}")),
    }
    Ok(())
}

fn remove(target: &mut Value, path: &str) {
    if let Some((parent, key)) = path.rsplit_once('/')
        && let (Some(Value::Array(list)), Ok(at)) = (target.pointer_mut(parent), key.parse::<usize>())
    {
        list.remove(at);
        return;
    }
    target.cut(path);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strategic_merges_conditions_by_type_and_replaces_taints() {
        let mut o = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}, "spec": {"taints": [{"key": "a"}]}});
        strategic(
            &mut o,
            &json!({"status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "X"}]}, "spec": {"taints": [{"key": "b"}]}}),
        );
        assert_eq!(
            o,
            json!({"status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "X"}]}, "spec": {"taints": [{"key": "b"}]}})
        );
    }

    #[test]
    fn json_patch_stops_at_a_failed_test() {
        let mut o = json!({"a": 1, "l": [1, 2]});
        assert!(
            json_patch(&mut o, &json!([{"op": "test", "path": "/a", "value": 2}, {"op": "remove", "path": "/a"}]))
                .is_err()
        );
        json_patch(&mut o, &json!([{"op": "remove", "path": "/l/0"}, {"op": "add", "path": "/b", "value": 3}]))
            .unwrap();
        assert_eq!(o, json!({"a": 1, "l": [2], "b": 3}));
    }
}
