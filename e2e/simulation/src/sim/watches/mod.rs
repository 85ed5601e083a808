//! The watches of one process: what `kube::runtime::watcher`, and the layer below it, make of the API server's answers, and when.

mod source;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use nodegate_core::condition::WATCH_LENGTH;
use nodegate_core::condition::Watch;
use nodegate_core::selector::Filter;
use nodegate_engine::io::{Object, Seen};
use serde_json::Value;

use super::cluster::{Change, Cluster};
use super::rng::Rng;
use super::time::{Clocks, Time, ms, s};
use crate::watch::bookmark;
use crate::{Event, EventType, Key};
use source::{Source, revision};

/// How long a lagging API server takes for a consistent read.
const CATCHING_UP: Time = s(3);
/// How long before its end a watch sends a bookmark.
const BOOKMARK: Time = s(2);
/// How long after its expected end a silent watch is given up.
const GRACE: Time = s(5);
/// The timeout for starting a watch.
const START_LIMIT: Time = s(10);
/// The first and the longest pause before a watch is retried.
const PAUSES: (Time, Time) = (ms(50), s(1));
/// The page size of lists: smaller than the product's limit, so that there are several pages.
const PAGE: usize = 20;
/// How long a hidden event waits for its successor.
const PATIENCE: Time = s(20);

#[derive(Debug)]
pub(super) struct Feed {
    pub watch: Watch,
    source: Source,
    stage: Stage,
    /// From where it goes on; `None` for a list.
    version: Option<u64>,
    /// The revision to which consistent reads have advanced the API server's own view.
    moved: u64,
    /// The API server's view stalls at this revision until this time.
    pub lag: Option<(u64, Time)>,
    /// When it last showed something.
    pub shown_at: Time,
    pause: Time,
    /// The times in which it stalls.
    stills: Vec<(Time, Time)>,
    /// Until when events are delayed, and by how much.
    late: (Time, Time),
    /// How many events were shown or hidden, over all lives of the process.
    pub events: usize,
    /// The numbers of the events to hide, each with the next one of its object.
    pub hidden: Vec<usize>,
    /// The UIDs of the nodes shown in this life.
    pub nodes: BTreeSet<String>,
    rng: Rng,
}

#[derive(Debug)]
enum Stage {
    /// Not wanted at the moment.
    Ended,
    /// Starts at this time.
    Pausing(Time),
    /// Was started during a stall. It is given up at `until`, unless the stall ends before.
    Opening {
        since: Time,
        until: Time,
    },
    /// Delivers the rest of a list.
    Listing {
        pages: VecDeque<Vec<Arc<Value>>>,
        revision: u64,
        /// When the next page arrives.
        next: Time,
    },
    Watching(Stream),
    /// Hides an event of this object. Restarts after the object's next change, or at `until`.
    Hiding {
        key: Key,
        until: Time,
    },
}

#[derive(Debug)]
struct Stream {
    /// When the API server ends it.
    ends: Time,
    has_bookmark: bool,
    /// Delivers nothing any more, not even its end.
    is_dead: bool,
    /// The events under way, with their arrival times.
    queue: VecDeque<(Time, Event)>,
    /// The events that a lagging API server has yet to show.
    held: Vec<Event>,
}

impl Stream {
    /// When an event sent now arrives: not before its predecessors.
    fn due(&self, at: Time) -> Time {
        self.queue.back().map_or(at, |(last, _)| at.max(*last))
    }
}

impl Feed {
    /// A watch that has not been started.
    pub(super) fn new(watch: Watch, scope: &Filter, rng: Rng) -> Self {
        Self {
            watch,
            source: Source::of(watch, scope),
            stage: Stage::Ended,
            version: None,
            moved: 0,
            lag: None,
            shown_at: Time::ZERO,
            pause: PAUSES.0,
            stills: Vec::new(),
            late: (Time::ZERO, Time::ZERO),
            events: 0,
            hidden: Vec::new(),
            nodes: BTreeSet::new(),
            rng,
        }
    }

    /// Starts it with this scope, or starts it again.
    pub(super) fn begin_anew(&mut self, scope: &Filter, now: Time) {
        self.source = Source::of(self.watch, scope);
        self.version = None;
        self.shown_at = now;
        self.pause = PAUSES.0;
        self.stage = Stage::Pausing(now + self.latency(now));
    }

    /// Ends it with the life of its process.
    pub(super) fn forget(&mut self) {
        self.nodes.clear();
        self.end();
    }

    /// Notes that a consistent read of its resource was answered with this revision, which moves the API server's own view
    /// forward.
    pub(super) fn has_read(&mut self, revision: u64) {
        if self.lag.is_none() {
            self.moved = revision;
        }
    }

    pub(super) fn end(&mut self) {
        self.stage = Stage::Ended;
    }

    pub(super) fn stand_still(&mut self, from: Time, until: Time) {
        self.stills.push((from, until));
    }

    /// When something due at this time happens, given the stalls.
    fn held(&self, at: Time) -> Time {
        let mut at = at;
        while let Some((_, until)) = self
            .stills
            .iter()
            .find(|(from, until)| (*from..*until).contains(&at))
        {
            at = *until;
        }
        at
    }

    /// Delays events by this, until then.
    pub(super) fn be_late(&mut self, until: Time, by: Time) {
        self.late = (until, by);
    }

    /// Stalls the API server's view at this revision until then.
    pub(super) fn lag(&mut self, revision: u64, until: Time) {
        self.lag = Some((revision, until));
    }

    /// Whether the API server's view does not yet include this revision.
    fn is_held(&self, revision: u64, now: Time) -> bool {
        self.lag
            .is_some_and(|(frozen, until)| now < until && frozen < revision)
    }

    pub(super) fn die(&mut self) {
        if let Stage::Watching(stream) = &mut self.stage {
            stream.is_dead = true;
            stream.queue.clear();
        }
    }

    /// Expires it: the API server cannot continue it.
    pub(super) fn expire(&mut self, now: Time) {
        if !matches!(self.stage, Stage::Ended) {
            self.version = None;
            self.fail(now);
        }
    }

    /// When it next has something to show or to do.
    pub(super) fn next(&self) -> Time {
        if matches!(self.stage, Stage::Ended) {
            return Time::MAX;
        }
        let caught_up = self.lag.map(|(_, until)| until);
        caught_up.map_or(self.goes_on(), |at| at.min(self.goes_on()))
    }

    /// When the list or the watch under way continues.
    fn goes_on(&self) -> Time {
        match &self.stage {
            Stage::Ended => Time::MAX,
            Stage::Pausing(at) => *at,
            Stage::Opening { since, until } => self.held(*since).min(*until),
            Stage::Listing { next, .. } => self.held(*next),
            Stage::Hiding { until, .. } => *until,
            Stage::Watching(stream) if stream.is_dead => self.give_up(stream),
            Stage::Watching(stream) => {
                let first = stream.queue.front().map(|(due, _)| *due);
                let next = if stream.has_bookmark {
                    // The end arrives after everything under way.
                    first.unwrap_or(stream.ends)
                } else {
                    let bookmark = stream.ends.saturating_sub(BOOKMARK);
                    first.map_or(bookmark, |first| first.min(bookmark))
                };
                let held = self.held(next);
                if held > next {
                    held.min(self.give_up(stream)).max(next)
                } else {
                    next
                }
            }
        }
    }

    pub(super) fn changed(&mut self, change: &Change) {
        if change.key.kind != self.source.kind {
            return;
        }
        match &self.stage {
            Stage::Hiding { key, .. } if *key == change.key => {
                let pause = self.latency(change.at);
                self.stage = Stage::Pausing(change.at + pause);
            }
            Stage::Watching(stream) if !stream.is_dead && change.at < stream.ends => {
                let Some(event) = self.source.event(change) else {
                    return;
                };
                let due = change.at + self.latency(change.at);
                let is_held = self.is_held(change.revision, change.at);
                if let Stage::Watching(stream) = &mut self.stage {
                    // A process that stands still has not yet taken those that were held before.
                    if is_held || !stream.held.is_empty() {
                        stream.held.push(event);
                    } else {
                        stream.queue.push_back((stream.due(due), event));
                    }
                }
            }
            _ => {}
        }
    }

    /// Shows and does everything that is due.
    pub(super) fn poll(&mut self, cluster: &Cluster, clocks: &Clocks, seen: &mut Vec<Seen>) {
        while self.next() <= cluster.now() {
            self.step(cluster, clocks, seen);
        }
    }

    fn step(&mut self, cluster: &Cluster, clocks: &Clocks, seen: &mut Vec<Seen>) {
        let now = cluster.now();
        let stands_still = self.held(now) > now;
        if self.lag.is_some_and(|(_, until)| until <= now) {
            self.catch_up(now);
            return;
        }
        match &mut self.stage {
            Stage::Ended => {}
            Stage::Pausing(_) if stands_still => {
                let until = now + START_LIMIT;
                self.stage = Stage::Opening { since: now, until };
            }
            Stage::Opening { .. } if stands_still => self.fail(now),
            Stage::Pausing(_) | Stage::Opening { .. } => self.begin(cluster, clocks, seen),
            Stage::Listing { .. } => self.show_page(now, seen),
            Stage::Hiding { .. } => self.stage = Stage::Pausing(now),
            Stage::Watching(stream) if stream.is_dead || stands_still => {
                self.fail(now);
            }
            Stage::Watching(stream) => {
                let is_due = |(due, _): &(Time, Event)| *due <= now;
                if stream.queue.front().is_some_and(is_due) {
                    if let Some((_, event)) = stream.queue.pop_front() {
                        self.show(&event, now, seen);
                    }
                } else if !stream.has_bookmark && now < stream.ends {
                    stream.has_bookmark = true;
                    self.send_bookmark(now);
                } else {
                    // A regular end proves nothing.
                    self.stage = Stage::Pausing(now + self.latency(now));
                }
            }
        }
    }

    /// When a silent watch is given up.
    fn give_up(&self, stream: &Stream) -> Time {
        stream.ends.max(self.shown_at) + GRACE
    }

    /// The API server catches up with its etcd.
    fn catch_up(&mut self, now: Time) {
        self.lag = None;
        let due = now + self.latency(now);
        if let Stage::Watching(stream) = &mut self.stage {
            for event in std::mem::take(&mut stream.held) {
                stream.queue.push_back((stream.due(due), event));
            }
        }
    }

    /// Sends a bookmark if there is news: the revision that the API server's own view has reached, by changes of this kind and
    /// by consistent reads.
    fn send_bookmark(&mut self, now: Time) {
        let due = now + self.latency(now);
        let lags = self.lag.is_some();
        let (shown, moved) = (self.version.unwrap_or_default(), self.moved);
        if let Stage::Watching(stream) = &mut self.stage {
            let last = stream
                .queue
                .back()
                .map(|(_, event)| revision(&event.object));
            let seen = last.unwrap_or_default().max(shown);
            let version = if lags { seen } else { seen.max(moved) };
            if version > shown || lags {
                let event = bookmark(self.source.kind, version);
                stream.queue.push_back((stream.due(due), event));
            }
        }
    }

    fn begin(&mut self, cluster: &Cluster, clocks: &Clocks, seen: &mut Vec<Seen>) {
        let now = cluster.now();
        let takes = self.lag.map_or(Time::ZERO, |_| CATCHING_UP);
        let Some(version) = self.version else {
            seen.push(Seen::Init(self.watch, clocks.now(now).monotonic));
            let source = &self.source;
            let (server, namespace) = (cluster.server(), source.namespace.as_deref());
            let items = server.list(source.kind, namespace, &source.selector);
            let mut pages: VecDeque<_> = items.chunks(PAGE).map(<[_]>::to_vec).collect();
            if pages.is_empty() {
                pages.push_back(Vec::new());
            }
            self.stage = Stage::Listing {
                pages,
                revision: cluster.revision(),
                next: now + takes + self.latency(now),
            };
            return;
        };
        let source = &self.source;
        let events = cluster.server().events(
            source.kind,
            source.namespace.as_deref(),
            &source.selector,
            version,
        );
        let Ok(events) = events else {
            return self.expire(now);
        };
        let begins = bookmark(self.source.kind, version);
        let due = now + self.latency(now);
        let is_held = |event: &Event| self.is_held(revision(&event.object), now);
        let (held, shown): (Vec<_>, Vec<_>) = events.into_iter().partition(is_held);
        self.stage = Stage::Watching(Stream {
            ends: now + WATCH_LENGTH,
            has_bookmark: false,
            is_dead: false,
            queue: std::iter::once(begins)
                .chain(shown)
                .map(|event| (due, event))
                .collect(),
            held,
        });
    }

    fn show_page(&mut self, now: Time, seen: &mut Vec<Seen>) {
        let due = now + self.latency(now);
        let Stage::Listing {
            pages,
            revision,
            next,
        } = &mut self.stage
        else {
            return;
        };
        *next = due;
        let page = pages.pop_front().unwrap_or_default();
        let revision = *revision;
        let is_last = pages.is_empty();
        for object in page {
            self.note_node(&object);
            let object = Object::of(self.watch, &object.to_string());
            seen.push(Seen::Apply(object));
        }
        self.shown_at = now;
        if is_last {
            seen.push(Seen::InitDone(self.watch));
            self.version = Some(revision);
            self.stage = Stage::Pausing(due);
        }
    }

    fn show(&mut self, event: &Event, now: Time, seen: &mut Vec<Seen>) {
        let version = revision(&event.object);
        if event.event_type == EventType::Bookmark {
            seen.push(Seen::Progress(self.watch, version));
            self.saw(version, now);
            return;
        }
        let number = self.events;
        self.events += 1;
        if self.hidden.contains(&number) {
            self.expire(now);
            self.stage = Stage::Hiding {
                key: self.source.key(&event.object),
                until: now + PATIENCE,
            };
            return;
        }
        let object = Object::of(self.watch, &event.object.to_string());
        if event.event_type == EventType::Deleted {
            seen.push(Seen::Delete(object));
        } else {
            self.note_node(&event.object);
            seen.push(Seen::Apply(object));
        }
        self.saw(version, now);
    }

    fn saw(&mut self, version: u64, now: Time) {
        self.shown_at = now;
        self.pause = PAUSES.0;
        self.version = self.version.max(Some(version));
    }

    fn fail(&mut self, now: Time) {
        self.stage = Stage::Pausing(now + self.pause);
        self.pause = (self.pause * 2).min(PAUSES.1);
    }

    fn note_node(&mut self, object: &Value) {
        if self.watch == Watch::Nodes
            && let Some(uid) = object["metadata"]["uid"].as_str()
            && !self.nodes.contains(uid)
        {
            self.nodes.insert(uid.to_owned());
        }
    }

    /// A random delay: usually short, sometimes longer.
    fn latency(&mut self, now: Time) -> Time {
        let usual = match self.rng.below(100) {
            0 => self.rng.between(ms(200), s(1)),
            1..10 => self.rng.between(ms(20), ms(200)),
            _ => self.rng.between(ms(1), ms(20)),
        };
        let (until, by) = self.late;
        if now < until { usual + by } else { usual }
    }
}
