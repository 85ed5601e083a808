//! The annotations that Nodegate keeps on nodes: whose taint it is, and whose bootstrap is done.

use serde::{Deserialize, Serialize};

use super::compile::{CompiledSpec, Rule};
use crate::api::TaintEffect;
use crate::api::names::{BOOTSTRAP_COMPLETED_PREFIX, TAINT_ADDED_BY_PREFIX};
use crate::object::Node;

/// A taint that Nodegate put on a node, as its annotation tells.
///
/// The annotation names the taint besides the rule, so that the taint can still be lifted when the rule is gone
/// and nothing else is left to say which taint was its.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    /// Name of the rule that added the taint.
    pub rule_name: String,
    /// UID of the rule that added the taint.
    pub rule_uid: String,
    /// Key of the taint.
    pub taint_key: String,
    /// Effect of the taint.
    pub taint_effect: TaintEffect,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct OwnershipValue<'a> {
    rule_name: &'a str,
    taint_key: &'a str,
    taint_effect: TaintEffect,
}

impl Ownership {
    /// Whether it speaks of the taint with this key and effect.
    #[must_use]
    pub fn is_of(&self, key: &str, effect: TaintEffect) -> bool {
        self.taint_key == key && self.taint_effect == effect
    }

    /// The taints on this node that Nodegate put there. An annotation that cannot be read is passed over.
    pub fn all(node: &Node) -> impl Iterator<Item = Self> + use<'_> {
        node.annotations
            .iter()
            .flatten()
            .filter_map(|(key, value)| {
                let rule_uid = key.strip_prefix(TAINT_ADDED_BY_PREFIX)?;
                let value: OwnershipValue = serde_json::from_str(value).ok()?;
                Some(Self {
                    rule_name: value.rule_name.into(),
                    rule_uid: rule_uid.into(),
                    taint_key: value.taint_key.into(),
                    taint_effect: value.taint_effect,
                })
            })
    }
}

/// Key of the annotation that says that this rule added its taint.
pub(super) fn owner_key(rule_uid: &str) -> String {
    format!("{TAINT_ADDED_BY_PREFIX}{rule_uid}")
}

/// Value of the annotation that says that this rule added its taint.
pub(super) fn owner_value(rule: &Rule, spec: &CompiledSpec) -> String {
    let value = OwnershipValue {
        rule_name: &rule.name,
        taint_key: &spec.taint.key,
        taint_effect: spec.effect,
    };
    serde_json::to_string(&value).unwrap_or_default()
}

/// Keys under which a completed bootstrap may be on record: by UID, which is written, and by name, which older
/// releases of the upstream project wrote.
pub(super) fn completion_keys(rule: &Rule) -> [String; 2] {
    [&rule.uid, &rule.name].map(|id| format!("{BOOTSTRAP_COMPLETED_PREFIX}{id}"))
}

/// Value of the completion annotation.
pub(super) fn completion_value(rule: &Rule) -> String {
    serde_json::json!({ "rule-name": &*rule.name }).to_string()
}

/// Whether the node's bootstrap under this rule is on record.
pub(super) fn is_completed(node: &Node, rule: &Rule) -> bool {
    completion_keys(rule)
        .iter()
        .any(|key| node.annotation(key).is_some())
}
