//! Critical pods: where they run, whether they are Ready, and whose they are.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;

use super::field::{Field, Unreadable, items, objects};
use super::meta::{self, Metadata, ObjectKey, Version};

/// A pod, as far as decisions need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// The pod's namespace and name.
    pub key: ObjectKey,
    /// The version of this state.
    pub version: Version,
    /// The node that the pod is bound to; empty before it is.
    pub node: Arc<str>,
    /// The UID of the `DaemonSet` that controls the pod, if one does.
    pub daemon_set: Option<Arc<str>>,
    /// Whether the pod is being deleted.
    pub terminating: bool,
    /// Whether all of the pod's containers have ended for good (phase `Succeeded` or `Failed`).
    pub finished: bool,
    /// The pod's Ready condition.
    pub ready: PodReady,
    /// The pod's annotations, as key and value.
    pub annotations: Vec<(String, String)>,
}

/// A pod's Ready condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodReady {
    /// `False`, `Unknown` or not there yet.
    No,
    /// `True`, since then where the kubelet says so.
    Yes {
        /// When the condition turned `True`.
        since: Option<Timestamp>,
    },
}

impl Pod {
    /// Whether the pod is neither on its way out nor done: only such a pod says anything about its node.
    #[must_use]
    pub fn is_live(&self) -> bool {
        !self.terminating && !self.finished
    }
}

/// A Pod on the wire.
#[derive(Debug, Clone, Default, Deserialize, kube::Resource)]
#[resource(inherit = "k8s_openapi::api::core::v1::Pod")]
#[serde(remote = "Self", default)]
pub struct PodObject {
    metadata: Metadata,
    spec: Field<Spec>,
    status: Field<Status>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Field<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: Field<String>,
    conditions: Field<Vec<Field<ConditionObject>>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ConditionObject {
    #[serde(rename = "type")]
    kind: Field<String>,
    status: Field<String>,
    last_transition_time: Field<Timestamp>,
}

items!(PodObject);
objects!(Spec, Status, ConditionObject);

impl PodObject {
    /// The node that the pod is bound to, as far as that can be told.
    #[must_use]
    pub fn node_name(&self) -> Option<&str> {
        let name = self.spec.as_readable()?.node_name.as_readable()?;
        Some(name.as_str()).filter(|name| !name.is_empty())
    }

    /// The pod, keeping those annotations whose key starts with `annotation_prefix`, and none without one.
    ///
    /// # Errors
    /// Why nothing can be said about it. What decisions rest on has to be as the API has it; anything else that is odd counts as
    /// absent.
    pub fn read(self, annotation_prefix: Option<&str>) -> Result<Pod, Unreadable> {
        let meta = self.metadata.read()?;
        let spec = self.spec.or_unreadable("spec")?.unwrap_or_default();
        let node_name = spec.node_name.or_unreadable("spec.nodeName")?;
        let status = self.status.or_unreadable("status")?.unwrap_or_default();
        let is = |field: &Field<String>, text: &str| {
            field.as_readable().is_some_and(|field| field == text)
        };
        let conditions = status.conditions.or_unreadable("status.conditions")?;
        let ready = conditions
            .iter()
            .flatten()
            .filter_map(Field::as_readable)
            .find(|condition| is(&condition.kind, "Ready") && is(&condition.status, "True"))
            .map_or(PodReady::No, |condition| PodReady::Yes {
                since: condition.last_transition_time.as_readable().copied(),
            });
        Ok(Pod {
            key: ObjectKey::of(&meta),
            version: meta::resource_version(&meta),
            node: node_name.unwrap_or_default().into(),
            daemon_set: meta
                .owner_references
                .iter()
                .flatten()
                .find(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet")
                .map(|owner| owner.uid.as_str().into()),
            terminating: meta.deletion_timestamp.is_some(),
            finished: is(&status.phase, "Succeeded") || is(&status.phase, "Failed"),
            ready,
            annotations: meta
                .annotations
                .into_iter()
                .flatten()
                .filter(|(key, _)| annotation_prefix.is_some_and(|prefix| key.starts_with(prefix)))
                .collect(),
        })
    }
}
