//! As of when each watch is known to be current: when its list was asked for, or when the latest consistent read was asked for
//! whose version it has since shown (KEP-2340; versions compare as numbers, KEP-5504).
//!
//! Neither a bookmark nor a regular end of a watch proves that by itself: an API server that lags behind its etcd sends bookmarks
//! at its old version. While a watch is not current, nothing harmful is done for what depends on it. A watch that falls behind
//! is started again, which lists: a list is a consistent read.
//!
//! | state | step | then | effect |
//! |---|---|---|---|
//! | any | `List` | `Listing` | |
//! | any | `Listed` | `Watching`: `Idle`, no read ahead | current as of when the list was asked for |
//! | any | `Restart`, or `Require` after a list of at most a page | `Restarted`; `Listing` stays until the new list | it is started again |
//! | `Watching` | `Require` after a longer list | `Due` now, no read ahead | |
//! | `Watching` | `Bookmark` | `Due` in 10 s, or now if it is stale or the last read was long ago; after the answer if `Asked` | |
//! | `Watching` | `Read` | `Asked` | a consistent read |
//! | `Asked` | `Answer`: a version below what was shown before | | all are started again: the cluster was restored |
//! | `Asked` | `Answer`: any other version | `Idle`, this read ahead | |
//! | `Asked` | `Answer`: no such resource | `Idle` | |
//! | `Asked` | `Answer`: an error | `Due` in 2 s | |
//! | `Watching` | `Shown` or `Answer`, and the read ahead is reached | no read ahead | current as of when that read was asked for |

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use super::error::RequestError;
use super::io::Effect;
use super::map::Set;
use nodegate_core::backoff::{Backoff, Pauses};
use nodegate_core::condition::{ComponentGroup, Watch};
use nodegate_core::object::{ObjectKey, Version};
use nodegate_core::selector::Filter;

/// The highest age of evidence for which a taint may be added or removed. A working watch is at most about 17 seconds old.
pub const MAX_AGE: Duration = Duration::from_secs(20);
/// The most objects of a page of a list: the default of `kube::runtime::watcher`.
const PAGE: usize = 500;
/// How long after its start a watch makes its read: 2 s before the bookmark to confirm it. It makes a healthy cache catch up, too.
const READ_AFTER: Duration = Duration::from_secs(10);
const READ_AGAIN: Duration = Duration::from_secs(2);
/// How long a watch may take to become current as of a time at which that became necessary, before it is started again.
const PATIENCE: Duration = Duration::from_secs(3);
/// The pauses between two starts of a watch that remains behind: a list is expensive in a large cluster.
const RESTARTS: Pauses = Pauses::between(Duration::from_secs(20), Duration::from_secs(120));

/// How far each watch has come.
#[derive(Debug, Default)]
pub(crate) struct WatchStates {
    all: BTreeMap<Watch, View>,
    /// The time as of which all of them must be current at least.
    required: Option<Instant>,
    orders: Vec<Effect>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Unlisted,
    /// The cluster has no such resource.
    Absent,
    Listed,
}

#[derive(Debug)]
pub(crate) enum WatchStep {
    Restart,
    /// It must be current as of now.
    Require,
    /// A list begins, in place of any in progress. It was asked for at this time.
    List(Instant),
    /// The list is complete, with so many objects; `None` if the cluster has no such resource.
    Listed(Option<usize>),
    /// It has shown everything up to this version.
    Shown(Version),
    /// It has begun, or shows a bookmark: the next read is to be in time for the next bookmark.
    Bookmark,
    Read,
    /// What the consistent read returned that was asked for at this time.
    Answer(Instant, Result<Version, RequestError>),
}

#[derive(Debug, Default)]
enum WatchState {
    #[default]
    Begun,
    /// It was started again at this time. What it showed before may still come, then a list.
    Restarted(Instant),
    /// When the list was asked for, and what it has shown.
    Listing(Instant, Set<ObjectKey>),
    Watching(Proof),
}

/// How a watch that shows what changes proves to be current.
#[derive(Debug)]
struct Proof {
    /// When the list was complete.
    since: Instant,
    /// Everything up to this version has been shown.
    shown: Version,
    /// When the list, or the last consistent read, was asked for.
    asked: Instant,
    read: Read,
    /// The consistent read that the watch has not reached yet: when it was asked for, and its version.
    ahead: Option<(Instant, Version)>,
}

#[derive(Debug, Clone, Copy)]
enum Read {
    /// It waits for a bookmark.
    Idle,
    Due(Instant),
    /// It is under way: what had been shown when it was asked for, and when the one after it is due.
    Asked(Version, Option<Instant>),
}

#[derive(Debug, Default)]
struct View {
    scope: Filter,
    /// Everything has been shown that had happened by this time; `None` until the first list is complete.
    as_of: Option<Instant>,
    /// When the last event came while the view was current; `None` for what a rule names, before its first list.
    seen: Option<Instant>,
    /// How many objects the last list had; `None` if the cluster had no such resource.
    size: Option<usize>,
    restarts: Backoff,
    state: WatchState,
}

impl View {
    fn is_stale(&self, required: Option<Instant>, now: Instant) -> bool {
        self.as_of.is_none_or(|as_of| {
            now.saturating_duration_since(as_of) > MAX_AGE
                || required.is_some_and(|required| as_of < required)
        })
    }

    fn read_at(&self) -> Option<Instant> {
        use Read::Due;
        match self.state {
            WatchState::Watching(Proof { read: Due(at), .. }) => Some(at),
            _ => None,
        }
    }

    /// When the watch is to be started again unless it becomes current before. A list in progress is retried by the watch itself.
    fn restart_at(&self, required: Option<Instant>) -> Option<Instant> {
        let as_of = self.as_of?;
        let since = match &self.state {
            WatchState::Begun | WatchState::Listing(..) => return None,
            WatchState::Restarted(since) => *since,
            WatchState::Watching(proof) => proof.since,
        };
        let due = match required {
            Some(required) if as_of < required => required.max(since) + PATIENCE,
            _ => as_of.max(since) + MAX_AGE,
        };
        Some(self.restarts.due().map_or(due, |at| at.max(due)))
    }
}

impl WatchStates {
    /// Has a watch started that has shown nothing yet; `since` is from when on that matters.
    pub(crate) fn begin(&mut self, watch: Watch, scope: Filter, since: Option<Instant>) {
        self.orders.push(Effect::Watch(watch, scope.clone()));
        let view = View {
            scope,
            seen: since,
            ..View::default()
        };
        self.all.insert(watch, view);
    }

    pub(crate) fn end(&mut self, watch: Watch) {
        self.all.remove(&watch);
        self.orders.push(Effect::Unwatch(watch));
    }

    /// Takes the watches to start and stop.
    pub(crate) fn take_orders(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.orders)
    }

    pub(crate) fn of_kind(&self, kind: Watch) -> impl Iterator<Item = Watch> {
        let all = self.all.keys().copied();
        all.filter(move |watch| watch.kind() == kind.kind())
    }

    /// What is known of the objects of this watch; `None` if it was not begun.
    pub(crate) fn phase(&self, watch: Watch) -> Option<Phase> {
        let view = self.all.get(&watch)?;
        let listed = view.size.map_or(Phase::Absent, |_| Phase::Listed);
        Some(view.as_of.map_or(Phase::Unlisted, |_| listed))
    }

    pub(crate) fn scope(&self, watch: Watch) -> Option<&Filter> {
        self.all.get(&watch).map(|view| &view.scope)
    }

    /// The watches of component groups that this holds for.
    pub(crate) fn of_groups(
        &self,
        is_meant: impl Fn(ComponentGroup) -> bool,
    ) -> impl Iterator<Item = (Watch, &Filter)> {
        let all = self.all.iter().map(|(watch, view)| (*watch, &view.scope));
        all.filter(move |(watch, _)| watch.group().is_some_and(&is_meant))
    }

    /// Whether every watch that decisions cannot do without has listed. Nothing may be decided before.
    pub(crate) fn have_synced(&self) -> bool {
        let mut all = self.all.iter();
        all.all(|(watch, view)| view.as_of.is_some() || view.seen.is_none() || watch.is_optional())
    }

    /// Notes an event. It does not prove that none was missed before it.
    pub(crate) fn saw(&mut self, watch: Watch, now: Instant) {
        if let Some(view) = self.all.get_mut(&watch)
            && !view.is_stale(self.required, now)
        {
            view.seen = Some(now);
        }
    }

    /// Takes a step of the table above; any other changes nothing. If that proves the watch current, returns for how long it was not:
    /// zero if it was. A watch of what a rule names hides nothing before it has listed for the first time.
    pub(crate) fn step(&mut self, watch: Watch, step: WatchStep, now: Instant) -> Option<Duration> {
        use WatchState::{Listing, Restarted, Watching};
        let view = self.all.get_mut(&watch)?;
        let was_stale = view.is_stale(self.required, now);
        let is_one_page = view.as_of.is_some() && view.size <= Some(PAGE);
        let mut as_of = None;
        match (&mut view.state, step) {
            (state, WatchStep::List(asked)) => *state = Listing(asked, Set::default()),
            (state, WatchStep::Listed(size)) => {
                let asked = match state {
                    Listing(asked, _) => *asked,
                    _ => now,
                };
                (as_of, view.size) = (Some(asked), size);
                *state = Watching(Proof {
                    since: now,
                    // It may be lower than before: the cluster may have been restored from a backup.
                    shown: 0,
                    asked,
                    read: Read::Idle,
                    ahead: None,
                });
            }
            // What was asked for before proves nothing.
            (Watching(proof), WatchStep::Require) if !is_one_page => {
                (proof.read, proof.ahead) = (Read::Due(now), None);
            }
            (_, WatchStep::Require) if !is_one_page => {}
            (state, WatchStep::Restart | WatchStep::Require) => {
                if !matches!(state, Listing(..)) {
                    *state = Restarted(now);
                }
                self.orders.push(Effect::Watch(watch, view.scope.clone()));
            }
            (Watching(proof), WatchStep::Shown(version)) => proof.shown = version.max(proof.shown),
            (Watching(proof), WatchStep::Bookmark) => {
                let is_recent = now.saturating_duration_since(proof.asked) < READ_AFTER;
                let waits = is_recent && !was_stale;
                let due = if waits { now + READ_AFTER } else { now };
                proof.read = match proof.read {
                    Read::Asked(shown, _) => Read::Asked(shown, Some(due)),
                    Read::Idle | Read::Due(_) => Read::Due(due),
                };
            }
            (Watching(proof), WatchStep::Read) => {
                (proof.asked, proof.read) = (now, Read::Asked(proof.shown, None));
            }
            (Watching(proof), WatchStep::Answer(asked, answer)) if proof.asked == asked => {
                let Read::Asked(shown, next) = proof.read else {
                    return None;
                };
                proof.read = next.map_or(Read::Idle, Read::Due);
                match answer {
                    Ok(version) if version < shown => {
                        self.restored(now);
                        return None;
                    }
                    Ok(version) => proof.ahead = Some((asked, version)),
                    // The watch finds out when the resource is there.
                    Err(RequestError::Gone) => {}
                    Err(_) => proof.read = Read::Due(now + READ_AGAIN),
                }
            }
            _ => {}
        }
        if let Watching(Proof { shown, ahead, .. }) = &mut view.state
            && let Some((asked, _)) = ahead.take_if(|(_, version)| *version <= *shown)
        {
            view.restarts = Backoff::default();
            as_of = Some(asked);
        }
        view.as_of = view.as_of.max(Some(as_of?));
        if view.is_stale(self.required, now) {
            return None;
        }
        let seen = view.seen.replace(now).filter(|_| was_stale);
        Some(seen.map_or(Duration::ZERO, |seen| now.saturating_duration_since(seen)))
    }

    /// The objects that the list in progress has shown.
    pub(crate) fn list(&mut self, watch: Watch) -> Option<&mut Set<ObjectKey>> {
        match &mut self.all.get_mut(&watch)?.state {
            WatchState::Listing(_, shown) => Some(shown),
            _ => None,
        }
    }

    pub(crate) fn next_read(&mut self, now: Instant) -> Option<(Watch, Filter)> {
        let is_due = |view: &View| view.read_at().is_some_and(|at| at <= now);
        let (watch, view) = self.all.iter().find(|(_, view)| is_due(view))?;
        let (watch, scope) = (*watch, view.scope.clone());
        self.step(watch, WatchStep::Read, now);
        Some((watch, scope))
    }

    /// Requires all watches to be current as of this time: the process stood still, or starts to act on what it has seen. What is
    /// one page is listed at once: a quiet watch shows how far it is only near its end.
    pub(crate) fn require(&mut self, now: Instant) {
        self.each(|| WatchStep::Require, now);
    }

    /// Starts all watches again, and requires them to be current, because the cluster was restored from a backup.
    pub(crate) fn restored(&mut self, now: Instant) {
        warn!(
            "versions go backwards: the cluster was restored from a backup; everything is listed again"
        );
        self.each(|| WatchStep::Restart, now);
    }

    fn each(&mut self, step: fn() -> WatchStep, required: Instant) {
        self.required = Some(required);
        for watch in self.all.keys().copied().collect::<Vec<_>>() {
            self.step(watch, step(), required);
        }
    }

    /// Starts the watches again that have fallen behind. Once may be chance, as under load.
    pub(crate) fn restart_stale(&mut self, now: Instant) {
        let required = self.required;
        let is_due = |view: &View| view.restart_at(required).is_some_and(|at| at <= now);
        while let Some((watch, view)) = self.all.iter_mut().find(|(_, view)| is_due(view)) {
            let (watch, name) = (*watch, watch.name());
            if view.restarts.due().is_none() {
                info!(watch = %name, "no proof has come in time that this watch is current, as may happen under load: it lists again");
            } else {
                warn!(watch = %name, "this watch stays behind: it lists again, and what could do harm waits meanwhile");
            }
            view.restarts.failed(RESTARTS, now);
            self.step(watch, WatchStep::Restart, now);
        }
    }

    pub(crate) fn next_due(&self, now: Instant) -> Option<Instant> {
        let due = |view: &View| [view.read_at(), view.restart_at(self.required)];
        let due = self.all.values().flat_map(due).flatten();
        let is_now = (!self.orders.is_empty()).then_some(now);
        is_now.or(due.filter(|at| now < *at).min())
    }

    /// The watches whose view is stale, but for what a rule names and has not listed yet: that rule does nothing until then.
    pub(crate) fn stale(&self, now: Instant) -> impl Iterator<Item = Watch> {
        let all = self.all.iter();
        let stale = all.filter(move |(_, view)| {
            view.is_stale(self.required, now) && (view.as_of.is_some() || view.seen.is_some())
        });
        stale.map(|(watch, _)| *watch)
    }

    /// As of when a watch is current; `None` while it is stale.
    pub(crate) fn as_of(&self, watch: Watch, now: Instant) -> Option<Instant> {
        let view = self.all.get(&watch)?;
        view.as_of.filter(|_| !view.is_stale(self.required, now))
    }

    /// How long ago the last event of this watch came while its view was current; zero while it is.
    pub(crate) fn age(&self, watch: Watch, now: Instant) -> Duration {
        let view = self.all.get(&watch);
        let stale = view.filter(|view| view.is_stale(self.required, now));
        let seen = stale.and_then(|view| view.seen);
        seen.map_or(Duration::ZERO, |seen| now.saturating_duration_since(seen))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    const NODES: Watch = Watch::Nodes;

    fn seconds(start: Instant) -> impl Fn(u64) -> Instant {
        move |seconds| start + Duration::from_secs(seconds)
    }

    /// The nodes, listed up to version 5, and watched from there.
    fn listed(at: Instant) -> WatchStates {
        let mut views = WatchStates::default();
        views.begin(NODES, Filter::default(), Some(at));
        views.take_orders();
        assert_eq!(views.phase(NODES), Some(Phase::Unlisted));
        lists(&mut views, 1, at, at);
        progress(&mut views, 5, at);
        views
    }

    /// A list of so many nodes, asked for at this time, is complete now.
    fn lists(views: &mut WatchStates, size: usize, asked: Instant, now: Instant) {
        views.step(NODES, WatchStep::List(asked), asked);
        views.step(NODES, WatchStep::Listed(Some(size)), now);
    }

    /// The same, with more nodes than a page has.
    fn listed_in_pages(at: Instant) -> WatchStates {
        let mut views = listed(at);
        lists(&mut views, PAGE + 1, at, at);
        progress(&mut views, 5, at);
        views
    }

    /// What is logged meanwhile.
    fn logged(act: impl FnOnce()) -> String {
        #[derive(Clone, Default)]
        struct Log(Arc<Mutex<Vec<u8>>>);
        impl std::io::Write for Log {
            fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
                self.0.lock().unwrap().write(text)
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let log = Log::default();
        let writer = log.clone();
        let logger = tracing_subscriber::fmt().with_writer(move || writer.clone());
        tracing::subscriber::with_default(logger.finish(), act);
        String::from_utf8(log.0.lock().unwrap().clone()).unwrap()
    }

    fn progress(views: &mut WatchStates, version: Version, now: Instant) {
        views.step(NODES, WatchStep::Shown(version), now);
        views.step(NODES, WatchStep::Bookmark, now);
    }

    /// How many watches are started again.
    fn restarts(views: &mut WatchStates, now: Instant) -> usize {
        views.restart_stale(now);
        views.take_orders().len()
    }

    /// A consistent read is made and answered with this version.
    fn reads(views: &mut WatchStates, version: Version, now: Instant) {
        let due = views.next_read(now).map(|(watch, _)| watch);
        assert_eq!(due, Some(NODES));
        assert!(views.next_read(now).is_none(), "one at a time");
        views.step(NODES, WatchStep::Answer(now, Ok(version)), now);
    }

    #[test]
    fn a_first_list_whose_answer_came_late_is_stale() {
        let at = seconds(Instant::now());
        let mut views = WatchStates::default();
        // As for what a rule names.
        views.begin(NODES, Filter::default(), None);
        views.step(NODES, WatchStep::List(at(0)), at(0));
        assert_eq!(views.stale(at(40)).count(), 0, "it is to be seen");
        views.step(NODES, WatchStep::Listed(Some(1)), at(40));
        assert_eq!(views.stale(at(40)).collect::<Vec<_>>(), [NODES]);
    }

    #[test]
    fn a_watch_is_current_as_of_a_consistent_read_once_it_has_shown_as_much() {
        let at = seconds(Instant::now());
        for (name, shown, read, then, as_of) in [
            ("shown before the answer", 9, 9, 0, 10),
            ("a bookmark of that version", 5, 9, 9, 10),
            ("a later one", 5, 9, 11, 10),
            ("a bookmark of an old version", 5, 9, 8, 0),
            ("nothing", 5, 9, 0, 0),
        ] {
            let mut views = listed(at(0));
            assert!(views.next_read(at(9)).is_none(), "not yet");
            views.step(NODES, WatchStep::Shown(shown), at(9));
            reads(&mut views, read, at(10));
            if then > 0 {
                progress(&mut views, then, at(12));
            }
            assert_eq!(views.as_of(NODES, at(12)), Some(at(as_of)), "{name}");
            assert!(views.as_of(NODES, at(as_of + 20)).is_some(), "{name}");
            assert!(views.as_of(NODES, at(as_of + 21)).is_none(), "{name}");
        }
    }

    #[test]
    fn what_was_asked_for_before_a_list_proves_nothing() {
        let at = seconds(Instant::now());
        for step in [WatchStep::Restart, WatchStep::List(at(11))] {
            let mut views = listed(at(0));
            assert!(views.next_read(at(10)).is_some());
            views.step(NODES, step, at(11));
            // The rest of what the watch before has shown.
            progress(&mut views, 9, at(11));
            for version in [3, 9] {
                let answer = WatchStep::Answer(at(10), Ok(version));
                assert_eq!(views.step(NODES, answer, at(12)), None);
            }
            assert_eq!(views.as_of(NODES, at(12)), Some(at(0)));
            assert!(views.next_read(at(12)).is_none(), "a list tells as much");
        }
    }

    #[test]
    fn a_read_that_fails_is_made_again_after_a_pause() {
        let at = seconds(Instant::now());
        let mut views = listed(at(0));
        assert!(views.next_read(at(10)).is_some());
        let failed = Err(RequestError::Failed("no".into()));
        let failed = WatchStep::Answer(at(10), failed);
        assert_eq!(views.step(NODES, failed, at(10)), None);
        assert!(views.next_read(at(11)).is_none());
        reads(&mut views, 5, at(12));
        assert_eq!(views.as_of(NODES, at(12)), Some(at(12)));
    }

    #[test]
    fn only_a_watch_that_stays_behind_is_worth_a_warning() {
        let at = seconds(Instant::now());
        let mut views = listed(at(0));
        let lists_again = |views: &mut WatchStates, second| {
            let log = logged(|| assert_eq!(restarts(views, at(second)), 1));
            lists(views, 1, at(second), at(second));
            log
        };
        let log = lists_again(&mut views, 20);
        assert!(log.contains("INFO") && log.contains("under load"), "{log}");
        let log = lists_again(&mut views, 80);
        assert!(
            log.contains("WARN") && log.contains("stays behind"),
            "{log}"
        );
        progress(&mut views, 9, at(81));
        reads(&mut views, 9, at(91));
        let log = lists_again(&mut views, 120);
        assert!(log.contains("INFO"), "it had caught up: {log}");
    }

    #[test]
    fn a_watch_that_must_be_current_now_is_given_some_seconds_and_a_list_as_long_as_it_takes() {
        let at = seconds(Instant::now());
        let mut views = listed_in_pages(at(0));
        views.require(at(5));
        assert_eq!(restarts(&mut views, at(7)), 0);
        assert_eq!(restarts(&mut views, at(8)), 1);
        views.step(NODES, WatchStep::List(at(8)), at(8));
        assert_eq!(restarts(&mut views, at(60)), 0);
    }

    #[test]
    fn a_version_that_goes_backwards_is_a_cluster_that_was_restored() {
        let at = seconds(Instant::now());
        let mut views = listed(at(0));
        views.step(NODES, WatchStep::Shown(9), at(9));
        reads(&mut views, 8, at(10));
        assert!(matches!(views.take_orders()[..], [Effect::Watch(NODES, _)]));
        assert!(views.as_of(NODES, at(10)).is_none());
        assert!(views.next_read(at(10)).is_none(), "a list tells as much");
        lists(&mut views, 1, at(11), at(11));
        progress(&mut views, 4, at(11));
        assert!(views.as_of(NODES, at(11)).is_some());
        reads(&mut views, 6, at(22));
    }
}
