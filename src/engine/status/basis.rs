//! Inputs of a rule's status besides its stats.

use std::sync::Arc;

use jiff::Timestamp;

use crate::api::NodeReadinessRuleStatus;
use crate::guard::Report;
use crate::plan::PassedOver;
use crate::rule::{AfterUnknown, Rule};

/// What a dry run would do about nodes that are not ready in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Prospects {
    /// Nodes that would be repaired.
    pub repaired: usize,
    /// Nodes that would not be repaired, because too many are unhealthy.
    pub blocked: usize,
}

/// Why nothing provides a condition that has our prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unmade {
    /// Nothing of that name exists.
    NoSuchThing,
    /// Earlier rules name as many components as can be watched.
    TooMany,
    /// The API server does not have the kind of object that tells.
    NotServed,
}

/// Inputs of a rule's status besides the stats.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Basis<'a> {
    pub rule: &'a Rule,
    pub passed_over: &'a [PassedOver],
    /// The rule's conditions with our prefix that nothing provides, with the reason.
    pub unmade: &'a [(Arc<str>, Unmade)],
    /// The names in the rule's `after` that hold nothing up.
    pub after_unknown: Option<&'a AfterUnknown<'a>>,
    /// The classes that the rule waits for and that have no `DaemonSet`, by name.
    pub empty_classes: &'a [&'a str],
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
