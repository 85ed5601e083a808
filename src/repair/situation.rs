//! What repair depends on besides the node: whether evidence is stale, and the health of other nodes.

use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;

use super::health::Census;

/// When a repair that too many unhealthy nodes block is evaluated again.
pub(crate) const BLOCKED_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// Provides the health of the cluster's nodes, computed once on first use.
pub trait Headcount: Debug {
    /// The health of all nodes at the time of the evaluation.
    fn census(&self) -> &Census;
}

impl Headcount for Census {
    fn census(&self) -> &Census {
        self
    }
}

/// What repair depends on besides the node.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// Whether any evidence is stale, including Karpenter's objects.
    pub is_stale: bool,
    /// Until when repair is postponed, because evidence was stale.
    pub settles_at: Option<Timestamp>,
    /// The health of the cluster's nodes.
    pub headcount: &'a dyn Headcount,
}

/// Why all repair is postponed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Postponed {
    /// Evidence is stale.
    Stale,
    /// Evidence was stale; repair resumes at this time.
    Settling(Timestamp),
}

impl Situation<'_> {
    /// Why all repair is postponed, if it is: because of stale evidence, now or recently.
    pub fn postponed(&self) -> Option<Postponed> {
        if self.is_stale {
            return Some(Postponed::Stale);
        }
        self.settles_at.map(Postponed::Settling)
    }
}
