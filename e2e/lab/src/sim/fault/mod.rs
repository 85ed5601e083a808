//! Faults, as values that print as code.

mod code;

pub use code::Unreadable;
use nodegate::engine::election::LEASE_DURATION;
pub use nodegate::engine::kind::Watch;

use super::time::Time;

/// When a process dies: before its write arrives, or after the server has carried it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Before the write arrives.
    Before,
    /// After the write is carried out.
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
    /// No answer. Some of the requests are carried out.
    Timeout,
    /// 429 to every Event, and to no other request.
    EventRateLimit,
}

impl Trouble {
    /// Every kind of trouble.
    pub const ALL: [Self; 6] = [
        Self::Conflict,
        Self::TooManyRequests,
        Self::InternalError,
        Self::Unavailable,
        Self::Timeout,
        Self::EventRateLimit,
    ];
}

/// A fault. Instances count from 0; so do the writes and the events of each, over all its lives. A fault that names no instance
/// affects all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process dies with this write and restarts after a while. Other requests under way may arrive or not.
    Kill {
        /// The instance.
        instance: usize,
        /// The number of its write.
        write: usize,
        /// Whether the write is carried out.
        side: Side,
        /// How long the process is down.
        down: Time,
    },
    /// The process is told to stop, finishes its requests, releases the lease, and restarts after a while.
    Stop {
        /// The instance.
        instance: usize,
        /// When.
        at: Time,
        /// How long the process is down.
        down: Time,
    },
    /// A watch breaks off before this event, and restarts with a list after the next event of the same object: it never shows
    /// the state in between.
    Unobserved {
        /// The instance.
        instance: usize,
        /// The watch.
        watch: Watch,
        /// The number of the event.
        event: usize,
    },
    /// A watch stalls: it shows nothing, however often it is restarted.
    Stale {
        /// The watch.
        watch: Watch,
        /// From when.
        at: Time,
        /// For how long.
        lasts: Time,
    },
    /// The leader dies while a watch of all others stalls. Its lease runs out in the middle of the stall: the new leader starts
    /// with an older view.
    StaleStart {
        /// The watch.
        watch: Watch,
        /// When the leader dies.
        at: Time,
        /// For how long the watch stands still.
        lasts: Time,
    },
    /// The answer to a write is lost.
    AnswerLost {
        /// The instance.
        instance: usize,
        /// The number of its write.
        write: usize,
        /// Whether the write was carried out.
        done: bool,
    },
    /// A wall clock is set.
    ClockStep {
        /// The instance.
        instance: usize,
        /// When.
        at: Time,
        /// By how many seconds.
        by: i64,
    },
    /// The machine of an instance is suspended: its monotonic clock stops too.
    Suspend {
        /// The instance.
        instance: usize,
        /// When.
        at: Time,
        /// For how long.
        lasts: Time,
    },
    /// A process stalls while its clocks go on.
    Freeze {
        /// The instance.
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
        /// The instance.
        instance: usize,
        /// When.
        at: Time,
        /// For how long.
        lasts: Time,
    },
    /// The API server refuses nearly every request, or every Event.
    Storm {
        /// What it answers.
        trouble: Trouble,
        /// When.
        at: Time,
        /// For how long.
        lasts: Time,
    },
    /// The API server lags behind its etcd: its view of a kind stalls, while it still sends bookmarks, ends watches and answers
    /// requests.
    Lagging {
        /// The watch of that kind.
        watch: Watch,
        /// When.
        at: Time,
        /// For how long.
        lasts: Time,
    },
    /// A watch delivers events late.
    WatchDelay {
        /// The watch.
        watch: Watch,
        /// When.
        at: Time,
        /// For how long.
        lasts: Time,
        /// How late.
        by: Time,
    },
    /// The API server cannot continue a watch, which restarts with a list.
    Expired {
        /// The watch.
        watch: Watch,
        /// When.
        at: Time,
    },
    /// The connection of a watch dies silently: nothing arrives until the watch is given up.
    SilentDeath {
        /// The watch.
        watch: Watch,
        /// When.
        at: Time,
    },
}

impl Fault {
    /// The fault's name.
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

    /// When it ends, where that is known in advance.
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
