//! Critical component classes: which pods and `DaemonSet`s a node needs before it is of use.

use std::collections::BTreeSet;

use crate::object::DaemonSet;
use crate::selector::Selector;

/// A class of critical components, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CriticalComponentClass {
    /// The class's name, for people.
    pub name: String,
    /// Which pods and `DaemonSet`s belong to the class.
    pub selector: Selector,
    /// Where they are looked for.
    pub namespaces: Namespaces,
    /// Prefix of the condition types that the class makes, with its slash.
    pub condition_prefix: String,
    /// Prefix of the pod annotations whose values name CSI drivers to wait for.
    pub csi_annotation_prefix: String,
    /// Whether a driver counts as registered only once it reports `allocatable.count`.
    pub require_csi_allocatable: bool,
}

impl CriticalComponentClass {
    /// Whether this `DaemonSet`, whose own labels match the selector, is of the class: it is in a namespace of the class,
    /// and labelled as a whole.
    #[must_use]
    pub fn has(&self, daemon_set: &DaemonSet) -> bool {
        self.namespaces.contains(&daemon_set.key.namespace) && self.labels(daemon_set)
    }

    /// Whether this `DaemonSet`, whose own labels match the selector, is labelled as a whole, wherever it is: it is not
    /// being deleted, and its pods will have the labels too.
    #[must_use]
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
    /// The namespace that the class covers, where it is just one.
    #[must_use]
    pub fn single(&self) -> Option<&str> {
        match self {
            Self::Only(names) if names.len() == 1 => names.first().map(String::as_str),
            _ => None,
        }
    }

    /// Whether the class covers this namespace.
    #[must_use]
    pub fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(namespaces) => namespaces.contains(namespace),
        }
    }
}

/// What can be asked of a class on a node. Each question is a condition type, after the class's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
    /// Has every `DaemonSet` that is meant for the node a pod there?
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
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, question)| *question)
    }
}
