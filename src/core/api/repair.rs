//! What happens to a node that never becomes ready (Karpenter's readiness TTL RFC).

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::duration::Duration;
use super::node_share::NodeShare;
use super::rule::is_default;
use super::words::words;

/// What happens to a node that a bootstrap-only rule still holds when its readiness TTL has passed.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub struct Repair {
    /// How long this rule may hold a node, counted from when the node joined or the rule was created,
    /// whichever came later. At least 1m, 15m where absent. The annotation `nodegate.dev/readiness-ttl` on a Karpenter
    /// `NodePool` takes precedence for that pool's nodes.
    #[serde(
        rename = "readinessTTL",
        default = "default_ttl",
        skip_serializing_if = "is_default_ttl"
    )]
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
    #[serde(default = "default_limit", skip_serializing_if = "is_default_limit")]
    #[x_kube(validation = (
        "type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",
        "maxUnhealthy must be a number of nodes that is not negative, or a percentage from 0% to 100%, for example 20%",
    ))]
    pub max_unhealthy: NodeShare,
}

words! {
    /// What to do with a node that did not become ready in time.
    #[derive(Default)]
    pub enum RepairAction {
        DeleteNodeClaim = "DeleteNodeClaim",
        Release = "Release",
        #[default]
        None = "None",
    }
}

/// The readiness TTL of Karpenter's RFC.
const fn default_ttl() -> Duration {
    Duration::from_secs(15 * 60)
}

fn is_default_ttl(ttl: &Duration) -> bool {
    *ttl == default_ttl()
}

/// Karpenter's own limit for its repair.
const fn default_limit() -> NodeShare {
    NodeShare::Percent(20)
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_default_limit(share: &NodeShare) -> bool {
    *share == default_limit()
}
