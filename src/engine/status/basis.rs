//! Inputs of a rule's status besides its stats.

use std::sync::Arc;

use jiff::Timestamp;

use crate::api::NodeReadinessRuleStatus;
use crate::guard::Report;
use crate::plan::Backing;
use crate::rule::Rule;

/// What a dry run would do about nodes that are not ready in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Prospects {
    /// Nodes that would be repaired.
    pub repaired: usize,
    /// Nodes that would not be repaired, because too many are unhealthy.
    pub blocked: usize,
}

/// Inputs of a rule's status besides the stats.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Basis<'a> {
    pub rule: &'a Rule,
    /// Whether all rules are suspended.
    pub suspends_all: bool,
    /// What stands behind the rule's conditions.
    pub backing: &'a Backing,
    pub prospects: Prospects,
    /// What keeps the rule from repairing any node.
    pub obstacle: Option<&'a str>,
    /// The report of the rule's disruption guard, if it has one.
    pub disruption: Option<&'a Report>,
    /// The rules that govern nodes that this rule selects as well.
    pub governors: &'a [Arc<str>],
    pub node_limit: usize,
    /// The status that was last written. Unchanged entries keep its times.
    pub previous: &'a NodeReadinessRuleStatus,
    /// The time of changed entries.
    pub now: Timestamp,
}

/// The API writes times in whole seconds, so those are compared.
pub(super) fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
