//! Whether two rules can get in each other's way.

use std::sync::Arc;

use super::compile::{CompiledSpec, Rule};
use super::set::RuleSet;
use crate::api::TaintEffect;

/// Two rules that may both want to decide about the same taint on the same node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "conflicts with existing rule '{with}' - same taint key '{key}' and effect '{effect}' with overlapping node selectors"
)]
pub struct Conflict {
    /// Name of the rule that is there already.
    pub with: Arc<str>,
    /// The taint's key.
    pub key: String,
    /// The taint's effect.
    pub effect: TaintEffect,
}

impl CompiledSpec {
    /// How a rule with this spec conflicts with another rule: they name the same taint, by key and effect, and there
    /// can be a node that both select.
    ///
    /// One that is being deleted hands its taint over, and a dry run leaves every taint alone, so neither conflicts: the end
    /// of the dry run is what would. A rule that cannot be used does, on all nodes where nobody can read which: it takes its
    /// taint along when it is deleted, and other controllers carry it out.
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
    /// Names of the rules that come before this one on any node that both select, whether or not there is such a
    /// node: of the same taint, with an overlapping selector, and in force. None for a rule that is not in force.
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
