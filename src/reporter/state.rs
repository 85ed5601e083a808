//! Which condition to write, and when: a state machine over what checks find and time. Pure: no client, no clock.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::outcome::CheckOutcome;
use crate::api::ConditionStatus;

/// How soon a condition is written again if only its message has changed. Otherwise a health endpoint that answers with the time
/// of day would cost a write for each check.
const MESSAGE_PAUSE: Duration = Duration::from_secs(60);

/// How many times within a heartbeat the Node is read, to see whether it still has the condition.
const LOOKS: u32 = 5;
/// The shortest time between two of these.
const MIN_LOOK_PAUSE: Duration = Duration::from_secs(5);

/// What does not change while the reporter runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Policy {
    /// How many good checks in a row it takes for `True`.
    pub(super) success_threshold: u32,
    /// How many bad checks in a row it takes to turn from `True` to `False`.
    pub(super) failure_threshold: u32,
    /// After this long, an unchanged condition is written again.
    pub(super) heartbeat: Duration,
    /// From 0 up to 1, another for each reporter: it spreads the heartbeats of reporters that start together.
    pub(super) phase: f64,
}

/// A condition, as this reporter knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReportedCondition {
    pub(super) status: ConditionStatus,
    pub(super) reason: String,
    pub(super) message: String,
    /// When the status changed last.
    pub(super) transition: Timestamp,
}

#[derive(Debug)]
pub(super) struct ReporterState {
    policy: Policy,
    /// What the checks say, by the thresholds. `None` until they have said something.
    current: Option<ReportedCondition>,
    /// Whether checks of this process have said so. Nothing is written before that: readers take a write for news.
    is_checked: bool,
    /// How many checks in a row have said so, and what.
    streak: (bool, u32),
    published: Option<PublishedCondition>,
}

#[derive(Debug)]
struct PublishedCondition {
    condition: ReportedCondition,
    since: Instant,
    /// When it is written again, changed or not.
    beat: Instant,
    /// When the Node was last known to have it.
    seen: Instant,
}

impl ReporterState {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            current: None,
            is_checked: false,
            streak: (false, 0),
            published: None,
        }
    }

    /// Carries on from the condition that an earlier process has left on the Node in this boot of its machine; one of an earlier
    /// boot says nothing about what runs now. Checks that this process has made already count on top of it.
    pub(super) fn resume(&mut self, found: ReportedCondition) {
        if found.status == ConditionStatus::Unknown {
            return;
        }
        let keeps = !self.has_reached_threshold(found.status);
        match &mut self.current {
            // A check has spoken already, and agrees: the transition was before this process.
            Some(current) if current.status == found.status => {
                current.transition = found.transition;
            }
            // It disagrees, as often as it takes.
            Some(_) if !keeps => {}
            // It disagrees, but has to do so again; or none has spoken yet.
            _ => {
                self.current = Some(found);
                self.is_checked = false;
            }
        }
    }

    /// Takes in what a check has found that ended just now.
    pub(super) fn observe(&mut self, outcome: &CheckOutcome, now: Timestamp) {
        let good = outcome.is_good();
        self.streak = match self.streak {
            (was, length) if was == good => (good, length.saturating_add(1)),
            _ => (good, 1),
        };
        let status = outcome.finding.status();
        let (transition, believed) = match &self.current {
            Some(current) if current.status == status => (current.transition, true),
            Some(current) => (now, self.has_reached_threshold(current.status)),
            // The first failure is believed at once: there is no earlier status to give up for it.
            None => (now, !good || self.streak.1 >= self.policy.success_threshold),
        };
        if believed {
            self.is_checked = true;
            self.current = Some(ReportedCondition {
                status,
                reason: outcome.finding.reason().to_owned(),
                message: outcome.message.clone(),
                transition,
            });
        }
    }

    /// Whether the checks have spoken against a status often enough to turn it.
    fn has_reached_threshold(&self, status: ConditionStatus) -> bool {
        let (good, length) = self.streak;
        let needed = match status {
            ConditionStatus::True if good => return false,
            ConditionStatus::True => self.policy.failure_threshold,
            _ if good => self.policy.success_threshold,
            _ => return false,
        };
        length >= needed
    }

    /// The condition to write now, if any.
    pub(super) fn due(&self, now: Instant) -> Option<&ReportedCondition> {
        let current = self.current.as_ref().filter(|_| self.is_checked)?;
        let Some(published) = &self.published else {
            return Some(current);
        };
        let there = &published.condition;
        let changed = (there.status, &there.reason) != (current.status, &current.reason);
        let reworded = there.message != current.message
            && now.saturating_duration_since(published.since) >= MESSAGE_PAUSE;
        (changed || reworded || now >= published.beat).then_some(current)
    }

    pub(super) fn published(&mut self, condition: ReportedCondition, now: Instant) {
        // The first heartbeat comes early, by this reporter's phase, and the others follow at equal distances.
        let pause = match self.published {
            Some(_) => self.policy.heartbeat,
            None => self
                .policy
                .heartbeat
                .mul_f64(f64::midpoint(1.0, self.policy.phase)),
        };
        self.published = Some(PublishedCondition {
            condition,
            since: now,
            beat: now + pause,
            seen: now,
        });
    }

    /// Whether it is time to see if the Node still has what was written: one that was deleted and registered again has lost it,
    /// and would wait for the next heartbeat.
    pub(super) fn is_look_due(&self, now: Instant) -> bool {
        let pause = (self.policy.heartbeat / LOOKS).max(MIN_LOOK_PAUSE);
        self.published
            .as_ref()
            .is_some_and(|published| now.saturating_duration_since(published.seen) >= pause)
    }

    /// Takes in which status the Node has. Where it is not the one that was written, the condition is due.
    pub(super) fn looked(&mut self, there: Option<ConditionStatus>, now: Instant) {
        if let Some(published) = &mut self.published {
            published.seen = now;
            if there != Some(published.condition.status) {
                published.beat = now;
            }
        }
    }

    /// Whether this process has written `True`, and the latest check does too.
    pub(super) fn is_good(&self) -> bool {
        self.streak.0 && self.published_status() == Some(ConditionStatus::True)
    }

    /// The status that this process has written.
    pub(super) fn published_status(&self) -> Option<ConditionStatus> {
        Some(self.published.as_ref()?.condition.status)
    }
}
