//! Writes the nodes' `NodeReadinessEvaluation`s: creates, updates and deletes them, behind everything else. What each says follows
//! from the node's plan (see [`crate::plan`]). While anything that it is made of is stale, nothing is written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cache::Cache;
use super::conditions::NodeQueue;
use super::effects::{Effects, Purpose};
use super::error::RequestError;
use super::io::{Answer, EvaluationWrite, Request};
use super::map::Map;
use super::pacer::{AfterWrite, Class, WriteSlot};
use super::patch;
use crate::api::{NodeReadinessEvaluation, NodeReadinessEvaluationStatus};
use crate::object::{Evaluation, EvaluationObject, Node};
use crate::plan::{ClusterState, NodePlan, Outcome, evaluate_node};

/// How long a difference lasts before it is written: what changes in between is written with it.
const SETTLING: Duration = Duration::from_secs(1);
/// How often at most an evaluation is written only because someone else has overwritten or deleted it.
const HEAL_INTERVAL: Duration = Duration::from_secs(10);

/// The name under which refusals on all nodes are counted.
const EVALUATIONS: &str = "evaluations";

/// What is written next.
#[derive(Debug)]
enum Step {
    /// Create the object, still without a status.
    Create,
    /// Replace its status.
    Update(Arc<NodeReadinessEvaluationStatus>),
    /// Delete the object with this UID.
    Delete(Arc<str>),
}

/// The state of one node's evaluation.
#[derive(Debug, Default)]
struct Work {
    /// The node's UID.
    uid: Arc<str>,
    /// What it is to say; `None` if there is to be none.
    wanted: Option<Arc<NodeReadinessEvaluationStatus>>,
    queued: bool,
    slot: WriteSlot<Step>,
    /// Since when the object has differed from that.
    differs_since: Option<Instant>,
    /// The last status that was written, and when.
    written: Option<(Instant, Arc<NodeReadinessEvaluationStatus>)>,
    /// The UID of the object that was deleted. The watch may still show it.
    deleted: Option<Arc<str>>,
}

/// The evaluations of all nodes.
#[derive(Debug, Default)]
pub(super) struct Evaluations {
    works: Map<Arc<str>, Work>,
    queue: NodeQueue,
}

impl Evaluations {
    /// Takes in what the rules make of a node. While that is uncertain, changes nothing and returns false: then nothing may be
    /// written.
    pub(super) fn evaluate(
        &mut self,
        node: &Node,
        plan: &NodePlan<'_>,
        cache: &Cache,
        out: &Effects,
    ) -> bool {
        if node.deleting || !cache.knows_evaluations() || !is_settled(plan, cache.cluster()) {
            return false;
        }
        let work = self.works.entry(node.name.clone()).or_default();
        work.is_about(node);
        let held = cache.evaluation(&node.name);
        let held = held.filter(|held| held.is_of(node));
        let held = held.and_then(|held| held.status.as_ref());
        let known = work.wanted.as_deref().or(held);
        let wanted = evaluate_node(node, &plan.outcomes, known, out.now.wall);
        if work.wanted.as_deref() != wanted.as_ref() {
            work.wanted = wanted.map(Arc::new);
        }
        true
    }

    /// Makes the next write of a node's evaluation, if one is due and the limits allow it now; otherwise schedules that.
    pub(super) fn write(&mut self, node: &Node, cache: &Cache, is_busy: bool, out: &mut Effects) {
        let Some(work) = self.works.get_mut(&node.name) else {
            return;
        };
        if work.queued || work.slot.is_under_way() {
            return;
        }
        let now = out.now.monotonic;
        let Some(step) = work.step(node, cache.evaluation(&node.name)) else {
            work.differs_since = None;
            return;
        };
        let due = work.due(now);
        if due > now {
            out.timers.wake_node(&node.name, due);
            return;
        }
        if !out.pacer.may_publish(Class::Evaluation, is_busy, now) {
            work.queued = true;
            self.queue.last(node.name.clone());
            return;
        }
        let retries = &mut out.pacer.evaluations;
        if !retries.turn(&node.name, EVALUATIONS, work.slot.refusals(), now) {
            // The retry queue wakes the node.
            work.queued = true;
            return;
        }
        let name = node.name.clone();
        let write = match &step {
            Step::Create => {
                let object = NodeReadinessEvaluation::of_node(&name, &node.uid);
                EvaluationWrite::Create(Box::new(object))
            }
            Step::Update(status) => {
                let held = cache.evaluation(&name).map(|held| &*held.uid);
                let patch = patch::evaluation_status(held.unwrap_or_default(), status);
                EvaluationWrite::Update(patch)
            }
            Step::Delete(uid) => EvaluationWrite::Delete(uid.clone()),
        };
        work.slot.begin(step);
        let purpose = Purpose::Evaluation(name.clone());
        out.ask(purpose, Request::WriteEvaluation { name, write });
    }

    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Takes the next node whose evaluation waits to be written.
    pub(super) fn next(&mut self) -> Option<Arc<str>> {
        let name = self.queue.next()?;
        if let Some(work) = self.works.get_mut(&name) {
            work.queued = false;
        }
        Some(name)
    }

    /// Puts a node in front: it may retry a refused write now.
    pub(super) fn first(&mut self, name: Arc<str>) {
        self.queue.first(name);
    }

    /// Handles the answer to a write; returns the evaluation as it is now, if the answer says so. The caller evaluates the node
    /// again.
    pub(super) fn answered(
        &mut self,
        name: &Arc<str>,
        answer: Result<Answer, RequestError>,
        out: &mut Effects,
    ) -> Option<EvaluationObject> {
        let work = self.works.get_mut(name)?;
        let now = out.now.monotonic;
        let refusals = work.slot.refusals();
        let (step, verdict) = work.slot.ended(answer.as_ref().err(), now)?;
        let retries = &mut out.pacer.evaluations;
        match (verdict, &answer) {
            (AfterWrite::Done, _) => {
                retries.carried_out(name, EVALUATIONS, refusals, now);
                match step {
                    Step::Create => {}
                    Step::Update(status) => {
                        work.differs_since = None;
                        work.written = Some((now, status));
                    }
                    Step::Delete(uid) => {
                        work.written = None;
                        work.deleted = Some(uid);
                    }
                }
            }
            (AfterWrite::Refused { before, .. }, Err(error)) => {
                retries.refused(name, EVALUATIONS, before, now);
                out.pacer
                    .complain("cannot write the evaluation", name, error, now);
            }
            _ => retries.failed(name),
        }
        match answer {
            Ok(Answer::Evaluation(object)) => Some(*object),
            _ => None,
        }
    }

    /// Forgets a node that is gone: the garbage collector deletes its evaluation. A write under way may end first.
    pub(super) fn forget(&mut self, name: &str) {
        let works = &mut self.works;
        if works.get(name).is_some_and(|it| !it.slot.is_under_way()) {
            works.remove(name);
        }
    }
}

/// Whether everything that the rules depend on has been seen, and needs no live read.
fn is_settled(plan: &NodePlan<'_>, cluster: ClusterState<'_>) -> bool {
    let is_seen = |outcome: &Outcome<'_>| {
        let spec = outcome.rule.active();
        !outcome.evaluation.is_to_be_seen() && !spec.is_some_and(|spec| cluster.is_to_be_seen(spec))
    };
    plan.live_read.is_empty() && plan.outcomes.iter().all(is_seen)
}

impl Work {
    /// Resets the state if this is another node of the same name. A write under way stays in the slot until it ends.
    fn is_about(&mut self, node: &Node) {
        if self.uid != node.uid {
            self.uid = node.uid.clone();
            self.wanted = None;
            self.differs_since = None;
            self.written = None;
        }
    }

    /// What to write, given the object; `None` if nothing. An object that this node does not own is replaced.
    fn step(&self, node: &Node, held: Option<&Evaluation>) -> Option<Step> {
        let held = held.filter(|held| Some(&held.uid) != self.deleted.as_ref());
        match (&self.wanted, held) {
            (_, Some(held)) if held.deleting => None,
            (Some(wanted), Some(held)) if held.is_of(node) => {
                let is_said = held.status.as_ref() == Some(wanted);
                (!is_said).then(|| Step::Update(wanted.clone()))
            }
            (_, Some(held)) => Some(Step::Delete(held.uid.clone())),
            (Some(_), None) => Some(Step::Create),
            (None, None) => None,
        }
    }

    /// When to make the next write.
    fn due(&mut self, now: Instant) -> Instant {
        let settled = *self.differs_since.get_or_insert(now) + SETTLING;
        let written = self.written.as_ref();
        let healed = written.filter(|(_, said)| Some(said) == self.wanted.as_ref());
        let healed = healed.map(|(at, _)| *at + HEAL_INTERVAL);
        [healed, self.slot.not_before(now)]
            .into_iter()
            .flatten()
            .fold(settled, Instant::max)
    }
}
