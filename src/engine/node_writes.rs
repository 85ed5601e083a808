//! The writes of a node's taints and annotations: what of a plan is written, and what follows from how that ends.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use tracing::debug;

use super::announce::{tell_change, tell_undone};
use super::error::RequestError;
use super::io::{Count, Hold, Request};
use super::notice::About;
use super::outbox::{Outbox, Purpose};
use super::patch;
use super::startups::Startups;
use super::turns::{Backoff, Contention, Pauses, Refusals};
use crate::object::{Node, NodeMetadata, Taint};
use crate::plan::{
    self, ChangeKind, ClusterState, Decision, NodeHistory, NodePlan, NodeState, Outcome, Part,
    Standing, TaintChange, TaintId,
};
use crate::rule::ownership::Ownership;
use crate::rule::{CompiledSpec, Rule, is_foreign};

/// How often a node may change under a write before a pause is made.
const CONFLICTS_WITHOUT_PAUSE: u32 = 5;

/// What is under way for one node's taints and annotations.
#[derive(Debug, Default)]
pub struct WriteWork {
    under_way: Option<NodeWrite>,
    retry: Backoff,
    conflicts: u32,
    /// What the API server has refused.
    refusals: Refusals<Option<TaintId>>,
    /// It is the node's turn to try again what has been refused.
    has_turn: bool,
    /// What somebody else keeps undoing.
    contention: Contention<TaintId, ChangeKind>,
}

/// A write of a node's taints and annotations.
#[derive(Debug)]
pub struct NodeWrite {
    subject: WriteSubject,
    /// The taints that the node has if this succeeds, where they change.
    pub taints: Option<Vec<Taint>>,
    /// What it changes.
    pub changes: Vec<TaintChange>,
    /// The bootstraps that it completes.
    pub completed: Vec<Completed>,
}

/// What a write is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteSubject {
    /// All that there is to write, which may be more than one thing.
    Several,
    /// One taint, with what goes with it; or annotations that go with none.
    One(Option<TaintId>),
}

impl WriteSubject {
    /// What the whole plan is about.
    fn of(plan: &NodePlan<'_>) -> Self {
        match &*plan.changes {
            [change]
                if plan
                    .annotations
                    .keys()
                    .all(|key| key.ends_with(&*change.rule_uid)) =>
            {
                Self::One(Some(change.taint()))
            }
            _ => Self::Several,
        }
    }
}

/// What a plan is made of.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// What is the same for all nodes.
    pub cluster: ClusterState<'a>,
    /// What has been seen of the node.
    pub state: NodeState<'a>,
    /// What has been done about it.
    pub history: NodeHistory<'a>,
}

/// What of a node's plan is written now.
enum Choice<'a> {
    /// This much of it.
    Write(Box<NodePlan<'a>>, WriteSubject),
    /// Nothing before this time.
    Later(Instant),
    /// Nothing: there is nothing to write, or it is not the node's turn to try again.
    Nothing,
}

/// A bootstrap that a write completes.
#[derive(Debug)]
pub struct Completed {
    /// The rule's name.
    pub rule: Arc<str>,
    /// Since when both the node and the rule have been there; since the reboot, where the node is closed again for that.
    pub since: Option<Timestamp>,
    /// How the node was closed until then, if it was.
    pub hold: Option<Hold>,
    /// Whether it is told: not where nothing kept pods off, nor where another project's words tell of it.
    pub is_told: bool,
}

/// What follows from how a write has ended.
#[derive(Debug)]
pub enum WriteEnd {
    /// It has been carried out: the node's metadata are these now.
    CarriedOut(NodeWrite, NodeMetadata),
    /// The node has changed in the meantime and is read again, which is waited for.
    ReadAgain,
    /// It has been refused for the sake of these changes, in these words.
    Refused(Vec<TaintChange>, String),
    /// It is made again in its own time.
    Failed,
}

impl WriteWork {
    /// Whether a write is under way, or the read after one.
    pub fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Takes in that it is the node's turn to try again what has been refused.
    pub fn take_turn(&mut self) {
        self.has_turn = true;
    }

    /// Names of the rules whose changes somebody keeps undoing.
    pub fn contended(&self, now: Instant) -> impl Iterator<Item = &str> {
        self.contention.contended(now)
    }

    /// Writes what of a plan can be written now.
    pub fn write<'a>(
        &mut self,
        plan: NodePlan<'a>,
        known: &Known<'a>,
        startups: &Startups,
        out: &mut Outbox,
    ) {
        let node = known.state.node;
        match self.choose(plan, known, out) {
            Choice::Write(mut plan, subject) => {
                startups.put_on_record(node, &mut plan, out.now.wall);
                let request = Request::PatchNode {
                    name: node.name.clone(),
                    patch: patch::node(node, &plan),
                };
                self.under_way = Some(NodeWrite {
                    subject,
                    completed: completed(node, &plan),
                    taints: plan.taints,
                    changes: plan.changes,
                });
                out.ask(Purpose::Node(node.name.clone()), request);
            }
            Choice::Later(at) => out.timers.wake_node(&node.name, at),
            Choice::Nothing => {}
        }
    }

    /// All of the plan, as long as the API server has refused none of it and nobody undoes it; else the first part of it
    /// that nothing stands against.
    fn choose<'a>(
        &mut self,
        plan: NodePlan<'a>,
        known: &Known<'a>,
        out: &mut Outbox,
    ) -> Choice<'a> {
        let Known {
            cluster,
            state,
            history,
        } = *known;
        let (now, retries) = (out.now.monotonic, &mut out.turns.nodes);
        if !self.contention.is_empty() {
            let is_right =
                |taint: &TaintId, change| is_rightly_undone(state.node, &plan, taint, change);
            self.contention.forget(now, is_right);
        }
        if !plan.writes_node() {
            self.retry = Backoff::default();
            self.conflicts = 0;
            self.refusals = Refusals::default();
            self.has_turn = false;
            retries.forget(&state.node.name);
            return Choice::Nothing;
        }
        if let Some(at) = self.retry.not_before(now) {
            return Choice::Later(at);
        }
        let undone_until = |change: &TaintChange| {
            let is_taint = |taint: &TaintId| taint.is_of(change);
            self.contention.not_before(is_taint, change.kind, now)
        };
        let is_plain = |change: &TaintChange| {
            undone_until(change).is_none() && !retries.is_locked_out(&change.key)
        };
        if self.refusals.is_empty() && plan.changes.iter().all(is_plain) {
            let subject = WriteSubject::of(&plan);
            return Choice::Write(Box::new(plan), subject);
        }
        let parts = plan::parts(cluster, state, history, out.now.wall);
        let taints: Vec<_> = parts.iter().map(|part| part.taint.clone()).collect();
        self.refusals.retain(&taints);
        let mut later: Option<Instant> = None;
        for Part { taint, plan } in parts {
            let undone_until = plan.changes.iter().filter_map(undone_until).max();
            let until = self.refusals.not_before(&taint, now).max(undone_until);
            if let Some(until) = until {
                later = later.into_iter().chain([until]).min();
                continue;
            }
            let what = key_of(taint.as_ref());
            let times = self.refusals.times(&taint);
            let is_free = times == 0 && !retries.is_locked_out(what);
            if is_free
                || std::mem::take(&mut self.has_turn)
                || retries.turn(&state.node.name, what, times, now)
            {
                return Choice::Write(Box::new(plan), WriteSubject::One(taint));
            }
        }
        later.map_or(Choice::Nothing, Choice::Later)
    }

    /// Takes in how the write that is under way has ended.
    pub fn answered(
        &mut self,
        name: &Arc<str>,
        result: Result<NodeMetadata, RequestError>,
        out: &mut Outbox,
    ) -> Option<WriteEnd> {
        let write = self.under_way.take()?;
        let now = out.now.monotonic;
        Some(match result {
            Ok(metadata) => {
                self.carried_out(&write, &About::node(name, &metadata.uid), out);
                WriteEnd::CarriedOut(write, metadata)
            }
            Err(RequestError::Conflict) => {
                debug!(node = %name, "the node has changed in the meantime; evaluating it again");
                for change in &write.changes {
                    out.count(Count::Conflicted {
                        rule: change.rule_name.as_str().into(),
                        kind: change.kind,
                    });
                }
                self.conflicts += 1;
                if self.conflicts > CONFLICTS_WITHOUT_PAUSE {
                    self.retry.failed(Pauses::REFUSED, now);
                }
                self.under_way = Some(write);
                let request = Request::ReadNode { name: name.clone() };
                out.ask(Purpose::NodeAgain(name.clone()), request);
                WriteEnd::ReadAgain
            }
            Err(RequestError::Gone) => {
                // The watch will tell; should it lag, the pause keeps this from being asked over and over.
                self.retry.failed(Pauses::REFUSED, now);
                WriteEnd::Failed
            }
            // All wait for these together.
            Err(RequestError::Unreachable(_) | RequestError::Throttled { .. }) => WriteEnd::Failed,
            Err(error) => match write.subject {
                // Who knows for the sake of what.
                WriteSubject::Several => {
                    self.refusals.split();
                    WriteEnd::Failed
                }
                WriteSubject::One(taint) => {
                    let key = key_of(taint.as_ref()).to_owned();
                    let before = self.refusals.refused(taint, now);
                    out.turns.nodes.refused(&key, before, now);
                    out.turns
                        .complain("cannot write the node", name, &error, now);
                    WriteEnd::Refused(write.changes, error.to_string())
                }
            },
        })
    }

    /// Takes in that the node has been read again after a conflict.
    pub fn read_again(&mut self) {
        self.under_way = None;
    }

    fn carried_out(&mut self, write: &NodeWrite, about: &About, out: &mut Outbox) {
        let now = out.now.monotonic;
        self.retry = Backoff::default();
        self.conflicts = 0;
        match &write.subject {
            WriteSubject::Several => {
                for change in &write.changes {
                    out.turns.nodes.carried_out(&change.key, 0, now);
                }
            }
            WriteSubject::One(taint) => {
                let times = self.refusals.carried_out(taint);
                let key = key_of(taint.as_ref());
                out.turns.nodes.carried_out(key, times, now);
            }
        }
        for change in &write.changes {
            tell_change(about, change, out);
            let (taint, rule) = (change.taint(), &change.rule_name);
            if let Some(undone) = self.contention.made(taint, change.kind, rule, now) {
                let rule = rule.as_str().into();
                out.count(Count::Undone { rule });
                tell_undone(about, change, undone, out);
            }
        }
    }
}

/// Whether a change of a taint has been undone, and no rule wants it made again.
fn is_rightly_undone(
    node: &Node,
    plan: &NodePlan<'_>,
    taint: &TaintId,
    change: ChangeKind,
) -> bool {
    let is_there = node.taint(&taint.key, taint.effect).is_some();
    let is_undone = is_there != (change == ChangeKind::Added);
    let waits = |outcome: &Outcome<'_>| {
        let spec = outcome.rule.active();
        matches!(outcome.standing, Standing::Governs(Decision::Wait(_)))
            && spec.is_some_and(|spec| spec.taint.is(&taint.key, taint.effect))
    };
    is_undone
        && plan.look.is_empty()
        && !plan.changes.iter().any(|change| taint.is_of(change))
        && !plan.outcomes.iter().any(waits)
}

/// What is refused on node after node is known by the taint's key.
fn key_of(taint: Option<&TaintId>) -> &str {
    taint.map_or("", |taint| &taint.key)
}

/// The bootstraps that this plan completes.
fn completed(node: &Node, plan: &NodePlan<'_>) -> Vec<Completed> {
    let completes = |outcome: &&Outcome<'_>| match outcome.standing {
        // A node that is given up does not count as one that got ready.
        Standing::Governs(Decision::GiveUp) => false,
        Standing::Governs(decision) => decision.completes_bootstrap(),
        _ => false,
    };
    plan.outcomes
        .iter()
        .filter(completes)
        .map(|outcome| {
            let spec = outcome.rule.active();
            let hold = spec.and_then(|spec| hold(node, outcome.rule, spec));
            let is_foreigns =
                |spec: &CompiledSpec| spec.waits_for_components() && is_foreign(&spec.taint.key);
            Completed {
                rule: outcome.rule.name.clone(),
                since: outcome.rebooted.or(node.created.max(outcome.rule.created)),
                hold,
                is_told: hold.is_some() && !spec.is_some_and(is_foreigns),
            }
        })
        .collect()
}

/// How a rule's taint keeps a node closed, if it does.
fn hold(node: &Node, rule: &Rule, spec: &CompiledSpec) -> Option<Hold> {
    node.taint(&spec.taint.key, spec.effect)?;
    let owner = Ownership::all(node).find(|owner| *owner.rule_uid == *rule.uid);
    Some(Hold {
        since: node.tainted_since(&spec.taint.key, spec.effect),
        is_adopted: owner.is_none_or(|owner| owner.adopted),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Builder, at, node, rule, world};

    #[test]
    fn a_bootstrap_after_a_reboot_is_timed_from_the_reboot() {
        let gate = rule("r")
            .waits_for("Net")
            .bootstrap_only()
            .spec("regateOnReboot: true");
        let booted = |boot: &str| node("n").boot_id(boot).condition("Net", "True");
        let since = |world: &crate::testing::World| {
            let completed = completed(&world.node, &world.plan());
            completed.into_iter().map(|it| it.since).collect::<Vec<_>>()
        };
        let first = world(&booted("a")).rule(&gate);
        assert_eq!(since(&first), [Some(at(0))]);
        let done = r#"{"rule-name":"r","boot-id":"a"}"#;
        let again = booted("b").annotation("readiness.k8s.io/bootstrap-completed-r-uid", done);
        let again = first.sees(&again, at(5000)).now(at(6000));
        assert_eq!(since(&again), [Some(at(5000))]);
    }
}
