//! What a node's remediation needs: what to put on record, and which step follows from the record.
//!
//! The record comes first and says what is to be made; then that is made; then the record says so. So a new leader neither makes
//! it a second time nor loses sight of it.

use super::decision::Decision;
use super::draft::{Contender, Draft};
use super::outcome::Standing;
use crate::repair::{
    Deadline, RemediationObject, RemediationRecord, RemediationStep, Remedy, StepKind, Verdict,
};

impl<'a> Draft<'a> {
    /// Asks for the remediation of a late node, once for each deadline, and withdraws that of a node that is open, or whose rule
    /// asks for something else.
    pub(super) fn remediate(
        &mut self,
        Contender { rule, .. }: Contender<'a>,
        decision: Decision,
        verdict: Option<Verdict<'a>>,
    ) {
        if matches!(decision, Decision::Open { .. }) {
            return;
        }
        let Some(Verdict::Repair(remedy)) = verdict else {
            return;
        };
        let object = match remedy {
            Remedy::Remediate(template) => Some(RemediationObject::of(template)),
            Remedy::AnnotateMachine(_) => None,
            Remedy::DeleteNodeClaim(_) | Remedy::Release | Remedy::Report => {
                return self.withdraw(&rule.uid);
            }
        };
        let Some(deadline) = Deadline::on_record(self.node, &rule.uid) else {
            return;
        };
        let wanted = RemediationRecord {
            deadline: deadline.to_owned(),
            object,
            done: false,
        };
        let key = RemediationRecord::key(&rule.uid);
        match RemediationRecord::recorded(self.node, &rule.uid) {
            Some(known) if known.is_of(&wanted) => {
                if !known.done && self.has_taken(&rule.uid, &known, StepKind::Ask) {
                    let done = RemediationRecord {
                        done: true,
                        ..known
                    };
                    self.set_annotation(key, done.value());
                }
            }
            // It would be lost sight of.
            Some(known) if known.object.is_some() && known.object != wanted.object => {
                self.withdraw(&rule.uid);
            }
            _ => self.set_annotation(key, wanted.value()),
        }
    }

    /// Withdraws remediations that no rule asks for any more, or whose rule leaves the node open.
    pub(super) fn withdraw_remediations(&mut self) {
        let node = self.node;
        for uid in RemediationRecord::rules(node) {
            let is_open = self.plan.outcomes.iter().any(|outcome| {
                let standing = &outcome.standing;
                *outcome.rule.uid == *uid
                    && !outcome.rule.is_suspended()
                    && matches!(standing, Standing::Governs(Decision::Open { .. }))
            });
            if is_open || !self.keeps_records_of(uid) {
                self.withdraw(uid);
            }
        }
    }

    /// Deletes what was made for the rule with this UID, and then the record.
    fn withdraw(&mut self, uid: &str) {
        if RemediationRecord::rules(self.node).all(|recorded| recorded != uid) {
            return;
        }
        let known = RemediationRecord::recorded(self.node, uid);
        let is_withdrawn = known.is_none_or(|known| {
            known.object.is_none() || self.has_taken(uid, &known, StepKind::Withdraw)
        });
        if is_withdrawn {
            self.remove_annotation(RemediationRecord::key(uid));
        }
    }

    /// Whether this process has taken this step; plans it otherwise.
    fn has_taken(&mut self, uid: &str, record: &RemediationRecord, kind: StepKind) -> bool {
        let step = RemediationStep {
            rule_uid: uid.into(),
            record: record.clone(),
            kind,
        };
        let is_taken = self.history.remediated.contains(&step);
        if !is_taken {
            self.plan.remediation.push(step);
        }
        is_taken
    }
}
