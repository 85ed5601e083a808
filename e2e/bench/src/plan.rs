//! The phases, and their sizes and rates.

use std::time::Duration;

use clap::ValueEnum;

/// One thing that is measured. They run in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Phase {
    /// A rule is created over nodes that do not meet it, until the last one is tainted
    Gate,
    /// All conditions turn True at once, until the last taint is gone
    Release,
    /// The rule is deleted while all nodes are held, until the last taint and the rule are gone
    Delete,
    /// One node flips at a time, and nothing else happens
    Single,
    /// The same among unrelated status writes on all nodes and critical pods
    Churn,
    /// Nothing happens
    Idle,
    /// The controller is started again over held nodes of which none has changed
    Restart,
    /// It is started again after one of them has turned ready: until that one's taint is gone
    CatchUp,
    /// Nodes join with a startup taint, and their critical pods get Ready one after another
    Joins,
    /// A critical `DaemonSet`'s pods are replaced node by node, under a continuous rule
    Rollout,
}

impl Phase {
    /// All phases, in order.
    pub fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// Whether it goes as fast as writes can be made, and is compared with that limit.
    pub fn has_limit(self) -> bool {
        matches!(
            self,
            Self::Gate | Self::Release | Self::Delete | Self::Rollout
        )
    }

    /// Its name on the command line and in tables.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |it| it.get_name().to_owned())
    }
}

/// The phases to measure, and their sizes.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The phases, in their order.
    pub phases: Vec<Phase>,
    /// How often to measure the phases with a limit, each time with the limit; the median counts.
    pub rounds: usize,
    /// How many nodes flip in the phases that flip one at a time.
    pub flips: u32,
    /// Unrelated status writes per second under churn.
    pub churn_per_second: u32,
    /// The length of the idle phase.
    pub idle: Duration,
    /// The most nodes that join.
    pub joins: u32,
    /// Nodes that join per second.
    pub joins_per_second: u32,
    /// The most nodes on which a rollout replaces pods.
    pub rollout_nodes: usize,
    /// On how many of them at a time.
    pub rollout_at_once: usize,
    /// The timeout of a phase.
    pub patience: Duration,
    /// The timeout of one node's change.
    pub patience_each: Duration,
}

impl Plan {
    /// The plan of the published figures.
    pub fn full(phases: Vec<Phase>) -> Self {
        Self {
            phases,
            rounds: 3,
            flips: 200,
            churn_per_second: 200,
            idle: Duration::from_secs(20),
            joins: 200,
            joins_per_second: 20,
            rollout_nodes: 300,
            rollout_at_once: 16,
            patience: Duration::from_secs(300),
            patience_each: Duration::from_secs(30),
        }
    }

    /// How often to measure the phases with a limit with this many nodes: tens of thousands of writes average out by
    /// themselves.
    pub fn rounds(&self, nodes: usize) -> usize {
        if nodes > 1000 { 1 } else { self.rounds }
    }

    /// A quick plan: it shows that everything works, and roughly how fast.
    pub fn quick(phases: Vec<Phase>) -> Self {
        Self {
            rounds: 1,
            flips: 30,
            idle: Duration::from_secs(3),
            joins: 40,
            patience: Duration::from_secs(60),
            ..Self::full(phases)
        }
    }
}
