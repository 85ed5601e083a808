//! A rule's status. Counts are exact; the controller limits lists well below the limits of the schema.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::ConditionStatus;
use super::nodegate::NodegateStatus;
use super::schema::conditions;
use super::words::words;

/// What the controller last found and did for a rule.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct NodeReadinessRuleStatus {
    /// The generation of the rule that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,

    /// How the rule itself is doing: `Accepted` says whether it is in force, `Conflicted` whether an older rule governs
    /// the same taint on some of its nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions", length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// Names of nodes on which the rule is carried out. Not all of them where there are many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5000), inner(length(max = 253)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub applied_nodes: Vec<String>,

    /// Nodes on which the rule could not be carried out, and why. Not all of them where there are many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5000))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["nodeName".into()]))]
    pub failed_nodes: Vec<NodeFailure>,

    /// What each condition was found to be, node by node. Nodes that are held come first; not all nodes are listed where
    /// there are many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5000))]
    // A map, as upstream's is, has the API server record the manager of each field of each entry: twice the bytes, and twice the CPU
    // for a write.
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub node_evaluations: Vec<NodeEvaluation>,

    /// What the rule would do, while `dryRun` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run_results: Option<DryRunResults>,

    /// Exact counts of the rule's nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodegate: Option<NodegateStatus>,
}

/// A node on which the rule could not be carried out.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NodeFailure {
    /// Name of the node.
    #[schemars(length(min = 1, max = 253), regex(pattern = NODE_NAME))]
    pub node_name: String,

    /// What failed, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub reason: Option<String>,

    /// What failed, in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub message: Option<String>,

    /// When it failed.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub last_evaluation_time: Time,
}

/// What a rule found on one node.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NodeEvaluation {
    /// Name of the node.
    #[schemars(length(min = 1, max = 253), regex(pattern = NODE_NAME))]
    pub node_name: String,

    /// What each condition of the rule was found to be.
    #[schemars(length(max = 5000))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub condition_results: Vec<ConditionResult>,

    /// Whether the node carries the rule's taint.
    pub taint_status: TaintStatus,

    /// When this was found.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub last_evaluation_time: Time,
}

/// What one condition was found to be, beside what the rule wants.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ConditionResult {
    /// Type of the condition.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,

    /// The status that was found; `Unknown` where the node has no such condition.
    pub current_status: ConditionStatus,

    /// The status that the rule wants.
    pub required_status: ConditionStatus,

    /// The status that counts in place of `currentStatus` where the node has no such condition: the rule's
    /// `defaultStatus`, and `Unknown` where it names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_status: Option<ConditionStatus>,
}

/// What a rule would do if it were not a dry run.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct DryRunResults {
    /// How many nodes the rule selects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub affected_nodes: Option<i32>,

    /// How many nodes would get the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub taints_to_add: Option<i32>,

    /// How many nodes would lose the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub taints_to_remove: Option<i32>,

    /// How many nodes lack one of the conditions entirely, so that nothing reports it there yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub risky_operations: Option<i32>,

    /// All of this in one line.
    #[schemars(length(min = 1, max = 4096))]
    pub summary: String,
}

words! {
    /// Whether a node carries a rule's taint.
    pub enum TaintStatus {
        Present = "Present",
        Absent = "Absent",
    }
}

/// What a node may be called: a DNS subdomain (RFC 1123).
const NODE_NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
