//! All rules, in the order in which they govern.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::compile::{CompiledSpec, Rule};
use crate::condition::{PassingTaints, Source};
use crate::object::{Node, Taint};

/// All rules of the cluster. Of two rules with the same taint key and effect, the earlier one here governs.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    rules: Vec<Arc<Rule>>,
    passing: PassingTaints,
    /// The condition types on Nodes of which some rule wants to know when they were written.
    followed: BTreeSet<Arc<str>>,
}

impl RuleSet {
    /// Orders the rules by creation time, then by name. `passing_taints` are the configured keys of other
    /// projects' startup taints.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = Arc<Rule>>, passing_taints: Vec<String>) -> Self {
        let mut rules: Vec<_> = rules.into_iter().collect();
        rules.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
        // A rule whose finalizer is on its way counts: until then its taint would shut DaemonSets out, and a node that
        // waits for them under another rule would open.
        let managed = rules
            .iter()
            .filter_map(|rule| rule.spec.as_ref().ok())
            .filter(|spec| !spec.dry_run)
            .map(|spec| (spec.taint.key.clone(), spec.effect))
            .collect();
        let followed = rules
            .iter()
            .filter_map(|rule| rule.active())
            .filter(|spec| spec.heartbeat_timeout.is_some() || spec.regate_on_reboot)
            .flat_map(|spec| &spec.conditions)
            .filter(|requirement| requirement.source == Source::Node)
            .map(|requirement| requirement.kind.clone())
            .collect();
        Self {
            rules,
            passing: PassingTaints {
                configured: passing_taints,
                managed,
            },
            followed,
        }
    }

    /// The condition types on Nodes of which some rule wants to know when they were written.
    #[must_use]
    pub fn followed(&self) -> &BTreeSet<Arc<str>> {
        &self.followed
    }

    /// All rules, those that govern first.
    #[must_use]
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// The taints that will go by themselves, those that the rules manage among them.
    #[must_use]
    pub fn passing(&self) -> &PassingTaints {
        &self.passing
    }

    /// The node's taints that will not go by themselves.
    #[must_use]
    pub fn staying<'a>(&self, node: &'a Node) -> Vec<&'a Taint> {
        let taints = node.taints.iter();
        taints
            .filter(|taint| !self.passing.contains(taint))
            .collect()
    }

    /// Indices of the active rules that select a node with these labels.
    #[must_use]
    pub fn selecting(&self, labels: &BTreeMap<String, String>) -> Vec<usize> {
        let selects = |rule: &Rule| {
            rule.active()
                .is_some_and(|spec| spec.selector.matches(labels))
        };
        (0..self.rules.len())
            .filter(|index| selects(&self.rules[*index]))
            .collect()
    }

    /// Whether any active rule waits for this class.
    #[must_use]
    pub fn waits_for_class(&self, class: usize) -> bool {
        self.rules
            .iter()
            .filter_map(|rule| rule.active())
            .any(|spec| spec.waits_for_class(class))
    }
}

impl CompiledSpec {
    /// Whether the rule waits for critical components, of any class.
    #[must_use]
    pub fn waits_for_components(&self) -> bool {
        let mut sources = self.conditions.iter().map(|condition| &condition.source);
        sources.any(|source| matches!(source, Source::Class { .. }))
    }

    /// Whether the rule waits for a condition of this class.
    #[must_use]
    pub fn waits_for_class(&self, index: usize) -> bool {
        self.conditions
            .iter()
            .any(|requirement| matches!(requirement.source, Source::Class { class, .. } if class == index))
    }
}
