//! Publishes conditions on nodes: when they are due, and their writes.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::warn;

use super::announce::SETTLING;
use super::effects::{Effects, Purpose};
use super::error::RequestError;
use super::io::Request;
use super::pacer::{AfterWrite, Class, Contention, Undone, WriteSlot};
use super::patch;
use crate::object::Node;
use crate::plan::{ConditionChanges, NewCondition, Urgency};

/// If only reason or message of a published condition change, a node is written at most this often.
const MESSAGE_INTERVAL: Duration = Duration::from_secs(5);

/// The state of one node's published conditions.
#[derive(Debug, Default)]
pub struct ConditionWork {
    queued: bool,
    /// The conditions that the write under way changes, by type.
    slot: WriteSlot<Vec<(Box<str>, Made)>>,
    written_at: Option<Instant>,
    /// Since when the node has lacked something that may arrive within a moment.
    wanted_since: Option<Instant>,
    /// What someone else keeps undoing.
    contention: Contention<Box<str>, Made>,
}

/// A hash of the condition that a write sets; `None` if it removes the condition.
type Made = Option<u64>;

/// Nodes that wait for a write that yields to others, oldest first.
#[derive(Debug, Default)]
pub struct NodeQueue(VecDeque<Arc<str>>);

impl NodeQueue {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn next(&mut self) -> Option<Arc<str>> {
        self.0.pop_front()
    }

    pub fn last(&mut self, name: Arc<str>) {
        self.0.push_back(name);
    }
}

impl ConditionWork {
    /// The state for another node of the same name. A write under way stays in the slot until it ends.
    pub fn for_another_node(&mut self) -> Self {
        let mut other = Self {
            queued: self.queued,
            ..Self::default()
        };
        if self.slot.take().is_some() {
            other.slot.begin(Vec::new());
        }
        other
    }

    pub fn is_writing(&self) -> bool {
        self.slot.is_under_way()
    }

    /// Notes that the node has left the queue.
    pub fn unqueued(&mut self) {
        self.queued = false;
    }

    /// Publishes these changes if they are due and the limits allow it now; otherwise schedules that.
    pub fn publish(
        &mut self,
        node: &Node,
        mut changes: ConditionChanges<'_>,
        is_busy: bool,
        queue: &mut NodeQueue,
        out: &mut Effects,
    ) {
        let now = out.now.monotonic;
        if let Some(at) = self.hold_back(&mut changes, now) {
            out.timers.wake_node(&node.name, at);
        }
        let Some(due) = self.due(&changes, now) else {
            return;
        };
        if due > now {
            out.timers.wake_node(&node.name, due);
            return;
        }
        if !out.pacer.may_publish(Class::Conditions, is_busy, now) {
            self.queued = true;
            queue.last(node.name.clone());
            return;
        }
        self.slot.begin(made(&changes).collect());
        let request = Request::PatchNodeStatus {
            name: node.name.clone(),
            patch: patch::node_conditions(node, &changes, out.now.wall),
        };
        out.ask(Purpose::Conditions(node.name.clone()), request);
    }

    /// Removes the changes that someone else keeps undoing; returns when the first of them may be made again.
    fn hold_back(&mut self, changes: &mut ConditionChanges<'_>, now: Instant) -> Option<Instant> {
        if self.contention.is_empty() {
            return None;
        }
        self.contention.forget(now, |_, _| false);
        let until = |kind: &str, made| self.contention.not_before(|it| **it == *kind, made, now);
        let later = made(changes)
            .filter_map(|(kind, made)| until(&kind, made))
            .min();
        let set = |it: &NewCondition<'_>| until(it.kind, Some(words(it))).is_none();
        changes.set.retain(set);
        changes.withdraw.retain(|kind| until(kind, None).is_none());
        later
    }

    /// When to publish these changes; `None` if there are none, or if the node is already queued.
    fn due(&mut self, changes: &ConditionChanges<'_>, now: Instant) -> Option<Instant> {
        if changes.is_empty() {
            self.wanted_since = None;
            return None;
        }
        if self.queued || self.slot.is_under_way() {
            return None;
        }
        let spaced = match (changes.urgency(), self.written_at) {
            (Urgency::Unsettled, _) => *self.wanted_since.get_or_insert(now) + SETTLING,
            (Urgency::Detail, Some(written)) => written + MESSAGE_INTERVAL,
            _ => now,
        };
        let after_pause = self.slot.not_before(now);
        Some(after_pause.map_or(spaced, |at| at.max(spaced)))
    }

    /// Lets a refused write be retried at this time.
    pub fn retry_at(&mut self, at: Instant) {
        self.slot.retry_at(at);
    }

    /// Handles the answer to a write.
    pub fn answered(&mut self, name: &Arc<str>, error: Option<&RequestError>, out: &mut Effects) {
        let now = out.now.monotonic;
        let refusals = self.slot.refusals();
        let Some((writes, verdict)) = self.slot.ended(error, now) else {
            return;
        };
        match (verdict, error) {
            (AfterWrite::Done, _) => {
                for (kind, made) in writes {
                    let undone = self.contention.made(kind.clone(), made, &kind, now);
                    if let Some(Undone::TooOften { .. }) = undone {
                        warn!(node = %name, condition = %kind, "another client keeps changing the condition that is published");
                    }
                }
                if refusals > 0 {
                    out.pacer.refused.went_through(Class::Conditions, name, now);
                }
                self.written_at = Some(now);
                self.wanted_since = None;
            }
            (AfterWrite::Refused { before, .. }, Some(error)) => {
                let refused = &mut out.pacer.refused;
                if let Some(at) = refused.refused(Class::Conditions, name, before, now) {
                    self.slot.wait_until(at);
                }
                out.pacer
                    .complain("cannot publish conditions", name, error, now);
            }
            _ => {}
        }
    }
}

/// What these changes do to each condition.
fn made(changes: &ConditionChanges<'_>) -> impl Iterator<Item = (Box<str>, Made)> {
    let set = changes.set.iter().map(|it| (it.kind, Some(words(it))));
    let withdrawn = changes.withdraw.iter().map(|kind| (*kind, None));
    set.chain(withdrawn).map(|(kind, made)| (kind.into(), made))
}

/// A hash of a condition.
fn words(condition: &NewCondition<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (
        condition.status.as_str(),
        condition.reason,
        &condition.message,
    )
        .hash(&mut hasher);
    hasher.finish()
}
