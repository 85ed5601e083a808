//! An object as the API server would write it: empty values are left out.

use serde_json::{Map, Value, json};

use crate::kind::Kind;

/// Texts that are left out where they are empty; elsewhere, as in a label, an empty text is a value.
const OPTIONAL_TEXTS: [&str; 5] = ["value", "reason", "message", "nodeName", "providerID"];

pub(crate) fn normalize(kind: Kind, object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|_, value| !is_empty(value));
    }
    // The API server keeps custom resources as they were sent.
    if kind.is_custom() {
        return;
    }
    let parts: &[&str] = if kind.has_status() {
        &["spec", "status"]
    } else {
        &["spec"]
    };
    // These are written even where they are empty.
    for part in parts {
        let part = &mut object[part];
        if part.is_null() {
            *part = json!({});
        }
        prune(part);
    }
}

fn prune(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(prune);
            prune_fields(fields);
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

fn prune_fields(fields: &mut Map<String, Value>) {
    fields.retain(|name, value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Bool(is_set) => *is_set,
        Value::String(text) => !(text.is_empty() && OPTIONAL_TEXTS.contains(&name.as_str())),
        _ => true,
    });
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}
