//! Label selectors and node affinity requirements: parsed once, matched often.

mod overlap;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;

pub use overlap::overlap;

/// The operator `In` on the wire.
pub const IN: &str = "In";
/// The operator `NotIn` on the wire.
pub const NOT_IN: &str = "NotIn";

/// A requirement on the wire: `matchExpressions` of a label selector or of a node affinity.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct RequirementObject {
    /// The label key.
    pub key: String,
    /// The operator's name.
    pub operator: String,
    /// What the label's value is compared with.
    #[serde(default)]
    pub values: Option<Vec<String>>,
}

/// A requirement on the value of one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The label key.
    pub key: String,
    /// What its value must be.
    pub operator: Operator,
}

/// What a label's value must be (`k8s.io/apimachinery/pkg/labels`, `Requirement.Matches`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operator {
    /// The label is there with one of these values.
    In(BTreeSet<String>),
    /// The label is not there, or has none of these values.
    NotIn(BTreeSet<String>),
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
    /// The label is a whole number above this one.
    Gt(i64),
    /// The label is a whole number below this one.
    Lt(i64),
}

/// Why a selector cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The key is not a label key.
    #[error("{0:?} is not a valid label key")]
    Key(String),
    /// A value is not a label value.
    #[error("{value:?} is not a valid value for label {key:?}")]
    Value {
        /// The label key.
        key: String,
        /// The value in question.
        value: String,
    },
    /// The operator is not one that Kubernetes knows here.
    #[error("operator {operator:?} on {key:?} is not one of In, NotIn, Exists, DoesNotExist")]
    Operator {
        /// The label key.
        key: String,
        /// The operator in question.
        operator: String,
    },
    /// The operator needs another number of values.
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
    /// Parses a requirement with any operator that node affinity has.
    ///
    /// # Errors
    /// When key, operator or values are not what Kubernetes accepts.
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

    /// Whether these labels fulfil the requirement.
    #[must_use]
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

/// A parsed label selector: labels match when they fulfil every requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector(Vec<Requirement>);

impl Selector {
    /// Parses a label selector.
    ///
    /// # Errors
    /// When a key, a value or an operator is not one that Kubernetes accepts in a label selector.
    pub fn parse(selector: &LabelSelector) -> Result<Self, SelectorError> {
        let mut requirements = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            requirements.push(Requirement::parse(&RequirementObject {
                key: key.clone(),
                operator: IN.into(),
                values: Some(vec![value.clone()]),
            })?);
        }
        for expression in selector.match_expressions.iter().flatten() {
            if matches!(expression.operator.as_str(), "Gt" | "Lt") {
                return Err(SelectorError::Operator {
                    key: expression.key.clone(),
                    operator: expression.operator.clone(),
                });
            }
            requirements.push(Requirement::parse(&RequirementObject {
                key: expression.key.clone(),
                operator: expression.operator.clone(),
                values: expression.values.clone(),
            })?);
        }
        Ok(Self(requirements))
    }

    /// The requirements, all of which labels must fulfil.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.0
    }

    /// Whether the selector has no requirement and so matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether these labels fulfil every requirement.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|requirement| requirement.matches(labels))
    }
}

/// The selector as the `labelSelector` of a list or watch request.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &BTreeSet<String>| {
            values
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(",")
        };
        for (index, Requirement { key, operator }) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match operator {
                Operator::In(values) => write!(f, "{key} in ({})", list(values))?,
                Operator::NotIn(values) => write!(f, "{key} notin ({})", list(values))?,
                Operator::Exists => write!(f, "{key}")?,
                Operator::DoesNotExist => write!(f, "!{key}")?,
                Operator::Gt(bound) => write!(f, "{key}>{bound}")?,
                Operator::Lt(bound) => write!(f, "{key}<{bound}")?,
            }
        }
        Ok(())
    }
}

/// Whether the text is a label key: an optional DNS subdomain and a slash, then a name of 1 to 63 characters.
#[must_use]
pub fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_label_name(name),
        None => is_label_name(key),
    }
}

/// Whether the text is a label value: empty, or like the name part of a key.
#[must_use]
pub fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_label_name(value)
}

fn is_label_name(name: &str) -> bool {
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && is_edge(bytes.first())
        && is_edge(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Whether this can be the name of a namespace (RFC 1123 label).
#[must_use]
pub fn is_namespace(text: &str) -> bool {
    text.len() <= 63 && !text.contains('.') && is_dns_subdomain(text)
}

fn is_dns_subdomain(text: &str) -> bool {
    let is_edge = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.len() <= 253
        && text.split('.').all(|label| {
            let bytes = label.as_bytes();
            is_edge(bytes.first())
                && is_edge(bytes.last())
                && bytes
                    .iter()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(
        key: &str,
        operator: &str,
        values: &[&str],
    ) -> Result<Requirement, SelectorError> {
        Requirement::parse(&RequirementObject {
            key: key.into(),
            operator: operator.into(),
            values: Some(values.iter().map(ToString::to_string).collect()),
        })
    }

    #[test]
    fn requirements_match_as_in_kubernetes() {
        let labels = BTreeMap::from([
            ("zone".to_owned(), "a".to_owned()),
            ("cores".to_owned(), "8".to_owned()),
        ]);
        for (key, operator, values, expected) in [
            ("zone", "In", &["a", "b"][..], true),
            ("zone", "In", &["b"], false),
            ("none", "In", &["a"], false),
            ("zone", "NotIn", &["a"], false),
            ("zone", "NotIn", &["b"], true),
            ("none", "NotIn", &["a"], true),
            ("zone", "Exists", &[], true),
            ("none", "Exists", &[], false),
            ("zone", "DoesNotExist", &[], false),
            ("none", "DoesNotExist", &[], true),
            ("cores", "Gt", &["7"], true),
            ("cores", "Gt", &["8"], false),
            ("cores", "Lt", &["9"], true),
            ("cores", "Lt", &["8"], false),
            ("zone", "Gt", &["1"], false),
            ("none", "Lt", &["1"], false),
        ] {
            let requirement = requirement(key, operator, values).unwrap();
            assert_eq!(
                requirement.matches(&labels),
                expected,
                "{key} {operator} {values:?}"
            );
        }
    }

    #[test]
    fn requirements_that_kubernetes_rejects_are_named() {
        for (key, operator, values, expected) in [
            (
                "a/b/c",
                "Exists",
                &[][..],
                r#""a/b/c" is not a valid label key"#,
            ),
            ("", "Exists", &[], r#""" is not a valid label key"#),
            ("UP/x", "Exists", &[], r#""UP/x" is not a valid label key"#),
            (
                "a",
                "In",
                &[],
                r#"operator In on "a" takes at least one value"#,
            ),
            (
                "a",
                "Exists",
                &["x"],
                r#"operator Exists on "a" takes no values"#,
            ),
            (
                "a",
                "Gt",
                &["x"],
                r#"operator Gt on "a" takes exactly one whole number"#,
            ),
            (
                "a",
                "In",
                &["-x"],
                r#""-x" is not a valid value for label "a""#,
            ),
            (
                "a",
                "Like",
                &["x"],
                r#"operator "Like" on "a" is not one of In, NotIn, Exists, DoesNotExist"#,
            ),
        ] {
            assert_eq!(
                requirement(key, operator, values).unwrap_err().to_string(),
                expected
            );
        }
    }

    #[test]
    fn a_selector_prints_as_a_list_request_takes_it() {
        let selector: LabelSelector = serde_json::from_str(
            r#"{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"NotIn","values":["d","e"]},
               {"key":"f","operator":"Exists"},{"key":"g","operator":"DoesNotExist"}]}"#,
        )
        .unwrap();
        let selector = Selector::parse(&selector).unwrap();
        assert_eq!(selector.to_string(), "a in (b),c notin (d,e),f,!g");
        assert!(!selector.is_empty());
    }
}
