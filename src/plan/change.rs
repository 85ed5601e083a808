//! Taint changes.

use std::fmt;

use jiff::Timestamp;

use crate::api::TaintEffect;

/// A taint that is added or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaintChange {
    /// Added or removed.
    pub kind: ChangeKind,
    /// Name of the rule that changes it.
    pub rule_name: String,
    /// UID of that rule.
    pub rule_uid: String,
    /// Key of the taint.
    pub key: String,
    /// Effect of the taint.
    pub effect: TaintEffect,
    /// When the latest of the rule's conditions changed, by its reporter's clock.
    pub transition: Option<Timestamp>,
    /// Why, as a complete sentence.
    pub why: String,
    /// Whether the rule waited for critical components, which are now ready.
    pub components_ready: bool,
    /// Whether the node was not ready in time, so that the taint is removed with unmet conditions.
    pub gave_up: bool,
}

impl TaintChange {
    /// The taint's identity.
    pub fn taint(&self) -> TaintId {
        TaintId {
            key: self.key.clone(),
            effect: self.effect,
        }
    }
}

/// The kind of a taint change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The taint is added.
    Added,
    /// The taint is removed.
    Removed,
}

/// Identifies a taint on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaintId {
    /// The taint's key.
    pub key: String,
    /// The taint's effect.
    pub effect: TaintEffect,
}

impl TaintId {
    /// Whether the change is about this taint.
    pub fn is_of(&self, change: &TaintChange) -> bool {
        self.key == change.key && self.effect == change.effect
    }
}

impl fmt::Display for TaintId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.key, self.effect)
    }
}
