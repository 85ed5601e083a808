//! As of when each watch is known to be current: when its list was asked for, or when the latest consistent read was asked for
//! whose version it has since shown (KEP-2340; versions compare as numbers, KEP-5504).
//!
//! Neither a bookmark nor a regular end of a watch proves that by itself: an API server that lags behind its etcd sends bookmarks
//! at its old version. While a watch is not current, nothing harmful is done for what depends on it. A watch that falls behind
//! is started again, which lists: a list is a consistent read.

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
/// A consistent read is made this long after the start of a watch: two seconds before the bookmark that is to confirm it. It also
/// makes a healthy API server's cache of that resource catch up.
const READ_AFTER: Duration = Duration::from_secs(10);
/// The pause before a consistent read that failed is made again.
const READ_AGAIN: Duration = Duration::from_secs(2);
/// How long a watch may take to become current as of a time at which that became necessary, before it is started again.
const PATIENCE: Duration = Duration::from_secs(3);
/// The pauses between two starts of a watch that remains behind: a list is expensive in a large cluster.
const RESTARTS: Pauses = Pauses::between(Duration::from_secs(20), Duration::from_secs(120));

/// How far each watch has come.
#[derive(Debug, Default)]
pub(crate) struct WatchStates {
    all: BTreeMap<Watch, WatchState>,
    /// The time as of which all of them must be current at least.
    required: Option<Instant>,
    orders: Vec<Effect>,
}

/// What is known of the objects of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not all of them yet.
    Unlisted,
    /// The cluster has no such resource.
    Absent,
    /// All of them.
    Listed,
}

#[derive(Debug, Default)]
struct WatchState {
    scope: Filter,
    /// Whether the cluster has no such resource, as far as is known.
    is_absent: bool,
    /// Everything has been shown that had happened by this time; `None` until the first list is complete.
    as_of: Option<Instant>,
    /// When the last event came while the view was current; `None` for what a rule names, before its first list.
    seen: Option<Instant>,
    /// Everything up to this version has been shown.
    shown: Version,
    /// The list in progress: when it was asked for, and what it has shown.
    list: Option<(Instant, Set<ObjectKey>)>,
    /// When the last list was complete.
    listed: Option<Instant>,
    /// How many objects it had.
    size: usize,
    /// When a consistent read, or a list, was asked for last.
    asked: Option<Instant>,
    /// When a consistent read is due.
    read_at: Option<Instant>,
    /// The consistent read that is under way: when it was asked for, and what had been shown by then.
    reading: Option<(Instant, Version)>,
    /// The consistent read that the watch has not reached yet: when it was asked for, and its version.
    ahead: Option<(Instant, Version)>,
    restarts: Backoff,
}

impl WatchState {
    fn is_stale(&self, required: Option<Instant>, now: Instant) -> bool {
        self.as_of.is_none_or(|as_of| {
            now.saturating_duration_since(as_of) > MAX_AGE
                || required.is_some_and(|required| as_of < required)
        })
    }

    /// When the watch is to be started again unless it becomes current before. A list in progress is retried by the watch itself.
    fn restart_at(&self, required: Option<Instant>) -> Option<Instant> {
        let as_of = self.as_of.filter(|_| self.list.is_none())?;
        let due = match required {
            Some(required) if as_of < required => required.max(self.listed?) + PATIENCE,
            _ => as_of.max(self.listed?) + MAX_AGE,
        };
        Some(self.restarts.due().map_or(due, |at| at.max(due)))
    }

    /// Has the watch started again, which lists. What was asked for before proves nothing then.
    fn restart(&mut self, watch: Watch, now: Instant) -> Effect {
        self.reading = None;
        self.ahead = None;
        self.read_at = None;
        // Its list has not begun, but nothing else comes before that.
        self.listed = Some(now);
        Effect::Watch(watch, self.scope.clone())
    }

    /// The time as of which the watch has become current, if it has just reached a consistent read.
    fn reached(&mut self) -> Option<Instant> {
        self.listed.filter(|_| self.list.is_none())?;
        let (asked, _) = self.ahead.take_if(|(_, version)| *version <= self.shown)?;
        self.restarts = Backoff::default();
        Some(asked)
    }
}

impl WatchStates {
    /// Has a watch started that has shown nothing yet; `since` is from when on that matters.
    pub(crate) fn begin(&mut self, watch: Watch, scope: Filter, since: Option<Instant>) {
        self.orders.push(Effect::Watch(watch, scope.clone()));
        let view = WatchState {
            scope,
            seen: since,
            ..WatchState::default()
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

    pub(crate) fn has(&self, watch: Watch) -> bool {
        self.all.contains_key(&watch)
    }

    pub(crate) fn of_kind(&self, kind: Watch) -> impl Iterator<Item = Watch> {
        let all = self.all.keys().copied();
        all.filter(move |watch| watch.kind() == kind.kind())
    }

    pub(crate) fn has_listed(&self, watch: Watch) -> bool {
        let view = self.all.get(&watch);
        view.is_some_and(|view| view.as_of.is_some())
    }

    /// What is known of the objects of this watch; `None` if it was not begun.
    pub(crate) fn phase(&self, watch: Watch) -> Option<Phase> {
        let view = self.all.get(&watch)?;
        Some(match view.as_of {
            None => Phase::Unlisted,
            Some(_) if view.is_absent => Phase::Absent,
            Some(_) => Phase::Listed,
        })
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

    /// Whether every watch that decisions cannot do without has listed.
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

    /// Begins a list, in place of any in progress.
    pub(crate) fn begin_list(&mut self, watch: Watch, asked: Instant) {
        if let Some(view) = self.all.get_mut(&watch) {
            view.asked = Some(asked);
            view.list = Some((asked, Set::default()));
        }
    }

    /// Notes an object; returns whether a list is in progress.
    pub(crate) fn lists(&mut self, watch: Watch, key: &ObjectKey) -> bool {
        let list = self.all.get_mut(&watch).and_then(|view| view.list.as_mut());
        list.map(|(_, shown)| shown.insert(key.clone())).is_some()
    }

    /// Ends a list; returns when it was asked for, and the objects that it has shown. Its version may be lower than what was
    /// shown before: the cluster may have been restored from a backup.
    pub(crate) fn end_list(
        &mut self,
        watch: Watch,
        is_absent: bool,
        now: Instant,
    ) -> (Instant, Set<ObjectKey>) {
        let view = self.all.get_mut(&watch);
        let list = view.and_then(|view| {
            view.is_absent = is_absent;
            view.listed = Some(now);
            view.shown = 0;
            view.ahead = None;
            view.reading = None;
            view.read_at = None;
            view.size = view.list.as_ref().map_or(0, |(_, shown)| shown.len());
            view.list.take()
        });
        list.unwrap_or((now, Set::default()))
    }

    /// Notes that the watch has shown everything up to this version. Returns the time as of which that makes it current, if it
    /// does.
    pub(crate) fn shown(&mut self, watch: Watch, version: Version) -> Option<Instant> {
        let view = self.all.get_mut(&watch)?;
        view.shown = view.shown.max(version);
        view.reached()
    }

    /// Has a consistent read made in time for the next bookmark, because a watch has begun or a bookmark has come; at once if
    /// the last one was long ago, or the watch is behind.
    pub(crate) fn read_later(&mut self, watch: Watch, now: Instant) {
        if let Some(view) = self.all.get_mut(&watch) {
            let is_recent = |asked| now.saturating_duration_since(asked) < READ_AFTER;
            let waits = view.asked.is_some_and(is_recent) && !view.is_stale(self.required, now);
            view.read_at = Some(if waits { now + READ_AFTER } else { now });
        }
    }

    /// Takes the next watch for which a consistent read is due.
    pub(crate) fn next_read(&mut self, now: Instant) -> Option<(Watch, Filter)> {
        let is_due =
            |view: &WatchState| view.reading.is_none() && view.read_at.is_some_and(|at| at <= now);
        let (watch, view) = self.all.iter_mut().find(|(_, view)| is_due(view))?;
        view.read_at = None;
        view.asked = Some(now);
        view.reading = Some((now, view.shown));
        Some((*watch, view.scope.clone()))
    }

    /// Takes in what a consistent read, asked for at this time, returned. Returns the time as of which that makes the watch
    /// current, if it does.
    pub(crate) fn read(
        &mut self,
        watch: Watch,
        asked: Instant,
        version: &Result<Version, RequestError>,
        now: Instant,
    ) -> Option<Instant> {
        let view = self.all.get_mut(&watch)?;
        let (_, shown) = view.reading.take_if(|(at, _)| *at == asked)?;
        let version = match version {
            Ok(version) => *version,
            // The watch finds out when the resource is there.
            Err(RequestError::Gone) => return None,
            Err(_) => {
                view.read_at = Some(now + READ_AGAIN);
                return None;
            }
        };
        if version < shown {
            self.restored(now);
            return None;
        }
        view.ahead = Some((asked, version));
        view.reached()
    }

    /// Notes that a watch is current as of this time. If it was stale and no longer is, returns for how long. A watch of what a
    /// rule names hides nothing before it has listed for the first time.
    pub(crate) fn current(
        &mut self,
        watch: Watch,
        as_of: Instant,
        now: Instant,
    ) -> Option<Duration> {
        let required = self.required;
        let view = self.all.get_mut(&watch)?;
        let was_stale = view.is_stale(required, now);
        view.as_of = view.as_of.max(Some(as_of));
        if view.is_stale(required, now) {
            return None;
        }
        let seen = view.seen.replace(now).filter(|_| was_stale)?;
        Some(now.saturating_duration_since(seen))
    }

    /// Requires all watches to be current as of this time: the process stood still, or starts to act on what it has seen. What is
    /// one page is listed at once: a quiet watch shows how far it is only near its end.
    pub(crate) fn require(&mut self, now: Instant) {
        self.required = Some(now);
        for (watch, view) in &mut self.all {
            if view.as_of.is_some() && view.size <= PAGE {
                self.orders.push(view.restart(*watch, now));
                continue;
            }
            // What was asked for before proves nothing.
            view.reading = None;
            view.ahead = None;
            view.read_at = view.as_of.map(|_| now);
        }
    }

    /// Starts all watches again, and requires them to be current, because the cluster was restored from a backup.
    pub(crate) fn restored(&mut self, now: Instant) {
        warn!(
            "versions go backwards: the cluster was restored from a backup; everything is listed again"
        );
        self.required = Some(now);
        let all = self.all.iter_mut();
        self.orders
            .extend(all.map(|(watch, view)| view.restart(*watch, now)));
    }

    /// Starts the watches again that have fallen behind. Once may be chance, as under load.
    pub(crate) fn restart_stale(&mut self, now: Instant) {
        for (watch, view) in &mut self.all {
            if view.restart_at(self.required).is_some_and(|at| at <= now) {
                let name = watch.name();
                if view.restarts.due().is_none() {
                    info!(watch = %name, "no proof has come in time that this watch is current, as may happen under load: it lists again");
                } else {
                    warn!(watch = %name, "this watch stays behind: it lists again, and what could do harm waits meanwhile");
                }
                view.restarts.failed(RESTARTS, now);
                self.orders.push(view.restart(*watch, now));
            }
        }
    }

    /// When the next start of a watch or consistent read is due.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Instant> {
        let due = |view: &WatchState| {
            let read_at = view.read_at.filter(|_| view.reading.is_none());
            [read_at, view.restart_at(self.required)]
        };
        let due = self.all.values().flat_map(due).flatten();
        let is_now = (!self.orders.is_empty()).then_some(now);
        is_now.or(due.filter(|at| now < *at).min())
    }

    /// Whether the view of this watch is stale.
    pub(crate) fn is_stale(&self, watch: Watch, now: Instant) -> bool {
        self.all
            .get(&watch)
            .is_some_and(|view| view.is_stale(self.required, now))
    }

    /// The watches whose view is stale. One of what a rule names that has not listed yet is another matter: that rule does
    /// nothing until then.
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

    /// How long ago the last event of this watch came while its view was current.
    pub(crate) fn age(&self, watch: Watch, now: Instant) -> Duration {
        let seen = self.all.get(&watch).and_then(|view| view.seen);
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
        views.begin_list(NODES, at);
        assert!(!views.has_listed(NODES));
        let (asked, _) = views.end_list(NODES, false, at);
        views.current(NODES, asked, at);
        progress(&mut views, 5, at);
        views
    }

    /// The same, with more nodes than a page has.
    fn listed_in_pages(at: Instant) -> WatchStates {
        let mut views = listed(at);
        views.begin_list(NODES, at);
        for number in 0..=PAGE {
            views.lists(NODES, &ObjectKey::unscoped(number.to_string().into()));
        }
        let (asked, _) = views.end_list(NODES, false, at);
        views.current(NODES, asked, at);
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
        if let Some(as_of) = views.shown(NODES, version) {
            views.current(NODES, as_of, now);
        }
        views.read_later(NODES, now);
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
        if let Some(as_of) = views.read(NODES, now, &Ok(version), now) {
            views.current(NODES, as_of, now);
        }
    }

    #[test]
    fn a_first_list_whose_answer_came_late_is_stale() {
        let at = seconds(Instant::now());
        let mut views = WatchStates::default();
        // As for what a rule names.
        views.begin(NODES, Filter::default(), None);
        views.begin_list(NODES, at(0));
        assert_eq!(views.stale(at(40)).count(), 0, "it is to be seen");
        let (asked, _) = views.end_list(NODES, false, at(40));
        views.current(NODES, asked, at(40));
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
            views.shown(NODES, shown);
            reads(&mut views, read, at(10));
            if then > 0 {
                progress(&mut views, then, at(12));
            }
            assert_eq!(views.as_of(NODES, at(12)), Some(at(as_of)), "{name}");
            assert!(!views.is_stale(NODES, at(as_of + 20)), "{name}");
            assert!(views.is_stale(NODES, at(as_of + 21)), "{name}");
        }
    }

    #[test]
    fn a_read_that_fails_is_made_again_after_a_pause() {
        let at = seconds(Instant::now());
        let mut views = listed(at(0));
        assert!(views.next_read(at(10)).is_some());
        let failed = Err(RequestError::Failed("no".into()));
        assert_eq!(views.read(NODES, at(10), &failed, at(10)), None);
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
            views.begin_list(NODES, at(second));
            let (asked, _) = views.end_list(NODES, false, at(second));
            views.current(NODES, asked, at(second));
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
        views.begin_list(NODES, at(8));
        assert_eq!(restarts(&mut views, at(60)), 0);
    }

    #[test]
    fn a_version_that_goes_backwards_is_a_cluster_that_was_restored() {
        let at = seconds(Instant::now());
        let mut views = listed(at(0));
        views.shown(NODES, 9);
        reads(&mut views, 8, at(10));
        assert!(matches!(views.take_orders()[..], [Effect::Watch(NODES, _)]));
        assert!(views.is_stale(NODES, at(10)));
        assert!(views.next_read(at(10)).is_none(), "a list tells as much");
        views.begin_list(NODES, at(11));
        let (asked, _) = views.end_list(NODES, false, at(11));
        views.current(NODES, asked, at(11));
        progress(&mut views, 4, at(11));
        assert!(!views.is_stale(NODES, at(11)));
        reads(&mut views, 6, at(22));
    }
}
