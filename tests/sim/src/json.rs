//! Reading and writing loosely typed objects: wire objects stay `serde_json::Value` here, so that the simulator has no schema of its own to get wrong.
//! Paths are JSON pointers; label and annotation keys, which hold slashes, have their own methods.

use serde_json::{Map, Value, json};

/// Short-hands on wire objects. A missing path reads as empty, zero or false.
pub trait Json {
    /// The string at `path`, or "".
    fn text(&self, path: &str) -> &str;
    /// The integer at `path`.
    fn int(&self, path: &str) -> Option<i64>;
    /// Whether `path` holds `true`.
    fn flag(&self, path: &str) -> bool;
    /// The array at `path`, or an empty one.
    fn list(&self, path: &str) -> &[Value];
    /// Whether `path` is present and not null.
    fn has(&self, path: &str) -> bool;
    /// Writes `value` at `path`, making the objects on the way (no steps through lists).
    fn put(&mut self, path: &str, value: impl Into<Value>);
    /// Removes `path`.
    fn cut(&mut self, path: &str);
    /// A label, or "".
    fn label(&self, key: &str) -> &str;
    /// An annotation, or "".
    fn annotation(&self, key: &str) -> &str;
    /// Sets a label.
    fn set_label(&mut self, key: &str, value: &str);
    /// Sets an annotation, or removes it for `None`.
    fn set_annotation(&mut self, key: &str, value: Option<&str>);
    /// metadata.name
    fn name(&self) -> &str;
    /// metadata.namespace
    fn namespace(&self) -> &str;
    /// metadata.uid
    fn uid(&self) -> &str;
    /// Whether metadata.deletionTimestamp is set.
    fn deleting(&self) -> bool;
    /// The controlling owner reference.
    fn controller(&self) -> Option<&Value>;
    /// The condition of that type.
    fn condition(&self, kind: &str) -> Option<&Value>;
    /// Whether that condition is True.
    fn is_true(&self, kind: &str) -> bool;
    /// Adds or replaces a condition by its type.
    fn set_condition(&mut self, condition: Value);
    /// Takes the condition of that type away.
    fn cut_condition(&mut self, kind: &str);
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

impl Json for Value {
    fn text(&self, path: &str) -> &str {
        self.pointer(path).and_then(Value::as_str).unwrap_or("")
    }

    fn int(&self, path: &str) -> Option<i64> {
        self.pointer(path).and_then(Value::as_i64)
    }

    fn flag(&self, path: &str) -> bool {
        self.pointer(path).and_then(Value::as_bool).unwrap_or(false)
    }

    fn list(&self, path: &str) -> &[Value] {
        self.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn has(&self, path: &str) -> bool {
        self.pointer(path).is_some_and(|v| !v.is_null())
    }

    fn put(&mut self, path: &str, value: impl Into<Value>) {
        let mut at = self;
        for step in path.split('/').skip(1) {
            let key = step.replace("~1", "/").replace("~0", "~");
            if !at.is_object() {
                *at = Value::Object(Map::new());
            }
            at = at.as_object_mut().expect("made an object above").entry(key).or_insert(Value::Null);
        }
        *at = value.into();
    }

    fn cut(&mut self, path: &str) {
        let Some((parent, key)) = path.rsplit_once('/') else { return };
        let key = key.replace("~1", "/").replace("~0", "~");
        if let Some(map) = self.pointer_mut(parent).and_then(Value::as_object_mut) {
            map.remove(&key);
        }
    }

    fn label(&self, key: &str) -> &str {
        self.pointer("/metadata/labels").and_then(|l| l.get(key)).and_then(Value::as_str).unwrap_or("")
    }

    fn annotation(&self, key: &str) -> &str {
        self.pointer("/metadata/annotations").and_then(|l| l.get(key)).and_then(Value::as_str).unwrap_or("")
    }

    fn set_label(&mut self, key: &str, value: &str) {
        self.put(&format!("/metadata/labels/{}", escape(key)), value);
    }

    fn set_annotation(&mut self, key: &str, value: Option<&str>) {
        let path = format!("/metadata/annotations/{}", escape(key));
        match value {
            Some(value) => self.put(&path, value),
            None => self.cut(&path),
        }
    }

    fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    fn deleting(&self) -> bool {
        self.has("/metadata/deletionTimestamp")
    }

    fn controller(&self) -> Option<&Value> {
        self.list("/metadata/ownerReferences").iter().find(|o| o.flag("/controller"))
    }

    fn condition(&self, kind: &str) -> Option<&Value> {
        self.list("/status/conditions").iter().find(|c| c.text("/type") == kind)
    }

    fn is_true(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|c| c.text("/status") == "True")
    }

    fn set_condition(&mut self, condition: Value) {
        if !self.pointer("/status/conditions").is_some_and(Value::is_array) {
            self.put("/status/conditions", json!([]));
        }
        let list = self.pointer_mut("/status/conditions").and_then(Value::as_array_mut).expect("made an array above");
        match list.iter_mut().find(|c| c.text("/type") == condition.text("/type")) {
            Some(old)
                if old.text("/status") == condition.text("/status")
                    && old.text("/reason") == condition.text("/reason") => {}
            Some(old) => *old = condition,
            None => list.push(condition),
        }
    }

    fn cut_condition(&mut self, kind: &str) {
        if let Some(list) = self.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
            list.retain(|c| c.text("/type") != kind);
        }
    }
}

/// An owner reference that controls.
pub(crate) fn controlled_by(owner: &Value) -> Value {
    json!({"apiVersion": owner.text("/apiVersion"), "kind": owner.text("/kind"), "name": owner.name(), "uid": owner.uid(),
        "controller": true, "blockOwnerDeletion": true})
}
