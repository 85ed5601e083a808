//! How many nodes are unhealthy, by pool: with many, the cause is probably elsewhere, and replacing nodes would make it worse.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::deadline::Deadline;
use super::karpenter::Karpenter;
use crate::api::{ConditionStatus, NodeShare, names::BOOTSTRAP_COMPLETED_PREFIX};
use crate::guard::Zone;
use crate::object::Node;
use crate::object::karpenter::{ClaimStage, INITIALIZED_LABEL};
use crate::rule::Rule;

/// When a repair that too many unhealthy nodes block is evaluated again.
pub const BLOCKED_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// The nodes that share a repair limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Group<'a> {
    Pool(&'a str),
    /// The nodes of this rule that belong to no pool.
    Rule(&'a Rule),
}

impl<'a> Group<'a> {
    pub fn of(pool: Option<&'a str>, rule: &'a Rule) -> Self {
        pool.map_or(Self::Rule(rule), Self::Pool)
    }
}

impl fmt::Display for Group<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool(name) => write!(f, "NodePool '{name}'"),
            Self::Rule(rule) => write!(f, "rule '{}'", rule.name),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupHealth {
    /// Nodes past their deadline, and nodes that have been released and are not Ready.
    pub unhealthy: usize,
    pub total: usize,
}

impl GroupHealth {
    fn add(&mut self, is_unhealthy: bool) {
        self.total += 1;
        self.unhealthy += usize::from(is_unhealthy);
    }

    /// Whether too many are unhealthy for a repair, counting the node in question.
    pub fn exceeds(self, limit: NodeShare) -> bool {
        self.unhealthy.max(1) > limit.of(self.total)
    }
}

/// The health of the cluster's nodes at one time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Census {
    pools: HashMap<String, GroupHealth>,
    rules: HashMap<Arc<str>, GroupHealth>,
    /// The nodes of each zone that join and are late, or young enough to be in time, and those of them that are late.
    zones: HashMap<Zone, (usize, usize)>,
}

/// With so many late nodes or fewer, a zone tells nothing of the cause (as in the node lifecycle controller's `ComputeZoneState`).
const FEW: usize = 2;

impl Census {
    /// Counts nodes, each with its claim and zone, under all rules. A node past its deadline is unhealthy, whichever rule gates it;
    /// one in maintenance or within its time is not, so a large scale-up does not reach the limit. One being deleted counts until
    /// it is gone: repairs in progress use up the limit. `would_be_overdue`: past the deadline of a dry run, which records none.
    pub fn take<'a>(
        nodes: impl IntoIterator<Item = (&'a Node, Karpenter<'a>, Zone)>,
        rules: &[Arc<Rule>],
        would_be_overdue: impl Fn(&Node) -> bool,
        now: Timestamp,
    ) -> Self {
        let repairing: Vec<_> = rules
            .iter()
            .filter(|rule| !rule.deleting)
            .filter_map(|rule| Some((rule, rule.active()?)))
            .filter_map(|(rule, spec)| Some((rule, spec, spec.ours.repair.as_ref()?)))
            .collect();
        let mut census = Self::default();
        for (node, karpenter, zone) in nodes {
            let (mut is_past_deadline, mut is_in_time) = (false, false);
            for (rule, spec, repair) in &repairing {
                let recorded = Deadline::recorded(node, &rule.uid);
                let Some(recorded) = recorded.filter(|_| !spec.dry_run) else {
                    continue;
                };
                is_past_deadline |= recorded.has_passed(now);
                // A kubelet can write any deadline, but no time of creation.
                let joined = node.created.max(rule.created);
                let due = joined.map(|at| Deadline::after(at, repair.readiness_ttl.as_std()));
                is_in_time |= due.is_some_and(|due| !due.has_passed(now));
            }
            if (is_past_deadline || is_in_time) && !node.is_in_maintenance() {
                let (joining, late) = census.zones.entry(zone).or_default();
                *joining += 1;
                *late += usize::from(is_past_deadline);
            }
            let is_unhealthy = !node.is_in_maintenance()
                && (has_stopped_being_ready(node, karpenter)
                    || is_past_deadline
                    || would_be_overdue(node));
            if let Some(pool) = karpenter.pool_name() {
                let count = match census.pools.get_mut(pool) {
                    Some(count) => count,
                    None => census.pools.entry(pool.to_owned()).or_default(),
                };
                count.add(is_unhealthy);
                continue;
            }
            for (rule, spec, _) in &repairing {
                if spec.selector.matches(&node.labels) {
                    let count = census.rules.entry(rule.uid.clone()).or_default();
                    count.add(is_unhealthy);
                }
            }
        }
        census
    }

    /// How many nodes join in this zone, if they are many and all of them late.
    pub(super) fn late_zone(&self, zone: &Zone) -> Option<usize> {
        let (joining, late) = self.zones.get(zone)?;
        (joining == late && *late > FEW).then_some(*late)
    }

    pub fn of(&self, group: Group<'_>) -> GroupHealth {
        let count = match group {
            Group::Pool(name) => self.pools.get(name),
            Group::Rule(rule) => self.rules.get(&rule.uid),
        };
        count.copied().unwrap_or_default()
    }
}

/// Whether a node may be past its deadline under a rule that selects it, recorded or of a dry run, which records none.
pub fn may_be_late(node: &Node, rule: &Rule, now: Timestamp) -> bool {
    rule.active().is_some_and(|spec| {
        let is_past = |deadline: Deadline| deadline.has_passed(now);
        spec.ours.repair.is_some()
            && (spec.dry_run || Deadline::recorded(node, &rule.uid).is_some_and(is_past))
    })
}

/// Whether Karpenter has initialized the node, and so counted on it for workload.
pub(super) fn is_initialized(node: &Node) -> bool {
    let value = node.labels.get(INITIALIZED_LABEL);
    value.is_some_and(|value| value == "true")
}

/// Whether some rule has released the node, in any boot, or Karpenter has initialized it, and it is not Ready now.
fn has_stopped_being_ready(node: &Node, karpenter: Karpenter<'_>) -> bool {
    let ready = node.condition("Ready");
    let is_ready = ready.is_some_and(|it| it.status == ConditionStatus::True);
    let mut completed = node.annotations_about(BOOTSTRAP_COMPLETED_PREFIX);
    let claim = karpenter.claim.ok();
    let is_claimed = claim.is_some_and(|claim| claim.stage == ClaimStage::Initialized);
    !is_ready && (is_claimed || is_initialized(node) || completed.next().is_some())
}
