//! The `NodeReadinessEvaluation` resource (alpha): what the rules together make of one node, in an object of its own. Fields and
//! limits are here; their meaning is in [`crate::plan`].

#![allow(
    clippy::duplicated_attributes,
    reason = "several printer columns are strings"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::words;

/// The maximum number of rules in a status.
pub const MAX_RULES: usize = 100;
/// The maximum length of a summary, in bytes.
pub const MAX_SUMMARY: usize = 4096;

/// Which node the evaluation is about.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[kube(
    group = "readiness.node.x-k8s.io",
    version = "v1alpha1",
    kind = "NodeReadinessEvaluation",
    plural = "nodereadinessevaluations",
    shortname = "nre",
    status = "NodeReadinessEvaluationStatus",
    derive = "PartialEq",
    doc = "NodeReadinessEvaluation says what the rules make of one node. The controller writes it, and nothing is decided by it.",
    selectable = ".spec.nodeName",
    selectable = ".status.state",
    printcolumn(
        name = "Node",
        type_ = "string",
        json_path = ".spec.nodeName",
        description = "The node."
    ),
    printcolumn(
        name = "State",
        type_ = "string",
        json_path = ".status.state",
        description = "What the rules together make of the node."
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "How long ago the object was created."
    ),
    printcolumn(
        name = "Summary",
        type_ = "string",
        json_path = ".status.summary",
        description = "Which rules keep the node closed.",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub struct NodeReadinessEvaluationSpec {
    /// Name of the node, which is the object's name too.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = ("self == oldSelf", "nodeName is immutable"))]
    pub node_name: String,
}

/// What the rules that govern their taints on the node make of it. It is written only when it changes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NodeReadinessEvaluationStatus {
    /// `NotReady` while a rule keeps the node closed, `Pending` while none does and one has not come to rest, otherwise
    /// `Ready`.
    pub state: EvaluationState,

    /// The same in one line, with the names of the rules.
    #[schemars(length(min = 1, max = MAX_SUMMARY))]
    pub summary: String,

    /// Each rule that governs its taint on the node: those that keep it closed first, then those that are pending, each by name. Not
    /// all of them where there are more than 100.
    #[schemars(length(max = MAX_RULES))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub rules: Vec<RuleEvaluation>,
}

/// What one rule makes of the node.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RuleEvaluation {
    /// The rule.
    pub rule_ref: RuleReference,

    /// `NotReady`: the node has the rule's taint, and the conditions are unmet. `Ready`: the node lacks the taint, and the rule
    /// does not want it there. `Pending`: neither; the rule waits for another one (`after`), for a grace period or a disruption
    /// limit, or is about to add or remove its taint.
    pub state: EvaluationState,

    /// When the taint that the node has, or had last, was added. For a taint without `timeAdded`, when it was first seen; the
    /// creation of the node, if it was there at the first evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taint_added_at: Option<Time>,

    /// When that taint was found to be gone; absent while the node has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taint_removed_at: Option<Time>,

    /// When the rule was first evaluated on the node.
    pub first_evaluated_at: Time,
}

/// Identifies a rule.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RuleReference {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Its UID. A new rule of the same name has another.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
}

words! {
    /// What a rule, or all of them, make of a node. The first is the most serious.
    pub enum EvaluationState {
        /// Kept closed.
        NotReady = "NotReady",
        /// Not at rest.
        Pending = "Pending",
        /// Open.
        Ready = "Ready",
    }
}

impl NodeReadinessEvaluation {
    /// The object for a node, without a status. The garbage collector deletes it with the node.
    #[must_use]
    pub fn of_node(name: &str, uid: &str) -> Self {
        let spec = NodeReadinessEvaluationSpec {
            node_name: name.to_owned(),
        };
        let mut object = Self::new(name, spec);
        object.metadata.owner_references = Some(vec![OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            ..OwnerReference::default()
        }]);
        object
    }
}
