//! What goes wrong, as values that are printed as code.

mod code;

pub use code::Unreadable;
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
    /// 429 to every Event, and to nothing else.
    EventRateLimit,
}

impl Trouble {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::Conflict,
        Self::TooManyRequests,
        Self::InternalError,
        Self::Unavailable,
        Self::Timeout,
        Self::EventRateLimit,
    ];
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
    /// The API server refuses nearly everything, or every Event.
    Storm {
        /// What it answers.
        trouble: Trouble,
        /// When.
        at: Time,
        /// For how long.
        lasts: Time,
    },
    /// The API server lags behind its etcd: what it knows of a kind stands still, while it sends bookmarks and ends watches as ever,
    /// and answers requests.
    Lagging {
        /// Which watch is about that kind.
        watch: Watch,
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
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Kill { .. } => "Kill",
            Self::Stop { .. } => "Stop",
            Self::Unobserved { .. } => "Unobserved",
            Self::Stale { .. } => "Stale",
            Self::StaleStart { .. } => "StaleStart",
            Self::AnswerLost { .. } => "AnswerLost",
            Self::ClockStep { .. } => "ClockStep",
            Self::Suspend { .. } => "Suspend",
            Self::Freeze { .. } => "Freeze",
            Self::TwoLeaders { .. } => "TwoLeaders",
            Self::Partition { .. } => "Partition",
            Self::Storm { .. } => "Storm",
            Self::Lagging { .. } => "Lagging",
            Self::WatchDelay { .. } => "WatchDelay",
            Self::Expired { .. } => "Expired",
            Self::SilentDeath { .. } => "SilentDeath",
        }
    }

    /// When it ends, where that is known beforehand.
    #[must_use]
    pub fn ends(&self) -> Option<Time> {
        match self {
            Self::Kill { .. } | Self::Unobserved { .. } | Self::AnswerLost { .. } => None,
            Self::Stop { at, down, .. } => Some(*at + *down),
            Self::Stale { at, lasts, .. }
            | Self::Lagging { at, lasts, .. }
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
