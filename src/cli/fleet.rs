//! The effect of every rule on every node, from one pass over the nodes. The commands about more than one node use it.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::snapshot::{Gap, ResourceKind, Snapshot};
use crate::api::{ConditionStatus, TaintPolicy};
use crate::condition::{Component, Source};
use crate::object::Node;
use crate::plan::{Decision, Finding, NodePlan, Outcome, Standing, WaitReason};
use crate::rule::{Reach, Rule};

/// The effect of one rule on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OnNode {
    pub node: Arc<str>,
    pub rule: Arc<str>,
    pub state: State,
    pub tainted: bool,
    /// Since when, if that is known.
    pub since: Option<Timestamp>,
    /// The controller's message about the unmet conditions; empty if they are met.
    pub why: String,
    pub lacks: Vec<Lack>,
}

/// A condition that does not have the required status.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lack {
    pub kind: Arc<str>,
    pub status: ConditionStatus,
    /// The reason in one word; `NotReported` if the node lacks the condition.
    pub reason: String,
}

impl OnNode {
    fn of(node: &Node, outcome: &Outcome<'_>, snapshot: &Snapshot) -> Self {
        let (why, lacks) = if outcome.met {
            (String::new(), Vec::new())
        } else {
            let lacks = outcome.unmet().map(Lack::of);
            (outcome.why(), lacks.collect())
        };
        Self {
            node: node.name.clone(),
            rule: outcome.rule.name.clone(),
            state: State::of(outcome, snapshot),
            tainted: outcome.tainted,
            since: since(outcome, node),
            why,
            lacks,
        }
    }

    /// A rule that is being deleted, and whose taint is still on the node.
    fn of_deleted(node: &Node, rule: &Rule, reach: &Reach, snapshot: &Snapshot) -> Self {
        Self {
            node: node.name.clone(),
            rule: rule.name.clone(),
            state: State::Held,
            tainted: true,
            since: node.tainted_since(&reach.key, reach.effect),
            why: why_lingering(rule, snapshot),
            lacks: Vec::new(),
        }
    }
}

impl Lack {
    fn of(finding: &Finding<'_>) -> Self {
        let reason = finding.detail().map(|it| it.reason().to_owned());
        Self {
            kind: finding.requirement.kind.clone(),
            status: finding.current,
            reason: reason.unwrap_or_else(|| "NotReported".into()),
        }
    }
}

/// The effect of every rule on every node, sorted by node name.
pub(super) fn fleet(snapshot: &Snapshot) -> Vec<OnNode> {
    let view = &snapshot.view;
    let mut nodes: Vec<_> = view.nodes().collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    let plans = nodes
        .into_iter()
        .filter_map(|node| Some((node, view.plan(&node.name)?)));
    plans
        .flat_map(|(node, plan)| {
            let outcomes = plan.outcomes.iter();
            let outcomes = outcomes.map(|outcome| OnNode::of(node, outcome, snapshot));
            let deleted = lingering(node, &plan, snapshot)
                .map(|(rule, reach)| OnNode::of_deleted(node, rule, reach, snapshot));
            outcomes.chain(deleted).collect::<Vec<_>>()
        })
        .collect()
}

/// The rules that are being deleted and still hold the node: their taints are on it, and no other rule governs them there.
pub(super) fn lingering<'a>(
    node: &'a Node,
    plan: &NodePlan<'_>,
    snapshot: &'a Snapshot,
) -> impl Iterator<Item = (&'a Rule, &'a Reach)> {
    let deleted = snapshot.view.rules().lingering(node);
    deleted.filter(|(_, reach)| {
        let governs = |it: &Outcome<'_>| {
            let is_governing = matches!(it.standing, Standing::Governs(_));
            is_governing && it.rule.is_about(&reach.key, reach.effect)
        };
        !node.deleting && !plan.outcomes.iter().any(governs)
    })
}

/// Why a rule that is being deleted still holds a node.
pub(super) fn why_lingering(rule: &Rule, snapshot: &Snapshot) -> String {
    let mut written = snapshot.rules.iter().map(|it| &it.metadata);
    let since = written.find_map(|meta| {
        let is_it = meta.uid.as_deref() == Some(&rule.uid);
        meta.deletion_timestamp.as_ref().filter(|_| is_it)
    });
    let since = since.map_or_else(String::new, |since| format!(" since {}", clock(since.0)));
    format!("the rule is being deleted{since}: its taint stays until a controller lifts it")
}

/// The effect of a rule on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// The node has the taint and keeps it.
    Held,
    /// The node lacks the taint and is about to get it.
    Closing,
    /// The node has the taint and is about to lose it.
    Opening,
    /// Conditions are unmet, but the node stays open for now.
    Waiting,
    /// The node is open to pods.
    Open,
    /// A dry run that would hold the node.
    WouldClose,
    /// A dry run that would leave the node open.
    WouldOpen,
    /// A rule with precedence governs the same taint.
    Conflicted,
    /// The rule is suspended: the node stays as it is.
    Suspended,
}

impl State {
    /// The controller's effect on a node, from what could be read. If evidence for the decision is missing, the taint shows
    /// what the controller decided.
    pub(super) fn of(outcome: &Outcome<'_>, snapshot: &Snapshot) -> Self {
        let governs = matches!(outcome.standing, Standing::Governs(_));
        match Self::decided(outcome) {
            Self::Suspended => Self::Suspended,
            _ if governs && is_unknown(outcome, snapshot) => {
                if outcome.tainted {
                    Self::Held
                } else {
                    Self::Open
                }
            }
            state => state,
        }
    }

    pub(super) fn decided(outcome: &Outcome<'_>) -> Self {
        if outcome.rule.is_suspended() {
            return Self::Suspended;
        }
        match outcome.standing {
            Standing::Conflicted { .. } => Self::Conflicted,
            Standing::DryRun(Decision::Hold | Decision::Gate | Decision::Wait(_)) => {
                Self::WouldClose
            }
            Standing::DryRun(_) => Self::WouldOpen,
            Standing::Governs(decision) => match decision {
                Decision::Hold => Self::Held,
                Decision::Gate => Self::Closing,
                Decision::Release { .. } | Decision::GiveUp => Self::Opening,
                Decision::Wait(_) => Self::Waiting,
                Decision::Open { .. } => Self::Open,
            },
        }
    }

    /// Whether the rule keeps the node closed, in the controller's sense: the node has the taint and keeps it, or is about to
    /// get it.
    pub(super) fn holds(self) -> bool {
        matches!(self, Self::Held | Self::Closing)
    }

    /// Whether conditions are unmet and that has, or would have, an effect.
    pub(super) fn is_unmet(self) -> bool {
        self.holds() || matches!(self, Self::Waiting | Self::WouldClose | Self::Suspended)
    }

    /// The state as words for people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Closing => "closing",
            Self::Opening => "opening",
            Self::Waiting => "waiting to close",
            Self::Open => "open",
            Self::WouldClose => "would close",
            Self::WouldOpen => "would open",
            Self::Conflicted => "conflicted",
            Self::Suspended => "suspended",
        }
    }
}

/// The missing evidence for a condition, if any.
pub(super) fn gap<'a>(source: &Source, snapshot: &'a Snapshot) -> Option<&'a Gap> {
    let kinds: &[ResourceKind] = match source {
        Source::Class { .. } => &[
            ResourceKind::DaemonSets,
            ResourceKind::Pods,
            ResourceKind::CsiNodes,
        ],
        Source::Component(Component::DaemonSet(_) | Component::AllDaemonSets) => {
            &[ResourceKind::DaemonSets, ResourceKind::Pods]
        }
        Source::Component(Component::Check(_)) => &[ResourceKind::Pods],
        Source::Component(Component::Devices(_)) => &[ResourceKind::ResourceSlices],
        Source::CsiDriver(_) => &[ResourceKind::CsiNodes],
        Source::Resource(_) | Source::Node | Source::Nobody => &[],
    };
    kinds.iter().find_map(|kind| snapshot.gap(*kind))
}

/// Whether evidence for the outcome is missing.
pub(super) fn is_unknown(outcome: &Outcome<'_>, snapshot: &Snapshot) -> bool {
    let mut results = outcome.findings.iter();
    results.any(|finding| gap(&finding.requirement.source, snapshot).is_some())
}

/// Since when the rule has this effect on the node, if the taint or the conditions show it.
pub(super) fn since(outcome: &Outcome<'_>, node: &Node) -> Option<Timestamp> {
    if !outcome.tainted {
        return outcome.unmet_since;
    }
    let spec = outcome.rule.spec.as_ref().ok()?;
    node.tainted_since(&spec.taint.key, spec.effect)
}

/// Why the rule has this effect, as far as its conditions do not explain it.
pub(super) fn remark(outcome: &Outcome<'_>, node: &Node) -> Option<String> {
    let rule = outcome.rule;
    if rule.is_suspended() {
        return Some("the rule is suspended: it changes nothing on this node".into());
    }
    let (Standing::Governs(decision) | Standing::DryRun(decision)) = outcome.standing else {
        let Standing::Conflicted { with } = outcome.standing else {
            return None;
        };
        return Some(format!(
            "rule '{}' is older and governs the same taint",
            with.name
        ));
    };
    Some(match decision {
        Decision::Wait(WaitReason::Grace { until }) => format!(
            "its grace period ends at {}, judged by the times on the node",
            clock(until)
        ),
        Decision::Wait(WaitReason::Disruption) => {
            "its disruption limit holds it back: see the rule's condition DisruptionLimited".into()
        }
        Decision::Wait(WaitReason::Stale) => "the controller re-reads the node first".into(),
        Decision::GiveUp => "it was not ready in time: the controller opens it anyway. After an interruption it waits for as long as that lasted".into(),
        Decision::Release { .. } => {
            "its conditions are met: the controller is about to lift the taint".into()
        }
        Decision::Gate => "the controller is about to add the taint".into(),
        Decision::Open { .. } if outcome.met => return None,
        Decision::Open { .. } => {
            let spec = rule.spec.as_ref().ok()?;
            if spec.taint_policy == TaintPolicy::RemoveOnly {
                "the rule only lifts its taint, and never adds it".into()
            } else if rule.leaves_alone(node.created) {
                "the node is older than the rule, which leaves such nodes alone (existingNodes: Leave)".into()
            } else {
                "its bootstrap is on record: from then on the rule leaves the node open".into()
            }
        }
        Decision::Hold if outcome.met => {
            "its conditions are met, and another rule about the same taint goes first".into()
        }
        Decision::Hold => return None,
    })
}

/// Date and time in UTC, to the second.
pub(super) fn clock(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second())
        .unwrap_or(time)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::testing::Scene;
    use crate::testing::{Builder, at, node, rule};

    #[test]
    fn why_an_open_node_that_lacks_a_condition_is_left_open() {
        let bootstrap = || rule("r").bootstrap_only().waits_for("example.com/Ready");
        let leaves = || bootstrap().nodegate("existingNodes: Leave");
        let older = || node("n").created(at(-60));
        for (rule, node, expected) in [
            (
                bootstrap(),
                node("n").completed("r-uid"),
                "its bootstrap is on record",
            ),
            (leaves(), older(), "the node is older than the rule"),
            (
                leaves(),
                node("n").completed("r-uid"),
                "its bootstrap is on record",
            ),
        ] {
            let snapshot = Scene::default().rule(&rule).node(node).read(at(60));
            let plan = snapshot.view.plan("n").unwrap();
            let known = snapshot.view.node("n").unwrap().node;
            let said = remark(&plan.outcomes[0], known).unwrap_or_default();
            assert!(said.starts_with(expected), "{expected}: {said}");
        }
    }
}
