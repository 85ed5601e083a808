//! The input of all checks: compiled rules, and the `DaemonSet`s that each one waits for.

use std::sync::Arc;

use crate::api::NodeReadinessRuleSpec;
use crate::cli::snapshot::{Agent, Inventory};
use crate::condition::can_share_a_node;
use crate::rule::{CompiledSpec, Rule, RuleSet};

pub(super) struct CheckInput<'a> {
    pub inventory: &'a Inventory,
    /// The rules, by precedence.
    pub rules: RuleSet,
}

impl<'a> CheckInput<'a> {
    pub(super) fn new(inventory: &'a Inventory) -> Self {
        let rules = inventory.rules.iter().map(|rule| {
            let spec = rule.spec.clone();
            Arc::new(Rule::compile(&rule.metadata, spec, &inventory.classes))
        });
        Self {
            inventory,
            rules: RuleSet::new(rules, Vec::new()),
        }
    }

    /// The valid rules that are not being deleted.
    pub(super) fn usable(&self) -> impl Iterator<Item = (&Rule, &CompiledSpec)> {
        let rules = self.rules.rules().iter().filter(|rule| !rule.deleting);
        rules.filter_map(|rule| Some((&**rule, rule.spec.as_ref().ok()?)))
    }

    /// The spec of a rule as written.
    pub(super) fn sent(&self, rule: &Rule) -> Option<&'a NodeReadinessRuleSpec> {
        let mut rules = self.inventory.rules.iter();
        let sent = rules.find(|it| it.metadata.name.as_deref() == Some(&*rule.name));
        sent?.spec.as_ref().ok()
    }

    /// The `DaemonSet`s that a rule waits for on some of its nodes, whether or not they tolerate its taint.
    pub(super) fn waited_for(&self, spec: &CompiledSpec) -> Vec<&'a Agent> {
        let classes = || self.inventory.classes.iter().enumerate();
        let is_waited_for = |agent: &&Agent| {
            let daemon_set = &agent.daemon_set;
            let is_of_class = classes().any(|(index, class)| {
                spec.waits_for_class(index)
                    && class.selector.matches(&agent.labels)
                    && class.has(daemon_set)
            });
            let is_named = spec.daemon_sets().any(|key| *key == daemon_set.key);
            (is_of_class || is_named) && can_share_a_node(daemon_set, &spec.selector)
        };
        self.inventory
            .daemon_sets
            .iter()
            .filter(is_waited_for)
            .collect()
    }
}

/// The name of a `DaemonSet` in findings.
pub(super) fn name(agent: &Agent) -> String {
    format!("daemonset/{}", agent.daemon_set.key)
}

pub(super) fn rule_name(rule: &Rule) -> String {
    format!("rule/{}", rule.name)
}
