//! The API server, the cluster's clock, and a log of every write and of every state of every object.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;
use nodegate_engine::notice::Notice;
use serde_json::Value;

use super::time::{Time, wall};
use crate::{Answer, Key, Kind, Request, Server};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    /// The actor of this name.
    Actor(&'static str),
    /// The instance of Nodegate with this number.
    Nodegate(usize),
}

/// A request that could change something, whether it did or not.
#[derive(Debug, Clone)]
pub struct Write {
    pub at: Time,
    pub who: Who,
    pub request: Request,
    /// The HTTP status of the answer.
    pub code: u16,
    /// The changes it made, as indices into [`Cluster::changes`]: at most two, often none.
    pub changes: Range<usize>,
}

#[derive(Debug, Clone)]
pub struct Change {
    pub revision: u64,
    pub at: Time,
    pub who: Who,
    pub key: Key,
    /// The object before; `None` if it did not exist.
    pub before: Option<Arc<Value>>,
    /// The object after; `None` if it is gone.
    pub after: Option<Arc<Value>>,
}

/// One state of an object, from one revision to the next.
#[derive(Debug, Clone)]
pub struct State {
    pub revision: u64,
    pub at: Time,
    /// The object; `None` where it did not exist.
    pub object: Option<Arc<Value>>,
}

/// The cluster, with its whole history.
#[derive(Debug, Clone)]
pub struct Cluster {
    server: Server,
    now: Time,
    writes: Vec<Write>,
    changes: Vec<Change>,
    history: BTreeMap<Key, Vec<State>>,
    notices: Vec<Notice>,
}

impl Cluster {
    /// An empty cluster. Its UIDs follow from the seed.
    pub fn new(seed: u64) -> Self {
        Self {
            server: Server::new(seed),
            now: Time::ZERO,
            writes: Vec::new(),
            changes: Vec::new(),
            history: BTreeMap::new(),
            notices: Vec::new(),
        }
    }

    pub fn now(&self) -> Time {
        self.now
    }

    /// The current time on the cluster's clock.
    pub fn wall(&self) -> Timestamp {
        wall(self.now)
    }

    pub fn advance(&mut self, to: Time) {
        self.now = self.now.max(to);
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The API server, to set up namespaces or to compact.
    pub fn server_mut(&mut self) -> &mut Server {
        &mut self.server
    }

    /// Carries out a request at once.
    ///
    /// # Errors
    /// When the request is refused; then nothing has changed.
    pub fn request(&mut self, who: Who, request: &Request) -> Answer {
        let before = self.server.revision();
        let answer = self.server.answer(request, wall(self.now));
        let first = self.changes.len();
        for change in self.server.changes(before) {
            let state = State {
                revision: change.revision,
                at: self.now,
                object: change.after.clone(),
            };
            let states = self.history.entry(change.key.clone());
            states.or_default().push(state);
            self.changes.push(Change {
                revision: change.revision,
                at: self.now,
                who,
                key: change.key.clone(),
                before: change.before.clone(),
                after: change.after.clone(),
            });
        }
        self.writes.push(Write {
            at: self.now,
            who,
            request: request.clone(),
            code: match &answer {
                Ok(success) => success.code(),
                Err(refusal) => refusal.code,
            },
            changes: first..self.changes.len(),
        });
        answer
    }

    pub fn revision(&self) -> u64 {
        self.server.revision()
    }

    pub fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.server.object(key)
    }

    /// All objects of a kind, ordered by namespace and name.
    pub fn objects(&self, kind: Kind) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.server.objects(kind)
    }

    /// All requests that could change something, in order.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Records an Event that Nodegate posts.
    pub fn tell(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    /// The Events that Nodegate has posted, in order.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Every state of the objects of this name, in order, with the gaps between them.
    pub fn history(&self, key: &Key) -> &[State] {
        self.history.get(key).map_or(&[], Vec::as_slice)
    }

    /// The cluster at the end of this moment.
    pub fn at(&self, time: Time) -> View<'_> {
        let end = self.changes.partition_point(|change| change.at <= time);
        let last = end.checked_sub(1).map(|last| self.changes[last].revision);
        self.as_of(last.unwrap_or_default())
    }

    pub fn as_of(&self, revision: u64) -> View<'_> {
        View {
            cluster: self,
            revision,
        }
    }
}

/// The cluster at one revision.
#[derive(Clone, Copy)]
pub struct View<'a> {
    cluster: &'a Cluster,
    revision: u64,
}

impl<'a> View<'a> {
    pub fn revision(self) -> u64 {
        self.revision
    }

    pub fn get(self, key: &Key) -> Option<&'a Arc<Value>> {
        self.state(self.cluster.history.get(key)?)
    }

    /// All objects of a kind at this revision, ordered by namespace and name.
    pub fn objects(self, kind: Kind) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        self.cluster
            .history
            .range(Key::cluster(kind, "")..)
            .take_while(move |(key, _)| key.kind == kind)
            .filter_map(move |(key, states)| Some((key, self.state(states)?)))
    }

    fn state(self, states: &'a [State]) -> Option<&'a Arc<Value>> {
        let end = states.partition_point(|state| state.revision <= self.revision);
        states[..end].last()?.object.as_ref()
    }
}
