//! Statistics of a rule over its nodes, and its failures (pure).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use smallvec::SmallVec;

use crate::api::{ConditionPolicy, ConditionStatus, EnforcementMode};
use crate::plan::{Decision, Finding, Outcome, Standing};
use crate::rule::{CompiledSpec, RequiredCondition};

/// What a rule does on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and may go with any of the others"
)]
pub struct Record {
    pub(super) role: Role,
    /// The status of each condition on the node, in the rule's order.
    pub(super) statuses: Vec<Option<ConditionStatus>>,
    pub(super) tainted: bool,
    /// Whether the conditions are not met, as far as they have been seen.
    pub(super) unmet: bool,
    pub(super) misses_a_condition: bool,
    /// Whether the rule would repair the node if it were no dry run and the repair were not blocked.
    pub(super) would_repair: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    Governs { holds: bool },
    Conflicted { with: Arc<str> },
    DryRun(Decision),
}

impl Record {
    /// A record of this outcome.
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
            statuses: outcome.findings.iter().map(Finding::observed).collect(),
            tainted: outcome.tainted,
            unmet: !outcome.met && !outcome.is_to_be_seen(),
            misses_a_condition: outcome.misses_a_condition(),
            would_repair,
        }
    }

    /// Whether the rule's taint closes the node once the decision is carried out.
    pub(super) fn is_held(&self) -> bool {
        match self.role {
            Role::Governs { holds } => holds,
            Role::Conflicted { .. } | Role::DryRun(_) => self.tainted,
        }
    }
}

/// Why a rule failed on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFailure {
    /// A reason in CamelCase.
    pub reason: &'static str,
    /// The API server's message.
    pub message: String,
}

/// What a rule does on all of its nodes.
#[derive(Debug, Default)]
pub struct RuleStats {
    pub(super) nodes: BTreeMap<Arc<str>, (Record, Timestamp)>,
    pub(super) failures: BTreeMap<Arc<str>, (RuleFailure, Timestamp)>,
    /// The nodes that still have the taint of a rule that is being deleted.
    pub(super) lingering: BTreeSet<Arc<str>>,
    /// Since when each node has been closed under the rule's taint, or is to be.
    closed_since: BTreeMap<Arc<str>, Timestamp>,
}

impl RuleStats {
    /// Notes what the rule does on a node; returns whether that is new.
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

    /// Notes that the rule failed on a node; returns whether that is new.
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

    pub fn has_failed(&self, node: &str) -> bool {
        self.failures.contains_key(node)
    }

    /// Notes that the rule no longer fails on a node; returns whether that is new.
    pub fn recover(&mut self, node: &Arc<str>) -> bool {
        self.failures.remove(node).is_some()
    }

    /// Notes whether a node still has the taint of a rule that is being deleted; returns whether that is new.
    pub fn linger(&mut self, node: &Arc<str>, lingers: bool) -> bool {
        if lingers {
            self.lingering.insert(node.clone())
        } else {
            self.lingering.remove(node)
        }
    }

    /// How many nodes still have the taint of a rule that is being deleted.
    pub fn lingering(&self) -> usize {
        self.lingering.len()
    }

    /// The number of nodes in each state.
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

    /// Since when the longest-held node has been closed, as far as this process has seen.
    pub fn longest_closed_since(&self) -> Option<Timestamp> {
        self.closed_since.values().min().copied()
    }

    /// Whether a node is closed under the rule's taint: as decided, or as it is if that failed.
    pub(super) fn is_held(&self, node: &str, record: &Record) -> bool {
        if self.failures.contains_key(node) {
            record.tainted
        } else {
            record.is_held()
        }
    }

    /// The last status of each condition on a node; `None` for a condition that the node lacked.
    pub fn statuses(&self, node: &str) -> Option<&[Option<ConditionStatus>]> {
        self.nodes
            .get(node)
            .map(|(record, _)| record.statuses.as_slice())
    }

    /// The last status of each condition, node by node.
    pub fn all_statuses(&self) -> impl Iterator<Item = (&Arc<str>, &[Option<ConditionStatus>])> {
        self.nodes
            .iter()
            .map(|(node, (record, _))| (node, record.statuses.as_slice()))
    }

    pub fn matched(&self) -> usize {
        self.nodes.len()
    }

    /// How many nodes the rule holds because of each condition, in the rule's order. For a rule that needs only one of several,
    /// nodes on which none is met.
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

    /// Whether the rule, a dry run, would repair any node.
    pub fn would_repair_any(&self) -> bool {
        self.nodes.values().any(|(record, _)| record.would_repair)
    }

    /// Whether the rule, a dry run, would repair this node.
    pub fn would_repair(&self, node: &str) -> bool {
        let record = self.nodes.get(node);
        record.is_some_and(|(record, _)| record.would_repair)
    }

    /// Whether a rule that is being deleted has something to report: nodes with its taint, or failures.
    pub fn has_unfinished(&self) -> bool {
        !self.failures.is_empty() || !self.lingering.is_empty()
    }

    /// Forgets a node that the rule no longer selects, and its failure if the node is clean; returns whether that is new.
    pub fn forget(&mut self, node: &Arc<str>, is_clean: bool) -> bool {
        let recovered = is_clean && self.recover(node);
        self.closed_since.remove(node);
        self.nodes.remove(node).is_some() || recovered
    }
}

/// The number of nodes in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct States {
    /// Free of the taint.
    pub ready: usize,
    /// Held by a continuous rule.
    pub not_ready: usize,
    /// Held by a bootstrap-only rule.
    pub bootstrapping: usize,
}
