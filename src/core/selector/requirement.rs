//! A requirement on the value of one label.

use std::collections::{BTreeMap, BTreeSet};

use super::label::{is_label_key, is_label_value};

/// The words of operators in the API.
pub const IN: &str = "In";
pub const NOT_IN: &str = "NotIn";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    pub key: String,
    pub operator: Operator,
}

/// An operator (`k8s.io/apimachinery/pkg/labels`, `Requirement.Matches`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operator {
    In(BTreeSet<String>),
    /// The label does not exist, or has none of these values.
    NotIn(BTreeSet<String>),
    Exists,
    DoesNotExist,
    Gt(i64),
    Lt(i64),
}

/// Why Kubernetes does not accept a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

impl SelectorError {
    pub(super) fn operator(key: &str, operator: &str) -> Self {
        let known = "In, NotIn, Exists, DoesNotExist";
        Self(format!(
            "operator {operator:?} on {key:?} is not one of {known}"
        ))
    }
}

impl Requirement {
    pub fn of(key: &str, value: &str) -> Self {
        Self {
            key: key.to_owned(),
            operator: Operator::In([value.to_owned()].into()),
        }
    }

    /// Parses a requirement with any operator of node affinity, if Kubernetes accepts key, operator and values.
    pub fn parse(
        key: &str,
        operator: &str,
        values: Option<&[String]>,
    ) -> Result<Self, SelectorError> {
        let values = values.unwrap_or_default();
        if !is_label_key(key) {
            let why = format!("{key:?} is not a valid label key");
            return Err(SelectorError(why));
        }
        if let Some(value) = values.iter().find(|value| !is_label_value(value)) {
            let why = format!("{value:?} is not a valid value for label {key:?}");
            return Err(SelectorError(why));
        }
        let number = match values {
            [value] => value.parse().ok(),
            _ => None,
        };
        let is_empty = values.is_empty();
        let set = (!is_empty).then(|| values.iter().cloned().collect());
        let (read, expected) = match operator {
            IN => (set.map(Operator::In), "at least one value"),
            NOT_IN => (set.map(Operator::NotIn), "at least one value"),
            "Exists" => (is_empty.then_some(Operator::Exists), "no values"),
            "DoesNotExist" => (is_empty.then_some(Operator::DoesNotExist), "no values"),
            "Gt" => (number.map(Operator::Gt), "exactly one whole number"),
            "Lt" => (number.map(Operator::Lt), "exactly one whole number"),
            _ => return Err(SelectorError::operator(key, operator)),
        };
        let why = || format!("operator {operator} on {key:?} takes {expected}");
        Ok(Self {
            key: key.to_owned(),
            operator: read.ok_or_else(|| SelectorError(why()))?,
        })
    }

    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.operator
            .accepts(labels.get(&self.key).map(String::as_str))
    }
}

impl Operator {
    /// Whether a label with this value meets it, or an object without the label.
    pub(crate) fn accepts(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::In(values) => value.is_some_and(|value| values.contains(value)),
            Self::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::Gt(bound) => number().is_some_and(|number| number > *bound),
            Self::Lt(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}
