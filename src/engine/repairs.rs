//! What the reconcile loop does about nodes that are not ready in time: judges them, deletes `NodeClaim`s, and tells.
//! What is to be done is decided in [`crate::repair`]; released nodes are written with the rest of their plan.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tracing::{debug, info, warn};

use super::cache::Cache;
use super::reconcile::{Done, Reconciler};
use super::status::Tally;
use crate::api::RepairAction;
use crate::controller::events::{EventSink, Notice, Tone};
use crate::controller::metrics::Metrics;
use crate::engine::Backoff;
use crate::engine::RequestError;
use crate::object::{Node, NodeClaim, NodeObject};
use crate::plan::{NodePlan, NodeState, Outcome, Standing};
use crate::repair::{Case, Census, Deadline, NoClaim, NoTtl, Remedy, Spared, Verdict};
use crate::rule::Rule;

/// When a repair that too many unhealthy nodes hold back is looked at again, and told of again.
const BLOCKED_INTERVAL: Duration = Duration::from_secs(5 * 60);
/// How many `NodeClaim`s are deleted at a time.
const CONCURRENCY: usize = 8;
/// How long a deletion waits for its turn before it asks again.
const TURN: Duration = Duration::from_millis(250);
/// What repair is called in Events.
const ACTION: &str = "RepairNode";

/// What is under way for `NodeClaim`s, and how the nodes of the cluster are doing.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    claims: HashMap<Arc<str>, ClaimWork>,
    /// Deletions under way.
    writes: usize,
    /// The last count of nodes, and the time that it is of.
    census: Option<(Timestamp, Census)>,
}

/// What is under way for one `NodeClaim`.
#[derive(Debug, Default)]
struct ClaimWork {
    /// The claim that this is about; another UID means another claim.
    uid: Arc<str>,
    /// A deletion is under way, or has been answered with success: there is nothing more to do.
    is_settled: bool,
    retry: Backoff,
}

/// What has been told about a node's repair under one rule.
#[derive(Debug)]
pub(super) struct Told {
    rule: Arc<str>,
    what: Message,
    at: Instant,
}

/// What there is to tell about a node that is not repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Message {
    /// That its time is up, and the rule asks for nothing else.
    Late(String),
    /// Why nothing can be done.
    Impossible(String),
    /// How many nodes are unhealthy.
    Blocked(String),
}

/// A node's repair by deletion of its `NodeClaim`.
#[derive(Debug)]
pub(super) struct ClaimDeletion {
    claim: NodeClaim,
    /// The node as it was judged.
    node: Node,
    rule: Arc<str>,
    /// Why, in words that stand alone.
    why: String,
}

/// What follows for a node from the verdicts on it.
#[derive(Debug, Default)]
pub(super) struct Consequences {
    /// UIDs of the rules that release the node now.
    pub(super) given_up_by: Vec<Arc<str>>,
    /// UIDs of the dry-run rules that would repair the node.
    pub(super) would_repair: Vec<Arc<str>>,
    /// The claim to delete.
    pub(super) deletion: Option<ClaimDeletion>,
    /// When to look again.
    pub(super) look_again: Option<Instant>,
    /// Whether to look again as soon as what is in doubt has been seen.
    pub(super) in_doubt: bool,
}

/// Counts all nodes, with those that would be overdue if a rule were no dry run.
fn census(cache: &Cache, would_be_overdue: impl Fn(&Node) -> bool, now: Timestamp) -> Census {
    let nodes = cache
        .nodes()
        .map(|node| (node, cache.karpenter().pool_name(node)));
    Census::take(nodes, cache.cluster().rules.rules(), would_be_overdue, now)
}

/// Where to look up how nodes are doing, and where to tell.
#[derive(Clone, Copy)]
pub(super) struct Tools<'a> {
    pub(super) cache: &'a Cache,
    pub(super) events: &'a EventSink,
    pub(super) metrics: &'a Metrics,
}

impl Repairs {
    /// Sees what follows for a node from deadlines that have passed, and tells people what is not done and why.
    pub(super) fn consequences(
        &mut self,
        tools: Tools<'_>,
        state: NodeState<'_>,
        plan: &NodePlan<'_>,
        told: &mut Vec<Told>,
        now: Timestamp,
    ) -> Consequences {
        let mut follows = Consequences::default();
        let mut messages = Vec::new();
        // Nobody is repaired over what may not be so any more, nor for an outage. What has been told stays told.
        let may_be_repaired = |outcome: &Outcome<'_>| {
            is_overdue(outcome, now) && matches!(outcome.standing, Standing::Governs(_))
        };
        if plan.outcomes.iter().any(may_be_repaired) {
            follows.in_doubt = !tools.cache.is_certain();
            follows.look_again = tools.cache.settles_at(Instant::now());
            if follows.in_doubt || follows.look_again.is_some() {
                return follows;
            }
        }
        for outcome in &plan.outcomes {
            let rule = outcome.rule;
            let verdict = match &outcome.deadline {
                None | Some(Err(NoTtl::Undecided)) => continue,
                Some(Err(unreadable)) => {
                    messages.push((rule, Message::Impossible(unreadable.to_string())));
                    continue;
                }
                Some(Ok(deadline)) => match self.judge(tools.cache, state, outcome, *deadline, now)
                {
                    Some(verdict) => verdict,
                    None => continue,
                },
            };
            let is_dry_run = matches!(outcome.standing, Standing::DryRun(_));
            match verdict {
                Verdict::Early => {}
                Verdict::Spare(Spared::NoClaim(why)) if why != NoClaim::Unseen => {
                    messages.push((rule, Message::Impossible(why.to_string())));
                }
                Verdict::Spare(why) => {
                    debug!(node = %state.node.name, rule = %rule.name, %why, "not repaired");
                }
                Verdict::Repair(Remedy::Report) => {
                    messages.push((rule, Message::Late(late(outcome))));
                }
                Verdict::Blocked(_) | Verdict::Repair(_) if is_dry_run => {
                    follows.would_repair.push(rule.uid.clone());
                }
                Verdict::Blocked(blocked) => {
                    messages.push((rule, Message::Blocked(blocked.to_string())));
                    follows.look_again = Some(Instant::now() + BLOCKED_INTERVAL);
                }
                Verdict::Repair(Remedy::Release) => follows.given_up_by.push(rule.uid.clone()),
                Verdict::Repair(Remedy::DeleteNodeClaim(claim)) => {
                    // One claim, one repair: the rule that comes first does it.
                    follows.deletion.get_or_insert_with(|| ClaimDeletion {
                        claim: claim.clone(),
                        node: state.node.clone(),
                        rule: rule.name.clone(),
                        why: late(outcome),
                    });
                }
            }
        }
        messages.retain(|(rule, _)| !rule.active().is_none_or(|spec| spec.dry_run));
        tell(tools, state.node, &messages, told);
        follows
    }

    fn judge<'a>(
        &mut self,
        cache: &Cache,
        state: NodeState<'a>,
        outcome: &Outcome<'a>,
        deadline: Deadline,
        now: Timestamp,
    ) -> Option<Verdict<'a>> {
        if !is_overdue(outcome, now) {
            return None;
        }
        if self.census.as_ref().is_none_or(|(at, _)| *at != now) {
            self.census = Some((now, census(cache, |_| false, now)));
        }
        let (_, census) = self.census.as_ref()?;
        let case = Case {
            node: state.node,
            rule: outcome.rule,
            repair: outcome.rule.active()?.repair.as_ref()?,
            deadline,
            // What a dry run would do, it would do about nodes that it had gated.
            is_gated: outcome.tainted || matches!(outcome.standing, Standing::DryRun(_)),
            karpenter: state.karpenter,
            now,
        };
        Some(case.judge(census))
    }
}

/// Whether the node's time is up under a rule that governs there, or would.
fn is_overdue(outcome: &Outcome<'_>, now: Timestamp) -> bool {
    let is_conflicted = matches!(outcome.standing, Standing::Conflicted { .. });
    matches!(&outcome.deadline, Some(Ok(deadline)) if deadline.has_passed(now)) && !is_conflicted
}

/// Tells what has not been told yet. That a repair is held back is told again after a while.
fn tell(tools: Tools<'_>, node: &Node, messages: &[(&Rule, Message)], told: &mut Vec<Told>) {
    let now = Instant::now();
    told.retain(|told| messages.iter().any(|(rule, _)| rule.uid == told.rule));
    for (rule, message) in messages {
        let is_news = |told: &Told| match (&told.what, message) {
            (Message::Blocked(_), Message::Blocked(_)) => now >= told.at + BLOCKED_INTERVAL,
            (Message::Late(_), Message::Late(_)) => false,
            (before, now) => before != now,
        };
        let known = told.iter().position(|told| told.rule == rule.uid);
        if known.is_some_and(|known| !is_news(&told[known])) {
            continue;
        }
        let (reason, note) = match message {
            Message::Late(why) => {
                let counter = &tools.metrics.repairs;
                let action = RepairAction::None.as_str();
                counter.with_label_values(&[&rule.name, action]).inc();
                (
                    "NodeNotReadyInTime",
                    format!("{why} (rule '{}')", rule.name),
                )
            }
            Message::Impossible(why) => (
                "NodeRepairImpossible",
                format!("Rule '{}' cannot repair this node: {why}", rule.name),
            ),
            Message::Blocked(why) => {
                let counter = &tools.metrics.repairs_blocked;
                counter.with_label_values(&[&rule.name]).inc();
                let note = format!("Rule '{}' does not repair this node: {why}", rule.name);
                ("NodeRepairBlocked", note)
            }
        };
        warn!(node = %node.name, rule = %rule.name, "{note}");
        let notice = Notice::on_node(&node.name, &node.uid, Tone::Warning, reason, ACTION, note);
        tools.events.send(notice);
        if let Some(known) = known {
            told.remove(known);
        }
        told.push(Told {
            rule: rule.uid.clone(),
            what: message.clone(),
            at: now,
        });
    }
}

/// That the node's time is up, and what it lacks.
fn late(outcome: &Outcome<'_>) -> String {
    let lacks: Vec<_> = outcome
        .evaluation
        .unmet()
        .map(crate::plan::ConditionResult::why)
        .collect();
    let lacks = lacks.join("; ");
    match outcome.deadline {
        Some(Ok(Deadline::At(at))) => format!("The node was to be ready by {at:.0}: {lacks}"),
        _ => lacks,
    }
}

impl Reconciler {
    /// Does what follows for a node beside the write of its plan.
    pub(super) fn follow_up(&mut self, name: &Arc<str>, follows: Consequences) {
        if follows.in_doubt {
            self.cache.withhold(name);
        }
        let turn = follows
            .deletion
            .and_then(|deletion| self.delete_claim(deletion));
        if let Some(at) = follows.look_again.into_iter().chain(turn).min()
            && let Some(work) = self.nodes.get_mut(name)
        {
            work.wake_at(at, name, &mut self.timers);
        }
    }

    /// Starts the deletion of a node's claim; answers when to look again where it has to wait for its turn.
    pub(super) fn delete_claim(&mut self, deletion: ClaimDeletion) -> Option<Instant> {
        let karpenter = self.cache.karpenter();
        let repairs = &mut self.repairs;
        repairs
            .claims
            .retain(|name, _| karpenter.claim(name).is_some());
        let claim = &deletion.claim;
        let work = repairs.claims.entry(claim.name.clone()).or_default();
        if work.uid != claim.uid {
            *work = ClaimWork {
                uid: claim.uid.clone(),
                ..ClaimWork::default()
            };
        }
        if work.is_settled {
            return None;
        }
        let now = Instant::now();
        if let Some(at) = work.retry.not_before(now) {
            return Some(at);
        }
        if repairs.writes >= self.outage.permits(CONCURRENCY, now) {
            return Some(now + TURN);
        }
        if let Some(at) = self.writer.limiter.not_before() {
            return Some(at);
        }
        work.is_settled = true;
        repairs.writes += 1;
        let writer = self.writer.clone();
        self.start(async move {
            let ClaimDeletion { claim, node, .. } = &deletion;
            let mut fresh = None;
            // What is deleted is deleted for good: this is the last look, past all caches.
            let result = match writer.read_node(&node.name).await {
                Ok(now) if now.clone().read().is_ok_and(|now| now.is_same(node)) => {
                    writer.delete_claim(claim, Timestamp::now()).await
                }
                Ok(now) => {
                    fresh = Some(now);
                    Err(RequestError::Conflict)
                }
                Err(error) => Err(error),
            };
            Done::Claim {
                deletion,
                result,
                fresh,
            }
        });
        None
    }

    /// Takes in how the deletion of a claim has ended.
    pub(super) fn finish_claim(
        &mut self,
        deletion: &ClaimDeletion,
        result: Result<(), RequestError>,
        fresh: Option<NodeObject>,
    ) {
        let ClaimDeletion {
            claim,
            node,
            rule,
            why,
        } = deletion;
        self.repairs.writes -= 1;
        if let Some(fresh) = fresh {
            self.cache.update_node(fresh, Timestamp::now());
        }
        match result {
            Ok(()) => {
                info!(node = %node.name, %rule, claim = %claim.name, why, "NodeClaim deleted");
                let action = RepairAction::DeleteNodeClaim.as_str();
                if self.cache.rules().contains_key(rule) {
                    let counter = &self.metrics.repairs;
                    counter.with_label_values(&[rule, action]).inc();
                }
                let note = format!("NodeClaim '{}' deleted by rule '{rule}'. {why}", claim.name);
                let reason = "NodeClaimDeleted";
                let notice =
                    Notice::on_node(&node.name, &node.uid, Tone::Warning, reason, ACTION, note);
                self.events.send(notice);
            }
            Err(error) => {
                let Some(work) = self.repairs.claims.get_mut(&claim.name) else {
                    return;
                };
                work.is_settled = false;
                work.retry.failed(error.pauses(), Instant::now());
                if error.is_refusal() {
                    warn!(node = %node.name, %rule, claim = %claim.name, "cannot delete the NodeClaim: {error}");
                    if self.cache.rules().contains_key(rule) {
                        let counter = &self.metrics.repair_failures;
                        counter.with_label_values(&[rule]).inc();
                    }
                }
                self.cache.mark(&node.name);
            }
        }
    }
}

/// What keeps a rule from repairing any node at all, if anything does.
pub(super) fn obstacle(cache: &Cache, rule: &Rule) -> Option<String> {
    let repair = rule.active()?.repair?;
    if repair.action != RepairAction::DeleteNodeClaim {
        return None;
    }
    match cache.karpenter().availability() {
        Err(why) => Some(why.to_string()),
        Ok(()) => None,
    }
}

/// What a dry run would do about nodes that are not ready in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prospects {
    /// Nodes that would be repaired.
    pub repaired: usize,
    /// Nodes that would not, because too many are unhealthy.
    pub blocked: usize,
}

/// What a dry run would do about nodes that are not ready in time.
pub(super) fn prospects(cache: &Cache, tally: &Tally, rule: &Rule, now: Timestamp) -> Prospects {
    let mut prospects = Prospects::default();
    let repair = rule.active().filter(|spec| spec.dry_run);
    let Some(repair) = repair.and_then(|spec| spec.repair) else {
        return prospects;
    };
    if !tally.would_repair_any() {
        return prospects;
    }
    let census = census(cache, |node| tally.would_repair(&node.name), now);
    for node in cache.nodes().filter(|node| tally.would_repair(&node.name)) {
        let group = cache.karpenter().group(node, rule);
        let count = if census.of(group).exceeds(repair.max_unhealthy) {
            &mut prospects.blocked
        } else {
            &mut prospects.repaired
        };
        *count += 1;
    }
    prospects
}
