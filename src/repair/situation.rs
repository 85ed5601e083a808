//! What a node's repair depends on besides the node: whether all is certain, and how the other nodes are doing.

use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;

use super::health::Census;

/// When a repair that too many unhealthy nodes hold back is looked at again.
pub const BLOCKED_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// Who knows how the nodes of the cluster are doing. They are counted when somebody asks for the first time, and once.
pub trait Headcount: Debug {
    /// The nodes, counted at the time for which it is judged.
    fn census(&self) -> &Census;
}

impl Headcount for Census {
    fn census(&self) -> &Census {
        self
    }
}

/// What a node's repair depends on besides the node.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// Whether anything was seen that may not be so any more, Karpenter's objects included.
    pub in_doubt: bool,
    /// Until when overdue nodes are left alone, because something could not be seen.
    pub settles_at: Option<Timestamp>,
    /// How the nodes of the cluster are doing.
    pub headcount: &'a dyn Headcount,
}

/// Why nobody at all is repaired now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Postponed {
    /// Until what is in doubt has been seen.
    InDoubt,
    /// Until this time: something could not be seen.
    Settling(Timestamp),
}

impl Situation<'_> {
    /// Why nobody at all is repaired now, if nobody is: not over what may not be so any more, nor for an outage.
    #[must_use]
    pub fn postponed(&self) -> Option<Postponed> {
        if self.in_doubt {
            return Some(Postponed::InDoubt);
        }
        self.settles_at.map(Postponed::Settling)
    }
}
