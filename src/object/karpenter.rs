//! Karpenter's `NodeClaim` (an instance that was asked for, and the node it became) and `NodePool` (what such claims
//! are made from).

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::ClusterResourceScope;
use kube::Resource;
use kube::api::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;

use super::meta::{self, Version};
use crate::api::names::READINESS_TTL;

/// Label on nodes and `NodeClaim`s: the `NodePool` they were made from.
pub const NODE_POOL_LABEL: &str = "karpenter.sh/nodepool";
/// Label on nodes: with `true`, Karpenter counts on the node for workload.
pub const INITIALIZED_LABEL: &str = "karpenter.sh/initialized";
/// Annotation on nodes and `NodeClaim`s by which people forbid repair.
pub const DO_NOT_REPAIR: &str = "karpenter.sh/do-not-repair";
/// Annotation on `NodeClaim`s: from when on Karpenter does not wait for the node's pods any more, in RFC 3339.
pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
/// Taint that nodes are born with until Karpenter has put its labels on them.
pub const UNREGISTERED_TAINT: &str = "karpenter.sh/unregistered";

/// An instance that Karpenter has asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeClaim {
    /// The claim's name.
    pub name: Arc<str>,
    /// The claim's UID: a claim that is created again under its name is another claim.
    pub uid: Arc<str>,
    /// The version of this state.
    pub version: Version,
    /// How far the claim has come.
    pub stage: Stage,
    /// The `NodePool` it was made from; a claim can also be made without one.
    pub node_pool: Option<Arc<str>>,
    /// The node it has become.
    pub node_name: Option<Arc<str>>,
    /// The cloud provider's name for the instance.
    pub provider_id: Option<Arc<str>>,
    /// `spec.readinessTTL` as it is written; no released Karpenter has the field.
    pub readiness_ttl: Option<String>,
    /// The termination timestamp as it is written.
    pub termination: Option<String>,
    /// Whether somebody forbids its repair.
    pub do_not_repair: bool,
}

/// How far a `NodeClaim` has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// There is no node yet, or Karpenter does not count on it for workload.
    #[default]
    Starting,
    /// Karpenter counts on the node for workload.
    Initialized,
    /// Karpenter is rebooting the instance.
    Rebooting,
    /// The claim is being deleted.
    Deleting,
}

/// What Karpenter makes `NodeClaim`s from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodePool {
    /// The pool's name.
    pub name: Arc<str>,
    /// The readiness TTL that its annotation gives its nodes, as it is written.
    pub readiness_ttl: Option<String>,
}

/// Whether these annotations of a node or a `NodeClaim` forbid repair. Karpenter takes `true` only; here everything but
/// `false` does, so that a slip of the pen does not cost a node.
pub(super) fn forbid_repair(meta: &ObjectMeta) -> bool {
    let annotations = meta.annotations.as_ref();
    annotations
        .and_then(|annotations| annotations.get(DO_NOT_REPAIR))
        .is_some_and(|value| value != "false")
}

/// A `NodeClaim` on the wire.
#[derive(Debug, Clone, Deserialize)]
pub struct NodeClaimObject {
    #[serde(deserialize_with = "meta::pruned")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Spec {
    /// Whatever its form is going to be, it must not keep the claim from being read.
    #[serde(default, rename = "readinessTTL")]
    readiness_ttl: Option<Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    node_name: Option<String>,
    #[serde(default, rename = "providerID")]
    provider_id: Option<String>,
    #[serde(default)]
    conditions: Option<Vec<ConditionObject>>,
}

#[derive(Debug, Clone, Deserialize)]
struct ConditionObject {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    status: String,
}

impl From<NodeClaimObject> for NodeClaim {
    fn from(object: NodeClaimObject) -> Self {
        let (meta, status) = (object.metadata, object.status);
        let condition = |kind: &str| {
            let conditions = status.conditions.iter().flatten();
            conditions
                .filter(|condition| condition.kind == kind)
                .map(|condition| condition.status.as_str())
                .next()
        };
        let named = |name: Option<&str>| name.filter(|name| !name.is_empty()).map(Arc::from);
        Self {
            name: meta::name(&meta),
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            version: meta::resource_version(&meta),
            stage: if meta.deletion_timestamp.is_some() {
                Stage::Deleting
            } else if condition("Rebooting").is_some_and(|status| status != "False") {
                Stage::Rebooting
            } else if condition("Initialized") == Some("True") {
                Stage::Initialized
            } else {
                Stage::Starting
            },
            node_pool: named(
                meta.labels
                    .as_ref()
                    .and_then(|labels| Some(labels.get(NODE_POOL_LABEL)?.as_str())),
            ),
            node_name: named(status.node_name.as_deref()),
            provider_id: named(status.provider_id.as_deref()),
            readiness_ttl: object.spec.readiness_ttl.map(|ttl| match ttl {
                Value::String(text) => text,
                other => other.to_string(),
            }),
            termination: meta
                .annotations
                .as_ref()
                .and_then(|annotations| annotations.get(TERMINATION_TIMESTAMP).cloned()),
            do_not_repair: forbid_repair(&meta),
        }
    }
}

/// A `NodePool` on the wire: of its spec nothing is read.
#[derive(Debug, Clone, Deserialize)]
pub struct NodePoolObject {
    #[serde(deserialize_with = "meta::pruned")]
    metadata: ObjectMeta,
}

impl From<NodePoolObject> for NodePool {
    fn from(object: NodePoolObject) -> Self {
        let meta = object.metadata;
        Self {
            name: meta::name(&meta),
            readiness_ttl: meta
                .annotations
                .and_then(|mut annotations| annotations.remove(READINESS_TTL)),
        }
    }
}

macro_rules! karpenter_resource {
    ($object:ident, $kind:literal, $plural:literal) => {
        impl Resource for $object {
            type DynamicType = ();
            type Scope = ClusterResourceScope;

            fn kind((): &()) -> Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> Cow<'_, str> {
                "karpenter.sh".into()
            }

            fn version((): &()) -> Cow<'_, str> {
                "v1".into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

karpenter_resource!(NodeClaimObject, "NodeClaim", "nodeclaims");
karpenter_resource!(NodePoolObject, "NodePool", "nodepools");

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claim(value: Value) -> NodeClaim {
        serde_json::from_value::<NodeClaimObject>(value)
            .unwrap()
            .into()
    }

    #[test]
    fn a_claim_is_decoded_with_what_repair_reads() {
        let claim = claim(json!({
            "metadata": {"name": "c", "uid": "u", "resourceVersion": "7",
                         "labels": {"karpenter.sh/nodepool": "gpu"},
                         "annotations": {"karpenter.sh/nodeclaim-termination-timestamp": "2026-01-01T00:00:00Z"}},
            "spec": {"readinessTTL": "5m", "requirements": []},
            "status": {"nodeName": "n", "providerID": "kwok://1",
                       "conditions": [{"type": "Initialized", "status": "Unknown"},
                                      {"type": "Rebooting", "status": "True"}]},
        }));
        let expected = NodeClaim {
            name: "c".into(),
            uid: "u".into(),
            version: 7,
            node_pool: Some("gpu".into()),
            node_name: Some("n".into()),
            provider_id: Some("kwok://1".into()),
            readiness_ttl: Some("5m".into()),
            termination: Some("2026-01-01T00:00:00Z".into()),
            stage: Stage::Rebooting,
            ..NodeClaim::default()
        };
        assert_eq!(claim, expected);
    }

    #[test]
    fn a_claim_of_another_form_is_read_all_the_same() {
        let read =
            claim(json!({"metadata": {"name": "c"}, "spec": {"readinessTTL": {"after": 5}}}));
        assert_eq!(read.readiness_ttl.as_deref(), Some(r#"{"after":5}"#));
        let empty = claim(json!({"metadata": {}, "status": {"nodeName": "", "providerID": ""}}));
        assert_eq!(empty, NodeClaim::default());
    }

    #[test]
    fn everything_but_false_forbids_repair() {
        for (value, forbidden) in [("true", true), ("yes", true), ("", true), ("false", false)] {
            let meta = json!({"annotations": {"karpenter.sh/do-not-repair": value}});
            assert_eq!(
                claim(json!({ "metadata": meta })).do_not_repair,
                forbidden,
                "{value}"
            );
        }
    }
}
