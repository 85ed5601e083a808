//! What every rule makes of every node, in a word and in a sentence: one pass over the nodes, from which the commands about more
//! than one node take theirs.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::snapshot::{Gap, ResourceKind, Snapshot};
use crate::api::{ConditionStatus, TaintPolicy};
use crate::condition::Source;
use crate::object::Node;
use crate::plan::{Decision, Finding, Outcome, Standing, WaitReason};

/// What one rule makes of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnNode {
    pub node: Arc<str>,
    pub rule: Arc<str>,
    pub state: State,
    pub tainted: bool,
    /// Since when, where that can be told.
    pub since: Option<Timestamp>,
    /// Why its conditions are not met, as the controller says it; empty where they are.
    pub why: String,
    pub lacks: Vec<Lack>,
}

/// A condition that is not as a rule asks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lack {
    pub kind: Arc<str>,
    pub status: ConditionStatus,
    /// Why in one word; `NotReported` where the node has none.
    pub reason: String,
}

impl OnNode {
    fn of(node: &Node, outcome: &Outcome<'_>, snapshot: &Snapshot) -> Self {
        let evaluation = &outcome.evaluation;
        let (why, lacks) = if evaluation.met {
            (String::new(), Vec::new())
        } else {
            (evaluation.why(), evaluation.unmet().map(Lack::of).collect())
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
}

impl Lack {
    fn of(finding: &Finding<'_>) -> Self {
        let condition = finding.condition.as_ref();
        let reason = condition.map(|it| it.detail.reason().to_owned());
        Self {
            kind: finding.requirement.kind.clone(),
            status: finding.current,
            reason: reason.unwrap_or_else(|| "NotReported".into()),
        }
    }
}

/// What every rule makes of every node, nodes by name.
pub fn fleet(snapshot: &Snapshot) -> Vec<OnNode> {
    let view = &snapshot.view;
    let mut nodes: Vec<_> = view.nodes().collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    let plans = nodes
        .into_iter()
        .filter_map(|node| Some((node, view.plan(&node.name)?)));
    plans
        .flat_map(|(node, plan)| {
            let outcomes = plan.outcomes.iter();
            let all: Vec<_> = outcomes
                .map(|outcome| OnNode::of(node, outcome, snapshot))
                .collect();
            all
        })
        .collect()
}

/// What a rule does to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// Its taint is on the node, and stays.
    Held,
    /// Its taint is missing, and is about to be put on.
    Closing,
    /// Its taint is on the node, and is about to be lifted.
    Opening,
    /// Its conditions are not met, and the node stays open for now.
    Spared,
    /// The node is open to its pods.
    Open,
    /// It is a dry run, and would hold the node.
    WouldHold,
    /// It is a dry run, and would leave the node open.
    WouldOpen,
    /// An earlier rule governs the same taint.
    Conflicted,
    /// It is suspended: the node stays as it is.
    Suspended,
}

impl State {
    /// What the controller makes of a node, going by what could be read. Where something could not that decides, the taint
    /// tells what the controller has decided.
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
                Self::WouldHold
            }
            Standing::DryRun(_) => Self::WouldOpen,
            Standing::Governs(decision) => match decision {
                Decision::Hold => Self::Held,
                Decision::Gate => Self::Closing,
                Decision::Release { .. } | Decision::GiveUp => Self::Opening,
                Decision::Wait(_) => Self::Spared,
                Decision::Open { .. } => Self::Open,
            },
        }
    }

    /// Whether the rule keeps the node closed, as the controller means it: its taint is there and stays, or comes at once.
    pub(super) fn holds(self) -> bool {
        matches!(self, Self::Held | Self::Closing)
    }

    /// Whether the conditions are not met, and something follows from that or would.
    pub(super) fn is_unmet(self) -> bool {
        self.holds() || matches!(self, Self::Spared | Self::WouldHold | Self::Suspended)
    }

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Closing => "closing",
            Self::Opening => "opening",
            Self::Spared => "spared",
            Self::Open => "open",
            Self::WouldHold => "would hold",
            Self::WouldOpen => "would open",
            Self::Conflicted => "conflicted",
            Self::Suspended => "suspended",
        }
    }
}

/// What could not be read of what a condition is made from, if anything.
pub fn gap<'a>(source: &Source, snapshot: &'a Snapshot) -> Option<&'a Gap> {
    let kinds: &[ResourceKind] = match source {
        Source::Class { .. } => &[
            ResourceKind::DaemonSets,
            ResourceKind::Pods,
            ResourceKind::CsiNodes,
        ],
        Source::DaemonSet(_) => &[ResourceKind::DaemonSets, ResourceKind::Pods],
        Source::CsiDriver(_) => &[ResourceKind::CsiNodes],
        Source::Resource(_) | Source::Node | Source::Nobody => &[],
    };
    kinds.iter().find_map(|kind| snapshot.gap(*kind))
}

/// Whether something could not be read that an outcome depends on.
pub fn is_unknown(outcome: &Outcome<'_>, snapshot: &Snapshot) -> bool {
    let mut results = outcome.evaluation.results.iter();
    results.any(|finding| gap(&finding.requirement.source, snapshot).is_some())
}

/// Since when a rule does to a node what it does, as the taint or the conditions tell.
pub fn since(outcome: &Outcome<'_>, node: &Node) -> Option<Timestamp> {
    if !outcome.tainted {
        return outcome.unmet_since;
    }
    let spec = outcome.rule.spec.as_ref().ok()?;
    let taint = node.taint(&spec.taint.key, spec.effect)?;
    let added = taint.time_added.as_ref();
    // A taint without a time is one that the node came with.
    added.map_or(node.created, |added| added.parse().ok())
}

/// What more there is to say of why the rule does what it does, beside its conditions.
pub fn remark(outcome: &Outcome<'_>) -> Option<String> {
    let rule = outcome.rule;
    if rule.is_suspended() {
        return Some("the rule is suspended: nothing is changed on this node".into());
    }
    let (Standing::Governs(decision) | Standing::DryRun(decision)) = outcome.standing else {
        let Standing::Conflicted { with } = outcome.standing else {
            return None;
        };
        return Some(format!(
            "rule '{}' was there first and governs the same taint",
            with.name
        ));
    };
    Some(match decision {
        Decision::Wait(WaitReason::Grace { until }) => format!(
            "its grace period ends at {}, as far as the times on the node tell",
            clock(until)
        ),
        Decision::Wait(WaitReason::Disruption) => {
            "its disruption guard decides when the node is closed: the rule's condition DisruptionLimited says how it does".into()
        }
        Decision::Wait(WaitReason::Doubt) => "it is looked at once more first".into(),
        Decision::GiveUp => "its time is up: the controller opens it though it is not ready. After a gap in what it sees, it waits for as long as the gap was".into(),
        Decision::Release { .. } => {
            "its conditions are met: the controller is about to lift the taint".into()
        }
        Decision::Gate => "the controller is about to put the taint on".into(),
        Decision::Open { .. } if outcome.evaluation.met => return None,
        Decision::Open { .. } => {
            let spec = rule.spec.as_ref().ok()?;
            if spec.taint_policy == TaintPolicy::RemoveOnly {
                "the rule only lifts its taint, and never puts it on".into()
            } else {
                "its bootstrap is on record, or the node is older than the rule, which leaves it alone".into()
            }
        }
        Decision::Hold if outcome.evaluation.met => {
            "its conditions are met, and another rule about the same taint goes first".into()
        }
        Decision::Hold => return None,
    })
}

/// The time of the day, with the day: in UTC, to the second.
pub fn clock(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second())
        .unwrap_or(time)
        .to_string()
}
