//! Measures node startups: how long each condition took until the rule released the node for the first time, and which component
//! each waited for last.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::count::{RuleCount, Stage};
use nodegate_core::api::EnforcementMode;
use nodegate_core::condition::{Component, Hint, Source};
use nodegate_core::object::{Node, ObjectKey};
use nodegate_core::plan::{ClusterState, ConditionOutcome, NodePlan, NodeState, Outcome};
use nodegate_core::repair::has_been_released;
use nodegate_core::rule::RequiredCondition;

/// What is known of a node and around it.
type Known<'a> = (ClusterState<'a>, NodeState<'a>);

/// The rules that hold a node that they have never released.
#[derive(Debug, Default)]
pub struct Startups(Vec<Startup>);

#[derive(Debug)]
struct Startup {
    rule_uid: Arc<str>,
    /// When the node or the rule was created, whichever was later.
    since: Timestamp,
    /// The conditions, but for those that were met at an unknown time, before this process saw the node.
    stages: Vec<Stage>,
}

impl Startups {
    /// Takes in an evaluation. `is_new`: this process saw the node join just now.
    pub fn observe(&mut self, at: Known<'_>, plan: &NodePlan<'_>, is_new: bool, now: Timestamp) {
        let node = at.1.node;
        let is_held = |outcome: &Outcome<'_>| {
            let decision = outcome.governs();
            decision.is_some_and(|it| it.holds() || it.releases())
        };
        let stays = |startup: &Startup| {
            let outcome = plan.outcome_of(&startup.rule_uid);
            outcome.is_some_and(|it| is_held(it) && is_first(node, it))
        };
        self.0.retain(stays);
        for outcome in &plan.outcomes {
            let is_of_rule = |it: &Startup| it.rule_uid == outcome.rule.uid;
            if is_held(outcome) && !self.0.iter().any(is_of_rule) {
                self.0.extend(Startup::new(node, outcome, is_new, now));
            }
            if let Some(startup) = self.0.iter_mut().find(|it| is_of_rule(it)) {
                startup.observe(at, outcome, now);
            }
        }
    }

    /// What was waited for last under this rule, if that is known.
    pub fn last(&self, rule_uid: &str) -> Option<Arc<str>> {
        let startup = self.0.iter().find(|it| *it.rule_uid == *rule_uid)?;
        let met = startup.stages.iter().filter(|it| it.took.is_some());
        let last = met.max_by_key(|it| it.took)?;
        Some(last.component.clone())
    }

    /// The rule has released the node: returns the known times.
    pub fn released(&mut self, rule_uid: &str) -> Option<RuleCount> {
        let index = self.0.iter().position(|it| *it.rule_uid == *rule_uid)?;
        let mut stages = self.0.swap_remove(index).stages;
        stages.retain(|stage| stage.took.is_some());
        Some(RuleCount::StartedUp(stages))
    }
}

/// Whether the rule has never released the node.
fn is_first(node: &Node, outcome: &Outcome<'_>) -> bool {
    let rule = outcome.rule;
    rule.active().is_some_and(|spec| match spec.mode {
        EnforcementMode::BootstrapOnly => !has_been_released(node, rule),
        EnforcementMode::Continuous => outcome.joining(),
    })
}

impl Startup {
    /// A rule that has begun to hold this node; `None` if it released the node before.
    fn new(node: &Node, outcome: &Outcome<'_>, is_new: bool, now: Timestamp) -> Option<Self> {
        let rule = outcome.rule;
        let since = node.created.max(rule.created);
        let since = since.filter(|since| is_first(node, outcome) && *since <= now)?;
        let is_between = |at: &Timestamp| (since..=now).contains(at);
        let stages = outcome.findings.iter().filter_map(|finding| {
            let kind = &finding.requirement.kind;
            let turned = finding.transition().filter(is_between);
            let took = turned
                .or(is_new.then_some(now))
                .map(|at| at.duration_since(since));
            Some(Stage {
                condition: kind.clone(),
                component: named(finding.requirement).into(),
                took: if finding.is_met() { Some(took?) } else { None },
            })
        });
        Some(Self {
            rule_uid: rule.uid.clone(),
            since,
            stages: stages.collect(),
        })
    }

    fn observe(&mut self, at: Known<'_>, outcome: &Outcome<'_>, now: Timestamp) {
        for finding in &outcome.findings {
            let mut unmet = self.stages.iter_mut().filter(|it| it.took.is_none());
            let Some(stage) = unmet.find(|it| it.condition == finding.requirement.kind) else {
                continue;
            };
            if finding.is_met() {
                stage.took = Some(now.duration_since(self.since).max(SignedDuration::ZERO));
            } else if let Some(component) = component(at, finding)
                && *component != *stage.component
            {
                stage.component = component.into();
            }
        }
    }
}

/// What a condition is about, as metrics, Events and the command line name it: a `DaemonSet`, a CSI driver, or else its type.
pub fn named(requirement: &RequiredCondition) -> String {
    match &requirement.source {
        Source::Component(Component::DaemonSet(key)) => key.to_string(),
        Source::CsiDriver(driver) => driver.clone(),
        _ => requirement.kind.to_string(),
    }
}

/// The first component that an unmet condition names: a CSI driver, or a `DaemonSet` as `namespace/name`.
pub fn component(
    (cluster, state): (ClusterState<'_>, NodeState<'_>),
    finding: &ConditionOutcome<'_>,
) -> Option<String> {
    let of_pod = |key: &ObjectKey| Some(state.made_by(key, cluster)?.1.to_string());
    match finding.detail()?.hint() {
        Hint::Unscheduled(keys) => keys.iter().next().map(ToString::to_string),
        Hint::Unready(keys) | Hint::Unconfirmed(keys) => of_pod(keys.iter().next()?),
        Hint::TooNew(pods) => of_pod(pods.iter().next()?.pod),
        Hint::Unregistered(drivers) => drivers.iter().next().map(ToString::to_string),
        Hint::Unhealthy(driver) => Some(driver.to_owned()),
        Hint::Nothing | Hint::Vacuous | Hint::Node(..) | Hint::NoDaemonSet(_) => None,
    }
}

/// The end of a note about a startup: after how many seconds, and what was waited for last, as far as that is known.
pub(super) fn written(took: Option<i64>, last: Option<&str>) -> String {
    let took = took.map_or_else(String::new, |seconds| format!(" after {seconds}s"));
    let last = last.map_or_else(String::new, |last| format!("; {last} came last"));
    took + &last
}
