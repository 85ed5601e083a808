//! `DaemonSet`s that nodes wait for: where they run, and which pods are theirs.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Affinity, NodeSelectorRequirement, NodeSelectorTerm, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::kind::ResourceKind;
use super::meta::ObjectKey;
use super::pod::Pod;
use super::taint::{DAEMON_TOLERATIONS, NETWORK_UNAVAILABLE_TOLERATION, toleration_of};
use super::watched::{Kind, Lean, Unreadable};
use crate::selector::{self, Requirement, Selector};

/// Leaves out a `DaemonSet` that has it with value `true` where a rule waits for all.
const IGNORE_LABEL: &str = "nodegate.dev/ignore";

/// The API server keeps the generation of the pod template in this annotation.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The longest selector, in bytes of text: its pods are listed by it, and a request's address holds no more than 64 KiB.
const MAX_SELECTOR: usize = 16 << 10;

/// How long a `DaemonSet` that is deleted counts as there, so that nothing changes: tools delete one and make it again.
pub(crate) const DELETION_LASTS: SignedDuration = SignedDuration::from_secs(15);

/// The finalizer with which a `DaemonSet` is there until its pods have been orphaned (`metav1.FinalizerOrphanDependents`).
const ORPHANS: &str = "orphan";

/// The parts of a `DaemonSet` that decisions need. Its status is not read: it changes with every pod of a rollout.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DaemonSet {
    pub key: ObjectKey,
    /// The UID, which its pods' owner references name.
    pub uid: Arc<str>,
    /// When this process saw that it was deleted; the minimum if it was before. `None` also while its pods are being orphaned.
    pub deleted: Option<Timestamp>,
    /// Whether rules that wait for all `DaemonSet`s leave it out: its own label `nodegate.dev/ignore` is `true`.
    pub ignored: bool,
    /// Matches its pods; `None` if the selector is invalid.
    pub selector: Option<Selector>,
    /// The generation of its pod template: it grows with each change of that.
    pub template_generation: Option<i64>,
    /// For how many seconds a pod has to be Ready before it counts as available.
    pub min_ready_seconds: u32,
    pub template_labels: BTreeMap<String, String>,
    /// `spec.nodeName` of its pod template; empty for any node.
    pub node_name: String,
    pub node_selector: BTreeMap<String, String>,
    /// The terms of the required node affinity, one of which must match; empty and invalid ones never do, and are left out.
    pub node_affinity: Option<Vec<NodeAffinityTerm>>,
    /// The tolerations of its pods, including those that the `DaemonSet` controller adds.
    pub tolerations: Vec<Toleration>,
    /// Its first container, if none has a readiness probe: then its pods count as Ready as soon as they run.
    pub unprobed: Option<Box<str>>,
}

/// One term of a required node affinity, all of whose parts must match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeAffinityTerm {
    pub labels: Vec<Requirement>,
    /// Node names that must (`true`) or must not (`false`) be this node's.
    pub names: Vec<(String, bool)>,
}

impl DaemonSet {
    /// What is kept of one that nothing waits for: its name, and its pods' labels of which this selector asks.
    pub fn outline(&self, selector: &Selector) -> Self {
        let asked = selector.requirements().iter();
        let labels = asked.filter_map(|it| self.template_labels.get_key_value(&it.key));
        Self {
            key: self.key.clone(),
            deleted: self.deleted,
            template_labels: labels
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            ..Self::default()
        }
    }

    /// What it takes to compare it with a node: 1 for a usual one.
    pub fn size(&self) -> usize {
        let terms = self.node_affinity.iter().flatten();
        let terms: usize = terms.map(|it| 1 + it.labels.len() + it.names.len()).sum();
        1 + (terms + self.tolerations.len() + self.node_selector.len()) / 16
    }

    /// Until when it counts as there, if it was deleted.
    pub fn counts_until(&self) -> Option<Timestamp> {
        self.deleted.map(|at| at + DELETION_LASTS)
    }

    /// Whether the pod is one of this `DaemonSet`'s: it controls the pod, or adopts it, as `ClaimPods` of
    /// `k8s.io/kubernetes/pkg/controller` does. A pod elsewhere may claim any owner, whose UID is no secret.
    pub fn owns(&self, pod: &Pod) -> bool {
        let selects = |labels| self.selector.as_ref().is_some_and(|it| it.matches(labels));
        pod.key.namespace == self.key.namespace
            && match &pod.daemon_set {
                Some(uid) => *uid == self.uid,
                None => pod.orphan.as_deref().is_some_and(selects),
            }
    }
}

/// Every field that is decoded decides where its pods run, or when they count as Ready, but for parts of the affinity.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    selector: Option<LabelSelector>,
    template: Template,
    #[serde(default)]
    min_ready_seconds: u32,
}

#[derive(Debug, Deserialize)]
struct Template {
    #[serde(default)]
    metadata: TemplateMeta,
    #[serde(default)]
    spec: PodSpec,
}

#[derive(Debug, Default, Deserialize)]
struct TemplateMeta {
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: Option<String>,
    node_selector: Option<BTreeMap<String, String>>,
    affinity: Option<Affinity>,
    tolerations: Option<Vec<Toleration>>,
    host_network: bool,
    containers: Option<Vec<Container>>,
    init_containers: Option<Vec<Container>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    name: Box<str>,
    readiness_probe: Option<IgnoredAny>,
}

impl NodeAffinityTerm {
    /// `None` if it is empty or invalid.
    fn of(term: NodeSelectorTerm) -> Option<Self> {
        let expressions = term.match_expressions.into_iter().flatten();
        let labels = expressions
            .map(|it| Requirement::parse(&it.key, &it.operator, it.values.as_deref()).ok());
        let labels: Vec<_> = labels.collect::<Option<_>>()?;
        let fields = term.match_fields.iter().flatten();
        let names: Vec<_> = fields.map(name_field).collect::<Option<_>>()?;
        let is_empty = labels.is_empty() && names.is_empty();
        (!is_empty).then_some(Self { labels, names })
    }
}

/// A field requirement. Only `metadata.name` is supported, with `In` or `NotIn` and exactly one value.
fn name_field(field: &NodeSelectorRequirement) -> Option<(String, bool)> {
    let (key, operator) = (field.key.as_str(), field.operator.as_str());
    match (key, operator, field.values.as_deref()?) {
        ("metadata.name", selector::IN, [name]) => Some((name.clone(), true)),
        ("metadata.name", selector::NOT_IN, [name]) => Some((name.clone(), false)),
        _ => None,
    }
}

impl Kind for DaemonSet {
    const RESOURCE: ResourceKind = ResourceKind::DaemonSets;
    type Spec = Spec;
    type Status = IgnoredAny;

    fn read(object: &mut Lean<Self>) -> Result<Self, Unreadable> {
        let Some(spec) = object.spec.take() else {
            return Err(Unreadable::new("spec is missing"));
        };
        let (selector, template) = (spec.selector, spec.template);
        let selector = selector.and_then(|selector| Selector::parse(&selector).ok());
        if selector
            .as_ref()
            .is_some_and(|it| it.to_string().len() > MAX_SELECTOR)
        {
            return Err(Unreadable::new(
                "spec.selector is too long to list its pods by it",
            ));
        }
        let pod = template.spec;
        let mut tolerations = pod.tolerations.unwrap_or_default();
        let own = DAEMON_TOLERATIONS.into_iter();
        let own = own.chain(pod.host_network.then_some(NETWORK_UNAVAILABLE_TOLERATION));
        tolerations.extend(own.map(|(key, effect)| toleration_of(key, effect)));
        let containers = pod.containers.unwrap_or_default();
        // One that goes on beside the others may have a probe, too.
        let others = pod.init_containers.iter().flatten();
        let mut all = containers.iter().chain(others);
        let is_probed = all.any(|it| it.readiness_probe.is_some());
        let first = containers.into_iter().next().filter(|_| !is_probed);
        let generation = object.annotation(TEMPLATE_GENERATION);
        let mut finalizers = object.metadata.finalizers.iter().flatten();
        let is_orphaning = finalizers.any(|it| it == ORPHANS);
        let affinity = pod.affinity.and_then(|it| it.node_affinity);
        let required =
            affinity.and_then(|it| it.required_during_scheduling_ignored_during_execution);
        Ok(Self {
            key: ObjectKey::of(&object.metadata),
            uid: object.uid().unwrap_or_default(),
            deleted: (object.is_deleting() && !is_orphaning).then_some(Timestamp::MIN),
            ignored: object.label(IGNORE_LABEL) == Some("true"),
            selector: selector.filter(|selector| !selector.is_empty()),
            template_generation: generation.and_then(|it| it.parse().ok()),
            min_ready_seconds: spec.min_ready_seconds,
            template_labels: template.metadata.labels.unwrap_or_default(),
            node_name: pod.node_name.unwrap_or_default(),
            node_selector: pod.node_selector.unwrap_or_default(),
            node_affinity: required.map(|required| {
                let terms = required.node_selector_terms.into_iter();
                terms.filter_map(NodeAffinityTerm::of).collect()
            }),
            tolerations,
            unprobed: first.map(|it| it.name),
        })
    }
}
