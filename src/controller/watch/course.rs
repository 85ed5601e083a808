//! What a watch asks for next, given what has come of it so far, and what its view is worth: it lists, then watches from
//! where the list or the last watch has ended, and lists anew only where the API server cannot go on from there.
//!
//! Pure: what came is put in, with how long it took; the next request comes out.

use std::time::Duration;

/// How long the API server is to keep a watch open. By its end at the latest there is a sign of life.
pub const LENGTH: Duration = Duration::from_secs(15);
/// How long it is to where a sign of life is wanted soon. A bookmark comes 2 s before a watch's end, so that this is the
/// shortest one that brings one: `nextBookmarkTime` in apiserver's `cache_watcher.go`.
pub const SHORT_LENGTH: Duration = Duration::from_secs(3);
/// A watch that ends when its time is over has handed over all there was, unless it was still at it in the end: then the
/// last of it came just before.
const QUIET: Duration = Duration::from_secs(1);

/// What to ask the API server for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// A page of a list; the first one without a token.
    List {
        /// What the page before said that it is gone on with.
        token: Option<String>,
    },
    /// A watch.
    Watch {
        /// The version that it is to begin after.
        version: String,
        /// How long the API server is to keep it open.
        length: Duration,
    },
}

/// What has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The API server has ended the watch, in good order.
    Closed {
        /// How long it was open.
        ran: Duration,
        /// For how long nothing had come.
        quiet: Duration,
    },
    /// What was asked for was not given, broke off, or fell silent.
    Failed,
    /// The API server cannot go on from there.
    Expired,
}

/// What is known of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Everything up to the present has been handed over, as of when this confirmation was asked for.
    Confirmed(u64),
    /// It is as good as it was.
    Unchanged,
    /// Things may happen that are not seen.
    Interrupted,
}

/// A list that cannot be watched on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoVersion;

/// Where a watch has got to.
#[derive(Debug)]
pub struct Course {
    progress: Progress,
    /// The confirmation that was wanted when the list or the watch under way was begun.
    asked: u64,
    /// The confirmation that has been had since the last interruption.
    confirmed: Option<u64>,
    /// How long the API server was to keep the watch under way open.
    length: Duration,
}

#[derive(Debug)]
enum Progress {
    /// Not all objects have been listed.
    Listing { token: Option<String> },
    /// All up to this version have been seen.
    Watching { version: String },
}

impl Course {
    /// One that has seen nothing.
    pub fn new() -> Self {
        Self {
            progress: Progress::Listing { token: None },
            asked: 0,
            confirmed: None,
            length: Duration::ZERO,
        }
    }

    /// One that goes on from a list of this version, which somebody else has made.
    pub fn after(version: String) -> Self {
        Self {
            progress: Progress::Watching { version },
            ..Self::new()
        }
    }

    /// What to ask for next, where this confirmation is wanted.
    pub fn next(&mut self, wanted: u64) -> Question {
        match &self.progress {
            Progress::Listing { token } => {
                // All pages show what there was when the first one was made.
                if token.is_none() {
                    self.asked = wanted;
                }
                Question::List {
                    token: token.clone(),
                }
            }
            Progress::Watching { version } => {
                self.asked = wanted;
                self.length = if self.confirmed == Some(wanted) {
                    LENGTH
                } else {
                    SHORT_LENGTH
                };
                Question::Watch {
                    version: version.clone(),
                    length: self.length,
                }
            }
        }
    }

    /// Takes in a page of a list, by its version and the token of the next one.
    ///
    /// # Errors
    /// When there is nothing to go on with.
    pub fn page(
        &mut self,
        version: Option<String>,
        token: Option<String>,
    ) -> Result<View, NoVersion> {
        let given = |text: &String| !text.is_empty();
        match (token.filter(given), version.filter(given)) {
            (Some(token), _) => {
                self.progress = Progress::Listing { token: Some(token) };
                Ok(View::Unchanged)
            }
            (None, Some(version)) => {
                self.progress = Progress::Watching { version };
                Ok(self.confirm())
            }
            (None, None) => Err(NoVersion),
        }
    }

    /// Takes in that a watch has shown an object of this version.
    pub fn saw(&mut self, version: String) {
        self.progress = Progress::Watching { version };
    }

    /// Takes in that a watch has shown everything up to this version, which is the present.
    pub fn bookmark(&mut self, version: String) -> View {
        self.progress = Progress::Watching { version };
        self.confirm()
    }

    /// Takes in how what was asked for has ended.
    pub fn ended(&mut self, end: End) -> View {
        match end {
            End::Closed { ran, quiet } if ran >= self.length && quiet >= QUIET => self.confirm(),
            End::Closed { ran, .. } if ran >= self.length => View::Unchanged,
            End::Closed { .. } | End::Failed => self.interrupt(),
            End::Expired => {
                self.progress = Progress::Listing { token: None };
                self.interrupt()
            }
        }
    }

    fn confirm(&mut self) -> View {
        self.confirmed = Some(self.asked);
        View::Confirmed(self.asked)
    }

    fn interrupt(&mut self) -> View {
        self.confirmed = None;
        View::Interrupted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn list(token: &str) -> Question {
        let token = (!token.is_empty()).then(|| token.to_owned());
        Question::List { token }
    }

    fn watch(version: &str, length: Duration) -> Question {
        Question::Watch {
            version: version.to_owned(),
            length,
        }
    }

    /// One that has listed up to version 5, with this confirmation.
    fn listed(wanted: u64) -> Course {
        let mut course = Course::new();
        assert_eq!(course.next(wanted), list(""));
        let view = course.page(Some("5".into()), None);
        assert_eq!(view, Ok(View::Confirmed(wanted)));
        course
    }

    #[test]
    fn a_list_is_gone_through_page_by_page_and_then_watched_on_from() {
        let mut course = Course::new();
        assert_eq!(course.next(0), list(""));
        let page = course.page(Some("5".into()), Some("next".into()));
        assert_eq!(page, Ok(View::Unchanged));
        assert_eq!(course.next(0), list("next"));
        // What one page failed for says nothing against the others.
        assert_eq!(course.ended(End::Failed), View::Interrupted);
        assert_eq!(course.next(0), list("next"));
        let page = course.page(Some("5".into()), Some(String::new()));
        assert_eq!(page, Ok(View::Confirmed(0)));
        assert_eq!(course.next(0), watch("5", LENGTH));
    }

    #[test]
    fn a_token_that_has_expired_begins_the_list_anew() {
        let mut course = Course::new();
        course.next(0);
        assert!(course.page(None, Some("next".into())).is_ok());
        assert_eq!(course.ended(End::Expired), View::Interrupted);
        assert_eq!(course.next(0), list(""));
    }

    #[test]
    fn a_list_without_a_version_is_no_list() {
        let mut course = Course::new();
        course.next(0);
        assert_eq!(course.page(Some(String::new()), None), Err(NoVersion));
        assert_eq!(course.next(0), list(""));
    }

    #[test]
    fn how_a_watch_ends_says_what_the_view_is_worth_and_what_comes_next() {
        let closed = |ran, quiet| End::Closed { ran, quiet };
        let minute = 60 * SECOND;
        for (name, end, view, next) in [
            (
                "its time was over, and nothing had come for a while",
                closed(LENGTH, minute),
                View::Confirmed(0),
                watch("5", LENGTH),
            ),
            (
                "its time was over in the midst of events",
                closed(LENGTH, Duration::ZERO),
                View::Unchanged,
                watch("5", LENGTH),
            ),
            (
                "it ended early",
                closed(LENGTH.saturating_sub(SECOND), minute),
                View::Interrupted,
                watch("5", SHORT_LENGTH),
            ),
            (
                "it broke off",
                End::Failed,
                View::Interrupted,
                watch("5", SHORT_LENGTH),
            ),
            (
                "its version is too old",
                End::Expired,
                View::Interrupted,
                list(""),
            ),
        ] {
            let mut course = listed(0);
            course.next(0);
            assert_eq!(course.ended(end), view, "{name}");
            assert_eq!(course.next(0), next, "{name}");
        }
    }

    #[test]
    fn a_list_that_was_made_already_is_not_made_again() {
        let mut course = Course::after("5".into());
        assert_eq!(course.next(0), watch("5", SHORT_LENGTH));
    }

    #[test]
    fn a_watch_is_resumed_from_what_was_seen_last() {
        let mut course = listed(0);
        course.next(0);
        course.saw("6".into());
        assert_eq!(course.bookmark("8".into()), View::Confirmed(0));
        course.saw("9".into());
        course.ended(End::Failed);
        assert_eq!(course.next(0), watch("9", SHORT_LENGTH));
    }

    #[test]
    fn a_short_watch_confirms_after_an_interruption_and_long_ones_follow() {
        let mut course = listed(0);
        course.next(0);
        course.ended(End::Failed);
        assert_eq!(course.next(0), watch("5", SHORT_LENGTH));
        assert_eq!(course.bookmark("7".into()), View::Confirmed(0));
        // It goes on for a while after its bookmark, and ends in good order.
        let end = End::Closed {
            ran: SHORT_LENGTH,
            quiet: Duration::ZERO,
        };
        assert_eq!(course.ended(end), View::Unchanged);
        assert_eq!(course.next(0), watch("7", LENGTH));
    }

    #[test]
    fn what_began_before_a_confirmation_was_asked_for_does_not_give_it() {
        let mut course = listed(0);
        assert_eq!(course.next(0), watch("5", LENGTH));
        assert_eq!(course.bookmark("6".into()), View::Confirmed(0));
        // Asked for: whatever is under way is dropped, and this comes next.
        assert_eq!(course.next(1), watch("6", SHORT_LENGTH));
        assert_eq!(course.bookmark("6".into()), View::Confirmed(1));

        let mut course = Course::new();
        course.next(0);
        assert!(course.page(None, Some("next".into())).is_ok());
        assert_eq!(course.next(1), list("next"));
        let view = course.page(Some("5".into()), None);
        assert_eq!(view, Ok(View::Confirmed(0)));
        assert_eq!(course.next(1), watch("5", SHORT_LENGTH));
    }
}
