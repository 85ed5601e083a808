//! Taints that are put on or lifted.

use std::fmt;

use jiff::Timestamp;

use crate::api::TaintEffect;

/// A taint that is put on or lifted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaintChange {
    /// Put on or lifted.
    pub kind: ChangeKind,
    /// Name of the rule in whose name this is done.
    pub rule_name: String,
    /// UID of that rule.
    pub rule_uid: String,
    /// Key of the taint.
    pub key: String,
    /// Effect of the taint.
    pub effect: TaintEffect,
    /// When the latest of the rule's conditions changed, by its reporter's clock.
    pub transition: Option<Timestamp>,
    /// Why, in words that stand alone.
    pub why: String,
    /// Whether the rule waited for critical components, which are ready now.
    pub components_ready: bool,
    /// Whether the node's time was up, and its conditions are not met.
    pub gave_up: bool,
}

impl TaintChange {
    /// The taint that is put on or lifted.
    #[must_use]
    pub fn taint(&self) -> TaintId {
        TaintId {
            key: self.key.clone(),
            effect: self.effect,
        }
    }
}

/// What happens to a taint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is put on.
    Added,
    /// It is lifted.
    Removed,
}

/// A taint by what tells it from others on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaintId {
    /// The taint's key.
    pub key: String,
    /// The taint's effect.
    pub effect: TaintEffect,
}

impl TaintId {
    /// Whether this is the taint that is changed.
    #[must_use]
    pub fn is_of(&self, change: &TaintChange) -> bool {
        self.key == change.key && self.effect == change.effect
    }
}

impl fmt::Display for TaintId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.key, self.effect)
    }
}
