//! What the rules do on their nodes: kept in each rule's stats, and counted by its disruption guard.

use std::sync::Arc;
use std::time::Instant;

use super::finalizers::Rules;
use super::work::RuleWork;
use crate::engine::cache::Cache;
use crate::engine::effects::Effects;
use crate::engine::error::{ADD_TAINT_ERROR, EVALUATION_ERROR, REMOVE_TAINT_ERROR};
use crate::engine::io::Count;
use crate::engine::notice::{About, Notice};
use crate::engine::status::{Record, RuleFailure};
use crate::object::Node;
use crate::plan::{ChangeKind, ClusterState, NodePlan, Outcome, TaintChange};
use crate::rule::{Rule, RuleSet};

/// A plan that was just made.
#[derive(Clone, Copy)]
pub struct Evaluated<'a> {
    pub node: &'a Node,
    pub plan: &'a NodePlan<'a>,
    /// All rules.
    pub set: &'a RuleSet,
}

impl Rules {
    /// Takes in what the rules do on a node. `recorded_by` holds the UIDs of the rules that have a record of it.
    pub fn evaluated(
        &mut self,
        evaluated: Evaluated<'_>,
        recorded_by: &mut Vec<Arc<str>>,
        out: &mut Effects,
    ) {
        let Evaluated {
            node, plan, set, ..
        } = evaluated;
        // A rule that no longer matches the node may still have to clean it. Its failure stays on record until that is done.
        let is_clean = |uid: &Arc<str>| !plan.writes_node() && !plan.looking.contains(uid);
        let is_selected_by =
            |uid: &Arc<str>| plan.outcomes.iter().any(|outcome| outcome.rule.uid == *uid);
        for uid in recorded_by.iter().filter(|uid| !is_selected_by(uid)) {
            if let Some(work) = self.works.get_mut(uid)
                && work.forget_node(&node.name, is_clean(uid))
            {
                work.status_changed(out);
            }
        }
        recorded_by.retain(|uid| is_selected_by(uid) || !is_clean(uid));
        for outcome in &plan.outcomes {
            let Some(work) = self.works.get_mut(&outcome.rule.uid) else {
                continue;
            };
            if !outcome.rule.is_suspended() {
                work.evaluated(evaluated, outcome, out);
            }
            if !recorded_by.contains(&outcome.rule.uid) {
                recorded_by.push(outcome.rule.uid.clone());
            }
        }
        for rule in set.rules().iter().filter(|rule| rule.deleting) {
            if let Some(work) = self.works.get_mut(&rule.uid) {
                work.note_clean(&node.name, rule, plan, out);
            }
        }
    }

    /// Forgets a deleted node.
    pub fn forget_node(&mut self, name: &Arc<str>, recorded_by: &[Arc<str>], out: &mut Effects) {
        for uid in recorded_by {
            if let Some(work) = self.works.get_mut(uid)
                && work.forget_node(name, true)
            {
                work.status_changed(out);
            }
        }
    }

    /// Notes that the node is clean, so that no deleted rule waits for it.
    pub fn cleaned_up(&mut self, name: &Arc<str>) {
        let works = self.works.values_mut();
        for work in works.filter(|work| work.pending.is_some()) {
            work.cleaned_up(name);
        }
    }

    /// Notes that these changes of a node failed and why, and announces it if it is new.
    pub fn record_failure(
        &mut self,
        node: &About,
        changes: &[TaintChange],
        message: &str,
        recorded_by: &mut Vec<Arc<str>>,
        out: &mut Effects,
    ) {
        for change in changes {
            let (reason, what) = match change.kind {
                ChangeKind::Added => (ADD_TAINT_ERROR, "add"),
                ChangeKind::Removed => (REMOVE_TAINT_ERROR, "remove"),
            };
            let Some(work) = self.works.get_mut(&*change.rule_uid) else {
                continue;
            };
            for reason in [reason, EVALUATION_ERROR] {
                out.count(Count::Failed {
                    rule: work.name.clone(),
                    reason,
                });
            }
            let message = format!("failed to {what} taint: {message}");
            if work.fail(&node.name, message.clone(), out) {
                out.tell(Notice::of_failure(node.clone(), change, &message));
            }
            if !recorded_by.contains(&work.uid) {
                recorded_by.push(work.uid.clone());
            }
        }
    }

    /// Notes for these rules that the controller leaves the node as it is, and why.
    pub fn left_alone(
        &mut self,
        name: &Arc<str>,
        message: &str,
        recorded_by: &[Arc<str>],
        out: &mut Effects,
    ) {
        for uid in recorded_by {
            if let Some(work) = self.works.get_mut(uid) {
                work.fail(name, message.to_owned(), out);
            }
        }
    }

    /// Whether no controller had adopted the rule before this process, or the rule is unknown.
    pub fn is_new(&self, rule: &Rule) -> bool {
        self.works.get(&rule.uid).is_none_or(|work| work.is_new)
    }

    /// UIDs of the rules whose guards let this node be gated now. A guard counts all of its nodes, so it lets none be gated
    /// while anything that its rule depends on is stale.
    pub fn may_gate(&self, node: &str, selecting: &[usize], cache: &Cache) -> Vec<Arc<str>> {
        let cluster = cache.cluster();
        let may_gate = |rule: &&Arc<Rule>| {
            let work = self.works.get(&rule.uid);
            work.and_then(|work| work.gating.as_ref())
                .is_some_and(|gating| gating.may_gate(node))
                && !evidence_is_stale(rule, cluster)
        };
        let rules = cluster.rules.rules();
        let selecting = selecting.iter().map(|index| &rules[*index]);
        let permitting = selecting.filter(may_gate);
        permitting.map(|rule| rule.uid.clone()).collect()
    }

    /// Notes that a rule's taint was added to a node.
    pub fn gated(&mut self, uid: &str, node: &str) {
        let work = self.works.get_mut(uid);
        if let Some(gating) = work.and_then(|work| work.gating.as_mut()) {
            gating.gated(node);
        }
    }

    /// After an outage, lets no guard use what it has saved up: what is still to be closed is closed at the rates, from zero.
    pub fn outage_is_over(&mut self) {
        for gating in self.works.values_mut().filter_map(|it| it.gating.as_mut()) {
            gating.start_over();
        }
    }

    /// The nodes that may be closed from now on. The guards count all nodes, so each must have been evaluated. A rule that is
    /// suspended, or depends on anything stale, gets none.
    pub fn grant_gating(&mut self, cache: &Cache, now: Instant) -> Vec<Arc<str>> {
        let cluster = cache.cluster();
        let mut granted = Vec::new();
        for rule in cluster.rules.rules() {
            if let Some(work) = self.works.get_mut(&rule.uid)
                && let Some(gating) = &mut work.gating
                && !rule.is_suspended()
                && !evidence_is_stale(rule, cluster)
            {
                granted.extend(gating.grant(now));
            }
        }
        granted
    }

    /// When a guard may let another node be closed.
    pub fn next_gating(&self, cache: &Cache, now: Instant) -> Option<Instant> {
        let cluster = cache.cluster();
        let next = cluster.rules.rules().iter().filter_map(|rule| {
            let gating = self.works.get(&rule.uid)?.gating.as_ref()?;
            let waits = rule.is_suspended() || evidence_is_stale(rule, cluster);
            gating.next_grant(now).filter(|_| !waits)
        });
        next.min()
    }
}

/// Whether anything that a rule depends on is stale, or has not been seen yet.
fn evidence_is_stale(rule: &Rule, cluster: ClusterState<'_>) -> bool {
    rule.active().is_some_and(|spec| {
        cluster.is_to_be_seen(spec) || !cluster.stale.about(spec, cluster.named).is_empty()
    })
}

impl RuleWork {
    fn evaluated(&mut self, evaluated: Evaluated<'_>, outcome: &Outcome<'_>, out: &mut Effects) {
        let Evaluated { node, plan, .. } = evaluated;
        let name = &node.name;
        out.count(Count::Evaluated {
            rule: self.name.clone(),
        });
        self.count_unmet(name, outcome, out);
        // Before everything has been seen, the node's state is unknown.
        let is_known = !outcome.is_to_be_seen();
        let gating = self.gating.as_mut().filter(|_| is_known);
        let counts_anew = gating.is_some_and(|gating| gating.observe(node, outcome));
        let record = Record::new(outcome, outcome.would_repair());
        let is_news = self.stats.record(name, record, out.now.wall);
        // A refusal for another rule, or a live read for it, is no failure of this one.
        let recovered = self.stats.has_failed(name)
            && !plan.is_looking_for(outcome.rule)
            && !plan.writes_for(outcome.rule)
            && self.stats.recover(name);
        if is_news || counts_anew || recovered {
            self.status_changed(out);
        }
    }

    /// Counts the unmet conditions.
    fn count_unmet(&self, name: &str, outcome: &Outcome<'_>, out: &mut Effects) {
        let before = self.stats.statuses(name);
        for (index, result) in outcome.findings.iter().enumerate() {
            let was = before.and_then(|statuses| statuses.get(index));
            if !result.is_to_be_seen() && !result.is_met() {
                out.count(Count::Unmet {
                    rule: self.name.clone(),
                    condition: result.requirement.kind.clone(),
                    is_new: was != Some(&result.observed()),
                });
            }
        }
    }

    /// Notes whether the node is clean of the rule, which is being deleted. A write that is refused for one rule does not hold
    /// up the deletion of another.
    fn note_clean(&mut self, name: &Arc<str>, rule: &Rule, plan: &NodePlan<'_>, out: &mut Effects) {
        if !plan.is_looking_for(rule) && !plan.writes_for(rule) {
            self.cleaned_up(name);
            return;
        }
        // The node may have come after the deletion.
        if let Some(pending) = &mut self.pending {
            pending.insert(name.clone());
        }
        if self.stats.linger(name, plan.releases_for(rule)) {
            self.status_changed(out);
        }
    }

    /// Notes that the rule failed on a node; returns whether that is new.
    fn fail(&mut self, name: &Arc<str>, message: String, out: &mut Effects) -> bool {
        let failure = RuleFailure {
            reason: EVALUATION_ERROR,
            message,
        };
        let is_news = self.stats.fail(name, failure, out.now.wall);
        if is_news {
            self.status_changed(out);
        }
        is_news
    }
}
