//! A node's start under a rule: off the record where it has ended, and what is known so far where it has not.

use jiff::Timestamp;
use serde::Serialize;

use crate::cli::explain::ConditionOnNode;
use crate::cli::fleet::State;
use crate::cli::snapshot::{NodeOrigin, Recorded, Snapshot};
use crate::object::Node;
use crate::plan::Outcome;

/// A node's start under a rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Start {
    pub node: String,
    /// The rule, by the name that it had.
    pub rule: String,
    /// When the Node object was created, which is when its kubelet has registered it.
    pub created: Timestamp,
    /// When the taint was lifted; `None` while it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened: Option<Timestamp>,
    /// How long it took from the node's creation, or has taken so far.
    pub seconds: f64,
    /// What happened when, in this order; what has not happened yet comes last.
    pub stages: Vec<StartStage>,
    /// How many conditions the record has no room for: those that were met first.
    #[serde(skip_serializing_if = "is_none")]
    pub left_out: usize,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "so serde calls what decides whether a field is written"
)]
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Something that happened at a node's start.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StartStage {
    pub kind: StageKind,
    /// The condition's type, where it is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// How long after the node's creation it was; negative for what was before it, `None` for what has not happened yet.
    pub seconds: Option<f64>,
    /// Whether the node was opened when this was done, and not before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub last: bool,
}

/// What happens at a node's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StageKind {
    Asked,
    Launched,
    /// It was registered: the Node object is there.
    Registered,
    Closed,
    Condition,
    Opened,
}

impl StageKind {
    pub const fn words(self) -> &'static str {
        match self {
            Self::Asked => "asked for",
            Self::Launched => "launched",
            Self::Registered => "registered",
            Self::Closed => "closed",
            Self::Condition => "condition",
            Self::Opened => "opened",
        }
    }
}

impl Start {
    pub fn conditions(&self) -> impl Iterator<Item = &StartStage> {
        let is_condition = |stage: &&StartStage| stage.kind == StageKind::Condition;
        self.stages.iter().filter(is_condition)
    }

    /// The condition that came last, or that has not come yet.
    pub fn last(&self) -> Option<&StartStage> {
        let mut stages = self.stages.iter();
        stages.find(|stage| stage.last)
    }
}

/// How a node has started under each rule.
pub fn of_node(snapshot: &Snapshot, node: &Node) -> Vec<Start> {
    let mut origins = snapshot.origins.iter();
    let origin = origins.find(|origin| *origin.node == *node.name);
    let records = snapshot.records.get(&*node.name);
    let records = records.map_or(&[][..], Vec::as_slice);
    let mut starts: Vec<Start> = records
        .iter()
        .map(|recorded| recorded_start(node, recorded, origin))
        .collect();
    let Some(plan) = snapshot.view.plan(&node.name) else {
        return starts;
    };
    let outcomes = plan.outcomes.iter().filter(|outcome| {
        let is_recorded = records.iter().any(|it| *it.rule_uid == *outcome.rule.uid);
        outcome.tainted && !is_recorded && State::of(outcome, snapshot).holds()
    });
    starts.extend(outcomes.filter_map(|outcome| so_far(snapshot, node, outcome, origin)));
    starts
}

fn recorded_start(node: &Node, recorded: &Recorded, origin: Option<&NodeOrigin>) -> Start {
    let record = &recorded.record;
    let after = |at: Timestamp| seconds(record.created, at);
    let conditions = record
        .conditions
        .iter()
        .map(|(kind, at)| (kind.clone(), Some(after(*at))));
    let opened = after(record.opened);
    let closed = Some(after(record.tainted));
    Start {
        node: node.name.to_string(),
        rule: record.rule_name.clone(),
        created: record.created,
        opened: Some(record.opened),
        seconds: opened,
        stages: stages(
            record.created,
            origin,
            closed,
            conditions.collect(),
            Some(opened),
        ),
        left_out: record.left_out,
    }
}

fn so_far(
    snapshot: &Snapshot,
    node: &Node,
    outcome: &Outcome<'_>,
    origin: Option<&NodeOrigin>,
) -> Option<Start> {
    let created = node.created?;
    let after = |at: Timestamp| seconds(created, at);
    let spec = outcome.rule.spec.as_ref().ok()?;
    let taint = node.taint(&spec.taint.key, spec.effect);
    let closed = taint.and_then(|taint| taint.time_added.as_ref()?.parse().ok());
    let findings = outcome.evaluation.results.iter();
    let conditions = findings.map(|finding| {
        let condition = ConditionOnNode::of(finding, node, snapshot);
        let met = condition.since.filter(|_| condition.met);
        // What is met, though nobody knows since when, was met by now.
        let met = met.or_else(|| condition.met.then_some(snapshot.at));
        (condition.kind.to_string(), met.map(after))
    });
    Some(Start {
        node: node.name.to_string(),
        rule: outcome.rule.name.to_string(),
        created,
        opened: None,
        seconds: after(snapshot.at),
        stages: stages(
            created,
            origin,
            closed.map(after),
            conditions.collect(),
            None,
        ),
        left_out: 0,
    })
}

/// What happened, in order.
fn stages(
    created: Timestamp,
    origin: Option<&NodeOrigin>,
    closed: Option<f64>,
    mut conditions: Vec<(String, Option<f64>)>,
    opened: Option<f64>,
) -> Vec<StartStage> {
    let stage = |kind: StageKind, seconds: Option<f64>| StartStage {
        kind,
        condition: String::new(),
        seconds,
        last: false,
    };
    let before = |at: Timestamp| Some(seconds(created, at));
    let asked = origin.map(|origin| stage(StageKind::Asked, before(origin.asked)));
    let launched = origin.and_then(|origin| origin.launched);
    let launched = launched.map(|at| stage(StageKind::Launched, before(at)));
    let closed = closed.map(|seconds| stage(StageKind::Closed, Some(seconds)));
    let when = |seconds: Option<f64>| seconds.unwrap_or(f64::INFINITY);
    conditions.sort_by(|a, b| when(a.1).total_cmp(&when(b.1)).then_with(|| a.0.cmp(&b.0)));
    let count = conditions.len();
    let conditions = conditions
        .into_iter()
        .enumerate()
        .map(|(index, (condition, seconds))| StartStage {
            condition,
            last: index + 1 == count,
            ..stage(StageKind::Condition, seconds)
        });
    asked
        .into_iter()
        .chain(launched)
        .chain([stage(StageKind::Registered, Some(0.0))])
        .chain(closed)
        .chain(conditions)
        .chain([stage(StageKind::Opened, opened)])
        .collect()
}

/// How long it is from one time to another, in seconds, to the millisecond.
fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    (to.duration_since(from).as_secs_f64() * 1000.0).round() / 1000.0
}
