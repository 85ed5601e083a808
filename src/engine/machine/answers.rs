//! Handles the answers to the engine's requests.

use std::sync::Arc;

use super::Engine;
use crate::engine::effects::Purpose;
use crate::engine::error::RequestError;
use crate::engine::io::{Answer, Count, RequestId};
use crate::engine::node_writes::{NodeWrite, WriteEnd};
use crate::engine::notice::{About, Notice};
use crate::object::{Node, Watched};
use crate::plan::ChangeKind;

impl Engine {
    pub(super) fn answered(&mut self, id: RequestId, answer: Result<Answer, RequestError>) {
        let Some(purpose) = self.out.answered(id, answer.as_ref().err()) else {
            return;
        };
        match purpose {
            Purpose::Node(name) => self.node_answered(&name, answer.and_then(Answer::node)),
            Purpose::NodeAgain(name) => self.read_again(&name, answer.and_then(Answer::node)),
            Purpose::Conditions(name) => {
                self.conditions_answered(&name, answer.and_then(Answer::node));
            }
            Purpose::Finalizers(uid) => {
                let answer = answer.and_then(Answer::rule);
                self.rules
                    .finalizers_answered(&uid, answer, &mut self.cache, &mut self.out);
            }
            Purpose::Status(uid) => {
                let answer = answer.and_then(Answer::version);
                self.rules
                    .status_answered(&uid, answer, &self.cache, &mut self.out);
            }
            Purpose::Claim(name) => {
                let (cache, out) = (&mut self.cache, &mut self.out);
                self.repairs.answered(&name, answer, cache, out);
            }
            Purpose::Version(watch, asked) => {
                let version = answer.and_then(Answer::version);
                self.cache
                    .read_version(watch, asked, &version, self.out.now);
            }
            Purpose::Event => {
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
        match work.write.answered(name, result, &mut self.out) {
            None | Some(WriteEnd::ReadAgain) => return,
            Some(WriteEnd::Failed) => {}
            Some(WriteEnd::Refused(changes, why)) => {
                if let Some(state) = self.cache.node(name) {
                    let about = About::node(name, &state.node.uid);
                    let recorded_by = &mut work.recorded_by;
                    self.rules
                        .blame(&about, &changes, &why, recorded_by, &mut self.out);
                }
            }
            Some(WriteEnd::CarriedOut(done)) => {
                let (write, version, patched) = *done;
                for change in &write.changes {
                    if change.kind == ChangeKind::Added {
                        self.rules.closed(&change.rule_uid, name);
                    } else if let Some(count) = work.startups.opened(&change.rule_uid)
                        && !change.gave_up
                    {
                        self.out.count(count);
                    }
                }
                self.count(name, &patched.uid, &write);
                self.cache.patched_node(version, patched, write.taints);
            }
        }
        self.cache.mark(name);
    }

    /// Counts what a write has done, and announces the bootstraps that it completed.
    fn count(&mut self, node: &Arc<str>, uid: &Arc<str>, write: &NodeWrite) {
        for change in &write.changes {
            self.out.count(Count::Changed(Box::new(change.clone())));
        }
        for completed in &write.completed {
            self.out.count(Count::BootstrapCompleted {
                rule: completed.rule.clone(),
                since: completed.since,
                hold: completed.hold,
            });
            if completed.is_told {
                let about = About::node(node, uid);
                let took = completed
                    .since
                    .map(|since| self.out.now.wall.duration_since(since));
                let last = completed.last.as_deref();
                let notice = Notice::of_completion(about, &completed.rule, took, last);
                self.out.tell(notice);
            }
        }
    }

    fn read_again(&mut self, name: &Arc<str>, result: Result<Watched<Node>, RequestError>) {
        if let Some(work) = self.nodes.get_mut(name) {
            work.write.read_again();
        }
        if let Ok(node) = result {
            self.cache.update_node(node, self.out.now);
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
            self.cache.update_node(node, self.out.now);
        }
        self.cache.mark(name);
    }
}
