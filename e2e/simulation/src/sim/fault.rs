//! Faults, as values that are printed and read as JSON.

use std::fmt;

use nodegate_core::condition::ComponentGroup;
pub use nodegate_core::condition::Watch;
use nodegate_engine::election::LEASE_DURATION;
use serde::{Deserialize, Serialize};

use super::time::Time;

/// When a process dies: before its write arrives, or after the server has carried it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    Before,
    After,
}

/// What the API server answers in a storm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    pub const ALL: [Self; 6] = [
        Self::Conflict,
        Self::TooManyRequests,
        Self::InternalError,
        Self::Unavailable,
        Self::Timeout,
        Self::EventRateLimit,
    ];
}

/// A fault. Instances count from 0; so do the writes and the events of each, over all its lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fault {
    /// The process dies with this write and is down for a while. Other requests under way may arrive or not.
    Kill {
        instance: usize,
        write: usize,
        side: Side,
        #[serde(with = "ms")]
        down: Time,
    },
    /// The answer to a write is lost, whether the write was carried out (`done`) or not.
    AnswerLost {
        instance: usize,
        write: usize,
        done: bool,
    },
    /// A watch breaks off before this event, and restarts with a list after the next event of the same object: it never shows
    /// the state in between.
    Unobserved {
        instance: usize,
        #[serde(with = "watch")]
        watch: Watch,
        event: usize,
    },
    /// Something goes wrong at a certain time, and for as long as it lasts: zero for what takes no time.
    Timed {
        #[serde(with = "ms")]
        at: Time,
        #[serde(with = "ms")]
        lasts: Time,
        what: Incident,
    },
}

/// What goes wrong at a certain time. An incident that names no instance affects all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Incident {
    /// The process is told to stop, finishes its requests, releases the lease, and is down for this time.
    Stop(usize),
    /// The wall clock is set, by this many seconds. Takes no time.
    ClockStep(usize, i64),
    /// The machine is suspended: its monotonic clock stops too.
    Suspend(usize),
    /// The process stalls while its clocks go on.
    Freeze(usize),
    /// The instance cannot reach the API server.
    Partition(usize),
    /// Another instance takes the lease, and the leader does not notice.
    TwoLeaders,
    /// Somebody deletes the Lease. Takes no time.
    LeaseDeleted,
    /// The API server refuses nearly every request, or every Event.
    Storm(Trouble),
    /// A watch stalls: it shows nothing, however often it is restarted.
    Stale(#[serde(with = "watch")] Watch),
    /// The leader dies while a watch of all others stalls. Its lease runs out in the middle of the stall: the new leader starts
    /// with an older view.
    StaleStart(#[serde(with = "watch")] Watch),
    /// The API server lags behind its etcd: its view of the watch's kind stalls, while it still sends bookmarks, ends watches and
    /// answers requests.
    Lagging(#[serde(with = "watch")] Watch),
    /// A watch delivers events late by this.
    WatchDelay(#[serde(with = "watch")] Watch, #[serde(with = "ms")] Time),
    /// The API server cannot continue a watch, which restarts with a list. Takes no time.
    Expired(#[serde(with = "watch")] Watch),
    /// The connection of a watch dies silently: nothing arrives until the watch is given up. Takes no time by itself.
    SilentDeath(#[serde(with = "watch")] Watch),
}

impl Incident {
    /// As a fault that begins at this time.
    pub fn at(self, at: Time, lasts: Time) -> Fault {
        let what = self;
        Fault::Timed { at, lasts, what }
    }
}

impl Fault {
    /// What goes wrong at a certain time, when, and for how long.
    pub fn timed(&self) -> Option<(Incident, Time, Time)> {
        match *self {
            Self::Timed { at, lasts, what } => Some((what, at, lasts)),
            _ => None,
        }
    }

    /// When it ends, where that is known in advance.
    pub fn ends(&self) -> Option<Time> {
        let (what, at, lasts) = self.timed()?;
        Some(match what {
            Incident::StaleStart(_) => at + LEASE_DURATION + lasts / 2,
            Incident::WatchDelay(_, by) => at + lasts + by,
            _ => at + lasts,
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// Times as whole milliseconds.
mod ms {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::sim::time::{self, Time};

    pub(super) fn serialize<S: Serializer>(time: &Time, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(time.as_millis().try_into().unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
        u64::deserialize(from).map(time::ms)
    }
}

/// Watches by their names, such as `Pods(Class(0))`.
mod watch {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{ComponentGroup, Watch};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn serialize<S: Serializer>(watch: &Watch, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{watch:?}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Watch, D::Error> {
        let name = String::deserialize(from)?;
        let number = name
            .chars()
            .filter(char::is_ascii_digit)
            .collect::<String>();
        let number = number.parse().unwrap_or_default();
        let groups = [ComponentGroup::Class(number), ComponentGroup::Named(number)];
        let of_groups = groups.map(|group| {
            [
                Watch::Pods(group),
                Watch::DaemonSets(group),
                Watch::ResourceSlices(group),
            ]
        });
        let mut all = Watch::KINDS
            .into_iter()
            .chain(of_groups.into_iter().flatten());
        all.find(|watch| format!("{watch:?}") == name)
            .ok_or_else(|| D::Error::custom(format!("no watch {name:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::explore::faults::singles;
    use crate::sim::run::run;
    use crate::sim::scenarios;

    #[test]
    fn a_printed_fault_reads_back_the_same() {
        let mut all = scenarios::all().into_iter();
        let with_two_instances = all.find(|it| it.instances == 2).expect("there is one");
        let quiet = run(&with_two_instances, 1, &[], false);
        for fault in singles(&with_two_instances, &quiet) {
            let read: Fault = serde_json::from_str(&fault.to_string()).expect("it is printed");
            assert_eq!(read, fault);
        }
        assert!(serde_json::from_str::<Fault>(r#"{"instance": 0}"#).is_err());
    }
}
