//! What is ours in a `NodeReadinessRule`. The group is the Node Readiness Controller's, so everything that it does not have stands
//! under one key, `nodegate`: in a rule's spec, in a condition of it, and in its status. All of the spec's fields can be changed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::choice::{ExistingNodes, RegateOn, TaintPolicy};
use super::disruption::Disruption;
use super::duration::Duration;
use super::repair::Repair;
use super::rule::is_default;
use super::words::words;

const MAX_REASONS: usize = 16;
/// The reason of a condition, as in `metav1.Condition`.
const REASON: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
const MAX_VALUES: usize = 16;
const LABEL_VALUE: &str = "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$";
const MAX_EXCEPT: usize = 64;
const NAMESPACED_NAME: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$";

/// Fields that only Nodegate has.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub struct NodegateSpec {
    /// Whether the rule adds and removes its taint (`add-and-remove`, the default) or only removes it (`remove-only`). A
    /// `remove-only` rule releases nodes that registered with the taint, and never gates one. It may name a taint outside
    /// `readiness.k8s.io/` too, such as another project's startup taint.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taint_policy: TaintPolicy,

    /// What happens to nodes that are older than the rule: `Gate` (the default) gates those that do not meet the conditions, as
    /// any other node; `Leave` leaves them alone until they join again. `Leave` only with `enforcementMode: bootstrap-only`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub existing_nodes: ExistingNodes,

    /// When true, the rule changes nothing until this is false again: taints stay as they are, and no other rule takes over. Deleting
    /// the rule still cleans up.
    #[serde(default, skip_serializing_if = "is_default")]
    pub suspend: bool,

    /// After what a node that completed its bootstrap is gated again. `Reboot`: the node has rebooted. `Maintenance`: none of the
    /// conditions `MaintenanceInProgress`, `DrainInProgress` and `GracefulNodeShutdownInProgress` is `True` on it any more.
    /// `Revision`: a named `DaemonSet` is updated there, from when the pod of the recorded revision goes; only where every
    /// condition is `daemonset.nodegate.dev/<namespace>.<name>`. Only with `enforcementMode: bootstrap-only`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub regate_on: Vec<RegateOn>,

    /// How long the conditions must have been unmet before a node is gated, for example 2m. Only with `enforcementMode:
    /// continuous`. Absent: at once, and one second where nothing but synthesized conditions is unmet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = (
        "duration(self) > duration('0s')",
        "gracePeriod must be above zero, for example 2m; leave it out to gate a node at once",
    ))]
    pub grace_period: Option<Duration>,

    /// How long the conditions must have been met without a break before a node is released, and its bootstrap completed, for
    /// example 30s. Absent: at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = (
        "duration(self) > duration('0s')",
        "settlePeriod must be above zero, for example 30s; leave it out to release a node at once",
    ))]
    pub settle_period: Option<Duration>,

    /// How old the last heartbeat of a condition on the Node may be. When it has not moved for this long, the condition counts
    /// as `Unknown`, because its reporter may be dead. At least 1m. Kubelet and Node Problem Detector write every 5 minutes: use
    /// at least 6m for their conditions. Absent: a condition counts however old it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = (
        "duration(self) >= duration('1m')",
        "heartbeatTimeout must be at least 1m; write for example 10m",
    ))]
    pub heartbeat_timeout: Option<Duration>,

    /// How fast the rule may gate nodes that have been ready, and how many as it comes into force. With `maxFirstGated` alone, and
    /// where this is absent: as fast as their conditions change. With `enforcementMode: bootstrap-only`, `maxFirstGated` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disruption: Option<Disruption>,

    /// What happens to a node that does not meet its conditions in time. Only with `enforcementMode: bootstrap-only`. Absent: the
    /// rule goes on holding it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
}

/// What only Nodegate can ask of a condition.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, Hash)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[x_kube(
    validation = ("!has(self.minimum) || !has(self.minimumFromLabel)", "minimum and minimumFromLabel cannot be used together: leave one of them out"),
)]
pub struct NodegateRequirement {
    /// How many there have to be, for example 8: the condition counts as `True` from this many on, and as `False` below.
    /// Only with types that count something: `resource.nodegate.dev/<resource>` counts what the node has to allocate, in
    /// whole units of the resource (devices; bytes of memory and huge pages), and `resourceslice.nodegate.dev/<driver>`
    /// counts untainted devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub minimum: Option<i64>,

    /// The label of the node that says how many there have to be, for example `nvidia.com/gpu.count`, in place of
    /// `minimum`. On a node without this label, or where it is no whole number of at least 1, the condition counts as
    /// `Unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    #[x_kube(validation = (
        "self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",
        "minimumFromLabel must be the key of a label, for example nvidia.com/gpu.count",
    ))]
    pub minimum_from_label: Option<String>,

    /// The reasons with which the condition counts: with any other reason it counts as `Unknown`. Absent: it counts with
    /// every reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = MAX_REASONS),
        inner(length(min = 1, max = 256), regex(pattern = REASON))
    )]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub reasons: Vec<String>,

    /// The values with which the label counts, for example `success`: with any other value the condition counts as `False`.
    /// Only with `label.nodegate.dev/<key>`. Absent: it counts with every value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = MAX_VALUES),
        inner(length(max = 63), regex(pattern = LABEL_VALUE))
    )]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub values: Vec<String>,

    /// `DaemonSet`s that the condition leaves out, as `<namespace>/<name>`. Only with `daemonsets.nodegate.dev/all`,
    /// `daemonsets.nodegate.dev/scheduled` and conditions of a class. Absent: it leaves out none by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = MAX_EXCEPT),
        inner(length(max = 317), regex(pattern = NAMESPACED_NAME))
    )]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub except: Vec<String>,
}

/// Exact counts of a rule's nodes.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct NodegateStatus {
    /// What the rule does: `in force`, `held back`, `conflicted`, `dry run`, `suspended`, `invalid`, `nothing meets it`, `selects no
    /// node` or `being deleted`.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub state: String,

    /// How many nodes the rule selects.
    #[schemars(range(min = 0))]
    pub matched_nodes: i32,

    /// How many of the selected nodes carry the taint.
    #[schemars(range(min = 0))]
    pub held_nodes: i32,

    /// How many of the selected nodes are free of the taint.
    #[schemars(range(min = 0))]
    pub released_nodes: i32,

    /// How many nodes the last attempt failed on; `failedNodes` lists some of them.
    #[schemars(range(min = 0))]
    pub failed_node_count: i32,

    /// Which nodes in use the rule may gate, where that is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<Permission>,

    /// Repairs since which no node of their `NodePool` has got ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_SETBACKS))]
    pub setbacks: Vec<Setback>,

    /// Nodes that something keeps the rule from changing for now. Not all of them where there are many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_PAUSES))]
    pub pauses: Vec<Pause>,
}

/// Which nodes in use a rule may gate: those that were counted. The next leader goes by it.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    /// The generation of the rule.
    #[schemars(range(min = 1))]
    pub generation: i64,

    /// How many nodes in use it covers.
    #[schemars(range(min = 0))]
    pub nodes: i32,

    /// Fingerprint of the classes that the rule waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub classes: Option<String>,
}

/// What keeps a rule from changing a node for now.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    /// Name of the node.
    #[schemars(length(max = 253))]
    pub node_name: String,

    /// What it is, in one word.
    pub reason: PauseReason,

    /// What it is, in full, and what to do about it.
    #[schemars(length(max = 1024))]
    pub message: String,

    /// When the rule goes on; absent if there is nothing to change now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub until: Option<Time>,
}

words! {
    /// What keeps a rule from changing a node for now, in one word.
    pub enum PauseReason {
        Contended = "Contended",
        ReactsToTaint = "ReactsToTaint",
        AbsenceNotLasted = "AbsenceNotLasted",
    }
}

/// How many nodes of `pauses` are listed.
pub const MAX_PAUSES: usize = 100;

/// A repair since which no node has got ready.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Setback {
    /// Name of the Karpenter `NodePool`; absent for nodes without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub pool: Option<String>,

    /// The condition that the replaced node lacked.
    #[schemars(length(max = 316))]
    pub condition: String,

    /// When it was replaced.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub since: Time,

    /// How many replacements before lacked the condition, too.
    #[schemars(range(min = 0))]
    pub missed: i32,

    /// The generation of the `NodePool` then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_generation: Option<i64>,
}

/// How many pools may have one.
pub const MAX_SETBACKS: usize = 100;

impl NodegateSpec {
    /// What limits how fast the rule gates nodes, if it asks for that. `maxFirstGated` alone does not.
    pub fn guard(&self) -> Option<&Disruption> {
        self.disruption.as_ref().filter(|it| {
            let first_alone = Disruption {
                max_first_gated: it.max_first_gated,
                ..Disruption::default()
            };
            it.max_first_gated.is_none() || **it != first_alone
        })
    }
}

const SPEC_FIELDS: [&str; 9] = [
    "taintPolicy",
    "existingNodes",
    "suspend",
    "regateOn",
    "gracePeriod",
    "settlePeriod",
    "heartbeatTimeout",
    "disruption",
    "repair",
];
const CONDITION_FIELDS: [&str; 5] = ["minimum", "minimumFromLabel", "reasons", "values", "except"];

/// Says which fields of a spec are ours and not under `nodegate`. The API server does not know them there, and drops them.
pub fn misplaced(spec: &Value) -> Vec<String> {
    let belong = |object: &Value, fields: &[&str], path: &str| {
        let fields = fields.iter().filter(|field| object.get(field).is_some());
        let belong = fields.map(|field| format!("`{field}` belongs under `{path}.nodegate`"));
        belong.collect::<Vec<_>>()
    };
    let mut all = belong(spec, &SPEC_FIELDS, "spec");
    let conditions = spec["conditions"].as_array().into_iter().flatten();
    for (index, condition) in conditions.enumerate() {
        let path = format!("spec.conditions[{index}]");
        all.extend(belong(condition, &CONDITION_FIELDS, &path));
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_nodegate_field_in_the_wrong_place_is_reported_with_its_path() {
        let spec = json!({
            "existingNodes": "Leave",
            "conditions": [{ "type": "Ready" }, { "type": "A", "minimum": 8 }],
            "dryRun": true,
            "nodegate": { "suspend": true },
        });
        assert_eq!(
            misplaced(&spec),
            [
                "`existingNodes` belongs under `spec.nodegate`",
                "`minimum` belongs under `spec.conditions[1].nodegate`",
            ]
        );
        for (schema, fields) in [
            (schemars::schema_for!(NodegateSpec), &SPEC_FIELDS[..]),
            (
                schemars::schema_for!(NodegateRequirement),
                &CONDITION_FIELDS,
            ),
        ] {
            let mut expected: Vec<&str> = fields.to_vec();
            expected.sort_unstable();
            let properties = schema.as_value()["properties"].as_object().unwrap();
            let mut named: Vec<&String> = properties.keys().collect();
            named.sort_unstable();
            assert_eq!(named, expected);
        }
    }
}
