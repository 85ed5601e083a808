//! What the reconcile loop does for nodes' published conditions: when they are due, and their writes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::announce::SETTLING;
use super::patch;
use super::reconcile::{Done, Reconciler};
use crate::engine::RequestError;
use crate::engine::{Backoff, Pauses};
use crate::object::NodeObject;
use crate::plan::{self, ConditionChanges, History, Urgency};

/// A published condition of which only reason and message change is written at most this often on one node.
const MESSAGE_INTERVAL: Duration = Duration::from_secs(5);

/// What is refused of all nodes alike.
const CONDITIONS: &str = "conditions";

/// What is under way for one node's published conditions.
#[derive(Debug, Default)]
pub(super) struct ConditionWork {
    pub(super) queued: bool,
    pub(super) writing: bool,
    retry: Backoff,
    /// How often the API server has refused them in a row.
    refusals: u32,
    /// It is the node's turn to try again what has been refused.
    pub(super) has_turn: bool,
    written_at: Option<Instant>,
    /// Since when the node should carry a condition that it has never had.
    wanted_since: Option<Instant>,
}

impl ConditionWork {
    /// What there is of it for another node of the same name: what is under way ends in its own time.
    pub(super) fn for_another_node(&self) -> Self {
        Self {
            queued: self.queued,
            writing: self.writing,
            ..Self::default()
        }
    }

    /// When these changes may be published; `None` where there are none, or a write will see to them.
    pub(super) fn due(&mut self, changes: &ConditionChanges<'_>) -> Option<Instant> {
        if changes.is_empty() {
            self.wanted_since = None;
            return None;
        }
        if self.queued || self.writing {
            return None;
        }
        let now = Instant::now();
        let spaced = match (changes.urgency(), self.written_at) {
            (Urgency::First, _) => *self.wanted_since.get_or_insert(now) + SETTLING,
            (Urgency::Detail, Some(written)) => written + MESSAGE_INTERVAL,
            _ => now,
        };
        Some(
            self.retry
                .not_before(now)
                .map_or(spaced, |at| at.max(spaced)),
        )
    }
}

impl Reconciler {
    /// Writes a node's published conditions, if there is still something to write.
    pub(super) fn publish_conditions(
        &mut self,
        name: &Arc<str>,
        now: Timestamp,
        leading_since: Timestamp,
    ) {
        self.cache.select_rules(name, now);
        let Some(state) = self.cache.node(name) else {
            return;
        };
        let may_close = self.may_close(name, state.selecting);
        let Some(work) = self.nodes.get_mut(name) else {
            return;
        };
        let left_alone = self.cache.left_alone(name).is_some();
        let conditions = &mut work.conditions;
        let has_turn = left_alone
            || std::mem::take(&mut conditions.has_turn)
            || self
                .condition_retries
                .turn(name, CONDITIONS, conditions.refusals, Instant::now());
        if !has_turn {
            // Queued still, until it has.
            return;
        }
        conditions.queued = false;
        if left_alone {
            return;
        }
        let history = History {
            is_known: work.is_known,
            looked: work.look.fresh(self.doubted, Instant::now()),
            memories: &work.memories,
            may_close: &may_close,
            watching_since: leading_since,
        };
        let changes = plan::plan(self.cache.cluster(), state, history, now).conditions;
        if changes.is_empty() {
            return;
        }
        work.conditions.writing = true;
        self.condition_writes += 1;
        let patch = patch::node_conditions(state.node, &changes, now);
        let (writer, name) = (self.writer.clone(), name.clone());
        self.start(async move {
            let result = writer.patch_node_conditions(&name, patch).await;
            Done::Conditions { name, result }
        });
    }

    pub(super) fn finish_conditions(
        &mut self,
        name: &Arc<str>,
        result: Result<NodeObject, RequestError>,
    ) {
        let Some(work) = self.nodes.get_mut(name) else {
            return;
        };
        let conditions = &mut work.conditions;
        conditions.writing = false;
        let clock = Instant::now();
        match result {
            Ok(node) => {
                conditions.retry = Backoff::default();
                let refusals = std::mem::take(&mut conditions.refusals);
                self.condition_retries
                    .carried_out(CONDITIONS, refusals, clock);
                conditions.written_at = Some(clock);
                conditions.wanted_since = None;
                self.cache.update_node(node, Timestamp::now());
            }
            // All wait for these together.
            Err(RequestError::Unreachable(_) | RequestError::Throttled { .. }) => {}
            Err(RequestError::Conflict | RequestError::Gone) => {
                conditions.retry.failed(Pauses::REFUSED, clock);
            }
            Err(error) => {
                conditions.retry.failed(Pauses::REFUSED, clock);
                self.condition_retries
                    .refused(CONDITIONS, conditions.refusals, clock);
                conditions.refusals = conditions.refusals.saturating_add(1);
                self.complain("cannot publish conditions", name, &error);
            }
        }
        self.cache.mark(name);
    }
}
