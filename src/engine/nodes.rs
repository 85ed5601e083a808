//! What the reconcile loop does for nodes: evaluates them, notes what follows, and has them written.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tracing::debug;

use super::announce::{Wait, announce};
use super::conditions::ConditionWork;
use super::look::LookWork;
use super::node_writes::{Choice, NodeWrite};
use super::patch;
use super::reconcile::{Reconciler, Timer, Timers};
use super::repairs::{Told, Tools, deletion, tell_of_repair};
use super::rules::RuleWork;
use super::status::Tally;
use crate::controller::metrics::Metrics;
use crate::engine::{Backoff, Contention, Refusals};
use crate::object::Node;
use crate::plan::{self, ChangeKind, History, Memory, NodePlan, Outcome, TaintId};
use crate::repair::Postponed;
use crate::rule::RuleSet;

/// What is under way for one node.
#[derive(Debug, Default)]
pub(super) struct NodeWork {
    /// The node that all of this is about; another UID means another node.
    uid: Arc<str>,
    /// The node has been evaluated by this process.
    pub(super) is_known: bool,
    /// A write of taints or annotations is under way.
    pub(super) writing: bool,
    pub(super) retry: Backoff,
    pub(super) conflicts: u32,
    /// What the API server has refused.
    pub(super) refusals: Refusals<Option<TaintId>>,
    /// It is the node's turn to try again what has been refused.
    pub(super) has_turn: bool,
    /// What somebody else keeps undoing.
    pub(super) contention: Contention<TaintId, ChangeKind>,
    /// The timer that will have the node evaluated.
    pub(super) wake: Option<Instant>,
    /// UIDs of the rules that have a record of this node.
    pub(super) recorded_by: Vec<Arc<str>>,
    /// What is remembered of continuous rules on the node.
    pub(super) memories: Arc<[Memory]>,
    /// UIDs of the rules whose adoption of a taint has been told.
    pub(super) adopted_by: Vec<Arc<str>>,
    /// The critical components that are missing, as far as that has been told; `None` while none is waited for.
    pub(super) waiting: Option<Wait>,
    /// What has been told about the node's repair.
    told: Vec<Told>,
    pub(super) conditions: ConditionWork,
    pub(super) look: LookWork,
}

impl NodeWork {
    /// Starts anew if this is another node than before.
    fn is_about(&mut self, node: &Node) {
        if self.uid == node.uid {
            return;
        }
        *self = Self {
            uid: node.uid.clone(),
            wake: self.wake,
            recorded_by: std::mem::take(&mut self.recorded_by),
            // What is under way for the earlier node ends in its own time.
            conditions: self.conditions.for_another_node(),
            look: self.look.for_another_node(),
            ..Self::default()
        };
    }

    /// Has the node evaluated at this time, or earlier if something else wants that. There is one timer at most.
    pub(super) fn wake_at(&mut self, at: Instant, name: &Arc<str>, timers: &mut Timers) {
        if self.wake.is_some_and(|wake| wake <= at) {
            return;
        }
        if let Some(later) = self.wake.replace(at) {
            timers.remove(&(later, Timer::Node(name.clone())));
        }
        timers.insert((at, Timer::Node(name.clone())));
    }
}

impl Reconciler {
    /// Evaluates one node, notes what follows, and starts the write if there is one to be made.
    pub(super) fn consider(&mut self, name: &Arc<str>, now: Timestamp, leading_since: Timestamp) {
        self.cache.select_rules(name, now);
        let Some(state) = self.cache.node(name) else {
            self.forget(name);
            return;
        };
        let may_close = self.may_close(name, state.selecting);
        let work = self.nodes.entry(name.clone()).or_default();
        if work.writing {
            // Evaluated again when the write has ended.
            return;
        }
        work.is_about(state.node);
        let memories = work.memories.clone();
        let history = History {
            is_known: work.is_known,
            looked: work.look.fresh(self.doubted, Instant::now()),
            memories: &memories,
            may_close: &may_close,
            watching_since: leading_since,
        };
        let evaluation_started = Instant::now();
        let plan = plan::plan(self.cache.cluster(), state, history, now);
        let evaluation_took = evaluation_started.elapsed();
        work.is_known = true;
        let tools = Tools {
            events: &self.events,
            metrics: &self.metrics,
        };
        tell_of_repair(tools, state.node, &plan, &mut work.told);
        let deletion = deletion(state.node, &plan);
        let repair_is_in_doubt = plan.postponed == Some(Postponed::InDoubt);
        let (writes, look) = (plan.writes_node(), plan.look);
        debug!(node = %name, writes, outcomes = plan.outcomes.len(), "evaluated");
        let observed = Observed {
            node: state.node,
            plan: &plan,
            now,
            took: evaluation_took,
        };
        record_outcomes(
            &mut self.rules,
            &mut self.timers,
            &self.metrics,
            work,
            &observed,
        );
        if let Some(at) = announce(&self.events, &self.rules, work, (state, history), &plan) {
            work.wake_at(at, name, &mut self.timers);
        }
        if let Some(remembered) = Memory::after(&plan.outcomes, &memories) {
            work.memories = remembered.into();
        }
        if let Some(recheck) = plan.recheck {
            work.wake_at(instant_of(recheck, now), name, &mut self.timers);
        }
        match work.conditions.due(&plan.conditions) {
            Some(at) if at > Instant::now() => work.wake_at(at, name, &mut self.timers),
            Some(_) => {
                work.conditions.queued = true;
                self.condition_queue.push_back(name.clone());
            }
            None => {}
        }
        let set = self.cache.cluster().rules;
        note_clean(&mut self.rules, &mut self.timers, set, name, &plan);
        let cluster = self.cache.cluster();
        match Choice::of(
            plan,
            cluster,
            (state, history),
            work,
            &mut self.retries,
            now,
        ) {
            Choice::Write(plan, subject) => {
                work.writing = true;
                let patch = patch::node(state.node, &plan);
                let write = NodeWrite::of(state.node, *plan, subject);
                self.write_node(write, patch);
            }
            Choice::Later(at) => work.wake_at(at, name, &mut self.timers),
            Choice::Nothing => {}
        }
        if !look.is_empty() {
            self.look_first(name, look);
        }
        if repair_is_in_doubt {
            self.cache.withhold(name);
        }
        let turn = deletion.and_then(|deletion| self.delete_claim(deletion));
        if let (Some(at), Some(work)) = (turn, self.nodes.get_mut(name)) {
            work.wake_at(at, name, &mut self.timers);
        }
    }

    /// Has what is remembered of times begin anew: the clock by which they were measured was set.
    pub(super) fn measure_anew(&mut self, now: Timestamp) {
        self.cache.measure_anew(now);
        for work in self.nodes.values_mut() {
            let anew = work.memories.iter().cloned().map(|memory| Memory {
                unmet_since: memory.unmet_since.map(|_| now),
                ..memory
            });
            work.memories = anew.collect();
        }
    }

    /// Forgets a node that is not there any more.
    pub(super) fn forget(&mut self, name: &Arc<str>) {
        if let Some(work) = self.nodes.get(name) {
            if work.writing || work.conditions.writing {
                // Asked again when the write has ended.
                return;
            }
            for uid in &work.recorded_by {
                if let Some(rule) = self.rules.get_mut(uid)
                    && rule.forget_node(name, true)
                {
                    rule.status_changed(&mut self.timers);
                }
            }
            if let Some(wake) = work.wake {
                self.timers.remove(&(wake, Timer::Node(name.clone())));
            }
            self.nodes.remove(name);
            self.retries.forget(name);
            self.condition_retries.forget(name);
        }
        for rule in self.rules.values_mut().filter(|rule| rule.is_cleaning_up()) {
            rule.cleaned_up(name);
        }
    }
}

/// A plan, and how it came to be.
struct Observed<'a> {
    node: &'a Node,
    plan: &'a NodePlan<'a>,
    now: Timestamp,
    took: Duration,
}

/// Notes in each rule's tally what it does on the node.
fn record_outcomes(
    rules: &mut HashMap<Arc<str>, RuleWork>,
    timers: &mut Timers,
    metrics: &Metrics,
    work: &mut NodeWork,
    observed: &Observed<'_>,
) {
    let Observed {
        node,
        plan,
        now,
        took,
    } = *observed;
    let name = &node.name;
    // A rule that has nothing to do with the node any more may still have to clean it; until that is done, its
    // failure stays on record.
    let is_clean = !plan.writes_node() && plan.look.is_empty();
    let is_selected_by =
        |uid: &Arc<str>| plan.outcomes.iter().any(|outcome| outcome.rule.uid == *uid);
    for uid in work.recorded_by.iter().filter(|uid| !is_selected_by(uid)) {
        if let Some(rule) = rules.get_mut(uid)
            && rule.forget_node(name, is_clean)
        {
            rule.status_changed(timers);
        }
    }
    work.recorded_by
        .retain(|uid| is_selected_by(uid) || !is_clean);
    for outcome in &plan.outcomes {
        let Some(rule) = rules.get_mut(&outcome.rule.uid) else {
            continue;
        };
        rule.count_evaluation(took, now);
        count_turned_unmet(metrics, &rule.tally, name, outcome);
        let is_news = rule.record(node, outcome, outcome.would_repair(), now);
        // What is refused for another rule is no failure of this one.
        let has_nothing_to_do = is_clean
            || (rule.tally.has_failed(name)
                && plan.look.is_empty()
                && !plan.writes_for(outcome.rule));
        let recovered = has_nothing_to_do && rule.tally.recover(name);
        if is_news || recovered {
            rule.status_changed(timers);
        }
        if !work.recorded_by.contains(&outcome.rule.uid) {
            work.recorded_by.push(outcome.rule.uid.clone());
        }
    }
}

/// Notes for each rule that is being deleted whether the node has nothing left of it. A node that cannot be written for one
/// rule does not keep another one.
fn note_clean(
    rules: &mut HashMap<Arc<str>, RuleWork>,
    timers: &mut Timers,
    set: &RuleSet,
    name: &Arc<str>,
    plan: &NodePlan<'_>,
) {
    for rule in set.rules().iter().filter(|rule| rule.deleting) {
        let Some(work) = rules.get_mut(&rule.uid) else {
            continue;
        };
        if plan.look.is_empty() && !plan.writes_for(rule) {
            work.cleaned_up(name);
        } else if work.tally.linger(name, plan.lifts_for(rule)) {
            work.status_changed(timers);
        }
    }
}

/// Counts the conditions that are unmet and were not found so before.
fn count_turned_unmet(metrics: &Metrics, tally: &Tally, name: &str, outcome: &Outcome<'_>) {
    let before = tally.statuses(name);
    for (index, result) in outcome.evaluation.results.iter().enumerate() {
        let was = before.and_then(|statuses| statuses.get(index));
        if !result.is_met() && was != Some(&result.observed()) {
            let labels = [&*outcome.rule.name, &*result.requirement.kind];
            metrics.condition_failures.with_label_values(&labels).inc();
        }
    }
}

/// The instant at which the wall clock will show `at`, given that it shows `now`.
pub(super) fn instant_of(at: Timestamp, now: Timestamp) -> Instant {
    Instant::now() + Duration::try_from(at.duration_since(now)).unwrap_or_default()
}
