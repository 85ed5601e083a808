//! A requirement on the value of one label.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::label::{is_label_key, is_label_value};

/// The operator `In` of the API.
pub(crate) const IN: &str = "In";
/// The operator `NotIn` of the API.
pub(crate) const NOT_IN: &str = "NotIn";

/// A requirement on the wire: an item of `matchExpressions` in a label selector or a node affinity.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct RequirementObject {
    /// The label key.
    pub key: String,
    /// The operator's name.
    pub operator: String,
    /// The values to compare with.
    #[serde(default)]
    pub values: Option<Vec<String>>,
}

/// A requirement on the value of one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The label key.
    pub key: String,
    /// The operator and its values.
    pub operator: Operator,
}

/// An operator (`k8s.io/apimachinery/pkg/labels`, `Requirement.Matches`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operator {
    /// The label exists with one of these values.
    In(BTreeSet<String>),
    /// The label does not exist, or has none of these values.
    NotIn(BTreeSet<String>),
    /// The label exists.
    Exists,
    /// The label does not exist.
    DoesNotExist,
    /// The label is a whole number above this one.
    Gt(i64),
    /// The label is a whole number below this one.
    Lt(i64),
}

/// Why a selector is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The key is not a valid label key.
    #[error("{0:?} is not a valid label key")]
    Key(String),
    /// A value is not a valid label value.
    #[error("{value:?} is not a valid value for label {key:?}")]
    Value {
        /// The label key.
        key: String,
        /// The value in question.
        value: String,
    },
    /// Kubernetes does not know this operator here.
    #[error("operator {operator:?} on {key:?} is not one of In, NotIn, Exists, DoesNotExist")]
    Operator {
        /// The label key.
        key: String,
        /// The operator in question.
        operator: String,
    },
    /// The operator takes a different number of values.
    #[error("operator {operator} on {key:?} takes {expected}")]
    Values {
        /// The label key.
        key: String,
        /// The operator in question.
        operator: String,
        /// What it takes.
        expected: &'static str,
    },
}

impl Requirement {
    /// Parses a requirement with any operator of node affinity.
    ///
    /// # Errors
    /// Kubernetes does not accept the key, operator or values.
    pub fn parse(object: &RequirementObject) -> Result<Self, SelectorError> {
        let RequirementObject {
            key,
            operator,
            values,
        } = object;
        let values = values.as_deref().unwrap_or_default();
        if !is_label_key(key) {
            return Err(SelectorError::Key(key.clone()));
        }
        if let Some(value) = values.iter().find(|value| !is_label_value(value)) {
            return Err(SelectorError::Value {
                key: key.clone(),
                value: value.clone(),
            });
        }
        let wrong_values = |expected| SelectorError::Values {
            key: key.clone(),
            operator: operator.clone(),
            expected,
        };
        let set = || {
            if values.is_empty() {
                return Err(wrong_values("at least one value"));
            }
            Ok(values.iter().cloned().collect())
        };
        let number = || match values {
            [value] => value
                .parse()
                .map_err(|_| wrong_values("exactly one whole number")),
            _ => Err(wrong_values("exactly one whole number")),
        };
        let none = |operator| {
            if values.is_empty() {
                Ok(operator)
            } else {
                Err(wrong_values("no values"))
            }
        };
        let operator = match operator.as_str() {
            IN => Operator::In(set()?),
            NOT_IN => Operator::NotIn(set()?),
            "Exists" => none(Operator::Exists)?,
            "DoesNotExist" => none(Operator::DoesNotExist)?,
            "Gt" => Operator::Gt(number()?),
            "Lt" => Operator::Lt(number()?),
            _ => {
                return Err(SelectorError::Operator {
                    key: key.clone(),
                    operator: operator.clone(),
                });
            }
        };
        Ok(Self {
            key: key.clone(),
            operator,
        })
    }

    /// Whether these labels meet the requirement.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.operator {
            Operator::In(values) => value.is_some_and(|value| values.contains(value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt(bound) => number().is_some_and(|number| number > *bound),
            Operator::Lt(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}
