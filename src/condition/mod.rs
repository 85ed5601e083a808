//! Where a node's conditions come from: reported on the Node, or synthesized from what runs there.
//!
//! [`Source::of`] says once, when a rule is compiled, where a condition type comes from; [`Facts::condition`]
//! then answers for one node at one time. One file per source. Pure: no client, no clock, no async.

mod answer;
mod class;
mod cohorts;
mod csi;
mod daemon_sets;
mod detail;
mod facts;
mod named;
mod names;
mod placement;
mod pods;
mod sightings;
mod source;
mod state;
#[cfg(test)]
mod tests;
mod trust;

pub use class::{CriticalComponentClass, Namespaces, Question};
pub use cohorts::{ByCohort, Cohort, NamedDaemonSet};
pub use detail::Detail;
pub use facts::{ClassFacts, Facts, NamedFacts};
pub use placement::{PassingTaints, can_share_a_node, is_meant_for, tolerates};
pub use sightings::{Reboot, Sightings};
pub use source::{RESERVED_PREFIXES, Source, is_ours, names_no_daemon_set};
pub use state::Condition;
pub use trust::Trust;
