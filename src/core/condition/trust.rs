//! What a rule trusts: evidence that has not been renewed for long, or is from before a reboot, does not count.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::detail::Detail;
use super::facts::Condition;
use super::observations::{NOT_RENEWED, Observations, Reboot};
use crate::api::{ConditionStatus, Duration};
use crate::object::NodeCondition;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trust<'a> {
    pub heartbeat_timeout: Option<Duration>,
    /// The condition types that reporters renew. Of another, which may be written once, silence means nothing.
    pub beating: Option<&'a BTreeSet<Arc<str>>>,
    /// Whether heartbeats can be observed at present. While they cannot, silence means nothing.
    pub sees_heartbeats: bool,
    /// The observed reboot, if any: evidence from before does not count.
    pub rebooted: Option<Reboot>,
    /// Whether the rule holds the node: the report of a reporter that may have been silent for long does not release it.
    pub is_held: bool,
}

impl<'a> Trust<'a> {
    /// Until when evidence from before a reboot does not count that does so only this long after it; `None` if it counts at this time.
    pub(super) fn distrusts_until(self, wait: SignedDuration, now: Timestamp) -> Option<Timestamp> {
        let until = self.rebooted?.seen.checked_add(wait).ok()?;
        (now < until).then_some(until)
    }

    /// Whether evidence of this time is from before a reboot, by the clock that it is from. API times have whole seconds.
    pub(super) fn is_from_before(self, time: Timestamp, by: fn(Reboot) -> Timestamp) -> bool {
        self.rebooted
            .is_some_and(|it| time.as_second() < by(it).as_second())
    }

    pub(super) fn assess(
        self,
        condition: &'a NodeCondition,
        observations: &Observations,
        now: Timestamp,
    ) -> Condition<'a> {
        let kind = &*condition.kind;
        let beats = self.beating.is_some_and(|it| it.contains(kind));
        let timeout = self.heartbeat_timeout.filter(|_| beats);
        let heartbeat = observations.heartbeat(kind);
        if self.rebooted.is_some() && !heartbeat.is_some_and(|it| it.in_this_boot) {
            let until = self.distrusts_until(NOT_RENEWED, now);
            // With a timeout, a reporter without a heartbeat since the reboot is dead; where none can be seen, that proves nothing.
            let may_be_believed = timeout.is_none() && self.sees_heartbeats;
            if until.is_some() || !may_be_believed {
                return Condition {
                    recheck: until.filter(|_| may_be_believed),
                    ..Condition::new(ConditionStatus::Unknown, Detail::WrittenBeforeReboot)
                };
            }
        }
        let said = Detail::Reported {
            reason: &condition.reason,
            message: &condition.message,
        };
        let reported = Condition {
            transition: condition.transition,
            ..Condition::new(condition.status, said)
        };
        let missed = |timeout| {
            let detail = Detail::HeartbeatMissed { timeout };
            Condition::new(ConditionStatus::Unknown, detail)
        };
        if let Some(timeout) = timeout.filter(|_| self.is_held)
            && let Ok(oldest) = now.checked_sub(timeout.as_std())
            && let Ok(newest) = now.checked_add(timeout.as_std())
            && heartbeat.is_some_and(|it| it.is_unproven(&(oldest..=newest)))
        {
            return missed(timeout);
        }
        let Some(timeout) = timeout.filter(|_| self.sees_heartbeats) else {
            return reported;
        };
        let stale_at =
            heartbeat.and_then(|it| it.silent_since().checked_add(timeout.as_std()).ok());
        match stale_at {
            Some(stale_at) if stale_at <= now => Condition {
                transition: Some(stale_at),
                ..missed(timeout)
            },
            recheck => Condition {
                recheck,
                ..reported
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::testing::{at, node};

    /// What a rule trusts after that reboot.
    fn trust(heartbeat_timeout: Option<Duration>, sees_heartbeats: bool) -> Trust<'static> {
        static BEATING: LazyLock<BTreeSet<Arc<str>>> = LazyLock::new(|| ["Net".into()].into());
        Trust {
            heartbeat_timeout,
            beating: Some(&BEATING),
            sees_heartbeats,
            rebooted: Some(Reboot {
                seen: at(100),
                older: at(100),
                older_by_kubelet: at(100),
            }),
            is_held: false,
        }
    }

    /// A node that reboots [`at`]`(100)`, whose condition is written at this time, and observed from `followed_at`.
    fn rebooted(written_at: i64, followed_at: i64) -> Observations {
        let followed = BTreeSet::from(["Net".into()]);
        let nobody = BTreeSet::new();
        let mut observations = Observations::default();
        for (boot, seconds) in [("a", 0), ("b", 100), ("b", followed_at)] {
            let mut node = node("n").condition("Net", "True").boot_id(boot).build();
            node.conditions[0].heartbeat = Some(at(written_at));
            let followed = if seconds >= followed_at {
                &followed
            } else {
                &nobody
            };
            observations.see(None, &node, followed, at(seconds));
        }
        observations
    }

    #[test]
    fn a_condition_from_before_a_reboot_is_believed_late_or_never() {
        const MINUTE: i64 = 60;
        let condition = node("n").condition("Net", "True").build().conditions[0].clone();
        let timeout: Duration = "10m".parse().unwrap();
        #[rustfmt::skip]
        let cases = [
            ("at once", 0, None, true, 0, false, Some(6 * MINUTE)),
            ("a minute after", 0, None, true, 60, false, Some(6 * MINUTE)),
            ("six minutes after", 0, None, true, 6 * MINUTE, true, None),
            ("while nothing is seen", 0, None, false, 60 * MINUTE, false, None),
            ("it ought to beat", 0, Some(timeout), true, 6 * MINUTE, false, None),
            ("it ought to beat, long after", 0, Some(timeout), true, 60 * MINUTE, false, None),
            ("nobody wanted to know then", 100 + 59 * MINUTE, Some(timeout), true, 60 * MINUTE, true, Some(69 * MINUTE)),
        ];
        for (name, followed_at, timeout, sees_heartbeats, after, believed, recheck) in cases {
            let trust = trust(timeout, sees_heartbeats);
            let observations = rebooted(99, followed_at);
            let assessed = trust.assess(&condition, &observations, at(100 + after));
            assert_eq!(assessed.status == ConditionStatus::True, believed, "{name}");
            let recheck = recheck.map(|after| at(100 + after));
            assert_eq!(assessed.recheck, recheck, "{name}");
        }
    }

    #[test]
    fn what_a_rule_begins_to_wait_for_after_a_reboot_says_itself_whether_it_is_of_this_boot() {
        let condition = node("n").condition("Net", "True").build().conditions[0].clone();
        let trust = trust(None, true);
        for (written_at, believed) in [(99, false), (100, false), (101, true)] {
            let assessed = trust.assess(&condition, &rebooted(written_at, 130), at(130));
            assert_eq!(
                assessed.status == ConditionStatus::True,
                believed,
                "{written_at}"
            );
        }
    }
}
