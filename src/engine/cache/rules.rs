//! Rules, from watches and write responses.

use std::sync::Arc;

use jiff::Timestamp;

use super::Cache;
use crate::api::NodeReadinessRuleStatus;
use crate::object::{self, RuleObject, Version};
use crate::rule::{Rule, RuleSet};

/// How many deleted rules are remembered.
const FORMER_RULES: usize = 256;

/// A compiled rule, and what else its object says.
#[derive(Debug)]
pub struct CachedRule {
    pub rule: Arc<Rule>,
    /// Whether its spec suspends it.
    pub suspends: bool,
    pub version: Version,
    /// All finalizers, including other controllers'.
    pub finalizers: Vec<String>,
    /// The status as the API server holds it.
    pub status: NodeReadinessRuleStatus,
}

impl Cache {
    pub(super) fn put_rule(&mut self, object: RuleObject, now: Timestamp) {
        let mut rule = Rule::compile(&object.metadata, object.spec, &self.classes);
        let suspends = rule.suspended;
        rule.suspended |= self.suspends_all;
        let known = self.rules.get(&rule.name);
        // Rules that existed before this process are as old as the cluster.
        let since = if self.has_synced() {
            now
        } else {
            Timestamp::MIN
        };
        let rule = rule.seen(known.map(|known| &*known.rule), since);
        let changed = known.is_none_or(|known| *known.rule != rule);
        if known.is_some() && self.evaluates {
            self.shown_statuses.insert(rule.name.clone());
        }
        let rule = match known {
            Some(known) if !changed => known.rule.clone(),
            _ => Arc::new(rule),
        };
        let cached = CachedRule {
            suspends,
            version: object::resource_version(&object.metadata),
            rule,
            finalizers: object.metadata.finalizers.unwrap_or_default(),
            status: object.status,
        };
        let uid = cached.rule.uid.clone();
        let known = self.rules.insert(cached.rule.name.clone(), cached);
        if let Some(known) = known.filter(|known| known.rule.uid != uid) {
            self.retire(known.rule);
        }
        self.rules_changed |= changed;
    }

    /// Suspends or resumes all rules, whatever their specs say.
    pub fn suspend_all(&mut self, suspends_all: bool, now: Timestamp) {
        // The statuses of rules that are suspended anyway say so, too.
        self.rules_changed |= self.suspends_all != suspends_all;
        self.suspends_all = suspends_all;
        for cached in self.rules.values_mut() {
            let rule = Rule {
                suspended: suspends_all || cached.suspends,
                ..Rule::clone(&cached.rule)
            };
            let rule = rule.seen(Some(&cached.rule), now);
            if *cached.rule != rule {
                cached.rule = Arc::new(rule);
                self.rules_changed = true;
            }
        }
        self.take_over_rules();
    }

    /// Notes that the API server keeps refusing our finalizer on a rule.
    pub fn refused_finalizer(&mut self, name: &str) {
        if let Some(cached) = self.rules.get_mut(name)
            && !cached.rule.refused
        {
            Arc::make_mut(&mut cached.rule).refused = true;
            self.rules_changed = true;
            self.take_over_rules();
        }
    }

    pub fn suspends_all(&self) -> bool {
        self.suspends_all
    }

    pub(super) fn remove_rule(&mut self, name: &str) {
        if let Some(gone) = self.rules.remove(name) {
            self.retire(gone.rule);
            self.rules_changed = true;
        }
    }

    /// Remembers a deleted rule: its taints may still be on nodes.
    fn retire(&mut self, rule: Arc<Rule>) {
        if self.former_rules.len() == FORMER_RULES {
            self.former_rules.pop_front();
        }
        self.former_rules.push_back(rule);
    }

    /// If rules have changed, sorts them again and marks every node for evaluation. Does nothing until everything has synced.
    pub(super) fn take_over_rules(&mut self) {
        if !self.has_synced() || !std::mem::take(&mut self.rules_changed) {
            return;
        }
        let rules = self.rules.values().map(|cached| cached.rule.clone());
        self.rule_set = RuleSet::new(rules, self.passing_taints.clone())
            .with_former(self.former_rules.iter().cloned());
        for rule in self.rule_set.rules() {
            if let Some(cached) = self.rules.get_mut(&rule.name) {
                cached.rule = rule.clone();
            }
        }
        self.rule_generation += 1;
        self.follow_named();
        self.follow_classes();
        self.has_rule_news = true;
        self.mark_all();
    }
}
