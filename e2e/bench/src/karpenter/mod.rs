//! What `make bench-karpenter` measures: how many nodes a real Karpenter launches for a burst of pods while readiness taints
//! are on them, and how long the last pod takes to run, for each way in which nodes get their taint.

mod burst;
mod page;
mod setup;

use serde::{Deserialize, Serialize};

pub use burst::run;
pub use page::{plot, table};
pub use setup::Setup;

/// The parameters of a burst.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Burst {
    /// The number of pods.
    pub pods: usize,
    /// How many of them fit on a node.
    pub pods_each: usize,
    /// Seconds from a `NodeClaim` to its node.
    pub boots_in: u64,
    /// Seconds from the start of the critical component on a node until it is Ready.
    pub ready_in: u64,
}

impl Burst {
    /// A burst of this many pods, with the usual times.
    #[must_use]
    pub const fn of(pods: usize) -> Self {
        Self {
            pods,
            pods_each: 3,
            boots_in: 5,
            ready_in: 10,
        }
    }

    /// How many nodes the pods need.
    #[must_use]
    pub const fn needed(&self) -> usize {
        self.pods.div_ceil(self.pods_each)
    }
}

/// The results, as stored in `results.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// The parameters of each burst.
    pub burst: Burst,
    /// The runs, in the order of the set-ups.
    pub runs: Vec<Run>,
}

/// The result of one burst.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// How nodes get their taint.
    pub setup: Setup,
    /// The number of `NodeClaim`s at the end; Karpenter removes none before.
    pub launched: usize,
    /// How many pods were bound to a node whose critical component was not Ready.
    pub early: usize,
    /// Seconds until the last pod ran.
    pub last: f64,
    /// The counts over time, at each change.
    pub course: Vec<Seen>,
}

/// The counts at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Seconds since the pods were created.
    pub at: f64,
    /// The number of `NodeClaim`s.
    pub claims: usize,
    /// The number of running pods.
    pub running: usize,
}
