//! Repairs late nodes as their plans ask, and reports on those that are not repaired.
//!
//! A `NodeClaim`'s deletion cannot be undone, so the node is read again first, past all caches, and node and claim must be exactly
//! those that were evaluated. Karpenter's finalizer keeps a deleted claim for as long as its node is drained: only then Karpenter
//! is told not to wait for pods, so that no claim says so which is not being deleted.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tracing::{debug, info, warn};

use super::attempt::Attempt;
use super::cache::Cache;
use super::count::RuleCount;
use super::error::RequestError;
use super::io::{Answer, Object, Request};
use super::map::Map;
use super::notice::{self, Notice};
use super::outbox::{Job, Outbox};
use super::pacer::Class;
use super::patch;
use super::schedule::Why;
use super::status::Tally;
use nodegate_core::api::{RepairAction, names::NOT_READY_IN_TIME};
use nodegate_core::object::{Kept, Node, NodeClaim};
use nodegate_core::plan::{NodePlan, Outcome};
use nodegate_core::repair::{Census, Group, NoClaim, NoTtl, Spared, Verdict};
use nodegate_core::rule::Rule;

/// How long a deletion that found no free slot waits before it tries again.
const TURN: Duration = Duration::from_millis(250);

/// The repairs of nodes by deleting their `NodeClaim`s, by the claim's name.
#[derive(Debug, Default)]
pub(super) struct Repairs(Map<Arc<str>, ClaimRepair>);

#[derive(Debug, Default)]
struct ClaimRepair {
    uid: Arc<str>,
    attempt: Attempt,
    under_way: Option<(Deletion, Step)>,
    is_done: bool,
}

/// The deletion of a claim under a rule, with its node as it was evaluated.
#[derive(Debug, Clone)]
pub(super) struct Deletion {
    pub claim: Kept<NodeClaim>,
    pub rule: Arc<str>,
    pub node: Node,
    /// The first condition that the node lacked.
    pub lacked: Arc<str>,
    /// When its last step was asked for: what comes later may be the node's successor, whenever the answer came.
    pub at: Timestamp,
    /// Why, as a complete sentence.
    why: String,
}

/// The request that a deletion waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Read,
    Delete,
    /// The patch that tells Karpenter not to wait for the node's pods.
    Hurry,
}

impl Repairs {
    /// Starts the deletion of a node's claim, if the plan asks for it. If it has to wait, the node is evaluated again then.
    pub(super) fn begin(
        &mut self,
        node: &Node,
        plan: &NodePlan<'_>,
        cache: &Cache,
        out: &mut Outbox,
    ) {
        let Some((claim, outcome)) = plan.deletion() else {
            return;
        };
        let Some(claim) = cache.claims.get(&claim.name) else {
            return;
        };
        self.0
            .retain(|name, work| work.under_way.is_some() || cache.claims.get(name).is_some());
        let work = self.0.entry(claim.name.clone()).or_default();
        if work.under_way.is_some() {
            return;
        }
        if work.uid != claim.uid {
            *work = ClaimRepair {
                uid: claim.uid.clone(),
                ..ClaimRepair::default()
            };
        }
        if work.is_done {
            return;
        }
        let now = out.now.monotonic;
        let mut later = work.attempt.backoff.not_before(now);
        if later.is_none() && !out.pacer.may_begin(Class::Claim, now) {
            later = out.pacer.not_before(Class::Claim, now).or(Some(now + TURN));
        }
        if let Some(at) = later {
            return out.evaluate_again(at, Why::Retry);
        }
        let lacked = outcome.unmet().next();
        let deletion = Deletion {
            claim: claim.clone(),
            rule: outcome.rule.name.clone(),
            node: node.clone(),
            lacked: lacked.map_or_else(Arc::default, |it| it.requirement.kind.clone()),
            at: out.now.wall,
            why: outcome.lateness(),
        };
        work.under_way = Some((deletion, Step::Read));
        let read = Request::ReadNode(node.name.clone());
        out.ask(Job::Claim(claim.name.clone()), read);
    }

    /// Handles the answer to a step of a claim's deletion, and takes the next one, but for during shutdown. If the deletion failed
    /// or was given up, the node is evaluated again. Returns the deletion if this step has, or may have, carried it out.
    pub(super) fn answered(
        &mut self,
        name: &Arc<str>,
        answer: Result<Answer, RequestError>,
        is_stopping: bool,
        cache: &mut Cache,
        out: &mut Outbox,
    ) -> Option<Deletion> {
        let work = self.0.get_mut(name)?;
        let (mut deletion, step) = work.under_way.take()?;
        let mut done = None;
        let claim = &deletion.claim;
        let (step, request) = match (step, answer) {
            (Step::Read, _) if is_stopping => return None,
            (Step::Hurry, Ok(Answer::NodeClaim(shown))) => {
                cache.apply_answer(Object::NodeClaim(*shown), out.now);
                return None;
            }
            (Step::Hurry, answer) => {
                // The claim is being deleted all the same, and may be gone.
                debug!(claim = %name, ?answer, "Karpenter may wait for the node's pods");
                return None;
            }
            (Step::Read, Ok(Answer::Node(read))) => {
                let is_confirmed = deletion.is_confirmed_by(read.clone().read().ok(), cache);
                cache.apply_answer(Object::Node(*read), out.now);
                if !is_confirmed {
                    work.attempt
                        .ended(Some(&RequestError::Conflict), out.now.monotonic);
                    cache.schedule.mark(&deletion.node.name, Why::Answered);
                    return None;
                }
                let delete = Request::DeleteNodeClaim {
                    name: name.clone(),
                    uid: claim.uid.clone(),
                    version: claim.version(),
                };
                (Step::Delete, delete)
            }
            (_, Ok(_)) => {
                work.is_done = true;
                deletion.tell(out);
                done = Some(deletion.clone());
                let patch = patch::claim_termination(claim, out.now.wall);
                let Some(patch) = patch.filter(|_| !is_stopping) else {
                    return done;
                };
                let name = name.clone();
                (Step::Hurry, Request::PatchNodeClaim(name, patch))
            }
            (step, Err(error)) => {
                work.attempt.ended(Some(&error), out.now.monotonic);
                deletion.tell_failure(&error, out);
                cache.schedule.mark(&deletion.node.name, Why::Answered);
                // One that counts twice, or was not carried out, only makes the next wait longer.
                let may_be_done = step == Step::Delete && error.may_be_done();
                return may_be_done.then_some(deletion);
            }
        };
        deletion.at = out.now.wall;
        work.under_way = Some((deletion, step));
        out.ask(Job::Claim(name.clone()), request);
        done
    }
}

impl Deletion {
    /// Whether a read of the node shows it as it was evaluated, and its rule is still in force.
    fn is_confirmed_by(&self, read: Option<Node>, cache: &Cache) -> bool {
        // The condition that it is late may have come on meanwhile.
        let evaluated = |mut node: Node| {
            node.conditions.retain(|it| it.kind != NOT_READY_IN_TIME);
            node
        };
        let rule = cache.rules.all.get(&self.rule).map(|it| &it.rule);
        rule.is_some_and(|rule| rule.live().is_some() && !rule.is_suspended())
            && read.map(evaluated) == Some(evaluated(self.node.clone()))
    }

    fn tell(&self, out: &mut Outbox) {
        let (claim, node) = (&self.claim.name, &self.node);
        let (rule, why) = (&self.rule, &self.why);
        info!(node = %node.name, %rule, %claim, why, "NodeClaim deleted");
        let action = RepairAction::DeleteNodeClaim.as_str();
        out.count_for(rule.clone(), RuleCount::Repaired(action));
        let note = format!("NodeClaim '{claim}' deleted by rule '{rule}'. {why}");
        out.tell(Notice::on_node(node, &notice::CLAIM_DELETED, note));
    }

    fn tell_failure(&self, error: &RequestError, out: &mut Outbox) {
        let (node, claim, rule) = (&self.node.name, &self.claim.name, &self.rule);
        if error.is_refusal() {
            warn!(%node, %rule, %claim, "cannot delete the NodeClaim: {error}");
            out.count_for(rule.clone(), RuleCount::RepairFailed);
        } else {
            debug!(%node, %error, "evaluating the node again before its NodeClaim is deleted");
        }
    }
}

/// An announcement is made again when it is another, and one that repair is impossible also for another reason.
pub(super) fn words(notice: &Notice) -> (&'static str, Option<&str>) {
    let is_impossible = notice.topic == &notice::REPAIR_IMPOSSIBLE;
    (notice.topic.reason, is_impossible.then_some(&*notice.note))
}

pub(super) fn tell(rule: &Arc<str>, notice: Notice, out: &mut Outbox) {
    warn!(node = %notice.about.name, %rule, "{}", notice.note);
    if notice.topic == &notice::LATE {
        let action = RepairAction::None.as_str();
        out.count_for(rule.clone(), RuleCount::Repaired(action));
    } else if notice.topic == &notice::REPAIR_BLOCKED {
        out.count_for(rule.clone(), RuleCount::RepairBlocked);
    }
    out.tell(notice);
}

/// What to announce about a node that its rule does not repair.
pub(super) fn notice(node: &Node, outcome: &Outcome<'_>) -> Option<Notice> {
    let rule = &outcome.rule.name;
    let late = || outcome.lateness();
    let impossible = |why: &dyn Display| {
        let note = format!("Rule '{rule}' cannot repair this node: {why}");
        (&notice::REPAIR_IMPOSSIBLE, note)
    };
    let (topic, note) = match (&outcome.deadline, outcome.verdict) {
        _ if outcome.is_dry_run() => return None,
        (Some(Err(why @ NoTtl::Unreadable { .. })), _) => impossible(why),
        (_, Some(Verdict::Impossible(why))) => impossible(&why),
        (_, Some(Verdict::Spare(why @ Spared::DoNotRepair { .. }))) => (
            &notice::REPAIR_SPARED,
            format!("Rule '{rule}' does not repair this node: {why}. {}", late()),
        ),
        (_, Some(Verdict::Spare(why))) => {
            debug!(node = %node.name, %rule, %why, "not repaired");
            return None;
        }
        (_, Some(Verdict::Report)) => (&notice::LATE, format!("{} (rule '{rule}')", late())),
        (_, Some(Verdict::Blocked(blocked))) if outcome.only_reports() => (
            &notice::LATE,
            format!(
                "{} (rule '{rule}'). It has no condition {NOT_READY_IN_TIME}: {blocked}",
                late()
            ),
        ),
        (_, Some(Verdict::Blocked(blocked))) => (
            &notice::REPAIR_BLOCKED,
            format!("Rule '{rule}' does not repair this node: {blocked}"),
        ),
        (_, None | Some(Verdict::DeleteNodeClaim(_) | Verdict::Release)) => return None,
    };
    Some(Notice::on_node(node, topic, note))
}

/// What keeps a rule from repairing any node, if anything does.
pub(super) fn obstacle(cache: &Cache, rule: &Rule) -> Option<String> {
    let repair = rule.active()?.ours.repair.as_ref()?;
    let deletes = repair.action == RepairAction::DeleteNodeClaim;
    let why = cache.no_claims().filter(|_| deletes)?;
    // That passes by itself.
    (why != NoClaim::Unseen).then(|| why.to_string())
}

/// How many late nodes a dry run would repair, and how many it would not, because too many are unhealthy.
pub(super) fn prospects(
    cache: &Cache,
    tally: &Tally<'_>,
    rule: &Rule,
    now: Timestamp,
) -> (usize, usize) {
    let repair = rule.active().filter(|spec| spec.dry_run);
    let Some(repair) = repair.and_then(|spec| spec.ours.repair.as_ref()) else {
        return (0, 0);
    };
    let late: BTreeSet<_> = tally.would_repair().collect();
    if late.is_empty() {
        return (0, 0);
    }
    let would_be_overdue = |node: &Node| late.contains(&node.name);
    let census = Census::take(
        cache.placed(),
        cache.cluster().rules.rules(),
        would_be_overdue,
        now,
    );
    let late = cache.placed().filter(|it| late.contains(&it.0.name));
    let groups = late.map(|(_, karpenter, _)| Group::of(karpenter.pool_name(), rule));
    let is_blocked = |group: &Group<'_>| census.of(*group).exceeds(repair.max_unhealthy);
    let (blocked, repaired): (Vec<_>, Vec<_>) = groups.partition(is_blocked);
    (repaired.len(), blocked.len())
}
