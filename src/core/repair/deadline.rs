//! The readiness deadline of a node under a rule. It is recorded on the node, and later changes of the TTL do not move it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::api::names::READY_DEADLINE_PREFIX;
use crate::object::Node;

/// A node that is first seen gated this soon after it joined has been observed all the time. Shorter than any TTL.
const PROMPT: SignedDuration = SignedDuration::from_secs(30);
/// The recorded value of a node without a limit.
const NEVER: &str = "never";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deadline {
    At(Timestamp),
    Never,
}

impl Deadline {
    /// Key of the annotation with the deadline under the rule with this UID.
    pub fn key(rule_uid: &str) -> String {
        format!("{READY_DEADLINE_PREFIX}{rule_uid}")
    }

    /// The deadline of a node first seen gated at `now`: counted from when it `joined` a cluster with the rule (the later of both
    /// creations), but from `now` if not observed since: it joined before `watching_since`, under a dry run, or with other labels.
    pub fn first(
        joined: Option<Timestamp>,
        watching_since: Timestamp,
        now: Timestamp,
        ttl: Duration,
    ) -> Self {
        // Times of creation are in whole seconds.
        let was_watched = |joined: &Timestamp| {
            joined.as_second() >= watching_since.as_second()
                && now.duration_since(*joined) <= PROMPT
        };
        Self::after(joined.filter(was_watched).unwrap_or(now), ttl)
    }

    /// This long after a time; never, if that exceeds the calendar.
    pub fn after(since: Timestamp, ttl: Duration) -> Self {
        since.checked_add(ttl).map_or(Self::Never, Self::At)
    }

    /// Moves it by as much as the clock was set.
    pub fn later_by(self, step: SignedDuration) -> Self {
        match self {
            Self::At(at) => at.checked_add(step).map_or(Self::Never, Self::At),
            Self::Never => Self::Never,
        }
    }

    /// The recorded deadline of a node under the rule with this UID. An unreadable record counts as none.
    pub fn recorded(node: &Node, rule_uid: &str) -> Option<Self> {
        match node.annotation(&Self::key(rule_uid))? {
            NEVER => Some(Self::Never),
            text => text.parse().ok().map(Self::At),
        }
    }

    /// UIDs of the rules under which the node has a recorded deadline.
    pub fn rules(node: &Node) -> impl Iterator<Item = &str> {
        let records = node.annotations_about(READY_DEADLINE_PREFIX);
        records.map(|(uid, _)| uid)
    }

    /// The annotation's value: whole seconds, rounded up.
    pub fn value(self) -> String {
        match self {
            Self::At(at) => {
                let seconds = at.as_second() + i64::from(at.subsec_nanosecond() > 0);
                Timestamp::from_second(seconds).unwrap_or(at).to_string()
            }
            Self::Never => NEVER.into(),
        }
    }

    pub fn has_passed(self, now: Timestamp) -> bool {
        self <= Self::At(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Builder, at, node};

    #[test]
    fn what_is_written_is_read_again() {
        for (value, deadline) in [
            ("2026-01-01T00:15:00Z", Some(Deadline::At(at(900)))),
            ("2026-01-01T01:15:00+01:00", Some(Deadline::At(at(900)))),
            ("never", Some(Deadline::Never)),
            ("soon", None),
            ("", None),
        ] {
            let node = node("n").annotation(&Deadline::key("r"), value).build();
            assert_eq!(Deadline::recorded(&node, "r"), deadline, "{value}");
            assert_eq!(Deadline::recorded(&node, "s"), None);
        }
        let fraction = at(900).checked_sub(Duration::from_millis(1)).unwrap();
        assert_eq!(Deadline::At(fraction).value(), "2026-01-01T00:15:00Z");
        assert_eq!(Deadline::At(at(900)).value(), "2026-01-01T00:15:00Z");
        assert_eq!(Deadline::Never.value(), "never");
    }

    #[test]
    fn a_ttl_beyond_the_calendar_never_ends() {
        let end = Deadline::after(at(0), Duration::from_secs(u64::MAX));
        assert_eq!(end, Deadline::Never);
        assert!(!end.has_passed(Timestamp::MAX));
    }
}
