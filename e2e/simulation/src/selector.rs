//! Label and field selectors, in the API server's query syntax.

use serde_json::Value;

use crate::kind::{Key, Kind};

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
    name: String,
    value: String,
    is_equal: bool,
}

/// A selector that cannot be parsed, or that names a field that this kind cannot be selected by.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot select by {0:?}")]
pub struct InvalidSelector(String);

impl Selector {
    /// Selects by labels: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
    pub fn labels(self, text: &str) -> Result<Self, InvalidSelector> {
        let labels = split(text).map(requirement).collect::<Result<_, _>>()?;
        Ok(Self { labels, ..self })
    }

    /// Selects by fields: `metadata.name=a,spec.nodeName!=`.
    pub fn fields(self, text: &str) -> Result<Self, InvalidSelector> {
        let fields = split(text).map(field).collect::<Result<_, _>>()?;
        Ok(Self { fields, ..self })
    }

    /// Checks that this kind's objects can be selected by every field named.
    pub fn check(&self, kind: Kind) -> Result<(), InvalidSelector> {
        let unknown = self.fields.iter().find(|field| {
            let mut known = kind.selectable().iter().map(|(name, _)| *name);
            field.name != "metadata.name"
                && !(field.name == "metadata.namespace" && kind.is_namespaced())
                && known.all(|name| name != field.name)
        });
        unknown.map_or(Ok(()), |field| Err(InvalidSelector(field.name.clone())))
    }

    pub fn matches(&self, key: &Key, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.labels
            .iter()
            .all(|requirement| requirement.is_met(labels[&requirement.label].as_str()))
            && self
                .fields
                .iter()
                .all(|field| (field.of(key, object) == field.value) == field.is_equal)
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

impl Field {
    fn of<'a>(&self, key: &'a Key, object: &'a Value) -> &'a str {
        match self.name.as_str() {
            "metadata.name" => &key.name,
            "metadata.namespace" => &key.namespace,
            name => key
                .kind
                .selectable()
                .iter()
                .find(|(known, _)| *known == name)
                .and_then(|(_, pointer)| object.pointer(pointer))
                .and_then(Value::as_str)
                .unwrap_or_default(),
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

fn requirement(text: &str) -> Result<Requirement, InvalidSelector> {
    let (label, demand) = if let Some((label, value)) = text.split_once("!=") {
        (label, Demand::NotIn(vec![value.trim().to_owned()]))
    } else if let Some((label, value)) = text.split_once('=') {
        let value = value.trim_start_matches('=').trim();
        (label, Demand::In(vec![value.to_owned()]))
    } else if let Some((label, values)) = text.split_once(" notin ") {
        (label, Demand::NotIn(set(values, text)?))
    } else if let Some((label, values)) = text.split_once(" in ") {
        (label, Demand::In(set(values, text)?))
    } else if let Some(label) = text.strip_prefix('!') {
        (label, Demand::Absent)
    } else {
        (text, Demand::Exists)
    };
    let label = label.trim();
    if label.is_empty() || label.contains(char::is_whitespace) {
        return Err(InvalidSelector(text.to_owned()));
    }
    Ok(Requirement {
        label: label.to_owned(),
        demand,
    })
}

fn set(values: &str, whole: &str) -> Result<Vec<String>, InvalidSelector> {
    let values = values
        .trim()
        .strip_prefix('(')
        .and_then(|values| values.strip_suffix(')'))
        .ok_or_else(|| InvalidSelector(whole.to_owned()))?;
    Ok(values
        .split(',')
        .map(|value| value.trim().to_owned())
        .collect())
}

fn field(text: &str) -> Result<Field, InvalidSelector> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| InvalidSelector(text.to_owned()))?;
    let is_equal = !name.ends_with('!');
    Ok(Field {
        name: name.trim_end_matches('!').trim().to_owned(),
        value: value.trim_start_matches('=').trim().to_owned(),
        is_equal,
    })
}
