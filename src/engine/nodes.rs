//! What is under way for each node.

use std::sync::Arc;

use jiff::Timestamp;

use super::announce::Announced;
use super::conditions::ConditionWork;
use super::looks::LookWork;
use super::map::Map;
use super::node_writes::WriteWork;
use super::repairs::RepairTold;
use super::startups::Startups;
use crate::object::Node;
use crate::plan::Memory;

/// All nodes that have been evaluated, by name.
pub type Nodes = Map<Arc<str>, NodeWork>;

/// What is under way for one node, and what is remembered of it.
#[derive(Debug, Default)]
pub struct NodeWork {
    /// The node that all of this is about; another UID means another node.
    uid: Arc<str>,
    /// The node has been evaluated by this process.
    pub is_known: bool,
    /// The writes of its taints and annotations.
    pub write: WriteWork,
    /// UIDs of the rules that have a record of this node.
    pub recorded_by: Vec<Arc<str>>,
    /// What is remembered of continuous rules on the node.
    pub memories: Arc<[Memory]>,
    /// What has been told of it.
    pub announced: Announced,
    /// What has been told about its repair.
    pub repair: RepairTold,
    /// Its published conditions.
    pub conditions: ConditionWork,
    /// How its start goes.
    pub startups: Startups,
    /// The last looks at it.
    pub look: LookWork,
}

impl NodeWork {
    /// Starts anew if this is another node than before. No write is under way.
    pub fn is_about(&mut self, node: &Node) {
        if self.uid == node.uid {
            return;
        }
        *self = Self {
            uid: node.uid.clone(),
            recorded_by: std::mem::take(&mut self.recorded_by),
            // What is under way for the earlier node ends in its own time.
            conditions: self.conditions.for_another_node(),
            ..Self::default()
        };
    }

    /// Whether a write is under way.
    pub fn is_writing(&self) -> bool {
        self.write.is_under_way() || self.conditions.is_writing()
    }

    /// Has what is remembered of times begin anew: the clock by which they were measured was set.
    pub fn measure_anew(&mut self, now: Timestamp) {
        let anew = self.memories.iter().cloned().map(|memory| Memory {
            unmet_since: memory.unmet_since.map(|_| now),
            ..memory
        });
        self.memories = anew.collect();
        self.startups.clear();
    }
}
