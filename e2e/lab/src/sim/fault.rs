//! What goes wrong, as values that are printed as code.

use std::fmt;

use nodegate::engine::election::LEASE_DURATION;
pub use nodegate::engine::kind::Watch;

use super::time::Time;

/// Whether a process dies before its write has arrived, or after it has been carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Before.
    Before,
    /// After.
    After,
}

/// What the API server answers in a storm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// 409, without a reason.
    Conflict,
    /// 429.
    TooManyRequests,
    /// 500.
    InternalError,
    /// 503.
    Unavailable,
    /// Nothing. Some of the requests are carried out.
    Timeout,
}

/// Something that goes wrong. Instances, and the writes and the events of each, are counted from 0, over all lives of an
/// instance. Where no instance is named, all of them are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process dies with this write, and starts anew after a while. What else is under way may arrive or not.
    Kill {
        /// Which instance.
        instance: usize,
        /// Which of its writes.
        write: usize,
        /// Whether it is carried out.
        side: Side,
        /// How long the process is down.
        down: Time,
    },
    /// The process is told to stop, ends what is under way, gives the lease up, and starts anew after a while.
    Stop {
        /// Which instance.
        instance: usize,
        /// When.
        at: Time,
        /// How long the process is down.
        down: Time,
    },
    /// A watch breaks off before this event and begins anew with a list after the next event of the same object: the state
    /// between is never seen.
    Unobserved {
        /// Which instance.
        instance: usize,
        /// Which of its watches.
        watch: Watch,
        /// Which event.
        event: usize,
    },
    /// A watch stands still: nothing comes, however often it is begun anew.
    Stale {
        /// Which watch.
        watch: Watch,
        /// Since when.
        at: Time,
        /// For how long.
        lasts: Time,
    },
    /// The leader dies, and a watch of all others stands still for a while, in the middle of which its lease runs out: the
    /// new leader begins on an older view.
    StaleStart {
        /// Which watch.
        watch: Watch,
        /// When the leader dies.
        at: Time,
        /// For how long the watch stands still.
        lasts: Time,
    },
    /// The answer to a write is lost.
    AnswerLost {
        /// Which instance.
        instance: usize,
        /// Which of its writes.
        write: usize,
        /// Whether it has been carried out.
        done: bool,
    },
    /// A wall clock is set.
    ClockStep {
        /// Whose.
        instance: usize,
        /// When.
        at: Time,
        /// By how many seconds.
        by: i64,
    },
    /// The machine is suspended: nothing happens there, and its monotonic clock stands still.
    Suspend {
        /// Whose.
        instance: usize,
        /// When.
        at: Time,
        /// For how long.
        lasts: Time,
    },
    /// The process stands still; the clocks go on.
    Freeze {
        /// Which instance.
        instance: usize,
        /// When.
        at: Time,
        /// For how long.
        lasts: Time,
    },
    /// Another instance takes the lease, and the leader does not notice for a while.
    TwoLeaders {
        /// When.
        at: Time,
        /// For how long.
        lasts: Time,
    },
    /// An instance cannot reach the API server.
    Partition {
        /// Which.
        instance: usize,
        /// When.
        at: Time,
        /// For how long.
        lasts: Time,
    },
    /// The API server refuses nearly everything.
    Storm {
        /// What it answers.
        trouble: Trouble,
        /// When.
        at: Time,
        /// For how long.
        lasts: Time,
    },
    /// What a watch shows comes late.
    WatchDelay {
        /// Which watch.
        watch: Watch,
        /// When.
        at: Time,
        /// For how long.
        lasts: Time,
        /// How late.
        by: Time,
    },
    /// The API server cannot go on with a watch: it begins anew with a list.
    Expired {
        /// Which watch.
        watch: Watch,
        /// When.
        at: Time,
    },
    /// The connection of a watch dies without a word: nothing comes any more, until it is given up.
    SilentDeath {
        /// Which watch.
        watch: Watch,
        /// When.
        at: Time,
    },
}

impl Fault {
    /// When it ends, where that is known beforehand.
    #[must_use]
    pub fn ends(&self) -> Option<Time> {
        match self {
            Self::Kill { .. } | Self::Unobserved { .. } | Self::AnswerLost { .. } => None,
            Self::Stop { at, down, .. } => Some(*at + *down),
            Self::Stale { at, lasts, .. }
            | Self::Suspend { at, lasts, .. }
            | Self::Freeze { at, lasts, .. }
            | Self::TwoLeaders { at, lasts }
            | Self::Partition { at, lasts, .. }
            | Self::Storm { at, lasts, .. } => Some(*at + *lasts),
            Self::StaleStart { at, lasts, .. } => Some(*at + LEASE_DURATION + *lasts / 2),
            Self::WatchDelay { at, lasts, by, .. } => Some(*at + *lasts + *by),
            Self::ClockStep { at, .. }
            | Self::Expired { at, .. }
            | Self::SilentDeath { at, .. } => Some(*at),
        }
    }
}

/// As Rust code, in the words of this module.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: &Time| format!("ms({})", time.as_millis());
        write!(f, "Fault::")?;
        match self {
            Self::Kill {
                instance,
                write,
                side,
                down,
            } => write!(
                f,
                "Kill {{ instance: {instance}, write: {write}, side: Side::{side:?}, down: {} }}",
                ms(down)
            ),
            Self::Stop { instance, at, down } => write!(
                f,
                "Stop {{ instance: {instance}, at: {}, down: {} }}",
                ms(at),
                ms(down)
            ),
            Self::Unobserved {
                instance,
                watch,
                event,
            } => write!(
                f,
                "Unobserved {{ instance: {instance}, watch: Watch::{watch:?}, event: {event} }}"
            ),
            Self::Stale { watch, at, lasts } => write!(
                f,
                "Stale {{ watch: Watch::{watch:?}, at: {}, lasts: {} }}",
                ms(at),
                ms(lasts)
            ),
            Self::StaleStart { watch, at, lasts } => write!(
                f,
                "StaleStart {{ watch: Watch::{watch:?}, at: {}, lasts: {} }}",
                ms(at),
                ms(lasts)
            ),
            Self::AnswerLost {
                instance,
                write,
                done,
            } => write!(
                f,
                "AnswerLost {{ instance: {instance}, write: {write}, done: {done} }}"
            ),
            Self::ClockStep { instance, at, by } => write!(
                f,
                "ClockStep {{ instance: {instance}, at: {}, by: {by} }}",
                ms(at)
            ),
            Self::Suspend {
                instance,
                at,
                lasts,
            } => write!(
                f,
                "Suspend {{ instance: {instance}, at: {}, lasts: {} }}",
                ms(at),
                ms(lasts)
            ),
            Self::Freeze {
                instance,
                at,
                lasts,
            } => write!(
                f,
                "Freeze {{ instance: {instance}, at: {}, lasts: {} }}",
                ms(at),
                ms(lasts)
            ),
            Self::TwoLeaders { at, lasts } => {
                write!(f, "TwoLeaders {{ at: {}, lasts: {} }}", ms(at), ms(lasts))
            }
            Self::Partition {
                instance,
                at,
                lasts,
            } => write!(
                f,
                "Partition {{ instance: {instance}, at: {}, lasts: {} }}",
                ms(at),
                ms(lasts)
            ),
            Self::Storm { trouble, at, lasts } => write!(
                f,
                "Storm {{ trouble: Trouble::{trouble:?}, at: {}, lasts: {} }}",
                ms(at),
                ms(lasts)
            ),
            Self::WatchDelay {
                watch,
                at,
                lasts,
                by,
            } => write!(
                f,
                "WatchDelay {{ watch: Watch::{watch:?}, at: {}, lasts: {}, by: {} }}",
                ms(at),
                ms(lasts),
                ms(by)
            ),
            Self::Expired { watch, at } => {
                write!(f, "Expired {{ watch: Watch::{watch:?}, at: {} }}", ms(at))
            }
            Self::SilentDeath { watch, at } => write!(
                f,
                "SilentDeath {{ watch: Watch::{watch:?}, at: {} }}",
                ms(at)
            ),
        }
    }
}
