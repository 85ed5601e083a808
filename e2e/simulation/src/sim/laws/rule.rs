//! A rule as its documentation describes it: read from the object itself, with none of the product's compilation.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use nodegate_core::api::names::FINALIZER;
use nodegate_core::api::{
    self, ConditionPolicy, EnforcementMode, ExistingNodes, NodeReadinessRuleSpec, NodegateSpec,
    RegateOn, TaintEffect, TaintPolicy,
};
use serde_json::Value;

use crate::sim::actors::ask::{condition, is_going, items, text};
use crate::sim::actors::placement::matches_labels;

/// The prefix of every taint key that a rule may add.
pub(crate) const OUR_TAINTS: &str = "readiness.k8s.io/";

#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub name: String,
    pub uid: String,
    /// The creation time in its metadata; rules with the same taint are ordered by it, then by name.
    pub created: String,
    pub is_deleting: bool,
    pub has_finalizer: bool,
    /// Whether another definition has dropped what was set under `spec.nodegate`, by the managed fields.
    pub is_pruned: bool,
    pub spec: NodeReadinessRuleSpec,
    /// What is under `spec.nodegate`.
    pub ours: NodegateSpec,
    /// The selector in the object.
    selector: Value,
}

/// What identifies a taint on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TaintId {
    pub key: String,
    pub effect: String,
}

impl std::fmt::Display for TaintId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.key, self.effect)
    }
}

impl TaintId {
    pub(crate) fn of(taint: &Value) -> Self {
        let text = |field: &str| text(&taint[field]).to_owned();
        Self {
            key: text("key"),
            effect: text("effect"),
        }
    }

    pub(crate) fn all(node: &Value) -> impl Iterator<Item = (Self, &Value)> {
        let taints = items(&node["spec"]["taints"]).iter();
        taints.map(|taint| (Self::of(taint), taint))
    }

    pub(crate) fn is_on(&self, node: &Value) -> bool {
        let mut taints = items(&node["spec"]["taints"]).iter();
        taints.any(|taint| taint["key"] == *self.key && taint["effect"] == *self.effect)
    }
}

impl Rule {
    /// Reads a rule; `None` if its spec is invalid.
    pub(crate) fn read(object: &Value) -> Option<Self> {
        let metadata = &object["metadata"];
        let text = |field: &str| text(&metadata[field]).to_owned();
        let spec: NodeReadinessRuleSpec = serde_json::from_value(object["spec"].clone()).ok()?;
        if spec.conditions.is_empty() {
            return None;
        }
        let mut finalizers = items(&metadata["finalizers"]).iter();
        let mut managed = items(&metadata["managedFields"]).iter();
        let was_set = managed.any(|it| !it["fieldsV1"]["f:spec"]["f:nodegate"].is_null());
        Some(Self {
            name: text("name"),
            uid: text("uid"),
            created: text("creationTimestamp"),
            is_deleting: is_going(object),
            has_finalizer: finalizers.any(|finalizer| finalizer == FINALIZER),
            is_pruned: was_set && spec.nodegate.is_none(),
            selector: object["spec"]["nodeSelector"].clone(),
            ours: spec.nodegate.clone().unwrap_or_default(),
            spec,
        })
    }

    pub(crate) fn taint(&self) -> TaintId {
        TaintId {
            key: self.spec.taint.key.clone(),
            effect: self.effect().as_str().to_owned(),
        }
    }

    pub(crate) fn effect(&self) -> TaintEffect {
        self.spec.taint.effect
    }

    /// Whether it manages this taint: key and effect are its own, or it removes another project's startup taint with any effect.
    pub(crate) fn is_about(&self, taint: &TaintId) -> bool {
        self.spec.taint.key == taint.key
            && (self.effect().as_str() == taint.effect || !taint.key.starts_with(OUR_TAINTS))
    }

    /// Whether it selects the node by its labels.
    pub(crate) fn selects(&self, node: &Value) -> bool {
        self.selects_by(&node["metadata"]["labels"])
    }

    /// Whether it selects nodes with these labels.
    pub(crate) fn selects_by(&self, labels: &Value) -> bool {
        matches_labels(&self.selector, labels)
    }

    /// Whether it acts on its decisions: it is neither a dry run nor being deleted.
    pub(crate) fn is_live(&self) -> bool {
        !self.is_deleting && !self.spec.dry_run
    }

    /// Whether it may add its taint to nodes.
    pub(crate) fn adds(&self) -> bool {
        self.ours.taint_policy == TaintPolicy::AddAndRemove
    }

    pub(crate) fn is_bootstrap(&self) -> bool {
        self.spec.enforcement_mode == EnforcementMode::BootstrapOnly
    }

    /// Whether one met condition is enough.
    pub(crate) fn is_any_of(&self) -> bool {
        self.spec.condition_policy == ConditionPolicy::AnyOf
    }

    /// How long its conditions must be unmet before a node in use is gated.
    pub(crate) fn grace(&self) -> Duration {
        let period = self.ours.grace_period;
        period.map_or(Duration::ZERO, api::Duration::as_std)
    }

    /// How long its conditions must have been met before a node is released.
    pub(crate) fn settle_period(&self) -> Duration {
        let period = self.ours.settle_period;
        period.map_or(Duration::ZERO, api::Duration::as_std)
    }

    /// When the node began to wait under the rule: when the later of the two was created.
    pub(crate) fn waits_since(&self, node: &Value) -> Option<Timestamp> {
        let time = |text: &str| text.parse::<Timestamp>().ok();
        let created = node["metadata"]["creationTimestamp"].as_str();
        created.and_then(time).max(time(&self.created))
    }

    /// How long a reporter may be silent.
    pub(crate) fn heartbeat_timeout(&self) -> Option<Duration> {
        self.ours.heartbeat_timeout.map(api::Duration::as_std)
    }

    /// The annotations that record a completed bootstrap, by the rule's UID and by its name.
    fn completion_keys(&self) -> [String; 2] {
        [&self.uid, &self.name].map(|id| format!("readiness.k8s.io/bootstrap-completed-{id}"))
    }

    /// Whether the node's bootstrap is on record, for its current boot and since its last maintenance where the rule asks for that;
    /// or the rule ignores the node.
    pub(crate) fn is_completed_on(&self, node: &Value) -> bool {
        let came = node["metadata"]["creationTimestamp"].as_str();
        if self.ours.existing_nodes == ExistingNodes::Leave
            && came.is_some_and(|it| *it < *self.created)
        {
            return true;
        }
        let Some(recorded) = self.recorded_on(node) else {
            return false;
        };
        let boot = boot_id(node);
        let is_of_another_boot = self.ours.regate_on.contains(&RegateOn::Reboot)
            && !boot.is_empty()
            && recorded["boot-id"].as_str().is_some_and(|id| id != boot);
        let is_from_before_maintenance = self.ours.regate_on.contains(&RegateOn::Maintenance)
            && recorded["maintenance"] == true
            && !is_in_maintenance(node);
        !is_of_another_boot && !is_from_before_maintenance
    }

    /// What is on record of the node's bootstrap.
    pub(crate) fn recorded_on(&self, node: &Value) -> Option<Value> {
        let annotations = &node["metadata"]["annotations"];
        let mut on_record = self.completion_keys().into_iter();
        let value = on_record.find_map(|key| annotations[&key].as_str())?;
        Some(serde_json::from_str(value).unwrap_or_default())
    }
}

/// The rule that governs a taint on a node: the oldest live one that selects the node.
pub(crate) fn governing<'a>(
    rules: &'a [Arc<Rule>],
    taint: &TaintId,
    node: &Value,
) -> Option<&'a Arc<Rule>> {
    first_of(rules, taint, |rule| rule.selects(node))
}

/// The rule that goes first among the live ones for a taint of which this is true: the oldest.
pub(crate) fn first_of<'a>(
    rules: &'a [Arc<Rule>],
    taint: &TaintId,
    is_so: impl Fn(&Rule) -> bool,
) -> Option<&'a Arc<Rule>> {
    let claims = rules
        .iter()
        .filter(|rule| rule.is_live() && rule.is_about(taint) && is_so(rule));
    // A rule with exactly this effect goes before one that removes another project's taint with any effect.
    claims.min_by_key(|rule| (rule.taint() != *taint, &rule.created, &rule.name))
}

/// Whether an annotation of this node, claim or pool forbids repair.
pub(super) fn forbids_repair(object: &Value) -> bool {
    let annotations = &object["metadata"]["annotations"];
    ["nodegate.dev/do-not-repair", "karpenter.sh/do-not-repair"]
        .iter()
        .any(|key| annotations[key].as_str().is_some_and(|it| it != "false"))
}

/// Whether a node has all labels that selectors need: the component that adds them has removed its taint.
pub(crate) fn is_introduced(node: &Value) -> bool {
    const INTRODUCTIONS: [&str; 3] = [
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cluster.x-k8s.io/uninitialized",
        "karpenter.sh/unregistered",
    ];
    TaintId::all(node).all(|(taint, _)| !INTRODUCTIONS.contains(&taint.key.as_str()))
}

/// Whether a node is out of service on purpose (KEP-5683).
pub(crate) fn is_in_maintenance(node: &Value) -> bool {
    const SIGNS: [&str; 3] = [
        "MaintenanceInProgress",
        "DrainInProgress",
        "GracefulNodeShutdownInProgress",
    ];
    SIGNS.iter().any(|sign| condition(node, sign) == "True")
}

/// A node's boot ID; empty if unknown.
pub(crate) fn boot_id(node: &Value) -> &str {
    text(&node["status"]["nodeInfo"]["bootID"])
}
