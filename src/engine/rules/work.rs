//! The engine's state for one rule.

use std::sync::Arc;
use std::time::Instant;

use crate::engine::attempt::Attempt;
use crate::engine::gating::Gating;
use crate::engine::map::Set;
use crate::engine::status::{RuleStats, WrittenStatus};
use crate::plan::Backing;
use crate::rule::Rule;

/// The engine's state for one rule.
#[derive(Debug)]
pub struct RuleWork {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    /// Whether no controller had adopted the rule before this process: it lacked our finalizer.
    pub is_new: bool,
    pub stats: RuleStats,
    /// The nodes that must be clean before a deleted rule may go; `None` while it is not being deleted.
    pub pending: Option<Set<Arc<str>>>,
    /// What stood behind the rule's conditions at the last status.
    pub backing: Backing,
    /// The obstacle to any repair that was last logged.
    pub obstacle: Option<String>,
    pub gating: Option<Gating>,
    /// The generation whose rejection was announced.
    pub rejected: Option<(i64, bool)>,
    pub finalizers: Attempt,
    pub status: StatusWork,
    /// Whether it is queued.
    pub is_queued: bool,
}

impl RuleWork {
    pub fn new(rule: &Rule) -> Self {
        Self {
            name: rule.name.clone(),
            uid: rule.uid.clone(),
            is_new: !rule.finalizer,
            stats: RuleStats::default(),
            pending: None,
            backing: Backing::default(),
            obstacle: None,
            gating: None,
            rejected: None,
            finalizers: Attempt::default(),
            status: StatusWork::default(),
            is_queued: false,
        }
    }

    /// Notes that the rule no longer matches a node, and whether the node is clean; returns whether that is new.
    pub fn forget_node(&mut self, node: &Arc<str>, is_clean: bool) -> bool {
        let gating = self.gating.as_mut();
        let counted = gating.is_some_and(|gating| gating.forget(node));
        self.stats.forget(node, is_clean) || counted
    }

    /// Notes that a node is clean of the rule.
    pub fn cleaned_up(&mut self, node: &Arc<str>) {
        if let Some(pending) = &mut self.pending {
            pending.remove(node);
        }
        self.stats.linger(node, false);
    }
}

/// The state of one rule's status writes.
#[derive(Debug, Default)]
pub struct StatusWork {
    /// When to compare the status with what was written; `None` while nothing has changed.
    pub due: Option<Instant>,
    pub attempt: Attempt,
    pub written_at: Option<Instant>,
    pub written: WrittenStatus,
    /// When it was last scheduled only because someone else had overwritten it.
    pub healed_at: Option<Instant>,
}
