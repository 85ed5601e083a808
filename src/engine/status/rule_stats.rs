//! What a rule does on all of its nodes, and what it failed to do (pure).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use smallvec::SmallVec;

use crate::api::{ConditionPolicy, ConditionStatus, EnforcementMode};
use crate::plan::{Decision, Finding, Outcome, Standing};
use crate::rule::{CompiledSpec, RequiredCondition};

/// What a rule was found to do on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub(super) role: Role,
    /// The status of each condition as the node has it, in the rule's order.
    pub(super) statuses: Vec<Option<ConditionStatus>>,
    pub(super) tainted: bool,
    pub(super) misses_a_condition: bool,
    /// Whether the rule would repair the node if it were no dry run and not too many others were unhealthy.
    pub(super) would_repair: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    Governs { holds: bool },
    Conflicted { with: Arc<str> },
    DryRun(Decision),
}

impl Record {
    /// What a rule does on a node, and whether it would repair it if it were no dry run.
    pub fn new(outcome: &Outcome<'_>, would_repair: bool) -> Self {
        Self {
            role: match outcome.standing {
                Standing::Governs(decision) => Role::Governs {
                    holds: decision.holds(),
                },
                Standing::Conflicted { with } => Role::Conflicted {
                    with: with.name.clone(),
                },
                Standing::DryRun(decision) => Role::DryRun(decision),
            },
            statuses: outcome
                .evaluation
                .results
                .iter()
                .map(Finding::observed)
                .collect(),
            tainted: outcome.tainted,
            misses_a_condition: outcome.evaluation.misses_a_condition(),
            would_repair,
        }
    }

    /// Whether the node is closed under the rule's taint, once what was decided is done.
    pub(super) fn is_held(&self) -> bool {
        match self.role {
            Role::Governs { holds } => holds,
            Role::Conflicted { .. } | Role::DryRun(_) => self.tainted,
        }
    }
}

/// Why a rule could not be carried out on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFailure {
    /// One word.
    pub reason: &'static str,
    /// What the API server said.
    pub message: String,
}

/// What a rule does on all of its nodes.
#[derive(Debug, Default)]
pub struct RuleStats {
    pub(super) nodes: BTreeMap<Arc<str>, (Record, Timestamp)>,
    pub(super) failures: BTreeMap<Arc<str>, (RuleFailure, Timestamp)>,
    /// The nodes that still have the taint of the rule, which is being deleted.
    pub(super) lingering: BTreeSet<Arc<str>>,
    /// Since when nodes have been closed under the rule's taint, or are to be.
    closed_since: BTreeMap<Arc<str>, Timestamp>,
}

impl RuleStats {
    /// Notes what the rule does on a node; answers whether that is news.
    pub fn record(&mut self, node: &Arc<str>, record: Record, now: Timestamp) -> bool {
        if self
            .nodes
            .get(node)
            .is_some_and(|(known, _)| *known == record)
        {
            return false;
        }
        if record.tainted || record.is_held() {
            self.closed_since.entry(node.clone()).or_insert(now);
        } else {
            self.closed_since.remove(node);
        }
        self.nodes.insert(node.clone(), (record, now));
        true
    }

    /// Notes that the rule could not be carried out on a node; answers whether that is news.
    pub fn fail(&mut self, node: &Arc<str>, failure: RuleFailure, now: Timestamp) -> bool {
        if self
            .failures
            .get(node)
            .is_some_and(|(known, _)| *known == failure)
        {
            return false;
        }
        self.failures.insert(node.clone(), (failure, now));
        true
    }

    /// Whether the rule could not be carried out on the node.
    pub fn has_failed(&self, node: &str) -> bool {
        self.failures.contains_key(node)
    }

    /// Notes that the rule has been carried out on a node after all; answers whether that is news.
    pub fn recover(&mut self, node: &Arc<str>) -> bool {
        self.failures.remove(node).is_some()
    }

    /// Notes whether a node still has the taint of the rule, which is being deleted; answers whether that is news.
    pub fn linger(&mut self, node: &Arc<str>, lingers: bool) -> bool {
        if lingers {
            self.lingering.insert(node.clone())
        } else {
            self.lingering.remove(node)
        }
    }

    /// How many nodes still have the taint of the rule, which is being deleted.
    pub fn lingering(&self) -> usize {
        self.lingering.len()
    }

    /// How many nodes are in which state.
    pub fn states(&self, mode: EnforcementMode) -> States {
        let mut states = States::default();
        for (name, (record, _)) in &self.nodes {
            match (self.is_held(name, record), mode) {
                (false, _) => states.ready += 1,
                (true, EnforcementMode::Continuous) => states.not_ready += 1,
                (true, EnforcementMode::BootstrapOnly) => states.bootstrapping += 1,
            }
        }
        match mode {
            EnforcementMode::Continuous => states.not_ready += self.lingering(),
            EnforcementMode::BootstrapOnly => states.bootstrapping += self.lingering(),
        }
        states
    }

    /// Since when the node that has been closed longest has been closed, as far as this process has seen.
    pub fn longest_closed_since(&self) -> Option<Timestamp> {
        self.closed_since.values().min().copied()
    }

    /// Whether a node is closed under the rule's taint: as decided, or as it is where that could not be carried out.
    pub(super) fn is_held(&self, node: &str, record: &Record) -> bool {
        if self.failures.contains_key(node) {
            record.tainted
        } else {
            record.is_held()
        }
    }

    /// The status of each condition as it was found on a node last; none, where the node had no such condition.
    pub fn statuses(&self, node: &str) -> Option<&[Option<ConditionStatus>]> {
        self.nodes
            .get(node)
            .map(|(record, _)| record.statuses.as_slice())
    }

    /// The statuses of the rule's conditions, node by node.
    pub fn all_statuses(&self) -> impl Iterator<Item = (&Arc<str>, &[Option<ConditionStatus>])> {
        self.nodes
            .iter()
            .map(|(node, (record, _))| (node, record.statuses.as_slice()))
    }

    /// How many nodes the rule selects.
    pub fn matched(&self) -> usize {
        self.nodes.len()
    }

    /// How many nodes the rule holds for the sake of each of its conditions, in the rule's order; of several of which one
    /// would do, only nodes on which none is met.
    pub fn blocked(&self, spec: &CompiledSpec) -> Vec<usize> {
        let mut blocked = vec![0; spec.conditions.len()];
        for (name, (record, _)) in &self.nodes {
            let is_unmet = |(asked, found): (&RequiredCondition, &Option<ConditionStatus>)| {
                found.unwrap_or(asked.status_if_missing()) != asked.required
            };
            let unmet: SmallVec<[bool; 8]> = spec
                .conditions
                .iter()
                .zip(&record.statuses)
                .map(is_unmet)
                .collect();
            let is_met = spec.policy == ConditionPolicy::AnyOf && !unmet.iter().all(|it| *it);
            if is_met || !self.is_held(name, record) {
                continue;
            }
            for (count, is_unmet) in blocked.iter_mut().zip(unmet) {
                *count += usize::from(is_unmet);
            }
        }
        blocked
    }

    /// Whether the rule, a dry run, would repair some node.
    pub fn would_repair_any(&self) -> bool {
        self.nodes.values().any(|(record, _)| record.would_repair)
    }

    /// Whether the rule, a dry run, would repair this node.
    pub fn would_repair(&self, node: &str) -> bool {
        let record = self.nodes.get(node);
        record.is_some_and(|(record, _)| record.would_repair)
    }

    /// Whether there is something to tell of a rule that is being deleted: nodes still have its taint, or it could not
    /// be carried out somewhere.
    pub fn has_unfinished(&self) -> bool {
        !self.failures.is_empty() || !self.lingering.is_empty()
    }

    /// Forgets a node that the rule does not select any more, with its failure once the node is clean; answers
    /// whether that is news.
    pub fn forget(&mut self, node: &Arc<str>, is_clean: bool) -> bool {
        let recovered = is_clean && self.recover(node);
        self.closed_since.remove(node);
        self.nodes.remove(node).is_some() || recovered
    }
}

/// How many nodes of a rule are in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct States {
    /// Free of the taint.
    pub ready: usize,
    /// Held by a continuous rule.
    pub not_ready: usize,
    /// Held by a bootstrap-only rule.
    pub bootstrapping: usize,
}
