//! Nodes' published conditions: when they are due, and their writes.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::warn;

use super::announce::SETTLING;
use super::effects::{Effects, Purpose};
use super::error::RequestError;
use super::io::Request;
use super::pacer::{Contention, Undone, Verdict, WriteSlot};
use super::patch;
use crate::object::Node;
use crate::plan::{ConditionChanges, NewCondition, Urgency};

/// A published condition of which only reason and message change is written at most this often on one node.
const MESSAGE_INTERVAL: Duration = Duration::from_secs(5);

/// What is refused of all nodes alike.
const CONDITIONS: &str = "conditions";

/// What is under way for one node's published conditions.
#[derive(Debug, Default)]
pub struct ConditionWork {
    queued: bool,
    /// What the write that is under way makes of conditions, by their types.
    slot: WriteSlot<Vec<(Box<str>, Made)>>,
    written_at: Option<Instant>,
    /// Since when the node lacks something that it may have in a moment.
    wanted_since: Option<Instant>,
    /// What somebody else keeps undoing.
    contention: Contention<Box<str>, Made>,
}

/// What a write makes of a condition: what it says then, as a number; `None` where it is withdrawn.
type Made = Option<u64>;

/// The nodes whose conditions wait to be published.
#[derive(Debug, Default)]
pub struct ConditionQueue(VecDeque<Arc<str>>);

impl ConditionQueue {
    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the next one.
    pub fn next(&mut self) -> Option<Arc<str>> {
        self.0.pop_front()
    }

    /// Has this node go first: it is its turn to try again what has been refused.
    pub fn first(&mut self, name: Arc<str>) {
        self.0.push_front(name);
    }
}

impl ConditionWork {
    /// What there is of it for another node of the same name: what is under way ends in its own time.
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

    /// Whether a write is under way.
    pub fn is_writing(&self) -> bool {
        self.slot.is_under_way()
    }

    /// Takes in that the node has left the queue.
    pub fn unqueued(&mut self) {
        self.queued = false;
    }

    /// Publishes these changes if it is time and the node's turn; else has that done later.
    pub fn publish(
        &mut self,
        node: &Node,
        mut changes: ConditionChanges<'_>,
        is_busy: bool,
        queue: &mut ConditionQueue,
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
        if !out.pacer.may_publish(is_busy, now) {
            self.queued = true;
            queue.0.push_back(node.name.clone());
            return;
        }
        let retries = &mut out.pacer.conditions;
        if !retries.turn(&node.name, CONDITIONS, self.slot.refusals(), now) {
            // It waits there until it has.
            self.queued = true;
            return;
        }
        self.slot.begin(made(&changes).collect());
        let request = Request::PatchNodeStatus {
            name: node.name.clone(),
            patch: patch::node_conditions(node, &changes, out.now.wall),
        };
        out.ask(Purpose::Conditions(node.name.clone()), request);
    }

    /// Takes those of the changes away that somebody else keeps undoing; answers when the first of them is made again.
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

    /// When these changes may be published; `None` where there are none, or they wait already.
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

    /// Takes in how a write has ended.
    pub fn answered(&mut self, name: &Arc<str>, error: Option<&RequestError>, out: &mut Effects) {
        let now = out.now.monotonic;
        let refusals = self.slot.refusals();
        let Some((writes, verdict)) = self.slot.ended(error, now) else {
            return;
        };
        let retries = &mut out.pacer.conditions;
        match (verdict, error) {
            (Verdict::Done, _) => {
                for (kind, made) in writes {
                    let undone = self.contention.made(kind.clone(), made, &kind, now);
                    if let Some(Undone::TooOften { .. }) = undone {
                        warn!(node = %name, condition = %kind, "somebody else keeps changing the condition that is published");
                    }
                }
                retries.carried_out(name, CONDITIONS, refusals, now);
                self.written_at = Some(now);
                self.wanted_since = None;
            }
            (Verdict::Refused { before, .. }, Some(error)) => {
                retries.refused(name, CONDITIONS, before, now);
                out.pacer
                    .complain("cannot publish conditions", name, error, now);
            }
            _ => retries.failed(name),
        }
    }
}

/// What these changes make of each condition.
fn made(changes: &ConditionChanges<'_>) -> impl Iterator<Item = (Box<str>, Made)> {
    let set = changes.set.iter().map(|it| (it.kind, Some(words(it))));
    let withdrawn = changes.withdraw.iter().map(|kind| (*kind, None));
    set.chain(withdrawn).map(|(kind, made)| (kind.into(), made))
}

/// What a condition says, as a number.
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
