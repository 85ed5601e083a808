//! `DaemonSet`s that nodes wait for: where they run, and which pods are theirs.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;

use super::field::{Unreadable, items};
use super::meta::{Metadata, ObjectKey};
use super::pod::Pod;
use super::taint::{DAEMON_TOLERATIONS, NETWORK_UNAVAILABLE_TOLERATION, Toleration};
use super::whole::whole;
use crate::selector::{self, Requirement, RequirementObject, Selector};

/// Leaves out a `DaemonSet` that has it with value `true` where a rule waits for all.
const IGNORE_LABEL: &str = "nodegate.dev/ignore";

/// The API server keeps the generation of the pod template in this annotation.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The parts of a `DaemonSet` that decisions need. Its status is not read: it changes with every pod of a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonSet {
    /// The namespace and name.
    pub key: ObjectKey,
    /// The UID, which its pods' owner references name.
    pub uid: Arc<str>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether rules that wait for all `DaemonSet`s leave it out: its own label `nodegate.dev/ignore` is `true`.
    pub ignored: bool,
    /// Matches its pods; `None` if the selector is invalid.
    pub selector: Option<Selector>,
    /// The generation of its pod template: it grows with each change of that.
    pub template_generation: Option<i64>,
    /// The labels of its pod template.
    pub template_labels: BTreeMap<String, String>,
    /// `spec.nodeName` of its pod template; empty for any node.
    pub node_name: String,
    /// `spec.nodeSelector` of its pod template.
    pub node_selector: BTreeMap<String, String>,
    /// The terms of the required node affinity, one of which must match; `None` if there is none.
    pub node_affinity: Option<Vec<NodeAffinityTerm>>,
    /// The tolerations of its pods, including those that the `DaemonSet` controller adds.
    pub tolerations: Vec<Toleration>,
}

/// One term of a required node affinity, all of whose parts must match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeAffinityTerm {
    /// A term that is empty or invalid: it matches no node.
    Nothing,
    /// A term with at least one requirement.
    All {
        /// Requirements on the node's labels.
        labels: Vec<Requirement>,
        /// Node names that must (`true`) or must not (`false`) be this node's.
        names: Vec<(String, bool)>,
    },
}

impl DaemonSet {
    /// Whether the pod is one of this `DaemonSet`'s. A pod elsewhere may claim any owner, whose UID is no secret.
    pub fn owns(&self, pod: &Pod) -> bool {
        pod.daemon_set.as_ref() == Some(&self.uid) && pod.key.namespace == self.key.namespace
    }
}

/// A `DaemonSet` on the wire. Every decoded field of its spec decides where its pods run, so a spec with any malformed field is
/// kept as the decoder's error.
#[derive(Debug, Clone, Deserialize, kube::Resource)]
#[resource(inherit = "k8s_openapi::api::apps::v1::DaemonSet")]
#[serde(remote = "Self", default)]
pub struct DaemonSetObject {
    metadata: Metadata,
    #[serde(deserialize_with = "whole")]
    spec: Result<Spec, String>,
}

items!(DaemonSetObject);

impl Default for DaemonSetObject {
    fn default() -> Self {
        Self {
            metadata: Metadata::default(),
            spec: Err("it is missing".into()),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
struct Spec {
    #[serde(default)]
    selector: Option<LabelSelector>,
    template: Template,
}

#[derive(Debug, Clone, Deserialize)]
struct Template {
    #[serde(default)]
    metadata: TemplateMeta,
    #[serde(default)]
    spec: PodSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct TemplateMeta {
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: Option<String>,
    node_selector: Option<BTreeMap<String, String>>,
    affinity: Option<Affinity>,
    tolerations: Option<Vec<Toleration>>,
    host_network: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Affinity {
    node_affinity: Option<NodeAffinity>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Option<NodeSelector>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeSelector {
    node_selector_terms: Option<Vec<TermObject>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TermObject {
    match_expressions: Option<Vec<RequirementObject>>,
    match_fields: Option<Vec<RequirementObject>>,
}

impl From<TermObject> for NodeAffinityTerm {
    fn from(term: TermObject) -> Self {
        let expressions = term.match_expressions.unwrap_or_default();
        let fields = term.match_fields.unwrap_or_default();
        if expressions.is_empty() && fields.is_empty() {
            return Self::Nothing;
        }
        let labels = expressions
            .iter()
            .map(Requirement::parse)
            .collect::<Result<_, _>>();
        let names = fields.iter().map(name_field).collect::<Option<_>>();
        match (labels, names) {
            (Ok(labels), Some(names)) => Self::All { labels, names },
            _ => Self::Nothing,
        }
    }
}

/// A field requirement. Only `metadata.name` is supported, with `In` or `NotIn` and exactly one value.
fn name_field(field: &RequirementObject) -> Option<(String, bool)> {
    let must_be = match field.operator.as_str() {
        selector::IN => true,
        selector::NOT_IN => false,
        _ => return None,
    };
    match field.values.as_deref() {
        Some([name]) if field.key == "metadata.name" => Some((name.clone(), must_be)),
        _ => None,
    }
}

impl DaemonSetObject {
    /// The `DaemonSet`.
    ///
    /// # Errors
    /// The object is unreadable.
    pub fn read(self) -> Result<DaemonSet, Unreadable> {
        let meta = self.metadata.read()?;
        let odd = |complaint| Unreadable::new(format!("spec: {complaint}"));
        let Spec { selector, template } = self.spec.map_err(odd)?;
        let pod = template.spec;
        let mut tolerations = pod.tolerations.unwrap_or_default();
        tolerations.extend(
            DAEMON_TOLERATIONS
                .into_iter()
                .chain(pod.host_network.then_some(NETWORK_UNAVAILABLE_TOLERATION))
                .map(|(key, effect)| Toleration::of(key, effect.as_str())),
        );
        Ok(DaemonSet {
            key: ObjectKey::of(&meta),
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            deleting: meta.deletion_timestamp.is_some(),
            ignored: {
                let labels = meta.labels.as_ref();
                labels.is_some_and(|it| it.get(IGNORE_LABEL).is_some_and(|value| value == "true"))
            },
            selector: selector
                .and_then(|selector| Selector::parse(&selector).ok())
                .filter(|selector| !selector.is_empty()),
            template_generation: {
                let annotations = meta.annotations.as_ref();
                let generation = annotations.and_then(|it| it.get(TEMPLATE_GENERATION));
                generation.and_then(|it| it.parse().ok())
            },
            template_labels: template.metadata.labels.unwrap_or_default(),
            node_name: pod.node_name.unwrap_or_default(),
            node_selector: pod.node_selector.unwrap_or_default(),
            node_affinity: pod
                .affinity
                .and_then(|affinity| affinity.node_affinity?.required)
                .map(|required| {
                    required
                        .node_selector_terms
                        .unwrap_or_default()
                        .into_iter()
                        .map(NodeAffinityTerm::from)
                        .collect()
                }),
            tolerations,
        })
    }
}
