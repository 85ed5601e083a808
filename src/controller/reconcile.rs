//! The reconcile loop: one task that owns all state, takes in what the watches show, has nodes evaluated, and keeps
//! a bounded number of writes under way, never two of a kind on one object.
//!
//! This file is about nodes; what is done for the rules themselves is in `rules`.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::cache::{Cache, Change};
use super::events::{EventSink, Notice, Tone};
use super::health::Readiness;
use super::metrics::{ADD_TAINT_ERROR, Metrics, REMOVE_TAINT_ERROR, Survey, seconds_between};
use super::patch;
use super::rules::RuleWork;
use super::status::{Failure, Record, Tally};
use super::writer::{WriteError, Writer};
use crate::object::{Node, RuleObject};
use crate::rule::{self, ChangeKind, NodePlan, Outcome, Rule, Standing, TaintChange};

/// How many events are taken in before the next nodes are evaluated.
const BATCH: usize = 512;
/// A published condition of which only the message changes is written at most this often on one node.
const MESSAGE_INTERVAL: Duration = Duration::from_secs(5);
/// How many conditions are published at a time while nothing more urgent is to be written.
const CONDITION_CONCURRENCY: usize = 8;
/// How often a node may change under a write before a pause is made.
const CONFLICTS_WITHOUT_PAUSE: u32 = 5;
/// The longest pause before something that failed is tried again.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause before the API server is tried again when it could not be reached.
const MAX_OUTAGE_PAUSE: Duration = Duration::from_secs(2);
/// How long writes under way may take to end when the controller is stopped.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Whether this instance may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leadership {
    /// Another instance leads, or none yet.
    Following,
    /// This instance leads, or there is no election.
    Leading,
    /// This instance has led and may not any more.
    Lost,
}

/// What ended the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was told to stop, and the writes under way have been answered.
    Stopped,
    /// The lead was lost; the writes under way have been cancelled.
    LeadershipLost,
}

/// What the loop is told and asked from outside.
pub struct Inputs {
    /// What the watches show.
    pub changes: mpsc::Receiver<Change>,
    /// Whether this instance may write.
    pub leadership: watch::Receiver<Leadership>,
    /// Requests to bring the gauges up to date.
    pub surveys: mpsc::Receiver<Survey>,
}

/// What the command line says about the loop.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How many nodes are written at a time.
    pub concurrency: usize,
    /// How many nodes each list of a rule's status may name.
    pub status_node_limit: usize,
}

/// The reconcile loop's state.
pub struct Reconciler {
    pub(super) cache: Cache,
    pub(super) writer: Writer,
    pub(super) events: EventSink,
    pub(super) metrics: Metrics,
    pub(super) settings: Settings,
    pub(super) rules: HashMap<Arc<str>, RuleWork>,
    pub(super) in_flight: JoinSet<Done>,
    pub(super) timers: Timers,
    nodes: HashMap<Arc<str>, NodeWork>,
    node_writes: usize,
    condition_queue: VecDeque<Arc<str>>,
    condition_writes: usize,
    busy: watch::Sender<bool>,
    readiness: watch::Sender<Readiness>,
    /// Since when this instance leads; `None` while it does not.
    leading_since: Option<Timestamp>,
    /// Runs while the API server cannot be reached: then one write at a time finds out whether it is back, and all
    /// others wait for that rather than for pauses of their own.
    outage: Retry,
}

/// What is under way for one node.
#[derive(Debug, Default)]
struct NodeWork {
    /// The node that all of this is about; another UID means another node.
    uid: Arc<str>,
    /// A write of taints or annotations is under way.
    writing: bool,
    retry: Retry,
    conflicts: u32,
    /// The timer that will have the node evaluated.
    wake: Option<Instant>,
    /// UIDs of the rules that have a record of this node.
    recorded_by: Vec<Arc<str>>,
    /// UIDs of the rules whose adoption of a taint has been told.
    adopted_by: Vec<Arc<str>>,
    /// The reason of the last event about missing critical components.
    waiting: Option<&'static str>,
    conditions: ConditionWork,
}

impl NodeWork {
    /// Has the node evaluated at this time, or earlier if something else wants that. There is one timer at most.
    fn wake_at(&mut self, at: Instant, name: &Arc<str>, timers: &mut Timers) {
        if self.wake.is_some_and(|wake| wake <= at) {
            return;
        }
        if let Some(later) = self.wake.replace(at) {
            timers.remove(&(later, Timer::Node(name.clone())));
        }
        timers.insert((at, Timer::Node(name.clone())));
    }
}

/// What is under way for one node's published conditions.
#[derive(Debug, Default)]
struct ConditionWork {
    queued: bool,
    writing: bool,
    retry: Retry,
    written_at: Option<Instant>,
}

/// When something that failed may be tried again.
#[derive(Debug, Default)]
pub(super) struct Retry {
    pauses: Option<ExponentialBackoff>,
    not_before: Option<Instant>,
}

impl Retry {
    /// Notes a failure; answers when to try again.
    pub(super) fn failed(&mut self) -> Instant {
        self.failed_with(MAX_PAUSE)
    }

    /// Notes that the API server could not be reached; answers when to try again.
    pub(super) fn unreachable(&mut self) -> Instant {
        self.failed_with(MAX_OUTAGE_PAUSE)
    }

    fn failed_with(&mut self, longest: Duration) -> Instant {
        let pauses = self.pauses.get_or_insert_with(|| {
            ExponentialBuilder::new()
                .with_min_delay(Duration::from_millis(50))
                .with_max_delay(MAX_PAUSE)
                .with_jitter()
                .without_max_times()
                .build()
        });
        let at = Instant::now() + pauses.next().unwrap_or(longest).min(longest);
        self.not_before = Some(at);
        at
    }

    /// Whether it is too early to try again.
    pub(super) fn is_waiting(&self) -> bool {
        self.not_before.is_some_and(|at| Instant::now() < at)
    }

    /// Whether it has failed since it last succeeded.
    fn is_on(&self) -> bool {
        self.not_before.is_some()
    }
}

/// What is to happen when, soonest first.
pub(super) type Timers = BTreeSet<(Instant, Timer)>;

/// What happens when its time comes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Evaluate the node of this name.
    Node(Arc<str>),
    /// See what is to be done for the rule with this UID.
    Rule(Arc<str>),
}

/// A bootstrap that a write completes.
#[derive(Debug)]
pub(super) struct Completion {
    rule: Arc<str>,
    /// Since when both the node and the rule have been there.
    since: Option<Timestamp>,
}

/// A write that has come to its end.
pub(super) enum Done {
    /// A node's taints or annotations.
    Node {
        name: Arc<str>,
        changes: Vec<TaintChange>,
        completions: Vec<Completion>,
        result: Result<Node, WriteError>,
        /// The node as it was read after a conflict.
        fresh: Option<Node>,
    },
    /// A node's conditions.
    Conditions {
        name: Arc<str>,
        result: Result<Node, WriteError>,
    },
    /// A rule's finalizers.
    Finalizers {
        uid: Arc<str>,
        result: Result<RuleObject, WriteError>,
    },
    /// A rule's status.
    Status {
        uid: Arc<str>,
        result: Result<RuleObject, WriteError>,
    },
}

impl Reconciler {
    /// A loop over an empty cache.
    pub fn new(
        cache: Cache,
        writer: Writer,
        events: EventSink,
        busy: watch::Sender<bool>,
        readiness: watch::Sender<Readiness>,
        metrics: Metrics,
        settings: Settings,
    ) -> Self {
        Self {
            cache,
            writer,
            events,
            metrics,
            settings,
            rules: HashMap::new(),
            in_flight: JoinSet::new(),
            timers: BTreeSet::new(),
            nodes: HashMap::new(),
            node_writes: 0,
            condition_queue: VecDeque::new(),
            condition_writes: 0,
            busy,
            readiness,
            leading_since: None,
            outage: Retry::default(),
        }
    }

    /// Runs until `shutdown` resolves or the lead is lost.
    pub async fn run(mut self, mut inputs: Inputs, shutdown: impl Future<Output = ()>) -> Ended {
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            // Here too, so that a steady stream of events does not keep timers from firing.
            self.fire_timers();
            match (*inputs.leadership.borrow_and_update(), self.leading_since) {
                (Leadership::Lost, _) => {
                    warn!(
                        writes = self.in_flight.len(),
                        "the lead is lost; cancelling writes"
                    );
                    return Ended::LeadershipLost;
                }
                (Leadership::Leading, None) => {
                    self.leading_since = Some(Timestamp::now());
                    self.metrics.leader.set(1);
                }
                _ => {}
            }
            self.start_work();
            let outage = self.outage.not_before.filter(|_| self.outage.is_waiting());
            let timer = self.timers.first().map(|(at, _)| *at);
            let next_timer = timer.into_iter().chain(outage).min();
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Ok(()) = inputs.leadership.changed() => {}
                Some(done) = self.in_flight.join_next() => {
                    self.finish(done);
                    while let Some(done) = self.in_flight.try_join_next() {
                        self.finish(done);
                    }
                }
                Some(change) = inputs.changes.recv() => {
                    self.cache.apply(change);
                    for _ in 1..BATCH {
                        let Ok(change) = inputs.changes.try_recv() else { break };
                        self.cache.apply(change);
                    }
                }
                Some(done) = inputs.surveys.recv() => {
                    self.survey();
                    // Who asked may have stopped waiting.
                    let _ = done.send(());
                }
                () = sleep_until(next_timer) => self.fire_timers(),
            }
        }
        info!(writes = self.in_flight.len(), "stopping");
        let deadline = Instant::now() + SHUTDOWN_GRACE;
        while !self.in_flight.is_empty() {
            match tokio::time::timeout_at(deadline, self.in_flight.join_next()).await {
                // What has been done is told, even if nothing more is.
                Ok(Some(done)) => self.finish(done),
                Ok(None) => break,
                Err(_) => {
                    warn!("stopped before all writes had been answered");
                    break;
                }
            }
        }
        self.busy.send_replace(false);
        if tokio::time::timeout_at(deadline, self.events.close())
            .await
            .is_err()
        {
            warn!("stopped before all events had been posted");
        }
        Ended::Stopped
    }

    /// Brings the gauges up to date.
    fn survey(&self) {
        let metrics = &self.metrics;
        metrics.reset_gauges();
        metrics.queue_depth.set(gauge(self.cache.dirty_count()));
        metrics.writes_in_flight.set(gauge(self.in_flight.len()));
        for (kind, size) in self.cache.sizes() {
            metrics
                .cache_objects
                .with_label_values(&[kind])
                .set(gauge(size));
        }
        self.survey_rules();
    }

    /// Does what can be done now: rules first, then nodes, then what may wait.
    fn start_work(&mut self) {
        if !self.cache.has_synced() {
            return;
        }
        self.readiness.send_if_modified(|readiness| {
            let is_news = !readiness.synced;
            readiness.synced = true;
            is_news
        });
        let Some(leading_since) = self.leading_since else {
            return;
        };
        if self.cache.take_rules_changed() {
            self.sync_rules();
        }
        let now = Timestamp::now();
        let during_outage = |usual: usize| match (self.outage.is_on(), self.outage.is_waiting()) {
            (false, _) => usual,
            (true, false) => 1,
            (true, true) => 0,
        };
        let allowed = during_outage(self.settings.concurrency);
        let allowed_conditions = during_outage(CONDITION_CONCURRENCY);
        while self.node_writes < allowed {
            let Some(name) = self.cache.next_dirty() else {
                break;
            };
            self.consider(&name, now, leading_since);
        }
        self.finish_deletions();
        let is_busy = self.node_writes > 0 || self.cache.has_dirty();
        self.busy
            .send_if_modified(|busy| std::mem::replace(busy, is_busy) != is_busy);
        let allowed = allowed_conditions.min(if is_busy { 1 } else { CONDITION_CONCURRENCY });
        while self.condition_writes < allowed {
            let Some(name) = self.condition_queue.pop_front() else {
                break;
            };
            self.publish_conditions(&name, now);
        }
    }

    fn fire_timers(&mut self) {
        let now = Instant::now();
        while self.timers.first().is_some_and(|(at, _)| *at <= now) {
            match self.timers.pop_first() {
                Some((_, Timer::Node(name))) => {
                    if let Some(work) = self.nodes.get_mut(&name) {
                        work.wake = None;
                    }
                    self.cache.mark(&name);
                }
                Some((_, Timer::Rule(uid))) => self.tend_rule(&uid),
                None => break,
            }
        }
    }

    /// Evaluates one node, notes what follows, and starts the write if there is one to be made.
    fn consider(&mut self, name: &Arc<str>, now: Timestamp, leading_since: Timestamp) {
        self.cache.select_rules(name);
        let Some(state) = self.cache.node(name) else {
            self.forget(name);
            return;
        };
        let work = self.nodes.entry(name.clone()).or_default();
        if work.writing {
            // Evaluated again when the write has ended.
            return;
        }
        if work.uid != state.node.uid {
            *work = NodeWork {
                uid: state.node.uid.clone(),
                wake: work.wake,
                recorded_by: std::mem::take(&mut work.recorded_by),
                // What is under way for the earlier node ends in its own time.
                conditions: ConditionWork {
                    queued: work.conditions.queued,
                    writing: work.conditions.writing,
                    ..ConditionWork::default()
                },
                ..NodeWork::default()
            };
        }
        let evaluation_started = Instant::now();
        let plan = rule::plan(self.cache.cluster(), state, now);
        let evaluation_took = evaluation_started.elapsed();
        let writes = plan.writes_node();
        debug!(node = %name, writes, outcomes = plan.outcomes.len(), "evaluated");
        let observed = Observed {
            plan: &plan,
            now,
            took: evaluation_took,
        };
        record_outcomes(
            &mut self.rules,
            &mut self.timers,
            &self.metrics,
            work,
            name,
            &observed,
        );
        announce(
            &self.events,
            &self.rules,
            work,
            state.node,
            &plan,
            leading_since,
        );
        if let Some(recheck) = plan.recheck {
            work.wake_at(instant_of(recheck, now), name, &mut self.timers);
        }
        if !plan.conditions.is_empty() && !work.conditions.queued && !work.conditions.writing {
            let due = match work.conditions.written_at {
                Some(written) if !plan.conditions.is_urgent() => written + MESSAGE_INTERVAL,
                _ => Instant::now(),
            };
            if work.conditions.retry.is_waiting() || due > Instant::now() {
                let at = due.max(work.conditions.retry.not_before.unwrap_or(due));
                work.wake_at(at, name, &mut self.timers);
            } else {
                work.conditions.queued = true;
                self.condition_queue.push_back(name.clone());
            }
        }
        // A node that cannot be written for one rule does not keep another one.
        let rules = self.cache.cluster().rules.rules();
        for rule in rules.iter().filter(|rule| rule.deleting) {
            if let Some(work) = self.rules.get_mut(&rule.uid)
                && !plan.writes_for(rule)
            {
                work.cleaned_up(name);
            }
        }
        if !writes {
            work.retry = Retry::default();
            work.conflicts = 0;
        } else if work.retry.is_waiting() {
            if let Some(at) = work.retry.not_before {
                work.wake_at(at, name, &mut self.timers);
            }
        } else {
            work.writing = true;
            self.node_writes += 1;
            let patch = patch::node(state.node, plan.taints.as_deref(), &plan.annotations);
            let completions = completions(state.node, &plan);
            let (writer, name, changes) = (self.writer.clone(), name.clone(), plan.changes);
            self.in_flight.spawn(async move {
                let result = writer.patch_node(&name, patch).await;
                let fresh = match result {
                    Err(WriteError::Conflict) => writer.read_node(&name).await.ok(),
                    _ => None,
                };
                Done::Node {
                    name,
                    changes,
                    completions,
                    result,
                    fresh,
                }
            });
        }
    }

    /// Writes a node's published conditions, if there is still something to write.
    fn publish_conditions(&mut self, name: &Arc<str>, now: Timestamp) {
        self.cache.select_rules(name);
        let (Some(state), Some(work)) = (self.cache.node(name), self.nodes.get_mut(name)) else {
            return;
        };
        work.conditions.queued = false;
        let changes = rule::plan(self.cache.cluster(), state, now).conditions;
        if changes.is_empty() {
            return;
        }
        work.conditions.writing = true;
        self.condition_writes += 1;
        let patch = patch::node_conditions(state.node, &changes, now);
        let (writer, name) = (self.writer.clone(), name.clone());
        self.in_flight.spawn(async move {
            let result = writer.patch_node_conditions(&name, patch).await;
            Done::Conditions { name, result }
        });
    }

    fn finish(&mut self, done: Result<Done, tokio::task::JoinError>) {
        match done {
            Ok(Done::Node {
                name,
                changes,
                completions,
                result,
                fresh,
            }) => {
                self.node_writes -= 1;
                if result.is_ok() {
                    self.count(&changes, &completions);
                }
                self.note_outage(result.as_ref().err());
                self.finish_node(&name, &changes, result, fresh);
            }
            Ok(Done::Conditions { name, result }) => {
                self.condition_writes -= 1;
                self.note_outage(result.as_ref().err());
                self.finish_conditions(&name, result);
            }
            Ok(Done::Finalizers { uid, result }) => self.finish_finalizers(&uid, result),
            Ok(Done::Status { uid, result }) => self.finish_status(&uid, result),
            // A task of ours neither panics nor is cancelled; if one does, there is no state to trust any more.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// Counts what a write has done.
    fn count(&self, changes: &[TaintChange], completions: &[Completion]) {
        let now = Timestamp::now();
        for change in changes {
            self.metrics.count_change(change, now);
        }
        for Completion { rule, since } in completions {
            self.metrics
                .bootstrap_completed
                .with_label_values(&[rule])
                .inc();
            if let Some(since) = since {
                let duration = self.metrics.bootstrap_duration.with_label_values(&[rule]);
                duration.observe(seconds_between(*since, now));
            }
        }
    }

    /// Notes that an API server cannot be reached, or that it can, as a write has found out.
    fn note_outage(&mut self, error: Option<&WriteError>) {
        if let Some(error @ WriteError::Unreachable(_)) = error {
            if !self.outage.is_on() {
                warn!("{error}; waiting for it with all writes");
            }
            // Those that were under way together have found out the same thing.
            if !self.outage.is_waiting() {
                self.outage.unreachable();
            }
        } else if self.outage.is_on() {
            info!("the API server can be reached again");
            self.outage = Retry::default();
        }
    }

    fn finish_node(
        &mut self,
        name: &Arc<str>,
        changes: &[TaintChange],
        result: Result<Node, WriteError>,
        fresh: Option<Node>,
    ) {
        let now = Timestamp::now();
        let Some(work) = self.nodes.get_mut(name) else {
            return;
        };
        work.writing = false;
        match result {
            Ok(node) => {
                work.retry = Retry::default();
                work.conflicts = 0;
                for change in changes {
                    tell(&self.events, &node, change);
                }
                self.cache.update_node(node);
            }
            Err(WriteError::Conflict) => {
                debug!(node = %name, "the node has changed in the meantime; evaluating it again");
                work.conflicts += 1;
                if work.conflicts > CONFLICTS_WITHOUT_PAUSE {
                    work.retry.failed();
                }
                if let Some(node) = fresh {
                    self.cache.update_node(node);
                }
            }
            Err(WriteError::Gone) => {
                // The watch will tell; should it lag, the pause keeps this from being asked over and over.
                work.retry.failed();
            }
            Err(WriteError::Unreachable(_)) => {}
            Err(WriteError::Failed(message)) => {
                warn!(node = %name, "cannot write the node: {message}");
                work.retry.failed();
                for change in changes {
                    let reason = match change.kind {
                        ChangeKind::Added => ADD_TAINT_ERROR,
                        ChangeKind::Removed => REMOVE_TAINT_ERROR,
                    };
                    self.metrics
                        .failures
                        .with_label_values(&[&change.rule_name, reason])
                        .inc();
                    let failure = Failure {
                        reason,
                        message: message.clone(),
                    };
                    let Some(rule) = self.rules.get_mut(&*change.rule_uid) else {
                        continue;
                    };
                    if rule.tally.fail(name, failure, now) {
                        rule.status_changed(&mut self.timers);
                    }
                    if !work.recorded_by.contains(rule.uid()) {
                        work.recorded_by.push(rule.uid().clone());
                    }
                }
            }
        }
        self.cache.mark(name);
    }

    fn finish_conditions(&mut self, name: &Arc<str>, result: Result<Node, WriteError>) {
        let Some(work) = self.nodes.get_mut(name) else {
            return;
        };
        work.conditions.writing = false;
        match result {
            Ok(node) => {
                work.conditions.retry = Retry::default();
                work.conditions.written_at = Some(Instant::now());
                self.cache.update_node(node);
            }
            Err(WriteError::Unreachable(_)) => {}
            Err(error) => {
                if matches!(error, WriteError::Failed(_)) {
                    warn!(node = %name, "cannot publish conditions: {error}");
                }
                work.conditions.retry.failed();
            }
        }
        self.cache.mark(name);
    }

    /// Forgets a node that is not there any more.
    fn forget(&mut self, name: &Arc<str>) {
        if let Some(work) = self.nodes.get(name) {
            if work.writing || work.conditions.writing {
                // Asked again when the write has ended.
                return;
            }
            for uid in &work.recorded_by {
                if let Some(rule) = self.rules.get_mut(uid)
                    && rule.tally.forget(name, true)
                {
                    rule.status_changed(&mut self.timers);
                }
            }
            if let Some(wake) = work.wake {
                self.timers.remove(&(wake, Timer::Node(name.clone())));
            }
            self.nodes.remove(name);
        }
        for rule in self.rules.values_mut().filter(|rule| rule.is_cleaning_up()) {
            rule.cleaned_up(name);
        }
    }
}

/// A plan, and how it came to be.
struct Observed<'a> {
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
    name: &Arc<str>,
    observed: &Observed<'_>,
) {
    let Observed { plan, now, took } = *observed;
    // A rule that has nothing to do with the node any more may still have to clean it; until that is done, its
    // failure stays on record.
    let is_clean = !plan.writes_node();
    let is_selected_by =
        |uid: &Arc<str>| plan.outcomes.iter().any(|outcome| outcome.rule.uid == *uid);
    for uid in work.recorded_by.iter().filter(|uid| !is_selected_by(uid)) {
        if let Some(rule) = rules.get_mut(uid)
            && rule.tally.forget(name, is_clean)
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
        let is_news = rule.tally.record(name, Record::from(outcome), now);
        let recovered = is_clean && rule.tally.recover(name);
        if is_news || recovered {
            rule.status_changed(timers);
        }
        if !work.recorded_by.contains(&outcome.rule.uid) {
            work.recorded_by.push(outcome.rule.uid.clone());
        }
    }
}

/// Counts the conditions that are unmet and were not found so before.
fn count_turned_unmet(metrics: &Metrics, tally: &Tally, name: &str, outcome: &Outcome<'_>) {
    let before = tally.statuses(name);
    for (index, result) in outcome.evaluation.results.iter().enumerate() {
        let was = before.and_then(|statuses| statuses.get(index));
        if !result.is_met() && was != Some(&result.current) {
            let labels = [&*outcome.rule.name, &*result.requirement.kind];
            metrics.condition_failures.with_label_values(&labels).inc();
        }
    }
}

/// Posts the events that follow from an evaluation rather than from a write: a taint that is now held by a rule that
/// did not add it, and critical components that are missing. Each is told once.
fn announce(
    events: &EventSink,
    rules: &HashMap<Arc<str>, RuleWork>,
    work: &mut NodeWork,
    node: &Node,
    plan: &NodePlan<'_>,
    leading_since: Timestamp,
) {
    // Times of creation are in whole seconds.
    let is_new_node = node
        .created
        .is_none_or(|created| created.as_second() >= leading_since.as_second());
    let is_new_rule = |rule: &Rule| rules.get(&rule.uid).is_none_or(|work| work.is_new);
    work.adopted_by.retain(|uid| {
        plan.outcomes
            .iter()
            .any(|outcome| outcome.adopts && outcome.rule.uid == *uid)
    });
    for outcome in plan.outcomes.iter().filter(|outcome| outcome.adopts) {
        let rule = outcome.rule;
        if work.adopted_by.contains(&rule.uid) {
            continue;
        }
        work.adopted_by.push(rule.uid.clone());
        // Where an earlier process knew both, it has told.
        if let Some(spec) = rule.live().filter(|_| is_new_rule(rule) || is_new_node) {
            info!(node = %node.name, rule = %rule.name, taint = %spec.taint.key, "taint adopted");
            let note = format!(
                "Taint '{}:{}' is now managed by rule '{}'",
                spec.taint.key, spec.effect, rule.name
            );
            events.send(Notice::on_node(
                node,
                Tone::Normal,
                "TaintAdopted",
                "AdoptTaint",
                note,
            ));
        }
    }
    let waiting = plan.waiting.as_ref();
    if let Some(waiting) = waiting
        && work.waiting != Some(waiting.reason)
    {
        let note = waiting.message.clone();
        events.send(Notice::on_node(
            node,
            Tone::Warning,
            waiting.reason,
            "WaitForCriticalComponents",
            note,
        ));
    }
    work.waiting = waiting.map(|waiting| waiting.reason);
}

/// Logs a taint change that has been made and posts its events.
fn tell(events: &EventSink, node: &Node, change: &TaintChange) {
    let TaintChange {
        rule_name,
        key,
        effect,
        why,
        ..
    } = change;
    let (what, reason, action) = match change.kind {
        ChangeKind::Added => ("added", "TaintAdded", "AddTaint"),
        ChangeKind::Removed => ("removed", "TaintRemoved", "RemoveTaint"),
    };
    info!(node = %node.name, rule = %rule_name, taint = %format_args!("{key}:{effect}"), why, "taint {what}");
    let note = format!("Taint '{key}:{effect}' {what} by rule '{rule_name}'");
    events.send(Notice::on_node(node, Tone::Normal, reason, action, note));
    if change.components_ready {
        let note = "every critical component is ready on this node".into();
        let reason = "NodeCriticalComponentsReady";
        events.send(Notice::on_node(
            node,
            Tone::Normal,
            reason,
            "RemoveTaint",
            note,
        ));
    }
}

/// The bootstraps that this plan completes.
fn completions(node: &Node, plan: &NodePlan<'_>) -> Vec<Completion> {
    let completes = |outcome: &&Outcome<'_>| match outcome.standing {
        Standing::Governs(decision) => decision.completes_bootstrap(),
        _ => false,
    };
    plan.outcomes
        .iter()
        .filter(completes)
        .map(|outcome| Completion {
            rule: outcome.rule.name.clone(),
            since: node.created.max(outcome.rule.created),
        })
        .collect()
}

fn gauge(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The instant at which the wall clock will show `at`, given that it shows `now`.
fn instant_of(at: Timestamp, now: Timestamp) -> Instant {
    Instant::now() + Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
