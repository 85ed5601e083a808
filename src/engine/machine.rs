//! The engine: takes in events and answers, and returns requests.
//!
//! ```text
//! take: read the clock -> inputs -> timers -> rules -> nodes (plan, tell, write) -> what may wait -> effects
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{debug, warn};

use super::cache::{Cache, Readers};
use super::clock::Clock;
use super::count::{Count, RuleCount};
use super::error::RequestError;
use super::freshness::WatchStep;
use super::io::{Answer, Effect, Input, Now, Object, Request, RequestId};
use super::node_writes::WriteEnd;
use super::nodes::Nodes;
use super::notice::{self, About, Notice};
use super::outbox::{Job, Outbox};
use super::pacer::{Class, Pacer};
use super::repairs::Repairs;
use super::rules::{NODES_IN_STATUSES, Rules};
use super::schedule::Why;
use super::settings::Settings;
use super::survey::{self, Survey};
use super::unreadable::tell_unreadable;
use nodegate_core::condition::Watch;
use nodegate_core::object::{Node, Watched};
use nodegate_core::plan::{self, ChangeKind, NodeHistory};

/// The engine reads its clock at least this often, to notice when the process stood still.
const PULSE: Duration = Duration::from_secs(1);

/// How many rule evaluations are made in one go: a few milliseconds' work, so that answers, the clock and the lease get a turn.
const EVALUATIONS: usize = 5_000;

#[derive(Debug)]
pub struct Engine {
    cache: Cache,
    told_suspension: bool,
    pub(super) rules: Rules,
    nodes: Nodes,
    repairs: Repairs,
    clock: Clock,
    out: Outbox,
    leading_since: Option<jiff::Timestamp>,
    is_stopping: bool,
    /// How many rule evaluations may still be made before other work is done.
    allowance: usize,
}

impl Engine {
    pub fn new(settings: &Settings, now: Now) -> Self {
        let pacer = Pacer::new(settings.concurrency, settings.rate);
        Self {
            cache: Cache::new(settings, now),
            told_suspension: false,
            rules: Rules::new(settings.disruption_limits, settings.status_node_limit),
            nodes: Nodes::default(),
            repairs: Repairs::default(),
            clock: Clock::new(now.wall, now.monotonic),
            out: Outbox::new(pacer, now),
            leading_since: None,
            is_stopping: false,
            allowance: EVALUATIONS,
        }
    }

    /// Takes in inputs in order and returns what to do. Without inputs, it does what is due.
    pub fn take(&mut self, inputs: impl IntoIterator<Item = Input>, now: Now) -> Vec<Effect> {
        self.read_clock(now);
        for input in inputs {
            self.take_in(input);
        }
        self.cache.schedule.wake(now.monotonic);
        self.work();
        self.update_watches();
        std::mem::take(&mut self.out.effects)
    }

    /// When to call [`Self::take`] again at the latest, inputs or not.
    pub fn next_wake(&self) -> Option<Instant> {
        let now = self.out.now.monotonic;
        let gives_way = self.allowance == 0 || self.rules.allowance == 0;
        let next = [
            self.out.next_wake(),
            self.cache.views.next_due(now),
            self.cache.schedule.next_wake(now),
            gives_way.then_some(now),
            Some(now + PULSE),
        ];
        next.into_iter().flatten().min()
    }

    /// Notes that the caller begins to wait: only that can show that the process stood still.
    pub fn rest(&mut self, now: Instant) {
        self.clock.rest(now);
    }

    pub fn readers(&self) -> Readers {
        self.cache.stores.readers()
    }

    pub fn has_synced(&self) -> bool {
        self.cache.views.have_synced()
    }

    /// Whether no request is under way and no Event is queued.
    pub fn is_idle(&self) -> bool {
        self.out.is_idle()
    }

    pub fn survey(&self, now: Now) -> Survey {
        let mut survey = Survey::default();
        let leads = self.leading_since.is_some();
        survey.count(survey::BUILD_INFO, &[env!("CARGO_PKG_VERSION")], 1);
        survey.count(survey::LEADER, &[], leads.into());
        survey.count(survey::SUSPENDED, &[], self.cache.rules.suspends_all.into());
        survey.count(survey::QUEUE_DEPTH, &[], self.cache.schedule.len());
        survey.count(survey::WRITES_IN_FLIGHT, &[], self.out.under_way());
        survey.count(survey::WRITE_LIMIT, &[], self.out.pacer.at_a_time());
        for (kind, number) in self.cache.sizes() {
            survey.count(survey::CACHE_OBJECTS, &[kind], number);
        }
        for (kind, number) in self.cache.stores.unreadable.counts() {
            survey.count(survey::UNREADABLE_OBJECTS, &[kind], number);
        }
        let rules = self.cache.cluster().rules;
        let is_stray = |node: &&Node| leads && !node.deleting && rules.stray(node).next().is_some();
        let stray = self.cache.nodes.nodes().filter(is_stray).count();
        survey.count(survey::STRAY_TAINTS, &[], stray);
        survey.of_rules(&self.rules, &self.nodes, &self.cache, now);
        survey
    }

    /// Reads the clocks. If the process stood still, all caches are stale; if the clock was set, measurements restart.
    fn read_clock(&mut self, now: Now) {
        let reading = self.clock.read(now.wall, now.monotonic);
        self.out.now = now;
        self.out.now.wall = reading.now;
        if reading.stood_still {
            warn!(
                "this process stood still, or its clock was set: what it has seen is confirmed first"
            );
            self.cache.views.require(now.monotonic);
        }
        if let Some(step) = reading.step {
            self.cache.measure_anew(reading.now, step);
            for work in self.nodes.values_mut() {
                work.measure_anew(reading.now);
            }
        }
    }

    /// Starts and stops watches to match the rules, restarts those that fell behind, and makes the consistent reads that are due.
    fn update_watches(&mut self) {
        let now = self.out.now.monotonic;
        self.cache.views.restart_stale(now);
        self.out.effects.extend(self.cache.views.take_orders());
        while !self.is_stopping
            && self.out.pacer.may_begin(Class::Read, now)
            && let Some((watch, scope)) = self.cache.views.next_read(now)
        {
            let request = Request::ReadVersion(watch, scope);
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
                if self.cache.views.have_synced() {
                    self.cache.views.require(self.out.now.monotonic);
                }
            }
            Input::Leads => self.out.pacer.on_sign_of_life(),
            Input::Restored => self.cache.views.restored(self.out.now.monotonic),
            Input::SuspendAll(on) => self.cache.suspend_all(on, self.out.now.wall),
            Input::Stop => self.is_stopping = true,
        }
    }

    fn tell_suspension(&mut self) {
        let suspends_all = self.cache.rules.suspends_all;
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

    /// Does what can be done now: rules first, then nodes, then what may wait.
    fn work(&mut self) {
        self.cache.schedule.next_gating = None;
        self.allowance = EVALUATIONS;
        self.rules.allowance = NODES_IN_STATUSES;
        if self.leading_since.is_some() && self.cache.views.have_synced() && !self.is_stopping {
            let changes = std::mem::take(&mut self.cache.schedule.changes);
            if changes.rules || changes.behind {
                self.rules.changed_behind();
            }
            if changes.rules {
                self.rules.sync(&self.cache, &mut self.nodes, &mut self.out);
            }
            self.tell_suspension();
            self.rules
                .see_statuses(changes.statuses, &self.cache, &mut self.out);
            self.rules
                .write_finalizers(&self.cache, &self.nodes, &mut self.out);
            tell_unreadable(&mut self.cache, &mut self.out);
            self.cache.freshness.assess(&self.cache.views, self.out.now);
            if changes.outage_ended {
                self.rules.outage_is_over();
            }
            self.retry_refused();
            self.evaluate_due();
            self.rules
                .write_finalizers(&self.cache, &self.nodes, &mut self.out);
            let is_busy = self.is_busy();
            self.rules
                .write_statuses(&self.cache, &self.nodes, is_busy, &mut self.out);
            self.publish();
        }
        let is_busy = self.is_busy() && !self.is_stopping;
        self.out.post(is_busy);
    }

    /// Retries what the API server refused, once some of it went through.
    fn retry_refused(&mut self) {
        for (at, class, name) in std::mem::take(&mut self.out.pacer.refused.retries) {
            if let Some(work) = self.nodes.get_mut(&name) {
                match class {
                    Class::Conditions => work.conditions.attempt.backoff.retry_at(at),
                    _ => work.write.parts.retry_at(at),
                }
                self.cache.schedule.by(&name, at, Why::Retry);
            }
        }
    }

    /// Evaluates the queued nodes, as long as the pacer permits writes.
    fn evaluate_due(&mut self) {
        let now = self.out.now.monotonic;
        loop {
            while self.cache.schedule.len() > 0
                && self.allowance > 0
                && self.out.pacer.may_begin(Class::Node, now)
                && let Some((name, why)) = self.cache.schedule.next()
            {
                self.reconcile(&name, why);
            }
            // In an outage, writes serve as probes. Gating another node is the probe only if nothing else is to be written.
            if self.cache.schedule.len() > 0 || self.out.pacer.permits(Class::Node, now) == 0 {
                return;
            }
            let (rules, nodes) = (&mut self.rules, &mut self.nodes);
            let mut granted = rules.decide_first_gatings(&self.cache, nodes, &mut self.out);
            granted.extend(rules.grant_gating(&self.cache, now));
            if granted.is_empty() {
                break;
            }
            self.cache
                .schedule
                .mark_each(granted.iter(), Why::Permitted);
        }
        self.cache.schedule.next_gating = self.rules.next_gating(&self.cache, now);
    }

    fn publish(&mut self) {
        while let is_busy = self.is_busy()
            && let Some(Job::Conditions(name)) = self.out.next(Class::Conditions, is_busy)
        {
            if self.nodes.contains_key(&name) {
                self.reconcile(&name, Why::Publishing);
            }
        }
    }

    /// Reconciles one node: view, plan, remember, announce, carry out. What could hurt waits while what it depends on is stale.
    fn reconcile(&mut self, name: &Arc<str>, why: Why) {
        let broken = self.cache.stores.unreadable.left_alone(name);
        if let Some(message) = broken.map(ToString::to_string) {
            if let Some(work) = self.nodes.get_mut(name) {
                self.rules
                    .left_alone(&message, &mut work.records, &mut self.out);
            }
            return;
        }
        let (now, is_busy) = (self.out.now, self.is_busy());
        self.cache.select_rules(name, now.wall);
        let Some(state) = self.cache.node(name) else {
            return self.forget(name);
        };
        let leading_since = self.leading_since.unwrap_or(now.wall);
        let (cluster, node) = (self.cache.cluster(), state.node);
        let may_gate = self.rules.may_gate(name, state.selecting, &self.cache);
        let setbacks = self.rules.setbacks(state.selecting, &self.cache, node);
        let work = self.nodes.entry(name.clone()).or_default();
        if work.write.is_under_way() {
            // The node is evaluated again when the write ends.
            return;
        }
        work.is_about(node);

        let (rules, records) = (&self.rules, &work.records);
        let held_back = rules.held_back(state.selecting, &self.cache, records);
        let memories = work.memories.clone();
        let history = NodeHistory {
            is_known: work.rules_seen > 0,
            memories: &memories,
            may_gate: &may_gate,
            held_back: &held_back,
            setbacks: &setbacks,
            watching_since: leading_since,
        };
        let mut plan = plan::plan(cluster, state, history, now.wall);
        let writes = !plan.taints.is_empty();
        for outcome in &plan.outcomes {
            let (rule, standing) = (&outcome.rule.name, &outcome.standing);
            debug!(node = %name, %rule, ?standing, met = outcome.met, conditions = outcome.evidence(), "evaluated rule");
        }
        // Rules on one node are compared with each other, and each looks at all that is there.
        let rules = state.selecting.len();
        let cost = 1 + rules + rules * rules / 64 + (1 + rules) * state.size(cluster) / 32;
        self.allowance = self.allowance.saturating_sub(cost);

        let runs = |daemon_set: &_| state.runs(daemon_set, cluster);
        work.write.settle(node, &plan, runs, now.monotonic);
        let (set, records) = (cluster.rules, &mut work.records);
        self.rules
            .evaluated(state, &plan, set, &work.write, records, &mut self.out);
        self.rules
            .got_ready(node, &plan, &self.cache, &mut self.out);
        let joined_here = state.joined.is_some_and(|at| at >= leading_since);
        let is_news = |rule: &_| joined_here || self.rules.is_new(rule);
        work.observe(cluster, state, &plan, is_news, &mut self.out);
        work.rules_seen = self.cache.rules.generation;

        // Nothing else has the node evaluated once a reporter's silence shows again.
        let hides_silence =
            cluster.stale.contains(&Watch::Nodes) && !cluster.rules.followed.is_empty();
        let is_stale = !plan.stale.is_empty()
            || hides_silence
            || plan.repair_is_postponed
            || (!cluster.stale.is_empty() && plan.waits_for_a_guard());
        let conditions = std::mem::take(&mut plan.conditions);
        work.conditions
            .publish(node, conditions, is_busy, &mut self.out);
        self.repairs.begin(node, &plan, &self.cache, &mut self.out);
        work.write.write(node, plan, &work.startups, &mut self.out);
        if is_stale {
            self.cache.schedule.withheld.insert(name.clone());
        }
        if let Some((at, why)) = self.out.again.take() {
            self.cache.schedule.by(name, at, why);
        }
        let (schedule, now) = (&self.cache.schedule, now.monotonic);
        debug!(node = %name, ?why, writes, next = ?schedule.due(name, now), "evaluated");
    }

    fn forget(&mut self, name: &Arc<str>) {
        if let Some(work) = self.nodes.get(name) {
            if work.write.is_under_way() || work.conditions.attempt.under_way {
                // Called again when the write ends.
                return;
            }
            for record in &work.records {
                self.rules
                    .forget_node(name, &record.rule, true, &mut self.out);
            }
            self.cache.schedule.forget(name);
            for class in [Class::Node, Class::Conditions] {
                self.out.pacer.refused.forget(class, name);
            }
            self.nodes.remove(name);
        }
    }

    /// Whether nodes are being written or about to be. Less urgent writes wait meanwhile.
    fn is_busy(&self) -> bool {
        let (pacer, now) = (&self.out.pacer, self.out.now.monotonic);
        let is_paused = || pacer.not_before(Class::Node, now).is_some();
        pacer.under_way(Class::Node) > 0 || self.cache.schedule.len() > 0 && !is_paused()
    }

    fn answered(&mut self, id: RequestId, answer: Result<Answer, RequestError>) {
        let Some(purpose) = self.out.answered(id, answer.as_ref().err()) else {
            return;
        };
        match purpose {
            Job::WriteNode(name) => self.node_answered(&name, answer.and_then(Answer::node)),
            Job::Conditions(name) => {
                self.conditions_answered(&name, answer.and_then(Answer::node));
            }
            Job::Finalizers(uid) => {
                let answer = answer.and_then(Answer::rule);
                self.rules
                    .finalizers_answered(&uid, answer, &mut self.cache, &mut self.out);
            }
            Job::Status(uid) => {
                let answer = answer.and_then(Answer::version);
                self.rules
                    .status_answered(&uid, answer, &self.cache, &mut self.out);
            }
            Job::Claim(name) => {
                let (stops, cache, out) = (self.is_stopping, &mut self.cache, &mut self.out);
                if let Some(replaced) = self.repairs.answered(&name, answer, stops, cache, out) {
                    self.rules.replaced(&replaced, cache, out);
                }
            }
            Job::Version(watch, asked) => {
                let step = WatchStep::Answer(asked, answer.and_then(Answer::version));
                self.cache.step(watch, step, self.out.now);
            }
            Job::Event => {
                if let Err(error) = answer {
                    self.out.count(Count::EventDropped);
                    let now = self.out.now.monotonic;
                    let pacer = &mut self.out.pacer;
                    pacer.complain("cannot post an event", "", &error, now);
                }
            }
        }
    }

    fn node_answered(&mut self, name: &Arc<str>, result: Result<Watched<Node>, RequestError>) {
        let Some(work) = self.nodes.get_mut(name) else {
            return;
        };
        match work.write.answered(name, result, &mut self.out) {
            None => return,
            Some(WriteEnd::Again(None)) => {}
            Some(WriteEnd::Again(Some(node))) => {
                self.cache.apply_answer(Object::Node(*node), self.out.now);
            }
            Some(WriteEnd::Refused(changes, why)) => {
                if let Some(state) = self.cache.node(name) {
                    let about = About::node(name, &state.node.uid);
                    let (records, out) = (&mut work.records, &mut self.out);
                    self.rules
                        .record_failure(&about, &changes, &why, records, out);
                }
            }
            Some(WriteEnd::CarriedOut(write, version, patched)) => {
                for change in write.plan.changes {
                    let rule = change.rule_name.clone();
                    if change.kind == ChangeKind::Added {
                        self.rules.gated(&change.rule_uid, name);
                    } else if let Some(count) = work.startups.released(&change.rule_uid)
                        && !change.gave_up
                    {
                        self.out.count_for(rule.clone(), count);
                    }
                    let change = RuleCount::Changed(Box::new(change));
                    self.out.count_for(rule, change);
                }
                for (count, notice) in write.completed {
                    self.out.count(count);
                    if let Some(notice) = notice {
                        self.out.tell(notice);
                    }
                }
                let now = self.out.now.wall;
                let taints = write.taints;
                self.cache.patched_node(version, *patched, taints, now);
            }
        }
        self.cache.schedule.mark(name, Why::Answered);
    }

    fn conditions_answered(&mut self, name: &Arc<str>, node: Result<Watched<Node>, RequestError>) {
        if let Some(work) = self.nodes.get_mut(name) {
            let error = node.as_ref().err();
            work.conditions.answered(name, error, &mut self.out);
        }
        if let Ok(node) = node {
            self.cache.apply_answer(Object::Node(node), self.out.now);
        }
        self.cache.schedule.mark(name, Why::Answered);
    }
}
