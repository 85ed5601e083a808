//! Critical component classes: the pods and `DaemonSet`s that a node needs before it takes workload.

use std::collections::BTreeSet;

use crate::object::DaemonSet;
use crate::selector::Selector;

/// A class of critical components, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CriticalComponentClass {
    /// The class's name, for people.
    pub name: String,
    /// Matches the pods and `DaemonSet`s of the class.
    pub selector: Selector,
    /// Where they are.
    pub namespaces: Namespaces,
    /// Prefix of the class's condition types, with its slash.
    pub condition_prefix: String,
    /// Prefix of the pod annotations whose values name CSI drivers to wait for.
    pub csi_annotation_prefix: String,
    /// Whether a driver counts as registered only once it reports `allocatable.count`.
    pub require_csi_allocatable: bool,
}

impl CriticalComponentClass {
    /// Whether this `DaemonSet`, whose own labels match the selector, belongs to the class: its namespace is covered, and
    /// [`Self::labels`] holds.
    pub fn has(&self, daemon_set: &DaemonSet) -> bool {
        self.namespaces.contains(&daemon_set.key.namespace) && self.labels(daemon_set)
    }

    /// Whether this `DaemonSet`, whose own labels match the selector, counts as labelled in any namespace: it is not being
    /// deleted, and its pod template has the labels too.
    pub fn labels(&self, daemon_set: &DaemonSet) -> bool {
        !daemon_set.deleting && self.selector.matches(&daemon_set.template_labels)
    }
}

/// The namespaces that a class covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespaces {
    /// All of them.
    All,
    /// Just these.
    Only(BTreeSet<String>),
}

impl Namespaces {
    /// The only namespace that the class covers, if there is just one.
    pub fn single(&self) -> Option<&str> {
        match self {
            Self::Only(names) if names.len() == 1 => names.first().map(String::as_str),
            _ => None,
        }
    }

    /// Whether the class covers this namespace.
    pub fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(namespaces) => namespaces.contains(namespace),
        }
    }
}

/// A question about a class on a node. With the class's prefix, its name is a condition type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
    /// Does every `DaemonSet` that runs on the node have a pod there?
    DaemonSetsScheduled,
    /// Are the pods Ready?
    PodsReady,
    /// Are the CSI drivers that the pods wait for registered?
    CsiDriversRegistered,
    /// All three.
    ComponentsReady,
}

impl Question {
    const NAMES: [(&'static str, Self); 4] = [
        ("CriticalDaemonSetsScheduled", Self::DaemonSetsScheduled),
        ("CriticalPodsReady", Self::PodsReady),
        ("CSIDriversRegistered", Self::CsiDriversRegistered),
        ("CriticalComponentsReady", Self::ComponentsReady),
    ];

    /// The question whose condition type has this name after the class's prefix.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, question)| *question)
    }
}
