//! How many of some nodes: a number, or a percentage of them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A number of nodes, or a share of some: `5` or `20%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "IntOrString", into = "IntOrString")]
pub enum NodeShare {
    Nodes(u32),
    /// A percentage of nodes, 0 to 100.
    Percent(u8),
}

impl NodeShare {
    /// How many of `total` nodes that is, a percentage rounded up.
    pub fn of(self, total: usize) -> usize {
        match self {
            Self::Nodes(nodes) => nodes as usize,
            Self::Percent(percent) => total.saturating_mul(percent.into()).div_ceil(100),
        }
    }
}

impl JsonSchema for NodeShare {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "NodeShare".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-int-or-string": true, "maxLength": 4 })
    }
}

impl fmt::Display for NodeShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(nodes) => write!(f, "{nodes}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl FromStr for NodeShare {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = match text.strip_suffix('%') {
            Some(percent) => percent.parse().ok().map(Self::Percent),
            None => text.parse().ok().map(Self::Nodes),
        };
        let read = read.filter(|read| !matches!(read, Self::Percent(101..)));
        read.ok_or_else(|| {
            format!("{text:?} is neither a number of nodes nor a percentage from 0% to 100%")
        })
    }
}

impl TryFrom<IntOrString> for NodeShare {
    type Error = String;

    fn try_from(limit: IntOrString) -> Result<Self, String> {
        match limit {
            IntOrString::Int(nodes) => nodes.to_string().parse(),
            IntOrString::String(text) => text.parse(),
        }
    }
}

impl From<NodeShare> for IntOrString {
    fn from(limit: NodeShare) -> Self {
        match limit {
            NodeShare::Nodes(nodes) => Self::Int(i32::try_from(nodes).unwrap_or(i32::MAX)),
            NodeShare::Percent(_) => Self::String(limit.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_limit_is_a_number_or_a_percentage() {
        for (json, limit) in [
            (json!(0), NodeShare::Nodes(0)),
            (json!(5), NodeShare::Nodes(5)),
            (json!("0%"), NodeShare::Percent(0)),
            (json!("20%"), NodeShare::Percent(20)),
            (json!("100%"), NodeShare::Percent(100)),
        ] {
            let read: NodeShare = serde_json::from_value(json.clone()).unwrap();
            assert_eq!(read, limit, "{json}");
            assert_eq!(serde_json::to_value(limit).unwrap(), json);
        }
        for json in [
            json!(-1),
            json!("101%"),
            json!("-5%"),
            json!("%"),
            json!("many"),
            json!(true),
        ] {
            assert!(
                serde_json::from_value::<NodeShare>(json.clone()).is_err(),
                "{json}"
            );
        }
    }

    #[test]
    fn a_percentage_of_nodes_is_rounded_up() {
        for (limit, total, allowed) in [
            (NodeShare::Percent(20), 0, 0),
            (NodeShare::Percent(20), 1, 1),
            (NodeShare::Percent(20), 5, 1),
            (NodeShare::Percent(20), 6, 2),
            (NodeShare::Percent(0), 100, 0),
            (NodeShare::Percent(100), 7, 7),
            (NodeShare::Nodes(3), 2, 3),
        ] {
            assert_eq!(limit.of(total), allowed, "{limit} of {total}");
        }
    }
}
