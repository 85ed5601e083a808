//! Critical pods: their node, readiness and owner.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;

use super::field::{Field, Unreadable, items, objects};
use super::meta::{Metadata, ObjectKey};

/// The label of a `DaemonSet`'s pod that names its revision.
const REVISION_LABEL: &str = "controller-revision-hash";
/// The label of a `DaemonSet`'s pod with the generation of its template.
const TEMPLATE_GENERATION_LABEL: &str = "pod-template-generation";

/// The parts of a pod that decisions need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// The pod's namespace and name.
    pub key: ObjectKey,
    /// The node that the pod is bound to; empty if it is not bound.
    pub node: Arc<str>,
    /// The UID of the `DaemonSet` that controls the pod, if one does.
    pub daemon_set: Option<Arc<str>>,
    /// Whether the pod is being deleted.
    pub terminating: bool,
    /// When the pod was created.
    pub created: Option<Timestamp>,
    /// The pod's phase.
    pub phase: PodPhase,
    /// The pod's Ready condition.
    pub ready: PodReady,
    /// The revision of the `DaemonSet` that it was made from, by the label `controller-revision-hash`.
    pub revision: Option<Arc<str>>,
    /// The generation of the `DaemonSet`'s pod template that it was made from.
    pub template_generation: Option<i64>,
    /// The pod's annotations, as key and value.
    pub annotations: Vec<(String, String)>,
}

/// A pod's phase, as far as it matters whether the pod has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodPhase {
    /// `Pending`, `Running`, `Unknown` or absent.
    Unfinished,
    /// All of its containers have ended with exit code 0.
    Succeeded,
    /// All of its containers have ended, and not all with exit code 0.
    Failed,
}

/// A pod's Ready condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodReady {
    /// `False`, `Unknown` or absent.
    No,
    /// `True`.
    Yes {
        /// When it turned `True`, if the kubelet reports that.
        since: Option<Timestamp>,
    },
}

impl Pod {
    /// Whether the pod is neither being deleted nor finished. Only such a pod counts for its node.
    pub fn is_live(&self) -> bool {
        !self.terminating && self.phase == PodPhase::Unfinished
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
    /// The node that the pod is bound to, if that is readable.
    pub fn node_name(&self) -> Option<&str> {
        let name = self.spec.as_readable()?.node_name.as_readable()?;
        Some(name.as_str()).filter(|name| !name.is_empty())
    }

    /// The pod, with the annotations whose keys start with `annotation_prefix`; `None` drops all.
    ///
    /// # Errors
    /// The object is unreadable. Fields that decisions depend on must be well-formed; other malformed fields count as absent.
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
        let label = |key: &str| meta.labels.as_ref()?.get(key).map(String::as_str);
        Ok(Pod {
            key: ObjectKey::of(&meta),
            node: node_name.unwrap_or_default().into(),
            daemon_set: meta
                .owner_references
                .iter()
                .flatten()
                .find(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet")
                .map(|owner| owner.uid.as_str().into()),
            terminating: meta.deletion_timestamp.is_some(),
            revision: label(REVISION_LABEL).map(Into::into),
            template_generation: label(TEMPLATE_GENERATION_LABEL).and_then(|it| it.parse().ok()),
            created: meta.creation_timestamp.as_ref().map(|time| time.0),
            phase: match status.phase.as_readable().map(String::as_str) {
                Some("Succeeded") => PodPhase::Succeeded,
                Some("Failed") => PodPhase::Failed,
                _ => PodPhase::Unfinished,
            },
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
