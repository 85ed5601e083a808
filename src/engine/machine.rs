//! The engine: takes in events and answers, and returns requests. `answers` handles the answers.
//!
//! ```text
//! take: read the clock -> inputs -> timers -> rules -> nodes (plan, tell, write) -> what may wait -> effects
//! ```

mod answers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{debug, warn};

use super::cache::Cache;
use super::clock::Clock;
use super::conditions::NodeQueue;
use super::effects::{Effects, Job};
use super::io::{Effect, Input, Now, Request};
use super::nodes::Nodes;
use super::notice::{self, Notice};
use super::pacer::{Class, Pacer, Rate};
use super::repairs::Repairs;
use super::rules::Rules;
use super::survey::Survey;
use super::timers::Timer;
use super::unreadable::tell_unreadable;
use crate::condition::CriticalComponentClass;
use crate::guard;
use crate::plan::{self, NodeHistory};

/// The engine reads its clock at least this often, to notice when the process stood still.
const PULSE: Duration = Duration::from_secs(1);

/// How many rule evaluations are made in one go: a few milliseconds' work, so that answers, the clock and the lease are handled
/// in between.
const EVALUATIONS: usize = 5_000;

/// The engine's configuration.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The critical component classes.
    pub classes: Vec<CriticalComponentClass>,
    /// Taints that a `DaemonSet` need not tolerate to be waited for.
    pub passing_taints: Vec<String>,
    /// Whether synthesized conditions are published on nodes.
    pub publish_conditions: bool,
    /// Whether Karpenter's objects are watched.
    pub enable_karpenter: bool,
    /// How many nodes may be written at a time.
    pub concurrency: u16,
    /// The rate limit of all writes, if any.
    pub rate: Option<Rate>,
    /// How many nodes each list of a rule's status may name.
    pub status_node_limit: usize,
    /// The limits of disruption guards, for what a rule's `disruption` leaves out.
    pub disruption_limits: guard::Limits,
}

/// The engine.
#[derive(Debug)]
pub struct Engine {
    cache: Cache,
    /// Whether the last announcement was that all rules are suspended.
    told_suspension: bool,
    rules: Rules,
    nodes: Nodes,
    /// The nodes whose conditions wait to be published.
    conditions: NodeQueue,
    repairs: Repairs,
    clock: Clock,
    out: Effects,
    /// Since when this instance has been the leader.
    leading_since: Option<jiff::Timestamp>,
    /// Whether shutdown has begun.
    is_stopping: bool,
    /// When a disruption guard may let the controller gate another node.
    next_gating: Option<Instant>,
    /// How many rule evaluations may still be made before other work is done.
    allowance: usize,
}

impl Engine {
    /// A new engine with empty caches.
    pub fn new(settings: Settings, now: Now) -> Self {
        let pacer = Pacer::new(settings.concurrency, settings.rate);
        let cache = Cache::new(
            settings.classes,
            settings.passing_taints,
            settings.publish_conditions,
            settings.enable_karpenter,
            now,
        );
        Self {
            cache,
            told_suspension: false,
            rules: Rules::new(settings.disruption_limits, settings.status_node_limit),
            nodes: Nodes::default(),
            conditions: NodeQueue::default(),
            repairs: Repairs::default(),
            clock: Clock::new(now.wall, now.monotonic),
            out: Effects::new(pacer, now),
            leading_since: None,
            is_stopping: false,
            next_gating: None,
            allowance: EVALUATIONS,
        }
    }

    /// Takes in inputs in order and returns what to do. Without inputs, it does what is due.
    pub fn take(&mut self, inputs: impl IntoIterator<Item = Input>, now: Now) -> Vec<Effect> {
        self.read_clock(now);
        for input in inputs {
            self.take_in(input);
        }
        self.fire_timers();
        self.work();
        self.update_watches();
        self.out.take()
    }

    /// When to call [`Self::take`] again at the latest, inputs or not.
    pub fn next_wake(&self) -> Option<Instant> {
        let now = self.out.now.monotonic;
        let gives_way = self.allowance == 0 || self.rules.gives_way();
        let next = [
            self.out.next_wake(),
            self.cache.views.next_due(now),
            self.next_gating,
            gives_way.then_some(now),
            Some(now + PULSE),
        ];
        next.into_iter().flatten().min()
    }

    /// Notes that the caller begins to wait: only that can show that the process stood still.
    pub fn rest(&mut self, now: Instant) {
        self.clock.rest(now);
    }

    /// Whether every watch has synced.
    pub fn has_synced(&self) -> bool {
        self.cache.has_synced()
    }

    /// Whether no request is under way and no Event is queued.
    pub fn is_idle(&self) -> bool {
        self.out.under_way() == 0 && self.out.notices.len() == 0
    }

    /// The state of the cluster and the rules, for gauges.
    pub fn survey(&self, now: Now) -> Survey {
        let mut survey = Survey {
            leads: self.leading_since.is_some(),
            suspended: self.cache.suspends_all(),
            queue_depth: self.cache.dirty_count(),
            under_way: self.out.under_way(),
            write_limit: self.out.pacer.at_a_time(),
            objects: self.cache.sizes().collect(),
            unreadable: self.cache.unreadable_counts(),
            ..Survey::default()
        };
        survey.of_rules(&self.rules, &self.nodes, &self.cache, now);
        survey
    }

    /// Reads the clocks. If the process stood still, all caches are stale; if the clock was set, measurements restart.
    fn read_clock(&mut self, now: Now) {
        let reading = self.clock.read(now.wall, now.monotonic);
        self.out.now = Now {
            wall: reading.now,
            monotonic: now.monotonic,
        };
        if reading.stood_still {
            warn!(
                "this process stood still, or its clock was set: what it has seen is confirmed first"
            );
            self.cache.views.require(now.monotonic);
        }
        if reading.was_set {
            self.cache.measure_anew(reading.now, reading.step);
            for work in self.nodes.values_mut() {
                work.measure_anew(reading.now);
            }
        }
    }

    /// Starts and stops watches to match the rules, starts those again that have fallen behind, and makes the consistent reads
    /// that are due.
    fn update_watches(&mut self) {
        let now = self.out.now.monotonic;
        self.cache.views.restart_stale(now);
        self.out.order(self.cache.views.take_orders());
        while !self.is_stopping
            && self.out.pacer.may_begin(Class::Read, now)
            && let Some((watch, scope)) = self.cache.views.next_read(now)
        {
            let request = Request::ReadVersion { watch, scope };
            self.out.ask(Job::Version(watch, now), request);
        }
    }

    fn take_in(&mut self, input: Input) {
        match input {
            Input::Seen(seen) => {
                if seen.is_sign_of_life() {
                    self.out.pacer.on_sign_of_life();
                }
                self.cache.apply(seen, self.out.now);
            }
            Input::Answered(id, answer) => self.answered(id, answer),
            Input::Leads if self.leading_since.is_none() => {
                self.leading_since = Some(self.out.now.wall);
                self.cache.begin_evaluations();
                // A follower makes no decisions, so its caches are proved current only now.
                if self.cache.has_synced() {
                    self.cache.views.require(self.out.now.monotonic);
                }
            }
            Input::Leads => self.out.pacer.on_sign_of_life(),
            Input::Restored => self.cache.restored(self.out.now),
            Input::SuspendAll(on) => self.cache.suspend_all(on, self.out.now.wall),
            Input::Stop => {
                self.is_stopping = true;
                self.repairs.stop();
            }
        }
    }

    /// Announces on each rule that all rules are suspended, or resumed.
    fn tell_suspension(&mut self) {
        let suspends_all = self.cache.suspends_all();
        if std::mem::replace(&mut self.told_suspension, suspends_all) != suspends_all {
            let (topic, note) = if suspends_all {
                let note = "all rules are suspended: nothing is changed on nodes";
                (&notice::ALL_SUSPENDED, note)
            } else {
                let note = "rules are resumed, except those with spec.nodegate.suspend";
                (&notice::ALL_GO_ON, note)
            };
            for rule in self.cache.cluster().rules.rules() {
                self.out.tell(Notice::on_rule(rule, topic, note.into()));
            }
        }
    }

    fn fire_timers(&mut self) {
        while let Some(timer) = self.out.timers.fire(self.out.now.monotonic) {
            match timer {
                Timer::Node(name) => self.cache.mark(&name),
                Timer::Rule(uid) => self.rules.wake(&uid),
            }
        }
    }

    /// Does what can be done now: rules first, then nodes, then what may wait.
    fn work(&mut self) {
        self.out.pacer.ask_again();
        self.next_gating = None;
        self.allowance = EVALUATIONS;
        self.rules.renew_allowance();
        if let Some(leading_since) = self.leading_since
            && self.cache.has_synced()
            && !self.is_stopping
        {
            if self.cache.take_rules_changed() {
                self.rules.sync(&self.cache, &mut self.out);
            }
            self.tell_suspension();
            self.rules.see_statuses(&mut self.cache, &mut self.out);
            let is_busy = self.is_busy();
            self.rules
                .process(&self.cache, &self.nodes, is_busy, &mut self.out);
            tell_unreadable(&mut self.cache, &mut self.out);
            self.cache.assess_freshness(self.out.now);
            if self.cache.take_outage() {
                self.rules.outage_is_over();
            }
            self.retry_refused();
            self.evaluate(leading_since);
            self.rules
                .finish_deletions(&self.cache, &self.nodes, &mut self.out);
            self.publish(leading_since);
        }
        let is_busy = self.is_busy() && !self.is_stopping;
        self.out.post(is_busy);
    }

    /// Retries what the API server refused, once some of it went through.
    fn retry_refused(&mut self) {
        for (at, class, name) in self.out.pacer.refused.retries() {
            if let Some(work) = self.nodes.get_mut(&name) {
                match class {
                    Class::Conditions => work.conditions.retry_at(at),
                    _ => work.write.retry_at(at),
                }
                self.out.timers.wake_node(&name, at);
            }
        }
    }

    /// Evaluates the queued nodes, as long as the pacer permits writes.
    fn evaluate(&mut self, leading_since: jiff::Timestamp) {
        let now = self.out.now.monotonic;
        loop {
            while self.cache.has_dirty()
                && self.allowance > 0
                && self.out.pacer.may_begin(Class::Node, now)
                && let Some(name) = self.cache.next_dirty()
            {
                self.reconcile_node(&name, leading_since);
            }
            // In an outage, writes serve as probes. Gating another node is the probe only if nothing else is to be written.
            if self.cache.has_dirty() || self.out.pacer.permits(Class::Node, now) == 0 {
                return;
            }
            let granted = self.rules.grant_gating(&self.cache, now);
            if granted.is_empty() {
                break;
            }
            for name in &granted {
                self.cache.mark(name);
            }
        }
        self.next_gating = self.rules.next_gating(&self.cache, now);
    }

    /// Publishes the conditions that are queued.
    fn publish(&mut self, leading_since: jiff::Timestamp) {
        let now = self.out.now.monotonic;
        while !self.conditions.is_empty()
            && self.may_publish(Class::Conditions, now)
            && let Some(name) = self.conditions.next()
        {
            if let Some(work) = self.nodes.get_mut(&name) {
                work.conditions.unqueued();
                self.reconcile_node(&name, leading_since);
            }
        }
    }

    fn may_publish(&mut self, class: Class, now: Instant) -> bool {
        let is_busy = self.is_busy();
        self.out.pacer.may_publish(class, is_busy, now)
    }

    /// Reconciles one node, in this order:
    ///
    /// 1. An unreadable node is left as it is, a deleted one is forgotten, and one with a write under way waits.
    /// 2. Its plan is made.
    /// 3. The plan is noted and announced.
    /// 4. The plan is carried out: conditions, taints and annotations, the deletion of its claim. A change that could hurt waits
    ///    while what it depends on is stale.
    fn reconcile_node(&mut self, name: &Arc<str>, leading_since: jiff::Timestamp) {
        if self.is_left_alone(name) {
            return;
        }
        let (now, is_busy) = (self.out.now, self.is_busy());
        self.cache.select_rules(name, now.wall);
        let Some(state) = self.cache.node(name) else {
            self.forget(name);
            return;
        };
        // Rules on one node are compared with each other, and each looks at all that is there.
        let rules = state.selecting.len();
        let cost = 1 + rules + rules * rules / 64 + (1 + rules) * state.size() / 32;
        self.allowance = self.allowance.saturating_sub(cost);
        let (cluster, node) = (self.cache.cluster(), state.node);
        let may_gate = self.rules.may_gate(name, state.selecting, &self.cache);
        let work = self.nodes.entry(name.clone()).or_default();
        if work.write.is_under_way() {
            // The node is evaluated again when the write ends.
            return;
        }
        work.is_about(node);

        let memories = work.memories.clone();
        let history = NodeHistory {
            is_known: work.is_known,
            memories: &memories,
            may_gate: &may_gate,
            watching_since: leading_since,
        };
        let mut plan = plan::plan(cluster, state, history, now.wall);
        debug!(node = %name, writes = plan.writes_node(), outcomes = plan.outcomes.len(), "evaluated");

        let (set, records) = (cluster.rules, &mut work.records);
        self.rules
            .evaluated(node, &plan, set, records, &mut self.out);
        let joined_here = state.joined.is_some_and(|at| at >= leading_since);
        let is_news = |rule: &_| joined_here || self.rules.is_new(rule);
        work.observe(state, &plan, is_news, &mut self.out);

        let is_stale = !plan.stale.is_empty()
            || plan.repair_is_postponed
            || (!cluster.stale.is_empty() && plan.waits_for_a_guard());
        let conditions = std::mem::take(&mut plan.conditions);
        let queue = &mut self.conditions;
        work.conditions
            .publish(node, conditions, is_busy, queue, &mut self.out);
        self.repairs.begin(node, &plan, &self.cache, &mut self.out);
        work.write.write(node, plan, &work.startups, &mut self.out);
        if is_stale {
            self.cache.withhold(name);
        }
    }

    /// If one of the node's objects is unreadable, leaves the node as it is, notes that for the rules that know it, and returns
    /// true.
    fn is_left_alone(&mut self, name: &Arc<str>) -> bool {
        let Some(message) = self.cache.left_alone(name).map(ToString::to_string) else {
            return false;
        };
        if let Some(work) = self.nodes.get_mut(name) {
            self.rules
                .left_alone(&message, &mut work.records, &mut self.out);
        }
        true
    }

    /// Forgets a deleted node.
    fn forget(&mut self, name: &Arc<str>) {
        if let Some(work) = self.nodes.get(name) {
            if work.is_writing() {
                // Called again when the write ends.
                return;
            }
            for record in &work.records {
                self.rules
                    .forget_node(name, &record.rule, true, &mut self.out);
            }
            self.out.timers.forget_node(name);
            for class in [Class::Node, Class::Conditions] {
                self.out.pacer.refused.forget(class, name);
            }
            self.nodes.remove(name);
        }
    }

    /// Whether nodes are being written or about to be. Less urgent writes wait meanwhile.
    fn is_busy(&self) -> bool {
        self.out.pacer.under_way(Class::Node) > 0 || self.cache.has_dirty()
    }
}
