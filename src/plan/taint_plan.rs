//! The writes to a node, by taint.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::change::{TaintChange, TaintId};
use crate::object::{Node, Taint};

/// The writes for one taint and its annotations, which are never written separately.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaintPlan {
    /// The taint; `None` for annotations that belong to no taint, and for several taints at once.
    pub taint: Option<TaintId>,
    /// The taints to add.
    pub added: Vec<Taint>,
    /// The taints to remove, as they are on the node.
    pub lifted: Vec<Taint>,
    /// Annotations to set, or to remove if the value is `None`.
    pub annotations: BTreeMap<String, Option<String>>,
    /// Annotations whose present values the decision depends on: the write must fail if they differ.
    pub relied_on: Vec<String>,
    /// The reason for each taint.
    pub changes: Vec<TaintChange>,
    /// UIDs of the rules whose bootstrap it completes.
    pub completes: Vec<Arc<str>>,
}

impl TaintPlan {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.lifted.is_empty() && self.annotations.is_empty()
    }

    /// The node's taints once it is carried out; `None` if they do not change.
    pub fn taints(&self, node: &Node) -> Option<Vec<Taint>> {
        if self.added.is_empty() && self.lifted.is_empty() {
            return None;
        }
        let stays = |taint: &&Taint| !self.lifted.contains(taint);
        let kept = node.taints.iter().filter(stays);
        Some(kept.chain(&self.added).cloned().collect())
    }

    /// Merges plans into one.
    pub fn merged(plans: Vec<Self>) -> Self {
        plans.into_iter().reduce(Self::and).unwrap_or_default()
    }

    fn and(mut self, other: Self) -> Self {
        self.taint = None;
        self.added.extend(other.added);
        self.lifted.extend(other.lifted);
        self.annotations.extend(other.annotations);
        self.relied_on.extend(other.relied_on);
        self.changes.extend(other.changes);
        self.completes.extend(other.completes);
        self
    }
}
