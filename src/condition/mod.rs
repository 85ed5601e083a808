//! The sources of a node's conditions: reported on the Node, or synthesized from what runs there. [`Source::of`] resolves a
//! condition type once, when a rule is compiled; [`Facts::condition`] then evaluates it for one node at one time. Pure: no
//! client, no clock, no async.

mod answer;
mod class;
mod csi;
mod daemon_sets;
mod detail;
mod facts;
mod groups;
mod named;
mod names;
mod observations;
mod placement;
mod pods;
mod source;
mod state;
#[cfg(test)]
mod tests;
mod trust;

pub use class::{CriticalComponentClass, Namespaces, Question};
pub use detail::Detail;
pub use facts::{ClassFacts, Facts, NamedFacts};
pub use groups::{ByGroup, ComponentGroup, NamedDaemonSet};
pub use observations::{Observations, Reboot};
pub use placement::{PassingTaints, can_share_a_node, is_meant_for, tolerates};
pub use source::{RESERVED_PREFIXES, Source, is_ours, names_no_daemon_set};
pub use state::Condition;
pub use trust::Trust;
