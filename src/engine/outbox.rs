//! The outbox: what the engine wants done and when. It makes each request at most once at a time; the pacer says when. Writes to
//! nodes come first: under overload, Events are dropped and counted rather than kept back.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::count::{Count, RuleCount};
use super::error::RequestError;
use super::io::{Effect, Now, Request, RequestId};
use super::map::Map;
use super::notice::Notice;
use super::pacer::{CLASSES, Class, Pacer};
use super::schedule::Why;
use nodegate_core::condition::Watch;

/// How long a status yields to taint writes: a status that lists nodes costs the API server as much as several of those.
const STATUS_PATIENCE: Duration = Duration::from_secs(3);
/// How long an Event yields to writes to nodes.
const EVENT_PATIENCE: Duration = Duration::from_secs(1);
const MAX_EVENTS: usize = 32_768;
/// So many Events of one reason are posted on an object within this time, each by itself. Further ones are a series: one Event,
/// with their number, whenever this time is over.
const SERIES: (u32, Duration) = (20, Duration::from_secs(60));

/// What a request is for. Its owner keeps the details.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Job {
    /// Write a node's taints and annotations, or read it after a conflict.
    WriteNode(Arc<str>),
    Conditions(Arc<str>),
    Finalizers(Arc<str>),
    /// Write the status of the rule with this UID.
    Status(Arc<str>),
    /// Delete the claim of this name, in one of several steps.
    Claim(Arc<str>),
    /// Read the cluster's version for a watch, asked for at this time.
    Version(Watch, Instant),
    Event,
}

impl Job {
    const fn class(&self) -> Class {
        self.parts().0
    }

    /// Its class, and the name or UID of the one object that is written.
    const fn parts(&self) -> (Class, Option<&Arc<str>>) {
        match self {
            Self::WriteNode(it) => (Class::Node, Some(it)),
            Self::Conditions(it) => (Class::Conditions, Some(it)),
            Self::Finalizers(it) | Self::Status(it) => (Class::Rule, Some(it)),
            Self::Claim(it) => (Class::Claim, Some(it)),
            Self::Version(..) => (Class::Read, None),
            Self::Event => (Class::Event, None),
        }
    }
}

/// An Event's object, by name, and reason.
type Kind = (Arc<str>, &'static str);

/// The engine's outputs, and the jobs that wait for their time.
#[derive(Debug)]
pub struct Outbox {
    pub now: Now,
    pub pacer: Pacer,
    /// The Events to post, oldest first, each with the time at which it was added.
    notices: VecDeque<(Notice, Now)>,
    /// How many Events of each object and reason were posted of late, and the last one of a series.
    recent: Map<Kind, (u32, Option<Notice>)>,
    /// Until when they count, in this order.
    ends: VecDeque<(Instant, Kind)>,
    series: usize,
    /// When the oldest is posted even if nodes are still being written.
    put_off: Option<Instant>,
    wanted: [BTreeSet<(Instant, Job)>; CLASSES],
    due: Map<Job, Instant>,
    /// When the node that is being evaluated is evaluated again if nothing happens, and why.
    pub again: Option<(Instant, Why)>,
    pub effects: Vec<Effect>,
    next: RequestId,
    under_way: Map<RequestId, (Instant, Job)>,
}

impl Outbox {
    pub fn new(pacer: Pacer, now: Now) -> Self {
        Self {
            now,
            pacer,
            notices: VecDeque::new(),
            recent: Map::default(),
            ends: VecDeque::new(),
            series: 0,
            put_off: None,
            wanted: Default::default(),
            due: Map::default(),
            again: None,
            effects: Vec::new(),
            next: 0,
            under_way: Map::default(),
        }
    }

    /// Wants a job done at this time; returns false if it is wanted by then anyway.
    pub fn want(&mut self, job: Job, at: Instant) -> bool {
        if self.due.get(&job).is_some_and(|due| *due <= at) {
            return false;
        }
        self.forget(&job);
        self.due.insert(job.clone(), at);
        self.wanted[job.class() as usize].insert((at, job))
    }

    /// Evaluates the node that is being evaluated again at this time at the latest.
    pub fn evaluate_again(&mut self, at: Instant, why: Why) {
        self.again = self.again.into_iter().chain([(at, why)]).min();
    }

    pub fn forget(&mut self, job: &Job) {
        if let Some((job, at)) = self.due.remove_entry(job) {
            self.wanted[job.class() as usize].remove(&(at, job));
        }
    }

    /// Whether a job is due, and waits for its turn.
    pub fn is_due(&self, job: &Job) -> bool {
        let due = self.due.get(job);
        due.is_some_and(|due| *due <= self.now.monotonic)
    }

    /// Takes this class's next job if due and permitted. While nodes are written, statuses yield, and conditions go one by one.
    pub fn next(&mut self, class: Class, is_busy: bool) -> Option<Job> {
        let now = self.now.monotonic;
        let wanted = &mut self.wanted[class as usize];
        let due = wanted.first()?.0;
        let is_permitted = match class {
            Class::Conditions => self.pacer.may_publish(class, is_busy, now),
            Class::Rule if is_busy && now < due + STATUS_PATIENCE => false,
            _ => self.pacer.may_begin(class, now),
        };
        if now < due || !is_permitted {
            return None;
        }
        let (_, job) = wanted.pop_first()?;
        self.due.remove(&job);
        Some(job)
    }

    /// Makes a request. The caller has checked that the pacer permits it.
    pub fn ask(&mut self, job: Job, request: Request) {
        let id = self.next;
        self.next += 1;
        let now = self.now.monotonic;
        self.pacer.begins(job.class(), request.is_write(), now);
        self.under_way.insert(id, (now, job));
        self.effects.push(Effect::Request(id, request));
    }

    /// Ends the request of this number; returns what it was for.
    pub fn answered(&mut self, id: RequestId, error: Option<&RequestError>) -> Option<Job> {
        let (made, job) = self.under_way.remove(&id)?;
        let (class, object) = job.parts();
        self.pacer.ends(class);
        let now = self.now.monotonic;
        self.pacer.answered(class, object, made, error, now);
        Some(job)
    }

    /// The number of requests under way, but for consistent reads.
    pub fn under_way(&self) -> usize {
        self.under_way.len() - self.pacer.under_way(Class::Read)
    }

    pub fn count(&mut self, count: Count) {
        self.effects.push(Effect::Count(count));
    }

    pub fn count_for(&mut self, rule: impl Into<Arc<str>>, count: RuleCount) {
        self.count(Count::Rule(rule.into(), count));
    }

    /// Queues an Event, behind more urgent requests; or counts it, if it is one of very many.
    pub fn tell(&mut self, notice: Notice) {
        let key = (notice.about.name.clone(), notice.topic.reason);
        let end = (self.now.monotonic + SERIES.1, key.clone());
        let (posted, series) = self.recent.entry(key).or_insert_with(|| {
            self.ends.push_back(end);
            (0, None)
        });
        if *posted < SERIES.0 {
            *posted += 1;
            return self.queue(notice);
        }
        let before = series.as_ref().map_or(0, |it| it.times);
        self.series += usize::from(before == 0);
        let times = before + 1;
        *series = Some(Notice { times, ..notice });
    }

    fn queue(&mut self, notice: Notice) {
        if self.notices.len() < MAX_EVENTS {
            self.notices.push_back((notice, self.now));
        } else {
            self.count(Count::EventDropped);
        }
    }

    /// Posts the Events that are due. They yield to writes to nodes, but only for a limited time.
    pub fn post(&mut self, is_busy: bool) {
        let now = self.now.monotonic;
        self.put_off = None;
        while self.ends.front().is_some_and(|(end, _)| *end <= now)
            && let Some((_, key)) = self.ends.pop_front()
        {
            if let Some((posted, Some(last))) = self.recent.remove(&key) {
                self.series -= 1;
                self.ends.push_back((now + SERIES.1, key.clone()));
                self.recent.insert(key, (posted, None));
                self.queue(last);
            }
        }
        while let Some((_, added)) = self.notices.front() {
            let patient_until = added.monotonic + EVENT_PATIENCE;
            if is_busy && now < patient_until {
                self.put_off = Some(patient_until);
                return;
            }
            if !self.pacer.may_begin(Class::Event, now) {
                return;
            }
            let Some((notice, added)) = self.notices.pop_front() else {
                return;
            };
            let request = Request::PostEvent {
                notice: Box::new(notice),
                at: added.wall,
                number: self.next,
            };
            self.ask(Job::Event, request);
        }
    }

    pub fn is_idle(&self) -> bool {
        self.under_way() == 0 && self.notices.is_empty()
    }

    /// When the engine must run again for what is kept here. A job that is due waits for its turn.
    pub fn next_wake(&self) -> Option<Instant> {
        let now = self.now.monotonic;
        let due = self.wanted.iter().filter_map(|jobs| {
            let mut times = jobs.iter().map(|(due, _)| *due);
            times.find(|due| *due > now)
        });
        let ends = self.ends.iter().take(self.series.min(1));
        let series = ends.map(|(end, _)| *end).next();
        let turns = [self.pacer.next_turn(now), self.put_off, series];
        due.chain(turns.into_iter().flatten()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice::{About, LATE};
    use crate::testing::at;

    fn outbox(now: Instant) -> Outbox {
        let wall = at(0);
        let monotonic = now;
        Outbox::new(Pacer::new(1, None), Now { wall, monotonic })
    }

    fn notice() -> Notice {
        let about = About::node("n", "uid");
        Notice::new(about, &LATE, String::new())
    }

    #[test]
    fn a_job_is_due_once_and_as_early_as_anything_wants() {
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        let mut outbox = outbox(now);
        let job = Job::Status("r".into());
        assert!(outbox.want(job.clone(), after(5)));
        assert!(!outbox.want(job.clone(), after(9)));
        assert!(outbox.want(job.clone(), after(3)));
        for (seconds, is_busy, expected) in [
            (2, false, None),
            (3, true, None),
            (3, false, Some(&job)),
            (10, false, None),
        ] {
            outbox.now.monotonic = after(seconds);
            let next = outbox.next(Class::Rule, is_busy);
            assert_eq!(next.as_ref(), expected, "after {seconds} s");
        }
        outbox.want(job.clone(), after(12));
        assert_eq!(outbox.next_wake(), Some(after(12)));
        outbox.forget(&job);
        assert_eq!(outbox.next_wake(), None);
    }

    #[test]
    fn no_more_events_wait_than_there_is_room_for() {
        let mut outbox = outbox(Instant::now());
        for node in 0..=MAX_EVENTS {
            let about = About::node(&node.to_string(), "uid");
            outbox.tell(Notice::new(about, &LATE, String::new()));
        }
        assert_eq!(outbox.notices.len(), MAX_EVENTS);
        let effects = std::mem::take(&mut outbox.effects);
        assert!(
            matches!(effects[..], [Effect::Count(Count::EventDropped)]),
            "{effects:?}"
        );
        outbox.notices.pop_front();
        outbox.tell(notice());
        assert!(std::mem::take(&mut outbox.effects).is_empty());
    }

    #[test]
    fn very_many_events_of_one_reason_on_one_object_are_a_series() {
        let start = Instant::now();
        let mut outbox = outbox(start);
        let mut posted = Vec::new();
        for second in 0..180 {
            outbox.now.monotonic = start + Duration::from_secs(second);
            for _ in 0..if second < 120 { 38 } else { 0 } {
                outbox.tell(notice());
            }
            let about = About::node("other", "uid");
            if second == 1 {
                outbox.tell(Notice::new(about, &LATE, String::new()));
            }
            outbox.post(false);
            for effect in std::mem::take(&mut outbox.effects) {
                if let Effect::Request(id, Request::PostEvent { notice, .. }) = effect {
                    posted.push((second, notice.times, notice.about.name));
                    outbox.answered(id, None);
                }
            }
        }
        let of_other: Vec<_> = posted.extract_if(.., |it| *it.2 == *"other").collect();
        assert_eq!(of_other.len(), 1);
        let series = posted.iter().filter(|it| it.1 > 1);
        let series: Vec<_> = series.map(|it| (it.0, it.1)).collect();
        assert_eq!(series, [(60, 61 * 38 - 20), (120, 59 * 38)]);
        assert_eq!(posted.len(), 22);
        assert_eq!(outbox.next_wake(), None);
    }

    #[test]
    fn an_event_that_is_put_off_is_posted_after_a_second_or_as_soon_as_nothing_is_written() {
        let start = Instant::now();
        for (is_busy, passed) in [(true, EVENT_PATIENCE), (false, Duration::ZERO)] {
            let mut outbox = outbox(start);
            outbox.tell(notice());
            outbox.post(true);
            assert_eq!(outbox.next_wake(), Some(start + EVENT_PATIENCE));
            assert!(std::mem::take(&mut outbox.effects).is_empty());
            outbox.now.monotonic = start + passed;
            outbox.post(is_busy);
            assert_eq!(std::mem::take(&mut outbox.effects).len(), 1);
            assert_eq!(outbox.put_off, None, "nothing waits any more");
        }
    }
}
