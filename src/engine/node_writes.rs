//! Writes a node's taints and annotations: picks what to write of a plan, and handles the answer.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use tracing::{debug, warn};

use super::announce::{tell_change, tell_undone};
use super::effects::{Effects, Purpose};
use super::error::RequestError;
use super::io::{Count, Hold, Request};
use super::notice::About;
use super::pacer::{Class, Contention, Refusals, Undone, WriteSlot};
use super::patch;
use super::startups::Startups;
use crate::object::{Node, Taint, Version, Watched};
use crate::plan::{ChangeKind, Decision, NodePlan, Outcome, TaintChange, TaintId, TaintPlan};
use crate::rule::ownership::Ownership;
use crate::rule::{CompiledSpec, Rule, is_foreign};

/// How many conflicts in a row are retried without a pause.
const CONFLICTS_WITHOUT_PAUSE: u32 = 5;

/// The state of one node's taint and annotation writes.
#[derive(Debug, Default)]
pub struct WriteWork {
    slot: WriteSlot<NodeWrite>,
    /// Conflicts in a row.
    conflicts: u32,
    /// What the API server refused.
    refusals: Refusals<Option<TaintId>>,
    /// Taint changes that someone else keeps undoing...
    contention: Contention<TaintId, ChangeKind>,
    /// ...and changes of annotations that change no taint.
    restored: Contention<String, ChangeKind>,
}

#[derive(Debug)]
pub struct NodeWrite {
    subject: WriteSubject,
    /// The node's taints if this succeeds; `None` if they do not change.
    pub taints: Option<Vec<Taint>>,
    pub changes: Vec<TaintChange>,
    /// The annotations that it sets or removes, if it changes nothing else.
    annotations: Vec<(String, ChangeKind)>,
    pub completed: Vec<Completed>,
}

/// What a write covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriteSubject {
    /// The whole plan, which may cover several taints.
    Several,
    /// One taint with its annotations; `None` for annotations that belong to no taint.
    One(Option<TaintId>),
}

impl WriteSubject {
    fn of(plans: &[TaintPlan]) -> Self {
        match plans {
            [plan] => Self::One(plan.taint.clone()),
            _ => Self::Several,
        }
    }
}

/// How much of a node's plan is written now.
enum Choice {
    Write(TaintPlan, WriteSubject),
    Later(Instant),
    /// Nothing: there is nothing to write, or the node has to wait for its retry.
    Nothing,
}

/// A bootstrap that a write completes.
#[derive(Debug)]
pub struct Completed {
    pub rule: Arc<str>,
    /// When both the node and the rule existed; after a reboot that gated the node again, when it rebooted.
    pub since: Option<Timestamp>,
    /// How the node was closed until then, if it was.
    pub hold: Option<Hold>,
    /// Whether an Event reports it. None does if the taint kept no pods off, or if another project's wording reports it.
    pub is_told: bool,
    /// The condition that was met last, if that is known.
    pub last: Option<Arc<str>>,
}

/// How a write ended.
#[derive(Debug)]
pub enum WriteEnd {
    /// It succeeded, and this is the node's metadata now, at this version.
    CarriedOut(Box<(NodeWrite, Version, Node)>),
    /// The node had changed; the engine waits for a new read of it.
    ReadAgain,
    /// The API server refused these changes, with this message.
    Refused(Vec<TaintChange>, String),
    /// It failed, and is retried later.
    Failed,
}

impl WriteWork {
    /// Whether a write, or the read after a conflict, is under way.
    pub fn is_under_way(&self) -> bool {
        self.slot.is_under_way()
    }

    /// Names of the rules whose changes someone keeps undoing.
    pub fn contended(&self, now: Instant) -> impl Iterator<Item = &str> {
        self.contention.contended(now)
    }

    /// Writes as much of a plan as may be written now.
    pub fn write(
        &mut self,
        node: &Node,
        mut plan: NodePlan<'_>,
        startups: &Startups,
        out: &mut Effects,
    ) {
        match self.choose(node, &mut plan, out) {
            Choice::Write(write, subject) => {
                let request = Request::PatchNode {
                    name: node.name.clone(),
                    patch: patch::node(node, &write),
                };
                self.slot.begin(NodeWrite {
                    subject,
                    completed: completed(node, &plan, &write, startups),
                    annotations: annotations(&write).collect(),
                    taints: write.taints(node),
                    changes: write.changes,
                });
                out.ask(Purpose::Node(node.name.clone()), request);
            }
            Choice::Later(at) => out.timers.wake_node(&node.name, at),
            Choice::Nothing => {}
        }
    }

    /// Chooses the whole plan if the API server has refused none of it and no one undoes it; otherwise the first taint that may
    /// be written now.
    fn choose(&mut self, node: &Node, plan: &mut NodePlan<'_>, out: &mut Effects) -> Choice {
        let now = out.now.monotonic;
        if !self.contention.is_empty() {
            let is_right = |taint: &TaintId, change| is_rightly_undone(node, plan, taint, change);
            self.contention.forget(now, is_right);
        }
        self.restored.forget(now, |_, _| false);
        if !plan.writes_node() {
            self.slot.forgive();
            self.conflicts = 0;
            self.refusals = Refusals::default();
            out.pacer.refused.forget(Class::Node, &node.name);
            return Choice::Nothing;
        }
        if let Some(at) = self.slot.not_before(now) {
            return Choice::Later(at);
        }
        let undone_until = |plan: &TaintPlan| {
            let taints = plan.changes.iter().filter_map(|change| {
                let is_taint = |taint: &TaintId| taint.is_of(change);
                self.contention.not_before(is_taint, change.kind, now)
            });
            let restored = annotations(plan)
                .filter_map(|(key, kind)| self.restored.not_before(|it| *it == key, kind, now));
            taints.chain(restored).max()
        };
        let is_plain = |plan: &TaintPlan| undone_until(plan).is_none();
        if self.refusals.is_empty() && plan.taints.iter().all(is_plain) {
            let plans = std::mem::take(&mut plan.taints);
            let subject = WriteSubject::of(&plans);
            return Choice::Write(TaintPlan::merged(plans), subject);
        }
        let taints: Vec<_> = plan.taints.iter().map(|it| it.taint.clone()).collect();
        self.refusals.retain(&taints);
        let mut later: Option<Instant> = None;
        for plan in std::mem::take(&mut plan.taints) {
            let until = self.refusals.not_before(&plan.taint, now);
            if let Some(until) = until.max(undone_until(&plan)) {
                later = later.into_iter().chain([until]).min();
                continue;
            }
            let subject = WriteSubject::One(plan.taint.clone());
            return Choice::Write(plan, subject);
        }
        later.map_or(Choice::Nothing, Choice::Later)
    }

    /// Handles the answer to the write under way.
    pub fn answered(
        &mut self,
        name: &Arc<str>,
        result: Result<Watched<Node>, RequestError>,
        out: &mut Effects,
    ) -> Option<WriteEnd> {
        let write = self.slot.take()?;
        let now = out.now.monotonic;
        let read = |answer: Watched<Node>| Ok((answer.version(), answer.read()?));
        Some(match result.and_then(read) {
            Ok((version, patched)) => {
                self.carried_out(&write, &About::node(name, &patched.uid), out);
                WriteEnd::CarriedOut(Box::new((write, version, patched)))
            }
            Err(error) if error.is_refusal() => match write.subject {
                // Which part was refused is unknown.
                WriteSubject::Several => {
                    self.refusals.split();
                    WriteEnd::Failed
                }
                WriteSubject::One(taint) => {
                    let before = self.refusals.times(&taint);
                    let retry = out.pacer.refused.refused(Class::Node, name, before, now);
                    self.refusals.ended(taint, Some(&error), retry, now);
                    out.pacer
                        .complain("cannot write the node", name, &error, now);
                    WriteEnd::Refused(write.changes, error.to_string())
                }
            },
            Err(error) => {
                let is_conflict = error == RequestError::Conflict;
                self.conflicts += u32::from(is_conflict);
                if !is_conflict || self.conflicts > CONFLICTS_WITHOUT_PAUSE {
                    // If the node is gone, its watch will say so. The pause limits retries while the watch lags.
                    self.slot.judge(Some(&error), now);
                }
                if !is_conflict {
                    return Some(WriteEnd::Failed);
                }
                debug!(node = %name, "the node has changed in the meantime; evaluating it again");
                for change in &write.changes {
                    out.count(Count::Conflicted {
                        rule: change.rule_name.as_str().into(),
                        kind: change.kind,
                    });
                }
                self.slot.begin(write);
                let request = Request::ReadNode { name: name.clone() };
                out.ask(Purpose::NodeAgain(name.clone()), request);
                WriteEnd::ReadAgain
            }
        })
    }

    /// Lets what was refused be retried at this time.
    pub fn retry_at(&mut self, at: Instant) {
        self.refusals.retry_at(at);
    }

    /// Handles the end of the read after a conflict.
    pub fn read_again(&mut self) {
        self.slot.take();
    }

    fn carried_out(&mut self, write: &NodeWrite, about: &About, out: &mut Effects) {
        let now = out.now.monotonic;
        self.slot.forgive();
        self.conflicts = 0;
        if let WriteSubject::One(taint) = &write.subject
            && self.refusals.times(taint) > 0
        {
            self.refusals.ended(taint.clone(), None, None, now);
            out.pacer
                .refused
                .went_through(Class::Node, &about.name, now);
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
        for (key, kind) in &write.annotations {
            let undone = self.restored.made(key.clone(), *kind, key, now);
            if let Some(Undone::TooOften { .. }) = undone {
                warn!(node = %about.name, annotation = key, "another client keeps undoing changes of the annotation");
            }
        }
    }
}

/// Whether a taint change was undone and no rule wants it back.
fn is_rightly_undone(
    node: &Node,
    plan: &NodePlan<'_>,
    taint: &TaintId,
    change: ChangeKind,
) -> bool {
    let is_there = node.taint(&taint.key, taint.effect).is_some();
    let is_undone = is_there != (change == ChangeKind::Added);
    let waits = |outcome: &Outcome<'_>| {
        matches!(outcome.governs(), Some(Decision::Wait(_)))
            && outcome.spec.taint.is(&taint.key, taint.effect)
    };
    is_undone
        && plan.stale.is_empty()
        && !plan.changes().any(|change| taint.is_of(change))
        && !plan.outcomes.iter().any(waits)
}

/// The annotations that a plan sets or removes, if it changes no taint.
fn annotations(plan: &TaintPlan) -> impl Iterator<Item = (String, ChangeKind)> {
    let alone = plan.annotations.iter().filter(|_| plan.changes.is_empty());
    alone.map(|(key, value)| match value {
        Some(_) => (key.clone(), ChangeKind::Added),
        None => (key.clone(), ChangeKind::Removed),
    })
}

fn completed(
    node: &Node,
    plan: &NodePlan<'_>,
    write: &TaintPlan,
    startups: &Startups,
) -> Vec<Completed> {
    let completes = |outcome: &&Outcome<'_>| write.completes.contains(&outcome.rule.uid);
    plan.outcomes
        .iter()
        .filter(completes)
        .map(|outcome| {
            let spec = outcome.spec;
            let hold = hold(node, outcome.rule, spec);
            let is_foreigns = spec.waits_for_components() && is_foreign(&spec.taint.key);
            Completed {
                rule: outcome.rule.name.clone(),
                since: outcome.rebooted.or(node.created.max(outcome.rule.created)),
                hold,
                is_told: hold.is_some() && !is_foreigns,
                last: startups.last(&outcome.rule.uid),
            }
        })
        .collect()
}

/// How a rule's taint keeps a node closed; `None` if the node lacks the taint.
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
            .nodegate("regateOn: [Reboot]");
        let booted = |boot: &str| node("n").boot_id(boot).condition("Net", "True");
        let since = |world: &crate::testing::World| {
            let plan = world.plan();
            let write = TaintPlan::merged(plan.taints.clone());
            let completed = completed(&world.node, &plan, &write, &Startups::default());
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
