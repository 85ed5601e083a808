//! What is under way for each node.

use std::sync::Arc;

use jiff::Timestamp;

use super::announce::Announced;
use super::conditions::ConditionWork;
use super::effects::Effects;
use super::io::until;
use super::live_reads::NodeLiveReads;
use super::map::Map;
use super::node_writes::WriteWork;
use super::repairs::RepairTold;
use super::startups::Startups;
use crate::object::Node;
use crate::plan::{Memory, NodePlan, NodeState};
use crate::rule::Rule;

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
    pub look: NodeLiveReads,
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

    /// Notes and tells what a plan says of the node, and when it is to be reconciled again. `is_news` says whether no earlier
    /// process can have told of a rule's adoption.
    pub fn observe(
        &mut self,
        state: NodeState<'_>,
        plan: &NodePlan<'_>,
        is_news: impl Fn(&Rule) -> bool,
        out: &mut Effects,
    ) {
        let (node, now) = (state.node, out.now);
        self.is_known = true;
        self.repair.tell_of(node, plan, out);
        self.announced.announce(node, plan, is_news, out);
        self.startups.observe(node, plan, state.joined, now.wall);
        if let Some(remembered) = Memory::after(&plan.outcomes, &self.memories) {
            self.memories = remembered.into();
        }
        if let Some(recheck) = plan.recheck {
            let at = now.monotonic + until(recheck, now.wall);
            out.timers.wake_node(&node.name, at);
        }
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
