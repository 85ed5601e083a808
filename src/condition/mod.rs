//! Where a node's conditions come from: reported on the Node, or synthesized from what runs there.
//!
//! [`Source::of`] says once, when a rule is compiled, where a condition type comes from; [`Facts::condition`]
//! then answers for one node at one time. One file per source. Pure: no client, no clock, no async.

mod class;
mod csi;
mod daemon_sets;
mod detail;
mod names;
mod placement;
mod pods;
mod sightings;
#[cfg(test)]
mod tests;
mod trust;

use std::collections::BTreeMap;

use jiff::Timestamp;

pub use class::{CriticalComponentClass, Namespaces, Question};
pub use detail::Detail;
pub use placement::{PassingTaints, is_meant_for, tolerates};
pub use sightings::Sightings;
pub use trust::Trust;

use crate::api::ConditionStatus;
use crate::object::{CsiNode, DaemonSet, Node, ObjectKey, Pod, Taint};

/// Prefix of the condition types that say whether a CSI driver is registered on the node.
pub const CSI_DRIVER_PREFIX: &str = "csidriver.nodegate.dev/";
/// Prefix of the condition types that say whether the node has some of a resource to allocate.
pub const RESOURCE_PREFIX: &str = "resource.nodegate.dev/";

/// Where a condition type comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The Node's own `status.conditions`.
    Node,
    /// A critical component class, by its index in the configuration.
    Class {
        /// Index of the class.
        class: usize,
        /// Which of its questions.
        question: Question,
    },
    /// The node's `CSINode`: is this driver registered?
    CsiDriver(String),
    /// The node's allocatable resources: is there any of this one?
    Resource(String),
    /// Nothing makes this type, though its prefix is reserved: it counts as absent, whatever the Node says.
    Nobody,
}

impl Source {
    /// Where conditions of this type come from, given the configured classes.
    #[must_use]
    pub fn of(kind: &str, classes: &[CriticalComponentClass]) -> Self {
        if let Some(driver) = kind.strip_prefix(CSI_DRIVER_PREFIX) {
            return Self::CsiDriver(driver.into());
        }
        if let Some(resource) = kind.strip_prefix(RESOURCE_PREFIX) {
            return Self::Resource(resource.into());
        }
        let mut reserved = false;
        for (
            class,
            CriticalComponentClass {
                condition_prefix, ..
            },
        ) in classes.iter().enumerate()
        {
            if let Some(name) = kind.strip_prefix(condition_prefix.as_str()) {
                reserved = true;
                if let Some(question) = Question::from_name(name) {
                    return Self::Class { class, question };
                }
            }
        }
        if reserved { Self::Nobody } else { Self::Node }
    }

    /// Whether Nodegate makes this condition itself.
    #[must_use]
    pub fn is_synthesized(&self) -> bool {
        !matches!(self, Self::Node | Self::Nobody)
    }
}

/// Whether a published condition of this type and reason is one that Nodegate made, now or in an earlier
/// configuration, and may withdraw.
#[must_use]
pub fn is_ours(kind: &str, reason: &str) -> bool {
    let name = kind.rsplit_once('/').map_or(kind, |(_, name)| name);
    (kind.starts_with(CSI_DRIVER_PREFIX)
        || kind.starts_with(RESOURCE_PREFIX)
        || Question::from_name(name).is_some())
        && detail::is_synthesized_reason(reason)
}

/// One condition of one node, with the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition<'a> {
    /// The status.
    pub status: ConditionStatus,
    /// Why it is so.
    pub detail: Detail<'a>,
    /// When the status changed last, where the reporter says so.
    pub transition: Option<Timestamp>,
    /// When to look again even if nothing happens: the time from which a fact will be believed.
    pub recheck: Option<Timestamp>,
}

impl<'a> Condition<'a> {
    fn new(status: ConditionStatus, detail: Detail<'a>) -> Self {
        Self {
            status,
            detail,
            transition: None,
            recheck: None,
        }
    }

    fn met(detail: Detail<'a>) -> Self {
        Self::new(ConditionStatus::True, detail)
    }

    fn unmet(detail: Detail<'a>) -> Self {
        Self::new(ConditionStatus::False, detail)
    }
}

/// What is known about one node at one time.
///
/// `'a` is how long the objects live, `'f` how long this view of them does.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'f, 'a> {
    /// The node itself.
    pub node: &'a Node,
    /// Its `CSINode`, if there is one.
    pub csi_node: Option<&'a CsiNode>,
    /// For each configured class what it has on this node, in the order of the configuration.
    pub classes: &'f [ClassFacts<'f, 'a>],
    /// What this process has seen of the node over time.
    pub sightings: &'a Sightings,
    /// What counts as evidence.
    pub trust: Trust,
    /// The time for which to answer.
    pub now: Timestamp,
}

/// What one class has on one node.
#[derive(Debug, Clone, Copy)]
pub struct ClassFacts<'f, 'a> {
    /// The class.
    pub class: &'a CriticalComponentClass,
    /// Every `DaemonSet` of the class in the cluster.
    pub daemon_sets: &'a BTreeMap<ObjectKey, DaemonSet>,
    /// The class's pods that are bound to this node.
    pub pods: &'a [Pod],
    /// The node's taints that will not go by themselves: a `DaemonSet` that does not tolerate them is not meant
    /// for the node.
    pub staying: &'f [&'a Taint],
    /// The taints of the rules that wait for this class on this node.
    pub gates: &'f [&'a Taint],
}

impl<'a> Facts<'_, 'a> {
    /// The node's condition from this source, or `None` where the node has none.
    ///
    /// `kind` is the condition type, as it stands on the Node.
    #[must_use]
    pub fn condition(&self, kind: &str, source: &'a Source) -> Option<Condition<'a>> {
        match source {
            Source::Node => {
                let condition = self.node.condition(kind)?;
                Some(self.trust.judge(condition, self.sightings, self.now))
            }
            Source::Nobody => None,
            source => {
                let condition = self.synthesized(source)?;
                // What was published is the only record of when the status changed that outlives a process.
                let published = self.node.condition(kind);
                let transition = published
                    .filter(|published| published.status == condition.status)
                    .and_then(|published| published.transition);
                Some(Condition {
                    transition,
                    ..condition
                })
            }
        }
    }

    fn synthesized(&self, source: &'a Source) -> Option<Condition<'a>> {
        match source {
            Source::Node | Source::Nobody => None,
            Source::Class { class, question } => self
                .classes
                .get(*class)
                .map(|facts| self.answer(facts, *question)),
            Source::CsiDriver(driver) => Some(csi::driver_registered(self, driver)),
            Source::Resource(resource) => {
                Some(if self.node.resources.contains(resource.as_str()) {
                    Condition::met(Detail::ResourceAllocatable { resource })
                } else {
                    Condition::unmet(Detail::ResourceNotAllocatable { resource })
                })
            }
        }
    }

    fn answer(&self, facts: &ClassFacts<'_, 'a>, question: Question) -> Condition<'a> {
        match question {
            Question::DaemonSetsScheduled => daemon_sets::scheduled(self.node, facts),
            Question::PodsReady => pods::ready(self.node, facts, self.trust, self.now),
            Question::CsiDriversRegistered => csi::drivers_registered(self, facts),
            Question::ComponentsReady => self.components_ready(facts),
        }
    }

    /// The three questions in Gardener's order; the first one that is not `True` is the answer.
    fn components_ready(&self, facts: &ClassFacts<'_, 'a>) -> Condition<'a> {
        [
            Question::DaemonSetsScheduled,
            Question::PodsReady,
            Question::CsiDriversRegistered,
        ]
        .into_iter()
        .map(|question| self.answer(facts, question))
        .find(|condition| condition.status != ConditionStatus::True)
        .unwrap_or_else(|| Condition::met(Detail::ComponentsReady))
    }
}
