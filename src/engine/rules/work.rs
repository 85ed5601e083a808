//! What is under way for one rule.

use std::sync::Arc;
use std::time::Instant;

use crate::engine::closures::Closures;
use crate::engine::map::Set;
use crate::engine::status::{Tally, WrittenStatus};
use crate::engine::turns::Backoff;
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
    pub tally: Tally,
    /// The nodes that have to be seen clean before a deleted rule may go; `None` while it is not being deleted.
    pub pending: Option<Set<Arc<str>>>,
    pub passed_over: Vec<PassedOver>,
    /// What keeps the rule from repairing any node, as it was told last.
    pub obstacle: Option<String>,
    pub closures: Option<Closures>,
    /// The generation whose rejection has been told.
    pub rejected: Option<i64>,
    pub finalizers: Write,
    pub status: StatusWork,
}

/// A write that is made again until it succeeds.
#[derive(Debug, Default)]
pub struct Write {
    /// It has not been answered yet.
    pub under_way: bool,
    /// When it is tried again.
    pub retry: Backoff,
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
            tally: Tally::default(),
            pending: None,
            passed_over: Vec::new(),
            obstacle: None,
            closures: None,
            rejected: None,
            finalizers: Write::default(),
            status: StatusWork::default(),
        }
    }

    /// Notes that the rule has nothing to do with a node any more, and whether the node is clean of it; answers whether
    /// that is news.
    pub fn forget_node(&mut self, node: &Arc<str>, is_clean: bool) -> bool {
        let closures = self.closures.as_mut();
        let counted = closures.is_some_and(|closures| closures.forget(node));
        self.tally.forget(node, is_clean) || counted
    }

    /// Notes that a node has nothing left of the rule.
    pub fn cleaned_up(&mut self, node: &Arc<str>) {
        if let Some(pending) = &mut self.pending {
            pending.remove(node);
        }
        self.tally.linger(node, false);
    }
}

/// What is under way for one rule's status.
#[derive(Debug, Default)]
pub struct StatusWork {
    /// When to see what there is to write; `None` while nothing has changed.
    pub due: Option<Instant>,
    pub write: Write,
    pub written_at: Option<Instant>,
    pub written: WrittenStatus,
    /// When it was last to be written only because somebody else had written over it.
    pub healed_at: Option<Instant>,
}
