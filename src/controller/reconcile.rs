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
use super::patch;
use super::rules::RuleWork;
use super::status::{Failure, Record};
use super::writer::{WriteError, Writer};
use crate::object::{Node, RuleObject};
use crate::rule::{self, ChangeKind, NodePlan, Rule, TaintChange};

/// How many events are taken in before the next nodes are evaluated.
const BATCH: usize = 512;
/// A published condition whose wording alone changes is written at most this often on one node.
const WORDING_INTERVAL: Duration = Duration::from_secs(5);
/// How many conditions are published at a time while nothing more urgent is to be written.
const CONDITION_CONCURRENCY: usize = 8;
/// How often a node may change under a write before a pause is made.
const CONFLICTS_WITHOUT_PAUSE: u32 = 5;
/// How long writes under way may take to end when the controller is stopped.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

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
    started: Timestamp,
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
    /// UIDs of the rules that have a record of this node.
    recorded_by: Vec<Arc<str>>,
    /// UIDs of the rules whose adoption of a taint has been told.
    adopted_by: Vec<Arc<str>>,
    /// The reason of the last event about missing critical components.
    waiting: Option<&'static str>,
    conditions: ConditionWork,
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
        let pauses = self.pauses.get_or_insert_with(|| {
            ExponentialBuilder::new()
                .with_min_delay(Duration::from_millis(50))
                .with_max_delay(Duration::from_secs(30))
                .with_jitter()
                .without_max_times()
                .build()
        });
        let at = Instant::now() + pauses.next().unwrap_or(Duration::from_secs(30));
        self.not_before = Some(at);
        at
    }

    /// Whether it is too early to try again.
    pub(super) fn is_waiting(&self) -> bool {
        self.not_before.is_some_and(|at| Instant::now() < at)
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

/// A write that has come to its end.
pub(super) enum Done {
    /// A node's taints or annotations.
    Node {
        name: Arc<str>,
        changes: Vec<TaintChange>,
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
        settings: Settings,
    ) -> Self {
        Self {
            cache,
            writer,
            events,
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
            started: Timestamp::now(),
        }
    }

    /// Runs until `shutdown` resolves, then lets the writes under way end.
    pub async fn run(
        mut self,
        mut changes: mpsc::Receiver<Change>,
        shutdown: impl Future<Output = ()>,
    ) {
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            self.start_work();
            let next_timer = self.timers.first().map(|(at, _)| *at);
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(done) = self.in_flight.join_next() => {
                    self.finish(done);
                    while let Some(done) = self.in_flight.try_join_next() {
                        self.finish(done);
                    }
                }
                Some(change) = changes.recv() => {
                    self.cache.apply(change);
                    for _ in 1..BATCH {
                        let Ok(change) = changes.try_recv() else { break };
                        self.cache.apply(change);
                    }
                }
                () = sleep_until(next_timer) => self.fire_timers(),
            }
        }
        info!(writes = self.in_flight.len(), "stopping");
        let drained = async { while self.in_flight.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_GRACE, drained).await.is_err() {
            warn!("stopped before all writes had been answered");
        }
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
        if self.cache.take_rules_changed() {
            self.sync_rules();
        }
        let now = Timestamp::now();
        while self.node_writes < self.settings.concurrency {
            let Some(name) = self.cache.next_dirty() else {
                break;
            };
            self.consider(&name, now);
        }
        self.finish_deletions();
        let is_busy = self.node_writes > 0 || self.cache.has_dirty();
        self.busy
            .send_if_modified(|busy| std::mem::replace(busy, is_busy) != is_busy);
        let allowed = if is_busy { 1 } else { CONDITION_CONCURRENCY };
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
                Some((_, Timer::Node(name))) => self.cache.mark(&name),
                Some((_, Timer::Rule(uid))) => self.tend_rule(&uid),
                None => break,
            }
        }
    }

    /// Evaluates one node, notes what follows, and starts the write if there is one to be made.
    fn consider(&mut self, name: &Arc<str>, now: Timestamp) {
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
                recorded_by: std::mem::take(&mut work.recorded_by),
                ..NodeWork::default()
            };
        }
        let plan = rule::plan(self.cache.cluster(), state, now);
        let writes = plan.writes_node();
        debug!(node = %name, writes, outcomes = plan.outcomes.len(), "evaluated");
        record_outcomes(&mut self.rules, &mut self.timers, work, name, &plan, now);
        announce(
            &self.events,
            &self.rules,
            work,
            state.node,
            &plan,
            self.started,
        );
        if let Some(recheck) = plan.recheck {
            self.timers
                .insert((instant_of(recheck, now), Timer::Node(name.clone())));
        }
        if !plan.conditions.is_empty() && !work.conditions.queued && !work.conditions.writing {
            let due = match work.conditions.written_at {
                Some(written) if !plan.conditions.is_urgent() => written + WORDING_INTERVAL,
                _ => Instant::now(),
            };
            if work.conditions.retry.is_waiting() || due > Instant::now() {
                let at = due.max(work.conditions.retry.not_before.unwrap_or(due));
                self.timers.insert((at, Timer::Node(name.clone())));
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
                self.timers.insert((at, Timer::Node(name.clone())));
            }
        } else {
            work.writing = true;
            self.node_writes += 1;
            let patch = patch::node(state.node, plan.taints.as_deref(), &plan.annotations);
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
                result,
                fresh,
            }) => {
                self.node_writes -= 1;
                self.finish_node(&name, &changes, result, fresh);
            }
            Ok(Done::Conditions { name, result }) => {
                self.condition_writes -= 1;
                self.finish_conditions(&name, result);
            }
            Ok(Done::Finalizers { uid, result }) => self.finish_finalizers(&uid, result),
            Ok(Done::Status { uid, result }) => self.finish_status(&uid, result),
            // A task of ours neither panics nor is cancelled; if one does, there is no state to trust any more.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
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
            Err(WriteError::Failed(message)) => {
                warn!(node = %name, "cannot write the node: {message}");
                work.retry.failed();
                for change in changes {
                    let reason = match change.kind {
                        ChangeKind::Added => "AddTaintError",
                        ChangeKind::Removed => "RemoveTaintError",
                    };
                    let failure = Failure {
                        reason,
                        message: message.clone(),
                    };
                    if let Some(rule) = self.rules.get_mut(&*change.rule_uid)
                        && rule.tally.fail(name, failure, now)
                    {
                        rule.status_changed(&mut self.timers);
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
        let Some(work) = self.nodes.get(name) else {
            return;
        };
        if work.writing || work.conditions.writing {
            // Asked again when the write has ended.
            return;
        }
        for uid in &work.recorded_by {
            if let Some(rule) = self.rules.get_mut(uid)
                && rule.tally.forget(name)
            {
                rule.status_changed(&mut self.timers);
            }
        }
        for rule in self.rules.values_mut().filter(|rule| rule.is_cleaning_up()) {
            rule.cleaned_up(name);
        }
        self.nodes.remove(name);
    }
}

/// Notes in each rule's tally what it does on the node.
fn record_outcomes(
    rules: &mut HashMap<Arc<str>, RuleWork>,
    timers: &mut Timers,
    work: &mut NodeWork,
    name: &Arc<str>,
    plan: &NodePlan<'_>,
    now: Timestamp,
) {
    let is_selected_by =
        |uid: &Arc<str>| plan.outcomes.iter().any(|outcome| outcome.rule.uid == *uid);
    for uid in work.recorded_by.iter().filter(|uid| !is_selected_by(uid)) {
        if let Some(rule) = rules.get_mut(uid)
            && rule.tally.forget(name)
        {
            rule.status_changed(timers);
        }
    }
    work.recorded_by.retain(is_selected_by);
    for outcome in &plan.outcomes {
        let uid = &outcome.rule.uid;
        let Some(rule) = rules.get_mut(uid) else {
            continue;
        };
        let is_news = rule.tally.record(name, Record::from(outcome), now);
        let recovered = !plan.writes_node() && rule.tally.recover(name);
        if is_news || recovered {
            rule.status_changed(timers);
        }
        if !work.recorded_by.contains(uid) {
            work.recorded_by.push(uid.clone());
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
    started: Timestamp,
) {
    // Times of creation are in whole seconds.
    let is_new_node = node
        .created
        .is_none_or(|created| created.as_second() >= started.as_second());
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
