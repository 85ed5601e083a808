//! Makes a node's plan, one taint after another.

use jiff::Timestamp;
use smallvec::SmallVec;

use super::draft::{Contender, Draft, Taints, equal};
use super::node_plan::NodePlan;
use super::state::{ClusterState, NodeHistory, NodeState};
use super::taint_plan::TaintPlan;
use crate::api::TaintEffect;
use crate::condition::ComponentGroup;
use crate::condition::{ClassFacts, ComponentFacts, Facts, NamedComponent, Trust};
use crate::rule::{CompiledSpec, Ownership};

/// `DaemonSet`s that rules wait for by name, each with the taints of those rules.
type WaitedFor<'a> = SmallVec<[(&'a NamedComponent, Taints<'a>); 1]>;

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
    let contenders: SmallVec<[Contender; 8]> = state
        .selecting
        .iter()
        .filter_map(|index| {
            let (rule, index) = (&*cluster.rules.rules()[*index], *index);
            rule.active().map(|spec| Contender { rule, spec, index })
        })
        .collect();
    let mut taints: Taints = state.node.taints.iter().collect();
    taints.sort_by(|a, b| a.key.cmp(&b.key));
    let mut draft = Draft {
        cluster,
        state,
        stale: cluster.stale.without(history.read_live),
        history,
        node: state.node,
        taints,
        now,
        plan: NodePlan::default(),
        writes: TaintPlan::default(),
    };
    draft.plan.outcomes.reserve(contenders.len());
    let mut owned: SmallVec<[Ownership; 4]> = Ownership::all(state.node)
        .filter(|owner| !cluster.rules.disproves(owner))
        .collect();
    owned.sort_by_key(Ownership::taint);
    let staying = draft.staying(&owned);
    let gates: SmallVec<[Taints; 1]> = (0..cluster.classes.len())
        .map(|class| draft.gates(&contenders, |spec| spec.waits_for_class(class)))
        .collect();
    let classes: SmallVec<[ClassFacts; 1]> = cluster
        .classes
        .iter()
        .enumerate()
        .map(|(index, class)| ClassFacts {
            class,
            daemon_sets: cluster.daemon_sets(ComponentGroup::Class(index)),
            pods: state
                .pods
                .get(ComponentGroup::Class(index))
                .map_or(&[], Vec::as_slice),
            staying: &staying,
            gates: &gates[index],
        })
        .collect();
    let waited_for = draft.waited_for(&contenders);
    let components: SmallVec<[ComponentFacts; 1]> = waited_for
        .iter()
        .map(|(named, gates)| ComponentFacts {
            named,
            daemon_sets: cluster.daemon_sets(named.group),
            pods: state.pods.get(named.group).map_or(&[], Vec::as_slice),
            slices: state.slices.get(named.group).map_or(&[], Vec::as_slice),
            staying: &staying,
            gates,
        })
        .collect();
    let facts = Facts {
        node: state.node,
        csi_node: state.csi_node,
        classes: &classes,
        components: &components,
        observations: state.observations,
        trust: Trust::default(),
        now,
    };
    draft.settle_all(&contenders, &owned, &facts);
    draft.forget_deleted_rules();
    draft.forget_deadlines();
    draft.postpone();
    draft.end_taint(None);
    draft.publish();
    draft.plan
}

impl<'a> Draft<'a> {
    /// Settles every taint that a rule claims, owns, or has left behind on a node that it no longer selects.
    fn settle_all(
        &mut self,
        contenders: &[Contender<'a>],
        owned: &[Ownership<'a>],
        facts: &Facts<'_, 'a>,
    ) {
        let claimed = contenders
            .iter()
            .map(|contender| (contender.spec.taint.key.as_str(), contender.spec.effect));
        let with_owner = owned
            .iter()
            .map(|owner| (owner.taint_key, owner.taint_effect));
        let left_behind = self
            .cluster
            .rules
            .rules()
            .iter()
            .filter_map(|rule| rule.left_behind(&self.node.labels))
            .map(|reach| (reach.key.as_str(), reach.effect));
        let mut concerned: SmallVec<[_; 8]> =
            claimed.chain(with_owner).chain(left_behind).collect();
        self.put_in_order(&mut concerned, contenders);
        concerned.dedup();
        let about = |key: &str, effect: TaintEffect| {
            let contenders = contenders.iter().copied();
            let contenders: SmallVec<[Contender; 4]> = contenders
                .filter(|contender| contender.spec.taint.is(key, effect))
                .collect();
            (
                contenders,
                equal(owned, |owner| owner.taint().cmp(&(key, effect))),
            )
        };
        for &(key, effect) in &concerned {
            let (contenders, owners) = about(key, effect);
            self.settle(key, effect, &contenders, owners, facts);
            self.end_taint(Some((key, effect)));
        }
        let is_left = |it: &Contender| !it.spec.after.is_empty() && self.outcome(it.rule).is_none();
        if contenders.iter().any(is_left) {
            for &(key, effect) in &concerned {
                let (contenders, owners) = about(key, effect);
                self.settle_postponed(key, effect, &contenders, owners, facts);
            }
        }
    }

    /// The taints of these rules that are in force and wait for something.
    fn gates(
        &self,
        contenders: &[Contender<'a>],
        waits: impl Fn(&CompiledSpec) -> bool,
    ) -> Taints<'a> {
        contenders
            .iter()
            .filter(|contender| contender.rule.live().is_some() && waits(contender.spec))
            .flat_map(|contender| {
                // The kubelet may have registered the taint with a different value.
                let (key, effect) = (&contender.spec.taint.key, contender.spec.effect);
                std::iter::once(&contender.spec.taint).chain(self.taints_of(key, effect))
            })
            .collect()
    }

    /// What the rules wait for by name, each with the taints of those rules.
    fn waited_for(&self, contenders: &[Contender<'a>]) -> WaitedFor<'a> {
        let mut waited_for = WaitedFor::new();
        for component in contenders.iter().flat_map(|it| it.spec.components()) {
            let mut known = waited_for.iter();
            let is_known = known.any(|(named, _)| named.component == *component);
            if let Some(named) = self.cluster.named(component).filter(|_| !is_known) {
                let waits = |spec: &CompiledSpec| spec.components().any(|it| it == component);
                let gates = self.gates(contenders, waits);
                waited_for.push((named, gates));
            }
        }
        waited_for
    }
}
