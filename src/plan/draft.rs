//! A plan under construction.

use std::cmp::Ordering;
use std::ptr;

use jiff::Timestamp;
use smallvec::SmallVec;

use super::change::TaintId;
use super::node_plan::NodePlan;
use super::outcome::Outcome;
use super::stale_kinds::StaleKinds;
use super::state::{ClusterState, NodeHistory, NodeState};
use super::taint_plan::TaintPlan;
use crate::api::TaintEffect;
use crate::object::{Node, Taint};
use crate::rule::{CompiledSpec, Rule, is_foreign};

pub(super) type Taints<'a> = SmallVec<[&'a Taint; 8]>;

/// A rule that selects the node and has a valid spec.
#[derive(Clone, Copy)]
pub(super) struct Contender<'a> {
    pub(super) rule: &'a Rule,
    pub(super) spec: &'a CompiledSpec,
    /// The rule's index in the set of all rules.
    pub(super) index: usize,
}

/// A plan under construction.
pub(super) struct Draft<'a> {
    pub(super) cluster: ClusterState<'a>,
    pub(super) state: NodeState<'a>,
    pub(super) history: NodeHistory<'a>,
    /// The stale kinds, without those that a live read of this node has just covered.
    pub(super) stale: StaleKinds,
    pub(super) node: &'a Node,
    /// Its taints, sorted by key: a node may have any number.
    pub(super) taints: Taints<'a>,
    pub(super) now: Timestamp,
    pub(super) plan: NodePlan<'a>,
    /// The writes of the taint that is being settled.
    pub(super) writes: TaintPlan,
}

impl<'a> Draft<'a> {
    /// The node's taints that belong to a rule with this key and effect. There is at most one, unless it is another project's
    /// taint: those are matched by key, whatever the effect, except for effects that another rule names.
    pub(super) fn taints_of(
        &self,
        key: &str,
        effect: TaintEffect,
    ) -> impl Iterator<Item = &'a Taint> {
        let is_meant = move |taint: &&Taint| {
            taint.is(key, effect)
                || taint.key == key && is_foreign(key) && !self.is_named_by_a_rule(taint)
        };
        self.taints_with(key).filter(is_meant)
    }

    /// The node's taint with this key and effect.
    pub(super) fn taint(&self, key: &str, effect: TaintEffect) -> Option<&'a Taint> {
        self.taints_with(key).find(|taint| taint.is(key, effect))
    }

    fn taints_with(&self, key: &str) -> impl Iterator<Item = &'a Taint> {
        let of_key = equal(&self.taints, |taint| (*taint.key).cmp(key));
        of_key.iter().copied()
    }

    fn is_named_by_a_rule(&self, taint: &Taint) -> bool {
        let rules = self.cluster.rules.rules();
        let mut selecting = self.state.selecting.iter().map(|index| &rules[*index]);
        selecting.any(|rule| {
            let mut spec = rule.active().filter(|_| !rule.deleting).into_iter();
            spec.any(|spec| taint.is(&spec.taint.key, spec.effect))
        })
    }

    pub(super) fn set_annotation(&mut self, key: String, value: String) {
        if self.node.annotation(&key) != Some(&value) {
            self.write_annotation(key, Some(value));
        }
    }

    pub(super) fn remove_annotation(&mut self, key: String) {
        if self.node.annotation(&key).is_some() {
            self.write_annotation(key, None);
        }
    }

    /// Changes an annotation, in an earlier taint's writes if they contain it.
    fn write_annotation(&mut self, key: String, value: Option<String>) {
        let mut earlier = self.plan.taints.iter_mut();
        let earlier = earlier.find_map(|it| it.annotations.get_mut(&key));
        if let Some(earlier) = earlier {
            *earlier = value;
        } else {
            self.writes.annotations.insert(key, value);
        }
    }

    /// Completes the writes of a taint; `None` for annotations that belong to no taint.
    pub(super) fn end_taint(&mut self, taint: Option<(&str, TaintEffect)>) {
        let writes = std::mem::take(&mut self.writes);
        if !writes.is_empty() {
            let taint = taint.map(|(key, effect)| TaintId {
                key: key.to_owned(),
                effect,
            });
            self.plan.taints.push(TaintPlan { taint, ..writes });
        }
    }

    /// The outcome of the rule. It exists by the time the decision is carried out.
    pub(super) fn outcome(&self, rule: &Rule) -> Option<&Outcome<'a>> {
        self.plan
            .outcomes
            .iter()
            .rev()
            .find(|outcome| ptr::eq(outcome.rule, rule))
    }
}

/// Those that are equal, among some that are sorted in this order.
pub(super) fn equal<T>(sorted: &[T], order: impl Fn(&T) -> Ordering) -> &[T] {
    let first = sorted.partition_point(|it| order(it).is_lt());
    let rest = &sorted[first..];
    &rest[..rest.partition_point(|it| order(it).is_eq())]
}

pub(super) fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}
