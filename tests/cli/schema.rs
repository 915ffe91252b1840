//! The JSON Schema of what programs read, and a check against it.

use serde_json::{Value, json};

/// The schema as a text.
pub(crate) const SCHEMA: &str = include_str!("../../docs/schema/safe-drain-v1.schema.json");

/// Panics unless the document fits the schema.
pub(crate) fn valid(document: &Value) {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let errors = check(&schema, &schema, document, "$");
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
}

/// The part of JSON Schema that the schema uses, so that a typing error in either is found.
pub(crate) fn check(schema: &Value, root: &Value, value: &Value, path: &str) -> Vec<String> {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        return check(root.pointer(target.strip_prefix('#').unwrap()).unwrap(), root, value, path);
    }
    if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
        let tries: Vec<Vec<String>> = any.iter().map(|s| check(s, root, value, path)).collect();
        // Of several that do not fit, the nearest is what was meant.
        return tries.into_iter().min_by_key(Vec::len).unwrap_or_default();
    }
    let known = [
        "type",
        "enum",
        "const",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "description",
        "format",
        "minimum",
        "maximum",
        "title",
        "$schema",
        "$id",
        "$defs",
        "pattern",
    ];
    let mut errors: Vec<String> = schema
        .as_object()
        .unwrap()
        .keys()
        .filter(|key| !known.contains(&key.as_str()))
        .map(|key| format!("{path}: the check does not know {key}"))
        .collect();
    let name = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_u64() || n.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = |t: &Value| t == name || (t == "number" && name == "integer");
    match schema.get("type") {
        Some(Value::Array(types)) if !types.iter().any(fits) => {
            errors.push(format!("{path}: {name} is none of {types:?}"));
        }
        Some(t @ Value::String(_)) if !fits(t) => errors.push(format!("{path}: {name} is no {t}")),
        _ => {}
    }
    if schema.get("enum").is_some_and(|words| !words.as_array().unwrap().contains(value)) {
        errors.push(format!("{path}: {value} is none of its words"));
    }
    if schema.get("const").is_some_and(|word| word != value) {
        errors.push(format!("{path}: {value} is another word"));
    }
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        for (i, value) in values.iter().enumerate() {
            errors.extend(check(items, root, value, &format!("{path}[{i}]")));
        }
    }
    if let (Some(properties), Some(object)) = (schema.get("properties"), value.as_object()) {
        for (key, value) in object {
            match properties.get(key) {
                Some(schema) => errors.extend(check(schema, root, value, &format!("{path}.{key}"))),
                None if schema.get("additionalProperties") == Some(&json!(false)) => {
                    errors.push(format!("{path}: {key} is not described"));
                }
                None => {}
            }
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let missing = required.filter(|key| !object.contains_key(key.as_str().unwrap()));
        errors.extend(missing.map(|key| format!("{path}: {key} is missing")));
    }
    errors
}

#[test]
fn a_document_that_lacks_something_does_not_fit() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let document = json!({"apiVersion": "safe-drain/v1", "kind": "Nonsense"});
    let errors = check(&schema, &schema, &document, "$");
    assert!(errors.iter().any(|error| error.contains("$.kind")), "{errors:?}");
    assert!(errors.iter().any(|error| error.contains("\"exitCode\" is missing")), "{errors:?}");
}
