//! The engine's state for each node.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::announce::announce;
use super::conditions::ConditionWork;
use super::io::until;
use super::node_writes::WriteWork;
use super::outbox::Outbox;
use super::schedule::Why;
use super::startups::Startups;
use super::status::{Record, Tally};
use super::told::Told;
use nodegate_core::object::Node;
use nodegate_core::plan::{ClusterState, Memory, NodePlan, NodeState, is_new};
use nodegate_core::rule::Rule;

/// By node name, in this order in statuses.
pub(super) type Nodes = BTreeMap<Arc<str>, Box<NodeWork>>;

pub(super) fn tally<'a>(rule: &str, nodes: &'a Nodes) -> Tally<'a> {
    let records = nodes.iter().map(|(name, work)| (name, &*work.records));
    Tally::of(rule, records)
}

/// Each node that has a record of the rule with this UID, to change that.
pub(super) fn records<'a>(
    rule: &'a str,
    nodes: &'a mut Nodes,
) -> impl Iterator<Item = (&'a Arc<str>, &'a mut Record)> {
    nodes.iter_mut().filter_map(|(name, work)| {
        let mut records = work.records.iter_mut();
        Some((name, records.find(|it| *it.rule == *rule)?))
    })
}

#[derive(Debug, Default)]
pub struct NodeWork {
    uid: Arc<str>,
    /// The generation of the rules that the last evaluation stands for; 0 if this process has not evaluated the node.
    pub rules_seen: u64,
    pub write: WriteWork,
    pub records: Vec<Record>,
    pub memories: Arc<[Memory]>,
    told: Told,
    pub conditions: ConditionWork,
    pub startups: Startups,
}

impl NodeWork {
    /// Resets the state if this is another node of the same name. No write may be under way.
    pub fn is_about(&mut self, node: &Node) {
        if self.uid == node.uid {
            return;
        }
        // A write of conditions for the earlier node may still be under way.
        let is_publishing = self.conditions.attempt.under_way;
        for record in &mut self.records {
            record.covered = 0;
        }
        *self = Self {
            uid: node.uid.clone(),
            records: std::mem::take(&mut self.records),
            ..Self::default()
        };
        self.conditions.attempt.under_way = is_publishing;
    }

    /// Takes in a plan: announces what is new, and schedules the next evaluation.
    pub fn observe(
        &mut self,
        cluster: ClusterState<'_>,
        state: NodeState<'_>,
        plan: &NodePlan<'_>,
        is_news: impl Fn(&Rule) -> bool,
        out: &mut Outbox,
    ) {
        let (node, now) = (state.node, out.now);
        announce(&mut self.told, node, plan, is_news, out);
        let is_new = is_new(state.joined, now.wall);
        self.startups
            .observe((cluster, state), plan, is_new, now.wall);
        if let Some(remembered) = Memory::after(&plan.outcomes, &self.memories) {
            self.memories = remembered.into();
        }
        if let Some(recheck) = plan.recheck {
            let at = now.monotonic + until(recheck, now.wall);
            out.evaluate_again(at, Why::Due);
        }
    }

    /// Whether a rule that has been deleted since this generation of the rules has left nothing on the node.
    pub fn is_clean_of(&self, rule: &str, since: u64) -> bool {
        let mut records = self.records.iter().filter(|it| *it.rule == *rule);
        self.rules_seen >= since && records.all(|it| it.is_clean)
    }

    /// Restarts all measurements of time, because the clock was set.
    pub fn measure_anew(&mut self, now: Timestamp) {
        let anew = self.memories.iter().cloned().map(|memory| Memory {
            unmet_since: memory.unmet_since.map(|_| now),
            met_since: memory.met_since.map(|_| now),
            ..memory
        });
        self.memories = anew.collect();
        self.startups = Startups::default();
    }
}
