//! The reconcile loop: one task that owns all state, takes in what the watches show, has nodes evaluated, and keeps
//! a bounded number of writes under way, never two of a kind on one object.
//!
//! What is done for each node is in `nodes`, what is done for the rules themselves in `rules`.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::cache::Cache;
use super::io;
use super::look::{Looker, Seen};
use super::node_writes::NodeWrite;
use super::nodes::NodeWork;
use super::repairs::{ClaimDeletion, Repairs};
use super::rules::RuleWork;
use crate::controller::events::EventSink;
use crate::controller::health::Readiness;
use crate::controller::metrics::Metrics;
use crate::controller::writer::Writer;
use crate::engine::RequestError;
use crate::engine::io::Now;
use crate::engine::{Clock, Outage, Repetitions, Retries};
use crate::guard::Limits;
use crate::object::{NodeMetadata, NodeObject, RuleObject, Version};
use crate::serve::metrics::Survey;

/// How many events are taken in before the next nodes are evaluated.
const BATCH: usize = 512;
/// How many conditions are published at a time while nothing more urgent is to be written.
const CONDITION_CONCURRENCY: usize = 8;
/// How long writes under way may take to end when the controller is stopped.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// How often the clock is read at least: by that it shows whether the process stood still.
const PULSE: Duration = Duration::from_secs(1);

/// Whether this instance may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leadership {
    /// Another instance leads, or none yet.
    Following,
    /// This instance leads, or there is no election.
    Leading,
    /// This instance gives up leading: what is under way may end, and nothing else is begun.
    Resigned,
    /// This instance has led and may not any more.
    Lost,
}

/// What ended the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was told to stop, and the writes under way have been answered.
    Stopped,
    /// The lead was given up, and the writes under way have been answered.
    Resigned,
    /// The lead was lost; the writes under way have been cancelled.
    LeadershipLost,
}

/// What the loop is told and asked from outside.
pub struct Inputs {
    /// What the watches show.
    pub changes: mpsc::Receiver<io::Seen>,
    /// Whether this instance may write.
    pub leadership: watch::Receiver<Leadership>,
    /// Requests to bring the gauges up to date.
    pub surveys: mpsc::Receiver<Survey>,
}

/// What the loop tells those beside it.
pub struct Signals {
    /// Whether nodes are being written: what can wait then does.
    pub busy: watch::Sender<bool>,
    /// Whether the controller can do its work.
    pub readiness: watch::Sender<Readiness>,
    /// Has every watch find out at once whether it has shown all there is.
    pub confirmations: watch::Sender<u64>,
    /// When a watch last showed something.
    pub seen: watch::Sender<Instant>,
}

impl Signals {
    /// Asks every watch for a confirmation; answers its number.
    fn ask_for_confirmation(&self) -> u64 {
        self.confirmations.send_modify(|number| *number += 1);
        *self.confirmations.borrow()
    }
}

/// What the command line says about the loop.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How many nodes are written at a time.
    pub concurrency: usize,
    /// How many nodes each list of a rule's status may name.
    pub status_node_limit: usize,
    /// The limits of disruption guards, where a rule does not say.
    pub disruption_limits: Limits,
}

/// The reconcile loop's state.
pub struct Reconciler {
    pub(super) cache: Cache,
    pub(super) writer: Writer,
    pub(super) events: EventSink,
    pub(super) metrics: Metrics,
    pub(super) settings: Settings,
    pub(super) rules: HashMap<Arc<str>, RuleWork>,
    /// Each with when it was started.
    pub(super) in_flight: JoinSet<(Instant, Done)>,
    pub(super) timers: Timers,
    pub(super) nodes: HashMap<Arc<str>, NodeWork>,
    pub(super) repairs: Repairs,
    pub(super) node_writes: usize,
    pub(super) condition_queue: VecDeque<Arc<str>>,
    pub(super) condition_writes: usize,
    /// When a disruption guard may let another node go.
    pub(super) next_closure: Option<Instant>,
    signals: Signals,
    pub(super) looker: Looker,
    pub(super) looks: usize,
    /// The nodes that wait to be looked at.
    pub(super) look_queue: BTreeSet<Arc<str>>,
    clock: Clock,
    /// The time, as of when the clock was read last.
    pub(super) now: Timestamp,
    /// A time that goes at an even pace, as of then.
    pub(super) steady: Timestamp,
    /// When everything that was known came into doubt.
    pub(super) doubted: Option<Instant>,
    /// Since when this instance leads; `None` while it does not.
    leading_since: Option<Timestamp>,
    /// While the API server cannot be reached, one write at a time finds out whether it is back, and all others wait for
    /// that rather than for pauses of their own.
    pub(super) outage: Outage,
    /// Who waits for a turn to try again what has been refused of a node, and of its published conditions.
    pub(super) retries: Retries,
    pub(super) condition_retries: Retries,
    /// What is told of writes that fail.
    pub(super) complaints: Repetitions,
    /// When the limit on writes lets the next one through, where one waits for that.
    pub(super) next_write: Option<Instant>,
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
        write: NodeWrite,
        result: Result<NodeMetadata, RequestError>,
        /// The node as it was read after a conflict.
        fresh: Option<NodeObject>,
    },
    /// A node's conditions.
    Conditions {
        name: Arc<str>,
        result: Result<NodeObject, RequestError>,
    },
    /// A last look at a node.
    Look {
        name: Arc<str>,
        result: Result<Seen, RequestError>,
    },
    /// A node's `NodeClaim`.
    Claim {
        deletion: ClaimDeletion,
        result: Result<(), RequestError>,
        /// The node as it was read, where it is not what was judged.
        fresh: Option<NodeObject>,
    },
    /// A rule's finalizers.
    Finalizers {
        uid: Arc<str>,
        result: Result<RuleObject, RequestError>,
    },
    /// A rule's status.
    Status {
        uid: Arc<str>,
        result: Result<Version, RequestError>,
    },
}

impl Done {
    /// What kept it from succeeding.
    fn error(&self) -> Option<&RequestError> {
        match self {
            Self::Node { result, .. } => result.as_ref().err(),
            Self::Conditions { result, .. } => result.as_ref().err(),
            Self::Look { result, .. } => result.as_ref().err(),
            Self::Claim { result, .. } => result.as_ref().err(),
            Self::Finalizers { result, .. } => result.as_ref().err(),
            Self::Status { result, .. } => result.as_ref().err(),
        }
    }
}

impl Reconciler {
    /// A loop over an empty cache.
    pub fn new(
        cache: Cache,
        writer: Writer,
        looker: Looker,
        events: EventSink,
        signals: Signals,
        metrics: Metrics,
        settings: Settings,
    ) -> Self {
        let now = Timestamp::now();
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
            repairs: Repairs::default(),
            node_writes: 0,
            condition_queue: VecDeque::new(),
            condition_writes: 0,
            next_closure: None,
            signals,
            looker,
            looks: 0,
            look_queue: BTreeSet::new(),
            clock: Clock::new(now, Instant::now()),
            now,
            steady: now,
            doubted: None,
            leading_since: None,
            outage: Outage::default(),
            retries: Retries::default(),
            condition_retries: Retries::default(),
            complaints: Repetitions::default(),
            next_write: None,
        }
    }

    /// Runs until `shutdown` resolves or the lead is lost or given up.
    pub async fn run(mut self, mut inputs: Inputs, shutdown: impl Future<Output = ()>) -> Ended {
        let mut shutdown = std::pin::pin!(shutdown);
        let ended = loop {
            self.read_clock();
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
                (Leadership::Resigned, _) => break Ended::Resigned,
                (Leadership::Leading, None) => {
                    self.leading_since = Some(self.now);
                    self.metrics.leader.set(1);
                    self.cache.begin_evaluations();
                    // Nothing has depended yet on what a follower has seen.
                    if self.cache.has_synced() {
                        self.doubt_everything();
                    }
                }
                _ => {}
            }
            self.start_work();
            let outage = self.outage.next_try(Instant::now());
            let timer = self.timers.first().map(|(at, _)| *at);
            let retry = self.next_retry();
            let pulse = Some(Instant::now() + PULSE);
            let next_timer = [
                timer,
                outage,
                retry,
                self.next_write,
                self.next_closure,
                pulse,
            ]
            .into_iter()
            .flatten()
            .min();
            tokio::select! {
                biased;
                () = &mut shutdown => break Ended::Stopped,
                // Each time the lease is renewed.
                Ok(()) = inputs.leadership.changed() => self.heard(),
                Some(done) = self.in_flight.join_next() => {
                    self.finish(done);
                    while let Some(done) = self.in_flight.try_join_next() {
                        self.finish(done);
                    }
                }
                Some(change) = inputs.changes.recv() => {
                    self.read_clock();
                    self.take_in(change);
                    for _ in 1..BATCH {
                        let Ok(change) = inputs.changes.try_recv() else { break };
                        self.take_in(change);
                    }
                }
                Some(done) = inputs.surveys.recv() => {
                    self.survey();
                    // Who asked may have stopped waiting.
                    let _ = done.send(());
                }
                () = sleep_until(next_timer) => {}
            }
        };
        info!(writes = self.in_flight.len(), "stopping");
        let deadline = Instant::now() + SHUTDOWN_GRACE;
        while !self.in_flight.is_empty() {
            match tokio::time::timeout_at(deadline.into(), self.in_flight.join_next()).await {
                // What has been done is told, even if nothing more is.
                Ok(Some(done)) => self.finish(done),
                Ok(None) => break,
                Err(_) => {
                    warn!("stopped before all writes had been answered");
                    break;
                }
            }
        }
        self.signals.busy.send_replace(false);
        if tokio::time::timeout_at(deadline.into(), self.events.close())
            .await
            .is_err()
        {
            warn!("stopped before all events had been posted");
        }
        ended
    }

    /// Does what can be done now: rules first, then nodes, then what may wait.
    fn start_work(&mut self) {
        if !self.cache.has_synced() {
            return;
        }
        self.signals.readiness.send_if_modified(|readiness| {
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
        self.see_statuses();
        self.tell_unreadable();
        let now = self.now;
        self.cache.weigh(Now {
            wall: now,
            monotonic: Instant::now(),
        });
        let permitted = |usual: usize| self.outage.permits(usual, Instant::now());
        let allowed = permitted(self.settings.concurrency);
        let allowed_conditions = permitted(CONDITION_CONCURRENCY);
        self.next_closure = None;
        self.next_write = None;
        self.take_turns();
        loop {
            while self.node_writes < allowed && self.may_write() {
                let Some(name) = self.cache.next_dirty() else {
                    break;
                };
                if !self.is_left_alone(&name, now) {
                    self.consider(&name, now, leading_since);
                }
            }
            // In an outage, a node that is closed is the write that finds out whether it is over; where others are to be
            // written, they do that.
            if self.cache.has_dirty() || allowed == 0 || !self.grant_closures() {
                break;
            }
        }
        self.finish_deletions();
        let is_busy = self.is_busy();
        self.signals
            .busy
            .send_if_modified(|busy| std::mem::replace(busy, is_busy) != is_busy);
        let allowed = allowed_conditions.min(if is_busy { 1 } else { CONDITION_CONCURRENCY });
        while self.condition_writes < allowed && self.may_write() {
            let Some(name) = self.condition_queue.pop_front() else {
                break;
            };
            self.publish_conditions(&name, now, leading_since);
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

    fn finish(&mut self, done: Result<(Instant, Done), tokio::task::JoinError>) {
        // A task of ours neither panics nor is cancelled; if one does, there is no state to trust any more.
        let (made, done) =
            done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        self.note_answer(made, done.error());
        match done {
            Done::Node {
                write,
                result,
                fresh,
            } => self.finish_node(write, result, fresh),
            Done::Conditions { name, result } => {
                self.condition_writes -= 1;
                self.finish_conditions(&name, result);
            }
            Done::Look { name, result } => self.finish_look(&name, result),
            Done::Claim {
                deletion,
                result,
                fresh,
            } => self.finish_claim(&deletion, result, fresh),
            Done::Finalizers { uid, result } => self.finish_finalizers(&uid, result),
            Done::Status { uid, result } => self.finish_status(&uid, result),
        }
    }

    /// Reads the clocks. After the process stood still nothing it knows is certain, and what was measured by a clock that
    /// was set is measured anew.
    fn read_clock(&mut self) {
        let reading = self.clock.read(Timestamp::now(), Instant::now());
        (self.now, self.steady) = (reading.now, reading.steady);
        if reading.stood_still {
            warn!(
                "this process stood still, or its clock was set: what it has seen is confirmed first"
            );
            self.doubt_everything();
        }
        if reading.was_set {
            self.measure_anew(self.now);
        }
    }

    /// Nothing is certain until the watches have confirmed it, which they are asked to do at once.
    fn doubt_everything(&mut self) {
        let confirmation = self.signals.ask_for_confirmation();
        self.cache.doubt_all(confirmation);
        self.doubted = Some(Instant::now());
    }

    /// Whether nodes are being written, or are about to be. What can wait then does.
    pub(super) fn is_busy(&self) -> bool {
        self.node_writes > 0 || self.cache.has_dirty()
    }

    fn take_in(&mut self, seen: io::Seen) {
        if seen.is_sign_of_life() {
            self.signals.seen.send_replace(Instant::now());
            if self.outage.is_on() {
                self.heard();
            }
        }
        let now = Now {
            wall: self.now,
            monotonic: Instant::now(),
        };
        self.cache.see(seen, now);
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
