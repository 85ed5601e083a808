//! The sources of a node's conditions: reported on the Node, or synthesized from what runs there. [`Source::of`] resolves a
//! condition type once, when a rule is compiled; [`Facts::condition`] then evaluates it for one node at one time. Pure: no
//! client, no clock, no async.

mod csi;
mod daemon_sets;
mod detail;
mod devices;
mod facts;
mod groups;
mod names;
mod observations;
mod placement;
mod pods;
mod revisions;
mod source;
#[cfg(test)]
mod tests;
mod trust;
mod watch;

pub(crate) use detail::Detail;
pub use facts::{Condition, Count, Facts};
pub(crate) use facts::{Counted, GroupFacts};
pub use groups::{
    ByGroup, Component, ComponentGroup, CriticalComponentClass, NamedComponent, Question,
};
pub(crate) use groups::{CHECK_LABEL, Namespaces};
pub(crate) use names::Names;
pub use observations::{Observations, Reboot};
pub use placement::tolerates;
pub(crate) use placement::{PassingTaints, can_share_a_node, is_meant_for};
pub(crate) use revisions::Revisions;
pub(crate) use source::{RESERVED_PREFIXES, counts_something, is_under_our_domain, names_nothing};
pub use source::{Source, is_ours};
pub(crate) use trust::Trust;
pub use watch::{Scope, Watch};
