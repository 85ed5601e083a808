//! Label and field selectors, in the API server's query syntax.

use serde_json::Value;

/// Selects objects for a list or a watch. The default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    label: String,
    demand: Demand,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Demand {
    Exists,
    Absent,
    In(Vec<String>),
    /// Matches objects without the label, too.
    NotIn(Vec<String>),
}

/// One condition on a field; an absent field counts as an empty text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    /// Where it is, as a JSON pointer.
    pointer: String,
    value: String,
    is_equal: bool,
}

impl Selector {
    /// Selects by labels, `a=b,c!=d,e in (f,g),h notin (i),j,!k`, and by fields, `metadata.name=a,spec.nodeName!=`. Panics where it
    /// cannot read them.
    pub fn of(labels: &str, fields: &str) -> Self {
        Self {
            labels: split(labels).map(requirement).collect(),
            fields: split(fields).map(field).collect(),
        }
    }

    pub fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.labels
            .iter()
            .all(|requirement| requirement.is_met(labels[&requirement.label].as_str()))
            && self.fields.iter().all(|field| {
                let is = object.pointer(&field.pointer).and_then(Value::as_str);
                (is.unwrap_or_default() == field.value) == field.is_equal
            })
    }
}

impl Requirement {
    fn is_met(&self, value: Option<&str>) -> bool {
        let is_one_of = |values: &[String]| {
            value.is_some_and(|value| values.iter().any(|wanted| wanted == value))
        };
        match &self.demand {
            Demand::Exists => value.is_some(),
            Demand::Absent => value.is_none(),
            Demand::In(values) => is_one_of(values),
            Demand::NotIn(values) => !is_one_of(values),
        }
    }
}

/// Splits at the commas outside parentheses.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |character| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

fn requirement(text: &str) -> Requirement {
    let (label, demand) = if let Some((label, value)) = text.split_once("!=") {
        (label, Demand::NotIn(vec![value.trim().to_owned()]))
    } else if let Some((label, value)) = text.split_once('=') {
        let value = value.trim_start_matches('=').trim();
        (label, Demand::In(vec![value.to_owned()]))
    } else if let Some((label, values)) = text.split_once(" notin ") {
        (label, Demand::NotIn(set(values)))
    } else if let Some((label, values)) = text.split_once(" in ") {
        (label, Demand::In(set(values)))
    } else if let Some(label) = text.strip_prefix('!') {
        (label, Demand::Absent)
    } else {
        (text, Demand::Exists)
    };
    let label = label.trim().to_owned();
    let is_label = !label.is_empty() && !label.contains(char::is_whitespace);
    assert!(is_label, "cannot select by {text:?}");
    Requirement { label, demand }
}

fn set(values: &str) -> Vec<String> {
    let values = values.trim_matches([' ', '(', ')']).split(',');
    values.map(|value| value.trim().to_owned()).collect()
}

fn field(text: &str) -> Field {
    let (name, value) = text.split_once('=').expect("a field and its value");
    Field {
        pointer: format!("/{}", name.trim_end_matches('!').replace('.', "/")),
        value: value.trim_start_matches('=').to_owned(),
        is_equal: !name.ends_with('!'),
    }
}
