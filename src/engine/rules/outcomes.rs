//! What the rules do on their nodes: put on record with each node, and counted by each rule's disruption guard.

use super::gating::observe;
use super::{RuleWork, Rules};
use crate::count::RuleCount;
use crate::error::EVALUATION_ERROR;
use crate::node_writes::WriteWork;
use crate::notice::{self, About, Notice};
use crate::outbox::Outbox;
use crate::status::Record;
use nodegate_core::plan::{ChangeKind, NodePlan, NodeState, Outcome, TaintChange};
use nodegate_core::rule::{Rule, RuleSet};

impl Rules {
    /// Puts on record what the rules do on a node by a plan that was just made, before it is written.
    pub fn evaluated(
        &mut self,
        state: NodeState<'_>,
        plan: &NodePlan<'_>,
        set: &RuleSet,
        write: &WriteWork,
        records: &mut Vec<Record>,
        out: &mut Outbox,
    ) {
        let node = state.node;
        for outcome in &plan.outcomes {
            let record = Record::of(records, &outcome.rule.uid);
            if let Some(work) = self.works.get_mut(&outcome.rule.uid)
                && !outcome.rule.is_suspended()
            {
                work.evaluated(state, plan, outcome, record, out);
            }
        }
        for record in &mut *records {
            let outcome = plan.outcome_of(&record.rule);
            if let Some(work) = self.works.get_mut(&record.rule)
                && let pause = write.pause(&node.name, &work.name, out)
                && let pause = pause.or_else(|| outcome?.waits_out(&node.name))
                && pause.as_ref() != record.pause.as_deref()
            {
                record.pause = pause.map(Box::new);
                work.status_changed(out);
            }
        }
        let deleting = || set.rules().iter().filter(|rule| rule.deleting);
        for record in &mut *records {
            record.is_clean = true;
        }
        for rule in deleting() {
            let mut writes = plan.writes_for(rule);
            if plan.awaits_evidence(rule) || writes.any(|it| !write.has_given_up(it)) {
                Record::of(records, &rule.uid).is_clean = false;
            }
        }
        records.retain_mut(|record| {
            if plan.outcome_of(&record.rule).is_some() {
                return true;
            }
            let deleted = deleting().find(|rule| rule.uid == record.rule);
            let is_news = record.leave(plan, deleted.map(|rule| &**rule));
            self.forget_node(&node.name, &record.rule, is_news, out);
            !record.is_empty()
        });
    }

    pub fn forget_node(&mut self, name: &str, uid: &str, is_news: bool, out: &mut Outbox) {
        if let Some(work) = self.works.get_mut(uid) {
            let guard = work.guard.as_mut();
            if guard.is_some_and(|guard| guard.forget(name)) || is_news {
                work.status_changed(out);
            }
        }
    }

    /// Notes that these changes of a node failed and why, and announces it if it is new.
    pub fn record_failure(
        &mut self,
        node: &About,
        changes: &[TaintChange],
        message: &str,
        records: &mut Vec<Record>,
        out: &mut Outbox,
    ) {
        for change in changes {
            let topic = match change.kind {
                ChangeKind::Added => &notice::TAINT_NOT_ADDED,
                ChangeKind::Removed => &notice::TAINT_NOT_REMOVED,
            };
            let Some(work) = self.works.get_mut(&*change.rule_uid) else {
                continue;
            };
            for reason in [topic.reason, EVALUATION_ERROR] {
                out.count_for(work.name.clone(), RuleCount::Failed(reason));
            }
            let message = format!("failed to {} taint: {message}", change.kind);
            if Record::of(records, &work.uid).fail(message.clone(), out.now.wall) {
                work.status_changed(out);
                let note = format!("Rule '{}' {message}", change.rule_name);
                let notice = Notice::new(node.clone(), topic, note);
                out.tell(notice.of_rule(&change.rule_name, &change.rule_uid));
            }
        }
    }

    /// Notes for the rules that have a record of a node that the controller leaves it as it is, and why.
    pub fn left_alone(&mut self, message: &str, records: &mut [Record], out: &mut Outbox) {
        for record in records {
            if let Some(work) = self.works.get_mut(&record.rule)
                && record.fail(message.to_owned(), out.now.wall)
            {
                work.status_changed(out);
            }
        }
    }

    pub fn is_new(&self, rule: &Rule) -> bool {
        self.works.get(&rule.uid).is_none_or(|work| work.is_new)
    }
}

impl RuleWork {
    fn evaluated(
        &mut self,
        state: NodeState<'_>,
        plan: &NodePlan<'_>,
        outcome: &Outcome<'_>,
        record: &mut Record,
        out: &mut Outbox,
    ) {
        out.count_for(self.name.clone(), RuleCount::Evaluated);
        for (index, result) in outcome.findings.iter().enumerate() {
            if !result.is_to_be_seen() && !result.is_met() {
                let condition = result.requirement.kind.clone();
                let is_new = !record.had(index, result.observed());
                out.count_for(self.name.clone(), RuleCount::Unmet { condition, is_new });
            }
        }
        // Before everything has been seen, the node's state is unknown.
        let is_known = !outcome.is_to_be_seen();
        let guard = self.guard.as_mut().filter(|_| is_known);
        let counts_anew = guard.is_some_and(|guard| observe(guard, state, outcome));
        let is_news = record.see(outcome, out.now.wall);
        // A refusal for another rule, or of a record, is no failure of this one.
        let has_work = plan.awaits_evidence(outcome.rule)
            || plan.changes().any(|it| *it.rule_uid == *self.uid);
        let recovered = record.failure.take_if(|_| !has_work).is_some();
        self.first_gating.see(outcome, record);
        if is_news || counts_anew || recovered {
            self.status_changed(out);
        }
    }
}
