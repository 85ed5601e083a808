//! Taints that look like a rule's and that no rule removes: a node that registers with one stays held for ever.

use std::cell::LazyCell;
use std::sync::Arc;

use super::compile::{Reach, Rule};
use super::ownership::Ownership;
use super::set::RuleSet;
use super::taint_key::is_foreign;
use crate::api::TaintEffect;
use crate::object::{Node, Taint};

/// Why no rule removes a taint that looks like a rule's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum WhyStray {
    #[error("no rule has this taint")]
    NoRule,
    /// The rule with this key has this other effect.
    #[error("rule '{0}' removes the one with effect {1} only")]
    OtherEffect(Arc<str>, TaintEffect),
    #[error("rule '{0}' would remove it, but cannot be used")]
    Rejected(Arc<str>),
    #[error("rule '{0}' would remove it, but is a dry run")]
    DryRun(Arc<str>),
    #[error("rule '{0}' removes it, but does not select the node")]
    NotSelected(Arc<str>),
}

impl RuleSet {
    /// The node's taints that keep pods off it, look like a rule's, and are removed by no rule.
    pub fn stray<'a>(&self, node: &'a Node) -> impl Iterator<Item = (&'a Taint, WhyStray)> {
        let owned = Ownership::all(node).map(|it| it.taint());
        let owned = LazyCell::new(|| owned.collect::<Vec<_>>());
        node.taints.iter().filter_map(move |taint| {
            let effect = taint.effect.parse().ok()?;
            let why = self.why_stray(&taint.key, effect, |rule| rule.selects(&node.labels))?;
            // The controller cleans up after a rule that is gone, or that no longer selects the node.
            let is_left = match why {
                WhyStray::DryRun(_) | WhyStray::Rejected(_) => true,
                _ => !owned.contains(&(&*taint.key, effect)),
            };
            is_left.then_some((taint, why))
        })
    }

    /// The rules that are being deleted, with their taints that are on the node until a controller removes them.
    pub fn lingering<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = (&'a Rule, &'a Reach)> {
        let rules = self.rules().iter();
        rules.filter(|rule| rule.deleting).filter_map(|rule| {
            let reach = rule.reach.as_ref()?;
            let is_there = node.taint(&reach.key, reach.effect).is_some();
            let owns = || Ownership::all(node).any(|owner| *owner.rule_uid == *rule.uid);
            let is_left = is_there && (rule.releases() && rule.selects(&node.labels) || owns());
            is_left.then_some((&**rule, reach))
        })
    }

    /// Why no rule removes what looks like a rule's taint from the nodes that have it. `selects`: whether a rule selects them.
    pub fn why_stray(
        &self,
        key: &str,
        effect: TaintEffect,
        selects: impl Fn(&Rule) -> bool,
    ) -> Option<WhyStray> {
        if effect == TaintEffect::PreferNoSchedule {
            return None;
        }
        let of_key = self.rules().iter().filter_map(|rule| {
            let reach = rule.reach.as_ref().filter(|reach| reach.key == key)?;
            (!rule.deleting || rule.releases()).then_some((&**rule, reach.effect))
        });
        let (own, others): (Vec<_>, Vec<_>) = of_key.partition(|(_, other)| *other == effect);
        let removes = |it: &&(&Rule, TaintEffect)| it.0.releases() && selects(it.0);
        if own.iter().any(|it| removes(&it)) {
            return None;
        }
        let other_effect = others.iter().find(removes);
        let other_effect =
            other_effect.map(|(rule, effect)| WhyStray::OtherEffect(rule.name.clone(), *effect));
        if is_foreign(key) {
            // Its own project may remove it. Another effect than the rule's is more likely a mistake.
            return other_effect.filter(|_| own.is_empty());
        }
        // Each of its rules that selects the node is a dry run or cannot be used.
        let selecting = own.iter().find(|(rule, _)| selects(rule));
        let selecting = selecting.map(|(rule, _)| match &rule.spec {
            Ok(_) => WhyStray::DryRun(rule.name.clone()),
            Err(_) => WhyStray::Rejected(rule.name.clone()),
        });
        let first = own.first();
        let not_selected = first.map(|(rule, _)| WhyStray::NotSelected(rule.name.clone()));
        let known = selecting.or(other_effect).or(not_selected);
        known.or(Some(WhyStray::NoRule))
    }
}

impl Rule {
    /// Whether the rule removes its taint at some time from nodes that it selects.
    fn releases(&self) -> bool {
        let mut reach = self.reach.iter();
        match &self.spec {
            _ if self.deleting => reach.any(|reach| reach.is_removed_in_the_end),
            Ok(spec) => !spec.dry_run,
            Err(_) => false,
        }
    }
}
