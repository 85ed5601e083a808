//! Critical pods: their node, readiness and owner.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;

use super::kind::ResourceKind;
use super::meta::ObjectKey;
use super::watched::{Kind, Lean, Unreadable, lenient};
use crate::text::quoted;

/// The label that the `DaemonSet` controller puts on its pods, as does that of `StatefulSet`s.
pub const REVISION_LABEL: &str = "controller-revision-hash";
const TEMPLATE_GENERATION_LABEL: &str = "pod-template-generation";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    pub key: ObjectKey,
    /// The node that the pod is bound to; empty if it is not bound.
    pub node: Arc<str>,
    /// The UID of the `DaemonSet` that controls the pod, if one does.
    pub daemon_set: Option<Arc<str>>,
    pub terminating: bool,
    pub created: Option<Timestamp>,
    pub phase: PodPhase,
    pub ready: PodReady,
    /// When its present readiness was first seen, if that is dated later.
    pub seen_ready: Option<Box<Timestamp>>,
    /// The revision of the `DaemonSet` that it was made from, by the label `controller-revision-hash`.
    pub revision: Option<Arc<str>>,
    /// The generation of the `DaemonSet`'s pod template that it was made from.
    pub template_generation: Option<i64>,
    pub annotations: Vec<(String, String)>,
    /// Its labels, if nothing controls it: a `DaemonSet` whose selector matches them adopts it.
    pub orphan: Option<Box<BTreeMap<String, String>>>,
}

/// A pod's phase, as far as it matters whether the pod has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum PodPhase {
    Succeeded,
    Failed,
    /// `Pending`, `Running`, `Unknown` or absent.
    #[default]
    #[serde(other)]
    Unfinished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodReady {
    /// `False`, `Unknown` or absent.
    No,
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

    /// Whether a `DaemonSet` controls the pod, or may adopt it.
    pub fn may_be_a_daemon_sets(&self) -> bool {
        self.daemon_set.is_some() || self.orphan.is_some()
    }

    /// Since when it is Ready: since it was first seen so, where a clock that is ahead dates that; `None` if that is not reported.
    pub fn ready_since(&self) -> Option<Timestamp> {
        match self.ready {
            PodReady::Yes { since } => self.seen_ready.as_deref().copied().or(since),
            PodReady::No => None,
        }
    }

    /// Notes that it is seen now, after the state that is `known`: the clock that dates its readiness may be ahead.
    pub fn see(&mut self, known: Option<&Self>, now: Timestamp) {
        let is_ahead = self.ready_since() > Some(now);
        let known = known.filter(|known| known.ready == self.ready);
        let known = known.map(|known| known.seen_ready.clone());
        self.seen_ready = known.unwrap_or_else(|| is_ahead.then(|| now.into()));
    }

    /// Keeps annotations with this key prefix whose values name CSI drivers; `None` drops all.
    pub fn keep_annotations(&mut self, prefix: Option<&str>) {
        let is_kept = |key: &str| prefix.is_some_and(|prefix| key.starts_with(prefix));
        self.annotations.retain(|(key, _)| is_kept(key));
        for (_, driver) in &mut self.annotations {
            *driver = quoted(std::mem::take(driver));
        }
        self.annotations.shrink_to_fit();
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    node_name: Option<Arc<str>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    phase: PodPhase,
    conditions: Option<Vec<PodCondition>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    #[serde(default, deserialize_with = "lenient")]
    last_transition_time: Option<Timestamp>,
}

impl Kind for Pod {
    const RESOURCE: ResourceKind = ResourceKind::Pods;
    const BUDGET: usize = 128 << 10;
    type Spec = Spec;
    type Status = Status;

    fn read(object: &mut Lean<Self>) -> Result<Self, Unreadable> {
        let spec = object.spec.take();
        let status = object.status.take().unwrap_or_default();
        let mut conditions = status.conditions.iter().flatten();
        let ready = conditions.find(|it| it.kind == "Ready" && it.status == "True");
        let generation = object.label(TEMPLATE_GENERATION_LABEL);
        let generation = generation.and_then(|it| it.parse().ok());
        let annotations = object.metadata.annotations.take().unwrap_or_default();
        let is_controlled = object.owner(|it| it.controller == Some(true)).is_some();
        let labels = (!is_controlled).then(|| object.metadata.labels.clone());
        Ok(Self {
            key: ObjectKey::of(&object.metadata),
            node: spec.and_then(|spec| spec.node_name).unwrap_or_default(),
            daemon_set: object.owner(|it| it.controller == Some(true) && it.kind == "DaemonSet"),
            terminating: object.is_deleting(),
            revision: object.label(REVISION_LABEL).map(Into::into),
            template_generation: generation,
            created: object.created(),
            phase: status.phase,
            ready: ready.map_or(PodReady::No, |condition| PodReady::Yes {
                since: condition.last_transition_time,
            }),
            seen_ready: None,
            annotations: annotations.into_iter().collect(),
            orphan: labels.flatten().map(Box::new),
        })
    }

    fn node_name(&self) -> Option<&str> {
        Some(&self.node)
    }
}
