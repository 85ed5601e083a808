//! The sources of a node's conditions: reported on the Node, or synthesized from what runs there. [`Source::of`] resolves a
//! condition type once, when a rule is compiled; [`Facts::condition`] evaluates it for one node at one time.

mod absence;
mod csi;
mod daemon_sets;
mod detail;
mod devices;
mod facts;
mod groups;
mod labels;
mod names;
mod observations;
mod placement;
mod pods;
mod seen;
mod source;
#[cfg(test)]
mod tests;
mod trust;
mod watch;

pub use absence::{Absence, Recall};
pub(crate) use daemon_sets::Revisions;
pub use detail::{Detail, Hint};
pub use facts::{Condition, Counted, Facts, GroupFacts};
pub use groups::{
    ByGroup, CHECK_LABEL, Component, ComponentGroup, CriticalComponentClass, NamedComponent,
    Namespaces,
};
pub use labels::NodeLabels;
pub use names::Names;
pub(crate) use observations::LABELS_LAST;
pub use observations::Observations;
#[cfg(test)]
pub(crate) use observations::Reboot;
pub use placement::{PassingTaints, Placement, can_share_a_node, placement, selects, tolerates};
pub use pods::TooNew;
pub use seen::{Object, Seen, Watch};
pub use source::{
    LABEL_PREFIX, Source, counts_something, covers_many, is_ours, is_reserved, is_under_our_domain,
    names_nothing,
};
pub use trust::Trust;
pub use watch::WATCH_LENGTH;
