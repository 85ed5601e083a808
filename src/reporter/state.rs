//! Decides which condition to write, and when: a state machine over outcomes and time. Pure: no client, no clock.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::outcome::CheckOutcome;
use nodegate_core::api::ConditionStatus;

/// How soon a condition is rewritten for its message alone: an endpoint that answers the time must not cost a write per check.
const MESSAGE_PAUSE: Duration = Duration::from_secs(60);

/// How many times per heartbeat the Node is re-read, to see whether it still has the condition.
const REREADS: u32 = 5;
/// The shortest time between two of these reads.
const MIN_REREAD_PAUSE: Duration = Duration::from_secs(5);

/// Settings that do not change while the reporter runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Policy {
    /// How many good checks in a row it takes to report `True`.
    pub(super) success_threshold: u32,
    /// How many bad checks in a row it takes to turn from `True` to `False`.
    pub(super) failure_threshold: u32,
    /// The time after which an unchanged condition is rewritten.
    pub(super) heartbeat: Duration,
    /// At least 0 and below 1, different for each reporter: it spreads the heartbeats of reporters that start together.
    pub(super) phase: f64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReportedCondition {
    pub(super) status: ConditionStatus,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) transition: Timestamp,
}

#[derive(Debug)]
pub(super) struct ReporterState {
    policy: Policy,
    /// The condition by the checks and thresholds; `None` before enough checks.
    current: Option<ReportedCondition>,
    /// Whether `current` rests on checks of this process. Nothing is written before, because readers take a write for news.
    is_checked: bool,
    /// The latest result (good or not), and how many checks in a row had it.
    streak: (bool, u32),
    published: Option<LastReport>,
}

#[derive(Debug)]
struct LastReport {
    condition: ReportedCondition,
    since: Instant,
    beat: Instant,
    /// When the Node was last known to have the condition.
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

    /// Resumes from the condition that an earlier process left on the Node during this boot; one from an earlier boot says
    /// nothing about what runs now. Checks that this process has already made count on top of it.
    pub(super) fn resume(&mut self, found: ReportedCondition) {
        if found.status == ConditionStatus::Unknown {
            return;
        }
        let keeps = !self.has_reached_threshold(found.status);
        match &mut self.current {
            // A check has already agreed: the transition predates this process.
            Some(current) if current.status == found.status => {
                current.transition = found.transition;
            }
            // Checks disagree, often enough to reach the threshold.
            Some(_) if !keeps => {}
            // Checks disagree, but not often enough yet; or there was none.
            _ => {
                self.current = Some(found);
                self.is_checked = false;
            }
        }
    }

    pub(super) fn observe(&mut self, outcome: &CheckOutcome, now: Timestamp) {
        let (status, reason, _) = outcome.finding.row();
        let good = status == ConditionStatus::True;
        self.streak = match self.streak {
            (was, length) if was == good => (good, length.saturating_add(1)),
            _ => (good, 1),
        };
        let (transition, believed) = match &self.current {
            Some(current) if current.status == status => (current.transition, true),
            Some(current) => (now, self.has_reached_threshold(current.status)),
            // The first failure counts at once: there is no earlier status to protect from flapping.
            None => (now, !good || self.streak.1 >= self.policy.success_threshold),
        };
        if believed {
            self.is_checked = true;
            self.current = Some(ReportedCondition {
                status,
                reason: reason.to_owned(),
                message: outcome.message.clone(),
                transition,
            });
        }
    }

    /// Whether enough checks in a row contradict a status to change it.
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
        // The first heartbeat comes early, by this reporter's phase; the others follow at equal intervals.
        let heartbeat = self.policy.heartbeat;
        let first = heartbeat.mul_f64(f64::midpoint(1.0, self.policy.phase));
        let pause = self.published.as_ref().map_or(first, |_| heartbeat);
        self.published = Some(LastReport {
            condition,
            since: now,
            beat: now + pause,
            seen: now,
        });
    }

    /// Whether to re-read the Node: one that was registered again lacks the condition, and would until the next heartbeat.
    pub(super) fn is_reread_due(&self, now: Instant) -> bool {
        let pause = (self.policy.heartbeat / REREADS).max(MIN_REREAD_PAUSE);
        let published = self.published.as_ref();
        published.is_some_and(|it| now.saturating_duration_since(it.seen) >= pause)
    }

    /// Records the status read from the Node. If it is not the one written, the condition is due.
    pub(super) fn reread(&mut self, there: Option<ConditionStatus>, now: Instant) {
        if let Some(published) = &mut self.published {
            published.seen = now;
            if there != Some(published.condition.status) {
                published.beat = now;
            }
        }
    }

    /// Whether this process has written `True` and the latest check agrees.
    pub(super) fn is_good(&self) -> bool {
        self.streak.0 && self.published_status() == Some(ConditionStatus::True)
    }

    pub(super) fn published_status(&self) -> Option<ConditionStatus> {
        Some(self.published.as_ref()?.condition.status)
    }
}
