//! What this process remembers about continuous rules on a node between evaluations.

use std::sync::Arc;

use jiff::Timestamp;

use super::outcome::{Outcome, Standing};
use crate::api::EnforcementMode;

/// What this process remembers about one rule on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and may go with any of the others"
)]
pub struct Memory {
    /// UID of the rule.
    pub rule: Arc<str>,
    /// Whether the conditions have been met at any evaluation.
    pub was_met: bool,
    /// Whether the node had never been open at the last evaluation.
    pub joining: bool,
    /// Whether the node had the taint at the last evaluation.
    pub tainted: bool,
    /// Whether the conditions have been evaluated: not while the rule has only waited for another one.
    pub is_decided: bool,
    /// Since when the conditions have been unmet; `None` while they are met. Of a rule that has only waited: since when.
    pub unmet_since: Option<Timestamp>,
}

impl Memory {
    /// The memories after these outcomes; `None` if they are unchanged.
    pub fn after(outcomes: &[Outcome<'_>], memories: &[Self]) -> Option<Vec<Self>> {
        let remembered = || {
            outcomes.iter().filter_map(|outcome| {
                let spec = outcome.rule.active()?;
                let before = memories
                    .iter()
                    .find(|memory| memory.rule == outcome.rule.uid);
                (spec.mode == EnforcementMode::Continuous).then(|| Self {
                    rule: outcome.rule.uid.clone(),
                    was_met: outcome.evaluation.met || before.is_some_and(|before| before.was_met),
                    joining: outcome.joining && !is_left_open(outcome),
                    tainted: outcome.tainted,
                    is_decided: outcome.is_decided,
                    unmet_since: outcome.unmet_since,
                })
            })
        };
        (!remembered().eq(memories.iter().cloned())).then(|| remembered().collect())
    }
}

/// Whether another rule, which governs the taint, leaves the node open: pods may come, whatever this rule finds.
fn is_left_open(outcome: &Outcome<'_>) -> bool {
    !outcome.tainted && matches!(outcome.standing, Standing::Conflicted { .. })
}
