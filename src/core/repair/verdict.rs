//! The verdict on a late node that a rule still holds. Every reason to leave it alone comes before the remedy.

use jiff::{SignedDuration, Timestamp};

use super::health::{Census, Group, GroupHealth, is_initialized};
use super::karpenter::{Karpenter, NoClaim};
use super::setback::Futile;
use crate::api::{NodeShare, Repair, RepairAction, Setback};
use crate::guard::Zone;
use crate::object::{Node, NodeClaim, karpenter::ClaimStage};
use crate::rule::Rule;
use crate::text::counted;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict<'a> {
    Spare(Spared),
    Blocked(Blocked<'a>),
    Impossible(NoClaim<'a>),
    /// Its claim is deleted, so that a new node replaces it.
    DeleteNodeClaim(&'a NodeClaim),
    Release,
    Report,
}

/// Why a late node is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Spared {
    #[error("{0}")]
    Because(&'static str),
    #[error("annotation {key} on {on} forbids it")]
    DoNotRepair { key: &'static str, on: &'static str },
    #[error("its NodeClaim is being deleted")]
    ClaimDeleting,
    /// Its claim may forbid repair.
    #[error("NodeClaims have not been seen yet")]
    ClaimUnseen,
}

/// Why a late node is probably not to blame.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Blocked<'a> {
    #[error(
        "{unhealthy} of {total} nodes of {0} are past their readiness TTL or not Ready any more, and maxUnhealthy {2} allows {allowed}",
        unhealthy = .1.unhealthy,
        total = .1.total,
        allowed = .2.of(.1.total)
    )]
    Unhealthy(Group<'a>, GroupHealth, NodeShare),
    #[error("all {0} nodes that join in its zone are late: the cause is not the node")]
    Zone(usize),
    #[error("{replacements} of {0} {1}", replacements = counted(.1.missed, "replacement"))]
    Futile(Group<'a>, Futile<'a>),
}

impl Blocked<'_> {
    /// When it ends at the earliest, if that is known.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Futile(_, futile) => futile.until,
            Self::Unhealthy(..) | Self::Zone(_) => None,
        }
    }
}

/// What repairs before tell of a late node: the condition that it lacks, and the last repair in its pool.
#[derive(Debug, Clone, Copy)]
pub struct Before<'a> {
    pub lacks: &'a str,
    pub setback: Option<&'a Setback>,
    pub now: Timestamp,
}

/// What to do with a node of this zone that is past its deadline under a rule with this `repair`. `is_held`: the node has the
/// rule's taint.
pub fn judge<'a>(
    (node, zone): (&'a Node, &Zone),
    (rule, repair): (&'a Rule, &Repair),
    is_held: bool,
    karpenter: Karpenter<'a>,
    census: &Census,
    before: Before<'a>,
) -> Verdict<'a> {
    if let Some(spared) = spared(node, rule, is_held, karpenter) {
        return Verdict::Spare(spared);
    }
    let group = Group::of(karpenter.pool_name(), rule);
    let (count, limit) = (census.of(group), repair.max_unhealthy);
    if count.exceeds(limit) {
        return Verdict::Blocked(Blocked::Unhealthy(group, count, limit));
    }
    match (repair.action, karpenter.claim) {
        (RepairAction::None, _) => Verdict::Report,
        (RepairAction::Release, _) => Verdict::Release,
        (RepairAction::DeleteNodeClaim, Err(why)) => Verdict::Impossible(why),
        (RepairAction::DeleteNodeClaim, Ok(claim)) => {
            if let Some(late) = census.late_zone(zone) {
                return Verdict::Blocked(Blocked::Zone(late));
            }
            let (of, ttl) = ((node, karpenter.pool), repair.readiness_ttl.as_std());
            let ttl = SignedDuration::try_from(ttl).unwrap_or(SignedDuration::MAX);
            let futile = before.setback;
            let futile = futile.and_then(|it| it.blocks(of, before.lacks, ttl, before.now));
            match futile {
                Some(futile) => Verdict::Blocked(Blocked::Futile(group, futile)),
                None => Verdict::DeleteNodeClaim(claim),
            }
        }
    }
}

const INITIALIZED: &str = "Karpenter has initialized the node";

/// Why the node is left alone, whatever the rule's action.
fn spared(node: &Node, rule: &Rule, is_held: bool, karpenter: Karpenter<'_>) -> Option<Spared> {
    let claim = karpenter.claim.ok();
    let stage = claim.map_or(ClaimStage::Starting, |claim| claim.stage);
    let forbidding = [
        (node.do_not_repair, "the node"),
        (claim.and_then(|it| it.do_not_repair), "its NodeClaim"),
        (
            karpenter.pool.and_then(|it| it.do_not_repair),
            "its NodePool",
        ),
    ];
    let forbids = forbidding
        .into_iter()
        .find_map(|(key, on)| Some((key?, on)));
    let because = Spared::Because;
    Some(match (forbids, stage) {
        _ if node.deleting => because("the node is being deleted"),
        // It is not broken, and will return.
        _ if node.is_in_maintenance() => because("the node is in maintenance"),
        // The node may run workload, or may have run some since.
        _ if !is_held => because("the node does not have the rule's taint"),
        _ if has_been_released(node, rule) => because("this rule has released the node before"),
        _ if is_initialized(node) => because(INITIALIZED),
        (_, ClaimStage::Initialized) => because(INITIALIZED),
        (Some((key, on)), _) => Spared::DoNotRepair { key, on },
        _ if karpenter.claim == Err(NoClaim::Unseen) => Spared::ClaimUnseen,
        (None, ClaimStage::Deleting) => Spared::ClaimDeleting,
        (None, ClaimStage::Rebooting) => because("Karpenter is rebooting the node"),
        (None, ClaimStage::Starting) => return None,
    })
}

/// Whether a bootstrap under this rule is on record, in any boot, or the rule leaves the node alone because it is older.
pub fn has_been_released(node: &Node, rule: &Rule) -> bool {
    let mut keys = rule.completion_keys.iter();
    rule.leaves_alone(node.created) || keys.any(|key| node.annotation(key).is_some())
}
