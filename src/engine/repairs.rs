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
use crate::plan::{NodePlan, Outcome};
use crate::repair::{BLOCKED_INTERVAL, Census, Deadline, NoClaim, NoTtl, Remedy, Spared, Verdict};
use crate::rule::Rule;

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

/// Where to tell.
#[derive(Clone, Copy)]
pub(super) struct Tools<'a> {
    pub(super) events: &'a EventSink,
    pub(super) metrics: &'a Metrics,
}

/// Tells people what is not done about a node whose time is up, and why.
pub(super) fn tell_of_repair(
    tools: Tools<'_>,
    node: &Node,
    plan: &NodePlan<'_>,
    told: &mut Vec<Told>,
) {
    if plan.postponed.is_some() {
        return;
    }
    let mut messages = Vec::new();
    for outcome in plan.outcomes.iter().filter(|it| !it.is_dry_run()) {
        let rule = outcome.rule;
        let message = match (&outcome.deadline, outcome.verdict) {
            (Some(Err(why @ NoTtl::Unreadable { .. })), _) => Message::Impossible(why.to_string()),
            (_, Some(Verdict::Spare(Spared::NoClaim(why)))) if why != NoClaim::Unseen => {
                Message::Impossible(why.to_string())
            }
            (_, Some(Verdict::Spare(why))) => {
                debug!(node = %node.name, rule = %rule.name, %why, "not repaired");
                continue;
            }
            (_, Some(Verdict::Repair(Remedy::Report))) => Message::Late(late(outcome)),
            (_, Some(Verdict::Blocked(blocked))) => Message::Blocked(blocked.to_string()),
            _ => continue,
        };
        messages.push((rule, message));
    }
    tell(tools, node, &messages, told);
}

/// The deletion of the node's claim, if its plan asks for that.
pub(super) fn deletion(node: &Node, plan: &NodePlan<'_>) -> Option<ClaimDeletion> {
    let (claim, outcome) = plan.deletion()?;
    Some(ClaimDeletion {
        claim: claim.clone(),
        node: node.clone(),
        rule: outcome.rule.name.clone(),
        why: late(outcome),
    })
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
    let karpenter = cache.karpenter();
    let nodes = cache.nodes().map(|node| (node, karpenter.pool_name(node)));
    let would_be_overdue = |node: &Node| tally.would_repair(&node.name);
    let census = Census::take(nodes, cache.cluster().rules.rules(), would_be_overdue, now);
    for node in cache.nodes().filter(|node| tally.would_repair(&node.name)) {
        let group = karpenter.group(node, rule);
        let count = if census.of(group).exceeds(repair.max_unhealthy) {
            &mut prospects.blocked
        } else {
            &mut prospects.repaired
        };
        *count += 1;
    }
    prospects
}
