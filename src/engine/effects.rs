//! What leaves the engine as it turns up, with the time at which that is: requests, counts, notices and timers.

use std::sync::Arc;
use std::time::Instant;

use super::error::RequestError;
use super::io::{Count, Effect, Now, Request, RequestId};
use super::map::Map;
use super::notice::Notice;
use super::notices::Notices;
use super::pacer::{Class, Pacer};
use super::timers::Timers;

/// What a request was made for. What is known of it besides is kept by whoever made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// To write a node's taints and annotations.
    Node(Arc<str>),
    /// To see the node that has changed under such a write.
    NodeAgain(Arc<str>),
    /// To publish a node's conditions.
    Conditions(Arc<str>),
    /// To see a rule's finalizers written.
    Finalizers(Arc<str>),
    /// To write the status of the rule with this UID.
    Status(Arc<str>),
    /// To delete the claim of this name, in one of the steps that this takes.
    Claim(Arc<str>),
    /// To look at a node before something is decided.
    Look(Arc<str>),
    /// To look at what is the same for all nodes.
    ClusterLook,
    /// To post an Event.
    Event,
}

impl Purpose {
    /// How urgent that is.
    const fn class(&self) -> Class {
        match self {
            Self::Node(_) | Self::NodeAgain(_) => Class::Node,
            Self::Conditions(_) => Class::Conditions,
            Self::Finalizers(_) | Self::Status(_) => Class::Rule,
            Self::Claim(_) => Class::Claim,
            Self::Look(_) | Self::ClusterLook => Class::Look,
            Self::Event => Class::Event,
        }
    }
}

/// What leaves the engine.
#[derive(Debug)]
pub struct Effects {
    /// The time.
    pub now: Now,
    /// When what happens.
    pub timers: Timers,
    /// When which request may be made.
    pub pacer: Pacer,
    /// What is to be told.
    pub notices: Notices,
    waiting: Vec<Effect>,
    next: RequestId,
    under_way: Map<RequestId, (Instant, Purpose)>,
}

impl Effects {
    /// An empty one.
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

    /// Has a request made. Whoever asks has seen to it that it is its turn.
    pub fn ask(&mut self, purpose: Purpose, request: Request) {
        let id = self.next;
        self.next += 1;
        self.pacer
            .begins(purpose.class(), request.is_write(), self.now.monotonic);
        self.under_way.insert(id, (self.now.monotonic, purpose));
        self.waiting.push(Effect::Request(id, request));
    }

    /// Takes in that the request of this number has been answered, perhaps by an error; answers what it was made for.
    pub fn answered(&mut self, id: RequestId, error: Option<&RequestError>) -> Option<Purpose> {
        let (made, purpose) = self.under_way.remove(&id)?;
        let class = purpose.class();
        self.pacer.ends(class);
        self.pacer.answered(class, made, error, self.now.monotonic);
        Some(purpose)
    }

    /// How many requests are under way.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Counts something.
    pub fn count(&mut self, count: Count) {
        self.waiting.push(Effect::Count(count));
    }

    /// Has every watch confirm what it has shown.
    pub fn confirm(&mut self) {
        self.waiting.push(Effect::Confirm);
    }

    /// Has watches begun and ended.
    pub fn order(&mut self, orders: Vec<Effect>) {
        self.waiting.extend(orders);
    }

    /// Has something told, behind what is more urgent.
    pub fn tell(&mut self, notice: Notice) {
        if !self.notices.take(notice, self.now) {
            self.count(Count::EventDropped);
        }
    }

    /// Has those Events posted whose turn it is. They wait while nodes are written, though not for ever.
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
            self.ask(Purpose::Event, request);
        }
    }

    /// When there is something to do, as far as that is known here.
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

    /// Takes all effects.
    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.waiting)
    }
}
