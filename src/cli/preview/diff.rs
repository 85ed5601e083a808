//! What differs between two specs, field by field.

use serde::Serialize;
use serde_json::Value;

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its path.
    pub field: String,
    /// What it was, as JSON; none where it was not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    /// What it will be; none where it will not be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
}

/// What differs, by field.
#[must_use]
pub fn differences(from: &Value, to: &Value) -> Vec<Difference> {
    let mut all = Vec::new();
    compare("spec", Some(from), Some(to), &mut all);
    all
}

fn compare(field: &str, from: Option<&Value>, to: Option<&Value>, all: &mut Vec<Difference>) {
    if from == to {
        return;
    }
    if let (Some(Value::Object(from)), Some(Value::Object(to))) = (from, to) {
        let added = to.keys().filter(|key| !from.contains_key(*key));
        for key in from.keys().chain(added) {
            compare(&format!("{field}.{key}"), from.get(key), to.get(key), all);
        }
        return;
    }
    all.push(Difference {
        field: field.to_owned(),
        from: from.cloned(),
        to: to.cloned(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_named_that_differ() {
        let from = json!({"a": 1, "b": {"c": [1], "d": 2}});
        let to = json!({"a": 1, "b": {"c": [2], "e": 3}});
        let fields: Vec<_> = differences(&from, &to)
            .into_iter()
            .map(|it| (it.field, it.from, it.to))
            .collect();
        assert_eq!(
            fields,
            [
                ("spec.b.c".to_owned(), Some(json!([1])), Some(json!([2]))),
                ("spec.b.d".to_owned(), Some(json!(2)), None),
                ("spec.b.e".to_owned(), None, Some(json!(3))),
            ]
        );
    }
}
