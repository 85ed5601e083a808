//! Whether two rules can get in each other's way.

use std::sync::Arc;

use super::compile::{CompiledSpec, Rule};
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
    /// A rule that cannot be used does nothing, and one that is being deleted hands its taint over, so neither
    /// conflicts. A dry run does: it may be ended at any time.
    #[must_use]
    pub fn conflict_with(&self, other: &Rule) -> Option<Conflict> {
        let spec = other.spec.as_ref().ok().filter(|_| !other.deleting)?;
        let conflicts = self.taint.key == spec.taint.key
            && self.effect == spec.effect
            && self.selector.overlaps(&spec.selector);
        conflicts.then(|| Conflict {
            with: other.name.clone(),
            key: self.taint.key.clone(),
            effect: self.effect,
        })
    }
}
