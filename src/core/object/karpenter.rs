//! Karpenter's `NodeClaim`, a requested instance and the node that it became, and `NodePool`, the template of such claims.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::kind::ResourceKind;
use super::node::Node;
use super::watched::{Kind, Lean, Unreadable, lenient};
use crate::api::names::{DO_NOT_REPAIR, READINESS_TTL};
use crate::guard::Zone;

/// Label on nodes and `NodeClaim`s: the name of their `NodePool`.
pub const NODE_POOL_LABEL: &str = "karpenter.sh/nodepool";
/// Label on nodes: `true` once Karpenter counts on the node for workload.
pub(crate) const INITIALIZED_LABEL: &str = "karpenter.sh/initialized";
/// Karpenter's annotation on nodes and `NodeClaim`s that forbids repair.
const KARPENTERS_DO_NOT_REPAIR: &str = "karpenter.sh/do-not-repair";
/// Annotation on `NodeClaim`s: until when Karpenter waits for the node's pods, in RFC 3339.
pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
/// Taint of new nodes until Karpenter has labelled them.
pub(crate) const UNREGISTERED_TAINT: &str = "karpenter.sh/unregistered";

/// An instance that Karpenter has requested.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeClaim {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    pub stage: ClaimStage,
    /// Its `NodePool`; a claim can also exist without one.
    pub node_pool: Option<Arc<str>>,
    pub node_name: Option<Arc<str>>,
    pub provider_id: Option<Arc<str>>,
    /// The zone of its instance, if it says so.
    pub zone: Option<Zone>,
    /// `spec.readinessTTL` as written. No released Karpenter has the field.
    pub readiness_ttl: Option<String>,
    pub termination: Option<String>,
    pub do_not_repair: Option<&'static str>,
}

impl NodeClaim {
    /// Whether it names this node, by its name or its instance.
    pub fn names(&self, node: &Node) -> bool {
        self.node_name.as_ref() == Some(&node.name)
            || self.provider_id.is_some() && self.provider_id == node.provider_id
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClaimStage {
    /// There is no node yet, or Karpenter does not count on it for workload yet.
    #[default]
    Starting,
    Initialized,
    Rebooting,
    Deleting,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodePool {
    pub name: Arc<str>,
    /// It grows with each change of its spec.
    pub generation: Option<i64>,
    pub readiness_ttl: Option<String>,
    pub do_not_repair: Option<&'static str>,
}

/// The annotation that forbids repair. Karpenter accepts only `true`; here anything but `false` forbids: a typo costs no node.
pub(super) fn forbids_repair(object: &Lean<impl Kind>) -> Option<&'static str> {
    let forbids = |key: &&str| object.annotation(key).is_some_and(|it| it != "false");
    let mut keys = [DO_NOT_REPAIR, KARPENTERS_DO_NOT_REPAIR].into_iter();
    keys.find(forbids)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Spec {
    #[serde(rename = "readinessTTL")]
    readiness_ttl: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    #[serde(deserialize_with = "lenient")]
    node_name: String,
    #[serde(rename = "providerID", deserialize_with = "lenient")]
    provider_id: String,
    conditions: Option<Vec<ClaimCondition>>,
}

#[derive(Debug, Deserialize)]
struct ClaimCondition {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    status: String,
}

/// Its stage must be well-formed, since the claim may be deleted; a malformed reference to a node counts as absent.
impl Kind for NodeClaim {
    const RESOURCE: ResourceKind = ResourceKind::NodeClaims;
    type Spec = Spec;
    type Status = Status;

    fn read(object: &mut Lean<Self>) -> Result<Self, Unreadable> {
        let spec = object.spec.take().unwrap_or_default();
        let status = object.status.take().unwrap_or_default();
        let condition = |wanted: &str| {
            let mut conditions = status.conditions.iter().flatten();
            Some(conditions.find(|it| it.kind == wanted)?.status.as_str())
        };
        let named = |name: &str| Some(name).filter(|name| !name.is_empty()).map(Arc::from);
        let labels = object.metadata.labels.take().unwrap_or_default();
        let zone = Zone::of(Some(&status.provider_id), &labels);
        Ok(Self {
            name: object.name(),
            uid: object.uid()?,
            stage: if object.is_deleting() {
                ClaimStage::Deleting
            } else if condition("Rebooting").is_some_and(|status| status != "False") {
                ClaimStage::Rebooting
            } else if condition("Initialized") == Some("True") {
                ClaimStage::Initialized
            } else {
                ClaimStage::Starting
            },
            node_pool: labels.get(NODE_POOL_LABEL).and_then(|it| named(it)),
            node_name: named(&status.node_name),
            provider_id: named(&status.provider_id),
            zone: Some(zone).filter(|zone| !zone.is_none()),
            readiness_ttl: match spec.readiness_ttl {
                Value::Null => None,
                Value::String(text) => Some(text),
                Value::Number(number) => Some(number.to_string()),
                _ => Some("(no text)".into()),
            },
            termination: object.annotation(TERMINATION_TIMESTAMP).map(Into::into),
            do_not_repair: forbids_repair(object),
        })
    }
}

impl Kind for NodePool {
    const RESOURCE: ResourceKind = ResourceKind::NodePools;
    type Spec = IgnoredAny;
    type Status = IgnoredAny;

    fn read(object: &mut Lean<Self>) -> Result<Self, Unreadable> {
        Ok(Self {
            name: object.name(),
            generation: object.metadata.generation,
            do_not_repair: forbids_repair(object),
            readiness_ttl: object.annotation(READINESS_TTL).map(Into::into),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Watched;
    use serde_json::json;

    #[test]
    fn everything_but_false_forbids_repair() {
        for key in [DO_NOT_REPAIR, KARPENTERS_DO_NOT_REPAIR] {
            for (value, forbids) in [("true", true), ("yes", true), ("", true), ("false", false)] {
                let object =
                    json!({"metadata": {"name": "c", "uid": "u", "annotations": {key: value}}});
                let pool: Watched<NodePool> = serde_json::from_value(object.clone()).unwrap();
                let expected = forbids.then_some(key);
                assert_eq!(pool.read().unwrap().do_not_repair, expected, "{value}");
                let claim: Watched<NodeClaim> = serde_json::from_value(object).unwrap();
                assert_eq!(claim.read().unwrap().do_not_repair, expected, "{value}");
            }
        }
    }
}
