//! The verdict on a node that a rule still gates. Every reason to leave it alone comes before the remedy.

use std::fmt;

use jiff::Timestamp;

use super::deadline::Deadline;
use super::health::{Census, Group, GroupHealth, is_initialized};
use super::karpenter::{Karpenter, NoClaim, pool_name};
use crate::api::{MaxUnhealthy, Repair, RepairAction};
use crate::object::karpenter::ClaimStage;
use crate::object::{Node, NodeClaim};
use crate::rule::Rule;

/// A node that a rule gates, with everything that matters for its repair.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The node.
    pub node: &'a Node,
    /// The rule that gates it.
    pub rule: &'a Rule,
    /// The rule's `repair`.
    pub repair: &'a Repair,
    /// The node's readiness deadline.
    pub deadline: Deadline,
    /// Whether the node has the rule's taint now.
    pub is_gated: bool,
    /// What Karpenter's objects say about the node.
    pub karpenter: Karpenter<'a>,
    /// The time of the evaluation.
    pub now: Timestamp,
}

/// What to do with a node now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict<'a> {
    /// It is not late.
    Early,
    /// It is late, and left alone.
    Spare(Spared<'a>),
    /// It is late, but so many others are unhealthy that the cause is probably elsewhere.
    Blocked(Blocked<'a>),
    /// It is late, and has no claim to delete.
    Impossible(NoClaim<'a>),
    /// It is late, and this is done.
    Repair(Remedy<'a>),
}

/// Why a late node is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Spared<'a> {
    /// The node is being deleted.
    #[error("the node is being deleted")]
    NodeDeleting,
    /// The node is not broken, and will return.
    #[error("the node is in maintenance")]
    Maintenance,
    /// The node may run workload: the taint is absent.
    #[error("the node does not have the rule's taint")]
    NotGated,
    /// The node may have run workload since.
    #[error("the node has been open under this rule before")]
    HasBeenOpen,
    /// The node may run workload: Karpenter has initialized it.
    #[error("Karpenter has initialized the node")]
    Initialized,
    /// An annotation forbids repair.
    #[error("annotation {key} on {on} forbids it")]
    DoNotRepair {
        /// The annotation.
        key: &'static str,
        /// The object that has it.
        on: Annotated<'a>,
    },
    /// The claim is being deleted.
    #[error("its NodeClaim is being deleted")]
    ClaimDeleting,
    /// The node will return from a reboot.
    #[error("Karpenter is rebooting the node")]
    Rebooting,
    /// Its claim may forbid repair.
    #[error("NodeClaims have not been seen yet")]
    ClaimUnseen,
}

/// An object whose annotation forbids the repair of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Annotated<'a> {
    /// The node itself.
    Node,
    /// The node's claim, of this name.
    NodeClaim(&'a str),
    /// The node's pool, of this name.
    NodePool(&'a str),
}

impl fmt::Display for Annotated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node => f.write_str("the node"),
            Self::NodeClaim(name) => write!(f, "NodeClaim '{name}'"),
            Self::NodePool(name) => write!(f, "NodePool '{name}'"),
        }
    }
}

/// The limit that blocks a repair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Blocked<'a> {
    /// The nodes that share the limit.
    pub group: Group<'a>,
    /// Their health.
    pub count: GroupHealth,
    /// The rule's limit.
    pub limit: MaxUnhealthy,
}

impl fmt::Display for Blocked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            group,
            count,
            limit,
        } = self;
        write!(
            f,
            "{} of {} nodes of {group} are past their readiness TTL or not Ready any more, and maxUnhealthy {limit} allows {}",
            count.unhealthy,
            count.total,
            limit.of(count.total),
        )
    }
}

/// What is done with a late node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy<'a> {
    /// Its claim is deleted, so that a new node replaces it.
    DeleteNodeClaim(&'a NodeClaim),
    /// It is released with unmet conditions.
    Release,
    /// It is only reported.
    Report,
}

impl<'a> Case<'a> {
    /// The nodes that share the repair limit: those of the node's pool, else those of the rule.
    pub fn group(&self) -> Group<'a> {
        Group::of(pool_name(self.node, self.karpenter.claim().ok()), self.rule)
    }

    /// Why the node is left alone, whatever the rule's action.
    pub fn spared(&self) -> Option<Spared<'a>> {
        let claim = self.karpenter.claim().ok();
        let is_at = |stage: ClaimStage| claim.is_some_and(|claim| claim.stage == stage);
        if self.node.deleting {
            return Some(Spared::NodeDeleting);
        }
        if self.node.is_in_maintenance() {
            return Some(Spared::Maintenance);
        }
        if !self.is_gated {
            return Some(Spared::NotGated);
        }
        if has_been_open(self.node, self.rule) {
            return Some(Spared::HasBeenOpen);
        }
        if is_initialized(self.node) || is_at(ClaimStage::Initialized) {
            return Some(Spared::Initialized);
        }
        if let Some(forbidden) = self.forbidden() {
            return Some(forbidden);
        }
        if self.karpenter == Karpenter::Unseen {
            return Some(Spared::ClaimUnseen);
        }
        match claim?.stage {
            ClaimStage::Deleting => Some(Spared::ClaimDeleting),
            ClaimStage::Rebooting => Some(Spared::Rebooting),
            ClaimStage::Starting | ClaimStage::Initialized => None,
        }
    }

    /// The annotation that forbids repair, if the node, its claim or its pool has one.
    fn forbidden(&self) -> Option<Spared<'a>> {
        let claim = self.karpenter.claim().ok();
        let pool = self.karpenter.pool();
        let on_node = self.node.do_not_repair.map(|key| (key, Annotated::Node));
        let on_claim =
            || claim.and_then(|it| Some((it.do_not_repair?, Annotated::NodeClaim(&it.name))));
        let on_pool =
            || pool.and_then(|it| Some((it.do_not_repair?, Annotated::NodePool(&it.name))));
        let (key, on) = on_node.or_else(on_claim).or_else(on_pool)?;
        Some(Spared::DoNotRepair { key, on })
    }

    /// What to do with the node now.
    pub fn judge(&self, census: &Census) -> Verdict<'a> {
        if !self.deadline.has_passed(self.now) {
            return Verdict::Early;
        }
        if let Some(spared) = self.spared() {
            return Verdict::Spare(spared);
        }
        let (group, limit) = (self.group(), self.repair.max_unhealthy);
        let count = census.of(group);
        if count.exceeds(limit) {
            return Verdict::Blocked(Blocked {
                group,
                count,
                limit,
            });
        }
        match self.repair.action {
            RepairAction::None => Verdict::Repair(Remedy::Report),
            RepairAction::Release => Verdict::Repair(Remedy::Release),
            RepairAction::DeleteNodeClaim => match self.karpenter.claim() {
                Ok(claim) => Verdict::Repair(Remedy::DeleteNodeClaim(claim)),
                Err(why) => Verdict::Impossible(why),
            },
        }
    }
}

/// Whether a completed bootstrap under this rule is on record, by UID or name, in any boot; or the rule leaves the node alone
/// because it is older.
pub(crate) fn has_been_open(node: &Node, rule: &Rule) -> bool {
    let mut keys = rule.completion_keys.iter();
    rule.leaves_alone(node.created) || keys.any(|key| node.annotation(key).is_some())
}
