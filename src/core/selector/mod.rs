//! Label selectors and node affinity requirements, parsed once and matched often; and filters of lists and watches.

mod filter;
mod label;
mod overlap;
mod requirement;

use std::collections::{BTreeMap, BTreeSet};
use std::{fmt, slice};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

pub use filter::Filter;
pub use label::{is_dns_subdomain, is_label_key, is_label_value, is_namespace};
pub use overlap::overlap;
pub use requirement::{IN, NOT_IN, Operator, Requirement, SelectorError};

/// A parsed label selector. Labels match if they meet every requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector(Vec<Requirement>);

impl Selector {
    /// Parses a label selector, if Kubernetes accepts its keys, values and operators.
    pub fn parse(selector: &LabelSelector) -> Result<Self, SelectorError> {
        let labels = selector.match_labels.iter().flatten();
        let labels =
            labels.map(|(key, value)| Requirement::parse(key, IN, Some(slice::from_ref(value))));
        let expressions = selector.match_expressions.iter().flatten();
        let expressions = expressions.map(|it| {
            if matches!(it.operator.as_str(), "Gt" | "Lt") {
                return Err(SelectorError::operator(&it.key, &it.operator));
            }
            Requirement::parse(&it.key, &it.operator, it.values.as_deref())
        });
        let requirements: Result<_, _> = labels.chain(expressions).collect();
        requirements.map(Self)
    }

    pub fn of_label(key: &str, value: &str) -> Self {
        Self(vec![Requirement::of(key, value)])
    }

    pub fn of_label_key(key: &str) -> Self {
        Self(vec![Requirement {
            key: key.to_owned(),
            operator: Operator::Exists,
        }])
    }

    pub fn requirements(&self) -> &[Requirement] {
        &self.0
    }

    /// Whether the selector has no requirement, so that it matches everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|requirement| requirement.matches(labels))
    }

    /// Whether an object can exist that both match: see [`overlap`].
    pub fn overlaps(&self, other: &Self) -> bool {
        overlap(&self.0, &other.0)
    }
}

/// The selector as the `labelSelector` of a list or watch request.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &BTreeSet<String>| {
            let values: Vec<_> = values.iter().map(String::as_str).collect();
            values.join(",")
        };
        let parts = (self.0.iter()).map(|Requirement { key, operator }| match operator {
            Operator::In(values) => format!("{key} in ({})", list(values)),
            Operator::NotIn(values) => format!("{key} notin ({})", list(values)),
            Operator::Exists => key.clone(),
            Operator::DoesNotExist => format!("!{key}"),
            Operator::Gt(bound) => format!("{key}>{bound}"),
            Operator::Lt(bound) => format!("{key}<{bound}"),
        });
        f.write_str(&parts.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(
        key: &str,
        operator: &str,
        values: &[&str],
    ) -> Result<Requirement, SelectorError> {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        Requirement::parse(key, operator, Some(&values))
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
        #[rustfmt::skip]
        let cases = [
            ("a/b/c", "Exists", &[][..], r#""a/b/c" is not a valid label key"#),
            ("", "Exists", &[], r#""" is not a valid label key"#),
            ("UP/x", "Exists", &[], r#""UP/x" is not a valid label key"#),
            ("a", "In", &[], r#"operator In on "a" takes at least one value"#),
            ("a", "Exists", &["x"], r#"operator Exists on "a" takes no values"#),
            ("a", "Gt", &["x"], r#"operator Gt on "a" takes exactly one whole number"#),
            ("a", "In", &["-x"], r#""-x" is not a valid value for label "a""#),
            ("a", "Like", &["x"], r#"operator "Like" on "a" is not one of In, NotIn, Exists, DoesNotExist"#),
        ];
        for (key, operator, values, expected) in cases {
            assert_eq!(
                requirement(key, operator, values).unwrap_err().to_string(),
                expected
            );
        }
    }

    #[test]
    fn names_may_be_as_long_as_kubernetes_lets_them() {
        for longest in [63, 253] {
            let are_valid = |length: usize| {
                let name = "a".repeat(length);
                let of_63 = [is_label_key, is_label_value, is_namespace].map(|it| it(&name));
                (of_63, is_dns_subdomain(&name))
            };
            let is_label = longest == 63;
            assert_eq!(are_valid(longest), ([is_label; 3], true));
            assert_eq!(are_valid(longest + 1), ([false; 3], is_label));
        }
    }
}
