//! Publishes conditions on nodes: when they are due, and their writes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::warn;

use super::announce::EVENT_DELAY;
use super::attempt::{Attempt, Change, Part, Parts};
use super::error::RequestError;
use super::io::Request;
use super::map;
use super::outbox::{Job, Outbox};
use super::pacer::Class;
use super::patch;
use super::schedule::Why;
use nodegate_core::object::Node;
use nodegate_core::plan::{ConditionChanges, NewCondition, Urgency};

/// If only reason or message of a published condition change, a node is written at most this often.
const MESSAGE_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub struct ConditionWork {
    pub attempt: Attempt,
    /// What the write under way changes.
    changes: Vec<(Part, Change)>,
    written_at: Option<Instant>,
    /// Since when the node has lacked something that may arrive within a moment.
    wanted_since: Option<Instant>,
    parts: Parts,
}

impl ConditionWork {
    /// Publishes these changes if they are due and the limits allow it now; otherwise schedules that.
    pub fn publish(
        &mut self,
        node: &Node,
        mut changes: ConditionChanges<'_>,
        is_busy: bool,
        out: &mut Outbox,
    ) {
        let now = out.now.monotonic;
        if let Some(at) = self.hold_back(&mut changes, now) {
            out.evaluate_again(at, Why::Retry);
        }
        let Some(due) = self.due(&changes, now) else {
            return;
        };
        let job = Job::Conditions(node.name.clone());
        if due > now || out.is_due(&job) || !out.pacer.may_publish(Class::Conditions, is_busy, now)
        {
            out.want(job, due);
            return;
        }
        out.forget(&job);
        self.attempt.under_way = true;
        self.changes = parts(&changes).collect();
        let patch = patch::conditions(node, &changes, out.now.wall);
        let request = Request::PatchNodeStatus(node.name.clone(), patch);
        out.ask(job, request);
    }

    /// Removes the changes that someone else keeps undoing; returns when the first of them may be made again.
    fn hold_back(&mut self, changes: &mut ConditionChanges<'_>, now: Instant) -> Option<Instant> {
        self.parts.forget(|_| true, |_, _| false, now);
        if self.parts.is_empty() {
            return None;
        }
        let until = |part: &Part, change| self.parts.not_before(part, change, now);
        let later = parts(changes).filter_map(|(part, change)| until(&part, change));
        let later = later.min();
        let set = |it: &NewCondition<'_>| until(&part(it.kind), Some(hash(it))).is_none();
        changes.set.retain(set);
        let withdraw = |kind: &&str| until(&part(kind), None).is_none();
        changes.withdraw.retain(withdraw);
        later
    }

    /// When to publish these changes; `None` if there are none, or while others are being written.
    fn due(&mut self, changes: &ConditionChanges<'_>, now: Instant) -> Option<Instant> {
        if changes.is_empty() {
            self.wanted_since = None;
            return None;
        }
        if self.attempt.under_way {
            return None;
        }
        let spaced = match (changes.urgency(), self.written_at) {
            (Urgency::Unsettled, _) => *self.wanted_since.get_or_insert(now) + EVENT_DELAY,
            (Urgency::Detail, Some(written)) => written + MESSAGE_INTERVAL,
            _ => now,
        };
        let after_pause = self.attempt.backoff.not_before(now);
        Some(after_pause.map_or(spaced, |at| at.max(spaced)))
    }

    pub fn answered(&mut self, name: &Arc<str>, error: Option<&RequestError>, out: &mut Outbox) {
        let now = out.now.monotonic;
        let changes = std::mem::take(&mut self.changes);
        out.pacer
            .ended(Class::Conditions, name, &mut self.attempt, error, now);
        if error.is_some() {
            return;
        }
        for (part, change) in changes {
            let undone = self.parts.get_mut(&part).made(change, "", now);
            if undone.is_some_and(|it| it.is_news()) {
                warn!(node = %name, ?part, "another client keeps changing the condition that is published: where two Nodegates run, give both --leader-elect");
            }
        }
        self.written_at = Some(now);
        self.wanted_since = None;
    }
}

fn part(kind: &str) -> Part {
    Part::Condition(kind.into())
}

fn parts(changes: &ConditionChanges<'_>) -> impl Iterator<Item = (Part, Change)> {
    let set = changes.set.iter().map(|it| (part(it.kind), Some(hash(it))));
    let withdrawn = changes.withdraw.iter().map(|kind| (part(kind), None));
    set.chain(withdrawn)
}

fn hash(it: &NewCondition<'_>) -> u64 {
    map::hash((it.status.as_str(), it.reason, &it.message))
}
