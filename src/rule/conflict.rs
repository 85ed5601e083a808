//! Conflicts between rules.

use std::sync::Arc;

use super::compile::{CompiledSpec, Rule};
use super::set::RuleSet;
use crate::api::TaintEffect;

/// Two rules that may both decide about the same taint on the same node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "conflicts with existing rule '{with}' - same taint key '{key}' and effect '{effect}' with overlapping node selectors"
)]
pub struct Conflict {
    /// Name of the existing rule.
    pub with: Arc<str>,
    /// The taint's key.
    pub key: String,
    /// The taint's effect.
    pub effect: TaintEffect,
}

impl CompiledSpec {
    /// Whether a rule with this spec conflicts with another rule: they have the same taint key and effect, and a node can exist
    /// that both select.
    ///
    /// A rule that is being deleted hands its taint over, and a dry run changes no taint, so neither conflicts. A rejected rule
    /// does, on all nodes if its selector is unreadable: its deletion removes the taint, and other controllers may enforce it.
    #[must_use]
    pub fn conflict_with(&self, other: &Rule) -> Option<Conflict> {
        let is_dry_run = self.dry_run || other.spec.as_ref().is_ok_and(|spec| spec.dry_run);
        let reach = other.reach.as_ref().filter(|_| !other.deleting)?;
        let mut selector = reach.selector.iter();
        let conflicts = !is_dry_run
            && other.is_about(&self.taint.key, self.effect)
            && selector.all(|selector| self.selector.overlaps(selector));
        conflicts.then(|| Conflict {
            with: other.name.clone(),
            key: self.taint.key.clone(),
            effect: self.effect,
        })
    }
}

impl RuleSet {
    /// Names of the rules in force that precede this one: same taint, overlapping selector, whether or not a common node
    /// exists. Empty if this rule is not in force.
    #[must_use]
    pub fn governors_of(&self, rule: &Rule) -> Vec<Arc<str>> {
        let Some(spec) = rule.live() else {
            return Vec::new();
        };
        let earlier = self
            .rules()
            .iter()
            .take_while(|other| other.uid != rule.uid);
        earlier
            .filter(|other| other.live().is_some())
            .filter_map(|other| spec.conflict_with(other))
            .map(|conflict| conflict.with)
            .collect()
    }
}
