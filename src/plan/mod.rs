//! One plan per node: the decisions of all rules that concern it, merged into the least that has to be written.
//!
//! | file | what it does |
//! |---|---|
//! | `evaluate` | a rule's conditions, held against a node |
//! | `decision` | the table of what follows |
//! | `patience` | whether an open node may be closed yet |
//! | `doubts` | what was seen that may not be so any more |
//! | `passed_over` | what no rule waits for though it is labelled |
//! | `draft` | settles one taint at a time: which rule governs it, what it decides, whose the taint then is |
//! | `clean_up` | taints and annotations whose rule is going, gone, or about other nodes now |
//! | `deadlines` | when the time of a node is up that never gets ready |
//! | `parts` | the plan taint by taint, where the whole is refused |
//! | `publish` | the synthesized conditions that the node should carry |

mod clean_up;
mod deadlines;
mod decision;
mod doubts;
mod draft;
mod evaluate;
mod few;
mod parts;
mod passed_over;
mod patience;
mod publish;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use smallvec::SmallVec;

use crate::api::TaintEffect;
use crate::condition::{ClassFacts, CriticalComponentClass, Detail, Facts, Sightings, Trust};
use crate::object::{CsiNode, DaemonSet, Node, NodeClaim, ObjectKey, Pod, Taint};
use crate::repair::{Deadline, Karpenter, NoTtl, Postponed, Remedy, Situation, Verdict};
use crate::rule::ownership::{completion_keys, owner_key};
use crate::rule::{Ownership, Rule, RuleSet};
pub use decision::{Decision, Held, decide};
pub use doubts::Doubts;
use draft::{Claim, Draft};
pub use evaluate::{ConditionResult, Evaluation, evaluate};
pub use few::Few;
pub use parts::{Part, TaintId, parts};
pub use passed_over::{PassedOver, WhyPassedOver};
pub use patience::{Memory, is_new};
pub use publish::{ConditionChanges, NewCondition, Urgency};

/// What is the same for every node.
#[derive(Debug, Clone, Copy)]
pub struct ClusterState<'a> {
    /// The configured critical component classes.
    pub classes: &'a [CriticalComponentClass],
    /// The labelled `DaemonSet`s of each class, in the order of `classes`.
    pub daemon_sets: &'a [BTreeMap<ObjectKey, DaemonSet>],
    /// All rules.
    pub rules: &'a RuleSet,
    /// Whether synthesized conditions are published on nodes.
    pub publish_conditions: bool,
    /// What was seen that may not be so any more.
    pub doubts: Doubts,
    /// What a node's repair depends on besides the node.
    pub repair: Situation<'a>,
}

/// What has been seen of one node and of what belongs to it.
#[derive(Debug, Clone, Copy)]
pub struct NodeState<'a> {
    /// The node.
    pub node: &'a Node,
    /// Its `CSINode`, if there is one.
    pub csi_node: Option<&'a CsiNode>,
    /// The pods of each class that are bound to it, in the order of the classes.
    pub pods: &'a [Vec<Pod>],
    /// Indices of the active rules that select it ([`RuleSet::selecting`]).
    pub selecting: &'a [usize],
    /// What this process has seen of the node over time.
    pub sightings: &'a Sightings,
    /// When the node came, where this process saw it come.
    pub joined: Option<Timestamp>,
    /// What Karpenter has to say about the node.
    pub karpenter: Karpenter<'a>,
}

/// What has been done about one node so far, and what may be done.
#[derive(Debug, Clone, Copy)]
pub struct History<'a> {
    /// Whether the node has been evaluated before, by this process while it was in charge.
    pub is_known: bool,
    /// What was read for this node only just now, so that there is no doubt about it.
    pub looked: Doubts,
    /// What this process remembers of continuous rules on the node.
    pub memories: &'a [Memory],
    /// UIDs of the rules whose disruption guard lets the node be closed now.
    pub may_close: &'a [Arc<str>],
    /// Since when this process has been in charge of nodes.
    pub watching_since: Timestamp,
}

/// Some taints of a node.
type Taints<'a> = SmallVec<[&'a Taint; 8]>;

/// All that follows for one node: what to write, what to report, and when to look again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodePlan<'a> {
    /// What each rule that selects the node makes of it. A rule that is being deleted has no outcome.
    pub outcomes: Few<Outcome<'a>>,
    /// The node's new taints, where they change.
    pub taints: Option<Vec<Taint>>,
    /// Annotations to set (`Some`) or to remove (`None`).
    pub annotations: BTreeMap<String, Option<String>>,
    /// Annotations whose evaluated state the plan relies on: a completion that nobody may have written in between.
    pub relied_on: Vec<String>,
    /// The changes behind `taints`, for events and metrics.
    pub changes: Vec<TaintChange>,
    /// Synthesized conditions to publish or withdraw.
    pub conditions: ConditionChanges<'a>,
    /// What the critical components on the node lack, where a held taint waits for them.
    pub waiting: Option<Waiting<'a>>,
    /// When to evaluate again even if nothing happens.
    pub recheck: Option<Timestamp>,
    /// What has to be read again before that is done which the plan leaves out, because it could hurt.
    pub look: Doubts,
    /// Why nobody is judged though the node's time is up, if that is so. What has been told of its repair stays as it is.
    pub postponed: Option<Postponed>,
}

impl<'a> NodePlan<'a> {
    /// The claim to delete, so that a new node takes the place of this one, and what the rule found that has it deleted.
    /// One claim, one repair: of several rules the first does it.
    #[must_use]
    pub fn deletion(&self) -> Option<(&'a NodeClaim, &Outcome<'a>)> {
        self.outcomes
            .iter()
            .find_map(|outcome| match (outcome.verdict, outcome.is_dry_run()) {
                (Some(Verdict::Repair(Remedy::DeleteNodeClaim(claim))), false) => {
                    Some((claim, outcome))
                }
                _ => None,
            })
    }

    /// Whether the Node object itself (taints or annotations) has to be written.
    #[must_use]
    pub fn writes_node(&self) -> bool {
        self.taints.is_some() || !self.annotations.is_empty()
    }

    /// Whether the taint of this rule is lifted.
    #[must_use]
    pub fn lifts_for(&self, rule: &Rule) -> bool {
        let is_its_taint = |change: &TaintChange| {
            change.kind == ChangeKind::Removed && change.rule_uid == *rule.uid
        };
        self.changes.iter().any(is_its_taint)
    }

    /// Whether something of this rule, its taint or one of its annotations, has to be written.
    #[must_use]
    pub fn writes_for(&self, rule: &Rule) -> bool {
        let [by_uid, by_name] = completion_keys(rule);
        self.changes
            .iter()
            .any(|change| change.rule_uid == *rule.uid)
            || [
                by_uid,
                by_name,
                owner_key(&rule.uid),
                Deadline::key(&rule.uid),
            ]
            .iter()
            .any(|key| self.annotations.contains_key(key))
    }
}

/// What one rule makes of one node.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// What the rule may do here, and what it does.
    pub standing: Standing<'a>,
    /// The rule's conditions on the node.
    pub evaluation: Evaluation<'a>,
    /// Whether the node has the rule's taint, before the plan is carried out.
    pub tainted: bool,
    /// Whether the rule holds a taint that it did not add.
    pub adopts: bool,
    /// Whether the node has never been open under a continuous rule, so that closing it takes nothing away.
    pub joining: bool,
    /// Since when the conditions have been unmet, where the rule is continuous.
    pub unmet_since: Option<Timestamp>,
    /// When the node was seen to have rebooted, where the rule gates it again for that.
    pub rebooted: Option<Timestamp>,
    /// When the node's time is up, or why nobody can say, where the rule gates a node that has never been open and says
    /// what happens to it then.
    pub deadline: Option<Result<Deadline, NoTtl>>,
    /// What is to be done about the node, or would be by a dry run, where its time is up under a rule that governs, or
    /// would; none while nobody is judged.
    pub verdict: Option<Verdict<'a>>,
}

impl Outcome<'_> {
    /// Whether the rule is a dry run: nothing is done in its name.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        matches!(self.standing, Standing::DryRun(_))
    }

    /// Whether the rule is a dry run and would repair the node, or would but for how many others are unhealthy.
    #[must_use]
    pub fn would_repair(&self) -> bool {
        let is_news = !matches!(self.verdict, Some(Verdict::Repair(Remedy::Report)));
        let is_meant = matches!(self.verdict, Some(Verdict::Blocked(_) | Verdict::Repair(_)));
        self.is_dry_run() && is_meant && is_news
    }
}

/// What a rule may do on a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing<'a> {
    /// The rule governs its taint here: its decision is carried out.
    Governs(Decision),
    /// The rule is a dry run: its decision is only counted.
    DryRun(Decision),
    /// An earlier rule governs the same taint here.
    Conflicted {
        /// The rule that governs.
        with: &'a Rule,
    },
}

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

/// Which of Gardener's questions about critical components is not answered with yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting<'a> {
    /// What it is about.
    pub for_what: Component,
    /// What is missing.
    pub detail: Detail<'a>,
}

/// What kind of thing is missing of a critical component. Gardener's controller has an event reason for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// The pod of a `DaemonSet`.
    DaemonSet,
    /// A pod's readiness.
    Pod,
    /// A CSI driver's registration.
    CsiDriver,
}

impl Component {
    /// The reason.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::DaemonSet => "UnscheduledNodeCriticalDaemonSets",
            Self::Pod => "UnreadyNodeCriticalPods",
            Self::CsiDriver => "UnreadyRequiredCSIDrivers",
        }
    }
}

impl<'a> Waiting<'a> {
    fn of(detail: &Detail<'a>) -> Option<Self> {
        let for_what = match detail {
            Detail::DaemonSetPodMissing { .. } => Component::DaemonSet,
            Detail::PodNotReady { .. } | Detail::PodOlderThanNode { .. } => Component::Pod,
            Detail::CsiDriverMissing { .. } | Detail::CsiDriverWithoutCount { .. } => {
                Component::CsiDriver
            }
            _ => return None,
        };
        Some(Self {
            for_what,
            detail: detail.clone(),
        })
    }
}

/// Decides for one node at one time. Nothing follows for a node that is being deleted.
#[must_use]
pub fn plan<'a>(
    cluster: ClusterState<'a>,
    state: NodeState<'a>,
    history: History<'a>,
    now: Timestamp,
) -> NodePlan<'a> {
    walk(cluster, state, history, now, |_, _| ())
}

/// Settles one taint after another. `settled` sees the plan as far as it goes after each of them, and once more when
/// annotations have been added that go with no taint.
fn walk<'a>(
    cluster: ClusterState<'a>,
    state: NodeState<'a>,
    history: History<'a>,
    now: Timestamp,
    mut settled: impl FnMut(&mut NodePlan<'a>, Option<(&str, TaintEffect)>),
) -> NodePlan<'a> {
    if state.node.deleting {
        return NodePlan::default();
    }
    let claims: SmallVec<[Claim; 8]> = state
        .selecting
        .iter()
        .filter_map(|index| {
            let rule = &*cluster.rules.rules()[*index];
            rule.active().map(|spec| Claim { rule, spec })
        })
        .collect();
    let mut draft = Draft {
        cluster,
        state,
        history,
        node: state.node,
        now,
        plan: NodePlan::default(),
    };
    draft.plan.outcomes.reserve(claims.len());
    let owned: SmallVec<[Ownership; 4]> = Ownership::all(state.node)
        .filter(|owner| !cluster.rules.disproves(owner))
        .collect();
    let staying = draft.staying(&owned);
    let gates: SmallVec<[Taints; 1]> = (0..cluster.classes.len())
        .map(|class| {
            claims
                .iter()
                .filter(|claim| claim.rule.live().is_some() && claim.spec.waits_for_class(class))
                .flat_map(|claim| {
                    // The kubelet may have registered the taint with another value than the rule's.
                    let (key, effect) = (&claim.spec.taint.key, claim.spec.effect);
                    std::iter::once(&claim.spec.taint).chain(draft.taints_of(key, effect))
                })
                .collect()
        })
        .collect();
    let classes: SmallVec<[ClassFacts; 1]> = cluster
        .classes
        .iter()
        .enumerate()
        .map(|(index, class)| ClassFacts {
            class,
            daemon_sets: &cluster.daemon_sets[index],
            pods: state.pods.get(index).map_or(&[], Vec::as_slice),
            staying: &staying,
            gates: &gates[index],
        })
        .collect();
    let facts = Facts {
        node: state.node,
        csi_node: state.csi_node,
        classes: &classes,
        sightings: state.sightings,
        trust: Trust::default(),
        now,
    };

    let claimed = claims
        .iter()
        .map(|claim| (claim.spec.taint.key.as_str(), claim.spec.effect));
    let with_owner = owned
        .iter()
        .map(|owner| (owner.taint_key, owner.taint_effect));
    let left_behind = cluster
        .rules
        .rules()
        .iter()
        .filter_map(|rule| rule.left_behind(&state.node.labels))
        .map(|reach| (reach.key.as_str(), reach.effect));
    let mut concerned: SmallVec<[_; 8]> = claimed.chain(with_owner).chain(left_behind).collect();
    concerned.sort_unstable();
    concerned.dedup();
    for (key, effect) in concerned {
        let claims: SmallVec<[Claim; 4]> = claims
            .iter()
            .copied()
            .filter(|claim| claim.spec.taint.is(key, effect))
            .collect();
        let owners: SmallVec<[Ownership; 4]> = owned
            .iter()
            .copied()
            .filter(|owner| owner.is_of(key, effect))
            .collect();
        draft.settle(key, effect, &claims, &owners, &facts);
        settled(&mut draft.plan, Some((key, effect)));
    }
    // What is left of a rule goes with its taint.
    if draft.plan.look.is_empty() {
        draft.forget_deleted_rules();
    }
    draft.forget_deadlines();
    draft.postpone();
    settled(&mut draft.plan, None);
    draft.publish();
    draft.plan
}
