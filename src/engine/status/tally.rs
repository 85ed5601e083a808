//! What each rule does on each node: a record, kept with the node. What a rule does on all of its nodes is a tally of these
//! records, made anew for each status and each scrape (pure).

use std::sync::Arc;

use jiff::Timestamp;
use smallvec::SmallVec;

use nodegate_core::api::{ConditionPolicy, ConditionStatus, Pause};
use nodegate_core::plan::{ConditionOutcome, Decision, NodePlan, Outcome, Standing, WaitReason};
use nodegate_core::rule::{CompiledSpec, Rule};

/// What one rule does on one node, or has yet to do there.
#[derive(Debug, Default)]
pub struct Record {
    /// UID of the rule.
    pub rule: Arc<str>,
    /// `None` for a rule that does not select the node, or is being deleted.
    pub(super) found: Option<Found>,
    /// The term of the rule's permission to gate the node although it is in use; 0 without one.
    pub(crate) covered: u64,
    /// When that last changed.
    pub(super) at: Timestamp,
    /// Since when the node has been held, or is to be.
    held_since: Option<Timestamp>,
    /// The message with which the rule failed on the node, and when.
    pub failure: Option<Box<(String, Timestamp)>>,
    /// What keeps the rule from changing the node for now.
    pub pause: Option<Box<Pause>>,
    /// Whether a rule that is being deleted has removed all that it left on the node.
    pub is_clean: bool,
    /// Whether it has yet to remove its taint.
    lingers: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Found {
    pub standing: Standing,
    /// The status of each condition on the node, in the rule's order; `None` if the node lacks it.
    pub statuses: SmallVec<[Option<ConditionStatus>; 8]>,
    pub tainted: bool,
    /// Whether the conditions are not met, as far as they have been seen.
    pub unmet: bool,
    would_repair: bool,
}

impl Found {
    pub(crate) fn of(outcome: &Outcome<'_>) -> Self {
        let statuses = outcome.findings.iter().map(ConditionOutcome::observed);
        Self {
            standing: outcome.standing.clone(),
            statuses: statuses.collect(),
            tainted: outcome.tainted,
            unmet: !outcome.met && !outcome.is_to_be_seen(),
            would_repair: outcome.would_repair(),
        }
    }

    /// Whether the rule does not hold the node, which is not joining.
    pub(crate) fn is_in_use(&self) -> bool {
        let is_free = match self.standing {
            Standing::DryRun(_) => true,
            Standing::Governs(decision) => {
                matches!(decision, Decision::NotHeld | Decision::Wait(_))
            }
            Standing::Conflicted { .. } => false,
        };
        is_free && !self.tainted
    }

    /// Whether the node is in use and would be gated, and the rule may not begin with such nodes yet.
    pub(crate) fn is_held_back(&self) -> bool {
        self.standing == Standing::Governs(Decision::Wait(WaitReason::FirstGating))
    }
}

impl Record {
    /// The record of this rule among those of a node, created if missing.
    pub fn of<'r>(records: &'r mut Vec<Self>, rule: &Arc<str>) -> &'r mut Self {
        let known = records.iter().position(|record| record.rule == *rule);
        let index = known.unwrap_or_else(|| {
            records.push(Self {
                rule: rule.clone(),
                is_clean: true,
                ..Self::default()
            });
            records.len() - 1
        });
        &mut records[index]
    }

    /// Notes an outcome; returns whether that is new.
    pub fn see(&mut self, outcome: &Outcome<'_>, now: Timestamp) -> bool {
        let found = Some(Found::of(outcome));
        let is_news = self.found != found;
        if is_news {
            let holds = outcome.tainted || outcome.governs().is_some_and(Decision::holds);
            self.held_since = holds.then(|| self.held_since.unwrap_or(now));
            (self.found, self.at) = (found, now);
        }
        is_news
    }

    /// Notes the plan for a node that the rule does not select, or that it has to clean because it is `deleted`; returns
    /// whether that is new. A failure stays on record until no taint of the node is to be changed.
    pub fn leave(&mut self, plan: &NodePlan<'_>, deleted: Option<&Rule>) -> bool {
        let lingered = self.lingers;
        self.covered = 0;
        self.lingers = deleted.is_some_and(|rule| plan.releases_for(rule));
        self.held_since = None;
        let recovers = plan.changes().next().is_none() && !plan.awaiting.contains(&self.rule);
        let recovered = recovers && self.failure.take().is_some();
        self.found.take().is_some() || recovered || lingered != self.lingers
    }

    /// Notes that the rule failed on the node; returns whether that is new.
    pub fn fail(&mut self, message: String, now: Timestamp) -> bool {
        let is_news = self.failure.as_ref().is_none_or(|it| it.0 != message);
        if is_news {
            self.failure = Some(Box::new((message, now)));
        }
        is_news
    }

    /// Permits the rule to gate the node in this term, if it governs its taint there; returns whether the node waits for that.
    pub(crate) fn cover(&mut self, term: u64) -> bool {
        let found = self.found.as_ref();
        let is_governed = |it: &&Found| matches!(it.standing, Standing::Governs(_));
        let Some(found) = found.filter(is_governed) else {
            return false;
        };
        self.covered = term;
        found.is_held_back()
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_none() && self.failure.is_none() && self.pause.is_none() && self.is_clean
    }

    /// Whether the condition at this place had this status at the last outcome; `None` if the node lacked it.
    pub fn had(&self, index: usize, status: Option<ConditionStatus>) -> bool {
        let found = self.found.as_ref();
        found.and_then(|found| found.statuses.get(index)) == Some(&status)
    }

    /// Whether the rule's taint is on the node: as decided, or as it is if that is not carried out.
    pub(super) fn is_held(&self) -> bool {
        let mut found = self.found.iter();
        found.any(|found| match found.standing {
            Standing::Governs(decision) if self.failure.is_none() && self.pause.is_none() => {
                decision.holds()
            }
            _ => found.tainted,
        })
    }
}

/// The records of one rule, each with its node, in order of the nodes' names.
#[derive(Debug, Default)]
pub(crate) struct Tally<'a>(Vec<(&'a Arc<str>, &'a Record)>);

impl<'a> Tally<'a> {
    /// The records of the rule with this UID among those of all nodes, which come in order of their names.
    pub(crate) fn of(
        rule: &str,
        nodes: impl IntoIterator<Item = (&'a Arc<str>, &'a [Record])>,
    ) -> Self {
        // Most nodes have the same rules in the same order.
        let mut place = 0;
        let of_rule = nodes.into_iter().filter_map(|(node, records)| {
            if records.get(place).is_none_or(|it| *it.rule != *rule) {
                place = records.iter().position(|it| *it.rule == *rule)?;
            }
            Some((node, &records[place]))
        });
        Self(of_rule.collect())
    }

    /// The nodes that the rule selects, as far as they have been evaluated.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&'a Arc<str>, &'a Record, &'a Found)> {
        let records = self.0.iter();
        records.filter_map(|(node, record)| Some((*node, *record, record.found.as_ref()?)))
    }

    pub(crate) fn found(&self) -> impl Iterator<Item = &'a Found> {
        self.nodes().map(|(.., found)| found)
    }

    pub(super) fn failures(&self) -> impl Iterator<Item = (&'a Arc<str>, &'a (String, Timestamp))> {
        let records = self.0.iter();
        records.filter_map(|(node, record)| Some((*node, &**record.failure.as_ref()?)))
    }

    pub(super) fn pauses(&self) -> impl Iterator<Item = &'a Pause> {
        self.0.iter().filter_map(|(_, it)| it.pause.as_deref())
    }

    pub(crate) fn matched(&self) -> usize {
        self.found().count()
    }

    pub(crate) fn held(&self) -> usize {
        self.0.iter().filter(|(_, it)| it.is_held()).count()
    }

    /// How many nodes still have the taint of a rule that is being deleted.
    pub(crate) fn lingering(&self) -> usize {
        self.0.iter().filter(|(_, it)| it.lingers).count()
    }

    /// Whether a rule that is being deleted has something to report: nodes with its taint, or failures.
    pub(crate) fn has_unfinished(&self) -> bool {
        self.lingering() > 0 || self.failures().next().is_some()
    }

    /// Since when the longest-held node has been held, as far as this process has seen.
    pub(crate) fn longest_held_since(&self) -> Option<Timestamp> {
        self.0.iter().filter_map(|(_, it)| it.held_since).min()
    }

    /// How many nodes the rule holds because of each condition, in its order; under `AnyOf`, nodes on which none is met.
    pub(crate) fn blocked(&self, spec: &CompiledSpec) -> Vec<usize> {
        let mut blocked = vec![0; spec.conditions.len()];
        for (.., found) in self.nodes().filter(|(_, it, _)| it.is_held()) {
            let conditions = spec.conditions.iter().zip(&found.statuses);
            let unmet: SmallVec<[bool; 8]> = conditions
                .map(|(asked, found)| found.unwrap_or(asked.status_if_missing()) != asked.required)
                .collect();
            if spec.policy == ConditionPolicy::AllOf || !unmet.contains(&false) {
                for (count, is_unmet) in blocked.iter_mut().zip(unmet) {
                    *count += usize::from(is_unmet);
                }
            }
        }
        blocked
    }

    /// The nodes that the rule, a dry run, would repair if the repair were not blocked.
    pub(crate) fn would_repair(&self) -> impl Iterator<Item = &'a Arc<str>> {
        let late = self.nodes().filter(|(.., found)| found.would_repair);
        late.map(|(node, ..)| node)
    }
}
