//! What there is to write of a node, taint by taint.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::change::{TaintChange, TaintId};
use crate::object::{Node, Taint};

/// What there is to write of one taint, with the annotations that go with it: one is never written without the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaintPlan {
    /// The taint; `None` for annotations that go with no taint, and where several are written at once.
    pub taint: Option<TaintId>,
    /// The taints that are put on.
    pub added: Vec<Taint>,
    /// The taints that are lifted, as they stand on the node.
    pub lifted: Vec<Taint>,
    /// Annotations to set, or to remove where the value is `None`.
    pub annotations: BTreeMap<String, Option<String>>,
    /// Annotations whose present value is part of the decision, so that the write must not succeed under another one.
    pub relied_on: Vec<String>,
    /// Why, for each taint.
    pub changes: Vec<TaintChange>,
    /// UIDs of the rules whose bootstrap it completes.
    pub completes: Vec<Arc<str>>,
}

impl TaintPlan {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.lifted.is_empty() && self.annotations.is_empty()
    }

    /// The taints that the node has once it is carried out; `None` where they stay as they are.
    #[must_use]
    pub fn taints(&self, node: &Node) -> Option<Vec<Taint>> {
        if self.added.is_empty() && self.lifted.is_empty() {
            return None;
        }
        let stays = |taint: &&Taint| !self.lifted.contains(taint);
        let kept = node.taints.iter().filter(stays);
        Some(kept.chain(&self.added).cloned().collect())
    }

    /// All of these at once.
    #[must_use]
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
