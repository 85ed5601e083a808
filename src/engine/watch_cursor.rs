//! Decides what a watch requests next, and as of when its view is current. It lists, then watches from where the list or the
//! last watch ended, and lists again only if the API server cannot continue from there.
//!
//! A view is current as of the time at which a *consistent read* was started, once the watch has shown a version at least as
//! high as that read returned (KEP-2340; versions compare as numbers, KEP-5504). Neither a bookmark nor a regular end of a
//! watch proves that by itself: an API server that lags behind its etcd sends bookmarks of its old version and ends watches
//! regularly. A consistent read makes a healthy API server's cache catch up, so the next bookmark comes at that version.
//!
//! Pure: responses go in with their times; the next request comes out.

use std::time::{Duration, Instant};

use crate::object::{self, Version};

/// The usual timeout of a watch request.
pub const LENGTH: Duration = Duration::from_secs(15);
/// The timeout of a watch whose view is to be current soon: the shortest one that brings a bookmark.
pub const SHORT_LENGTH: Duration = Duration::from_secs(3);
/// How long before its end a watch sends a bookmark: `nextBookmarkTime` in apiserver's `cache_watcher.go`.
pub const BOOKMARK: Duration = Duration::from_secs(2);
/// A consistent read starts this long before the bookmark that is to confirm it.
const HEAD_START: Duration = Duration::from_secs(1);
/// If the watch has not reached a consistent read after this time, another one is made.
const OUTDATED: Duration = Duration::from_secs(5);

/// A request to make next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextRequest {
    /// One page of a list; the first if there is no token.
    List {
        /// The continue token of the previous page.
        token: Option<String>,
    },
    /// A watch.
    Watch {
        /// The resource version to start after.
        version: String,
        /// The timeout that the API server is asked to apply.
        length: Duration,
    },
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The API server ended the watch regularly, after this time.
    Closed(Duration),
    /// The request failed, broke off or fell silent.
    Failed,
    /// The API server cannot continue from there (410 Gone).
    Expired,
}

/// How current the view is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewState {
    /// Everything has been shown that had happened by this time.
    Current(Instant),
    /// As current as before.
    Unchanged,
    /// Changes may go unseen.
    Interrupted,
    /// The cluster is at a lower version than has been shown: it was restored from a backup, and everything must be listed
    /// again.
    Restored,
}

/// A list or an object has no comparable version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoVersion;

/// How far a watch has got.
#[derive(Debug)]
pub struct WatchCursor {
    progress: Progress,
    /// The highest version that has been shown.
    shown: Version,
    /// The consistent read under way: its start, and the highest version shown at that time.
    reading: Option<(Instant, Version)>,
    /// The consistent read that the watch has not reached yet: its start and its version.
    ahead: Option<(Instant, Version)>,
    /// As of when the view is current, since the last interruption.
    current: Option<Instant>,
    /// As of when the view must be current at least.
    wanted: Option<Instant>,
    /// The timeout of the watch under way.
    length: Duration,
}

#[derive(Debug)]
enum Progress {
    /// Not all objects have been listed. `since` is when the first page was requested.
    Listing {
        token: Option<String>,
        since: Option<Instant>,
    },
    /// Everything up to this version has been shown.
    Watching { version: String },
}

impl Default for WatchCursor {
    fn default() -> Self {
        Self {
            progress: Progress::from_the_start(),
            shown: 0,
            reading: None,
            ahead: None,
            current: None,
            wanted: None,
            length: Duration::ZERO,
        }
    }
}

impl Progress {
    const fn from_the_start() -> Self {
        Self::Listing {
            token: None,
            since: None,
        }
    }
}

impl WatchCursor {
    /// Asks for a view that is current as of this time at least. If it returns true, start the watch anew: the one under way
    /// would take too long.
    pub fn want(&mut self, as_of: Instant) -> bool {
        self.wanted = Some(as_of);
        !self.is_current()
    }

    /// Lists everything again.
    pub fn relist(&mut self) -> ViewState {
        *self = Self {
            wanted: self.wanted,
            ..Self::default()
        };
        ViewState::Interrupted
    }

    /// The request to make now.
    pub fn next(&mut self, now: Instant) -> NextRequest {
        match &mut self.progress {
            Progress::Listing { token, since } => {
                // All pages show the state at the time of the first.
                if token.is_none() {
                    *since = Some(now);
                }
                NextRequest::List {
                    token: token.clone(),
                }
            }
            Progress::Watching { version } => {
                let version = version.clone();
                self.length = if self.is_current() && self.ahead.is_none() {
                    LENGTH
                } else {
                    SHORT_LENGTH
                };
                NextRequest::Watch {
                    version,
                    length: self.length,
                }
            }
        }
    }

    /// How long after the start of the watch a consistent read is due.
    pub fn read_after(&self) -> Duration {
        self.length
            .saturating_sub(BOOKMARK)
            .saturating_sub(HEAD_START)
    }

    /// Call when a consistent read is due. If it returns true, make one now.
    pub fn begin_read(&mut self, now: Instant) -> bool {
        let counts = |since: Instant| {
            self.wanted.is_none_or(|wanted| wanted <= since)
                && now.saturating_duration_since(since) < OUTDATED
        };
        let is_wanted = self.reading.is_none() && !self.ahead.is_some_and(|it| counts(it.0));
        if is_wanted {
            self.reading = Some((now, self.shown));
        }
        is_wanted
    }

    /// Takes in the version that the consistent read returned.
    pub fn read(&mut self, version: Version) -> ViewState {
        let Some((since, shown)) = self.reading.take() else {
            return ViewState::Unchanged;
        };
        if version < shown {
            return ViewState::Restored;
        }
        self.ahead = Some((since, version));
        self.reached()
    }

    /// The consistent read failed.
    pub fn read_failed(&mut self) {
        self.reading = None;
    }

    /// Takes in a page of a list: its version, and the token of the next page.
    ///
    /// # Errors
    /// The page has neither a comparable version nor a token.
    pub fn page(
        &mut self,
        version: Option<String>,
        token: Option<String>,
    ) -> Result<ViewState, NoVersion> {
        let given = |text: &String| !text.is_empty();
        let Progress::Listing { since, .. } = self.progress else {
            return Ok(ViewState::Unchanged);
        };
        match (token.filter(given), version.filter(given)) {
            (Some(token), _) => {
                let token = Some(token);
                self.progress = Progress::Listing { token, since };
                Ok(ViewState::Unchanged)
            }
            (None, Some(version)) => {
                let before = self.shown;
                self.shown = object::version(Some(&version));
                self.progress = Progress::Watching { version };
                if self.shown < before {
                    return Ok(ViewState::Restored);
                }
                self.current = since;
                self.ahead = None;
                Ok(since.map_or(ViewState::Unchanged, ViewState::Current))
            }
            (None, None) => Err(NoVersion),
        }
    }

    /// Notes that the watch has shown everything up to this version, by an object or a bookmark.
    ///
    /// # Errors
    /// The version cannot be compared.
    pub fn saw(&mut self, version: Option<String>) -> Result<ViewState, NoVersion> {
        let version = version.filter(|text| !text.is_empty()).ok_or(NoVersion)?;
        let number = object::version(Some(&version));
        if number >= self.shown {
            self.shown = number;
            self.progress = Progress::Watching { version };
        }
        Ok(self.reached())
    }

    /// Handles the end of a request.
    pub fn ended(&mut self, end: End) -> ViewState {
        match end {
            End::Closed(ran) if ran >= self.length => return ViewState::Unchanged,
            End::Closed(_) | End::Failed => {}
            End::Expired => self.progress = Progress::from_the_start(),
        }
        self.current = None;
        ViewState::Interrupted
    }

    /// The highest version shown.
    pub fn shown(&self) -> Version {
        self.shown
    }

    /// Whether the view is as current as asked for.
    fn is_current(&self) -> bool {
        self.current
            .is_some_and(|current| self.wanted.is_none_or(|wanted| wanted <= current))
    }

    /// The freshness of the view once the watch may have reached the consistent read.
    fn reached(&mut self) -> ViewState {
        match self.ahead {
            Some((since, version)) if version <= self.shown => {
                self.ahead = None;
                self.current = self.current.max(Some(since));
                ViewState::Current(since)
            }
            _ => ViewState::Unchanged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(token: &str) -> NextRequest {
        let token = (!token.is_empty()).then(|| token.to_owned());
        NextRequest::List { token }
    }

    fn watch(version: &str, length: Duration) -> NextRequest {
        NextRequest::Watch {
            version: version.to_owned(),
            length,
        }
    }

    fn version(number: u64) -> Option<String> {
        (number > 0).then(|| number.to_string())
    }

    fn seconds(start: Instant) -> impl Fn(u64) -> Instant {
        move |seconds| start + Duration::from_secs(seconds)
    }

    /// A cursor whose list up to version 5 was requested at this time, and which watches from there.
    fn listed(at: Instant) -> WatchCursor {
        let mut cursor = WatchCursor::default();
        assert_eq!(cursor.next(at), list(""));
        assert_eq!(cursor.page(version(5), None), Ok(ViewState::Current(at)));
        assert_eq!(cursor.next(at), watch("5", LENGTH));
        cursor
    }

    #[test]
    fn a_list_is_gone_through_page_by_page_and_is_as_current_as_its_first_page() {
        let at = seconds(Instant::now());
        let mut cursor = WatchCursor::default();
        assert_eq!(cursor.next(at(0)), list(""));
        let page = cursor.page(version(5), Some("next".into()));
        assert_eq!(page, Ok(ViewState::Unchanged));
        assert_eq!(cursor.next(at(1)), list("next"));
        // A failed page does not invalidate the others.
        assert_eq!(cursor.ended(End::Failed), ViewState::Interrupted);
        assert_eq!(cursor.next(at(2)), list("next"));
        let page = cursor.page(version(5), Some(String::new()));
        assert_eq!(page, Ok(ViewState::Current(at(0))));
        assert_eq!(cursor.next(at(3)), watch("5", LENGTH));
    }

    #[test]
    fn a_token_that_has_expired_begins_the_list_anew() {
        let at = seconds(Instant::now());
        let mut cursor = WatchCursor::default();
        cursor.next(at(0));
        assert!(cursor.page(None, Some("next".into())).is_ok());
        assert_eq!(cursor.ended(End::Expired), ViewState::Interrupted);
        assert_eq!(cursor.next(at(1)), list(""));
        assert_eq!(cursor.page(version(5), None), Ok(ViewState::Current(at(1))));
    }

    #[test]
    fn a_list_without_a_version_is_no_list() {
        let mut cursor = WatchCursor::default();
        cursor.next(Instant::now());
        assert_eq!(cursor.page(Some(String::new()), None), Err(NoVersion));
        assert_eq!(cursor.next(Instant::now()), list(""));
    }

    #[test]
    fn a_view_is_current_as_of_a_consistent_read_once_it_has_shown_as_much() {
        let at = seconds(Instant::now());
        for (name, shown, read, then, view) in [
            (
                "shown before the read was answered",
                9,
                9,
                None,
                ViewState::Current(at(12)),
            ),
            (
                "a bookmark of that version",
                5,
                9,
                Some(9),
                ViewState::Current(at(12)),
            ),
            ("a later one", 5, 9, Some(11), ViewState::Current(at(12))),
            (
                "a bookmark of an old version",
                5,
                9,
                Some(8),
                ViewState::Unchanged,
            ),
            ("nothing", 5, 9, None, ViewState::Unchanged),
        ] {
            let mut cursor = listed(at(0));
            assert!(cursor.begin_read(at(12)));
            assert!(!cursor.begin_read(at(12)), "one at a time");
            assert_eq!(
                cursor.saw(version(shown)),
                Ok(ViewState::Unchanged),
                "{name}"
            );
            let mut last = cursor.read(read);
            if let Some(then) = then {
                assert_eq!(last, ViewState::Unchanged, "{name}");
                last = cursor.saw(version(then)).unwrap();
            }
            assert_eq!(last, view, "{name}");
            // A regular end proves nothing.
            assert_eq!(cursor.ended(End::Closed(LENGTH)), ViewState::Unchanged);
            let length = if view == ViewState::Unchanged {
                SHORT_LENGTH
            } else {
                LENGTH
            };
            let next = cursor.shown().to_string();
            assert_eq!(cursor.next(at(15)), watch(&next, length), "{name}");
        }
    }

    #[test]
    fn a_consistent_read_is_due_before_the_bookmark_and_at_once_where_it_is_wanted_soon() {
        let at = seconds(Instant::now());
        let mut cursor = listed(at(0));
        assert_eq!(cursor.read_after(), Duration::from_secs(12));
        assert!(cursor.want(at(3)), "a watch that takes long is begun anew");
        assert_eq!(cursor.next(at(3)), watch("5", SHORT_LENGTH));
        assert_eq!(cursor.read_after(), Duration::ZERO);
        assert!(cursor.begin_read(at(3)));
        assert_eq!(cursor.read(7), ViewState::Unchanged);
        assert_eq!(cursor.saw(version(7)), Ok(ViewState::Current(at(3))));
        assert_eq!(
            cursor.ended(End::Closed(SHORT_LENGTH)),
            ViewState::Unchanged
        );
        assert_eq!(cursor.next(at(6)), watch("7", LENGTH));
        assert!(!cursor.want(at(2)), "it is");
    }

    #[test]
    fn a_read_that_was_asked_for_too_early_is_made_again() {
        let at = seconds(Instant::now());
        let mut cursor = listed(at(0));
        assert!(cursor.begin_read(at(12)));
        assert_eq!(cursor.read(9), ViewState::Unchanged);
        assert!(!cursor.begin_read(at(16)), "the bookmark may still come");
        assert!(cursor.begin_read(at(17)), "it does not");
        cursor.read_failed();
        assert!(cursor.begin_read(at(17)));
        assert_eq!(cursor.read(10), ViewState::Unchanged);
        assert!(cursor.want(at(18)));
        assert!(cursor.begin_read(at(18)), "asked for before it was wanted");
    }

    #[test]
    fn how_a_watch_ends_says_what_the_view_is_worth_and_what_comes_next() {
        for (name, end, view, next) in [
            (
                "its time was over",
                End::Closed(LENGTH),
                ViewState::Unchanged,
                watch("5", LENGTH),
            ),
            (
                "it ended early",
                End::Closed(LENGTH.saturating_sub(Duration::from_secs(1))),
                ViewState::Interrupted,
                watch("5", SHORT_LENGTH),
            ),
            (
                "it broke off",
                End::Failed,
                ViewState::Interrupted,
                watch("5", SHORT_LENGTH),
            ),
            (
                "its version is too old",
                End::Expired,
                ViewState::Interrupted,
                list(""),
            ),
        ] {
            let now = Instant::now();
            let mut cursor = listed(now);
            assert_eq!(cursor.ended(end), view, "{name}");
            assert_eq!(cursor.next(now), next, "{name}");
        }
    }

    #[test]
    fn a_watch_is_resumed_from_what_was_seen_last() {
        let now = Instant::now();
        let mut cursor = listed(now);
        for (shown, next) in [(6, "6"), (8, "8"), (7, "8")] {
            assert_eq!(cursor.saw(version(shown)), Ok(ViewState::Unchanged));
            cursor.ended(End::Failed);
            assert_eq!(cursor.next(now), watch(next, SHORT_LENGTH));
        }
        assert_eq!(cursor.saw(None), Err(NoVersion));
    }

    #[test]
    fn a_version_that_goes_backwards_is_a_cluster_that_was_restored() {
        let now = Instant::now();
        let mut cursor = listed(now);
        assert!(cursor.begin_read(now));
        assert_eq!(cursor.saw(version(9)), Ok(ViewState::Unchanged));
        let view = cursor.read(8);
        assert_eq!(
            view,
            ViewState::Current(now),
            "asked for before 9 was shown"
        );
        assert!(cursor.begin_read(now));
        assert_eq!(cursor.read(8), ViewState::Restored);

        let mut cursor = listed(now);
        cursor.ended(End::Expired);
        cursor.next(now);
        assert_eq!(cursor.page(version(4), None), Ok(ViewState::Restored));

        let mut cursor = listed(now);
        assert_eq!(cursor.relist(), ViewState::Interrupted);
        assert_eq!(cursor.next(now), list(""));
        assert_eq!(
            cursor.page(version(4), None),
            Ok(ViewState::Current(now)),
            "as it is now"
        );
    }
}
