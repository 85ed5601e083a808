//! A rule's spec. The validation rules beside the fields are CEL, run by the API server. Their messages are those that clients
//! of the Node Readiness Controller match, or they say what to write instead.
//!
//! A validation rule that compares with the old object is on the field only if the field is required: the API server skips such
//! a rule when an optional field appears or vanishes. Those on optional fields are on the parent struct and use `has()`.
//!
//! The Node Readiness Controller's CRD accepts `anyOf` and `defaultStatus` with `bootstrap-only`. Rules created under it can
//! still be edited: the validation rules that forbid these apply only to creation (`optionalOldSelf`), since the fields
//! concerned never change. A validation rule on a single field needs no such care: the API server does not check unchanged
//! fields.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::choice::{ConditionPolicy, ConditionStatus, EnforcementMode, TaintPolicy};
use super::nodegate::{NodegateRequirement, NodegateSpec};
use super::schema::node_selector;
use super::status::NodeReadinessRuleStatus;
use super::taint::TaintSpec;

pub const MAX_CONDITIONS: usize = 32;

/// Which nodes a rule holds until which of their conditions are met, and by what taint.
#[allow(
    clippy::duplicated_attributes,
    reason = "several columns have the same type"
)]
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "readiness.node.x-k8s.io",
    version = "v1alpha1",
    kind = "NodeReadinessRule",
    plural = "nodereadinessrules",
    shortname = "nrr",
    status = "NodeReadinessRuleStatus",
    derive = "PartialEq",
    doc = "NodeReadinessRule keeps pods off the nodes it selects, by a taint, until the conditions it names are met.",
    selectable = ".spec.enforcementMode",
    selectable = ".spec.taint.key",
    selectable = ".spec.dryRun",
    printcolumn(
        name = "Mode",
        type_ = "string",
        json_path = ".spec.enforcementMode",
        description = "Whether nodes are gated once, while they start (bootstrap-only), or at any time (continuous)."
    ),
    printcolumn(
        name = "Taint",
        type_ = "string",
        json_path = ".spec.taint.key",
        description = "Key of the taint that gates a node."
    ),
    printcolumn(
        name = "Effect",
        type_ = "string",
        json_path = ".spec.taint.effect",
        description = "Effect of the taint on pods that do not tolerate it."
    ),
    printcolumn(
        name = "DryRun",
        type_ = "boolean",
        json_path = ".spec.dryRun",
        description = "Whether the rule only reports what it would do."
    ),
    printcolumn(
        name = "State",
        type_ = "string",
        json_path = ".status.nodegate.state",
        description = "What the rule does now, such as in force, held back or dry run."
    ),
    printcolumn(
        name = "Nodes",
        type_ = "integer",
        json_path = ".status.nodegate.matchedNodes",
        description = "How many nodes the rule selects."
    ),
    printcolumn(
        name = "Held",
        type_ = "integer",
        json_path = ".status.nodegate.heldNodes",
        description = "How many nodes the rule holds."
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "How long ago the rule was created."
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Accepted')].message",
        description = "Whether the rule is in force, and what is wrong with it.",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[x_kube(
    validation = Rule::new("(has(self.conditionPolicy) ? self.conditionPolicy : 'allOf') == (has(oldSelf.conditionPolicy) ? oldSelf.conditionPolicy : 'allOf')")
        .message("conditionPolicy is immutable")
        .field_path(".conditionPolicy"),
    validation = Rule::new("oldSelf.hasValue() || self.enforcementMode != 'bootstrap-only' || !has(self.conditionPolicy) || self.conditionPolicy != 'anyOf'")
        .message("conditionPolicy anyOf cannot be used with enforcementMode bootstrap-only: use allOf, or enforcementMode continuous")
        .field_path(".conditionPolicy")
        .optional_old_self(true),
    validation = Rule::new("oldSelf.hasValue() || self.enforcementMode != 'bootstrap-only' || self.conditions.all(c, !has(c.defaultStatus))")
        .message("defaultStatus cannot be used with enforcementMode bootstrap-only: leave it out, or use enforcementMode continuous")
        .field_path(".conditions")
        .optional_old_self(true),
    validation = Rule::new("self.enforcementMode != 'bootstrap-only' || !self.?nodegate.?gracePeriod.hasValue()")
        .message("gracePeriod cannot be used with enforcementMode bootstrap-only, which gates a node only while it starts: leave it out, or use enforcementMode continuous")
        .field_path(".nodegate.gracePeriod"),
    validation = Rule::new("self.enforcementMode != 'bootstrap-only' || !self.?nodegate.?disruption.hasValue() || (has(self.nodegate.disruption.maxFirstGated) && !has(self.nodegate.disruption.evictionRate) && !has(self.nodegate.disruption.secondaryEvictionRate) && !has(self.nodegate.disruption.unhealthyZoneThreshold) && !has(self.nodegate.disruption.largeClusterSizeThreshold))")
        .message("disruption cannot be used with enforcementMode bootstrap-only, except for maxFirstGated alone: leave the rest out, or use enforcementMode continuous")
        .field_path(".nodegate.disruption"),
    validation = Rule::new("self.enforcementMode != 'continuous' || !self.?nodegate.?repair.hasValue()")
        .message("repair cannot be used with enforcementMode continuous: leave it out, or use enforcementMode bootstrap-only")
        .field_path(".nodegate.repair"),
    validation = Rule::new("self.enforcementMode != 'continuous' || self.?nodegate.?regateOn.orValue([]).size() == 0")
        .message("regateOn cannot be used with enforcementMode continuous, which gates a node at any time: leave it out, or use enforcementMode bootstrap-only")
        .field_path(".nodegate.regateOn"),
    validation = Rule::new("!has(self.nodegate) || !has(self.nodegate.regateOn) || !('Revision' in self.nodegate.regateOn) || self.conditions.all(c, c.type.startsWith('daemonset.nodegate.dev/'))")
        .message("regateOn Revision can be used only where every condition names a DaemonSet: leave it out, or wait for daemonset.nodegate.dev/<namespace>.<name> alone")
        .field_path(".nodegate.regateOn"),
    validation = Rule::new("self.enforcementMode != 'continuous' || self.?nodegate.?existingNodes.orValue('Gate') != 'Leave'")
        .message("existingNodes Leave cannot be used with enforcementMode continuous, which gates any node whose conditions are unmet: use Gate or leave it out, or use enforcementMode bootstrap-only")
        .field_path(".nodegate.existingNodes"),
    validation = Rule::new("self.taint.key.startsWith('readiness.k8s.io/') || self.?nodegate.?taintPolicy.orValue('') == 'remove-only'")
        .message("taint key must start with 'readiness.k8s.io/'")
        .field_path(".taint.key"),
    validation = Rule::new("size(self.taint.key.split('/')) == 2 || (self.?nodegate.?taintPolicy.orValue('') == 'remove-only' && !self.taint.key.contains('/'))")
        .message("taint key must have exactly one '/' separator (prefix/name format)")
        .field_path(".taint.key"),
    validation = Rule::new("!self.taint.key.matches('^([^/]*[.])?kubernetes[.]io/') || self.taint.key.matches('^(startup|ignore)-taint[.]cluster-autoscaler[.]kubernetes[.]io/') || self.?nodegate.?taintPolicy.orValue('') != 'remove-only'")
        .message("taint key must not be under 'kubernetes.io' or a domain below it, whose taints belong to components of Kubernetes: use the key of another startup taint, or one that starts with 'readiness.k8s.io/'")
        .field_path(".taint.key"),
)]
pub struct NodeReadinessRuleSpec {
    /// The conditions that a node has to meet. One of them is enough where `conditionPolicy` is `anyOf`.
    #[schemars(length(min = 1, max = MAX_CONDITIONS))]
    #[x_kube(
        merge_strategy = ListMerge::Map(vec!["type".into()]),
        validation = (
            "self.size() == oldSelf.size() && self.all(c, oldSelf.exists(o, o.type == c.type && o.requiredStatus == c.requiredStatus && has(o.defaultStatus) == has(c.defaultStatus) && (!has(o.defaultStatus) || o.defaultStatus == c.defaultStatus)))",
            "conditions is immutable",
        ),
    )]
    pub conditions: Vec<ConditionRequirement>,

    /// Whether all conditions have to be met (`allOf`, the default) or one of them is enough (`anyOf`, only with
    /// `enforcementMode: continuous`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub condition_policy: ConditionPolicy,

    /// When nodes are gated. With `bootstrap-only` a node is gated while it starts, and left alone once its
    /// conditions have been met. With `continuous` it is gated again whenever they are no longer met.
    #[x_kube(validation = ("self == oldSelf", "enforcementMode is immutable"))]
    pub enforcement_mode: EnforcementMode,

    /// The taint that keeps pods off a node.
    pub taint: TaintSpec,

    /// Which nodes the rule is for. At least one label or expression is needed.
    #[schemars(schema_with = "node_selector")]
    #[x_kube(
        validation = ("self == oldSelf", "nodeSelector is immutable"),
        validation = (
            "(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
            "nodeSelector must not be empty: select nodes by a label or an expression, for example matchLabels {kubernetes.io/os: linux}",
        ),
    )]
    pub node_selector: LabelSelector,

    /// When true, the rule changes no node; `status.dryRunResults` says what it would change.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dry_run: bool,

    /// Fields that only Nodegate has. Everything outside of this key means the same to the Node Readiness Controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodegate: Option<NodegateSpec>,
}

/// A condition of a node, and the status it has to have.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Hash)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[x_kube(
    validation = Rule::new("(!self.?nodegate.?minimum.hasValue() && !self.?nodegate.?minimumFromLabel.hasValue()) || self.type.startsWith('resource.nodegate.dev/') || self.type.startsWith('resourceslice.nodegate.dev/')")
        .message("minimum and minimumFromLabel can only be used with types that count something, resource.nodegate.dev/<resource> and resourceslice.nodegate.dev/<driver>: leave them out, or use one of these types"),
    validation = Rule::new("self.requiredStatus != 'Unknown' || (!self.?nodegate.?minimum.hasValue() && !self.?nodegate.?minimumFromLabel.hasValue() && !self.?nodegate.?reasons.hasValue())")
        .message("minimum, minimumFromLabel and reasons cannot be used with requiredStatus Unknown, because a condition that does not fit them may count as Unknown: leave them out, or require True or False"),
    validation = Rule::new("!self.?nodegate.?values.hasValue() || self.type.startsWith('label.nodegate.dev/')")
        .message("values can only be used with label.nodegate.dev/<key>: leave them out, or use that type"),
    validation = Rule::new("!self.?nodegate.?except.hasValue() || self.type.startsWith('daemonsets.nodegate.dev/') || self.type.matches('/(CriticalComponentsReady|CriticalDaemonSetsScheduled|CriticalPodsReady|CSIDriversRegistered)$')")
        .message("except can only be used with daemonsets.nodegate.dev/all, daemonsets.nodegate.dev/scheduled and conditions of a class: leave it out, or use one of these types"),
)]
pub struct ConditionRequirement {
    /// Type of the condition, for example Ready. `daemonset.nodegate.dev/<namespace>.<name>` waits for a `DaemonSet`,
    /// whatever its labels, `daemonsets.nodegate.dev/all` for all of them, `daemonsets.nodegate.dev/scheduled` until the pods
    /// of all are bound, `check.nodegate.dev/<namespace>.<name>` for a check, `label.nodegate.dev/<key>` for a label of the
    /// node, and `resourceslice.nodegate.dev/<driver>` for DRA devices.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    #[x_kube(validation = (
        "!self.startsWith('daemonset.nodegate.dev/') || self.matches('^daemonset[.]nodegate[.]dev/[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)+$')",
        "a condition that waits for a DaemonSet names it as daemonset.nodegate.dev/<namespace>.<name>, for example daemonset.nodegate.dev/kube-system.cilium",
    ))]
    #[x_kube(validation = (
        "!self.startsWith('check.nodegate.dev/') || self.matches('^check[.]nodegate[.]dev/[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)+$')",
        "a condition that waits for a check names it as check.nodegate.dev/<namespace>.<name>, for example check.nodegate.dev/gpu-checks.nccl",
    ))]
    #[x_kube(validation = (
        "!self.startsWith('daemonsets.nodegate.dev/') || self in ['daemonsets.nodegate.dev/all', 'daemonsets.nodegate.dev/scheduled']",
        "the only conditions under daemonsets.nodegate.dev/ are daemonsets.nodegate.dev/all and daemonsets.nodegate.dev/scheduled",
    ))]
    #[x_kube(validation = (
        "!self.startsWith('label.nodegate.dev/') || self.matches('^label[.]nodegate[.]dev/([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",
        "a condition that waits for a label names it as label.nodegate.dev/<key>, for example label.nodegate.dev/nvidia.com/mig.config.state",
    ))]
    #[x_kube(validation = (
        "!self.startsWith('resourceslice.nodegate.dev/') || self.matches('^resourceslice[.]nodegate[.]dev/[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
        "a condition that waits for DRA devices names their driver as resourceslice.nodegate.dev/<driver>, for example resourceslice.nodegate.dev/gpu.nvidia.com",
    ))]
    pub type_: String,

    /// The status that it has to have.
    pub required_status: ConditionStatus,

    /// The status to assume on a node that has no such condition; `Unknown` where absent. Only with
    /// `enforcementMode: continuous`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_status: Option<ConditionStatus>,

    /// What only Nodegate can ask of a condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodegate: Option<NodegateRequirement>,
}

impl NodeReadinessRuleSpec {
    pub fn has_nodegate(&self) -> bool {
        self.nodegate.is_some() || self.conditions.iter().any(|it| it.nodegate.is_some())
    }

    pub fn taint_policy(&self) -> TaintPolicy {
        let ours = self.nodegate.as_ref();
        ours.map(|it| it.taint_policy).unwrap_or_default()
    }
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A rule as users of the Node Readiness Controller write it.
    fn upstream() -> Value {
        json!({
            "apiVersion": "readiness.node.x-k8s.io/v1alpha1",
            "kind": "NodeReadinessRule",
            "metadata": { "name": "network" },
            "spec": {
                "conditions": [
                    { "type": "example.com/NetworkReady", "requiredStatus": "True", "defaultStatus": "False" },
                    { "type": "Ready", "requiredStatus": "True" },
                ],
                "conditionPolicy": "anyOf",
                "enforcementMode": "continuous",
                "taint": { "key": "readiness.k8s.io/network", "value": "pending", "effect": "NoSchedule" },
                "nodeSelector": {
                    "matchLabels": { "kubernetes.io/os": "linux" },
                    "matchExpressions": [{ "key": "pool", "operator": "In", "values": ["a", "b"] }],
                },
                "dryRun": true,
            },
            "status": {
                "observedGeneration": 1,
                "appliedNodes": ["worker-1"],
                "failedNodes": [{
                    "nodeName": "worker-2",
                    "reason": "AddTaintError",
                    "message": "no",
                    "lastEvaluationTime": "2026-08-01T12:00:00Z",
                }],
                "nodeEvaluations": [{
                    "nodeName": "worker-1",
                    "conditionResults": [{
                        "type": "Ready",
                        "currentStatus": "Unknown",
                        "requiredStatus": "True",
                        "defaultStatus": "False",
                    }],
                    "taintStatus": "Present",
                    "lastEvaluationTime": "2026-08-01T12:00:00Z",
                }],
                "dryRunResults": {
                    "affectedNodes": 2,
                    "taintsToAdd": 1,
                    "taintsToRemove": 0,
                    "riskyOperations": 0,
                    "summary": "would add 1 taint",
                },
            },
        })
    }

    #[test]
    fn a_rule_of_upstream_is_read_and_written_without_a_change() {
        let rule: NodeReadinessRule = serde_json::from_value(upstream()).unwrap();
        assert_eq!(serde_json::to_value(rule).unwrap(), upstream());
    }

    #[test]
    fn fields_that_upstream_lacks_are_off_by_default() {
        let spec: NodeReadinessRuleSpec = serde_json::from_value(json!({
            "conditions": [{ "type": "Ready", "requiredStatus": "True" }],
            "enforcementMode": "bootstrap-only",
            "taint": { "key": "readiness.k8s.io/a", "effect": "NoExecute" },
            "nodeSelector": { "matchLabels": { "a": "b" } },
        }))
        .unwrap();
        assert_eq!(spec.condition_policy, ConditionPolicy::AllOf);
        assert_eq!(spec.conditions[0].default_status, None);
        assert_eq!(spec.conditions[0].nodegate, None);
        assert!(!spec.dry_run);
        assert_eq!(spec.nodegate, None);
        let ours: NodegateSpec = serde_json::from_value(json!({})).unwrap();
        assert_eq!(ours, NodegateSpec::default());
        assert_eq!(serde_json::to_value(ours).unwrap(), json!({}));
    }

    #[test]
    fn a_rule_with_everything_is_read_and_written_without_a_change() {
        let mut rule = upstream();
        rule["spec"]["conditions"][1] = json!({
            "type": "resource.nodegate.dev/nvidia.com/gpu",
            "requiredStatus": "True",
            "nodegate": {
                "minimum": 8,
                "minimumFromLabel": "nvidia.com/gpu.count",
                "reasons": ["ResourceAllocatable"],
                "values": ["success"],
                "except": ["tools/agent"],
            },
        });
        rule["spec"]["nodegate"] = json!({
            "taintPolicy": "remove-only",
            "existingNodes": "Leave",
            "suspend": true,
            "regateOn": ["Reboot", "Maintenance", "Revision"],
            "gracePeriod": "1m30s",
            "settlePeriod": "30s",
            "heartbeatTimeout": "6m",
            "disruption": {
                "evictionRate": 0.1,
                "secondaryEvictionRate": 0.01,
                "unhealthyZoneThreshold": 0.55,
                "largeClusterSizeThreshold": 50,
            },
            "repair": { "readinessTTL": "20m", "action": "Release", "maxUnhealthy": 3 },
        });
        rule["status"]["nodegate"] = json!({
            "matchedNodes": 2,
            "heldNodes": 1,
            "releasedNodes": 1,
            "failedNodeCount": 1,
        });
        let read: NodeReadinessRule = serde_json::from_value(rule.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), rule);
    }

    #[test]
    fn an_unknown_word_is_an_error_that_names_the_known_ones() {
        let error = "sometimes".parse::<EnforcementMode>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown variant `sometimes`, expected `bootstrap-only` or `continuous`"
        );
    }

    #[test]
    fn a_field_from_a_later_version_is_no_obstacle() {
        let mut rule = upstream();
        rule["spec"]["invented"] = json!({ "later": true });
        assert!(serde_json::from_value::<NodeReadinessRule>(rule).is_ok());
    }
}
