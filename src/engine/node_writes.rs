//! Writes a node's taints and annotations: picks what to write of a plan, and handles the answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tracing::{debug, warn};

use super::announce::{opposition, tell_change, tell_undone};
use super::attempt::{Attempt, Change, Part, Parts};
use super::count::{Count, Hold, RuleCount};
use super::error::RequestError;
use super::io::{Now, Request};
use super::notice::{self, About, Notice};
use super::outbox::{Job, Outbox};
use super::pacer::Class;
use super::patch;
use super::schedule::Why;
use super::startups::{self, Startups};
use nodegate_core::api::Pause;
use nodegate_core::object::{Node, ObjectKey, Taint, Version, Watched, whole_second};
use nodegate_core::plan::{ChangeKind, Decision, NodePlan, Outcome, TaintChange, TaintPlan};
use nodegate_core::rule::{CompiledSpec, Rule, is_foreign, ownership::Ownership};

/// After more refusals than this that decide nothing (a failure, or no answer), a taint is changed without its records.
const FEW: u32 = 2;
/// After this many refusals of its records (about ten seconds), a deleted rule no longer waits for them.
const GIVEN_UP: u32 = 8;
/// A node whose last write took longer than this leaves a quarter of the room to others.
const SLOW: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub struct WriteWork {
    attempt: Attempt,
    began: Option<Instant>,
    is_slow: bool,
    /// The write under way; `None` also while the node is read after a conflict.
    write: Option<Box<NodeWrite>>,
    /// Whether the plan was refused for an unknown part. Then each is written alone: others go through, and the refused one shows.
    is_split: bool,
    /// The taints that are changed without their records, because the API server refused both together, and the records that it
    /// refused alone. Records are hints: whoever may annotate the node may leave no room for them.
    bare: Vec<Part>,
    pub(super) parts: Parts,
}

#[derive(Debug)]
pub struct NodeWrite {
    /// The only part that it writes; `None` if there may be several.
    part: Option<Part>,
    pub plan: TaintPlan,
    /// The node's taints if this succeeds; `None` if they do not change.
    pub taints: Option<Vec<Taint>>,
    /// The bootstraps that it completes, each with its Event: none if the taint kept no pods off, or another project's Event tells.
    pub completed: Vec<(Count, Option<Notice>)>,
}

#[derive(Debug)]
pub enum WriteEnd {
    /// It succeeded, and this is the node's metadata now, at this version.
    CarriedOut(Box<NodeWrite>, Version, Box<Node>),
    /// The node is evaluated again, as it was read after a conflict; `None` if it was not read.
    Again(Option<Box<Watched<Node>>>),
    /// The API server refused these changes, with this message.
    Refused(Vec<TaintChange>, String),
}

impl WriteWork {
    /// Whether a write, or the read after a conflict, is under way.
    pub fn is_under_way(&self) -> bool {
        self.attempt.under_way
    }

    /// Whether these are records alone, and the API server keeps refusing them.
    pub fn has_given_up(&self, plan: &TaintPlan) -> bool {
        plan.changes.is_empty() && self.parts.refusals(&records_of(plan)) >= GIVEN_UP
    }

    /// Forgets what does not matter to this plan any more. `runs` tells whether a `DaemonSet` has a Ready pod on the node.
    pub fn settle(
        &mut self,
        node: &Node,
        plan: &NodePlan<'_>,
        runs: impl Fn(&ObjectKey) -> bool,
        now: Instant,
    ) {
        let is_part = |part: &Part, it| part_of(it) == *part || records_of(it) == *part;
        let is_wanted = |part: &Part| plan.taints.iter().any(|it| is_part(part, it));
        let is_right = |part: &Part, change| match part {
            Part::Gating(_, daemon_set) => runs(daemon_set),
            part => is_rightly_undone(node, plan, part, change),
        };
        self.parts.forget(is_wanted, is_right, now);
    }

    /// What keeps this rule from changing the node for now. The node is evaluated again when that may be over.
    pub fn pause(&self, node: &str, rule: &str, out: &mut Outbox) -> Option<Pause> {
        let (wall, now) = (out.now.wall, out.now.monotonic);
        let mut contended = self.parts.contended(now);
        let (_, part, attempt) = contended.find(|it| it.0 == rule)?;
        let (reason, message) = opposition(part, attempt.last?.0)?;
        out.evaluate_again(attempt.stands_by()?, Why::Due);
        let until = attempt.backoff.not_before(now).map(|at| at - now);
        let until = until.and_then(|pause| wall.checked_add(pause).ok());
        Some(Pause {
            node_name: node.to_owned(),
            reason,
            message,
            until: until.map(|at| Time(whole_second(at))),
        })
    }

    /// Writes as much of a plan as may be written now.
    pub fn write(
        &mut self,
        node: &Node,
        mut plan: NodePlan<'_>,
        startups: &Startups,
        out: &mut Outbox,
    ) {
        let now = out.now.monotonic;
        self.is_split &= plan.taints.len() > 1;
        if plan.taints.is_empty() {
            self.bare.clear();
            out.pacer.refused.forget(Class::Node, &node.name);
            return;
        }
        let begun = out.pacer.under_way(Class::Node);
        let is_full = self.is_slow && begun * 4 >= out.pacer.at_a_time() * 3;
        let waits = is_full.then(|| now + SLOW);
        let chosen = match self.attempt.backoff.not_before(now).max(waits) {
            Some(at) => Err(at),
            None => self.choose(std::mem::take(&mut plan.taints), now),
        };
        let (part, write) = match chosen {
            Ok(chosen) => chosen,
            Err(at) => return out.evaluate_again(at, Why::Retry),
        };
        let request = Request::PatchNode(node.name.clone(), patch::node(node, &write));
        self.attempt.under_way = true;
        self.began = Some(now);
        self.write = Some(Box::new(NodeWrite {
            part,
            completed: completed(node, &plan, &write, startups, out.now),
            taints: write.taints(node),
            plan: write,
        }));
        out.ask(Job::WriteNode(node.name.clone()), request);
    }

    /// Chooses the whole plan if none of it is refused or undone, else the first part that may be written now; or when one may.
    fn choose(
        &self,
        mut plans: Vec<TaintPlan>,
        now: Instant,
    ) -> Result<(Option<Part>, TaintPlan), Instant> {
        for plan in plans.iter_mut().filter(|it| can_be_bare(it)) {
            if self.bare.contains(&part_of(plan)) || self.bare.contains(&records_of(plan)) {
                plan.annotations.clear();
                plan.completes.clear();
            }
        }
        let not_before = |plan: &TaintPlan| {
            let refused = self.parts.refused_until(&part_of(plan), now);
            let contended =
                changes(plan).map(|(part, change, _)| self.parts.not_before(&part, change, now));
            contended.fold(refused, Option::max)
        };
        if !self.is_split
            && !self.parts.are_refused()
            && plans.iter().all(|plan| not_before(plan).is_none())
        {
            let part = (plans.len() == 1).then(|| part_of(&plans[0]));
            return Ok((part, TaintPlan::merged(plans)));
        }
        let plans = plans.into_iter().map(|plan| (not_before(&plan), plan));
        match plans.min_by_key(|(at, _)| *at) {
            Some((None, plan)) => Ok((Some(part_of(&plan)), plan)),
            first => Err(first.and_then(|(at, _)| at).unwrap_or(now)),
        }
    }

    /// Handles the answer to the request under way; `None` if another one follows.
    pub fn answered(
        &mut self,
        name: &Arc<str>,
        result: Result<Watched<Node>, RequestError>,
        out: &mut Outbox,
    ) -> Option<WriteEnd> {
        let now = out.now.monotonic;
        self.attempt.under_way = false;
        self.is_slow = self.began.is_some_and(|began| now - began > SLOW);
        let Some(write) = self.write.take() else {
            return Some(WriteEnd::Again(result.ok().map(Box::new)));
        };
        let read = |answer: Watched<Node>| Ok((answer.version(), answer.read()?));
        let error = match result.and_then(read) {
            Ok((version, patched)) => {
                self.carried_out(&write, &About::node(name, &patched.uid), out);
                return Some(WriteEnd::CarriedOut(write, version, Box::new(patched)));
            }
            Err(error) => error,
        };
        if error.is_refusal() {
            let Some(part) = write.part else {
                self.is_split = true;
                return Some(WriteEnd::Again(None));
            };
            let attempt = self.parts.get_mut(&part);
            out.pacer
                .ended(Class::Node, name, attempt, Some(&error), now);
            let is_decided = matches!(error, RequestError::Failed(_)) || attempt.refusals > FEW;
            if is_decided && !write.plan.annotations.is_empty() && !self.bare.contains(&part) {
                self.bare.push(part);
                if can_be_bare(&write.plan) && attempt.refusals == 1 {
                    attempt.backoff.retry_at(now);
                    return Some(WriteEnd::Again(None));
                }
            }
            return Some(WriteEnd::Refused(write.plan.changes, error.to_string()));
        }
        // If the node is gone, its watch will say so. The pause limits retries while the watch lags.
        self.attempt.ended(Some(&error), now);
        if error != RequestError::Conflict {
            return Some(WriteEnd::Again(None));
        }
        debug!(node = %name, "the node has changed in the meantime; evaluating it again");
        for change in &write.plan.changes {
            out.count_for(&*change.rule_name, RuleCount::Conflicted(change.kind));
        }
        self.attempt.under_way = true;
        let request = Request::ReadNode(name.clone());
        out.ask(Job::WriteNode(name.clone()), request);
        None
    }

    fn carried_out(&mut self, write: &NodeWrite, about: &About, out: &mut Outbox) {
        let now = out.now.monotonic;
        self.attempt.ended(None, now);
        self.bare.retain(|it| Some(it) != write.part.as_ref());
        if let Some(part) = &write.part
            && self.parts.refusals(part) > 0
        {
            let attempt = self.parts.get_mut(part);
            out.pacer
                .ended(Class::Node, &about.name, attempt, None, now);
        }
        for change in &write.plan.changes {
            tell_change(about, change, out);
        }
        for (part, made, change) in changes(&write.plan) {
            let rule = change.map_or("", |it| &it.rule_name);
            let Some(undone) = self.parts.get_mut(&part).made(made, rule, now) else {
                continue;
            };
            if matches!(part, Part::Taint(_)) {
                out.count_for(rule, RuleCount::Undone);
            }
            match opposition(&part, made) {
                _ if !undone.is_news() => {}
                Some((_, why)) => tell_undone(about, rule, &why, undone, out),
                None => {
                    warn!(node = %about.name, ?part, "another client keeps undoing changes of the annotation");
                }
            }
        }
    }
}

/// The part of a node's writes that is refused with this plan.
fn part_of(plan: &TaintPlan) -> Part {
    let taint = plan.taint.clone().filter(|_| !plan.changes.is_empty());
    taint.map_or_else(|| records_of(plan), Part::Taint)
}

fn records_of(plan: &TaintPlan) -> Part {
    Part::Records(plan.taint.clone())
}

/// Whether a plan's taint can change without its records. Only a record tells of giving up: without it, the node is gated again.
fn can_be_bare(plan: &TaintPlan) -> bool {
    !plan.changes.is_empty() && !plan.changes.iter().any(|change| change.gave_up)
}

/// What a plan does to each taint, and for lack of which component; if it changes none, to each annotation.
fn changes(plan: &TaintPlan) -> impl Iterator<Item = (Part, Change, Option<&TaintChange>)> {
    let taints = plan.changes.iter().map(|change| {
        let is_added = change.kind == ChangeKind::Added;
        (
            Part::Taint(change.taint.to_string()),
            is_added,
            Some(change),
        )
    });
    let gatings = plan.changes.iter().filter_map(|change| {
        let part = Part::Gating(change.taint.to_string(), change.missing.clone()?);
        Some((part, true, Some(change)))
    });
    let alone = plan.annotations.iter().filter(|_| plan.changes.is_empty());
    let annotations =
        alone.map(|(key, value)| (Part::Annotation(key.clone()), value.is_some(), None));
    taints
        .chain(gatings)
        .chain(annotations)
        .map(|(part, is_added, change)| (part, is_added.then_some(0), change))
}

/// Whether a change was undone and no rule wants it back.
fn is_rightly_undone(node: &Node, plan: &NodePlan<'_>, part: &Part, change: Change) -> bool {
    let (is_there, is_wanted) = match part {
        Part::Taint(taint) => {
            let is_it = |it: &Taint| it.to_string() == *taint;
            let waits = |outcome: &Outcome<'_>| {
                matches!(outcome.governs(), Some(Decision::Wait(_))) && is_it(&outcome.spec.taint)
            };
            let is_wanted = plan.changes().any(|change| is_it(&change.taint))
                || plan.outcomes.iter().any(waits);
            (node.taints.iter().any(is_it), is_wanted)
        }
        Part::Annotation(key) => {
            let mut annotations = plan.taints.iter().map(|it| &it.annotations);
            (
                node.annotation(key).is_some(),
                annotations.any(|it| it.contains_key(key)),
            )
        }
        Part::Records(_) | Part::Condition(_) | Part::Gating(..) => return false,
    };
    is_there != change.is_some() && plan.stale.is_empty() && !is_wanted
}

fn completed(
    node: &Node,
    plan: &NodePlan<'_>,
    write: &TaintPlan,
    startups: &Startups,
    now: Now,
) -> Vec<(Count, Option<Notice>)> {
    let completes = |outcome: &&Outcome<'_>| write.completes.contains(&outcome.rule.uid);
    let completed = plan.outcomes.iter().filter(completes).map(|outcome| {
        let Outcome { rule, spec, .. } = *outcome;
        let hold = hold(node, rule, spec);
        // When both the node and the rule existed; after a reboot that gated the node again, when it rebooted.
        let since = outcome.rebooted.or(node.created.max(rule.created));
        let is_foreigns = spec.waits_for_components() && is_foreign(&spec.taint.key);
        let notice = (hold.is_some() && !is_foreigns).then(|| {
            let took = since.map(|since| now.wall.duration_since(since).as_secs().max(0));
            let end = startups::written(took, startups.last(&rule.uid).as_deref());
            let note = format!(
                "Bootstrap of this node completed under rule '{}'{end}",
                rule.name
            );
            Notice::on_node(node, &notice::BOOTSTRAP_COMPLETED, note)
        });
        let count = RuleCount::BootstrapCompleted { since, hold };
        (Count::Rule(rule.name.clone(), count), notice)
    });
    completed.collect()
}

/// How a rule's taint holds a node; `None` if the node lacks the taint.
fn hold(node: &Node, rule: &Rule, spec: &CompiledSpec) -> Option<Hold> {
    node.taint(&spec.taint.key, spec.effect)?;
    let owner = Ownership::all(node).find(|owner| *owner.rule_uid == *rule.uid);
    Some(Hold {
        since: node.tainted_since(&spec.taint.key, spec.effect, None),
        is_adopted: owner.is_none_or(|owner| owner.adopted),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{GATE, World, at, node, rule, world};

    /// The bootstraps that the node's plan completes, each with its Event.
    fn completed_in(world: &World) -> Vec<(Count, Option<Notice>)> {
        let plan = world.plan();
        let write = TaintPlan::merged(plan.taints.clone());
        let now = Now {
            wall: at(6000),
            monotonic: Instant::now(),
        };
        completed(&world.node, &plan, &write, &Startups::default(), now)
    }

    #[test]
    fn a_completed_bootstrap_is_told_of_where_no_other_event_tells_of_it() {
        const COMPONENTS: &str = "node.gardener.cloud/CriticalComponentsReady";
        const FOREIGN: &str = "node.gardener.cloud/critical-components-not-ready";
        for (asks, key, is_told) in [
            ("Net", GATE, true),
            ("Net", FOREIGN, true),
            (COMPONENTS, GATE, true),
            (COMPONENTS, FOREIGN, false),
        ] {
            let gate = rule("r").waits_for(asks).taint(key, "NoSchedule");
            let gate = gate.bootstrap_only().remove_only();
            let held = node("n").condition("Net", "True").taint(key, "NoSchedule");
            let completed = completed_in(&world(&held).rule(&gate));
            let told: Vec<bool> = completed.iter().map(|it| it.1.is_some()).collect();
            assert_eq!(told, [is_told], "{asks} {key}");
        }
    }
}
