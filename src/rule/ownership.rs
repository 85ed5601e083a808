//! The annotations that Nodegate keeps on nodes: whose taint it is, and whose bootstrap is done.
//!
//! Whoever may annotate a Node, its kubelet first of all, may write them, too. What they are worth is decided where they
//! are read: nobody gains by one what the API denies him otherwise.

use serde::{Deserialize, Serialize};

use super::compile::{CompiledSpec, Rule};
use super::taint_key::is_foreign;
use crate::api::TaintEffect;
use crate::api::names::{BOOTSTRAP_COMPLETED_PREFIX, TAINT_ADDED_BY_PREFIX};
use crate::object::Node;

/// A taint that Nodegate put on a node or took over, as its annotation tells.
///
/// The annotation names the taint besides the rule, so that the taint can still be lifted when the rule is gone
/// and nothing else is left to say which taint was its.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ownership<'a> {
    /// Name of the rule that owns the taint.
    pub rule_name: &'a str,
    /// UID of the rule that owns the taint.
    pub rule_uid: &'a str,
    /// Key of the taint.
    pub taint_key: &'a str,
    /// Effect of the taint.
    pub taint_effect: TaintEffect,
    /// Whether the node had never been open when the taint was added.
    pub joining: bool,
    /// Whether somebody else had put the taint on, and the rule took it over.
    pub adopted: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct OwnershipValue<'a> {
    rule_name: &'a str,
    taint_key: &'a str,
    taint_effect: TaintEffect,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    joining: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    adopted: bool,
}

impl<'a> Ownership<'a> {
    /// Whether it speaks of the taint with this key and effect.
    #[must_use]
    pub fn is_of(&self, key: &str, effect: TaintEffect) -> bool {
        self.taint_key == key && self.taint_effect == effect
    }

    /// Whether this is what a rule would say that has added the taint.
    pub(crate) fn is_as_of(&self, rule: &Rule, spec: &CompiledSpec, joining: bool) -> bool {
        *self.rule_uid == *rule.uid
            && *self.rule_name == *rule.name
            && self.is_of(&spec.taint.key, spec.effect)
            && self.joining == joining
    }

    /// The taints on this node that Nodegate put there or took over. An annotation that cannot be read is passed over, and
    /// so is one that names a taint which no rule can own.
    pub fn all(node: &'a Node) -> impl Iterator<Item = Self> + use<'a> {
        node.annotations
            .iter()
            .flatten()
            .filter_map(|(key, value)| {
                let rule_uid = key.strip_prefix(TAINT_ADDED_BY_PREFIX)?;
                let value: OwnershipValue = serde_json::from_str(value).ok()?;
                (!is_foreign(value.taint_key)).then_some(Self {
                    rule_name: value.rule_name,
                    rule_uid,
                    taint_key: value.taint_key,
                    taint_effect: value.taint_effect,
                    joining: value.joining,
                    adopted: value.adopted,
                })
            })
    }
}

/// Key of the annotation that says that this rule added its taint.
pub(crate) fn owner_key(rule_uid: &str) -> String {
    format!("{TAINT_ADDED_BY_PREFIX}{rule_uid}")
}

/// Value of the annotation that says that this rule added its taint, and whether to a node that is still joining; or that it
/// took the taint over.
pub(crate) fn owner_value(
    rule: &Rule,
    spec: &CompiledSpec,
    joining: bool,
    adopted: bool,
) -> String {
    let value = OwnershipValue {
        rule_name: &rule.name,
        taint_key: &spec.taint.key,
        taint_effect: spec.effect,
        joining,
        adopted,
    };
    serde_json::to_string(&value).unwrap_or_default()
}

/// Keys under which a completed bootstrap may be on record: by UID, which is written, and by name, which older
/// releases of the upstream project wrote.
pub(crate) fn completion_keys(rule: &Rule) -> [String; 2] {
    [&rule.uid, &rule.name].map(|id| format!("{BOOTSTRAP_COMPLETED_PREFIX}{id}"))
}

/// Whether a node's bootstrap under a rule is on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BootstrapRecord<'a> {
    /// It is not.
    No,
    /// It is, and counts.
    Done,
    /// It is and counts, but does not say for which boot, or that the node is in maintenance since, where the rule wants that
    /// known.
    Unstamped,
    /// It is, but happened in another boot.
    Outdated {
        /// The ID of that boot.
        boot_id: &'a str,
    },
    /// It is, but happened before a maintenance.
    Maintained,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
struct CompletionValue<'a> {
    #[serde(default)]
    rule_name: &'a str,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    boot_id: &'a str,
    /// The node has been in maintenance since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    maintenance: bool,
}

impl<'a> BootstrapRecord<'a> {
    /// What is on record about this node's bootstrap under the rule.
    pub(crate) fn of(node: &'a Node, rule: &Rule, spec: &CompiledSpec) -> Self {
        let mut on_record = [&rule.uid, &rule.name]
            .into_iter()
            .filter_map(|id| node.annotation_about(BOOTSTRAP_COMPLETED_PREFIX, id));
        let Some(value) = on_record.next() else {
            return Self::No;
        };
        let knows_boot = spec.regate_on_reboot && !node.boot_id.is_empty();
        if !knows_boot && !spec.regate_after_maintenance {
            return Self::Done;
        }
        let value = serde_json::from_str::<CompletionValue>(value).unwrap_or_default();
        let is_in_maintenance = node.is_in_maintenance();
        if knows_boot && *value.boot_id != *node.boot_id && !value.boot_id.is_empty() {
            Self::Outdated {
                boot_id: value.boot_id,
            }
        } else if spec.regate_after_maintenance && value.maintenance && !is_in_maintenance {
            Self::Maintained
        } else if (knows_boot && value.boot_id.is_empty())
            || (spec.regate_after_maintenance && is_in_maintenance && !value.maintenance)
        {
            // Written by another controller, or before the rule asked for this; or the maintenance has begun since.
            Self::Unstamped
        } else {
            Self::Done
        }
    }

    /// Whether the node is not to be closed again.
    pub(crate) fn counts(self) -> bool {
        matches!(self, Self::Done | Self::Unstamped)
    }

    /// The boot on record, where the node is in another one.
    pub(crate) fn last_boot(self) -> Option<&'a str> {
        match self {
            Self::Outdated { boot_id } => Some(boot_id),
            Self::No | Self::Done | Self::Unstamped | Self::Maintained => None,
        }
    }
}

/// Value of the completion annotation for the boot that the node is in, and the maintenance.
pub(crate) fn completion_value(node: &Node, rule: &Rule, spec: &CompiledSpec) -> String {
    let boot_id = if spec.regate_on_reboot {
        &node.boot_id
    } else {
        ""
    };
    let value = CompletionValue {
        rule_name: &rule.name,
        boot_id,
        maintenance: spec.regate_after_maintenance && node.is_in_maintenance(),
    };
    serde_json::to_string(&value).unwrap_or_default()
}
