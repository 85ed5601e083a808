//! What a page is made of.

use jiff::Timestamp;

use crate::cli::lint::Lint;
use crate::cli::status::ClusterStatus;
use crate::cli::timeline::Timeline;

/// What the page is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// When it was read.
    pub at: Timestamp,
    /// The cluster on one screen.
    pub status: ClusterStatus,
    /// How nodes have started.
    pub timeline: Timeline,
    /// What is wrong with what was written.
    pub lint: Lint,
}
