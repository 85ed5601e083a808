//! What goes into a rule's status besides what it does on each node.

use std::sync::Arc;

use jiff::Timestamp;

use crate::api::NodeReadinessRuleStatus;
use crate::guard::Report;
use crate::plan::PassedOver;
use crate::rule::Rule;

/// What a dry run would do about nodes that are not ready in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prospects {
    /// Nodes that would be repaired.
    pub repaired: usize,
    /// Nodes that would not, because too many are unhealthy.
    pub blocked: usize,
}

/// Why nothing makes a condition whose prefix is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmade {
    /// There is nothing of that name.
    NoSuchThing,
    /// Earlier rules name as many `DaemonSet`s as are watched.
    TooMany,
}

/// What goes into a rule's status besides the stats.
#[derive(Debug, Clone, Copy)]
pub struct Basis<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// The labelled `DaemonSet`s that the rule does not wait for.
    pub passed_over: &'a [PassedOver],
    /// The conditions of the rule that nothing makes, though their prefix is ours, with why.
    pub unmade: &'a [(Arc<str>, Unmade)],
    /// The classes that the rule waits for and no `DaemonSet` is of, by name.
    pub empty_classes: &'a [&'a str],
    /// What the rule would do about nodes that are not ready in time, if it is a dry run.
    pub prospects: Prospects,
    /// What keeps the rule from repairing any node at all.
    pub obstacle: Option<&'a str>,
    /// How the zones of the rule's nodes do, where it has a disruption guard.
    pub disruption: Option<&'a Report>,
    /// The rules that come before this one on any node that both select.
    pub governors: &'a [Arc<str>],
    /// How many nodes each list may name.
    pub node_limit: usize,
    /// The status that was written last, from which times are kept where nothing else changed.
    pub previous: &'a NodeReadinessRuleStatus,
    /// The time for what did change.
    pub now: Timestamp,
}

/// The API writes times in whole seconds, so that is what is compared.
pub(super) fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
