//! Repairs that do not help: new nodes lack the same condition. Each doubles the wait; after three, repair waits for a ready node.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::Setback;
use crate::object::{Node, NodePool};

/// After this many replacements that lacked the same condition, nothing is replaced any more.
const MOST: i32 = 3;
const LONGEST: SignedDuration = SignedDuration::from_hours(24);

/// Why a node is not replaced (yet).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Futile<'a> {
    pub condition: &'a str,
    /// How many replacements lacked it, this node included.
    pub missed: usize,
    /// When the next may be replaced; `None` for never.
    pub until: Option<Timestamp>,
}

impl fmt::Display for Futile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "missed {} too: ", self.condition)?;
        match self.until {
            Some(until) => write!(f, "the next is replaced at {until:.0} at the earliest"),
            None => f.write_str("replacing does not help"),
        }
    }
}

impl Setback {
    /// Whether it still says something about nodes of this pool that lack this condition.
    fn is_about(&self, condition: &str, pool: Option<&NodePool>) -> bool {
        self.condition == condition && self.pool_generation == pool.and_then(|pool| pool.generation)
    }

    /// Whether the node has replaced another one since.
    fn is_replacement(&self, node: &Node) -> bool {
        node.created.is_some_and(|created| created > self.since.0)
    }

    /// Why a node that lacks this condition is not replaced now; `None` if it may be. `ttl`: how long it may take.
    pub(crate) fn blocks<'a>(
        &self,
        (node, pool): (&Node, Option<&NodePool>),
        condition: &'a str,
        ttl: SignedDuration,
        now: Timestamp,
    ) -> Option<Futile<'a>> {
        let missed = self.missed + i32::from(self.is_replacement(node));
        if !self.is_about(condition, pool) || missed == 0 {
            return None;
        }
        let wait = (0..missed).fold(ttl, |wait, _| wait.saturating_add(wait).min(LONGEST));
        let until = self.since.0.checked_add(wait).ok();
        let until = until.filter(|_| missed < MOST);
        (until.is_none_or(|until| now < until)).then_some(Futile {
            condition,
            missed: usize::try_from(missed).unwrap_or_default(),
            until,
        })
    }

    /// What is known once this node, which lacks this condition, has been replaced.
    pub fn after(
        known: Option<&Self>,
        (node, pool): (&Node, Option<&NodePool>),
        pool_name: Option<&str>,
        condition: &str,
        now: Timestamp,
    ) -> Self {
        let known = known.filter(|it| it.is_about(condition, pool));
        match known {
            // It is one of those that were late with the first.
            Some(known) if !known.is_replacement(node) => known.clone(),
            _ => Self {
                pool: pool_name.map(str::to_owned),
                condition: condition.to_owned(),
                since: Time(now),
                missed: known.map_or(0, |known| known.missed + 1),
                pool_generation: pool.and_then(|pool| pool.generation),
            },
        }
    }
}
