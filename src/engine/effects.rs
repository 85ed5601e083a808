//! Collects the engine's outputs, with the time at which it runs: requests, counts, Events and timers.

use std::sync::Arc;
use std::time::Instant;

use super::count::{Count, RuleCount};
use super::error::RequestError;
use super::io::{Effect, Now, Request, RequestId};
use super::map::Map;
use super::notice::Notice;
use super::notices::Notices;
use super::pacer::{Class, Pacer};
use super::timers::Timers;
use crate::condition::Watch;

/// What a request is for. Its owner keeps the details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// Write a node's taints and annotations, or read it after a conflict.
    Node(Arc<str>),
    /// Publish a node's conditions.
    Conditions(Arc<str>),
    /// Write a rule's finalizers.
    Finalizers(Arc<str>),
    /// Write the status of the rule with this UID.
    Status(Arc<str>),
    /// Delete the claim of this name, in one of several steps.
    Claim(Arc<str>),
    /// Read the cluster's version for a watch, asked for at this time.
    Version(Watch, Instant),
    /// Post an Event.
    Event,
}

impl Job {
    const fn class(&self) -> Class {
        match self {
            Self::Node(_) => Class::Node,
            Self::Conditions(_) => Class::Conditions,
            Self::Finalizers(_) | Self::Status(_) => Class::Rule,
            Self::Claim(_) => Class::Claim,
            Self::Version(..) => Class::Read,
            Self::Event => Class::Event,
        }
    }
}

/// The engine's outputs.
#[derive(Debug)]
pub struct Effects {
    pub now: Now,
    pub timers: Timers,
    pub pacer: Pacer,
    pub notices: Notices,
    waiting: Vec<Effect>,
    next: RequestId,
    under_way: Map<RequestId, (Instant, Job)>,
}

impl Effects {
    pub fn new(pacer: Pacer, now: Now) -> Self {
        Self {
            now,
            timers: Timers::default(),
            pacer,
            notices: Notices::default(),
            waiting: Vec::new(),
            next: 0,
            under_way: Map::default(),
        }
    }

    /// Makes a request. The caller has checked that the pacer permits it.
    pub fn ask(&mut self, purpose: Job, request: Request) {
        let id = self.next;
        self.next += 1;
        self.pacer
            .begins(purpose.class(), request.is_write(), self.now.monotonic);
        self.under_way.insert(id, (self.now.monotonic, purpose));
        self.waiting.push(Effect::Request(id, request));
    }

    /// Ends the request of this number; returns what it was for.
    pub fn answered(&mut self, id: RequestId, error: Option<&RequestError>) -> Option<Job> {
        let (made, purpose) = self.under_way.remove(&id)?;
        let class = purpose.class();
        self.pacer.ends(class);
        self.pacer.answered(class, made, error, self.now.monotonic);
        Some(purpose)
    }

    /// The number of requests under way, but for consistent reads.
    pub fn under_way(&self) -> usize {
        self.under_way.len() - self.pacer.under_way(Class::Read)
    }

    pub fn count(&mut self, count: Count) {
        self.waiting.push(Effect::Count(count));
    }

    pub fn count_for(&mut self, rule: impl Into<Arc<str>>, count: RuleCount) {
        self.count(Count::Rule(rule.into(), count));
    }

    /// Starts and stops watches.
    pub fn order(&mut self, orders: Vec<Effect>) {
        self.waiting.extend(orders);
    }

    /// Queues an Event, behind more urgent requests.
    pub fn tell(&mut self, notice: Notice) {
        if !self.notices.take(notice, self.now) {
            self.count(Count::EventDropped);
        }
    }

    /// Posts the Events that are due. They yield to writes to nodes, but only for a limited time.
    pub fn post(&mut self, is_busy: bool) {
        let now = self.now.monotonic;
        while self.notices.is_due(is_busy, now)
            && self.pacer.may_begin(Class::Event, now)
            && let Some((notice, at)) = self.notices.next()
        {
            let request = Request::PostEvent {
                notice: Box::new(notice),
                at,
                number: self.next,
            };
            self.ask(Job::Event, request);
        }
    }

    /// When the engine must run again for what is kept here.
    pub fn next_wake(&self) -> Option<Instant> {
        [
            self.timers.next(),
            self.pacer.next_turn(self.now.monotonic),
            self.notices.next_turn(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.waiting)
    }
}
