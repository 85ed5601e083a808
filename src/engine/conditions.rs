//! Nodes' published conditions: when they are due, and their writes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::announce::SETTLING;
use super::error::RequestError;
use super::io::Request;
use super::outbox::{Outbox, Purpose};
use super::patch;
use super::turns::{Backoff, Pauses};
use crate::object::Node;
use crate::plan::{ConditionChanges, Urgency};

/// A published condition of which only reason and message change is written at most this often on one node.
const MESSAGE_INTERVAL: Duration = Duration::from_secs(5);

/// What is refused of all nodes alike.
const CONDITIONS: &str = "conditions";

/// What is under way for one node's published conditions.
#[derive(Debug, Default)]
pub struct ConditionWork {
    queued: bool,
    writing: bool,
    retry: Backoff,
    /// How often the API server has refused them in a row.
    refusals: u32,
    /// It is the node's turn to try again what has been refused.
    has_turn: bool,
    written_at: Option<Instant>,
    /// Since when the node lacks something that it may have in a moment.
    wanted_since: Option<Instant>,
}

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
    pub fn for_another_node(&self) -> Self {
        Self {
            queued: self.queued,
            writing: self.writing,
            ..Self::default()
        }
    }

    /// Whether a write is under way.
    pub fn is_writing(&self) -> bool {
        self.writing
    }

    /// Takes in that it is the node's turn to try again what has been refused.
    pub fn take_turn(&mut self) {
        self.has_turn = true;
    }

    /// Takes in that the node has left the queue.
    pub fn unqueued(&mut self) {
        self.queued = false;
    }

    /// Publishes these changes if it is time and the node's turn; else has that done later.
    pub fn publish(
        &mut self,
        node: &Node,
        changes: &ConditionChanges<'_>,
        is_busy: bool,
        queue: &mut ConditionQueue,
        out: &mut Outbox,
    ) {
        let now = out.now.monotonic;
        let Some(due) = self.due(changes, now) else {
            return;
        };
        if due > now {
            out.timers.wake_node(&node.name, due);
            return;
        }
        if !out.turns.may_publish(is_busy, now) {
            self.queued = true;
            queue.0.push_back(node.name.clone());
            return;
        }
        let retries = &mut out.turns.conditions;
        if !std::mem::take(&mut self.has_turn)
            && !retries.turn(&node.name, CONDITIONS, self.refusals, now)
        {
            // It waits there until it has.
            self.queued = true;
            return;
        }
        self.writing = true;
        let request = Request::PatchNodeStatus {
            name: node.name.clone(),
            patch: patch::node_conditions(node, changes, out.now.wall),
        };
        out.ask(Purpose::Conditions(node.name.clone()), request);
    }

    /// When these changes may be published; `None` where there are none, or they wait already.
    fn due(&mut self, changes: &ConditionChanges<'_>, now: Instant) -> Option<Instant> {
        if changes.is_empty() {
            self.wanted_since = None;
            return None;
        }
        if self.queued || self.writing {
            return None;
        }
        let spaced = match (changes.urgency(), self.written_at) {
            (Urgency::Unsettled, _) => *self.wanted_since.get_or_insert(now) + SETTLING,
            (Urgency::Detail, Some(written)) => written + MESSAGE_INTERVAL,
            _ => now,
        };
        let after_pause = self.retry.not_before(now);
        Some(after_pause.map_or(spaced, |at| at.max(spaced)))
    }

    /// Takes in how a write has ended.
    pub fn answered(&mut self, name: &str, error: Option<&RequestError>, out: &mut Outbox) {
        self.writing = false;
        let now = out.now.monotonic;
        match error {
            None => {
                self.retry = Backoff::default();
                let refusals = std::mem::take(&mut self.refusals);
                out.turns.conditions.carried_out(CONDITIONS, refusals, now);
                self.written_at = Some(now);
                self.wanted_since = None;
            }
            // All wait for these together.
            Some(RequestError::Unreachable(_) | RequestError::Throttled { .. }) => {}
            Some(RequestError::Conflict | RequestError::Gone) => {
                self.retry.failed(Pauses::REFUSED, now);
            }
            Some(error) => {
                self.retry.failed(Pauses::REFUSED, now);
                out.turns.conditions.refused(CONDITIONS, self.refusals, now);
                self.refusals = self.refusals.saturating_add(1);
                out.turns
                    .complain("cannot publish conditions", name, error, now);
            }
        }
    }
}
