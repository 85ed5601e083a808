//! A node's start under a rule: from the record if it has ended, or from the current state if it has not.

use jiff::Timestamp;
use serde::Serialize;

use crate::cli::explain::ConditionOnNode;
use crate::cli::fleet::State;
use crate::cli::snapshot::{NodeOrigin, Recorded, Snapshot};
use crate::object::Node;
use crate::plan::Outcome;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Start {
    pub node: String,
    /// The rule's name at that time.
    pub rule: String,
    /// When the Node object was created, that is, when its kubelet registered it.
    pub created: Timestamp,
    /// When the taint was removed; `None` if it is still there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened: Option<Timestamp>,
    /// Seconds from the node's creation until it opened, or until now.
    pub seconds: f64,
    /// What happened, in order; stages that have not happened yet come last.
    pub stages: Vec<StartStage>,
    /// How many conditions the record had no room for: those met first.
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

/// One stage of a node's start.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StartStage {
    pub kind: StageKind,
    /// The condition's type; empty for other stages.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// Seconds since the node's creation: negative for earlier stages, `None` for stages that have not happened yet.
    pub seconds: Option<f64>,
    /// Whether this condition decides when the node opens: it was met last, or is still unmet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub last: bool,
}

/// The kind of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum StageKind {
    Asked,
    Launched,
    /// The Node object was created.
    Registered,
    Closed,
    Condition,
    Opened,
}

impl StageKind {
    pub(crate) const fn words(self) -> &'static str {
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
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &StartStage> {
        let is_condition = |stage: &&StartStage| stage.kind == StageKind::Condition;
        self.stages.iter().filter(is_condition)
    }

    /// The condition that was met last, or is still unmet.
    pub(crate) fn last(&self) -> Option<&StartStage> {
        let mut stages = self.stages.iter();
        stages.find(|stage| stage.last)
    }
}

/// The start of a node under each rule.
pub(super) fn of_node(snapshot: &Snapshot, node: &Node) -> Vec<Start> {
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
        // A met condition without a transition time counts as met now.
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

/// All stages, in order.
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

/// Seconds between two times, rounded to milliseconds.
fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    (to.duration_since(from).as_secs_f64() * 1000.0).round() / 1000.0
}
