//! Reports on nodes that are not ready in time. [`crate::repair`] decides what to do with them, as part of the node's plan.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use tracing::{debug, warn};

use super::cache::Cache;
use super::claims::Deletion;
use super::effects::Effects;
use super::io::Count;
use super::notice::{About, Notice};
use super::status::{Prospects, RuleStats};
use crate::api::RepairAction;
use crate::api::names::NOT_READY_IN_TIME;
use crate::object::Node;
use crate::plan::NodePlan;
use crate::repair::{BLOCKED_INTERVAL, Census, NoTtl, Remedy, Spared, Verdict};
use crate::rule::Rule;

/// What was announced about a node's repair, by rule.
#[derive(Debug, Default)]
pub struct RepairTold(Vec<Told>);

/// What was announced about it under one rule.
#[derive(Debug)]
struct Told {
    rule: Arc<str>,
    what: Message,
    at: Instant,
}

/// What to announce about a node that is not repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Message {
    /// The node is late, and the rule asks for nothing else.
    Late(String),
    /// Which annotation spares the node.
    Spared(String),
    /// Why repair is impossible.
    Impossible(String),
    /// How many nodes are unhealthy, so that repair is blocked.
    Blocked(String),
}

/// The deletion of the node's claim, if its plan asks for it.
pub(super) fn deletion(node: &Node, plan: &NodePlan<'_>) -> Option<Deletion> {
    let (claim, outcome) = plan.deletion()?;
    Some(Deletion {
        claim: claim.clone(),
        node: node.clone(),
        rule: outcome.rule.name.clone(),
        why: outcome.lateness(),
    })
}

impl RepairTold {
    /// Announces why a late node is not repaired.
    pub fn tell_of(&mut self, node: &Node, plan: &NodePlan<'_>, out: &mut Effects) {
        if plan.postponed.is_some() {
            return;
        }
        let mut messages = Vec::new();
        for outcome in plan.outcomes.iter().filter(|it| !it.is_dry_run()) {
            let rule = outcome.rule;
            let message = match (&outcome.deadline, outcome.verdict) {
                (Some(Err(why @ NoTtl::Unreadable { .. })), _) => {
                    Message::Impossible(why.to_string())
                }
                (_, Some(Verdict::Impossible(why))) => Message::Impossible(why.to_string()),
                (_, Some(Verdict::Spare(why @ Spared::DoNotRepair { .. }))) => {
                    Message::Spared(format!("{why}. {}", outcome.lateness()))
                }
                (_, Some(Verdict::Spare(why))) => {
                    debug!(node = %node.name, rule = %rule.name, %why, "not repaired");
                    continue;
                }
                (_, Some(Verdict::Repair(Remedy::Report))) => Message::Late(outcome.lateness()),
                (_, Some(Verdict::Blocked(blocked))) if outcome.only_reports() => {
                    let why = outcome.lateness();
                    Message::Late(format!(
                        "{why}. It has no condition {NOT_READY_IN_TIME}: {blocked}"
                    ))
                }
                (_, Some(Verdict::Blocked(blocked))) => Message::Blocked(blocked.to_string()),
                _ => continue,
            };
            messages.push((rule, message));
        }
        self.tell(node, &messages, out);
    }

    /// Announces what is new. A blocked repair is announced again after a while.
    fn tell(&mut self, node: &Node, messages: &[(&Rule, Message)], out: &mut Effects) {
        let now = out.now.monotonic;
        self.0
            .retain(|told| messages.iter().any(|(rule, _)| rule.uid == told.rule));
        for (rule, message) in messages {
            let is_news = |told: &Told| match (&told.what, message) {
                (Message::Blocked(_), Message::Blocked(_)) => now >= told.at + BLOCKED_INTERVAL,
                (Message::Late(_), Message::Late(_)) | (Message::Spared(_), Message::Spared(_)) => {
                    false
                }
                (before, now) => before != now,
            };
            let known = self.0.iter().position(|told| told.rule == rule.uid);
            if known.is_some_and(|known| !is_news(&self.0[known])) {
                continue;
            }
            let name = rule.name.clone();
            let about = About::node(&node.name, &node.uid);
            let notice = match message {
                Message::Late(why) => {
                    let action = RepairAction::None.as_str();
                    out.count(Count::Repaired { rule: name, action });
                    Notice::of_lateness(about, &rule.name, why)
                }
                Message::Spared(why) => Notice::of_spared_node(about, &rule.name, why),
                Message::Impossible(why) => Notice::of_impossible_repair(about, &rule.name, why),
                Message::Blocked(why) => {
                    out.count(Count::RepairBlocked { rule: name });
                    Notice::of_blocked_repair(about, &rule.name, why)
                }
            };
            warn!(node = %node.name, rule = %rule.name, "{}", notice.note);
            out.tell(notice);
            if let Some(known) = known {
                self.0.remove(known);
            }
            self.0.push(Told {
                rule: rule.uid.clone(),
                what: message.clone(),
                at: now,
            });
        }
    }
}

/// What keeps a rule from repairing any node, if anything does.
pub(super) fn obstacle(cache: &Cache, rule: &Rule) -> Option<String> {
    let repair = rule.active()?.repair.as_ref()?;
    if repair.action != RepairAction::DeleteNodeClaim {
        return None;
    }
    let unavailable = cache.karpenter().availability().err();
    unavailable.map(|why| why.to_string())
}

pub(super) fn prospects(
    cache: &Cache,
    stats: &RuleStats,
    rule: &Rule,
    now: Timestamp,
) -> Prospects {
    let mut prospects = Prospects::default();
    let repair = rule.active().filter(|spec| spec.dry_run);
    let Some(repair) = repair.and_then(|spec| spec.repair.as_ref()) else {
        return prospects;
    };
    if !stats.would_repair_any() {
        return prospects;
    }
    let karpenter = cache.karpenter();
    let nodes = cache.nodes().map(|node| (node, karpenter.pool_name(node)));
    let would_be_overdue = |node: &Node| stats.would_repair(&node.name);
    let census = Census::take(nodes, cache.cluster().rules.rules(), would_be_overdue, now);
    for node in cache.nodes().filter(|node| stats.would_repair(&node.name)) {
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
