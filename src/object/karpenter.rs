//! Karpenter's `NodeClaim`, a requested instance and the node that it became, and `NodePool`, the template of such claims.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::ClusterResourceScope;
use kube::Resource;
use kube::api::ObjectMeta;
use serde::Deserialize;

use super::field::{Field, Form, Unreadable, items, objects};
use super::meta::{self, Metadata, Version};
use super::node::Node;
use crate::api::names::{DO_NOT_REPAIR, READINESS_TTL};

/// Label on nodes and `NodeClaim`s: the name of their `NodePool`.
pub const NODE_POOL_LABEL: &str = "karpenter.sh/nodepool";
/// Label on nodes: `true` once Karpenter counts on the node for workload.
pub const INITIALIZED_LABEL: &str = "karpenter.sh/initialized";
/// Karpenter's annotation on nodes and `NodeClaim`s that forbids repair.
const KARPENTERS_DO_NOT_REPAIR: &str = "karpenter.sh/do-not-repair";
/// Annotation on `NodeClaim`s: until when Karpenter waits for the node's pods, in RFC 3339.
pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
/// Taint of new nodes until Karpenter has labelled them.
pub const UNREGISTERED_TAINT: &str = "karpenter.sh/unregistered";

/// An instance that Karpenter has requested.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeClaim {
    /// The claim's name.
    pub name: Arc<str>,
    /// The claim's UID. A new claim of the same name has another.
    pub uid: Arc<str>,
    /// The object's resource version.
    pub version: Version,
    /// The claim's stage.
    pub stage: ClaimStage,
    /// Its `NodePool`; a claim can also exist without one.
    pub node_pool: Option<Arc<str>>,
    /// The node that it became.
    pub node_name: Option<Arc<str>>,
    /// The cloud provider's name for the instance.
    pub provider_id: Option<Arc<str>>,
    /// `spec.readinessTTL` as written. No released Karpenter has the field.
    pub readiness_ttl: Option<String>,
    /// The termination timestamp as written.
    pub termination: Option<String>,
    /// The annotation that forbids repair, if there is one.
    pub do_not_repair: Option<&'static str>,
}

impl NodeClaim {
    /// Whether it names this node, by its name or its instance.
    pub fn names(&self, node: &Node) -> bool {
        self.node_name.as_ref() == Some(&node.name)
            || self.provider_id.is_some() && self.provider_id == node.provider_id
    }
}

/// The stage of a `NodeClaim`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClaimStage {
    /// There is no node yet, or Karpenter does not count on it for workload yet.
    #[default]
    Starting,
    /// Karpenter counts on the node for workload.
    Initialized,
    /// Karpenter is rebooting the instance.
    Rebooting,
    /// The claim is being deleted.
    Deleting,
}

/// The template of `NodeClaim`s.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodePool {
    /// The pool's name.
    pub name: Arc<str>,
    /// The readiness TTL in its annotation, as written.
    pub readiness_ttl: Option<String>,
    /// The annotation that forbids repair of its nodes, if there is one.
    pub do_not_repair: Option<&'static str>,
}

/// The annotation of a node, a `NodeClaim` or a `NodePool` that forbids repair, if there is one. Karpenter accepts only `true`;
/// here anything but `false` forbids, so that a typo does not cost a node.
pub(super) fn forbids_repair(meta: &ObjectMeta) -> Option<&'static str> {
    let annotations = meta.annotations.as_ref()?;
    [DO_NOT_REPAIR, KARPENTERS_DO_NOT_REPAIR]
        .into_iter()
        .find(|key| annotations.get(*key).is_some_and(|value| value != "false"))
}

/// A `NodeClaim` on the wire.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct NodeClaimObject {
    metadata: Metadata,
    spec: Field<Spec>,
    status: Field<Status>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(rename = "readinessTTL")]
    readiness_ttl: Field<TtlText>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    node_name: Field<String>,
    #[serde(rename = "providerID")]
    provider_id: Field<String>,
    conditions: Field<Vec<Field<ConditionObject>>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ConditionObject {
    #[serde(rename = "type")]
    kind: Field<String>,
    status: Field<String>,
}

items!(NodeClaimObject, NodePoolObject);
objects!(Spec, Status, ConditionObject);

/// `spec.readinessTTL` as text, for messages.
#[derive(Debug, Clone)]
struct TtlText(String);

impl Form for TtlText {
    fn of_text(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }

    fn of_integer(number: i64) -> Option<Self> {
        Some(Self(number.to_string()))
    }
}

impl NodeClaimObject {
    /// The claim.
    ///
    /// # Errors
    /// The object is unreadable. Its stage must be well-formed, since the claim may be deleted; a malformed reference to a node
    /// counts as absent.
    pub fn read(self) -> Result<NodeClaim, Unreadable> {
        const CONDITIONS: &str = "status.conditions";
        let meta = self.metadata.read_with_uid()?;
        let spec = self.spec.if_readable().unwrap_or_default();
        let status = self.status.or_unreadable("status")?.unwrap_or_default();
        let mut conditions = Vec::new();
        for condition in status.conditions.elements_or_unreadable(CONDITIONS)? {
            let kind = condition.kind.if_readable();
            conditions.push((
                kind.ok_or_else(|| Unreadable::odd(CONDITIONS))?,
                condition.status.if_readable().unwrap_or_default(),
            ));
        }
        let condition = |wanted: &str| {
            let found = conditions.iter().find(|(kind, _)| kind == wanted);
            found.map(|(_, status)| status.as_str())
        };
        let named = |name: Option<&str>| name.filter(|name| !name.is_empty()).map(Arc::from);
        Ok(NodeClaim {
            name: meta::name(&meta),
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            version: meta::resource_version(&meta),
            stage: if meta.deletion_timestamp.is_some() {
                ClaimStage::Deleting
            } else if condition("Rebooting").is_some_and(|status| status != "False") {
                ClaimStage::Rebooting
            } else if condition("Initialized") == Some("True") {
                ClaimStage::Initialized
            } else {
                ClaimStage::Starting
            },
            node_pool: named(
                meta.labels
                    .as_ref()
                    .and_then(|labels| Some(labels.get(NODE_POOL_LABEL)?.as_str())),
            ),
            node_name: named(status.node_name.as_readable().map(String::as_str)),
            provider_id: named(status.provider_id.as_readable().map(String::as_str)),
            readiness_ttl: match spec.readiness_ttl {
                Field::Absent => None,
                Field::Is(TtlText(text)) => Some(text),
                Field::Odd => Some("(no text)".into()),
            },
            termination: meta
                .annotations
                .as_ref()
                .and_then(|annotations| annotations.get(TERMINATION_TIMESTAMP).cloned()),
            do_not_repair: forbids_repair(&meta),
        })
    }
}

/// A `NodePool` on the wire, without its spec.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct NodePoolObject {
    metadata: Metadata,
}

impl NodePoolObject {
    /// The pool.
    ///
    /// # Errors
    /// The object is unreadable.
    pub fn read(self) -> Result<NodePool, Unreadable> {
        let meta = self.metadata.read()?;
        Ok(NodePool {
            name: meta::name(&meta),
            do_not_repair: forbids_repair(&meta),
            readiness_ttl: meta
                .annotations
                .and_then(|mut annotations| annotations.remove(READINESS_TTL)),
        })
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
    use serde_json::{Value, json};

    fn claim(value: Value) -> NodeClaim {
        let object: NodeClaimObject = serde_json::from_value(value).unwrap();
        object.read().unwrap()
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
            stage: ClaimStage::Rebooting,
            ..NodeClaim::default()
        };
        assert_eq!(claim, expected);
    }

    #[test]
    fn a_claim_of_another_form_is_read_as_far_as_nothing_depends_on_it() {
        let meta = json!({"name": "c", "uid": "u"});
        let read = claim(json!({
            "metadata": meta,
            "spec": {"readinessTTL": {"after": 5}},
            "status": {"nodeName": 5, "providerID": ["kwok://1"]},
        }));
        let expected = NodeClaim {
            name: "c".into(),
            uid: "u".into(),
            readiness_ttl: Some("(no text)".into()),
            ..NodeClaim::default()
        };
        assert_eq!(read, expected);
        let empty = claim(json!({"metadata": meta, "status": {"nodeName": "", "providerID": ""}}));
        assert_eq!((empty.node_name, empty.provider_id), (None, None));
        for (status, complaint) in [
            (json!(5), "status has"),
            (json!({"conditions": {}}), "status.conditions has"),
            (json!({"conditions": [5]}), "status.conditions has"),
            (
                json!({"conditions": [{"type": 5}]}),
                "status.conditions has",
            ),
        ] {
            let object = json!({"metadata": meta, "status": status});
            let object: NodeClaimObject = serde_json::from_value(object).unwrap();
            let said = object.read().unwrap_err().to_string();
            assert!(said.starts_with(complaint), "{status}: {said}");
        }
    }

    #[test]
    fn everything_but_false_forbids_repair() {
        for key in [DO_NOT_REPAIR, KARPENTERS_DO_NOT_REPAIR] {
            for (value, forbids) in [("true", true), ("yes", true), ("", true), ("false", false)] {
                let object =
                    json!({"metadata": {"name": "c", "uid": "u", "annotations": {key: value}}});
                let pool: NodePoolObject = serde_json::from_value(object.clone()).unwrap();
                let expected = forbids.then_some(key);
                assert_eq!(pool.read().unwrap().do_not_repair, expected, "{value}");
                assert_eq!(claim(object).do_not_repair, expected, "{value}");
            }
        }
    }
}
