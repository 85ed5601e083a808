//! Handles the answers to the engine's requests.

use std::sync::Arc;

use super::Engine;
use crate::engine::count::{Count, RuleCount};
use crate::engine::effects::Job;
use crate::engine::error::RequestError;
use crate::engine::io::{Answer, Object, RequestId};
use crate::engine::node_writes::WriteEnd;
use crate::engine::notice::About;
use crate::object::{Node, Watched};
use crate::plan::ChangeKind;

impl Engine {
    pub(super) fn answered(&mut self, id: RequestId, answer: Result<Answer, RequestError>) {
        let Some(purpose) = self.out.answered(id, answer.as_ref().err()) else {
            return;
        };
        match purpose {
            Job::Node(name) => self.node_answered(&name, answer.and_then(Answer::node)),
            Job::Conditions(name) => {
                self.conditions_answered(&name, answer.and_then(Answer::node));
            }
            Job::Finalizers(uid) => {
                let answer = answer.and_then(Answer::rule);
                self.rules
                    .finalizers_answered(&uid, answer, &mut self.cache, &mut self.out);
            }
            Job::Status(uid) => {
                let answer = answer.and_then(Answer::version);
                self.rules
                    .status_answered(&uid, answer, &self.cache, &mut self.out);
            }
            Job::Claim(name) => {
                let (cache, out) = (&mut self.cache, &mut self.out);
                self.repairs.answered(&name, answer, cache, out);
            }
            Job::Version(watch, asked) => {
                let version = answer.and_then(Answer::version);
                self.cache
                    .read_version(watch, asked, &version, self.out.now);
            }
            Job::Event => {
                if let Err(error) = answer {
                    self.out.count(Count::EventDropped);
                    let now = self.out.now.monotonic;
                    let pacer = &mut self.out.pacer;
                    pacer.complain("cannot post an event", "", &error, now);
                }
            }
        }
    }

    fn node_answered(&mut self, name: &Arc<str>, result: Result<Watched<Node>, RequestError>) {
        let Some(work) = self.nodes.get_mut(name) else {
            return;
        };
        let Some(end) = work.write.answered(name, result, &mut self.out) else {
            return;
        };
        match end {
            WriteEnd::Failed | WriteEnd::Read(None) => {}
            WriteEnd::Read(Some(node)) => {
                self.cache.apply_answer(Object::Node(*node), self.out.now)
            }
            WriteEnd::Refused(changes, why) => {
                if let Some(state) = self.cache.node(name) {
                    let about = About::node(name, &state.node.uid);
                    let (records, out) = (&mut work.records, &mut self.out);
                    self.rules
                        .record_failure(&about, &changes, &why, records, out);
                }
            }
            WriteEnd::CarriedOut(write, version, patched) => {
                for change in write.plan.changes {
                    if change.kind == ChangeKind::Added {
                        self.rules.gated(&change.rule_uid, name);
                    } else if let Some(count) = work.startups.released(&change.rule_uid)
                        && !change.gave_up
                    {
                        self.out.count(count);
                    }
                    let rule = change.rule_name.clone();
                    let change = RuleCount::Changed(Box::new(change));
                    self.out.count_for(rule, change);
                }
                for (count, notice) in write.completed {
                    self.out.count(count);
                    if let Some(notice) = notice {
                        self.out.tell(notice);
                    }
                }
                self.cache.patched_node(version, *patched, write.taints);
            }
        }
        self.cache.mark(name);
    }

    fn conditions_answered(
        &mut self,
        name: &Arc<str>,
        result: Result<Watched<Node>, RequestError>,
    ) {
        if let Some(work) = self.nodes.get_mut(name) {
            let error = result.as_ref().err();
            work.conditions.answered(name, error, &mut self.out);
        }
        if let Ok(node) = result {
            self.cache.apply_answer(Object::Node(node), self.out.now);
        }
        self.cache.mark(name);
    }
}
