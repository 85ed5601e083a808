//! Cleans up taints and annotations whose rule is being deleted, is gone, or no longer selects the node.

use super::make::{Active, Draft, Taints, equal};
use super::node_plan::{ChangeKind, TaintChange};
use crate::api::{TaintEffect, TaintPolicy};
use crate::condition::Watch;
use crate::object::Taint;
use crate::rule::ownership::{Ownership, owner_key};
use crate::rule::{CompiledSpec, Reach, Rule};

impl<'a> Draft<'a> {
    /// The node's taints that are to stay; those that a rule left behind are about to be removed. `owned` is sorted by taint.
    pub(super) fn staying(&self, owned: &[Ownership<'_>]) -> Taints<'a> {
        let is_left_behind = |taint: &Taint| {
            taint.effect.parse().is_ok_and(|effect| {
                let mut owners = equal(owned, |it| it.taint().cmp(&(&taint.key, effect))).iter();
                owners.any(|owner| self.is_orphan(owner))
            })
        };
        let passing = &self.cluster.rules.passing;
        let taints = self.node.taints.iter();
        let staying = taints.filter(|it| !passing.contains(it) && !is_left_behind(it));
        staying.collect()
    }

    /// Removes a taint that no live rule governs here, if its rule is being deleted, is gone, or no longer selects the node.
    pub(super) fn clean_up(
        &mut self,
        key: &str,
        effect: TaintEffect,
        claims: &[Active<'a>],
        owners: &[Ownership<'_>],
    ) {
        if self.has_pending_successor(key, effect) {
            return;
        }
        let left_behind = self.left_behind(key, effect, claims, owners);
        let Some((rule_name, rule_uid, why)) = left_behind else {
            return;
        };
        let stale = self.cluster.stale.iter();
        let mut stale = stale
            .filter(|it| matches!(it, Watch::Nodes | Watch::Rules))
            .peekable();
        if stale.peek().is_some() {
            self.plan.stale.extend(stale);
            let owns = |rule: &Rule| owners.iter().any(|owner| *owner.rule_uid == *rule.uid);
            let deleted = self.rules().filter(|rule| rule.deleting);
            let left = deleted.filter(|rule| rule.is_about(key, effect) || owns(rule));
            self.plan.awaiting.extend(left.map(|rule| rule.uid.clone()));
            return;
        }
        for owner in owners {
            self.remove_annotation(owner_key(owner.rule_uid));
        }
        if let Some(taint) = self.taint(key, effect) {
            self.writes.changes.push(TaintChange {
                kind: ChangeKind::Removed,
                rule_name,
                rule_uid,
                taint: taint.clone(),
                transition: None,
                why: why.into(),
                missing: None,
                components_ready: false,
                gave_up: false,
            });
        }
    }

    /// The name and UID of the rule that left the taint behind, and why it is removed.
    fn left_behind(
        &self,
        key: &str,
        effect: TaintEffect,
        claims: &[Active<'a>],
        owners: &[Ownership<'_>],
    ) -> Option<(String, String, &'static str)> {
        let first = claims.iter().find(|(_, spec)| !spec.dry_run);
        let deleted_governor = first.filter(|(rule, spec)| {
            rule.deleting && spec.ours.taint_policy == TaintPolicy::AddAndRemove
        });
        let left_it_behind = self.rules().find(|rule| {
            rule.is_about(key, effect) && rule.left_behind(&self.node.labels).is_some()
        });
        let deleted = deleted_governor
            .map(|(rule, _)| *rule)
            .or(left_it_behind.map(|rule| &**rule));
        if let Some(rule) = deleted {
            let (name, uid) = (rule.name.to_string(), rule.uid.to_string());
            return Some((name, uid, "the rule is being deleted"));
        }
        let orphan = owners.iter().find(|owner| self.is_orphan(owner))?;
        let (name, uid) = (orphan.rule_name.to_owned(), orphan.rule_uid.to_owned());
        let why = "the rule that added it does not select this node any more, or is gone";
        Some((name, uid, why))
    }

    /// Removes all annotations of deleted rules, with the rule's taint: a new rule of the same name must start from scratch.
    pub(super) fn forget_deleted_rules(&mut self) {
        for rule in self.rules() {
            if !rule.deleting || self.plan.awaits_evidence(rule) {
                continue;
            }
            for key in rule.completion_keys.clone() {
                self.remove_annotation(key);
            }
            let is_inherited = |reach: &Reach| self.has_pending_successor(&reach.key, reach.effect);
            if !rule.reach.as_ref().is_some_and(is_inherited) {
                self.remove_annotation(owner_key(&rule.uid));
            }
        }
    }

    /// Whether a rule that will govern the taint awaits its finalizer: the node is not released while one rule takes over.
    fn has_pending_successor(&self, key: &str, effect: TaintEffect) -> bool {
        self.rules().any(|rule| self.will_govern(rule, key, effect))
    }

    /// Whether an earlier rule will govern this rule's taint here, and still waits for its finalizer.
    pub(super) fn has_pending_governor(&self, rule: &Rule, spec: &CompiledSpec) -> bool {
        let mut earlier = self.rules().take_while(|it| it.uid != rule.uid);
        earlier.any(|it| self.will_govern(it, &spec.taint.key, spec.effect))
    }

    fn will_govern(&self, rule: &Rule, key: &str, effect: TaintEffect) -> bool {
        let is_meant = |it: &CompiledSpec| !it.dry_run && it.selector.matches(&self.node.labels);
        let awaits_finalizer = !rule.deleting && !rule.finalizer && !rule.refused;
        rule.is_about(key, effect) && awaits_finalizer && rule.spec.as_ref().is_ok_and(is_meant)
    }

    /// Whether the rule that owns the taint is gone, is being deleted, or no longer selects the node. A rule that may not act yet
    /// (no finalizer, invalid spec) keeps what it owns. If no rule names the taint, the annotation alone proves nothing.
    fn is_orphan(&self, owner: &Ownership<'_>) -> bool {
        let set = self.cluster.rules;
        let rules = set.rules();
        let is_ours = || self.is_ours(owner.taint_key, owner.taint_effect);
        match rules.iter().position(|rule| *rule.uid == *owner.rule_uid) {
            None => set.remembers(owner) || is_ours(),
            Some(index) if rules[index].is_suspended() => false,
            Some(index) if rules[index].active().is_some() => {
                rules[index].deleting || !self.state.selecting.contains(&index)
            }
            Some(index) => rules[index].deleting && (rules[index].reach.is_some() || is_ours()),
        }
    }

    /// Whether no rule here uses the taint and Nodegate added it, or it is absent. Few others set `timeAdded`, and a kubelet cannot
    /// forge it: `NodeRestriction` lets it write annotations, but no taints.
    fn is_ours(&self, key: &str, effect: TaintEffect) -> bool {
        let Some(taint) = self.taint(key, effect) else {
            return true;
        };
        taint.time_added.is_some()
            && !self.rules().any(|rule| {
                rule.is_about(key, effect) && !rule.deleting && rule.selects(&self.node.labels)
            })
    }
}
