//! What happens to a node that never becomes ready (Karpenter's readiness TTL RFC).

use std::fmt;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::duration::Duration;
use super::rule::is_default;
use super::words::words;

/// What happens to a node that a bootstrap-only rule still holds when its readiness TTL has passed.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub struct Repair {
    /// How long this rule may hold a node, counted from when the node joined or the rule was created,
    /// whichever came later. At least 1m, for example 15m. The annotation `nodegate.dev/readiness-ttl` on a Karpenter
    /// `NodePool` takes precedence for that pool's nodes.
    #[serde(rename = "readinessTTL")]
    #[x_kube(validation = (
        "duration(self) >= duration('1m')",
        "readinessTTL must be at least 1m: a node needs time to start, write for example 15m",
    ))]
    pub readiness_ttl: Duration,

    /// What is done with a node that is not ready in time. `DeleteNodeClaim` deletes its Karpenter `NodeClaim`, so that a new node
    /// takes its place. `Release` releases the node although its conditions are not met, with a warning event. `None`, the
    /// default, only reports it. Unless it is released, the node gets the condition `nodegate.dev/NotReadyInTime`, on which other
    /// controllers can act.
    #[serde(default, skip_serializing_if = "is_default")]
    pub action: RepairAction,

    /// When to hold back: nothing is repaired while more than this many nodes of the `NodePool` (without Karpenter: of
    /// the rule) are past their readiness TTL or have stopped being ready. A number of nodes or a percentage, rounded up; 20%
    /// where absent, and 0 pauses repair.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(with = "IntOrString", extend("maxLength" = 4))]
    #[x_kube(validation = (
        "type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",
        "maxUnhealthy must be a number of nodes that is not negative, or a percentage from 0% to 100%, for example 20%",
    ))]
    pub max_unhealthy: MaxUnhealthy,
}

words! {
    /// What to do with a node that did not become ready in time.
    #[derive(Default)]
    pub enum RepairAction {
        /// Delete the node's Karpenter `NodeClaim`.
        DeleteNodeClaim = "DeleteNodeClaim",
        /// Release the node with unmet conditions.
        Release = "Release",
        /// Report it, and leave the node alone.
        #[default]
        None = "None",
    }
}

/// How many nodes may be unhealthy before repair stops: `5` or `20%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "IntOrString", into = "IntOrString")]
pub enum MaxUnhealthy {
    /// This many nodes.
    Nodes(u32),
    /// A percentage of nodes, 0 to 100.
    Percent(u8),
}

impl MaxUnhealthy {
    /// How many of `total` nodes may be unhealthy, a percentage rounded up.
    pub fn of(self, total: usize) -> usize {
        match self {
            Self::Nodes(nodes) => nodes as usize,
            Self::Percent(percent) => total.saturating_mul(percent.into()).div_ceil(100),
        }
    }
}

impl Default for MaxUnhealthy {
    fn default() -> Self {
        Self::Percent(20)
    }
}

impl fmt::Display for MaxUnhealthy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(nodes) => write!(f, "{nodes}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl TryFrom<IntOrString> for MaxUnhealthy {
    type Error = String;

    fn try_from(limit: IntOrString) -> Result<Self, Self::Error> {
        let read = match &limit {
            IntOrString::Int(nodes) => (*nodes).try_into().ok().map(Self::Nodes),
            IntOrString::String(text) => match text.strip_suffix('%') {
                Some(percent) => percent.parse().ok().map(Self::Percent),
                None => text.parse().ok().map(Self::Nodes),
            },
        };
        let read = read.filter(|read| !matches!(read, Self::Percent(101..)));
        read.ok_or_else(|| {
            let limit = match limit {
                IntOrString::Int(nodes) => nodes.to_string(),
                IntOrString::String(text) => text,
            };
            format!("{limit:?} is neither a number of nodes nor a percentage from 0% to 100%")
        })
    }
}

impl From<MaxUnhealthy> for IntOrString {
    fn from(limit: MaxUnhealthy) -> Self {
        match limit {
            MaxUnhealthy::Nodes(nodes) => Self::Int(i32::try_from(nodes).unwrap_or(i32::MAX)),
            MaxUnhealthy::Percent(_) => Self::String(limit.to_string()),
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
            (json!(0), MaxUnhealthy::Nodes(0)),
            (json!(5), MaxUnhealthy::Nodes(5)),
            (json!("0%"), MaxUnhealthy::Percent(0)),
            (json!("20%"), MaxUnhealthy::Percent(20)),
            (json!("100%"), MaxUnhealthy::Percent(100)),
        ] {
            let read: MaxUnhealthy = serde_json::from_value(json.clone()).unwrap();
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
                serde_json::from_value::<MaxUnhealthy>(json.clone()).is_err(),
                "{json}"
            );
        }
    }

    #[test]
    fn a_percentage_of_nodes_is_rounded_up() {
        for (limit, total, allowed) in [
            (MaxUnhealthy::Percent(20), 0, 0),
            (MaxUnhealthy::Percent(20), 1, 1),
            (MaxUnhealthy::Percent(20), 5, 1),
            (MaxUnhealthy::Percent(20), 6, 2),
            (MaxUnhealthy::Percent(0), 100, 0),
            (MaxUnhealthy::Percent(100), 7, 7),
            (MaxUnhealthy::Nodes(3), 2, 3),
        ] {
            assert_eq!(limit.of(total), allowed, "{limit} of {total}");
        }
    }
}
