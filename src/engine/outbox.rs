//! What leaves the engine as it turns up, with the time at which that is: requests, counts, notices and timers.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::io::{Count, Effect, Now, Request, RequestId};
use super::map::Map;
use super::notice::Notice;
use super::notices::Notices;
use super::timers::Timers;
use super::turns::{Class, Turns};

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
pub struct Outbox {
    /// The time.
    pub now: Now,
    /// A time that goes at an even pace, whatever happens to the wall clock.
    pub steady: Timestamp,
    /// When what happens.
    pub timers: Timers,
    /// Whose turn it is.
    pub turns: Turns,
    /// What is to be told.
    pub notices: Notices,
    effects: Vec<Effect>,
    next: RequestId,
    under_way: Map<RequestId, (Instant, Purpose)>,
}

impl Outbox {
    /// An empty one.
    pub fn new(turns: Turns, now: Now) -> Self {
        Self {
            now,
            steady: now.wall,
            timers: Timers::default(),
            turns,
            notices: Notices::default(),
            effects: Vec::new(),
            next: 0,
            under_way: Map::default(),
        }
    }

    /// Has a request made. Whoever asks has seen to it that it is its turn.
    pub fn ask(&mut self, purpose: Purpose, request: Request) {
        let id = self.next;
        self.next += 1;
        self.turns
            .begins(purpose.class(), request.is_write(), self.now.monotonic);
        self.under_way.insert(id, (self.now.monotonic, purpose));
        self.effects.push(Effect::Request(id, request));
    }

    /// Takes in that the request of this number has been answered; answers when it was made, and what for.
    pub fn answered(&mut self, id: RequestId) -> Option<(Instant, Purpose)> {
        let (made, purpose) = self.under_way.remove(&id)?;
        self.turns.ends(purpose.class());
        Some((made, purpose))
    }

    /// How many requests are under way.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Counts something.
    pub fn count(&mut self, count: Count) {
        self.effects.push(Effect::Count(count));
    }

    /// Has every watch confirm what it has shown.
    pub fn confirm(&mut self, number: u64) {
        self.effects.push(Effect::Confirm(number));
    }

    /// Has watches begun and ended.
    pub fn order(&mut self, orders: Vec<Effect>) {
        self.effects.extend(orders);
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
            && self.turns.may_begin(Class::Event, now)
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
            self.turns.next_turn(self.now.monotonic),
            self.notices.next_turn(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Takes all effects.
    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }
}
