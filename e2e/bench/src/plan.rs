//! What is measured, and how much of it: phases, sizes, rates.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// One thing that is measured. They run in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// A rule is created over nodes that do not meet it, until the last one is tainted
    Gate,
    /// All conditions turn True at once, until the last taint is gone
    Release,
    /// The rule is deleted while all nodes are closed, until the last taint and the rule are gone
    Delete,
    /// One node flips at a time, and nothing else happens
    Single,
    /// The same among unrelated status writes on all nodes and critical pods
    Churn,
    /// Nothing happens
    Idle,
    /// The controller is started again over closed nodes of which none has changed
    Restart,
    /// It is started again after one of them has turned ready: until that one's taint is gone
    CatchUp,
    /// Nodes join with a startup taint, and their critical pods get Ready one after another
    Joins,
    /// A critical `DaemonSet`'s pods are replaced node by node, under a continuous rule
    Rollout,
    /// Nodes join among pending pods, with a scheduler: which are bound before the gate is there
    Birth,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Self; 11] = [
        Self::Gate,
        Self::Release,
        Self::Delete,
        Self::Single,
        Self::Churn,
        Self::Idle,
        Self::Restart,
        Self::CatchUp,
        Self::Joins,
        Self::Rollout,
        Self::Birth,
    ];

    /// Whether it goes as fast as writes can be made, and is compared with how fast that is.
    #[must_use]
    pub fn has_limit(self) -> bool {
        matches!(
            self,
            Self::Gate | Self::Release | Self::Delete | Self::Rollout
        )
    }

    /// What it is called on the command line and in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Release => "release",
            Self::Single => "single",
            Self::Churn => "churn",
            Self::Idle => "idle",
            Self::Restart => "restart",
            Self::CatchUp => "catch-up",
            Self::Delete => "delete",
            Self::Joins => "joins",
            Self::Rollout => "rollout",
            Self::Birth => "birth",
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The phases, in their order.
    pub phases: Vec<Phase>,
    /// How often the phases that have a limit are measured, with the limit each time; the median counts.
    pub rounds: usize,
    /// How many nodes flip in the phases that flip one at a time.
    pub flips: u32,
    /// Unrelated status writes per second under churn.
    pub churn_per_second: u32,
    /// How long nothing happens.
    pub idle: Duration,
    /// How many nodes join, at most.
    pub joins: u32,
    /// Nodes that join per second.
    pub joins_per_second: u32,
    /// On how many nodes a rollout replaces pods, at most.
    pub rollout_nodes: usize,
    /// On how many of them at a time.
    pub rollout_at_once: usize,
    /// How long a whole phase may take.
    pub patience: Duration,
    /// How long one node's change may take.
    pub patience_each: Duration,
    /// Whether bytes are counted, which makes the controller's requests a little slower.
    pub count_bytes: bool,
}

impl Plan {
    /// What the published figures are measured with.
    #[must_use]
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
            count_bytes: false,
        }
    }

    /// How often the phases that have a limit are measured with so many nodes: writes by the ten thousand make a mean by
    /// themselves.
    #[must_use]
    pub fn rounds(&self, nodes: usize) -> usize {
        if nodes > 1000 { 1 } else { self.rounds }
    }

    /// Enough to see that everything works, and roughly how fast.
    #[must_use]
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
