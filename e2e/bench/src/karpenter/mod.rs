//! What `make bench-karpenter` measures: how many nodes a real Karpenter launches for a burst of pods while readiness taints are on
//! them, and how long it is until the last pod runs, for each way in which nodes can get their taint.
//!
//! ```text
//! setup    the ways
//! burst    one burst in a cluster of its own
//! page     what came out, as a table and as a plot
//! ```

mod burst;
mod page;
mod setup;

use serde::{Deserialize, Serialize};

pub use burst::run;
pub use page::{plot, table};
pub use setup::Setup;

/// How much is measured, and of what.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Burst {
    /// How many pods come at once.
    pub pods: usize,
    /// How many of them fit on a node.
    pub pods_each: usize,
    /// Seconds from a `NodeClaim` to its node.
    pub boots_in: u64,
    /// Seconds from the start of the critical component on a node until it is Ready.
    pub ready_in: u64,
}

impl Burst {
    /// A burst of so many pods, with the times that all are measured with.
    #[must_use]
    pub const fn of(pods: usize) -> Self {
        Self {
            pods,
            pods_each: 3,
            boots_in: 5,
            ready_in: 10,
        }
    }

    /// How many nodes it takes.
    #[must_use]
    pub const fn needed(&self) -> usize {
        self.pods.div_ceil(self.pods_each)
    }
}

/// What came out, as it is kept in `results.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// What was measured.
    pub burst: Burst,
    /// The runs, in the order of the set-ups.
    pub runs: Vec<Run>,
}

/// One burst.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// How nodes get their taint.
    pub setup: Setup,
    /// How many `NodeClaim`s there were in the end; Karpenter takes none back meanwhile.
    pub launched: usize,
    /// How many pods were bound to a node whose critical component was not Ready.
    pub early: usize,
    /// Seconds until the last pod ran.
    pub last: f64,
    /// What was seen when it changed.
    pub course: Vec<Seen>,
}

/// What is there at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Seconds since the pods came.
    pub at: f64,
    /// How many `NodeClaim`s.
    pub claims: usize,
    /// How many pods run.
    pub running: usize,
}
