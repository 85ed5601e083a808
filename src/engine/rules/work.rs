//! What is under way for one rule.

use std::sync::Arc;
use std::time::Instant;

use crate::engine::closures::Closures;
use crate::engine::map::Set;
use crate::engine::pacer::WriteSlot;
use crate::engine::status::{RuleStats, WrittenStatus};
use crate::plan::PassedOver;
use crate::rule::{RequiredCondition, Rule};

/// What is under way for one rule.
#[derive(Debug)]
pub struct RuleWork {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    /// The types of the conditions that the rule names.
    pub conditions: Vec<Arc<str>>,
    /// Whether no controller had taken the rule on before this process did: it had no finalizer of ours.
    pub is_new: bool,
    /// What the rule does on its nodes.
    pub stats: RuleStats,
    /// The nodes that have to be seen clean before a deleted rule may go; `None` while it is not being deleted.
    pub pending: Option<Set<Arc<str>>>,
    pub passed_over: Vec<PassedOver>,
    /// What keeps the rule from repairing any node, as it was told last.
    pub obstacle: Option<String>,
    pub closures: Option<Closures>,
    /// The generation whose rejection has been told.
    pub rejected: Option<i64>,
    pub finalizers: WriteSlot,
    /// How often in a row our finalizer has been refused.
    pub finalizer_refusals: u32,
    pub status: StatusWork,
    /// It waits for its turn to be tended.
    pub is_queued: bool,
}

impl RuleWork {
    /// Nothing is under way yet.
    pub fn new(rule: &Rule) -> Self {
        let types = |requirement: &RequiredCondition| requirement.kind.clone();
        let spec = rule.spec.iter();
        Self {
            name: rule.name.clone(),
            uid: rule.uid.clone(),
            conditions: spec
                .flat_map(|spec| spec.conditions.iter().map(types))
                .collect(),
            is_new: !rule.finalizer,
            stats: RuleStats::default(),
            pending: None,
            passed_over: Vec::new(),
            obstacle: None,
            closures: None,
            rejected: None,
            finalizers: WriteSlot::default(),
            finalizer_refusals: 0,
            status: StatusWork::default(),
            is_queued: false,
        }
    }

    /// Notes that the rule has nothing to do with a node any more, and whether the node is clean of it; answers whether
    /// that is news.
    pub fn forget_node(&mut self, node: &Arc<str>, is_clean: bool) -> bool {
        let closures = self.closures.as_mut();
        let counted = closures.is_some_and(|closures| closures.forget(node));
        self.stats.forget(node, is_clean) || counted
    }

    /// Notes that a node has nothing left of the rule.
    pub fn cleaned_up(&mut self, node: &Arc<str>) {
        if let Some(pending) = &mut self.pending {
            pending.remove(node);
        }
        self.stats.linger(node, false);
    }
}

/// What is under way for one rule's status.
#[derive(Debug, Default)]
pub struct StatusWork {
    /// When to see what there is to write; `None` while nothing has changed.
    pub due: Option<Instant>,
    pub slot: WriteSlot,
    pub written_at: Option<Instant>,
    pub written: WrittenStatus,
    /// When it was last to be written only because somebody else had written over it.
    pub healed_at: Option<Instant>,
}
