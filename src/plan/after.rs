//! Rules that come after others: whether one of those holds the node.

use std::sync::Arc;

use super::draft::{Contender, Draft};
use super::outcome::Standing;
use crate::api::TaintEffect;
use crate::rule::Rule;

impl<'a> Draft<'a> {
    /// Sorts taints by when to settle them, then by key and effect.
    pub(super) fn put_in_order(
        &self,
        taints: &mut [(&str, TaintEffect)],
        contenders: &[Contender<'a>],
    ) {
        taints.sort_unstable();
        if contenders.iter().any(|it| !it.spec.after.is_empty()) {
            taints.sort_by_key(|(key, effect)| self.rank(key, *effect, contenders));
        }
    }

    /// When to settle a taint: after those whose governing rules come before the one that governs it. Nothing waits for a rule
    /// that does not govern, so that an order exists.
    fn rank(&self, key: &str, effect: TaintEffect, contenders: &[Contender<'a>]) -> usize {
        let mut claimants = contenders.iter().filter(|it| it.spec.taint.is(key, effect));
        let governing = claimants.find(|it| it.rule.live().is_some());
        governing.map_or(0, |it| self.cluster.rules.rank(it.index))
    }

    /// The name of a rule that this one comes after, and that holds the node.
    pub(super) fn waits_for(&self, contender: Contender<'a>) -> Option<&'a Arc<str>> {
        let holds = |rule: &&Rule| {
            let outcome = self.outcome(rule).filter(|_| !rule.is_suspended());
            outcome.is_some_and(|it| matches!(it.standing, Standing::Governs(it) if it.holds()))
        };
        self.predecessors(contender).find(holds).map(|it| &it.name)
    }

    /// Whether a rule that this one comes after still waits for its finalizer: whether it will hold the node is unknown.
    pub(super) fn awaits_a_rule(&self, contender: Contender<'a>) -> bool {
        let mut before = self.predecessors(contender);
        before.any(|rule| !rule.is_suspended() && self.is_coming(rule))
    }

    fn predecessors(&self, contender: Contender<'a>) -> impl Iterator<Item = &'a Rule> + use<'a> {
        let rules = self.cluster.rules;
        let before = rules.predecessors(contender.index).iter();
        before.map(|index| &*rules.rules()[*index])
    }
}
