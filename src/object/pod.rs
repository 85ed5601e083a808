//! Critical pods: where they run, whether they are Ready, and whose they are.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use serde::Deserialize;

use super::meta::{self, ObjectKey, Version};

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
#[derive(Debug, Clone, Deserialize, kube::Resource)]
#[resource(inherit = "k8s_openapi::api::core::v1::Pod")]
pub struct PodObject {
    #[serde(deserialize_with = "meta::pruned")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    node_name: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Status {
    #[serde(default)]
    phase: Option<String>,
    #[serde(default)]
    conditions: Option<Vec<ConditionObject>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConditionObject {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    last_transition_time: Option<Time>,
}

impl PodObject {
    /// The pod, keeping those annotations whose key starts with `annotation_prefix`.
    #[must_use]
    pub fn into_pod(self, annotation_prefix: &str) -> Pod {
        let meta = self.metadata;
        let ready = self
            .status
            .conditions
            .iter()
            .flatten()
            .find(|condition| condition.kind == "Ready" && condition.status == "True")
            .map_or(PodReady::No, |condition| PodReady::Yes {
                since: condition.last_transition_time.as_ref().map(|time| time.0),
            });
        Pod {
            key: ObjectKey::of(&meta),
            version: meta::resource_version(&meta),
            node: self.spec.node_name.unwrap_or_default().into(),
            daemon_set: meta
                .owner_references
                .iter()
                .flatten()
                .find(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet")
                .map(|owner| owner.uid.as_str().into()),
            terminating: meta.deletion_timestamp.is_some(),
            finished: matches!(self.status.phase.as_deref(), Some("Succeeded" | "Failed")),
            ready,
            annotations: meta
                .annotations
                .into_iter()
                .flatten()
                .filter(|(key, _)| key.starts_with(annotation_prefix))
                .collect(),
        }
    }
}
