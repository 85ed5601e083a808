//! The verdict on a node that a rule still gates: every reason to leave it alone comes before the remedy.

use std::fmt;

use jiff::Timestamp;

use super::deadline::Deadline;
use super::health::{Census, Group, GroupHealth, is_initialized};
use super::karpenter::{Karpenter, NoClaim, pool_name};
use crate::api::names::BOOTSTRAP_COMPLETED_PREFIX;
use crate::api::{MaxUnhealthy, Repair, RepairAction};
use crate::object::karpenter::Stage;
use crate::object::{Node, NodeClaim};
use crate::rule::Rule;

/// A node that a rule gates, with all that matters for its repair.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The node.
    pub node: &'a Node,
    /// The rule that gates it.
    pub rule: &'a Rule,
    /// What the rule says about repair.
    pub repair: &'a Repair,
    /// When the node's time is up.
    pub deadline: Deadline,
    /// Whether the node has the rule's taint now.
    pub is_gated: bool,
    /// What Karpenter has to say about the node.
    pub karpenter: Karpenter<'a>,
    /// The time for which to judge.
    pub now: Timestamp,
}

/// What is to be done about a node now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict<'a> {
    /// Its time is not up.
    Early,
    /// Its time is up, and it is left alone.
    Spare(Spared<'a>),
    /// Its time is up, and so many others are unhealthy that the nodes can hardly be to blame.
    Blocked(Blocked<'a>),
    /// Its time is up, and this is done about it.
    Repair(Remedy<'a>),
}

/// Why a node is left alone, whatever its deadline says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Spared<'a> {
    /// The node is on its way out.
    #[error("the node is being deleted")]
    NodeDeleting,
    /// The node is not broken, and will be back.
    #[error("the node is in maintenance")]
    Maintenance,
    /// The node may run workload: nothing keeps it off.
    #[error("the node does not have the rule's taint")]
    NotGated,
    /// The node may run workload from then.
    #[error("the node has been open under this rule before")]
    HasBeenOpen,
    /// The node may run workload: Karpenter has handed it over.
    #[error("Karpenter has initialized the node")]
    Initialized,
    /// Somebody does not want it.
    #[error("annotation karpenter.sh/do-not-repair forbids it")]
    DoNotRepair,
    /// The claim is on its way out.
    #[error("its NodeClaim is being deleted")]
    ClaimDeleting,
    /// The node will come back.
    #[error("Karpenter is rebooting the node")]
    Rebooting,
    /// There is nothing that could be deleted.
    #[error(transparent)]
    NoClaim(NoClaim<'a>),
}

/// The limit that holds repair back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Blocked<'a> {
    /// The nodes that were counted.
    pub group: Group<'a>,
    /// How they are doing.
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
            "{} of {} nodes of {group} are past their readiness TTL or not Ready any more, and maxUnhealthy {limit} \
             allows {}",
            count.unhealthy,
            count.total,
            limit.of(count.total),
        )
    }
}

/// What is done about a node whose time is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy<'a> {
    /// Its claim is deleted, so that a new node takes its place.
    DeleteNodeClaim(&'a NodeClaim),
    /// It is opened although its conditions are not met.
    Release,
    /// It is told.
    Report,
}

impl Remedy<'_> {
    /// The action of the rule that this carries out.
    #[must_use]
    pub fn action(self) -> RepairAction {
        match self {
            Self::DeleteNodeClaim(_) => RepairAction::DeleteNodeClaim,
            Self::Release => RepairAction::Release,
            Self::Report => RepairAction::None,
        }
    }
}

impl<'a> Case<'a> {
    /// The nodes among which unhealthy ones are counted: those of the node's pool, else those of the rule.
    #[must_use]
    pub fn group(&self) -> Group<'a> {
        Group::of(pool_name(self.node, self.karpenter.claim().ok()), self.rule)
    }

    /// Why the node is left alone whatever the rule asks for, if it is.
    #[must_use]
    pub fn spared(&self) -> Option<Spared<'a>> {
        let claim = self.karpenter.claim().ok();
        let is_at = |stage: Stage| claim.is_some_and(|claim| claim.stage == stage);
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
        if is_initialized(self.node) || is_at(Stage::Initialized) {
            return Some(Spared::Initialized);
        }
        if self.node.do_not_repair || claim.is_some_and(|claim| claim.do_not_repair) {
            return Some(Spared::DoNotRepair);
        }
        match claim?.stage {
            Stage::Deleting => Some(Spared::ClaimDeleting),
            Stage::Rebooting => Some(Spared::Rebooting),
            Stage::Starting | Stage::Initialized => None,
        }
    }

    /// What is to be done about the node now.
    #[must_use]
    pub fn judge(&self, census: &Census) -> Verdict<'a> {
        if !self.deadline.has_passed(self.now) {
            return Verdict::Early;
        }
        if let Some(spared) = self.spared() {
            return Verdict::Spare(spared);
        }
        let remedy = match self.repair.action {
            RepairAction::None => return Verdict::Repair(Remedy::Report),
            RepairAction::Release if self.karpenter == Karpenter::Unseen => {
                return Verdict::Spare(Spared::NoClaim(NoClaim::Unseen));
            }
            RepairAction::Release => Remedy::Release,
            RepairAction::DeleteNodeClaim => match self.karpenter.claim() {
                Ok(claim) => Remedy::DeleteNodeClaim(claim),
                Err(why) => return Verdict::Spare(Spared::NoClaim(why)),
            },
        };
        let (group, limit) = (self.group(), self.repair.max_unhealthy);
        let count = census.of(group);
        if count.exceeds(limit) {
            return Verdict::Blocked(Blocked {
                group,
                count,
                limit,
            });
        }
        Verdict::Repair(remedy)
    }
}

/// Whether a completed bootstrap under this rule is on record, by UID or by name, whichever boot it was in; or the rule has
/// left the node alone, which was there before it.
#[must_use]
pub fn has_been_open(node: &Node, rule: &Rule) -> bool {
    let mut on_record = [&rule.uid, &rule.name].into_iter();
    rule.leaves_alone(node.created)
        || on_record.any(|id| {
            node.annotation_about(BOOTSTRAP_COMPLETED_PREFIX, id)
                .is_some()
        })
}
