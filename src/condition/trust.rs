//! What a rule believes: evidence that nobody has renewed for long, or that is from before a reboot, does not count.

use jiff::{SignedDuration, Timestamp};

use super::{Condition, Detail, Sightings};
use crate::api::{ConditionStatus, Duration};
use crate::object::NodeCondition;

/// How long after a reboot was seen evidence from before it may still be around: by then the kubelet has looked at
/// every pod again, and reporters have started.
const OLD_EVIDENCE_LIFETIME: SignedDuration = SignedDuration::from_mins(1);

/// What a rule asks of evidence before it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trust {
    /// How long the reporter of a condition may be silent.
    pub heartbeat_timeout: Option<Duration>,
    /// When the node was seen to have rebooted: what is from before does not count.
    pub rebooted: Option<Timestamp>,
}

impl Trust {
    /// Until when evidence from before a reboot is doubted, if it is at this time.
    pub(super) fn doubts_until(self, now: Timestamp) -> Option<Timestamp> {
        let until = self.rebooted?.checked_add(OLD_EVIDENCE_LIFETIME).ok()?;
        (now < until).then_some(until)
    }

    /// Whether evidence of this time is from before the reboot, if there was one.
    pub(super) fn is_from_before(self, time: Timestamp) -> bool {
        // The API tells times in whole seconds.
        self.rebooted
            .is_some_and(|rebooted| time.as_second() < rebooted.as_second())
    }

    /// What a condition on the Node is worth.
    pub(super) fn judge<'a>(
        self,
        condition: &'a NodeCondition,
        sightings: &Sightings,
        now: Timestamp,
    ) -> Condition<'a> {
        let kind = condition.kind.as_str();
        let reported = Condition {
            transition: condition.transition,
            ..Condition::new(
                condition.status,
                Detail::Reported {
                    reason: &condition.reason,
                    message: &condition.message,
                },
            )
        };
        if let (Some(rebooted), Some(until)) = (self.rebooted, self.doubts_until(now))
            && !sightings.written_since(kind, rebooted)
        {
            return Condition {
                recheck: Some(until),
                ..Condition::new(ConditionStatus::Unknown, Detail::WrittenBeforeReboot)
            };
        }
        let Some(timeout) = self.heartbeat_timeout else {
            return reported;
        };
        let stale_at = sightings
            .silent_since(kind)
            .and_then(|since| since.checked_add(timeout.as_std()).ok());
        match stale_at {
            Some(stale_at) if stale_at <= now => Condition {
                transition: Some(stale_at),
                ..Condition::new(
                    ConditionStatus::Unknown,
                    Detail::HeartbeatMissed { timeout },
                )
            },
            recheck => Condition {
                recheck,
                ..reported
            },
        }
    }
}
