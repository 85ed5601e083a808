//! Makes a node's plan, one taint after another.

use std::cmp::Ordering;
use std::sync::Arc;

use jiff::Timestamp;
use smallvec::SmallVec;

use super::node_plan::{NodePlan, TaintPlan};
use super::state::{ClusterState, NodeHistory, NodeState};
use crate::api::TaintEffect;
use crate::condition::{ComponentGroup, Facts, GroupFacts, NamedComponent, Trust};
use crate::object::{Node, Taint};
use crate::rule::{CompiledSpec, Ownership, Rule, is_foreign};

pub(super) type Taints<'a> = SmallVec<[&'a Taint; 8]>;

/// A rule that selects the node and for which the controller may act, with its spec.
pub(super) type Active<'a> = (&'a Rule, &'a CompiledSpec);

pub(super) struct Draft<'a> {
    pub(super) cluster: ClusterState<'a>,
    pub(super) state: NodeState<'a>,
    pub(super) history: NodeHistory<'a>,
    pub(super) node: &'a Node,
    /// Its taints, sorted by key: a node may have any number.
    pub(super) taints: Taints<'a>,
    pub(super) now: Timestamp,
    pub(super) plan: NodePlan<'a>,
    /// The writes of the taint that is being planned.
    pub(super) writes: TaintPlan,
}

/// Decides for one node at one time. The plan for a node that is being deleted is empty.
pub fn plan<'a>(
    cluster: ClusterState<'a>,
    state: NodeState<'a>,
    history: NodeHistory<'a>,
    now: Timestamp,
) -> NodePlan<'a> {
    if state.node.deleting {
        return NodePlan::default();
    }
    let rules = cluster.rules.at(state.selecting).map(|rule| &**rule);
    let active: SmallVec<[Active; 8]> = rules
        .filter_map(|rule| Some((rule, rule.active()?)))
        .collect();
    let mut taints: Taints = state.node.taints.iter().collect();
    taints.sort_by(|a, b| a.key.cmp(&b.key));
    let mut draft = Draft {
        cluster,
        state,
        history,
        node: state.node,
        taints,
        now,
        plan: NodePlan::default(),
        writes: TaintPlan::default(),
    };
    draft.plan_all(&active);
    draft.plan
}

impl<'a> Draft<'a> {
    fn plan_all(&mut self, active: &[Active<'a>]) {
        let (cluster, state) = (self.cluster, self.state);
        self.plan.outcomes.reserve(active.len());
        let mut owned: SmallVec<[Ownership; 4]> = Ownership::all(state.node)
            .filter(|owner| !cluster.rules.disproves(owner))
            .collect();
        owned.sort_by_key(Ownership::taint);
        let staying = self.staying(&owned);
        let gates: SmallVec<[Taints; 1]> = (0..cluster.classes.len())
            .map(|class| self.gates(active, |spec| spec.waits_for_class(class)))
            .collect();
        let named = self.named(active);
        let group = |group, gates| GroupFacts {
            daemon_sets: cluster.daemon_sets(group),
            pods: state.pods.get(&group).map_or(&[], Vec::as_slice),
            slices: state.slices.get(&group).map_or(&[], Vec::as_slice),
            gates,
        };
        let classes = cluster.classes.iter().zip(&gates).enumerate();
        let classes: SmallVec<[_; 1]> = classes
            .map(|(index, (class, gates))| (class, group(ComponentGroup::Class(index), &gates[..])))
            .collect();
        let components = named.iter();
        let components = components.map(|(named, gates)| (*named, group(named.group, &gates[..])));
        let components: SmallVec<[_; 1]> = components.collect();
        let facts = Facts {
            node: state.node,
            csi_node: state.csi_node,
            classes: &classes,
            components: &components,
            unseen: cluster.unseen,
            staying: &staying,
            except: &[],
            observations: state.observations,
            trust: Trust::default(),
            recall: None,
            now: self.now,
        };
        for (key, effect) in self.taints_to_plan(active, &owned) {
            let claims = active.iter().copied();
            let claims: SmallVec<[Active; 4]> = claims
                .filter(|(_, spec)| spec.taint.is(key, effect))
                .collect();
            let owners = equal(&owned, |owner| owner.taint().cmp(&(key, effect)));
            self.plan_taint((key, effect), &claims, owners, &facts);
        }
        self.forget_deleted_rules();
        self.forget_deadlines();
        self.postpone();
        self.end_taint(None);
        self.publish();
    }

    pub(super) fn rules(&self) -> impl Iterator<Item = &'a Arc<Rule>> + use<'a> {
        self.cluster.rules.rules().iter()
    }

    /// Every taint that a rule names, owns, or has left behind on a node that it no longer selects, in order.
    fn taints_to_plan<'o>(
        &self,
        active: &[Active<'a>],
        owned: &[Ownership<'o>],
    ) -> SmallVec<[(&'o str, TaintEffect); 8]>
    where
        'a: 'o,
    {
        let named = active.iter();
        let named = named.map(|(_, spec)| (&*spec.taint.key, spec.effect));
        let left_behind = self.rules();
        let left_behind = left_behind.filter_map(|rule| rule.left_behind(&self.node.labels));
        let left_behind = left_behind.map(|reach| (&*reach.key, reach.effect));
        let owned = owned.iter().map(Ownership::taint);
        let mut taints: SmallVec<[_; 8]> = named.chain(owned).chain(left_behind).collect();
        taints.sort_unstable();
        taints.dedup();
        taints
    }

    /// The taints of these rules that are in force and wait for something.
    fn gates(&self, active: &[Active<'a>], waits: impl Fn(&CompiledSpec) -> bool) -> Taints<'a> {
        let waiting = active.iter();
        let waiting = waiting.filter(|(rule, spec)| rule.live().is_some() && waits(spec));
        // The kubelet may have registered the taint with a different value.
        let taints = waiting.flat_map(|(_, spec)| {
            let there = self.taints_of(&spec.taint.key, spec.effect);
            std::iter::once(&spec.taint).chain(there)
        });
        taints.collect()
    }

    /// What the rules wait for by name, each with the taints of those rules.
    fn named(&self, active: &[Active<'a>]) -> SmallVec<[(&'a NamedComponent, Taints<'a>); 1]> {
        let mut all: SmallVec<[(&NamedComponent, Taints); 1]> = SmallVec::new();
        for component in active.iter().flat_map(|(_, spec)| spec.components()) {
            let is_known = all.iter().any(|(named, _)| named.component == *component);
            if let Some(named) = self.cluster.named(component).filter(|_| !is_known) {
                let waits = |spec: &CompiledSpec| spec.components().any(|it| it == component);
                all.push((named, self.gates(active, waits)));
            }
        }
        all
    }

    /// The node's taints with this key and effect; of another project's key, with any effect but those that another rule names.
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

    pub(super) fn taint(&self, key: &str, effect: TaintEffect) -> Option<&'a Taint> {
        self.taints_with(key).find(|taint| taint.is(key, effect))
    }

    fn taints_with(&self, key: &str) -> impl Iterator<Item = &'a Taint> {
        let of_key = equal(&self.taints, |taint| (*taint.key).cmp(key));
        of_key.iter().copied()
    }

    fn is_named_by_a_rule(&self, taint: &Taint) -> bool {
        let mut selecting = self.cluster.rules.at(self.state.selecting);
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
            let taint = taint.map(|(key, effect)| format!("{key}:{effect}"));
            self.plan.taints.push(TaintPlan { taint, ..writes });
        }
    }

    pub(super) fn recheck(&mut self, at: Option<Timestamp>) {
        if at.is_some_and(|at| self.plan.recheck.is_none_or(|known| at < known)) {
            self.plan.recheck = at;
        }
    }
}

/// Those that are equal, among some that are sorted in this order.
pub(super) fn equal<T>(sorted: &[T], order: impl Fn(&T) -> Ordering) -> &[T] {
    let rest = &sorted[sorted.partition_point(|it| order(it).is_lt())..];
    &rest[..rest.partition_point(|it| order(it).is_eq())]
}
