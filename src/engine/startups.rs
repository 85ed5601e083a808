//! Measures node startups: how long each condition took until the rule released the node for the first time.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::count::RuleCount;
use nodegate_core::api::EnforcementMode;
use nodegate_core::object::Node;
use nodegate_core::plan::{ConditionOutcome, NodePlan, Outcome};
use nodegate_core::repair::has_been_released;

/// The rules that hold a node that they have never released.
#[derive(Debug, Default)]
pub struct Startups(Vec<Startup>);

#[derive(Debug)]
struct Startup {
    rule_uid: Arc<str>,
    /// When the node or the rule was created, whichever was later.
    since: Timestamp,
    stages: Vec<(Arc<str>, Met)>,
}

/// When a condition was first met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
    NotYet,
    At(Timestamp),
    /// Before this process saw the node, at an unknown time.
    Earlier,
}

impl Startups {
    /// Takes in an evaluation. `is_new`: this process saw the node join just now.
    pub fn observe(&mut self, node: &Node, plan: &NodePlan<'_>, is_new: bool, now: Timestamp) {
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
            let mut known = self.0.iter_mut();
            match known.find(|it| it.rule_uid == outcome.rule.uid) {
                Some(startup) => startup.observe(outcome, now),
                None if is_held(outcome) => {
                    self.0.extend(Startup::new(node, outcome, is_new, now));
                }
                None => {}
            }
        }
    }

    /// The condition that was met last under this rule, if that is known.
    pub fn last(&self, rule_uid: &str) -> Option<Arc<str>> {
        let startup = self.0.iter().find(|it| *it.rule_uid == *rule_uid)?;
        let last = startup.known().max_by_key(|(_, at)| *at);
        last.map(|(condition, _)| condition.clone())
    }

    /// The rule has released the node: returns the known times.
    pub fn released(&mut self, rule_uid: &str) -> Option<RuleCount> {
        let index = self.0.iter().position(|it| *it.rule_uid == *rule_uid)?;
        let startup = self.0.swap_remove(index);
        let stages = startup.known().map(|(condition, at)| {
            let took = at.duration_since(startup.since);
            (condition.clone(), took.max(SignedDuration::ZERO))
        });
        Some(RuleCount::StartedUp(stages.collect()))
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
        let met = |finding: &ConditionOutcome<'_>| match finding
            .transition()
            .filter(|at| (since..=now).contains(at))
        {
            _ if !finding.is_met() => Met::NotYet,
            Some(at) => Met::At(at),
            None if is_new => Met::At(now),
            None => Met::Earlier,
        };
        let findings = outcome.findings.iter();
        Some(Self {
            rule_uid: rule.uid.clone(),
            since,
            stages: findings
                .map(|finding| (finding.requirement.kind.clone(), met(finding)))
                .collect(),
        })
    }

    /// The conditions that were first met at a known time.
    fn known(&self) -> impl Iterator<Item = (&Arc<str>, Timestamp)> {
        let stages = self.stages.iter();
        stages.filter_map(|(condition, met)| match met {
            Met::At(at) => Some((condition, *at)),
            Met::NotYet | Met::Earlier => None,
        })
    }

    fn observe(&mut self, outcome: &Outcome<'_>, now: Timestamp) {
        for ((_, met), finding) in self.stages.iter_mut().zip(outcome.findings.iter()) {
            if *met == Met::NotYet && finding.is_met() {
                *met = Met::At(now);
            }
        }
    }
}
