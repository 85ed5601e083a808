//! The annotations that Nodegate keeps on nodes: who owns a taint, and which bootstraps are complete. A kubelet can forge them, so
//! readers make sure that they grant nothing that the API denies their author otherwise.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::compile::{CompiledSpec, Rule};
use super::taint_key::is_foreign;
use crate::api::{RegateOn, TaintEffect, names::TAINT_ADDED_BY_PREFIX};
use crate::condition::{Facts, Revisions};
use crate::object::{Node, ObjectKey};

/// The most records of ownership that are read of a node, many times its rules: those of gone rules go, then others are read.
const MAX_OWNED: usize = 1_000;

/// A taint that Nodegate added or adopted. Its annotation names the taint too, so it can be removed after the rule is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ownership<'a> {
    /// UID of the rule that owns the taint; in the annotation's key.
    #[serde(skip)]
    pub rule_uid: &'a str,
    pub rule_name: &'a str,
    pub taint_key: &'a str,
    pub taint_effect: TaintEffect,
    /// Whether the node had never been released when the taint was added.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joining: bool,
    /// Whether someone else had added the taint, and the rule adopted it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
}

impl<'a> Ownership<'a> {
    pub(crate) fn taint(&self) -> (&'a str, TaintEffect) {
        (self.taint_key, self.taint_effect)
    }

    /// The node's taints that Nodegate owns, at most [`MAX_OWNED`], without what is unreadable or no rule can own.
    pub fn all(node: &'a Node) -> impl Iterator<Item = Self> + use<'a> {
        node.annotations_about(TAINT_ADDED_BY_PREFIX)
            .take(MAX_OWNED)
            .filter_map(|(rule_uid, value)| {
                let read: Self = serde_json::from_str(value).ok()?;
                (!is_foreign(read.taint_key)).then_some(Self { rule_uid, ..read })
            })
    }

    /// The record of a rule that added its taint, to a joining node or not, or adopted it.
    pub(crate) fn of(rule: &'a Rule, spec: &'a CompiledSpec, joining: bool, adopted: bool) -> Self {
        Self {
            rule_uid: &rule.uid,
            rule_name: &rule.name,
            taint_key: &spec.taint.key,
            taint_effect: spec.effect,
            joining,
            adopted,
        }
    }

    pub(crate) fn value(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

pub(crate) fn owner_key(rule_uid: &str) -> String {
    format!("{TAINT_ADDED_BY_PREFIX}{rule_uid}")
}

/// The record of a node's bootstrap under a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootstrapRecord<'a> {
    /// There is none.
    No,
    /// The bootstrap is complete and counts.
    Done,
    /// It is complete and counts, but the record lacks what the rule asks for: the boot, the revision of a `DaemonSet`, or that
    /// the node has been in maintenance since.
    Unstamped,
    /// It was completed in another boot.
    Outdated { boot_id: &'a str },
    /// It was completed before a maintenance.
    Maintained,
    /// It was completed with another revision of a `DaemonSet`, whose pod has gone.
    Revised { daemon_set: &'a ObjectKey },
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
    /// The revision of each named `DaemonSet`, by namespace and name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    revisions: BTreeMap<String, String>,
}

/// The value on record of this node's bootstrap under the rule.
fn on_record<'a>(node: &'a Node, rule: &Rule) -> Option<&'a str> {
    let mut keys = rule.completion_keys.iter();
    keys.find_map(|key| node.annotation(key))
}

/// The revisions of the `DaemonSet`s that a rule names, if it goes by them.
fn revisions<'a>(spec: &CompiledSpec, facts: &Facts<'_, 'a>) -> SmallVec<[Revisions<'a>; 1]> {
    if !spec.ours.regate_on.contains(&RegateOn::Revision) {
        return SmallVec::new();
    }
    let named = spec.daemon_sets();
    named.filter_map(|key| Revisions::of(key, facts)).collect()
}

impl<'a> BootstrapRecord<'a> {
    pub(crate) fn of(rule: &Rule, spec: &CompiledSpec, facts: &Facts<'_, 'a>) -> Self {
        let node = facts.node;
        let Some(value) = on_record(node, rule) else {
            return Self::No;
        };
        let revisions = revisions(spec, facts);
        let regates_on = |what| spec.ours.regate_on.contains(&what);
        let knows_boot = regates_on(RegateOn::Reboot) && !node.boot_id.is_empty();
        let knows_maintenance = regates_on(RegateOn::Maintenance);
        if !knows_boot && !knows_maintenance && revisions.is_empty() {
            return Self::Done;
        }
        let value = serde_json::from_str::<CompletionValue>(value).unwrap_or_default();
        let recorded = |it: &Revisions<'_>| value.revisions.get(&it.daemon_set().to_string());
        let has_gone = |it: &&Revisions<'_>| recorded(it).is_some_and(|known| it.has_gone(known));
        let is_new = |it: &Revisions<'_>| recorded(it).is_none() && it.current(None).is_some();
        let is_in_maintenance = node.is_in_maintenance();
        if knows_boot && *value.boot_id != *node.boot_id && !value.boot_id.is_empty() {
            Self::Outdated {
                boot_id: value.boot_id,
            }
        } else if knows_maintenance && value.maintenance && !is_in_maintenance {
            Self::Maintained
        } else if let Some(revised) = revisions.iter().find(has_gone) {
            Self::Revised {
                daemon_set: revised.daemon_set(),
            }
        } else if (knows_boot && value.boot_id.is_empty())
            || (knows_maintenance && is_in_maintenance && !value.maintenance)
            || revisions.iter().any(is_new)
        {
            // Written by another controller, or before the rule asked for this; or maintenance has begun since.
            Self::Unstamped
        } else {
            Self::Done
        }
    }

    /// Whether it keeps the node from being gated again.
    pub(crate) fn counts(self) -> bool {
        matches!(self, Self::Done | Self::Unstamped)
    }

    /// The recorded boot ID, if the node is in another boot.
    pub(crate) fn last_boot(self) -> Option<&'a str> {
        match self {
            Self::Outdated { boot_id } => Some(boot_id),
            _ => None,
        }
    }
}

/// Value of the completion annotation for the node's present boot, maintenance and revisions.
pub(crate) fn completion_value(rule: &Rule, spec: &CompiledSpec, facts: &Facts<'_, '_>) -> String {
    let (node, revisions) = (facts.node, revisions(spec, facts));
    let known = on_record(node, rule).filter(|_| !revisions.is_empty());
    let known = known.and_then(|value| serde_json::from_str::<CompletionValue>(value).ok());
    let known = known.unwrap_or_default().revisions;
    let revision = |it: &Revisions<'_>| {
        let key = it.daemon_set().to_string();
        let current = it.current(known.get(&key).map(String::as_str))?.to_owned();
        Some((key, current))
    };
    let knows_boot = spec.ours.regate_on.contains(&RegateOn::Reboot);
    let value = CompletionValue {
        rule_name: &rule.name,
        boot_id: if knows_boot { &node.boot_id } else { "" },
        maintenance: spec.ours.regate_on.contains(&RegateOn::Maintenance)
            && node.is_in_maintenance(),
        revisions: revisions.iter().filter_map(revision).collect(),
    };
    serde_json::to_string(&value).unwrap_or_default()
}
