//! What the watches of one process show, and when: as the product's watches do, they list page by page, watch on from there
//! for as long as the product asks for, confirm at a bookmark or at the end of a quiet watch, and are begun anew where they
//! break off.

mod source;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use nodegate::engine::io::Seen;
use nodegate::engine::kind::{Scope, Watch};
use serde_json::Value;

use super::cluster::{Change, Cluster};
use super::rng::Rng;
use super::settings::Settings;
use super::time::{Time, ms, s};
use crate::{Event, EventType, Key};
use source::{Source, revision, wrapped};

/// How long the API server keeps a watch open.
const LENGTH: Time = s(15);
/// The same where a confirmation is wanted soon.
const SHORT_LENGTH: Time = s(3);
/// How long before its end a watch is sent a bookmark.
const BOOKMARK: Time = s(2);
/// How long a watch may go without a sign after it should have ended.
const GRACE: Time = s(5);
/// How long it may take until a watch begins.
const START_LIMIT: Time = s(10);
/// A watch that ends when nothing has come for so long has shown everything.
const QUIET: Time = s(1);
/// The pauses before a watch is tried again.
const PAUSES: (Time, Time) = (ms(50), s(1));
/// How many objects a page of a list has. Fewer than the product asks for: then there are pages.
const PAGE: usize = 20;
/// How long it is waited for the successor of an event that is not to be seen.
const PATIENCE: Time = s(20);

/// One watch of one process.
#[derive(Debug)]
pub struct Feed {
    watch: Watch,
    source: Source,
    stage: Stage,
    /// All up to this revision has been shown; `None` where it has to be listed.
    shown: Option<u64>,
    /// When something was shown last.
    shown_at: Time,
    /// The confirmation that is wanted, the one that the watch under way can give, and the one that has been had.
    wanted: u64,
    asked: u64,
    confirmed: Option<u64>,
    pause: Time,
    /// From when until when it stands still.
    stills: Vec<(Time, Time)>,
    /// Until when everything comes late, and by how much.
    late: (Time, Time),
    /// How many events have been shown or hidden, over all lives of the process.
    events: usize,
    /// Which of them are hidden.
    hidden: Vec<usize>,
    /// The UIDs of the nodes that have been shown in this life.
    nodes: BTreeSet<String>,
    rng: Rng,
}

#[derive(Debug)]
enum Stage {
    /// It is not wanted at the moment.
    Ended,
    /// It is begun then.
    Pausing(Time),
    /// It has been begun, and is given up then, unless it stops standing still before.
    Opening {
        since: Time,
        until: Time,
    },
    /// The rest of a list.
    Listing {
        pages: VecDeque<Vec<Arc<Value>>>,
        is_first: bool,
        revision: u64,
        /// When the next page comes.
        next: Time,
    },
    Watching(Stream),
    /// An event of this object is not to be seen: it is begun anew after the next change of the same object, or then.
    Hiding {
        key: Key,
        until: Time,
    },
}

/// A watch that is open.
#[derive(Debug)]
struct Stream {
    /// When the API server ends it.
    ends: Time,
    has_bookmark: bool,
    /// Nothing comes any more, not even an end.
    is_dead: bool,
    /// What is under way, each with when it comes.
    queue: VecDeque<(Time, Event)>,
}

impl Stream {
    /// When something comes that is underway since now.
    fn due(&self, at: Time) -> Time {
        self.queue.back().map_or(at, |(last, _)| at.max(*last))
    }
}

impl Feed {
    /// All watches of a process with these settings.
    pub fn all(settings: &Settings, rng: &mut Rng) -> Vec<Self> {
        let feed = |(watch, source)| Self::of(watch, source, rng.fork());
        Source::all(settings).into_iter().map(feed).collect()
    }

    /// A watch that is begun while the process runs.
    pub fn new(watch: Watch, scope: &Scope, rng: Rng) -> Self {
        Self {
            stage: Stage::Ended,
            ..Self::of(watch, Source::of(scope), rng)
        }
    }

    fn of(watch: Watch, source: Source, rng: Rng) -> Self {
        Self {
            watch,
            source,
            stage: Stage::Pausing(Time::ZERO),
            shown: None,
            shown_at: Time::ZERO,
            wanted: 0,
            asked: 0,
            confirmed: None,
            pause: PAUSES.0,
            stills: Vec::new(),
            late: (Time::ZERO, Time::ZERO),
            events: 0,
            hidden: Vec::new(),
            nodes: BTreeSet::new(),
            rng,
        }
    }

    /// It is wanted from now on, of this; and this confirmation of it.
    pub fn want(&mut self, scope: &Scope, wanted: u64, now: Time) {
        self.source = Source::of(scope);
        self.restart(now);
        self.wanted = wanted;
    }

    /// It is not wanted any more.
    pub fn end(&mut self) {
        self.stage = Stage::Ended;
    }

    /// What is watched.
    #[must_use]
    pub fn watch(&self) -> Watch {
        self.watch
    }

    /// How many events have been shown or hidden.
    #[must_use]
    pub fn events(&self) -> usize {
        self.events
    }

    /// The UIDs of the nodes that have been shown in this life.
    #[must_use]
    pub fn nodes(&self) -> &BTreeSet<String> {
        &self.nodes
    }

    /// When something was shown last.
    #[must_use]
    pub fn shown_at(&self) -> Time {
        self.shown_at
    }

    /// Begins from nothing: the process has been started.
    pub fn restart(&mut self, now: Time) {
        self.shown = None;
        self.shown_at = now;
        (self.wanted, self.asked, self.confirmed) = (0, 0, None);
        self.pause = PAUSES.0;
        self.nodes.clear();
        self.stage = Stage::Pausing(now + self.latency(now));
    }

    /// Has this event never be seen, nor its successor.
    pub fn hide(&mut self, event: usize) {
        self.hidden.push(event);
    }

    /// Stands still from then until then.
    pub fn stand_still(&mut self, from: Time, until: Time) {
        self.stills.push((from, until));
    }

    /// When something happens that would be at this time if it never stood still.
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

    /// Shows everything later by this, until then.
    pub fn be_late(&mut self, until: Time, by: Time) {
        self.late = (until, by);
    }

    /// The connection dies without a word.
    pub fn die(&mut self) {
        if let Stage::Watching(stream) = &mut self.stage {
            stream.is_dead = true;
            stream.queue.clear();
        }
    }

    /// The API server cannot go on with it.
    pub fn expire(&mut self, now: Time, seen: &mut Vec<Seen>) {
        if matches!(self.stage, Stage::Ended) {
            return;
        }
        self.shown = None;
        self.fail(now, seen);
    }

    /// Has it find out whether it has shown all there is, and tell by this number.
    pub fn confirm(&mut self, number: u64, now: Time) {
        self.wanted = self.wanted.max(number);
        if matches!(self.stage, Stage::Watching(_)) {
            self.stage = Stage::Pausing(now + self.latency(now));
        }
    }

    /// When it has something to show or to do.
    #[must_use]
    pub fn next(&self) -> Time {
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
                    // The end comes after what is still under way.
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

    /// Takes note of a change of any object.
    pub fn changed(&mut self, change: &Change) {
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
                if let Stage::Watching(stream) = &mut self.stage {
                    stream.queue.push_back((stream.due(due), event));
                }
            }
            _ => {}
        }
    }

    /// Shows and does everything that is due.
    pub fn poll(&mut self, cluster: &Cluster, seen: &mut Vec<Seen>) {
        while self.next() <= cluster.now() {
            self.step(cluster, seen);
        }
    }

    fn step(&mut self, cluster: &Cluster, seen: &mut Vec<Seen>) {
        let now = cluster.now();
        let stands_still = self.held(now) > now;
        match &mut self.stage {
            Stage::Ended => {}
            Stage::Pausing(_) if stands_still => {
                let until = now + START_LIMIT;
                self.stage = Stage::Opening { since: now, until };
            }
            Stage::Opening { .. } if stands_still => self.fail(now, seen),
            Stage::Pausing(_) | Stage::Opening { .. } => self.begin(cluster, seen),
            Stage::Listing { .. } => self.show_page(now, seen),
            Stage::Hiding { .. } => self.stage = Stage::Pausing(now),
            Stage::Watching(stream) if stream.is_dead || stands_still => self.fail(now, seen),
            Stage::Watching(stream) => {
                let is_due = |(due, _): &(Time, Event)| *due <= now;
                if stream.queue.front().is_some_and(is_due) {
                    if let Some((_, event)) = stream.queue.pop_front() {
                        self.show(&event, now, seen);
                    }
                } else if !stream.has_bookmark && now < stream.ends {
                    stream.has_bookmark = true;
                    let bookmark = cluster.server().bookmark(self.source.kind);
                    let due = now + self.latency(now);
                    if let Stage::Watching(stream) = &mut self.stage {
                        stream.queue.push_back((stream.due(due), bookmark));
                    }
                } else {
                    // It has ended in good order.
                    if now.saturating_sub(self.shown_at) >= QUIET {
                        self.confirmed(seen);
                    }
                    self.stage = Stage::Pausing(now + self.latency(now));
                }
            }
        }
    }

    /// When a watch is given up that shows nothing.
    fn give_up(&self, stream: &Stream) -> Time {
        stream.ends.max(self.shown_at) + GRACE
    }

    fn begin(&mut self, cluster: &Cluster, seen: &mut Vec<Seen>) {
        let now = cluster.now();
        self.asked = self.wanted;
        let Some(shown) = self.shown else {
            let source = &self.source;
            let items: Vec<_> = cluster
                .objects(source.kind)
                .filter(|(key, object)| source.covers(key) && source.selector.matches(key, object))
                .map(|(_, object)| object.clone())
                .collect();
            let mut pages: VecDeque<_> = items.chunks(PAGE).map(<[_]>::to_vec).collect();
            if pages.is_empty() {
                pages.push_back(Vec::new());
            }
            self.stage = Stage::Listing {
                pages,
                is_first: true,
                revision: cluster.revision(),
                next: now + self.latency(now),
            };
            return;
        };
        let source = &self.source;
        let events = cluster.server().events(
            source.kind,
            source.namespace.as_deref(),
            &source.selector,
            shown,
        );
        let Ok(events) = events else {
            return self.expire(now, seen);
        };
        let length = if self.confirmed == Some(self.wanted) {
            LENGTH
        } else {
            SHORT_LENGTH
        };
        let due = now + self.latency(now);
        self.stage = Stage::Watching(Stream {
            ends: now + length,
            has_bookmark: false,
            is_dead: false,
            queue: events.into_iter().map(|event| (due, event)).collect(),
        });
    }

    fn show_page(&mut self, now: Time, seen: &mut Vec<Seen>) {
        let due = now + self.latency(now);
        let Stage::Listing {
            pages,
            is_first,
            revision,
            next,
        } = &mut self.stage
        else {
            return;
        };
        if std::mem::take(is_first) {
            seen.push(Seen::Listing(self.watch));
        }
        *next = due;
        let page = pages.pop_front().unwrap_or_default();
        let revision = pages.is_empty().then_some(*revision);
        for object in page {
            self.note_node(&object);
            seen.extend(wrapped(self.watch, &object).map(Seen::Put));
        }
        self.shown_at = now;
        if let Some(revision) = revision {
            self.shown = Some(revision);
            seen.push(Seen::Synced(self.watch));
            self.confirmed(seen);
            self.stage = Stage::Pausing(due);
        }
    }

    fn show(&mut self, event: &Event, now: Time, seen: &mut Vec<Seen>) {
        let revision = revision(&event.object);
        if event.event_type == EventType::Bookmark {
            self.shown = Some(revision);
            self.shown_at = now;
            self.confirmed(seen);
            return;
        }
        let number = self.events;
        self.events += 1;
        if self.hidden.contains(&number) {
            self.fail(now, seen);
            self.shown = None;
            self.stage = Stage::Hiding {
                key: self.source.key(&event.object),
                until: now + PATIENCE,
            };
            return;
        }
        self.shown = Some(revision);
        self.shown_at = now;
        let Some(object) = wrapped(self.watch, &event.object) else {
            return;
        };
        if event.event_type == EventType::Deleted {
            seen.push(Seen::Gone(object));
        } else {
            self.note_node(&event.object);
            seen.push(Seen::Put(object));
        }
    }

    fn confirmed(&mut self, seen: &mut Vec<Seen>) {
        self.confirmed = Some(self.asked);
        self.pause = PAUSES.0;
        seen.push(Seen::Confirmed(self.watch, self.asked));
    }

    fn fail(&mut self, now: Time, seen: &mut Vec<Seen>) {
        self.confirmed = None;
        seen.push(Seen::Interrupted(self.watch));
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

    /// How long something is under way: mostly a moment, sometimes longer.
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
