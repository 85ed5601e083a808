//! Conflicts between rules.

use std::sync::Arc;

use super::compile::Rule;
use super::set::RuleSet;
use crate::api::TaintEffect;

/// Two rules that may both decide about the same taint on the same node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "conflicts with existing rule '{with}' - same taint key '{key}' and effect '{effect}' with overlapping node selectors"
)]
pub struct Conflict {
    pub with: Arc<str>,
    pub key: String,
    pub effect: TaintEffect,
}

impl Rule {
    /// Whether both rules have the same taint, and a node can exist that both select. No if `other` is being deleted, and so hands
    /// its taint over, or either is a dry run. A rejected `other` conflicts, on all nodes if its selector is unreadable: its
    /// deletion removes the taint, and other controllers may enforce it.
    pub fn conflict_with(&self, other: &Self) -> Option<Conflict> {
        let own = self.reach.as_ref()?;
        let theirs = other.reach.as_ref().filter(|_| !other.deleting)?;
        let own_selector = own.selector.as_ref()?;
        let mut selector = theirs.selector.iter();
        let conflicts = !own.dry_run
            && !theirs.dry_run
            && other.is_about(&own.key, own.effect)
            && selector.all(|selector| own_selector.overlaps(selector));
        conflicts.then(|| Conflict {
            with: other.name.clone(),
            key: own.key.clone(),
            effect: own.effect,
        })
    }
}

impl RuleSet {
    /// Names of the rules in force that precede this one: same taint, overlapping selectors. None if this rule is not in force.
    pub fn governors_of(&self, rule: &Rule) -> Vec<Arc<str>> {
        if rule.live().is_none() {
            return Vec::new();
        }
        let rules = self.rules().iter();
        let earlier = rules.take_while(|other| other.uid != rule.uid);
        let live = earlier.filter(|other| other.live().is_some());
        live.filter_map(|other| Some(rule.conflict_with(other)?.with))
            .collect()
    }
}
