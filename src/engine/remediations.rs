//! Asks other controllers to remediate nodes, and withdraws that. The node's record says what to do and what has been done (see
//! [`crate::plan`]); the node is read again first, past all caches, and must be exactly the one that was evaluated.

use std::collections::BTreeMap;
use std::sync::Arc;

use tracing::{debug, info, warn};

use super::cache::Cache;
use super::claims::TURN;
use super::effects::{Effects, Purpose};
use super::error::RequestError;
use super::io::{Answer, Count, Request};
use super::map::Map;
use super::notice::{About, Notice};
use super::pacer::{Class, WriteSlot};
use super::repairs::late;
use super::rules::Rules;
use crate::api::RepairAction;
use crate::object::Node;
use crate::plan::{NodePlan, Outcome};
use crate::repair::{RemediationRecord, RemediationStep, Remedy, StepKind, Verdict};

/// A step under way.
#[derive(Debug)]
struct Remediation {
    step: RemediationStep,
    /// The node as it was evaluated.
    node: Node,
    /// What follows the live read of the node; `None` once it was made.
    then: Option<Request>,
    /// What it is about.
    subject: Subject,
}

/// What a step asks for or withdraws.
#[derive(Debug)]
enum Subject {
    /// Whose remediation is asked for: the rule's name and action, what is made or annotated, and why.
    Asked {
        rule: Arc<str>,
        action: RepairAction,
        what: String,
        why: String,
    },
    /// The object that is deleted.
    Withdrawn(String),
}

/// The steps of one node under one rule.
#[derive(Debug, Default)]
struct Work {
    slot: WriteSlot<Remediation>,
    /// The last step that succeeded.
    taken: Option<RemediationStep>,
    /// Why the last one was refused; `None` if it was not.
    refusal: Option<String>,
}

/// The remediations of nodes, by the node's name and the rule's UID.
#[derive(Debug, Default)]
pub(super) struct Remediations(Map<Arc<str>, BTreeMap<Arc<str>, Work>>);

impl Remediations {
    /// The last step that this process has taken for this node, for each rule.
    pub(super) fn taken(&self, node: &str) -> Vec<RemediationStep> {
        let works = self.0.get(node).into_iter().flat_map(BTreeMap::values);
        works.filter_map(|work| work.taken.clone()).collect()
    }

    /// Begins the steps of a node's plan. One that has to wait is begun by an evaluation later.
    pub(super) fn begin(&mut self, node: &Node, plan: &NodePlan<'_>, out: &mut Effects) {
        if plan.remediation.is_empty() {
            if RemediationRecord::rules(node).next().is_none() {
                self.forget(&node.name);
            }
            return;
        }
        for step in &plan.remediation {
            let outcome = plan.outcomes.iter().find(|it| it.rule.uid == step.rule_uid);
            let Some((then, subject)) = request(node, step, outcome) else {
                continue;
            };
            let works = self.0.entry(node.name.clone()).or_default();
            let work = works.entry(step.rule_uid.clone()).or_default();
            if work.slot.is_under_way() {
                continue;
            }
            let now = out.now.monotonic;
            let later = match work.slot.not_before(now) {
                Some(at) => Some(at),
                None if out.pacer.may_begin(Class::Claim, now) => None,
                None => Some(
                    out.pacer
                        .not_before(Class::Claim, now)
                        .unwrap_or(now + TURN),
                ),
            };
            if let Some(at) = later {
                out.timers.wake_node(&node.name, at);
                continue;
            }
            work.slot.begin(Remediation {
                step: step.clone(),
                node: node.clone(),
                then: Some(then),
                subject,
            });
            let purpose = Purpose::Remediation(node.name.clone(), step.rule_uid.clone());
            let name = node.name.clone();
            out.ask(purpose, Request::ReadNode { name });
        }
    }

    /// Forgets a node that is gone, or has no remediation. A request under way may end first.
    pub(super) fn forget(&mut self, node: &str) {
        let Some(works) = self.0.get_mut(node) else {
            return;
        };
        works.retain(|_, work| {
            work.taken = None;
            work.slot.is_under_way()
        });
        if works.is_empty() {
            self.0.remove(node);
        }
    }

    /// Stops before the next request: one under way may end.
    pub(super) fn stop(&mut self) {
        for work in self.0.values_mut().flat_map(BTreeMap::values_mut) {
            work.slot.take_if(|remediation| remediation.then.is_some());
        }
    }

    /// Handles the answer to a request. Unless another one follows, returns true: the node is then evaluated again.
    pub(super) fn answered(
        &mut self,
        node: &Arc<str>,
        rule_uid: &Arc<str>,
        answer: Result<Answer, RequestError>,
        cache: &mut Cache,
        rules: &mut Rules,
        out: &mut Effects,
    ) -> bool {
        let works = self.0.get_mut(node);
        let Some(work) = works.and_then(|works| works.get_mut(rule_uid)) else {
            return true;
        };
        let Some(mut remediation) = work.slot.take() else {
            return true;
        };
        let end = match (remediation.then.take(), answer) {
            (None, Ok(Answer::Impossible(why))) => End::Impossible(why),
            (None, Ok(_)) => End::Done,
            (Some(then), Ok(answer)) => match remediation.is_confirmed(answer, cache, out) {
                Ok(()) => {
                    let purpose = Purpose::Remediation(node.clone(), rule_uid.clone());
                    work.slot.begin(remediation);
                    out.ask(purpose, then);
                    return false;
                }
                Err(error) => remediation.failed(error),
            },
            (_, Err(error)) => remediation.failed(error),
        };
        work.ended(&remediation, end, rules, out);
        true
    }
}

impl Work {
    /// Notes and reports how a step ended.
    fn ended(&mut self, remediation: &Remediation, end: End, rules: &mut Rules, out: &mut Effects) {
        let (node, now) = (&remediation.node.name, out.now.monotonic);
        let rule_uid = &remediation.step.rule_uid;
        let (error, refusal) = match end {
            End::Done => (None, None),
            End::Again(error) => {
                self.slot.judge(Some(&error), now);
                debug!(%node, %error, "evaluating the node again before its remediation");
                if error.is_refusal() {
                    let what = "cannot remediate the node";
                    out.pacer.complain(what, node, &error, now);
                }
                return;
            }
            End::Impossible(why) => (Some(RequestError::Failed(why.clone())), Some(why)),
            End::Refused(error) => {
                let why = error.to_string();
                rules.refused_remediation(rule_uid, Some(&why), out);
                (Some(error), Some(why))
            }
        };
        self.slot.judge(error.as_ref(), now);
        // A rule that goes must not wait for a deletion that is forbidden: the object goes with the node, which owns it.
        if error.is_none() || remediation.is_withdrawal() {
            self.taken = Some(remediation.step.clone());
        }
        if error.is_none() {
            rules.refused_remediation(rule_uid, None, out);
        }
        let is_news = self.refusal != refusal;
        tell(remediation, refusal.as_deref(), is_news, out);
        self.refusal = refusal;
    }
}

/// How a step ended.
enum End {
    Done,
    /// It is retried.
    Again(RequestError),
    /// This node cannot be remediated as it is.
    Impossible(String),
    /// The API server refused it, or lacks something that all nodes of the rule need.
    Refused(RequestError),
}

impl Remediation {
    fn is_withdrawal(&self) -> bool {
        matches!(self.subject, Subject::Withdrawn(_))
    }

    /// Takes in the live read of the node, and checks that the step still follows.
    fn is_confirmed(
        &self,
        answer: Answer,
        cache: &mut Cache,
        out: &Effects,
    ) -> Result<(), RequestError> {
        let read = answer.node()?;
        let now = read.clone().read();
        let is_as_judged = now.is_ok_and(|now| now == self.node);
        cache.update_node(read, out.now);
        // A newer read may have shown that the rule is suspended or gone.
        let goes_on = match &self.subject {
            Subject::Asked { rule, .. } => cache
                .rules()
                .get(rule)
                .is_some_and(|it| it.rule.live().is_some() && !it.rule.is_suspended()),
            Subject::Withdrawn(_) => true,
        };
        if is_as_judged && goes_on {
            Ok(())
        } else {
            Err(RequestError::Conflict)
        }
    }

    fn failed(&self, error: RequestError) -> End {
        let is_final = match &error {
            RequestError::Failed(_) => true,
            error => !self.is_withdrawal() && error.is_refusal(),
        };
        if is_final {
            End::Refused(error)
        } else {
            End::Again(error)
        }
    }
}

/// The request of a step, and what it is about; `None` if the rule does not ask for it any more.
fn request(
    node: &Node,
    step: &RemediationStep,
    outcome: Option<&Outcome<'_>>,
) -> Option<(Request, Subject)> {
    let (name, uid, rule_uid) = (node.name.clone(), node.uid.clone(), step.rule_uid.clone());
    if step.kind == StepKind::Withdraw {
        let object = step.record.object.clone()?;
        let what = object.of_node(&name);
        let request = Request::DeleteRemediation {
            name,
            uid,
            rule_uid,
            object,
        };
        return Some((request, Subject::Withdrawn(what)));
    }
    let outcome = outcome?;
    let Some(Verdict::Repair(remedy)) = outcome.verdict else {
        return None;
    };
    let (request, what) = match remedy {
        Remedy::Remediate(template) => {
            let what = step.record.object.as_ref()?.of_node(&name);
            let template = Box::new(template.clone());
            let request = Request::MakeRemediation {
                name,
                uid,
                rule_uid,
                template,
            };
            (request, what)
        }
        Remedy::AnnotateMachine(machine) => {
            let what = format!("Machine {machine}");
            let machine = machine.clone();
            (Request::AnnotateMachine { name, machine }, what)
        }
        Remedy::DeleteNodeClaim(_) | Remedy::Release | Remedy::Report => return None,
    };
    let subject = Subject::Asked {
        rule: outcome.rule.name.clone(),
        action: remedy.action(),
        what,
        why: late(outcome),
    };
    Some((request, subject))
}

/// Reports how a step ended: with a refusal, which `is_news` or known, or well.
fn tell(remediation: &Remediation, refusal: Option<&str>, is_news: bool, out: &mut Effects) {
    let node = &remediation.node;
    let about = About::node(&node.name, &node.uid);
    match (&remediation.subject, refusal) {
        (
            Subject::Asked {
                rule,
                action,
                what,
                why,
            },
            None,
        ) => {
            info!(node = %node.name, %rule, what, why, "remediation asked for");
            out.count(Count::Repaired {
                rule: rule.clone(),
                action: action.as_str(),
            });
            out.tell(Notice::of_remediation(about, *action, what, rule, why));
        }
        (Subject::Asked { rule, what, .. }, Some(refusal)) => {
            warn!(node = %node.name, %rule, what, "cannot ask for a remediation: {refusal}");
            out.count(Count::RepairFailed { rule: rule.clone() });
            if is_news {
                out.tell(Notice::of_impossible_repair(about, rule, refusal));
            }
        }
        (Subject::Withdrawn(what), refusal) => {
            match refusal {
                None => info!(node = %node.name, what, "remediation withdrawn"),
                Some(refusal) => {
                    warn!(node = %node.name, what, "cannot delete the remediation: {refusal}");
                }
            }
            out.tell(Notice::of_withdrawn_remediation(about, what, refusal));
        }
    }
}
